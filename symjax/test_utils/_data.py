"""Files from the network, and data sets. Files that are there already are not fetched again."""

from __future__ import annotations

import bz2
import gzip
import logging
import os
import struct
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

_SERVER = "http://data.mxnet.io"
_IMAGENET = f"{_SERVER}/models/imagenet"
_MODELS = {
    "imagenet1k-inception-bn": (f"{_IMAGENET}/inception-bn/Inception-BN", 126),
    **{f"imagenet1k-resnet-{n}": (f"{_IMAGENET}/resnet/{n}-layers/resnet-{n}", 0) for n in (18, 34, 50, 101, 152)},
    **{f"imagenet1k-resnext-{n}": (f"{_IMAGENET}/resnext/{n}-layers/resnext-{n}", 0) for n in (50, 101)},
    "imagenet1k-resnext-101-64x4d": (f"{_IMAGENET}/resnext/101-layers/resnext-101-64x4d", 0),
    "imagenet11k-resnet-152": (f"{_SERVER}/models/imagenet-11k/resnet-152/resnet-152", 0),
    **{f"imagenet11k-place365ch-resnet-{n}": (f"{_SERVER}/models/imagenet-11k-place365-ch/resnet-{n}", 0)
       for n in (152, 50)},
}  # fmt: skip


def download(url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False,
             retries: int = 5) -> str:
    """Fetches a file, unless it is there already; it appears whole or not at all.

    Args:
      url: http or https address.
      fname: name of the file; the end of the address if None.
      dirname: its folder, made if it is not there.
      overwrite: fetch it even if it is there.
      retries: how often to try again.

    Returns:
      The file's path.

    Raises:
      ValueError: another kind of address.
      OSError: it cannot be had.
    """
    assert retries >= 0, "Number of retries should be at least 0"
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"download needs an http or https address, got {url!r}")
    name = url.rpartition("/")[2] if fname is None else fname
    path = Path(dirname or "", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not overwrite and path.exists():
        logging.info("%s exists, skipping download", path)
        return str(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    for left in range(retries, -1, -1):
        try:
            urllib.request.urlretrieve(url, part)
            os.replace(part, path)
            break
        except OSError as e:
            part.unlink(missing_ok=True)
            if left == 0:
                raise OSError(f"{url} cannot be fetched: {e}; put the file at {path} yourself") from e
            print(f"download failed, retrying, {left} attempt{'s' if left > 1 else ''} left")
    logging.info("downloaded %s into %s successfully", url, path)
    return str(path)


def download_model(model_name: str, dst_dir: str = "./",
                   meta_info: Mapping[str, Mapping[str, str]] | None = None) -> tuple[str | None, int]:
    """Fetches a model's files and returns its prefix and epoch for `load_checkpoint`; `(None, 0)` if it is unknown.

    Args:
      model_name: its name.
      dst_dir: where to put the files.
      meta_info: addresses by name: `{"symbol": …, "params": …}`; those of MXNet's models if None.
    """
    if meta_info is None:
        meta_info = {k: {"symbol": f"{p}-symbol.json", "params": f"{p}-{e:04d}.params"}
                     for k, (p, e) in _MODELS.items()}  # fmt: skip
    if model_name not in meta_info:
        return None, 0
    meta = meta_info[model_name]
    for part in ("symbol", "params"):
        assert part in meta, f"missing {part} url of {model_name}"
    prefix = os.path.join(dst_dir, model_name)
    download(meta["symbol"], f"{prefix}-symbol.json")
    download(meta["params"], f"{prefix}-0000.params")
    return prefix, 0


def get_mnist() -> dict[str, np.ndarray]:
    """Returns MNIST as images (n, 1, 28, 28) from 0 to 1 and labels; files in the current folder are used."""

    def read(labels: str, images: str) -> tuple[np.ndarray, np.ndarray]:
        with gzip.open(download(f"{_SERVER}/data/mnist/{labels}")) as f:
            f.read(8)
            label = np.frombuffer(f.read(), np.int8)
        with gzip.open(download(f"{_SERVER}/data/mnist/{images}")) as f:
            _, _, rows, columns = struct.unpack(">IIII", f.read(16))
            image = np.frombuffer(f.read(), np.uint8).reshape(len(label), 1, rows, columns)
        return label, image.astype(np.float32) / 255

    train_label, train = read("train-labels-idx1-ubyte.gz", "train-images-idx3-ubyte.gz")
    test_label, test = read("t10k-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz")
    return {"train_data": train, "train_label": train_label, "test_data": test, "test_label": test_label}


def get_mnist_pkl() -> None:
    """Fetches data/mnist.pkl.gz."""
    download("http://deeplearning.net/data/mnist/mnist.pkl.gz", dirname="data")


def _unpacked(address: str, *needed: str) -> None:
    """Fetches and unpacks an archive to the folder data, unless what is needed of it is there."""
    if not all(Path("data", n).exists() for n in needed):
        with zipfile.ZipFile(download(f"{_SERVER}/mxnet/data/{address}", dirname="data")) as archive:
            archive.extractall("data")


def get_mnist_ubyte() -> None:
    """Fetches MNIST's four files to the folder data."""
    _unpacked("mnist.zip", *(f"{part}-{kind}-ubyte" for part in ("train", "t10k")
                             for kind in ("images-idx3", "labels-idx1")))  # fmt: skip


def get_cifar10() -> None:
    """Fetches CIFAR-10 as record files to the folder data/cifar."""
    _unpacked("cifar10.zip", *(f"cifar/{part}.{kind}" for part in ("train", "test") for kind in ("rec", "lst")))


def get_mnist_iterator(batch_size: int, input_shape: tuple[int, ...], num_parts: int = 1,
                       part_index: int = 0) -> tuple[Any, Any]:
    """Returns MNISTIters of training and test data.

    Args:
      batch_size: images in a batch.
      input_shape: of an image; three dimensions keep it, others make it flat.
      num_parts: into how many parts the data is split.
      part_index: which of them.
    """
    from symjax.io import MNISTIter

    get_mnist_ubyte()
    flat = len(input_shape) != 3
    train, test = (MNISTIter(image=f"data/{p}-images-idx3-ubyte", label=f"data/{p}-labels-idx1-ubyte",
                             input_shape=input_shape, batch_size=batch_size, shuffle=p == "train", flat=flat,
                             num_parts=num_parts, part_index=part_index) for p in ("train", "t10k"))  # fmt: skip
    return train, test


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Fetches and unpacks a zip file to a folder, unless it is there."""
    path = os.path.join(data_dir, data_origin_name)
    if not os.path.exists(path):
        download(url, dirname=data_dir, overwrite=False)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(data_dir)


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Fetches and unpacks a bz2 file to a folder, unless its contents are there."""
    made = Path(data_dir, data_name)
    if not made.exists():
        packed = download(url, fname=data_origin_name, dirname=data_dir, overwrite=False)
        with bz2.open(packed) as f:
            made.write_bytes(f.read())
        os.remove(packed)
