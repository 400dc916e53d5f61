"""Updates that MXNet writes out in Python, each as one op: `_symjax_<optimizer>_update`. MXNet cannot load them."""

from __future__ import annotations

from typing import Any

import jax
from jax import Array

from symjax.lowering.ops import _update_rules as rules
from symjax.lowering.ops._elementwise import wide_dtype
from symjax.lowering.ops._update_rules import Hyper
from symjax.lowering.ops.optimizer_update import _register, clipping, lr, momentum, number, rescale, wd
from symjax.lowering.params import Params, param
from symjax.lowering.registry import SAME, op


class AdadeltaParams(Params):
    rho: float = number(0.9, "Decay of the means.")
    epsilon: float = number(1e-5, "Added inside the roots.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class AdamaxParams(Params):
    lr: float = lr()
    beta1: float = number(0.9, "Decay of the mean.")
    beta2: float = number(0.999, "Decay of the peak.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class NadamParams(Params):
    lr: float = lr()
    beta1: float = number(0.9, "Decay of the mean.")
    beta2: float = number(0.999, "Decay of the mean of squares.")
    epsilon: float = number(1e-8, "Added to the root.")
    grad_scale: float = param(doc="Factor of the gradient in the step.", traced=True)
    mean_scale: float = param(doc="Factor of the mean in the step.", traced=True)
    var_scale: float = param(doc="Factor of the mean of squares.", traced=True)
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class DcasgdParams(Params):
    lr: float = lr()
    lamda: float = number(0.04, "Strength of the compensation.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class DcasgdMomParams(Params):
    lr: float = lr()
    momentum: float = momentum()
    lamda: float = number(0.04, "Strength of the compensation.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class SgldParams(Params):
    lr: float = lr()
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


_register("_symjax_adadelta_update", AdadeltaParams, rules.adadelta, ("acc_g", "acc_delta"))
_register("_symjax_adamax_update", AdamaxParams, rules.adamax, ("mean", "peak"))
_register("_symjax_nadam_update", NadamParams, rules.nadam, ("mean", "var"))
_register("_symjax_dcasgd_update", DcasgdParams, rules.dcasgd, ("previous",))
_register("_symjax_dcasgd_mom_update", DcasgdMomParams, rules.dcasgd_mom, ("mom", "previous"))


@op("_symjax_sgld_update", params=SgldParams, shape=SAME)
def sgld_update(p: Any, weight: Array, grad: Array, *, key: Array) -> Array:
    """Returns weight - lr/2 (g + wd weight) + noise of variance lr, g the rescaled, clipped gradient."""
    wide = wide_dtype(weight.dtype)
    noise = jax.random.normal(key, weight.shape, wide)
    return rules.sgld(Hyper(p, wide), weight.astype(wide), grad.astype(wide), noise).astype(weight.dtype)
