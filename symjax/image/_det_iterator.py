"""`ImageDetIter`: batches of images with boxes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symjax.image._det_augmenters import CreateDetAugmenter
from symjax.image._iterator import BrokenImageError, ImageIter, _numpy
from symjax.io import DataDesc
from symjax.lowering.errors import ArgumentError, MissingLoweringError, ShapeError


class ImageDetIter(ImageIter):
    """Batches of images with boxes, each decoded and changed by augmenters of both.

    The label of an image is a list of numbers: the width of this header (2 or more), the width of an object (5 or
    more), the rest of the header, then for each object its class, left, top, right, bottom (fractions) and more.

    Args:
      batch_size, data_shape, path_imgrec, path_imglist, path_root, path_imgidx, shuffle, part_index, num_parts,
        imglist, data_name, label_name, last_batch_handle: as of `ImageIter`.
      aug_list: augmenters; by default those of `CreateDetAugmenter(data_shape, **kwargs)`.

    Attributes:
      label_shape: (greatest number of objects of an image, width of an object). Batches have labels of shape
        (batch_size, *label_shape); what is no object is -1.
    """

    def __init__(self, batch_size: int, data_shape: Sequence[int], path_imgrec: str | None = None,
                 path_imglist: str | None = None, path_root: str | None = None, path_imgidx: str | None = None,
                 shuffle: bool = False, part_index: int = 0, num_parts: int = 1, aug_list: list[Any] | None = None,
                 imglist: list[Any] | None = None, data_name: str = "data", label_name: str = "label",
                 last_batch_handle: str = "pad", **kwargs: Any) -> None:
        super().__init__(batch_size, data_shape, path_imgrec=path_imgrec, path_imglist=path_imglist,
                         path_root=path_root, path_imgidx=path_imgidx, shuffle=shuffle, part_index=part_index,
                         num_parts=num_parts, aug_list=[], imglist=imglist, data_name=data_name,
                         label_name=label_name, last_batch_handle=last_batch_handle)
        self._aug_args = kwargs if aug_list is None else None
        self.auglist = CreateDetAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.label_shape = self._estimate_label_shape()
        self.provide_label = [DataDesc(label_name, (batch_size, *self.label_shape))]

    def _estimate_label_shape(self) -> tuple[int, int]:
        """The greatest number of objects and their width, from all labels."""
        self.reset()
        shapes = [self._parse_label(label).shape for label, _ in iter(self._sample_or_none, None)]
        self.reset()
        if not shapes:
            raise BrokenImageError("there are no images")
        if len({width for _, width in shapes}) > 1:
            raise ShapeError(f"objects have different widths: {sorted({width for _, width in shapes})}")
        return max(count for count, _ in shapes), shapes[0][1]

    def _sample_or_none(self) -> tuple[Any, bytes] | None:
        try:
            return self.next_sample()
        except StopIteration:
            return None

    def _parse_label(self, label: Any) -> np.ndarray:
        """The objects of a label, (n, width), without boxes that are inside out."""
        raw = _numpy(label).ravel()
        if raw.size < 7:
            raise BrokenImageError(f"Label shape is invalid: {raw.shape}")
        header, width = int(raw[0]), int(raw[1])
        if header < 2 or width < 5 or (raw.size - header) % width:
            raise BrokenImageError(f"Label shape {raw.shape} inconsistent with a header of {header} numbers (at least "
                                   f"2) and annotation width {width} (at least 5).")
        out = raw[header:].reshape(-1, width)
        valid = (out[:, 3] > out[:, 1]) & (out[:, 4] > out[:, 2])
        if not valid.any():
            raise BrokenImageError("Encounter sample with no valid label.")
        return out[valid]

    def _check_valid_label(self, label: np.ndarray) -> None:
        if label.ndim != 2 or label.shape[1] < 5:
            raise BrokenImageError(f"Label with shape (1+, 5+) required, {label} received.")
        if not ((label[:, 0] >= 0) & (label[:, 3] > label[:, 1]) & (label[:, 4] > label[:, 2])).any():
            raise BrokenImageError("Invalid label occurs.")

    def _empty(self) -> tuple[np.ndarray, np.ndarray]:
        data, label = super()._empty()
        label[:] = -1
        return data, label

    def _batchify(self, batch_data: np.ndarray, batch_label: np.ndarray, start: int = 0) -> int:
        i, plain = start, self._plain()
        while i < self.batch_size:
            sample = self._sample_or_none()
            if sample is None:
                if not i:
                    raise StopIteration
                break
            image = self._decode(sample[1], plain)
            try:
                self.check_valid_image([image])
                image, label = self.augmentation_transform(image, self._parse_label(sample[0]))
                self._check_valid_label(label)
            except RuntimeError as e:
                logging.debug("Invalid image, skipping:  %s", e)
                continue
            batch_data[i] = _numpy(self.postprocess_data(image))
            batch_label[i] = -1
            batch_label[i, :len(label)] = label
            i += 1
        return i

    def augmentation_transform(self, data: Any, label: Any) -> Any:  # type: ignore[override]
        """Returns (image, boxes) as the augmenters make them."""
        for aug in self.auglist:
            data, label = aug(data, label)
        return data, label

    def reshape(self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None) -> None:
        """Changes the shape of images, or makes room for more objects.

        Raises:
          ValueError: fewer objects than there may be, or another width.
        """
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            if self._aug_args is not None:  # MXNet: the augmenters stay, and give images of the old shape
                self.auglist = CreateDetAugmenter(data_shape, **self._aug_args)
            self.provide_data = [DataDesc(self.provide_data[0][0], (self.batch_size, *self.data_shape))]
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = (label_shape[0], label_shape[1])
            self.provide_label = [DataDesc(self.provide_label[0][0], (self.batch_size, *self.label_shape))]

    def check_label_shape(self, label_shape: Sequence[int]) -> None:
        """Raises ValueError unless labels of this shape have room for all objects."""
        if len(label_shape) != 2:
            raise ShapeError("label_shape should have length 2")
        if label_shape[0] < self.label_shape[0]:
            raise ShapeError(f"Attempts to reduce label count from {self.label_shape[0]} to {label_shape[0]}, not "
                             f"allowed.")
        if label_shape[1] != self.provide_label[0][1][2]:
            raise ShapeError(f"label_shape object width inconsistent: {self.provide_label[0][1][2]} vs "
                             f"{label_shape[1]}.")

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Gives this iterator and another the greater number of objects of both, and returns the other."""
        if not isinstance(it, ImageDetIter):
            raise ArgumentError("Synchronize with invalid iterator.")
        if self.label_shape[1] != it.label_shape[1]:
            raise ArgumentError("object width mismatch.")
        count, least = max(self.label_shape[0], it.label_shape[0]), min(self.label_shape[0], it.label_shape[0])
        for each in (self, it):
            if each.label_shape[0] < count:
                each.reshape(None, (count, each.label_shape[1]))
        if verbose and count > least:
            logging.info("Resized label_shape to (%d, %d).", count, self.label_shape[1])
        return it

    def draw_next(self, color: Any = None, thickness: int = 2, mean: Any = None, std: Any = None, clip: bool = True,
                  waitKey: int | None = None, window_name: str = "draw_next",
                  id2labels: dict[int, str] | None = None) -> Iterator[np.ndarray]:
        """Yields the next images with their boxes drawn, uint8 (height, width, 3), channels BGR.

        Args:
          color: of the boxes, RGB; None: random.
          thickness: of the lines, in pixels.
          mean, std: what the augmenters subtracted and divided by; True: ImageNet's.
          clip: to 0…255.
          waitKey: show each image in a window for so many milliseconds (0: until a key is pressed); None: do not.
          window_name: title of the window.
          id2labels: names of the classes.
        """
        try:
            import cv2
        except ImportError:
            raise MissingLoweringError("draw_next needs OpenCV: install symjax-mxnet[image]") from None
        for image, label in iter(self._next_augmented, None):
            picture = _picture(_numpy(image), mean, std, clip)
            _draw(cv2, picture, label, color, thickness, id2labels or {})
            if waitKey is not None:
                cv2.imshow(window_name, picture)
                cv2.waitKey(waitKey)
            yield picture

    def _next_augmented(self) -> tuple[Any, np.ndarray] | None:
        while (sample := self._sample_or_none()) is not None:
            image = self.imdecode(sample[1])
            try:
                self.check_valid_image([image])
                label = self._parse_label(sample[0])
            except RuntimeError as e:
                logging.debug("Invalid image, skipping:  %s", e)
                continue
            return self.augmentation_transform(image, label)
        return None


def _picture(image: np.ndarray, mean: Any, std: Any, clip: bool) -> np.ndarray:
    usual = {"std": [58.395, 57.12, 57.375], "mean": [123.68, 116.28, 103.53]}
    for name, value in (("std", std), ("mean", mean)):
        if value is None:
            continue
        value = np.asarray(usual[name] if value is True else value)
        image = image * value if name == "std" else image + value
    if clip:
        image = np.clip(image, 0, 255)
    return np.ascontiguousarray(image[:, :, ::-1].astype(np.uint8))


def _draw(cv2: Any, picture: np.ndarray, label: np.ndarray, color: Any, thickness: int, names: dict[int, str]) -> None:
    height, width, _ = picture.shape
    for kind, *box in label[:, :5]:
        x1, y1, x2, y2 = (int(v * n) for v, n in zip(box, (width, height) * 2, strict=True))
        if x1 < 0:
            continue
        paint = tuple(color[::-1]) if color else tuple(np.random.rand(3) * 255)
        cv2.rectangle(picture, (x1, y1), (x2, y2), paint, thickness)
        if int(kind) in names:
            font = cv2.FONT_HERSHEY_SIMPLEX
            text_height = cv2.getTextSize(names[int(kind)], font, 0.5, 2)[0][1]
            cv2.putText(picture, names[int(kind)], (x1 + 5, y1 + text_height + 5), font, 0.5, (255, 255, 255), 2)


