"""Image work on the host: numpy arrays through OpenCV where it is there.

Images of a data set differ in size. On the device each size would be compiled by itself, so that the augmenters and
iterators work with numpy; only whole batches go to the device.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from symjax import ndarray as nd
from symjax.lowering.errors import ArgumentError, ParamError, ShapeError
from symjax.ndarray import NDArray

F = TypeVar("F", bound=Callable[..., Any])
_FOR_CV2 = (np.uint8, np.int16, np.uint16, np.float32, np.float64)


def to_host(src: Any) -> np.ndarray:
    """The pixels as numpy, (H, W, C)."""
    image = src.asnumpy() if isinstance(src, NDArray) else np.asarray(src)
    if image.ndim != 3:
        raise ShapeError(f"expected an image (height, width, channels), got shape {image.shape}")
    return image


def like(image: np.ndarray, src: Any) -> Any:
    """An image as an NDArray on the context of `src` if that is one, else as it is."""
    return nd.array(image, ctx=src.context, dtype=image.dtype) if isinstance(src, NDArray) else image


def on_host(function: F) -> F:
    """Lets a function of numpy images take and give NDArrays too. What it returns beside the image stays as it is."""

    @functools.wraps(function)
    def wrapped(src: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(src, NDArray):
            return function(src, *args, **kwargs)
        made = function(to_host(src), *args, **kwargs)
        return (like(made[0], src), *made[1:]) if isinstance(made, tuple) else like(made, src)

    return wrapped  # type: ignore[return-value]


def resized(image: np.ndarray, w: int, h: int, interp: int) -> np.ndarray:
    """Resizes an image to (h, w, C). `interp`: 0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos."""
    try:
        import cv2
    except ImportError:
        cv2 = None
    if cv2 is None or image.dtype not in _FOR_CV2 or w < 1 or h < 1 or 0 in image.shape:
        from symjax.ndarray import _internal

        return _internal._cvimresize(nd.array(image, dtype=image.dtype), w, h, interp=interp).asnumpy()
    made = cv2.resize(image, (w, h), interpolation=interp)
    return made[:, :, None] if made.ndim == 2 else made


def interp_method(interp: int, sizes: Sequence[int] = ()) -> int:
    """Returns which of OpenCV's methods 0 to 4 is meant.

    Args:
      interp: 0 to 4; 9: cubic to enlarge, area to shrink, else bilinear; 10: a random one.
      sizes: (old height, old width, new height, new width), for 9.

    Raises:
      ValueError: another number.
    """
    if interp == 9:
        if not sizes:
            return 2
        if len(sizes) != 4:
            raise ArgumentError(f"sizes must be (old height, old width, new height, new width), got {sizes}")
        oh, ow, nh, nw = sizes
        return 2 if nh > oh and nw > ow else 3 if nh < oh and nw < ow else 1
    if interp == 10:
        return random.randint(0, 4)
    if interp not in (0, 1, 2, 3, 4):
        raise ParamError(f"Unknown interp method {interp}")
    return interp
