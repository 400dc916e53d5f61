"""Text views of a graph, and the answer to requests for MXNet's backends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from symjax.lowering.graph import Graph

if TYPE_CHECKING:
    from symjax.symbol.symbol import Symbol

logger = logging.getLogger("symjax")


def debug_str(graph: Graph) -> str:
    """Lists outputs, variables and nodes in MXNet's format."""
    first = graph.outputs[0].node
    if len(graph.outputs) == 1 and not first.inputs:
        return f"Variable:{first.name}\n" if first.op is None else f"AtomicFunctor  Op:{first.op.name}\n"
    lines = ["Symbol Outputs:"]
    lines += [f"\toutput[{i}]={e.node.name}({e.index})" for i, e in enumerate(graph.outputs)]
    for n in graph.nodes:
        if n.is_variable:
            lines.append(f"Variable:{n.name}")
            continue
        assert n.op is not None
        lines += ["-" * 20, f"Op:{n.op.name}, Name={n.name}", "Inputs:"]
        aux = set(n.aux_positions())
        for i, e in enumerate(n.inputs):
            version = f" version={int(i in aux)}" if e.node.is_variable else ""
            lines.append(f"\targ[{i}]={e.node.name}({e.index}){version}")
        if n.attrs:
            lines += ["Attrs:", *(f"\t{k}={v}" for k, v in sorted(n.attrs.items()))]
    return "\n".join(lines) + "\n"


def explain_backend(symbol: Symbol, backend: str) -> Symbol:
    """Returns the symbol unchanged and says why, once per call, at level INFO."""
    if not isinstance(backend, str) or not backend:
        raise ValueError(f"backend must be the name of a backend, got {backend!r}")
    logger.info("backend %r: nothing to partition, XLA compiles the whole graph at bind", backend)
    return symbol
