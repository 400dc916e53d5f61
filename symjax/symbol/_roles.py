"""What a variable of a graph is for: parameter, label or input. A symbol does not say; names and readers do."""

from __future__ import annotations

from collections.abc import Iterator

from symjax.lowering.graph import Graph, Node

_PARAMETER_INPUTS = frozenset(["weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "parameters"])
_PARAMETER_ENDINGS = (
    "_weight",
    "_bias",
    "_gamma",
    "_beta",
    "_moving_mean",
    "_moving_var",
    "_running_mean",
    "_running_var",
    "_moving_inv_var",
    "_moving_avg",
    "_parameters",
    "_alpha",
)


def readers(graph: Graph) -> dict[Node, list[tuple[Node, int]]]:
    """Who reads each variable, and at which input."""
    found: dict[Node, list[tuple[Node, int]]] = {n: [] for n in graph.inputs}
    for node in graph.nodes:
        for position, entry in enumerate(node.inputs):
            if entry.node.is_variable:
                found[entry.node].append((node, position))
    return found


def parameters(graph: Graph) -> set[Node]:
    """Variables that training would set: auxiliary states, and what operators read as weight, bias, gamma, …"""
    return {
        v
        for v, uses in readers(graph).items()
        if v in graph.aux_nodes
        or "__init__" in v.attrs
        or v.name.endswith(_PARAMETER_ENDINGS)
        or (uses and all(_input_name(n, i) in _PARAMETER_INPUTS for n, i in uses))
    }


def labels(graph: Graph) -> set[Node]:
    """Variables that only loss heads read, as labels; outputs do not depend on them."""
    return {
        v
        for v, uses in readers(graph).items()
        if uses and all(n.is_loss and i > 0 for n, i in uses)
    }


def data(graph: Graph) -> list[Node]:
    """The other variables, in order: what a caller feeds."""
    rest = parameters(graph) | labels(graph)
    return [v for v in graph.inputs if v not in rest]


def every_node(graph: Graph) -> Iterator[Node]:
    """All nodes, those of subgraphs included."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop().nodes:
            yield node
            waiting.extend(node.subgraphs)


def _input_name(node: Node, position: int) -> str:
    names = node.input_names
    return names[position] if position < len(names) else ""
