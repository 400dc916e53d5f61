"""`ImageIter`: batches of images from a record file, a list file or a list."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax import recordio
from symjax._files import explained
from symjax.image._augmenters import CreateAugmenter
from symjax.image._functions import imdecode
from symjax.io import DataBatch, DataDesc, DataIter
from symjax.lowering.errors import ArgumentError, DataFormatError, MXNetError, ShapeError
from symjax.lowering.ops.opencv import decode
from symjax.ndarray import NDArray


class BrokenImageError(DataFormatError, RuntimeError):
    """An image that cannot be decoded, or is of no use."""


class ImageIter(DataIter):
    """Batches of images, each decoded and changed by augmenters.

    Images come from one of: `path_imgrec`, a record file (with `path_imgidx`, its index, where order matters);
    `path_imglist`, a text file of lines `number, labels…, path` separated by tabs; `imglist`, a list of such
    `[label(s)…, path]`. With a record file and a list, the labels are those of the list.

    Args:
      batch_size: number of images in a batch.
      data_shape: (3, height, width).
      label_width: number of labels of an image.
      path_imgrec, path_imglist, path_imgidx, imglist: see above.
      path_root: folder of the paths.
      shuffle: whether every epoch has another order (of `random`).
      part_index, num_parts: which of how many equal parts to read.
      aug_list: augmenters; by default those of `CreateAugmenter(data_shape, **kwargs)`.
      data_name, label_name: names of the arrays.
      dtype: type of the labels in a list.
      last_batch_handle: "pad": fill the last batch from the beginning; "discard" it; "roll_over": keep it for the next
        epoch.

    Raises:
      AssertionError: there is no source, or no index where one is needed.
    """

    def __init__(self, batch_size: int, data_shape: Sequence[int], label_width: int = 1,
                 path_imgrec: str | None = None, path_imglist: str | None = None, path_root: str | None = None,
                 path_imgidx: str | None = None, shuffle: bool = False, part_index: int = 0, num_parts: int = 1,
                 aug_list: list[Any] | None = None, imglist: list[Any] | None = None, data_name: str = "data",
                 label_name: str = "softmax_label", dtype: str = "float32", last_batch_handle: str = "pad",
                 **kwargs: Any) -> None:
        super().__init__(batch_size)
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise ArgumentError(f"{type(self).__name__} needs path_imgrec, path_imglist or imglist")
        if dtype not in ("int32", "float32", "int64", "float64"):
            raise ArgumentError(f"{dtype} label not supported")
        self.imgrec, self.imgidx = self._open(path_imgrec, path_imgidx)
        self.imglist = self._read_list(path_imglist, dtype) if path_imglist else _listed(imglist, dtype)
        self.path_root = path_root
        self.check_data_shape(data_shape)
        self.data_shape = tuple(data_shape)
        self.provide_data = [DataDesc(data_name, (batch_size, *self.data_shape))]
        label_shape = (batch_size, label_width) if label_width > 1 else (batch_size,)
        self.provide_label = [DataDesc(label_name, label_shape)]
        self.label_width, self.shuffle, self.last_batch_handle = label_width, shuffle, last_batch_handle
        self.seq = self._sequence(bool(shuffle or num_parts > 1 or path_imgidx), part_index, num_parts)
        self.num_image = len(self.seq) if self.seq is not None else None
        self.auglist: list[Any] = CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.cur, self._allow_read = 0, True
        self._cache_data: np.ndarray | None = None
        self._cache_label: np.ndarray | None = None
        self._cache_idx: int | None = None
        self.reset()

    def _open(self, path: str | None, index: str | None) -> tuple[Any, list[Any] | None]:
        if not path:
            return None, None
        logging.info("%s: loading recordio %s...", type(self).__name__, path)
        if not index:
            return recordio.MXRecordIO(path, "r"), None
        record = recordio.MXIndexedRecordIO(index, path, "r")
        return record, list(record.keys)

    def _read_list(self, path: str, dtype: str) -> dict[Any, tuple[NDArray, str]]:
        logging.info("%s: loading image list %s...", type(self).__name__, path)
        found = {}
        with explained(path, "open"), open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                key, *labels, name = line.strip().split("\t")
                try:
                    found[int(key)] = (nd.array([float(v) for v in labels], dtype=dtype), name)
                except ValueError:
                    raise DataFormatError(f"{path}: line {number}: expected a number, labels and a path, separated by "
                                          f"tabs, found {line[:60]!r}") from None
        return found

    def _sequence(self, ordered: bool, index: int, parts: int) -> list[Any] | None:
        """The keys of the images in the order of the epoch; None: as they come in the record file."""
        seq: list[Any] | None = list(self.imglist) if self.imgrec is None and self.imglist else None
        if self.imgrec is not None and ordered:
            if self.imgidx is None:
                raise ArgumentError(f"{type(self).__name__}: shuffle and num_parts need path_imgidx, the index of the "
                                    f"record file")
            seq = self.imgidx
        if parts > 1:
            if index >= parts:
                raise ArgumentError(f"part_index={index} is not less than num_parts={parts}")
            count = len(seq or ()) // parts
            seq = (seq or [])[index * count:(index + 1) * count]
        return seq

    def reset(self) -> None:
        """Starts the next epoch."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        if self.last_batch_handle != "roll_over" or self._cache_data is None:
            self._rewind()

    def hard_reset(self) -> None:
        """Starts anew, without what was kept for the next epoch."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        self._rewind()
        self._cache_data = self._cache_label = self._cache_idx = None

    def _rewind(self) -> None:
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur, self._allow_read = 0, True

    def next_sample(self) -> tuple[Any, bytes]:
        """Returns (label, bytes of the image file) of the next image.

        Raises:
          StopIteration: the epoch is over.
        """
        if not self._allow_read:
            raise StopIteration
        if self.seq is None:
            return self._next_record()
        if self.cur >= len(self.seq):
            if self.last_batch_handle != "discard":
                self.cur = 0
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            assert self.imglist is not None
            label, name = self.imglist[key]
            return label, self.read_image(name)
        header, image = recordio.unpack(self.imgrec.read_idx(key))
        return (header.label if self.imglist is None else self.imglist[key][0]), image

    def _next_record(self) -> tuple[Any, bytes]:
        record = self.imgrec.read()
        if record is None:
            if self.last_batch_handle != "discard":
                self.imgrec.reset()
            raise StopIteration
        self.cur += 1
        header, image = recordio.unpack(record)
        return header.label, image

    def _plain(self) -> bool:
        """Whether nobody has put in a function of his own that expects NDArrays."""
        mine = all(getattr(type(self), n).__module__.startswith("symjax.image")
                   for n in ("imdecode", "check_valid_image", "augmentation_transform", "postprocess_data"))
        return mine and all(_is_ours(a) for a in self.auglist)

    def _decode(self, data: bytes, plain: bool) -> Any:
        if not plain:
            return self.imdecode(data)
        try:
            return decode(data, 1, True)
        except MXNetError as e:
            raise BrokenImageError(f"{self._locate()}, {e}") from None

    def _batchify(self, batch_data: np.ndarray, batch_label: np.ndarray, start: int = 0) -> int:
        """Fills rows from `start` on, and returns how many are filled."""
        i, plain = start, self._plain()
        try:
            while i < self.batch_size:
                label, data = self.next_sample()
                image = self._decode(data, plain)
                try:
                    self.check_valid_image(image)
                except RuntimeError as e:
                    logging.debug("Invalid image, skipping:  %s", e)
                    continue
                image = self.augmentation_transform(image)
                batch_data[i] = _numpy(self.postprocess_data(image))
                batch_label[i] = self._one_label(label)
                i += 1
        except StopIteration:
            if not i:
                raise
        return i

    def _one_label(self, label: Any) -> Any:
        value = _numpy(label)
        return value.reshape(()) if self.label_width == 1 and np.size(value) == 1 else value

    def _empty(self) -> tuple[np.ndarray, np.ndarray]:
        return (np.zeros((self.batch_size, *self.data_shape), np.float32),
                np.zeros(self.provide_label[0][1], np.float32))

    def next(self) -> DataBatch:
        """Returns the next batch.

        Raises:
          StopIteration: the epoch is over.
          RuntimeError: an image cannot be decoded; the message says which.
        """
        if self._cache_data is not None and self._cache_label is not None and self._cache_idx is not None:
            data, label, count = self._cache_data, self._cache_label, self._cache_idx
        else:
            data, label = self._empty()
            count = self._batchify(data, label)
        pad = self.batch_size - count
        if pad:
            if self.last_batch_handle == "discard":
                raise StopIteration
            if self.last_batch_handle == "roll_over" and self._cache_data is None:
                self._cache_data, self._cache_label, self._cache_idx = data, label, count
                raise StopIteration
            self._fill(data, label, count)
            if self.last_batch_handle == "pad":
                self._allow_read = False
            else:
                self._cache_data = self._cache_label = self._cache_idx = None
        # MXNet: a rolled-over batch says how much of it is of this epoch in `pad`, although all of it is new
        return DataBatch([nd.array(data)], [nd.array(label)], pad=pad)

    def _fill(self, data: np.ndarray, label: np.ndarray, count: int) -> None:
        """Fills the rest of the last batch from the beginning, more than once where there are few images."""
        while count < self.batch_size:
            before = count
            count = self._batchify(data, label, count)
            if count == before:
                return

    def check_data_shape(self, data_shape: Sequence[int]) -> None:
        """Raises ValueError unless the shape is (3, height, width)."""
        if len(data_shape) != 3:
            raise ShapeError("data_shape should have length 3, with dimensions CxHxW")
        if data_shape[0] != 3:
            raise ShapeError("This iterator expects inputs to have 3 channels.")

    def check_valid_image(self, data: Any) -> None:
        """Raises RuntimeError for what is no image."""
        if len(data[0].shape) == 0:
            raise BrokenImageError("Data shape is wrong")

    def _locate(self) -> str:
        """Says which image was read last."""
        key = self.cur - 1 if self.seq is None else self.seq[(self.cur - 1) % len(self.seq)]
        if self.imglist is not None and key in self.imglist:
            return f"Broken image filename: {self.imglist[key][1]}"
        return f"Broken image index: {key}"

    def imdecode(self, s: bytes) -> NDArray:
        """Returns the image of a file's bytes, uint8 (height, width, 3).

        Raises:
          RuntimeError: it cannot be decoded; the message says which one it is.
        """
        try:
            return imdecode(s)
        except Exception as e:
            raise BrokenImageError(f"{self._locate()}, {e}") from None

    def read_image(self, fname: str) -> bytes:
        """Returns the bytes of an image file below `path_root`."""
        path = os.path.join(self.path_root or "", fname)
        with explained(path, "open"), open(path, "rb") as file:
            return file.read()

    def augmentation_transform(self, data: Any) -> Any:
        """Returns an image as the augmenters make it."""
        for aug in self.auglist:
            data = aug(data)
        return data

    def postprocess_data(self, datum: Any) -> Any:
        """Returns (channels, height, width) of an image."""
        return datum.transpose((2, 0, 1))


def _listed(imglist: list[Any] | None, dtype: str) -> dict[Any, tuple[NDArray, str]] | None:
    if not isinstance(imglist, list):
        return None
    found = {}
    for i, (*labels, path) in enumerate(imglist, 1):
        value = labels if len(labels) > 1 or isinstance(labels[0], Number) else labels[0]
        found[str(i)] = (nd.array(np.asarray(value), dtype=dtype), path)
    return found


def _numpy(value: Any) -> np.ndarray:
    return value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)


def _is_ours(aug: Any) -> bool:
    """Whether an augmenter, with those inside, is this package's own, which takes numpy arrays."""
    if not type(aug).__module__.startswith("symjax.image"):
        return False
    inside = [*getattr(aug, "ts", ()), *getattr(aug, "aug_list", ())]
    if hasattr(aug, "augmenter"):
        inside.append(aug.augmenter)
    return all(map(_is_ours, inside))


