"""The CSR container: a sparse matrix whose rows lie one after another."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from symjax.lowering.errors import ShapeError
from symjax.sparse.buckets import bucket, index_dtype, padded
from symjax.sparse.container import Container
from symjax.sparse.unique import RowIndex, SortedEntries, index_ids, index_on_host, is_crowded

_WORTH_PLACING = 1 << 16  # entries
_WORTH_KNOWING = 1 << 12  # entries, from which matrices whose rows hold equally many get code of their own


class HostCSR(NamedTuple):
    """The stored entries of a CSR as numpy arrays, without padding: data (nnz,), int64 indices and indptr."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class CSR(Container):
    """A matrix in compressed sparse row form, a pytree.

    It has room for `capacity` entries, of which the first `nnz` count; what is left is padding, told by an index of
    `shape[1]` and a row of `shape[0]`. The capacity is static and comes from a ladder (`buckets.bucket`), the number of
    entries is not: matrices of one shape and capacity share compiled code.

    Attributes:
      data: stored values, (capacity,).
      indices: their columns, (capacity,), ascending in each row; int32 where they fit.
      indptr: where each row begins and ends in them, (shape[0] + 1,), of the type of `indices`.
      rows: the row of each stored value, (capacity,), so that no rule need derive it from `indptr`.
      shape: the shape of the matrix.
      columns: the distinct columns and where each stored entry's is among them, if somebody has worked them out
        (`with_columns`); what goes by columns (products with the transposed matrix, lookups of rows) is faster with it.
      width: how many entries each row holds, if all hold equally many and those are not few: sums by row are faster
        then. Static: logs of as many features in each event have it in every batch, others in none.
    """

    data: Any
    indices: Any
    indptr: Any
    rows: Any
    shape: tuple[int, int] = dataclasses.field(metadata={"static": True})
    columns: RowIndex | None = None
    width: int | None = dataclasses.field(default=None, metadata={"static": True})

    stype: ClassVar[str] = "csr"

    @property
    def nnz(self) -> Any:
        """The number of stored entries, a scalar array."""
        return self.indptr[-1]

    @property
    def valid(self) -> Any:
        """Which of the `capacity` entries are stored ones, a boolean array."""
        return self.rows < self.shape[0]

    def with_data(self, data: Any) -> CSR:
        """Returns a matrix with the same pattern and other values."""
        return dataclasses.replace(self, data=data)

    def with_columns(self) -> CSR:
        """Returns the matrix with `columns`, worked out on the host. Not for traced arrays.

        Small ones stay numpy arrays, which a single compiled call takes for less than placing them first would cost.
        """
        if self.columns is not None:
            return self
        columns = index_on_host(np.asarray(self.indices), self.shape[1])
        if is_crowded(self.capacity, self.shape[1]) and self.shape[0]:
            columns = dataclasses.replace(columns, by_column=self._sorted_entries(columns))
        found = dataclasses.replace(self, columns=columns)
        return found.with_columns_placed() if self.capacity >= _WORTH_PLACING else found

    def with_columns_placed(self) -> CSR:
        """Returns the matrix, which has `columns`, with them on its device, for several calls."""
        if self.columns is None or isinstance(self.columns.inverse, jax.Array):
            return self
        return dataclasses.replace(self, columns=jax.device_put(self.columns, next(iter(self.devices()))))

    def _sorted_entries(self, columns: RowIndex) -> SortedEntries:
        import scipy.sparse  # half a second, for those who need it

        data, indices, indptr = self.host()
        numbered = scipy.sparse.csr_matrix((np.arange(len(data), dtype=np.int32), indices, indptr), self.shape)
        ends = numbered.tocsc(copy=True)
        counts = np.diff(ends.indptr)
        bounds = np.zeros(len(columns.unique) + 1, np.int32)
        found = counts[counts > 0]
        np.cumsum(found, out=bounds[1 : len(found) + 1])
        bounds[len(found) + 1 :] = len(data)
        return SortedEntries(padded(ends.data, self.capacity, 0), padded(ends.indices, self.capacity, 0), bounds)

    def transposed(self) -> CSR | None:
        """Returns the rows of the transposed matrix that hold something, those of `columns.unique`; None without them.

        Its shape is (capacity of `columns.unique`, shape[0]).
        """
        columns = self.columns
        if columns is None or columns.by_column is None:
            return None
        entries, room = columns.by_column, columns.unique.shape[0]
        rows = jnp.where(jnp.arange(self.capacity) < self.nnz, jnp.asarray(columns.inverse)[entries.order], room)
        return CSR(jnp.asarray(self.data)[entries.order], entries.rows, entries.indptr, rows, (room, self.shape[0]))

    def column_index(self) -> RowIndex:
        """Returns `columns`, worked out in the compiled function if need be."""
        return index_ids(self.indices, self.shape[1]) if self.columns is None else self.columns

    def todense(self) -> Any:
        """Returns the matrix as a dense array. Entries stored twice add up."""
        return jnp.zeros(self.shape, self.dtype).at[self.rows, self.indices].add(self.data, mode="drop")

    def host(self) -> HostCSR:
        """Copies the stored entries to the host."""
        indptr = np.asarray(self.indptr).astype(np.int64)
        n = int(indptr[-1])
        return HostCSR(np.asarray(self.data)[:n].copy(), np.asarray(self.indices)[:n].astype(np.int64), indptr)

    @classmethod
    def from_host(
        cls, data: Any, indices: Any, indptr: Any, shape: tuple[int, int], capacity: int | None = None
    ) -> CSR:
        """Returns a CSR of numpy arrays, padded; `jax.device_put` places it.

        Args:
          data: stored values, (nnz,), of any dtype.
          indices: their columns, (nnz,).
          indptr: row boundaries, (shape[0] + 1,).
          shape: the shape.
          capacity: room for entries, at least nnz; by default the bucket of nnz.

        Raises:
          ShapeError: the lengths do not fit each other or the shape.
        """
        shape = (int(shape[0]), int(shape[1]))
        data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
        if indptr.shape != (shape[0] + 1,):
            raise ShapeError(f"csr: indptr must have shape ({shape[0] + 1},) for {shape[0]} rows, got {indptr.shape}")
        if data.ndim != 1 or indices.shape != data.shape:
            raise ShapeError(f"csr: data and indices must be vectors of one length, got {data.shape} and "
                             f"{indices.shape}")
        n = int(indptr[-1])
        counts = np.diff(indptr)
        if indptr[0] != 0 or n > len(data) or (counts < 0).any():
            raise ShapeError(f"csr: indptr must rise from 0 to at most {len(data)}, the number of values given")
        room = bucket(n) if capacity is None else max(capacity, n)
        kind = index_dtype(max(*shape, room))
        rows = np.repeat(np.arange(shape[0], dtype=kind), counts)
        width = int(counts[0]) if n >= _WORTH_KNOWING and (counts == counts[0]).all() else None
        return cls(padded(data[:n], room, 0), padded(indices[:n].astype(kind), room, shape[1]), indptr.astype(kind),
                   padded(rows, room, shape[0]), shape, width=width)

    @classmethod
    def empty(cls, shape: tuple[int, int], dtype: Any) -> CSR:
        """Returns a matrix without stored entries, of numpy arrays."""
        return cls.from_host(np.empty(0, dtype), np.empty(0, np.int64), np.zeros(shape[0] + 1, np.int64), shape)


def csr_from_rows(data: Any, rows: Any, indices: Any, shape: tuple[int, int]) -> CSR:
    """Returns the CSR of entries that are sorted by row, padding (row `shape[0]`) last. Works on traced arrays."""
    kind = index_dtype(max(*shape, data.shape[0]))
    bounds = jnp.arange(shape[0] + 1, dtype=rows.dtype)
    indptr = jnp.searchsorted(rows, bounds, side="left").astype(kind)
    return CSR(data, indices.astype(kind), indptr, rows.astype(kind), shape)


def csr_from_dense(x: Any, capacity: int | None = None) -> CSR:
    """Returns the elements of a dense matrix that are not zero. Works on traced arrays.

    Args:
      x: the matrix, (M, N).
      capacity: room for entries, M * N by default, since how many there are is not known while tracing.
    """
    size = x.shape[0] * x.shape[1]
    room = max(1, size if capacity is None else min(capacity, size))
    rows, cols = jnp.nonzero(x, size=room, fill_value=(x.shape[0], x.shape[1]))
    data = x.at[rows, cols].get(mode="fill", fill_value=0) if size else jnp.zeros((room,), x.dtype)
    return csr_from_rows(data, rows, cols, (x.shape[0], x.shape[1]))
