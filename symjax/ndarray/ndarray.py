"""The class NDArray."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from symjax.base import dtype_name
from symjax.context import Context
from symjax.lowering import abstract
from symjax.lowering.errors import MXNetError, ShapeError
from symjax.ndarray import indexing, tape
from symjax.ndarray._functions import function_in
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.elementwise import Operators, op_named
from symjax.ndarray.fluent import Fluent
from symjax.ndarray.storage import NDArrayBase, class_of, storage_class, to_device
from symjax.ndarray.tape import STATE


@storage_class("default")
class NDArray(Operators, Fluent):
    """A dense n-dimensional array on one device, with contents that can be replaced in place.

    Make one with `mx.nd.array`, `zeros`, `ones`, …. Computations are asynchronous: reading the numbers
    (`asnumpy`, printing) waits for them. `a[i]`, `a[i:j]` and `reshape` are views: writing to them writes to `a`.
    """

    __slots__ = ()
    __array_priority__ = 1000.0  # numpy leaves binary operators to this class
    is_numpy: ClassVar[bool] = False
    """Whether this is an `mx.np.ndarray`, which other operators take."""
    scalar_shape: ClassVar[tuple[int, ...]] = (1,)
    """The shape of a single element that indexing selects; classic arrays have no axes fewer than one."""

    # ---- what it is

    @property
    def handle(self) -> Any:
        """The JAX array (MXNet has a C handle here); None for an array that holds nothing."""
        return None if self._value is None and self._lazy is None else self._data

    @property
    def T(self) -> Any:
        """The transposed array; itself for one axis."""
        return self if self.ndim < 2 else self.transpose()

    def __repr__(self) -> str:
        dims = "x".join(map(str, self.shape))
        return f"\n{self.asnumpy()}\n<{type(self).__name__} {dims} @{self.context}>"

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return self.size == 1 and bool(self.asscalar())

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __index__(self) -> int:
        if not np.issubdtype(self._dtype, np.integer):
            raise TypeError(f"an NDArray of dtype {self._dtype} cannot be an index")
        return int(self.asscalar())

    # ---- reading

    def wait_to_read(self) -> None:
        """Blocks until the contents are computed; errors of the computation surface here."""
        self._data.block_until_ready()

    def asnumpy(self) -> np.ndarray:
        """Returns a writable copy as a numpy array (bfloat16 as `ml_dtypes.bfloat16`)."""
        return np.array(self._data)

    def asscalar(self) -> Any:
        """Returns the only element of an array of size 1 as a numpy scalar.

        Raises:
          ValueError: the size is not 1.
        """
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return self.asnumpy().reshape(-1)[0]

    def item(self) -> Any:
        """Returns the only element of an array of size 1 as a Python number."""
        return self.asscalar().item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        a = self.asnumpy()
        return a if dtype is None else a.astype(dtype)

    def __jax_array__(self) -> Any:
        return self._data  # jnp functions take an NDArray as it is

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._data.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        value: Any = self._data
        return value.__dlpack_device__()

    def to_dlpack_for_read(self) -> Any:
        """Returns a DLPack capsule of the contents, for reading only."""
        from symjax.dlpack import to_dlpack_for_read

        return to_dlpack_for_read(self)

    def to_dlpack_for_write(self) -> Any:
        """Returns a DLPack capsule whose memory this array goes on using; see `symjax.dlpack`."""
        from symjax.dlpack import to_dlpack_for_write

        return to_dlpack_for_write(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None,), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        from symjax.ndarray.utils import to_raw_bytes

        if self.handle is None:
            return {"handle": None}
        return {"handle": to_raw_bytes(self), "ctx": (self.context.device_type, self.context.device_id)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from symjax.ndarray.utils import from_raw_bytes

        if state["handle"] is not None:
            ctx = Context(*state.get("ctx", ("cpu", 0)))
            try:
                value = to_device(from_raw_bytes(state["handle"]), ctx)
            except MXNetError:  # pickled on a device that this machine lacks
                ctx = Context("cpu", 0)
                value = to_device(from_raw_bytes(state["handle"]), ctx)
            self.__init__(value)
            self._ctx = ctx

    # ---- indexing and shape

    def __getitem__(self, key: Any) -> Any:
        return indexing.get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        indexing.set_item(self, key, value)

    def slice_assign(self, rhs: Any, begin: Any, end: Any, step: Any) -> Any:
        """Writes `rhs` to the box from `begin` to `end` by `step` (tuples; None as in slices); returns this array."""
        steps = step or (None,) * len(begin)
        self[tuple(builtins.slice(*s) for s in zip(begin, end, steps, strict=True))] = rhs
        return self

    def slice_assign_scalar(self, value: float, begin: Any, end: Any, step: Any) -> Any:
        """Fills a box with a number and returns this array; see `slice_assign`."""
        return self.slice_assign(value, begin, end, step)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Returns a view of another shape.

        Args:
          shape: ints or one tuple; 0 keeps an axis, -1 is inferred, -2, -3, -4 as in the operator `Reshape`.
          reverse (bool): match special values from the right.

        Raises:
          ValueError: the sizes differ.
        """
        if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
            shape = tuple(shape[0])
        elif not shape:
            shape = tuple(kwargs.get("shape") or ())
        unknown = set(kwargs) - {"shape", "reverse"}
        if unknown:
            raise TypeError(f"Got unknown keywords in reshape: {', '.join(sorted(unknown))}. "
                            f"Accepted keyword arguments are 'shape' and 'reverse'.")
        if not shape and self.size != 1:
            raise ValueError("Shape must be provided.")
        new = self._resolve(tuple(int(n) for n in shape), bool(kwargs.get("reverse", False)))
        return indexing.window(self, 0, new)

    def _resolve(self, shape: tuple[int, ...], reverse: bool) -> tuple[int, ...]:
        new: Sequence[int] = shape
        if any(n <= 0 for n in shape):
            op = op_named("Reshape")
            params = op.params.parse({"shape": str(shape), "reverse": str(reverse)}, op.name)
            try:
                new = abstract.evaluate(op, params, ((self.shape, "float32"),))[0][0]
            except ShapeError as e:
                raise ShapeError(f"Cannot reshape array of shape {self.shape} into shape {shape}: {e}") from None
        if math.prod(new) != self.size:
            raise ShapeError(f"Cannot reshape array of size {self.size} into shape {shape}")
        return tuple(new)

    def expand_dims(self, axis: int, inplace: bool = False) -> Any:
        """Returns the array with a new axis of length 1 before `axis`; as a view if `inplace`."""
        if not inplace:
            return function_in("op", "expand_dims")(self, axis=axis)
        if not -self.ndim - 1 <= axis <= self.ndim:
            raise ShapeError(f"axis {axis} is out of range for {self.ndim}d array")
        shape = list(self.shape)
        shape.insert(axis if axis >= 0 else axis + self.ndim + 1, 1)
        return indexing.window(self, 0, tuple(shape))

    def flatten(self, inplace: bool = False) -> Any:
        """Returns the array as (first axis, all others); as a view if `inplace`."""
        if inplace:
            return indexing.window(self, 0, (self.shape[0], math.prod(self.shape[1:])))
        return function_in("op", "flatten")(self)

    def squeeze(self, axis: Any = None, inplace: bool = False) -> Any:
        """Returns the array without axes of length 1 (all, or those named); as a view if `inplace`."""
        if not inplace:
            return function_in("op", "squeeze")(self, axis=axis)
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else list(axis)
        for a in axes if axis is not None else ():
            if not -self.ndim <= a < self.ndim:
                raise ShapeError(f"axis {a} is out of range for {self.ndim}d array")
            if self.shape[a] != 1:
                raise ShapeError(f"Squeeze target axis {a} must be size 1, got {self.shape[a]}")
        drop = {a % self.ndim for a in axes}
        shape = tuple(n for i, n in enumerate(self.shape) if n != 1 or i not in drop)
        return indexing.window(self, 0, shape or (1,))

    def broadcast_to(self, shape: Any) -> Any:
        """Returns the array stretched to `shape`; its axes of length 1 and missing leading axes stretch.

        Raises:
          ValueError: the shapes do not broadcast.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        old = (1,) * (len(shape) - self.ndim) + self.shape
        if len(shape) < self.ndim or any(a not in (1, b) for a, b in zip(old, shape, strict=True)):
            raise ShapeError(f"operands could not be broadcast together with remapped shapes[original->remapped]: "
                             f"{self.shape} and requested shape {shape}")
        source = self if old == self.shape else self.reshape(old)
        return function_in("op", "broadcast_to")(source, shape=shape)

    def broadcast_like(self, other: Any) -> Any:
        """Returns the array stretched to the shape of `other`."""
        return self.broadcast_to(other.shape)

    def diag(self, k: int = 0, **kwargs: Any) -> Any:
        """Returns the k-th diagonal, or for one axis the matrix with that diagonal."""
        return function_in("op", "diag")(self, k, **kwargs)

    def split_v2(self, *args: Any, **kwargs: Any) -> Any:
        """Returns `mx.nd.split_v2` of this array."""
        from symjax.ndarray.manipulation import split_v2

        return split_v2(self, *args, **kwargs)

    # ---- copies and conversions

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Returns the array in another type, converted as the operator `Cast` does; itself if equal and not `copy`."""
        name = dtype_name(np.float32 if dtype is None else dtype)
        if self._dtype.name == name:
            return self.copy() if copy else self
        return invoke(op_named("Cast"), (self,), {"dtype": name})

    def copy(self) -> Any:
        """Returns a copy on the same context."""
        return self.copyto(self.context)

    def copyto(self, other: Any) -> Any:
        """Copies the contents to another array (of the same shape, converting the type) or to a context.

        Returns:
          The array written to, or the new array; False if `other` is this array.
        """
        if isinstance(other, Context):
            made = self._from_jax(to_device(self._data, other), other)
            if STATE.recording and self._tape is not None:
                tape.record(_identity, (self._data,), ((), None), (self,), (made,))
            return made
        if not isinstance(other, NDArrayBase):
            raise TypeError(f"copyto does not support type {type(other)}")
        if other is self:
            warnings.warn("You are attempting to copy an array to itself", RuntimeWarning, stacklevel=2)
            return False
        if other.shape != self.shape:
            raise ShapeError(f"copyto: cannot copy an array of shape {self.shape} to one of shape {other.shape}")
        source = self if self._dtype == other._dtype else self.astype(other._dtype)
        if STATE.recording:
            tape.refuse_in_place(other)
        value = source._data if source.context == other.context else to_device(source._data, other.context)
        other._set_data(value)
        if STATE.recording and source._tape is not None:
            tape.record(_identity, (source._data,), ((), None), (source,), (other,))
        return other

    def as_in_context(self, context: Context) -> Any:
        """Returns this array if it is on `context`, otherwise a copy there."""
        return self if self.context == context else self.copyto(context)

    def as_nd_ndarray(self) -> Any:
        """Returns this array, which is a classic NDArray already."""
        return self

    def as_np_ndarray(self) -> Any:
        """Returns an `mx.np.ndarray` that shares the contents, and the place on the tape, of this array."""
        from symjax.numpy.multiarray import ndarray

        return indexing.alias(self, ndarray)

    def tostype(self, stype: str) -> Any:
        """Returns the array in another storage type ("default", "csr", "row_sparse")."""
        if stype == "default":
            return self
        if stype == "csr" and self.ndim != 2:
            raise ValueError(f"To convert to a CSR, the NDArray should be 2 Dimensional. Current shape is {self.shape}")
        made = class_of(stype)
        if STATE.recording and self._tape is not None:
            return function_in("op", "cast_storage")(self, stype=stype)
        return made._of_dense(self._data, self.context)

    # ---- differentiation

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Makes this array a variable with a gradient array of zeros; see `symjax.autograd`."""
        from symjax.autograd import mark_variables
        from symjax.ndarray.creation import zeros

        grad = zeros(self.shape, ctx=self.context, dtype=self._dtype.name, stype=stype)
        mark_variables([self], [grad], grad_req)

    @property
    def grad(self) -> Any:
        """The gradient array of a variable, None for other arrays."""
        return self._tape.grad if isinstance(self._tape, tape.Leaf) else None

    def detach(self) -> Any:
        """Returns an array that shares the contents, but is not on the tape."""
        return self._view_of(0, self.shape)

    def backward(self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Computes the gradients of this array; see `symjax.autograd.backward`."""
        from symjax import autograd

        autograd.backward([self], [out_grad], retain_graph, train_mode)


_identity = jax.jit(lambda xs, scalars, key: (xs[0],))
