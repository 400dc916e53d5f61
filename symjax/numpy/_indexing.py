"""Reading and writing `a[key]` with numpy's rules, over those of classic arrays (`symjax.ndarray.indexing`).

Beside them: a scalar has the shape () and takes the index () alone; boolean arrays select the elements where they are
True, alone or among other indices; True and False stand for a new axis of length 1 or 0.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from symjax._numpy.front import is_number
from symjax.ndarray import indexing
from symjax.ndarray.storage import NDArrayBase


def get_item(a: Any, key: Any) -> Any:
    """Returns `a[key]`: a view of one piece of memory, otherwise a copy.

    Raises:
      IndexError: an index is out of bounds, there are too many, or a mask does not have the shape of its axes.
    """
    key, new_axis = _without_flags(key)
    if new_axis is not None:
        made = indexing.get_item(get_item(a, key), (None,))
        return made if new_axis else indexing.get_item(made, slice(0, 0))
    key = _without_masks(key, a.shape)
    _check_scalar(a, key)
    return indexing.get_item(a, key)


def set_item(a: Any, key: Any, value: Any) -> None:
    """Carries out `a[key] = value`; the value is broadcast and converted to the type of `a`.

    Raises:
      TypeError: the value is a classic NDArray.
      IndexError: as for reading.
      ValueError: the value does not fit.
    """
    if isinstance(value, NDArrayBase) and not isinstance(value, type(a)):
        raise TypeError("cannot assign a classic NDArray to an mx.np.ndarray: convert it with as_np_ndarray()")
    key, new_axis = _without_flags(key)
    if new_axis is False:
        return
    if _is_mask(key) and key.shape == a.shape and is_number(value):
        _fill(a, key, value)
        return
    key = _without_masks(key, a.shape)
    _check_scalar(a, key)
    indexing.set_item(a, key, value)


def _check_scalar(a: Any, key: Any) -> None:
    if not a.ndim and key not in ((), Ellipsis) and any(
            k is not None and k is not Ellipsis for k in (key if isinstance(key, tuple) else (key,))):
        raise IndexError("scalar tensor can only accept `()` as index")


def _is_flag(k: Any) -> bool:
    return isinstance(k, (bool, onp.bool_)) or (isinstance(k, (NDArrayBase, onp.ndarray)) and k.ndim == 0
                                               and k.dtype == onp.bool_)


def _without_flags(key: Any) -> tuple[Any, bool | None]:
    """Separates scalar booleans from a key: the rest, and whether all of them are True (None if there are none)."""
    items = key if isinstance(key, tuple) else (key,)
    flags = [bool(k) for k in items if _is_flag(k)]
    if not flags:
        return key, None
    return tuple(k for k in items if not _is_flag(k)), all(flags)


def _as_mask(k: Any) -> Any:
    """The key as an array if it is a list of booleans."""
    if isinstance(k, list) and k:
        host = onp.asarray(k) if not any(isinstance(x, NDArrayBase) for x in k) else None
        if host is not None and host.dtype == onp.bool_:
            return host
    return k


def _is_mask(k: Any) -> bool:
    return isinstance(k, (NDArrayBase, onp.ndarray)) and k.dtype == onp.bool_


def _without_masks(key: Any, shape: tuple[int, ...]) -> Any:
    """Replaces boolean arrays by the integer arrays that select the same elements; reads them on the host."""
    items = [_as_mask(k) for k in key] if isinstance(key, tuple) else [_as_mask(key)]
    if not any(_is_mask(k) for k in items):
        return key
    used = sum(k.ndim if _is_mask(k) else k is not None and k is not Ellipsis for k in items)
    made, axis = [], 0
    for k in items:
        if k is Ellipsis:
            axis += len(shape) - used
        elif _is_mask(k):
            _check_mask(k, shape, axis)
            made.extend(onp.nonzero(onp.asarray(k)))
            axis += k.ndim
            continue
        elif k is not None:
            axis += 1
        made.append(k)
    return tuple(made)


def _check_mask(mask: Any, shape: tuple[int, ...], axis: int) -> None:
    if axis + mask.ndim > len(shape):
        raise IndexError(f"too many indices: a mask of {mask.ndim} axes from axis {axis} on, for an array with "
                         f"{len(shape)}")
    for i, (have, want) in enumerate(zip(mask.shape, shape[axis:], strict=False)):
        if have != want:
            raise IndexError(f"boolean index did not match indexed array along dimension {axis + i}; dimension is "
                             f"{want} but corresponding boolean dimension is {have}")


def _fill(a: Any, mask: Any, value: Any) -> None:
    """Writes a number where the mask is True, without reading the mask."""
    where = type(a)._from_array(mask, a.ctx)
    number = int(value) if isinstance(value, (bool, onp.bool_)) else value
    type(a)._front.npi.boolean_mask_assign_scalar(a, where, number, start_axis=0, out=a)
