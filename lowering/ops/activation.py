"""Activation, LeakyReLU and SoftmaxActivation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.habits import habit
from symjax.lowering.ops._elementwise import relu, softsign
from symjax.lowering.ops._nn import along, widen
from symjax.lowering.params import Params, param
from symjax.lowering.registry import SAME, ShapeLike, op

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


class ActivationParams(Params):
    act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"] = param(doc="The function.")


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": relu,
    "sigmoid": lax.logistic,
    "softrelu": jax.nn.softplus,
    "softsign": softsign,
    "tanh": jnp.tanh,
}


@op("Activation", aliases=("_npx_activation",), params=ActivationParams, shape=SAME)
def activation(p: ActivationParams, data: Array) -> Array:
    """Applies relu `max(x, 0)`, sigmoid `1 / (1 + e^-x)`, tanh, softrelu `log(1 + e^x)` or softsign `x / (1 + |x|)`."""
    return _ACTIVATIONS[p.act_type](data)


class LeakyReLUParams(Params):
    act_type: Literal["elu", "gelu", "leaky", "prelu", "rrelu", "selu"] = param("leaky", doc="The function.")
    slope: float = param(0.25, doc="Slope of leaky, scale of elu below 0.")
    lower_bound: float = param(0.125, doc="Smallest random slope of rrelu.")
    upper_bound: float = param(0.334, doc="Largest random slope of rrelu.")


def _leaky_inputs(p: LeakyReLUParams) -> tuple[str, ...]:
    return ("data", "gamma") if p.act_type == "prelu" else ("data",)


def _leaky_outputs(p: LeakyReLUParams) -> tuple[str, ...]:
    return ("output", "mask") if p.act_type == "rrelu" else ("output",)


def _infer_gamma(p: LeakyReLUParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    data = ins[0]
    if p.act_type != "prelu" or not data or ins[1]:
        return ins
    return [data, (data[1] if len(data) > 1 else 1,)]


def _negative(x: Array, f: Callable[[Array], Array]) -> Array:
    """x where positive, f(x) elsewhere; f sees 0 for positive x, so that it cannot overflow there."""
    return jnp.where(x > 0, x, f(jnp.where(x > 0, jnp.zeros((), x.dtype), x)))


_SELU_GRADIENT = habit("LeakyReLU", "The gradient of selu below 0 is scale (alpha + output).",
                       "It is the derivative, scale alpha e^x.")


@jax.custom_vjp
def _selu_as_mxnet(data: Array) -> Array:
    return _selu(data)


def _selu_backward(out: Array, head: Array) -> tuple[Array]:
    return (head * jnp.where(out > 0, _SELU_SCALE, _SELU_SCALE * (_SELU_ALPHA + out)).astype(head.dtype),)


_selu_as_mxnet.defvjp(lambda x: (_selu(x),) * 2, _selu_backward)


def _selu(data: Array) -> Array:
    return _SELU_SCALE * _negative(data, lambda x: _SELU_ALPHA * jnp.expm1(x))


def _prelu_slope(data: Array, gamma: Array) -> Array:
    if gamma.size == 1:
        return gamma.reshape((1,) * data.ndim)
    if gamma.ndim == 1 and data.ndim > 1 and gamma.shape[0] == data.shape[1]:
        return along(gamma, 1, data.ndim)
    raise ShapeError(f"argument gamma: expected shape (1,) or ({data.shape[1] if data.ndim > 1 else 1},) for data of "
                     f"shape {data.shape}, got {gamma.shape}")


def _rrelu(p: LeakyReLUParams, data: Array, train: bool, key: Array) -> tuple[Array, Array]:
    if train:
        slope = jax.random.uniform(key, data.shape, jnp.float32, p.lower_bound, p.upper_bound).astype(data.dtype)
    else:
        slope = jnp.full(data.shape, (p.lower_bound + p.upper_bound) / 2, data.dtype)
    return _negative(data, lambda x: slope * x), slope


@op("LeakyReLU", aliases=("_npx_leaky_relu",), params=LeakyReLUParams, inputs=_leaky_inputs, outputs=_leaky_outputs,
    all_inputs=("data", "gamma"), infer_inputs=_infer_gamma,
    input_attrs={"gamma": {"__init__": '["Constant", {"value": 0.25}]'}})
def leaky_relu(p: LeakyReLUParams, data: Array, gamma: Array | None = None, *, train: bool,
               key: Array) -> Array | tuple[Array, Array]:
    """Rectifiers that keep something of negative values; each is x for x > 0, and below:

    leaky `slope x`, prelu `gamma x` (gamma (C,) on axis 1, or (1,)), elu `slope (e^x - 1)`,
    selu `1.0507 · 1.6733 (e^x - 1)` (and 1.0507 x above), rrelu `r x` with r uniform in [lower_bound, upper_bound) for
    each element in training and the mean of the bounds in prediction (second output: r). gelu is
    `x Φ(x)`, Φ the normal distribution function, everywhere.
    """
    if p.act_type == "prelu":
        assert gamma is not None
        return _negative(data, lambda x: _prelu_slope(data, gamma) * x)
    if p.act_type == "rrelu":
        return _rrelu(p, data, train, key)
    if p.act_type == "gelu":
        # by erf as MXNet; jax.nn.gelu's erfc is three times slower on the CPU
        return 0.5 * data * (1 + lax.erf(data * math.sqrt(0.5)))
    if p.act_type == "elu":
        return _negative(data, lambda x: p.slope * jnp.expm1(x))
    if p.act_type == "selu":
        return _selu_as_mxnet(data) if _SELU_GRADIENT() else _selu(data)
    return _negative(data, lambda x: p.slope * x)


class SoftmaxActivationParams(Params):
    mode: Literal["channel", "instance"] = param("instance", doc="channel: over axis 1; instance: over the last axis.")


@op("SoftmaxActivation", params=SoftmaxActivationParams, shape=SAME)
def softmax_activation(p: SoftmaxActivationParams, data: Array) -> Array:
    """Softmax over axis 1 (mode channel) or the last axis (mode instance)."""
    # MXNet: its text says that "instance" normalises the whole instance, its kernel takes the last axis; its gradient
    # for more than two dimensions is that of neither, here it is the derivative.
    axis = 1 if p.mode == "channel" else -1
    return jax.nn.softmax(widen(data), axis=axis).astype(data.dtype)
