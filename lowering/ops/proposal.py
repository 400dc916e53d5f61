"""Region proposals from the outputs of a region proposal network (Faster R-CNN)."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._regions import exact_quotient
from symjax.lowering.ops._suppression import Boxes, common_area, greedy_nms, sides
from symjax.lowering.ops.bounding_box import at_rows, marked_first, wide
from symjax.lowering.ops.ordering import Order, greatest, packed_order, stable_order
from symjax.lowering.params import Floats, Params, param
from symjax.lowering.registry import ShapeLike, op


class ProposalParams(Params):
    rpn_pre_nms_top_n: int = param(6000, doc="Boxes of the highest scores that suppression sees; not positive: all.")
    rpn_post_nms_top_n: int = param(300, doc="Number of proposals per image.")
    threshold: float = param(0.7, doc="A box is suppressed by a better one if their overlap is above this.")
    rpn_min_size: int = param(16, doc="Boxes narrower or lower than this, times the image's scale, come last.")
    scales: Floats = param((4.0, 8.0, 16.0, 32.0), doc="Sizes of the anchors in strides.")
    ratios: Floats = param((0.5, 1.0, 2.0), doc="Ratios of height to width of the anchors.")
    feature_stride: int = param(16, doc="Pixels per cell of the feature map.")
    output_score: bool = param(False, doc="Whether the scores are an output too.")
    iou_loss: bool = param(False, doc="Whether the predictions are corner offsets in pixels, not center and log size.")


def base_anchors(p: ProposalParams) -> list[tuple[float, float, float, float]]:
    """The anchors of the first cell in pixels, all scales of the first ratio first; sides are whole before scaling."""
    stride, center = p.feature_stride, (p.feature_stride - 1) / 2
    out = []
    for ratio in p.ratios:
        width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in p.scales:
            w, h = (width * scale - 1) / 2, (height * scale - 1) / 2
            out.append((center - w, center - h, center + w, center + h))
    return out


def _anchors(p: ProposalParams, rows: int, cols: int, dtype: Any) -> Array:
    """(rows, cols, A, 4)."""
    y, x = (jnp.arange(n, dtype=dtype) * p.feature_stride for n in (rows, cols))
    shift = jnp.stack([jnp.broadcast_to(x[None], (rows, cols)), jnp.broadcast_to(y[:, None], (rows, cols))], axis=-1)
    return jnp.asarray(base_anchors(p), dtype=dtype) + jnp.tile(shift, 2)[:, :, None]


def _predict(p: ProposalParams, anchors: Array, deltas: Array, info: Array) -> Array:
    """Boxes (N, H, W, A, 4) inside the images."""
    if p.iou_loss:
        boxes = anchors + deltas
    else:
        size = anchors[..., 2:] - anchors[..., :2] + 1
        center = deltas[..., :2] * size + anchors[..., :2] + 0.5 * (size - 1)
        half = 0.5 * (jnp.exp(deltas[..., 2:]) * size - 1)
        boxes = jnp.concatenate([center - half, center + half], axis=-1)
    limit = jnp.tile(info[:, 1::-1], 2)[:, None, None, None] - 1
    return jnp.maximum(jnp.minimum(boxes, limit), 0)


def _candidates(p: ProposalParams, probs: Array, deltas: Array, info: Array) -> tuple[Array, Array]:
    """Boxes (N, H*W*A, 4) and their scores; boxes too small or in the padding score -1."""
    n, channels, rows, cols = probs.shape
    count = channels // 2
    deltas = deltas.reshape(n, count, 4, rows, cols).transpose(0, 3, 4, 1, 2)
    boxes = _predict(p, _anchors(p, rows, cols, probs.dtype), deltas, info)
    scores = probs[:, count:].transpose(0, 2, 3, 1)
    real = jnp.trunc(exact_quotient(info[:, :2], p.feature_stride))
    inside = (jnp.arange(rows, dtype=real.dtype)[None, :, None] < real[:, 0, None, None]) & (
        jnp.arange(cols, dtype=real.dtype)[None, None] < real[:, 1, None, None])
    least = (p.rpn_min_size * info[:, 2])[:, None, None, None]
    small = jnp.any(boxes[..., 2:] - boxes[..., :2] + 1 < least[..., None], axis=-1)
    grow = jnp.where(small, least / 2, 0)[..., None]
    boxes = boxes + jnp.concatenate([-grow, -grow, grow, grow], axis=-1)
    scores = jnp.where(inside[..., None] & ~small, scores, -1)
    return boxes.reshape(n, -1, 4), scores.reshape(n, -1)


def _suppress(p: ProposalParams, boxes: Array) -> Array:
    x1, y1, x2, y2 = sides(boxes)

    def overlap(a: Boxes, b: Boxes) -> Array:
        common = common_area(a, b, border=1)
        return common / (a[4] + b[4] - common) > p.threshold

    area = (x2 - x1 + 1) * (y2 - y1 + 1)
    alive = jnp.ones(boxes.shape[:2], bool)
    return greedy_nms(alive, (x1, y1, x2, y2, area), overlap, p.rpn_post_nms_top_n)


def _check(p: ProposalParams, probs: tuple[int, ...], deltas: tuple[int, ...], info: tuple[int, ...]) -> None:
    if len(probs) != 4 or probs[1] != 2 * len(p.scales) * len(p.ratios):
        raise ShapeError(f"cls_prob must have shape (batch, {2 * len(p.scales) * len(p.ratios)}, height, width): two "
                         f"classes for each of {len(p.scales)} scales times {len(p.ratios)} ratios, got {probs}")
    if deltas != (probs[0], 2 * probs[1], *probs[2:]):
        raise ShapeError(f"bbox_pred must have shape {(probs[0], 2 * probs[1], *probs[2:])}, got {deltas}")
    if info != (probs[0], 3):
        raise ShapeError(f"im_info must have shape ({probs[0]}, 3): height, width, scale, got {info}")
    if p.rpn_post_nms_top_n < 1:
        raise ParamError(f"rpn_post_nms_top_n={p.rpn_post_nms_top_n} must be positive")


def _propose(p: ProposalParams, cls_prob: Array, bbox_pred: Array, im_info: Array,
             order_by: Order = packed_order) -> tuple[Array, Array]:
    _check(p, cls_prob.shape, bbox_pred.shape, im_info.shape)
    dtype = cls_prob.dtype
    boxes, scores = _candidates(p, *(lax.stop_gradient(wide(x)) for x in (cls_prob, bbox_pred, im_info)))
    n, total = scores.shape
    front = min(p.rpn_pre_nms_top_n, total) if p.rpn_pre_nms_top_n > 0 else total
    order = greatest(jnp.where(jnp.isnan(scores), -jnp.inf, scores), 1, front, order_by)
    boxes, scores = at_rows(boxes, order), at_rows(scores, order)
    keep = _suppress(p, boxes)
    most = min(p.rpn_post_nms_top_n, front)
    found = jnp.minimum(jnp.sum(keep, axis=1, dtype=jnp.int32), most)
    # MXNet: proposals that are wanting repeat the ones found from the start.
    place = jnp.arange(p.rpn_post_nms_top_n, dtype=jnp.int32)[None] % found[:, None]
    rows = jnp.take_along_axis(marked_first(keep), place, axis=1)
    image = jnp.broadcast_to(jnp.arange(n, dtype=boxes.dtype)[:, None, None], (*rows.shape, 1))
    rois = jnp.concatenate([image, at_rows(boxes, rows)], axis=-1)
    return rois.reshape(-1, 5).astype(dtype), at_rows(scores, rows).reshape(-1, 1).astype(dtype)


def _infer_inputs(p: ProposalParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    probs = ins[0]
    if probs is None or len(probs) != 4:
        return ins
    return [probs, (probs[0], 2 * probs[1], *probs[2:]), (probs[0], 3)]


def _visible(p: ProposalParams) -> int:
    return 2 if p.output_score else 1


@op("_contrib_Proposal", params=ProposalParams, outputs=("output", "score"), num_visible=_visible,
    infer_inputs=_infer_inputs)
def proposal(p: ProposalParams, cls_prob: Array, bbox_pred: Array, im_info: Array) -> tuple[Array, Array]:
    """Proposals (rpn_post_nms_top_n, 5) of rows (0, x1, y1, x2, y2) in pixels for one image, and their scores.

    cls_prob (1, 2A, H, W): background, then foreground probabilities of A anchors per cell; bbox_pred (1, 4A, H, W);
    im_info (1, 3): height, width and scale of the image. Anchors are moved by the predictions and cut at the image,
    sorted by score, and thinned by non-maximum suppression. The gradient is zero.
    """
    return _propose_one(p, cls_prob, bbox_pred, im_info, stable_order)


def _propose_one(p: ProposalParams, cls_prob: Array, bbox_pred: Array, im_info: Array,
                 order_by: Order = packed_order) -> tuple[Array, Array]:
    if cls_prob.ndim == 4 and cls_prob.shape[0] != 1:
        raise ShapeError(f"cls_prob has a batch of {cls_prob.shape[0]}, and this operator takes one image: use "
                         "_contrib_MultiProposal, which has the same inputs and parameters")
    return _propose(p, cls_prob, bbox_pred, im_info, order_by)


@op("_contrib_MultiProposal", params=ProposalParams, outputs=("output", "score"), num_visible=_visible,
    infer_inputs=_infer_inputs)
def multi_proposal(p: ProposalParams, cls_prob: Array, bbox_pred: Array, im_info: Array) -> tuple[Array, Array]:
    """`_contrib_Proposal` for a batch: (N * rpn_post_nms_top_n, 5) of rows (image, x1, y1, x2, y2), and the scores."""
    return _propose(p, cls_prob, bbox_pred, im_info, stable_order)


proposal.variant(platform="cpu")(_propose_one)
multi_proposal.variant(platform="cpu")(_propose)
