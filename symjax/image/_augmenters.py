"""Augmenters: callables that change an image at random, or always."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from symjax.image._functions import (
    center_crop,
    deprecated_min_area,
    random_crop,
    random_size_crop,
    resize_short,
)
from symjax.image._host import interp_method, like, resized
from symjax.lowering.errors import ArgumentError
from symjax.ndarray import NDArray

_GREY = np.array([0.299, 0.587, 0.114], np.float32)


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """Arguments with arrays as lists, for JSON."""
    arrays = {k: v.asnumpy() if isinstance(v, NDArray) else v for k, v in values.items()}
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in arrays.items()}


class Augmenter:
    """Base class. An augmenter takes an image (height, width, channels) and returns one.

    Args:
      **kwargs: what `dumps` writes.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = plain(kwargs)

    def dumps(self) -> Any:
        """Returns the JSON text `["name", {arguments}]`."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: Any) -> Any:
        """Returns the changed image; `src` is an NDArray or a numpy array, and so is what comes out."""
        raise NotImplementedError("Must override implementation.")


class _HostAugmenter(Augmenter):
    """An augmenter that works with numpy, and takes NDArrays too."""

    in_place = False
    """Whether an NDArray that is given is changed, as in MXNet."""

    def _apply(self, image: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def __call__(self, src: Any) -> Any:
        if not isinstance(src, NDArray):
            return self._apply(src)
        made = self._apply(src.asnumpy())
        if not self.in_place:
            return like(made, src)
        src[:] = made
        return src


def _scale(image: np.ndarray, factor: Any) -> np.ndarray:
    return np.multiply(image, factor, out=image, casting="unsafe")


def _add(image: np.ndarray, what: Any) -> np.ndarray:
    return np.add(image, what, out=image, casting="unsafe")


class SequentialAug(Augmenter):
    """Augmenters one after another."""

    def __init__(self, ts: list[Augmenter]) -> None:
        super().__init__()
        self.ts = ts

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src: Any) -> Any:
        for t in self.ts:
            src = t(src)
        return src


class RandomOrderAug(SequentialAug):
    """Augmenters one after another, each time in another order."""

    def __call__(self, src: Any) -> Any:
        random.shuffle(self.ts)
        return super().__call__(src)


class ResizeAug(_HostAugmenter):
    """See `resize_short`."""

    def __init__(self, size: int, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return resize_short(image, self.size, self.interp)


class ForceResizeAug(_HostAugmenter):
    """Resizes to `size` (width, height), whatever the aspect ratio."""

    def __init__(self, size: tuple[int, int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def _apply(self, image: np.ndarray) -> np.ndarray:
        w, h = self.size
        return resized(image, w, h, interp_method(self.interp, (*image.shape[:2], h, w)))


class RandomCropAug(_HostAugmenter):
    """See `random_crop`."""

    def __init__(self, size: tuple[int, int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return random_crop(image, self.size, self.interp)[0]


class RandomSizedCropAug(_HostAugmenter):
    """See `random_size_crop`."""

    def __init__(self, size: tuple[int, int], area: Any, ratio: tuple[float, float], interp: int = 2,
                 **kwargs: Any) -> None:
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.area = deprecated_min_area(area, kwargs, "RandomSizedCropAug")
        self.size, self.ratio, self.interp = size, ratio, interp

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return random_size_crop(image, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(_HostAugmenter):
    """See `center_crop`."""

    def __init__(self, size: tuple[int, int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return center_crop(image, self.size, self.interp)[0]


class BrightnessJitterAug(_HostAugmenter):
    """Multiplies by 1 + u, u uniform in ±brightness."""

    in_place = True

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return _scale(image, 1.0 + random.uniform(-self.brightness, self.brightness))


class ContrastJitterAug(_HostAugmenter):
    """Mixes with the mean grey value: a x + (1 - a) mean(grey), a = 1 + u, u uniform in ±contrast."""

    in_place = True

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast=contrast)
        self.contrast = contrast

    def _apply(self, image: np.ndarray) -> np.ndarray:
        alpha = 1.0 + random.uniform(-self.contrast, self.contrast)
        grey = (3.0 * (1.0 - alpha) / image.size) * float(np.sum(image * _GREY, dtype=np.float64))
        return _add(_scale(image, alpha), grey)


class SaturationJitterAug(_HostAugmenter):
    """Mixes each pixel with its grey value: a x + (1 - a) grey, a = 1 + u, u uniform in ±saturation."""

    in_place = True

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation=saturation)
        self.saturation = saturation

    def _apply(self, image: np.ndarray) -> np.ndarray:
        alpha = 1.0 + random.uniform(-self.saturation, self.saturation)
        grey = np.sum(image * _GREY, axis=2, keepdims=True) * np.float32(1.0 - alpha)
        return _add(_scale(image, alpha), grey)


_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_RGB = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])


class HueJitterAug(_HostAugmenter):
    """Rotates the colours in YIQ space by u π, u uniform in ±hue."""

    def __init__(self, hue: float) -> None:
        super().__init__(hue=hue)
        self.hue = hue

    def _apply(self, image: np.ndarray) -> np.ndarray:
        angle = random.uniform(-self.hue, self.hue) * np.pi
        u, w = np.cos(angle), np.sin(angle)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, u, -w], [0.0, w, u]])
        return image @ (_RGB @ turn @ _YIQ).T.astype(np.float32)


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation jitter in random order; 0 leaves one out."""

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        kinds = ((BrightnessJitterAug, brightness), (ContrastJitterAug, contrast), (SaturationJitterAug, saturation))
        super().__init__([kind(value) for kind, value in kinds if value > 0])


class LightingAug(_HostAugmenter):
    """Adds a random colour along the principal components of colours.

    Args:
      alphastd: standard deviation of the noise.
      eigval: (3,), eigenvalues.
      eigvec: (3, 3), eigenvectors as columns.
    """

    in_place = True

    def __init__(self, alphastd: float, eigval: np.ndarray, eigvec: np.ndarray) -> None:
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, eigval, eigvec

    def _apply(self, image: np.ndarray) -> np.ndarray:
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        return _add(image, np.dot(self.eigvec * alpha, self.eigval).astype(np.float32))


class ColorNormalizeAug(_HostAugmenter):
    """See `color_normalize`. The arguments are arrays of one value, or of one for each channel, or None."""

    in_place = True

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (_float32(v) for v in (mean, std))

    def _apply(self, image: np.ndarray) -> np.ndarray:
        if self.mean is not None:
            np.subtract(image, self.mean, out=image, casting="unsafe")
        if self.std is not None:
            np.divide(image, self.std, out=image, casting="unsafe")
        return image


def _float32(value: Any) -> np.ndarray | None:
    if value is None:
        return None
    return np.asarray(value.asnumpy() if isinstance(value, NDArray) else value, np.float32)


_TO_GREY = np.array([[0.21] * 3, [0.72] * 3, [0.07] * 3], np.float32)


class RandomGrayAug(_HostAugmenter):
    """Makes the image grey, all channels equal, with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return image @ _TO_GREY if random.random() < self.p else image


class HorizontalFlipAug(_HostAugmenter):
    """Flips left and right with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = p

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(image[:, ::-1]) if random.random() < self.p else image


class CastAug(_HostAugmenter):
    """Changes the type."""

    def __init__(self, typ: str = "float32") -> None:
        super().__init__(type=typ)
        self.typ = typ

    def _apply(self, image: np.ndarray) -> np.ndarray:
        return image.astype(self.typ)


EIGVAL = np.array([55.46, 4.794, 1.148])
EIGVEC = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
MEAN, STD = np.array([123.68, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])
"""Of the colours of ImageNet, values from 0 to 255."""


def color_augmenters(brightness: float, contrast: float, saturation: float, hue: float, pca_noise: float,
                     rand_gray: float, mean: Any, std: Any, dtype: Any) -> list[Augmenter]:
    """The augmenters of colours, in order. See `CreateAugmenter`; `dtype` is what the usual means are written in."""
    made: list[Augmenter] = []
    if brightness or contrast or saturation:
        made.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        made.append(HueJitterAug(hue))
    if pca_noise > 0:
        made.append(LightingAug(pca_noise, EIGVAL, EIGVEC))
    if rand_gray > 0:
        made.append(RandomGrayAug(rand_gray))
    mean, std = _normal("mean", mean, MEAN.astype(dtype)), _normal("std", std, STD.astype(dtype))
    if mean is not None or std is not None:
        made.append(ColorNormalizeAug(mean, std))
    return made


def _normal(name: str, value: Any, usual: np.ndarray) -> Any:
    if value is True:
        return usual
    if value is None or (isinstance(value, np.ndarray | NDArray) and value.shape[0] in (1, 3)):
        return value
    raise ArgumentError(f"{name} must be True, None, or an array of 1 or 3 numbers, got {value!r}")


def CreateAugmenter(data_shape: Sequence[int], resize: int = 0, rand_crop: bool = False, rand_resize: bool = False,
                    rand_mirror: bool = False, mean: Any = None, std: Any = None, brightness: float = 0,
                    contrast: float = 0, saturation: float = 0, hue: float = 0, pca_noise: float = 0,
                    rand_gray: float = 0, inter_method: int = 2) -> list[Augmenter]:
    """Returns a list of augmenters for training or evaluation.

    Args:
      data_shape: (channels, height, width) of the result.
      resize: first make the shorter side this long, if > 0.
      rand_crop: cut at a random place instead of the middle.
      rand_resize: with `rand_crop`: cut rectangles of random area and shape.
      rand_mirror: flip with probability 1/2.
      mean, std: subtract and divide; an array of 3, or True for ImageNet's.
      brightness, contrast, saturation, hue: how far these may change, as a fraction.
      pca_noise: how much colours may change along their principal components.
      rand_gray: probability of a grey image.
      inter_method: see `imresize`.
    """
    size = (data_shape[2], data_shape[1])
    made: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise ArgumentError("rand_resize needs rand_crop=True")
        made.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        made.append(RandomCropAug(size, inter_method) if rand_crop else CenterCropAug(size, inter_method))
    if rand_mirror:
        made.append(HorizontalFlipAug(0.5))
    made.append(CastAug())
    return made + color_augmenters(brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std, np.float32)


__all__ = ["Augmenter", "BrightnessJitterAug", "CastAug", "CenterCropAug", "ColorJitterAug", "ColorNormalizeAug",
           "ContrastJitterAug", "CreateAugmenter", "ForceResizeAug", "HorizontalFlipAug", "HueJitterAug", "LightingAug",
           "RandomCropAug", "RandomGrayAug", "RandomOrderAug", "RandomSizedCropAug", "ResizeAug",
           "SaturationJitterAug", "SequentialAug"]
