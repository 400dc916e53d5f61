"""Random samplers with numpy's meaning: parameters are numbers or arrays, which broadcast with each other and `size`.

Distributions are MXNet's, bit streams are not; equal keys give equal numbers. Draws are float32 (float64 for float64).
Where MXNet has gradients of the parameters (those of location, scale and shape that a draw is a smooth function of),
they are here too. A number out of range is an error; in an array it gives NaN (MXNet raises, which a compiled
function cannot).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._elementwise import cast, scalar_as, wide_dtype
from symjax.lowering.ops.random import Types, draw_gamma, draw_uniform
from symjax.lowering.params import Floats, Params, Shape, param
from symjax.lowering.registry import op

FloatType = Literal["float16", "float32", "float64"]
Noise = Callable[..., Array]
"""(key, shape, dtype) -> samples without parameters."""
Draw = Callable[..., Callable[..., Array]]
"""(key, shape, dtype) -> parameters that broadcast to the shape -> samples."""

_CTX = "Device; placement is the executor's, so it has no effect in a graph."
_FOR_NONE = "; None: an input"


class _Sized(Params):
    size: Shape | None = param(None, doc="Shape of the result; None: that of the parameters together.")


class _Placed(_Sized):
    ctx: str = param("cpu", doc=_CTX)


class _Typed(_Placed):
    dtype: FloatType = param("float32", doc="Type of the result.")


class UniformParams(_Typed):
    low: float | None = param(doc=f"Lower bound{_FOR_NONE}.", traced=True)
    high: float | None = param(doc=f"Upper bound{_FOR_NONE}.", traced=True)


class NormalParams(_Typed):
    loc: float | None = param(doc=f"Mean{_FOR_NONE}.", traced=True)
    scale: float | None = param(doc=f"Standard deviation{_FOR_NONE}.", traced=True, ge=0)


class GammaParams(_Typed):
    shape: float | None = param(doc=f"Shape of the distribution{_FOR_NONE}.", traced=True, gt=0)
    scale: float | None = param(doc=f"Scale{_FOR_NONE}.", traced=True, ge=0)


class LocScaleParams(_Placed):
    loc: float | None = param(doc=f"Location{_FOR_NONE}.", traced=True)
    scale: float | None = param(doc=f"Scale{_FOR_NONE}.", traced=True, ge=0)


class ScaleParams(_Placed):
    scale: float | None = param(1.0, doc=f"Scale{_FOR_NONE}.", traced=True, ge=0)


class PowerParams(_Sized):
    a: float | None = param(None, doc=f"Exponent{_FOR_NONE}.", traced=True, gt=0)


class TailParams(_Placed):
    a: float | None = param(None, doc=f"Shape of the distribution{_FOR_NONE}.", traced=True, gt=0)


class BernoulliParams(_Placed):
    prob: float | None = param(doc="Probability of 1; None: an input, or `logit` is given.", traced=True, ge=0, le=1)
    logit: float | None = param(doc="Log-odds of 1; None: an input, or `prob` is given.", traced=True)
    is_logit: bool = param(doc="Whether it is the log-odds that are given.")
    dtype: Literal["bool", "float16", "float32", "float64", "int32", "uint8"] = param(
        "float32", doc="Type of the result.")


def _inputs(*numbers: str) -> Callable[[Any], tuple[str, ...]]:
    """input1 and input2 stand for the parameters that are None."""
    return lambda p: tuple(f"input{i + 1}" for i in range(sum(getattr(p, n) is None for n in numbers)))


def _float_types(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, [getattr(p, "dtype", "float32")] * len(outs)


def _given(p: Any, numbers: Sequence[str], arrays: Sequence[Array], dtype: Any) -> list[Array]:
    rest = iter(arrays)
    return [cast(next(rest), dtype) if getattr(p, n) is None else scalar_as(getattr(p, n), dtype) for n in numbers]


def _shape(p: Any, params: Sequence[Array], per_element: bool = False) -> Shape:
    """The result's shape: `size`, to which the parameters broadcast, or theirs; `per_element` puts `size` before it."""
    common = jnp.broadcast_shapes(*(x.shape for x in params))
    if per_element:
        return (*(p.size or ()), *common)
    if p.size is None:
        return common
    try:
        fits = jnp.broadcast_shapes(common, p.size) == p.size
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"parameters of shape {common} do not broadcast to size={p.size}")
    return p.size


def _register(name: str, params: type[Params], numbers: tuple[str, ...], draw: Draw, doc: str, *,
              valid: Callable[..., Array] | None = None, smooth: bool = False, per_element: bool = False) -> None:
    """Declares a sampler.

    Args:
      draw: gives the samples.
      valid: parameters -> where they are allowed.
      smooth: samples are differentiated, and their derivative by the last parameter is a hidden second output.
    """

    def rule(p: Any, *arrays: Array, key: Array) -> Any:
        dtype = jnp.dtype(getattr(p, "dtype", "float32"))
        wide = wide_dtype(dtype)
        args = _given(p, numbers, arrays, wide)
        shape = _shape(p, args, per_element)
        sample = draw(key, shape, wide)

        def run(*xs: Array) -> Array:
            return sample(*xs) if valid is None else jnp.where(valid(*xs), sample(*xs), jnp.nan)

        if not smooth:
            return cast(run(*map(lax.stop_gradient, args)), dtype)
        last = jnp.broadcast_to(lax.stop_gradient(args[-1]), shape)
        fixed = [lax.stop_gradient(x) for x in args[:-1]]
        _, slope = jax.jvp(lambda x: run(*fixed, x), (last,), (jnp.ones(shape, wide),))
        return cast(run(*args), dtype), cast(slope, dtype)

    rule.__doc__ = doc
    op(f"_npi_{name}", params=params, inputs=_inputs(*numbers), infer_types=_float_types,
       all_inputs=tuple(f"input{i + 1}" for i in range(len(numbers))), outputs=2 if smooth else 1, num_visible=1,
       source=f"{__file__}:_npi_{name}")(rule)


def _of_noise(noise: Noise, sample: Callable[..., Array]) -> Draw:
    """A draw that is a smooth function of parameterless noise and the parameters."""

    def draw(key: Array, shape: Shape, dtype: Any) -> Callable[..., Array]:
        z = noise(key, shape, dtype)
        return lambda *xs: sample(z, *xs)

    return draw


def _positive_exponential(key: Array, shape: Shape, dtype: Any) -> Array:
    """Exponential with mean 1, never 0, whose logarithm is taken."""
    return jnp.maximum(jax.random.exponential(key, shape, dtype), jnp.finfo(dtype).tiny)


def _moved(z: Array, loc: Array, scale: Array) -> Array:
    return loc + scale * z


def _uniform(key: Array, shape: Shape, dtype: Any) -> Callable[..., Array]:
    return lambda low, high: draw_uniform(key, shape, dtype, low, high)


def _gamma(key: Array, shape: Shape, dtype: Any) -> Callable[..., Array]:
    return lambda alpha, scale: draw_gamma(key, shape, dtype, jnp.where(alpha > 0, alpha, 1), scale)


_EXP, _LOC = _positive_exponential, ("loc", "scale")
_HIDDEN = "The hidden second output is its derivative by the last parameter."

for _name, _each in (("uniform", False), ("uniform_n", True)):
    _register(_name, UniformParams, ("low", "high"), _uniform, "Draws numbers uniform in [low, high)."
              + " `size` stands before the parameters' shape." * _each, per_element=_each)
for _name, _each in (("normal", False), ("normal_n", True)):
    _register(_name, NormalParams, _LOC, _of_noise(jax.random.normal, _moved),
              f"Draws from the normal distribution. {_HIDDEN}" + " `size` stands before the parameters' shape." * _each,
              valid=lambda loc, scale: scale >= 0, smooth=True, per_element=_each)
_register("gumbel", LocScaleParams, _LOC, _of_noise(jax.random.gumbel, _moved),
          f"Draws from the Gumbel distribution: loc - scale log(-log u). {_HIDDEN}",
          valid=lambda loc, scale: scale >= 0, smooth=True)
_register("logistic", LocScaleParams, _LOC, _of_noise(jax.random.logistic, _moved),
          f"Draws from the logistic distribution: loc + scale log(u / (1 - u)). {_HIDDEN}",
          valid=lambda loc, scale: scale >= 0, smooth=True)
_register("exponential", ScaleParams, ("scale",), _of_noise(_EXP, lambda e, scale: scale * e),
          f"Draws from the exponential distribution of mean `scale`. {_HIDDEN}", valid=lambda s: s >= 0, smooth=True)
_register("rayleigh", ScaleParams, ("scale",), _of_noise(_EXP, lambda e, scale: scale * jnp.sqrt(2 * e)),
          f"Draws from the Rayleigh distribution: scale sqrt(-2 log u). {_HIDDEN}", valid=lambda s: s >= 0, smooth=True)
_register("weibull", TailParams, ("a",), _of_noise(_EXP, lambda e, a: jnp.exp(jnp.log(e) / a)),
          f"Draws from the Weibull distribution of shape a and scale 1: (-log u)^(1/a). {_HIDDEN}",
          valid=lambda a: a > 0, smooth=True)
_register("pareto", TailParams, ("a",), _of_noise(_EXP, lambda e, a: jnp.expm1(e / a)),
          f"Draws from the Pareto II (Lomax) distribution: u^(-1/a) - 1. {_HIDDEN}", valid=lambda a: a > 0, smooth=True)
_register("powerd", PowerParams, ("a",), _of_noise(_EXP, lambda e, a: jnp.exp(-e / a)),
          "Draws from the power distribution of density a x^(a-1) on [0, 1]: u^(1/a).", valid=lambda a: a > 0)
_register("gamma", GammaParams, ("shape", "scale"), _gamma,
          "Draws from the gamma distribution of mean shape * scale.",
          valid=lambda alpha, scale: (alpha > 0) & (scale >= 0))


def _bernoulli_inputs(p: BernoulliParams) -> tuple[str, ...]:
    return ("input1",) if p.prob is None and p.logit is None else ()


@op("_npi_bernoulli", params=BernoulliParams, inputs=_bernoulli_inputs, all_inputs=("input1",),
    infer_types=_float_types)
def bernoulli(p: BernoulliParams, *arrays: Array, key: Array) -> Array:
    """Draws 1 with a probability, given as such or as log-odds, and 0 else. It has no gradient."""
    wide = jnp.dtype(jnp.float32)
    name = "logit" if p.is_logit else "prob"
    if not arrays and getattr(p, name) is None:
        raise ParamError(f"is_logit={p.is_logit} needs the parameter {name!r}")
    chance = lax.stop_gradient(_given(p, (name,), arrays, wide)[0])
    chance = jax.nn.sigmoid(chance) if p.is_logit else chance
    return cast(jax.random.uniform(key, _shape(p, (chance,)), wide) < chance, p.dtype)


class MultinomialParams(_Sized):
    n: int = param(doc="How many trials.", ge=0)
    pvals: Floats | None = param(None, doc="Probabilities of the outcomes; None: the input. The last is what is left.")


@op("_npi_multinomial", params=MultinomialParams, inputs=lambda p: () if p.pvals is not None else ("a",),
    all_inputs=("a",), infer_types=lambda p, ins, outs: (ins, ["int64"]))
def multinomial(p: MultinomialParams, *a: Array, key: Array) -> Array:
    """Counts of the outcomes of n trials: int64 of shape (*size, outcomes)."""
    if p.pvals is not None and sum(p.pvals[:-1]) > 1 + 1e-12:
        raise ParamError(f"pvals={p.pvals} must not sum to more than 1")
    given = jnp.asarray(p.pvals, jnp.float32) if p.pvals is not None else cast(lax.stop_gradient(a[0]), jnp.float32)
    if given.ndim != 1:
        raise ShapeError(f"argument 'a': expected a vector of probabilities, got {given.shape}")
    outcomes = given.shape[0]
    shape = (*(p.size or ()), outcomes)
    if not outcomes:
        return jnp.zeros(shape, jnp.int64)
    chances = jnp.append(given[:-1], jnp.maximum(1 - given[:-1].sum(), 0))
    trials = jnp.full((), p.n, jnp.float32)
    return jax.random.multinomial(key, trials, jnp.broadcast_to(chances, shape), shape=shape).astype(jnp.int64)


class ChoiceParams(_Sized):
    a: int | None = param(doc="How many there are to choose from; None: as many as the first input has elements.", ge=1)
    size: Shape | None = param(doc="Shape of the result; None: a scalar.")
    ctx: str = param("cpu", doc=_CTX)
    replace: bool = param(True, doc="Whether one can be chosen again.")
    weighted: bool = param(False, doc="Whether the last input holds the chance of each.")


@op("_npi_choice", params=ChoiceParams, all_inputs=("input1", "input2"),
    inputs=lambda p: tuple(f"input{i + 1}" for i in range((p.a is None) + p.weighted)),
    infer_types=lambda p, ins, outs: (ins, ["int64"]))
def choice(p: ChoiceParams, *arrays: Array, key: Array) -> Array:
    """Chooses among 0, 1, …, a - 1, each with an equal chance or in proportion to weights: int64 of shape `size`."""
    count = arrays[0].size if p.a is None else p.a
    shape = p.size or ()
    if not p.replace and math.prod(shape) > count:
        raise ParamError(f"size={p.size}: {math.prod(shape)} different ones cannot be chosen from {count}")
    weights = None
    if p.weighted:
        weights = lax.stop_gradient(arrays[-1]).astype(wide_dtype(arrays[-1].dtype))
        if weights.shape != (count,):
            raise ShapeError(f"argument 'input{len(arrays)}': expected ({count},) weights, got {weights.shape}")
    return _chosen(key, count, shape, p.replace, weights).astype(jnp.int64)


def _chosen(key: Array, count: int, shape: tuple[int, ...], again: bool, weights: Array | None) -> Array:
    """As jax.random.choice, whose int64 indices cannot be lowered inside a program of 32 bits."""
    if again and weights is None:
        return jax.random.randint(key, shape, 0, count, jnp.int32)
    if again:
        ends = jnp.cumsum(weights)
        return jnp.searchsorted(ends, ends[-1] * (1 - jax.random.uniform(key, shape, ends.dtype)))
    if weights is None:
        order = jax.random.permutation(key, jnp.arange(count, dtype=jnp.int32))[: math.prod(shape)]
    else:
        noise = jax.random.gumbel(key, (count,), weights.dtype)
        order = lax.top_k(noise + jnp.log(weights), math.prod(shape))[1]
    return order.reshape(shape)
