"""Elementwise functions of `mx.np`: rows of two tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from symjax._numpy.front import define, is_number, not_supported
from symjax.base import integer_types

_UFUNC_DEFAULTS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
_LEGAL = {
    "where": lambda v: True,
    "casting": ("no", "equiv", "safe", "same_kind", "unsafe").__contains__,
    "order": lambda v: isinstance(v, str),
    "dtype": lambda v: str(v) in _DTYPES or getattr(v, "__name__", None) in _DTYPES,
    "subok": lambda v: isinstance(v, bool),
}
_DTYPES = ("int8", "uint8", "int32", "int64", "float16", "float32", "float64")


def is_legal(key: str, value: Any) -> bool:
    """Whether numpy's universal functions take a keyword with this value."""
    return bool(key in _LEGAL and _LEGAL[key](value))


def check_keywords(name: str, kwargs: dict[str, Any]) -> None:
    """Checks the keywords of a universal function, which may have their defaults alone.

    Raises:
      TypeError: a keyword that numpy does not have, or a value that it would not take.
      NotImplementedError: one that it would.
    """
    for key, value in kwargs.items():
        if key not in _UFUNC_DEFAULTS:
            raise TypeError(f"{key} is an invalid keyword to function '{name}'")
        if value != _UFUNC_DEFAULTS[key]:
            if is_legal(key, value):
                raise NotImplementedError(f"{key}={value} is not implemented yet for operator {name}")
            raise TypeError(f"{key}={value} not understood for operator {name}")


def apply_unary(F: Any, name: str, op: str, python: Callable[..., Any], x: Any, out: Any = None, **kwargs: Any) -> Any:
    """Applies an operator to an array or symbol, a numpy function to a number."""
    if isinstance(x, F.base):
        return getattr(F.npi, op)(x, out=out, **kwargs)
    if is_number(x):
        return python(x, **kwargs)
    raise not_supported(x, name)


def _unary(name: str, op: str, what: str) -> None:
    python = getattr(onp, name)

    def definition(F: Any, x: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            check_keywords(name, kwargs)
        return apply_unary(F, name, op, python, x, out)

    definition.__doc__ = f"""Returns {what} of each element.

    Args:
      x: array, symbol or number.
      out: array to write instead of a new one.
      **kwargs: `where`, `casting`, `order`, `dtype` and `subok`, with numpy's defaults only.
    """
    define(name=name)(definition)


UNARY = {
    "sin": "the sine", "cos": "the cosine", "tan": "the tangent", "sinh": "the hyperbolic sine",
    "cosh": "the hyperbolic cosine", "tanh": "the hyperbolic tangent", "arcsin": "the inverse sine",
    "arccos": "the inverse cosine", "arctan": "the inverse tangent", "arcsinh": "the inverse hyperbolic sine",
    "arccosh": "the inverse hyperbolic cosine", "arctanh": "the inverse hyperbolic tangent",
    "exp": "the exponential", "expm1": "exp(x) - 1", "log": "the natural logarithm",
    "log2": "the logarithm of base 2", "log10": "the logarithm of base 10", "log1p": "log(1 + x)",
    "sqrt": "the square root", "cbrt": "the cube root", "square": "the square", "reciprocal": "1 / x",
    "abs": "the absolute value", "absolute": "the absolute value", "fabs": "the absolute value",
    "sign": "the sign (-1, 0 or 1)", "negative": "the negative", "rint": "the nearest integer",
    "fix": "the integer towards zero", "trunc": "the integer towards zero", "ceil": "the next integer above",
    "floor": "the next integer below", "degrees": "the angle in degrees", "rad2deg": "the angle in degrees",
    "radians": "the angle in radians", "deg2rad": "the angle in radians", "logical_not": "whether it is zero",
    "invert": "the bits inverted", "bitwise_not": "the bits inverted", "isnan": "whether it is not a number",
    "isinf": "whether it is infinite", "isposinf": "whether it is +infinity", "isneginf": "whether it is -infinity",
    "isfinite": "whether it is finite",
}
# MXNet: rad2deg and deg2rad always fail there, for want of the operators.
_UNARY_OPS = {"fabs": "abs", "invert": "bitwise_not", "rad2deg": "degrees", "deg2rad": "radians"}

for _name, _what in UNARY.items():
    _unary(_name, _UNARY_OPS.get(_name, _name), _what)


def apply_binary(F: Any, name: str, ops: tuple[str, str, str], python: Callable[..., Any], x1: Any, x2: Any,
                 out: Any = None) -> Any:
    """Applies the operator of two arrays, of an array and a number, of a number and an array, or numpy's function."""
    if isinstance(x2, F.base):
        if isinstance(x1, F.base):
            return getattr(F.npi, ops[0])(x1, x2, out=out)
        if is_number(x1):
            return _with_scalar(F, ops[2], x2, x1, False, out)
        raise not_supported(x1, name)
    if not is_number(x2):
        raise not_supported(x2, name)
    if isinstance(x1, F.base):
        return _with_scalar(F, ops[1], x1, x2, isinstance(x2, integer_types), out)
    if is_number(x1):
        return python(x1, x2)
    raise not_supported(x1, name)


def _with_scalar(F: Any, op: str, x: Any, scalar: Any, is_int: bool, out: Any) -> Any:
    if F.symbolic:
        return getattr(F.npi, op)(x, scalar=float(scalar), is_int=is_int)
    # MXNet: arrays leave is_int at True, so that int32 + 1.5 is an int32.
    return getattr(F.npi, op)(x, float(scalar), out=out)


def _binary(name: str, op: str, reverse: str | None, what: str, keywords: bool = True) -> None:
    python = getattr(onp, name)
    ops = (op, f"{op}_scalar", f"{reverse or op}_scalar")

    def with_keywords(F: Any, x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        if kwargs:
            check_keywords(name, kwargs)
        return apply_binary(F, name, ops, python, x1, x2, out)

    def plain(F: Any, x1: Any, x2: Any, out: Any = None) -> Any:
        return apply_binary(F, name, ops, python, x1, x2, out)

    definition = with_keywords if keywords else plain
    definition.__doc__ = f"""Returns {what}, elementwise with broadcasting.

    Args:
      x1, x2: arrays, symbols or numbers; a number takes the type of the other operand where it fits.
      out: array to write instead of a new one.
    """
    define(name=name)(definition)


BINARY = {
    "add": ("add", None, "x1 + x2"),
    "subtract": ("subtract", "rsubtract", "x1 - x2"),
    "multiply": ("multiply", None, "x1 * x2"),
    "divide": ("true_divide", "rtrue_divide", "x1 / x2, a float"),
    "mod": ("mod", "rmod", "x1 % x2 with the sign of x2"),
    "remainder": ("mod", "rmod", "x1 % x2 with the sign of x2"),
    "power": ("power", "rpower", "x1 to the power x2"),
    "lcm": ("lcm", None, "the least common multiple"),
    "maximum": ("maximum", None, "the larger operand"),
    "minimum": ("minimum", None, "the smaller operand"),
    "copysign": ("copysign", "rcopysign", "x1 with the sign of x2"),
    "arctan2": ("arctan2", "rarctan2", "the angle of the point (x2, x1)"),
    "hypot": ("hypot", None, "sqrt(x1^2 + x2^2)"),
    "ldexp": ("ldexp", "rldexp", "x1 * 2^x2"),
    "bitwise_and": ("bitwise_and", None, "x1 & x2"),
    "bitwise_or": ("bitwise_or", None, "x1 | x2"),
    "bitwise_xor": ("bitwise_xor", None, "x1 ^ x2"),
}
COMPARISONS = {
    "true_divide": ("true_divide", "rtrue_divide", "x1 / x2, a float"),
    "equal": ("equal", None, "whether x1 == x2"),
    "not_equal": ("not_equal", None, "whether x1 != x2"),
    "greater": ("greater", "less", "whether x1 > x2"),
    "less": ("less", "greater", "whether x1 < x2"),
    "greater_equal": ("greater_equal", "less_equal", "whether x1 >= x2"),
    "less_equal": ("less_equal", "greater_equal", "whether x1 <= x2"),
}
"""Those without keywords."""

for _name, (_op, _reverse, _what) in BINARY.items():
    _binary(_name, _op, _reverse, _what)
for _name, (_op, _reverse, _what) in COMPARISONS.items():
    _binary(_name, _op, _reverse, _what, keywords=False)


@define()
def matmul(F: Any, a: Any, b: Any, out: Any = None, **kwargs: Any) -> Any:
    """Returns the matrix product of the last two axes; the others broadcast, and one axis makes a vector."""
    check_keywords("matmul", kwargs)
    return F.npi.matmul(a, b, out=out)


def _rounding(name: str) -> None:
    def definition(F: Any, x: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
        if is_number(x):
            return onp.around(x, decimals, **kwargs)
        if not isinstance(x, F.tensor):
            raise not_supported(x, name)
        return F.npi.around(x, decimals, out=out, **kwargs)

    definition.__doc__ = "Returns each element rounded to `decimals` places after the point."
    define(name=name)(definition)


for _name in ("around", "round", "round_"):
    _rounding(_name)


@define()
def clip(F: Any, a: Any, a_min: Any, a_max: Any, out: Any = None) -> Any:
    """Returns each element held between two numbers, of which one may be None.

    Raises:
      ValueError: both are None.
    """
    if is_number(a):
        return onp.clip(a, a_min, a_max)
    if a_min is None and a_max is None:
        raise ValueError("array_clip: must set either max or min")
    low = float("-inf") if a_min is None else a_min
    return F.npi.clip(a, low, float("inf") if a_max is None else a_max, out=out)


@define()
def nan_to_num(F: Any, x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None,
               neginf: float | None = None, **kwargs: Any) -> Any:
    """Returns the array with its nan, +inf and -inf replaced; in place unless `copy`.

    Args:
      x: array, symbol or number.
      copy: whether a new array is made.
      nan, posinf, neginf: the replacements; None stands for the type's largest and least number.
    """
    if is_number(x):
        return onp.nan_to_num(x, copy, nan, posinf, neginf)
    if not isinstance(x, F.tensor):
        raise not_supported(x, "nan_to_num")
    if not F.symbolic and x.dtype.kind in "iub":
        return x
    return F.npi.nan_to_num(x, copy=copy, nan=nan, posinf=posinf, neginf=neginf, out=None if copy else x)


@define()
def where(F: Any, condition: Any, x: Any = None, y: Any = None) -> Any:
    """Returns elements of `x` where the condition is nonzero and of `y` elsewhere; `nonzero(condition)` without both.

    Args:
      condition: array or symbol, or a number, which picks `x` or `y` as a whole.
      x, y: arrays, symbols or numbers.
    """
    if x is None and y is None and not F.symbolic:
        return F.get("nonzero")(condition)
    if is_number(condition):
        return x if condition != 0 else y
    kinds = tuple("scalar" if is_number(v) else "array" if isinstance(v, F.base) else "" for v in (x, y))
    if kinds == ("scalar", "scalar"):
        return F.npi.where_scalar2(condition, _float(x), _float(y))
    if kinds == ("array", "array"):
        return F.npi.where(condition, x, y)
    if kinds == ("scalar", "array"):
        return F.npi.where_lscalar(condition, y, _float(x))
    if kinds == ("array", "scalar"):
        return F.npi.where_rscalar(condition, x, _float(y))
    raise not_supported(y if kinds[0] else x, "where")


def _float(x: Any) -> float:
    return float(x)
