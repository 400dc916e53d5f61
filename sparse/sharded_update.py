"""Lazy updates of sharded tables: each device updates those rows of a row_sparse gradient that it holds."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from symjax.lowering.errors import ArgumentError, ShapeError, StorageError
from symjax.lowering.ops import _update_rules as rules
from symjax.lowering.ops._elementwise import wide_dtype
from symjax.sparse.row_sparse import RowSparse
from symjax.sparse.sharded_table import ShardedTable, placed, places, zeros_like

Core = Callable[..., tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Rule:
    """An optimizer's update of the rows of a gradient, with its hyper-parameters; hashable, so static under jit.

    Attributes:
      core: (hyper-parameters, weight, gradient, states…) -> (new weight, new states…).
      states: for every state whether it has one number for each row ("row"), or one for each of the weight ("like").
      lr: learning rate, unless a call of `update` gives another.
      wd: weight decay.
      rescale_grad: factor of the gradient, applied first.
      clip_gradient: bound of the rescaled gradient's magnitude; negative: none.
      momentum, beta1, beta2, epsilon, lamda1, beta: see the functions that make rules.
      corrected: whether lr is corrected for the means' start at zero, if the number of the update is given.
    """

    core: Core
    states: tuple[str, ...] = ()
    lr: float = 0.01
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    momentum: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    lamda1: float = 0.01
    beta: float = 1.0
    corrected: bool = False

    def rate(self, lr: Any, t: Any) -> Any:
        """The learning rate of update number t."""
        rate = self.lr if lr is None else lr
        if t is None or not self.corrected:
            return rate
        t = jnp.asarray(t, jnp.float32)
        # 1 - beta^t: in float32 the difference would lose half of its digits for small t
        rest1, rest2 = (-jnp.expm1(t * math.log(b)) for b in (self.beta1, self.beta2))
        return rate * jnp.sqrt(rest2) / rest1


def _common(wd: float, rescale_grad: float, clip_gradient: float | None) -> dict[str, Any]:
    return {"wd": wd, "rescale_grad": rescale_grad, "clip_gradient": -1.0 if clip_gradient is None else clip_gradient}


def sgd(lr: float = 0.01, momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0,
        clip_gradient: float | None = None) -> Rule:
    """w - lr (g + wd w); with momentum m = momentum m - lr (g + wd w), w + m (state: m)."""
    core, states = (rules.sgd_mom, ("like",)) if momentum else (rules.sgd, ())
    return Rule(core, states, lr, momentum=momentum, **_common(wd, rescale_grad, clip_gradient))


def adam(lr: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0.0,
         rescale_grad: float = 1.0, clip_gradient: float | None = None) -> Rule:
    """Means m and v of d = g + wd w and d^2 (states); w - lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon).

    t is the number of the update that `update` is given; without it lr is not corrected.
    """
    return Rule(rules.adam, ("like", "like"), lr, beta1=beta1, beta2=beta2, epsilon=epsilon, corrected=True,
                **_common(wd, rescale_grad, clip_gradient))


def adagrad(lr: float = 0.01, epsilon: float = 1e-7, rescale_grad: float = 1.0,
            clip_gradient: float | None = None) -> Rule:
    """h = h + g^2 (state); w - lr g / sqrt(h + epsilon). As MXNet's for row_sparse gradients, without weight decay."""
    return Rule(rules.adagrad, ("like",), lr, epsilon=epsilon, **_common(0.0, rescale_grad, clip_gradient))


def group_adagrad(lr: float = 0.01, epsilon: float = 1e-5, rescale_grad: float = 1.0,
                  clip_gradient: float | None = None) -> Rule:
    """One h for each row: h = h + mean of the row's g^2 (state, (V, 1)); w - lr g / sqrt(h + epsilon)."""
    return Rule(rules.group_adagrad, ("row",), lr, epsilon=epsilon, **_common(0.0, rescale_grad, clip_gradient))


def ftrl(lr: float = 0.1, lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0, rescale_grad: float = 1.0,
         clip_gradient: float | None = None) -> Rule:
    """z = z + g - (sqrt(n + g^2) - sqrt(n)) w / lr; n = n + g^2 (states z, n);
    w = (sign(z) lamda1 - z) / ((beta + sqrt n)/lr + wd) where |z| > lamda1, else 0."""
    return Rule(rules.ftrl, ("like", "like"), lr, lamda1=lamda1, beta=beta, **_common(wd, rescale_grad, clip_gradient))


def init_states(table: ShardedTable, rule: Rule) -> tuple[ShardedTable, ...]:
    """Returns what a rule remembers of a table, zeros laid out as the table: float32 for half-precision tables."""
    kind = wide_dtype(table.dtype)
    return tuple(zeros_like(table, (1,) if s == "row" else None, kind) for s in rule.states)


def update(table: ShardedTable, states: Sequence[ShardedTable], grad: RowSparse, rule: Rule, *, lr: Any = None,
           t: Any = None) -> tuple[ShardedTable, tuple[ShardedTable, ...]]:
    """Updates the rows of a row_sparse gradient, and no others: neither decay nor momentum changes the rest.

    Every device gets the gradient's rows and updates those of its own block; no row of the table or of a state moves.
    To update in place, call it in a function compiled with donated tables and states:
    `jax.jit(step, donate_argnums=(0, 1))`. Arithmetic is float32 (float64 for float64).

    Args:
      table: the table.
      states: what `init_states` returned, or an update.
      grad: the gradient: a RowSparse of the table's shape (its rows may come from devices in any layout).
      rule: what to do.
      lr: the learning rate, a number or a traced scalar (another one does not compile again); `rule.lr` by default.
      t: the number of this update, from 1, for `adam`.

    Returns:
      The new table and states.

    Raises:
      StorageError: the gradient is not row_sparse.
      ShapeError: its shape is another.
      ArgumentError: the number of states is another than the rule's.
    """
    if not isinstance(grad, RowSparse):
        raise StorageError(f"updates of a sharded table take a row_sparse gradient (RowSparse), got "
                           f"{type(grad).__name__}; sharding.value_and_grad gives one")
    if grad.shape != table.shape:
        raise ShapeError(f"the gradient has shape {grad.shape}, the table {table.shape}")
    if len(states) != len(rule.states):
        raise ArgumentError(f"{len(rule.states)} states expected, got {len(states)}; init_states makes them")
    grad = jax.tree.map(lambda x: placed(x, table.mesh, PartitionSpec()), grad)
    with jax.enable_x64(True):
        rate = rule.rate(lr, t)
        new, *rest = _update([table.data, *(s.data for s in states)], grad, rate, table.mesh, table.axes, rule)
    return table.with_data(new), tuple(s.with_data(d) for s, d in zip(states, rest, strict=True))


@functools.partial(jax.jit, static_argnames=("mesh", "axes", "rule"))
def _update(arrays: list[Any], grad: RowSparse, rate: Any, mesh: Any, axes: tuple[str, ...], rule: Rule) -> list[Any]:
    wide = wide_dtype(arrays[0].dtype)

    def own(blocks: list[Any], ids: Any, rows: Any, rate: Any) -> list[Any]:
        at, mine = places(ids, blocks[0], axes)
        mine &= ids < grad.shape[0]
        # rows of other devices and padding: distinct places beyond the block, which are dropped
        at = jnp.where(mine, at, blocks[0].shape[0] + lax.iota(at.dtype, at.shape[0]))
        h = rules.Hyper(rule, wide, lr=rate)
        old = [b.at[at].get(mode="fill", fill_value=0, unique_indices=True).astype(wide) for b in blocks]
        new = rule.core(h, old[0], rows.astype(wide), *old[1:])
        return [b.at[at].set(x.astype(b.dtype), mode="drop", unique_indices=True)
                for b, x in zip(blocks, new, strict=True)]  # fmt: skip

    split, whole = PartitionSpec(axes), PartitionSpec()
    run = jax.shard_map(own, mesh=mesh, in_specs=(split, whole, whole, whole), out_specs=split)
    return run(arrays, grad.indices, grad.data, jnp.asarray(rate, wide))
