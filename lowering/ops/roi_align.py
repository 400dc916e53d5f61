"""ROIAlign and its rotated form: means of bilinear samples over the bins of regions of interest."""

from __future__ import annotations

import functools
import itertools
import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._regions import check_regions, combine_parts, image_of, over_rois, pooled_pair, scale_of, tent
from symjax.lowering.ops.bounding_box import wide
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op


class ROIAlignParams(Params):
    pooled_size: Shape = param(doc="Height and width of the output.")
    spatial_scale: float = param(doc="Size of the feature map over that of the image the regions refer to.")
    sample_ratio: int = param(-1, doc="Samples per bin and axis; not positive: one per pixel of the bin, rounded up.")
    position_sensitive: bool = param(False, doc="Whether each bin has channels of its own.")
    aligned: bool = param(False, doc="Whether regions are shifted by half a pixel, and small ones not enlarged.")


def _combine_last(image: Array, rows: Array, cols: Array) -> Array:
    """(H, W, C) with row weights (P, H) and column weights (Q, W) -> (P, Q, C): wide products, twice as fast."""
    h, w, c = image.shape
    partial = jnp.matmul(rows, image.reshape(h, w * c), precision=lax.Precision.HIGHEST).reshape(-1, w, c)
    return jnp.matmul(jnp.broadcast_to(cols, (len(rows), *cols.shape)), partial, precision=lax.Precision.HIGHEST)


def _sample_count(length: Array, bins: int, ratio: int) -> Array:
    return jnp.full((), ratio, jnp.int32) if ratio > 0 else jnp.ceil(length / bins).astype(jnp.int32)


def _align_weights(start: Array, length: Array, bins: int, ratio: int, size: int) -> Array:
    """Mean interpolation weights (bins, size) of the samples of each bin along one axis."""
    step = length / bins
    count = _sample_count(length, bins, ratio)
    origin = start + jnp.arange(bins, dtype=start.dtype) * step

    def add(i: Array, total: Array) -> Array:
        at = origin + (i.astype(start.dtype) + 0.5) * step / count.astype(start.dtype)
        inside = (at >= -1) & (at <= size)
        return total + jnp.where(inside[:, None], tent(jnp.clip(at, 0, size - 1), size), 0)

    # A fixed number of samples keeps the loop's length static; else it follows the region.
    total = lax.fori_loop(jnp.zeros((), jnp.int32), count, add, jnp.zeros((bins, size), start.dtype))
    return total / jnp.maximum(count, 1).astype(start.dtype)


def _extent(p: ROIAlignParams, roi: Array, start: int) -> tuple[Array, Array]:
    """Start and length of a region on the feature map, from the column that holds the start."""
    low, high = (roi[i] * scale_of(p) - (0.5 if p.aligned else 0) for i in (start, start + 2))
    # MXNet: a region is at least one pixel unless `aligned`, which it wants not to be empty.
    return low, jnp.maximum(high - low, 0.0 if p.aligned else 1.0)


@op("_contrib_ROIAlign", params=ROIAlignParams)
def roi_align(p: ROIAlignParams, data: Array, rois: Array) -> Array:
    """Mean of bilinear samples in a grid of bins of each region: (R, C, *pooled_size).

    data (N, C, H, W); rois (R, 5) of rows (image, x1, y1, x2, y2), not rounded; a region of a negative image gives 0.
    Samples more than a pixel outside count as 0. With `position_sensitive` the data has C * height * width channels,
    those of a bin for each output channel. Regions get no gradient.
    """
    check_regions(data.shape, rois.shape, 5)
    height, width = pooled_pair(p.pooled_size)
    _, c, h, w = data.shape
    if p.position_sensitive and c % (height * width):
        raise ShapeError(f"data must have a multiple of {height * width} channels for position_sensitive, got {c}")

    def pool(roi: Array) -> Array:
        rows = _align_weights(*_extent(p, roi, 2), height, p.sample_ratio, h)
        cols = _align_weights(*_extent(p, roi, 1), width, p.sample_ratio, w)
        if p.position_sensitive:
            out = combine_parts(wide(image_of(data, roi[0])).reshape(-1, height, width, h, w), rows, cols)
        else:
            out = _combine_last(image_of(last, roi[0]), rows, cols)
        return jnp.where(roi[0] < 0, 0, out).astype(data.dtype)

    last = wide(data).transpose(0, 2, 3, 1)
    out = over_rois(pool, rois)
    return out if p.position_sensitive else out.transpose(0, 3, 1, 2)


def _sample_reads(start: Array, length: Array, bins: int, ratio: int, size: int) -> tuple[Array, Array]:
    """Pixels (bins, 2 * ratio) that the samples of each bin read along one axis, and their weights in its mean."""
    step = length / bins
    sample = jnp.arange(ratio, dtype=start.dtype) + 0.5
    at = start + jnp.arange(bins, dtype=start.dtype)[:, None] * step + sample * step / ratio
    inside = (at >= -1) & (at <= size)
    at = jnp.clip(at, 0, size - 1)
    part = at - jnp.floor(at)
    pixels = jnp.concatenate([jnp.floor(at), jnp.ceil(at)], axis=1).astype(jnp.int32)
    return pixels, jnp.concatenate([1 - part, part], axis=1) * jnp.tile(inside, 2) / ratio


@roi_align.variant(platform="cpu", when=lambda p, avals: 0 < p.sample_ratio <= 2 and not p.position_sensitive)
def _align_by_reads(p: ROIAlignParams, data: Array, rois: Array) -> Array:
    """The same by reading the few pixels of each bin, several times faster; the gradient stays that of the products."""
    check_regions(data.shape, rois.shape, 5)
    height, width = pooled_pair(p.pooled_size)
    n, c, h, w = data.shape

    def pool(pixels: Array, roi: Array) -> Array:
        (rows, down), (cols, across) = (
            _sample_reads(*_extent(p, roi, axis), *sizes)
            for axis, sizes in ((2, (height, p.sample_ratio, h)), (1, (width, p.sample_ratio, w)))
        )
        corner = jnp.clip(roi[0].astype(jnp.int32), 0, n - 1) * (h * w)
        total = jnp.zeros((), pixels.dtype)
        # One read after the other: they are one loop over the channels then, and a row of these lies together.
        for i, j in itertools.product(range(rows.shape[1]), range(cols.shape[1])):
            place = (corner + rows[:, i, None] * w + cols[:, j]).reshape(-1)
            weight = (down[:, i, None] * across[:, j]).reshape(-1, 1)
            total = total + weight * jnp.take(pixels, place, axis=0, mode="clip")
        return jnp.where(roi[0] < 0, 0, total).astype(data.dtype)

    @jax.custom_jvp
    def call(data: Array, rois: Array) -> Array:
        pixels = wide(data).transpose(0, 2, 3, 1).reshape(-1, c)
        out = over_rois(functools.partial(pool, pixels), rois)
        return out.transpose(0, 2, 1).reshape(-1, c, height, width)

    @call.defjvp
    def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
        return call(*primals), roi_align.rule(p, tangents[0], primals[1])

    return call(data, rois)


class RROIAlignParams(Params):
    pooled_size: Shape = param(doc="Height and width of the output.")
    spatial_scale: float = param(doc="Size of the feature map over that of the image the regions refer to.")
    sampling_ratio: int = param(-1, doc="Samples per bin and axis; not positive: one per pixel of the bin, rounded up.")


def _rotated_weights(p: RROIAlignParams, roi: Array, h: int, w: int) -> Array:
    """Mean interpolation weights (height * width, h * w) of the samples of each bin."""
    height, width = pooled_pair(p.pooled_size)
    cx, cy = roi[1] * scale_of(p), roi[2] * scale_of(p)
    rw, rh = (jnp.maximum(roi[i] * scale_of(p), 1) for i in (3, 4))
    theta = roi[5] * (math.pi / 180)
    cos, sin = jnp.cos(theta), jnp.sin(theta)
    counts = _sample_count(rh, height, p.sampling_ratio), _sample_count(rw, width, p.sampling_ratio)
    total = counts[0] * counts[1]
    bins = jnp.arange(height * width, dtype=jnp.int32)
    ph, pw = (bins // width).astype(roi.dtype), (bins % width).astype(roi.dtype)

    def add(i: Array, weights: Array) -> Array:
        iy, ix = (i // counts[1]).astype(roi.dtype), (i % counts[1]).astype(roi.dtype)
        yy = -rh / 2 + (ph + (iy + 0.5) / counts[0].astype(roi.dtype)) * (rh / height)
        xx = -rw / 2 + (pw + (ix + 0.5) / counts[1].astype(roi.dtype)) * (rw / width)
        x, y = xx * cos + yy * sin + cx, yy * cos - xx * sin + cy
        inside = (y >= -1) & (y <= h) & (x >= -1) & (x <= w)
        one = tent(jnp.clip(y, 0, h - 1), h)[:, :, None] * tent(jnp.clip(x, 0, w - 1), w)[:, None]
        return weights + jnp.where(inside[:, None, None], one, 0)

    summed = lax.fori_loop(jnp.zeros((), jnp.int32), total, add, jnp.zeros((height * width, h, w), roi.dtype))
    return (summed / jnp.maximum(total, 1).astype(roi.dtype)).reshape(height * width, h * w)


@op("_contrib_RROIAlign", params=RROIAlignParams)
def rroi_align(p: RROIAlignParams, data: Array, rois: Array) -> Array:
    """`_contrib_ROIAlign` of rotated regions (R, 6) of rows (image, x, y, width, height, angle in degrees).

    The gradient of the data is given; MXNet has none. Regions get no gradient.
    """
    check_regions(data.shape, rois.shape, 6)
    _, c, h, w = data.shape

    def pool(roi: Array) -> Array:
        image = wide(image_of(data, roi[0])).reshape(c, h * w)
        out = jnp.matmul(image, _rotated_weights(p, roi, h, w).T, precision=lax.Precision.HIGHEST)
        return out.reshape(c, *p.pooled_size).astype(data.dtype)

    return over_rois(pool, rois)
