"""What `CSRNDArray` and `RowSparseNDArray` have in common: a cell whose contents are a container of `symjax.sparse`."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import numpy as np

from symjax.base import NotSupportedForSparseNDArray, dtype_name
from symjax.context import Context
from symjax.lowering.errors import MissingLoweringError, MXNetError, ShapeError, StorageError
from symjax.ndarray import _sparse_arithmetic as arithmetic
from symjax.ndarray import tape
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import NDArrayBase, _Pending, _View, class_of, to_device
from symjax.ndarray.tape import STATE
from symjax.sparse import convert


def place(value: Any, ctx: Context) -> Any:
    """Returns a container of numpy arrays as one of JAX arrays on the device of `ctx`, with 64-bit types kept."""
    with jax.enable_x64(True):
        return jax.device_put(value, ctx.jax_device)


class _Malformed(_Pending):
    """Parts that make no container; reading the array raises, `check_format` says why, the parts stay readable.

    MXNet builds such arrays and crashes or reads foreign memory when they are used.
    """

    __slots__ = ("parts", "problem")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, parts: tuple[np.ndarray, ...], problem: str) -> None:
        super().__init__(shape, dtype, self.refuse)
        self.parts, self.problem = parts, problem

    def refuse(self) -> Any:
        raise StorageError(f"this sparse array is malformed and cannot be used: {self.problem}")


class BaseSparseNDArray(NDArray):
    """An array of which only some elements are stored: the base class of `CSRNDArray` and `RowSparseNDArray`.

    Its contents, `_data`, are a container (`symjax.sparse.CSR` or `RowSparse`) of JAX arrays on one device.
    """

    __slots__ = ()
    __module__ = "symjax.ndarray.sparse"  # where pickles find it
    _container: ClassVar[type[Any]]

    # ---- what it is

    @property
    def stype(self) -> str:
        """The storage type: "csr" or "row_sparse"."""
        return self._container.stype

    @property
    def size(self) -> int:
        """Not supported: whether it should count what is stored is ambiguous.

        Raises:
          NotImplementedError: always.
        """
        raise MissingLoweringError(f"size of a {type(self).__name__} is ambiguous; use data.size for what is stored, "
                                   f"or the product of shape")

    def __repr__(self) -> str:
        dims = "x".join(map(str, self.shape))
        return f"\n<{type(self).__name__} {dims} @{self.context}>"

    def __bool__(self) -> bool:
        if math.prod(self.shape) > 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return bool(self.asnumpy().any())

    @property
    def _num_aux(self) -> int:
        return len(self._aux_types)

    @property
    def _aux_types(self) -> list[Any]:
        raise NotImplementedError

    def _aux_type(self, i: int) -> Any:
        return self._aux_types[i]

    def _aux_data(self, i: int) -> NDArray:
        return self._part(i + 1)

    def _stored(self) -> tuple[np.ndarray, ...]:
        """The data and the indices on the host: those of the container, or those that make none."""
        if isinstance(self._lazy, _Malformed):
            return self._lazy.parts
        value: Any = self._data
        return value.host()

    def _part(self, i: int) -> NDArray:
        return NDArray._from_jax(to_device(np.array(self._stored()[i]), self.context), self.context)

    @property
    def data(self) -> NDArray:
        """A copy of the stored values."""
        return self._part(0)

    @data.setter
    def data(self, data: Any) -> None:
        raise self._fixed("data")

    @property
    def indices(self) -> NDArray:
        """A copy of the stored indices, int64."""
        raise NotImplementedError

    @indices.setter
    def indices(self, indices: Any) -> None:
        raise self._fixed("indices")

    def _fixed(self, what: str) -> Exception:
        return MissingLoweringError(f"{what} of a {type(self).__name__} cannot be set; make a new array and assign it "
                                    f"with x[:] = …")

    def check_format(self, full_check: bool = True) -> None:
        """Checks that the parts make an array of this storage type.

        Args:
          full_check: look at every index (sorted, distinct, inside of the shape); otherwise at the lengths alone.

        Raises:
          MXNetError: they do not.
        """
        parts = self._stored()
        problem = self._shape_problem(self.shape, *parts) or (full_check and self._index_problem(self.shape, *parts))
        if problem:
            raise StorageError(problem)

    _shape_problem: ClassVar[Callable[..., str | None]]
    _index_problem: ClassVar[Callable[..., str | None]]

    # ---- contents

    @classmethod
    def _from_parts(cls, shape: tuple[int, ...], ctx: Context, *parts: np.ndarray) -> Self:
        """Makes an array of data and indices (private numpy arrays), usable or not, as MXNet's constructors do."""
        try:
            value = cls._container.from_host(*parts, shape)
            problem = cls._range_problem(shape, *parts)
        except ShapeError as e:
            value, problem = None, str(e)
        if problem is None:
            return cls._from_jax(place(value, ctx), ctx)
        made = cls._from_jax(None, ctx)
        made._lazy = _Malformed(shape, parts[0].dtype, parts, problem)
        return made

    _range_problem: ClassVar[Callable[..., str | None]]

    @classmethod
    def _of_dense(cls, x: Any, ctx: Context) -> Self:
        """Makes an array of what a dense array stores."""
        return cls._from_jax(place(cls._from_numpy(np.asarray(x)), ctx), ctx)

    @classmethod
    def _from_numpy(cls, x: np.ndarray) -> Any:
        raise NotImplementedError

    def _set_data(self, value: Any) -> None:
        """Replaces the contents in place; a dense array is stored as what of it is not zero."""
        if not isinstance(value, self._container):
            value = place(self._from_numpy(np.asarray(value)), self.context)
        super()._set_data(value)

    def _view_of(self, offset: int, shape: tuple[int, ...]) -> Self:
        raise self._unsupported("reshape", None, shape)

    def detach(self) -> Any:
        """Returns an array that shares the contents, but is not on the tape."""
        return super()._view_of(0, self.shape)

    def _read_view(self, view: _View) -> Any:
        return view.base._data  # views of sparse arrays show the whole of them (`detach`)

    def _write_view(self, view: _View, value: Any) -> None:
        view.base._set_data(value)

    def asnumpy(self) -> np.ndarray:
        """Returns the array as a dense numpy array."""
        value: Any = self._data
        return convert.to_numpy(value)

    def __jax_array__(self) -> Any:
        value: Any = self._data
        with jax.enable_x64(True):
            return value.todense()

    def __dlpack__(self, **kwargs: Any) -> Any:
        raise self._unsupported("__dlpack__")

    def to_dlpack_for_read(self) -> Any:
        """Not supported; `data` and `indices` can be shared.

        Raises:
          NotSupportedForSparseNDArray: always.
        """
        raise self._unsupported("to_dlpack_for_read")

    def to_dlpack_for_write(self) -> Any:
        """Not supported, see `to_dlpack_for_read`."""
        raise self._unsupported("to_dlpack_for_write")

    def as_np_ndarray(self) -> Any:
        """Not supported.

        Raises:
          ValueError: always; MXNet's numpy arrays are dense.
        """
        raise ValueError(f"cannot convert ndarray of stype {self.stype} to numpy ndarray; use asnumpy()")

    def asscalar(self) -> Any:
        """Not supported, as `size` is not; `asnumpy()` gives the elements.

        Raises:
          NotImplementedError: always.
        """
        return self.size

    def _unsupported(self, name: str, alias: str | None = None, *args: Any) -> NotSupportedForSparseNDArray:
        return NotSupportedForSparseNDArray(name, alias, *args)

    def _at(self, idx: Any) -> Any:
        raise self._unsupported("_at", "[idx]", idx)

    def _slice(self, start: Any, stop: Any) -> Any:
        raise self._unsupported("_slice", None, start, stop)

    def _sync_copyfrom(self, source_array: Any) -> None:
        raise MissingLoweringError("a sparse array cannot be filled from a dense one; use x[:] = …")

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Not supported; `tostype("default")` gives an array that can be reshaped.

        Raises:
          NotSupportedForSparseNDArray: always.
        """
        raise self._unsupported("reshape", None, shape)

    # ---- assignment

    def __setitem__(self, key: Any, value: Any) -> None:
        name = type(self).__name__
        if not self.writable:
            raise ValueError(f"Failed to assign to a readonly {name}")
        if not isinstance(key, slice):
            raise self._bad_key(key)
        if key != slice(None):
            raise ValueError(f"Assignment with slice for {name} is not implemented yet; assign to all of it, x[:] = …")
        if isinstance(value, NDArrayBase):
            if value is not self:
                value.copyto(self)  # type: ignore[attr-defined]
        elif isinstance(value, (bool, int, float, np.number)) and not isinstance(value, np.ndarray):
            self._assign_number(float(value))
        elif isinstance(value, (np.ndarray, np.generic)):
            warnings.warn(f"Assigning non-NDArray object to {name} is not efficient", RuntimeWarning, stacklevel=2)
            self._assign_numpy(np.asarray(value))
        else:
            raise TypeError(f"type {type(value)} not supported")

    def slice_assign(self, rhs: Any, begin: Any, end: Any, step: Any) -> Any:
        """Writes `rhs` to the box from `begin` to `end` by `step`, through a dense copy; returns this array."""
        return self._become(self.tostype("default").slice_assign(rhs, begin, end, step))

    def _bad_key(self, key: Any) -> Exception:
        return StorageError(f"{type(self).__name__} only supports [:] for assignment, got {key!r}")

    def _assign_number(self, value: float) -> None:
        raise NotImplementedError

    def _fill(self, value: Any) -> None:
        """Makes every element a number (`mx.nd.ones(out=)`); 0 leaves nothing stored."""
        self._assign_numpy(np.broadcast_to(np.asarray(value), self.shape))

    def _assign_numpy(self, value: np.ndarray) -> None:
        if value.shape != self.shape:
            raise ShapeError(f"cannot assign an array of shape {value.shape} to one of shape {self.shape}")
        if STATE.recording:
            tape.refuse_in_place(self)
        with np.errstate(all="ignore"):
            self._set_data(place(self._from_numpy(value.astype(self._dtype)), self.context))

    # ---- copies and conversions

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Returns the array with its stored values in another type; itself if equal and not `copy`."""
        name = dtype_name(np.float32 if dtype is None else dtype)
        if self._dtype.name == name and not copy:
            return self
        return self._derive(_cast_call(name))

    def _derive(self, call: Callable[..., Any]) -> Any:
        """Applies a compiled function of one container, recorded like an op."""
        value = self._data
        with jax.enable_x64(True):
            made = self._from_jax(call((value,), (), None)[0], self.context)
        if STATE.recording and self._tape is not None:
            tape.record(call, (value,), ((), None), (self,), (made,))
        return made

    def copyto(self, other: Any) -> Any:
        """Copies the contents to another array or to a context.

        Args:
          other: an array of the same shape, of this storage type or dense (the type is converted), or a Context.

        Returns:
          The array written to, or the new array; False if `other` is this array.

        Raises:
          TypeError: `other` is of the other sparse storage type, or no array.
          ShapeError: the shapes differ.
        """
        if isinstance(other, NDArray) and other.stype not in ("default", self.stype):
            raise TypeError(f"copyto does not support destination NDArray stype {other.stype}")
        if isinstance(other, NDArray) and other.stype == "default" and other.shape == self.shape:
            self.tostype("default").copyto(other)
            return other
        return super().copyto(other)

    def tostype(self, stype: str) -> Any:
        """Returns a copy of the array in another storage type.

        Raises:
          ValueError: csr to row_sparse or the other way; go through "default".
          StorageError: there is no such storage type.
        """
        if stype == self.stype:
            return self.copy()
        class_of(stype)
        if stype != "default":
            raise ValueError(f"cast_storage from {self.stype} to {stype} is not supported; go through "
                             f"tostype('default')")
        if STATE.recording and self._tape is not None:
            return super().tostype(stype)
        return NDArray._from_jax(to_device(self.asnumpy(), self.context), self.context)

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Makes this array a variable with a gradient array of zeros, of its own storage type if `stype` is None."""
        super().attach_grad(grad_req, stype or self.stype)

    # ---- arithmetic

    def __add__(self, other: Any) -> Any:
        return arithmetic.add(self, other)

    def __sub__(self, other: Any) -> Any:
        return arithmetic.subtract(self, other)

    def __mul__(self, other: Any) -> Any:
        return arithmetic.multiply(self, other)

    def __iadd__(self, other: Any) -> Any:
        return self._become(self + other)

    def __isub__(self, other: Any) -> Any:
        return self._become(self - other)

    def __imul__(self, other: Any) -> Any:
        return self._become(self * other)

    def __itruediv__(self, other: Any) -> Any:
        return self._become(self / other)

    def _become(self, result: Any) -> Any:
        result.copyto(self)
        return self

    # ---- files and pickles

    def _to_record(self) -> Any:
        raise NotImplementedError

    @classmethod
    def _from_record(cls, record: Any) -> Self:
        ctx = Context("cpu")
        return cls._pending(record.shape, record.data.dtype, ctx, lambda: place(cls._read_record(record), ctx))

    @classmethod
    def _read_record(cls, record: Any) -> Any:
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        from symjax.ndarray.utils import record_from_raw_bytes

        if state["handle"] is None:
            return
        value = self._read_record(record_from_raw_bytes(state["handle"]))
        ctx = Context(*state.get("ctx", ("cpu", 0)))
        try:
            placed = place(value, ctx)
        except MXNetError:  # pickled on a device that this machine lacks
            ctx = Context("cpu", 0)
            placed = place(value, ctx)
        self.__init__(placed)
        self._ctx = ctx


@functools.cache
def _cast_call(name: str) -> Callable[..., Any]:
    return jax.jit(lambda xs, scalars, key: (xs[0].astype(name),))
