"""Augmentation of one decoded image, as `ImageRecordIter` does it: uint8 (H, W, C), channels BGR, with OpenCV."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from symjax.io._image_params import ImageParams
from symjax.lowering.errors import MissingLoweringError, ParamError

Image = np.ndarray


def opencv() -> Any:
    """Returns the module cv2.

    Raises:
      MissingLoweringError: it is not installed.
    """
    try:
        import cv2
    except ImportError:
        raise MissingLoweringError(
            "the iterators over image records need OpenCV: install symjax-mxnet[image]") from None
    return cv2


def method(kind: int, rng: random.Random, old: tuple[int, ...], new: tuple[int, int]) -> int:
    """OpenCV's number of an interpolation method, for sizes (height, width)."""
    if kind == 9:
        grows = new[0] > old[0] and new[1] > old[1]
        return 2 if grows else 3 if new[0] < old[0] and new[1] < old[1] else 1
    if kind == 10:
        return rng.randint(0, 4)
    if kind not in range(5):
        raise ParamError(f"inter_method={kind}: expected 0 to 4, 9 or 10")
    return kind


def resized(image: Image, h: int, w: int, kind: int, rng: random.Random) -> Image:
    """An image of another size."""
    if image.shape[:2] == (h, w):
        return image
    how = method(kind, rng, image.shape[:2], (h, w))
    return deep(opencv().resize(image, (max(w, 1), max(h, 1)), interpolation=how))


def deep(image: Image) -> Image:
    """OpenCV drops the axis of one channel: here it is again."""
    return image[:, :, None] if image.ndim == 2 else image


def shorter_side(image: Image, size: int, kind: int, rng: random.Random) -> Image:
    """The image with a shorter side of `size` pixels."""
    h, w = image.shape[:2]
    h, w = (size * h // w, size) if h > w else (size, size * w // h)
    return resized(image, h, w, kind, rng)


def augmented(p: ImageParams, image: Image, rng: random.Random) -> Image:
    """The image as training sees it: (data_shape[1], data_shape[2], C) uint8."""
    if p.resize > 0:
        image = shorter_side(image, p.resize, p.inter_method, rng)
    if p.warps:
        image = _warped(p, image, rng)
    if p.pad:
        b = p.pad
        image = deep(opencv().copyMakeBorder(image, b, b, b, b, 0, value=(p.fill_value,) * 4))
    image = _cropped(p, image, rng)
    if image.shape[2] == 3:
        image = _recoloured(p, image, rng)
    return image


def _between(rng: random.Random, low: float, high: float) -> float:
    return low if low == high else rng.uniform(low, high)


def _warped(p: ImageParams, image: Image, rng: random.Random) -> Image:
    """Sheared, rotated, scaled, stretched about its middle."""
    h, w = image.shape[:2]
    shear = _between(rng, -p.max_shear_ratio, p.max_shear_ratio)
    degrees = p.rotate if p.rotate > 0 else rng.randint(-p.max_rotate_angle, p.max_rotate_angle)
    a, b = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    scale = _between(rng, p.min_random_scale, p.max_random_scale)
    ratio = 1.0 if p.random_resized_crop else 1 + _between(rng, -p.max_aspect_ratio, p.max_aspect_ratio)
    hs = 2 * scale / (1 + ratio)
    ws = ratio * hs
    new_w, new_h = (max(p.min_img_size, min(p.max_img_size, scale * n)) for n in (w, h))
    m = np.array([[hs * a - shear * b * ws, hs * b + shear * a * ws, 0], [-b * ws, a * ws, 0]], np.float32)
    m[:, 2] = (np.array([new_w, new_h]) - m[:, :2] @ np.array([w, h])) / 2
    size = (max(int(new_w), 1), max(int(new_h), 1))
    how = method(p.inter_method, rng, (h, w), (size[1], size[0]))
    # area is no method of warping
    fill = (p.fill_value,) * 4
    return deep(opencv().warpAffine(image, m, size, flags=1 if how == 3 else how, borderMode=0, borderValue=fill))


def _cropped(p: ImageParams, image: Image, rng: random.Random) -> Image:
    _, h, w = p.data_shape
    if p.cuts_rectangles:
        rectangle = _random_rectangle(p, image, rng)
        if rectangle is not None:
            return resized(rectangle, h, w, p.inter_method, rng)
    if p.max_crop_size > 0 or p.min_crop_size > 0:
        low, high = (p.min_crop_size if p.min_crop_size > 0 else p.max_crop_size), max(p.max_crop_size, p.min_crop_size)
        if high > min(image.shape[:2]):
            raise ParamError(f"max_crop_size={high} is more than the size of an image, {image.shape[:2]}")
        side = rng.randint(low, high)
        return resized(_cut(image, side, side, p.rand_crop, rng), h, w, p.inter_method, rng)
    # smaller images are enlarged until both sides are long enough
    if image.shape[0] < h:
        image = resized(image, h, image.shape[1] * h // image.shape[0], p.inter_method, rng)
    if image.shape[1] < w:
        image = resized(image, max(image.shape[0] * w // image.shape[1], h), w, p.inter_method, rng)
    return _cut(image, h, w, p.rand_crop, rng)


def _cut(image: Image, h: int, w: int, at_random: bool, rng: random.Random) -> Image:
    y, x = image.shape[0] - h, image.shape[1] - w
    y, x = (rng.randint(0, y), rng.randint(0, x)) if at_random else (y // 2, x // 2)
    return image[y:y + h, x:x + w]


def _random_rectangle(p: ImageParams, image: Image, rng: random.Random) -> Image | None:
    """A random part of the image, None after 10 tries that do not fit."""
    h, w = image.shape[:2]
    for _ in range(10):
        area = _between(rng, p.min_random_area, p.max_random_area) * h * w
        if p.min_aspect_ratio is not None:
            ratio = _between(rng, p.min_aspect_ratio, p.max_aspect_ratio)
        else:
            ratio = 1 + _between(rng, -p.max_aspect_ratio, p.max_aspect_ratio)
        if ratio <= 0:
            continue
        cut_w, cut_h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if rng.random() < 0.5:
            cut_w, cut_h = cut_h, cut_w
        if 0 < cut_w <= w and 0 < cut_h <= h:
            return _cut(image, cut_h, cut_w, True, rng)
    return None


def _recoloured(p: ImageParams, image: Image, rng: random.Random) -> Image:
    changes: list[Callable[[Image, random.Random], Image]] = []
    for change, amount in ((_brightness, p.brightness), (_contrast, p.contrast), (_saturation, p.saturation)):
        if amount > 0:
            changes.append(lambda i, r, c=change, n=amount: c(i, 1 + r.uniform(-n, n)))
    rng.shuffle(changes)
    if p.random_h or p.random_s or p.random_l:
        changes.append(lambda i, r: shifted_hls(i, [_between(r, -n, n) for n in (p.random_h, p.random_l, p.random_s)]))
    if p.pca_noise > 0:
        changes.append(lambda i, r: _lit(i, [r.gauss(0, p.pca_noise) for _ in range(3)]))
    for change in changes:
        image = change(image, rng)
    return image


def _brightness(image: Image, alpha: float) -> Image:
    return opencv().convertScaleAbs(image, alpha=alpha)


def _contrast(image: Image, alpha: float) -> Image:
    cv2 = opencv()
    grey = cv2.mean(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))[0]
    return cv2.addWeighted(image, alpha, image, 0.0, (1 - alpha) * grey)


def _saturation(image: Image, alpha: float) -> Image:
    cv2 = opencv()
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
    return cv2.addWeighted(image, alpha, grey, 1 - alpha, 0.0)


def shifted_hls(image: Image, shift: list[float]) -> Image:
    """Adds to hue (of 180), lightness and saturation (of 255)."""
    cv2 = opencv()
    hls = cv2.cvtColor(image, cv2.COLOR_BGR2HLS).astype(np.int16) + np.array([int(s) for s in shift], np.int16)
    limited = np.clip(hls, 0, np.array([180, 255, 255], np.int16)).astype(np.uint8)
    return cv2.cvtColor(limited, cv2.COLOR_HLS2BGR)


_EIGVAL = np.array([55.46, 4.794, 1.148])
_EIGVEC = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def _lit(image: Image, alphas: list[float]) -> Image:
    rgb = _EIGVEC @ (np.array(alphas) * _EIGVAL)
    return np.clip(np.rint(image + rgb[::-1]), 0, 255).astype(np.uint8)
