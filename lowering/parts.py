"""Lowers a graph whose nodes are on several devices: one compiled function for each part, copies in between."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax

from symjax.lowering.cpu import compiler_options
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.trace import LoweredFn, lower_graph


@dataclasses.dataclass
class _Part:
    """Nodes that follow each other on one device."""

    device: Any
    nodes: list[Node]


@dataclasses.dataclass(frozen=True)
class _Call:
    device: Any
    inputs: list[Entry]
    outputs: list[Entry]
    aux: list[Node]
    call: Callable[..., Any]


def lower_parts(
    graph: Graph, devices: Mapping[Node, Any], *, out_shapes: Any = None, platform: str | None = None,
    mirrored: Collection[Node] = (),
) -> LoweredFn:  # fmt: skip
    """Returns the function of a graph, to be called (and differentiated) outside of `jax.jit`.

    Args:
      graph: the graph.
      devices: the device of each node; an operator runs on its own, and its inputs are copied there.
      out_shapes, platform, mirrored: see `lower_graph`.
    """
    calls = [_call(graph, p, out_shapes, platform, mirrored) for p in _divide(graph, devices)]
    home = {n: devices[n] for n in graph.aux_states}

    def run(
        args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool, located: Any = None, uncast: Any = ()
    ) -> tuple[list[Any], list[Any]]:
        env: dict[Entry, Any] = {Entry(n, 0): v for n, v in zip(graph.arguments, args, strict=True)}
        env.update((Entry(n, 0), v) for n, v in zip(graph.aux_states, aux, strict=True))
        for c in calls:
            inputs = [jax.device_put(env[e], c.device) for e in c.inputs]
            states = [jax.device_put(env[Entry(n, 0)], c.device) for n in c.aux]
            outs, new = c.call(inputs, states, key, train)
            env.update(zip(c.outputs, outs, strict=True))
            env.update((Entry(n, 0), v) for n, v in zip(c.aux, new, strict=True))
        new_aux = [jax.device_put(env[Entry(n, 0)], home[n]) for n in graph.aux_states]
        return [env[e] for e in graph.outputs], new_aux

    return run


def _divide(graph: Graph, devices: Mapping[Node, Any]) -> list[_Part]:
    """Divides the operators, in their order, into as few parts as follow from taking up each one once it can run."""
    waiting = [n for n in graph.nodes if n.op is not None]
    done = {n for n in graph.nodes if n.op is None}
    parts: list[_Part] = []
    while waiting:
        device, taken, rest = devices[waiting[0]], [], []
        for n in waiting:
            if devices[n] == device and all(e.node in done for e in n.inputs):
                taken.append(n)
                done.add(n)
            else:
                rest.append(n)
        parts.append(_Part(device, taken))
        waiting = rest
    return parts


def _call(graph: Graph, part: _Part, out_shapes: Any, platform: str | None, mirrored: Collection[Node]) -> _Call:
    """Makes the function of a part: a graph of its own, in which what it reads from others are variables."""
    inside = set(part.nodes)
    aux_nodes = graph.aux_nodes
    inputs: dict[Entry, Node] = {}
    for n in part.nodes:
        for e in n.inputs:
            if e.node not in inside and e.node not in aux_nodes:
                inputs.setdefault(e, Node(None, f"{e.node.name}_{e.index}"))
    copies: dict[Node, Node] = {}
    for n in part.nodes:
        c = copies[n] = n.copy()
        c.inputs = [Entry(copies[e.node], e.index) if e.node in inside else Entry(inputs[e], 0) if e in inputs else e
                    for e in n.inputs]
    read = [e for n in graph.nodes if n not in inside for e in n.inputs] + list(graph.outputs)
    outputs = list(dict.fromkeys(e for e in read if e.node in inside))
    made = Graph([Entry(copies[e.node], e.index) for e in outputs])
    by_node = {v: k for k, v in inputs.items()}
    shapes = {copies[n]: out_shapes[n] for n in part.nodes if n in (out_shapes or {})}
    order = {copies[n]: graph.index[n] for n in part.nodes}
    fn = lower_graph(made, out_shapes=shapes, platform=platform, numbers=order,
                     mirrored={copies[n] for n in part.nodes if n in mirrored})
    call = jax.jit(lambda args, aux, key, train: fn(args, aux, key, train), static_argnums=3,
                   compiler_options=compiler_options(made, platform))
    return _Call(part.device, [by_node.get(n, Entry(n, 0)) for n in made.arguments], outputs, made.aux_states, call)
