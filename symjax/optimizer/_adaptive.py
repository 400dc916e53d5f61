"""Optimizers with a rate for each number: Adam and its kin, AdaGrad, AdaDelta, RMSProp, Ftrl, FTML, LAMB."""

from __future__ import annotations

import math
import os
from typing import Any

from symjax.ndarray import NDArray
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.elementwise import op_named
from symjax.optimizer._base import Index, Optimizer, register, run, zeros_like


class _TwoMoments(Optimizer):
    """An optimizer that remembers two arrays of the weight's shape."""

    def create_state(self, index: Index, weight: NDArray) -> Any:
        stype = self._state_stype(weight)
        return zeros_like(weight, stype), zeros_like(weight, stype)

    def _state_stype(self, weight: NDArray) -> str:
        """The storage type of the states of a weight."""
        return "default"


@register
class Adam(_TwoMoments):
    """Adam: means m and v of d = g + wd w and d^2; w - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon).

    MXNet: wd is part of the gradient, and is added before clipping; epsilon stands outside the root.

    Args:
      learning_rate: the rate.
      beta1, beta2: decays of the means.
      epsilon: keeps the divisor from 0.
      lazy_update: whether a row_sparse gradient changes its own rows alone, of the means too, if they are of the
        weight's storage type; no effect on dense ones.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy_update = lazy_update

    def _state_stype(self, weight: NDArray) -> str:
        return weight.stype if self.lazy_update else "default"

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = self._begin(index, weight, grad)
        if not self.lazy_update:
            params["lazy_update"] = False
        t = self._index_update_count[index]
        params["lr"] *= math.sqrt(1.0 - self.beta2**t) / (1.0 - self.beta1**t)
        params["beta1"], params["beta2"], params["epsilon"] = self.beta1, self.beta2, self.epsilon
        run("adam_update", (weight, grad, *state), params)


@register
class Adamax(_TwoMoments):
    """Adam in the infinity norm: u = max(beta2 u, |d|) of d = g + wd w; w - lr / (1 - beta1^t) m / u.

    MXNet: NaN where the gradient has always been 0.

    Args:
      learning_rate: the rate.
      beta1, beta2: decays of m and u.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = {**self._begin(index, weight, grad), **self._clipping(), "beta1": self.beta1, "beta2": self.beta2}
        params["lr"] /= 1.0 - self.beta1 ** self._index_update_count[index]
        run("_symjax_adamax_update", (weight, grad, *state), params)


@register
class Nadam(_TwoMoments):
    """Adam with Nesterov's momentum.

    With p(t) = beta1 (1 - 0.96^(t schedule_decay) / 2) and P the product of all p so far:
    w - lr ((1 - p(t)) d / (1 - P) + p(t + 1) m / (1 - P p(t + 1))) / (sqrt(v / (1 - beta2^t)) + epsilon), d = g + wd w.

    MXNet: P is one product for all weights, so that it depends on how many there are.

    Args:
      learning_rate: the rate.
      beta1, beta2: decays of the means m and v of d and d^2.
      epsilon: keeps the divisor from 0.
      schedule_decay: see above.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 schedule_decay: float = 0.004, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay
        self.m_schedule = 1.0

    def _momentum(self, t: int) -> float:
        return self.beta1 * (1.0 - 0.5 * pow(0.96, t * self.schedule_decay))

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = {**self._begin(index, weight, grad), **self._clipping()}
        t = self._index_update_count[index]
        now, then = self._momentum(t), self._momentum(t + 1)
        self.m_schedule = self.m_schedule * now
        scales = {"grad_scale": (1.0 - now) / (1.0 - self.m_schedule),
                  "mean_scale": then / (1.0 - self.m_schedule * then),
                  "var_scale": 1.0 / (1.0 - pow(self.beta2, t))}
        run("_symjax_nadam_update", (weight, grad, *state),
            {**params, **scales, "beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon})


@register
class AdaGrad(Optimizer):
    """AdaGrad: h = h + g^2; w - lr (g / sqrt(h + eps) + wd w).

    A row_sparse gradient changes its own rows of w and h alone; wd must be 0 then.

    Args:
      eps: keeps the divisor from 0.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Index, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype)

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = {**self._begin(index, weight, grad), "epsilon": self.float_stable_eps}
        if grad.stype == "default":
            params.update(self._clipping())
        run("_sparse_adagrad_update", (weight, grad, state), params)


@register
class AdaDelta(_TwoMoments):
    """AdaDelta: d = sqrt(mean of d^2 + epsilon) / sqrt(mean of g^2 + epsilon) g; w - d - wd w. No learning rate.

    Args:
      rho: decay of the means.
      epsilon: keeps the divisor from 0.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        # MXNet: leaves the caller's gradient multiplied by rescale_grad.
        self._check(index, weight, grad)
        self._update_count(index)
        run("_symjax_adadelta_update", (weight, grad, *state),
            {"wd": self._get_wd(index), "rho": self.rho, "epsilon": self.epsilon, "rescale_grad": self.rescale_grad,
             **self._clipping()})


@register
class RMSProp(Optimizer):
    """RMSProp: n = mean of d^2, d = g + wd w; w - lr d / sqrt(n + epsilon).

    Centred: the divisor is sqrt(n - (mean of d)^2 + epsilon), and gamma2 of the last step is added.

    Args:
      learning_rate: the rate.
      gamma1: decay of the means.
      gamma2: share of the last step that is kept, if `centered`.
      epsilon: keeps the divisor from 0.
      centered: see above.
      clip_weights: bound of the new weight's magnitude.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.001, gamma1: float = 0.9, gamma2: float = 0.9, epsilon: float = 1e-8,
                 centered: bool = False, clip_weights: float | None = None, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.centered = centered
        self.epsilon = epsilon
        self.clip_weights = clip_weights

    def create_state(self, index: Index, weight: NDArray) -> Any:
        return tuple(zeros_like(weight, weight.stype) for _ in range(3 if self.centered else 1))

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = {**self._begin(index, weight, grad), "gamma1": self.gamma1, "epsilon": self.epsilon}
        if self.clip_weights:
            params["clip_weights"] = self.clip_weights
        if self.centered:
            run("rmspropalex_update", (weight, grad, *state), {**params, "gamma2": self.gamma2})
        else:
            run("rmsprop_update", (weight, grad, *state), params)


@register
class Ftrl(_TwoMoments):
    """Follow the regularised leader: z = z + g - (sqrt(n + g^2) - sqrt(n)) w / lr; n = n + g^2;
    w = (sign(z) lamda1 - z) / ((beta + sqrt(n)) / lr + wd) where |z| > lamda1, else 0.

    If weight and gradient are row_sparse, the gradient's rows alone change.

    Args:
      lamda1: strength of the L1 penalty.
      learning_rate: the rate; unlike that of other optimizers it leaves a scheduler alone.
      beta: smooths the rate of each number.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lamda1 = lamda1
        self.beta = beta
        self.lr = learning_rate

    def _state_stype(self, weight: NDArray) -> str:
        return weight.stype

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = {**self._begin(index, weight, grad), "lamda1": self.lamda1, "beta": self.beta}
        run("ftrl_update", (weight, grad, *state), params)


@register
class FTML(Optimizer):
    """Follow the moving leader: d = (1 - beta1^t)/lr (sqrt(v / (1 - beta2^t)) + epsilon); z is the mean of
    g + wd w less (d - beta1 d_before) w; w = -z / d.

    Args:
      beta1, beta2: decays of the means.
      epsilon: keeps the divisor from 0.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Index, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight), zeros_like(weight)

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = self._begin(index, weight, grad)
        if "clip_gradient" in params:
            params["clip_grad"] = params.pop("clip_gradient")
        t = self._index_update_count[index]
        run("ftml_update", (weight, grad, *state),
            {**params, "beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon, "t": t})


@register
class LAMB(_TwoMoments):
    """Adam with a rate for each layer: d = m / (sqrt(v) + epsilon) + wd w; w - lr |w| / |d| d.

    Args:
      learning_rate: the rate.
      beta1, beta2: decays of the means m and v of g and g^2.
      epsilon: keeps the divisor from 0.
      lower_bound, upper_bound: of |w| in the step.
      bias_correction: divide the means by 1 - beta^t.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 lower_bound: float | None = None, upper_bound: float | None = None, bias_correction: bool = True,
                 **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction
        self.aggregate_num = max(1, min(45, int(os.getenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "45"))))

    def _state_stype(self, weight: NDArray) -> str:
        return weight.stype

    def _each(self, index: Any, weight: Any, grad: Any, state: Any, multi: bool) -> None:
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = (index,), (weight,), (grad,), (state,)
        for i, w, g, s in zip(index, weight, grad, state, strict=True):
            self._one(i, w, g, s, multi and self._is_mixed(w))

    def _one(self, index: Index, weight: NDArray, grad: NDArray, state: Any, mixed: bool) -> None:
        params = self._begin(index, weight, grad)
        rate = {"lr": params.pop("lr")}
        if self.lower_bound:
            rate["lower_bound"] = self.lower_bound
        if self.upper_bound:
            rate["upper_bound"] = self.upper_bound
        params.update(beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon, t=self._index_update_count[index],
                      bias_correction=self.bias_correction)
        copy, (mean, var) = state if mixed else (None, state)
        own, prefix = ([copy], "mp_") if mixed else ([], "")
        step = invoke(op_named(f"{prefix}lamb_update_phase1"), (weight, grad, mean, var, *own), params)
        # MXNet: the norm is that of the half-precision weight, not of its float32 copy.
        norms = [_norm(x, "float32" if mixed else weight._dtype.name) for x in (weight, step)]
        invoke(op_named(f"{prefix}lamb_update_phase2"), (weight, step, *norms, *own), rate, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates one weight, or lists of them; see `Optimizer.update`."""
        self._each(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates one weight, or lists of them, each by way of its float32 copy if it has one."""
        self._each(index, weight, grad, state, True)


def _norm(x: NDArray, dtype: str) -> NDArray:
    """The Euclidean norm, of shape (1,)."""
    return invoke(op_named("norm"), (x,), {} if x._dtype.name == dtype else {"out_dtype": dtype})
