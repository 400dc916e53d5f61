"""What nodes with a fused subgraph share: the layer in it and what follows it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError
from symjax.lowering.graph import Graph, Node
from symjax.lowering.ops._integer import (
    FLOAT,
    RANGE,
    Types,
    calibrated,
    round_even,
    scale_of,
)
from symjax.lowering.ops._nn import along
from symjax.lowering.registry import ShapeLike
from symjax.lowering.subgraph import Subgraph

Names = tuple[str, ...]
Shapes = list[ShapeLike]
Given = list[str | None]
Graphs = Sequence[Graph]
Subgraphs = Sequence[Subgraph]
Added = Callable[[int, Any], Array]

_EITHER_SCALE = ("relu", "abs")
"""Functions with f(a x) = a f(x) for positive a."""
_TO_UINT8 = ("relu", "sigmoid", "softrelu", "clip", "square", "sqrt", "exp", "abs")
"""Functions without negative results, whose quantized output is uint8."""


# ---- what a subgraph holds


@dataclasses.dataclass(frozen=True)
class Plan:
    """A layer and what follows it; numbers are positions among the node's inputs.

    Attributes:
      layer: the Convolution or FullyConnected.
      inputs: positions of data, weight and, if there is one, bias.
      norm: the BatchNorm.
      statistics: positions of gamma, beta, mean and variance.
      rest: the elementwise nodes that follow, in order; an addition with the position of what it adds.
    """

    layer: Node
    inputs: tuple[int, ...]
    norm: Node | None
    statistics: tuple[int, ...]
    rest: tuple[tuple[Node, int | None], ...]

    @property
    def added(self) -> list[int]:
        return [i for _, i in self.rest if i is not None]


@functools.lru_cache(maxsize=1024)
def plan_of(graph: Graph, layer_op: str) -> Plan:
    place = {n: i for i, n in enumerate(graph.inputs)}
    nodes = [n for n in graph.nodes if n.op is not None]
    if not nodes or nodes[0].op is None or nodes[0].op.name != layer_op:
        raise ParamError(f"the subgraph must begin with a {layer_op}")
    last, norm, statistics, rest = nodes[0], None, (), []
    for n in nodes[1:]:
        others = [e.node for e in n.inputs if e.node is not last]
        if len(others) + 1 != len(n.inputs) or not all(o in place for o in others):
            raise ParamError(f"node {n.name!r} of the subgraph does not follow {last.name!r} directly")
        assert n.op is not None
        if n.op.name == "BatchNorm" and not rest:
            norm, statistics = n, tuple(place[o] for o in others)
        elif n.op.name == "elemwise_add":
            rest.append((n, place[others[0]]))
        elif others:
            raise ParamError(f"operator {n.op.name} ({n.name}) of the subgraph has inputs of its own")
        else:
            rest.append((n, None))
        last = n
    return Plan(nodes[0], tuple(place[e.node] for e in nodes[0].inputs), norm, statistics, tuple(rest))


def _function(node: Node) -> str:
    """The name of an elementwise function; leaky ReLU counts as relu, with which it shares all that matters here."""
    assert node.op is not None
    if node.op.name in ("Activation", "LeakyReLU"):
        kind = node.params.act_type
        return "relu" if kind == "leaky" else kind
    return node.op.name


def gives_uint8(plan: Plan) -> bool:
    """Whether the last function has no negative results."""
    if not plan.rest or plan.rest[-1][1] is not None:
        return False
    node = plan.rest[-1][0]
    assert node.op is not None
    if node.op.name == "LeakyReLU":
        return node.params.act_type == "leaky" and node.params.slope == 0
    # MXNet: the lower end of a clip is 0 wherever it is fused.
    return _function(node) in _TO_UINT8


def is_scalable(plan: Plan) -> bool:
    """Whether what follows may run on scaled numbers."""
    return all(i is not None or _function(n) in (*_EITHER_SCALE, "clip") for n, i in plan.rest)


def follow(plan: Plan, x: Array, steps: Any, added: Added) -> Array:
    """Runs what follows the layer on real numbers times `steps`; steps is 1 unless `is_scalable(plan)`.

    `added(position, steps)` gives a summand times `steps`.
    """
    for node, position in plan.rest:
        assert node.op is not None
        if position is not None:
            x = x + added(position, steps)
        elif node.op.name == "clip":
            x = jnp.clip(x, node.params.a_min * steps, node.params.a_max * steps)
        else:
            modes = {k: v for k, v in (("train", False), ("key", None)) if k in node.op.asks}
            x = node.op(node.params, x, **modes)
    return x


# ---- names, shapes and types


def base_names(graphs: Graphs) -> Names:
    return tuple(n.name for g in graphs for n in g.inputs)


def base_aux(p: Any, graphs: Graphs = ()) -> Names:
    return tuple(n.name for g in graphs for n in g.inputs if n in g.aux_nodes)


def node_outputs(p: Any, low: str, high: str) -> Names:
    float_out = getattr(p, "enable_float_output", False)
    return ("output", low, high) if p.quantized and not float_out else ("output",)


def base_shapes(p: Any, ins: Shapes, outs: Shapes, *, subgraphs: Subgraphs) -> Shapes:
    n = len(subgraphs[0].input_names)
    found, _ = subgraphs[0].infer_shapes(ins[:n])
    return [*found, *[RANGE] * (len(ins) - n)]


def type_of_output(p: Any, plan: Plan) -> str:
    if getattr(p, "enable_float_output", False):
        return FLOAT
    if calibrated(p) is None:
        return "int32"
    return "uint8" if gives_uint8(plan) else "int8"


def passed_types(subgraphs: Subgraphs, ins: Given) -> Types:
    found, outs = subgraphs[0].infer_types(ins)
    return found, outs


# ---- arithmetic


def channel_scales(weight: Array, bias: Array | None, data_scale: Array) -> Array:
    """int8 steps per unit for each output channel, so few that the bias fits half of int32."""
    axes = tuple(range(1, weight.ndim))
    scales = scale_of(jnp.int8, weight.min(axes), weight.max(axes))
    scales = jnp.where(scales == 0, jnp.inf, scales)
    if bias is not None:
        half = jnp.where(bias > 0, jnp.float32(2147483647), jnp.float32(-2147483648)) / 2
        most = half / jnp.where(bias == 0, 1, bias) / data_scale
        scales = jnp.where(bias == 0, scales, jnp.minimum(scales, most))
    return jnp.where(jnp.isinf(scales), 1, scales)


def quantized_weights(weight: Array, bias: Array | None, scales: Array, data_scale: Array) -> tuple[Array,
                                                                                                     Array | None]:
    """int8 weights and the int32 bias in steps of the products."""
    per_channel = along(scales, 0, weight.ndim) if scales.ndim else scales
    quantized = round_even(weight * per_channel, jnp.int8)
    return quantized, None if bias is None else round_even(bias * (scales * data_scale), jnp.int32)


def follow_in_int32(plan: Plan, total: Array, steps: Array, added: Added) -> Array:
    """What follows an uncalibrated layer, on its int32 sums of `steps` to a unit."""
    if not any(i is not None or _function(n) != "relu" or n.op is None or n.op.name != "Activation"
               for n, i in plan.rest):
        return jnp.maximum(total, 0) if plan.rest else total
    x = total.astype(jnp.float32)
    return round_even(follow(plan, x, steps, added) if is_scalable(plan) else follow(plan, x / steps, 1, added) * steps,
                      jnp.int32)
