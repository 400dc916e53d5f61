"""Operators on bounding boxes: overlap, non-maximum suppression, encoding and bipartite matching.

A box is (xmin, ymin, xmax, ymax) in the format "corner" and (x, y, width, height) in the format "center".
"""

from __future__ import annotations

from typing import Any, Literal

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.habits import habit
from symjax.lowering.ops._axes import argmax
from symjax.lowering.ops._suppression import Boxes, common_area, greedy_nms, sides
from symjax.lowering.ops.ordering import Order, greatest, packed_order, stable_order
from symjax.lowering.params import Params, param
from symjax.lowering.registry import op

BoxFormat = Literal["center", "corner"]


def wide(x: Array) -> Array:
    """`x` in the type in which boxes are computed: at least float32."""
    return x.astype(jnp.float32) if jnp.dtype(x.dtype).itemsize < 4 else x


def to_corner(boxes: Array, fmt: BoxFormat = "center") -> Array:
    """Boxes (..., 4) of a format as (xmin, ymin, xmax, ymax)."""
    if fmt == "corner":
        return boxes
    half = boxes[..., 2:] / 2
    return jnp.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], axis=-1)


def to_center(boxes: Array, fmt: BoxFormat = "corner") -> Array:
    """Boxes (..., 4) of a format as (x, y, width, height)."""
    if fmt == "center":
        return boxes
    return jnp.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], axis=-1)


def areas(boxes: Array, fmt: BoxFormat = "corner") -> Array:
    """Areas of boxes (..., 4); 0 for a box of negative width or height."""
    w, h = (boxes[..., 2], boxes[..., 3]) if fmt == "center" else (
        boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1])
    return jnp.where((w < 0) | (h < 0), 0, w * h)


def intersection(a: Array, b: Array) -> Array:
    """Area common to corner boxes a and b of broadcastable shapes (..., 4)."""
    low = jnp.maximum(a[..., :2], b[..., :2])
    high = jnp.minimum(a[..., 2:], b[..., 2:])
    sides = jnp.maximum(high - low, 0)
    return sides[..., 0] * sides[..., 1]


def at_rows(x: Array, rows: Array) -> Array:
    """Rows of (B, N, ...): indices (B,) give (B, 1, ...), indices (B, K) give (B, K, ...)."""
    rows = rows[:, None] if rows.ndim == 1 else rows
    return jnp.take_along_axis(x, rows.reshape(rows.shape + (1,) * (x.ndim - 2)), axis=1)


def marked_first(mark: Array) -> Array:
    """Positions (B, N) that bring the marked entries of each row to the front, all in their order."""
    n = mark.shape[1]
    place = jnp.arange(n, dtype=jnp.int32)
    # One key, where a stable sort would compare two.
    return jnp.mod(lax.sort(jnp.where(mark, place, place + n), dimension=1, is_stable=False), max(n, 1))


# ---- overlap


class BoxIouParams(Params):
    format: BoxFormat = param("corner", doc="How the boxes are encoded.")


@op("_contrib_box_iou", params=BoxIouParams)
def box_iou(p: BoxIouParams, lhs: Array, rhs: Array) -> Array:
    """Intersection over union of every box of `lhs` (A..., 4) with every box of `rhs` (B..., 4): shape (A..., B...).

    Boxes that do not meet give 0. MXNet defines the gradient as zero, and so does this.
    """
    for name, x in (("lhs", lhs), ("rhs", rhs)):
        if x.ndim < 2 or x.shape[-1] != 4:
            raise ShapeError(f"{name} must have at least two axes and end in 4 coordinates, got shape {x.shape}")
    a, b = (lax.stop_gradient(wide(x)).reshape(-1, 4) for x in (lhs, rhs))
    common = intersection(to_corner(a, p.format)[:, None], to_corner(b, p.format)[None])
    union = areas(a, p.format)[:, None] + areas(b, p.format)[None] - common
    iou = jnp.where(common <= 0, 0, common / jnp.where(common <= 0, 1, union))
    return iou.reshape(lhs.shape[:-1] + rhs.shape[:-1]).astype(lhs.dtype)


# ---- non-maximum suppression


class BoxNMSParams(Params):
    overlap_thresh: float = param(0.5, doc="A box is suppressed by a better one if their overlap is above this.")
    valid_thresh: float = param(0.0, doc="Boxes whose score is not above this are dropped.")
    topk: int = param(-1, doc="Only this many boxes of the highest scores take part; -1: all, 0: nothing is done.")
    coord_start: int = param(2, doc="Column of the first of the four coordinates.")
    score_index: int = param(1, doc="Column of the score.")
    id_index: int = param(-1, doc="Column of the class id, -1 for none.")
    background_id: int = param(-1, doc="Boxes of this class are dropped.")
    force_suppress: bool = param(False, doc="Whether boxes of different classes suppress each other too.")
    in_format: BoxFormat = param("corner", doc="How the boxes of the input are encoded.")
    out_format: BoxFormat = param("corner", doc="How the boxes of the output are encoded.")


def _check_nms(p: BoxNMSParams, shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        raise ShapeError(f"data must have at least two axes (boxes, columns), got shape {shape}")
    width, coords = shape[-1], range(p.coord_start, p.coord_start + 4)
    if p.coord_start < 0 or p.coord_start + 4 > width:
        raise ParamError(f"coord_start={p.coord_start} and the three columns behind it are not within the {width} "
                         f"columns of data {shape}")
    for name, column in (("score_index", p.score_index), ("id_index", p.id_index)):
        if name == "id_index" and column < 0:
            continue
        if not 0 <= column < width or column in coords:
            raise ParamError(f"{name}={column} must be a column of data {shape} outside the coordinates "
                             f"{coords.start}..{coords.stop - 1}")
    if p.id_index == p.score_index:
        raise ParamError(f"id_index and score_index are the same column {p.id_index}")


def _nms_order(p: BoxNMSParams, rows: Array, order_by: Order) -> tuple[Array, Array]:
    """For rows (B, N, W): the order by score (B, K) and which of them survive (B, K)."""
    scores = rows[..., p.score_index]
    valid = scores > p.valid_thresh
    classes = rows[..., p.id_index].astype(jnp.int32) if p.id_index >= 0 else None
    if classes is not None:
        valid = valid & (classes != p.background_id)
    n = scores.shape[1]
    order = greatest(jnp.where(valid, scores, -jnp.inf), 1, min(p.topk, n) if p.topk > 0 else n, order_by)
    alive = jnp.take_along_axis(valid, order, axis=1)
    boxes = at_rows(rows[..., p.coord_start:p.coord_start + 4], order)
    kinds = () if classes is None or p.force_suppress else (at_rows(classes, order),)

    def overlap(a: Boxes, b: Boxes) -> Array:
        common = common_area(a, b)
        over = common / (a[4] + b[4] - common) > p.overlap_thresh
        return over & (a[5] == b[5]) if kinds else over

    return order, greedy_nms(alive, (*sides(to_corner(boxes, p.in_format)), areas(boxes, p.in_format), *kinds), overlap)


@op("_contrib_box_nms", aliases=("_contrib_box_non_maximum_suppression",), params=BoxNMSParams, outputs=2,
    num_visible=1)
def box_nms(p: BoxNMSParams, data: Array) -> tuple[Array, Array]:
    """Non-maximum suppression over the rows of `data` (..., N, W): the survivors by falling score, then rows of -1.

    Boxes are visited by falling score (ties in order of position); each removes the later ones whose intersection over
    union with it is above `overlap_thresh`, of its own class unless there are no classes or `force_suppress`. The
    hidden second output (..., N, 1) holds the row (counted over the whole batch) that each output row came from, -1
    for none. The gradient of an output row goes to its input row.
    """
    return _box_nms(p, data, stable_order)


def _box_nms(p: BoxNMSParams, data: Array, order_by: Order = packed_order) -> tuple[Array, Array]:
    _check_nms(p, data.shape)
    n = data.shape[-2]
    flat = data.reshape(-1, n, data.shape[-1])
    if p.topk == 0:
        record = jnp.arange(flat.shape[0] * n, dtype=data.dtype)
        return data, record.reshape(*data.shape[:-1], 1)
    order, keep = _nms_order(p, lax.stop_gradient(wide(flat)), order_by)
    front = marked_first(keep)
    order = jnp.take_along_axis(order, front, axis=1)
    keep = jnp.take_along_axis(keep, front, axis=1)
    out = _convert(p, at_rows(flat, order))
    out = jnp.where(keep[..., None], out, -1)
    base = jnp.arange(flat.shape[0], dtype=order.dtype)[:, None] * n
    record = jnp.where(keep, order + base, -1)[..., None].astype(data.dtype)
    fill = ((0, 0), (0, n - order.shape[1]), (0, 0))
    out, record = (jnp.pad(x, fill, constant_values=-1) for x in (out, record))
    return out.reshape(data.shape), record.reshape(*data.shape[:-1], 1)


box_nms.variant(platform="cpu")(_box_nms)

_UNCONVERTED = habit("_contrib_box_nms", "Boxes with a negative first coordinate stay in the input's format.",
                     "They are converted like the others.")


def _convert(p: BoxNMSParams, rows: Array) -> Array:
    # MXNet: its gradient skips the conversion.
    if p.in_format == p.out_format:
        return rows
    start, end = p.coord_start, p.coord_start + 4
    convert = to_center if p.out_format == "center" else to_corner
    boxes = rows[..., start:end]
    made = jnp.where(boxes[..., :1] < 0, boxes, convert(boxes)) if _UNCONVERTED() else convert(boxes)
    return jnp.concatenate([rows[..., :start], made, rows[..., end:]], axis=-1)


# ---- matching


class BipartiteMatchingParams(Params):
    is_ascend: bool = param(False, doc="Whether low scores are the good ones.")
    threshold: float = param(doc="Pairs whose score is not above (is_ascend: below) this are not matched.")
    topk: int = param(-1, doc="At most this many matches, -1 for no limit.")


@op("_contrib_bipartite_matching", params=BipartiteMatchingParams, outputs=2)
def bipartite_matching(p: BipartiteMatchingParams, data: Array) -> tuple[Array, Array]:
    """Greedy one-to-one matching of rows and columns of scores (..., R, C), the best pair first.

    Outputs (..., R): the column of each row, and (..., C): the row of each column, -1 where there is none. Ties go to
    the first pair in row-major order. The gradient is zero.
    """
    if data.ndim < 2:
        raise ShapeError(f"data must have at least two axes (rows, columns), got shape {data.shape}")
    rows, cols = data.shape[-2:]
    scores = lax.stop_gradient(wide(data)).reshape(-1, rows, cols)
    sign = -1 if p.is_ascend else 1
    batch = jnp.arange(scores.shape[0], dtype=jnp.int32)

    def best(row_match: Array, col_match: Array) -> tuple[Array, Array]:
        free = (row_match < 0)[:, :, None] & (col_match < 0)[:, None, :]
        flat = jnp.where(free, sign * scores, -jnp.inf).reshape(scores.shape[0], -1)
        at = argmax(flat, axis=1)
        return at, jnp.take_along_axis(flat, at[:, None], axis=1)[:, 0] > sign * p.threshold

    def body(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        row_match, col_match, count = state
        at, found = best(row_match, col_match)
        r, c = at // cols, at % cols
        # A batch entry without a match writes outside, which drops the write.
        row_match = row_match.at[batch, jnp.where(found, r, rows)].set(c, mode="drop")
        col_match = col_match.at[batch, jnp.where(found, c, cols)].set(r, mode="drop")
        return row_match, col_match, jnp.where(jnp.any(found), count + 1, limit)

    limit = _match_limit(p, min(rows, cols))
    start = (jnp.full((scores.shape[0], rows), -1, jnp.int32), jnp.full((scores.shape[0], cols), -1, jnp.int32),
             jnp.zeros((), jnp.int32))
    row_match, col_match, _ = lax.while_loop(lambda s: s[2] < limit, body, start) if limit else start
    shape = data.shape[:-2]
    return row_match.reshape(*shape, rows).astype(data.dtype), col_match.reshape(*shape, cols).astype(data.dtype)


_ONE_MORE = habit("_contrib_bipartite_matching", "One match more than topk is made.", "topk matches are made.")


def _match_limit(p: BipartiteMatchingParams, most: int) -> int:
    return min(most, p.topk + _ONE_MORE()) if p.topk > 0 else most


# ---- encoding


def _centers(boxes: Array) -> tuple[Array, Array]:
    size = boxes[..., 2:] - boxes[..., :2]
    return boxes[..., :2] + size * 0.5, size


@op("_contrib_box_encode", outputs=2)
def box_encode(p: Any, samples: Array, matches: Array, anchors: Array, refs: Array, means: Array,
               stds: Array) -> tuple[Array, Array]:
    """Regression targets of anchors against the boxes they were matched to.

    samples (B, N): above 0.5 is a positive sample; matches (B, N): row of `refs` (B, M, 4) for each of the `anchors`
    (B, N, 4), corner format; means, stds (4,). Outputs targets and masks, (B, N, 4): for a positive sample
    ((x - x_a) / w_a, (y - y_a) / h_a, log(w / w_a), log(h / h_a)), minus means, over stds, and 1; zeros otherwise.
    The gradient is zero.
    """
    if samples.ndim != 2 or matches.shape != samples.shape:
        raise ShapeError(f"samples and matches must be (batch, anchors), got {samples.shape} and {matches.shape}")
    if anchors.ndim != 3 or anchors.shape[1:] != (samples.shape[1], 4) or refs.ndim != 3 or refs.shape[-1] != 4:
        raise ShapeError(f"anchors must be (batch, {samples.shape[1]}, 4) and refs (batch, boxes, 4), got "
                         f"{anchors.shape} and {refs.shape}")
    samples, matches, anchors, refs, means, stds = (
        lax.stop_gradient(x) for x in (samples, matches, anchors, refs, means, stds))
    center, size = _centers(at_rows(refs, matches.astype(jnp.int32)))
    center_a, size_a = _centers(anchors)
    targets = jnp.concatenate([(center - center_a) / size_a, jnp.log(size / size_a)], axis=-1)
    positive = (samples > 0.5)[..., None]
    targets = jnp.where(positive, (targets - means) / stds, 0).astype(samples.dtype)
    return targets, jnp.broadcast_to(positive, targets.shape).astype(samples.dtype)


class BoxDecodeParams(Params):
    std0: float = param(1.0, doc="Scale of the offset in x.")
    std1: float = param(1.0, doc="Scale of the offset in y.")
    std2: float = param(1.0, doc="Scale of the log width.")
    std3: float = param(1.0, doc="Scale of the log height.")
    clip: float = param(-1.0, doc="If positive, the largest scaled log width and height.")
    format: BoxFormat = param("center", doc="How the anchors are encoded.")


@op("_contrib_box_decode", params=BoxDecodeParams)
def box_decode(p: BoxDecodeParams, data: Array, anchors: Array) -> Array:
    """Corner boxes from regression offsets `data` (B, N, 4) and `anchors` (1, N, 4).

    x = data_0 std0 w_a + x_a, w = exp(data_2 std2) w_a, likewise y and h; output (x - w/2, y - h/2, x + w/2, y + h/2).
    MXNet defines the gradient as zero, and so does this.
    """
    if data.ndim != 3 or data.shape[-1] != 4 or anchors.ndim != 3 or anchors.shape[1:] != data.shape[1:]:
        raise ShapeError(f"data and anchors must be (batch, boxes, 4), got {data.shape} and {anchors.shape}")
    data, a = lax.stop_gradient(data), to_center(lax.stop_gradient(anchors), p.format)
    std = jnp.asarray([p.std0, p.std1, p.std2, p.std3], dtype=data.dtype)
    scaled = data * std
    center = scaled[..., :2] * a[..., 2:] + a[..., :2]
    logs = jnp.minimum(scaled[..., 2:], p.clip) if p.clip > 0 else scaled[..., 2:]
    half = jnp.exp(logs) * a[..., 2:] * 0.5
    return jnp.concatenate([center - half, center + half], axis=-1).astype(data.dtype)
