"""`add`, `subtract`, `multiply` and `divide` of sparse arrays: equal shapes keep sparse storage where the op can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symjax.ndarray import elementwise
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.elementwise import op_named
from symjax.ndarray.storage import NDArrayBase


def _binary(name: str, same_op: str, other: Callable[[Any, Any], Any], what: str) -> Callable[[Any, Any], Any]:
    """Returns the function that uses the elementwise op on equal shapes and `other` (broadcasting) elsewhere."""

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, NDArrayBase) and isinstance(rhs, NDArrayBase) and lhs.shape == rhs.shape:
            return invoke(op_named(same_op), (lhs, rhs), {})
        return other(lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "symjax.ndarray.sparse"
    function.__doc__ = f"""Returns {what}, elementwise with broadcasting.

Args:
  lhs, rhs (NDArray or number): operands of any storage type and of one dtype; shapes that broadcast.

Returns:
  An array whose storage type is that of `{same_op}` for operands of equal shape, of the broadcasting or scalar operator
  otherwise. A number on the left counts as such (MXNet takes `subtract(2, x)` for x - 2 and `divide(2, x)` for x / 2).
"""
    return function


add = _binary("add", "elemwise_add", elementwise.add, "lhs + rhs")
subtract = _binary("subtract", "elemwise_sub", elementwise.subtract, "lhs - rhs")
multiply = _binary("multiply", "elemwise_mul", elementwise.multiply, "lhs * rhs")
divide = _binary("divide", "elemwise_div", elementwise.divide, "lhs / rhs")
