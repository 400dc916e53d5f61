"""MXNet's `.params` files as numpy arrays.

This module knows files and numpy, neither JAX nor `NDArray`; `nd.save` and `nd.load` stand on it. `_params_format`
describes the layout.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symjax._files import atomic_write, open_buffer
from symjax._params_format import (
    CSR,
    DENSE,
    DTYPE_OF_FLAG,
    FLAG_OF_DTYPE,
    INDEX_FLAG,
    LIST_MAGIC,
    MAX_NDIM,
    ROW_SPARSE,
    V2_MAGIC,
    V3_MAGIC,
    CSRRecord,
    ParamsReader,
    ParamsRecord,
    RowSparseRecord,
)
from symjax.lowering.errors import ParamsFormatError

__all__ = ["CSRRecord", "ParamsFormatError", "ParamsRecord", "RowSparseRecord", "dumps", "read_params", "write_params"]

_CPU = (1, 0)
_CHUNK = 1 << 16  # elements converted at a time where an array cannot be written as it lies in memory

Buffer = bytes | bytearray | memoryview
_Write = Callable[[Any], Any]


def read_params(
    source: str | os.PathLike[str] | Buffer, *, check_indices: bool = True
) -> tuple[list[ParamsRecord], list[str]]:
    """Reads a `.params` file of any MXNet release.

    A file is mapped, not read: the arrays are read-only views on the map, pages come from the disk when they are
    used, and dropping the last array closes the map. Views may lie at addresses that are no multiple of their item
    size (the format does not pad), which numpy allows. Nothing is ever unpickled, and memory is never set aside for a
    size that the file only claims.

    Args:
        source: A path, or the contents of a file as bytes or any other buffer (its arrays are views on the buffer).
        check_indices: Whether to check that the indices of csr and row_sparse arrays lie inside their shape. It reads
            the index blocks once, and leaves the data alone.

    Returns:
        (records, names). A record is a numpy array, a `CSRRecord`, a `RowSparseRecord`, or None for an entry that
        holds no array. `names` is empty where the file is a list, otherwise as long as `records`; MXNet keeps the
        last of two equal names.

    Raises:
        ParamsFormatError: The contents are not a `.params` file, or a broken one; says where.
        OSError: The file cannot be opened.
    """
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        return ParamsReader(open_buffer(name), name).read(check_indices)
    buffer = memoryview(source)
    if not buffer.c_contiguous:
        raise TypeError("read_params needs a contiguous buffer")
    return ParamsReader(buffer.cast("B"), f"<buffer of {buffer.nbytes} bytes>").read(check_indices)


def write_params(
    path: str | os.PathLike[str],
    records: Sequence[ParamsRecord],
    names: Sequence[str] = (),
    *,
    np_shape: bool = False,
) -> None:
    """Writes a `.params` file, byte for byte as MXNet 1.9.1 does for the same contents.

    The file takes its place only when it is complete (see `atomic_write`), so one that `read_params` has mapped may
    be written over. Arrays go to the file one after another, without a second copy in memory; an object that is not
    a numpy array but converts to one (`__array__`) is converted when its turn comes.

    Args:
        path: The file.
        records: Arrays of a dtype that MXNet has (float16/32/64, bfloat16, int8/32/64, uint8, bool), sparse records,
            or None for an entry without an array.
        names: One for each record for a file that loads as a dict, none for a list.
        np_shape: Write version 3, where an array of shape () is a scalar. MXNet 1.9.1 reads such files only under
            `np_shape` and they cannot hold sparse arrays.

    Raises:
        ParamsFormatError: A record cannot be stored: unknown dtype, contradicting sparse blocks, a scalar without
            `np_shape`, more or fewer names than records. The old file stays.
        OSError: The file cannot be written. The old file stays.
    """
    with atomic_write(path) as file:
        _encode(records, names, file.write, np_shape, os.fspath(path))


def dumps(records: Sequence[ParamsRecord], names: Sequence[str] = (), *, np_shape: bool = False) -> bytes:
    """Returns the contents that `write_params` would write."""
    stream = io.BytesIO()
    _encode(records, names, stream.write, np_shape, "<bytes>")
    return stream.getvalue()


def _encode(records: Sequence[ParamsRecord], names: Sequence[str], write: _Write, np_shape: bool, target: str) -> None:
    if names and len(names) != len(records):
        raise ParamsFormatError(f"{target}: {len(names)} names for {len(records)} arrays; give as many, or none")
    write(struct.pack("<QQQ", LIST_MAGIC, 0, len(records)))
    for number, record in enumerate(records):
        try:
            _encode_record(record, write, np_shape)
        except ParamsFormatError as error:
            name = f" ({names[number]!r})" if names else ""
            raise ParamsFormatError(f"{target}: record {number} of {len(records)}{name}: {error}") from None
    write(struct.pack("<Q", len(names)))
    for number, name in enumerate(names):
        write(_encode_name(name, f"{target}: name {number}"))


def _encode_name(name: str, where: str) -> bytes:
    if not isinstance(name, str):
        raise ParamsFormatError(f"{where} is {name!r}; expected a str")
    try:
        raw = name.encode("utf-8")
    except UnicodeEncodeError:
        raise ParamsFormatError(f"{where} is {name!r}, which has no UTF-8 form") from None
    return struct.pack("<Q", len(raw)) + raw


def _encode_record(record: Any, write: _Write, np_shape: bool) -> None:
    if isinstance(record, CSRRecord | RowSparseRecord):
        if np_shape:
            raise ParamsFormatError("a sparse array cannot be stored with np_shape (version 3); store it without")
        _encode_sparse(record, write)
    elif record is None:
        write(struct.pack("<Iii", V3_MAGIC, DENSE, -1) if np_shape else struct.pack("<Iii", V2_MAGIC, DENSE, 0))
    elif hasattr(record, "__array__"):
        _encode_dense(np.asarray(record), write, np_shape)
    else:
        raise ParamsFormatError(f"{type(record).__name__} cannot be stored; expected an array, a sparse record or None")


def _encode_dense(array: np.ndarray, write: _Write, np_shape: bool) -> None:
    flag = _flag(array.dtype)
    if array.ndim == 0 and not np_shape:
        raise ParamsFormatError(
            "an array of shape () would read back as no array; reshape it to (1,), or store it with np_shape=True"
        )
    write(struct.pack("<Ii", V3_MAGIC if np_shape else V2_MAGIC, DENSE) + _pack_shape(array.shape))
    write(struct.pack("<3i", *_CPU, flag))
    _write_data(array, flag, write)


def _encode_sparse(record: CSRRecord | RowSparseRecord, write: _Write) -> None:
    is_csr = isinstance(record, CSRRecord)
    blocks = (record.indptr, record.indices) if is_csr else (record.indices,)
    for block in blocks:
        if not np.can_cast(block.dtype, np.int64):
            raise ParamsFormatError(f"indices of dtype {block.dtype}; expected int64")
    problem = record.structure_problem() or record.index_problem()
    if problem:
        raise ParamsFormatError(problem)
    flag = _flag(record.data.dtype)
    write(struct.pack("<Ii", V2_MAGIC, CSR if is_csr else ROW_SPARSE))
    write(_pack_shape(record.data.shape) + _pack_shape(record.shape) + struct.pack("<3i", *_CPU, flag))
    for block in blocks:
        write(struct.pack("<i", INDEX_FLAG) + _pack_shape(block.shape))
    _write_data(record.data, flag, write)
    for block in blocks:
        _write_data(block, INDEX_FLAG, write)


def _pack_shape(shape: tuple[int, ...]) -> bytes:
    if len(shape) > MAX_NDIM:
        raise ParamsFormatError(f"an array of {len(shape)} dimensions; expected at most {MAX_NDIM}")
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _flag(dtype: np.dtype) -> int:
    flag = FLAG_OF_DTYPE.get(dtype.newbyteorder("<"))
    if flag is None:
        known = ", ".join(str(known) for known in FLAG_OF_DTYPE)
        raise ParamsFormatError(f"dtype {dtype} cannot be stored; MXNet has {known}. Convert it with astype")
    return flag


def _write_data(array: np.ndarray, flag: int, write: _Write) -> None:
    for chunk in _chunks(array, DTYPE_OF_FLAG[flag]):
        write(chunk.reshape(-1).view(np.uint8).data)  # bfloat16 has no buffer protocol, its bytes have


def _chunks(array: np.ndarray, dtype: np.dtype) -> Iterator[np.ndarray]:
    """Yields the elements in C order as contiguous arrays of `dtype`: the array itself where it is one."""
    if array.size == 0:
        return
    if array.flags.c_contiguous and array.dtype == dtype:
        yield array
        return
    flat = np.nditer(
        array,
        flags=["external_loop", "buffered", "zerosize_ok", "refs_ok"],
        op_dtypes=[dtype],
        casting="safe",
        order="C",
        buffersize=_CHUNK,
    )
    for chunk in flat:
        yield np.ascontiguousarray(chunk)
