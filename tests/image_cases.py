"""Image work, for real MXNet and for symjax: `run(mx, np, name)` gives shapes and sums that are recorded.

`tests/golden/image.json` holds what MXNet gives (`tests/oracle/record_image.py`). Nothing here needs a decoder.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any


def picture(np: Any, h: int = 30, w: int = 40) -> Any:
    """A smooth colour image, uint8 (h, w, 3): interpolations differ little there."""
    y, x = np.mgrid[:h, :w]
    return np.stack([x * 5 + y, 255 - y * 6, 60 + 2 * x + 3 * y], -1).clip(0, 255).astype("uint8")


LABEL = [[0, 0.1, 0.2, 0.5, 0.6, 7], [1, 0.4, 0.3, 0.9, 0.95, 8]]


def _augmenters(i: Any, np: Any) -> dict[str, Any]:
    eigval, eigvec = np.array([5.0, 2.0, 1.0]), np.eye(3)[::-1] + 0.1
    return {
        "resize": i.ResizeAug(20), "force": i.ForceResizeAug((16, 24), 1), "crop": i.RandomCropAug((20, 10)),
        "crop_larger": i.RandomCropAug((60, 20), 1),
        "sized": i.RandomSizedCropAug((12, 12), (0.3, 0.9), (0.75, 1.33), 1),
        "center": i.CenterCropAug((21, 11)), "flip": i.HorizontalFlipAug(0.5), "brightness": i.BrightnessJitterAug(0.4),
        "contrast": i.ContrastJitterAug(0.4), "saturation": i.SaturationJitterAug(0.4), "hue": i.HueJitterAug(0.4),
        "colour": i.ColorJitterAug(0.3, 0.3, 0.3), "lighting": i.LightingAug(0.5, eigval, eigvec),
        "normalize": i.ColorNormalizeAug(np.array([100.0, 110, 120]), np.array([50.0, 60, 70])),
        "grey": i.RandomGrayAug(0.5), "cast": i.CastAug("float32"),
        "list": i.SequentialAug(i.CreateAugmenter((3, 16, 18), resize=22, rand_crop=True, rand_mirror=True, mean=True,
                                                  std=True, brightness=0.1, contrast=0.1, saturation=0.1, hue=0.1,
                                                  pca_noise=0.1, rand_gray=0.3, inter_method=1)),
    }  # fmt: skip


AUGMENTERS = ("resize", "force", "crop", "crop_larger", "sized", "center", "flip", "brightness", "contrast",
              "saturation", "hue", "colour", "lighting", "normalize", "grey", "cast", "list")
DET = ("borrow", "flip", "crop", "crop_fixed", "pad", "multi", "list")


def _det(i: Any) -> dict[str, Any]:
    return {
        "borrow": i.DetBorrowAug(i.CastAug()), "flip": i.DetHorizontalFlipAug(0.6),
        "crop": i.DetRandomCropAug(0.2, (0.5, 2.0), (0.2, 1.0), 0.2), "crop_fixed": i.DetRandomCropAug(0.1, 1.0, 0.5),
        "pad": i.DetRandomPadAug((0.7, 1.4), (1.0, 4.0)),
        "multi": i.CreateMultiRandCropAugmenter([0.1, 0.5], area_range=[(0.1, 1.0), (0.3, 0.9)], skip_prob=0.2),
        "list": _All(i.CreateDetAugmenter((3, 16, 18), resize=22, rand_crop=0.7, rand_pad=0.7, rand_mirror=True,
                                          mean=True, std=True, brightness=0.1, inter_method=1)),
    }  # fmt: skip


class _All:
    def __init__(self, augs: list[Any]) -> None:
        self.augs = augs

    def __call__(self, image: Any, label: Any) -> Any:
        for aug in self.augs:
            image, label = aug(image, label)
        return image, label

    def dumps(self) -> Any:
        return [a.dumps() for a in self.augs]


def _facts(np: Any, image: Any) -> list[Any]:
    a = image.asnumpy() if hasattr(image, "asnumpy") else image
    return [list(a.shape), str(a.dtype), float(a.astype("float64").mean()), float(a[0, 0, 0]), float(a[-1, -1, -1])]


def run_augmenter(mx: Any, np: Any, name: str) -> Any:
    """What an augmenter says of itself, and five results."""
    random.seed(5)
    np.random.seed(5)
    aug = _augmenters(mx.image, np)[name]
    dtype = "uint8" if name in ("resize", "force", "crop", "crop_larger", "sized", "center", "flip", "cast",
                                "list") else "float32"
    given = [mx.nd.array(picture(np), dtype=dtype) for _ in range(5)]
    return [json.loads(json.dumps(aug.dumps())), [_facts(np, aug(g)) for g in given]]


def run_det(mx: Any, np: Any, name: str) -> Any:
    """The same for images with boxes."""
    random.seed(5)
    np.random.seed(5)
    aug, found = _det(mx.image)[name], []
    for _ in range(5):
        image, label = aug(mx.nd.array(picture(np), dtype="uint8"), np.array(LABEL, "float32"))
        found.append([_facts(np, image), [[float(v) for v in row] for row in label]])
    return [json.loads(json.dumps(aug.dumps())), found]


def _float_image(mx: Any, np: Any, *shape: int) -> Any:
    return mx.nd.array(np.sin(np.arange(int(np.prod(shape))) * 0.05).reshape(shape), dtype="float32")


FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "scale_down": lambda mx, np, im: [mx.image.scale_down((640, 480), (720, 120)),
                                      mx.image.scale_down((10, 20), (30, 90))],
    "imresize": lambda mx, np, im: [_facts(np, mx.image.imresize(im, 20, 12, i)) for i in (0, 1, 2, 3, 4)],
    "resize_short": lambda mx, np, im: _facts(np, mx.image.resize_short(im, 15, 1)),
    "fixed_crop": lambda mx, np, im: _facts(np, mx.image.fixed_crop(im, 3, 4, 20, 10, (30, 30), 1)),
    "center_crop": lambda mx, np, im: [_facts(np, r) if i == 0 else r for i, r in
                                       enumerate(mx.image.center_crop(im, (15, 15)))],
    "border": lambda mx, np, im: [_facts(np, mx.image.copyMakeBorder(im, 1, 2, 3, 4, t)) for t in (0, 1, 2, 4)],
    "color_normalize": lambda mx, np, im: _facts(np, mx.image.color_normalize(
        im.astype("float32"), mx.nd.array([1, 2, 3]), mx.nd.array([4, 5, 6]))),
    "imrotate": lambda mx, np, im: [
        _facts(np, mx.image.imrotate(_float_image(mx, np, 3, 12, 15), 30.0, **k))
        for k in ({}, {"zoom_in": True}, {"zoom_out": True})],
    "imrotate_batch": lambda mx, np, im: _facts(np, mx.image.imrotate(
        _float_image(mx, np, 2, 3, 9, 7), mx.nd.array([10, -75])).reshape((6, 9, 7))),
}  # fmt: skip


def run_function(mx: Any, np: Any, name: str) -> Any:
    random.seed(5)
    np.random.seed(5)
    return json.loads(json.dumps(FUNCTIONS[name](mx, np, mx.nd.array(picture(np), dtype="uint8"))))
