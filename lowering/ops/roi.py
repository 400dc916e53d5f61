"""Pooling of regions of interest: ROIPooling and the position-sensitive variants."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import gather
from symjax.lowering.ops._regions import (
    check_regions,
    combine_parts,
    exact_quotient,
    image_of,
    over_rois,
    pooled_pair,
    round_away,
    scale_of,
    tent,
)
from symjax.lowering.ops.bounding_box import wide
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op

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
    check_regions(data.shape, rois.shape, 5)
    height, width = pooled_pair(p.pooled_size)
    n, c, h, w = data.shape
    pixels = wide(lax.stop_gradient(data)).transpose(0, 2, 3, 1).reshape(-1, c)

    def find(roi: Array) -> tuple[Array, Array]:
        x1, y1, x2, y2 = (round_away(roi[i] * scale_of(p)) for i in range(1, 5))
        image = jnp.clip(roi[0].astype(jnp.int32), 0, n - 1)
        return _first_maximum(pixels, image * (h * w), _bins(y1, y2, height, h), _bins(x1, x2, width, w), w), image

    at, image = over_rois(find, rois)
    at = at.transpose(0, 2, 1)
    # One read for all regions: its gradient is one sum, not one for each of them.
    channel = image[:, None, None] * c + jnp.arange(c, dtype=jnp.int32)[:, None]
    place = channel * (h * w) + jnp.maximum(at, 0)
    value = gather(lambda x, i: jnp.take(x, i, mode="clip"), data.reshape(-1), place)
    shape = (rois.shape[0], c, height, width)
    return jnp.where(at >= 0, value, 0).reshape(shape), at.astype(data.dtype).reshape(shape)


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
    check_regions(data.shape, rois.shape, 5)
    group = p.group_size or p.pooled_size
    _, c, h, w = data.shape
    _check_groups(c, p.output_dim, group)

    def pool(roi: Array) -> Array:
        x1, y1 = (round_away(roi[i]) * scale_of(p) for i in (1, 2))
        x2, y2 = ((round_away(roi[i]) + 1) * scale_of(p) for i in (3, 4))
        rows = _mean_weights(y1, jnp.maximum(y2 - y1, 0.1), p.pooled_size, h)
        cols = _mean_weights(x1, jnp.maximum(x2 - x1, 0.1), p.pooled_size, w)
        image = _grouped(wide(image_of(data, roi[0])), p.output_dim, group, p.pooled_size)
        return combine_parts(image, rows, cols).astype(data.dtype)

    return over_rois(pool, rois)


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
    weights = jnp.where(inside[..., None], tent(jnp.clip(at, 0, size - 1), size), 0)
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
    check_regions(data.shape, rois.shape, 5)
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
        x1, y1 = (round_away(roi[i]) * scale_of(p) - 0.5 for i in (1, 2))
        x2, y2 = ((round_away(roi[i]) + 1) * scale_of(p) - 0.5 for i in (3, 4))
        shift = wide(shifts).reshape(classes, 2, part, part)[:, :, at][:, :, :, at] * p.trans_std
        cols, n_cols = _deformed_weights(x1, jnp.maximum(x2 - x1, 0.1), shift[:, 0], p, w, 1)
        rows, n_rows = _deformed_weights(y1, jnp.maximum(y2 - y1, 0.1), shift[:, 1], p, h, 0)
        image = _grouped(wide(image_of(data, roi[0])), p.output_dim, p.group_size, p.pooled_size)
        image = image.reshape(classes, -1, *image.shape[1:])
        total = jnp.einsum("kcpqhw,kpqh,kpqw->kcpq", image, rows, cols, precision=lax.Precision.HIGHEST)
        count = jnp.broadcast_to((n_rows * n_cols)[:, None], total.shape)
        out = jnp.where(count > 0, total / jnp.maximum(count, 1), 0)
        shape = (p.output_dim, p.pooled_size, p.pooled_size)
        return out.reshape(shape).astype(data.dtype), count.reshape(shape).astype(data.dtype)

    return lax.map(pool, (lax.stop_gradient(wide(rois)), offsets))
