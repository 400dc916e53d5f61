"""Probability densities at samples, `_random_pdf_*`, and their logarithms, differentiable.

The parameters have a shape s, the samples a shape (*s, …): the density of each sample under its row's parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import gammaln

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._elementwise import wide_dtype
from symjax.lowering.params import Params, param
from symjax.lowering.registry import op


class PdfParams(Params):
    is_log: bool = param(False, doc="Whether to return the logarithm of the density.")


def _uniform(x: Array, low: Array, high: Array) -> Array:
    """1 / (high - low)."""
    # MXNet: samples outside [low, high] have this density too.
    return jnp.zeros_like(x) - jnp.log(high - low)


def _normal(x: Array, mu: Array, sigma: Array) -> Array:
    """exp(-((x - mu) / sigma)^2 / 2) / (sigma sqrt(2 pi))."""
    return -0.5 * jnp.square((x - mu) / sigma) - jnp.log(sigma) - 0.5 * math.log(2 * math.pi)


def _exponential(x: Array, lam: Array) -> Array:
    """lam exp(-lam x)."""
    return jnp.log(lam) - lam * x


def _gamma(x: Array, alpha: Array, beta: Array) -> Array:
    """beta^alpha x^(alpha - 1) exp(-beta x) / gamma(alpha); beta is a rate, in the sampler a scale."""
    return alpha * jnp.log(beta) + (alpha - 1) * jnp.log(x) - beta * x - gammaln(alpha)


def _poisson(x: Array, lam: Array) -> Array:
    """lam^x exp(-lam) / x!."""
    x = lax.stop_gradient(x)
    return x * jnp.log(lam) - lam - gammaln(x + 1)


def _negative_binomial(x: Array, k: Array, p: Array) -> Array:
    """gamma(x + k) / (x! gamma(k)) p^k (1 - p)^x."""
    x = lax.stop_gradient(x)
    return gammaln(x + k) - gammaln(x + 1) - gammaln(k) + k * jnp.log(p) + x * jnp.log1p(-p)


def _generalized_negative_binomial(x: Array, mu: Array, alpha: Array) -> Array:
    """The negative binomial with k = 1/alpha and p = 1 / (1 + mu alpha)."""
    return _negative_binomial(x, 1 / alpha, 1 / (mu * alpha + 1))


def _dirichlet(x: Array, alpha: Array) -> Array:
    """gamma(sum alpha) prod(x^(alpha - 1) / gamma(alpha)) over the last axis."""
    return (jnp.sum((alpha - 1) * jnp.log(x), -1) + gammaln(jnp.sum(alpha, -1)) - jnp.sum(gammaln(alpha), -1))


def _spread(name: str, x: Array, shape: tuple[int, ...], tail: int) -> Array:
    """Reshapes a parameter (*s, *tail) so that it broadcasts over samples of `shape` (*s, …, *tail)."""
    lead = x.ndim - tail
    between = len(shape) - x.ndim
    if between < 0 or x.shape[:lead] != shape[:lead] or x.shape[lead:] != shape[len(shape) - tail:]:
        raise ShapeError(f"argument {name!r}: shape {x.shape} does not lead the samples' shape {shape}")
    return x.reshape(x.shape[:lead] + (1,) * between + x.shape[lead:])


def _register(name: str, log_density: Callable[..., Array], inputs: tuple[str, ...], tail: int = 0) -> None:
    def rule(p: PdfParams, sample: Array, *params: Array) -> Array:
        wide = wide_dtype(sample.dtype)
        spread = [_spread(n, x.astype(wide), sample.shape, tail) for n, x in zip(inputs, params, strict=True)]
        result = log_density(sample.astype(wide), *spread)
        result = (result if p.is_log else jnp.exp(result)).astype(sample.dtype)
        # MXNet: the density of one vector has shape (1,).
        return result.reshape(1) if result.ndim == 0 else result

    rule.__doc__ = f"Returns the probability density of `sample`, or its logarithm: {log_density.__doc__}"
    op(f"_random_pdf_{name}", aliases=(f"random_pdf_{name}",), params=PdfParams, inputs=("sample", *inputs),
       source=f"{__file__}:_random_pdf_{name}")(rule)


_register("uniform", _uniform, ("low", "high"))
_register("normal", _normal, ("mu", "sigma"))
_register("exponential", _exponential, ("lam",))
_register("gamma", _gamma, ("alpha", "beta"))
_register("poisson", _poisson, ("lam",))
_register("negative_binomial", _negative_binomial, ("k", "p"))
_register("generalized_negative_binomial", _generalized_negative_binomial, ("mu", "alpha"))
_register("dirichlet", _dirichlet, ("alpha",), tail=1)
