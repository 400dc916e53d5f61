"""Functions that make NDArrays: from numbers, shapes, lists, numpy arrays and other libraries' arrays."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.base import as_shape, dtype_name, mx_real_t
from symjax.context import Context, current_context
from symjax.dlpack import from_dlpack, to_dlpack_for_read, to_dlpack_for_write
from symjax.lowering.errors import DTypeError
from symjax.lowering.params import NAMED_DTYPES
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import to_device

__all__ = ["arange", "array", "empty", "eye", "from_dlpack", "from_numpy", "full", "linspace", "ones",
           "to_dlpack_for_read", "to_dlpack_for_write", "zeros"]

_ON_HOST = 1 << 22  # elements below which an array is filled on the host: a compilation per shape would cost more


@functools.lru_cache(maxsize=256)
def _dtype(dtype: Any) -> np.dtype:
    name = dtype_name(mx_real_t if dtype is None else dtype)
    if name not in NAMED_DTYPES:
        raise DTypeError(f"dtype {name!r} is not one that NDArray has: {', '.join(NAMED_DTYPES)}")
    return jnp.dtype(name)


def _place(value: Any, ctx: Context | str | None) -> Any:
    ctx = current_context() if ctx is None else Context.from_text(ctx) if isinstance(ctx, str) else ctx
    return NDArray._from_jax(to_device(value, ctx), ctx)


def full(shape: Any, val: Any, ctx: Context | None = None, dtype: Any = mx_real_t, out: Any = None) -> Any:
    """Returns an array filled with a number.

    Args:
      shape: an int or a tuple.
      val: the number.
      ctx: where; the current context by default.
      dtype: the element type.
      out: an array to fill instead.
    """
    if out is not None:
        if out.stype == "default":
            out[:] = val
        else:
            out._fill(val)
        return out
    dims, kind = as_shape(shape), _dtype(dtype)
    if math.prod(dims) <= _ON_HOST:
        return _place(np.full(dims, np.asarray(val).astype(kind), kind), ctx)
    where = current_context() if ctx is None else ctx
    with jax.enable_x64(True):
        return NDArray._from_jax(jnp.full(dims, val, kind, device=where.layout(dims)), where)


def zeros(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None, **kwargs: Any) -> Any:
    """Returns an array of zeros.

    Args:
      shape: an int or a tuple.
      ctx: where; the current context by default.
      dtype: the element type, float32 by default.
      stype: the storage type; "default" by default.
      out: an array to fill instead.
    """
    if stype not in (None, "default"):
        return _sparse().zeros(stype, shape, ctx, dtype, **kwargs)
    return full(shape, 0, ctx, dtype, out=_out(kwargs))


def ones(shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> Any:
    """Returns an array of ones; arguments as for `zeros`."""
    return full(shape, 1, ctx, dtype, out=_out(kwargs))


def empty(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: str | None = None) -> Any:
    """Returns an array whose contents do not matter (zeros here); arguments as for `zeros`."""
    return zeros(shape, ctx, dtype, stype)


def _out(kwargs: dict[str, Any]) -> Any:
    out = kwargs.pop("out", None)
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"unknown arguments {', '.join(sorted(kwargs))}")
    return out


def _sparse() -> Any:
    from symjax.ndarray import sparse

    return sparse


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> Any:
    """Returns an array of a copy of the contents of another.

    Args:
      source_array: a number, nested list, numpy array, NDArray, or anything numpy can convert.
      ctx: where; the current context by default.
      dtype: the element type. By default that of an NDArray, float32 for everything else, numpy arrays included.

    Raises:
      TypeError: the source is not array-like.
    """
    if isinstance(source_array, NDArray):
        kind = _dtype(source_array._dtype if dtype is None else dtype)
        ctx = current_context() if ctx is None else ctx
        made: Any = source_array.copyto(ctx)
        return made if made._dtype == kind else made.astype(kind.name)
    if hasattr(source_array, "tocsr") and hasattr(source_array, "nnz"):
        return _sparse().array(source_array, ctx=ctx, dtype=dtype)
    kind = _dtype(dtype)
    try:
        host = _to_host(source_array, kind)
    except (TypeError, ValueError, OverflowError) as e:
        raise TypeError(f"source_array must be array like object: {e}") from None
    return _place(host, ctx)


def _to_host(source: Any, kind: np.dtype) -> np.ndarray:
    """A private copy: JAX may use the memory of the array it is given, and the caller may write to the source."""
    if isinstance(source, (list, tuple)) and any(isinstance(x, NDArray) for x in source):
        source = [x.asnumpy() if isinstance(x, NDArray) else x for x in source]
    host = np.asarray(source)
    if host.dtype == object:
        raise TypeError(f"{type(source).__name__} holds something other than numbers")
    with np.errstate(all="ignore"):
        return np.array(host.astype(kind), order="C", copy=None if host.dtype != kind else True)


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True, array_cls: type[NDArray] = NDArray) -> Any:
    """Returns an array of the contents and the type of a numpy array.

    Args:
      ndarray: the numpy array.
      zero_copy: share the memory where JAX can (it wants aligned memory); the numpy array becomes read-only.
      array_cls: the class of the result.

    Raises:
      ValueError: `zero_copy` of an array that is not C-contiguous.
    """
    if zero_copy:
        if not ndarray.flags["C_CONTIGUOUS"]:
            raise ValueError("Only c-contiguous arrays are supported for zero-copy")
        ndarray.flags["WRITEABLE"] = False
    value = ndarray if zero_copy else np.array(ndarray, order="C")
    return array_cls._from_jax(to_device(value, Context("cpu")), Context("cpu"))


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1,
           infer_range: bool | None = None, ctx: Context | None = None, dtype: Any = mx_real_t) -> Any:
    """Returns the numbers from `start` (0 if it is the only one) up to, not including, `stop` by `step`.

    Args:
      start, stop, step: as for Python's range; floats allowed.
      repeat: how often each number stands in the result.
      infer_range: deprecated, ignored.
      ctx: where; the current context by default.
      dtype: the element type.
    """
    if infer_range is not None:
        warnings.warn("`infer_range` argument has been deprecated", DeprecationWarning, stacklevel=2)
    if stop is None:
        start, stop = 0, start
    kind = _dtype(dtype)
    count = max(math.ceil((stop - start) / step), 0)
    # MXNet: every number is start + i * step in the result's type.
    numbers = np.asarray(start).astype(kind) + np.arange(count).astype(kind) * np.asarray(step).astype(kind)
    return _place(np.repeat(numbers.astype(kind), repeat), ctx)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None,
             dtype: Any = mx_real_t) -> Any:
    """Returns `num` evenly spaced numbers from `start` to `stop`, which is the last one if `endpoint`."""
    return _place(np.linspace(start, stop, num, endpoint=endpoint).astype(_dtype(dtype)), ctx)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> Any:
    """Returns ones on the k-th diagonal of an (N, M) matrix of zeros; M = 0 stands for N."""
    out = _out(kwargs)
    made = _place(np.eye(N, M or N, k).astype(_dtype(dtype)), ctx)
    return made if out is None else made.copyto(out)

