"""`ImageDetRecordIter`: images with boxes from a record file."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from symjax.io._image_augment import deep, opencv, resized, shifted_hls, shorter_side
from symjax.io._image_batches import Decoder, RecordStream, Source, Writer
from symjax.io._image_params import DetParams
from symjax.io._place import hand_over
from symjax.io.description import DataDesc
from symjax.io.file_iterator import MXDataIter, RowBatches, read_params
from symjax.lowering.errors import DataFormatError, ParamError

Image = np.ndarray
Boxes = np.ndarray
_HEAD = 4


class ImageDetRecordIter(MXDataIter):
    """Walks images with boxes of a record file: decodes and augments in threads.

    The label of a record is: the width of this header (2 or more), the width of an object (5 or more), the rest of the
    header, then for each object its class, left, top, right, bottom (as fractions) and more.

    Args:
      path_imgrec, path_imgidx, path_imglist, data_shape, batch_size, shuffle, seed, num_parts, part_index,
        preprocess_threads, prefetch_buffer, round_batch, dtype, data_name, label_name, ctx, mean_r … std_a, scale: as
        of `ImageRecordIter`.
      label_pad_width: how many numbers a label is filled up to; by default as many as the longest has.
      label_pad_value: what it is filled up with.
      **kwargs: everything else that `mx.io.ImageDetRecordIter` of MXNet has: resizing, random cuts by samplers,
        padding, flips, changes of colour.

    Gives:
      Batches of `data[0]` (batch_size, *data_shape) and `label[0]` (batch_size, 4 + label_pad_width): channels, height
      and width of the image, number of labels, the labels.

    Raises:
      As `ImageRecordIter`; ParamError also where label_pad_width is too small.
    """

    def __init__(self, **kwargs: Any) -> None:
        name = type(self).__name__
        p = read_params(DetParams, name, kwargs)
        p.validate(name)
        source = Source(name, p)
        shape = (p.batch_size, _HEAD + _pad_width(name, p, source))
        data = (p.batch_size, *p.data_shape)
        decoder = Decoder(source, (data, p.kind), shape, lambda i, label, rng: _augmented(p, i, label, rng),
                          Writer(p, p.kind, None), p.label_pad_value, whole=p.resize_mode == "force")
        batches = RowBatches(name, p, lambda: [RecordStream(source)], decoder.pack,  # type: ignore[list-item]
                             DataDesc("", data, p.kind.type), DataDesc("", shape, np.float32), hand_over)
        super().__init__(batches, p.data_name, p.label_name, kwargs.get("ctx"))


def _pad_width(name: str, p: DetParams, source: Source) -> int:
    """How many numbers a label has; every record is looked at."""
    labels = source.labels.values() if source.labels is not None else (
        source.sample(offset).label for offset in source.order(0))  # fmt: skip
    longest = max((label.size for label in labels), default=0)
    if p.label_pad_width > 0 and p.label_pad_width < longest:
        raise ParamError(f"{name}: label_pad_width={p.label_pad_width} is less than the longest label, {longest}")
    return max(p.label_pad_width, longest)


def _split(p: DetParams, label: np.ndarray) -> tuple[np.ndarray, Boxes]:
    """(header, objects) of a label."""
    if p.label_width > 0 and label.size != p.label_width:
        raise DataFormatError(f"{label.size} labels, expected label_width={p.label_width}")
    header, width = (int(label[0]), int(label[1])) if label.size >= 2 else (0, 0)
    if header < 2 or width < 5 or label.size < header or (label.size - header) % width:
        raise DataFormatError(f"a label of {label.size} numbers that is no header (its width, at least 2; the width of "
                              f"an object, at least 5) and objects: {label[:8].tolist()}")
    return label[:header], label[header:].reshape(-1, width).copy()


def _augmented(p: DetParams, image: Image, label: np.ndarray, rng: random.Random) -> tuple[Image, np.ndarray]:
    header, boxes = _split(p, label)
    if p.resize > 0:
        image = shorter_side(image, p.resize, p.inter_method, rng)
    if image.shape[2] == 3:
        image = _recoloured(p, image, rng)
    if rng.random() < p.rand_mirror_prob:
        image = deep(opencv().flip(image, 1))
        boxes[:, [1, 3]] = 1 - boxes[:, [3, 1]]
    if rng.random() < p.rand_pad_prob and p.max_pad_scale > 1:
        image, boxes = _padded(p, image, boxes, rng)
    if p.num_crop_sampler and rng.random() < p.rand_crop_prob:
        image, boxes = _cut(p, image, boxes, rng)
    image = _sized(p, image, rng)
    labels = np.concatenate([header, boxes.ravel()])
    facts = [image.shape[2], image.shape[0], image.shape[1], labels.size]
    return image, np.concatenate([np.array(facts, np.float32), labels])


def _recoloured(p: DetParams, image: Image, rng: random.Random) -> Image:
    kinds = ((p.max_random_hue, p.random_hue_prob), (p.max_random_illumination, p.random_illumination_prob),
             (p.max_random_saturation, p.random_saturation_prob))
    shift = [rng.uniform(-most, most) if most and rng.random() < prob else 0.0 for most, prob in kinds]
    if any(shift):
        image = shifted_hls(image, shift)
    if p.max_random_contrast and rng.random() < p.random_contrast_prob:
        factor = 1 + rng.uniform(-p.max_random_contrast, p.max_random_contrast)
        image = opencv().convertScaleAbs(image, alpha=factor)
    return image


def _padded(p: DetParams, image: Image, boxes: Boxes, rng: random.Random) -> tuple[Image, Boxes]:
    """The image at a random place of a larger one."""
    h, w, channels = image.shape
    scale = rng.uniform(1, p.max_pad_scale)
    new_h, new_w = int(h * scale), int(w * scale)
    y, x = rng.randint(0, new_h - h), rng.randint(0, new_w - w)
    made = np.full((new_h, new_w, channels), p.fill_value, np.uint8)
    made[y:y + h, x:x + w] = image
    boxes[:, [1, 3]] = (boxes[:, [1, 3]] * w + x) / new_w
    boxes[:, [2, 4]] = (boxes[:, [2, 4]] * h + y) / new_h
    return made, boxes


def _cut(p: DetParams, image: Image, boxes: Boxes, rng: random.Random) -> tuple[Image, Boxes]:
    """A random rectangle that one of the samplers allows; the image itself if none does."""
    samplers = [p.of_sampler(i) for i in range(p.num_crop_sampler)]
    rng.shuffle(samplers)
    h, w = image.shape[:2]
    for sampler in samplers:
        for _ in range(int(sampler["trials"])):
            rect = _rectangle(sampler, rng)
            if rect is None or not _allowed(sampler, rect, boxes):
                continue
            left = _emitted(p, rect, boxes)
            y1, y2, x1, x2 = (int(v) for v in (rect[1] * h, rect[3] * h, rect[0] * w, rect[2] * w))
            if len(left) and y2 > y1 and x2 > x1:
                return image[y1:y2, x1:x2], left
    return image, boxes


def _rectangle(sampler: dict[str, float], rng: random.Random) -> np.ndarray | None:
    """Left, top, right, bottom of a random rectangle, as fractions."""
    scale = rng.uniform(sampler["min_scales"], sampler["max_scales"])
    root = math.sqrt(max(rng.uniform(sampler["min_aspect_ratios"], sampler["max_aspect_ratios"]), 1e-6))
    w, h = scale * root, scale / root
    if not (0 < w <= 1 and 0 < h <= 1):
        return None
    x, y = rng.uniform(0, 1 - w), rng.uniform(0, 1 - h)
    return np.array([x, y, x + w, y + h])


def _areas(boxes: np.ndarray) -> np.ndarray:
    return np.maximum(boxes[..., 2] - boxes[..., 0], 0) * np.maximum(boxes[..., 3] - boxes[..., 1], 0)


def _common(rect: np.ndarray, boxes: Boxes) -> np.ndarray:
    """Areas of what the rectangle has in common with each box."""
    b = boxes[:, 1:5]
    return _areas(np.concatenate([np.maximum(b[:, :2], rect[:2]), np.minimum(b[:, 2:], rect[2:])], axis=1))


def _allowed(sampler: dict[str, float], rect: np.ndarray, boxes: Boxes) -> bool:
    """Whether the rectangle and one of the boxes have all the overlaps that the sampler asks for."""
    usual = all(sampler[f"min_{n}"] <= 0 and sampler[f"max_{n}"] >= 1
                for n in ("overlaps", "sample_coverages", "object_coverages"))
    if usual:
        return True
    common, own, whole = _common(rect, boxes), _areas(boxes[:, 1:5]), _areas(rect)
    good = common > 0
    for name, divisor in (("overlaps", own + whole - common), ("sample_coverages", whole), ("object_coverages", own)):
        share = common / np.maximum(divisor, 1e-12)
        good &= (share >= sampler[f"min_{name}"]) & (share <= sampler[f"max_{name}"])
    return bool(good.any())


def _emitted(p: DetParams, rect: np.ndarray, boxes: Boxes) -> Boxes:
    """The boxes that stay, as fractions of the rectangle."""
    if p.crop_emit_mode == "center":
        middle = (boxes[:, 1:3] + boxes[:, 3:5]) / 2
        stays = ((middle >= rect[:2]) & (middle <= rect[2:])).all(axis=1)
    else:
        stays = _common(rect, boxes) / np.maximum(_areas(boxes[:, 1:5]), 1e-12) > p.emit_overlap_thresh
    made = boxes[stays].copy()
    size = rect[2:] - rect[:2]
    made[:, 1:5] = np.clip((made[:, 1:5] - np.tile(rect[:2], 2)) / np.tile(size, 2), 0, 1)
    return made


def _sized(p: DetParams, image: Image, rng: random.Random) -> Image:
    _, h, w = p.data_shape
    if p.resize_mode == "force":
        return resized(image, h, w, p.inter_method, rng)
    ratio = min(h / image.shape[0], w / image.shape[1])
    if p.resize_mode == "shrink" and ratio >= 1:
        return image
    return resized(image, int(image.shape[0] * ratio), int(image.shape[1] * ratio), p.inter_method, rng)
