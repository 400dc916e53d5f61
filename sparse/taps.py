"""Row_sparse gradients for functions of `symjax.lower`: `value_and_grad`.

Inside of `value_and_grad` a table is a `WatchedTable`. A lowered function that gets one finds the rows that its graph
looks up (`lowering.row_gradients`), reads them from the table as a constant, and adds an array of zeros, the tap, with
respect to which JAX differentiates: the tap's cotangent is the gradient of these rows, and nothing of the table's size
is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from symjax.lowering.errors import ArgumentError, StorageError, did_you_mean
from symjax.lowering.graph import Graph, Node
from symjax.lowering.row_gradients import GradientPlan, TouchedRows, plan_gradients
from symjax.sparse.row_sparse import RowSparse, take_rows
from symjax.sparse.rules import ROWS, stype_of
from symjax.sparse.storage import infer_storage
from symjax.sparse.unique import index_ids


class WatchedTable:
    """A table inside of `value_and_grad`; no JAX type, so that it can be used in lowered functions only.

    Attributes:
      name: its name among the parameters.
      table: the table, an array or a RowSparse.
      taps: the arrays to be added to the rows that each use reads, in order; None while the uses are counted.
      rows: the rows that each use so far reads: arrays of distinct positions.
    """

    def __init__(self, name: str, table: Any, taps: Sequence[Any] | None = None) -> None:
        self.name, self.table, self.taps = name, table, taps
        self.rows: list[Any] = []

    def read(self, unique: Any) -> RowSparse:
        """Returns the rows at distinct positions, as a function of the next tap."""
        data = lax.stop_gradient(take_rows(self.table, unique))
        if self.taps is not None:
            data = data + self.taps[len(self.rows)]
        self.rows.append(unique)
        return RowSparse(data, unique, self.table.shape)


def read_watched(
    graph: Graph, args: list[Any], aux: Sequence[Any], key: Any, train: bool, out_shapes: Any, platform: str | None
) -> tuple[list[Any], dict[tuple[Node, int], Any]]:
    """Replaces the watched tables among the arguments of a graph by the rows that it looks up.

    Args:
      graph: the graph.
      args: the values of its arguments.
      aux, key, train, out_shapes, platform: as of `lower_graph` and its function.

    Returns:
      The arguments, and where each lookup finds its ids among the rows (`LoweredFn`).

    Raises:
      StorageError: a table is read otherwise than by lookups.
    """
    plain = [x.table if isinstance(x, WatchedTable) else x for x in args]
    storage = infer_storage(graph, dict(zip(graph.arguments, map(stype_of, plain), strict=True)))
    watched = {i: x for i, x in enumerate(args) if isinstance(x, WatchedTable)}
    found = plan_gradients(storage, {graph.arguments[i]: ROWS for i in watched})
    plans: dict[int, GradientPlan] = dict(zip(watched, found, strict=True))
    for i, p in plans.items():
        if p.way != "rows":
            raise StorageError(f"value_and_grad: {watched[i].name!r} is read otherwise than by its rows (by Embedding, "
                               f"dot(csr, table), take, retain), so that its gradient is dense: leave it out of tables")
    touched = TouchedRows(graph, plans, out_shapes, platform)
    rows = touched.find(plain, aux, key, train)
    for i, x in watched.items():
        plain[i] = x.read(rows[i].unique)
    return plain, touched.located(rows)


def value_and_grad(f: Callable[..., Any], tables: Sequence[str], has_aux: bool = False) -> Callable[..., Any]:
    """As `jax.value_and_grad`, with row_sparse gradients of tables: of the rows that `f` looks up, and no others.

        fn, params, aux = symjax.lower(net, inputs=["ids", "label"], …)

        def loss(params, ids, label):
            (out,), _ = fn(params, aux, ids=ids)
            return jnp.mean((out - label) ** 2)

        value, grads = symjax.sparse.value_and_grad(loss, tables=["embed_weight"])(params, ids, label)
        grads["embed_weight"]    # a RowSparse: data (number of ids, D), indices ascending and distinct

    Nothing of a table's size is made, under `jax.jit` neither; `symjax.sparse.lazy` has updates for such gradients.

    Args:
      f: `f(params, *args, **kwargs)` -> a scalar, or (scalar, aux) with `has_aux`. `params` is a dict. Its tables are
        used in functions of `symjax.lower` only, called directly: not inside of another jit, scan or cond. The graph
        reads them by Embedding, dot(csr, table), take, retain, or these of functions of single rows. `f` is traced
        twice.
      tables: names of the parameters whose gradients are to be row_sparse: dense arrays, (V, …), or RowSparse.
      has_aux: see `f`.

    Returns:
      A function of the same arguments -> (value, gradients). The gradients are a dict like `params`, with RowSparse of
      the tables' shapes and dtypes; they have room for as many rows as ids are looked up.

    Raises (when called):
      ArgumentError: a name is not a parameter's.
      StorageError: a table is used otherwise.
    """
    if isinstance(tables, str):
        raise ArgumentError(f"value_and_grad: tables are a list of names, as [{tables!r}]")

    def run(params: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        for name in tables:
            if name not in params:
                raise ArgumentError(f"value_and_grad: {name!r} is not a parameter.{did_you_mean(name, params)}")
        others = {k: v for k, v in params.items() if k not in tables}

        def call(others: Mapping[str, Any], watched: Mapping[str, WatchedTable]) -> Any:
            return f({k: watched.get(k, others.get(k)) for k in params}, *args, **kwargs)

        def watch(taps: Mapping[str, Any]) -> dict[str, WatchedTable]:
            return {k: WatchedTable(k, params[k], taps.get(k)) for k in tables}

        def tapped(others: Mapping[str, Any], taps: Mapping[str, Any]) -> Any:
            watched = watch(taps)
            out = _explained(lambda: call(others, watched))
            value, aux = out if has_aux else (out, None)
            return value, (aux, {k: w.rows for k, w in watched.items()})

        counted = watch({})
        jax.eval_shape(lambda x: _explained(lambda: call(x, counted)), others)
        with jax.enable_x64(True):
            taps = {k: [jnp.zeros((len(r), *params[k].shape[1:]), params[k].dtype) for r in w.rows]
                    for k, w in counted.items()}  # fmt: skip
        (value, (aux, rows)), (plain, parts) = jax.value_and_grad(tapped, argnums=(0, 1), has_aux=True)(others, taps)
        grads = {k: plain[k] if k in plain else _row_gradient(params[k], rows[k], parts[k]) for k in params}
        return ((value, aux) if has_aux else value), grads

    return run


def _explained(trace: Callable[[], Any]) -> Any:
    try:
        return trace()
    except TypeError as e:
        if "WatchedTable" not in str(e):
            raise
        raise StorageError("value_and_grad: a table is used otherwise than in a function of symjax.lower, or that is "
                           "called inside of another jit, scan or cond: call it directly, or leave the table out of "
                           "tables") from e


def _row_gradient(table: Any, rows: Sequence[Any], parts: Sequence[Any]) -> RowSparse:
    """Adds up the gradients of the rows that each use read."""
    shape = table.shape
    grads = [RowSparse(d, i, shape) for d, i in zip(parts, rows, strict=True)]
    if len(grads) == 1:
        return grads[0]
    with jax.enable_x64(True):
        if not grads:
            none = index_ids(jnp.zeros((0,), jnp.int32), shape[0]).unique
            return RowSparse(jnp.zeros((len(none), *shape[1:]), table.dtype), none, shape)
        unique = index_ids(jnp.concatenate([g.indices for g in grads]), shape[0]).unique
        return RowSparse(sum(take_rows(g, unique) for g in grads), unique, shape)
