"""Convolutions whose kernel's positions are inputs: deformable convolution, and the modulated variant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, op


class DeformableConvolutionParams(Params):
    kernel: Shape = param(doc="Height and width of the kernel.")
    stride: Shape = param((), doc="Strides, 1 by default.")
    dilate: Shape = param((), doc="Distances of the kernel's cells, 1 by default.")
    pad: Shape = param((), doc="Padding on each side, 0 by default.")
    num_filter: int = param(doc="Channels of the output.", ge=1)
    num_group: int = param(1, doc="Groups of channels that are convolved apart.", ge=1)
    num_deformable_group: int = param(1, doc="Groups of channels with offsets of their own.", ge=1)
    workspace: int = param(1024, doc="Accepted and without effect.", ge=0)
    no_bias: bool = param(False, doc="Whether there is no bias.")
    layout: Literal["NCHW", "NCW", "NCDHW"] | None = param(None, doc="NCHW or None.")


class ModulatedDeformableConvolutionParams(DeformableConvolutionParams):
    im2col_step: int = param(64, doc="Accepted and without effect.", ge=0)


def _pairs(p: DeformableConvolutionParams) -> tuple[Shape, Shape, Shape, Shape]:
    """Kernel, stride, dilation and padding, two numbers each."""
    if len(p.kernel) != 2:
        raise ParamError(f"kernel={p.kernel} must be two numbers: deformable convolution is two-dimensional")
    return p.kernel, p.stride or (1, 1), p.dilate or (1, 1), p.pad or (0, 0)


def _out_size(p: DeformableConvolutionParams, data: tuple[int, ...]) -> tuple[int, int]:
    kernel, stride, dilate, pad = _pairs(p)
    h, w = ((n + 2 * b - d * (k - 1) - 1) // s + 1 if n else 0
            for n, k, s, d, b in zip(data[2:], kernel, stride, dilate, pad, strict=True))
    return h, w


def _infer_inputs(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    data = ins[0]
    if data is None or len(data) != 4:
        return ins
    cells = math.prod(p.kernel) * p.num_deformable_group
    size = _out_size(p, data)
    known: list[ShapeLike] = [data, (data[0], 2 * cells, *size)]
    if isinstance(p, ModulatedDeformableConvolutionParams):
        known.append((data[0], cells, *size))
    known.append((p.num_filter, data[1] // p.num_group, *p.kernel))
    return known if p.no_bias else [*known, (p.num_filter,)]


def _positions(p: DeformableConvolutionParams, offset: Array) -> tuple[Array, Array]:
    """Row and column (N, groups, cells, H', W') that each cell of the kernel reads."""
    kernel, stride, dilate, pad = _pairs(p)
    n, _, out_h, out_w = offset.shape
    moves = offset.reshape(n, p.num_deformable_group, math.prod(kernel), 2, out_h, out_w)
    cell = [jnp.arange(k, dtype=offset.dtype) * d for k, d in zip(kernel, dilate, strict=True)]
    corner = [jnp.arange(m, dtype=offset.dtype) * s - b for m, s, b in zip((out_h, out_w), stride, pad, strict=True)]
    rows = jnp.repeat(cell[0], kernel[1])[:, None, None] + corner[0][:, None]
    cols = jnp.tile(cell[1], kernel[0])[:, None, None] + corner[1]
    return moves[:, :, :, 0] + rows, moves[:, :, :, 1] + cols


def _read(data: Array, row: Array, col: Array, fade: bool) -> Array:
    """Bilinear values (N, G, C/G, cells, H', W') of data (N, G, C/G, H, W) at positions (N, G, cells, H', W').

    With `fade` values run out to 0 within a pixel of the border; without, the border pixel continues to the border's
    edge, and all outside is 0.
    """
    n, g, c, h, w = data.shape
    if fade:
        alive = (row > -1) & (row < h) & (col > -1) & (col < w)
    else:
        alive = (row >= 0) & (row < h) & (col >= 0) & (col < w)
        row, col = jnp.clip(row, 0, h - 1), jnp.clip(col, 0, w - 1)
    top, left = lax.stop_gradient(jnp.floor(row)), lax.stop_gradient(jnp.floor(col))
    flat = data.reshape(n, g, c, h * w)
    total: Any = 0
    for dy in (0, 1):
        for dx in (0, 1):
            y, x = top + dy, left + dx
            inside = (y >= 0) & (y < h) & (x >= 0) & (x < w) & alive
            at = (jnp.clip(y, 0, h - 1) * w + jnp.clip(x, 0, w - 1)).astype(jnp.int32)
            value = jnp.take_along_axis(flat, at.reshape(n, g, 1, -1), axis=3).reshape(n, g, c, *row.shape[2:])
            weight = (row - top if dy else 1 - (row - top)) * (col - left if dx else 1 - (col - left))
            total = total + value * jnp.where(inside, weight, 0)[:, :, None]
    return total


def _check(p: DeformableConvolutionParams, names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> None:
    if p.layout not in (None, "NCHW"):
        raise ParamError(f"layout={p.layout} is not supported: deformable convolution is two-dimensional, NCHW")
    data = shapes[0]
    if len(data) != 4:
        raise ShapeError(f"data must have four axes (batch, channel, height, width), got shape {data}")
    if data[1] % p.num_group or data[1] % p.num_deformable_group or p.num_filter % p.num_group:
        raise ShapeError(f"num_group={p.num_group} and num_deformable_group={p.num_deformable_group} must divide the "
                         f"{data[1]} channels of data, and num_group num_filter={p.num_filter}")
    for name, want, got in zip(names, _infer_inputs(p, [*shapes], []), shapes, strict=True):
        if want != got:
            raise ShapeError(f"{name} must have shape {want} for data of shape {data}, got {got}")


def _convolve(p: DeformableConvolutionParams, data: Array, offset: Array, mask: Array | None, weight: Array,
              bias: Array | None) -> Array:
    n, c, h, w = data.shape
    groups = p.num_deformable_group
    row, col = _positions(p, offset)
    values = _read(data.reshape(n, groups, c // groups, h, w), row, col, fade=mask is not None)
    if mask is not None:
        values = values * mask.reshape(n, groups, 1, -1, *offset.shape[2:])
    values = values.reshape(n, p.num_group, c // p.num_group * math.prod(p.kernel), *offset.shape[2:])
    matrix = weight.reshape(p.num_group, p.num_filter // p.num_group, -1)
    acc = jnp.float32 if jnp.dtype(data.dtype).itemsize < 4 else data.dtype
    out = jnp.einsum("gfk,ngkhw->ngfhw", matrix, values.astype(weight.dtype), preferred_element_type=acc)
    out = out.reshape(n, p.num_filter, *offset.shape[2:])
    return (out if bias is None else out + bias[:, None, None]).astype(data.dtype)


def _names(*first: str) -> Any:
    return lambda p: (*first, "weight") if p.no_bias else (*first, "weight", "bias")


@op("_contrib_DeformableConvolution", params=DeformableConvolutionParams, inputs=_names("data", "offset"),
    all_inputs=("data", "offset", "weight", "bias"), infer_inputs=_infer_inputs)
def deformable_convolution(p: DeformableConvolutionParams, data: Array, offset: Array, weight: Array,
                           bias: Array | None = None) -> Array:
    """Convolution of data (N, C, H, W) whose kernel cells read at shifted positions, by bilinear interpolation.

    offset (N, 2 * groups * kh * kw, H', W'): for each deformable group and cell the shift in y, then in x, in pixels;
    weight (num_filter, C / num_group, kh, kw). Output (N, num_filter, H', W').
    """
    shapes = [x.shape for x in (data, offset, weight, bias) if x is not None]
    _check(p, _names("data", "offset")(p), shapes)
    return _convolve(p, data, offset, None, weight, bias)


@op("_contrib_ModulatedDeformableConvolution", params=ModulatedDeformableConvolutionParams,
    inputs=_names("data", "offset", "mask"), all_inputs=("data", "offset", "mask", "weight", "bias"),
    infer_inputs=_infer_inputs)
def modulated_deformable_convolution(p: ModulatedDeformableConvolutionParams, data: Array, offset: Array, mask: Array,
                                     weight: Array, bias: Array | None = None) -> Array:
    """`_contrib_DeformableConvolution` whose cells are weighted by mask (N, groups * kh * kw, H', W')."""
    shapes = [x.shape for x in (data, offset, mask, weight, bias) if x is not None]
    _check(p, _names("data", "offset", "mask")(p), shapes)
    return _convolve(p, data, offset, mask, weight, bias)
