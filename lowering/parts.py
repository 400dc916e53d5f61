"""Lowers a graph whose nodes are on several devices: one compiled function for each part, copies in between."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from symjax.lowering.cpu import compiler_options
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.trace import LoweredFn, lower_graph

Device = Any


@dataclasses.dataclass
class _Part:
    """Nodes that follow each other on one device."""

    device: Device
    nodes: list[Node]


@dataclasses.dataclass(frozen=True)
class _Call:
    """The compiled functions of a part.

    Attributes:
      inputs, outputs, aux: what it reads and makes.
      plain: `(inputs, aux, key, train) -> (outputs, new aux)`.
      keeping: the same, with the function `backward` applies to the cotangents of the real outputs.
    """

    device: Device
    inputs: list[Entry]
    outputs: list[Entry]
    aux: list[Node]
    plain: Callable[..., Any]
    keeping: Callable[..., Any]
    backward: Callable[..., Any]


def lower_parts(
    graph: Graph, devices: Mapping[Node, Device], *, out_shapes: Any = None, platform: str | None = None,
    mirrored: Collection[Node] = (),
) -> LoweredFn:  # fmt: skip
    """Returns the function of a graph, to be called (and differentiated) outside of `jax.jit`.

    Args:
      graph: the graph.
      devices: the device of each node; an operator runs on its own, and its inputs are copied there.
      out_shapes, platform, mirrored: see `lower_graph`.
    """
    calls = [_call(graph, p, out_shapes, platform, mirrored) for p in _divide(graph, devices)]
    arguments, aux_states = [[Entry(n, 0) for n in names] for names in (graph.arguments, graph.aux_states)]

    def forward(args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool, pulls: list[Any] | None) -> Any:
        env: dict[Entry, Any] = dict(zip([*arguments, *aux_states], [*args, *aux], strict=True))
        for c in calls:
            inputs, states = ([_at(env[e], c.device) for e in es] for es in (c.inputs, [Entry(n, 0) for n in c.aux]))
            if pulls is None:
                outs, new = c.plain(inputs, states, key, train)
            else:
                outs, new, pull = c.keeping(inputs, states, key, train)
                pulls.append(pull)
            env.update(zip(c.outputs, outs, strict=True))
            env.update((Entry(n, 0), v) for n, v in zip(c.aux, new, strict=True))
        return [env[e] for e in graph.outputs], [_at(env[e], devices[e.node]) for e in aux_states]

    # JAX would differentiate the calls by itself, but look at each anew in every step
    @functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
    def differentiable(args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool) -> Any:
        return forward(args, aux, key, train, None)

    def fwd(args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool) -> Any:
        pulls: list[Any] = []
        return forward(args, aux, key, train, pulls), (pulls, len(aux))

    def bwd(train: bool, kept: Any, heads: Any) -> Any:
        pulls, n_aux = kept
        found: dict[Entry, Any] = {}

        def add(e: Entry, value: Any) -> None:
            if value is not None and value.dtype != jax.dtypes.float0:
                value = _at(value, devices[e.node])
                found[e] = found[e] + value if e in found else value

        for e, head in zip(graph.outputs, heads[0], strict=True):
            add(e, head)
        for c, pull in zip(reversed(calls), reversed(pulls), strict=True):
            for e, value in zip(c.inputs, c.backward(pull, [found.pop(e, None) for e in c.outputs]), strict=True):
                add(e, value)
        return [found.get(e) for e in arguments], [None] * n_aux, None

    differentiable.defvjp(fwd, bwd)

    def run(
        args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool, located: Any = None, uncast: Any = ()
    ) -> tuple[list[Any], list[Any]]:
        return differentiable(list(args), list(aux), key, bool(train))

    return run


def _at(x: Any, device: Device) -> Any:
    if isinstance(x, jax.Array) and x.committed and x.devices() == {device}:
        return x
    return jax.device_put(x, device)


def _divide(graph: Graph, devices: Mapping[Node, Device]) -> list[_Part]:
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
    """Makes the functions of a part: a graph of its own, in which what it reads from others are variables."""
    inside = set(part.nodes)
    variables: dict[Entry, Node] = {}
    for e in (e for n in part.nodes for e in n.inputs):
        if e.node not in inside and e.node not in graph.aux_nodes:
            variables.setdefault(e, Node(None, f"{e.node.name}_{e.index}"))
    copies: dict[Node, Node] = {}
    for n in part.nodes:
        c = copies[n] = n.copy()
        c.inputs = [Entry(copies[e.node], e.index) if e.node in inside else Entry(variables.get(e, e.node), 0)
                    for e in n.inputs]  # fmt: skip
    read = [e for n in graph.nodes if n not in inside for e in n.inputs] + list(graph.outputs)
    outputs = list(dict.fromkeys(e for e in read if e.node in inside))
    made = Graph([Entry(copies[e.node], e.index) for e in outputs])
    entries = {v: e for e, v in variables.items()}
    fn = lower_graph(
        made,
        out_shapes={copies[n]: out_shapes[n] for n in part.nodes if n in (out_shapes or {})},
        platform=platform,
        numbers={copies[n]: graph.index[n] for n in part.nodes},
        mirrored={copies[n] for n in part.nodes if n in mirrored},
    )
    jit = functools.partial(jax.jit, compiler_options=compiler_options(made, platform))
    keeping, backward = _differentiated(fn)
    return _Call(part.device, [entries.get(n, Entry(n, 0)) for n in made.arguments], outputs, made.aux_states,
                 jit(lambda args, aux, key, train: fn(args, aux, key, train), static_argnums=3),
                 jit(keeping, static_argnums=3), jit(backward))  # fmt: skip


def _differentiated(fn: LoweredFn) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns the two halves of a function's gradient: to run it and keep what is needed, and to go back."""

    def keeping(args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool) -> Any:
        def f(real: Sequence[Any]) -> Any:
            full = [a if r is None else r for a, r in zip(args, real, strict=True)]
            outs, new = fn(full, aux, key, train)
            return [o if _is_real(o) else None for o in outs], (outs, new)

        outs, pull, (all_outs, new) = jax.vjp(f, [a if _is_real(a) else None for a in args], has_aux=True)
        zeros = [None if o is None else jnp.zeros(o.shape, o.dtype) for o in outs]
        return all_outs, new, (pull, zeros)

    def backward(kept: Any, heads: Sequence[Any]) -> list[Any]:
        pull, zeros = kept
        (grads,) = pull([z if h is None else h for z, h in zip(zeros, heads, strict=True)])
        return grads

    return keeping, backward


def _is_real(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)
