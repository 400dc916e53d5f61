"""Storage type inference: which entries of a graph are csr or row_sparse, which nodes fall back to dense, and which
gradients are row_sparse. Types flow forward from the variables by the ops' storage rules, gradients backward."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from symjax.lowering.errors import StorageError
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.registry import Op, ShapeLike
from symjax.sparse.rules import DENSE, ROWS, STYPES, Fallback, Stypes, decide, report_fallback, without_cast

VARIABLE_KEY = "__storage_type__"
_FLAGS = {"-1": DENSE, "0": DENSE, "1": ROWS, "2": "csr"}

GradStypes = Callable[[Any, Stypes, str], Sequence[str]]
"""(params, input storage types, storage type of the output's gradient) -> those of the inputs' gradients."""

_GRADS: dict[str, GradStypes] = {}
_ZERO_GRADS: set[str] = set()


def grad_stypes(*ops: str) -> Callable[[GradStypes], GradStypes]:
    """Decorator: declares of which storage types the gradients of ops' inputs are; without it they are dense."""

    def register(fn: GradStypes) -> GradStypes:
        for name in ops:
            _GRADS[name] = fn
        return fn

    return register


def zero_gradient(*ops: str) -> None:
    """Declares that the gradients of ops are zero everywhere; they have the storage types of the inputs."""
    _ZERO_GRADS.update(ops)


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

    def fallback_bytes(
        self, node: Node, shapes: Mapping[Node, Sequence[ShapeLike]], types: Mapping[Node, Sequence[str | None]] = {}
    ) -> int:
        """The memory that a node's dense copies of its sparse inputs take.

        Args:
          node: one of `fallbacks`.
          shapes: shapes of every node's outputs; unknown ones count as nothing.
          types: their dtypes; float32 where unknown.
        """
        total = 0
        for e in node.inputs:
            shape = (shapes.get(e.node) or [None] * (e.index + 1))[e.index]
            if self[e] != DENSE and shape is not None:
                name = (types.get(e.node) or [None] * (e.index + 1))[e.index] or "float32"
                total += math.prod(shape) * (2 if name == "bfloat16" else np.dtype(name).itemsize)
        return total

    def report(self, cost: Callable[[Node], int | None] = lambda n: None) -> None:
        """Warns of the fallbacks, or raises, as the policy says."""
        for node, stypes in self.fallbacks.items():
            assert node.op is not None
            report_fallback(node.op, stypes, node.name, cost(node))

    def gradients(self, wrt: Sequence[Node]) -> dict[Node, str]:
        """The storage types that MXNet gives the gradients of variables.

        The head gradient of an output has the output's storage type. A variable that is read in several places gets
        the type that all parts of its gradient have, dense if they differ.
        """
        found, zeros = self._parts
        return {n: self._of_sum(Entry(n, 0), found, zeros) for n in wrt}

    def has_zero_gradient(self, n: Node) -> bool:
        """Whether the gradient of a variable that is read is zero by the ops alone."""
        found, zeros = self._parts
        return Entry(n, 0) in zeros and Entry(n, 0) not in found

    @functools.cached_property
    def _parts(self) -> tuple[dict[Entry, list[str]], set[Entry]]:
        """The storage types of the parts that an entry's gradient is the sum of, and where a part is zero."""
        found: dict[Entry, list[str]] = {e: [self[e]] for e in self.graph.outputs}
        zeros: set[Entry] = set()  # such parts are left out of sums
        for node in reversed(self.graph.nodes):
            if node.op is None:
                continue
            outs = [Entry(node, i) for i in range(node.num_outputs)]
            heads = [t for e in outs for t in found.get(e, [])]
            if not heads and not zeros.intersection(outs):
                continue
            if not heads or node.op.name in _ZERO_GRADS:
                zeros.update(node.inputs)
                continue
            given = gradients_of_call(node.op, node.params, tuple(self[e] for e in node.inputs), _common(heads))
            for e, t in zip(node.inputs, given, strict=True):
                found.setdefault(e, []).append(t)
        return found, zeros

    def _of_sum(self, e: Entry, found: Mapping[Entry, Sequence[str]], zeros: set[Entry]) -> str:
        return _common(found[e]) if e in found else self[e] if e in zeros else DENSE


def gradients_of_call(op: Op, params: Any, ins: Stypes, head: str = DENSE) -> Sequence[str]:
    """The storage types of the gradients of an op's inputs, for head gradients of one type."""
    if op.name in _ZERO_GRADS:
        return list(ins)
    rule = _GRADS.get(op.name)
    return rule(params, ins, head) if rule is not None else [DENSE] * len(ins)


def _common(stypes: Sequence[str]) -> str:
    """The storage type of a sum: sums of csr matrices are dense."""
    if len(stypes) > 1 and "csr" in stypes:
        return DENSE
    return stypes[0] if stypes and all(t == stypes[0] for t in stypes) else DENSE


def infer_storage(
    graph: Graph, given: Mapping[Node, str] | None = None, uncast: Collection[Node] = ()
) -> Storage:
    """Infers storage types.

    Args:
      graph: the graph.
      given: types of variables; for others their `__storage_type__` attribute counts, else "default".
      uncast: nodes that do not convert their dense result to sparse storage (see `rules.converts`).

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
        params = without_cast(node.op, node.params, ins) if node in uncast else node.params
        rule = decide(node.op, params, ins)
        if rule is not None:
            try:
                values[node] = rule.outs(node.op, params, ins)
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
