"""Sparse rules of optimizers' updates: a row_sparse gradient changes its own rows of the weight and the states.

The formulas are those of the dense ops (`lowering.ops._update_rules`), applied to the rows gathered from each table and
scattered back, in place where the tables are donated. Updates that are not lazy apply them to all rows, with a zero
gradient where there is none.

A weight is dense, row_sparse with all rows stored, or row_sparse with some of them: then rows of the gradient that it
does not store are added, as zeros. MXNet: refuses to update a weight of which some rows are not stored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from symjax.lowering.errors import ParamError
from symjax.lowering.ops._elementwise import wide_dtype
from symjax.lowering.ops._update_rules import Hyper, adagrad, adam, ftrl, group_adagrad, sgd, sgd_mom
from symjax.sparse.buckets import bucket, index_dtype, padded
from symjax.sparse.row_sparse import RowSparse, take_rows
from symjax.sparse.rules import DENSE, ROWS, add_rule, prepare_call, stype_of

_ADAGRAD = "_sparse_adagrad_update"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class PlacedRows:
    """A row_sparse gradient together with where its rows are among those that the weight and each state store.

    Attributes:
      rows: the gradient.
      places: for each table an array (capacity of `rows`,); out of range where the gradient is padding.
    """

    rows: RowSparse
    places: tuple[Any, ...]

    stype: ClassVar[str] = ROWS

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape

    @property
    def dtype(self) -> Any:
        return self.rows.dtype

    @property
    def ndim(self) -> int:
        return self.rows.ndim


def update_rows(core: Callable[..., Any], h: Hyper, tables: Sequence[Any], grad: Any, places: Sequence[Any]
                ) -> tuple[Any, ...]:  # fmt: skip
    """Applies an update to single rows of a weight and its states.

    Args:
      core: (hyper-parameters, weight, gradient, states…) -> (new weight, new states…), of the wide type.
      h: the hyper-parameters.
      tables: weight and states, dense.
      grad: the gradient's rows, (n, *row shape).
      places: for each table the places of the rows in it, (n,); those out of range are left out.

    Returns:
      The tables with these rows replaced.
    """
    wide = wide_dtype(tables[0].dtype)
    old = [take_rows(t, at, padded=False).astype(wide) for t, at in zip(tables, places, strict=True)]
    new = core(h, old[0], grad.astype(wide), *old[1:])
    return tuple(t.at[at].set(x.astype(t.dtype), mode="drop")
                 for t, at, x in zip(tables, places, new, strict=True))  # fmt: skip


def update_all(core: Callable[..., Any], h: Hyper, tables: Sequence[Any], grad: Any, places: Sequence[Any]
               ) -> tuple[Any, ...]:  # fmt: skip
    """As `update_rows`, and the other rows are updated with a zero gradient, which is made dense for it."""
    # Updating all rows without a gradient first, and the gradient's rows after, takes more memory than the dense
    # gradient: XLA then keeps old tables while it writes new ones.
    wide = wide_dtype(tables[0].dtype)
    dense = jnp.zeros(tables[0].shape, wide).at[places[0]].set(grad.astype(wide), mode="drop")
    new = core(h, tables[0].astype(wide), dense, *(t.astype(wide) for t in tables[1:]))
    return tuple(x.astype(t.dtype) for t, x in zip(tables, new, strict=True))


def _rule(name: str, core: Callable[..., Any], everywhere: bool) -> Callable[..., Any]:
    def rule(p: Any, weight: Any, grad: Any, *states: Any) -> tuple[Any, ...]:
        if name == _ADAGRAD:
            _check_decay(p.wd)
        tables, grad, places = _aligned((weight, *states), grad)
        update = update_all if everywhere else update_rows
        h = Hyper(p, wide_dtype(weight.dtype))
        new = update(core, h, [_stored(t) for t in tables], grad.data, places)
        return tuple(x if stype_of(t) == DENSE else t.with_data(x) for t, x in zip(tables, new, strict=True))

    others = "have gradient 0" if everywhere else "stay as they are"
    rule.__doc__ = (f"Returns the updated weight, and states.\n\n{core.__doc__}\n"
                    f"Rows that the gradient does not store {others}.")  # fmt: skip
    return rule


def _check_decay(wd: Any) -> None:
    # MXNet: the same, for the decay would touch all rows.
    if isinstance(wd, int | float) and wd != 0:
        raise ParamError(f"wd={wd}: AdaGrad's update by a row_sparse gradient has no weight decay; use wd=0, or make "
                         f"the gradient dense with tostype('default')")


def _stored(x: Any) -> Any:
    return x if stype_of(x) == DENSE else x.data


def _aligned(tables: Sequence[Any], grad: Any) -> tuple[Sequence[Any], RowSparse, Sequence[Any]]:
    """Returns tables that have room for the rows of the gradient, the gradient, and its places in each table."""
    if isinstance(grad, PlacedRows):
        return tables, grad.rows, grad.places
    grad = distinct(grad)
    if stype_of(tables[0]) == DENSE:
        return tables, grad, [grad.indices] * len(tables)
    if all(t.full for t in tables if stype_of(t) == ROWS):
        return tables, grad, [grad.indices] * len(tables)
    if tables[0].full or any(stype_of(t) == DENSE for t in tables):
        return [_whole(t) for t in tables], grad, [grad.indices] * len(tables)
    return _grown(tables, grad)


def distinct(grad: RowSparse) -> RowSparse:
    """Returns a gradient in which every row is stored once: what is stored several times, or out of order, is added up.

    Gradients that symjax computes are distinct; those that a user makes may not be. MXNet: applies the update once for
    each copy, which is the same for SGD.
    """
    n = grad.shape[0]
    if grad.full or grad.capacity < 2:
        return grad

    def merged(indices: Any, data: Any) -> tuple[Any, Any]:
        order = jnp.argsort(indices, stable=True)
        indices, data = indices[order], data[order]
        new = jnp.concatenate([jnp.ones((1,), bool), indices[1:] != indices[:-1]])
        place = jnp.cumsum(new, dtype=jnp.int32) - 1
        return jnp.full_like(indices, n).at[place].set(indices), jnp.zeros_like(data).at[place].add(data)

    indices = grad.indices
    ascending = jnp.all((indices[1:] > indices[:-1]) | (indices[1:] == n))
    indices, data = lax.cond(ascending, lambda i, d: (i, d), merged, indices, grad.data)
    return RowSparse(data, indices, grad.shape)


_distinct_now = jax.jit(distinct)


def _whole(x: Any) -> Any:
    """Returns a row_sparse array with all rows stored."""
    if stype_of(x) == DENSE or x.full:
        return x
    n = x.shape[0]
    return RowSparse(x.todense(), jnp.arange(n, dtype=index_dtype(n)), x.shape, full=True)


def _grown(tables: Sequence[RowSparse], grad: RowSparse) -> tuple[Sequence[Any], RowSparse, Sequence[Any]]:
    """As `_aligned`, for tables of which some rows are stored; how many there will be is not known while tracing."""
    n = grad.shape[0]
    kind = index_dtype(n)
    every = jnp.concatenate([x.indices.astype(kind) for x in (*tables, grad)])
    unique = jnp.unique(every, size=max(1, min(every.size, n)), fill_value=n)
    places = jnp.where(grad.valid, jnp.searchsorted(unique, grad.indices.astype(kind)), unique.size)
    return [RowSparse(take_rows(t, unique), unique, t.shape) for t in tables], grad, [places] * len(tables)


# ---- outside of compiled code


def _prepare(name: str, everywhere: Callable[[str], bool], values: Sequence[Any], attrs: Mapping[str, Any]
             ) -> tuple[dict[int, Any], dict[int, Any]]:  # fmt: skip
    """Makes room for the gradient's rows in tables that store some rows; see `rules.prepare_call`."""
    weight, grad, *states = values
    if stype_of(grad) != ROWS:
        return {}, {}
    if name == _ADAGRAD:
        _check_decay(float(attrs.get("wd", 0)))
    tables = (weight, *states)
    if any(stype_of(t) != ROWS for t in tables) or weight.full:
        return {}, {}
    if not (np.diff(_on_host(grad.indices)[: int(grad.num_rows)]) > 0).all():
        grad = _distinct_now(grad)
    together = everywhere(str(attrs.get("lazy_update", True)))
    new, places = _grown_on_host(tables, grad, together)
    positions = (0, *range(2, len(values)))
    grown = {i: x for i, t, x in zip(positions, tables, new, strict=True) if x is not t}
    return grown, {1: PlacedRows(grad, places)}


def _grown_on_host(tables: Sequence[RowSparse], grad: RowSparse, together: bool
                   ) -> tuple[list[RowSparse], tuple[Any, ...]]:  # fmt: skip
    """Returns tables with the rows of the gradient added where they lack, and its places in each.

    Args:
      tables: the tables.
      grad: the gradient.
      together: all tables must store the same rows.
    """
    n = grad.shape[0]
    wanted = _on_host(grad.indices)
    wanted = wanted[: np.searchsorted(wanted, n)]
    own = [_on_host(t.indices) for t in tables]
    parts = own
    if together and any(not np.array_equal(p, own[0]) for p in own[1:]):
        every = np.unique(np.concatenate(own))
        parts = [_with_rows(p, every[every < n], n) for p in own]
    parts = [_with_rows(p, wanted, n) for p in parts]
    device = next(iter(grad.devices()))
    new = [t if p is o else _at_rows(t, jax.device_put(p, device)) for t, p, o in zip(tables, parts, own, strict=True)]
    places = [padded(np.searchsorted(p, wanted).astype(np.int32), grad.capacity, len(p)) for p in parts]
    return new, tuple(jax.device_put(places, device))


def _on_host(x: Any) -> np.ndarray:
    """Returns the values on the host. An array on the CPU keeps no memory of it, so that it can be donated later."""
    return np.from_dlpack(x) if next(iter(x.devices())).platform == "cpu" else np.asarray(x)


def _with_rows(indices: np.ndarray, wanted: np.ndarray, n: int) -> np.ndarray:
    """Returns the padded indices with `wanted` among them: the same array if they are there."""
    at = np.searchsorted(indices, wanted)
    there = at < len(indices)
    there[there] = indices[at[there]] == wanted[there]
    if there.all():
        return indices
    unique = np.union1d(indices[: np.searchsorted(indices, n)], wanted).astype(indices.dtype)
    return padded(unique, min(bucket(len(unique)), max(n, 1)), n)


@jax.jit
def _at_rows(x: RowSparse, indices: Any) -> RowSparse:
    return RowSparse(take_rows(x, indices), indices, x.shape)


# ---- which rules there are


def _register(name: str, core: Callable[..., Any], states: int, dense_weight: bool, always_lazy: bool) -> None:
    """Registers the rules of an op.

    Args:
      name: the op.
      core: its formula.
      states: how many it has.
      dense_weight: whether a dense weight (with dense states) has a sparse rule.
      always_lazy: whether the op updates the gradient's rows alone, whatever `lazy_update` says.
    """

    def lazy(p: Any) -> bool:
        return always_lazy or p.lazy_update

    def add(stypes: tuple[str, ...], everywhere: bool, when: Callable[[Any], bool] | None) -> None:
        add_rule((name,), stypes, stypes[0], _rule(name, core, everywhere), when)

    all_rows, all_dense = (ROWS,) * states, (DENSE,) * states
    own = [(ROWS, ROWS, *all_rows), *([(DENSE, ROWS, *all_dense)] if dense_weight else [])]
    for stypes in own:
        add(stypes, False, lazy)
        if not always_lazy:
            add(stypes, True, lambda p: not lazy(p))
    if states and not always_lazy:
        # MXNet: dense states of a row_sparse weight: never lazily.
        add((ROWS, ROWS, *all_dense), True, None)

    def everywhere(lazy_update: str) -> bool:
        return not always_lazy and lazy_update in ("False", "0", "false")

    prepare_call(name, lambda values, attrs: _prepare(name, everywhere, values, attrs))


_register("sgd_update", sgd, 0, True, False)
_register("sgd_mom_update", sgd_mom, 1, True, False)
_register("adam_update", adam, 2, True, False)
_register(_ADAGRAD, adagrad, 1, True, True)
_register("_contrib_group_adagrad_update", group_adagrad, 1, True, True)
# MXNet: of a dense weight all rows are updated, by falling back: rows that were never touched become 0.
_register("ftrl_update", ftrl, 2, False, True)
