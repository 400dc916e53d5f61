"""The libsvm text format: blocks of lines to rows of a sparse matrix.

A line is a label and the stored entries of a row, `label [qid:n] column:value column:value …`. A column alone has the
value 1, a weight after the label (`label:weight`) and a query id are passed over, and so is what follows a `#`.

Usual text is read by compiled code where a file is worth that and numba is there, else by array arithmetic over the
whole block. Where it is not in the plainest form it is brought to it and read again; what is odd even then is read line
by line, which also finds the errors.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from types import ModuleType

import numpy as np

from symjax.io._files import Block
from symjax.io._numbers import MARGIN, decimals, exact, shorten, unsigned
from symjax.io._rows import CsrRows
from symjax.lowering.errors import DataFormatError

_NEWLINE, _SPACE, _DOT, _COLON, _PLUS, _MINUS = b"\n .:+-"
_BLANKS = bytes.maketrans(b"\r\t\v\f", b"\n   ")
_DIGITS = ord("0")  # signs and the point come before the digits
_COLUMN = re.compile(rb"\+?\d+")
_BOM = b"\xef\xbb\xbf"


@dataclasses.dataclass(frozen=True, slots=True)
class LibSVMFormat:
    """How to read libsvm text.

    Attributes:
      columns: columns of the matrix; another column is an error.
      dtype: type of the values and labels.
      base: number of the first column, 0 or 1.
      compiled: whether compiled code reads usual text (`compiled_reader` must not be None).
    """

    columns: int
    dtype: np.dtype
    base: int = 0
    compiled: bool = False

    def parse(self, block: Block) -> CsrRows:
        """Returns the rows of a block.

        Raises:
          DataFormatError: a line has text that is not libsvm's, or a column beyond the matrix.
        """
        data = block.data.removeprefix(_BOM) if block.offset == 0 else block.data
        rows = self._fast(data) if self.compiled else self._plain(data)
        if rows is None:
            rows = self._plain(_plainest(data))
        return self._by_line(block) if rows is None else rows

    def _fast(self, data: bytes) -> CsrRows | None:
        """Reads text by compiled code. None if it is not usual."""
        module = compiled_reader()
        assert module is not None
        text = np.frombuffer(data, np.uint8)
        found = module.read(text, self.columns, self.base, self.dtype == np.float32)
        if found is None:
            return None
        labels, values = found.labels, found.values
        for at, start, end in found.odd.tolist():
            where = values if at >= 0 else labels
            where[at if at >= 0 else -1 - at] = exact([data[start:end]], self.dtype)[0]
        return CsrRows(_cast(labels, self.dtype, True), found.bounds, found.columns,
                       _cast(values, self.dtype, True))

    def _plain(self, data: bytes) -> CsrRows | None:
        """Reads text in the plainest form: single spaces, no blank line or comment. None if it is not."""
        if not data:
            nothing = np.empty(0, self.dtype)
            return CsrRows(nothing, np.zeros(1, np.int64), np.empty(0, np.int64), nothing)
        end = b"" if data.endswith(b"\n") else b"\n"
        text = np.frombuffer(b"".join((b"\n" * MARGIN, data, end)), np.uint8)
        body = text[MARGIN - 1 :]
        mask = body <= _SPACE
        mask |= body == _COLON
        mask |= body == _DOT
        at = np.flatnonzero(mask)
        at += MARGIN - 1
        sign = text[at]
        # a word lies between two blanks; `first` ones are labels, the others entries, whose value follows a colon
        blank = np.flatnonzero(sign <= _SPACE)
        before, after = blank[:-1], blank[1:]
        kind = sign[before]
        first = kind == _NEWLINE
        entry = ~first
        mark = before + entry
        if (entry != (kind == _SPACE)).any() or ((sign[mark] == _COLON) != entry).any():
            return None
        point = mark + 1
        if (after - point != (sign[point] == _DOT)).any():
            return None
        edge, mark_at = at[blank], at[mark]
        heads, entries = np.flatnonzero(first), np.flatnonzero(entry)
        values = self._values(text, mark_at + 1, at[point], edge[1:])
        columns = self._columns(text, edge[:-1] + 1, mark_at, entries)
        if values is None or columns is None:
            return None
        indptr = np.empty(len(heads) + 1, np.int64)
        np.subtract(heads, np.arange(len(heads)), out=indptr[:-1])
        indptr[-1] = len(entries)
        return CsrRows(values[heads], indptr, columns, values[entries])

    def _values(self, text: np.ndarray, start: np.ndarray, dot: np.ndarray, end: np.ndarray) -> np.ndarray | None:
        lead = text[start]
        signs, minus = bool((lead < _DIGITS).any()), lead == _MINUS
        skip = start + (minus | (lead == _PLUS)) if signs else start
        value, odd = decimals(text, skip, dot, end, self.dtype)
        if signs:
            np.negative(value, out=value, where=minus)
        if odd.size:
            raw = text.tobytes()
            try:
                tokens = [raw[a:b] for a, b in zip(start[odd].tolist(), end[odd].tolist(), strict=True)]
                value[odd] = exact(tokens, self.dtype)
            except ValueError:
                return None
        return _cast(value, self.dtype)

    def _columns(
        self, text: np.ndarray, start: np.ndarray, end: np.ndarray, entries: np.ndarray
    ) -> np.ndarray | None:
        """Reads the columns of the words `entries`. The other words, labels, end before they start: they are 0."""
        if np.count_nonzero(start < end) != len(entries):
            return None
        column, bad = unsigned(text, start, end)
        if bad.any() or column.max() >= self.columns + self.base:
            return None
        out = column[entries].view(np.int64)
        if self.base and out.size:
            out -= self.base
            if out.min() < 0:
                return None
        return out

    def _by_line(self, block: Block) -> CsrRows:
        labels: list[bytes] = []
        values: list[bytes] = []
        columns: list[int] = []
        bounds, at = [0], 0
        for line in block.data.splitlines(keepends=True):
            try:
                words = _words(line.removeprefix(_BOM) if block.offset + at == 0 else line)
                if words:
                    labels.append(_label(words[0]))
                    for word in words[1:]:
                        column, value = self._entry(word)
                        columns.append(column)
                        values.append(value)
                    exact([labels[-1], *values[bounds[-1] :]], np.dtype(np.float64))
                    bounds.append(len(columns))
            except ValueError as e:
                raise DataFormatError(f"{block.path}:{block.line_number(at)}: {e}") from None
            at += len(line)
        found = _cast(exact(labels + values, self.dtype), self.dtype)
        return CsrRows(found[: len(labels)], np.array(bounds, np.int64), np.array(columns, np.int64),
                       found[len(labels) :])

    def _entry(self, word: bytes) -> tuple[int, bytes]:
        name, colon, value = word.partition(b":")
        if not _COLUMN.fullmatch(name):
            raise ValueError(f"{shorten(word)} is not an entry, column:value with columns from {self.base} on")
        if len(name) > 20 or not 0 <= int(name) - self.base < self.columns:
            last = self.columns + self.base - 1
            raise ValueError(f"column {name[:24].decode()} is beyond the data_shape or label_shape given, "
                             f"({self.columns},): columns are {self.base} … {last}")
        if colon and not value:
            raise ValueError(f"column {name.decode()} has a colon and no value after it")
        return int(name) - self.base, value or b"1"


@functools.cache
def compiled_reader() -> ModuleType | None:
    """Returns the module with the compiled reader, or None without numba."""
    try:
        return importlib.import_module("symjax.io._libsvm_compiled")
    except ImportError:
        return None


def _cast(value: np.ndarray, dtype: np.dtype, copy: bool = False) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return value.astype(dtype, copy=copy)


def _plainest(data: bytes) -> bytes:
    """Brings text to the plainest form, if its lines are well-formed."""
    data = data.translate(_BLANKS)
    if b"#" in data:
        data = re.sub(rb"#[^\n]*", b"", data)
    for many, one in ((b"  ", b" "), (b" \n", b"\n"), (b"\n ", b"\n"), (b"\n\n", b"\n")):
        while many in data:
            data = data.replace(many, one)
    data = data.lstrip(b" \n").rstrip(b" ")
    if b" :" in data or b": " in data:
        data = re.sub(rb" ?: ?", b":", data)
    if b"qid:" in data:
        data = re.sub(rb"(?m)^([^ \n]+) qid:\d+(?![^ \n])", rb"\1", data)
    data = re.sub(rb"(?m)^([^ :\n]+):[\d.][\d.eE+-]*(?![^ \n])", rb"\1", data)
    return re.sub(rb"(?<= )(\d+)(?![^ \n])", rb"\1:1", data)


def _words(line: bytes) -> list[bytes]:
    words = re.sub(rb"\s*:\s*", b":", line.partition(b"#")[0]).split()
    return words[:1] + words[2:] if len(words) > 1 and re.fullmatch(rb"qid:\d+", words[1]) else words


def _label(word: bytes) -> bytes:
    label, colon, weight = word.partition(b":")
    if b"," in label:
        raise ValueError(f"{shorten(word)}: one number is the label of a line; several are read from a second file, "
                         f"label_libsvm")
    if colon:
        exact([weight], np.dtype(np.float64))
    return label
