"""Differentiation with respect to the rows of tables that a batch touches: see `symjax.sparse.demand`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp

from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.registry import Op
from symjax.lowering.trace import lower_graph
from symjax.sparse.csr import CSR
from symjax.sparse.demand import Site, gradient_vanishes, is_vanishing, joint_index, lookup_of, sites_of
from symjax.sparse.row_sparse import RowSparse, take_rows
from symjax.sparse.rules import DENSE, ROWS, as_stype, dense, is_converter, stype_of
from symjax.sparse.storage import Storage, gradients_of_call, infer_storage
from symjax.sparse.unique import RowIndex

FEW_ROWS = 4096
"""Up to so many ids the compiled function finds the distinct ones in less time than the host takes to."""

Way = Literal["default", "stored", "rows", "zero"]


@dataclasses.dataclass(frozen=True)
class GradientPlan:
    """How the gradient of one argument is found.

    Attributes:
      way: "default": with respect to the dense array; "stored": to what the container stores; "rows": to the rows that
        the graph looks up; "zero": it is zero everywhere, and stores nothing.
      stype: the storage type that the gradient is delivered in.
      sites: the lookups, for "rows".
    """

    way: Way = "default"
    stype: str = DENSE
    sites: tuple[Site, ...] = ()

    def split(self, value: Any, index: RowIndex | None) -> Any:
        """Returns what is differentiated in place of an argument: an array, stored values, or the rows touched."""
        if self.way == "default":
            return dense(value)
        if self.way == "stored":
            return value.data
        if self.way == "zero":
            return ()
        assert index is not None
        return take_rows(value, index.unique, padded=False)  # what padding reads is not looked up

    def join(self, value: Any, index: RowIndex | None, part: Any) -> Any:
        """Returns the argument that the graph is given, made of what is differentiated."""
        if self.way == "default":
            return part
        if self.way == "stored":
            return value.with_data(part)
        if self.way == "zero":
            return value
        assert index is not None
        return RowSparse(part, index.unique, value.shape)

    def gradient(self, value: Any, index: RowIndex | None, cotangent: Any) -> Any:
        """Returns the gradient in the storage type of the plan."""
        if self.way == "zero":
            return nothing_like(value, self.stype)
        made = self.join(value, index, cotangent)
        return made if stype_of(made) == self.stype else as_stype(dense(made), self.stype)


def stored(value: Any) -> Any:
    """The differentiable part of a value: what a container stores, an array itself."""
    return value if stype_of(value) == DENSE else value.data


def nothing_like(value: Any, stype: str) -> Any:
    """Returns a container of a value's shape and type that stores nothing."""
    empty = CSR.empty(value.shape, value.dtype) if stype == "csr" else RowSparse.empty(value.shape, value.dtype)
    return jax.tree.map(jnp.asarray, empty)


def plan_gradients(storage: Storage, targets: Mapping[Node, str]) -> tuple[GradientPlan, ...]:
    """Chooses how the gradients of variables are found.

    Args:
      storage: the storage types of the graph.
      targets: for each variable the storage type of the array that receives its gradient.
    """
    inferred = storage.gradients(list(targets))
    uncast = converters(storage.graph, targets)
    plans = {n: _plan(storage, n, inferred[n], t) for n, t in targets.items()}
    # a sparse argument with a dense gradient is made dense in the function that is differentiated
    stypes = {n: storage.values[n][0] for n in storage.graph.inputs}
    changed = {n: DENSE for n, p in plans.items() if p.way == "default" and stypes[n] != DENSE}
    if changed or uncast:
        storage = infer_storage(storage.graph, {**stypes, **changed}, uncast)
        plans = {n: p if n in changed else _plan(storage, n, inferred[n], targets[n]) for n, p in plans.items()}
    return tuple(plans.values())


def converters(graph: Graph, wrt: Collection[Node]) -> frozenset[Node]:
    """The nodes that may convert a dense value, which depends on variables `wrt`, to sparse storage.

    They do not in the function that is differentiated with respect to those.
    """
    if not any(n.op is not None and is_converter(n.op) for n in graph.nodes):
        return frozenset()
    reached = set(wrt)
    for n in graph.nodes:
        if any(e.node in reached for e in n.inputs):
            reached.add(n)
    return frozenset(n for n in reached if n.op is not None and is_converter(n.op))


def _plan(storage: Storage, n: Node, inferred: str, target: str) -> GradientPlan:
    if target != DENSE and storage.has_zero_gradient(n):
        return GradientPlan("zero", target)
    if target == ROWS and storage.values[n][0] in (DENSE, ROWS):
        sites = sites_of(storage.graph, n, storage.values)
        if sites is not None:
            return GradientPlan("rows", target, tuple(sites))
    stype = storage.values[n][0]
    if target != DENSE and stype == target == inferred and gradient_vanishes(storage.graph, n):
        return GradientPlan("stored", target)
    return GradientPlan("default", target)


def plan_call(op: Op, params: Any, stypes: Sequence[str], wanted: Sequence[int]) -> tuple[GradientPlan, ...]:
    """Chooses how the gradients of the inputs `wanted` of a single call are found, for dense head gradients."""
    inferred = gradients_of_call(op, params, tuple(stypes))
    plans = []
    for i in wanted:
        found = lookup_of(op, params, i, stypes)
        if found is not None and inferred[i] == ROWS:
            plans.append(GradientPlan("rows", ROWS, (Site(0, i, (found.index, 0), found),)))
        elif stypes[i] != DENSE and is_vanishing(op):
            plans.append(GradientPlan("stored", stypes[i]))
        else:
            plans.append(GradientPlan())
    # a sparse input with a dense gradient is made dense, and its op then no lookup
    dense_inputs = {i for i, p in zip(wanted, plans, strict=True) if p.way == "default" and stypes[i] != DENSE}
    return tuple(GradientPlan() if any(s.index[0] in dense_inputs for s in p.sites) else p for p in plans)


class TouchedRows:
    """Finds the rows that the planned lookups of a graph read.

    Attributes:
      plans: the plans by the position of their argument; all are of the way "rows".
    """

    def __init__(self, graph: Graph, plans: Mapping[int, GradientPlan], out_shapes: Any, platform: str | None) -> None:
        self.plans, self.graph = plans, graph
        entries = list(dict.fromkeys(self._index(s) for p in plans.values() for s in p.sites))
        self.position = {n: i for i, n in enumerate(graph.arguments)}
        self.direct = [e for e in entries if e.node in self.position]
        self.computed = [e for e in entries if e.node not in self.position]
        self.direct_args = [self.position[e.node] for e in self.direct]
        self.part = Graph(self.computed)
        self.args = [self.position[n] for n in self.part.arguments]
        self.aux = [graph.aux_states.index(n) for n in self.part.aux_states]
        fn = lower_graph(self.part, out_shapes=out_shapes, platform=platform, whole=graph)

        def values(args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool) -> list[Any]:
            return fn([args[i] for i in self.args], [aux[i] for i in self.aux], key, train)[0]

        self.values = values
        self.compiled = jax.jit(self._on_device, static_argnums=3)

    def _on_device(self, args: Sequence[Any], aux: Sequence[Any], key_data: Any, train: bool) -> list[Any]:
        from symjax.lowering.compile import wrap_key

        return self.values(args, aux, wrap_key(key_data), train)

    def are_few(self, args: Sequence[Any]) -> bool:
        """Whether the lookups read so few rows that these are best found in the compiled function."""
        if self.computed:
            return False
        values = [args[i] for i in self.direct_args]
        return sum([v.capacity if isinstance(v, CSR) else v.size for v in values]) <= FEW_ROWS

    def find(self, args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool) -> dict[int, RowIndex]:
        """Returns the rows of each table, by argument position; while tracing."""
        return self._joined(args, self.values(args, aux, key, train) if self.computed else [], on_host=False)

    def find_on_host(self, args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool) -> dict[int, RowIndex]:
        """As `find`, outside of compiled code: faster where host and device are one."""
        return self._joined(args, self.compiled(args, aux, key, train) if self.computed else [], on_host=True)

    def _joined(self, args: Sequence[Any], computed: Sequence[Any], on_host: bool) -> dict[int, RowIndex]:
        values: dict[Entry, Any] = {e: args[self.position[e.node]] for e in self.direct}
        values.update(zip(self.computed, computed, strict=True))
        if on_host:
            values = {e: v.with_columns() if isinstance(v, CSR) else v for e, v in values.items()}
        return {i: joint_index(p.sites, [values[self._index(s)] for s in p.sites], args[i].shape[0], on_host)
                for i, p in self.plans.items()}  # fmt: skip

    def _index(self, s: Site) -> Entry:
        return Entry(self.graph.nodes[s.index[0]], s.index[1])

    def located(self, found: Mapping[int, RowIndex]) -> dict[tuple[Node, int], Any]:
        """Returns, for every lookup, where its ids are among the rows of its table."""
        return {(self.graph.nodes[s.place], s.position): inverse for i, index in found.items()
                for s, inverse in zip(self.plans[i].sites, index.inverse, strict=True)}  # fmt: skip
