"""Symbol.gradient: the gradient of a symbol as a symbol."""

from __future__ import annotations

from collections.abc import Sequence

from symjax.lowering import registry
from symjax.lowering.errors import BindError, did_you_mean
from symjax.lowering.graph import Entry, Graph
from symjax.symbol._compose import create_node
from symjax.symbol.symbol import Symbol


def gradient(symbol: Symbol, wrt: Sequence[str]) -> Symbol:
    """See `Symbol.gradient`."""
    wrt = [wrt] if isinstance(wrt, str) else list(wrt)
    graph = symbol._graph
    arguments, names = graph.arguments, [n.name for n in graph.arguments]
    for k in wrt:
        if k not in names:
            raise BindError(f"gradient: {k!r} is not an argument of {symbol!r}.{did_you_mean(k, names)}")
    if not wrt:
        raise BindError("gradient: name at least one argument")
    inputs = graph.inputs
    positions = tuple(inputs.index(arguments[names.index(k)]) for k in wrt)
    aux = tuple(i for i, n in enumerate(inputs) if n in graph.aux_nodes)
    op = registry.get("_symjax_gradient")
    attrs = {"num_args": str(len(inputs)), "wrt": str(positions), "aux": str(aux)}
    base = symbol.name or "group"
    node = create_node(
        op, [Entry(n, 0) for n in inputs], {}, attrs, f"{base}_gradient", "gradient", subgraphs=[Graph(graph.outputs)]
    )
    return Symbol._of(node.entries())
