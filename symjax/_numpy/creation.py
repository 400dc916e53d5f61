"""Functions of `mx.np` that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as onp

from symjax._numpy.front import define
from symjax.context import current_context

_float32 = onp.float32


def _c_order(order: str, what: str = "") -> None:
    if order != "C":
        raise NotImplementedError(f"{what}only order='C' is supported, got {order!r}".lstrip())


def _fixed(value: int) -> None:
    name = ("zeros", "ones")[value]

    def definition(F: Any, shape: Any, dtype: Any = _float32, order: str = "C", ctx: Any = None) -> Any:
        _c_order(order)
        kind = _float32 if dtype is None else dtype
        return getattr(F.npi, name)(shape=shape, ctx=ctx or current_context(), dtype=kind)

    definition.__doc__ = f"""Returns an array of {name}.

    Args:
      shape: an int or a tuple; () gives a scalar.
      dtype: the element type, float32 by default.
      order: "C".
      ctx: where; the current context by default.
    """
    define(name=name)(definition)

    def like(F: Any, a: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None) -> Any:
        _c_order(order)
        return F.npi.full_like(a, fill_value=value, dtype=dtype, ctx=ctx or current_context(), out=out)

    like.__doc__ = f"Returns an array of {name} of the shape, and unless `dtype` is given the type, of another."
    define(name=f"{name}_like")(like)


_fixed(0)
_fixed(1)


@define()
def full(F: Any, shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Any = None,
         out: Any = None) -> Any:
    """Returns an array filled with a number, or with an array that broadcasts to `shape`.

    Args:
      shape: an int or a tuple.
      fill_value: the number; an array gives its own type unless `dtype` is given.
      dtype: the element type; bool for a bool, otherwise float32 by default.
      order: "C".
      ctx: where; the current context by default.
      out: array to fill instead.
    """
    _c_order(order)
    if isinstance(fill_value, F.base):
        made = F.npi.broadcast_to(fill_value, shape)
        return made if dtype is None else made.astype(dtype)
    if isinstance(fill_value, bool):
        fill_value, dtype = int(fill_value), onp.bool_ if dtype is None else dtype
    return F.npi.full(shape=shape, value=fill_value, ctx=ctx or current_context(),
                      dtype=_float32 if dtype is None else dtype, out=out)


@define()
def full_like(F: Any, a: Any, fill_value: Any, dtype: Any = None, order: str = "C", ctx: Any = None,
              out: Any = None) -> Any:
    """Returns an array filled with a number, of the shape, and unless `dtype` is given the type, of another."""
    _c_order(order)
    value = int(fill_value) if isinstance(fill_value, bool) else fill_value
    return F.npi.full_like(a, fill_value=value, dtype=dtype, ctx=ctx or current_context(), out=out)


_EMPTY_DTYPES = {None: "None", bool: "bool", int: "int64", float: "float64", onp.bool_: "bool_", **{
    t: t.__name__ for t in (onp.int8, onp.uint8, onp.int32, onp.int64, onp.float16, onp.float32, onp.float64)}}


@define()
def empty_like(F: Any, prototype: Any, dtype: Any = None, order: str = "C", subok: bool = False,
               shape: Any = None) -> Any:
    """Returns an array whose contents do not matter, of the shape, and unless `dtype` is given the type, of another.

    Raises:
      NotImplementedError: another order, `subok`, a `shape`, or a type that arrays do not have.
    """
    _c_order(order, "empty_like: ")
    if subok or shape is not None:
        raise NotImplementedError("empty_like: subok and shape are not supported")
    if not isinstance(dtype, str):
        if isinstance(dtype, onp.dtype):
            dtype = dtype.type
        if dtype not in _EMPTY_DTYPES:
            raise NotImplementedError(f"empty_like: dtype {dtype} is not supported")
        dtype = _EMPTY_DTYPES[dtype]
    return F.npi.Custom(prototype, op_type="empty_like_fallback", dtype=dtype, order=order, subok=subok, shape=shape)


@define()
def arange(F: Any, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, ctx: Any = None) -> Any:
    """Returns the numbers from `start` (0 if it is the only one) up to, not including, `stop` by `step`.

    Args:
      start, stop, step: as for Python's range; floats allowed.
      dtype: the element type, float32 by default.
      ctx: where; the current context by default.
    """
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if start is None and stop is None:
        raise ValueError("start and stop cannot be both None")
    if step == 0:
        raise ZeroDivisionError("step cannot be 0")
    return F.npi.arange(start=start, stop=stop, step=step, dtype="float32" if dtype is None else dtype,
                        ctx=ctx or current_context())


@define()
def identity(F: Any, n: int, dtype: Any = None, ctx: Any = None) -> Any:
    """Returns the (n, n) identity matrix, float32 by default."""
    if not isinstance(n, int):
        raise TypeError("Input 'n' should be an integer")
    if n < 0:
        raise ValueError("Input 'n' cannot be negative")
    return F.npi.identity(shape=(n, n), ctx=ctx or current_context(), dtype=_float32 if dtype is None else dtype)


@define()
def eye(F: Any, N: int, M: int | None = None, k: int = 0, dtype: Any = _float32, **kwargs: Any) -> Any:
    """Returns ones on the k-th diagonal of an (N, M) matrix of zeros; M is N by default. Keyword `ctx`."""
    ctx = kwargs.pop("ctx", None)
    if "order" in kwargs:
        raise NotImplementedError("eye: order is not supported")
    if kwargs:
        raise TypeError(f"eye: unknown or unsupported keywords {', '.join(sorted(kwargs))}")
    return F.npi.eye(N, M, k, ctx or current_context(), dtype)


@define()
def linspace(F: Any, start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, ctx: Any = None) -> Any:
    """Returns `num` evenly spaced numbers from `start` to `stop`, which is the last one if `endpoint`.

    Args:
      start, stop: numbers.
      num: how many.
      endpoint: whether `stop` is among them.
      retstep: also return the distance between two numbers.
      dtype: the element type, float32 by default.
      axis: 0.
      ctx: where; the current context by default.
    """
    _numbers("linspace", start, stop, axis, F)
    made = F.npi.linspace(start=start, stop=stop, num=num, endpoint=endpoint, ctx=ctx or current_context(), dtype=dtype)
    # MXNet: the step counts the end point, whether or not it is there.
    return (made, (stop - start) / (num - 1)) if retstep else made


@define()
def logspace(F: Any, start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0,
             dtype: Any = None, axis: int = 0, ctx: Any = None) -> Any:
    """Returns `base` to the powers `linspace(start, stop, num, endpoint)`."""
    _numbers("logspace", start, stop, axis, F)
    return F.npi.logspace(start=start, stop=stop, num=num, endpoint=endpoint, base=base, ctx=ctx or current_context(),
                          dtype=dtype)


def _numbers(name: str, start: Any, stop: Any, axis: int, F: Any) -> None:
    if any(isinstance(v, (list, tuple, onp.ndarray, F.base)) for v in (start, stop)):
        raise NotImplementedError(f"{name}: start and stop must be numbers")
    if axis != 0:
        raise NotImplementedError(f"{name}: only axis 0 is supported")


def _window(name: str, what: str) -> None:
    def definition(F: Any, M: int, dtype: Any = _float32, ctx: Any = None) -> Any:
        return getattr(F.npi, name)(M, dtype=dtype, ctx=ctx or current_context())

    definition.__doc__ = f"Returns the {what} window of `M` points."
    define(name=name)(definition)


for _name in ("hanning", "hamming", "blackman"):
    _window(_name, _name.capitalize())


@define()
def indices(F: Any, dimensions: Any, dtype: Any = onp.int32, ctx: Any = None) -> Any:
    """Returns the index of every element of a grid: an array of shape (len(dimensions), *dimensions)."""
    if not isinstance(dimensions, (tuple, list)):
        raise ValueError("The dimensions must be sequence of ints")
    return F.npi.indices(dimensions=dimensions, dtype=dtype, ctx=ctx or current_context())


@define()
def tril(F: Any, m: Any, k: int = 0) -> Any:
    """Returns the array with zeros above the k-th diagonal of its last two axes."""
    return F.npi.tril(m, k)
