"""What an NDArray holds: a JAX array, a computation yet to run, or a window on another NDArray.

JAX arrays are immutable; an NDArray is a cell whose array is replaced. A slice or reshape that MXNet would let share
memory is a `_View`: it reads from its base and writes through to it, so both always agree.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import jax
import numpy as np
from jax import lax

from symjax._config import config
from symjax._mesh import MeshContext
from symjax.context import Context, current_context
from symjax.lowering.errors import MissingLoweringError, MXNetError, StorageError
from symjax.sparse.csr import CSR
from symjax.sparse.exact import trimmed
from symjax.sparse.row_sparse import RowSparse
from symjax.sparse.rules import set_fallback_policy, stype_of
from symjax.sparse.unique import RowIndex

set_fallback_policy(lambda: config.storage_fallback)

Thunk = Callable[[], Any]
T = TypeVar("T")


class _Pending:
    """A computation that fills the array when it is first read."""

    __slots__ = ("dtype", "shape", "thunk")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, thunk: Thunk) -> None:
        self.shape, self.dtype, self.thunk = shape, dtype, thunk


class _View:
    """`shape` elements of `base` from the flat `offset` on; the value read last is kept with its version."""

    __slots__ = ("base", "cached", "offset", "shape", "version")

    def __init__(self, base: NDArrayBase, offset: int, shape: tuple[int, ...]) -> None:
        self.base, self.offset, self.shape = base, offset, shape
        self.cached: Any = None
        self.version = -1


@functools.partial(jax.jit, static_argnums=(2,))
def _read_window(base: jax.Array, offset: Any, shape: tuple[int, ...]) -> jax.Array:
    if math.prod(shape) == base.size:
        return base.reshape(shape)
    return lax.dynamic_slice(base.reshape(-1), (offset,), (math.prod(shape),)).reshape(shape)


def _write_window(base: jax.Array, value: jax.Array, offset: Any) -> jax.Array:
    if value.size == base.size:
        return value.reshape(base.shape)
    return lax.dynamic_update_slice(base.reshape(-1), value.reshape(-1), (offset,)).reshape(base.shape)


_write_copy = jax.jit(_write_window)
_write_donated = jax.jit(_write_window, donate_argnums=0)


class _Waiting(threading.local):
    """The arrays that a thread made pending, for its `wait_for_all`: to fill those of others would be a race.

    They are kept weakly, and those that wait no more go when they are many.
    """

    def __init__(self) -> None:
        self.refs: dict[int, weakref.ref[NDArrayBase]] = {}
        self.at_most = 1024

    def add(self, array: NDArrayBase) -> None:
        self.refs[id(array)] = weakref.ref(array)
        if len(self.refs) > self.at_most:
            self.refs = {id(a): weakref.ref(a) for a in self.arrays()}
            self.at_most = max(1024, 2 * len(self.refs))

    def arrays(self) -> list[NDArrayBase]:
        found = [r() for r in list(self.refs.values())]
        return [a for a in found if a is not None and type(a._lazy) is _Pending]

    def take(self) -> list[NDArrayBase]:
        """Returns those that wait, and forgets all."""
        found = self.arrays()
        self.refs = {}
        return found


_waiting = _Waiting()


class NDArrayBase:
    """The cell. Everything but holding, reading and replacing contents is in `NDArray`."""

    __slots__ = ("__weakref__", "_ctx", "_lazy", "_owned", "_tape", "_value", "_version", "writable")

    _value: Any
    _lazy: _Pending | _View | None
    _ctx: Context | None
    _tape: Any  # its place on the autograd tape, see `tape`
    _version: int
    _owned: bool  # whether nobody outside of symjax can hold the buffer of `_value`
    writable: bool

    def __init__(self, handle: Any, writable: bool = True) -> None:
        """Wraps a JAX array (MXNet: a C handle); `None` makes an array that holds nothing."""
        self._value = handle
        self._lazy = self._ctx = self._tape = None
        self._version, self._owned, self.writable = 0, False, writable

    @classmethod
    def _from_jax(cls, value: Any, ctx: Context | None = None) -> Self:
        """Wraps a JAX array that lies on the device of `ctx`, without any check."""
        self = cls.__new__(cls)
        self._value = value
        self._ctx = ctx
        self._lazy = self._tape = None
        self._version = 0
        self._owned = False
        self.writable = True
        return self

    @classmethod
    def _pending(cls, shape: tuple[int, ...], dtype: Any, ctx: Context | None, thunk: Thunk) -> Self:
        """Makes an array of known shape and dtype whose contents `thunk` computes when they are read.

        `thunk()` returns the JAX array, or calls `_set_data` on this array (then its result is ignored).
        """
        self = cls._from_jax(None, ctx or current_context())
        self._lazy = _Pending(tuple(shape), np.dtype(dtype), thunk)
        _waiting.add(self)
        return self

    def _set_pending(self, shape: tuple[int, ...], dtype: np.dtype, thunk: Thunk) -> None:
        """Makes the contents of this array those that `thunk` will compute; see `_pending`."""
        self._lazy = _Pending(shape, dtype, thunk)  # first: a reader in another thread finds one or the other
        self._value, self._owned = None, False
        self._version += 1
        _waiting.add(self)

    def _view_of(self, offset: int, shape: tuple[int, ...]) -> Self:
        """Returns an array that shares `shape` elements of this one from the flat `offset` on."""
        base, lazy = self, self._lazy
        if type(lazy) is _View:
            base, offset = lazy.base, lazy.offset + offset
        view = self._from_jax(None, self._ctx)
        view._lazy = _View(base, offset, shape)
        view.writable = self.writable
        return view

    @property
    def _data(self) -> jax.Array:
        """The JAX array; runs the computation that it still waits for."""
        value = self._value
        return self._force() if value is None else value

    def _force(self) -> jax.Array:
        while True:
            lazy = self._lazy
            if isinstance(lazy, _View):
                return self._read_view(lazy)
            result = lazy.thunk() if isinstance(lazy, _Pending) else None
            value = self._value
            if value is not None:
                return value
            if result is not None:
                self._value, self._lazy = result, None
                return result
            if self._lazy is lazy:  # else another thread has made it wait for something else
                what = "this NDArray holds nothing" if lazy is None else "a pending computation left its NDArray empty"
                raise MXNetError(what)

    def _read_view(self, view: _View) -> jax.Array:
        base = view.base
        value = base._data
        if view.version != base._version or view.cached is None:
            with jax.enable_x64(True):
                view.cached = _read_window(value, view.offset, view.shape)
            view.version = base._version
        return view.cached

    def _set_data(self, value: jax.Array) -> None:
        """Replaces the contents in place; writes through to the base if this is a view. Checks nothing."""
        lazy = self._lazy
        if type(lazy) is _View:
            self._write_view(lazy, value)
            return
        self._value = value
        self._lazy = None
        self._version += 1
        self._owned = False

    def _write_view(self, view: _View, value: jax.Array) -> None:
        base = view.base
        old = base._data
        with jax.enable_x64(True):
            if base._owned and sys.getrefcount(old) <= 3:  # `old`, `base._value` and the argument of getrefcount
                new = _write_donated(old, value, view.offset)
            else:
                new = _write_copy(old, value, view.offset)
        base._set_data(new)
        base._owned = math.prod(view.shape) != old.size
        view.cached, view.version = value, base._version

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions; known without waiting for the contents."""
        value = self._value
        if value is not None:
            return value.shape
        if self._lazy is None:
            raise MXNetError("this NDArray holds nothing")
        return self._lazy.shape

    @property
    def _dtype(self) -> np.dtype:
        value, lazy = self._value, self._lazy
        if value is not None:
            return value.dtype
        if lazy is None:
            raise MXNetError("this NDArray holds nothing")
        return lazy.base._dtype if isinstance(lazy, _View) else lazy.dtype

    @property
    def stype(self) -> str:
        """The storage type: "default", "csr" or "row_sparse"."""
        return "default"

    @property
    def dtype(self) -> Any:
        """The element type as a numpy scalar type, e.g. `numpy.float32`."""
        return self._dtype.type

    @property
    def context(self) -> Context:
        """The context that the array lives on."""
        ctx = self._ctx
        if ctx is None:
            ctx = self._ctx = Context.from_jax_device(next(iter(self._data.devices())))
        return ctx

    ctx = context

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


def pending_on(array: NDArrayBase) -> Any:
    """Returns the object whose method will fill the array, None if it waits for nothing of the kind."""
    lazy = array._lazy
    return getattr(lazy.thunk, "__self__", None) if type(lazy) is _Pending else None


def is_plain(array: NDArrayBase) -> bool:
    """Whether the array is its own, not a window on another."""
    return type(array._lazy) is not _View


def wait_for_all() -> None:
    """Runs everything that this thread left pending and blocks until all arrays are computed.

    Raises what a computation raises; the next call goes on behind it.
    """
    arrays = _waiting.take()[::-1]
    try:
        while arrays:
            arrays.pop()._force()
    finally:  # those behind one that fails, or behind Ctrl-C, wait for the next call
        for a in arrays:
            _waiting.add(a)
    for value in jax.live_arrays():
        try:
            value.block_until_ready()
        except RuntimeError:
            if not value.is_deleted():  # by another thread, whose call overwrites it
                raise


class _Classes:
    """The array class of each storage type; classes enter by `storage_class`."""

    by_stype: ClassVar[dict[str, type[Any]]] = {}


def storage_class(stype: str) -> Callable[[type[T]], type[T]]:
    """Decorator: makes a class the one that results of storage type `stype` get."""

    def register(cls: type[T]) -> type[T]:
        _Classes.by_stype[stype] = cls
        return cls

    return register


def class_of(stype: str) -> type[Any]:
    """Returns the class registered for a storage type.

    Raises:
      StorageError: the type is not one of MXNet's.
      MissingLoweringError: it is, but there is no support for it.
    """
    try:
        return _Classes.by_stype[stype]
    except KeyError:
        if stype in ("csr", "row_sparse"):
            raise MissingLoweringError(f"{stype} storage is not supported; use dense arrays") from None
        raise StorageError(f"storage type {stype!r} is not one of default, csr, row_sparse") from None


def wrap(value: Any, ctx: Context, tight: bool = False) -> Any:
    """Returns an NDArray of the class for a value's storage type, a container without the room it does not use.

    `tight` tells that there is none: looking for it waits for the value.
    """
    stype = stype_of(value)
    return class_of(stype)._from_jax(value if stype == "default" or tight else trimmed(value), ctx)


def work_out_columns(x: NDArrayBase) -> RowIndex | None:
    """Gives the container of a csr array the index of its columns, which it keeps. Works on the host.

    An array that comes a second time is likely to come again, so that its index is then placed on the device.

    Returns:
      The index; None for an array that is not csr.
    """
    value = x._data
    if isinstance(value, CSR) and x._value is value:
        x._value = value = value.with_columns() if value.columns is None else value.with_columns_placed()
    return value.columns if isinstance(value, CSR) else None


def lies_at(value: Any, columns: RowIndex) -> bool:
    """Whether a value is rows at columns found on the host, of which there is none to spare."""
    return isinstance(value, RowSparse) and value.capacity == len(columns.unique)


def prepare(declared: Callable[..., Any], inputs: Sequence[Any], attrs: Mapping[str, Any]) -> dict[int, Any] | None:
    """Does what an op wants done before calls with sparse inputs (`rules.prepare_call`).

    Returns the values that the op gets in place of inputs, by position.
    """
    if all(x.stype == "default" for x in inputs):
        return None
    grown, replaced = declared([x._data for x in inputs], attrs)
    for i, value in grown.items():
        inputs[i]._set_data(value)
        inputs[i]._owned = True
    return replaced


_scalars: dict[Any, jax.Array] = {}
_MAX_SCALARS = 4096


def device_scalar(value: float, ctx: Context) -> jax.Array:
    """Returns a weakly typed scalar on the device. Making one costs more than a small op, so they are kept."""
    device = ctx.where[1]
    key = (value if value else str(value), device)  # 0.0 == -0.0, but they are not the same operand
    hit = _scalars.get(key)
    if hit is None:
        if len(_scalars) >= _MAX_SCALARS:
            _scalars.clear()
        with jax.enable_x64(True):
            hit = _scalars[key] = jax.device_put(value, device)
    return hit


def to_device(value: Any, ctx: Context, dtype: Any = None) -> jax.Array:
    """Returns a committed JAX array on the device of `ctx`, with 64-bit types kept.

    A JAX array that is there already is returned itself: two array objects on one buffer would let a write into one
    reuse the memory of the other.
    """
    device = ctx.jax_device
    with jax.enable_x64(True):
        if isinstance(ctx, MeshContext) and (isinstance(value, (jax.Array, np.ndarray)) or not hasattr(value, "stype")):
            return ctx.put(value if dtype is None else np.asarray(value, dtype))
        if isinstance(value, jax.Array):
            if value.committed and value.devices() == {device}:
                return value
            return jax.device_put(value, device, may_alias=False)
        if not isinstance(value, np.ndarray) and hasattr(value, "stype"):  # a container of `symjax.sparse`
            there = isinstance(value.data, jax.Array) and value.devices() == {device}
            return value if there else jax.device_put(value, device)
        return jax.device_put(value if dtype is None else np.asarray(value, dtype), device)
