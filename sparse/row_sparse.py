"""The RowSparse container: an array of which few rows are stored, the others are zero."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import read_rows
from symjax.sparse.buckets import bucket, index_dtype, padded
from symjax.sparse.container import Container


class HostRowSparse(NamedTuple):
    """The stored rows as numpy arrays, without padding: data (n, …) and int64 indices (n,)."""

    data: np.ndarray
    indices: np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class RowSparse(Container):
    """An array of which some rows (slices along the first axis) are stored, a pytree.

    It has room for `capacity` rows; padding comes last and is told by an index of `shape[0]`. The capacity is static
    and comes from a ladder (`buckets.bucket`), the number of rows is not.

    Attributes:
      data: stored rows, (capacity, *shape[1:]).
      indices: their positions along the first axis, (capacity,), ascending and distinct; int32 where they fit.
      shape: the shape of the array.
      full: every row is stored, so row i is `data[i]`: lookups need no search.
    """

    data: Any
    indices: Any
    shape: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    full: bool = dataclasses.field(default=False, metadata={"static": True})

    stype: ClassVar[str] = "row_sparse"

    @property
    def num_rows(self) -> Any:
        """The number of stored rows, a scalar array."""
        return jnp.sum(self.valid, dtype=self.indices.dtype)

    @property
    def valid(self) -> Any:
        """Which of the `capacity` rows are stored ones, a boolean array."""
        return self.indices < self.shape[0]

    def with_data(self, data: Any) -> RowSparse:
        """Returns an array with the same rows stored and other values in them (the row shape may change)."""
        return dataclasses.replace(self, data=data, shape=(self.shape[0], *data.shape[1:]))

    def todense(self) -> Any:
        """Returns the array as a dense one."""
        if self.full:
            return self.data
        return jnp.zeros(self.shape, self.dtype).at[self.indices].set(self.data, mode="drop")

    def host(self) -> HostRowSparse:
        """Copies the stored rows to the host."""
        indices = np.asarray(self.indices)
        n = int((indices < self.shape[0]).sum())
        return HostRowSparse(np.asarray(self.data)[:n].copy(), indices[:n].astype(np.int64))

    @classmethod
    def from_host(cls, data: Any, indices: Any, shape: tuple[int, ...], capacity: int | None = None) -> RowSparse:
        """Returns a RowSparse of numpy arrays, padded; `jax.device_put` places it.

        Args:
          data: stored rows, (n, *shape[1:]).
          indices: their positions, (n,).
          shape: the shape.
          capacity: room for rows, at least n; by default the bucket of n.

        Raises:
          ShapeError: the lengths do not fit each other or the shape.
        """
        shape = tuple(int(d) for d in shape)
        data, indices = np.asarray(data), np.asarray(indices)
        n = len(indices) if indices.ndim == 1 else -1
        if not shape or data.shape != (n, *shape[1:]):
            raise ShapeError(f"row_sparse: {indices.shape} row positions and rows {data.shape} do not make an array of "
                             f"shape {shape}")
        kind = index_dtype(shape[0])
        if n == shape[0] and n and np.array_equal(indices, np.arange(n)):
            return cls(data, indices.astype(kind), shape, full=True)
        room = bucket(n) if capacity is None else max(capacity, n)
        return cls(padded(data, room, 0), padded(indices.astype(kind), room, shape[0]), shape)

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: Any) -> RowSparse:
        """Returns an array without stored rows, of numpy arrays."""
        return cls.from_host(np.empty((0, *shape[1:]), dtype), np.empty(0, np.int64), shape)


def row_sparse_from_dense(x: Any, capacity: int | None = None) -> RowSparse:
    """Returns the rows of a dense array that are not all zero. Works on traced arrays.

    Args:
      x: the array, at least one axis.
      capacity: room for rows, all of them by default, since how many there are is not known while tracing.
    """
    n = x.shape[0]
    room = max(1, n if capacity is None else min(capacity, n))
    some = jnp.any((x != 0).reshape(n, -1), axis=1)
    (rows,) = jnp.nonzero(some, size=room, fill_value=n)
    data = x.at[rows].get(mode="fill", fill_value=0) if n else jnp.zeros((room, *x.shape[1:]), x.dtype)
    return RowSparse(data, rows.astype(index_dtype(n)), x.shape)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Located:
    """A RowSparse handed to one lookup, together with where that lookup's ids are among its rows."""

    table: RowSparse
    inverse: Any

    stype: ClassVar[str] = "row_sparse"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.table.shape

    @property
    def dtype(self) -> Any:
        return self.table.dtype

    @property
    def ndim(self) -> int:
        return self.table.ndim


def take_rows(table: Any, ids: Any, padded: bool = True) -> Any:
    """Returns the rows `ids` of a dense, RowSparse or located array: (*ids.shape, *row shape).

    A row that is not stored gives zeros; one that is is found by bisection, or directly where all are stored.
    Gradients add up in float32 for half precision.

    Args:
      table: the array.
      ids: row numbers, not negative.
      padded: whether ids beyond the last row (padding) must give zeros. Otherwise they may give any row, which is
        faster: for callers that leave those out.
    """
    if isinstance(table, Located):
        return read_rows(table.table.data, table.inverse, padded)
    if hasattr(table, "lookup"):  # its rows lie on several devices, see `sharding`
        return table.lookup(ids)
    if not isinstance(table, RowSparse):
        return read_rows(table, ids, padded)
    if table.full:
        return read_rows(table.data, ids, padded)
    ids = ids.astype(table.indices.dtype)
    at = _places(table.indices, ids)
    found = jnp.take(table.indices, at, mode="fill", fill_value=table.shape[0]) == ids
    # a row that is not stored reads from beyond the last, which fills with zero
    return read_rows(table.data, jnp.where(found, at, table.capacity), padded=True)


def _places(indices: Any, ids: Any) -> Any:
    """Returns where ids are among the indices of rows, int32; where an id is missing, any place.

    The rows may be in any order, as retaining them leaves them; of a row that is stored twice the last counts.
    """

    def in_order(indices: Any) -> Any:
        return jnp.maximum(jnp.searchsorted(indices, ids, side="right").astype(jnp.int32) - 1, 0)

    def in_any_order(indices: Any) -> Any:
        order = jnp.argsort(indices, stable=True).astype(jnp.int32)
        return order[in_order(indices[order])]

    ascending = jnp.all(indices[1:] >= indices[:-1])
    return lax.cond(ascending, in_order, in_any_order, indices)
