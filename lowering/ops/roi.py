"""Pooling of regions of interest: ROIPooling, ROIAlign, rotated and position-sensitive variants.

Regions are handled one after another by `lax.map`, so memory does not grow with their number. Where a bin is a
rectangle of the image, pooling is a product of the image with one weight matrix per axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._axes import gather
from symjax.lowering.ops.bounding_box import wide
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op


def _need(data: tuple[int, ...], rois: tuple[int, ...], columns: int) -> None:
    if len(data) != 4:
        raise ShapeError(f"data must have four axes (batch, channel, height, width), got shape {data}")
    if len(rois) != 2 or rois[1] != columns:
        raise ShapeError(f"rois must have shape (regions, {columns}), got {rois}")


def _pair(pooled: Shape) -> tuple[int, int]:
    if len(pooled) != 2 or min(pooled) < 1:
        raise ParamError(f"pooled_size must be two positive numbers (height, width), got {pooled}")
    return pooled[0], pooled[1]


def exact_quotient(x: Array, divisor: int) -> Array:
    """x / divisor as IEEE rounds it: XLA multiplies by the reciprocal of a constant, which moves whole results."""
    return x / lax.optimization_barrier(jnp.asarray(divisor, dtype=x.dtype))


def _scale(p: Any) -> float:
    """The scale in float32, as MXNet keeps it: it decides where a scaled half is rounded to."""
    return float(np.float32(p.spatial_scale))


def _round(x: Array) -> Array:
    """To the nearest whole number, halves away from zero."""
    return jnp.trunc(x + jnp.copysign(jnp.asarray(0.5, x.dtype), x))


def _image(data: Array, index: Array) -> Array:
    return lax.dynamic_index_in_dim(data, jnp.clip(index.astype(jnp.int32), 0, data.shape[0] - 1), keepdims=False)


def _over_rois(function: Callable[[Array], Any], rois: Array) -> Any:
    return lax.map(function, lax.stop_gradient(wide(rois)))


def _tent(at: Array, size: int) -> Array:
    """Interpolation weights of positions (...) within [0, size - 1] over the pixels: (..., size)."""
    low = lax.stop_gradient(jnp.floor(at))
    pixel = jnp.arange(size, dtype=at.dtype)
    part = (at - low)[..., None]
    high = lax.stop_gradient(jnp.ceil(at))
    return jnp.where(pixel == low[..., None], 1 - part, 0) + jnp.where(pixel == high[..., None], part, 0)


def _combine_last(image: Array, rows: Array, cols: Array) -> Array:
    """(H, W, C) with row weights (P, H) and column weights (Q, W) -> (P, Q, C): wide products, twice as fast."""
    h, w, c = image.shape
    partial = jnp.matmul(rows, image.reshape(h, w * c), precision=lax.Precision.HIGHEST).reshape(-1, w, c)
    return jnp.matmul(jnp.broadcast_to(cols, (len(rows), *cols.shape)), partial, precision=lax.Precision.HIGHEST)


def _combine_parts(image: Array, rows: Array, cols: Array) -> Array:
    """(C, P, Q, H, W), an image per bin, with weights (P, H) and (Q, W) -> (C, P, Q)."""
    partial = jnp.einsum("cpqhw,qw->cpqh", image, cols, precision=lax.Precision.HIGHEST)
    return jnp.einsum("cpqh,ph->cpq", partial, rows, precision=lax.Precision.HIGHEST)


# ---- ROIPooling


class ROIPoolingParams(Params):
    pooled_size: Shape = param(doc="Height and width of the output.")
    spatial_scale: float = param(doc="Size of the feature map over that of the image the regions refer to.")


def _bins(start: Array, end: Array, count: int, size: int) -> tuple[Array, Array]:
    """The first pixel of each bin of a range of whole pixels, both ends included, and the one after its last."""
    length = exact_quotient(jnp.maximum(end - start + 1, 1), count)
    bins = jnp.arange(count, dtype=start.dtype)
    low = jnp.clip(jnp.floor(bins * length) + start, 0, size)
    high = jnp.clip(jnp.ceil((bins + 1) * length) + start, 0, size)
    return low.astype(jnp.int32), high.astype(jnp.int32)


def _first_maximum(pixels: Array, corner: Array, rows: tuple[Array, Array], cols: tuple[Array, Array],
                   width: int) -> Array:
    """Place (P * Q, C) of the first maximum of each bin among the pixels of its image, -1 where it has none.

    Args:
      pixels: (N * H * W, C).
      corner: the image's first pixel.
      rows, cols: the bins.
      width: pixels in a row.
    """
    tall, broad = (jnp.max(high - low) for low, high in (rows, cols))

    def look(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        best, at = state
        row, col = rows[0] + step // broad, cols[0] + step % broad
        inside = ((row < rows[1])[:, None] & (col < cols[1])).reshape(-1, 1)
        place = (row[:, None] * width + col).reshape(-1)
        value = jnp.take(pixels, corner + place, axis=0, mode="clip")
        better = inside & ((value > best) | (at < 0))
        return jnp.where(better, value, best), jnp.where(better, place[:, None], at)

    shape = (rows[0].size * cols[0].size, pixels.shape[1])
    start = jnp.full(shape, -jnp.inf, pixels.dtype), jnp.full(shape, -1, jnp.int32)
    return lax.fori_loop(jnp.zeros((), jnp.int32), jnp.maximum(tall, 0) * jnp.maximum(broad, 0), look, start)[1]


@op("ROIPooling", aliases=("_npx_roi_pooling",), params=ROIPoolingParams, outputs=("output", "maxidx"), num_visible=1)
def roi_pooling(p: ROIPoolingParams, data: Array, rois: Array) -> tuple[Array, Array]:
    """Maximum over a grid of bins of each region: (R, C, *pooled_size).

    data (N, C, H, W); rois (R, 5) of rows (image, x1, y1, x2, y2), scaled and rounded to whole pixels, ends included.
    Bins overlap where the region is no multiple of the grid; an empty bin gives 0. The gradient goes to the first
    maximum of a bin, whose flat position the hidden output holds (-1: none); regions get none.
    """
    _need(data.shape, rois.shape, 5)
    height, width = _pair(p.pooled_size)
    n, c, h, w = data.shape
    pixels = wide(lax.stop_gradient(data)).transpose(0, 2, 3, 1).reshape(-1, c)

    def find(roi: Array) -> tuple[Array, Array]:
        x1, y1, x2, y2 = (_round(roi[i] * _scale(p)) for i in range(1, 5))
        image = jnp.clip(roi[0].astype(jnp.int32), 0, n - 1)
        return _first_maximum(pixels, image * (h * w), _bins(y1, y2, height, h), _bins(x1, x2, width, w), w), image

    at, image = _over_rois(find, rois)
    at = at.transpose(0, 2, 1)
    # One read for all regions: its gradient is one sum, not one for each of them.
    channel = image[:, None, None] * c + jnp.arange(c, dtype=jnp.int32)[:, None]
    place = channel * (h * w) + jnp.maximum(at, 0)
    value = gather(lambda x, i: jnp.take(x, i, mode="clip"), data.reshape(-1), place)
    shape = (rois.shape[0], c, height, width)
    return jnp.where(at >= 0, value, 0).reshape(shape), at.astype(data.dtype).reshape(shape)


# ---- ROIAlign


class ROIAlignParams(Params):
    pooled_size: Shape = param(doc="Height and width of the output.")
    spatial_scale: float = param(doc="Size of the feature map over that of the image the regions refer to.")
    sample_ratio: int = param(-1, doc="Samples per bin and axis; not positive: one per pixel of the bin, rounded up.")
    position_sensitive: bool = param(False, doc="Whether each bin has channels of its own.")
    aligned: bool = param(False, doc="Whether regions are shifted by half a pixel, and small ones not enlarged.")


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
        return total + jnp.where(inside[:, None], _tent(jnp.clip(at, 0, size - 1), size), 0)

    # A fixed number of samples keeps the loop's length static; else it follows the region.
    total = lax.fori_loop(jnp.zeros((), jnp.int32), count, add, jnp.zeros((bins, size), start.dtype))
    return total / jnp.maximum(count, 1).astype(start.dtype)


@op("_contrib_ROIAlign", params=ROIAlignParams)
def roi_align(p: ROIAlignParams, data: Array, rois: Array) -> Array:
    """Mean of bilinear samples in a grid of bins of each region: (R, C, *pooled_size).

    data (N, C, H, W); rois (R, 5) of rows (image, x1, y1, x2, y2), not rounded; a region of a negative image gives 0.
    Samples more than a pixel outside count as 0. With `position_sensitive` the data has C * height * width channels,
    those of a bin for each output channel. Regions get no gradient.
    """
    _need(data.shape, rois.shape, 5)
    height, width = _pair(p.pooled_size)
    _, c, h, w = data.shape
    if p.position_sensitive and c % (height * width):
        raise ShapeError(f"data must have a multiple of {height * width} channels for position_sensitive, got {c}")

    def pool(roi: Array) -> Array:
        x1, y1, x2, y2 = (roi[i] * _scale(p) - (0.5 if p.aligned else 0) for i in range(1, 5))
        # MXNet: a region is at least one pixel unless `aligned`, which it wants not to be empty.
        least = 0.0 if p.aligned else 1.0
        rows = _align_weights(y1, jnp.maximum(y2 - y1, least), height, p.sample_ratio, h)
        cols = _align_weights(x1, jnp.maximum(x2 - x1, least), width, p.sample_ratio, w)
        if p.position_sensitive:
            out = _combine_parts(wide(_image(data, roi[0])).reshape(-1, height, width, h, w), rows, cols)
        else:
            out = _combine_last(_image(last, roi[0]), rows, cols)
        return jnp.where(roi[0] < 0, 0, out).astype(data.dtype)

    last = wide(data).transpose(0, 2, 3, 1)
    out = _over_rois(pool, rois)
    return out if p.position_sensitive else out.transpose(0, 3, 1, 2)


class RROIAlignParams(Params):
    pooled_size: Shape = param(doc="Height and width of the output.")
    spatial_scale: float = param(doc="Size of the feature map over that of the image the regions refer to.")
    sampling_ratio: int = param(-1, doc="Samples per bin and axis; not positive: one per pixel of the bin, rounded up.")


def _rotated_weights(p: RROIAlignParams, roi: Array, h: int, w: int) -> Array:
    """Mean interpolation weights (height * width, h * w) of the samples of each bin."""
    height, width = _pair(p.pooled_size)
    cx, cy = roi[1] * _scale(p), roi[2] * _scale(p)
    rw, rh = (jnp.maximum(roi[i] * _scale(p), 1) for i in (3, 4))
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
        one = _tent(jnp.clip(y, 0, h - 1), h)[:, :, None] * _tent(jnp.clip(x, 0, w - 1), w)[:, None]
        return weights + jnp.where(inside[:, None, None], one, 0)

    summed = lax.fori_loop(jnp.zeros((), jnp.int32), total, add, jnp.zeros((height * width, h, w), roi.dtype))
    return (summed / jnp.maximum(total, 1).astype(roi.dtype)).reshape(height * width, h * w)


@op("_contrib_RROIAlign", params=RROIAlignParams)
def rroi_align(p: RROIAlignParams, data: Array, rois: Array) -> Array:
    """`_contrib_ROIAlign` of rotated regions (R, 6) of rows (image, x, y, width, height, angle in degrees).

    The gradient of the data is given; MXNet has none. Regions get no gradient.
    """
    _need(data.shape, rois.shape, 6)
    _, c, h, w = data.shape

    def pool(roi: Array) -> Array:
        image = wide(_image(data, roi[0])).reshape(c, h * w)
        out = jnp.matmul(image, _rotated_weights(p, roi, h, w).T, precision=lax.Precision.HIGHEST)
        return out.reshape(c, *p.pooled_size).astype(data.dtype)

    return _over_rois(pool, rois)


# ---- position-sensitive pooling


class PSROIPoolingParams(Params):
    spatial_scale: float = param(doc="Size of the feature map over that of the image the regions refer to.")
    output_dim: int = param(doc="Channels of the output.", gt=0)
    pooled_size: int = param(doc="Height and width of the output.", gt=0)
    group_size: int = param(0, doc="Bins per axis that have channels of their own, 0 for pooled_size.", ge=0)


def _grouped(image: Array, output_dim: int, group: int, pooled: int) -> Array:
    """The channels of each bin: (output_dim * group^2, H, W) -> (output_dim, pooled, pooled, H, W)."""
    parts = image.reshape(output_dim, group, group, *image.shape[1:])
    at = jnp.asarray([min(i * group // pooled, group - 1) for i in range(pooled)], dtype=jnp.int32)
    return parts[:, at][:, :, at]


def _check_groups(c: int, output_dim: int, group: int) -> None:
    if c != output_dim * group * group:
        raise ShapeError(f"data must have output_dim * group_size^2 = {output_dim * group * group} channels, got {c}")


def _mean_weights(start: Array, length: Array, bins: int, size: int) -> Array:
    """Weights (bins, size) of the mean over the pixels that each bin touches; zero for an empty bin."""
    step = exact_quotient(length, bins)
    place = jnp.arange(bins, dtype=start.dtype)
    low = jnp.clip(jnp.floor(place * step + start), 0, size)
    high = jnp.clip(jnp.ceil((place + 1) * step + start), 0, size)
    pixel = jnp.arange(size, dtype=start.dtype)
    inside = (pixel >= low[:, None]) & (pixel < high[:, None])
    return inside / jnp.maximum(high - low, 1)[:, None]


@op("_contrib_PSROIPooling", params=PSROIPoolingParams)
def psroi_pooling(p: PSROIPoolingParams, data: Array, rois: Array) -> Array:
    """Mean over a grid of bins of each region, from channels of the bin's own: (R, output_dim, pooled, pooled).

    data (N, output_dim * group^2, H, W); rois (R, 5) of rows (image, x1, y1, x2, y2), rounded, then scaled, ends
    included. Regions get no gradient.
    """
    # MXNet: only the GPU build has this operator; on CPU it returns whatever the memory holds.
    _need(data.shape, rois.shape, 5)
    group = p.group_size or p.pooled_size
    _, c, h, w = data.shape
    _check_groups(c, p.output_dim, group)

    def pool(roi: Array) -> Array:
        x1, y1 = (_round(roi[i]) * _scale(p) for i in (1, 2))
        x2, y2 = ((_round(roi[i]) + 1) * _scale(p) for i in (3, 4))
        rows = _mean_weights(y1, jnp.maximum(y2 - y1, 0.1), p.pooled_size, h)
        cols = _mean_weights(x1, jnp.maximum(x2 - x1, 0.1), p.pooled_size, w)
        image = _grouped(wide(_image(data, roi[0])), p.output_dim, group, p.pooled_size)
        return _combine_parts(image, rows, cols).astype(data.dtype)

    return _over_rois(pool, rois)


class DeformablePSROIPoolingParams(Params):
    spatial_scale: float = param(doc="Size of the feature map over that of the image the regions refer to.")
    output_dim: int = param(doc="Channels of the output.", gt=0)
    group_size: int = param(doc="Bins per axis that have channels of their own.", gt=0)
    pooled_size: int = param(doc="Height and width of the output.", gt=0)
    part_size: int = param(0, doc="Height and width of the offsets, 0 for pooled_size.", ge=0)
    sample_per_part: int = param(1, doc="Samples per bin and axis.", gt=0)
    trans_std: float = param(0.0, doc="Factor of the offsets.", ge=0, le=1)
    no_trans: bool = param(False, doc="Whether there is no input of offsets.")


def _deformed_weights(start: Array, length: Array, shift: Array, p: DeformablePSROIPoolingParams, size: int,
                      along: int) -> tuple[Array, Array]:
    """For shifts (K, P, P): summed weights (K, P, P, size) of the samples inside, and their number (K, P, P)."""
    step = length / p.pooled_size
    place = jnp.arange(p.pooled_size, dtype=start.dtype)
    origin = place[:, None] * step + start if along == 0 else place[None] * step + start
    samples = jnp.arange(p.sample_per_part, dtype=start.dtype) * (step / p.sample_per_part)
    at = (origin + shift * length)[..., None] + samples
    inside = (at >= -0.5) & (at <= size - 0.5)
    weights = jnp.where(inside[..., None], _tent(jnp.clip(at, 0, size - 1), size), 0)
    return jnp.sum(weights, axis=-2), jnp.sum(inside, axis=-1, dtype=start.dtype)


def _deformable_names(p: DeformablePSROIPoolingParams) -> tuple[str, ...]:
    return ("data", "rois") if p.no_trans else ("data", "rois", "trans")


@op("_contrib_DeformablePSROIPooling", params=DeformablePSROIPoolingParams, inputs=_deformable_names,
    all_inputs=("data", "rois", "trans"), outputs=("output", "top_count"), num_visible=1)
def deformable_psroi_pooling(p: DeformablePSROIPoolingParams, data: Array, rois: Array,
                             trans: Array | None = None) -> tuple[Array, Array]:
    """Position-sensitive pooling of bilinear samples whose bins are shifted: (R, output_dim, pooled, pooled).

    data (N, output_dim * group^2, H, W); rois (R, 5); trans (R, 2K, part, part): for each of K classes shifts in x and
    y, times `trans_std`, in sizes of the region. The hidden output counts the samples inside the image.
    """
    # MXNet: only the GPU build has this operator; on CPU it returns whatever the memory holds.
    _need(data.shape, rois.shape, 5)
    _, c, h, w = data.shape
    _check_groups(c, p.output_dim, p.group_size)
    part = p.part_size or p.pooled_size
    offsets = jnp.zeros((rois.shape[0], 2, part, part), data.dtype) if trans is None else trans
    fits = offsets.ndim == 4 and offsets.shape[0] == rois.shape[0] and offsets.shape[2:] == (part, part)
    if not fits or offsets.shape[1] % 2:
        raise ShapeError(f"trans must have shape ({rois.shape[0]}, 2 * classes, {part}, {part}), got {offsets.shape}")
    classes = offsets.shape[1] // 2
    if p.output_dim % classes:
        raise ShapeError(f"output_dim={p.output_dim} must be a multiple of the {classes} classes of trans")
    at = jnp.asarray([i * part // p.pooled_size for i in range(p.pooled_size)], dtype=jnp.int32)

    def pool(given: tuple[Array, Array]) -> tuple[Array, Array]:
        roi, shifts = given
        x1, y1 = (_round(roi[i]) * _scale(p) - 0.5 for i in (1, 2))
        x2, y2 = ((_round(roi[i]) + 1) * _scale(p) - 0.5 for i in (3, 4))
        shift = wide(shifts).reshape(classes, 2, part, part)[:, :, at][:, :, :, at] * p.trans_std
        cols, n_cols = _deformed_weights(x1, jnp.maximum(x2 - x1, 0.1), shift[:, 0], p, w, 1)
        rows, n_rows = _deformed_weights(y1, jnp.maximum(y2 - y1, 0.1), shift[:, 1], p, h, 0)
        image = _grouped(wide(_image(data, roi[0])), p.output_dim, p.group_size, p.pooled_size)
        image = image.reshape(classes, -1, *image.shape[1:])
        total = jnp.einsum("kcpqhw,kpqh,kpqw->kcpq", image, rows, cols, precision=lax.Precision.HIGHEST)
        count = jnp.broadcast_to((n_rows * n_cols)[:, None], total.shape)
        out = jnp.where(count > 0, total / jnp.maximum(count, 1), 0)
        shape = (p.output_dim, p.pooled_size, p.pooled_size)
        return out.reshape(shape).astype(data.dtype), count.reshape(shape).astype(data.dtype)

    return lax.map(pool, (lax.stop_gradient(wide(rois)), offsets))
