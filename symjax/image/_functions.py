"""Decoding, resizing, cropping, rotating of single images."""

from __future__ import annotations

import math
import random
import warnings
from numbers import Number
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax.image._host import interp_method, like, on_host, resized, to_host
from symjax.lowering.errors import ArgumentError, DTypeError, ParamError, ShapeError
from symjax.ndarray import NDArray, _internal

Rect = tuple[int, int, int, int]


def imread(filename: str, *args: Any, **kwargs: Any) -> NDArray:
    """Reads an image file.

    Args:
      filename: its path.
      flag: 1: three channels (default), 0: grey, one channel.
      to_rgb: True: channels RGB (default), False: BGR.
      out: array to write to.

    Returns:
      uint8, (height, width, channels).
    """
    return _internal._cvimread(filename, *args, **kwargs)


def imdecode(buf: Any, *args: Any, **kwargs: Any) -> NDArray:
    """Decodes the bytes of an image file.

    Args:
      buf: bytes, bytearray, or an array of uint8.
      flag, to_rgb, out: as of `imread`.

    Returns:
      uint8, (height, width, channels).

    Raises:
      ValueError: `buf` is of another type, or the bytes are no image.
    """
    if not isinstance(buf, NDArray):
        if not isinstance(buf, bytes | bytearray | np.ndarray):
            raise ParamError("buf must be of type bytes, bytearray or numpy.ndarray,if you would like to input type "
                             "str, please convert to bytes")
        buf = nd.array(np.frombuffer(buf, dtype=np.uint8), dtype=np.uint8)
    return _internal._cvimdecode(buf, *args, **kwargs)


def imresize(src: Any, w: int, h: int, *args: Any, **kwargs: Any) -> Any:
    """Resizes an image to (h, w, C).

    Args:
      src: image (H, W, C).
      w: new width.
      h: new height.
      interp: 0 nearest, 1 bilinear (default), 2 bicubic, 3 area, 4 Lanczos, 9 by the sizes, 10 random.
      out: array to write to.
    """
    interp = args[0] if args else kwargs.pop("interp", 1)
    out = kwargs.pop("out", None)
    if kwargs or len(args) > 1:
        raise ArgumentError(f"imresize got unexpected arguments: {[*args[1:], *kwargs]}")
    image = to_host(src)
    made = like(resized(image, w, h, interp_method(interp, (*image.shape[:2], h, w))), src)
    if out is None:
        return made
    out[:] = made
    return out


def copyMakeBorder(src: Any, top: int, bot: int, left: int, right: int, *args: Any, **kwargs: Any) -> Any:
    """Puts a border around an image.

    Args:
      src: image (H, W, C).
      top, bot, left, right: its widths in pixels.
      type: 0 constant (default), 1 replicate, 2 reflect, 3 wrap, 4 reflect without the edge pixel.
      value: what a constant border holds.
      values: the same for each channel.
      out: array to write to.

    Returns:
      (H + top + bot, W + left + right, C).
    """
    given = src if isinstance(src, NDArray) else nd.array(src, dtype=np.asarray(src).dtype)
    made = _internal._cvcopyMakeBorder(given, top, bot, left, right, *args, **kwargs)
    return made if isinstance(src, NDArray) else made.asnumpy()


def scale_down(src_size: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
    """Returns the largest size of the same aspect ratio as `size` that fits into `src_size`, at most `size`.

    Args:
      src_size: (width, height) of the image.
      size: (width, height) that is wished for.
    """
    w, h = size
    sw, sh = src_size
    if sh < h:
        w, h = float(w * sh) / h, sh
    if sw < w:
        w, h = sw, float(h * sw) / w
    return int(w), int(h)


@on_host
def resize_short(src: Any, size: int, interp: int = 2) -> Any:
    """Resizes an image (H, W, C) so that its shorter side has `size` pixels. `interp`: see `imresize`."""
    h, w, _ = src.shape
    new_h, new_w = (size * h // w, size) if h > w else (size, size * w // h)
    return resized(src, new_w, new_h, interp_method(interp, (h, w, new_h, new_w)))


@on_host
def fixed_crop(src: Any, x0: int, y0: int, w: int, h: int, size: tuple[int, int] | None = None,
               interp: int = 2) -> Any:
    """Cuts a rectangle out of an image (H, W, C), and resizes it to `size` (width, height) if that is given."""
    out = src[y0:y0 + h, x0:x0 + w]
    if size is not None and (w, h) != tuple(size):
        # MXNet: resizes to interp_method's answer for (h, w, new height, new width)
        out = resized(out, size[0], size[1], interp_method(interp, (h, w, size[1], size[0])))
    return out


@on_host
def random_crop(src: Any, size: tuple[int, int], interp: int = 2) -> tuple[Any, Rect]:
    """Cuts `size` (width, height) out of an image at a random place; of a smaller image what fits, enlarged.

    Returns:
      (the cut, (x, y, width, height) of where it was).
    """
    h, w, _ = src.shape
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = random.randint(0, w - new_w), random.randint(0, h - new_h)
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


@on_host
def center_crop(src: Any, size: tuple[int, int], interp: int = 2) -> tuple[Any, Rect]:
    """Cuts `size` (width, height) out of the middle. See `random_crop`."""
    h, w, _ = src.shape
    new_w, new_h = scale_down((w, h), size)
    x0, y0 = (w - new_w) // 2, (h - new_h) // 2
    return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)


def deprecated_min_area(area: Any, kwargs: dict[str, Any], who: str) -> Any:
    """The area, perhaps under its old name `min_area`."""
    if "min_area" in kwargs:
        warnings.warn("`min_area` is deprecated. Please use `area` instead.", DeprecationWarning, stacklevel=3)
        area = kwargs.pop("min_area")
    if kwargs:
        raise ArgumentError(f"unexpected keyword arguments for `{who}`: {', '.join(kwargs)}")
    return area


@on_host
def random_size_crop(src: Any, size: tuple[int, int], area: Any, ratio: tuple[float, float], interp: int = 2,
                     **kwargs: Any) -> tuple[Any, Rect]:
    """Cuts a rectangle of random area, shape and place, and resizes it to `size`.

    Args:
      src: image (H, W, C).
      size: (width, height) of the result.
      area: (least, greatest) fraction of the image's area; a number is the least.
      ratio: (least, greatest) width / height.
      interp: see `imresize`.

    Returns:
      (the cut, (x, y, width, height) of where it was). After 10 tries that do not fit: the middle.
    """
    area = deprecated_min_area(area, kwargs, "random_size_crop")
    least, greatest = area if isinstance(area, tuple | list) else (area, 1.0)
    h, w, _ = src.shape
    for _ in range(10):
        target = random.uniform(least, greatest) * (h * w)
        new_ratio = math.exp(random.uniform(math.log(ratio[0]), math.log(ratio[1])))
        new_w, new_h = round(math.sqrt(target * new_ratio)), round(math.sqrt(target / new_ratio))
        if new_w <= w and new_h <= h:
            x0, y0 = random.randint(0, w - new_w), random.randint(0, h - new_h)
            return fixed_crop(src, x0, y0, new_w, new_h, size, interp), (x0, y0, new_w, new_h)
    return center_crop(src, size, interp)


def color_normalize(src: Any, mean: Any, std: Any = None) -> Any:
    """Returns (src - mean) / std, computed in place; None leaves that part out."""
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src


def imrotate(src: NDArray, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """Rotates images, by bilinear sampling; what comes from outside is 0.

    Args:
      src: float32, (C, H, W) or (N, C, H, W).
      rotation_degrees: the angle; for several images one for all, or an array (N,).
      zoom_in: enlarge so that nothing from outside is seen.
      zoom_out: reduce so that the whole image is seen.

    Raises:
      ValueError: both zooms, another rank, another number of angles.
      TypeError: not float32, or an array of angles for one image.
    """
    if zoom_in and zoom_out:
        raise ParamError("`zoom_in` and `zoom_out` cannot be both True")
    if np.dtype(src.dtype) != np.float32:
        raise DTypeError(f"Only `float32` images are supported by this function, got {src.dtype}")
    if src.ndim == 3:
        if not isinstance(rotation_degrees, Number):
            raise DTypeError("When a single image is passed the rotation angle is required to be a scalar.")
        return imrotate(src.expand_dims(axis=0), rotation_degrees, zoom_in, zoom_out)[0]
    if src.ndim != 4:
        raise ShapeError(f"Only 3D and 4D are supported by this function, got shape {src.shape}")
    degrees = rotation_degrees.asnumpy() if isinstance(rotation_degrees, NDArray) else rotation_degrees
    degrees = np.asarray([degrees] * len(src) if isinstance(degrees, Number) else degrees, np.float32)
    if len(degrees) != len(src):
        raise ShapeError(f"The number of images must be equal to the number of rotation angles: {len(src)} images, "
                         f"{len(degrees)} angles")
    grid = _rotated_grid(np.float32(np.pi) * degrees / np.float32(180), src.shape[2], src.shape[3], zoom_in, zoom_out)
    return nd.BilinearSampler(src, nd.array(grid, ctx=src.context))


def _rotated_grid(angle: np.ndarray, h: int, w: int, zoom_in: bool, zoom_out: bool) -> np.ndarray:
    """Where each pixel comes from, float32 (N, 2, H, W), x before y, from -1 to 1."""
    a = angle[:, None, None]
    y_half, x_half = max(h - 1, 1) / 2, max(w - 1, 1) / 2
    y = (np.arange(h, dtype=np.float32) - np.float32((h - 1) / 2))[None, :, None]
    x = (np.arange(w, dtype=np.float32) - np.float32((w - 1) / 2))[None, None, :]
    cos, sin = np.cos(a), np.sin(a)
    grid = np.stack([(x * cos - y * sin) / np.float32(x_half), (x * sin + y * cos) / np.float32(y_half)], axis=1)
    return (grid * _zoom(angle, h, w, zoom_in, zoom_out)).astype(np.float32)


def _zoom(angle: np.ndarray, h: int, w: int, zoom_in: bool, zoom_out: bool) -> Any:
    if not (zoom_in or zoom_out):
        return np.float32(1)
    corner, turned = math.atan2(h, w), np.abs(angle)
    rho = math.hypot(h, w)
    far_x = np.maximum(*(np.abs(rho * np.cos(corner + s * turned)) for s in (1, -1)))
    far_y = np.maximum(*(np.abs(rho * np.sin(corner + s * turned)) for s in (1, -1)))
    scale = np.maximum(far_x / w, far_y / h) if zoom_out else np.minimum(w / far_x, h / far_y)
    return scale[:, None, None, None].astype(np.float32)


def random_rotate(src: NDArray, angle_limits: tuple[float, float], zoom_in: bool = False,
                  zoom_out: bool = False) -> NDArray:
    """Rotates images by random angles (of `numpy.random`) between two limits, in degrees. See `imrotate`."""
    if src.ndim == 3:
        return imrotate(src, np.random.uniform(*angle_limits), zoom_in, zoom_out)
    return imrotate(src, nd.array(np.random.uniform(*angle_limits, size=len(src))), zoom_in, zoom_out)
