"""FullyConnected."""

from __future__ import annotations

from collections.abc import Sequence

from jax import Array

from symjax.lowering.ops._nn import batch_from_output, known_product, linear, linear_by_rows, sum_dtype
from symjax.lowering.ops._wide_rows import is_wide, spread
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op


class FullyConnectedParams(Params):
    num_hidden: int = param(ge=1, doc="Number of output units.")
    no_bias: bool = param(False, doc="Leave the bias out.")
    flatten: bool = param(True, doc="Join all axes but the first; otherwise the layer acts on the last axis alone.")


def _inputs(p: FullyConnectedParams) -> tuple[str, ...]:
    return ("data", "weight") if p.no_bias else ("data", "weight", "bias")


def _infer_inputs(p: FullyConnectedParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    data = batch_from_output(ins[0], outs[0])
    if not data:
        return ins
    inferred: list[ShapeLike] = [data, (p.num_hidden, known_product(data[1:]) if p.flatten else data[-1])]
    if not p.no_bias:
        column = ins[2] == (p.num_hidden, 1)
        inferred.append(ins[2] if column else (p.num_hidden,))
    return inferred


@op("FullyConnected", aliases=("_npx_fully_connected", "_sparse_FullyConnected"), params=FullyConnectedParams,
    inputs=_inputs, all_inputs=("data", "weight", "bias"), infer_inputs=_infer_inputs)
def fully_connected(p: FullyConnectedParams, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """Applies a linear layer: `out = data · weightᵀ + bias`.

    With flatten, data (N, d1, …) counts as (N, d1·…) and the output is (N, num_hidden); without, data (…, K) gives
    (…, num_hidden). weight is (num_hidden, K), bias (num_hidden,) or (num_hidden, 1).

    Half precision is summed in float32; MXNet has no float16 kernel for it on CPU.
    """
    out = linear(_rows(p, data), weight)
    if bias is not None:
        out = out + bias.reshape(-1).astype(out.dtype)
    return out.astype(data.dtype)


def _rows(p: FullyConnectedParams, data: Array) -> Array:
    return data.reshape(data.shape[0], known_product(data.shape[1:])) if p.flatten else data


@fully_connected.variant(platform="cpu")
def _on_cpu(p: FullyConnectedParams, data: Array, weight: Array, bias: Array | None = None) -> Array:
    x = _rows(p, data)
    if bias is not None:
        bias = bias.reshape(-1).astype(sum_dtype(x) or x.dtype)
        count = known_product(x.shape[:-1])
        # what is summed for the gradient is in memory for the products anyway, so that rows need not be very wide
        bias = spread(bias, (count,)) if is_wide((count, p.num_hidden), 1, bias.dtype, 1024) else bias
    return linear_by_rows(x, weight, bias).astype(data.dtype)
