"""Random samplers: `_random_*` with numbers as parameters, `*_like` another array, `_sample_*` with arrays of them.

Distributions are MXNet's, bit streams are not; equal keys give equal numbers. Draws are float32 (float64 for float64)
and converted to the output's type. Nothing is differentiated through a draw.
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
from symjax.lowering.ops.init import OutShapes, known_shape, shape_outputs
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, op, output_dtype

Types = tuple[Sequence[str | None], Sequence[str | None]]
FloatType = Literal["float16", "float32", "float64"]
Draw = Callable[..., Array]
"""(key, shape, dtype, parameters that broadcast to the shape…) -> samples of a wide dtype."""

_CTX = "Device; placement is the executor's, so it has no effect in a graph."


def _shape() -> Any:
    return param(None, doc="Shape; None, () or a 0 in it is filled from what consumes the array.")


def _ctx() -> Any:
    return param("", doc=_CTX)


def _dtype() -> Any:
    return param(None, doc="Type; None for float32.")


def draw_uniform(key: Array, shape: tuple[int, ...], dtype: Any, low: Array, high: Array) -> Array:
    """Uniform in [low, high)."""
    return low + (high - low) * jax.random.uniform(key, shape, dtype)


def draw_normal(key: Array, shape: tuple[int, ...], dtype: Any, loc: Array, scale: Array) -> Array:
    """Normal with a mean and a standard deviation."""
    return loc + scale * jax.random.normal(key, shape, dtype)


def draw_exponential(key: Array, shape: tuple[int, ...], dtype: Any, lam: Array) -> Array:
    """Exponential with rate lam (mean 1/lam)."""
    return jax.random.exponential(key, shape, dtype) / lam


def draw_gamma(key: Array, shape: tuple[int, ...], dtype: Any, alpha: Array, beta: Array) -> Array:
    """Gamma with shape alpha and scale beta (mean alpha beta)."""
    return beta * jax.random.gamma(key, jnp.broadcast_to(alpha, shape), shape, dtype)


def draw_poisson(key: Array, shape: tuple[int, ...], dtype: Any, lam: Array) -> Array:
    """Poisson with mean lam."""
    return jax.random.poisson(key, jnp.broadcast_to(lam, shape), shape, jnp.int64).astype(dtype)


def draw_negative_binomial(key: Array, shape: tuple[int, ...], dtype: Any, k: Array, p: Array) -> Array:
    """Failures before the k-th success of probability p: Poisson of a gamma-distributed mean."""
    first, second = jax.random.split(key)
    return draw_poisson(second, shape, dtype, draw_gamma(first, shape, dtype, k, (1 - p) / p))


def draw_generalized_negative_binomial(key: Array, shape: tuple[int, ...], dtype: Any, mu: Array,
                                       alpha: Array) -> Array:
    """Poisson of a gamma-distributed mean: mean mu, variance mu + alpha mu^2; Poisson itself for alpha = 0."""
    first, second = jax.random.split(key)
    some = alpha > 0
    mean = draw_gamma(first, shape, dtype, 1 / jnp.where(some, alpha, 1), alpha * mu)
    return draw_poisson(second, shape, dtype, jnp.where(some, mean, mu))


class _Uniform(Params):
    low: float = param(0.0, doc="Lower bound.", traced=True)
    high: float = param(1.0, doc="Upper bound.", traced=True)


class _Normal(Params):
    loc: float = param(0.0, doc="Mean.", traced=True)
    scale: float = param(1.0, doc="Standard deviation.", traced=True)


class _Exponential(Params):
    lam: float = param(1.0, doc="Rate, the inverse of the mean.", traced=True)


class _Gamma(Params):
    alpha: float = param(1.0, doc="Shape of the distribution.", traced=True)
    beta: float = param(1.0, doc="Scale.", traced=True)


class _Poisson(Params):
    lam: float = param(1.0, doc="Mean.", traced=True)


class _NegativeBinomial(Params):
    k: int = param(1, doc="Number of successes.", traced=True)
    p: float = param(1.0, doc="Probability of a success.", traced=True)


class _GeneralizedNegativeBinomial(Params):
    mu: float = param(1.0, doc="Mean.", traced=True)
    alpha: float = param(1.0, doc="Dispersion.", traced=True)


# MXNet's parameters of `_sample_*` have other names: those of the input arrays.
_ROWS: dict[str, tuple[Draw, type[Params], tuple[str, ...], tuple[str, ...]]] = {
    "uniform": (draw_uniform, _Uniform, ("low", "high"), ("random_uniform", "uniform")),
    "normal": (draw_normal, _Normal, ("mu", "sigma"), ("random_normal", "normal")),
    "exponential": (draw_exponential, _Exponential, ("lam",), ("random_exponential",)),
    "gamma": (draw_gamma, _Gamma, ("alpha", "beta"), ("random_gamma",)),
    "poisson": (draw_poisson, _Poisson, ("lam",), ("random_poisson",)),
    "negative_binomial": (draw_negative_binomial, _NegativeBinomial, ("k", "p"), ("random_negative_binomial",)),
    "generalized_negative_binomial": (draw_generalized_negative_binomial, _GeneralizedNegativeBinomial,
                                      ("mu", "alpha"), ("random_generalized_negative_binomial",)),
}


class SampleParams(Params):
    shape: Shape = param((), doc="Shape of the draws for each element of the parameters.", ge=1)
    dtype: FloatType | None = _dtype()


def _sample_types(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    known = next((t for t in ins if t), None)
    return [known] * len(ins), [p.dtype or "float32"]


def _sample_shapes(p: SampleParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    known = next((s for s in ins if s is not None), None)
    out = outs[0]
    if known is None and out is not None and len(out) > len(p.shape):
        known = out[:len(out) - len(p.shape)]
    return [known] * len(ins)


def _register(name: str, draw: Draw, base: type[Params], inputs: tuple[str, ...], aliases: tuple[str, ...]) -> None:
    numbers = tuple(base.__specs__)

    class RandomParams(base):
        shape: Shape | None = _shape()
        ctx: str = _ctx()
        dtype: FloatType | None = _dtype()

    RandomParams.__name__ = RandomParams.__qualname__ = f"{base.__name__[1:]}Params"

    def fill(p: Any, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        wide = wide_dtype(dtype)
        return cast(draw(key, shape, wide, *(scalar_as(getattr(p, n), wide) for n in numbers)), dtype)

    def rule(p: Any, *, key: Array, out_shapes: OutShapes = None) -> Array:
        return fill(p, key, known_shape(p.shape, out_shapes), p.dtype or jnp.float32)

    def like(p: Any, data: Array, *, key: Array) -> Array:
        return fill(p, key, data.shape, data.dtype)

    def sample(p: SampleParams, *params: Array, key: Array) -> Array:
        first = params[0]
        for n, x in zip(inputs, params, strict=True):
            if x.shape != first.shape:
                raise ShapeError(f"argument {n!r}: expected shape {first.shape}, got {x.shape}")
        dtype = jnp.dtype(p.dtype or jnp.float32)
        wide = wide_dtype(dtype)
        spread = [lax.stop_gradient(x).astype(wide).reshape(x.shape + (1,) * len(p.shape)) for x in params]
        return cast(draw(key, first.shape + p.shape, wide, *spread), dtype)

    rule.__doc__ = f"Draws an array of numbers. {draw.__doc__}"
    like.__doc__ = f"Draws an array of numbers in the shape and type of `data`. {draw.__doc__}"
    sample.__doc__ = (f"Draws `shape` numbers for each element of the parameters: shape (*parameters, *shape). "
                      f"{draw.__doc__}")
    op(f"_random_{name}", aliases=aliases, params=RandomParams, inputs=(), infer_types=output_dtype("float32"),
       infer_outputs=shape_outputs, source=f"{__file__}:_random_{name}")(rule)
    op(f"_random_{name}_like", params=base, source=f"{__file__}:_random_{name}_like")(like)
    op(f"_sample_{name}", aliases=(f"sample_{name}",), params=SampleParams, inputs=inputs, infer_types=_sample_types,
       infer_inputs=_sample_shapes, source=f"{__file__}:_sample_{name}")(sample)


for _name, (_draw, _base, _inputs, _aliases) in _ROWS.items():
    _register(_name, _draw, _base, _inputs, _aliases)


class RandintParams(Params):
    low: int = param(doc="Lower bound, inclusive.")
    high: int = param(doc="Upper bound, exclusive.")
    shape: Shape | None = _shape()
    ctx: str = _ctx()
    dtype: Literal["int32", "int64"] | None = param(None, doc="Type; None for int32.")


@op("_random_randint", aliases=("random_randint", "_npi_random_randint"), params=RandintParams, inputs=(),
    infer_types=output_dtype("int32"), infer_outputs=shape_outputs)
def randint(p: RandintParams, *, key: Array, out_shapes: OutShapes = None) -> Array:
    """Draws whole numbers, uniform in [low, high)."""
    if p.low >= p.high:
        raise ParamError(f"low={p.low} must be less than high={p.high}")
    dtype = jnp.dtype(p.dtype or jnp.int32)
    info = jnp.iinfo(dtype)
    if p.low < info.min or p.high - 1 > info.max:
        raise ParamError(f"low={p.low}, high={p.high} exceed {dtype.name}")
    # 64-bit draws only where a bound needs them: inside a program of 32 bits they cannot be lowered.
    narrow = p.low >= -(2**31) and p.high < 2**31
    drawn = jnp.int32 if narrow else jnp.int64
    return jax.random.randint(key, known_shape(p.shape, out_shapes), p.low, min(p.high, 2**63 - 1), drawn).astype(dtype)


class MultinomialParams(Params):
    shape: Shape = param((), doc="Shape of the draws for each distribution.", ge=1)
    get_prob: bool = param(False, doc="Whether the log probability of each draw is a second output.")
    dtype: Literal["float16", "float32", "float64", "int32", "uint8"] = param("int32", doc="Type of the draws.")


def _multinomial_types(p: MultinomialParams, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, [p.dtype, *([ins[0]] if p.get_prob else [])]


@op("_sample_multinomial", aliases=("sample_multinomial",), params=MultinomialParams,
    outputs=lambda p: 2 if p.get_prob else 1, infer_types=_multinomial_types)
def sample_multinomial(p: MultinomialParams, data: Array, *, key: Array) -> Any:
    """Draws class indices with the probabilities in the last axis of `data`: (..., C) -> (..., *shape).

    With `get_prob` the log of the probability of each draw is the second output; its gradient reaches `data`
    (REINFORCE). A vector gives shape (1,) without `shape`.
    """
    if data.ndim == 0 or data.shape[-1] == 0:
        raise ShapeError(f"data has shape {data.shape}; the last axis must hold the probabilities")
    rows = data.reshape(-1, data.shape[-1])
    totals = jnp.cumsum(lax.stop_gradient(rows).astype(wide_dtype(data.dtype)), axis=1)
    draws = jax.random.uniform(key, (rows.shape[0], math.prod(p.shape)), totals.dtype) * totals[:, -1:]
    # Counting the totals <= u never picks a class of probability 0.
    index = jax.vmap(lambda t, u: jnp.searchsorted(t, u, side="right"))(totals, draws)
    index = jnp.minimum(index, data.shape[-1] - 1)
    shape = data.shape[:-1] + p.shape or (1,)
    chosen = index.astype(p.dtype).reshape(shape)
    if not p.get_prob:
        return chosen
    return chosen, jnp.log(jnp.take_along_axis(rows, index, axis=1)).reshape(shape)


class UniqueZipfianParams(Params):
    range_max: int = param(doc="Number of classes.", ge=1)
    shape: Shape | None = param(None, doc="(rows, draws per row).")


def _two_int64(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, ["int64", "int64"]


@op("_sample_unique_zipfian", params=UniqueZipfianParams, inputs=(), outputs=2, infer_types=_two_int64)
def sample_unique_zipfian(p: UniqueZipfianParams, *, key: Array) -> tuple[Array, Array]:
    """Draws classes without repetition in a row, of an approximately Zipfian (log-uniform) distribution.

    P(class) = (log(class + 2) - log(class + 1)) / log(range_max + 1). Outputs: the classes, int64 of shape
    (rows, draws), and how many draws each row took, int64 of shape (rows,).
    """
    if p.shape is None or len(p.shape) != 2:
        raise ParamError(f"shape={p.shape} must be (rows, draws per row)")
    rows, count = p.shape
    if count > p.range_max:
        raise ParamError(f"{count} different classes cannot be drawn from {p.range_max}")

    def one_row(key: Array) -> tuple[Array, Array]:
        def draw(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            found, tries, chosen = state
            high, low = jax.random.bits(jax.random.fold_in(key, tries), (2,), jnp.uint32).astype(jnp.float64)
            u = (jnp.floor(high / 32) * 2**26 + jnp.floor(low / 64)) / 2**53  # float64 draws do not lower in 32 bits
            value = jnp.exp(u * math.log(p.range_max + 1)).astype(jnp.int64) - 1
            value = jnp.clip(value, 0, p.range_max - 1)
            new = ~jnp.any(chosen == value)
            at = jnp.where(new, found, count)
            return found + new.astype(jnp.int64), tries + 1, chosen.at[at].set(value, mode="drop")

        zero = jnp.zeros((), jnp.int64)
        _, tries, chosen = lax.while_loop(lambda s: s[0] < count, draw, (zero, zero, jnp.full(count, -1, jnp.int64)))
        return chosen, tries

    return jax.vmap(one_row)(jax.random.split(key, rows))


@op("_shuffle", aliases=("shuffle", "_npi_shuffle"))
def shuffle(p: Any, data: Array, *, key: Array) -> Array:
    """Returns `data` with its first axis in random order."""
    return jax.random.permutation(key, data, axis=0)
