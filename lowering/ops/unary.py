"""Elementwise functions of one array: mathematics, rounding, activations.

The rows of `_MATHS` are computed in float32 (float64 for float64) and converted back, the rows of `_EXACT` in the
array's own type. All keep shape and dtype. Gradients are JAX's own derivatives of the formula shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as special
from jax import Array, lax

from symjax.lowering.ops._elementwise import cast, is_float, relu, scalar_as, softsign, widened
from symjax.lowering.params import DType, Params, param
from symjax.lowering.registry import SAME, op


def _sign(x: Array) -> Array:
    # MXNet: the sign of NaN is 0.
    return jnp.where(x > 0, 1, jnp.where(x < 0, -1, 0)).astype(x.dtype)


@jax.custom_jvp
def _abs(x: Array) -> Array:
    return jnp.abs(x)


@_abs.defjvp
def _abs_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _abs(primals[0]), tangents[0] * _sign(primals[0])


def _rint(x: Array) -> Array:
    # MXNet: halves go towards minus infinity, not to even.
    low, high = jnp.floor(x), jnp.ceil(x)
    return jnp.where(x - low <= high - x, low, high)


def _round(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)


def _gamma(x: Array) -> Array:
    # As jax.scipy.special.gamma, whose jnp.select cannot be lowered inside a program of 32 bits.
    low = jnp.floor(x)
    odd = jnp.where((x < 0) & (low % 2 != 0) | (x == 0) & jnp.signbit(x), -1, 1).astype(x.dtype)
    return jnp.where((x < 0) & (x == low), jnp.nan, odd * jnp.exp(special.gammaln(x)))


def _integers_alone(fn: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Makes a rounding function the identity on whole numbers, which float32 could not hold exactly."""
    return lambda x: fn(x) if is_float(x) else x


# name: (function, aliases, formula)
_MATHS: dict[str, tuple[Callable[[Array], Array], tuple[str, ...], str]] = {
    "exp": (jnp.exp, ("_sparse_exp",), "e^x"),
    "expm1": (jnp.expm1, ("_sparse_expm1",), "e^x - 1, accurate near 0"),
    "log": (jnp.log, ("_sparse_log",), "ln x"),
    "log10": (jnp.log10, ("_sparse_log10",), "log10 x"),
    "log2": (jnp.log2, ("_sparse_log2",), "log2 x"),
    "log1p": (jnp.log1p, ("_sparse_log1p",), "ln(1 + x), accurate near 0"),
    "sqrt": (jnp.sqrt, ("_sparse_sqrt",), "x^(1/2); its gradient at 0 is inf"),
    "rsqrt": (lax.rsqrt, ("_sparse_rsqrt",), "x^(-1/2)"),
    "cbrt": (jnp.cbrt, ("_sparse_cbrt",), "x^(1/3), odd"),
    "rcbrt": (lambda x: 1 / jnp.cbrt(x), (), "x^(-1/3), odd"),
    "reciprocal": (lambda x: 1 / x, (), "1 / x"),
    "sin": (jnp.sin, ("_sparse_sin",), "sin x, x in radians"),
    "cos": (jnp.cos, ("_sparse_cos",), "cos x, x in radians"),
    "tan": (jnp.tan, ("_sparse_tan",), "tan x, x in radians"),
    "arcsin": (jnp.arcsin, ("_sparse_arcsin",), "the inverse sine, in radians"),
    "arccos": (jnp.arccos, ("_sparse_arccos",), "the inverse cosine, in radians"),
    "arctan": (jnp.arctan, ("_sparse_arctan",), "the inverse tangent, in radians"),
    "sinh": (jnp.sinh, ("_sparse_sinh",), "(e^x - e^-x) / 2"),
    "cosh": (jnp.cosh, ("_sparse_cosh",), "(e^x + e^-x) / 2"),
    "tanh": (jnp.tanh, ("_sparse_tanh",), "sinh x / cosh x"),
    "arcsinh": (jnp.arcsinh, ("_sparse_arcsinh",), "the inverse hyperbolic sine"),
    "arccosh": (jnp.arccosh, ("_sparse_arccosh",), "the inverse hyperbolic cosine, x >= 1"),
    "arctanh": (jnp.arctanh, ("_sparse_arctanh",), "the inverse hyperbolic tangent, |x| < 1"),
    "degrees": (lambda x: x * (180 / math.pi), ("_sparse_degrees",), "180 x / pi"),
    "radians": (lambda x: x * (math.pi / 180), ("_sparse_radians",), "pi x / 180"),
    "sigmoid": (jax.nn.sigmoid, ("_sparse_sigmoid",), "1 / (1 + e^-x)"),
    "softsign": (softsign, (), "x / (1 + |x|)"),
    "erf": (special.erf, ("_npx_erf",), "2/sqrt(pi) times the integral of e^(-t^2) from 0 to x"),
    "erfinv": (lax.erf_inv, ("_npx_erfinv",), "the inverse of erf; NaN outside [-1, 1]"),
    "gamma": (_gamma, ("_npx_gamma", "_sparse_gamma"),
              "the gamma function, the integral of t^(x-1) e^-t over t > 0"),
    "gammaln": (special.gammaln, ("_npx_gammaln", "_sparse_gammaln"), "ln |gamma(x)|"),
}

_EXACT: dict[str, tuple[Callable[[Array], Array], tuple[str, ...], str]] = {
    "abs": (_abs, ("_sparse_abs",), "|x|; the gradient at 0 is 0"),
    "negative": (lambda x: -x, ("_sparse_negative",), "-x"),
    "square": (lambda x: x * x, ("_sparse_square",), "x^2"),
    "sign": (_sign, ("_sparse_sign",), "-1, 0 or 1; 0 for NaN"),
    "relu": (relu, ("_sparse_relu",), "max(x, 0); NaN stays, the gradient at 0 is 0"),
    "logical_not": (lambda x: (x == 0).astype(x.dtype), (), "1 where x is 0, else 0, in the input's type"),
    "floor": (_integers_alone(jnp.floor), ("_sparse_floor",), "the greatest integer <= x"),
    "ceil": (_integers_alone(jnp.ceil), ("_sparse_ceil",), "the least integer >= x"),
    "trunc": (_integers_alone(jnp.trunc), ("_sparse_trunc",), "x without its fraction (towards zero)"),
    "fix": (_integers_alone(jnp.trunc), ("_sparse_fix",), "the integer nearest to x towards zero"),
    "round": (_integers_alone(_round), ("_sparse_round",), "the nearest integer, halves away from zero"),
    "rint": (_integers_alone(_rint), ("_sparse_rint",), "the nearest integer, halves towards minus infinity"),
    "_copy": (lambda x: x, ("identity",), "x"),
    "_copyto": (lambda x: x, ("_npi_copyto",), "x, copied to the array given as `out`"),
    "_CrossDeviceCopy": (lambda x: x, (), "x (placement is the compiler's; old graphs hold this op)"),
    "zeros_like": (jnp.zeros_like, ("_sparse_zeros_like",), "0"),
    "ones_like": (jnp.ones_like, (), "1"),
}


def _register(name: str, fn: Callable[[Array], Array], aliases: tuple[str, ...], formula: str) -> None:
    def rule(p: Any, data: Array) -> Array:
        return fn(data)

    rule.__doc__ = f"Returns {formula}, for each element x of `data`; shape and dtype stay."
    op(name, aliases=aliases, shape=SAME, source=f"{__file__}:{name}")(rule)


FUNCTIONS = {n: (widened(fn), formula) for n, (fn, _, formula) in _MATHS.items()} | {
    n: (fn, formula) for n, (fn, _, formula) in _EXACT.items()}
"""Name -> (function of one array, formula); the numpy operators are made of them too."""

for _name, (_fn, _formula) in FUNCTIONS.items():
    _register(_name, _fn, (_MATHS | _EXACT)[_name][1], _formula)


@op("BlockGrad", aliases=("stop_gradient", "_sparse_stop_gradient"), shape=SAME, is_loss=True)
def block_grad(p: Any, data: Array) -> Array:
    """Returns `data`; the gradient that flows back is 0."""
    return lax.stop_gradient(data)


@jax.custom_vjp
def _ones_back(x: Array) -> Array:
    return x


_ones_back.defvjp(lambda x: (x, None), lambda _, g: (jnp.ones_like(g),))


@op("make_loss", aliases=("_sparse_make_loss",), outputs=("loss",), shape=SAME, is_loss=True)
def make_loss(p: Any, data: Array) -> Array:
    """Returns `data` as a loss: its gradient is 1 everywhere, whatever head gradient comes in."""
    return _ones_back(data)


@op("_identity_with_attr_like_rhs", shape=SAME)
def identity_with_attr_like_rhs(p: Any, lhs: Array, rhs: Array) -> Array:
    """Returns `lhs`; `rhs` only lends its shape to inference."""
    return lhs


class CastParams(Params):
    dtype: DType = param(doc="Type of the output.")


def _cast_types(p: CastParams, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None],
                                                                                     list[str | None]]:
    return ins, [p.dtype]


@op("Cast", aliases=("cast", "_npi_cast", "_npx_cast"), params=CastParams, shape=SAME, infer_types=_cast_types)
def cast_op(p: CastParams, data: Array) -> Array:
    """Returns `data` in another type: floats truncate towards zero, uint8 and int8 wrap, non-zero is True.

    MXNet differs in that a gradient passes even through a cast to integers; here it is 0.
    """
    return cast(data, p.dtype)


_AMP_SOURCES = ("float16", "bfloat16", "float32")


def _amp_cast_types(p: CastParams, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None],
                                                                                         list[str | None]]:
    known = ins[0]
    if known is None:
        return ins, [None]
    return ins, [p.dtype if known in _AMP_SOURCES else known]


@op("amp_cast", params=CastParams, shape=SAME, infer_types=_amp_cast_types)
def amp_cast(p: CastParams, data: Array) -> Array:
    """Returns `data` in another type if it is float32 or half precision, else unchanged."""
    return cast(data, p.dtype) if data.dtype.name in _AMP_SOURCES else data


class AmpMulticastParams(Params):
    num_outputs: int = param(ge=1, doc="Number of inputs, and of outputs.")
    cast_narrow: bool = param(False, doc="Whether to take the narrowest type rather than the widest.")


def _amp_common(p: AmpMulticastParams, dtypes: list[str]) -> list[str]:
    half = [d for d in dtypes if d in ("float16", "bfloat16")]
    if not half or "float32" not in dtypes:
        return dtypes
    common = half[0] if p.cast_narrow else "float32"
    return [common if d in _AMP_SOURCES else d for d in dtypes]


def _amp_types(p: AmpMulticastParams, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None],
                                                                                            list[str | None]]:
    known = [d for d in ins if d is not None]
    return ins, list[str | None](_amp_common(p, known)) if len(known) == len(ins) else outs


def _amp_shapes(p: AmpMulticastParams, ins: list[Any], outs: list[Any]) -> list[Any]:
    return [i if i is not None else o for i, o in zip(ins, outs, strict=True)]


@op("amp_multicast", params=AmpMulticastParams, variadic="num_outputs", infer_types=_amp_types,
    infer_inputs=_amp_shapes, inputs=lambda p: tuple(f"data_{i}" for i in range(p.num_outputs)),
    outputs=lambda p: p.num_outputs)
def amp_multicast(p: AmpMulticastParams, *data: Array) -> tuple[Array, ...]:
    """Returns all inputs in one type, the widest (or narrowest) of those that are float32 or half precision.

    Inputs of other types (float64, integers) stay as they are.
    """
    return tuple(cast(x, d) for x, d in zip(data, _amp_common(p, [x.dtype.name for x in data]), strict=True))


class ClipParams(Params):
    a_min: float = param(doc="Lower bound.", traced=True)
    a_max: float = param(doc="Upper bound.", traced=True)


@op("clip", aliases=("_npi_clip", "_sparse_clip"), params=ClipParams, shape=SAME)
def clip(p: ClipParams, data: Array) -> Array:
    """Limits the values to [a_min, a_max]; the gradient is 1 inside and on the bounds, 0 outside. NaN stays.

    The bounds of an integer array are truncated to its range first.
    """
    low, high = _bound(p.a_min, data.dtype), _bound(p.a_max, data.dtype)
    return jnp.where(data > high, high, jnp.where(data < low, low, data))


def _bound(value: Any, dtype: Any) -> Array:
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        wide = jnp.clip(lax.convert_element_type(value, jnp.float64), float(info.min), float(info.max))
        return lax.convert_element_type(wide, dtype)
    return scalar_as(value, dtype)


class SmoothL1Params(Params):
    scalar: float = param(1.0, doc="s of the formula; the turning point is 1/s^2.", traced=True)


@op("smooth_l1", aliases=("_npx_smooth_l1",), params=SmoothL1Params, shape=SAME)
def smooth_l1(p: SmoothL1Params, data: Array) -> Array:
    """Returns (s x)^2 / 2 where |x| < 1/s^2, and |x| - 1/(2 s^2) elsewhere."""

    def formula(x: Array) -> Array:
        s2 = jnp.square(scalar_as(p.scalar, x.dtype))
        near = jnp.abs(x) < 1 / s2
        # The square is kept from far values, whose infinite derivative would spoil the chosen one.
        return jnp.where(near, 0.5 * s2 * jnp.square(jnp.where(near, x, 0)), _abs(x) - 0.5 / s2)

    return widened(formula)(data)


class HardSigmoidParams(Params):
    alpha: float = param(0.2, doc="Slope.", traced=True)
    beta: float = param(0.5, doc="Value at 0.", traced=True)


@op("hard_sigmoid", params=HardSigmoidParams, shape=SAME)
def hard_sigmoid(p: HardSigmoidParams, data: Array) -> Array:
    """Returns alpha x + beta limited to [0, 1]; the gradient is 0 where the limits hold."""

    def formula(x: Array) -> Array:
        y = scalar_as(p.alpha, x.dtype) * x + scalar_as(p.beta, x.dtype)
        return jnp.where(y >= 1, jnp.ones((), x.dtype), jnp.where(y <= 0, jnp.zeros((), x.dtype), y))

    return widened(formula)(data)


def _int64(p: Any, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None], list[str | None]]:
    return ins, ["int64"]


@op("shape_array", aliases=("_npx_shape_array",), infer_types=_int64)
def shape_array(p: Any, data: Array) -> Array:
    """Returns the shape of `data` as an int64 vector of its rank."""
    return jnp.array(data.shape, jnp.int64)


@op("size_array", infer_types=_int64)
def size_array(p: Any, data: Array) -> Array:
    """Returns the number of elements of `data` as an int64 array of shape (1,)."""
    return jnp.array([data.size], jnp.int64)


def _straight_through(fn: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Gives a step function the gradient of the identity."""
    step = jax.custom_jvp(fn)
    step.defjvp(lambda primals, tangents: (fn(primals[0]), tangents[0]))
    return step


_round_ste = _straight_through(_integers_alone(_round))
_sign_ste = _straight_through(_sign)


@op("_contrib_round_ste", aliases=("_sparse__contrib_round_ste",), shape=SAME)
def round_ste(p: Any, data: Array) -> Array:
    """Rounds (halves away from zero) with the gradient of the identity (straight-through estimator)."""
    return _round_ste(data)


@op("_contrib_sign_ste", aliases=("_sparse__contrib_sign_ste",), shape=SAME)
def sign_ste(p: Any, data: Array) -> Array:
    """Returns the sign with the gradient of the identity (straight-through estimator)."""
    return _sign_ste(data)


class GradientMultiplierParams(Params):
    scalar: float = param(1.0, doc="Factor of the gradient.", traced=True)
    is_int: bool = param(True, doc="Whether the factor was written as an integer; no effect here.")


@jax.custom_jvp
def _scaled_back(x: Array, factor: Array) -> Array:
    return x


_scaled_back.defjvp(lambda primals, tangents: (primals[0], primals[1] * tangents[0]))


@op("_contrib_gradientmultiplier", params=GradientMultiplierParams, shape=SAME)
def gradient_multiplier(p: GradientMultiplierParams, data: Array) -> Array:
    """Returns `data`; the gradient that flows back is multiplied by `scalar` (-1 reverses it)."""
    return _scaled_back(data, scalar_as(p.scalar, data.dtype)) if is_float(data) else data


class QuadraticParams(Params):
    a: float = param(0.0, doc="Coefficient of x^2.", traced=True)
    b: float = param(0.0, doc="Coefficient of x.", traced=True)
    c: float = param(0.0, doc="Constant.", traced=True)


@op("_contrib_quadratic", params=QuadraticParams, shape=SAME)
def quadratic(p: QuadraticParams, data: Array) -> Array:
    """Returns a x^2 + b x + c."""

    def formula(x: Array) -> Array:
        a, b, c = (scalar_as(v, x.dtype) for v in (p.a, p.b, p.c))
        return (a * x + b) * x + c

    return widened(formula)(data)


@op("_contrib_div_sqrt_dim", shape=SAME)
def div_sqrt_dim(p: Any, data: Array) -> Array:
    """Divides by the square root of the last dimension, as the scores of attention are."""
    return widened(lambda x: x / math.sqrt(data.shape[-1]))(data)
