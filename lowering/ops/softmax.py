"""softmax, log_softmax, softmin and softmax_cross_entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._nn import axis_of, check_rank, data_from_output, index_range, widen, zero_cotangent
from symjax.lowering.params import Params, param
from symjax.lowering.registry import SAME, ShapeLike, op


class SoftmaxParams(Params):
    axis: int = param(-1, doc="The axis that sums to 1.")
    temperature: float | None = param(None, doc="Divides the data; 1 when None.")
    dtype: Literal["float16", "float32", "float64"] | None = param(None, doc="Type of the output; data's when None.")
    use_length: bool | None = param(False, doc="Take the input length, and only that many entries of each row.")


def _infer_types(p: SoftmaxParams, ins: list[str | None], outs: list[str | None]) -> tuple[Sequence[str | None],
                                                                                          Sequence[str | None]]:
    if p.dtype is not None:
        return ins, [p.dtype]
    known = ins[0] or outs[0]
    return [known, *ins[1:]], [known]


def _prepared(p: SoftmaxParams, data: Array) -> Array:
    x = widen(data)
    if p.dtype == "float64" or (p.dtype is not None and not jnp.issubdtype(x.dtype, jnp.floating)):
        x = x.astype(jnp.promote_types(x.dtype, p.dtype))
    return x if p.temperature is None else x / p.temperature


def _out_dtype(p: SoftmaxParams, data: Array) -> Any:
    return p.dtype or data.dtype


def _softmax_inputs(p: SoftmaxParams) -> tuple[str, ...]:
    return ("data", "length") if p.use_length else ("data",)


def _infer_length(p: SoftmaxParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    data, *length = data_from_output(p, ins, outs)
    if data and length:
        axis = axis_of(p.axis, len(data))
        length = [data[:axis] + data[axis + 1:]]
    return [data, *length]


@op("softmax", aliases=("_npx_softmax",), params=SoftmaxParams, inputs=_softmax_inputs, all_inputs=("data", "length"),
    infer_inputs=_infer_length, infer_types=_infer_types)
def softmax(p: SoftmaxParams, data: Array, length: Array | None = None) -> Array:
    """`e^(x/T) / sum e^(x/T)` along `axis`, with T the temperature.

    With use_length, `length` (data's shape without the axis, integers) says how many leading entries count; the others
    become 0. Half precision is computed in float32.
    """
    x, axis = _prepared(p, data), axis_of(p.axis, data.ndim)
    if length is None:
        return jax.nn.softmax(x, axis=axis).astype(_out_dtype(p, data))
    expected = data.shape[:axis] + data.shape[axis + 1:]
    if length.shape != expected:
        raise ShapeError(f"argument length: expected shape {expected}, got {length.shape}")
    inside = index_range(data.shape[axis], axis, data.ndim) < jnp.expand_dims(length, axis).astype(jnp.int32)
    return jax.nn.softmax(x, axis=axis, where=inside).astype(_out_dtype(p, data))


def _types_without_length(p: SoftmaxParams, ins: list[str | None],
                          outs: list[str | None]) -> tuple[Sequence[str | None], Sequence[str | None]]:
    if p.use_length:
        raise ParamError("parameter use_length=True: only softmax has an input length")
    return _infer_types(p, ins, outs)


@op("log_softmax", aliases=("_npx_log_softmax",), params=SoftmaxParams, shape=SAME, infer_types=_types_without_length,
    inputs=("data",))
def log_softmax(p: SoftmaxParams, data: Array) -> Array:
    """`x/T - log sum e^(x/T)` along `axis`, with T the temperature."""
    x = _prepared(p, data)
    return jax.nn.log_softmax(x, axis=axis_of(p.axis, data.ndim)).astype(_out_dtype(p, data))


@op("softmin", params=SoftmaxParams, shape=SAME, infer_types=_types_without_length, inputs=("data",))
def softmin(p: SoftmaxParams, data: Array) -> Array:
    """softmax of -data."""
    x = _prepared(p, data)
    return jax.nn.softmax(-x, axis=axis_of(p.axis, data.ndim)).astype(_out_dtype(p, data))


@jax.custom_vjp
def _cross_entropy(x: Array, label: Array) -> Array:
    return _cross_entropy_forward(x, label)[0]


def _cross_entropy_forward(x: Array, label: Array) -> tuple[Array, tuple[Array, Array]]:
    probability = jax.nn.softmax(x, axis=1)
    index = jnp.clip(label.astype(jnp.int32), 0, x.shape[1] - 1)
    picked = jnp.take_along_axis(probability, index[:, None], axis=1)
    # MXNet: probabilities are limited to 1e-8 from below.
    return -jnp.log(jnp.maximum(picked, 1e-8)).sum().reshape(1), (x, label)


def _cross_entropy_backward(residuals: tuple[Array, Array], head: Array) -> tuple[Array, Any]:
    x, label = residuals
    target = index_range(x.shape[1], 1, 2) == label.astype(jnp.int32)[:, None]
    return (jax.nn.softmax(x, axis=1) - target.astype(x.dtype)) * head[0], zero_cotangent(label)


_cross_entropy.defvjp(_cross_entropy_forward, _cross_entropy_backward)


def _infer_label(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    return [ins[0], ins[0][:1] if ins[0] else ins[1]]


@op("softmax_cross_entropy", infer_inputs=_infer_label)
def softmax_cross_entropy(p: Params, data: Array, label: Array) -> Array:
    """`-sum over n of log softmax(data[n])[label[n]]`, shape (1,).

    data is (N, C), label (N,) holds class indices as numbers of data's type and gets no gradient.
    """
    check_rank("data", data.shape, (2,))
    return _cross_entropy(widen(data), label).astype(data.dtype)
