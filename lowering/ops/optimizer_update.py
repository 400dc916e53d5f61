"""Updates of a weight by an optimizer's rule, one weight at a time.

Every op returns the new weight; what an optimizer remembers (momentum, second moments, the float32 copy of a
half-precision weight) is an auxiliary state. Hyper-parameters are operands: another learning rate does not compile
again. Arithmetic is float32 (float64 for float64), whatever the weight's type. Ops for several weights are in
`optimizer_multi`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from symjax.lowering.habits import habit
from symjax.lowering.ops._elementwise import wide_dtype
from symjax.lowering.ops._update_rules import (
    Hyper,
    adagrad,
    adam,
    adamw,
    ftml,
    ftrl,
    group_adagrad,
    lamb_direction,
    lamb_rate,
    nag,
    rmsprop,
    rmsprop_alex,
    sgd,
    sgd_mom,
    signsgd,
    signum,
)
from symjax.lowering.params import Params, param
from symjax.lowering.registry import SAME, ShapeLike, op

Types = tuple[Sequence[str | None], Sequence[str | None]]
Core = Callable[..., tuple[Array, ...]]
"""(hyper-parameters, weight, gradient, states…) -> (new weight, new states…), all of the wide type."""


def lr() -> Any:
    return param(doc="Learning rate.", traced=True)


def wd() -> Any:
    return param(0.0, doc="Weight decay.", traced=True)


def rescale() -> Any:
    return param(1.0, doc="Factor of the gradient, applied first.", traced=True)


def clipping() -> Any:
    return param(-1.0, doc="Bound of the gradient's magnitude after rescaling; negative: none.", traced=True)


def momentum() -> Any:
    return param(0.0, doc="Share of the last step that is kept.", traced=True)


def number(default: float, doc: str) -> Any:
    return param(default, doc=doc, traced=True)


def lazy() -> Any:
    return param(True, doc="Whether a row_sparse gradient touches its own rows alone; no effect on dense ones.")


class SgdParams(Params):
    lr: float = lr()
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    lazy_update: bool = lazy()


class SgdMomParams(Params):
    lr: float = lr()
    momentum: float = momentum()
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    lazy_update: bool = lazy()


class NagParams(Params):
    lr: float = lr()
    momentum: float = momentum()
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class AdamParams(Params):
    lr: float = lr()
    beta1: float = number(0.9, "Decay of the mean.")
    beta2: float = number(0.999, "Decay of the mean of squares.")
    epsilon: float = number(1e-8, "Added to the root.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    lazy_update: bool = lazy()


class RmspropParams(Params):
    lr: float = lr()
    gamma1: float = number(0.95, "Decay of the mean of squares.")
    epsilon: float = number(1e-8, "Added inside the root.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    clip_weights: float = number(-1.0, "Bound of the new weight's magnitude; negative: none.")


class RmspropAlexParams(Params):
    lr: float = lr()
    gamma1: float = number(0.95, "Decay of the means.")
    gamma2: float = number(0.9, "Share of the last step that is kept.")
    epsilon: float = number(1e-8, "Added inside the root.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    clip_weights: float = number(-1.0, "Bound of the new weight's magnitude; negative: none.")


class FtrlParams(Params):
    lr: float = lr()
    lamda1: float = number(0.01, "Strength of the L1 penalty.")
    beta: float = number(1.0, "Smooths the rate of each coordinate.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class FtmlParams(Params):
    lr: float = lr()
    beta1: float = number(0.6, "Decay of the mean.")
    beta2: float = number(0.999, "Decay of the mean of squares.")
    epsilon: float = number(1e-8, "Added to the root.")
    t: int = param(doc="Number of the update, from 1.", traced=True)
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_grad: float = clipping()


class SignSgdParams(Params):
    lr: float = lr()
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class SignumParams(Params):
    lr: float = lr()
    momentum: float = momentum()
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    wd_lh: float = number(0.0, "Weight decay outside the sign.")


class LambPhase1Params(Params):
    beta1: float = number(0.9, "Decay of the mean.")
    beta2: float = number(0.999, "Decay of the mean of squares.")
    epsilon: float = number(1e-6, "Added to the root.")
    t: int = param(doc="Number of the update, from 1.", traced=True)
    bias_correction: bool = param(True, doc="Whether the means are divided by 1 - beta^t.")
    wd: float = param(doc="Weight decay.", traced=True)
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


class LambPhase2Params(Params):
    lr: float = lr()
    lower_bound: float = number(-1.0, "Least norm of the weight; negative: none.")
    upper_bound: float = number(-1.0, "Greatest norm of the weight; negative: none.")


class AdamWParams(Params):
    lr: float = lr()
    beta1: float = number(0.9, "Decay of the mean.")
    beta2: float = number(0.999, "Decay of the mean of squares.")
    epsilon: float = number(1e-8, "Added to the root.")
    wd: float = wd()
    eta: float = param(doc="Factor of the whole step (schedule).", traced=True)
    clip_gradient: float = clipping()


class GroupAdagradParams(Params):
    lr: float = lr()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()
    epsilon: float = number(1e-5, "Added inside the root.")


class AdagradParams(Params):
    lr: float = lr()
    epsilon: float = number(1e-7, "Added inside the root.")
    wd: float = wd()
    rescale_grad: float = rescale()
    clip_gradient: float = clipping()


def mixed_types(half: Sequence[int], n_out: int = 1) -> Callable[..., Types]:
    """Inputs `half` and the outputs share a type, all other inputs are float32."""

    def infer(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
        known = next((t for t in (*(ins[i] for i in half), *outs) if t), None)
        return [known if i in half else "float32" for i in range(len(ins))], [known] * len(outs)

    return infer


def _register(name: str, params: type[Params], core: Core, states: tuple[str, ...] = (), aliases: tuple[str, ...] = (),
              mixed: str = "") -> None:
    """Registers the update of a weight in its own type and, under the name `mixed`, one with a float32 master copy."""

    def rule(p: Any, weight: Array, grad: Array, *state: Array) -> tuple[Array, ...]:
        wide = wide_dtype(weight.dtype)
        new = core(Hyper(p, wide), weight.astype(wide), grad.astype(wide), *(s.astype(wide) for s in state))
        return tuple(x.astype(old.dtype) for x, old in zip(new, (weight, *state), strict=True))

    def mixed_rule(p: Any, weight: Array, grad: Array, *state: Array) -> tuple[Array, ...]:
        new = core(Hyper(p, jnp.float32), state[-1], grad.astype(jnp.float32), *state[:-1])
        return new[0].astype(weight.dtype), *new[1:], new[0]

    what = f"Returns the updated weight.\n\n{core.__doc__}\ng is the rescaled, clipped gradient."
    rule.__doc__ = what
    mixed_rule.__doc__ = f"{what} All is computed on the float32 copy `weight32` of a half-precision weight."
    op(name, aliases=aliases, params=params, inputs=("weight", "grad", *states), aux=states, shape=SAME,
       aux_in_forward=True,
       source=f"{__file__}:{name}")(rule)
    if mixed:
        op(mixed, params=params, inputs=("weight", "grad", *states, "weight32"), aux=(*states, "weight32"), shape=SAME,
           aux_in_forward=True, infer_types=mixed_types((0, 1)), source=f"{__file__}:{mixed}")(mixed_rule)


_register("sgd_update", SgdParams, sgd, (), ("_sparse_sgd_update",), "mp_sgd_update")
_register("sgd_mom_update", SgdMomParams, sgd_mom, ("mom",), ("_sparse_sgd_mom_update",), "mp_sgd_mom_update")
_register("nag_mom_update", NagParams, nag, ("mom",), (), "mp_nag_mom_update")
_register("adam_update", AdamParams, adam, ("mean", "var"), ("_sparse_adam_update",))
_register("rmsprop_update", RmspropParams, rmsprop, ("n",))
_register("rmspropalex_update", RmspropAlexParams, rmsprop_alex, ("n", "g", "delta"))
_register("ftrl_update", FtrlParams, ftrl, ("z", "n"), ("_sparse_ftrl_update",))
_register("ftml_update", FtmlParams, ftml, ("d", "v", "z"))
_register("signsgd_update", SignSgdParams, signsgd)
_register("signum_update", SignumParams, signum, ("mom",))
_register("_sparse_adagrad_update", AdagradParams, adagrad, ("history",))


@op("lamb_update_phase1", params=LambPhase1Params, aux=("mean", "var"), shape=SAME,
    aux_in_forward=True)
def lamb_update_phase1(p: LambPhase1Params, weight: Array, grad: Array, mean: Array, var: Array) -> tuple[Array, ...]:
    """Returns LAMB's direction mean / (sqrt(var) + epsilon) + wd w, with means of the gradient and its square."""
    wide = wide_dtype(weight.dtype)
    new = lamb_direction(Hyper(p, wide), p.bias_correction, *(x.astype(wide) for x in (weight, grad, mean, var)))
    return tuple(x.astype(weight.dtype) for x in new)


@op("mp_lamb_update_phase1", params=LambPhase1Params, aux=("mean", "var"), shape=SAME,
    aux_in_forward=True,
    infer_types=lambda p, ins, outs: ([ins[0] or ins[1], ins[1] or ins[0], *["float32"] * 3], ["float32"]))
def mp_lamb_update_phase1(p: LambPhase1Params, weight: Array, grad: Array, mean: Array, var: Array,
                          weight32: Array) -> tuple[Array, ...]:
    """Returns LAMB's direction in float32, from the float32 copy `weight32` of a half-precision weight."""
    return lamb_direction(Hyper(p, jnp.float32), p.bias_correction, weight32, grad.astype(jnp.float32), mean, var)


def _first_two(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    known = ins[0] or ins[1] or outs[0]
    return [known, known, (1,), (1,), *[known] * (len(ins) - 4)]


@op("lamb_update_phase2", params=LambPhase2Params, infer_inputs=_first_two)
def lamb_update_phase2(p: LambPhase2Params, weight: Array, g: Array, r1: Array, r2: Array) -> Array:
    """Returns weight - lr r1 / r2 g: g of phase 1, r1 and r2 the norms of weight and g, of shape (1,)."""
    wide = wide_dtype(weight.dtype)
    rate = lamb_rate(Hyper(p, wide), r1.astype(wide), r2.astype(wide))
    return (weight.astype(wide) - rate * g.astype(wide)).astype(weight.dtype)


_FORGOTTEN = habit("mp_lamb_update_phase2", "The float32 copy of the weight stays as it was.", "It is updated.")


@op("mp_lamb_update_phase2", params=LambPhase2Params, aux=("weight32",), infer_inputs=_first_two,
    aux_in_forward=True, infer_types=mixed_types((0,)))
def mp_lamb_update_phase2(p: LambPhase2Params, weight: Array, g: Array, r1: Array, r2: Array,
                          weight32: Array) -> tuple[Array, Array]:
    """Returns the updated weight, and its float32 copy: weight32 - lr r1 / r2 g."""
    new = weight32 - lamb_rate(Hyper(p, jnp.float32), r1, r2) * g
    return new.astype(weight.dtype), weight32 if _FORGOTTEN() else new


def _adamw_shapes(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    known = next((s for s in (*ins[:-1], *outs) if s is not None), None)
    return [*[known] * (len(ins) - 1), ins[-1]]


def _weight_shape(p: Any, ins: Sequence[ShapeLike]) -> Sequence[ShapeLike]:
    return [ins[0]]


def _adamw_types(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    known = next((t for t in (*ins[:-1], *outs) if t), None)
    return [*[known] * (len(ins) - 1), ins[-1] or "float32"], [known]


@op("_adamw_update", params=AdamWParams, aux=("mean", "var"), aux_in_forward=True, infer_inputs=_adamw_shapes,
    infer_outputs=_weight_shape, infer_types=_adamw_types)
def adamw_update(p: AdamWParams, weight: Array, grad: Array, mean: Array, var: Array,
                 rescale_grad: Array) -> tuple[Array, ...]:
    """Returns weight - eta (lr mean / (sqrt(var) + epsilon) + wd weight); decay is apart from the gradient.

    `rescale_grad` is an array of one number; where it is 0, NaN or infinite nothing is updated (loss scaling).
    """
    wide = wide_dtype(weight.dtype)
    h = Hyper(p, wide, rescale_grad=rescale_grad.reshape(()))
    return tuple(x.astype(weight.dtype) for x in adamw(h, *(x.astype(wide) for x in (weight, grad, mean, var))))


@op("_mp_adamw_update", params=AdamWParams, aux=("mean", "var", "weight32"), aux_in_forward=True,
    infer_inputs=_adamw_shapes, infer_outputs=_weight_shape,
    infer_types=lambda p, ins, outs: ([ins[0] or outs[0], ins[1] or ins[0], *["float32"] * 3,
                                       ins[5] or "float32"], [ins[0] or outs[0]]))
def mp_adamw_update(p: AdamWParams, weight: Array, grad: Array, mean: Array, var: Array, weight32: Array,
                    rescale_grad: Array) -> tuple[Array, ...]:
    """Returns the updated half-precision weight; as `_adamw_update`, on its float32 copy `weight32`."""
    h = Hyper(p, jnp.float32, rescale_grad=rescale_grad.reshape(()))
    new, mean, var = adamw(h, weight32, grad.astype(jnp.float32), mean, var)
    return new.astype(weight.dtype), mean, var, new


def _group_shapes(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    known = ins[0] or ins[1] or outs[0]
    return [known, known, ins[2] or (None if known is None else (known[0], 1))]


@op("_contrib_group_adagrad_update", params=GroupAdagradParams, aux=("history",), infer_inputs=_group_shapes,
    aux_in_forward=True)
def group_adagrad_update(p: GroupAdagradParams, weight: Array, grad: Array, history: Array) -> tuple[Array, Array]:
    """Returns weight - lr g / sqrt(h + epsilon), with one history h per row: h = h + mean(g^2 of the row).

    Shapes: weight and grad (rows, …), history (rows, 1) or (rows,).
    """
    wide = wide_dtype(weight.dtype)
    w, new = group_adagrad(Hyper(p, wide), *(x.astype(wide) for x in (weight, grad, history)))
    return w.astype(weight.dtype), new.astype(history.dtype)
