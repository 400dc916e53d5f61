"""Lowers a graph to one pure JAX function by applying each node's rule in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax

from symjax.lowering.errors import BindError, MXNetError
from symjax.lowering.graph import Graph, Node
from symjax.lowering.mirror import checkpointed, kept
from symjax.lowering.subgraph import subgraphs_of
from symjax.sparse.row_sparse import Located
from symjax.sparse.rules import apply, stype_of, without_cast

LoweredFn = Callable[..., tuple[list[Any], list[Any]]]
"""(arguments, auxiliary states, key, train, located={}, uncast=(), taps={}) -> (outputs, new auxiliary states), in the
graph's order.

`located` says, by node and input position, where a lookup's ids are among the rows of its row_sparse table; `uncast`
which nodes do not convert their dense result to sparse storage. `taps`, by node and input position, are added to what
the node reads there.
"""


@dataclasses.dataclass(frozen=True)
class _Step:
    node: Node
    inputs: tuple[tuple[Node, int], ...]
    aux: tuple[tuple[int, Node], ...]
    key_index: int
    static: dict[str, Any]


def lower_graph(
    graph: Graph,
    *,
    out_shapes: Mapping[Node, tuple[tuple[int, ...], ...]] | None = None,
    platform: str | None = None,
    whole: Graph | None = None,
    mirrored: Collection[Node] = (),
    numbers: Mapping[Node, int] | None = None,
) -> LoweredFn:
    """Returns the pure function of a graph.

    Args:
      graph: the graph.
      out_shapes: inferred output shapes of the nodes whose ops ask for them (see `needs_shapes`).
      platform: "cpu", "cuda", "rocm" or "tpu" to use that platform's rule variants; None for portable rules.
      whole: a graph that this one is a part of: random numbers are then those that the node draws there.
      mirrored: nodes whose results are not kept for the gradient but computed again (see `lowering.mirror`).
      numbers: for each operator which random numbers it draws; by default its place in the graph.

    Arguments may be containers (`symjax.sparse`): each op gets the rule for the storage types that reach it.

    The function applies rules under `jax.enable_x64(True)`, so that dtypes are MXNet's whatever the user's setting.
    `key` may be None for graphs that draw no random numbers (see `needs_key`).
    """
    index = (whole or graph).index if numbers is None else numbers
    steps = [_step(n, index[n], out_shapes or {}) for n in graph.nodes if n.op is not None]
    arguments, aux_states = graph.arguments, graph.aux_states

    def outputs(
        args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool, located: Mapping[tuple[Node, int], Any],
        uncast: Collection[Node], naming: bool, taps: Mapping[tuple[Node, int], Any] = {},
    ) -> tuple[list[Any], list[Any]]:
        env: dict[Node, Sequence[Any]] = {n: (v,) for n, v in zip(arguments, args, strict=True)}
        env.update((n, (v,)) for n, v in zip(aux_states, aux, strict=True))
        with jax.enable_x64(True):
            for s in steps:
                _apply(s, env, key, train, platform, located, s.node in uncast, taps)
                if naming and s.node not in mirrored:
                    env[s.node] = kept(env[s.node])
        return [env[e.node][e.index] for e in graph.outputs], [env[n][0] for n in aux_states]

    def run(
        args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool, located: Mapping[tuple[Node, int], Any] = {},
        uncast: Collection[Node] = (), taps: Mapping[tuple[Node, int], Any] = {},
    ) -> tuple[list[Any], list[Any]]:
        if taps or not (mirrored and train):
            return outputs(args, aux, key, train, located, uncast, False, taps)
        return checkpointed(lambda a, b, k: outputs(a, b, k, train, located, uncast, True), mirrored)(args, aux, key)

    return run


def needs_key(graph: Graph) -> bool:
    """Whether some op of the graph, or of its subgraphs, draws random numbers."""
    return any(
        n.op is not None
        and "key" in n.op.asks
        and ("subgraphs" not in n.op.asks or any(needs_key(g) for g in n.subgraphs))
        for n in graph.nodes
    )


def needs_shapes(graph: Graph) -> list[Node]:
    """The nodes whose rules need their inferred output shapes."""
    return [n for n in graph.nodes if n.op is not None and "out_shapes" in n.op.asks]


def _step(node: Node, index: int, out_shapes: Mapping[Node, Any]) -> _Step:
    op = node.op
    assert op is not None
    static: dict[str, Any] = {}
    if "out_shapes" in op.asks:
        shapes = out_shapes.get(node)
        if shapes is None and op.infer_outputs is not None:
            shapes = tuple(op.infer_outputs(node.params, [None] * len(node.inputs)))
        static["out_shapes"] = shapes
    if "subgraphs" in op.asks:
        static["subgraphs"] = subgraphs_of(node)
    aux = tuple((i, node.inputs[i].node) for i in node.aux_positions())
    return _Step(node, tuple((e.node, e.index) for e in node.inputs), aux, index, static)


def _apply(
    s: _Step,
    env: dict[Node, Sequence[Any]],
    key: Any,
    train: bool,
    platform: str | None,
    located: Mapping[tuple[Node, int], Any],
    uncast: bool,
    taps: Mapping[tuple[Node, int], Any] = {},
) -> None:
    node, op = s.node, s.node.op
    assert op is not None
    ins = [env[n][i] for n, i in s.inputs]
    if taps:
        ins = [x + taps[node, i] if (node, i) in taps else x for i, x in enumerate(ins)]
    if located:
        ins = [Located(x, located[node, i]) if (node, i) in located else x for i, x in enumerate(ins)]
    asked = dict(s.static)
    if "train" in op.asks:
        asked["train"] = train
    if "key" in op.asks:
        asked["key"] = None if key is None else jax.random.fold_in(key, s.key_index)
    params = without_cast(op, node.params, tuple(map(stype_of, ins))) if uncast else node.params
    try:
        with jax.named_scope(node.name or op.name):
            out = apply(op, params, ins, platform, asked)
    except Exception as e:
        if "key" in op.asks and key is None:
            raise BindError(f"node {node.name!r} ({op.name}) draws random numbers: pass key=jax.random.key(…)") from e
        e.add_note(
            f"while lowering node {node.name!r} ({op.name}) with inputs "
            f"{', '.join(_described(x) for x in ins)}"
        )
        if isinstance(e, MXNetError) and node.name not in str(e):
            raise type(e)(f"Error in operator {node.name} ({op.name}): {e}") from e
        raise
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    n_out = node.num_outputs
    env[node] = outs[:n_out]
    for (_, var), new in zip(s.aux, outs[n_out:], strict=False):
        if var.is_variable:
            env[var] = (new,)


def _described(x: Any) -> str:
    stype = stype_of(x)
    return jax.typeof(x).str_short() if stype == "default" else f"{stype} {x.dtype}{list(x.shape)}"
