"""Sampling with computed positions: grid generators, bilinear sampling, spatial transformer and correlation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, op


def bilinear(data: Array, x: Array, y: Array) -> Array:
    """Values of images between their pixels; pixels outside count as 0.

    Args:
      data: (N, C, H, W).
      x, y: (N, ...) positions in pixels.

    Returns:
      (N, C, ...).
    """
    n, c, h, w = data.shape
    left, top = jnp.floor(x), jnp.floor(y)
    flat = data.reshape(n, c, h * w)
    total: Any = 0
    for dy in (0, 1):
        for dx in (0, 1):
            col, row = left + dx, top + dy
            weight = (x - left if dx else 1 - (x - left)) * (y - top if dy else 1 - (y - top))
            inside = (col >= 0) & (col < w) & (row >= 0) & (row < h)
            at = (jnp.clip(row, 0, h - 1) * w + jnp.clip(col, 0, w - 1)).astype(jnp.int32).reshape(n, 1, -1)
            value = jnp.take_along_axis(flat, at, axis=2).reshape(n, c, *x.shape[1:])
            total = total + value * jnp.where(inside, weight, 0)[:, None]
    return total


def _affine_base(h: int, w: int, dtype: Any) -> Array:
    """Rows x, y, 1 of the target's pixels in [-1, 1]: (3, h * w)."""
    y, x = (jnp.arange(n, dtype=dtype) * (2 / max(n - 1, 1)) - 1 for n in (h, w))
    rows = [jnp.broadcast_to(x[None], (h, w)), jnp.broadcast_to(y[:, None], (h, w)), jnp.ones((h, w), dtype)]
    return jnp.stack(rows).reshape(3, h * w)


def _affine(theta: Array, base: Array) -> Array:
    """(N, 6) and (3, P) -> (N, 2, P)."""
    return jnp.einsum("nij,jp->nip", theta.reshape(-1, 2, 3), base, precision=lax.Precision.HIGHEST)


def _sample(data: Array, grid: Array) -> Array:
    """Bilinear values at `grid` (N, 2, ...): x and y in [-1, 1] over the image."""
    h, w = data.shape[2:]
    return bilinear(data, (grid[:, 0] + 1) * ((w - 1) / 2), (grid[:, 1] + 1) * ((h - 1) / 2)).astype(data.dtype)


def _check_target(shape: Shape) -> None:
    if len(shape) != 2 or min(shape) < 1:
        raise ParamError(f"target_shape must be two positive numbers (height, width), got {shape}")


def _need_4d(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 4:
        raise ShapeError(f"{name} must have four axes (batch, channel, height, width), got shape {shape}")


class GridGeneratorParams(Params):
    transform_type: Literal["affine", "warp"] = param(doc="affine: from a 2x3 matrix; warp: from a flow in pixels.")
    target_shape: Shape = param((0, 0), doc="Height and width of an affine grid.")


@op("GridGenerator", params=GridGeneratorParams, outputs=("output", "grid_dst"), num_visible=1)
def grid_generator(p: GridGeneratorParams, data: Array) -> tuple[Array, Array]:
    """A grid (N, 2, H, W) of sampling positions x, y in [-1, 1] for `BilinearSampler`.

    affine: data (N, 6), the matrix applied to (x, y, 1) of each pixel of `target_shape`. warp: data (N, 2, H, W), a
    flow in pixels added to each pixel's own position. The hidden output is the base grid.
    """
    if p.transform_type == "affine":
        if data.ndim != 2 or data.shape[1] != 6:
            raise ShapeError(f"data must have shape (batch, 6) for an affine grid, got {data.shape}")
        _check_target(p.target_shape)
        base = _affine_base(*p.target_shape, dtype=data.dtype)
        return _affine(data, base).reshape(-1, 2, *p.target_shape).astype(data.dtype), base
    if data.ndim != 4 or data.shape[1] != 2:
        raise ShapeError(f"data must have shape (batch, 2, height, width) for a warp grid, got {data.shape}")
    h, w = data.shape[2:]
    x = jnp.broadcast_to(jnp.arange(w, dtype=data.dtype)[None], (h, w))
    y = jnp.broadcast_to(jnp.arange(h, dtype=data.dtype)[:, None], (h, w))
    base = jnp.stack([x, y])
    scale = jnp.asarray([max(w - 1, 1) / 2, max(h - 1, 1) / 2], dtype=data.dtype)[:, None, None]
    return (data + base) / scale - 1, base.reshape(2, h * w)


class BilinearSamplerParams(Params):
    cudnn_off: bool | None = param(None, doc="Accepted and without effect.")


@op("BilinearSampler", params=BilinearSamplerParams, outputs=("output", "tmp"), num_visible=1)
def bilinear_sampler(p: BilinearSamplerParams, data: Array, grid: Array) -> tuple[Array, Array]:
    """Values of data (N, C, H, W) at grid (N, 2, H', W'): x, y in [-1, 1]; outside the image is 0.

    Output (N, C, H', W'), differentiable in both inputs. The hidden output holds the positions in pixels.
    """
    _need_4d("data", data.shape)
    if grid.ndim != 4 or grid.shape[:2] != (data.shape[0], 2):
        raise ShapeError(f"grid must have shape ({data.shape[0]}, 2, height, width), got {grid.shape}")
    scale = jnp.asarray([(data.shape[3] - 1) / 2, (data.shape[2] - 1) / 2], dtype=grid.dtype)
    pixels = (grid.transpose(0, 2, 3, 1) + 1) * scale
    return _sample(data, grid), lax.stop_gradient(pixels)


class SpatialTransformerParams(Params):
    target_shape: Shape = param((0, 0), doc="Height and width of the output.")
    transform_type: Literal["affine"] = param(doc="How the grid is made.")
    sampler_type: Literal["bilinear"] = param(doc="How the grid is sampled.")
    cudnn_off: bool | None = param(None, doc="Accepted and without effect.")


def _infer_transformer(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    data = ins[0]
    return [data, (data[0] if data is not None and len(data) == 4 else 0, 6)]


@op("SpatialTransformer", params=SpatialTransformerParams, outputs=("output", "grid_dst", "grid_src"), num_visible=1,
    infer_inputs=_infer_transformer)
def spatial_transformer(p: SpatialTransformerParams, data: Array, loc: Array) -> tuple[Array, Array, Array]:
    """Samples data (N, C, H, W) at the affine grid of loc (N, 6): (N, C, *target_shape), outside is 0."""
    _need_4d("data", data.shape)
    if loc.shape != (data.shape[0], 6):
        raise ShapeError(f"loc must have shape ({data.shape[0]}, 6), got {loc.shape}")
    _check_target(p.target_shape)
    base = _affine_base(*p.target_shape, dtype=data.dtype)
    grid = _affine(loc, base)
    out = _sample(data, grid).reshape(*data.shape[:2], *p.target_shape)
    return out, base, lax.stop_gradient(grid).astype(data.dtype)


# ---- correlation


class CorrelationParams(Params):
    kernel_size: int = param(1, doc="Side of the patches that are compared; odd.", ge=1)
    max_displacement: int = param(1, doc="Largest displacement in pixels.", ge=0)
    stride1: int = param(1, doc="Distance of the patches of the first image.", ge=1)
    stride2: int = param(1, doc="Distance of the displacements.", ge=1)
    pad_size: int = param(0, doc="Zeros added on each side.", ge=0)
    is_multiply: bool = param(True, doc="Whether patches are multiplied; else absolute differences are added.")


def _difference(a: Array, b: Array) -> Array:
    # MXNet: the gradient of |a - b| at a tie is that of a > b.
    return jnp.where(a >= b, a - b, b - a)


@op("Correlation", params=CorrelationParams, outputs=("output", "tmp1", "tmp2"), num_visible=1)
def correlation(p: CorrelationParams, data1: Array, data2: Array) -> tuple[Array, Array, Array]:
    """Mean product (or absolute difference) of patches of two images (N, C, H, W) at each displacement.

    With r = max_displacement // stride2 the output has (2r + 1)^2 channels, displacement in y slow and in x fast, and
    one cell per `stride1` pixels of the padded image less max_displacement + kernel_size // 2 on each side. The hidden
    outputs are the padded images, channels last.
    """
    return _correlate(p, data1, data2, _sums_by_displacement)


_Sums = Callable[[CorrelationParams, Array, Array, tuple[int, int]], Array]


def _correlate(p: CorrelationParams, data1: Array, data2: Array, sums: _Sums) -> tuple[Array, Array, Array]:
    _need_4d("data1", data1.shape)
    if data1.shape != data2.shape:
        raise ShapeError(f"data1 and data2 must have the same shape, got {data1.shape} and {data2.shape}")
    if p.kernel_size % 2 == 0:
        raise ParamError(f"kernel_size={p.kernel_size} must be odd")
    c, h, w = data1.shape[1:]
    border = p.max_displacement + p.kernel_size // 2
    top = [-(-(size + 2 * p.pad_size - 2 * border) // p.stride1) for size in (h, w)]
    if min(top) < 1:
        raise ShapeError(f"data of {h} x {w} pixels and pad_size={p.pad_size} are too small for max_displacement="
                         f"{p.max_displacement} and kernel_size={p.kernel_size}: pad more")
    pad = ((0, 0), (0, 0), (p.pad_size,) * 2, (p.pad_size,) * 2)
    one, two = (jnp.pad(x, pad) for x in (data1, data2))
    height, width = ((t - 1) * p.stride1 + p.kernel_size for t in top)
    summed = sums(p, one, two, (height, width))
    window = (1, 1, p.kernel_size, p.kernel_size)
    if max(p.kernel_size, p.stride1) > 1:
        summed = lax.reduce_window(summed, np.zeros((), summed.dtype), lax.add, window, (1, 1, p.stride1, p.stride1),
                                   "VALID")
    out = (summed / (p.kernel_size * p.kernel_size * c)).astype(data1.dtype)
    return out, lax.stop_gradient(one.transpose(0, 2, 3, 1)), lax.stop_gradient(two.transpose(0, 2, 3, 1))


def _wide(x: Array) -> Any:
    return jnp.float32 if jnp.dtype(x.dtype).itemsize < 4 else x.dtype


def _steps(p: CorrelationParams) -> list[int]:
    r = p.max_displacement // p.stride2
    return [d * p.stride2 for d in range(-r, r + 1)]


def _sums_by_displacement(p: CorrelationParams, one: Array, two: Array, size: tuple[int, int]) -> Array:
    """Products (or differences) of pixels summed over channels: (N, displacements, *size)."""
    start = p.max_displacement
    first = one[:, :, start:start + size[0], start:start + size[1]]

    def at(displacement: Array) -> Array:
        zero = jnp.zeros((), jnp.int32)
        corner = (zero, zero, displacement[0] + start, displacement[1] + start)
        second = lax.dynamic_slice(two, corner, first.shape)
        value = first * second if p.is_multiply else _difference(first, second)
        return jnp.sum(value.astype(_wide(one)), axis=1)

    steps = [(dy, dx) for dy in _steps(p) for dx in _steps(p)]
    return lax.map(at, jnp.asarray(steps, dtype=jnp.int32)).transpose(1, 0, 2, 3)


def _sums_by_row(p: CorrelationParams, one: Array, two: Array, size: tuple[int, int]) -> Array:
    """The same for products: those of two rows of pixels are a matrix, whose diagonals are the displacements in x."""
    steps, start = _steps(p), p.max_displacement
    reach = steps[-1]
    height, width = size
    first = one[:, :, start:start + height, start:start + width].transpose(0, 2, 3, 1)
    across = width + 2 * reach
    n = one.shape[0]

    def at(dy: Array) -> Array:
        rows = lax.dynamic_slice_in_dim(two, start + dy, height, 2)[..., start - reach:start + width + reach]
        pairs = jnp.matmul(first, rows.transpose(0, 2, 1, 3), preferred_element_type=_wide(one))
        # read with rows of one more, the diagonals stand in columns
        flat = jnp.pad(pairs.reshape(n, height, -1), ((0, 0), (0, 0), (0, width)))
        return flat.reshape(n, height, width, across + 1)[..., :2 * reach + 1:p.stride2]

    out = lax.map(at, jnp.asarray(steps, dtype=jnp.int32))  # dy, N, y, x, dx
    return out.transpose(1, 0, 4, 2, 3).reshape(n, -1, height, width)


_MOST_OVER = 16
"""Rows longer than this many displacements take more time as matrices than displacement by displacement."""


def _has_short_rows(p: CorrelationParams, avals: Sequence[Any]) -> bool:
    return p.is_multiply and math.prod(avals[0].shape) > 0 and avals[0].shape[-1] <= _MOST_OVER * len(_steps(p))


@correlation.variant(platform="cpu", when=_has_short_rows)
def _correlate_rows(p: CorrelationParams, data1: Array, data2: Array) -> tuple[Array, Array, Array]:
    return _correlate(p, data1, data2, _sums_by_row)
