"""Iterators over image record files: `ImageRecordIter` and its variants."""

from __future__ import annotations

import logging
import os
from typing import Any

import numpy as np

from symjax.io._det_records import ImageDetRecordIter
from symjax.io._image_augment import augmented
from symjax.io._image_batches import Decoder, RecordStream, Source, Writer
from symjax.io._image_params import ImageParams
from symjax.io._place import hand_over
from symjax.io.description import DataDesc
from symjax.io.file_iterator import MXDataIter, RowBatches, read_params
from symjax.lowering.errors import ShapeError

__all__ = ["ImageDetRecordIter", "ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordIter_v1",
           "ImageRecordUInt8Iter", "ImageRecordUInt8Iter_v1"]


class ImageRecordIter(MXDataIter):
    """Walks the images of a record file (`symjax im2rec` makes one): decodes, augments and normalizes in threads.

    An image is resized (`resize`), warped (rotation, shear, scale, aspect ratio), padded (`pad`), cut to `data_shape`
    (in the middle, at random with `rand_crop`, of random size with `random_resized_crop` or `max_crop_size`),
    recoloured, flipped, and becomes (x - mean) scale / std.

    Args:
      path_imgrec: the record file.
      path_imgidx: its index: parts have the same number of images then, and shuffling need not walk the file first.
      path_imglist: a list file whose labels count instead of those in the records.
      data_shape: (channels, height, width); channels 1 (grey), 3 (RGB) or 4 (RGBA).
      batch_size: number of images in a batch.
      label_width: number of labels of an image.
      shuffle: whether every epoch has another order, of the whole part.
      seed: of the order, and of augmentation unless `seed_aug` is given. Results do not depend on the threads.
      num_parts, part_index: how many parts, and which to read.
      preprocess_threads: threads that decode, at most as many as there are processors.
      prefetch_buffer: how many batches are read ahead.
      round_batch: whether to fill up the last batch from the first images, and to begin the next epoch behind these;
        otherwise it is filled up with zeros.
      dtype: type of the images, float32 by default. uint8 and int8 as `ImageRecordUInt8Iter`, `ImageRecordInt8Iter`.
      data_name, label_name: names in `provide_data` and `provide_label`.
      ctx: a Context, where the batches go; the current context by default.
      **kwargs: everything else that `mx.io.ImageRecordIter` of MXNet has, from `resize` to `std_a`.

    Gives:
      Batches of `data[0]` (batch_size, *data_shape) and `label[0]` (batch_size,), or (batch_size, label_width).

    Raises:
      ParamError: an argument is missing or wrong.
      FileError: a file is missing or cannot be read.
      DataFormatError: (by `next`) a record or an image is broken; says file, byte and number.
      MissingLoweringError: OpenCV is not installed.
    """

    # MXNet: `index` is all zeros; here it counts the images of the epoch.
    _dtype: str | None = None

    def __init__(self, **kwargs: Any) -> None:
        name = type(self).__name__
        if self._dtype:
            kwargs = {**kwargs, "dtype": self._dtype}
        p = read_params(ImageParams, name, kwargs)
        p.validate(name)
        source = Source(name, p)
        shape = (p.batch_size, p.label_width) if p.label_width > 1 else (p.batch_size,)
        mean = _mean_image(name, p, kwargs) if p.mean_img else None
        writer = Writer(p, p.kind, mean, (p.max_random_contrast, p.max_random_illumination),
                        (p.mirror, p.rand_mirror))
        data = (p.batch_size, *p.data_shape)
        decoder = Decoder(source, (data, p.kind), shape, lambda i, label, rng: (augmented(p, i, rng), label), writer)
        if p.verbose:
            logging.info("%s: %s, use %d threads for decoding..", name, p.path_imgrec, decoder.threads)
        batches = RowBatches(name, p, lambda: [RecordStream(source)], decoder.pack,  # type: ignore[list-item]
                             DataDesc("", data, p.kind.type), DataDesc("", shape, np.float32), hand_over)
        super().__init__(batches, p.data_name, p.label_name, kwargs.get("ctx"))


class ImageRecordIter_v1(ImageRecordIter):
    """The same as `ImageRecordIter`."""


class ImageRecordUInt8Iter(ImageRecordIter):
    """`ImageRecordIter` whose images are uint8 pixels, without mean, std and scale."""

    _dtype = "uint8"


class ImageRecordUInt8Iter_v1(ImageRecordUInt8Iter):
    """The same as `ImageRecordUInt8Iter`."""


class ImageRecordInt8Iter(ImageRecordIter):
    """`ImageRecordIter` whose images are int8: pixels less the mean, limited to -128…127."""

    _dtype = "int8"


def _mean_image(name: str, p: ImageParams, kwargs: dict[str, Any]) -> np.ndarray:
    """The mean image from a file; computed and written there if there is none."""
    from symjax import ndarray as nd

    if not os.path.exists(p.mean_img):
        plain = {k: v for k, v in kwargs.items() if k != "mean_img" and not k.startswith(("mean_", "std_", "scale"))}
        logging.info("%s: computing the mean image %s", name, p.mean_img)
        total, count = np.zeros(p.data_shape, np.float64), 0
        for batch in ImageRecordIter(**{**plain, "dtype": "float32", "shuffle": False}):
            images = batch.data[0].asnumpy()[:p.batch_size - (batch.pad or 0)]
            total += images.sum(axis=0, dtype=np.float64)
            count += len(images)
        nd.save(p.mean_img, {"mean_img": nd.array(total / max(count, 1), dtype="float32")})
    loaded = nd.load(p.mean_img)
    mean = (loaded["mean_img"] if isinstance(loaded, dict) else loaded[0]).asnumpy()
    if mean.shape != p.data_shape:
        raise ShapeError(f"{name}: the mean image {p.mean_img} has shape {mean.shape}, data_shape is {p.data_shape}")
    return mean
