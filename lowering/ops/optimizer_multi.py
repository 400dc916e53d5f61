"""Updates of several weights in one op: inputs weight_0, grad_0, states of weight 0, weight_1, …; one output each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError
from symjax.lowering.ops import _update_rules as rules
from symjax.lowering.ops._elementwise import wide_dtype
from symjax.lowering.ops._update_rules import Hyper
from symjax.lowering.ops.optimizer_update import clipping, momentum, number, rescale
from symjax.lowering.params import Floats, Params, Shape, param
from symjax.lowering.registry import SAME, ShapeLike, op


def _count() -> Any:
    return param(1, ge=1, doc="Number of weights.")


def _lrs() -> Any:
    return param(doc="Learning rate of each weight.", traced=True)


def _wds() -> Any:
    return param(doc="Weight decay of each weight.", traced=True)


class MultiSgdParams(Params):
    lrs: Floats = _lrs()
    wds: Floats = _wds()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    num_weights: int = _count()


class MultiSgdMomParams(Params):
    lrs: Floats = _lrs()
    wds: Floats = _wds()
    momentum: float = momentum()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    num_weights: int = _count()


class PreloadedSgdParams(Params):
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    num_weights: int = _count()


class PreloadedSgdMomParams(Params):
    momentum: float = momentum()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    num_weights: int = _count()


class MultiAdamWParams(Params):
    lrs: Floats = _lrs()
    beta1: float = number(0.9, "Decay of the mean.")
    beta2: float = number(0.999, "Decay of the mean of squares.")
    epsilon: float = number(1e-8, "Added to the root.")
    wds: Floats = _wds()
    etas: Floats = param(doc="Factor of the whole step (schedule), of each weight.", traced=True)
    clip_gradient: float = clipping()
    num_weights: int = _count()


class MultiLambParams(Params):
    learning_rates: Floats = _lrs()
    beta1: float = number(0.9, "Decay of the mean.")
    beta2: float = number(0.999, "Decay of the mean of squares.")
    epsilon: float = number(1e-6, "Added to the root.")
    wds: Floats = _wds()
    rescale_grad: float = rescale()
    lower_bound: float = number(-1.0, "Least norm of a weight; negative: none.")
    upper_bound: float = number(-1.0, "Greatest norm of a weight; negative: none.")
    clip_gradient: float = clipping()
    bias_correction: bool = param(True, doc="Whether the means are divided by 1 - beta^t.")
    step_count: Shape = param(doc="Number of the update, from 1, of each weight.", traced=True)
    num_tensors: int = _count()


class _Layout:
    """The inputs of a multi op: per weight `roles`, then `tail`; `mixed` ones end each weight with its float32 copy."""

    def __init__(self, states: tuple[str, ...], mixed: bool, tail: tuple[str, ...] = (),
                 count: str = "num_weights") -> None:
        self.states = (*states, "weight32") if mixed else states
        self.roles = ("weight", "grad", *self.states)
        self.mixed, self.tail, self.count = mixed, tail, count

    def number(self, p: Any) -> int:
        return getattr(p, self.count)

    def names(self, p: Any) -> tuple[str, ...]:
        return (*(f"{r}_{i}" for i in range(self.number(p)) for r in self.roles), *self.tail)

    def aux(self, p: Any) -> tuple[str, ...]:
        return tuple(f"{s}_{i}" for i in range(self.number(p)) for s in self.states)

    def split(self, p: Any, arrays: Sequence[Any]) -> tuple[list[Sequence[Any]], Sequence[Any]]:
        """Cuts the inputs into one group per weight, and the tail."""
        k, n = len(self.roles), self.number(p)
        return [arrays[i * k:(i + 1) * k] for i in range(n)], arrays[n * k:]

    def shapes(self, p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
        groups, tail = self.split(p, ins)
        found: list[ShapeLike] = []
        for group, out in zip(groups, outs, strict=True):
            known = next((s for s in (*group, out) if s is not None), None)
            found += [known] * len(group)
        return found + [s or (self.number(p),) if n in ("lrs", "wds") else s
                        for s, n in zip(tail, self.tail, strict=True)]

    def types(self, p: Any, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None],
                                                                                  list[str | None]]:
        groups, tail = self.split(p, ins)
        shared = [g[:2] if self.mixed else g for g in groups]
        # Without float32 copies all weights are one type.
        own = [next((t for t in (*g, out) if t), None) for g, out in zip(shared, outs, strict=True)]
        known = own if self.mixed else [next((t for t in own if t), None)] * len(own)
        new_ins = [t if i < len(shared[0]) else "float32" for t in known for i in range(len(self.roles))]
        return [*new_ins, *(t or "float32" for t in tail)], known


Update = Callable[[Any, Any, int, Sequence[Any], Sequence[Array]], tuple[Array, ...]]
"""(params, dtype, index, tail and the weight as given, wide arrays) -> (new weight, new states…)."""


def _check_lengths(p: Any, n: int) -> None:
    for name in ("lrs", "wds", "etas", "learning_rates", "step_count"):
        values = getattr(p, name, None)
        if values is not None and len(values) != n:
            raise ParamError(f"parameter {name} has {len(values)} values for {n} weights")


def _register(name: str, params: type[Params], layout: _Layout, update: Update, text: str) -> None:
    def rule(p: Any, *arrays: Array) -> tuple[Array, ...]:
        groups, tail = layout.split(p, arrays)
        _check_lengths(p, len(groups))
        weights, states = [], []
        for i, (weight, grad, *state) in enumerate(groups):
            wide = jnp.dtype(jnp.float32) if layout.mixed else wide_dtype(weight.dtype)
            own = state.pop() if layout.mixed else weight
            extra = (*tail, weight.astype(wide))
            new = update(p, wide, i, extra, [x.astype(wide) for x in (own, grad, *state)])
            weights.append(new[0].astype(weight.dtype))
            states += [x.astype(s.dtype) for x, s in zip(new[1:], state, strict=True)]
            states += [new[0]] if layout.mixed else []
        return *weights, *states

    rule.__doc__ = f"Returns the updated weights. {text}" + (
        "\n\nAll is computed on the float32 copies of half-precision weights." if layout.mixed else "")
    op(name, params=params, inputs=layout.names, aux=layout.aux, aux_in_forward=True,
       outputs=layout.number, infer_inputs=layout.shapes, infer_types=layout.types, all_inputs=("*data",),
       source=f"{__file__}:{name}")(rule)


def _sgd(p: Any, dtype: Any, i: int, tail: Sequence[Any], x: Sequence[Array]) -> tuple[Array, ...]:
    return rules.sgd(Hyper(p, dtype, lr=p.lrs[i], wd=p.wds[i]), *x)


def _sgd_mom(p: Any, dtype: Any, i: int, tail: Sequence[Any], x: Sequence[Array]) -> tuple[Array, ...]:
    return rules.sgd_mom(Hyper(p, dtype, lr=p.lrs[i], wd=p.wds[i]), *x)


def _preloaded_sgd(p: Any, dtype: Any, i: int, tail: Sequence[Any], x: Sequence[Array]) -> tuple[Array, ...]:
    return rules.sgd(Hyper(p, dtype, lr=tail[0][i], wd=tail[1][i]), *x)


def _preloaded_sgd_mom(p: Any, dtype: Any, i: int, tail: Sequence[Any], x: Sequence[Array]) -> tuple[Array, ...]:
    return rules.sgd_mom(Hyper(p, dtype, lr=tail[0][i], wd=tail[1][i]), *x)


def _adamw(p: Any, dtype: Any, i: int, tail: Sequence[Any], x: Sequence[Array]) -> tuple[Array, ...]:
    scale = tail[0].reshape(())
    return rules.adamw(Hyper(p, dtype, lr=p.lrs[i], wd=p.wds[i], eta=p.etas[i], rescale_grad=scale), *x)


def _lamb(p: Any, dtype: Any, i: int, tail: Sequence[Any], x: Sequence[Array]) -> tuple[Array, ...]:
    h = Hyper(p, dtype, lr=p.learning_rates[i], wd=p.wds[i], t=p.step_count[i])
    direction, mean, var = rules.lamb_direction(h, p.bias_correction, *x)
    # MXNet: the norm is that of the half-precision weight, not of its float32 copy.
    rate = rules.lamb_rate(h, jnp.sqrt(jnp.sum(jnp.square(tail[-1]))), jnp.sqrt(jnp.sum(jnp.square(direction))))
    return x[0] - rate * direction, mean, var


_SGD, _MOM = "w - lr (g + wd w), each with its lr and wd.", "m = momentum m - lr (g + wd w); w + m."
_LOADED = " lr and wd are arrays, `lrs` and `wds`, with one number per weight."
_register("multi_sgd_update", MultiSgdParams, _Layout((), False), _sgd, _SGD)
_register("multi_mp_sgd_update", MultiSgdParams, _Layout((), True), _sgd, _SGD)
_register("multi_sgd_mom_update", MultiSgdMomParams, _Layout(("mom",), False), _sgd_mom, _MOM)
_register("multi_mp_sgd_mom_update", MultiSgdMomParams, _Layout(("mom",), True), _sgd_mom, _MOM)
_register("preloaded_multi_sgd_update", PreloadedSgdParams, _Layout((), False, ("lrs", "wds")), _preloaded_sgd,
          _SGD + _LOADED)
_register("preloaded_multi_mp_sgd_update", PreloadedSgdParams, _Layout((), True, ("lrs", "wds")), _preloaded_sgd,
          _SGD + _LOADED)
_register("preloaded_multi_sgd_mom_update", PreloadedSgdMomParams, _Layout(("mom",), False, ("lrs", "wds")),
          _preloaded_sgd_mom, _MOM + _LOADED)
_register("preloaded_multi_mp_sgd_mom_update", PreloadedSgdMomParams, _Layout(("mom",), True, ("lrs", "wds")),
          _preloaded_sgd_mom, _MOM + _LOADED)
_ADAMW = "w - eta (lr mean / (sqrt(var) + epsilon) + wd w); nothing changes where `rescale_grad` is 0 or not finite."
_register("_multi_adamw_update", MultiAdamWParams, _Layout(("mean", "var"), False, ("rescale_grad",)), _adamw, _ADAMW)
_register("_multi_mp_adamw_update", MultiAdamWParams, _Layout(("mean", "var"), True, ("rescale_grad",)), _adamw, _ADAMW)
_LAMB = "w - lr |w| / |d| d, d = mean / (sqrt(var) + epsilon) + wd w, for each weight."
_register("_multi_lamb_update", MultiLambParams, _Layout(("mean", "var"), False, (), "num_tensors"), _lamb, _LAMB)
_register("_multi_mp_lamb_update", MultiLambParams, _Layout(("mean", "var"), True, (), "num_tensors"), _lamb, _LAMB)


class MultiLarsParams(Params):
    eta: float = param(doc="Coefficient of trust.", traced=True)
    eps: float = param(doc="Added to the denominator.", traced=True)
    rescale_grad: float = rescale()


@op("multi_lars", params=MultiLarsParams, shape=SAME)
def multi_lars(p: MultiLarsParams, lrs: Array, weights_sum_sq: Array, grads_sum_sq: Array, wds: Array) -> Array:
    """Returns lr eta |w| / (|g| + wd |w| + eps) for each layer, from sums of squares; lr where a norm is 0."""
    h = Hyper(p, lrs.dtype)
    weight, grad = jnp.sqrt(weights_sum_sq), h.rescale_grad * jnp.sqrt(grads_sum_sq)
    trust = h.eta * weight / (grad + wds * weight + h.eps)
    return lrs * jnp.where((weights_sum_sq > 0) & (grads_sum_sq > 0), trust, 1)


class ResetArraysParams(Params):
    num_arrays: int = param(doc="Number of arrays.", ge=1)


def _array_names(p: ResetArraysParams) -> tuple[str, ...]:
    return tuple(f"array_{i}" for i in range(p.num_arrays))


@op("reset_arrays", params=ResetArraysParams, variadic="num_arrays", outputs=(),
    inputs=_array_names, aux=_array_names, aux_in_forward=True, infer_types=lambda p, ins, outs: (ins, outs))
def reset_arrays(p: ResetArraysParams, *data: Array) -> tuple[Array, ...]:
    """Sets all arrays to zero; there is no output."""
    return tuple(jnp.zeros_like(a) for a in data)
