"""The formulas of the optimizers' updates, on arrays of one wide type.

A formula takes hyper-parameters `h`, the weight w, its gradient g and the optimizer's states, and returns the new
weight and the new states.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from symjax.lowering.habits import habit
from symjax.lowering.ops._elementwise import scalar_as


class Hyper:
    """The numbers of a parameter set as constants of one dtype, read as attributes."""

    def __init__(self, params: Any, dtype: Any, **replaced: Any) -> None:
        self._params, self._dtype, self._replaced = params, dtype, replaced

    def __getattr__(self, name: str) -> Array:
        value = self._replaced[name] if name in self._replaced else getattr(self._params, name)
        return scalar_as(value, self._dtype)

    def rest(self, name: str) -> Array:
        """1 - a number, before it is rounded to the dtype: in float32, 1 - 0.999 has but four digits."""
        return scalar_as(1 - getattr(self._params, name), self._dtype)


def limited(x: Array, bound: Array) -> Array:
    """Limits x to [-bound, bound]; a negative bound is none."""
    return jnp.where(bound >= 0, jnp.clip(x, -bound, bound), x)


def gradient(h: Hyper, g: Array) -> Array:
    """The rescaled, then clipped gradient."""
    return limited(h.rescale_grad * g, h.clip_gradient)


def decayed(h: Hyper, w: Array, g: Array) -> Array:
    """The rescaled gradient with weight decay, then clipped."""
    return limited(h.rescale_grad * g + h.wd * w, h.clip_gradient)


def sgd(h: Any, w: Array, g: Array) -> tuple[Array]:
    """w - lr (g + wd w)."""
    return (w - h.lr * (gradient(h, g) + h.wd * w),)


def sgd_mom(h: Any, w: Array, g: Array, mom: Array) -> tuple[Array, Array]:
    """m = momentum m - lr (g + wd w); w + m."""
    mom = h.momentum * mom - h.lr * (gradient(h, g) + h.wd * w)
    return w + mom, mom


_NEW_WEIGHT = habit(("nag_mom_update", "mp_nag_mom_update"),
                    "In place, the momentum takes in the decay of the weight that was just updated.",
                    "It takes in that of the weight before the update, like the weight itself.")


def nag(h: Any, w: Array, g: Array, mom: Array) -> tuple[Array, Array]:
    """d = g + wd w; m = momentum m - lr d; w + momentum m - lr d."""
    step = h.lr * (gradient(h, g) + h.wd * w)
    new = h.momentum * mom - step
    out = w + h.momentum * new - step
    if _NEW_WEIGHT():
        new = h.momentum * mom - h.lr * (gradient(h, g) + h.wd * out)
    return out, new


def _moments(h: Any, g: Array, mean: Array, var: Array) -> tuple[Array, Array]:
    return h.beta1 * mean + (1 - h.beta1) * g, h.beta2 * var + (1 - h.beta2) * jnp.square(g)


def adam(h: Any, w: Array, g: Array, mean: Array, var: Array) -> tuple[Array, ...]:
    """Means of d = g + wd w and of d^2; w - lr mean / (sqrt(var) + epsilon). Bias correction is the caller's."""
    mean, var = _moments(h, decayed(h, w, g), mean, var)
    return w - h.lr * mean / (jnp.sqrt(var) + h.epsilon), mean, var


def adamw(h: Any, w: Array, g: Array, mean: Array, var: Array) -> tuple[Array, ...]:
    """Means of g and g^2; w - eta (lr mean / (sqrt(var) + epsilon) + wd w). A bad `rescale_grad` changes nothing."""
    scale = h.rescale_grad
    new_mean, new_var = _moments(h, gradient(h, g), mean, var)
    new_w = w - h.eta * (h.lr * new_mean / (jnp.sqrt(new_var) + h.epsilon) + h.wd * w)
    good = jnp.isfinite(scale) & (scale != 0)
    return jnp.where(good, new_w, w), jnp.where(good, new_mean, mean), jnp.where(good, new_var, var)


def rmsprop(h: Any, w: Array, g: Array, n: Array) -> tuple[Array, Array]:
    """d = g + wd w; n = mean of d^2; w - lr d / sqrt(n + epsilon)."""
    d = decayed(h, w, g)
    n = h.gamma1 * n + (1 - h.gamma1) * jnp.square(d)
    return limited(w - h.lr * d / jnp.sqrt(n + h.epsilon), h.clip_weights), n


def rmsprop_alex(h: Any, w: Array, g: Array, n: Array, mean: Array, delta: Array) -> tuple[Array, ...]:
    """As rmsprop, centred and with momentum: delta = gamma2 delta - lr d / sqrt(n - mean^2 + epsilon); w + delta."""
    d = decayed(h, w, g)
    n = h.gamma1 * n + (1 - h.gamma1) * jnp.square(d)
    mean = h.gamma1 * mean + (1 - h.gamma1) * d
    delta = h.gamma2 * delta - h.lr * d / jnp.sqrt(n - jnp.square(mean) + h.epsilon)
    return limited(w + delta, h.clip_weights), n, mean, delta


def ftrl(h: Any, w: Array, g: Array, z: Array, n: Array) -> tuple[Array, ...]:
    """Follow the regularised leader: w = (sign(z) lamda1 - z) / ((beta + sqrt n)/lr + wd) if |z| > lamda1, else 0."""
    g = gradient(h, g)
    new_n = n + jnp.square(g)
    z = z + g - (jnp.sqrt(new_n) - jnp.sqrt(n)) * w / h.lr
    w = (jnp.sign(z) * h.lamda1 - z) / ((h.beta + jnp.sqrt(new_n)) / h.lr + h.wd)
    return jnp.where(jnp.abs(z) > h.lamda1, w, 0), z, new_n


def ftml(h: Any, w: Array, g: Array, d: Array, v: Array, z: Array) -> tuple[Array, ...]:
    """Follow the moving leader: d_t = (1 - beta1^t)/lr (sqrt(v/(1 - beta2^t)) + epsilon); w = -z / d_t."""
    g = limited(h.rescale_grad * g + h.wd * w, h.clip_grad)
    v = h.beta2 * v + (1 - h.beta2) * jnp.square(g)
    new_d = (1 - h.beta1 ** h.t) / h.lr * (jnp.sqrt(v / (1 - h.beta2 ** h.t)) + h.epsilon)
    z = h.beta1 * z + (1 - h.beta1) * g - (new_d - h.beta1 * d) * w
    return -z / new_d, new_d, v, z


def signsgd(h: Any, w: Array, g: Array) -> tuple[Array]:
    """(1 - lr wd) w - lr sign(g); neither rescaling nor clipping changes the sign."""
    return ((1 - h.lr * h.wd) * w - h.lr * jnp.sign(g),)


def signum(h: Any, w: Array, g: Array, mom: Array) -> tuple[Array, Array]:
    """m = momentum m - (1 - momentum)(g + wd w); (1 - lr wd_lh) w + lr sign(m)."""
    mom = h.momentum * mom - (1 - h.momentum) * (gradient(h, g) + h.wd * w)
    return (1 - h.lr * h.wd_lh) * w + h.lr * jnp.sign(mom), mom


def lamb_direction(h: Any, correct: bool, w: Array, g: Array, mean: Array, var: Array) -> tuple[Array, ...]:
    """mean / (sqrt(var) + epsilon) + wd w, with means of g and g^2, divided by 1 - beta^t where `correct`."""
    mean, var = _moments(h, gradient(h, g), mean, var)
    m, v = (mean / (1 - h.beta1 ** h.t), var / (1 - h.beta2 ** h.t)) if correct else (mean, var)
    return m / (jnp.sqrt(v) + h.epsilon) + h.wd * w, mean, var


def lamb_rate(h: Any, r1: Array, r2: Array) -> Array:
    """lr r1 / r2 with the weight's norm r1 within its bounds; lr where a norm is 0."""
    low, high = h.lower_bound, h.upper_bound
    r1 = jnp.where(low >= 0, jnp.maximum(r1, low), r1)
    r1 = jnp.where(high >= 0, jnp.minimum(r1, high), r1)
    usable = (r1 != 0) & (r2 != 0)
    return h.lr * jnp.where(usable, r1 / jnp.where(usable, r2, 1), 1)


def adagrad(h: Any, w: Array, g: Array, history: Array) -> tuple[Array, Array]:
    """h = h + g^2; w - lr (g / sqrt(h + epsilon) + wd w)."""
    g = gradient(h, g)
    history = history + jnp.square(g)
    return w - h.lr * (g / jnp.sqrt(history + h.epsilon) + h.wd * w), history


def group_adagrad(h: Any, w: Array, g: Array, history: Array) -> tuple[Array, Array]:
    """h = h + mean of the row's g^2, one for each row; w - lr g / sqrt(h + epsilon). Without weight decay."""
    g = gradient(h, g)
    rows = jnp.mean(jnp.square(g).reshape(g.shape[0], -1), axis=1)
    new = history.reshape(rows.shape) + rows
    scale = h.lr / jnp.sqrt(new + h.epsilon)
    return w - g * scale.reshape((-1,) + (1,) * (g.ndim - 1)), new.reshape(history.shape)


def adadelta(h: Any, w: Array, g: Array, acc_g: Array, acc_delta: Array) -> tuple[Array, ...]:
    """a = mean of g^2; delta = sqrt(mean of delta^2 + epsilon) / sqrt(a + epsilon) g; w - delta - wd w."""
    g = gradient(h, g)
    acc_g = h.rho * acc_g + h.rest("rho") * jnp.square(g)
    delta = jnp.sqrt(acc_delta + h.epsilon) / jnp.sqrt(acc_g + h.epsilon) * g
    return w - delta - h.wd * w, acc_g, h.rho * acc_delta + h.rest("rho") * jnp.square(delta)


def adamax(h: Any, w: Array, g: Array, mean: Array, peak: Array) -> tuple[Array, ...]:
    """m = mean of d = g + wd w; u = max(beta2 u, |d|); w - lr m / u. Bias correction is the caller's."""
    d = decayed(h, w, g)
    mean = h.beta1 * mean + h.rest("beta1") * d
    peak = jnp.maximum(h.beta2 * peak, jnp.abs(d))
    # MXNet: 0 / 0 where the gradient has always been 0.
    return w - h.lr * mean / peak, mean, peak


def nadam(h: Any, w: Array, g: Array, mean: Array, var: Array) -> tuple[Array, ...]:
    """Means of d = g + wd w and d^2; w - lr (a d + b mean) / (sqrt(c var) + epsilon); the caller gives a, b and c."""
    d = decayed(h, w, g)
    mean = h.beta1 * mean + h.rest("beta1") * d
    var = h.beta2 * var + h.rest("beta2") * jnp.square(d)
    step = h.grad_scale * d + h.mean_scale * mean
    return w - h.lr * step / (jnp.sqrt(h.var_scale * var) + h.epsilon), mean, var


def _compensated(h: Any, w: Array, g: Array, previous: Array) -> Array:
    g = gradient(h, g)
    return h.lr * (g + h.wd * w + h.lamda * jnp.square(g) * (w - previous))


def dcasgd(h: Any, w: Array, g: Array, previous: Array) -> tuple[Array, Array]:
    """w - lr (g + wd w + lamda g^2 (w - previous)); previous = w."""
    return w - _compensated(h, w, g, previous), w


def dcasgd_mom(h: Any, w: Array, g: Array, mom: Array, previous: Array) -> tuple[Array, ...]:
    """m = momentum m - lr (g + wd w + lamda g^2 (w - previous)); w + m; previous = w."""
    mom = h.momentum * mom - _compensated(h, w, g, previous)
    return w + mom, mom, w


def sgld(h: Any, w: Array, g: Array, noise: Array) -> Array:
    """w - lr/2 (g + wd w) + sqrt(lr) noise."""
    return w - h.lr / 2 * (gradient(h, g) + h.wd * w) + jnp.sqrt(h.lr) * noise
