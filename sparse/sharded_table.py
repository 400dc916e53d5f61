"""Tables whose rows are laid over the devices of a mesh, and reading rows of them: only rows asked for are moved."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from symjax.lowering.errors import ArgumentError, ShapeError, StorageError
from symjax.lowering.ops._axes import as_index
from symjax.sparse.buckets import index_dtype
from symjax.sparse.row_sparse import RowSparse
from symjax.sparse.unique import index_ids, index_on_host

Axes = str | Sequence[str] | None
"""One axis of a mesh by name, or several: the first varies slowest."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class ShardedTable:
    """A (V, …) array of which every device of a mesh holds a block of rows, a pytree; `shard_table` makes one.

    All rows are stored. It stands for a row_sparse array where rows are looked up: in `symjax.lower` functions
    (Embedding, take, dot with a csr matrix) and in `lookup`.

    Attributes:
      data: the rows, (V rounded up to a multiple of the number of blocks, …); the rows from V on are zero.
      shape: the shape (V, …).
      mesh: the mesh.
      axes: the mesh axes that the rows are divided over. Over other axes they are repeated.
      batch: the mesh axes that the first axis of the ids given to `lookup` is divided over; none: every device has all
        ids. They may be among `axes`.
    """

    data: Any
    shape: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    mesh: Mesh = dataclasses.field(metadata={"static": True})
    axes: tuple[str, ...] = dataclasses.field(metadata={"static": True})
    batch: tuple[str, ...] = dataclasses.field(default=(), metadata={"static": True})

    stype: ClassVar[str] = "row_sparse"

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def spec(self) -> PartitionSpec:
        """How `data` is divided."""
        return PartitionSpec(self.axes)

    @property
    def num_blocks(self) -> int:
        return _count(self.mesh, self.axes)

    def with_data(self, data: Any) -> ShardedTable:
        """Returns a table laid out as this one with other rows, (padded V, …)."""
        return dataclasses.replace(self, data=data, shape=(self.shape[0], *data.shape[1:]))

    def with_batch(self, batch: Axes) -> ShardedTable:
        """Returns this table for ids whose first axis is divided over the mesh axes `batch`."""
        return dataclasses.replace(self, batch=_axes(self.mesh, batch, ()))

    def lookup(self, ids: Any) -> Any:
        """See `lookup`."""
        return lookup(self, ids)

    def todense(self) -> Any:
        """Returns the table as one dense array on the host's first device: moves and copies all of it.

        Raises:
          StorageError: while tracing, where this would move the table in every step.
        """
        if isinstance(self.data, Tracer):
            raise StorageError(f"a sharded table of shape {self.shape} is used otherwise than by looking rows up, "
                               f"which would bring all of it to one device. Pull the rows that the batch touches "
                               f"first, sharding.pull(table, ids), and give the function those")
        with jax.enable_x64(True):
            return jnp.asarray(np.asarray(self.data)[: self.shape[0]])


def _axes(mesh: Mesh, axes: Axes, default: Sequence[str]) -> tuple[str, ...]:
    names = tuple(default) if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if name not in mesh.axis_names:
            raise ArgumentError(f"{name!r} is no axis of the mesh; its axes are {', '.join(map(str, mesh.axis_names))}")
    return names


def _count(mesh: Mesh, axes: Sequence[str]) -> int:
    return math.prod(mesh.shape[a] for a in axes)


Rows = Callable[[int, int], Any]


def shard_table(rows: Any, mesh: Mesh, axes: Axes = None, *, batch: Axes = None,
                shape: tuple[int, ...] | None = None) -> ShardedTable:
    """Lays a table over a mesh, its rows divided into blocks of equal size.

    Args:
      rows: the table, (V, …): an array (numpy, JAX, NDArray), a RowSparse that stores all rows, or a function
        `(start, stop) -> rows start to stop, (stop - start, …)` for a table that no single memory holds; it is called
        once for every block. V need not be a multiple of the number of blocks: rows of zeros are added.
      mesh: the mesh.
      axes: the mesh axes that the rows are divided over; all by default.
      batch: see `ShardedTable`.
      shape: (V, …), for a function.

    Raises:
      StorageError: a RowSparse that does not store all rows.
      ShapeError: a table without axes, or rows of another shape.
      ArgumentError: an axis that the mesh lacks.
    """
    names = _axes(mesh, axes, mesh.axis_names)
    value: Any = getattr(rows, "_data", rows)
    if isinstance(value, RowSparse):
        if not value.full:
            raise StorageError(f"a row_sparse array of shape {value.shape} that stores some rows only cannot be laid "
                               f"over devices; give rows.todense(), or a function of (start, stop)")
        value = value.data
    made = callable(value)
    whole = tuple(int(d) for d in ((shape or ()) if made else np.shape(value)))
    if not whole:
        raise ShapeError("a table needs at least one axis, and a function of (start, stop) needs shape=")
    blocks = _count(mesh, names)
    block = max(1, -(-whole[0] // blocks))
    read: Rows = value if made else _reader(value)
    sharding = NamedSharding(mesh, PartitionSpec(names))

    def place(index: Any) -> np.ndarray:
        return _block(read, whole, index[0].start or 0, block)

    with jax.enable_x64(True):
        data = jax.make_array_from_callback((block * blocks, *whole[1:]), sharding, place)
    return ShardedTable(data, whole, mesh, names, _axes(mesh, batch, ()))


def _reader(value: Any) -> Rows:
    host = np.asarray(value)
    return lambda start, stop: host[start:stop]


def _block(read: Rows, shape: tuple[int, ...], start: int, size: int) -> np.ndarray:
    """Rows start to start + size, of which those from shape[0] on are zero."""
    first, stop = min(start, shape[0]), min(start + size, shape[0])
    have = np.asarray(read(first, stop))
    if have.shape != (stop - first, *shape[1:]):
        raise ShapeError(f"rows {first} to {stop} of a table of shape {shape}: expected {(stop - first, *shape[1:])}, "
                         f"got {have.shape}")
    if stop - first == size:
        return have
    out = np.zeros((size, *shape[1:]), have.dtype)
    out[: stop - first] = have
    return out


def zeros_like(table: ShardedTable, row_shape: Sequence[int] | None = None, dtype: Any = None) -> ShardedTable:
    """Returns a table of zeros laid out as `table`, whose rows may have another shape and dtype."""
    shape = (table.data.shape[0], *(table.shape[1:] if row_shape is None else row_shape))
    kind = np.dtype(dtype or table.dtype)
    sharding = NamedSharding(table.mesh, table.spec)
    with jax.enable_x64(True):
        made = jax.jit(lambda: jnp.zeros(shape, kind), out_shardings=sharding)()
    return table.with_data(made)


# ---- reading


def lookup(table: Any, ids: Any) -> Any:
    """Returns the rows `ids`: (*ids.shape, *row shape). Ids outside of [0, V) give zeros.

    Each device serves the ids that fall into its block and the others add zeros: without `table.batch` one psum of
    the result's size; with it, where batch and rows are divided over the same devices, the ids are gathered and the
    rows are scattered as they are summed. Every device gets the rows of its own ids.

    Inside of `sharding.value_and_grad` the gradient is a RowSparse of the rows looked up. Differentiated otherwise, a
    table is an array like any other, with a gradient of its size.

    Args:
      table: a ShardedTable.
      ids: integers (floats are cut off), at least one axis if `table.batch` is set.

    Raises:
      ShapeError: the first axis of the ids cannot be divided over `table.batch`.
    """
    if not isinstance(table, ShardedTable):
        return table.lookup(ids)
    check_batch(table, jnp.shape(ids))
    with jax.enable_x64(True):
        ids = ids if isinstance(ids, jax.Array) else _host_ids(ids, table.shape[0])
        return _lookup(table, placed(ids, table.mesh, _batch_spec(table)))


def check_batch(table: ShardedTable, shape: tuple[int, ...]) -> None:
    """Refuses ids that cannot be divided over the batch axes."""
    count = _count(table.mesh, table.batch)
    if table.batch and (not shape or shape[0] % count):
        raise ShapeError(f"ids of shape {shape} cannot be divided over {count} devices (axes {', '.join(table.batch)}) "
                         f"along their first axis; pad them with {table.shape[0]}, which reads zeros, or use "
                         f"table.with_batch(None)")


def _host_ids(ids: Any, n: int) -> np.ndarray:
    """Ids of the type that they have on the device: JAX 0.10 divides one int64 array over devices only for one of its
    two settings of 64-bit types."""
    ids = np.asarray(ids)
    return inside(np.trunc(ids), n, np).astype(index_dtype(n))


def _batch_spec(table: ShardedTable) -> PartitionSpec:
    return PartitionSpec(table.batch) if table.batch else PartitionSpec()


def placed(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    """Lays an array over a mesh. The compiler does that for traced ones, unless the mesh's axes are explicit."""
    if not isinstance(x, Tracer):
        return jax.device_put(x, NamedSharding(mesh, spec))
    explicit = all(t == AxisType.Explicit for t in mesh.axis_types)
    return jax.reshard(x, NamedSharding(mesh, spec)) if explicit else x


@jax.jit
def _lookup(table: ShardedTable, ids: Any) -> Any:
    ids = as_index(ids).astype(index_dtype(table.data.shape[0]))
    shared = tuple(a for a in table.batch if a in table.axes)
    rest = tuple(a for a in table.axes if a not in shared)

    def serve(block: Any, ids: Any) -> Any:
        own = lax.all_gather(ids, shared, tiled=True) if shared else ids
        rows = read_block(block, own, table.axes)
        if shared:
            rows = lax.psum_scatter(rows, shared, tiled=True)
        return lax.psum(rows, rest) if rest else rows

    spec = _batch_spec(table)
    return jax.shard_map(serve, mesh=table.mesh, in_specs=(table.spec, spec), out_specs=spec)(table.data, ids)


def places(ids: Any, block: Any, axes: tuple[str, ...]) -> tuple[Any, Any]:
    """Inside of shard_map: where ids are in this device's block, and whether they are in it."""
    at = ids - lax.axis_index(axes).astype(ids.dtype) * block.shape[0]
    return at, (at >= 0) & (at < block.shape[0])


def read_block(block: Any, ids: Any, axes: tuple[str, ...]) -> Any:
    """Inside of shard_map: the rows `ids` that this device holds, zeros for the others."""
    at, mine = places(ids, block, axes)
    rows = block.at[jnp.where(mine, at, 0)].get(mode="clip")
    return jnp.where(mine.reshape(*mine.shape, *([1] * (block.ndim - 1))), rows, jnp.zeros((), block.dtype))


def pull(table: ShardedTable, row_ids: Any) -> RowSparse:
    """Returns the rows `row_ids` as a RowSparse of the table's shape: what MXNet's `row_sparse_pull` gives.

    The result is on every device. It can stand for the table wherever these rows suffice: its `data` can be
    differentiated, and a cotangent of them is, by `with_data`, the row_sparse gradient that `update` takes. That also
    holds for functions of rows, such as the sum of squares of each, that a ShardedTable refuses.

    Args:
      table: the table.
      row_ids: integers of any shape, in any order, with repetitions. Ids outside of [0, V) are left out.

    Outside of compiled code the number of distinct ids is known, and rounded up to a bucket; inside, there is room for
    as many rows as there are ids.
    """
    n = table.shape[0]
    if isinstance(row_ids, Tracer):
        with jax.enable_x64(True):
            unique = index_ids(inside(as_index(row_ids), n, jnp), n).unique
    else:
        unique = index_on_host(_host_ids(row_ids, n), n).unique
    return RowSparse(lookup(table.with_batch(None), unique), unique, table.shape)


def inside(ids: Any, n: int, xp: Any) -> Any:
    """Ids with n, which stands for no row, in place of those outside of [0, n)."""
    return xp.where((ids >= 0) & (ids < n), ids, n)
