"""Loading and saving NDArrays as `.params` files, and MXNet's helpers beside them."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from symjax import serialization
from symjax.context import cpu
from symjax.lowering.errors import ParamsFormatError
from symjax.ndarray.creation import array, empty, zeros
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import NDArrayBase, class_of, to_device
from symjax.util import is_np_shape

__all__ = ["array", "empty", "load", "load_frombuffer", "save", "zeros"]

_HEADER, _NO_NAMES = struct.pack("<QQQ", 0x112, 0, 1), struct.pack("<Q", 0)


def load(fname: str) -> Any:
    """Reads a `.params` file of any MXNet release.

    Returns:
      A list of arrays, or a dict by name if the file has names. An array's numbers are read from the file when they
      are first used, so that a large file costs no memory before.

    Raises:
      ParamsFormatError: the file is not one, or broken.
      OSError: it cannot be opened.
    """
    if not isinstance(fname, str):
        raise TypeError("fname required to be a string")
    return _arrays(*serialization.read_params(fname))


def load_frombuffer(buf: bytes) -> Any:
    """Reads the contents of a `.params` file from bytes; see `load`."""
    if not isinstance(buf, (bytes, bytearray, memoryview, str)):
        raise TypeError("buf required to be a string or bytes")
    return _arrays(*serialization.read_params(buf.encode("latin-1") if isinstance(buf, str) else buf))


def save(fname: str, data: Any) -> None:
    """Writes arrays to a `.params` file, which MXNet reads; the file appears only when it is complete.

    Args:
      fname: the path.
      data: an NDArray, a list of them, or a dict of them by name.

    Raises:
      TypeError: something else is in the list or dict.
      ValueError: `data` is something else.
    """
    if isinstance(data, NDArrayBase):
        data = [data]
    if not isinstance(data, (dict, list)):
        raise ValueError("data needs to either be a NDArray, dict of str, NDArray pairs or a list of NDarrays.")
    names = list(data) if isinstance(data, dict) else []
    values = list(data.values()) if isinstance(data, dict) else data
    if not all(isinstance(n, str) for n in names) or not all(isinstance(v, NDArrayBase) for v in values):
        raise TypeError("save only accept dict str->NDArray or list of NDArray")
    if any(getattr(v, "is_numpy", False) for v in values):
        raise TypeError("mx.np arrays are saved by mx.npx.save, whose files keep scalars and empty arrays")
    serialization.write_params(fname, [_record(v) for v in values], names, np_shape=is_np_shape())


def _record(a: Any) -> Any:
    convert = getattr(a, "_to_record", None)  # sparse arrays
    return convert() if convert else _Dense(a)


class _Dense:
    """Becomes a numpy array when its turn to be written comes, so that only one copy is in memory."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.a._data)


def _arrays(records: list[Any], names: list[str]) -> Any:
    made = [_array_of(r) for r in records]
    return dict(zip(names, made, strict=True)) if names else made


def _array_of(record: Any) -> Any:
    if record is None:
        return NDArray(None)
    if isinstance(record, np.ndarray):
        ctx = cpu()
        return NDArray._pending(record.shape, record.dtype, ctx, lambda: to_device(np.array(record), ctx))
    stype = "csr" if isinstance(record, serialization.CSRRecord) else "row_sparse"
    return class_of(stype)._from_record(record)


def to_raw_bytes(a: Any) -> bytes:
    """Returns one array as a record of the `.params` format without the file's frame, as MXNet pickles it."""
    return serialization.dumps([_record(a)], np_shape=is_np_shape() or a.ndim == 0)[len(_HEADER):-len(_NO_NAMES)]


def from_raw_bytes(raw: bytes) -> np.ndarray:
    """Reads what `to_raw_bytes` returned for a dense array (the type's 64 bits kept).

    Raises:
      ParamsFormatError: the bytes are not one dense record.
    """
    record = record_from_raw_bytes(raw)
    if not isinstance(record, np.ndarray):
        raise ParamsFormatError("a pickled NDArray holds a record that is not dense")
    return np.array(record)


def record_from_raw_bytes(raw: bytes) -> serialization.ParamsRecord:
    """Reads what `to_raw_bytes` returned, of any storage type."""
    records, _ = serialization.read_params(_HEADER + bytes(raw) + _NO_NAMES)
    return records[0]

