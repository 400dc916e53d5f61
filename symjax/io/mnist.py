"""`MNISTIter`: images and labels from files in the form of the MNIST data set (idx)."""

from __future__ import annotations

import gzip
import math
from typing import Any

import numpy as np

from symjax.io.description import DataDesc
from symjax.io.file_iterator import Arrays, FileParams, MXDataIter, read_params
from symjax.lowering.errors import DataFormatError, FileError, MissingFileError, ParamError
from symjax.lowering.params import param

__all__ = ["MNISTIter"]

_IMAGES, _LABELS = 2051, 2049  # what the files begin with: type uint8, 3 axes or 1


class MNISTParams(FileParams):
    """Parameters of `MNISTIter`."""

    image: str = param("./train-images-idx3-ubyte", doc="Path of the images.")
    label: str = param("./train-labels-idx1-ubyte", doc="Path of the labels.")
    batch_size: int = param(128, ge=1, doc="Number of examples in a batch.")
    shuffle: bool = param(True, doc="Whether to walk the images in another order, the same in every epoch.")
    flat: bool = param(False, doc="Whether an image is a vector.")
    seed: int = param(0, doc="What the order depends on.")
    silent: bool = param(False, doc="Passed over: nothing is printed.")
    num_parts: int = param(1, ge=1, doc="Number of parts that the images are divided into.")
    part_index: int = param(0, ge=0, doc="Which of the parts is read.")


class MNISTIter(MXDataIter):
    """Walks images and labels of files in MNIST's form. Examples that do not fill a last batch are left out.

    Args:
      image: path of the images, idx3-ubyte; gzip if it ends in ".gz".
      label: path of the labels, idx1-ubyte.
      batch_size: examples in a batch.
      shuffle: whether to put the images into a random order, which stays the same in every epoch. MXNet's generator
        is another one, so its order is too.
      flat: whether images are vectors, (rows * columns,), instead of (1, rows, columns).
      seed: of the order.
      num_parts, part_index: read one of `num_parts` parts.
      dtype: type of data and labels, float32 by default.
      data_name, label_name: names in `provide_data` and `provide_label`.
      ctx: a Context, where the batches go; the current context by default.

    Gives:
      Batches of `data[0]`, pixels divided by 256, and `label[0]`, (batch_size,).

    Raises:
      FileError: a file is missing or cannot be read.
      DataFormatError: a file is not in MNIST's form, or the files differ in their number of examples.
    """

    def __init__(self, **kwargs: Any) -> None:
        p = read_params(MNISTParams, "MNISTIter", kwargs)
        super().__init__(_Images(p), p.data_name, p.label_name, kwargs.get("ctx"))


class _Images:
    """The examples of one part, in their order."""

    def __init__(self, p: MNISTParams) -> None:
        images, labels = read_idx(p.image, _IMAGES), read_idx(p.label, _LABELS)
        if len(images) != len(labels):
            raise DataFormatError(f"MNISTIter: {p.image} has {len(images)} images and {p.label} {len(labels)} labels")
        if p.part_index >= p.num_parts:
            raise ParamError(f"MNISTIter: part_index must be less than num_parts={p.num_parts}, got {p.part_index}")
        first, last = (len(images) * i // p.num_parts for i in (p.part_index, p.part_index + 1))
        order = np.arange(first, last)
        if p.shuffle:
            np.random.default_rng(p.seed).shuffle(order)
        self.params, self._order, self._at = p, order, 0
        self._images, self._labels = images, labels
        shape = (math.prod(images.shape[1:]),) if p.flat else (1, *images.shape[1:])
        self.data = DataDesc("", (p.batch_size, *shape), p.kind.type)
        self.label = DataDesc("", (p.batch_size,), p.kind.type)
        self._scale = p.kind if p.kind.kind == "f" and p.kind.itemsize >= 4 else np.dtype(np.float32)

    def reset(self) -> None:
        self._at = 0

    def next(self) -> Arrays:
        which = self._order[self._at : self._at + self.params.batch_size]
        if len(which) < self.params.batch_size:
            raise StopIteration
        self._at += len(which)
        kind = self.params.kind
        pixels = self._images[which].astype(self._scale) / self._scale.type(256)
        return Arrays(pixels.reshape(self.data.shape).astype(kind), self._labels[which].astype(kind), 0,
                      which.astype(np.uint64))


def read_idx(path: str, kind: int) -> np.ndarray:
    """Reads a file of bytes in idx form: big-endian int32 `kind`, the size of each axis, then the elements.

    Raises:
      FileError: the file cannot be read.
      DataFormatError: it is something else.
    """
    try:
        with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as f:
            raw = f.read()
    except FileNotFoundError:
        raise MissingFileError(f"MNISTIter: there is no file {path!r}") from None
    except (OSError, EOFError) as e:
        raise FileError(f"MNISTIter: {path!r} cannot be read: {e}") from e
    axes = kind % 256
    head = np.frombuffer(raw, ">i4", min(axes + 1, len(raw) // 4))
    if len(head) != axes + 1 or head[0] != kind:
        raise DataFormatError(f"MNISTIter: {path!r} is not an idx file of bytes with {axes} axes")
    shape = tuple(int(d) for d in head[1:])
    if min(shape) < 0 or len(raw) - 4 * len(head) != math.prod(shape):
        raise DataFormatError(f"MNISTIter: {path!r} should hold {shape} bytes and holds {len(raw) - 4 * len(head)}")
    return np.frombuffer(raw, np.uint8, offset=4 * len(head)).reshape(shape)
