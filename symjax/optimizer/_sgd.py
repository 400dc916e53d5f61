"""SGD and its kin: momentum, Nesterov, signs, layer-wise rates, large batches, delay compensation, Langevin noise."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from symjax.ndarray import NDArray, array
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.elementwise import op_named
from symjax.optimizer._base import Index, Optimizer, register, run, zeros_like


class _Momentum(Optimizer):
    """An optimizer whose state is a momentum, or None; in mixed precision (momentum, float32 copy)."""

    momentum: float
    lazy_update: bool = True

    def create_state_multi_precision(self, index: Index, weight: NDArray) -> Any:
        if self._is_mixed(weight):
            copy: Any = weight.astype(np.float32)
            return self.create_state(index, copy), copy
        self._warn_of_half(weight)
        return self.create_state(index, weight)

    def create_state(self, index: Index, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype if self.lazy_update else "default") if self.momentum != 0.0 else None

    def _step(self, index: Index, weight: NDArray, grad: NDArray, state: Any, mixed: bool, names: tuple[str, str],
              params: dict[str, Any]) -> None:
        """Calls names[0] (plain) or names[1] (with momentum), or the op of that name for mixed precision."""
        mom, copy = state if mixed else (state, None)
        arrays = [weight, grad]
        if mom is not None:
            arrays.append(mom)
            if self.momentum > 0:
                params["momentum"] = self.momentum
        if copy is not None:
            arrays.append(copy)
        run(("mp_" if mixed else "") + names[mom is not None], arrays, params)


@register
class SGD(_Momentum):
    """Stochastic gradient descent: m = momentum m - lr (g + wd w); w + m; g is the rescaled, clipped gradient.

    Args:
      momentum: share of the last step that is kept.
      lazy_update: whether a row_sparse gradient changes its own rows alone: no decay and no momentum elsewhere. Without
        effect on dense ones, and with a float32 copy (`multi_precision`).
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update
        self.aggregate_num = int(os.getenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "4"))

    def _each(self, index: Any, weight: Any, grad: Any, state: Any, multi: bool) -> None:
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = (index,), (weight,), (grad,), (state,)
        self._update_count(index)
        for i, w, g, s in zip(index, weight, grad, state, strict=True):
            self._check(i, w, g)
            params = self._common(self._get_lr(i), self._get_wd(i))
            mixed = multi and self._is_mixed(w)
            if not (self.lazy_update or mixed):
                params["lazy_update"] = False
            self._step(i, w, g, s, mixed, ("sgd_update", "sgd_mom_update"), params)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates one weight, or lists of them; see `Optimizer.update`."""
        self._each(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates one weight, or lists of them, each by way of its float32 copy if it has one."""
        self._each(index, weight, grad, state, True)


@register
class ccSGD(SGD):
    """Deprecated name of `SGD`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


@register
class NAG(_Momentum):
    """Nesterov's accelerated gradient: m = momentum m - lr (g + wd w); w + momentum m - lr (g + wd w).

    Args:
      momentum: share of the last step that is kept.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum

    def _one(self, index: Index, weight: NDArray, grad: NDArray, state: Any, mixed: bool) -> None:
        params = self._begin(index, weight, grad)
        self._step(index, weight, grad, state, mixed, ("sgd_update", "nag_mom_update"), params)

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._one(index, weight, grad, state, False)

    def update_multi_precision(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._one(index, weight, grad, state, self._is_mixed(weight))


@register
class Signum(Optimizer):
    """Sign of the momentum: m = momentum m - (1 - momentum)(g + wd w); (1 - lr wd_lh) w + lr sign(m).

    Args:
      learning_rate: the rate.
      momentum: share of m that is kept; with 0 the sign of the gradient alone counts.
      wd_lh: weight decay outside the sign.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: Index, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype) if self.momentum != 0.0 else None

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = self._begin(index, weight, grad)
        if state is None:
            # Here wd decays outside of the sign too. MXNet: an error with wd_lh.
            run("signsgd_update", (weight, grad), {**params, "wd": params["wd"] + self.wd_lh})
        else:
            run("signum_update", (weight, grad, state), {**params, "momentum": self.momentum, "wd_lh": self.wd_lh})


@register
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: w - lr/2 (g + wd w) + normal noise of variance lr.

    Args:
      **kwargs: those of `Optimizer`.
    """

    draws_noise = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._check(index, weight, grad)
        self._update_count(index)
        run("_symjax_sgld_update", (weight, grad), {"lr": self._get_lr(index), "wd": self._get_wd(index),
                                                    "rescale_grad": self.rescale_grad, **self._clipping()})


@register
class DCASGD(Optimizer):
    """Asynchronous SGD with delay compensation: m = momentum m - lr (g + wd w + lamda g^2 (w - previous w)); w + m.

    Args:
      momentum: share of the last step that is kept (MXNet fails with one).
      lamda: strength of the compensation.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.weight_previous: dict[Index, NDArray] = {}
        self.lamda = lamda

    def create_state(self, index: Index, weight: NDArray) -> Any:
        return (zeros_like(weight) if self.momentum != 0.0 else None), weight.copy()

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._check(index, weight, grad)
        self._update_count(index)
        params = {"lr": self._get_lr(index), "wd": self._get_wd(index), "lamda": self.lamda,
                  "rescale_grad": self.rescale_grad, **self._clipping()}
        mom, previous = state
        if mom is None:
            run("_symjax_dcasgd_update", (weight, grad, previous), params)
        else:
            run("_symjax_dcasgd_mom_update", (weight, grad, mom, previous), {**params, "momentum": self.momentum})


@register
class LARS(_Momentum):
    """SGD with a rate for each layer: lr eta |w| / (|g| + wd |w| + eps), lr for biases, gammas, betas and zero norms.

    Args:
      momentum: share of the last step that is kept.
      lazy_update: of sparse gradients; no effect on dense ones.
      eta, eps: see above.
      momentum_correction: scale the momentum by (rate now / rate of the last update).
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, eta: float = 0.001, eps: float = 0,
                 momentum_correction: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.momentum_correction = momentum_correction
        self.lazy_update = lazy_update
        self.aggregate_num = int(os.getenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "4"))
        self.eta = eta
        self.eps = eps
        self.skip = 0
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    def set_wd_mult(self, args_wd_mult: Any) -> None:
        """Sets multipliers of the weight decay; by default 0 for every known name that does not end in `_weight`."""
        self.wd_mult = {n: 0.0 for n in self.idx2name.values() if not n.endswith("_weight")}
        self.wd_mult.update(self._of_symbol("__wd_mult__"))
        self.wd_mult.update(args_wd_mult)

    def _get_lrs(self, indices: Sequence[Index]) -> list[float]:
        lr = self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)
        self.last_lr = lr if self.cur_lr is None else self.cur_lr
        self.cur_lr = lr
        return [lr * self._multiplier(i, "lr_mult", self.lr_mult) for i in indices]

    def _scaled(self, index: Index) -> bool:
        """Whether the weight has a rate of its own."""
        return not self.idx2name.get(index, str(index)).endswith(("gamma", "beta", "bias"))

    def _each(self, index: Any, weight: Any, grad: Any, state: Any, multi: bool) -> None:
        if not isinstance(index, (list, tuple)):
            index, weight, grad, state = (index,), (weight,), (grad,), (state,)
        self._update_count(index)
        lrs, wds = self._get_lrs(index), self._get_wds(index)
        params: dict[str, Any] = {"rescale_grad": self.rescale_grad}
        if self.momentum > 0:
            params["momentum"] = self.momentum
            if self.momentum_correction and self.last_lr and self.cur_lr is not None:
                params["momentum"] = self.momentum * (self.cur_lr / self.last_lr)
        if self.clip_gradient:
            params["clip_gradient"] = self.clip_gradient
        for i, w, g, s, lr, wd in zip(index, weight, grad, state, lrs, wds, strict=True):
            self._check(i, w, g)
            self._one(i, w, g, s, lr, wd, multi and self._is_mixed(w), params)

    def _one(self, index: Index, weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float, mixed: bool,
             params: dict[str, Any]) -> None:
        rate = array([lr], ctx=weight.context)
        decay = array([wd], ctx=weight.context)
        if self._scaled(index):
            sums = [invoke(op_named("multi_sum_sq"), (x,), {"num_arrays": 1}) for x in (weight, grad)]
            rate = invoke(op_named("multi_lars"), (rate, *sums, decay),
                          {"eta": self.eta, "eps": self.eps, "rescale_grad": self.rescale_grad})
        mom, copy = state if mixed else (state, None)
        use = mom is not None and self.momentum > 0
        arrays = [weight, grad, *([mom] if use else []), *([copy] if mixed else []), rate, decay]
        name = f"preloaded_multi_{'mp_' if mixed else ''}sgd_{'mom_' if use else ''}update"
        invoke(op_named(name), arrays, {**params, "num_weights": 1}, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates one weight, or lists of them; see `Optimizer.update`."""
        self._each(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Updates one weight, or lists of them, each by way of its float32 copy if it has one."""
        self._each(index, weight, grad, state, True)


@register
class LBSGD(Optimizer):
    """SGD for large batches: gradients of `batch_scale` calls are averaged, and the rate warms up with the epochs.

    Args:
      momentum: share of the last step that is kept.
      multi_precision: see `Optimizer`.
      warmup_strategy: "linear", "power2" or "sqrt": how the factor of the rate goes from 1 to `batch_scale`; "lars":
        the rate is scaled by sqrt(|w|^2 / (|g|^2 + wd |w|^2)) instead, within 0.01 and 100.
      warmup_epochs: length of the warm-up.
      batch_scale: how many gradients make one update.
      updates_per_epoch: calls per epoch.
      begin_epoch: epochs done before.
      num_epochs: kept, without effect.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, momentum: float = 0.0, multi_precision: bool = False, warmup_strategy: str = "linear",
                 warmup_epochs: int = 5, batch_scale: int = 1, updates_per_epoch: int = 32, begin_epoch: int = 0,
                 num_epochs: int = 60, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        logging.info("Large-batch SGD: batch_scale=%f, warmup_epochs=%d, warmup_strategy=%s, updates_per_epoch=%d",
                     batch_scale, warmup_epochs, warmup_strategy, updates_per_epoch)
        self.momentum = momentum
        self.multi_precision = multi_precision
        self.warmup_strategy = warmup_strategy
        self.warmup_epochs = warmup_epochs
        self.batch_scale = batch_scale
        self.updates_per_epoch = updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs
        self.lbmult = 1
        self.cumgrads: dict[Index, dict[str, Any]] = {}
        self.adaptive = False
        self.admult = 1

    def create_state(self, index: Index, weight: NDArray) -> Any:
        return zeros_like(weight, weight.stype) if self.momentum != 0.0 else None

    def _get_lbmult(self, nup: int) -> float:
        """The factor of the rate at a number of calls."""
        end, top = self.warmup_epochs * self.updates_per_epoch, float(self.batch_scale)
        if nup >= end:
            return top
        if end <= 1:
            return 1.0
        share = {"linear": nup / end, "power2": (nup * nup) / (end * end), "sqrt": math.sqrt(float(nup) / end)}
        return 1.0 + (top - 1) * share.get(self.warmup_strategy, 0.0)

    def _get_lars(self, weight: NDArray, grad: NDArray, wd: float) -> float:
        w2, g2 = (float((x * x).asnumpy().sum()) for x in (weight, grad))
        return min(max(math.sqrt(w2 / (g2 + wd * w2 + 1e-18)), 0.01), 100)

    def _cumulate(self, grad: NDArray, index: Index) -> dict[str, Any]:
        """Adds a gradient to the sum of this batch and counts it."""
        known = self.cumgrads.get(index)
        count = self.init_updates + 1 if known is None else known["num_cums"] + 1
        total = grad.copy() if known is None or known["cum_grad"] is None else known["cum_grad"] + grad
        self.cumgrads[index] = {"cum_grad": total, "num_cums": count}
        return self.cumgrads[index]

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._check(index, weight, grad)
        lr, wd = self._get_lr(index), self._get_wd(index)  # MXNet: of the number of updates before this one
        self._update_count(index)
        sums = self._cumulate(grad, index)
        if sums["num_cums"] % self.batch_scale:
            return
        mean = sums["cum_grad"] / self.batch_scale
        sums["cum_grad"] = None
        factor = (self._get_lars(weight, mean, wd) if self.warmup_strategy == "lars" else
                  self._get_lbmult(sums["num_cums"]))
        params = self._common(lr * factor, wd)
        if state is None:
            run("sgd_update", (weight, mean), params)
        else:
            run("sgd_mom_update", (weight, mean, state), {**params, "momentum": self.momentum})


@register
class Test(Optimizer):
    """For tests of what calls an optimizer: w + rescale_grad g, and the state is a copy of the new weight.

    Args:
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def create_state(self, index: Index, weight: NDArray) -> Any:
        return zeros_like(weight)

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._check(index, weight, grad)
        weight[:] = weight + grad * self.rescale_grad
        state[:] = weight
