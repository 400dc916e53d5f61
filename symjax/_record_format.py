"""The record file format (dmlc's RecordIO): finding, reading and writing records.

A record is one or more parts, each `magic, kind and length, data, zeros up to 4 bytes`. There are several where the
data itself holds the magic number at a multiple of 4 bytes: it is left out there and stands between two parts. The kind
says which part it is: 0 the only one, 1 the first, 2 one in the middle, 3 the last.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from symjax._files import explained
from symjax.lowering.errors import ArgumentError, DataFormatError

MAGIC = struct.pack("<I", 0xCED7230A)
MAX_PART = (1 << 29) - 1
"""Bytes of data that a part can hold."""
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)
_HEADER = struct.Struct("<4sI")


def _padded(length: int) -> int:
    return (length + 3) & ~3


class RecordFile:
    """A record file that is open for reading. Safe to use from several threads, except `read` and `seek`.

    Args:
      path: the file; `file://` before it is dropped.

    Attributes:
      size: bytes of the file when it was opened; nothing behind them is read.
      position: where `read` goes on.

    Raises:
      MXNetError: it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with explained(path, "open"):
            self._file: BinaryIO = open(local_path(path), "rb", buffering=0)  # noqa: SIM115  # closed by close()
            self.size = os.fstat(self._file.fileno()).st_size
        weakref.finalize(self, self._file.close)
        self.position = 0

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def read(self) -> bytes | None:
        """Returns the record at `position` and goes on to the next; None at the end.

        Raises:
          DataFormatError: there is no whole record at this place.
        """
        if self.position >= self.size:
            return None
        record, self.position = self.read_at(self.position)
        return record

    def read_at(self, offset: int) -> tuple[bytes, int]:
        """Returns the record at an offset, and the offset behind it."""
        parts: list[bytes] = []
        start = offset
        while True:
            kind, length = self._header(offset)
            self._check_kind(kind, first=not parts, offset=offset)
            end = offset + 8 + length
            parts.append(self._bytes(offset + 8, length))
            offset = offset + 8 + _padded(length)
            if offset > self.size:
                raise self._error(start, f"the file ends within a record: {offset - end} bytes of padding are missing")
            if kind in (_WHOLE, _LAST):
                return (parts[0] if len(parts) == 1 else MAGIC.join(parts)), offset

    def offsets(self, start: int = 0, end: int | None = None) -> Iterator[int]:
        """Yields where records begin, from `start` on (a record's beginning), before `end`."""
        end = self.size if end is None else end
        while start < min(end, self.size):
            yield start
            start = self._behind(start)

    def _behind(self, offset: int) -> int:
        first = True
        while True:
            kind, length = self._header(offset)
            self._check_kind(kind, first=first, offset=offset)
            offset += 8 + _padded(length)
            first = False
            if kind in (_WHOLE, _LAST):
                return offset

    def next_record(self, offset: int) -> int:
        """Returns where the first record at or behind an offset (a multiple of 4) begins; the size if there is none."""
        step = 1 << 16
        while offset < self.size:
            block = self._at(offset, step + 4)
            words = np.frombuffer(block[:len(block) & ~3], "<u4")
            for i in np.flatnonzero(words[:-1] == 0xCED7230A):
                if words[i + 1] >> 29 in (_WHOLE, _FIRST):
                    return offset + 4 * int(i)
            offset += step
        return self.size

    def partition(self, index: int, count: int) -> tuple[int, int]:
        """Returns where part `index` of `count` parts of about the same number of bytes begins and ends."""
        step = _padded(-(-self.size // count))
        return self.next_record(min(step * index, self.size)), self.next_record(min(step * (index + 1), self.size))

    def _header(self, offset: int) -> tuple[int, int]:
        raw = self._at(offset, 8)
        if len(raw) < 8:
            raise self._error(offset, f"the file ends within a record's header ({len(raw)} of 8 bytes)")
        magic, word = _HEADER.unpack(raw)
        if magic != MAGIC:
            raise self._error(offset, f"a record begins with {MAGIC.hex()}, found {magic.hex()}")
        kind, length = word >> 29, word & MAX_PART
        if length > self.size - offset - 8:
            raise self._error(offset, f"a record of {length} bytes, but the file ends after {self.size - offset - 8}")
        return kind, length

    def _check_kind(self, kind: int, first: bool, offset: int) -> None:
        if kind not in ((_WHOLE, _FIRST) if first else (_MIDDLE, _LAST)):
            what = "the beginning of a record" if first else "the continuation of a record"
            raise self._error(offset, f"expected {what}, found a part of kind {kind}")

    def _bytes(self, offset: int, length: int) -> bytes:
        raw = self._at(offset, length)
        if len(raw) < length:
            raise self._error(offset, f"the file has become shorter: {len(raw)} of {length} bytes")
        return raw

    def _at(self, offset: int, length: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), length, offset)
        self._file.seek(offset)  # Windows; there one thread must read
        return self._file.read(length)

    def _error(self, offset: int, text: str) -> DataFormatError:
        return DataFormatError(f"{self.path}: not a valid record file: at byte {offset}: {text}")


def encode(data: bytes | bytearray | memoryview) -> list[bytes | memoryview]:
    """Returns the pieces of a record of this data, to be written one after another."""
    view = memoryview(data).cast("B")
    cuts = _magics(view)
    starts, ends = [0, *(c + 4 for c in cuts)], [*cuts, len(view)]
    pieces: list[bytes | memoryview] = []
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if end - start > MAX_PART:
            raise ArgumentError(f"a record of {len(view)} bytes is too long: at most {MAX_PART}")
        kind = _WHOLE if not cuts else _FIRST if i == 0 else _LAST if i == len(cuts) else _MIDDLE
        pieces += [_HEADER.pack(MAGIC, kind << 29 | end - start), view[start:end]]
    pieces.append(bytes(-len(view) % 4))
    return pieces


def _magics(view: memoryview) -> list[int]:
    """Where the magic number lies at a multiple of 4 bytes."""
    words = np.frombuffer(view[:len(view) & ~3], "<u4")
    return [4 * int(i) for i in np.flatnonzero(words == 0xCED7230A)]


def local_path(uri: str) -> str:
    """The path of a `file://` address, or of a plain path.

    Raises:
      ArgumentError: an address of another kind.
    """
    scheme, colon, path = uri.partition("://")
    if not colon:
        return uri
    if scheme != "file":
        raise ArgumentError(f"{uri!r}: symjax reads and writes local files only; fetch the file, or mount its storage")
    return path


def read_index(path: str, key_type: Callable[[str], Any] = int) -> list[tuple[Any, int]]:
    """Reads an index file: lines `key, tab, offset`.

    Raises:
      MXNetError: it cannot be read, or a line is not of this form; the message names the file and the line.
    """
    found = []
    with explained(path, "open"), open(local_path(path), encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            key, _, offset = line.strip().partition("\t")
            try:
                found.append((key_type(key), int(offset.split("\t")[0])))
            except ValueError:
                raise DataFormatError(f"{path}: line {number}: expected a key, a tab and an offset, found "
                                      f"{line[:60]!r}") from None
    return found
