"""Operators on int8 and uint8 arrays: `_contrib_quantized_*`, except the recurrent one.

What the arrays and their ranges mean stands in `_integer.py`. Every range input has the shape (1,), and so have the
range outputs. None has a gradient.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.habits import habit
from symjax.lowering.ops._integer import (
    FLOAT,
    LEVELS,
    QUANTIZED,
    RANGE,
    RANGED,
    CalibratedParams,
    Ends,
    Types,
    as_range,
    calibrated,
    check_types,
    convolve,
    convolve_by_floats,
    dot,
    dot_by_floats,
    ends_of,
    largest,
    product_range,
    round_even,
    scale_of,
    step_of,
    truncate,
)
from symjax.lowering.ops._nn import along, axis_of, per_axis
from symjax.lowering.ops.activation import ActivationParams
from symjax.lowering.ops.convolution import ConvolutionParams, convolution
from symjax.lowering.ops.fully_connected import FullyConnectedParams, fully_connected
from symjax.lowering.ops.indexing import EmbeddingParams, embedding
from symjax.lowering.ops.join import ConcatParams, concat
from symjax.lowering.ops.norm import BatchNormParams
from symjax.lowering.ops.pooling import PoolingParams, pooling
from symjax.lowering.params import param
from symjax.lowering.registry import Op, ShapeLike, op

Names = tuple[str, ...]
Shapes = list[ShapeLike]
Given = list[str | None]
Ranged = tuple[Array, Array, Array]

_LAYER = ("data", "weight", "bias")


# ---- convolution and linear layers


def _layer_inputs(p: Any) -> Names:
    """The layer's inputs, then the ends of the range of each."""
    names = _LAYER[:2] if p.no_bias else _LAYER
    return (*names, *(f"{end}_{n}" for n in names for end in ("min", "max")))


_EVERY = (*_LAYER, *(f"{end}_{n}" for n in _LAYER for end in ("min", "max")))


def _layer_shapes(layer: Op, p: Any, ins: Shapes, outs: Shapes) -> Shapes:
    n = 2 if p.no_bias else 3
    assert layer.infer_inputs is not None
    return [*layer.infer_inputs(p, ins[:n], outs[:1]), *([RANGE] * (2 * n))]


def _layer_types(p: Any, ins: Given, outs: Given) -> Types:
    n = 2 if p.no_bias else 3
    check_types(("data",), ins, QUANTIZED)
    return [ins[0], *["int8"] * (n - 1), *[FLOAT] * (2 * n)], ["int32", FLOAT, FLOAT]


def sum_with_bias(total: Array, bias: Array) -> Array:
    """int32 sums plus an int32 bias, limited to int32."""
    return jnp.clip(total.astype(jnp.int64) + bias.astype(jnp.int64), -(2**31), 2**31 - 1).astype(jnp.int32)


def _scaled_bias(bias: Array, ends: Ends, steps: Array) -> Array:
    """An int8 bias in steps of the sums, of which there are `steps` to a unit."""
    return truncate(bias.astype(jnp.float32) * (steps * step_of(bias.dtype, *ends)), jnp.int32)


def integer_convolution(p: ConvolutionParams, data: Array, weight: Array, fast: bool) -> Array:
    """Convolution of quantized arrays, summed in int32; `fast` by exact sums in float32."""
    n = len(p.kernel)
    last = p.layout is not None and p.layout.endswith("C")
    if last:
        data, weight = jnp.moveaxis(data, -1, 1), jnp.moveaxis(weight, -1, 1)
    window = {"stride": per_axis("stride", p.stride, n, 1, 1), "dilate": per_axis("dilate", p.dilate, n, 1, 1),
              "pad": per_axis("pad", p.pad, n, 0, 0), "groups": p.num_group}
    if data.ndim != n + 2:
        raise ShapeError(f"argument data: expected {n + 2} dimensions for kernel {p.kernel}, got {data.shape}")
    if fast:
        out = convolve_by_floats(data, weight, **window, convolution=_float_convolution(p, data, weight))
    else:
        out = convolve(data, weight, **window)
    return jnp.moveaxis(out, 1, -1) if last else out


def _float_convolution(p: ConvolutionParams, data: Array, weight: Array) -> Any:
    plain = dataclasses.replace(p, layout=None, no_bias=True)
    return lambda x, w: convolution.rule_for(plain, (x, w), "cpu")(plain, x, w)


def _quantized_conv(fast: bool, p: ConvolutionParams, *inputs: Array) -> Ranged:
    named = dict(zip(_layer_inputs(p), inputs, strict=True))
    data, weight = named["data"], named["weight"]
    out = integer_convolution(p, data, weight, fast)
    channel = out.ndim - 1 if p.layout is not None and p.layout.endswith("C") else 1
    return _finished(named, out, channel)


def _finished(named: dict[str, Array], out: Array, channel: int) -> Ranged:
    """The sums of a layer with its bias, and their range."""
    data, weight = named["data"], named["weight"]
    ends = [ends_of(named[f"min_{n}"], named[f"max_{n}"]) for n in ("data", "weight")]
    if "bias" in named:
        steps = scale_of(data.dtype, *ends[0]) * scale_of(weight.dtype, *ends[1])
        bias = _scaled_bias(named["bias"], ends_of(named["min_bias"], named["max_bias"]), steps)
        out = sum_with_bias(out, along(bias, channel, out.ndim))
    return (out, *product_range(data, weight, *ends))


@op("_contrib_quantized_conv", params=ConvolutionParams, inputs=_layer_inputs, all_inputs=_EVERY, outputs=RANGED,
    infer_inputs=functools.partial(_layer_shapes, convolution), infer_types=_layer_types)
def quantized_conv(p: ConvolutionParams, *inputs: Array) -> Ranged:
    """Convolution of int8 or uint8 data with int8 weights and bias, summed in int32.

    Its range is the one that int32 numbers have as products of steps of data and weight; the bias is rescaled to these.
    Shapes are Convolution's.
    """
    # MXNet: its CPU kernel takes uint8 data alone, adds the bias without rescaling it, and gives a range as if the data
    # were int8; groups and layouts with channels last are refused. What its GPU kernel does for int8 holds here.
    return _quantized_conv(False, p, *inputs)


@quantized_conv.variant(platform="cpu")
def _quantized_conv_cpu(p: ConvolutionParams, *inputs: Array) -> Ranged:
    return _quantized_conv(True, p, *inputs)


def flat(p: FullyConnectedParams, data: Array) -> Array:
    """Data as FullyConnected sees it."""
    return data.reshape(data.shape[0], -1) if p.flatten and data.size else data


def _quantized_fc(fast: bool, p: FullyConnectedParams, *inputs: Array) -> Ranged:
    named = dict(zip(_layer_inputs(p), inputs, strict=True))
    data = flat(p, named["data"])
    out = (dot_by_floats if fast else dot)(data, named["weight"])
    if "bias" in named:
        named["bias"] = named["bias"].reshape(-1)
    return _finished(named, out, out.ndim - 1)


@op("_contrib_quantized_fully_connected", params=FullyConnectedParams, inputs=_layer_inputs, all_inputs=_EVERY,
    outputs=RANGED, infer_inputs=functools.partial(_layer_shapes, fully_connected), infer_types=_layer_types)
def quantized_fully_connected(p: FullyConnectedParams, *inputs: Array) -> Ranged:
    """FullyConnected of int8 or uint8 data with int8 weights and bias, summed in int32.

    Its range is the one that int32 numbers have as products of steps of data and weight; the bias is rescaled to these,
    fractions cut off. Shapes are FullyConnected's.
    """
    return _quantized_fc(False, p, *inputs)


@quantized_fully_connected.variant(platform="cpu")
def _quantized_fully_connected_cpu(p: FullyConnectedParams, *inputs: Array) -> Ranged:
    return _quantized_fc(True, p, *inputs)


# ---- operators that keep the range


def _one_with_range(p: Any, ins: Shapes, outs: Shapes) -> Shapes:
    return [ins[0], RANGE, RANGE]


def _keeps_type(p: Any, ins: Given, outs: Given) -> Types:
    check_types(("data",), ins, QUANTIZED)
    known = ins[0] or outs[0]
    return [known, FLOAT, FLOAT], [known, FLOAT, FLOAT]


def _pooling_types(p: PoolingParams, ins: Given, outs: Given) -> Types:
    if p.pool_type not in ("max", "avg"):
        raise ParamError(f"parameter pool_type={p.pool_type!r}: quantized pooling is by max or avg")
    return _keeps_type(p, ins, outs)


@op("_contrib_quantized_pooling", params=PoolingParams, outputs=RANGED, infer_inputs=_one_with_range,
    infer_types=_pooling_types)
def quantized_pooling(p: PoolingParams, data: Array, min_data: Array, max_data: Array) -> Ranged:
    """Pooling of int8 or uint8 data by maximum or average; averages are rounded, halves to even.

    Shapes and conventions are Pooling's; the range stays.
    """
    low, high = lax.stop_gradient((min_data, max_data))
    if p.pool_type == "max":
        return pooling(p, data), low, high
    return round_even(pooling(p, data.astype(jnp.float32)), data.dtype), low, high


def _act_types(p: ActivationParams, ins: Given, outs: Given) -> Types:
    if p.act_type != "relu":
        raise ParamError(f"parameter act_type={p.act_type!r}: only relu is quantized")
    return _keeps_type(p, ins, outs)


@op("_contrib_quantized_act", params=ActivationParams, outputs=RANGED, infer_inputs=_one_with_range,
    infer_types=_act_types)
def quantized_act(p: ActivationParams, data: Array, min_data: Array, max_data: Array) -> Ranged:
    """relu of int8 or uint8 data; the range stays, and so does the type."""
    # MXNet: uint8 data is read as if it were int8.
    return jnp.maximum(data, 0), *lax.stop_gradient((min_data, max_data))


@op("_contrib_quantized_flatten", outputs=RANGED, infer_inputs=_one_with_range, infer_types=_keeps_type)
def quantized_flatten(p: Any, data: Array, min_data: Array, max_data: Array) -> Ranged:
    """Joins all axes but the first: (N, d1, …) to (N, d1·…); the range stays."""
    width = 1
    for d in data.shape[1:]:
        width *= d
    return data.reshape(data.shape[0], width), *lax.stop_gradient((min_data, max_data))


def _embedding_shapes(p: EmbeddingParams, ins: Shapes, outs: Shapes) -> Shapes:
    assert embedding.infer_inputs is not None
    return [*embedding.infer_inputs(p, ins[:2], outs[:1]), RANGE, RANGE]


@op("_contrib_quantized_embedding", params=EmbeddingParams, outputs=RANGED, infer_inputs=_embedding_shapes,
    infer_types=lambda p, ins, outs: ([ins[0], "int8", FLOAT, FLOAT], ["int8", FLOAT, FLOAT]))
def quantized_embedding(p: EmbeddingParams, data: Array, weight: Array, min_weight: Array, max_weight: Array) -> Ranged:
    """Looks rows of an int8 table up, as Embedding does; the range is the table's."""
    return embedding(p, data, weight), *lax.stop_gradient((min_weight, max_weight))


# ---- operators that combine ranges


def _concat_names(p: ConcatParams) -> Names:
    names = tuple(f"arg{i}" for i in range(p.num_args))
    return (*names, *(f"{n}_{end}" for n in names for end in ("min", "max")))


def _concat_shapes(p: ConcatParams, ins: Shapes, outs: Shapes) -> Shapes:
    n = p.num_args
    assert concat.infer_inputs is not None
    return [*concat.infer_inputs(p, ins[:n], outs[:1]), *([RANGE] * (2 * n))]


def _concat_types(p: ConcatParams, ins: Given, outs: Given) -> Types:
    n = p.num_args
    check_types(_concat_names(p)[:n], ins[:n], QUANTIZED)
    # MXNet: inputs that are not known to be int8 are uint8.
    data = [t or "uint8" for t in ins[:n]]
    return [*data, *[FLOAT] * (2 * n)], ["int8" if "int8" in data else "uint8", FLOAT, FLOAT]


@op("_contrib_quantized_concat", params=ConcatParams, inputs=_concat_names, all_inputs=("*data",), variadic=None,
    outputs=RANGED, infer_inputs=_concat_shapes, infer_types=_concat_types)
def quantized_concat(p: ConcatParams, *data: Array) -> Ranged:
    """Joins int8 and uint8 arrays along `dim`: int8 if one of them is, else uint8.

    The inputs are the arrays, then min and max of each. The range covers all of theirs and 0; arrays with other steps
    are rounded to it, halves to even.
    """
    arrays, ranges = data[:p.num_args], lax.stop_gradient(data[p.num_args:])
    dtype = jnp.int8 if any(x.dtype == jnp.int8 for x in arrays) else jnp.uint8
    low = functools.reduce(jnp.minimum, ranges[::2], as_range(0))
    high = functools.reduce(jnp.maximum, ranges[1::2], as_range(0))
    steps = scale_of(dtype, *ends_of(low, high))
    parts = []
    for i, x in enumerate(arrays):
        ends = ends_of(ranges[2 * i], ranges[2 * i + 1])
        ratio = steps / scale_of(x.dtype, *ends)
        moved = round_even(x.astype(jnp.float32) * ratio, dtype)
        same = (scale_of(x.dtype, *ends) == steps) & (x.dtype == dtype)
        parts.append(jnp.where(same, x.astype(dtype), moved))
    return jnp.concatenate(parts, axis_of(p.dim, arrays[0].ndim, "dim")), low, high


def _pair_shapes(p: Any, ins: Shapes, outs: Shapes) -> Shapes:
    both = ins[0] or ins[1] or outs[0]
    return [both, both, *[RANGE] * 4]


def _add_types(p: CalibratedParams, ins: Given, outs: Given) -> Types:
    check_types(("lhs", "rhs"), ins, QUANTIZED)
    data = [t or "uint8" for t in ins[:2]]
    out = "int32" if calibrated(p) is None else data[0] if data[0] == data[1] else "int8"
    return [*data, *[FLOAT] * 4], [out, FLOAT, FLOAT]


@op("_contrib_quantized_elemwise_add", params=CalibratedParams, outputs=RANGED, infer_inputs=_pair_shapes,
    infer_types=_add_types)
def quantized_elemwise_add(p: CalibratedParams, lhs: Array, rhs: Array, lhs_min: Array, lhs_max: Array, rhs_min: Array,
                           rhs_max: Array) -> Ranged:
    """Adds int8 or uint8 arrays of one shape.

    Without a calibrated range the sum is int32 with the range [-R, R], R the sum of the inputs' larger ends. With one
    it has the inputs' type, or int8 if they differ, rounded with halves to even.
    """
    # MXNet: of inputs of different types the uint8 one goes through int8, which cuts it off.
    ends, out_ends = (ends_of(lhs_min, lhs_max), ends_of(rhs_min, rhs_max)), calibrated(p)
    if out_ends is None:
        dtype: Any = jnp.int32
        reach = largest(*ends[0]) + largest(*ends[1])
        low, high = -reach, reach
        ratios = [largest(*e) * jnp.float32(LEVELS["int32"]) / (reach * jnp.float32(LEVELS[x.dtype.name]))
                  if x.dtype.name in LEVELS else jnp.float32(1) for x, e in zip((lhs, rhs), ends, strict=True)]
    else:
        dtype = lhs.dtype if lhs.dtype == rhs.dtype else jnp.int8
        low, high = out_ends
        ratios = [scale_of(dtype, *out_ends) / scale_of(x.dtype, *e) for x, e in zip((lhs, rhs), ends, strict=True)]
    total = lhs.astype(jnp.float32) * ratios[0] + rhs.astype(jnp.float32) * ratios[1]
    return round_even(total, dtype), as_range(low), as_range(high)


class MultiplyParams(CalibratedParams):
    enable_float_output: bool = param(False, doc="Give the real product as float32, without a range.")


def _multiply_outputs(p: MultiplyParams) -> Names:
    return RANGED[:1] if p.enable_float_output else RANGED


def _multiply_types(p: MultiplyParams, ins: Given, outs: Given) -> Types:
    out = FLOAT if p.enable_float_output else "int32" if calibrated(p) is None else "int8"
    return ["int8", "int8", *[FLOAT] * 4], [out, *[FLOAT] * (len(outs) - 1)]


@op("_contrib_quantized_elemwise_mul", params=MultiplyParams, outputs=_multiply_outputs, infer_inputs=_pair_shapes,
    infer_types=_multiply_types)
def quantized_elemwise_mul(p: MultiplyParams, lhs: Array, rhs: Array, lhs_min: Array, lhs_max: Array, rhs_min: Array,
                           rhs_max: Array) -> Array | Ranged:
    """Multiplies int8 arrays of one shape.

    Without a calibrated range the product is int32, with one int8, fractions cut off; with `enable_float_output` it is
    the real product in float32, the only output.
    """
    ends = ends_of(lhs_min, lhs_max), ends_of(rhs_min, rhs_max)
    product = lhs.astype(jnp.int32) * rhs.astype(jnp.int32)
    unit = 1 / scale_of(jnp.int8, *ends[0]) / scale_of(jnp.int8, *ends[1])
    if p.enable_float_output:
        return product.astype(jnp.float32) * unit
    out_ends = calibrated(p)
    if out_ends is None:
        return (product, *product_range(lhs, rhs, *ends))
    scale = scale_of(jnp.int8, *out_ends) / scale_of(jnp.int8, *ends[0]) / scale_of(jnp.int8, *ends[1])
    # MXNet: a product outside of the range wraps around.
    return truncate(product.astype(jnp.float32) * scale, jnp.int8), as_range(out_ends[0]), as_range(out_ends[1])


# ---- batch normalization

_BN = ("data", "gamma", "beta", "moving_mean", "moving_var", "min_data", "max_data")


def _bn_shapes(p: BatchNormParams, ins: Shapes, outs: Shapes) -> Shapes:
    data = ins[0]
    if not data:
        return ins
    return [data, *[(data[axis_of(p.axis, len(data))],)] * 4, RANGE, RANGE]


def _bn_types(p: BatchNormParams, ins: Given, outs: Given) -> Types:
    check_types(_BN[:1], ins, QUANTIZED)
    return [ins[0], *[FLOAT] * 6], ["int8", FLOAT, FLOAT]


_FREE_GAMMA = habit("_contrib_quantized_batch_norm", "fix_gamma is not heeded.", "gamma counts as 1 with fix_gamma.")
_TWICE = habit("_contrib_quantized_batch_norm", "What was scaled is divided by sqrt(1 + eps) once more.",
               "It is scaled once.")


@op("_contrib_quantized_batch_norm", params=BatchNormParams, inputs=_BN, aux=("moving_mean", "moving_var"),
    outputs=RANGED, infer_inputs=_bn_shapes, infer_types=_bn_types)
def quantized_batch_norm(p: BatchNormParams, data: Array, gamma: Array, beta: Array, moving_mean: Array,
                         moving_var: Array, min_data: Array, max_data: Array) -> tuple[Array, ...]:
    """BatchNorm of int8 or uint8 data with the moving statistics, to int8 in the calibrated range.

    `round(127.5 / R * (gamma (x - mean) / sqrt(var + eps) + beta))`, halves to even, R the range's larger end. uint8
    data is rounded to int8 first. The statistics stay as they are.
    """
    ends = calibrated(p)
    if ends is None:
        raise ParamError("min_calib_range and max_calib_range are missing: quantized batch normalization needs a "
                         "calibrated model (calib_mode='naive' or 'entropy')")
    x = data.astype(jnp.float32)
    if data.dtype == jnp.uint8:
        x = jnp.rint(x * jnp.float32(LEVELS["int8"] / LEVELS["uint8"]))
    gamma, beta, mean, var = lax.stop_gradient((gamma, beta, moving_mean, moving_var))
    scale = (1 if p.fix_gamma and not _FREE_GAMMA() else gamma) / jnp.sqrt(var + p.eps)
    reach, shape = largest(*ends), axis_of(p.axis, data.ndim)
    weight = scale * largest(*ends_of(min_data, max_data)) / reach
    if _TWICE():
        weight = weight / jnp.sqrt(jnp.float32(1 + p.eps))
    shift = (beta - mean * scale) * jnp.float32(LEVELS["int8"]) / reach
    out = x * along(weight, shape, data.ndim) + along(shift, shape, data.ndim)
    return round_even(out, jnp.int8), as_range(ends[0]), as_range(ends[1]), moving_mean, moving_var
