"""Batches of images from a record file, decoded by several threads."""

from __future__ import annotations

import itertools
import os
import random
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from symjax import recordio
from symjax._files import explained
from symjax._record_format import RecordFile, read_index
from symjax.io._image_augment import deep, opencv
from symjax.io._image_params import RecordParams
from symjax.io._place import Buffers
from symjax.lowering.errors import DataFormatError, MXNetError


class Sample(NamedTuple):
    """One record: its number, its labels, the bytes of its image file, and where it is."""

    id: int
    label: np.ndarray
    image: bytes
    where: str


class Source:
    """The records of a part of a file, in the order of an epoch.

    Args:
      name: the iterator's name, for messages.
      p: its parameters.
    """

    def __init__(self, name: str, p: RecordParams) -> None:
        self.name, self.p = name, p
        self.epochs = itertools.count()
        self.file = RecordFile(p.path_imgrec)
        self.labels = read_labels(p.path_imglist) if p.path_imglist else None
        self._known: list[int] | None = None
        if p.path_imgidx:
            offsets = sorted(offset for _, offset in read_index(p.path_imgidx))
            step = -(-len(offsets) // p.num_parts)
            self._known = offsets[step * p.part_index:step * (p.part_index + 1)]

    def order(self, epoch: int) -> Iterator[int]:
        """Where the records begin, in the order of this epoch."""
        if self._known is None and not self.p.shuffle:
            return self._in_file()
        if self._known is None:
            self._known = list(self._in_file())
        if not self.p.shuffle:
            return iter(self._known)
        order = list(self._known)
        random.Random(self.p.seed << 64 | epoch).shuffle(order)
        return iter(order)

    def _in_file(self) -> Iterator[int]:
        return self.file.offsets(*self.file.partition(self.p.part_index, self.p.num_parts))

    def sample(self, offset: int) -> Sample:
        """Reads one record."""
        where = f"{self.name}: {self.p.path_imgrec}: record at byte {offset}"
        header, image = recordio.unpack(self.file.read_at(offset)[0])
        label = np.atleast_1d(np.asarray(header.label, np.float32))
        if self.labels is not None:
            if header.id not in self.labels:
                raise DataFormatError(f"{where}: {self.p.path_imglist} has no image number {header.id}")
            label = self.labels[header.id]
        return Sample(header.id, label, image, where)


def read_labels(path: str) -> dict[int, np.ndarray]:
    """Reads a list file, lines `number, labels…, path` with tabs between, and returns the labels by number."""
    found = {}
    with explained(path, "open"), open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            parts = line.rstrip("\n").split("\t")
            try:
                found[int(parts[0])] = np.array([float(v) for v in parts[1:-1]], np.float32)
            except ValueError:
                raise DataFormatError(f"{path}: line {number}: expected a number, labels and a path, separated by "
                                      f"tabs, found {line[:60]!r}") from None
    return found


class RecordStream:
    """What `RowBatches` walks: rows are (epoch, offset) of records."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.restart()

    def restart(self) -> None:
        """Goes back to the beginning, for the next epoch."""
        self._epoch = next(self._source.epochs)
        self._order = self._source.order(self._epoch)
        self.position = 0

    def take(self, count: int) -> list[list[tuple[int, int]]]:
        """The next rows, fewer at the end."""
        rows = [(self._epoch, offset) for _, offset in zip(range(count), self._order, strict=False)]
        self.position += len(rows)
        return [rows]


class Decoder:
    """Makes batches of rows: decodes and augments images in threads, each into its place.

    Args:
      source: the records.
      data: shape and dtype of a batch of images.
      label: shape of a batch of labels.
      one: augments: `(image, label, rng) -> (image (H, W, C), label)`.
      write: `(image, rng, out)` writes an image to `out` (C, H, W).
      fill: what labels are filled with.
      whole: whether every image fills its place; otherwise the rest is zeros.
    """

    def __init__(self, source: Source, data: tuple[tuple[int, ...], Any], label: tuple[int, ...],
                 one: Callable[..., tuple[np.ndarray, np.ndarray]], write: Callable[..., None],
                 fill: float = 0.0, whole: bool = True) -> None:
        opencv()
        self._buffers = Buffers()
        self._source, self._data, self._label, self._fill = source, data, label, fill
        self._one, self._write, self._whole = one, write, whole
        self._flag = {1: 0, 3: 1, 4: -1}[data[0][1]]
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.threads = min(source.p.preprocess_threads, cpus)
        self._pool = ThreadPoolExecutor(self.threads, "symjax-images")
        weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)

    def pack(self, taken: list[list[list[tuple[int, int]]]]) -> tuple[np.ndarray, np.ndarray]:
        """Returns (images, labels) of a batch; rows that are missing are zeros, and labels the fill value."""
        rows = [row for piece in taken[0] for row in piece]
        shape, dtype = self._data
        data, label = self._buffers.empty(shape, dtype), np.full(self._label, self._fill, np.float32)
        data[len(rows) if self._whole else 0:] = 0
        step = max(1, -(-len(rows) // (4 * self.threads)))
        parts = [range(i, min(i + step, len(rows))) for i in range(0, len(rows), step)]
        for done in [self._pool.submit(self._fill_rows, part, rows, data, label) for part in parts]:
            done.result()
        return data, label

    def _fill_rows(self, part: range, rows: list[tuple[int, int]], data: np.ndarray, label: np.ndarray) -> None:
        p, places = self._source.p, label.reshape(len(label), -1)
        for i in part:
            epoch, offset = rows[i]
            sample = self._source.sample(offset)
            rng = random.Random((p.seed if p.seed_aug is None else p.seed_aug) << 128 | epoch << 64 | offset)
            try:
                image, labels = self._one(self.decode(sample), sample.label, rng)
                if labels.size > places.shape[1]:
                    raise DataFormatError(f"{labels.size} labels, expected {places.shape[1]}; see label_width")
                places[i, :labels.size] = labels
                self._write(image, rng, data[i])
            except MXNetError as e:
                raise type(e)(f"{sample.where}, image {sample.id}: {e}") from None

    def decode(self, sample: Sample) -> np.ndarray:
        """The image of a record, uint8 (H, W, C), channels BGR."""
        made = opencv().imdecode(np.frombuffer(sample.image, np.uint8), self._flag) if sample.image else None
        if made is None or made.dtype != np.uint8:
            raise DataFormatError(f"{len(sample.image)} bytes that are no 8-bit image that OpenCV reads")
        made = deep(made)
        channels = self._data[0][1]
        if made.shape[2] != channels:
            raise DataFormatError(f"an image of {made.shape[2]} channels, data_shape has {channels}")
        return made


class Writer:
    """Writes an image to its place in the batch: RGB, channels first, (x - mean) scale / std.

    Args:
      p: the parameters.
      dtype: of the batch; uint8 is not changed at all, of int8 only the mean is subtracted.
      mean: a mean image (C, H, W), or None.
      jitter: (contrast, illumination): random changes of the scale and of what is added.
      mirror: (always, for half of the images): flips.
    """

    def __init__(self, p: RecordParams, dtype: Any, mean: np.ndarray | None, jitter: tuple[float, float] = (0.0, 0.0),
                 mirror: tuple[bool, bool] = (False, False)) -> None:
        self._dtype, self._mean, self._jitter, self._mirror = np.dtype(dtype), mean, jitter, mirror
        self._means, self._stds, self._scale = p.means, p.stds, p.scale

    def __call__(self, image: np.ndarray, rng: random.Random, out: np.ndarray) -> None:
        cv2 = opencv()
        if self._mirror[0] or (self._mirror[1] and rng.random() < 0.5):
            image = cv2.flip(image, 1)
        contrast, light = (1 + rng.uniform(-j, j) if j else 1.0 for j in self._jitter)
        planes = cv2.split(image)
        for k, plane in enumerate((*planes[2::-1], *planes[3:])):
            h, w = plane.shape
            self._plane(k, plane, out[k, :h, :w], contrast * self._scale, (light - 1) * self._scale)

    def _plane(self, k: int, plane: np.ndarray, out: np.ndarray, scale: float, add: float) -> None:
        mean = self._means[k] if self._mean is None else self._mean[k, :out.shape[0], :out.shape[1]]
        if self._dtype == np.uint8:
            out[:] = plane
        elif self._dtype == np.int8:
            out[:] = np.clip(np.rint(np.subtract(plane, mean, dtype=np.float32)), -128, 127)
        else:
            factor = scale / self._stds[k]
            if self._mean is None and mean == 0 and factor == 1 and add == 0:
                out[:] = plane
                return
            direct = out if self._dtype == np.float32 else np.empty(out.shape, np.float32)
            np.subtract(plane, mean, out=direct, dtype=np.float32)
            if factor != 1:
                direct *= np.float32(factor)
            if add:
                direct += np.float32(add)
            if direct is not out:
                out[:] = direct
