"""The class `mx.np.ndarray`, and the functions that make one from other data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as onp

from symjax._numpy.front import ARRAYS, Front
from symjax._numpy.methods import GONE, Methods, _operator, _unary, without
from symjax.context import Context, current_context
from symjax.ndarray import indexing as _indexing
from symjax.ndarray.creation import _dtype
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import to_device
from symjax.numpy import _protocol
from symjax.numpy._indexing import get_item, set_item

__all__ = ["array", "empty", "ndarray"]


def _in_place(name: str, verb: str) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        if not self.writable:
            raise ValueError(f"trying to {verb} a readonly ndarray")
        return self._front.get(name)(self, other, out=self)

    return method


@without([*GONE, "asscalar"])
class ndarray(Methods, NDArray):  # pyright: ignore[reportIncompatibleMethodOverride] - numpy's signatures
    """A dense array with numpy's rules: shape () for scalars, empty axes, broadcasting, boolean results and masks.

    Made by `mx.np.array`, `zeros`, …, by `NDArray.as_np_ndarray()`, and by every function of `mx.np` and `mx.npx`.
    The default type is float32. numpy's own functions take it: those that `mx.np` has are carried out by it, others on
    the host. Computations are asynchronous, as with `NDArray`.
    """

    __slots__ = ()
    is_numpy: ClassVar[bool] = True
    scalar_shape: ClassVar[tuple[int, ...]] = ()
    _front: ClassVar[Front] = ARRAYS

    @classmethod
    def _from_array(cls, value: Any, ctx: Context) -> Any:
        return value if isinstance(value, cls) else cls._from_jax(to_device(onp.array(value), ctx), ctx)

    # ---- what it is

    @property
    def dtype(self) -> Any:
        """The element type as a `numpy.dtype`."""
        return self._dtype

    def __repr__(self) -> str:
        text, ctx = repr(self.asnumpy()), self.ctx
        if "dtype=" in text:
            if self._dtype == onp.float32:
                text = text[: text.rindex(",")] + ")"
        elif self._dtype not in (onp.float32, onp.bool_):
            text = f"{text[:-1]}, dtype={self._dtype})"
        return text if ctx.device_type == "cpu" else f"{text[:-1]}, ctx={ctx})"

    def __str__(self) -> str:
        text, ctx = str(self.asnumpy()), self.ctx
        return text if ctx.device_type == "cpu" or self.ndim == 0 else f"{text} @{ctx}"

    def __format__(self, fmt: str) -> str:
        if self.ndim == 0:
            return format(self.item(), fmt)
        if fmt:
            raise TypeError("Cannot format mxnet.numpy.ndarray with format_spec")
        return str(self)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("The truth value of an ndarray with multiple elements is ambiguous.")
        if not self.size:
            warnings.warn("The truth value of an empty array is ambiguous; False is returned, an error to come",
                          DeprecationWarning, stacklevel=2)
        return self.size == 1 and bool(self.item())

    def __float__(self) -> float:
        return float(self._only())

    def __int__(self) -> int:
        return int(self._only())

    def __complex__(self) -> complex:
        return complex(self._only())

    def __index__(self) -> int:
        if self._dtype.kind not in "iu" or self.size != 1:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self.item())

    def _only(self) -> Any:
        if self.size != 1:
            raise TypeError("only size-1 arrays can be converted to Python scalars")
        return self.item()

    def __hash__(self) -> int:
        raise NotImplementedError("an mx.np.ndarray has no hash: its contents change")

    def item(self, *args: Any) -> Any:
        """Returns an element as a Python number: the only one, or that at an index."""
        return self.asnumpy().item(*args)

    def tolist(self) -> Any:
        """Returns the elements as nested lists of Python numbers."""
        return self.asnumpy().tolist()

    # ---- numpy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _protocol.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _protocol.call_function(func, types, args, kwargs)

    # ---- operators that symbols do not have

    __iadd__, __isub__ = _in_place("add", "add to"), _in_place("subtract", "subtract from")
    __imul__, __itruediv__ = _in_place("multiply", "multiply to"), _in_place("divide", "divide")
    __imod__, __imatmul__ = _in_place("mod", "take modulo from"), _in_place("matmul", "multiply to")
    __iand__, __ior__ = _in_place("bitwise_and", "combine"), _in_place("bitwise_or", "combine")
    __ixor__, __idiv__ = _in_place("bitwise_xor", "combine"), __itruediv__
    __and__, __or__, __xor__ = map(_operator, ("bitwise_and", "bitwise_or", "bitwise_xor"))
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __matmul__, __rmatmul__ = _operator("matmul"), _operator("matmul", True)
    __invert__, __ceil__ = map(_unary, ("invert", "ceil"))
    __floor__, __trunc__ = map(_unary, ("floor", "trunc"))

    def __round__(self, n: int = 0) -> Any:
        return self.round(n)

    # ---- indexing and shape

    def __getitem__(self, key: Any) -> Any:
        return get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        set_item(self, key, value)

    def reshape_view(self, *shape: Any, **kwargs: Any) -> Any:
        """Returns a view of another shape, with the rules of `NDArray.reshape`."""
        return NDArray.reshape(self, *shape, **kwargs)

    def broadcast_to(self, shape: Any) -> Any:
        """Returns the array stretched to `shape`."""
        return ARRAYS.get("broadcast_to")(self, shape)

    def nonzero(self) -> Any:
        """Returns the indices of the elements that are not zero; see `mx.np.nonzero`."""
        return ARRAYS.get("nonzero")(self)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Returns whether all elements along an axis, or of the array, are nonzero."""
        return ARRAYS.op.all(self, axis=axis, keepdims=keepdims, out=out)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Returns whether any element along an axis, or of the array, is nonzero."""
        return ARRAYS.op.any(self, axis=axis, keepdims=keepdims, out=out)

    # ---- copies and conversions

    def _cast(self, dtype: Any, copy: bool) -> Any:
        return self if not copy and _dtype(dtype) == self._dtype else ARRAYS.npi.cast(self, dtype=dtype)

    def copy(self, order: str = "C") -> Any:
        """Returns a copy on the same context."""
        if order != "C":
            raise NotImplementedError(f"ndarray.copy only supports order='C', while received {order}")
        return self.copyto(self.ctx)

    def copyto(self, other: Any) -> Any:
        """Copies the contents to another `mx.np.ndarray` or to a context; see `NDArray.copyto`."""
        if not isinstance(other, (ndarray, Context)):
            raise TypeError(f"copyto does not support type {type(other)}")
        return super().copyto(other)

    def as_in_ctx(self, ctx: Context) -> Any:
        """Returns this array if it is on `ctx`, otherwise a copy there."""
        return self if self.ctx == ctx else self.copyto(ctx)

    def as_in_context(self, context: Context) -> Any:
        """Returns this array if it is on `context`, otherwise a copy there; the old name of `as_in_ctx`."""
        return self.as_in_ctx(context)

    def as_nd_ndarray(self) -> NDArray:
        """Returns a classic array that shares the contents, and the place on the tape, of this one."""
        return _indexing.alias(self, NDArray)

    def tostype(self, stype: str) -> Any:
        """Returns this array for "default", the only storage type that arrays of `mx.np` have."""
        if stype != "default":
            raise AttributeError(f"mx.np arrays are dense: convert with as_nd_ndarray().tostype({stype!r})")
        return self

    # ---- differentiation

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Makes this array a variable with a gradient array of zeros; see `symjax.autograd`."""
        from symjax.autograd import mark_variables

        zeros = self._from_jax(to_device(onp.zeros(self.shape, self._dtype), self.ctx), self.ctx)
        mark_variables([self], [zeros], grad_req)

    @property
    def grad(self) -> Any:
        """The gradient array of a variable, None for other arrays."""
        made = super().grad
        return made if made is None or isinstance(made, ndarray) else made.as_np_ndarray()


def empty(shape: Any, dtype: Any = onp.float32, order: str = "C", ctx: Context | None = None) -> ndarray:
    """Returns an array whose contents do not matter (zeros here).

    Args:
      shape: an int or a tuple; () gives a scalar.
      dtype: the element type, float32 by default.
      order: "C".
      ctx: where; the current context by default.
    """
    if order != "C":
        raise NotImplementedError(f"`empty` only supports order equal to `C`, while received {order}")
    where = ctx or current_context()
    return ndarray._from_jax(to_device(onp.zeros(shape, _dtype(dtype)), where), where)


def array(object: Any, dtype: Any = None, ctx: Context | None = None) -> ndarray:
    """Returns an array of a copy of the contents of another object.

    Args:
      object: a number, nested list, numpy array or `mx.np.ndarray`.
      dtype: the element type. By default that of the object if it has one, otherwise float32.
      ctx: where; the current context by default.

    Raises:
      ValueError: the object is a classic NDArray.
      TypeError: it is not array-like, or the type is not one that arrays have.
    """
    where = ctx or current_context()
    if isinstance(object, NDArray) and not isinstance(object, ndarray):
        raise ValueError("an mx.np.ndarray is made from a classic NDArray by as_np_ndarray(), without a copy")
    if isinstance(object, ndarray):
        made = object.copyto(where)
        return made if dtype is None else made.astype(dtype, copy=False)
    kind = _dtype(getattr(object, "dtype", onp.float32) if dtype is None else dtype)
    try:
        host = onp.array(object, dtype=kind, order="C")
    except Exception as e:
        raise TypeError(str(e)) from None
    return ndarray._from_jax(to_device(host, where), where)
