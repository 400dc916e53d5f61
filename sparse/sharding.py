"""Tables over a device mesh: rows sharded, lookups and lazy updates in which only the rows touched move.

A table too large for one device is laid over a mesh (`shard_table`), read by `lookup`, differentiated by
`value_and_grad` — the gradient is a RowSparse of the rows that were looked up — and changed by `update`. It also is a
value that functions of `symjax.lower` take in place of a row_sparse weight:

    net = mx.sym.LinearRegressionOutput(
        mx.sym.FullyConnected(
            mx.sym.Embedding(mx.sym.Variable("ids"), mx.sym.Variable("embed_weight", stype="row_sparse"),
                             input_dim=V, output_dim=D, sparse_grad=True),
            num_hidden=1, name="fc"), mx.sym.Variable("label"))
    fn = symjax.lower(net, inputs=["ids", "label"], …).fn

    table = sharding.shard_table(weights, mesh, "rows")        # (V, D), each device holds V / devices rows
    rule = sharding.adagrad(lr=0.1)
    states = sharding.init_states(table, rule)

    def loss(params, ids, label):
        (out,), _ = fn(params, {}, ids=ids)
        return jnp.mean((out - label) ** 2)

    @functools.partial(jax.jit, donate_argnums=(0, 1))          # table and states are updated in place
    def step(params, states, ids, label):
        value, grads = sharding.value_and_grad(loss)(params, ids, label)
        table, states = sharding.update(params["embed_weight"], states, grads["embed_weight"], rule)
        rest = {k: params[k] - 0.1 * grads[k] for k in params if k != "embed_weight"}
        return {"embed_weight": table, **rest}, states, value

`symjax.sparse.value_and_grad` takes such tables too: it works by parameter name, of lowered functions only, and reads
them also through functions of single rows (the squares of a factorisation machine), which `value_and_grad` here
refuses.

Other arguments that are committed to one device must be laid over the mesh first (`jax.device_put` with a
`NamedSharding`). Use a mesh of automatic axes, `jax.sharding.Mesh(devices, names)`, for functions of `symjax.lower`:
with explicit ones JAX wants the sharding of a product of divided arrays named in the function.

`pull` is MXNet's `row_sparse_pull`: distinct rows as a RowSparse, on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import get_opaque_trace_state
from jax.sharding import PartitionSpec

from symjax.lowering.errors import StorageError
from symjax.lowering.ops._axes import as_index
from symjax.lowering.ops._elementwise import wide_dtype
from symjax.sparse.buckets import index_dtype
from symjax.sparse.row_sparse import RowSparse
from symjax.sparse.sharded_table import ShardedTable, inside, lookup, placed, pull, shard_table, zeros_like
from symjax.sparse.sharded_update import Rule, adagrad, adam, ftrl, group_adagrad, init_states, sgd, update
from symjax.sparse.unique import index_ids

__all__ = [
    "Rule", "ShardedTable", "adagrad", "adam", "ftrl", "group_adagrad", "init_states", "lookup", "pull", "sgd",
    "shard_table", "update", "value_and_grad", "zeros_like",
]


class _Watched:
    """A table inside of `value_and_grad`: notes the ids that are looked up.

    In the first pass it counts the lookups; in the second it adds to the result of each the array that is
    differentiated in place of the table: zeros.
    """

    stype: ClassVar[str] = "row_sparse"

    def __init__(self, table: ShardedTable, taps: Sequence[Any] | None = None) -> None:
        self.table, self.taps = table, taps
        self.results: list[jax.ShapeDtypeStruct] = []
        self.ids: list[Any] = []
        self.scope: Any = None
        self.shape, self.dtype, self.ndim, self.mesh = table.shape, table.dtype, table.ndim, table.mesh

    def lookup(self, ids: Any) -> Any:
        if get_opaque_trace_state() != self.scope:
            raise StorageError(f"a sharded table of shape {self.shape} is looked up inside of a scan, cond, jit or "
                               f"grad inside of the differentiated function, which would keep the ids to itself; pull "
                               f"the rows before, sharding.pull(table, ids), and differentiate with respect to their "
                               f"data")
        rows = self.table.lookup(ids)
        self.results.append(jax.ShapeDtypeStruct(rows.shape, rows.dtype))
        if self.taps is None:
            return rows
        self.ids.append(lax.stop_gradient(as_index(jnp.asarray(ids))))
        return rows + self.taps[len(self.ids) - 1]

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise StorageError(f"a sharded table of shape {self.shape} has a row_sparse gradient of what is looked up in "
                           f"it; other functions of it are not supported. Pull the rows that the batch touches first, "
                           f"sharding.pull(table, ids), and differentiate with respect to their data")

    todense = with_data = astype = _refuse

    @property
    def data(self) -> Any:
        return self._refuse()


def _is_table(x: Any) -> bool:
    return isinstance(x, ShardedTable)


def value_and_grad(f: Callable[..., Any], has_aux: bool = False) -> Callable[..., Any]:
    """As `jax.value_and_grad`, for functions of sharded tables, whose gradients are row_sparse.

    The gradient of a table is a RowSparse of exactly the rows that `f` looked up, distinct and ascending (with room for
    as many as ids); ids outside of the table count for nothing. Rows of several lookups are merged. It lies on every
    device; nothing of the table's size is made.

    Args:
      f: `f(params, *args, **kwargs)` -> a scalar, or (scalar, aux) with `has_aux`. `params` is any pytree of arrays and
        tables. Tables are read by `lookup`, or by the lookups of a function of `symjax.lower`: directly, not inside of
        another jit, scan or cond. `f` is traced twice.

    Returns:
      A function of the same arguments -> (value, gradients), the gradients shaped as `params`, with a RowSparse in the
      place of each table.

    Raises (when called):
      StorageError: a table is used otherwise than by lookups, or where they cannot be watched.
    """

    def run(params: Any, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = jax.tree.flatten(params, is_leaf=_is_table)
        tables = [x for x in leaves if _is_table(x)]
        arrays = [x for x in leaves if not _is_table(x)]

        def call(watched: Sequence[_Watched], arrays: Sequence[Any]) -> Any:
            for w in watched:
                w.scope = get_opaque_trace_state()
            left, right = iter(watched), iter(arrays)
            return f(jax.tree.unflatten(tree, [next(left if _is_table(x) else right) for x in leaves]),
                     *args, **kwargs)  # fmt: skip

        first = [_Watched(t) for t in tables]
        jax.eval_shape(lambda a: call(first, a), arrays)
        taps = [[jnp.zeros(r.shape, r.dtype) for r in w.results] for w in first]

        def tapped(arrays: Sequence[Any], taps: Sequence[Sequence[Any]]) -> Any:
            watched = [_Watched(t, own) for t, own in zip(tables, taps, strict=True)]
            out = call(watched, arrays)
            value, aux = out if has_aux else (out, None)
            return value, (aux, [w.ids for w in watched])

        differentiated = jax.value_and_grad(tapped, argnums=(0, 1), has_aux=True)
        (value, (aux, ids)), (plain, found) = differentiated(arrays, taps)
        rows = iter([_row_gradient(t, i, c) for t, i, c in zip(tables, ids, found, strict=True)])
        others = iter(plain)
        grads = jax.tree.unflatten(tree, [next(rows if _is_table(x) else others) for x in leaves])
        return ((value, aux) if has_aux else value), grads

    return run


def _row_gradient(table: ShardedTable, ids: Sequence[Any], cotangents: Sequence[Any]) -> RowSparse:
    """Sums the cotangents of several lookups by row."""
    n, row = table.shape[0], table.shape[1:]
    kind = index_dtype(n)
    with jax.enable_x64(True):
        flat = [inside(_whole(table, i), n, jnp).reshape(-1).astype(kind) for i in ids]
        grads = [_whole(table, c).reshape(-1, *row) for c in cotangents]
        if not flat:
            return RowSparse(jnp.zeros((1, *row), table.dtype), jnp.full((1,), n, kind), table.shape)
        at, grad = jnp.concatenate(flat), jnp.concatenate(grads).astype(wide_dtype(table.dtype))
        index = index_ids(at, n)
        grad = jnp.where((at < n).reshape(-1, *([1] * len(row))), grad, jnp.zeros((), grad.dtype))
        data = jax.ops.segment_sum(grad, index.inverse, index.unique.shape[0])
        return RowSparse(data.astype(table.dtype), index.unique, table.shape)


def _whole(table: ShardedTable, x: Any) -> Any:
    """Brings what is divided as the batch to every device."""
    if not table.batch:
        return x
    gather = jax.shard_map(lambda part: lax.all_gather(part, table.batch, tiled=True), mesh=table.mesh,
                           in_specs=PartitionSpec(table.batch), out_specs=PartitionSpec(), check_vma=False)  # fmt: skip
    return gather(placed(x, table.mesh, PartitionSpec(table.batch)))
