"""Optax transformations for row_sparse gradients: only the rows of a gradient change, of states too.

    from symjax.sparse import lazy

    tx = lazy.adam(1e-3)                                       # or lazy.wrap(any optax transformation)
    state = tx.init(params)                                    # dense states, as optax makes them

    @functools.partial(jax.jit, donate_argnums=(0, 1))         # tables and states are updated in place
    def step(params, state, ids, label):
        value, grads = symjax.sparse.value_and_grad(loss, tables=["embed_weight"])(params, ids, label)
        updates, state = tx.update(grads, state, params)
        return lazy.apply_updates(params, updates), state, value

Optax comes with Flax; it is imported when a function of this module is called.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from symjax.lowering.errors import ShapeError, StorageError
from symjax.sparse.row_sparse import RowSparse, take_rows

if TYPE_CHECKING:
    import optax

__all__ = ["FtrlState", "adagrad", "adam", "apply_updates", "ftrl", "sgd", "wrap"]


class _Rows:
    """Which rows of the parameter a gradient has; not a pytree, so it is a leaf."""

    def __init__(self, grad: Any) -> None:
        self.indices = grad.indices if _is_rows(grad) else None


def _is_rows(x: Any) -> bool:
    return isinstance(x, RowSparse)


def wrap(tx: optax.GradientTransformation) -> optax.GradientTransformation:
    """Returns a transformation for gradients of which some are RowSparse.

    Such a gradient changes its own rows of the states alone, and its update is a RowSparse of the same rows: they are
    what `tx` gives for these rows by themselves, without the others. Other gradients are as in `tx`. So weight decay,
    and the decay of momentum and means, happen to a row when it is touched. Counts of steps are those of `tx`: one for
    all rows. Norms over all gradients are right, for rows that are not stored are zero.

    Args:
      tx: an optax transformation that treats all rows alike and keeps states of the parameters' shapes, such as
        `optax.adam(1e-3)` or a chain.

    Returns:
      A transformation with the same states. `update` takes parameters too if some gradient is a RowSparse and `tx`
      wants them; tables are dense arrays. Apply its updates with `apply_updates`.
    """
    import optax
    from optax.tree_utils import tree_map_params

    wrapped = optax.with_extra_args_support(tx)

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        rows = jax.tree.map(_Rows, updates, is_leaf=_is_rows)
        at_state = tree_map_params(tx, lambda s, r: r, state, rows, transform_non_params=lambda s: _Rows(None))
        small = jax.tree.map(_take, state, at_state)
        values = jax.tree.map(lambda g: g.data if _is_rows(g) else g, updates, is_leaf=_is_rows)
        of_params = None if params is None else jax.tree.map(_take_param, rows, params, is_leaf=_is_mark)
        new, small = wrapped.update(values, small, of_params, **extra)
        made = jax.tree.map(lambda g, u: dataclasses.replace(g, data=u) if _is_rows(g) else u, updates, new,
                            is_leaf=_is_rows)  # fmt: skip
        return made, jax.tree.map(_put, state, small, at_state)

    return optax.GradientTransformationExtraArgs(tx.init, update)


def _is_mark(x: Any) -> bool:
    return isinstance(x, _Rows)


def _take(x: Any, rows: _Rows) -> Any:
    return x if rows.indices is None else take_rows(x, rows.indices)


def _take_param(rows: _Rows, x: Any) -> Any:
    if rows.indices is not None and _is_rows(x):
        raise StorageError("lazy: a table is a dense array here, got a RowSparse; use its data if it is full")
    return _take(x, rows)


def _put(old: Any, new: Any, rows: _Rows) -> Any:
    return new if rows.indices is None else old.at[rows.indices].set(new.astype(old.dtype), mode="drop")


def apply_updates(params: Any, updates: Any) -> Any:
    """Adds updates to parameters, as `optax.apply_updates`; a RowSparse to its rows alone, in place if donated.

    Raises:
      ShapeError: an update has another shape than its parameter.
    """

    def add(u: Any, p: Any) -> Any:
        if u is None:
            return p
        if u.shape != jnp.shape(p):
            raise ShapeError(f"apply_updates: an update of shape {u.shape} for a parameter of shape {jnp.shape(p)}")
        if not _is_rows(u):
            return jnp.asarray(p + u).astype(jnp.asarray(p).dtype)
        old = take_rows(p, u.indices)
        return p.at[u.indices].set((old + u.data).astype(p.dtype), mode="drop")

    return jax.tree.map(add, updates, params, is_leaf=lambda u: u is None or _is_rows(u))


def sgd(learning_rate: Any, momentum: float | None = None, nesterov: bool = False) -> optax.GradientTransformation:
    """`optax.sgd` for RowSparse gradients; see `wrap`."""
    import optax

    return wrap(optax.sgd(learning_rate, momentum, nesterov))


def adam(learning_rate: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, **more: Any
         ) -> optax.GradientTransformation:  # fmt: skip
    """`optax.adam` for RowSparse gradients; see `wrap`. Means are corrected by the number of all steps."""
    import optax

    return wrap(optax.adam(learning_rate, b1, b2, eps, **more))


def adagrad(learning_rate: Any, initial_accumulator_value: float = 0.1, eps: float = 1e-7
            ) -> optax.GradientTransformation:  # fmt: skip
    """`optax.adagrad` for RowSparse gradients; see `wrap`. MXNet's AdaGrad starts from 0."""
    import optax

    return wrap(optax.adagrad(learning_rate, initial_accumulator_value, eps))


class FtrlState(NamedTuple):
    """States of `ftrl`, shaped as the parameters."""

    z: Any
    n: Any


class _FtrlNumbers(NamedTuple):
    lr: float
    lamda1: float
    beta: float
    wd: float
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0


def ftrl(learning_rate: float = 0.1, lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0
         ) -> optax.GradientTransformation:  # fmt: skip
    """MXNet's Ftrl for dense and RowSparse gradients; `update` needs the parameters. See `mx.optimizer.Ftrl`.

    z = z + g - (sqrt(n + g^2) - sqrt(n)) w / lr; n = n + g^2; the new weight is (sign(z) lamda1 - z) /
    ((beta + sqrt(n)) / lr + wd) where |z| > lamda1, else 0; the update is its difference to w.

    Args:
      learning_rate: the rate, a number.
      lamda1: strength of the L1 penalty.
      beta: smooths the rate of each number.
      wd: strength of the L2 penalty.
    """
    import optax

    from symjax.lowering.ops import _update_rules as rules
    from symjax.lowering.ops._elementwise import wide_dtype

    numbers = _FtrlNumbers(learning_rate, lamda1, beta, wd)

    def init(params: Any) -> FtrlState:
        zeros = optax.tree_utils.tree_zeros_like
        return FtrlState(zeros(params), zeros(params))

    def one(w: Any, g: Any, z: Any, n: Any) -> tuple[Any, ...]:
        wide = wide_dtype(w.dtype)
        new = rules.ftrl(rules.Hyper(numbers, wide), *(x.astype(wide) for x in (w, g, z, n)))
        return (new[0] - w.astype(wide)).astype(w.dtype), new[1].astype(z.dtype), new[2].astype(n.dtype)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        if params is None:
            raise ValueError("lazy.ftrl: update needs the parameters")
        new = jax.tree.map(one, params, updates, state.z, state.n)
        delta, z, n = jax.tree.transpose(jax.tree.structure(params), jax.tree.structure((0, 0, 0)), new)
        return delta, FtrlState(z, n)

    return wrap(optax.GradientTransformation(init, update))
