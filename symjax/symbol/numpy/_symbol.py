"""The class `mx.sym.np._Symbol`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from symjax._numpy.front import SYMBOLS, Front
from symjax._numpy.methods import GONE, Methods, without
from symjax.base import NotImplementedForSymbol, integer_types
from symjax.symbol.symbol import Group, Symbol
from symjax.symbol.symbol import load as _load
from symjax.symbol.symbol import load_json as _load_json


@without([*GONE, "broadcast_to"])
class _Symbol(Methods, Symbol):  # pyright: ignore[reportIncompatibleMethodOverride] - numpy's signatures
    """A symbol with numpy's operators: they broadcast, compare to booleans, and indexing selects elements.

    Made by `Symbol.as_np_ndarray()` and by every function of `mx.sym.np` and `mx.sym.npx`. A symbol of several outputs
    is indexed by output.
    """

    __slots__ = ()
    is_numpy: ClassVar[bool] = True
    _front: ClassVar[Front] = SYMBOLS

    def __hash__(self) -> int:
        return object.__hash__(self)

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self._graph.outputs)

    @property
    def name(self) -> str:
        """The name of the node.

        Raises:
          AttributeError: the symbol is a group.
        """
        if self.num_outputs > 1:
            raise AttributeError(f"This is a Group Symbol that contains {self.num_outputs} elements and does not have "
                                 f"a name. Use str(sym) to print the name of all the elements instead.")
        return self._graph.outputs[0].node.name

    def __repr__(self) -> str:
        if self.num_outputs > 1:
            return f"<{type(self).__name__} group [{', '.join(map(str, self))}]>"
        return f"<{type(self).__name__} {self.name}>"

    def __len__(self) -> int:
        if self.num_outputs == 1:
            raise TypeError(f"{self!r} is not a list and does not support len().")
        return self.num_outputs

    def __iter__(self) -> Iterator[Any]:
        if self.num_outputs == 1:
            raise TypeError(f"'{self!r}' is not iterable.")
        return iter([self[i] for i in range(self.num_outputs)])

    def __getitem__(self, key: Any) -> Any:
        if self.num_outputs > 1:
            return self._output(key)
        if isinstance(key, integer_types):
            # MXNet: -1 becomes the slice from -1 to 0, which is empty; its end is left open here.
            cut = SYMBOLS.npi.slice(self, [key], [key + 1 if key != -1 else None])
            return SYMBOLS.npi.reshape(cut, (-3, -4))
        if isinstance(key, slice):
            _check_step(key)
            return SYMBOLS.npi.slice(self, [None] if key.start is None else key.start,
                                     [None] if key.stop is None else key.stop, key.step)
        if not isinstance(key, tuple):
            raise IndexError(f"only integers, slices and tuples of them index a symbol, got {key!r}")
        return self._box(key) if key else self

    def _output(self, key: Any) -> Any:
        if isinstance(key, slice):
            return Group([self[i] for i in range(*key.indices(self.num_outputs))], type(self))
        if not isinstance(key, integer_types):
            raise TypeError(f"indices of symbol group must be integers or slices, not {type(key)}")
        if not -self.num_outputs <= key < self.num_outputs:
            raise IndexError("list index out of range")
        return type(self)._of((self._graph.outputs[int(key)],))

    def _box(self, key: tuple[Any, ...]) -> Any:
        begin, end, step, shape = [], [], [], []
        for k in key:
            if isinstance(k, slice):
                _check_step(k)
                row = k.start, k.stop, k.step, -2
            elif isinstance(k, integer_types):
                row = (k, k + 1, 1, -3) if k >= 0 else (k, k - 1, -1, -3)
            else:
                raise IndexError(f"only integers, slices and tuples of them index a symbol, got {key!r}")
            for part, v in zip((begin, end, step, shape), row, strict=True):
                part.append(v)
        return SYMBOLS.npi.reshape(SYMBOLS.npi.slice(self, begin, end, step), (*shape, -4))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise NotImplementedForSymbol(self.__setitem__, None, key, value)

    def as_nd_ndarray(self) -> Any:
        """Returns a classic symbol of the same outputs."""
        return Symbol(self._graph)

    def as_np_ndarray(self) -> Any:
        """Returns this symbol."""
        return self


def _check_step(key: slice) -> None:
    if key.step == 0:
        raise ValueError("slice step cannot be zero")


def load(fname: str) -> Any:
    """Reads a symbol from a JSON file; see `mx.sym.load`."""
    return _load(fname).as_np_ndarray()


def load_json(json_str: str) -> Any:
    """Reads a symbol from JSON text; see `mx.sym.load_json`."""
    return _load_json(json_str).as_np_ndarray()
