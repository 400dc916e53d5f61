"""Reading and writing by index: Embedding, take, pick, one_hot, gather and scatter, where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
from jax import Array, lax
from jax.core import Tracer

from symjax.lowering.errors import MissingLoweringError, MXNetError, ShapeError
from symjax.lowering.ops._axes import as_index, axis_of, bound_index, gather, read_rows, without
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, first_input_dtype, op, output_dtype

ValueType = Literal["bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]
Types = tuple[Sequence[str | None], Sequence[str | None]]


class EmbeddingParams(Params):
    input_dim: int = param(doc="Rows of the table.", ge=1)
    output_dim: int = param(doc="Width of a row.", ge=1)
    dtype: ValueType = param("float32", doc="Type of the table where nothing else says it.")
    sparse_grad: bool = param(False, doc="Ask for a row_sparse gradient of the table.")


def _table_types(p: EmbeddingParams, ins: list[str | None], outs: list[str | None]) -> Types:
    known = ins[1] or outs[0] or p.dtype
    return [ins[0], known], [known]


def _table_shape(p: EmbeddingParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    return [ins[0], (p.input_dim, p.output_dim)]


def _rows(table: Array, index: Array) -> Array:
    return read_rows(table, bound_index(index, table.shape[0], "clip"))


@op("Embedding", aliases=("_npx_embedding", "_sparse_Embedding", "_sparse_embedding"), params=EmbeddingParams,
    infer_inputs=_table_shape, infer_types=_table_types)
def embedding(p: EmbeddingParams, data: Array, weight: Array) -> Array:
    """Looks rows up: indices (…) and a table (input_dim, output_dim) give (…, output_dim).

    Indices beyond the table are moved to its nearest end, in the gradient too. `data` has no gradient (zeros; MXNet
    refuses to compute it). The gradient of the table adds up in float32 for half precision (MXNet: in the type itself).
    """
    return _rows(weight, data)


@op("_contrib_SparseEmbedding", params=EmbeddingParams, infer_inputs=_table_shape, infer_types=_table_types)
def sparse_embedding(p: EmbeddingParams, data: Array, weight: Array) -> Array:
    """The older name of Embedding with a row_sparse table."""
    return _rows(weight, data)


class TakeParams(Params):
    axis: int = param(0, doc="Axis of `a` to index.")
    mode: Literal["clip", "raise", "wrap"] = param("clip", doc="What happens to indices outside the axis.")


def _check_range(index: Array, size: int, what: str) -> None:
    """Refuses indices outside [0, size) where their values are at hand (outside jit)."""
    if not isinstance(index, Tracer) and index.size and bool(jnp.any((index < 0) | (index >= size))):
        raise MXNetError(f"{what}: an index lies outside [0, {size})")


@op("take", aliases=("_npi_take",), params=TakeParams, infer_types=first_input_dtype)
def take(p: TakeParams, a: Array, indices: Array) -> Array:
    """Reads slices of `a` along an axis: the axis is replaced by the shape of `indices`.

    clip moves outer indices to the nearest end, wrap counts modulo the size. raise refuses them where values are known;
    inside a compiled function, which cannot raise, it reads NaN (the least value of an integer type) there.
    """
    axis = axis_of(p.axis, a.ndim)
    if p.mode == "raise":
        index = as_index(indices)
        _check_range(index, a.shape[axis], "take, argument 'indices'")
        index = jnp.where(index < 0, a.shape[axis], index)
        return gather(lambda x, i: jnp.take(x, i, axis=axis, mode="fill"), a, index)
    index = bound_index(indices, a.shape[axis], p.mode)
    if axis == 0:
        return read_rows(a, index)
    return gather(lambda x, i: jnp.take(x, i, axis=axis, mode="clip"), a, index)


def _pick_along(data: Array, index: Array, axis: int, mode: str) -> Array:
    """Reads one element along `axis` for each place of the others; the axis stays with size 1."""
    shape = (*data.shape[:axis], 1, *data.shape[axis + 1:])
    index = bound_index(index, data.shape[axis], mode).reshape(shape)
    return gather(lambda x, i: jnp.take_along_axis(x, i, axis), data, index)


def _batch_take_index(p: Params, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    return [ins[0], ins[0][:-1] if ins[0] is not None and ins[1] is None else ins[1]]


@op("batch_take", infer_inputs=_batch_take_index,
    infer_types=lambda p, ins, outs: ([ins[0] or outs[0], ins[1] or "int32"], [ins[0] or outs[0]]))
def batch_take(p: Params, a: Array, indices: Array) -> Array:
    """Reads one element of each row: (…, k) and (…,) give (…,). Outer indices are clipped."""
    if a.ndim < 2 or indices.shape != a.shape[:-1]:
        raise ShapeError(f"batch_take needs a with 2 axes or more and indices of shape a.shape[:-1], got {a.shape} and "
                         f"{indices.shape}")
    return jnp.squeeze(_pick_along(a, indices, a.ndim - 1, "clip"), -1)


class PickParams(Params):
    axis: int | None = param(-1, doc="Axis in which `index` chooses; None: the flattened array.")
    keepdims: bool = param(False, doc="Keep the axis, with size 1.")
    mode: Literal["clip", "wrap"] = param("clip", doc="What happens to indices outside the axis.")


def _pick_index(p: PickParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    if ins[0] is None or ins[1] is not None or p.axis is None:
        return ins
    axis = axis_of(p.axis, len(ins[0]))
    rest = without(ins[0], axis)
    return [ins[0], rest or (1,)]


@op("pick", aliases=("choose_element_0index", "_npx_pick"), params=PickParams, infer_inputs=_pick_index,
    infer_types=first_input_dtype)
def pick(p: PickParams, data: Array, index: Array) -> Array:
    """Reads one element along an axis for each place of the other axes.

    `index` has the shape of `data` without the axis, or with size 1 there. axis=None reads from the flattened array
    (documented by MXNet, but not run by it).
    """
    if p.axis is None:
        flat = bound_index(index, data.size, p.mode)
        return gather(lambda x, i: jnp.take(x, i, mode="clip"), data.reshape(-1), flat)
    axis = axis_of(p.axis, data.ndim)
    rest = without(data.shape, axis)
    if index.shape not in (rest, rest or (1,), (*rest[:axis], 1, *rest[axis:])):
        raise ShapeError(f"argument 'index': expected {rest} (data {data.shape} without axis {axis}), "
                         f"got {index.shape}")
    out = _pick_along(data, index, axis, p.mode)
    return out if p.keepdims else out.reshape(rest or (1,))


class OneHotParams(Params):
    depth: int = param(doc="Size of the new last axis.", ge=0)
    on_value: float = param(1.0, doc="Value at the index.")
    off_value: float = param(0.0, doc="Value elsewhere.")
    dtype: ValueType = param("float32", doc="Type of the result.")


def _hot(index: Array, depth: int, on: Array, off: Array) -> Array:
    return jnp.where(as_index(index)[..., None] == jnp.arange(depth, dtype=jnp.int32), on, off)


@op("one_hot", aliases=("_npx_one_hot",), params=OneHotParams, infer_types=output_dtype("float32"))
def one_hot(p: OneHotParams, indices: Array) -> Array:
    """Indicator rows: (…) gives (…, depth). An index outside [0, depth) gives a row of off_value."""
    on, off = (jnp.asarray(v).astype(p.dtype) for v in (p.on_value, p.off_value))
    return _hot(indices, p.depth, on, off)


def _nd_index(indices: Array) -> tuple[Array, ...]:
    if indices.ndim == 0:
        raise ShapeError("argument 'indices': expected at least 1 axis")
    return tuple(as_index(indices[i]) for i in range(indices.shape[0]))


def _check_depth(indices: Array, ndim: int, what: str) -> None:
    if indices.ndim == 0 or indices.shape[0] > ndim:
        raise ShapeError(f"argument 'indices': {indices.shape} indexes {indices.shape[:1]} axes, {what} has {ndim}")


@op("gather_nd", aliases=("_npi_gather_nd", "_npx_gather_nd"), infer_types=first_input_dtype)
def gather_nd(p: Params, data: Array, indices: Array) -> Array:
    """Reads data[indices[0], indices[1], …]: indices (M, y…) give (y…, *data.shape[M:]).

    Negative indices count from the end. Outer ones read NaN (the least value of an integer type); MXNet raises.
    """
    _check_depth(indices, data.ndim, "data")
    return gather(lambda x, i: x.at[_nd_index(i)].get(mode="fill"), data, indices)


class ScatterParams(Params):
    shape: Shape = param(doc="Shape of the result.")


def _check_scatter(data: Array, indices: Array, shape: Shape) -> None:
    _check_depth(indices, len(shape), "shape")
    want = (*indices.shape[1:], *shape[indices.shape[0]:])
    if data.shape != want:
        raise ShapeError(f"data {data.shape} does not fit indices {indices.shape} and shape {shape}: expected {want}")


@op("scatter_nd", params=ScatterParams, infer_types=first_input_dtype)
def scatter_nd(p: ScatterParams, data: Array, indices: Array) -> Array:
    """Writes `data` into zeros at indices (M, y…), the inverse of gather_nd. Of equal indices the last one stays."""
    _check_scatter(data, indices, p.shape)
    return jnp.zeros(p.shape, data.dtype).at[_nd_index(indices)].set(data, mode="drop")


@op("_backward_gather_nd", params=ScatterParams, infer_types=first_input_dtype)
def backward_gather_nd(p: ScatterParams, data: Array, indices: Array) -> Array:
    """Adds `data` into zeros at indices (M, y…): the gradient of gather_nd. Half precision adds in float32."""
    _check_scatter(data, indices, p.shape)
    wide = data.astype(jnp.float32) if data.dtype in (jnp.float16, jnp.bfloat16) else data
    return jnp.zeros(p.shape, wide.dtype).at[_nd_index(indices)].add(wide, mode="drop").astype(data.dtype)


@op("_scatter_set_nd", aliases=("_npi_scatter_set_nd",), params=ScatterParams,
    infer_types=lambda p, ins, outs: ([t := ins[0] or ins[1] or outs[0], t, ins[2]], [t]))
def scatter_set_nd(p: ScatterParams, lhs: Array, rhs: Array, indices: Array) -> Array:
    """Returns `lhs` with the elements at indices (M, y…) replaced by `rhs`."""
    _check_scatter(rhs, indices, lhs.shape)
    return lhs.at[_nd_index(indices)].set(rhs, mode="drop")


def _branches(p: Params, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    known = [s for s in (ins[1], ins[2], outs[0]) if s is not None]
    if not known:
        return ins
    best = max(known, key=lambda s: sum(d > 0 for d in s))
    return [ins[0], best, best]


@op("where", aliases=("_sparse_where",), infer_inputs=_branches,
    infer_types=lambda p, ins, outs: ([ins[0], t := ins[1] or ins[2] or outs[0], t], [t]))
def where(p: Params, condition: Array, x: Array, y: Array) -> Array:
    """Chooses `x` where the condition is not zero, else `y`.

    The condition has the shape of `x`, or is a vector that chooses whole slices along axis 0.
    """
    if x.shape != y.shape:
        raise ShapeError(f"x {x.shape} and y {y.shape} must have one shape")
    if condition.shape != x.shape:
        if condition.ndim != 1 or condition.shape != x.shape[:1]:
            raise ShapeError(f"argument 'condition': expected {x.shape} or {x.shape[:1]}, got {condition.shape}")
        condition = condition.reshape(-1, *(1,) * (x.ndim - 1))
    return jnp.where(condition != 0, x, y)


@op("_contrib_index_copy", infer_types=lambda p, ins, outs: ([t := ins[0] or ins[2] or outs[0], ins[1], t], [t]))
def index_copy(p: Params, old_tensor: Array, index_vector: Array, new_tensor: Array) -> Array:
    """Returns `old_tensor` with the rows `index_vector` replaced by those of `new_tensor`."""
    if index_vector.ndim != 1 or new_tensor.shape != (index_vector.shape[0], *old_tensor.shape[1:]):
        raise ShapeError(f"new_tensor {new_tensor.shape} does not fit rows {index_vector.shape} of {old_tensor.shape}")
    return old_tensor.at[as_index(index_vector)].set(new_tensor, mode="drop")


def need_values(x: Array, op: str, argument: str, instead: str, call: str) -> None:
    """Refuses, inside a compiled function, an input on whose values the result's shape depends.

    Raises:
      MissingLoweringError: `x` is traced; the message names `instead`, which has a shape, and the imperative `call`.
    """
    if isinstance(x, Tracer):
        raise MissingLoweringError(f"the shape of {op}'s result depends on the values of {argument!r}, which a "
                                   f"compiled function does not have; use {instead}, or call {call} on arrays")


class BooleanMaskParams(Params):
    axis: int = param(0, doc="Axis to select from.")


@op("_contrib_boolean_mask", aliases=("_npi_boolean_mask",), params=BooleanMaskParams, infer_types=first_input_dtype,
    infer_outputs=lambda p, ins: [None], eager=True)
def boolean_mask(p: BooleanMaskParams, data: Array, index: Array) -> Array:
    """Selects the slices of `data` whose entry in the vector `index` is not zero.

    The size of the result depends on values: a graph with this op runs node by node, and jit refuses it.
    """
    axis = axis_of(p.axis, data.ndim)
    if index.shape != (data.shape[axis],):
        raise ShapeError(f"argument 'index': expected ({data.shape[axis]},), got {index.shape}")
    need_values(index, "boolean_mask", "index", "where, SequenceMask or a multiplication by the mask",
                "nd.contrib.boolean_mask")
    return jnp.take(data, jnp.flatnonzero(index), axis=axis)


@op("fill_element_0index", infer_types=lambda p, ins, outs: ([t := ins[0] or ins[1] or outs[0], t, ins[2]], [t]))
def fill_element_0index(p: Params, lhs: Array, mhs: Array, rhs: Array) -> Array:
    """Returns `lhs` (n, k) with lhs[i, rhs[i]] replaced by mhs[i]."""
    if lhs.ndim != 2 or mhs.shape != lhs.shape[:1] or rhs.shape != lhs.shape[:1]:
        raise ShapeError(f"expected lhs (n, k) and two vectors (n,), got {lhs.shape}, {mhs.shape}, {rhs.shape}")
    return lhs.at[jnp.arange(lhs.shape[0], dtype=jnp.int32), as_index(rhs)].set(mhs, mode="drop")


@op("_onehot_encode", infer_types=lambda p, ins, outs: ([ins[0], t := ins[1] or outs[0] or ins[0]], [t]))
def onehot_encode(p: Params, lhs: Array, rhs: Array) -> Array:
    """Indicator rows of the indices `lhs` (n,) in the shape (n, k) of `rhs`."""
    if rhs.ndim != 2 or lhs.shape != rhs.shape[:1]:
        raise ShapeError(f"expected indices (n,) and an array (n, k), got {lhs.shape} and {rhs.shape}")
    return _hot(lhs, rhs.shape[1], jnp.ones((), rhs.dtype), jnp.zeros((), rhs.dtype))


class IndexShapeParams(Params):
    shape: Shape | None = param(None, doc="Shape of the array that is indexed; its first size may be -1.")


def _need_shape(p: IndexShapeParams) -> Shape:
    if not p.shape or any(d <= 0 for d in p.shape[1:]):
        raise ShapeError(f"shape={p.shape} must have positive sizes (the first may be -1)")
    return p.shape


@op("_ravel_multi_index", aliases=("ravel_multi_index",), params=IndexShapeParams,
    infer_inputs=lambda p, ins, outs: [outs[0] and (len(_need_shape(p)), *outs[0])])
def ravel_multi_index(p: IndexShapeParams, data: Array) -> Array:
    """Flat indices from coordinates: (rank, N) gives (N,), in row-major order. Nothing is checked against `shape`."""
    shape = _need_shape(p)
    if data.ndim < 2 or data.shape[0] != len(shape):
        raise ShapeError(f"argument 'data': expected ({len(shape)}, N), got {data.shape}")
    rows = data.astype(jnp.int64)
    flat = rows[0]
    for row, size in zip(rows[1:], shape[1:], strict=True):
        flat = flat * size + row
    return flat.astype(data.dtype)


@op("_unravel_index", aliases=("unravel_index",), params=IndexShapeParams,
    infer_inputs=lambda p, ins, outs: [outs[0] and (outs[0][1:] or None)])
def unravel_index(p: IndexShapeParams, data: Array) -> Array:
    """Coordinates from flat indices: (N…) gives (rank, N…), in row-major order. The first coordinate is not wrapped."""
    rest, out = data.astype(jnp.int64), []
    for size in reversed(_need_shape(p)[1:]):
        out.append(lax.rem(rest, jnp.full_like(rest, size)))
        rest = lax.div(rest, jnp.full_like(rest, size))
    return jnp.stack([rest, *reversed(out)]).astype(data.dtype)
