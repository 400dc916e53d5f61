"""Nodes that MXNet's oneDNN subgraph backend makes: `_sg_mkldnn_conv`, `_fully_connected` and `_selfatt_*`.

Such a node holds what it replaced as a subgraph: a layer and what follows it. In float32 the subgraph is run as it is;
a quantized node sums int8 products in int32 and takes what follows on the real numbers that the sums stand for.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import DTypeError, ParamError, ShapeError
from symjax.lowering.graph import Graph, Node
from symjax.lowering.ops._integer import (
    FLOAT,
    QUANTIZED,
    RANGE,
    CalibratedParams,
    Types,
    as_range,
    batch_dot,
    calibrated,
    check_types,
    dot,
    dot_by_floats,
    ends_of,
    largest,
    product_range,
    round_away,
    round_even,
    scalar,
    scale_of,
)
from symjax.lowering.ops._nn import along
from symjax.lowering.ops.quantized import flat, integer_convolution, sum_with_bias
from symjax.lowering.params import param
from symjax.lowering.registry import ShapeLike, op
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


class ConvolutionNodeParams(CalibratedParams):
    with_bn: bool = param(False, doc="A BatchNorm follows the convolution.")
    with_act: bool = param(False, doc="An activation follows, before the sum if there is one.")
    with_sum: bool = param(False, doc="Another array is added.")
    with_postsum_act: bool = param(False, doc="An activation follows the sum.")
    quantized: bool = param(False, doc="Data is int8 or uint8.")
    with_relu: bool = param(False, doc="The name of with_act before MXNet 1.6.")
    with_postsum_relu: bool = param(False, doc="The name of with_postsum_act before MXNet 1.6.")
    weight_channelwise_scale: bool = param(True, doc="Ignored, as in MXNet: calibrated nodes have a scale per channel.")


class LinearNodeParams(CalibratedParams):
    with_eltwise: bool = param(False, doc="An elementwise function follows.")
    with_relu: bool = param(False, doc="The name of with_eltwise before MXNet 1.6.")
    quantized: bool = param(False, doc="Data, weight and bias are quantized.")
    enable_float_output: bool = param(False, doc="Give real numbers as float32, without a range.")
    channel_wise_quantize: bool | None = param(None, doc="Weight and bias are float32, with a scale per channel.")


# ---- what a subgraph holds


@dataclasses.dataclass(frozen=True)
class _Plan:
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
def _plan(graph: Graph, layer_op: str) -> _Plan:
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
    return _Plan(nodes[0], tuple(place[e.node] for e in nodes[0].inputs), norm, statistics, tuple(rest))


def _function(node: Node) -> str:
    """The name of an elementwise function; leaky ReLU counts as relu, with which it shares all that matters here."""
    assert node.op is not None
    if node.op.name in ("Activation", "LeakyReLU"):
        kind = node.params.act_type
        return "relu" if kind == "leaky" else kind
    return node.op.name


def _gives_uint8(plan: _Plan) -> bool:
    """Whether the last function has no negative results."""
    if not plan.rest or plan.rest[-1][1] is not None:
        return False
    node = plan.rest[-1][0]
    assert node.op is not None
    if node.op.name == "LeakyReLU":
        return node.params.act_type == "leaky" and node.params.slope == 0
    # MXNet: the lower end of a clip is 0 wherever it is fused.
    return _function(node) in _TO_UINT8


def _scales(plan: _Plan) -> bool:
    """Whether what follows may run on scaled numbers."""
    return all(i is not None or _function(n) in (*_EITHER_SCALE, "clip") for n, i in plan.rest)


def _follow(plan: _Plan, x: Array, steps: Any, added: Added) -> Array:
    """Runs what follows the layer on real numbers times `steps`; steps is 1 unless `_scales(plan)`.

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


def _base_names(graphs: Graphs) -> Names:
    return tuple(n.name for g in graphs for n in g.inputs)


def _base_aux(p: Any, graphs: Graphs = ()) -> Names:
    return tuple(n.name for g in graphs for n in g.inputs if n in g.aux_nodes)


def _outputs(p: Any, low: str, high: str) -> Names:
    float_out = getattr(p, "enable_float_output", False)
    return ("output", low, high) if p.quantized and not float_out else ("output",)


def _base_shapes(p: Any, ins: Shapes, outs: Shapes, *, subgraphs: Subgraphs) -> Shapes:
    n = len(subgraphs[0].input_names)
    found, _ = subgraphs[0].infer_shapes(ins[:n])
    return [*found, *[RANGE] * (len(ins) - n)]


def _type_of_output(p: Any, plan: _Plan) -> str:
    if getattr(p, "enable_float_output", False):
        return FLOAT
    if calibrated(p) is None:
        return "int32"
    return "uint8" if _gives_uint8(plan) else "int8"


def _passed_types(subgraphs: Subgraphs, ins: Given) -> Types:
    found, outs = subgraphs[0].infer_types(ins)
    return found, outs


# ---- convolution


def _conv_inputs(p: ConvolutionNodeParams, graphs: Graphs = ()) -> Names:
    names = _base_names(graphs)
    if not p.quantized:
        return names
    return (*names, "data_min", "data_max", *(("sum_min", "sum_max") if p.with_sum else ()))


def _conv_types(p: ConvolutionNodeParams, ins: Given, outs: Given, *, subgraphs: Subgraphs) -> Types:
    if not p.quantized:
        return _passed_types(subgraphs, ins)
    plan = _plan(subgraphs[0].graph, "Convolution")
    found: Given = [FLOAT] * len(ins)
    for i in (plan.inputs[0], *plan.added):
        check_types(subgraphs[0].input_names[i:i + 1], ins[i:i + 1], QUANTIZED)
        found[i] = ins[i]
    return found, [_type_of_output(p, plan), FLOAT, FLOAT]


def _folded(plan: _Plan, values: Sequence[Array]) -> tuple[Array, Array | None]:
    """Weight and bias with the BatchNorm's moving statistics folded in."""
    weight = values[plan.inputs[1]]
    bias = values[plan.inputs[2]] if len(plan.inputs) > 2 else None
    if plan.norm is None:
        return weight, bias
    gamma, beta, mean, var = (values[i] for i in plan.statistics)
    p = plan.norm.params
    wide = 1 / jnp.sqrt(var.astype(jnp.float64) + p.eps)
    alpha = (wide if p.fix_gamma else gamma.astype(jnp.float64) * wide).astype(jnp.float32)
    bias = beta - alpha * mean if bias is None else beta + alpha * (bias - mean)
    return weight * along(alpha, 0, weight.ndim), bias


def _channel_scales(weight: Array, bias: Array | None, data_scale: Array) -> Array:
    """int8 steps per unit for each output channel, so few that the bias fits half of int32."""
    axes = tuple(range(1, weight.ndim))
    scales = scale_of(jnp.int8, weight.min(axes), weight.max(axes))
    scales = jnp.where(scales == 0, jnp.inf, scales)
    if bias is not None:
        half = jnp.where(bias > 0, jnp.float32(2147483647), jnp.float32(-2147483648)) / 2
        most = half / jnp.where(bias == 0, 1, bias) / data_scale
        scales = jnp.where(bias == 0, scales, jnp.minimum(scales, most))
    return jnp.where(jnp.isinf(scales), 1, scales)


def _quantized_weights(weight: Array, bias: Array | None, scales: Array, data_scale: Array) -> tuple[Array,
                                                                                                     Array | None]:
    """int8 weights and the int32 bias in steps of the products."""
    per_channel = along(scales, 0, weight.ndim) if scales.ndim else scales
    quantized = round_even(weight * per_channel, jnp.int8)
    return quantized, None if bias is None else round_even(bias * (scales * data_scale), jnp.int32)


def _quantized_convolution(fast: bool, p: ConvolutionNodeParams, sub: Subgraph, inputs: Sequence[Array]) -> Any:
    plan, n = _plan(sub.graph, "Convolution"), len(sub.input_names)
    inputs = lax.stop_gradient(tuple(inputs))
    values, ranges = inputs[:n], inputs[n:]
    data, ends = values[plan.inputs[0]], ends_of(ranges[0], ranges[1])
    if len(plan.added) > 1:
        raise ParamError("the subgraph adds more than one array")
    data_scale, out_ends = scale_of(data.dtype, *ends), calibrated(p)
    weight, bias = _folded(plan, values)
    # MXNet: int32 outputs have one scale for all channels.
    scales = scale_of(jnp.int8, weight.min(), weight.max()) if out_ends is None else _channel_scales(weight, bias,
                                                                                                     data_scale)
    quantized, steps = _quantized_weights(weight, bias, scales, data_scale)
    layer = plan.layer.params
    channel = -1 if layer.layout is not None and layer.layout.endswith("C") else 1
    total = integer_convolution(layer, data, quantized, fast)
    spread = functools.partial(along, axis=channel % total.ndim, ndim=total.ndim)
    if steps is not None:
        total = sum_with_bias(total, spread(steps))

    def added(i: int, inner: Any) -> Array:
        return values[i].astype(jnp.float32) * (inner / scale_of(values[i].dtype, *ends_of(ranges[2], ranges[3])))

    if out_ends is None:
        reach = product_range(data, quantized, ends, (weight.min(), weight.max()))
        return (_int32_follow(plan, total, data_scale * scales, added), *reach)
    dtype = "uint8" if _gives_uint8(plan) else "int8"
    out_scale = scale_of(dtype, *out_ends)
    # MXNet: functions other than relu, leaky and clip are applied to the scaled numbers; here always to the real ones.
    inner = out_scale if _scales(plan) else jnp.float32(1)
    x = total.astype(jnp.float32) * spread(inner / data_scale / scales)
    x = _follow(plan, x, inner, added)
    return round_even(x if _scales(plan) else x * out_scale, dtype), *map(as_range, out_ends)


def _int32_follow(plan: _Plan, total: Array, steps: Array, added: Added) -> Array:
    """What follows an uncalibrated layer, on its int32 sums of `steps` to a unit."""
    if not any(i is not None or _function(n) != "relu" or n.op is None or n.op.name != "Activation"
               for n, i in plan.rest):
        return jnp.maximum(total, 0) if plan.rest else total
    x = total.astype(jnp.float32)
    return round_even(_follow(plan, x, steps, added) if _scales(plan) else _follow(plan, x / steps, 1, added) * steps,
                      jnp.int32)


def _convolution_node(fast: bool, p: ConvolutionNodeParams, subgraphs: Subgraphs, inputs: Sequence[Array]) -> Any:
    (sub,) = subgraphs
    out = _quantized_convolution(fast, p, sub, inputs) if p.quantized else tuple(sub(inputs)[0])
    aux = [inputs[i] for i, n in enumerate(sub.graph.inputs) if n in sub.graph.aux_nodes]
    return (*out, *aux)


@op("_sg_mkldnn_conv", params=ConvolutionNodeParams, inputs=_conv_inputs, all_inputs=("*data",), aux=_base_aux,
    num_subgraphs=1, named_by_subgraphs=True, outputs=lambda p: _outputs(p, "output_min", "output_max"),
    infer_inputs=_base_shapes, infer_types=_conv_types)
def convolution_node(p: ConvolutionNodeParams, *inputs: Array, subgraphs: Subgraphs) -> Any:
    """A convolution fused with a BatchNorm, an addition and an activation, all in its subgraph.

    The inputs are the subgraph's: data, weight, bias, gamma, beta, moving mean and variance, summand, as far as there
    are any. BatchNorm uses its moving statistics in training, too.

    A quantized node takes int8 or uint8 data (and summand), float32 weights, and after its inputs the ranges of data
    and summand, shapes (1,). Weights are rounded to int8 here. With a calibrated range they have a scale per output
    channel and the output is int8 or, if the last function has no negative results, uint8; without, one scale, and the
    output is int32. The ranges are outputs.
    """
    return _convolution_node(False, p, subgraphs, inputs)


@convolution_node.variant(platform="cpu")
def _convolution_node_cpu(p: ConvolutionNodeParams, *inputs: Array, subgraphs: Subgraphs) -> Any:
    return _convolution_node(True, p, subgraphs, inputs)


# ---- linear layer


def _linear_inputs(p: LinearNodeParams, graphs: Graphs = ()) -> Names:
    names = _base_names(graphs)
    if not p.quantized:
        return names
    ranged = ("data",) if p.channel_wise_quantize else ("data", "weight", "bias")[:len(names)]
    return (*names, *(f"{end}_{n}" for n in ranged for end in ("min", "max")))


def _linear_types(p: LinearNodeParams, ins: Given, outs: Given, *, subgraphs: Subgraphs) -> Types:
    if not p.quantized:
        return _passed_types(subgraphs, ins)
    n = len(subgraphs[0].input_names)
    check_types(subgraphs[0].input_names[:1], ins[:1], QUANTIZED)
    weights = FLOAT if p.channel_wise_quantize else "int8"
    out = _type_of_output(p, _plan(subgraphs[0].graph, "FullyConnected"))
    return ([ins[0], *[weights] * (n - 1), *[FLOAT] * (len(ins) - n)], [out, *[FLOAT] * (len(outs) - 1)])


def _shared_scale(values: Sequence[Array], ranges: Sequence[Array], data_scale: Array) -> tuple[Array, Array,
                                                                                                Array | None]:
    """int8 weights, their steps per unit, and the int8 bias in int32 steps of the products.

    A bias too large for half of int32 makes the weights' steps larger.
    """
    weight, scale = values[1], scale_of(jnp.int8, *ends_of(ranges[2], ranges[3]))
    if len(values) == 2:
        return weight, scale, None
    bias_ends = ends_of(ranges[4], ranges[5])
    bias_scale = scale_of(jnp.int8, *bias_ends)
    ratio = data_scale * scale / jnp.where(bias_scale > 0, bias_scale, 1)
    most = jnp.float32(1073741823) / largest(*bias_ends) / bias_scale
    over = (bias_scale > 0) & (ratio > most)
    ratio = jnp.where(over, most, ratio)
    shrink = jnp.where(over, ratio * bias_scale / data_scale / scale, 1)
    weight = jnp.where(over, round_away(weight.astype(jnp.float32) * shrink, jnp.int8), weight)
    return weight, scale * shrink, round_away(values[2].astype(jnp.float32) * ratio, jnp.int32)


def _linear_quantized(fast: bool, p: LinearNodeParams, sub: Subgraph, inputs: Sequence[Array]) -> Any:
    plan, n = _plan(sub.graph, "FullyConnected"), len(sub.input_names)
    inputs = lax.stop_gradient(tuple(inputs))
    values, ranges = [inputs[i] for i in plan.inputs], inputs[n:]
    ends, out_ends = ends_of(ranges[0], ranges[1]), calibrated(p)
    data_scale = scale_of(values[0].dtype, *ends)
    if p.channel_wise_quantize:
        if out_ends is None and not p.enable_float_output:
            raise ParamError("channel_wise_quantize needs enable_float_output, or min_calib_range and max_calib_range")
        bias = values[2].reshape(-1) if len(values) > 2 else None
        scales = _channel_scales(values[1], bias, data_scale)
        weight, steps = _quantized_weights(values[1], bias, scales, data_scale)
    else:
        weight, scales, steps = _shared_scale(values, ranges, data_scale)
    total = (dot_by_floats if fast else dot)(flat(plan.layer.params, values[0]), weight)
    if steps is not None:
        total = sum_with_bias(total, steps.reshape(-1))
    real = total.astype(jnp.float32) * (1 / data_scale / scales)
    if p.enable_float_output:
        # MXNet: with a calibrated range it gives the real numbers scaled to uint8.
        return (_follow(plan, real, 1, _no_summand),)
    if out_ends is None:
        reach = product_range(values[0], weight, ends, ends_of(ranges[2], ranges[3]))
        return (_int32_follow(plan, total, data_scale * scales, _no_summand), *reach)
    dtype = "uint8" if _gives_uint8(plan) else "int8"
    out_scale = scale_of(dtype, *out_ends)
    if plan.rest:
        x = _follow(plan, real, 1, _no_summand) * out_scale
    else:
        x = total.astype(jnp.float32) * (out_scale / data_scale / scales)
    return round_even(x, dtype), *map(as_range, out_ends)


def _no_summand(position: int, steps: Any) -> Array:
    raise ParamError("the subgraph of a quantized linear layer adds another array")


@op("_sg_mkldnn_fully_connected", params=LinearNodeParams, inputs=_linear_inputs, all_inputs=("*data",),
    num_subgraphs=1, named_by_subgraphs=True, outputs=lambda p: _outputs(p, "min_output", "max_output"),
    infer_inputs=_base_shapes, infer_types=_linear_types)
def linear_node(p: LinearNodeParams, *inputs: Array, subgraphs: Subgraphs) -> Any:
    """A FullyConnected fused with an elementwise function, both in its subgraph.

    The inputs are data, weight and bias. A quantized node takes int8 or uint8 data, int8 weight and bias, and after
    them their ranges, shapes (1,); with `channel_wise_quantize` weight and bias are float32, without. The output is
    float32 with `enable_float_output`, int8 or uint8 with a calibrated range, else int32; the latter with their range.
    """
    (sub,) = subgraphs
    return _linear_quantized(False, p, sub, inputs) if p.quantized else tuple(sub(inputs)[0])


@linear_node.variant(platform="cpu")
def _linear_node_cpu(p: LinearNodeParams, *inputs: Array, subgraphs: Subgraphs) -> Any:
    (sub,) = subgraphs
    return _linear_quantized(True, p, sub, inputs) if p.quantized else tuple(sub(inputs)[0])


# ---- self-attention


class AttentionNodeParams(CalibratedParams):
    heads: int = param(doc="Number of attention heads.", ge=1)
    quantized: bool = param(False, doc="The inputs are int8 and uint8.")
    enable_float_output: bool = param(False, doc="Give real numbers as float32, without a range.")


_ARRAYS = {"qk": ("queries_keys_values",), "valatt": ("queries_keys_values", "attention")}


def _attention_inputs(kind: Literal["qk", "valatt"]) -> Callable[..., Names]:
    def names(p: AttentionNodeParams) -> Names:
        arrays = _ARRAYS[kind]
        short = ("qkv", "attention")[:len(arrays)]
        return (*arrays, *(f"{end}_{n}" for n in short for end in ("min", "max"))) if p.quantized else arrays
    return names


def _attention_types(kind: str) -> Any:
    def infer(p: AttentionNodeParams, ins: Given, outs: Given, *, subgraphs: Subgraphs) -> Types:
        if not p.quantized:
            return _passed_types(subgraphs, ins)
        arrays = ("int8", "uint8")[:len(_ARRAYS[kind])]
        for name, t, want in zip(_ARRAYS[kind], ins, arrays, strict=False):
            if t not in (None, want):
                raise DTypeError(f"argument {name!r}: expected {want}, got {t}")
        out = FLOAT if p.enable_float_output else "int32" if calibrated(p) is None else "int8"
        return [*arrays, *[FLOAT] * (len(ins) - len(arrays))], [out, *[FLOAT] * (len(outs) - 1)]
    return infer


def _part(p: AttentionNodeParams, x: Array, part: int) -> Array:
    """Queries (0), keys (1) or values (2) of (T, N, H * 3 * D) as (N * H, T, D)."""
    if x.ndim != 3 or x.shape[2] % (3 * p.heads):
        raise ShapeError(f"argument 'queries_keys_values': expected (length, batch, a multiple of {3 * p.heads}), got "
                         f"{x.shape}")
    t, n, width = x.shape
    x = x.reshape(t, n, p.heads, 3, width // (3 * p.heads))[:, :, :, part]
    return x.transpose(1, 2, 0, 3).reshape(n * p.heads, t, -1)


def _attended(p: AttentionNodeParams, total: Array, factor: float, a: tuple[Array, Any],
              b: tuple[Array, Any]) -> Any:
    """The outputs for int32 sums of products of a and b, each (array, range); `factor` times them is the result."""
    unit = 1 / (scale_of(a[0].dtype, *a[1]) * scale_of(b[0].dtype, *b[1]))
    x, ends = total.astype(jnp.float32), calibrated(p)
    if p.enable_float_output:
        return (x * (unit * factor),)
    if ends is None:
        exact = total if factor == 1 else round_even(x * jnp.float32(factor), jnp.int32)
        return (exact, *product_range(a[0], b[0], a[1], b[1]))
    return round_even(x * (scale_of(jnp.int8, *ends) * unit * factor), jnp.int8), *map(as_range, ends)


@op("_sg_mkldnn_selfatt_qk", params=AttentionNodeParams, inputs=_attention_inputs("qk"),
    all_inputs=_ARRAYS["qk"], num_subgraphs=1, outputs=lambda p: _outputs(p, "min_output", "max_output"),
    infer_inputs=_base_shapes, infer_types=_attention_types("qk"))
def attention_scores_node(p: AttentionNodeParams, queries_keys_values: Array, *ranges: Array,
                          subgraphs: Subgraphs) -> Any:
    """Scores q kᵀ / sqrt(D) of self-attention as `_contrib_interleaved_matmul_selfatt_qk`, its subgraph, gives them.

    (T, N, H*3*D) gives (N*H, T, T). A quantized node takes int8 and the range, and gives float32 with
    `enable_float_output`, int8 with a calibrated range, else int32; the latter with their range.
    """
    # MXNet: the range of an int32 output is [0, 0].
    if not p.quantized:
        return tuple(subgraphs[0]([queries_keys_values])[0])
    q, k = (_part(p, queries_keys_values, i) for i in (0, 1))
    ends = tuple(map(scalar, ranges))
    return _attended(p, batch_dot(q, k.transpose(0, 2, 1)), 1 / math.sqrt(q.shape[-1]), (q, ends), (k, ends))


@op("_sg_mkldnn_selfatt_valatt", params=AttentionNodeParams, inputs=_attention_inputs("valatt"),
    all_inputs=_ARRAYS["valatt"], num_subgraphs=1, outputs=lambda p: _outputs(p, "min_output", "max_output"),
    infer_inputs=_base_shapes, infer_types=_attention_types("valatt"))
def attention_values_node(p: AttentionNodeParams, queries_keys_values: Array, attention: Array, *ranges: Array,
                          subgraphs: Subgraphs) -> Any:
    """Values weighted by attention as `_contrib_interleaved_matmul_selfatt_valatt`, its subgraph, gives them.

    (T, N, H*3*D) and (N*H, T, T) give (T, N, H*D). A quantized node takes int8 projections, uint8 attention and their
    ranges; its outputs are those of `_sg_mkldnn_selfatt_qk`.
    """
    if not p.quantized:
        return tuple(subgraphs[0]([queries_keys_values, attention])[0])
    v = _part(p, queries_keys_values, 2)
    total = batch_dot(attention, v)
    n, t, d = total.shape
    total = total.reshape(n // p.heads, p.heads, t, d).transpose(2, 0, 1, 3).reshape(t, n // p.heads, -1)
    ends = list(map(scalar, ranges))
    return _attended(p, total, 1, (attention, (ends[2], ends[3])), (v, (ends[0], ends[1])))

