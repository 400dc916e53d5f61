"""Image files and OpenCV's functions (`_cv*`), which `mx.image` stands on.

Decoding reads files, on the host, and the result's shape depends on what is in them: in graphs, too, it runs by itself
and not compiled. Resizing and borders are ordinary JAX, although MXNet has them on arrays alone.
"""

from __future__ import annotations

import io
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from symjax.lowering.errors import (
    DataFormatError,
    MissingFileError,
    MissingLoweringError,
    ParamError,
    ShapeError,
)
from symjax.lowering.ops._image_sampling import resize
from symjax.lowering.params import Floats, Params, param
from symjax.lowering.registry import op

Array = jax.Array
_NO_DECODER = "decoding images needs OpenCV or Pillow: install symjax-mxnet[image]"


class ImdecodeParams(Params):
    flag: int = param(1, ge=0, doc="1: three channels; 0: one channel, grey; others as OpenCV's imread flags.")
    to_rgb: bool = param(True, doc="Order channels RGB; otherwise BGR.")


class ImreadParams(Params):
    filename: str = param(doc="Path of the image file.")
    flag: int = param(1, ge=0, doc="As for _cvimdecode.")
    to_rgb: bool = param(True, doc="As for _cvimdecode.")


def decode(data: bytes, flag: int, to_rgb: bool) -> np.ndarray:
    """Decodes an image file's bytes to uint8 (H, W, 3), or (H, W, 1) for `flag` 0.

    Raises:
      DataFormatError: the bytes are no image.
      MissingLoweringError: neither OpenCV nor Pillow is installed, or Pillow alone and `flag` is not 0 or 1.
    """
    try:
        import cv2
    except ImportError:
        return _decode_with_pillow(data, flag, to_rgb)
    made = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    if made is None:
        raise DataFormatError(f"these {len(data)} bytes are not an image that OpenCV reads")
    if made.dtype != np.uint8:
        raise DataFormatError(f"flag={flag} gives an image of {made.dtype}, expected uint8")
    if made.ndim == 2:
        return made[:, :, None]
    return np.ascontiguousarray(made[:, :, ::-1]) if to_rgb and made.shape[2] == 3 else made


def _decode_with_pillow(data: bytes, flag: int, to_rgb: bool) -> np.ndarray:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingLoweringError(_NO_DECODER) from None
    if flag not in (0, 1):
        raise MissingLoweringError(f"flag={flag} needs OpenCV; Pillow decodes with flag 0 (grey) and 1 (colour)")
    try:
        made = np.asarray(Image.open(io.BytesIO(data)).convert("RGB" if flag else "L"))
    except (UnidentifiedImageError, OSError) as e:
        raise DataFormatError(f"these {len(data)} bytes are not an image that Pillow reads: {e}") from None
    if made.ndim == 2:
        return made[:, :, None]
    return made if to_rgb else np.ascontiguousarray(made[:, :, ::-1])


def _uint8(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ["uint8"] * len(ins), ["uint8"]


def _unknown(p: Any, ins: list[Any]) -> list[None]:
    return [None]


@op("_cvimdecode", aliases=("_npi_cvimdecode",), params=ImdecodeParams, infer_types=_uint8, infer_outputs=_unknown,
    eager=True, host=True)  # fmt: skip
def cvimdecode(p: ImdecodeParams, buf: Array) -> Array:
    """Decodes the bytes of an image file, uint8 of any shape, to uint8 (H, W, C)."""
    if isinstance(buf, Tracer):
        raise MissingLoweringError("the size of a decoded image depends on the values of 'buf', so it cannot be "
                                   "compiled: decode first (mx.image.imdecode) and give the graph the pixels")
    data = np.asarray(buf).tobytes()
    if not data:
        raise ShapeError("argument 'buf': there are no bytes to decode")
    return jnp.asarray(decode(data, p.flag, p.to_rgb))


@op("_cvimread", aliases=("_npi_cvimread",), params=ImreadParams, infer_types=_uint8, infer_outputs=_unknown,
    eager=True, host=True)  # fmt: skip
def cvimread(p: ImreadParams) -> Array:
    """Reads an image file to uint8 (H, W, C)."""
    try:
        with open(p.filename, "rb") as f:
            data = f.read()
    except FileNotFoundError:
        raise MissingFileError(f"there is no image file {p.filename!r}") from None
    return jnp.asarray(decode(data, p.flag, p.to_rgb))


class ImresizeParams(Params):
    w: int = param(ge=1, doc="New width.")
    h: int = param(ge=1, doc="New height.")
    interp: int = param(1, doc="0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 5 bilinear (exact in uint8).")


def _check(src: Any) -> None:
    if src.ndim != 3:
        raise ShapeError(f"argument 'src': expected an image (height, width, channels), got shape {src.shape}")


@op("_cvimresize", aliases=("_npi_cvimresize",), params=ImresizeParams)
def cvimresize(p: ImresizeParams, src: Array) -> Array:
    """Resizes an image (H, W, C) to (h, w, C), as `_image_resize` does."""
    _check(src)
    return resize(src, p.h, p.w, p.interp)


_CONSTANT, _REPLICATE, _REFLECT, _WRAP, _REFLECT_101, _ISOLATED = 0, 1, 2, 3, 4, 16


class BorderParams(Params):
    top: int = param(ge=0, doc="Rows above.")
    bot: int = param(ge=0, doc="Rows below.")
    left: int = param(ge=0, doc="Columns to the left.")
    right: int = param(ge=0, doc="Columns to the right.")
    type: int = param(0, doc="0 constant, 1 replicate the edge, 2 reflect, 3 wrap, 4 reflect without the edge pixel.")
    value: float = param(0.0, doc="What a constant border holds.")
    values: Floats = param((), doc="The same for each channel; those not given are 0.")


def _source(n: int, before: int, after: int, kind: int) -> np.ndarray:
    at = np.arange(-before, n + after)
    if kind == _REPLICATE:
        return np.clip(at, 0, n - 1)
    if kind == _WRAP:
        return at % n
    period = 2 * n if kind == _REFLECT else max(2 * n - 2, 1)
    at = at % period
    return np.where(at < n, at, period - at - (kind == _REFLECT))


@op("_cvcopyMakeBorder", params=BorderParams)
def cv_copy_make_border(p: BorderParams, src: Array) -> Array:
    """Puts a border around an image (H, W, C): (H + top + bot, W + left + right, C)."""
    _check(src)
    kind = p.type & ~_ISOLATED
    if kind not in range(5):
        raise ParamError(f"type={p.type}: expected 0 (constant), 1 (replicate), 2 (reflect), 3 (wrap) or "
                         f"4 (reflect 101)")
    if kind == _CONSTANT:
        pad = ((p.top, p.bot), (p.left, p.right), (0, 0))
        inside = jnp.pad(jnp.ones((*src.shape[:2], 1), bool), pad)
        return jnp.where(inside, jnp.pad(src, pad), _fill(p, src))
    if 0 in src.shape[:2]:
        raise ShapeError(f"argument 'src': an image of shape {src.shape} has no pixels to make a border of")
    rows, cols = _source(src.shape[0], p.top, p.bot, kind), _source(src.shape[1], p.left, p.right, kind)
    return src[rows][:, cols]


def _fill(p: BorderParams, src: Any) -> Array:
    n = src.shape[2]
    values = np.array((*p.values, *[0.0] * n)[:n] if p.values else [p.value] * n)
    if not jnp.issubdtype(src.dtype, jnp.floating):
        info = np.iinfo(src.dtype)
        values = np.clip(np.rint(values), info.min, info.max)
    return jnp.asarray(values, src.dtype)


class LegacyImdecodeParams(Params):
    index: int = param(0, doc="Position of the result in the output.")
    x0: int = param(0, doc="Left edge of the part to keep.")
    y0: int = param(0, doc="Upper edge of the part to keep.")
    x1: int = param(0, doc="Right edge of the part to keep.")
    y1: int = param(0, doc="Lower edge of the part to keep.")
    c: int = param(3, doc="Number of channels.")
    size: int = param(0, doc="Number of bytes of the image file.")


@op("_imdecode", params=LegacyImdecodeParams, infer_outputs=_unknown, infer_types=lambda p, ins, outs: (ins, outs),
    host=True)  # fmt: skip
def imdecode(p: LegacyImdecodeParams, mean: Array) -> Array:
    """Stands behind `mx.nd.imdecode`, which decodes the bytes: no attribute of a node can hold them.

    MXNet's own cannot run either: it was called with the address of the bytes.
    """
    raise MissingLoweringError("_imdecode: a node holds no image bytes; call mx.nd.imdecode(bytes), which does "
                               "the same")


