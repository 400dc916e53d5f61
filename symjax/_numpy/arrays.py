"""Functions of `mx.np` that sum, sort, search, insert and multiply."""

from __future__ import annotations

from typing import Any

import numpy as onp

from symjax._numpy.front import define, is_number
from symjax.base import integer_types
from symjax.ndarray import indexing

# ---- reductions


@define()
def mean(F: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Returns the mean over an axis, several, or all (None); a float."""
    return F.npi.mean(a, axis=axis, dtype=dtype, keepdims=keepdims, out=out)


@define()
def std(F: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0,
        keepdims: bool = False) -> Any:
    """Returns the standard deviation over an axis, several, or all; `ddof` is taken off the number of elements."""
    return F.npi.std(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, out=out)


@define()
def var(F: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0,
        keepdims: bool = False) -> Any:
    """Returns the variance over an axis, several, or all; `ddof` is taken off the number of elements."""
    return F.npi.var(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, out=out)


@define()
def average(F: Any, a: Any, axis: Any = None, weights: Any = None, returned: bool = False, out: Any = None) -> Any:
    """Returns the weighted mean; with `returned` also the sum of the weights."""
    if weights is None:
        return F.npi.average(a, axis=axis, weights=None, returned=returned, weighted=False, out=out)
    return F.npi.average(a, axis=axis, weights=weights, returned=returned, out=out)


@define()
def argmax(F: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Returns the index of the first largest element along an axis, or of all (None); int64."""
    return F.npi.argmax(a, axis=axis, keepdims=False, out=out)


@define()
def argmin(F: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Returns the index of the first least element along an axis, or of all (None); int64."""
    return F.npi.argmin(a, axis=axis, keepdims=False, out=out)


@define()
def percentile(F: Any, a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None,
               interpolation: str = "linear", keepdims: bool = False) -> Any:
    """Returns the value below which `q` percent of the elements lie.

    Args:
      a: array or symbol.
      q: a number, or an array of them, which become the first axis of the result.
      axis: an axis, several, or None for all.
      out: array to write instead of a new one.
      overwrite_input: not supported.
      interpolation: "linear", "lower", "higher", "midpoint" or "nearest".
      keepdims: keep reduced axes with length 1.
    """
    return _percentile(F, a, q, 1, axis, out, overwrite_input, interpolation, keepdims)


@define()
def quantile(F: Any, a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None,
             interpolation: str = "linear", keepdims: bool = False) -> Any:
    """Returns the value below which the fraction `q` of the elements lies; see `percentile`."""
    return _percentile(F, a, q, 100, axis, out, overwrite_input, interpolation, keepdims)


def _percentile(F: Any, a: Any, q: Any, times: int, axis: Any, out: Any, overwrite: Any, how: str, keep: bool) -> Any:
    if overwrite is not None:
        raise NotImplementedError("overwrite_input is not supported yet")
    common = {"axis": axis, "interpolation": how, "keepdims": keep, "out": out}
    if is_number(q):
        return F.npi.percentile(a, q_scalar=q * times if times != 1 else q, **common)
    return F.npi.percentile(a, q * times if times != 1 else q, q_scalar=None, **common)


@define()
def histogram(F: Any, a: Any, bins: Any = 10, range: Any = None, normed: Any = None, weights: Any = None,
              density: Any = None) -> Any:
    """Returns how many elements lie in each bin, and the edges of the bins.

    Args:
      a: array or symbol.
      bins: how many equal bins, or an array of their edges.
      range: (low, high) for a number of bins.
      normed, weights, density: not supported.
    """
    if normed is True or weights is not None or density is True:
        raise NotImplementedError("histogram: normed, weights and density are not supported")
    if is_number(bins):
        if range is None:
            raise NotImplementedError("histogram: give a range with the number of bins")
        return F.npi.histogram(a, bin_cnt=bins, range=range)
    if isinstance(bins, F.base):
        return F.npi.histogram(a, bins)
    raise NotImplementedError(f"histogram: bins must be a number or an mx.np array, got {type(bins)}")


@define()
def bincount(F: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Returns how often each integer from 0 on occurs, or the sums of their weights.

    Raises:
      ValueError: `minlength` is negative.
    """
    if not isinstance(x, F.base):
        raise TypeError("bincount: the input must be an array")
    if minlength < 0:
        raise ValueError("Minlength value should greater than 0")
    if weights is None:
        return F.npi.bincount(x, minlength=minlength, has_weights=False)
    return F.npi.bincount(x, weights=weights, minlength=minlength, has_weights=True)


@define()
def diff(F: Any, a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Returns the differences of neighbours along an axis, taken `n` times."""
    if prepend or append:
        raise NotImplementedError("prepend and append options are not supported yet")
    return F.npi.diff(a, n=n, axis=axis)


@define()
def ediff1d(F: Any, ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Returns the differences of neighbours of the flattened array, between `to_begin` and `to_end`."""
    first, last = isinstance(to_begin, F.tensor), isinstance(to_end, F.tensor)
    given = [v for v, is_array in ((to_begin, first), (to_end, last)) if is_array]
    return F.npi.ediff1d(ary, *given, to_begin_arr_given=first, to_end_arr_given=last,
                         to_begin_scalar=None if first else to_begin, to_end_scalar=None if last else to_end)


# ---- order and search


@define()
def sort(F: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    """Returns the array sorted along an axis, or flattened and sorted (None)."""
    _no_order(order)
    return F.npi.sort(data=a, axis=axis, is_ascend=True)


@define()
def argsort(F: Any, a: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    """Returns the indices that would sort the array along an axis, or flattened (None); int64."""
    _no_order(order)
    return F.npi.argsort(data=a, axis=axis, is_ascend=True, dtype="int64")


def _no_order(order: Any) -> None:
    if order is not None:
        raise NotImplementedError("order is not supported: arrays have no named fields")


@define(symbolic=False)
def nonzero(F: Any, a: Any) -> Any:
    """Returns the indices of the elements that are not zero: a tuple of one int64 vector for each axis."""
    found = F.npi.nonzero(a).transpose()
    return tuple(found[i] for i in range(len(found)))


@define()
def unique(F: Any, ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: Any = None) -> Any:
    """Returns the different elements in order, and what else is asked for.

    Args:
      ar: array or symbol.
      return_index: where each occurs first.
      return_inverse: the index of every element of `ar` among the different ones.
      return_counts: how often each occurs.
      axis: compare slices along this axis; None flattens.
    """
    made = F.npi.unique(ar, return_index, return_inverse, return_counts, axis)
    return tuple(made) if isinstance(made, list) and not F.symbolic else made


@define()
def take(F: Any, a: Any, indices: Any, axis: Any = None, mode: str = "raise", out: Any = None) -> Any:
    """Returns the elements at `indices` along an axis, or of the flattened array (None).

    Args:
      a: array or symbol.
      indices: array or symbol.
      axis: the axis.
      mode: what to do with indices out of bounds: "clip", "wrap" or "raise".
      out: array to write instead of a new one.
    """
    if mode not in ("wrap", "clip", "raise"):
        raise NotImplementedError(f"function take does not support mode '{mode}'")
    if axis is None:
        return F.npi.take(F.npi.reshape(a, -1), indices, 0, mode, out=out)
    return F.npi.take(a, indices, axis, mode, out=out)


@define()
def unravel_index(F: Any, indices: Any, shape: Any, order: str = "C") -> Any:
    """Returns the coordinates in an array of `shape` that flat indices stand for."""
    if order != "C":
        raise NotImplementedError("unravel_index: only order='C' is supported")
    if is_number(indices) and not F.symbolic:
        return onp.unravel_index(indices, shape)
    made = F.npi.Custom(indices, op_type="unravel_index_fallback", shape=shape)
    return made if F.symbolic else tuple(made)


@define()
def diag_indices_from(F: Any, arr: Any) -> Any:
    """Returns the indices of the main diagonal of an array of equal axes."""
    made = F.npi.diag_indices_from(arr)
    return made if F.symbolic else tuple(made)


def _shares(name: str) -> None:
    def definition(F: Any, a: Any, b: Any, max_work: Any = None) -> Any:
        return F.npi.share_memory(a, b) if F.symbolic else indexing.overlap(a, b)

    definition.__doc__ = "Returns whether two arrays share elements in memory."
    define(name=name)(definition)


_shares("shares_memory")
_shares("may_share_memory")


# ---- inserting and deleting


@define()
def insert(F: Any, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Returns the array with `values` inserted before the places `obj` along an axis, or flattened (None).

    Args:
      arr: array or symbol.
      obj: an integer, a slice, or an array of integers.
      values: a number or an array.
      axis: the axis.
    """
    number = is_number(values)
    if not isinstance(arr, F.base):
        raise TypeError(f"'arr' can not support type {type(arr)}")
    if not number and not isinstance(values, F.base):
        raise TypeError(f"'values' can not support type {type(values)}")
    data, attrs = ([arr], {"val": values}) if number else ([arr, values], {})
    if isinstance(obj, slice):
        return F.npi.insert_slice(*data, **attrs, **_slice(obj), axis=axis)
    if isinstance(obj, integer_types):
        return F.npi.insert_scalar(*data, **attrs, int_ind=obj, axis=axis)
    if isinstance(obj, F.base):
        return F.npi.insert_tensor(*data, obj, **attrs, axis=axis)
    raise TypeError(f"'obj' can not support type {type(obj)}")


@define()
def delete(F: Any, arr: Any, obj: Any, axis: Any = None) -> Any:
    """Returns the array without the places `obj` (an integer, a slice or an array) along an axis, or flattened."""
    if not isinstance(arr, F.base):
        raise TypeError(f"'arr' can not support type {type(arr)}")
    if isinstance(obj, slice):
        return F.npi.delete(arr, **_slice(obj), axis=axis)
    if isinstance(obj, integer_types):
        return F.npi.delete(arr, int_ind=obj, axis=axis)
    if isinstance(obj, F.base):
        return F.npi.delete(arr, obj, axis=axis)
    raise TypeError(f"'obj' can not support type {type(obj)}")


def _slice(obj: slice) -> dict[str, Any]:
    return {"start": obj.start, "stop": obj.stop, "step": 1 if obj.step is None else obj.step}


# ---- products


@define()
def tensordot(F: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    """Returns the sum of products over some axes.

    Args:
      a, b: arrays or symbols.
      axes: how many of the last of `a` and the first of `b`, or (axes of `a`, axes of `b`).

    Raises:
      ValueError: the two lists of axes differ in length.
    """
    if onp.isscalar(axes):
        return F.npi.tensordot_int_axes(a, b, axes)
    if len(axes) != 2:
        raise ValueError("Axes must consist of two arrays.")
    of_a, of_b = ((x,) if onp.isscalar(x) else x for x in axes)
    if len(of_a) != len(of_b):
        raise ValueError("Axes length mismatch")
    return F.npi.tensordot(a, b, of_a, of_b)


@define()
def inner(F: Any, a: Any, b: Any) -> Any:
    """Returns the sum of products over the last axes."""
    return F.get("tensordot")(a, b, [-1, -1])


@define()
def outer(F: Any, a: Any, b: Any) -> Any:
    """Returns the products of every element of `a` with every one of `b`, both flattened."""
    return F.get("tensordot")(a.flatten(), b.flatten(), 0)


@define()
def vdot(F: Any, a: Any, b: Any) -> Any:
    """Returns the sum of products of the elements, both flattened."""
    return F.get("tensordot")(a.flatten(), b.flatten(), 1)


@define()
def einsum(F: Any, *operands: Any, **kwargs: Any) -> Any:
    """Returns the sum of products that subscripts describe: `einsum("ij,jk->ik", a, b)`.

    Args:
      *operands: the subscripts and the arrays.
      **kwargs: `out`, and `optimize` (whether to choose the order of products).
    """
    optimize, out = kwargs.pop("optimize", False), kwargs.pop("out", None)
    if kwargs:
        raise TypeError(f"einsum: unknown keywords {', '.join(sorted(kwargs))}")
    return F.npi.einsum(*operands[1:], subscripts=operands[0], out=out, optimize=int(optimize))


@define()
def polyval(F: Any, p: Any, x: Any) -> Any:
    """Returns the values at `x` of the polynomial with coefficients `p`, the highest power first."""
    kinds = isinstance(p, F.base), isinstance(x, F.base)
    if kinds == (True, True):
        return F.npi.polyval(p, x)
    if kinds == (False, False):
        return onp.polyval(p, x)
    raise TypeError(f"polyval: p and x must both be mx.np arrays, or neither; got {type(p)} and {type(x)}")
