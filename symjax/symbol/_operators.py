"""Python's operators on symbols, and the NDArray methods that a symbol refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

from symjax.base import NotImplementedForSymbol
from symjax.symbol._fluent import Fluent


class Operators(Fluent):
    """What `Symbol` has beside its graph: `+`, `-`, …, each a node with MXNet's automatic name."""

    __slots__ = ()

    def _apply(self, op_name: str, others: Sequence[Any], attrs: Mapping[str, str]) -> Any:
        raise NotImplementedError

    def __hash__(self) -> int:
        return object.__hash__(self)

    # ---- only for NDArray

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol(self.__bool__, "bool")

    def wait_to_read(self) -> None:
        raise NotImplementedForSymbol(self.wait_to_read, None)

    def asnumpy(self) -> None:
        raise NotImplementedForSymbol(self.asnumpy, None)

    def asscalar(self) -> None:
        raise NotImplementedForSymbol(self.asscalar, None)

    def copy(self) -> None:
        raise NotImplementedForSymbol(self.copy, None)

    def as_in_context(self) -> None:
        raise NotImplementedForSymbol(self.as_in_context, None)

    def detach(self) -> None:
        raise NotImplementedForSymbol(self.detach, None)

    def backward(self) -> None:
        raise NotImplementedForSymbol(self.backward, None)

    def __iadd__(self, other: Any) -> Any:
        raise NotImplementedForSymbol(self.__iadd__, "+=", other, 1)

    def __isub__(self, other: Any) -> Any:
        raise NotImplementedForSymbol(self.__isub__, "-=", other)

    def __imul__(self, other: Any) -> Any:
        raise NotImplementedForSymbol(self.__imul__, "*=", other)

    def __itruediv__(self, other: Any) -> Any:
        raise NotImplementedForSymbol(self.__itruediv__, "/=", other)

    # ---- operators: MXNet's names, equal shapes only (broadcast_* operators stretch)

    def __add__(self, other: Any) -> Any:
        return _binary(self, other, "_Plus", "_PlusScalar")

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other)

    def __sub__(self, other: Any) -> Any:
        return _binary(self, other, "_Minus", "_MinusScalar")

    def __rsub__(self, other: Any) -> Any:
        return _binary(self, other, None, "_RMinusScalar")

    def __mul__(self, other: Any) -> Any:
        return _binary(self, other, "_Mul", "_MulScalar")

    def __rmul__(self, other: Any) -> Any:
        return self.__mul__(other)

    def __truediv__(self, other: Any) -> Any:
        return _binary(self, other, "_Div", "_DivScalar")

    def __rtruediv__(self, other: Any) -> Any:
        return _binary(self, other, None, "_RDivScalar")

    __div__, __rdiv__, __idiv__ = __truediv__, __rtruediv__, __itruediv__

    def __mod__(self, other: Any) -> Any:
        return _binary(self, other, "_Mod", "_ModScalar")

    def __rmod__(self, other: Any) -> Any:
        return _binary(self, other, None, "_RModScalar")

    def __pow__(self, other: Any) -> Any:
        return _binary(self, other, "_Power", "_PowerScalar")

    def __rpow__(self, other: Any) -> Any:
        return _binary(self, other, None, "_rpower_scalar")

    def __neg__(self) -> Any:
        return self.__mul__(-1.0)

    def __abs__(self) -> Any:
        return self._apply("abs", (), {})

    def __eq__(self, other: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - MXNet builds a node
        return _binary(self, other, "_equal", "_equal_scalar")

    def __ne__(self, other: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - MXNet builds a node
        return _binary(self, other, "_not_equal", "_not_equal_scalar")

    def __gt__(self, other: Any) -> Any:
        return _binary(self, other, "_greater", "_greater_scalar")

    def __ge__(self, other: Any) -> Any:
        return _binary(self, other, "_greater_equal", "_greater_equal_scalar")

    def __lt__(self, other: Any) -> Any:
        return _binary(self, other, "_lesser", "_lesser_scalar")

    def __le__(self, other: Any) -> Any:
        return _binary(self, other, "_lesser_equal", "_lesser_equal_scalar")


def _binary(left: Operators, right: Any, op: str | None, scalar_op: str) -> Any:
    if isinstance(right, Operators) and op is not None:
        return left._apply(op, (right,), {})
    if isinstance(right, Number):
        return left._apply(scalar_op, (), {"scalar": str(right)})
    raise TypeError(f"type {type(right)} not supported")
