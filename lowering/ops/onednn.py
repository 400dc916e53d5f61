"""Nodes that MXNet's oneDNN subgraph backend makes: `_sg_mkldnn_conv`, `_fully_connected` and `_selfatt_*`.

Such a node holds what it replaced as a subgraph: a layer and what follows it. In float32 the subgraph is run as it is;
a quantized node sums int8 products in int32 and takes what follows on the real numbers that the sums stand for.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError
from symjax.lowering.habits import habit
from symjax.lowering.ops._fused import (
    Given,
    Graphs,
    Names,
    Plan,
    Subgraphs,
    base_aux,
    base_names,
    base_shapes,
    channel_scales,
    follow,
    follow_in_int32,
    gives_uint8,
    is_scalable,
    node_outputs,
    passed_types,
    plan_of,
    quantized_weights,
    type_of_output,
)
from symjax.lowering.ops._integer import (
    FLOAT,
    QUANTIZED,
    CalibratedParams,
    Types,
    as_range,
    calibrated,
    check_types,
    ends_of,
    product_range,
    round_even,
    scale_of,
)
from symjax.lowering.ops._nn import along
from symjax.lowering.ops.quantized import integer_convolution, sum_with_bias
from symjax.lowering.params import param
from symjax.lowering.registry import op
from symjax.lowering.subgraph import Subgraph


class ConvolutionNodeParams(CalibratedParams):
    with_bn: bool = param(False, doc="A BatchNorm follows the convolution.")
    with_act: bool = param(False, doc="An activation follows, before the sum if there is one.")
    with_sum: bool = param(False, doc="Another array is added.")
    with_postsum_act: bool = param(False, doc="An activation follows the sum.")
    quantized: bool = param(False, doc="Data is int8 or uint8.")
    with_relu: bool = param(False, doc="The name of with_act before MXNet 1.6.")
    with_postsum_relu: bool = param(False, doc="The name of with_postsum_act before MXNet 1.6.")
    weight_channelwise_scale: bool = param(True, doc="Ignored, as in MXNet: calibrated nodes have a scale per channel.")


def _conv_inputs(p: ConvolutionNodeParams, graphs: Graphs = ()) -> Names:
    names = base_names(graphs)
    if not p.quantized:
        return names
    return (*names, "data_min", "data_max", *(("sum_min", "sum_max") if p.with_sum else ()))


def _conv_types(p: ConvolutionNodeParams, ins: Given, outs: Given, *, subgraphs: Subgraphs) -> Types:
    if not p.quantized:
        return passed_types(subgraphs, ins)
    plan = plan_of(subgraphs[0].graph, "Convolution")
    found: Given = [FLOAT] * len(ins)
    for i in (plan.inputs[0], *plan.added):
        check_types(subgraphs[0].input_names[i:i + 1], ins[i:i + 1], QUANTIZED)
        found[i] = ins[i]
    return found, [type_of_output(p, plan), FLOAT, FLOAT]


def _folded(plan: Plan, values: Sequence[Array]) -> tuple[Array, Array | None]:
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


_ON_SCALED = habit("_sg_mkldnn_conv", "With a calibrated range, tanh, sigmoid and other functions that were joined to "
                   "the layer are applied to the numbers scaled to int8.", "They are applied to the real numbers.")


def _quantized_convolution(fast: bool, p: ConvolutionNodeParams, sub: Subgraph, inputs: Sequence[Array]) -> Any:
    plan, n = plan_of(sub.graph, "Convolution"), len(sub.input_names)
    inputs = lax.stop_gradient(tuple(inputs))
    values, ranges = inputs[:n], inputs[n:]
    data, ends = values[plan.inputs[0]], ends_of(ranges[0], ranges[1])
    if len(plan.added) > 1:
        raise ParamError("the subgraph adds more than one array")
    data_scale, out_ends = scale_of(data.dtype, *ends), calibrated(p)
    weight, bias = _folded(plan, values)
    # MXNet: int32 outputs have one scale for all channels.
    scales = scale_of(jnp.int8, weight.min(), weight.max()) if out_ends is None else channel_scales(weight, bias,
                                                                                                     data_scale)
    quantized, steps = quantized_weights(weight, bias, scales, data_scale)
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
        return (follow_in_int32(plan, total, data_scale * scales, added), *reach)
    dtype = "uint8" if gives_uint8(plan) else "int8"
    out_scale = scale_of(dtype, *out_ends)
    scaled = is_scalable(plan) or _ON_SCALED()
    inner = out_scale if scaled else jnp.float32(1)
    x = total.astype(jnp.float32) * spread(inner / data_scale / scales)
    x = follow(plan, x, inner, added)
    return round_even(x if scaled else x * out_scale, dtype), *map(as_range, out_ends)


def _convolution_node(fast: bool, p: ConvolutionNodeParams, subgraphs: Subgraphs, inputs: Sequence[Array]) -> Any:
    (sub,) = subgraphs
    out = _quantized_convolution(fast, p, sub, inputs) if p.quantized else tuple(sub(inputs)[0])
    aux = [inputs[i] for i, n in enumerate(sub.graph.inputs) if n in sub.graph.aux_nodes]
    return (*out, *aux)


@op("_sg_mkldnn_conv", params=ConvolutionNodeParams, inputs=_conv_inputs, all_inputs=("*data",), aux=base_aux,
    num_subgraphs=1, named_by_subgraphs=True, outputs=lambda p: node_outputs(p, "output_min", "output_max"),
    infer_inputs=base_shapes, infer_types=_conv_types)
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
