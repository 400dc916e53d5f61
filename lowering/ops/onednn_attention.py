"""`_sg_mkldnn_selfatt_qk` and `_sg_mkldnn_selfatt_valatt`; see `onednn.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import DTypeError, ShapeError
from symjax.lowering.ops._fused import (
    Given,
    Names,
    Subgraphs,
    base_shapes,
    node_outputs,
    passed_types,
)
from symjax.lowering.ops._integer import (
    FLOAT,
    CalibratedParams,
    Types,
    as_range,
    batch_dot,
    calibrated,
    product_range,
    round_even,
    scalar,
    scale_of,
)
from symjax.lowering.params import param
from symjax.lowering.registry import op


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
            return passed_types(subgraphs, ins)
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
    all_inputs=_ARRAYS["qk"], num_subgraphs=1, outputs=lambda p: node_outputs(p, "min_output", "max_output"),
    infer_inputs=base_shapes, infer_types=_attention_types("qk"))
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
    all_inputs=_ARRAYS["valatt"], num_subgraphs=1, outputs=lambda p: node_outputs(p, "min_output", "max_output"),
    infer_inputs=base_shapes, infer_types=_attention_types("valatt"))
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
