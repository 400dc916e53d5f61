"""Images as inputs of a model."""

from __future__ import annotations

import dataclasses
import os

import numpy as np

from symjax.cli._state import Unreadable

ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})
_REMEDY = "reading images needs OpenCV or Pillow: pip install opencv-python-headless, or Pillow"


@dataclasses.dataclass(frozen=True)
class Preprocessing:
    """How an image becomes an array.

    Attributes:
      layout: "NCHW" or "NHWC".
      size: (height, width) to resize to, None to keep.
      channels: 3 or 1.
      bgr: blue first, as OpenCV has it and some old models expect.
      scale: pixels (0..255) are multiplied by it first.
      mean, std: subtracted, then divided by, per channel or one for all.
    """

    layout: str = "NCHW"
    size: tuple[int, int] | None = None
    channels: int = 3
    bgr: bool = False
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


def is_image(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in ENDINGS


def load_image(path: str, how: Preprocessing) -> np.ndarray:
    """Reads an image as a batch of one, float32.

    Raises:
      Unreadable: it is no image, or no library that reads images is installed.
    """
    with open(path, "rb") as file:
        raw = file.read()
    pixels = _decode(path, raw, how).astype(np.float32) * how.scale
    pixels = (pixels - np.asarray(how.mean, np.float32)) / np.asarray(how.std, np.float32)
    if how.layout == "NCHW":
        pixels = pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(pixels[None], np.float32)


def _decode(path: str, raw: bytes, how: Preprocessing) -> np.ndarray:
    """Pixels (height, width, channels) uint8."""
    try:
        import cv2
    except ImportError:
        return _decode_with_pillow(path, raw, how)
    image = cv2.imdecode(np.frombuffer(raw, np.uint8),
                         cv2.IMREAD_COLOR if how.channels == 3 else cv2.IMREAD_GRAYSCALE)  # fmt: skip
    if image is None:
        raise Unreadable(f"{path}: not an image that OpenCV can read")
    if how.size is not None:
        shrinks = image.shape[0] > how.size[0]
        image = cv2.resize(
            image, (how.size[1], how.size[0]), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        )
    if how.channels == 1:
        return image[:, :, None]
    return image if how.bgr else image[:, :, ::-1]


def _decode_with_pillow(path: str, raw: bytes, how: Preprocessing) -> np.ndarray:
    import io

    try:
        from PIL import Image
    except ImportError:
        raise Unreadable(f"{path}: {_REMEDY}") from None
    try:
        image = Image.open(io.BytesIO(raw)).convert("RGB" if how.channels == 3 else "L")
    except OSError as e:
        raise Unreadable(f"{path}: {e}") from None
    if how.size is not None:
        image = image.resize((how.size[1], how.size[0]), Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    if how.channels == 1:
        return pixels[:, :, None]
    return pixels[:, :, ::-1] if how.bgr else pixels
