"""Normalisation: BatchNorm and its kin, LayerNorm, InstanceNorm, GroupNorm, L2Normalization, LRN."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._nn import HALF, along, axis_of, check_rank, widen
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op


class _BatchStatParams(Params):
    eps: float = param(1e-3, doc="Added to the variance before the root.")
    momentum: float = param(0.9, doc="Weight of the old value in the moving statistics.")
    fix_gamma: bool = param(True, doc="Take gamma as 1 and give it no gradient.")
    use_global_stats: bool = param(False, doc="Use the moving statistics in training too.")
    output_mean_var: bool = param(False, doc="Show mean and inverse standard deviation as outputs.")


class BatchNormParams(_BatchStatParams):
    axis: int = param(1, doc="The channel axis.")
    cudnn_off: bool = param(False, doc="Ignored.")
    min_calib_range: float | None = param(None, doc="Calibrated minimum of a quantized node; ignored.")
    max_calib_range: float | None = param(None, doc="Calibrated maximum of a quantized node; ignored.")


class BatchNormV1Params(_BatchStatParams):
    pass


class SyncBatchNormParams(_BatchStatParams):
    ndev: int = param(1, doc="Number of devices; ignored, statistics always cover the whole batch.")
    key: str = param(doc="Name shared by the replicas of one layer; ignored.")


class Normalized(NamedTuple):
    """Results of batch normalisation, in the type of the statistics but for `out`."""

    out: Array
    mean: Array
    spread: Array
    moving_mean: Array
    moving_var: Array


_MOVING = {"moving_mean": {"__init__": '["zero", {}]'}, "moving_var": {"__init__": '["one", {}]'}}
_STATS = ("output", "mean", "var")


def _visible(p: Any) -> int:
    return 3 if p.output_mean_var else 1


def _infer_channels(axis: int) -> Any:
    def infer(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
        data = ins[0]
        if not data:
            return ins
        return [data, *([(data[axis_of(getattr(p, "axis", axis), len(data))],)] * (len(ins) - 1))]

    return infer


def _float32_statistics(p: Any, ins: list[str | None], outs: list[str | None]) -> tuple[Sequence[str | None],
                                                                                       Sequence[str | None]]:
    data = ins[0] or outs[0]
    stats = None if data is None else "float32" if data in HALF else data
    return [data, *([stats] * (len(ins) - 1))], [data, *([stats] * (len(outs) - 1))]


def _batch_norm(p: _BatchStatParams, axis: int, train: bool, data: Array, gamma: Array, beta: Array,
                moving_mean: Array, moving_var: Array, inverse: bool = True) -> Normalized:
    axis = axis_of(axis, data.ndim)
    x = widen(data)
    mean, var = moving_mean, moving_var
    if train and not p.use_global_stats:
        axes = tuple(i for i in range(x.ndim) if i != axis)
        mean = x.mean(axes)
        var = jnp.square(x - along(mean, axis, x.ndim)).mean(axes)
        moving_mean = moving_mean * p.momentum + mean * (1 - p.momentum)
        moving_var = moving_var * p.momentum + var * (1 - p.momentum)
    inverse_std = lax.rsqrt(var + p.eps)
    scale = inverse_std if p.fix_gamma else inverse_std * gamma
    out = (x - along(mean, axis, x.ndim)) * along(scale, axis, x.ndim) + along(beta, axis, x.ndim)
    statistics = (mean, inverse_std if inverse else var, moving_mean, moving_var)
    return Normalized(out.astype(data.dtype), *map(lax.stop_gradient, statistics))


@op("BatchNorm", aliases=("_npx_batch_norm",), params=BatchNormParams, aux=("moving_mean", "moving_var"),
    outputs=_STATS, num_visible=_visible, infer_inputs=_infer_channels(1), infer_types=_float32_statistics,
    input_attrs=_MOVING)
def batch_norm(p: BatchNormParams, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array, *,
               train: bool) -> Normalized:
    """Normalises each channel: `out = (data - mean) / sqrt(var + eps) * gamma + beta`.

    In training mean and (biased) variance are those of the batch, and the moving statistics become
    `moving * momentum + batch * (1 - momentum)`; in prediction, or with use_global_stats, the moving statistics are
    used and stay. gamma, beta and the statistics have shape (channels,); they are float32 for half-precision data.

    The outputs mean and var carry no gradient.
    """
    # MXNet: the output called "var" is 1 / sqrt(var + eps).
    return _batch_norm(p, p.axis, train, data, gamma, beta, moving_mean, moving_var)


@op("_contrib_BatchNormWithReLU", params=BatchNormParams, aux=("moving_mean", "moving_var"), outputs=_STATS,
    num_visible=_visible, infer_inputs=_infer_channels(1), infer_types=_float32_statistics, input_attrs=_MOVING)
def batch_norm_with_relu(p: BatchNormParams, data: Array, gamma: Array, beta: Array, moving_mean: Array,
                         moving_var: Array, *, train: bool) -> Normalized:
    """BatchNorm followed by `max(x, 0)`."""
    made = _batch_norm(p, p.axis, train, data, gamma, beta, moving_mean, moving_var)
    return made._replace(out=jax.nn.relu(made.out))


@op("_contrib_SyncBatchNorm", params=SyncBatchNormParams, aux=("moving_mean", "moving_var"), outputs=_STATS,
    num_visible=_visible, infer_inputs=_infer_channels(1), infer_types=_float32_statistics, input_attrs=_MOVING)
def sync_batch_norm(p: SyncBatchNormParams, data: Array, gamma: Array, beta: Array, moving_mean: Array,
                    moving_var: Array, *, train: bool) -> Normalized:
    """BatchNorm on axis 1 with statistics over the batch of all devices.

    A sharded batch is one array here, so its statistics are global by themselves; `ndev` and `key` are not needed.
    The output var is the variance itself.
    """
    return _batch_norm(p, 1, train, data, gamma, beta, moving_mean, moving_var, inverse=False)


@op("BatchNorm_v1", params=BatchNormV1Params, aux=("moving_mean", "moving_var"), outputs=_STATS, num_visible=_visible,
    infer_inputs=_infer_channels(1), input_attrs=_MOVING)
def batch_norm_v1(p: BatchNormV1Params, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array,
                  *, train: bool) -> Normalized:
    """The old BatchNorm on axis 1: all types are one, and the output var is the variance itself."""
    return _batch_norm(p, 1, train, data, gamma, beta, moving_mean, moving_var, inverse=False)


class LayerNormParams(Params):
    axis: int = param(-1, doc="The axis that is normalised.")
    eps: float = param(1e-5, doc="Added to the variance before the root.")
    output_mean_var: bool = param(False, doc="Show mean and standard deviation as outputs.")


class GroupNormParams(Params):
    num_groups: int = param(1, ge=1, doc="Number of groups that channels are divided into.")
    eps: float = param(1e-5, doc="Added to the variance before the root.")
    output_mean_var: bool = param(False, doc="Show mean and standard deviation as outputs.")


class InstanceNormParams(Params):
    eps: float = param(1e-3, doc="Added to the variance before the root.")


def _standardize(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    """(x - mean) / std over `axes`, mean and std with axes kept; the statistics carry no gradient of their own."""
    mean = x.mean(axes, keepdims=True)
    centred = x - mean
    std = jnp.sqrt(jnp.square(centred).mean(axes, keepdims=True) + eps)
    return centred / std, lax.stop_gradient(mean), lax.stop_gradient(std)


@op("LayerNorm", aliases=("_npx_layer_norm",), params=LayerNormParams, outputs=("output", "mean", "std"),
    num_visible=_visible, infer_inputs=_infer_channels(-1))
def layer_norm(p: LayerNormParams, data: Array, gamma: Array, beta: Array) -> tuple[Array, Array, Array]:
    """Normalises along one axis: `out = (data - mean) / sqrt(var + eps) * gamma + beta`.

    gamma and beta have shape (data.shape[axis],); mean and std (the root of var + eps) keep the axis with size 1 and
    carry no gradient. Half precision is computed in float32.
    """
    axis = axis_of(p.axis, data.ndim)
    normal, mean, std = _standardize(widen(data), (axis,), p.eps)
    out = normal * along(widen(gamma), axis, data.ndim) + along(widen(beta), axis, data.ndim)
    return out.astype(data.dtype), mean.astype(data.dtype), std.astype(data.dtype)


@op("InstanceNorm", params=InstanceNormParams, outputs=("output", "mean", "var"), num_visible=1,
    infer_inputs=_infer_channels(1))
def instance_norm(p: InstanceNormParams, data: Array, gamma: Array, beta: Array) -> tuple[Array, Array, Array]:
    """Normalises each channel of each sample over its spatial axes, then scales by gamma and adds beta.

    data is (N, C, spatial…), gamma and beta (C,). The hidden outputs mean and var have shape (N, C).
    """
    if data.ndim < 3:
        raise ShapeError(f"argument data: expected at least 3 dimensions, got {data.ndim}: {data.shape}")
    axes = tuple(range(2, data.ndim))
    normal, mean, std = _standardize(widen(data), axes, p.eps)
    out = normal * along(widen(gamma), 1, data.ndim) + along(widen(beta), 1, data.ndim)
    var = jnp.square(std) - p.eps
    return out.astype(data.dtype), mean.squeeze(axes).astype(data.dtype), var.squeeze(axes).astype(data.dtype)


def _infer_groups(p: GroupNormParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    return [ins[0], (p.num_groups,), (p.num_groups,)]


@op("GroupNorm", params=GroupNormParams, outputs=("output", "mean", "std"), num_visible=_visible,
    infer_inputs=_infer_groups)
def group_norm(p: GroupNormParams, data: Array, gamma: Array, beta: Array) -> tuple[Array, Array, Array]:
    """Normalises groups of channels of each sample.

    data is (N, C, spatial…); the C channels form num_groups groups, normalised over their channels and positions. mean
    and std have shape (N, num_groups) and carry no gradient.
    """
    # MXNet: gamma and beta have one entry per group, (num_groups,), not per channel as in the paper.
    if data.ndim < 3:
        raise ShapeError(f"argument data: expected at least 3 dimensions, got {data.ndim}: {data.shape}")
    if data.shape[1] % p.num_groups:
        raise ShapeError(f"argument data: {data.shape[1]} channels are not a multiple of num_groups={p.num_groups}")
    x = widen(data).reshape(data.shape[0], p.num_groups, math.prod(data.shape[1:]) // p.num_groups)
    normal, mean, std = _standardize(x, (2,), p.eps)
    out = normal * along(widen(gamma), 1, 3) + along(widen(beta), 1, 3)
    return (out.reshape(data.shape).astype(data.dtype), mean.squeeze(2).astype(data.dtype),
            std.squeeze(2).astype(data.dtype))


class L2NormalizationParams(Params):
    eps: float = param(1e-10, doc="Added to the sum of squares before the root.")
    mode: Literal["channel", "instance", "spatial"] = param(
        "instance", doc="Axes of the norm: instance all but the first, channel the second, spatial from the third on.")


@op("L2Normalization", params=L2NormalizationParams, outputs=("output", "norm"), num_visible=1)
def l2_normalization(p: L2NormalizationParams, data: Array) -> tuple[Array, Array]:
    """Divides by the Euclidean norm: `out = data / sqrt(sum data² + eps)`, summed over the axes of `mode`."""
    least = 2 if p.mode == "instance" else 3
    if data.ndim < least:
        raise ShapeError(f"argument data: expected at least {least} dimensions for mode={p.mode!r}, got {data.ndim}: "
                         f"{data.shape}")
    axes = {"instance": tuple(range(1, data.ndim)), "channel": (1,), "spatial": tuple(range(2, data.ndim))}[p.mode]
    x = widen(data)
    norm = jnp.sqrt(jnp.square(x).sum(axes, keepdims=True) + p.eps)
    return (x / norm).astype(data.dtype), lax.stop_gradient(norm).squeeze(axes).astype(data.dtype)


class LRNParams(Params):
    alpha: float = param(1e-4, doc="Weight of the sum of squares.")
    beta: float = param(0.75, doc="Exponent.")
    knorm: float = param(2.0, doc="Constant added to the weighted sum.")
    nsize: int = param(ge=0, doc="Number of channels in the window; odd.")


def _inverse_power(x: Array, exponent: float) -> Array:
    """x ** -exponent; by roots for the usual exponents, several times faster than a power, its gradient too."""
    if exponent == 0.75:
        root = lax.rsqrt(x)
        return root * jnp.sqrt(root)
    return lax.rsqrt(x) if exponent == 0.5 else x ** -exponent


def _channel_windows(x: Array, size: int, train: bool) -> Array:
    """Sums of the squares of `size` neighbouring channels (axis 1) around each."""
    half, rest = size // 2, [(0, 0, 0)] * (x.ndim - 2)
    zero = jnp.zeros((), x.dtype)
    if not train:
        # Each shift by itself: XLA:CPU reads the data in place, and writes no padded squares to memory.
        shifted = (lax.pad(x, zero, [(0, 0, 0), (-d, d, 0), *rest]) for d in range(-half, half + 1))
        return functools.reduce(jnp.add, map(jnp.square, shifted))
    # A gradient needs the sums several times, and is faster if it finds the padded squares.
    squares = lax.pad(jnp.square(x), zero, [(0, 0, 0), (half, half, 0), *rest])
    return functools.reduce(jnp.add, (lax.slice_in_dim(squares, i, i + x.shape[1], axis=1) for i in range(size)))


@op("LRN", params=LRNParams, outputs=("output", "tmp_norm"), num_visible=1)
def lrn(p: LRNParams, data: Array, *, train: bool) -> tuple[Array, Array]:
    """Local response normalisation across channels: `out = data / (knorm + alpha / nsize * sum data²) ** beta`.

    The sum runs over nsize neighbouring channels (axis 1), fewer at the ends. data is (N, C, H, W).
    """
    check_rank("data", data.shape, (4,))
    if p.nsize % 2 == 0:
        raise ParamError(f"parameter nsize={p.nsize} must be odd")
    x = widen(data)
    norm = p.knorm + p.alpha / p.nsize * _channel_windows(x, p.nsize, train)
    return (x * _inverse_power(norm, p.beta)).astype(data.dtype), lax.stop_gradient(norm).astype(data.dtype)
