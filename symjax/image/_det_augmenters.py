"""Augmenters of images with boxes: `(image, boxes) -> (image, boxes)`.

Boxes are an array (objects, 5 or more): class, left, top, right, bottom as fractions of width and height, and more.
"""

from __future__ import annotations

import json
import logging
import math
import random
import warnings
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax.image._augmenters import (
    Augmenter,
    CastAug,
    ForceResizeAug,
    ResizeAug,
    color_augmenters,
    plain,
)
from symjax.image._functions import copyMakeBorder, fixed_crop
from symjax.lowering.errors import ArgumentError, DTypeError, ParamError

Pair = tuple[float, float]


class DetAugmenter:
    """Base class.

    Args:
      **kwargs: what `dumps` writes.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = plain(kwargs)

    def dumps(self) -> Any:
        """Returns the JSON text `["name", {arguments}]`."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        """Returns the changed image and boxes."""
        raise NotImplementedError("Must override implementation.")


class DetBorrowAug(DetAugmenter):
    """An augmenter of images alone, which leaves the boxes where they are."""

    def __init__(self, augmenter: Augmenter) -> None:
        if not isinstance(augmenter, Augmenter):
            raise DTypeError("Borrowing from invalid Augmenter")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters at random, or none with probability `skip_prob`."""

    def __init__(self, aug_list: Any, skip_prob: float = 0) -> None:
        super().__init__(skip_prob=skip_prob)
        self.aug_list = aug_list if isinstance(aug_list, list) else [*aug_list] if isinstance(aug_list, tuple) else [
            aug_list]  # fmt: skip
        if not all(isinstance(a, DetAugmenter) for a in self.aug_list):
            raise ParamError("Allow DetAugmenter in list only")
        self.skip_prob = skip_prob if self.aug_list else 1

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [a.dumps() for a in self.aug_list]]

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Flips left and right with probability p; the boxes are changed in place."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        if random.random() >= self.p:
            return src, label
        src = np.ascontiguousarray(src[:, ::-1]) if isinstance(src, np.ndarray) else nd.flip(src, axis=1)
        label[:, [1, 3]] = 1.0 - label[:, [3, 1]]
        return src, label


def _as_range(name: str, value: Any, who: str) -> Any:
    if isinstance(value, tuple | list):
        return value
    if not isinstance(value, Number):
        raise ArgumentError(f"{who}: {name} must be a number or a pair of numbers, got {value!r}")
    logging.info("Using fixed %s: %s in %s", name.replace("_", " ").removesuffix(" range"), value, who)
    return (value, value)


def _areas(boxes: np.ndarray) -> np.ndarray:
    """Areas of boxes left, top, right, bottom; 0 for those that are inside out."""
    return np.maximum(0, boxes[:, 3] - boxes[:, 1]) * np.maximum(0, boxes[:, 2] - boxes[:, 0])


class DetRandomCropAug(DetAugmenter):
    """Cuts out a random rectangle that covers enough of the objects, or leaves the image after `max_attempts`.

    Args:
      min_object_covered: the least fraction of every object in the rectangle that must be inside.
      aspect_ratio_range: of the rectangle, width / height.
      area_range: its area, as a fraction of the image's.
      min_eject_coverage: objects of which less is inside are dropped.
      max_attempts: number of tries.
    """

    def __init__(self, min_object_covered: float = 0.1, aspect_ratio_range: Any = (0.75, 1.33),
                 area_range: Any = (0.05, 1.0), min_eject_coverage: float = 0.3, max_attempts: int = 50) -> None:
        who = "DetRandomCropAug"
        aspect_ratio_range = _as_range("aspect_ratio", aspect_ratio_range, who)
        area_range = _as_range("area_range", area_range, who)
        super().__init__(min_object_covered=min_object_covered, aspect_ratio_range=aspect_ratio_range,
                         area_range=area_range, min_eject_coverage=min_eject_coverage, max_attempts=max_attempts)
        self.min_object_covered, self.min_eject_coverage = min_object_covered, min_eject_coverage
        self.max_attempts, self.aspect_ratio_range, self.area_range = max_attempts, aspect_ratio_range, area_range
        self.enabled = _valid(who, area_range, aspect_ratio_range, area_range[1] > 0)

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        found = self._propose(label, src.shape[0], src.shape[1])
        if found is None:
            return src, label
        rect, label = found
        return fixed_crop(src, *rect), label

    def _propose(self, label: np.ndarray, height: int, width: int) -> tuple[tuple[int, int, int, int], Any] | None:
        if not self.enabled or height <= 0 or width <= 0:
            return None
        least, most = (a * height * width for a in self.area_range)
        for _ in range(self.max_attempts):
            size = self._size(random.uniform(*self.aspect_ratio_range), least, most, height, width)
            if size is None:
                continue
            w, h = size
            y, x = random.randint(0, max(0, height - h)), random.randint(0, max(0, width - w))
            if self._covers(label, x, y, x + w, y + h, width, height):
                new = self._update(label, (x, y, w, h), height, width)
                if new is not None:
                    return (x, y, w, h), new
        return None

    def _size(self, ratio: float, least: float, most: float, height: int, width: int) -> tuple[int, int] | None:
        """A random (width, height) of this aspect ratio, None if it does not fit."""
        if ratio <= 0:
            return None
        h, max_h = round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))
        if round(max_h * ratio) > width:
            max_h = int((width + 0.4999999) / ratio)
        max_h = min(max_h, height)
        h = min(h, max_h)
        if h < max_h:
            h = random.randint(h, max_h)
        w = round(h * ratio)
        if w * h < least:  # rounding
            h += 1
            w = round(h * ratio)
        if w * h > most:
            h -= 1
            w = round(h * ratio)
        return (w, h) if least <= w * h <= most and 0 <= w <= width and 0 <= h <= height else None

    def _covers(self, label: np.ndarray, x1: int, y1: int, x2: int, y2: int, width: int, height: int) -> bool:
        if (x2 - x1) * (y2 - y1) < 2:
            return False
        areas = _areas(label[:, 1:])
        seen = areas * width * height > 2
        if not seen.any():
            return False
        low, high = np.array([x1 / width, y1 / height]), np.array([x2 / width, y2 / height])
        boxes = label[seen, 1:5]
        inside = np.concatenate([np.maximum(boxes[:, :2], low), np.minimum(boxes[:, 2:], high)], axis=1)
        covered = _areas(inside) / areas[seen]
        covered = covered[covered > 0]
        return covered.size > 0 and covered.min() > self.min_object_covered

    def _update(self, label: np.ndarray, rect: tuple[int, int, int, int], height: int, width: int) -> Any:
        """The boxes as fractions of the rectangle, None if none is left."""
        x, y, w, h = rect[0] / width, rect[1] / height, rect[2] / width, rect[3] / height
        out = label.copy()
        out[:, 1:5] = np.clip((out[:, 1:5] - np.array([x, y, x, y])) / np.array([w, h, w, h]), 0, 1)
        covered = _areas(out[:, 1:]) * w * h / _areas(label[:, 1:])
        good = (out[:, 3] > out[:, 1]) & (out[:, 4] > out[:, 2]) & (covered > self.min_eject_coverage)
        return out[good] if good.any() else None


def _valid(who: str, area: Any, ratio: Any, area_is_good: bool) -> bool:
    for name, value, good in (("area_range", area, area_is_good and area[0] <= area[1]),
                              ("aspect_ratio_range", ratio, 0 < ratio[0] <= ratio[1])):
        if not good:
            # MXNet: the warning itself fails with a TypeError
            warnings.warn(f"Skip {who} due to invalid {name}: {value}", stacklevel=3)
            return False
    return True


class DetRandomPadAug(DetAugmenter):
    """Puts the image into a larger one at a random place.

    Args:
      aspect_ratio_range: of the larger image, width / height.
      area_range: its area, as a multiple of the image's.
      max_attempts: number of tries; then the image is left.
      pad_val: the colour around it.
    """

    def __init__(self, aspect_ratio_range: Any = (0.75, 1.33), area_range: Any = (1.0, 3.0), max_attempts: int = 50,
                 pad_val: Any = (128, 128, 128)) -> None:
        who = "DetRandomPadAug"
        # MXNet: a single number stays one, and fails later
        pad_val = pad_val if isinstance(pad_val, list | tuple) else (pad_val,) * 3
        aspect_ratio_range = _as_range("aspect_ratio", aspect_ratio_range, who)
        area_range = _as_range("area_range", area_range, who)
        super().__init__(aspect_ratio_range=aspect_ratio_range, area_range=area_range, max_attempts=max_attempts,
                         pad_val=pad_val)
        self.pad_val, self.aspect_ratio_range, self.area_range = pad_val, aspect_ratio_range, area_range
        self.max_attempts = max_attempts
        self.enabled = _valid(who, area_range, aspect_ratio_range, area_range[1] > 1.0)

    def __call__(self, src: Any, label: np.ndarray) -> tuple[Any, np.ndarray]:
        height, width, _ = src.shape
        found = self._propose(height, width)
        if found is None:
            return src, label
        x, y, w, h = found
        label = label.copy()
        label[:, [1, 3]] = (label[:, [1, 3]] * width + x) / w
        label[:, [2, 4]] = (label[:, [2, 4]] * height + y) / h
        return self._pad(src, x, y, w, h), label

    def _pad(self, src: Any, x: int, y: int, w: int, h: int) -> Any:
        height, width, channels = src.shape
        if not isinstance(src, np.ndarray):
            return copyMakeBorder(src, y, h - y - height, x, w - x - width, 16, values=self.pad_val)
        made = np.empty((h, w, channels), src.dtype)
        made[:] = np.asarray(self.pad_val[:channels]).astype(src.dtype)
        made[y:y + height, x:x + width] = src
        return made

    def _propose(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        if not self.enabled or height <= 0 or width <= 0:
            return None
        least, most = (a * height * width for a in self.area_range)
        for _ in range(self.max_attempts):
            ratio = random.uniform(*self.aspect_ratio_range)
            if ratio <= 0:
                continue
            h, max_h = round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))
            if round(h * ratio) < width:
                h = int((width + 0.499999) / ratio)
            h = min(max(h, height), max_h)
            if h < max_h:
                h = random.randint(h, max_h)
            w = round(h * ratio)
            if h - height < 2 or w - width < 2:
                continue
            y, x = random.randint(0, max(0, h - height)), random.randint(0, max(0, w - width))
            return x, y, w, h
        return None


def CreateMultiRandCropAugmenter(min_object_covered: Any = 0.1, aspect_ratio_range: Any = (0.75, 1.33),
                                 area_range: Any = (0.05, 1.0), min_eject_coverage: Any = 0.3,
                                 max_attempts: Any = 50, skip_prob: float = 0) -> DetRandomSelectAug:
    """Returns a random choice of `DetRandomCropAug`; each argument may be a list with one value for each of them."""
    given = [min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts]
    lists = [v if isinstance(v, list) else [v] for v in given]
    count = max(map(len, lists))
    if any(len(v) not in (1, count) for v in lists):
        raise ArgumentError(f"arguments are lists of different lengths: {[len(v) for v in lists]}")
    columns = [v * count if len(v) == 1 else v for v in lists]
    augs = [DetRandomCropAug(*values) for values in zip(*columns, strict=True)]
    return DetRandomSelectAug(augs, skip_prob=skip_prob)


def CreateDetAugmenter(data_shape: Sequence[int], resize: int = 0, rand_crop: float = 0, rand_pad: float = 0,
                       rand_gray: float = 0, rand_mirror: bool = False, mean: Any = None, std: Any = None,
                       brightness: float = 0, contrast: float = 0, saturation: float = 0, pca_noise: float = 0,
                       hue: float = 0, inter_method: int = 2, min_object_covered: Any = 0.1,
                       aspect_ratio_range: Any = (0.75, 1.33), area_range: Any = (0.05, 3.0),
                       min_eject_coverage: Any = 0.3, max_attempts: Any = 50,
                       pad_val: Any = (127, 127, 127)) -> list[DetAugmenter]:
    """Returns a list of augmenters of images with boxes.

    Args:
      data_shape: (channels, height, width) of the result.
      resize: first make the shorter side this long, if > 0.
      rand_crop, rand_pad, rand_gray: probabilities of cutting, of padding, of a grey image.
      rand_mirror: flip with probability 1/2.
      mean, std, brightness, contrast, saturation, pca_noise, hue, inter_method: as of `CreateAugmenter`.
      min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts: of `DetRandomCropAug`;
        padding uses the aspect ratios and the greatest area, too.
      pad_val: colour of the padding.
    """
    made: list[DetAugmenter] = [DetBorrowAug(ResizeAug(resize, inter_method))] if resize > 0 else []
    if rand_crop > 0:
        made.append(CreateMultiRandCropAugmenter(min_object_covered, aspect_ratio_range, area_range,
                                                 min_eject_coverage, max_attempts, skip_prob=1 - rand_crop))
    if rand_mirror:
        made.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:  # late, to have less to work on before
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        made.append(DetRandomSelectAug([pad], 1 - rand_pad))
    size = (data_shape[2], data_shape[1])
    rest = [ForceResizeAug(size, inter_method), CastAug(),
            *color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std, np.float64)]
    return made + [DetBorrowAug(a) for a in rest]
