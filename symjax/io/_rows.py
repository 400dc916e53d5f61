"""Rows of data as numpy arrays, as a reader parses them: slices of them, joined, are batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from symjax.sparse import CSR


@dataclasses.dataclass(frozen=True, slots=True)
class CsrRows:
    """Rows of a sparse matrix with a number beside each.

    Attributes:
      labels: the first column of the file, (rows,).
      indptr: where each row begins in the values, int64, (rows + 1,).
      indices: columns of the values, int64.
      values: what is stored.
    """

    labels: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice) -> CsrRows:
        first, last, _ = rows.indices(len(self))
        bounds = self.indptr[first : last + 1]
        where = slice(int(bounds[0]), int(bounds[-1]))
        return CsrRows(self.labels[first:last], bounds - bounds[0], self.indices[where], self.values[where])

    @classmethod
    def join(cls, pieces: Sequence[Self]) -> CsrRows:
        """Returns the rows of several pieces, at least one."""
        if len(pieces) == 1:
            return pieces[0]
        ends = np.cumsum([p.indptr[-1] for p in pieces])
        indptr = [pieces[0].indptr, *(p.indptr[1:] + e for p, e in zip(pieces[1:], ends, strict=False))]
        return cls(np.concatenate([p.labels for p in pieces]), np.concatenate(indptr),
                   np.concatenate([p.indices for p in pieces]), np.concatenate([p.values for p in pieces]))

    def matrix(self, rows: int, columns: int) -> CSR:
        """Returns a CSR (of numpy arrays) of `rows` rows; those beyond the ones here are empty."""
        indptr = np.concatenate([self.indptr, np.full(rows - len(self), self.indptr[-1])])
        return CSR.from_host(self.values, self.indices, indptr, (rows, columns))

    def column(self, rows: int) -> np.ndarray:
        """Returns the labels; rows beyond the ones here have 0."""
        return filled(self.labels, rows)


def filled(values: np.ndarray, rows: int) -> np.ndarray:
    """Returns an array with zeros after its rows, up to `rows` rows."""
    if len(values) == rows:
        return values
    return np.concatenate([values, np.zeros((rows - len(values), *values.shape[1:]), values.dtype)])


class RowStream:
    """Rows taken one batch after another from pieces of any length.

    Args:
      open_rows: returns the pieces from the first row on.
    """

    def __init__(self, open_rows: Callable[[], Iterator[Any]]) -> None:
        self._open = open_rows
        self.restart()

    def restart(self) -> None:
        """Goes back to the first row."""
        self._pieces = self._open()
        self._rest: Any = ()
        self.position = 0

    def take(self, count: int) -> list[Any]:
        """Returns the next `count` rows in pieces, fewer at the end."""
        out = []
        while count:
            if not len(self._rest):
                self._rest = next(self._pieces, None)
                if self._rest is None:
                    self._rest = ()
                    return out
                continue
            piece, self._rest = self._rest[:count], self._rest[count:]
            count -= len(piece)
            self.position += len(piece)
            out.append(piece)
        return out
