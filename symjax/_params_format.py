"""Layout of MXNet's `.params` files: constants, records and the reader.

All numbers are little endian.

    file        u64 0x112, u64 reserved, u64 n, n records, u64 m (0 or n), m names (u64 length, UTF-8 bytes)
    dense V2    u32 magic, i32 storage type 0, shape, device, i32 dtype flag, data
    sparse V2   u32 magic, i32 storage type, shape of the data block, shape, device, i32 dtype flag,
                (i32 dtype flag, shape) of each index block, data, index blocks
    dense V1    u32 magic, shape, device, i32 dtype flag, data
    dense V0    u32 ndim, ndim x u32, device, i32 dtype flag, data
    shape       i32 ndim, ndim x i64
    device      i32 type, i32 number (ignored: arrays are placed where the reader wants them)

V0 was written before MXNet 0.11, V1 before 1.0, V2 since, V3 (like V2) under numpy's shape semantics. Nothing in a
file is trusted: a size is compared with the bytes that are there before anything is made of it.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import ml_dtypes
import numpy as np

from symjax._files import describe_foreign
from symjax.lowering.errors import ParamsFormatError

LIST_MAGIC = 0x112
V1_MAGIC = 0xF993FAC8
V2_MAGIC = 0xF993FAC9
V3_MAGIC = 0xF993FACA

DENSE, ROW_SPARSE, CSR = 0, 1, 2
_STORAGE_NAMES = {DENSE: "dense", ROW_SPARSE: "row_sparse", CSR: "csr"}

MAX_NDIM = 32
_MAX_BYTES = 2**63 - 1
_CHUNK = 1 << 20  # elements looked at in one go, so that checking needs no memory to speak of

# mshadow's type numbers, which also stand in the attribute `__dtype__`; MXNet 1.9.1 knows no others
DTYPE_OF_FLAG: dict[int, np.dtype] = {
    0: np.dtype("<f4"),
    1: np.dtype("<f8"),
    2: np.dtype("<f2"),
    3: np.dtype("u1"),
    4: np.dtype("<i4"),
    5: np.dtype("i1"),
    6: np.dtype("<i8"),
    7: np.dtype("?"),
    12: np.dtype(ml_dtypes.bfloat16),
}
FLAG_OF_DTYPE: dict[np.dtype, int] = {dtype: flag for flag, dtype in DTYPE_OF_FLAG.items()}
INDEX_FLAG = 6  # int64
_INDEX_FLAGS = (4, 6)


@dataclass(frozen=True, eq=False, slots=True)
class CSRRecord:
    """A compressed-sparse-row matrix as stored.

    Attributes:
        data: Values, (nnz,).
        indptr: Where each row starts in `data`, (rows + 1,) int64. Empty, with nnz 0, for an array that MXNet saved
            before it was ever filled: all rows are empty then.
        indices: Column of each value, (nnz,) int64.
        shape: (rows, columns).
    """

    data: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    shape: tuple[int, ...]

    def structure_problem(self) -> str | None:
        """Says how the shapes of the blocks contradict each other, or None."""
        if len(self.shape) != 2:
            return f"csr array of shape {self.shape}; csr arrays have two dimensions"
        if self.data.ndim != 1 or self.indices.shape != self.data.shape:
            return f"csr values of shape {self.data.shape}, column indices {self.indices.shape}; both must be (nnz,)"
        never_filled = self.indptr.shape == (0,) and self.data.size == 0
        if self.indptr.shape != (self.shape[0] + 1,) and not never_filled:
            return f"csr indptr of shape {self.indptr.shape} for {self.shape[0]} rows; expected ({self.shape[0] + 1},)"
        return None

    def index_problem(self) -> str | None:
        """Says which index lies outside the array, or None. Reads `indptr` and `indices` once."""
        if self.indptr.size:
            if self.indptr[0] != 0 or self.indptr[-1] != self.data.size:
                ends = (int(self.indptr[0]), int(self.indptr[-1]))
                return f"csr indptr runs from {ends[0]} to {ends[1]}; expected from 0 to nnz = {self.data.size}"
            for start in range(0, self.indptr.size, _CHUNK):
                part = self.indptr[start : start + _CHUNK + 1]
                if np.any(part[1:] < part[:-1]):
                    return "csr indptr decreases; each row must start where the one before it ends, or later"
        return _range_problem(self.indices, self.shape[1], "csr column index")


@dataclass(frozen=True, eq=False, slots=True)
class RowSparseRecord:
    """An array of which only some rows are stored.

    Attributes:
        data: The stored rows, (number of rows stored, *shape[1:]).
        indices: Number of each stored row, int64.
        shape: Shape of the whole array.
    """

    data: np.ndarray
    indices: np.ndarray
    shape: tuple[int, ...]

    def structure_problem(self) -> str | None:
        """Says how the shapes of the blocks contradict each other, or None."""
        if not self.shape:
            return "row_sparse array of shape (); it needs at least one dimension"
        if self.data.ndim != len(self.shape) or self.data.shape[1:] != self.shape[1:]:
            return f"row_sparse rows of shape {self.data.shape}; expected (rows stored, *{self.shape[1:]})"
        if self.indices.shape != self.data.shape[:1]:
            return f"row_sparse indices of shape {self.indices.shape} for {self.data.shape[0]} stored rows"
        return None

    def index_problem(self) -> str | None:
        """Says which index lies outside the array, or None. Reads `indices` once."""
        return _range_problem(self.indices, self.shape[0], "row_sparse row index")


ParamsRecord: TypeAlias = np.ndarray | CSRRecord | RowSparseRecord | None


def _range_problem(indices: np.ndarray, upper: int, what: str) -> str | None:
    for start in range(0, indices.size, _CHUNK):
        part = indices[start : start + _CHUNK]
        low, high = int(part.min()), int(part.max())
        if low < 0 or high >= upper:
            return f"{what} {low if low < 0 else high}; expected 0 to {upper - 1}"
    return None


class ParamsReader:
    """Reads one `.params` buffer; every array it returns is a view on it.

    Args:
        buffer: The whole file.
        source: Its name, for messages.
    """

    def __init__(self, buffer: memoryview, source: str) -> None:
        self._buffer = buffer.toreadonly()
        self._size = buffer.nbytes
        self._source = source
        self._at = 0
        self._part = "header"

    def read(self, check_indices: bool) -> tuple[list[ParamsRecord], list[str]]:
        """Returns the records and their names (no names where the file is a list)."""
        count = self._header()
        records: list[ParamsRecord] = []
        for number in range(count):
            self._part = f"record {number} of {count}"
            records.append(self._record())
        names = self._names(count)
        if check_indices:
            self._check_indices(records, names)
        return records, names

    # --- the parts of a file

    def _header(self) -> int:
        if self._size == 0:
            self._fail("the file is empty (0 bytes); expected a .params file. Was the download or copy interrupted?", 0)
        head = bytes(self._buffer[:256])
        if self._size < 8 or struct.unpack_from("<Q", head)[0] != LIST_MAGIC:
            self._fail_foreign(head)
        self._unpack("<QQ", "magic and reserved field")
        (count,) = self._unpack("<Q", "number of arrays")
        # the shortest record is a V0 one without dimensions: 4 bytes
        if count > (self._size - self._at) // 4:
            self._fail(
                f"the header promises {count} arrays, but only {self._size - self._at} bytes follow; "
                "the file is truncated or corrupt",
                self._at - 8,
            )
        return count

    def _names(self, records: int) -> list[str]:
        self._part = "list of names"
        at = self._at
        (count,) = self._unpack("<Q", "number of names")
        if count not in (0, records):
            self._fail(f"{count} names for {records} arrays; expected as many, or none", at)
        names = []
        for number in range(count):
            self._part = f"name {number} of {count}"
            names.append(self._name())
        if self._at != self._size:
            self._part = "end"
            self._fail(f"{self._size - self._at} bytes follow the last name; expected the end of the file")
        return names

    def _name(self) -> str:
        (length,) = self._unpack("<Q", "length of the name")
        raw = bytes(self._take(length, "the name"))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            at = self._at - length + error.start
            self._fail(f"the name {raw[:80]!r} is not UTF-8 (byte 0x{raw[error.start]:02x})", at)

    def _record(self) -> ParamsRecord:
        at = self._at
        (magic,) = self._unpack("<I", "magic or number of dimensions")
        if magic in (V2_MAGIC, V3_MAGIC):
            return self._modern(np_shape=magic == V3_MAGIC)
        if magic == V1_MAGIC:
            shape = self._shape()
        elif magic <= MAX_NDIM:
            shape = self._unpack(f"<{magic}I", "dimensions")
        else:
            self._fail(
                f"an array starts with 0x{magic:08x}; expected a magic (0x{V1_MAGIC:08x} to 0x{V3_MAGIC:08x}) "
                f"or a number of dimensions up to {MAX_NDIM}",
                at,
            )
        return self._dense(shape) if shape else None

    def _modern(self, np_shape: bool) -> ParamsRecord:
        at = self._at
        (storage,) = self._unpack("<i", "storage type")
        if storage == DENSE:
            shape = self._shape(none_allowed=np_shape)
            # MXNet: no dimensions mean "no array", and under numpy's shape semantics a scalar (-1 means "no array")
            missing = shape is None if np_shape else not shape
            return None if missing or shape is None else self._dense(shape)
        if storage == -1:
            self._fail("storage type -1: the array was not allocated when MXNet tried to save it", at)
        if storage not in _STORAGE_NAMES:
            known = ", ".join(f"{number} {name}" for number, name in _STORAGE_NAMES.items())
            self._fail(f"storage type {storage}; expected one of {known}", at)
        return self._sparse(storage)

    def _dense(self, shape: tuple[int, ...]) -> np.ndarray:
        return self._array(self._device_and_dtype(), shape, "data")

    def _sparse(self, storage: int) -> CSRRecord | RowSparseRecord:
        at = self._at
        stored = self._shape() or ()
        shape = self._shape() or ()
        self._bytes_of(shape, np.dtype("u1"), "the shape", at)
        dtype = self._device_and_dtype()
        index_blocks = [self._index_block() for _ in range(2 if storage == CSR else 1)]
        if not math.prod(stored):
            # MXNet: an array saved while still being computed has 0 here; the shape of the indices is right
            stored = index_blocks[-1][1] + (shape[1:] if storage == ROW_SPARSE else ())
        data = self._array(dtype, stored, f"{_STORAGE_NAMES[storage]} data")
        indices = [self._array(block_dtype, block, "indices") for block_dtype, block in index_blocks]
        if storage == CSR:
            record = CSRRecord(data, indices[0], indices[1], shape)
        else:
            record = RowSparseRecord(data, indices[0], shape)
        problem = record.structure_problem()
        if problem:
            self._fail(problem, at)
        return record

    def _index_block(self) -> tuple[np.dtype, tuple[int, ...]]:
        at = self._at
        (flag,) = self._unpack("<i", "dtype of the indices")
        if flag not in _INDEX_FLAGS:
            self._fail(f"dtype flag {flag} for indices; expected {INDEX_FLAG} (int64)", at)
        return DTYPE_OF_FLAG[flag], self._shape() or ()

    def _device_and_dtype(self) -> np.dtype:
        self._unpack("<2i", "device")
        at = self._at
        (flag,) = self._unpack("<i", "dtype flag")
        if flag not in DTYPE_OF_FLAG:
            known = ", ".join(f"{number} {dtype}" for number, dtype in DTYPE_OF_FLAG.items())
            self._fail(f"dtype flag {flag}; expected one of {known}", at)
        return DTYPE_OF_FLAG[flag]

    def _shape(self, none_allowed: bool = False) -> tuple[int, ...] | None:
        at = self._at
        (ndim,) = self._unpack("<i", "number of dimensions")
        if ndim == -1 and none_allowed:
            return None
        if not 0 <= ndim <= MAX_NDIM:
            self._fail(f"{ndim} dimensions; expected 0 to {MAX_NDIM}", at)
        shape = self._unpack(f"<{ndim}q", "dimensions")
        if any(size < 0 for size in shape):
            self._fail(f"shape {shape} has a negative dimension", at)
        return shape

    def _check_indices(self, records: list[ParamsRecord], names: list[str]) -> None:
        for number, record in enumerate(records):
            if isinstance(record, CSRRecord | RowSparseRecord):
                problem = record.index_problem()
                if problem:
                    name = f" ({names[number]!r})" if names else ""
                    raise ParamsFormatError(f"{self._source}: record {number} of {len(records)}{name}: {problem}")

    # --- bytes

    def _unpack(self, layout: str, what: str) -> tuple[int, ...]:
        return struct.unpack(layout, self._take(struct.calcsize(layout), what))

    def _take(self, length: int, what: str) -> memoryview:
        left = self._size - self._at
        if length > left:
            self._fail(f"{what}: {length} bytes expected, {left} left; the file is truncated or corrupt")
        self._at += length
        return self._buffer[self._at - length : self._at]

    def _array(self, dtype: np.dtype, shape: tuple[int, ...], what: str) -> np.ndarray:
        length = self._bytes_of(shape, dtype, what, self._at)
        self._take(length, f"{what} of shape {shape}, {dtype}")
        if not length:
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, self._buffer, self._at - length)

    def _bytes_of(self, shape: tuple[int, ...], dtype: np.dtype, what: str, at: int) -> int:
        # numpy multiplies the dimensions other than 0 even where one of them is 0
        if math.prod(max(size, 1) for size in shape) * dtype.itemsize > _MAX_BYTES:
            self._fail(f"{what}: shape {shape} has more elements than any memory; the file is corrupt", at)
        return math.prod(shape) * dtype.itemsize

    # --- messages

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        raise ParamsFormatError(f"{self._source}: {self._part}, byte {self._at if at is None else at}: {message}")

    def _fail_foreign(self, head: bytes) -> NoReturn:
        known = describe_foreign(head, self._size)
        if known:
            self._fail(f"this is {known[0]}; expected a .params file of MXNet. {known[1][0].upper()}{known[1][1:]}.", 0)
        start = head[:8]
        if self._size >= 4 and struct.unpack_from("<I", head)[0] in (V1_MAGIC, V2_MAGIC, V3_MAGIC):
            self._fail(
                "this is one bare array; expected the magic 0x112 of a .params file, which is a list of arrays", 0
            )
        if start == struct.pack(">Q", LIST_MAGIC):
            self._fail("this is a big-endian .params file; expected little endian", 0)
        self._fail(f"the file starts with {start.hex(' ')}; expected the magic 0x112, 12 01 00 00 00 00 00 00", 0)
