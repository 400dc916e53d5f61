"""`_sg_mkldnn_fully_connected`: a linear layer fused with a function; see `onednn.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError
from symjax.lowering.ops._fused import (
    Given,
    Graphs,
    Names,
    Subgraphs,
    base_names,
    base_shapes,
    channel_scales,
    follow,
    follow_in_int32,
    gives_uint8,
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
    dot,
    dot_by_floats,
    ends_of,
    largest,
    product_range,
    round_away,
    round_even,
    scale_of,
)
from symjax.lowering.ops.quantized import flat, sum_with_bias
from symjax.lowering.params import param
from symjax.lowering.registry import op
from symjax.lowering.subgraph import Subgraph


class LinearNodeParams(CalibratedParams):
    with_eltwise: bool = param(False, doc="An elementwise function follows.")
    with_relu: bool = param(False, doc="The name of with_eltwise before MXNet 1.6.")
    quantized: bool = param(False, doc="Data, weight and bias are quantized.")
    enable_float_output: bool = param(False, doc="Give real numbers as float32, without a range.")
    channel_wise_quantize: bool | None = param(None, doc="Weight and bias are float32, with a scale per channel.")


def _linear_inputs(p: LinearNodeParams, graphs: Graphs = ()) -> Names:
    names = base_names(graphs)
    if not p.quantized:
        return names
    ranged = ("data",) if p.channel_wise_quantize else ("data", "weight", "bias")[:len(names)]
    return (*names, *(f"{end}_{n}" for n in ranged for end in ("min", "max")))


def _linear_types(p: LinearNodeParams, ins: Given, outs: Given, *, subgraphs: Subgraphs) -> Types:
    if not p.quantized:
        return passed_types(subgraphs, ins)
    n = len(subgraphs[0].input_names)
    check_types(subgraphs[0].input_names[:1], ins[:1], QUANTIZED)
    weights = FLOAT if p.channel_wise_quantize else "int8"
    out = type_of_output(p, plan_of(subgraphs[0].graph, "FullyConnected"))
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
    plan, n = plan_of(sub.graph, "FullyConnected"), len(sub.input_names)
    inputs = lax.stop_gradient(tuple(inputs))
    values, ranges = [inputs[i] for i in plan.inputs], inputs[n:]
    ends, out_ends = ends_of(ranges[0], ranges[1]), calibrated(p)
    data_scale = scale_of(values[0].dtype, *ends)
    if p.channel_wise_quantize:
        if out_ends is None and not p.enable_float_output:
            raise ParamError("channel_wise_quantize needs enable_float_output, or min_calib_range and max_calib_range")
        bias = values[2].reshape(-1) if len(values) > 2 else None
        scales = channel_scales(values[1], bias, data_scale)
        weight, steps = quantized_weights(values[1], bias, scales, data_scale)
    else:
        weight, scales, steps = _shared_scale(values, ranges, data_scale)
    total = (dot_by_floats if fast else dot)(flat(plan.layer.params, values[0]), weight)
    if steps is not None:
        total = sum_with_bias(total, steps.reshape(-1))
    real = total.astype(jnp.float32) * (1 / data_scale / scales)
    if p.enable_float_output:
        # MXNet: with a calibrated range it gives the real numbers scaled to uint8.
        return (follow(plan, real, 1, _no_summand),)
    if out_ends is None:
        reach = product_range(values[0], weight, ends, ends_of(ranges[2], ranges[3]))
        return (follow_in_int32(plan, total, data_scale * scales, _no_summand), *reach)
    dtype = "uint8" if gives_uint8(plan) else "int8"
    out_scale = scale_of(dtype, *out_ends)
    if plan.rest:
        x = follow(plan, real, 1, _no_summand) * out_scale
    else:
        x = total.astype(jnp.float32) * (out_scale / data_scale / scales)
    return round_even(x, dtype), *map(as_range, out_ends)


def _no_summand(position: int, steps: Any) -> Array:
    raise ParamError("the subgraph of a quantized linear layer adds another array")


@op("_sg_mkldnn_fully_connected", params=LinearNodeParams, inputs=_linear_inputs, all_inputs=("*data",),
    num_subgraphs=1, named_by_subgraphs=True, outputs=lambda p: node_outputs(p, "min_output", "max_output"),
    infer_inputs=base_shapes, infer_types=_linear_types)
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
