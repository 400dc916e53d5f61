"""NDArray functions that MXNet writes in Python over its operators."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from symjax.base import integer_types
from symjax.lowering.errors import DTypeError, ShapeError
from symjax.lowering.ops.opencv import decode
from symjax.ndarray._functions import function_in
from symjax.ndarray.creation import array
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import NDArrayBase, wait_for_all

__all__ = ["concatenate", "get_indexing_dispatch_code", "get_oshape_of_gather_nd_op", "histogram", "imdecode",
           "indexing_key_expand_implicit_axes", "moveaxis", "onehot_encode", "split_v2", "waitall"]


def waitall() -> None:
    """Blocks until everything is computed; errors of computations that still wait surface here."""
    wait_for_all()


def concatenate(arrays: list[Any], axis: int = 0, always_copy: bool = True) -> Any:
    """Returns NDArrays joined along an axis.

    Args:
      arrays: a list of arrays of one dtype, whose shapes agree but for `axis`.
      axis: the axis.
      always_copy: whether a list of one array gives a copy of it, not itself.

    Raises:
      ValueError: the list is empty, or shapes differ.
      TypeError: dtypes differ.
    """
    if not isinstance(arrays, list) or not arrays or not isinstance(arrays[0], NDArray):
        raise ShapeError("concatenate needs a list of at least one NDArray")
    if len(arrays) == 1:
        return arrays[0].copy() if always_copy else arrays[0]
    if any(a._dtype != arrays[0]._dtype for a in arrays):
        raise DTypeError(f"concatenate needs one dtype, got {', '.join(a._dtype.name for a in arrays)}")
    return function_in("op", "concat")(*arrays, dim=axis)


def moveaxis(tensor: Any, source: Any, destination: Any) -> Any:
    """Returns the array with the axes `source` at the places `destination`, the others in order."""
    try:
        src, dst = normalize_axis_tuple(source, tensor.ndim), normalize_axis_tuple(destination, tensor.ndim)
    except ValueError as e:
        raise ValueError(f"source and destination should be axes of an array with {tensor.ndim}: {e}") from None
    if len(src) != len(dst):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [n for n in range(tensor.ndim) if n not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return function_in("op", "transpose")(tensor, axes=tuple(order))


def onehot_encode(indices: Any, out: Any) -> Any:
    """Writes to the (n, k) array `out` the one-hot rows of n indices, and returns it."""
    rows = function_in("op", "one_hot")(indices, depth=out.shape[1], dtype=out._dtype.name)
    return rows.copyto(out)


def histogram(a: Any, bins: Any = 10, range: tuple[float, float] | None = None) -> Any:
    """Returns (counts, edges) of a histogram over all elements.

    Args:
      a: the array.
      bins: a number of equal bins, or an NDArray of edges.
      range: (lowest, highest) edge; the extremes of the data by default.
    """
    if isinstance(bins, NDArrayBase):
        return function_in("_internal", "_histogram")(data=a, bins=bins)
    if not isinstance(bins, integer_types):
        raise ValueError("bins argument should be either an integer or an NDArray")
    if range is None:
        warnings.warn("range is not specified, using numpy's result to ensure consistency with numpy", stacklevel=2)
        counts, edges = np.histogram(a.asnumpy(), bins=bins)
        return array(counts), array(edges)
    return function_in("_internal", "_histogram")(data=a, bin_cnt=bins, range=range)


def split_v2(ary: Any, indices_or_sections: int | tuple[int, ...], axis: int = 0, squeeze_axis: bool = False) -> Any:
    """Splits an array along an axis.

    Args:
      ary: the array.
      indices_or_sections: a number of equal parts, or a tuple of the places to cut at.
      axis: the axis.
      squeeze_axis: drop the axis, where every part has length 1.

    Returns:
      A list of arrays.

    Raises:
      ValueError: the axis does not divide into equal parts.
    """
    if isinstance(indices_or_sections, int):
        n = ary.shape[axis]
        if n % indices_or_sections:
            raise ValueError("array split does not result in an equal division")
        part = n // indices_or_sections
        indices = tuple(i * part for i in range(indices_or_sections))
    elif isinstance(indices_or_sections, tuple):
        indices = (0, *indices_or_sections)
    else:
        raise ValueError("indices_or_sections must either int or tuple of ints")
    return function_in("_internal", "_split_v2")(ary, indices, axis, squeeze_axis)


def imdecode(str_img: bytes, clip_rect: tuple[int, int, int, int] = (0, 0, 0, 0), out: Any = None, index: int = 0,
             channels: int = 3, mean: Any = None) -> Any:
    """Decodes an image file's bytes to (1, channels, height, width), RGB, float32 (deprecated; see `mx.image`).

    Args:
      str_img: the bytes of a JPEG, PNG, … file.
      clip_rect: (left, top, right, bottom) to cut out; all 0 for the whole image.
      out: a (n, channels, height, width) array to write image `index` of.
      index: see `out`.
      channels: 1 or 3.
      mean: a (channels, height, width) array to subtract.

    Raises:
      MissingLoweringError: neither OpenCV nor Pillow is installed.
      ValueError: the bytes are no image.
    """
    planes = decode(str_img, int(channels == 3), True).transpose(2, 0, 1)
    left, top, right, bottom = clip_rect
    if any(clip_rect):
        planes = planes[:, top:bottom, left:right]
    image = planes.astype(np.float32)
    if mean is not None:
        image = image - mean.asnumpy()
    if out is None:
        return array(image[None])
    out[index] = image
    return out


def indexing_key_expand_implicit_axes(key: Any, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], int]:
    """Returns a key with `...` and missing axes written out as slices, and -1 (MXNet: a code for 0-d masks)."""
    from symjax.ndarray.indexing import expand_key

    return expand_key(key, shape), -1


def get_indexing_dispatch_code(key: tuple[Any, ...]) -> int:
    """Returns 0 for a basic key, 1 for one with arrays or lists."""
    return int(any(isinstance(k, (NDArrayBase, np.ndarray, list, tuple)) for k in key))


def get_oshape_of_gather_nd_op(dshape: tuple[int, ...], ishape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape that `gather_nd` of shape `dshape` by indices of shape `ishape` gives."""
    return (*ishape[1:], *dshape[ishape[0]:])
