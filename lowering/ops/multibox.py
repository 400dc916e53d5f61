"""The SSD detector's operators: anchor boxes, training targets, and detections from predictions.

All boxes are corner boxes (xmin, ymin, xmax, ymax) in fractions of the image.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.habits import habit
from symjax.lowering.ops._axes import argmax
from symjax.lowering.ops._suppression import Boxes, common_area, greedy_nms, sides
from symjax.lowering.ops.bounding_box import at_rows, intersection, marked_first, wide
from symjax.lowering.ops.ordering import Order, greatest, packed_order, stable_order
from symjax.lowering.params import Floats, Params, param
from symjax.lowering.registry import ShapeLike, op


class MultiBoxPriorParams(Params):
    sizes: Floats = param((1.0,), doc="Box sizes as fractions of the image's height.")
    ratios: Floats = param((1.0,), doc="Ratios of width to height; all but the first go with the first size.")
    clip: bool = param(False, doc="Whether boxes are cut at the image's border.")
    steps: Floats = param((-1.0, -1.0), doc="Distances of centers in y and x; -1: one over the map's rows, columns.")
    offsets: Floats = param((0.5, 0.5), doc="Position of the center within a cell in y and x.")


def _half_sizes(p: MultiBoxPriorParams, rows: int, cols: int) -> list[tuple[float, float]]:
    """Half width and half height of the boxes of one cell: every size with the first ratio, then the other ratios."""
    pairs = [(s, p.ratios[0]) for s in p.sizes] + [(p.sizes[0], r) for r in p.ratios[1:]]
    return [(s * rows / cols * math.sqrt(r) / 2, s / math.sqrt(r) / 2) for s, r in pairs]


@op("_contrib_MultiBoxPrior", aliases=("_npx_multibox_prior",), params=MultiBoxPriorParams)
def multibox_prior(p: MultiBoxPriorParams, data: Array) -> Array:
    """Anchor boxes for a feature map `data` (N, C, H, W): (1, H * W * (sizes + ratios - 1), 4).

    For each cell, row by row: all sizes with the first ratio, then the other ratios with the first size; a box of size
    s and ratio r is s sqrt(r) H / W wide and s / sqrt(r) high. The values of `data` do not matter.
    """
    if data.ndim != 4:
        raise ShapeError(f"data must have four axes (batch, channel, height, width), got shape {data.shape}")
    if not p.sizes or not p.ratios or len(p.steps) != 2 or len(p.offsets) != 2:
        raise ParamError("sizes and ratios must not be empty, steps and offsets must be pairs, got "
                         f"sizes={p.sizes}, ratios={p.ratios}, steps={p.steps}, offsets={p.offsets}")
    rows, cols = data.shape[2:]
    if p.steps[0] * p.steps[1] < 0:
        raise ParamError(f"steps={p.steps}: both must be given, or both left at -1")
    step = [s if s > 0 else 1 / max(n, 1) for s, n in zip(p.steps, (rows, cols), strict=True)]
    dtype = wide(data).dtype
    y, x = ((jnp.arange(n, dtype=dtype) + o) * s for n, o, s in zip((rows, cols), p.offsets, step, strict=True))
    half = jnp.asarray(_half_sizes(p, rows, cols), dtype=dtype)
    center = jnp.stack([jnp.broadcast_to(x[None, :], (rows, cols)), jnp.broadcast_to(y[:, None], (rows, cols))], -1)
    boxes = jnp.concatenate([center[:, :, None] - half, center[:, :, None] + half], axis=-1)
    boxes = jnp.clip(boxes, 0, 1) if p.clip else boxes
    return boxes.reshape(1, -1, 4).astype(data.dtype)


# ---- training targets


class MultiBoxTargetParams(Params):
    overlap_threshold: float = param(0.5, doc="An anchor whose best overlap is above this is a positive sample.")
    ignore_label: float = param(-1.0, doc="Class target of anchors that take no part.")
    negative_mining_ratio: float = param(-1.0, doc="Negatives per positive; not positive: all others are negative.")
    negative_mining_thresh: float = param(0.5, doc="Mined negatives have a best overlap below this.")
    minimum_negative_samples: int = param(0, doc="At least this many negatives.")
    variances: Floats = param((0.1, 0.1, 0.2, 0.2), doc="Divisors of the offsets x, y, log width, log height.")


class _Matches(NamedTuple):
    """State of the matching of one image: ground truths G, anchors A."""

    taken: Array  # (G,) bool
    positive: Array  # (A,) bool
    overlap: Array  # (A,) of the match, -1 without
    truth: Array  # (A,) int32 matched ground truth, -1 without


def _iou(anchors: Array, truths: Array) -> Array:
    """(A, 4) and (G, 4) -> (A, G)."""
    common = intersection(anchors[:, None], truths[None])
    size_a, size_b = ((b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (anchors, truths))
    return common / (size_a[:, None] + size_b[None] - common)


def _match_best(iou: Array, valid: Array) -> _Matches:
    """Gives each ground truth its best anchor: the largest overlap left, first anchor first, again and again."""
    anchors, truths = iou.shape

    def body(_: int, m: _Matches) -> _Matches:
        free = ~m.positive[:, None] & (valid & ~m.taken)[None]
        flat = jnp.where(free, iou, -1).reshape(-1)
        at = argmax(flat)
        best, anchor, truth = flat[at], at // truths, at % truths
        # Without a match left the index is out of bounds, and the writes are dropped.
        a, t = (jnp.where(best > 1e-6, i, n) for i, n in ((anchor, anchors), (truth, truths)))
        return _Matches(m.taken.at[t].set(True, mode="drop"), m.positive.at[a].set(True, mode="drop"),
                        m.overlap.at[a].set(best, mode="drop"),
                        m.truth.at[a].set(truth.astype(jnp.int32), mode="drop"))

    start = _Matches(jnp.zeros(truths, bool), jnp.zeros(anchors, bool), jnp.full(anchors, -1, iou.dtype),
                     jnp.full(anchors, -1, jnp.int32))
    return lax.fori_loop(0, truths, body, start)


_NO_MINIMUM = habit("_contrib_MultiBoxTarget", "minimum_negative_samples is not heeded.",
                    "At least that many negatives are kept.")


def _mine(p: MultiBoxTargetParams, m: _Matches, scores: Array) -> Array:
    """The hard negatives (A,): those whose background probability is lowest."""
    positives = jnp.sum(m.positive.astype(jnp.int32))
    wanted = (positives * p.negative_mining_ratio).astype(jnp.int32)
    least = 0 if _NO_MINIMUM() else p.minimum_negative_samples
    wanted = jnp.minimum(jnp.maximum(wanted, least), scores.shape[1] - positives)
    candidate = ~m.positive & (m.overlap < p.negative_mining_thresh)
    background = jax.nn.softmax(scores, axis=0)[0]
    order = jnp.argsort(jnp.where(candidate, background, jnp.inf), stable=True)
    rank = jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=order.dtype))
    return candidate & (rank < wanted)


def _offsets(p: MultiBoxTargetParams, anchors: Array, boxes: Array) -> Array:
    size_a, size = anchors[:, 2:] - anchors[:, :2], boxes[:, 2:] - boxes[:, :2]
    center_a, center = (anchors[:, :2] + anchors[:, 2:]) * 0.5, (boxes[:, :2] + boxes[:, 2:]) * 0.5
    raw = jnp.concatenate([(center - center_a) / size_a, jnp.log(size / size_a)], axis=-1)
    return raw / jnp.asarray(p.variances, dtype=raw.dtype)


def _target(p: MultiBoxTargetParams, anchors: Array, label: Array, scores: Array) -> tuple[Array, Array, Array]:
    """Targets of one image: label (G, 5 or more), scores (classes, A)."""
    valid = jnp.cumsum((label[:, 0] == -1).astype(jnp.int32)) == 0
    iou = _iou(anchors, label[:, 1:5])
    m = _match_best(iou, valid)
    best_truth = argmax(jnp.where(valid[None], iou, -1), axis=1)
    best = jnp.max(jnp.where(valid[None], iou, -1), axis=1)
    matched = m.positive
    m = m._replace(overlap=jnp.where(matched, m.overlap, best), truth=jnp.where(matched, m.truth, best_truth))
    if p.overlap_threshold > 0:
        m = m._replace(positive=matched | (best > p.overlap_threshold))
    negative = _mine(p, m, scores) if p.negative_mining_ratio > 0 else ~m.positive
    some = jnp.any(valid)
    positive, negative = m.positive & some, negative & some
    classes = jnp.where(positive, label[m.truth, 0] + 1, jnp.where(negative, 0, p.ignore_label))
    mask = jnp.broadcast_to(positive[:, None], anchors.shape)
    # An anchor that is not positive may have no area: keep its NaN out.
    boxes = jnp.where(mask, label[m.truth, 1:5], anchors)
    return jnp.where(mask, _offsets(p, anchors, boxes), 0), mask.astype(anchors.dtype), classes


def _infer_target(p: MultiBoxTargetParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    anchor, label, pred = ins
    count = anchor[1] if anchor and len(anchor) == 3 else pred[2] if pred and len(pred) == 3 else 0
    batch = next((x[0] for x in (label, pred) if x and len(x) == 3 and x[0]), 0)
    return [anchor or (1, count, 4), label or (batch, 0, 0), pred or (batch, 0, count)]


@op("_contrib_MultiBoxTarget", aliases=("_npx_multibox_target",), params=MultiBoxTargetParams,
    outputs=("loc_target", "loc_mask", "cls_target"), infer_inputs=_infer_target)
def multibox_target(p: MultiBoxTargetParams, anchor: Array, label: Array,
                    cls_pred: Array) -> tuple[Array, Array, Array]:
    """Training targets of anchors (1, A, 4) for labels (N, G, 5 or more: class, box, …) and predictions (N, K, A).

    Labels end at the first class -1. Each ground truth takes the anchor it overlaps most; every further anchor whose
    best overlap is above `overlap_threshold` is positive too. Outputs: offsets (N, 4A) over the variances, mask
    (N, 4A), and class targets (N, A): class + 1 for positives, 0 for negatives, `ignore_label` for the rest. With
    `negative_mining_ratio` only the anchors of the lowest background probability are negatives. The gradient is zero.
    """
    _check_target(p, anchor.shape, label.shape, cls_pred.shape)
    anchor, label, cls_pred = (lax.stop_gradient(wide(x)) for x in (anchor, label, cls_pred))
    run = functools.partial(_target, p, anchor[0])
    n = label.shape[0]
    if label.shape[1] == 0:
        label = jnp.full((n, 1, label.shape[2]), -1, label.dtype)
    offsets, mask, classes = jax.vmap(run)(label, cls_pred)
    return offsets.reshape(n, -1), mask.reshape(n, -1), classes


def _check_target(p: MultiBoxTargetParams, anchor: tuple[int, ...], label: tuple[int, ...],
                  pred: tuple[int, ...]) -> None:
    if len(anchor) != 3 or anchor[0] != 1 or anchor[2] != 4:
        raise ShapeError(f"anchor must have shape (1, anchors, 4), got {anchor}")
    if len(label) != 3 or label[2] < 5:
        raise ShapeError(f"label must have shape (batch, boxes, 5 or more), got {label}")
    if len(pred) != 3 or pred[2] != anchor[1] or pred[0] != label[0]:
        raise ShapeError(f"cls_pred must have shape ({label[0]}, classes, {anchor[1]}), got {pred}")
    if len(p.variances) != 4:
        raise ParamError(f"variances must be four numbers, got {p.variances}")
    if p.negative_mining_ratio > 0 and p.negative_mining_thresh <= 0:
        raise ParamError(f"negative_mining_thresh={p.negative_mining_thresh} must be positive for negative mining")


# ---- detection


class MultiBoxDetectionParams(Params):
    clip: bool = param(True, doc="Whether boxes are cut at the image's border.")
    threshold: float = param(0.01, doc="Detections of a lower score are dropped.")
    background_id: int = param(0, doc="Class of the background; must be 0.")
    nms_threshold: float = param(0.5, doc="Overlap from which on a detection suppresses a worse one.")
    force_suppress: bool = param(False, doc="Whether detections of different classes suppress each other too.")
    variances: Floats = param((0.1, 0.1, 0.2, 0.2), doc="Factors of the offsets x, y, log width, log height.")
    nms_topk: int = param(-1, doc="Only this many best detections are kept, -1 for all.")


def _decode(p: MultiBoxDetectionParams, anchors: Array, offsets: Array) -> Array:
    """Boxes (N, A, 4) from anchors (1, A, 4) and offsets (N, A, 4)."""
    v = jnp.asarray(p.variances, dtype=offsets.dtype)
    size, center = anchors[..., 2:] - anchors[..., :2], (anchors[..., :2] + anchors[..., 2:]) / 2
    mid = offsets[..., :2] * v[:2] * size + center
    half = jnp.exp(offsets[..., 2:] * v[2:]) * size / 2
    boxes = jnp.concatenate([mid - half, mid + half], axis=-1)
    return jnp.clip(boxes, 0, 1) if p.clip else boxes


def _suppress(p: MultiBoxDetectionParams, rows: Array, alive: Array) -> Array:
    x1, y1, x2, y2 = sides(rows[..., 2:])

    def overlap(a: Boxes, b: Boxes) -> Array:
        common = common_area(a, b)
        union = a[4] + b[4] - common
        over = jnp.where(union <= 0, 0, common / jnp.where(union <= 0, 1, union)) >= p.nms_threshold
        return over if p.force_suppress else over & (a[5] == b[5])

    return greedy_nms(alive, (x1, y1, x2, y2, (x2 - x1) * (y2 - y1), rows[..., 0]), overlap)


@op("_contrib_MultiBoxDetection", aliases=("_npx_multibox_detection",), params=MultiBoxDetectionParams)
def multibox_detection(p: MultiBoxDetectionParams, cls_prob: Array, loc_pred: Array, anchor: Array) -> Array:
    """Detections (N, A, 6) of rows (class, score, xmin, ymin, xmax, ymax) by falling score.

    cls_prob (N, K, A) with the background in class 0, loc_pred (N, 4A) offsets, anchor (1, A, 4). Each anchor gives its
    best class other than the background, if it scores at least `threshold`. A detection suppressed by a better one has
    class -1 and keeps its other numbers; rows without a detection are -1. The gradient is zero.
    """
    return _detect(p, cls_prob, loc_pred, anchor, stable_order)


def _detect(p: MultiBoxDetectionParams, cls_prob: Array, loc_pred: Array, anchor: Array,
            order_by: Order = packed_order) -> Array:
    n, classes, count = _check_detection(p, cls_prob.shape, loc_pred.shape, anchor.shape)
    probs, loc, boxes = (lax.stop_gradient(wide(x)) for x in (cls_prob, loc_pred, anchor))
    boxes = _decode(p, boxes, loc.reshape(n, count, 4))
    if classes < 2:
        return jnp.full((n, count, 6), -1, cls_prob.dtype)
    best = argmax(probs[:, 1:], axis=1)
    score = jnp.max(probs[:, 1:], axis=1)
    valid = (score >= p.threshold) & (score > -1)
    rows = jnp.concatenate([best[..., None].astype(boxes.dtype), score[..., None], boxes], axis=-1)
    suppressing = 0 < p.nms_threshold <= 1
    front = (min(p.nms_topk, count) if p.nms_topk > 0 else count) if suppressing else 0
    order = greatest(jnp.where(valid, score, -jnp.inf), 1, front, order_by)
    if front < count:
        # MXNet: the rows behind the nms_topk best are dropped with the numbers that an unsorted list has there.
        order = jnp.concatenate([order, marked_first(valid)[:, front:]], axis=1)
    place = jnp.arange(count, dtype=jnp.int32)[None]
    rows, valid = at_rows(rows, order), place < jnp.sum(valid, axis=1, dtype=jnp.int32)[:, None]
    if suppressing:
        kept = _suppress(p, rows[:, :front], valid[:, :front])
        kept = jnp.pad(kept, ((0, 0), (0, count - front)))
        rows = rows.at[..., 0].set(jnp.where(kept, rows[..., 0], -1))
    return jnp.where(valid[..., None], rows, -1).astype(cls_prob.dtype)


multibox_detection.variant(platform="cpu")(_detect)


def _check_detection(p: MultiBoxDetectionParams, probs: tuple[int, ...], loc: tuple[int, ...],
                     anchor: tuple[int, ...]) -> tuple[int, int, int]:
    if len(probs) != 3:
        raise ShapeError(f"cls_prob must have three axes (batch, class, anchor), got shape {probs}")
    n, classes, count = probs
    if loc != (n, 4 * count):
        raise ShapeError(f"loc_pred must have shape ({n}, {4 * count}) for cls_prob {probs}, got {loc}")
    if anchor != (1, count, 4):
        raise ShapeError(f"anchor must have shape (1, {count}, 4) for cls_prob {probs}, got {anchor}")
    if len(p.variances) != 4:
        raise ParamError(f"variances must be four numbers, got {p.variances}")
    if p.background_id != 0:
        raise ParamError(f"background_id={p.background_id} is not supported, the background must be class 0: "
                         "move the background's column to the front of cls_prob")
    return n, classes, count
