"""Cutting and padding images: Crop, Pad, im2col, col2im."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops.matrix import arg_names
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op


class CropParams(Params):
    num_args: int = param(doc="1: crop to h_w; 2: crop to the size of the second input.", ge=1, le=2)
    offset: Shape = param((0, 0), doc="First row and column of the window.", ge=0)
    h_w: Shape = param((0, 0), doc="Height and width of the window, with one input.", ge=0)
    center_crop: bool = param(False, doc="Take the window from the middle; offset is ignored.")


@op("Crop", params=CropParams, inputs=arg_names, variadic="num_args", all_inputs=("data",))
def crop(p: CropParams, data: Array, crop_like: Array | None = None) -> Array:
    """Cuts a window out of the two last axes of (N, C, H, W).

    The window's size is h_w, or that of `crop_like` (which has no gradient).
    """
    if data.ndim != 4 or (crop_like is not None and crop_like.ndim != 4):
        raise ShapeError(f"Crop needs inputs with 4 axes (N, C, H, W), got {data.shape}")
    h, w = p.h_w if crop_like is None else crop_like.shape[2:]
    if crop_like is None and not (h and w):
        raise ParamError("h_w must be positive when Crop has one input")
    rows, columns = data.shape[2:]
    y, x = ((rows - h) // 2, (columns - w) // 2) if p.center_crop else p.offset
    if min(y, x) < 0 or y + h > rows or x + w > columns:
        raise ShapeError(f"a window of {h} x {w} at ({y}, {x}) does not fit into {rows} x {columns}")
    return data[:, :, y:y + h, x:x + w]


class PadParams(Params):
    mode: Literal["constant", "edge", "reflect"] = param(doc="Where the new values come from.")
    pad_width: Shape = param(doc="Widths before and after each axis: (b0, e0, b1, e1, …); 0 for batch and channel.",
                             ge=0)
    constant_value: float = param(0.0, doc="The new value in mode constant.")


@op("Pad", aliases=("pad",), params=PadParams)
def pad(p: PadParams, data: Array) -> Array:
    """Pads the spatial axes of a 4-d or 5-d array.

    constant fills with constant_value, edge repeats the border, reflect mirrors without repeating the border.
    """
    if data.ndim not in (4, 5):
        raise ShapeError(f"argument 'data': Pad needs 4 or 5 axes, got {data.shape}")
    if len(p.pad_width) != 2 * data.ndim or any(p.pad_width[:4]):
        raise ParamError(f"pad_width={p.pad_width} must have {2 * data.ndim} entries, the first four of them 0")
    widths = [(p.pad_width[i], p.pad_width[i + 1]) for i in range(0, len(p.pad_width), 2)]
    if p.mode == "constant":
        return jnp.pad(data, widths, constant_values=jnp.asarray(p.constant_value, data.dtype))
    if p.mode == "reflect" and any(max(w) >= d for w, d in zip(widths, data.shape, strict=True) if max(w)):
        raise ShapeError(f"pad_width={p.pad_width}: reflect can add at most size - 1 to an axis, data is {data.shape}")
    return jnp.pad(data, widths, mode=p.mode)


class Im2ColParams(Params):
    kernel: Shape = param(doc="Window, one size per spatial axis.", ge=1)
    stride: Shape = param((), doc="Step between windows; () is 1.", ge=1)
    dilate: Shape = param((), doc="Step between the elements of a window; () is 1.", ge=1)
    pad: Shape = param((), doc="Zeros added on both sides; () is 0.", ge=0)


class Col2ImParams(Im2ColParams):
    output_size: Shape = param(doc="Spatial size of the image.", ge=1)


def _per_axis(value: Shape, n: int, default: int, name: str) -> Shape:
    if len(value) not in (0, n):
        raise ParamError(f"{name}={value} must have {n} entries, as kernel has")
    return value or (default,) * n


def _windows(p: Im2ColParams, image: Sequence[int]) -> tuple[Shape, Shape, Shape, Shape]:
    n = len(p.kernel)
    stride, dilate = _per_axis(p.stride, n, 1, "stride"), _per_axis(p.dilate, n, 1, "dilate")
    padding = _per_axis(p.pad, n, 0, "pad")
    out = tuple((i + 2 * q - d * (k - 1) - 1) // s + 1
                for i, k, s, d, q in zip(image, p.kernel, stride, dilate, padding, strict=True))
    if min(out) < 1:
        raise ShapeError(f"kernel {p.kernel} is larger than the padded image {tuple(image)}")
    return stride, dilate, padding, out


def _to_columns(p: Im2ColParams, data: Array) -> Array:
    stride, dilate, padding, out = _windows(p, data.shape[2:])
    x = jnp.pad(data, [(0, 0), (0, 0), *((q, q) for q in padding)])
    pieces = []
    for at in itertools.product(*map(range, p.kernel)):
        first = [i * d for i, d in zip(at, dilate, strict=True)]
        last = [f + (o - 1) * s + 1 for f, o, s in zip(first, out, stride, strict=True)]
        piece = lax.slice(x, (0, 0, *first), (*x.shape[:2], *last), (1, 1, *stride))
        pieces.append(piece.reshape(*x.shape[:2], 1, math.prod(out)))
    columns = jnp.concatenate(pieces, axis=2)
    return columns.reshape(x.shape[0], -1, math.prod(out))


@op("im2col", params=Im2ColParams)
def im2col(p: Im2ColParams, data: Array) -> Array:
    """Writes every window of an image as a column: (N, C, spatial…) gives (N, C * prod(kernel), windows).

    Works in one, two and three dimensions (MXNet 1.9.1 runs two).
    """
    if data.ndim != len(p.kernel) + 2:
        raise ShapeError(f"argument 'data': kernel {p.kernel} needs {len(p.kernel) + 2} axes, got {data.shape}")
    return _to_columns(p, data)


@op("col2im", params=Col2ImParams)
def col2im(p: Col2ImParams, data: Array) -> Array:
    """Adds columns up into an image, the transpose of im2col: (N, C * prod(kernel), windows) gives (N, C, size…)."""
    window = math.prod(p.kernel)
    if len(p.output_size) != len(p.kernel):
        raise ParamError(f"output_size={p.output_size} must have one entry for each of kernel={p.kernel}")
    count = math.prod(_windows(p, p.output_size)[3])
    if data.ndim != 3 or data.shape[1] % window or data.shape[2] != count:
        raise ShapeError(f"argument 'data': expected (N, C * {window}, {count}), got {data.shape}")
    image = jax.ShapeDtypeStruct((data.shape[0], data.shape[1] // window, *p.output_size), data.dtype)
    return jax.linear_transpose(lambda x: _to_columns(p, x), image)(data)[0]
