"""Storage type inference: which entries of a graph are csr or row_sparse, which nodes fall back to dense, and which
gradients are row_sparse. Types flow forward from the variables by the ops' storage rules, gradients backward."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symjax.lowering.errors import StorageError
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.infer import Inferred
from symjax.sparse.rules import DENSE, ROWS, STYPES, Fallback, Stypes, bytes_of_dense, decide, report_fallback

VARIABLE_KEY = "__storage_type__"
_FLAGS = {"-1": DENSE, "0": DENSE, "1": ROWS, "2": "csr"}

GradStypes = Callable[[Any, Stypes, str], Sequence[str]]
"""(params, input storage types, storage type of the output's gradient) -> those of the inputs' gradients."""

_GRADS: dict[str, GradStypes] = {}


def grad_stypes(*ops: str) -> Callable[[GradStypes], GradStypes]:
    """Decorator: declares of which storage types the gradients of ops' inputs are; without it they are dense."""

    def register(fn: GradStypes) -> GradStypes:
        for name in ops:
            _GRADS[name] = fn
        return fn

    return register


@dataclasses.dataclass(frozen=True)
class Storage:
    """The storage types of a graph.

    Attributes:
      graph: the graph.
      values: for every node the types of its outputs.
      fallbacks: the nodes that make sparse inputs dense, with the types of their inputs.
    """

    graph: Graph
    values: Mapping[Node, Stypes]
    fallbacks: Mapping[Node, Stypes]

    def __getitem__(self, e: Entry) -> str:
        return self.values[e.node][e.index]

    def outputs(self) -> list[str]:
        return [self[e] for e in self.graph.outputs]

    @property
    def is_dense(self) -> bool:
        """Whether nothing in the graph is sparse."""
        return all(t == DENSE for ts in self.values.values() for t in ts)

    def fallback(self, node: Node) -> Fallback | None:
        """What is to be said of a node that falls back, None for other nodes."""
        stypes = self.fallbacks.get(node)
        assert node.op is not None or stypes is None
        return None if stypes is None or node.op is None else Fallback(node.op.name, node.name, stypes)

    def fallback_bytes(self, node: Node, shapes: Inferred[Any], types: Inferred[str]) -> int:
        """The memory that a node's dense copies of its sparse inputs take; unknown dimensions count as 0."""
        from symjax.lowering.params import NAMED_DTYPES

        items = [NAMED_DTYPES[types[e] or "float32"].itemsize for e in node.inputs]
        return bytes_of_dense([shapes[e] for e in node.inputs], self.fallbacks[node], items)

    def report(self, cost: Callable[[Node], int | None] = lambda n: None) -> None:
        """Warns of the fallbacks, or raises, as the policy says."""
        for node, stypes in self.fallbacks.items():
            assert node.op is not None
            report_fallback(node.op, stypes, node.name, cost(node))

    def gradients(self, wrt: Sequence[Node]) -> dict[Node, str]:
        """The storage types that MXNet gives the gradients of variables, all outputs having dense head gradients.

        A variable read in several places gets a row_sparse gradient if every part of it is.
        """
        found: dict[Entry, list[str]] = {e: [DENSE] for e in self.graph.outputs}
        for node in reversed(self.graph.nodes):
            if node.op is None:
                continue
            of_outputs = [found.get(Entry(node, i), []) for i in range(node.num_outputs)]
            if not any(of_outputs):
                continue
            head = ROWS if all(t == ROWS for ts in of_outputs for t in ts) else DENSE
            ins = tuple(self[e] for e in node.inputs)
            rule = _GRADS.get(node.op.name)
            given = rule(node.params, ins, head) if rule is not None else [DENSE] * len(ins)
            for e, t in zip(node.inputs, given, strict=True):
                found.setdefault(e, []).append(t)
        return {n: ROWS if found.get(Entry(n, 0)) and all(t == ROWS for t in found[Entry(n, 0)]) else DENSE
                for n in wrt}  # fmt: skip


def infer_storage(graph: Graph, given: Mapping[Node, str] | None = None) -> Storage:
    """Infers storage types.

    Args:
      graph: the graph.
      given: types of variables; for others their `__storage_type__` attribute counts, else "default".

    Raises:
      StorageError: an unknown type, or a combination that is an error; the message names the node.
    """
    given = given or {}
    values: dict[Node, Stypes] = {}
    fallbacks: dict[Node, Stypes] = {}
    for node in graph.nodes:
        if node.op is None:
            values[node] = (_variable(node, given.get(node)),)
            continue
        ins = tuple(values[e.node][e.index] for e in node.inputs)
        rule = decide(node.op, node.params, ins)
        if rule is not None:
            try:
                values[node] = rule.outs(node.op, node.params, ins)
            except StorageError as e:
                raise StorageError(f"node {node.name!r}: {e}") from None
            continue
        values[node] = (DENSE,) * node.num_outputs
        if any(t != DENSE for t in ins):
            fallbacks[node] = ins
    return Storage(graph, values, fallbacks)


def _variable(node: Node, given: str | None) -> str:
    flag = node.attrs.get(VARIABLE_KEY, "0")
    stype = given or _FLAGS.get(flag, flag)
    if stype not in STYPES:
        raise StorageError(f"variable {node.name!r}: storage type {stype!r} is not one of {', '.join(STYPES)}")
    return stype
