"""Reading and writing `a[key]` with MXNet's classic rules.

Integers, slices, None and Ellipsis select a box. A box that lies in one piece in memory is a view that writes through;
any other is copied. Lists and arrays select as in numpy (a copy); boolean masks are refused, as in MXNet. Where numpy
would give shape (), the result has the array's `scalar_shape`: (1,) for a classic array.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from symjax.base import integer_types, numeric_types
from symjax.ndarray import tape
from symjax.ndarray.storage import NDArrayBase, device_scalar, to_device
from symjax.ndarray.tape import STATE

_ARRAYS: tuple[type, ...] = (NDArrayBase, np.ndarray, list, tuple, range)
_INTS: tuple[type, ...] = (*integer_types, np.integer)
_SMALL = 1 << 16  # below it, filling on the host and copying costs less than compiling for the shape


class Box(NamedTuple):
    """A basic selection: per axis first index, count and step; the shape numpy would give; whether in one piece."""

    begin: tuple[int, ...]
    counts: tuple[int, ...]
    step: tuple[int, ...]
    shape: tuple[int, ...]
    contiguous: bool

    def offset(self, shape: tuple[int, ...]) -> int:
        flat = 0
        for b, n in zip(self.begin, shape, strict=True):
            flat = flat * n + b
        return flat if 0 not in self.counts else 0


def expand_key(key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Writes out `...` and missing axes as full slices.

    Raises:
      IndexError: more than one `...`, or more indices than axes.
      ValueError: a boolean mask, or an index of another type.
    """
    items = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, k in enumerate(items) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("Cannot use more than one ellipsis (`...`) for indexing")
    for k in items:
        _check_item(k)
    used = sum(k is not None and k is not Ellipsis for k in items)
    if used > len(shape):
        raise IndexError(f"too many indices ({used}) for array with {len(shape)} dimensions")
    at = dots[0] if dots else len(items)
    return (*items[:at], *(slice(None),) * (len(shape) - used), *items[at + bool(dots):])


def _check_item(k: Any) -> None:
    if type(k) is int or type(k) is slice:
        return
    if isinstance(k, (bool, np.bool_)) or (isinstance(k, (NDArrayBase, np.ndarray)) and k.dtype == np.bool_) or (
            isinstance(k, (list, tuple)) and np.asarray(k).dtype == np.bool_):
        raise ValueError("Cannot perform boolean indexing in legacy mode: use mx.nd.contrib.boolean_mask(data, mask), "
                         "or mask.nonzero() of numpy")
    if not (k is None or k is Ellipsis or isinstance(k, (slice, *_INTS, *_ARRAYS))):
        raise ValueError(f"NDArray does not support slicing with key {k} of type {type(k)}.")


def box_of(key: tuple[Any, ...], shape: tuple[int, ...]) -> Box:
    """Resolves an expanded basic key.

    Raises:
      IndexError: an integer is out of bounds.
      ValueError: a slice has step 0.
    """
    begin, count, step, result, axis = [], [], [], [], 0
    for k in key:
        if k is None:
            result.append(1)
            continue
        n = shape[axis]
        if isinstance(k, slice):
            k = slice(*(v if v is None else int(v) for v in (k.start, k.stop, k.step)))
            start, stop, stride = k.indices(n)
            length = len(range(start, stop, stride))
            result.append(length)
        else:
            start, length, stride = _bounded(int(k), axis, n), 1, 1
        begin.append(start)
        count.append(length)
        step.append(stride)
        axis += 1
    return Box(tuple(begin), tuple(count), tuple(step), tuple(result), _is_contiguous(count, step, shape))


def _bounded(index: int, axis: int, n: int) -> int:
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
    return index + n if index < 0 else index


def _is_contiguous(count: list[int], step: list[int], shape: tuple[int, ...]) -> bool:
    if math.prod(count) <= 1:
        return True
    partial = False
    for c, s, n in zip(reversed(count), reversed(step), reversed(shape), strict=True):
        if c > 1 and (s != 1 or partial):
            return False
        partial = partial or c < n
    return True


def get_item(a: Any, key: Any) -> Any:
    """Returns `a[key]` (see the module's text)."""
    shape = a.shape
    if isinstance(key, _INTS) and not isinstance(key, bool):
        i = _bounded(int(key), 0, shape[0])
        rest = shape[1:]
        return window(a, i * math.prod(rest), rest or a.scalar_shape)
    if (isinstance(key, tuple) and not key) or (isinstance(key, slice) and key == slice(None)):
        return a
    full = expand_key(key, shape)
    if any(isinstance(k, _ARRAYS) for k in full):
        arrays, structure = _advanced(full, shape)
        return _apply(_take_call(structure, a.scalar_shape), a, arrays)
    box = box_of(full, shape)
    new = box.shape or a.scalar_shape
    if box.contiguous:
        return window(a, box.offset(shape), new)
    if all(s == 1 for s in box.step):
        return _apply(_cut_call(box.counts, new), a, (np.array(box.begin, np.int64),))
    return _apply(_box_call(box), a, ())


def alias(a: Any, cls: type[Any]) -> Any:
    """Returns an array of another class that shares the contents of `a` and its place on the tape."""
    view = a._view_of(0, a.shape)
    view.__class__ = cls
    view._tape = a._tape
    return view


def window(a: Any, offset: int, shape: tuple[int, ...]) -> Any:
    """Returns a view of `shape` elements of `a` from a flat offset on; on the tape if `a` is."""
    view = a._view_of(offset, shape)
    if STATE.recording and a._tape is not None:
        tape.record(_window_call(offset, shape), (a._data,), ((), None), (a,), (view,))
    return view


def _apply(call: Callable[..., Any], a: Any, extra: tuple[Any, ...]) -> Any:
    value = a._data
    with jax.enable_x64(True):
        result = call((value,), extra, None)[0]
    made = a._from_jax(result, a.context)
    if STATE.recording and a._tape is not None:
        tape.record(call, (value,), (extra, None), (a,), (made,))
    return made


def overlap(a: Any, b: Any) -> bool:
    """Whether two arrays are windows on one array that have elements in common."""
    (of_a, i), (of_b, k) = ((getattr(x._lazy, "base", x), getattr(x._lazy, "offset", 0)) for x in (a, b))
    return of_a is of_b and a.size > 0 and b.size > 0 and i < k + b.size and k < i + a.size


@functools.lru_cache(maxsize=4096)
def _window_call(offset: int, shape: tuple[int, ...]) -> Callable[..., Any]:
    size = math.prod(shape)
    return jax.jit(lambda xs, extra, key: (xs[0].reshape(-1)[offset:offset + size].reshape(shape),))


@functools.lru_cache(maxsize=4096)
def _box_call(box: Box) -> Callable[..., Any]:
    return jax.jit(lambda xs, extra, key: (xs[0][_slices(box)].reshape(box.shape),))


@functools.lru_cache(maxsize=4096)
def _cut_call(count: tuple[int, ...], shape: tuple[int, ...]) -> Callable[..., Any]:
    """Like `_box_call` for steps of 1; where the box begins is an operand, so loops compile once."""

    def call(xs: Any, extra: Any, key: Any) -> Any:
        begin = [extra[0][i] for i in range(xs[0].ndim)]
        return (lax.dynamic_slice(xs[0], begin, count).reshape(shape),)

    return jax.jit(call)


def _slices(box: Box) -> tuple[slice, ...]:
    def one(b: int, c: int, s: int) -> slice:
        stop = b + c * s
        return slice(b, None if stop < 0 else stop, s)

    return tuple(one(b, c, s) for b, c, s in zip(box.begin, box.counts, box.step, strict=True))


@functools.lru_cache(maxsize=4096)
def _take_call(structure: tuple[Any, ...], scalar_shape: tuple[int, ...]) -> Callable[..., Any]:
    def call(xs: Any, arrays: Any, key: Any) -> Any:
        out = xs[0][_index(structure, arrays)]
        return (out if out.ndim else out.reshape(scalar_shape),)

    return jax.jit(call)


def _advanced(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Splits an expanded key into index arrays (operands) and a hashable structure with "array" in their places."""
    arrays, structure, axis = [], [], 0
    for k in key:
        if k is None:
            structure.append(None)
            continue
        if isinstance(k, slice):
            structure.append(("slice", k.start, k.stop, k.step))
        else:
            arrays.append(_index_array(k, axis, shape[axis]))
            structure.append("array")
        axis += 1
    return tuple(arrays), tuple(structure)


def _index_array(k: Any, axis: int, n: int) -> Any:
    if isinstance(k, NDArrayBase):
        return k._data
    host = np.asarray(k)
    host = host.astype(np.int64)
    bad = host[(host < -n) | (host >= n)]
    if bad.size:
        raise IndexError(f"index {bad.flat[0]} is out of bounds for axis {axis} with size {n}")
    return host


def _index(structure: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    rest = iter(arrays)

    def one(s: Any) -> Any:
        if s is None:
            return None
        if s == "array":
            i = next(rest)
            return i if jnp.issubdtype(i.dtype, jnp.integer) else i.astype(jnp.int64)  # MXNet: float indices truncate
        return slice(*s[1:])

    return tuple(one(s) for s in structure)


def set_item(a: Any, key: Any, value: Any) -> None:
    """Carries out `a[key] = value`; the value is broadcast and converted to the type of `a`.

    Raises:
      ValueError: the array is read-only, or the value does not fit.
      MXNetError: the array takes part in a recorded computation.
    """
    if not a.writable:
        raise ValueError("Cannot assign to readonly NDArray")
    if isinstance(key, slice) and key == slice(None) and a.ndim:  # a[:] = …, the common case
        box = Box((0,) * a.ndim, a.shape, (1,) * a.ndim, a.shape, True)
    else:
        full = expand_key(key, a.shape)
        if any(isinstance(k, _ARRAYS) for k in full):
            _set_advanced(a, full, value)
            return
        box = box_of(full, a.shape)
    if 0 in box.counts:
        return
    recorded = STATE.recording and (a._tape is not None or getattr(value, "_tape", None) is not None)
    whole = box.counts == a.shape and all(s == 1 for s in box.step)
    shape = box.shape or a.scalar_shape
    if isinstance(value, numeric_types) and not whole and not recorded:
        value = full_like_window(a, value, shape)
    new = prepare_value(a, value, shape)
    if whole and not recorded:
        a._set_data(new if new.shape == a.shape else _reshape(new, a.shape))
    elif box.contiguous and not recorded:
        a._view_of(box.offset(a.shape), shape)._set_data(new)
    elif all(s == 1 for s in box.step):
        _assign(a, value, new, _put_box_call(box.counts), (np.array(box.begin, np.int64),))
    else:
        _assign(a, value, new, _set_box_call(box), ())


def _set_advanced(a: Any, key: tuple[Any, ...], value: Any) -> None:
    arrays, structure = _advanced(key, a.shape)
    with jax.enable_x64(True):
        target = jax.eval_shape(lambda x, *i: x[_index(structure, i)], jax.ShapeDtypeStruct(a.shape, a._dtype), *arrays)
    _assign(a, value, prepare_value(a, value, target.shape or a.scalar_shape), _put_call(structure), arrays)


def _assign(a: Any, value: Any, new: Any, call: Callable[..., Any], extra: tuple[Any, ...]) -> None:
    old = a._data
    with jax.enable_x64(True):
        result = call((old, new), extra, None)[0]
    if STATE.recording and isinstance(value, NDArrayBase):
        tape.refuse_in_place(a)
        if value._tape is not None and value.shape == new.shape and value._dtype == new.dtype:
            a._set_data(result)
            tape.record(call, (old, new), (extra, None), (a, value), (a,))
            return
    elif STATE.recording:
        tape.refuse_in_place(a)
    a._set_data(result)


@functools.lru_cache(maxsize=4096)
def _set_box_call(box: Box) -> Callable[..., Any]:
    def call(xs: Any, extra: Any, key: Any) -> Any:
        base, value = xs
        return (base.at[_slices(box)].set(value.reshape(box.counts)),)

    return jax.jit(call)


@functools.lru_cache(maxsize=4096)
def _put_box_call(count: tuple[int, ...]) -> Callable[..., Any]:
    """Like `_set_box_call` for steps of 1; where the box begins is an operand, so loops compile once."""

    def call(xs: Any, extra: Any, key: Any) -> Any:
        base, value = xs
        begin = [extra[0][i] for i in range(base.ndim)]
        return (lax.dynamic_update_slice(base, value.reshape(count), begin),)

    return jax.jit(call)


@functools.lru_cache(maxsize=4096)
def _put_call(structure: tuple[Any, ...]) -> Callable[..., Any]:
    def call(xs: Any, arrays: Any, key: Any) -> Any:
        index = _index(structure, arrays)
        return (xs[0].at[index].set(xs[1].reshape(xs[0][index].shape)),)

    return jax.jit(call)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _convert(value: jax.Array, dtype: Any, shape: tuple[int, ...]) -> jax.Array:
    return jnp.broadcast_to(value.astype(dtype), shape)


@functools.partial(jax.jit, static_argnums=(1,))
def _reshape(value: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return value.reshape(shape)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _fill(value: jax.Array, dtype: Any, shape: tuple[int, ...]) -> jax.Array:
    return jnp.full(shape, value, dtype)


def full_like_window(a: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """Returns an NDArray of `shape` filled with a number, of the type and on the device of `a`."""
    if isinstance(value, (int, np.integer)) and abs(int(value)) > 1 << 24:
        return a._from_jax(to_device(np.full(shape, np.asarray(value).astype(a._dtype)), a.context), a.context)
    with jax.enable_x64(True):
        return a._from_jax(_fill(device_scalar(float(value), a.context), a._dtype, shape), a.context)


def prepare_value(a: Any, value: Any, shape: tuple[int, ...]) -> jax.Array:
    """Returns `value` as a JAX array of the type and device of `a`, broadcast to `shape`.

    Raises:
      ValueError: it cannot be broadcast.
      TypeError: it is no number, array or list.
    """
    dtype = a._dtype
    if isinstance(value, NDArrayBase):
        given: Any = value
        contents = given.tostype("default")._data
        data = contents if value.context == a.context else to_device(contents, a.context)
        trimmed = _trim(data.shape, shape)
        if data.shape == shape and data.dtype == dtype:
            return data
        with jax.enable_x64(True):
            return _convert(data if trimmed == data.shape else _reshape(data, trimmed), dtype, shape)
    try:
        host = np.asarray(value)
        if host.dtype == object:
            raise TypeError
        with np.errstate(all="ignore"):
            host = host.astype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{type(a).__name__} does not support assignment with non-array-like object {value!r:.80} "
                        f"of type {type(value)}") from None
    if host.ndim == 0 and math.prod(shape) > _SMALL:
        with jax.enable_x64(True):
            return to_device(_convert(to_device(host, a.context), dtype, shape), a.context)
    return to_device(np.array(np.broadcast_to(host.reshape(_trim(host.shape, shape)), shape), order="C"), a.context)


def _trim(have: tuple[int, ...], want: tuple[int, ...]) -> tuple[int, ...]:
    """Drops leading axes of length 1 that `want` lacks, and checks that the rest broadcasts."""
    out = have
    while len(out) > len(want) and out[0] == 1:
        out = out[1:]
    if len(out) > len(want) or any(x not in (1, y) for x, y in zip(reversed(out), reversed(want), strict=False)):
        raise ValueError(f"cannot assign a value of shape {have} to a selection of shape {want}")
    return out
