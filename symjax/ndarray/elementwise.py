"""Binary functions of arrays and numbers (`nd.add`, `nd.maximum`, …) and the Python operators of NDArray."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from symjax.base import numeric_types
from symjax.lowering import registry
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.storage import NDArrayBase

op_named = functools.cache(registry.get)


def _binary(name: str, array_op: str, scalar_op: str, reverse_op: str | None, python: Callable[[Any, Any], Any],
            what: str) -> Callable[[Any, Any], Any]:
    """Returns the function of two operands, each an NDArray or a number."""
    reverse_op = reverse_op or scalar_op

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(rhs, NDArrayBase):
            if isinstance(lhs, NDArrayBase):
                return invoke(op_named(array_op), (lhs, rhs), {})
            if isinstance(lhs, numeric_types):
                return invoke(op_named(reverse_op), (rhs,), {"scalar": float(lhs)})
            raise TypeError(f"type {type(lhs)} not supported")
        if isinstance(rhs, numeric_types):
            if isinstance(lhs, NDArrayBase):
                return invoke(op_named(scalar_op), (lhs,), {"scalar": float(rhs)})
            if isinstance(lhs, numeric_types):
                return python(lhs, rhs)
            raise TypeError(f"type {type(lhs)} not supported")
        raise TypeError(f"type {type(rhs)} not supported")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Returns {what}, elementwise with broadcasting.

Args:
  lhs, rhs (NDArray or number): operands; arrays must have one dtype, and shapes that broadcast. A number takes the
    dtype of the array (truncated where that is an integer type).

Returns:
  NDArray of the operands' dtype; a Python number if both are numbers.
"""
    return function


def _flag(test: Callable[[Any, Any], Any]) -> Callable[[Any, Any], int]:
    return lambda x, y: int(bool(test(x, y)))


add = _binary("add", "broadcast_add", "_plus_scalar", None, operator.add, "lhs + rhs")
subtract = _binary("subtract", "broadcast_sub", "_minus_scalar", "_rminus_scalar", operator.sub, "lhs - rhs")
multiply = _binary("multiply", "broadcast_mul", "_mul_scalar", None, operator.mul, "lhs * rhs")
divide = _binary("divide", "broadcast_div", "_div_scalar", "_rdiv_scalar", operator.truediv,
                 "lhs / rhs (rounded towards zero for integers)")
modulo = _binary("modulo", "broadcast_mod", "_mod_scalar", "_rmod_scalar", operator.mod,
                 "lhs % rhs with the sign of rhs, 0 where rhs is 0")
_power = _binary("power", "broadcast_power", "_power_scalar", "_rpower_scalar", operator.pow, "base to the exp")
maximum = _binary("maximum", "broadcast_maximum", "_maximum_scalar", None, max, "the larger operand")
minimum = _binary("minimum", "broadcast_minimum", "_minimum_scalar", None, min, "the smaller operand")
_hypot = _binary("hypot", "broadcast_hypot", "_hypot_scalar", None, lambda x, y: (x * x + y * y) ** 0.5,
                 "sqrt(lhs^2 + rhs^2)")
equal = _binary("equal", "broadcast_equal", "_equal_scalar", None, _flag(operator.eq), "1 where lhs == rhs, else 0")
not_equal = _binary("not_equal", "broadcast_not_equal", "_not_equal_scalar", None, _flag(operator.ne),
                    "1 where lhs != rhs, else 0")
greater = _binary("greater", "broadcast_greater", "_greater_scalar", "_lesser_scalar", _flag(operator.gt),
                  "1 where lhs > rhs, else 0")
greater_equal = _binary("greater_equal", "broadcast_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar",
                        _flag(operator.ge), "1 where lhs >= rhs, else 0")
lesser = _binary("lesser", "broadcast_lesser", "_lesser_scalar", "_greater_scalar", _flag(operator.lt),
                 "1 where lhs < rhs, else 0")
lesser_equal = _binary("lesser_equal", "broadcast_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar",
                       _flag(operator.le), "1 where lhs <= rhs, else 0")
logical_and = _binary("logical_and", "broadcast_logical_and", "_logical_and_scalar", None,
                      _flag(lambda x, y: x and y), "1 where both are nonzero, else 0")
logical_or = _binary("logical_or", "broadcast_logical_or", "_logical_or_scalar", None,
                     _flag(lambda x, y: x or y), "1 where one is nonzero, else 0")
logical_xor = _binary("logical_xor", "broadcast_logical_xor", "_logical_xor_scalar", None,
                      _flag(lambda x, y: bool(x) ^ bool(y)), "1 where exactly one is nonzero, else 0")


def power(base: Any, exp: Any) -> Any:
    """Returns `base` to the power `exp`, elementwise with broadcasting; each an NDArray or a number."""
    return _power(base, exp)


def hypot(lhs: Any, rhs: Any) -> Any:
    """Returns sqrt(lhs^2 + rhs^2), elementwise with broadcasting; each an NDArray or a number."""
    return _hypot(lhs, rhs)


def true_divide(lhs: Any, rhs: Any) -> Any:
    """Returns lhs / rhs; the same as `divide`."""
    return divide(lhs, rhs)


def _in_place(a: Any, other: Any, array_op: str, scalar_op: str, verb: str) -> Any:
    if not a.writable:
        raise ValueError(f"trying to {verb} a readonly NDArray")
    if isinstance(other, NDArrayBase):
        return invoke(op_named(array_op), (a, other), {}, a)
    if isinstance(other, numeric_types):
        return invoke(op_named(scalar_op), (a,), {"scalar": float(other)}, a)
    raise TypeError(f"type {type(other)} not supported")


class Operators(NDArrayBase):
    """The Python operators; comparisons give 0/1 arrays of the operands' dtype."""

    __slots__ = ()

    def __abs__(self) -> Any:
        return invoke(op_named("abs"), (self,), {})

    def __neg__(self) -> Any:
        return invoke(op_named("_mul_scalar"), (self,), {"scalar": -1.0})

    def __add__(self, other: Any) -> Any:
        return add(self, other)

    def __radd__(self, other: Any) -> Any:
        return add(self, other)

    def __iadd__(self, other: Any) -> Any:
        return _in_place(self, other, "broadcast_add", "_plus_scalar", "add to")

    def __sub__(self, other: Any) -> Any:
        return subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return subtract(other, self)

    def __isub__(self, other: Any) -> Any:
        return _in_place(self, other, "broadcast_sub", "_minus_scalar", "subtract from")

    def __mul__(self, other: Any) -> Any:
        return multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return multiply(self, other)

    def __imul__(self, other: Any) -> Any:
        return _in_place(self, other, "broadcast_mul", "_mul_scalar", "multiply to")

    def __truediv__(self, other: Any) -> Any:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return divide(other, self)

    def __itruediv__(self, other: Any) -> Any:
        return _in_place(self, other, "broadcast_div", "_div_scalar", "divide from")

    def __mod__(self, other: Any) -> Any:
        return modulo(self, other)

    def __rmod__(self, other: Any) -> Any:
        return modulo(other, self)

    def __imod__(self, other: Any) -> Any:
        return _in_place(self, other, "broadcast_mod", "_mod_scalar", "take modulo from")

    def __pow__(self, other: Any) -> Any:
        return _power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return _power(other, self)

    def __eq__(self, other: Any) -> Any:
        return equal(self, other)

    def __ne__(self, other: Any) -> Any:
        return not_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return greater_equal(self, other)

    def __lt__(self, other: Any) -> Any:
        return lesser(self, other)

    def __le__(self, other: Any) -> Any:
        return lesser_equal(self, other)

    def __hash__(self) -> int:
        return id(self) // 16
