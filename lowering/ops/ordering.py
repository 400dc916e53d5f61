"""Sorting: topk, sort, argsort. Ties stay in index order; NaN counts as the greatest value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import axis_of
from symjax.lowering.params import Params, param
from symjax.lowering.registry import op, output_dtype

Order = Callable[[Array, int, bool], Array]
IndexType = Literal["float16", "float32", "float64", "int32", "int64", "uint8"]


class TopkParams(Params):
    axis: int | None = param(-1, doc="Axis to search; None: the flattened array.")
    k: int = param(1, doc="How many; below 1: all.")
    ret_typ: Literal["both", "indices", "mask", "value"] = param("indices", doc="What is returned.")
    is_ascend: bool = param(False, doc="The smallest instead of the largest.")
    dtype: IndexType = param("float32", doc="Type of returned indices; float32 is exact up to 2**24 only.")


class SortParams(Params):
    axis: int | None = param(-1, doc="Axis to sort; None: the flattened array.")
    is_ascend: bool = param(True, doc="Smallest first.")


class ArgsortParams(SortParams):
    dtype: IndexType = param("float32", doc="Type of the indices; float32 is exact up to 2**24 only.")


def _flat(data: Array, axis: int | None) -> tuple[Array, int]:
    return (data.reshape(-1), 0) if axis is None else (data, axis_of(axis, data.ndim))


def stable_order(x: Array, axis: int, ascend: bool) -> Array:
    """Indices (int32) that sort `x`; stable in both directions."""
    key = lax.stop_gradient(x)
    key = key if ascend else jnp.flip(key, axis)
    at = lax.broadcasted_iota(jnp.int32, key.shape, axis)
    index = lax.sort((key, at), dimension=axis, num_keys=1, is_stable=True)[1]
    # Sorting the reversed array and reversing the result keeps the order of ties.
    return index if ascend else key.shape[axis] - 1 - jnp.flip(index, axis)


def packed_order(x: Array, axis: int, ascend: bool) -> Array:
    """As `stable_order`, by sorting numbers of 64 bits that hold the value and, below, the index.

    XLA sorts one key without a comparison function five times faster on the CPU. Types of 64 bits do not fit.
    """
    if x.dtype.name not in ("float32", "float16", "bfloat16", "int32", "int8", "uint8"):
        return stable_order(x, axis, ascend)
    key = lax.stop_gradient(x)
    top = jnp.uint32(1 << 31)
    if jnp.issubdtype(key.dtype, jnp.floating):
        bits = lax.bitcast_convert_type(_comparable(key.astype(jnp.float32)), jnp.uint32)
        bits = jnp.where(bits >= top, ~bits, bits | top)
    else:
        bits = lax.bitcast_convert_type(key.astype(jnp.int32), jnp.uint32) ^ top
    bits = bits if ascend else ~bits
    at = lax.broadcasted_iota(jnp.uint32, key.shape, axis).astype(jnp.uint64)
    packed = lax.sort((bits.astype(jnp.uint64) << jnp.uint64(32)) | at, dimension=axis, is_stable=False)
    return (packed & jnp.uint64(0xFFFFFFFF)).astype(jnp.int32)


def _comparable(x: Array) -> Array:
    """One zero and one NaN in place of several."""
    return jnp.where(jnp.isnan(x), jnp.asarray(jnp.nan, x.dtype), jnp.where(x == 0, jnp.zeros((), x.dtype), x))


def greatest(x: Array, axis: int, k: int, order: Order) -> Array:
    """Indices (int32) of the k greatest, in order."""
    if x.dtype != jnp.float32 or 4 * k > x.shape[axis]:
        return lax.slice_in_dim(order(x, axis, False), 0, k, axis=axis)
    key = jnp.moveaxis(_comparable(lax.stop_gradient(x)), axis, -1)
    return jnp.moveaxis(lax.top_k(key, k)[1], -1, axis)


def _topk_types(p: TopkParams, ins: list[str | None], outs: list[str | None]) -> tuple[Sequence[str | None],
                                                                                     Sequence[str | None]]:
    known = ins[0] if p.ret_typ == "indices" else ins[0] or outs[0]
    return [known], {"indices": [p.dtype], "mask": [known]}.get(p.ret_typ, [known, p.dtype])


@op("topk", aliases=("_npx_topk",), params=TopkParams, infer_types=_topk_types,
    outputs=lambda p: 2 if p.ret_typ in ("both", "value") else 1, num_visible=lambda p: 2 if p.ret_typ == "both" else 1)
def topk(p: TopkParams, data: Array) -> Array | tuple[Array, Array]:
    """Finds the k largest (or smallest) elements along an axis, in order.

    ret_typ "value" gives them, "indices" their places, "both" both, "mask" an array of the shape of `data` with ones
    at their places. Gradients flow through the values.
    """
    return _topk(p, data, stable_order)


def _topk(p: TopkParams, data: Array, order: Order = packed_order) -> Array | tuple[Array, Array]:
    x, axis = _flat(data, p.axis)
    n = x.shape[axis]
    k = p.k if p.k > 0 else n
    if k > n:
        raise ShapeError(f"k={p.k} is larger than the axis of size {n}")
    index = lax.slice_in_dim(order(x, axis, True), 0, k, axis=axis) if p.is_ascend else greatest(x, axis, k, order)
    if p.ret_typ == "mask":
        ones = jnp.put_along_axis(jnp.zeros(x.shape, x.dtype), index, jnp.ones((), x.dtype), axis, inplace=False)
        return ones.reshape(data.shape)
    found = index.astype(p.dtype)
    if p.ret_typ == "indices":
        return found
    return jnp.take_along_axis(x, index, axis), found


@op("sort", aliases=("_npi_sort",), params=SortParams, outputs=2, num_visible=1,
    infer_types=lambda p, ins, outs: ([ins[0] or outs[0]], [ins[0] or outs[0], "int32"]))
def sort(p: SortParams, data: Array) -> tuple[Array, Array]:
    """Sorts along an axis. The hidden second output holds the indices."""
    return _sort(p, data, stable_order)


def _sort(p: SortParams, data: Array, order: Order = packed_order) -> tuple[Array, Array]:
    x, axis = _flat(data, p.axis)
    index = order(x, axis, p.is_ascend)
    return jnp.take_along_axis(x, index, axis), index


@op("argsort", aliases=("_npi_argsort",), params=ArgsortParams, infer_types=output_dtype("float32"))
def argsort(p: ArgsortParams, data: Array) -> Array:
    """Gives the indices that would sort along an axis."""
    return _argsort(p, data, stable_order)


def _argsort(p: ArgsortParams, data: Array, order: Order = packed_order) -> Array:
    x, axis = _flat(data, p.axis)
    return order(x, axis, p.is_ascend).astype(p.dtype)


topk.variant(platform="cpu")(_topk)
sort.variant(platform="cpu")(_sort)
argsort.variant(platform="cpu")(_argsort)
