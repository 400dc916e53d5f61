"""Functions of `mx.np` about shapes: joining, splitting, turning, padding."""

from __future__ import annotations

from typing import Any

import numpy as onp

from symjax._numpy.front import define, is_number, not_supported
from symjax.base import integer_types
from symjax.lowering.errors import ShapeError


@define(symbolic=False)
def shape(F: Any, a: Any) -> Any:
    """Returns the shape of an array."""
    return a.shape


@define()
def broadcast_to(F: Any, array: Any, shape: Any) -> Any:
    """Returns the array stretched to `shape`; a number gives an array filled with it."""
    if onp.isscalar(array):
        return F.get("full")(shape, array)
    return F.npi.broadcast_to(array, shape)


@define(symbolic=False)
def broadcast_arrays(F: Any, *args: Any) -> Any:
    """Returns a list of the arrays stretched to their common shape.

    Raises:
      ValueError: the shapes do not broadcast.
    """
    try:
        common = onp.broadcast_shapes(*(a.shape for a in args))
    except ValueError as e:
        raise ShapeError(f"broadcast_arrays: {e}") from None
    if all(a.shape == common for a in args):
        return list(args)
    return [F.get("broadcast_to")(a, common) for a in args]


@define(symbolic=False)
def meshgrid(F: Any, *xi: Any, **kwargs: Any) -> Any:
    """Returns a list of the coordinates of a grid, one array for each vector.

    Args:
      *xi: vectors.
      **kwargs: `indexing`, "xy" (the first two axes swapped, the default) or "ij"; `copy=True` and `sparse=False`.
    """
    copy, sparse, indexing = kwargs.pop("copy", True), kwargs.pop("sparse", False), kwargs.pop("indexing", "xy")
    if kwargs:
        raise TypeError(f"meshgrid() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if not copy or sparse:
        raise NotImplementedError("meshgrid: only copy=True and sparse=False are supported")
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    axes = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        axes[:2] = 1, 0
    n = len(xi)
    return F.get("broadcast_arrays")(*(x.reshape((1,) * a + (-1,) + (1,) * (n - a - 1))
                                       for x, a in zip(xi, axes, strict=True)))


@define()
def expand_dims(F: Any, a: Any, axis: int) -> Any:
    """Returns the array with a new axis of length 1 before `axis`."""
    return F.npi.expand_dims(a, axis)


@define()
def swapaxes(F: Any, a: Any, axis1: int, axis2: int) -> Any:
    """Returns the array with two axes exchanged."""
    return F.npi.swapaxes(a, dim1=axis1, dim2=axis2)


@define()
def ravel(F: Any, x: Any, order: str = "C") -> Any:
    """Returns the elements along one axis."""
    if order == "F":
        raise NotImplementedError(f"order {order} is not supported")
    if is_number(x):
        return onp.reshape(x, -1)
    if isinstance(x, F.tensor):
        return F.npi.reshape(x, -1)
    raise not_supported(x, "ravel")


@define()
def tile(F: Any, A: Any, reps: Any) -> Any:
    """Returns the array repeated `reps` times, for each axis if `reps` is a tuple."""
    if is_number(A):
        return onp.tile(A, reps)
    return F.npi.tile(A, reps=reps)


@define()
def resize(F: Any, a: Any, new_shape: Any) -> Any:
    """Returns an array of `new_shape` with the elements of `a` in order, repeated as often as needed."""
    return F.npi.Custom(a, op_type="resize_fallback", new_shape=new_shape)


# ---- joining


@define()
def concatenate(F: Any, seq: Any, axis: Any = 0, out: Any = None) -> Any:
    """Returns arrays joined along an axis; None flattens them first."""
    return F.npi.concatenate(*seq, axis=axis, out=out)


@define()
def append(F: Any, arr: Any, values: Any, axis: Any = None) -> Any:
    """Returns `values` joined to the end of `arr` along an axis; None flattens both."""
    return F.npi.concatenate(arr, values, axis=axis)


@define()
def stack(F: Any, arrays: Any, axis: int = 0, out: Any = None) -> Any:
    """Returns arrays of one shape joined along a new axis."""
    return F.npi.stack(*_listed(arrays), axis=axis, out=out)


@define()
def vstack(F: Any, arrays: Any, out: Any = None) -> Any:
    """Returns arrays joined along the first axis; vectors become rows."""
    return F.npi.vstack(*_listed(arrays), out=out)


@define()
def row_stack(F: Any, arrays: Any) -> Any:
    """Returns arrays joined along the first axis; the same as `vstack`."""
    return F.npi.vstack(*_listed(arrays))


@define()
def column_stack(F: Any, tup: Any) -> Any:
    """Returns arrays joined along the second axis; vectors become columns."""
    return F.npi.column_stack(*tup)


@define()
def hstack(F: Any, arrays: Any) -> Any:
    """Returns arrays joined along the second axis, vectors along their only one."""
    return F.npi.hstack(*arrays)


@define()
def dstack(F: Any, arrays: Any) -> Any:
    """Returns arrays joined along the third axis."""
    return F.npi.dstack(*arrays)


def _listed(arrays: Any) -> list[Any]:
    if not hasattr(arrays, "__getitem__") and hasattr(arrays, "__iter__"):
        raise ValueError(f"expected iterable for arrays but got {type(arrays)}")
    return list(arrays)


# ---- splitting


def _parts(where: Any) -> tuple[list[int], int]:
    """The operator's `indices` and `sections` for the argument `indices_or_sections`."""
    if isinstance(where, integer_types) and not isinstance(where, bool):
        return [], int(where)
    if isinstance(where, (list, set, tuple)):
        return [0, *where], 0
    raise ValueError("indices_or_sections must be either int, or tuple / list / set of ints")


@define()
def split(F: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Returns a list of the parts of an array along an axis.

    Args:
      ary: array or symbol.
      indices_or_sections: how many equal parts, or where the parts after the first begin.
      axis: the axis.

    Raises:
      ValueError: equal parts are not possible (arrays).
    """
    places, sections = _parts(indices_or_sections)
    if F.symbolic:
        return F.npi.split(ary, places, axis, False, sections)
    if sections:
        if ary.shape[axis] % sections:
            raise ValueError("array split does not result in an equal division")
        places = [i * (ary.shape[axis] // sections) for i in range(sections)]
    return F.npi.split(ary, places, axis, False)


@define()
def array_split(F: Any, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Returns a list of the parts of an array along an axis; the first ones are longer if they cannot be equal."""
    places, sections = _parts(indices_or_sections)
    return F.npi.split(ary, places, axis, False, sections)


@define()
def hsplit(F: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Returns a list of the parts along the second axis, of a vector along its only one; see `split`."""
    _at_least(F, ary, 1, "hsplit")
    places, sections = _parts(indices_or_sections)
    return F.npi.hsplit(ary, places, 1, False, sections)


@define()
def vsplit(F: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Returns a list of the parts along the first axis; see `split`."""
    _at_least(F, ary, 2, "vsplit")
    return F.get("split")(ary, indices_or_sections, 0)


@define()
def dsplit(F: Any, ary: Any, indices_or_sections: Any) -> Any:
    """Returns a list of the parts along the third axis; see `split`."""
    _at_least(F, ary, 3, "dsplit")
    if F.symbolic:
        places, sections = _parts(indices_or_sections)
        return F.npi.dsplit(ary, places, 2, False, sections)
    return F.get("split")(ary, indices_or_sections, 2)


def _at_least(F: Any, ary: Any, n: int, name: str) -> None:
    if not F.symbolic and ary.ndim < n:
        raise ValueError(f"{name} only works on arrays of {n} or more dimensions")


# ---- turning


@define()
def flip(F: Any, m: Any, axis: Any = None, out: Any = None) -> Any:
    """Returns the array with the order of its elements reversed along an axis, several, or all (None)."""
    if is_number(m):
        return onp.flip(m, axis)
    if not isinstance(m, F.tensor):
        raise not_supported(m, "flip")
    return F.npi.flip(m, axis, out=out)


@define()
def flipud(F: Any, m: Any) -> Any:
    """Returns the array with its rows in reverse order."""
    return F.get("flip")(m, 0)


@define()
def fliplr(F: Any, m: Any) -> Any:
    """Returns the array with its columns in reverse order."""
    return F.get("flip")(m, 1)


@define()
def rot90(F: Any, m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Returns the array turned by `k` quarters from the first towards the second of two axes."""
    return F.npi.rot90(m, k=k, axes=axes)


# ---- padding

_PAD_KEYWORD = {"constant": "constant_values", "reflect": "reflect_type", "symmetric": "reflect_type",
                "maximum": "stat_length", "minimum": "stat_length", "edge": None}
_PAD_LATER = ("linear_ramp", "wrap", "median", "mean", "empty")


def _pad(F: Any, x: Any, pad_width: Any, mode: Any, kwargs: dict[str, Any]) -> Any:
    if onp.asarray(pad_width).dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    if not isinstance(pad_width, tuple):
        raise TypeError("`pad_width` must be tuple.")
    if callable(mode) or mode in _PAD_LATER:
        raise ValueError(f"mode {mode!r} is not supported.")
    if mode not in _PAD_KEYWORD:
        raise ValueError(f"mode {mode!r} is not one of {', '.join(_PAD_KEYWORD)}")
    allowed = _PAD_KEYWORD[mode]
    for key in kwargs:
        if key != allowed:
            raise ValueError(f"{key} keyword not in allowed keywords {[allowed] if allowed else []}")
    if mode == "constant":
        # MXNet: constant_values is checked and then forgotten; 0 is always taken.
        value = kwargs.get("constant_values", 0)
        if isinstance(value, tuple):
            raise TypeError("unsupported constant_values type: {'tuple'}.")
        return F.npi.pad(x, pad_width, mode="constant", constant_value=value)
    if allowed == "reflect_type":
        if kwargs.get("reflect_type", "even") not in ("even", None):
            raise ValueError(f"unsupported reflect_type '{kwargs['reflect_type']}'")
        return F.npi.pad(x, pad_width, mode=mode, reflect_type="even")
    if allowed == "stat_length" and kwargs.get("stat_length") is not None:
        raise ValueError(f"unsupported stat_length '{kwargs['stat_length']}'")
    return F.npi.pad(x, pad_width, mode=mode)


@define()
def pad(F: Any, x: Any, pad_width: Any = None, mode: Any = "constant", **kwargs: Any) -> Any:
    """Returns the array with elements added before and after each axis.

    Args:
      x: array or symbol.
      pad_width: a tuple of (before, after) for each axis.
      mode: "constant", "edge", "reflect", "symmetric", "maximum" or "minimum".
      **kwargs: `constant_values` (a number) for "constant".

    Raises:
      ValueError: another mode or keyword.
      TypeError: `pad_width` is no tuple of integers.
    """
    return _pad(F, x, pad_width, mode, kwargs)
