"""Symbol graphs: nodes, entries and the orders in which MXNet lists them.

A node is a variable (no op) or an application of an op; an entry is one output of a node. All traversals are
iterative and linear in the number of nodes, so depth is bounded by memory only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from symjax.lowering.errors import MXNetError
from symjax.lowering.params import Params
from symjax.lowering.registry import Op


class Entry(NamedTuple):
    """Output `index` of `node`."""

    node: Node
    index: int

    @property
    def output_name(self) -> str:
        """The name MXNet's list_outputs gives this entry."""
        return self.node.output_name(self.index)


class Node:
    """A variable or an op application.

    Attributes:
      op: the operator, None for a variable, an `UnknownOp` for a graph that is opened only for looking at.
      name: the node's name; not necessarily unique.
      attrs: attribute text exactly as given: operator parameters, and hidden keys `__key__`.
      inputs: the entries it reads, auxiliary states included, in the op's order.
      subgraphs: the graphs of a control-flow op or of one that stands for several.
    """

    __slots__ = ("__weakref__", "_params", "attrs", "inputs", "name", "op", "subgraphs")

    def __init__(
        self,
        op: Op | None,
        name: str,
        attrs: Mapping[str, str] | None = None,
        inputs: Sequence[Entry] = (),
        subgraphs: Sequence[Graph] = (),
    ) -> None:
        self.op = op
        self.name = name
        self.attrs = dict(attrs) if attrs else {}
        self.inputs = list(inputs)
        self.subgraphs = tuple(subgraphs)
        self._params: Params | None = None

    def __repr__(self) -> str:
        return f"<Node {self.name} ({self.op.name if self.op else 'variable'})>"

    @property
    def is_variable(self) -> bool:
        return self.op is None

    @property
    def params(self) -> Any:
        """The parsed operator parameters.

        Raises:
          ParamError: the attribute text does not fit the op; the message names the op, this adds the node.
        """
        if self._params is None:
            assert self.op is not None
            given = {k: v for k, v in self.attrs.items() if not is_hidden(k)}
            try:
                self._params = self.op.params.parse(given, self.op.name)
            except MXNetError as e:
                raise type(e)(f"node {self.name!r}: {e}" if self.name else str(e)) from None
        return self._params

    @property
    def num_outputs(self) -> int:
        return 1 if self.op is None else len(self.op.output_names(self.params))

    @property
    def num_visible(self) -> int:
        return 1 if self.op is None else self.op.num_visible(self.params)

    @property
    def input_names(self) -> tuple[str, ...]:
        return () if self.op is None else self.op.input_names(self.params, *self._naming)

    @property
    def _naming(self) -> tuple[tuple[Graph, ...], ...]:
        """What the names of inputs depend on besides the parameters."""
        return (self.subgraphs,) if self.op is not None and self.op.named_by_subgraphs else ()

    @property
    def is_loss(self) -> bool:
        """Whether its gradient ignores the head gradient."""
        loss = self.op is not None and self.op.is_loss
        return loss(self.params) if callable(loss) else loss

    def aux_positions(self) -> Iterator[int]:
        """Yields the positions of the inputs that the op updates."""
        aux = () if self.op is None else self.op.aux_names(self.params, *self._naming)
        if aux:
            for i, n in enumerate(self.input_names):
                if n in aux:
                    yield i

    def output_name(self, index: int) -> str:
        if self.op is None:
            return self.name
        return f"{self.name}_{self.op.output_names(self.params)[index]}"

    def entries(self) -> list[Entry]:
        """The visible outputs."""
        return [Entry(self, i) for i in range(self.num_visible)]

    def copy(self) -> Node:
        """A node of the same content with its own attribute dictionary and input list."""
        return Node(self.op, self.name, self.attrs, self.inputs, self.subgraphs)


def is_hidden(key: str) -> bool:
    """Whether an attribute key is one of MXNet's `__key__`, which no op reads as a parameter."""
    return len(key) > 4 and key.startswith("__") and key.endswith("__")


class Graph:
    """An immutable set of output entries and what they reach.

    Orders follow MXNet: `nodes` is the depth-first post-order from the outputs, `arguments` and `aux_states` are the
    variables in that order.
    """

    def __init__(self, outputs: Iterable[Entry]) -> None:
        self.outputs = tuple(outputs)

    @functools.cached_property
    def nodes(self) -> list[Node]:
        return topological_order(self.outputs)

    @functools.cached_property
    def index(self) -> dict[Node, int]:
        """Position of each node in `nodes`."""
        return {n: i for i, n in enumerate(self.nodes)}

    @functools.cached_property
    def aux_nodes(self) -> frozenset[Node]:
        """The variables that some op updates."""
        return frozenset(
            n.inputs[i].node
            for n in self.nodes
            for i in n.aux_positions()
            if i < len(n.inputs) and n.inputs[i].node.is_variable
        )

    @functools.cached_property
    def inputs(self) -> list[Node]:
        """All variables in order, auxiliary states included."""
        return [n for n in self.nodes if n.is_variable]

    @functools.cached_property
    def arguments(self) -> list[Node]:
        aux = self.aux_nodes
        return [n for n in self.inputs if n not in aux]

    @functools.cached_property
    def aux_states(self) -> list[Node]:
        aux = self.aux_nodes
        return [n for n in self.inputs if n in aux]

    @functools.cached_property
    def signature(self) -> tuple[Any, ...]:
        """A hashable description of the computation: equal signatures compute the same function of the same inputs.

        Names do not count, nor do attributes that no op reads.
        """
        rows: list[Any] = []
        for n in self.nodes:
            if n.op is None:
                rows.append(n in self.aux_nodes)
            else:
                rows.append(
                    (
                        n.op.name,
                        n.params,
                        tuple((self.index[e.node], e.index) for e in n.inputs),
                        tuple(g.signature for g in n.subgraphs),
                    )
                )
        return (tuple(rows), tuple((self.index[e.node], e.index) for e in self.outputs))


def topological_order(outputs: Iterable[Entry]) -> list[Node]:
    """Returns the nodes reachable from `outputs` in depth-first post-order, inputs left to right.

    Raises:
      MXNetError: the graph has a cycle.
    """
    order: list[Node] = []
    done: set[Node] = set()
    open_nodes: set[Node] = set()
    for out in outputs:
        if out.node in done:
            continue
        stack: list[tuple[Node, Iterator[Entry]]] = [(out.node, iter(out.node.inputs))]
        open_nodes.add(out.node)
        while stack:
            node, rest = stack[-1]
            for e in rest:
                if e.node in done:
                    continue
                if e.node in open_nodes:
                    raise MXNetError(f"the graph has a cycle through node {e.node.name!r}")
                open_nodes.add(e.node)
                stack.append((e.node, iter(e.node.inputs)))
                break
            else:
                stack.pop()
                open_nodes.discard(node)
                done.add(node)
                order.append(node)
    return order


def copy_graph(outputs: Iterable[Entry], replace: Mapping[Node, Entry] | None = None) -> list[Entry]:
    """Copies every node reachable from `outputs`; nodes in `replace` become the given entries instead.

    Returns the copied outputs in order.
    """
    outputs = list(outputs)
    new: dict[Node, Node] = {}
    replace = replace or {}

    def mapped(e: Entry) -> Entry:
        hit = replace.get(e.node)
        return hit if hit is not None else Entry(new[e.node], e.index)

    for n in topological_order(outputs):
        if n in replace:
            continue
        c = n.copy()
        c.inputs = [mapped(e) for e in n.inputs]
        new[n] = c
    return [mapped(e) for e in outputs]
