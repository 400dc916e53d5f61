"""The recorded calls that an array came from, as a Symbol."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from symjax.lowering.errors import MissingLoweringError, MXNetError
from symjax.lowering.graph import Entry
from symjax.lowering.graph import Node as GraphNode
from symjax.ndarray import tape

if TYPE_CHECKING:
    from symjax.symbol import Symbol


def symbol_of(x: Any) -> Symbol:
    """Returns the graph of the calls that `x` was recorded from; see `symjax.autograd.get_symbol`."""
    from symjax.symbol import Symbol

    if x._tape is None:
        raise MXNetError("NDArray is not part of a computation graph. Did you forget to turn on recording?")
    variables: dict[Any, Entry] = {}
    made: dict[tuple[int, int], Entry] = {}

    def entry_of(source: Any, array: Any) -> Entry:
        if isinstance(source, tuple):
            return made[id(source[0]), source[1]]
        key = id(array) if source is None else id(source)
        if key not in variables:
            # MXNet: "var" for variables, "null" for constants, with one count.
            name = f"{'null' if source is None else 'var'}{len(variables)}"
            variables[key] = Entry(GraphNode(None, name), 0)
        return variables[key]

    for i, node in enumerate(tape._order([x])):
        op, params = _rule(node)
        inputs = [entry_of(s, a) for s, a in zip(node.sources, node.arrays, strict=True)]
        graph_node = GraphNode(op, f"node_{i}", params.to_attrs(), inputs)
        for k in range(len(node.outputs)):
            made[id(node), k] = Entry(graph_node, k)
    return Symbol._of([entry_of(x._tape, None)])


def _rule(node: tape.Node) -> tuple[Any, Any]:
    """Returns the operator of a call, and its parameters with the numbers that were given as operands."""
    if node.rule is None:
        if node.call is None and not isinstance(node, tape.FunctionNode):
            raise MXNetError("this graph was differentiated before and its buffers are freed; call get_symbol before "
                             "backward, or pass retain_graph=True to that")
        what = "an autograd.Function" if isinstance(node, tape.FunctionNode) else "an index, slice, copy or view"
        raise MissingLoweringError(f"autograd.get_symbol: the recorded computation has {what}, which is no operator; "
                                   f"use nd.slice, nd.take, nd.reshape, …, or build the graph with mx.sym")
    op, params = node.rule
    if node.call is None:
        raise MXNetError("this graph was differentiated before and its buffers are freed; call get_symbol before "
                         "backward, or pass retain_graph=True to that")
    scalars: Any = next(iter(node.extra), ())
    names = getattr(getattr(node.call, "__wrapped__", node.call), "operands", ())
    given = {n: float(v) if getattr(v, "ndim", 0) == 0 else tuple(map(float, v))
             for n, v in zip(names, scalars, strict=True)}
    return op, dataclasses.replace(params, **given) if given else params
