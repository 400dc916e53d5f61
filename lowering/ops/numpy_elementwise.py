"""The elementwise operators of `mx.np`: unary, binary and with a number, made of the classic families' functions.

Other than the classic ones, comparisons and tests give bool, arithmetic on two types promotes, and true division of
integers is float32. Functions such as exp keep integer types, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import DTypeError
from symjax.lowering.ops import binary, scalar, unary
from symjax.lowering.ops._elementwise import cast, is_float, scalar_as, widened
from symjax.lowering.ops._wide_rows import stretch, stretches
from symjax.lowering.params import Params, param
from symjax.lowering.registry import BROADCAST, SAME, InferTypes, op

Types = tuple[Sequence[str | None], Sequence[str | None]]

_WIDENING = ("bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
_WHOLE = frozenset(_WIDENING[1:5])


def promote(a: str, b: str) -> str:
    """The type in which two types meet: the wider float, else the wider integer; int8 and uint8 meet in int32."""
    if {a, b} in ({"int8", "uint8"}, {"float16", "bfloat16"}):
        return "int32" if "int8" in (a, b) else "float32"
    return max(a, b, key=_WIDENING.index)


def _divided(dtype: str) -> str:
    return dtype if "float" in dtype else "float32"


# ---- data type rules


def always(dtype: str) -> InferTypes:
    """The outputs have one dtype whatever the inputs, which agree."""

    def infer(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
        known = next((t for t in ins if t), None)
        # One that differs is a contradiction, which the engine reports.
        return [known] * len(ins), [dtype] * len(outs)

    return infer


def of_kind(allowed: frozenset[str], what: str) -> InferTypes:
    """All are one type, which must be of a kind."""

    def infer(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
        known = next((t for t in (*ins, *outs) if t), None)
        if known is not None and known not in allowed:
            raise DTypeError(f"expected {what}, got {known}")
        return [known] * len(ins), [known] * len(outs)

    return infer


def _promoted(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    a, b = ins
    if a is None or b is None:
        known = a or b or outs[0]
        return [known, known], [known]
    return ins, [promote(a, b)]


def _quotient(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    a, b = ins
    return ins, outs if a is None or b is None else [_divided(promote(a, b))]


_floats = of_kind(frozenset(_WIDENING[5:]), "floating-point arrays")
_whole = of_kind(_WHOLE, "arrays of integers")
_bits = of_kind(_WHOLE | {"bool"}, "arrays of integers or bool")
_agree: InferTypes = of_kind(frozenset(_WIDENING), "arrays of a known type")


# ---- functions that the classic families lack


def copysign(a: Array, b: Array) -> Array:
    """The magnitude of `a` with the sign of `b`; -0.0 counts as negative."""
    if is_float(a):
        return jnp.copysign(a, b)
    size = jnp.abs(a)
    return jnp.where(b < 0, -size, size)


def ldexp(a: Array, b: Array) -> Array:
    """a 2^b, where b need not be whole."""
    if is_float(a):
        return widened(_times_power)(a, b)
    return cast(_times_power(a.astype(jnp.float64), b.astype(jnp.float64)), a.dtype)


def _times_power(x: Array, y: Array) -> Array:
    return x * jnp.power(jnp.full((), 2, y.dtype), y)  # exp2 is inexact at whole numbers on the CPU


arctan2: binary.Binary = widened(jnp.arctan2)


# ---- of one array

_MATHS = ("exp", "expm1", "log", "log10", "log2", "log1p", "sqrt", "cbrt", "reciprocal", "sin", "cos", "tan", "arcsin",
          "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "negative",
          "square", "sign", "floor", "ceil", "trunc", "fix", "rint")

# name: (function, aliases, formula)
_UNARY: dict[str, tuple[Callable[[Array], Array], tuple[str, ...], str]] = {
    **{f"_npi_{n}": (unary.FUNCTIONS[n][0], (), unary.FUNCTIONS[n][1]) for n in _MATHS},
    "_npi_absolute": (unary.FUNCTIONS["abs"][0], ("_npi_abs",), unary.FUNCTIONS["abs"][1]),
}
_TESTS: dict[str, tuple[Callable[[Array], Array], str]] = {
    "_npi_logical_not": (lambda x: x == 0, "True where x is 0"),
    "_npi_isnan": (jnp.isnan, "True where x is NaN"),
    "_npi_isinf": (jnp.isinf, "True where x is infinite"),
    "_npi_isposinf": (lambda x: jnp.isinf(x) & (x > 0), "True where x is +infinity"),
    "_npi_isneginf": (lambda x: jnp.isinf(x) & (x < 0), "True where x is -infinity"),
    "_npi_isfinite": (jnp.isfinite, "True where x is neither NaN nor infinite"),
}


def _register_unary(name: str, fn: Callable[[Array], Array], aliases: tuple[str, ...], formula: str,
                    types: InferTypes | None = None) -> None:
    def rule(p: Any, x: Array) -> Array:
        return fn(x)

    rule.__doc__ = f"Returns {formula}, for each element x; {'a bool array' if types else 'shape and dtype stay'}."
    op(name, aliases=aliases, shape=SAME, infer_types=types, source=f"{__file__}:{name}")(rule)


for _name, (_fn, _aliases, _formula) in _UNARY.items():
    _register_unary(_name, _fn, _aliases, _formula)
for _name, (_fn, _formula) in _TESTS.items():
    _register_unary(_name, _fn, (), _formula, always("bool"))


@op("_npi_bitwise_not", shape=SAME, infer_types=_bits)
def bitwise_not(p: Any, x: Array) -> Array:
    """Returns the integers with every bit inverted (-x - 1 for signed ones); bool is negated."""
    return ~x


@op("_npx_relu", shape=SAME)
def relu(p: Any, data: Array) -> Array:
    """Returns max(x, 0) for each element x; NaN stays, the gradient at 0 is 0."""
    return unary.FUNCTIONS["relu"][0](data)


@op("_npx_sigmoid", shape=SAME)
def sigmoid(p: Any, data: Array) -> Array:
    """Returns 1 / (1 + e^-x) for each element x."""
    return unary.FUNCTIONS["sigmoid"][0](data)


@op("_np_copy", shape=SAME)
def copy(p: Any, a: Array) -> Array:
    """Returns the array itself."""
    return a


class AroundParams(Params):
    decimals: int = param(0, doc="Decimal places to keep; negative ones count to the left of the point.")


@op("_npi_around", params=AroundParams, shape=SAME)
def around(p: AroundParams, x: Array) -> Array:
    """Rounds to a number of decimal places, halves to even. The gradient is 0.

    MXNet refuses float16, and truncates integers at negative places (15 becomes 10) where this rounds (20).
    """
    if is_float(x):
        scale = 10.0 ** abs(p.decimals)
        rounded = widened(lambda v: _rounded(v, scale, p.decimals))
        return rounded(x)
    if p.decimals >= 0:
        return x
    unit = 10 ** -p.decimals
    # MXNet: integers are truncated here.
    if x.dtype == jnp.bool_ or unit > jnp.iinfo(x.dtype).max:
        return jnp.zeros_like(x)
    low = x // unit
    twice = (x - low * unit) * 2 if unit * 2 <= jnp.iinfo(x.dtype).max else (x - low * unit).astype(jnp.int64) * 2
    up = (twice > unit) | ((twice == unit) & (low % 2 != 0))
    return (low + up.astype(x.dtype)) * unit


def _rounded(x: Array, scale: float, decimals: int) -> Array:
    if decimals < 0:
        return jnp.rint(x / scale) * scale
    # Without places there is nothing to scale, and a large number would overflow.
    return jnp.rint(x * scale) / scale if decimals else jnp.rint(x)


class NanToNumParams(Params):
    copy: bool = param(True, doc="False writes into the array in MXNet's Python; in a graph it has no effect.")
    nan: float = param(0.0, doc="What NaN becomes.", traced=True)
    posinf: float | None = param(None, doc="What +infinity becomes; None for the largest number of the type.")
    neginf: float | None = param(None, doc="What -infinity becomes; None for the smallest number of the type.")


@op("_npi_nan_to_num", params=NanToNumParams, shape=SAME)
def nan_to_num(p: NanToNumParams, data: Array) -> Array:
    """Replaces NaN and infinities by numbers; replaced elements get no gradient. Integers stay."""
    if not is_float(data):
        return data
    info = jnp.finfo(data.dtype)
    high = scalar_as(float(info.max) if p.posinf is None else p.posinf, data.dtype)
    low = scalar_as(float(info.min) if p.neginf is None else p.neginf, data.dtype)
    finite = jnp.where(jnp.isposinf(data), high, jnp.where(jnp.isneginf(data), low, data))
    return jnp.where(jnp.isnan(data), scalar_as(p.nan, data.dtype), finite)


# ---- of two arrays

_MIXED: dict[str, tuple[binary.Binary, str]] = {
    "_npi_add": (jnp.add, "x + y"),
    "_npi_subtract": (jnp.subtract, "x - y"),
    "_npi_multiply": (jnp.multiply, "x y"),
    "_npi_mod": (binary.mod, "the remainder of x / y with the sign of y, 0 where y is 0"),
    "_npi_power": (binary.power, "x to the power of y"),
}
_EQUAL_TYPES: dict[str, tuple[binary.Binary, str, InferTypes]] = {
    "_npi_copysign": (copysign, "|x| with the sign of y", _agree),
    "_npi_ldexp": (ldexp, "x 2^y", _agree),
    "_npi_lcm": (jnp.lcm, "the least common multiple of |x| and |y|", _whole),
    "_npi_bitwise_and": (jnp.bitwise_and, "x and y, bit by bit", _bits),
    "_npi_bitwise_or": (jnp.bitwise_or, "x or y, bit by bit", _bits),
    "_npi_bitwise_xor": (jnp.bitwise_xor, "x exclusive-or y, bit by bit", _bits),
    "_npi_arctan2": (arctan2, "the angle of the point (y, x), in radians from -pi to pi", _floats),
    "_npi_hypot": (binary.hypot, "sqrt(x^2 + y^2)", _floats),
    "_npi_equal": (jnp.equal, "True where x = y", always("bool")),
    "_npi_not_equal": (jnp.not_equal, "True where x differs from y", always("bool")),
    "_npi_less": (jnp.less, "True where x < y", always("bool")),
    "_npi_less_equal": (jnp.less_equal, "True where x <= y", always("bool")),
    "_npi_greater": (jnp.greater, "True where x > y", always("bool")),
    "_npi_greater_equal": (jnp.greater_equal, "True where x >= y", always("bool")),
}
_STRETCH = "Dimensions are aligned from the right; those of size 1 stretch."


def _register_binary(name: str, fn: binary.Binary, formula: str, types: InferTypes, text: str) -> None:
    inputs = ("x1", "x2") if types is _floats else ("lhs", "rhs")

    def rule(p: Any, lhs: Array, rhs: Array) -> Array:
        return fn(lhs, rhs)

    rule.__doc__ = (f"Returns {formula}, for the elements x of `{inputs[0]}` and y of `{inputs[1]}`. {_STRETCH}\n\n"
                    f"{text}")
    made = op(name, inputs=inputs, shape=BROADCAST, infer_types=types, source=f"{__file__}:{name}")(rule)
    made.variant(platform="cpu", when=stretches)(lambda p, lhs, rhs: fn(*stretch(lhs, rhs)))


def _in(common: Callable[[str, str], str], fn: binary.Binary) -> binary.Binary:
    """Converts both operands to the type in which they meet."""

    def run(a: Array, b: Array) -> Array:
        dtype = common(a.dtype.name, b.dtype.name)
        return fn(a.astype(dtype), b.astype(dtype))

    return run


for _name, (_fn, _formula) in _MIXED.items():
    _register_binary(_name, _in(promote, _fn), _formula, _promoted, "Two types meet in the wider one, floats first.")
for _name, (_fn, _formula, _types) in _EQUAL_TYPES.items():
    _register_binary(_name, _fn, _formula, _types, "Both have one type.")
_register_binary("_npi_true_divide", _in(lambda a, b: _divided(promote(a, b)), binary.divide), "x / y", _quotient,
                 "Integers give float32.\n\nMXNet refuses two different floats, and two different integers.")


# ---- of an array and a number


def _only(computes: frozenset[str]) -> scalar.Computes:
    def kept(dtype: str, is_int: bool) -> str:
        if dtype not in computes:
            raise DTypeError(f"expected integers{' or bool' if 'bool' in computes else ''}, got {dtype}")
        return dtype

    return kept


_SCALAR: dict[str, tuple[Callable[[Array, Array], Array], str]] = {
    "add": (jnp.add, "x + s"),
    "subtract": (jnp.subtract, "x - s"),
    "rsubtract": (scalar.flip(jnp.subtract), "s - x"),
    "multiply": (jnp.multiply, "x * s"),
    "mod": (binary.mod, "the remainder of x / s with the sign of s, 0 where s is 0"),
    "rmod": (scalar.rmod, "the remainder of s / x with the sign of x, 0 where x is 0"),
    "power": (binary.power, "x^s"),
    "rpower": (scalar.flip(binary.power), "s^x"),
    "copysign": (copysign, "|x| with the sign of s"),
    "rcopysign": (scalar.flip(copysign), "|s| with the sign of x"),
    "arctan2": (arctan2, "the angle of the point (s, x), in radians"),
    "rarctan2": (scalar.flip(arctan2), "the angle of the point (x, s), in radians"),
    "ldexp": (ldexp, "x 2^s"),
    "rldexp": (scalar.flip(ldexp), "s 2^x"),
}
_SCALAR_TESTS: dict[str, tuple[Callable[[Array, Array], Array], str]] = {
    "equal": (jnp.equal, "True where x = s"),
    "not_equal": (jnp.not_equal, "True where x differs from s"),
    "less": (jnp.less, "True where x < s"),
    "less_equal": (jnp.less_equal, "True where x <= s"),
    "greater": (jnp.greater, "True where x > s"),
    "greater_equal": (jnp.greater_equal, "True where x >= s"),
}
_SCALAR_BITS: dict[str, tuple[Callable[[Array, Array], Array], str, frozenset[str]]] = {
    "bitwise_and": (jnp.bitwise_and, "x and s, bit by bit", _WHOLE | {"bool"}),
    "bitwise_or": (jnp.bitwise_or, "x or s, bit by bit", _WHOLE | {"bool"}),
    "bitwise_xor": (jnp.bitwise_xor, "x exclusive-or s, bit by bit", _WHOLE | {"bool"}),
    "lcm": (jnp.lcm, "the least common multiple of |x| and |s|", _WHOLE),
}

for _name, (_fn, _formula) in _SCALAR.items():
    scalar.register(f"_npi_{_name}_scalar", _fn, (), _formula, source=__file__)
for _name, (_fn, _formula) in _SCALAR_TESTS.items():
    # MXNet: with a bool array it compares the truth of s; this compares the numbers.
    scalar.register(f"_npi_{_name}_scalar", _fn, (), _formula, source=__file__, result="bool")
for _name, (_fn, _formula, _kinds) in _SCALAR_BITS.items():
    scalar.register(f"_npi_{_name}_scalar", _fn, (), _formula, source=__file__, computes=_only(_kinds))
scalar.register("_npi_true_divide_scalar", jnp.divide, (), "x / s", source=__file__,
                computes=lambda dtype, is_int: _divided(dtype))
scalar.register("_npi_rtrue_divide_scalar", scalar.flip(jnp.divide), (), "s / x", source=__file__,
                computes=lambda dtype, is_int: _divided(dtype))


# ---- choices


class WhereScalarParams(Params):
    scalar: float = param(0.0, doc="The number.", traced=True)


class WhereScalarsParams(Params):
    x: float = param(0.0, doc="The number where the condition holds.", traced=True)
    y: float = param(0.0, doc="The number elsewhere.", traced=True)


def _after_condition(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    known = next((t for t in (*ins[1:], *outs) if t), None)
    for t in ins[1:]:
        if t is not None and t != known:
            raise DTypeError(f"x and y have dtypes {ins[1]} and {ins[2]}; there is no promotion, insert a Cast")
    return [ins[0], *[known] * (len(ins) - 1)], [known]


@op("_npi_where", shape=BROADCAST, infer_types=_after_condition)
def where(p: Any, condition: Array, x: Array, y: Array) -> Array:
    """Chooses `x` where the condition is not zero, else `y`; all three broadcast, and `x` and `y` have one type."""
    return jnp.where(condition != 0, x, y)


@op("_npi_where_lscalar", params=WhereScalarParams, shape=BROADCAST, infer_types=_after_condition)
def where_lscalar(p: WhereScalarParams, condition: Array, x: Array) -> Array:
    """Chooses the number where the condition is not zero, else the element of `x`; in the type of `x`."""
    return jnp.where(condition != 0, scalar_as(p.scalar, x.dtype), x)


@op("_npi_where_rscalar", params=WhereScalarParams, shape=BROADCAST, infer_types=_after_condition)
def where_rscalar(p: WhereScalarParams, condition: Array, y: Array) -> Array:
    """Chooses the element of `y` where the condition is not zero, else the number; in the type of `y`."""
    return jnp.where(condition != 0, y, scalar_as(p.scalar, y.dtype))


@op("_npi_where_scalar2", params=WhereScalarsParams, shape=SAME,
    infer_types=lambda p, ins, outs: (ins, ["float32"]))
def where_scalar2(p: WhereScalarsParams, condition: Array) -> Array:
    """Chooses the number `x` where the condition is not zero, else `y`: float32."""
    return jnp.where(condition != 0, scalar_as(p.x, jnp.float32), scalar_as(p.y, jnp.float32))
