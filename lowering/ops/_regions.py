"""What the operators on regions of interest share.

Regions are handled one after another by `lax.map`, so memory does not grow with their number. Where a bin is a
rectangle of the image, pooling is a product of the image with one weight matrix per axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops.bounding_box import wide
from symjax.lowering.params import Shape


def check_regions(data: tuple[int, ...], rois: tuple[int, ...], columns: int) -> None:
    if len(data) != 4:
        raise ShapeError(f"data must have four axes (batch, channel, height, width), got shape {data}")
    if len(rois) != 2 or rois[1] != columns:
        raise ShapeError(f"rois must have shape (regions, {columns}), got {rois}")


def pooled_pair(pooled: Shape) -> tuple[int, int]:
    if len(pooled) != 2 or min(pooled) < 1:
        raise ParamError(f"pooled_size must be two positive numbers (height, width), got {pooled}")
    return pooled[0], pooled[1]


def exact_quotient(x: Array, divisor: int) -> Array:
    """x / divisor as IEEE rounds it: XLA multiplies by the reciprocal of a constant, which moves whole results."""
    return x / lax.optimization_barrier(jnp.asarray(divisor, dtype=x.dtype))


def scale_of(p: Any) -> float:
    """The scale in float32, as MXNet keeps it: it decides where a scaled half is rounded to."""
    return float(np.float32(p.spatial_scale))


def round_away(x: Array) -> Array:
    """To the nearest whole number, halves away from zero."""
    return jnp.trunc(x + jnp.copysign(jnp.asarray(0.5, x.dtype), x))


def image_of(data: Array, index: Array) -> Array:
    return lax.dynamic_index_in_dim(data, jnp.clip(index.astype(jnp.int32), 0, data.shape[0] - 1), keepdims=False)


def over_rois(function: Callable[[Array], Any], rois: Array) -> Any:
    return lax.map(function, lax.stop_gradient(wide(rois)))


def tent(at: Array, size: int) -> Array:
    """Interpolation weights of positions (...) within [0, size - 1] over the pixels: (..., size)."""
    low = lax.stop_gradient(jnp.floor(at))
    pixel = jnp.arange(size, dtype=at.dtype)
    part = (at - low)[..., None]
    high = lax.stop_gradient(jnp.ceil(at))
    return jnp.where(pixel == low[..., None], 1 - part, 0) + jnp.where(pixel == high[..., None], part, 0)


def combine_parts(image: Array, rows: Array, cols: Array) -> Array:
    """(C, P, Q, H, W), an image per bin, with weights (P, H) and (Q, W) -> (C, P, Q)."""
    partial = jnp.einsum("cpqhw,qw->cpqh", image, cols, precision=lax.Precision.HIGHEST)
    return jnp.einsum("cpqh,ph->cpq", partial, rows, precision=lax.Precision.HIGHEST)
