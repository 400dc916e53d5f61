"""Images as arrays (`_image_*`): to tensors, normalised, cropped, resized, flipped.

Images are (H, W, C), channels last; `to_tensor`, `crop` and `resize` also take batches (N, H, W, C).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._image_sampling import resize as resize_image
from symjax.lowering.params import Floats, Params, Shape, param
from symjax.lowering.registry import op, output_dtype

Array = jax.Array


def _names(name: str) -> tuple[str, ...]:
    return (f"_npx__image_{name}",)


def check_image(data: Any, *, batch: bool = False, channels: tuple[int, ...] = ()) -> None:
    """Raises ShapeError unless `data` is (H, W, C), or (N, H, W, C) where `batch`, with one of `channels`."""
    if data.ndim != 3 and not (batch and data.ndim == 4):
        raise ShapeError(f"argument 'data': expected an image (height, width, channels)"
                         f"{', or (N, height, width, channels),' if batch else ''} got shape {data.shape}")
    if channels and data.shape[-1] not in channels:
        raise ShapeError(f"argument 'data': expected {' or '.join(map(str, channels))} channels in the last dimension, "
                         f"got shape {data.shape}")


def same_shape(p: Any, ins: list[Any], outs: list[Any]) -> list[Any]:
    """An image keeps its shape. (The trait SAME would not ask the rule, which refuses some shapes.)"""
    return [ins[0] if ins[0] is not None else outs[0]]


@op("_image_to_tensor", aliases=_names("to_tensor"), infer_types=output_dtype("float32"))
def to_tensor(p: Any, data: Array) -> Array:
    """Images (H, W, C) of 0 to 255 to float32 tensors (C, H, W) of 0 to 1; batches (N, H, W, C) likewise.

    The gradient is the transposed one over 255. MXNet has none.
    """
    check_image(data, batch=True)
    return jnp.moveaxis(data.astype(jnp.float32) / 255, -1, -3)


class NormalizeParams(Params):
    mean: Floats = param((0.0, 0.0, 0.0, 0.0), doc="Mean of each channel, or one for all.")
    std: Floats = param((1.0, 1.0, 1.0, 1.0), doc="Standard deviation of each channel, or one for all.")


def _per_channel(values: Floats, default: Floats, n: int, name: str) -> Any:
    if values == default:
        # MXNet: these defaults have four entries, which it refuses for images of one or three channels.
        values = values[:1]
    if len(values) not in (1, n):
        raise ParamError(f"parameter {name}={values}: expected 1 or {n} values for {n} channels")
    return values


@op("_image_normalize", aliases=_names("normalize"), params=NormalizeParams, infer_inputs=same_shape)
def normalize(p: NormalizeParams, data: Array) -> Array:
    """`(data - mean) / std` by channel, for a tensor (C, H, W) or (N, C, H, W) of 1 or 3 channels, channels first.

    Integers drop their fractions and wrap around.
    """
    if data.ndim not in (3, 4) or data.shape[-3] not in (1, 3):
        raise ShapeError(f"argument 'data': expected (channels, height, width) or (N, channels, height, width) of 1 or "
                         f"3 channels, got shape {data.shape}")
    n = data.shape[-3]
    mean = jnp.asarray(_per_channel(p.mean, (0.0,) * 4, n, "mean"), jnp.float32).reshape(-1, 1, 1)
    std = jnp.asarray(_per_channel(p.std, (1.0,) * 4, n, "std"), jnp.float32).reshape(-1, 1, 1)
    integer = not jnp.issubdtype(data.dtype, jnp.floating)
    compute = jnp.float32 if integer else jnp.promote_types(data.dtype, jnp.float32)
    made = (data.astype(compute) - mean.astype(compute)) / std.astype(compute)
    return made.astype(jnp.int64 if integer else data.dtype).astype(data.dtype)


class CropParams(Params):
    x: int = param(doc="Left edge, in pixels.")
    y: int = param(doc="Top edge, in pixels.")
    width: int = param(doc="Width of the crop, in pixels.")
    height: int = param(doc="Height of the crop, in pixels.")


@op("_image_crop", aliases=_names("crop"), params=CropParams)
def crop(p: CropParams, data: Array) -> Array:
    """The window of `width` by `height` pixels whose upper left corner is (x, y), of one image or a batch.

    MXNet reads outside of the image for a negative corner; here it is an error.
    """
    check_image(data, batch=True)
    h, w = data.shape[-3:-1]
    if p.width <= 0 or p.height <= 0:
        raise ParamError(f"width={p.width}, height={p.height}: expected a crop of at least one pixel")
    if p.x < 0 or p.y < 0 or p.x + p.width > w or p.y + p.height > h:
        raise ParamError(f"the crop of {p.width}x{p.height} at ({p.x}, {p.y}) leaves the image of {w}x{h} pixels "
                         f"(width x height)")
    return data[..., p.y:p.y + p.height, p.x:p.x + p.width, :]


class ResizeParams(Params):
    size: Shape = param((), doc="(width, height), or one number for both.")
    keep_ratio: bool = param(False, doc="With one number: make the shorter edge that long and keep the proportions.")
    interp: int = param(1, doc="0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 5 bilinear (exact in uint8).")


def _new_size(p: ResizeParams, h: int, w: int) -> tuple[int, int]:
    if len(p.size) not in (1, 2) or min(p.size) <= 0:
        raise ParamError(f"size={p.size}: expected (width, height) or one number, greater than 0")
    if len(p.size) == 2:
        return p.size[1], p.size[0]
    n = p.size[0]
    if not p.keep_ratio:
        return n, n
    return (n, w * n // h) if h < w else (h * n // w, n)


@op("_image_resize", aliases=_names("resize"), params=ResizeParams)
def resize(p: ResizeParams, data: Array) -> Array:
    """Resizes an image or a batch as OpenCV does, to the same numbers for uint8 up to its rounding.

    Floating-point images have a gradient; MXNet has none, nor does it take float16.
    """
    check_image(data, batch=True)
    height, width = _new_size(p, *data.shape[-3:-1])
    return resize_image(data, height, width, p.interp)


@op("_image_flip_left_right", aliases=_names("flip_left_right"), infer_inputs=same_shape)
def flip_left_right(p: Any, data: Array) -> Array:
    """Mirrors the image, left to right.

    MXNet: it leaves the middle column of an odd width unwritten, and its gradient is not mirrored back.
    """
    check_image(data, channels=(1, 3))
    return data[:, ::-1]


@op("_image_flip_top_bottom", aliases=_names("flip_top_bottom"), infer_inputs=same_shape)
def flip_top_bottom(p: Any, data: Array) -> Array:
    """Turns the image upside down; MXNet as for `flip_left_right`."""
    check_image(data, channels=(1, 3))
    return data[::-1]


def _coin(key: Any) -> Array:
    """True in one of two cases."""
    return jax.random.bernoulli(key, jnp.float32(0.5))


@op("_image_random_flip_left_right", aliases=_names("random_flip_left_right"), infer_inputs=same_shape)
def random_flip_left_right(p: Any, data: Array, *, key: Any) -> Array:
    """Mirrors the image with probability 1/2."""
    check_image(data, channels=(1, 3))
    return jnp.where(_coin(key), data[:, ::-1], data)


@op("_image_random_flip_top_bottom", aliases=_names("random_flip_top_bottom"), infer_inputs=same_shape)
def random_flip_top_bottom(p: Any, data: Array, *, key: Any) -> Array:
    """Turns the image upside down with probability 1/2."""
    check_image(data, channels=(1, 3))
    return jnp.where(_coin(key), data[::-1], data)
