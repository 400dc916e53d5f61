"""Sparse rules of elementwise operators: functions that keep zeros act on the stored values alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from symjax.lowering import registry
from symjax.sparse.buckets import index_dtype
from symjax.sparse.csr import CSR, csr_from_rows
from symjax.sparse.demand import keeps_pattern, rowwise, vanishing
from symjax.sparse.row_sparse import RowSparse, take_rows
from symjax.sparse.rules import (
    CSR_,
    DENSE,
    ROWS,
    Stypes,
    add_rule,
    as_stype,
    dense,
    depends_on_values,
    refuse,
    stype_of,
    zeros_where_padding,
)
from symjax.sparse.storage import grad_stypes, zero_gradient

SPARSE = (CSR_, ROWS)

UNARY = (
    "abs", "sign", "round", "rint", "ceil", "floor", "trunc", "fix", "square", "sqrt", "cbrt", "expm1", "log1p",
    "sin", "tan", "arcsin", "arctan", "sinh", "arcsinh", "tanh", "arctanh", "degrees", "radians", "relu",
    "negative", "_copy", "BlockGrad", "make_loss", "_contrib_round_ste", "_contrib_sign_ste",
)
"""Functions with f(0) = 0."""


def _stored(name: str) -> Callable[..., Any]:
    def rule(p: Any, x: Any, **asked: Any) -> Any:
        return x.with_data(zeros_where_padding(x, registry.get(name)(p, x.data, **asked)))

    rule.__doc__ = f"{name} of the stored values; the others stay zero."
    return rule


def _one(*ops: str, when: Callable[[Any], bool] | None = None) -> None:
    """Declares that functions of one array keep its storage type."""
    for name in ops:
        for stype in SPARSE:
            add_rule((name,), (stype,), stype, _stored(name), when)


_one(*UNARY)
keeps_pattern(*UNARY)
rowwise(*UNARY)


def _zeros_like(p: Any, x: Any) -> Any:
    """A sparse array of zeros stores nothing."""
    return jax.tree.map(jnp.asarray, type(x).empty(x.shape, x.dtype))


for _stype in SPARSE:
    add_rule(("zeros_like",), (_stype,), _stype, _zeros_like, None)


# ---- with a number

_one("_mul_scalar", "_div_scalar", "_scatter_plus_scalar", "_scatter_minus_scalar")
keeps_pattern("_mul_scalar", "_div_scalar")
rowwise("_mul_scalar", "_div_scalar")
vanishing("_scatter_plus_scalar", "_scatter_minus_scalar")
_ZERO_SCALAR = ("_plus_scalar", "_minus_scalar")
_one(*_ZERO_SCALAR, when=lambda p: p.scalar == 0)
_COMPARISONS: dict[str, Callable[[Any], bool]] = {
    "_equal_scalar": lambda p: p.scalar != 0, "_not_equal_scalar": lambda p: p.scalar == 0,
    "_greater_scalar": lambda p: p.scalar >= 0, "_greater_equal_scalar": lambda p: p.scalar > 0,
    "_lesser_scalar": lambda p: p.scalar <= 0, "_lesser_equal_scalar": lambda p: p.scalar < 0,
}  # fmt: skip
"""Comparisons of zero with the number that are false: what is not stored stays zero."""
for _name, _false_for_zero in _COMPARISONS.items():
    _one(_name, when=_false_for_zero)
depends_on_values(*_ZERO_SCALAR, *_COMPARISONS)


def _keeps_zero(p: Any) -> bool:
    return p.a_min <= 0 <= p.a_max


_one("clip", when=_keeps_zero)
for _stype in SPARSE:
    refuse("clip", stypes=(_stype,), when=lambda p: not _keeps_zero(p),
           text="a range without 0 would make every element of sparse data non-zero; cast it to default storage first")
depends_on_values("clip")


# ---- two arrays


def merge_rows(parts: Sequence[RowSparse], combine: Callable[..., Any]) -> RowSparse:
    """Returns the array with the rows of all parts, `combine(*rows)` of each part's row or zeros.

    Its capacity is the sum of theirs (at most the number of rows), for how many rows coincide is not known while
    tracing.
    """
    first = parts[0]
    n = first.shape[0]
    if all(p.full for p in parts):
        return dataclasses.replace(first, data=combine(*(p.data for p in parts)))
    room = max(1, min(sum(p.capacity for p in parts), n))
    joined = jnp.concatenate([p.indices.astype(index_dtype(n)) for p in parts])
    indices = jnp.unique(joined, size=room, fill_value=n)
    data = combine(*(take_rows(p, indices) for p in parts))
    made = RowSparse(data, indices, first.shape)
    return made.with_data(zeros_where_padding(made, data))


def merge_csr(lhs: CSR, rhs: CSR, combine: Callable[[Any, Any], Any]) -> CSR:
    """Returns the matrix with the stored places of both, `combine(x, y)` of their values (0 where not stored)."""
    rows, cols = lhs.shape
    room = max(1, min(lhs.capacity + rhs.capacity, lhs.size))
    kind = index_dtype(max(rows, cols, lhs.capacity + rhs.capacity))
    r = jnp.concatenate([lhs.rows, rhs.rows]).astype(kind)
    c = jnp.concatenate([lhs.indices, rhs.indices]).astype(kind)
    side = jnp.concatenate([jnp.zeros(lhs.capacity, jnp.int32), jnp.ones(rhs.capacity, jnp.int32)])
    values = jnp.concatenate([lhs.data, rhs.data])
    order = jnp.lexsort((c, r))
    r, c, side, values = r[order], c[order], side[order], values[order]
    new = jnp.concatenate([jnp.ones((1,), bool), (r[1:] != r[:-1]) | (c[1:] != c[:-1])])
    place = jnp.where(r < rows, jnp.cumsum(new, dtype=jnp.int32) - 1, room)
    zero = jnp.zeros((room,), values.dtype)
    x = zero.at[place].add(jnp.where(side == 0, values, 0), mode="drop")
    y = zero.at[place].add(jnp.where(side == 1, values, 0), mode="drop")
    out_r = jnp.full((room,), rows, kind).at[place].set(r, mode="drop")
    out_c = jnp.full((room,), cols, kind).at[place].set(c, mode="drop")
    return csr_from_rows(jnp.where(out_r < rows, combine(x, y), 0), out_r, out_c, lhs.shape)


def _both(name: str) -> None:
    def rule(p: Any, lhs: Any, rhs: Any) -> Any:
        return merge(lhs, rhs, lambda x, y: registry.get(name)(p, x, y))

    def merge(lhs: Any, rhs: Any, combine: Callable[..., Any]) -> Any:
        return merge_csr(lhs, rhs, combine) if isinstance(lhs, CSR) else merge_rows((lhs, rhs), combine)

    rule.__doc__ = f"{name} of two arrays of one storage type, at the stored places of both."
    for stype in SPARSE:
        add_rule((name,), (stype, stype), stype, rule, None)


for _name in ("elemwise_add", "elemwise_sub", "elemwise_mul", "_maximum", "_minimum", "_hypot", "_grad_add"):
    _both(_name)


def at_stored(x: Any, other: Any) -> Any:
    """Returns the elements of a dense array at the stored places of a container, shaped as its data."""
    if isinstance(x, CSR):
        return other.at[x.rows, x.indices].get(mode="fill", fill_value=0)
    return take_rows(other, x.indices)


def _product(p: Any, lhs: Any, rhs: Any) -> Any:
    """The product at the stored places of the sparse operand."""
    x, other = (lhs, rhs) if not hasattr(rhs, "stype") else (rhs, lhs)
    return x.with_data(x.data * at_stored(x, other))


def _scatter_div(p: Any, lhs: RowSparse, rhs: Any) -> RowSparse:
    """The quotient at the stored rows of `lhs`."""
    rhs = rhs.todense() if isinstance(rhs, CSR) else rhs
    return lhs.with_data(zeros_where_padding(lhs, lhs.data / at_stored(lhs, rhs)))


for _stype in SPARSE:
    add_rule(("elemwise_mul",), (_stype, DENSE), _stype, _product, None)
    add_rule(("elemwise_mul",), (DENSE, _stype), _stype, _product, None)
for _stype in (DENSE, *SPARSE):
    add_rule(("_scatter_elemwise_div",), (ROWS, _stype), ROWS, _scatter_div, None)


def _sum_dense(name: str) -> None:
    """Adding to (or subtracting from) a dense array touches the stored places only."""
    sign = -1 if name.endswith("sub") else 1

    def rule(p: Any, lhs: Any, rhs: Any) -> Any:
        if isinstance(rhs, CSR | RowSparse):
            return scatter_add(lhs, rhs, sign)
        return scatter_add(rhs if sign > 0 else -rhs, lhs, 1)

    rule.__doc__ = f"{name} of a sparse and a dense array: dense."
    for stype in SPARSE:
        add_rule((name,), (stype, DENSE), DENSE, rule, None)
        add_rule((name,), (DENSE, stype), DENSE, rule, None)


def scatter_add(total: Any, x: CSR | RowSparse, sign: int = 1) -> Any:
    """Returns a dense array plus (or minus) a sparse one."""
    data = x.data if sign > 0 else -x.data
    if isinstance(x, CSR):
        return total.at[x.rows, x.indices].add(data, mode="drop")
    return total + data if x.full else total.at[x.indices].add(data, mode="drop")


for _name in ("elemwise_add", "elemwise_sub"):
    _sum_dense(_name)


# ---- broadcasting


def _broadcast_mul(p: Any, lhs: CSR, rhs: Any) -> CSR:
    """A csr matrix times a dense array that broadcasts to its shape: csr."""
    rhs = rhs.reshape((1,) * (2 - rhs.ndim) + rhs.shape)
    row = lhs.rows if rhs.shape[0] != 1 else jnp.zeros_like(lhs.rows)
    col = lhs.indices if rhs.shape[1] != 1 else jnp.zeros_like(lhs.indices)
    return lhs.with_data(lhs.data * rhs.at[row, col].get(mode="fill", fill_value=0))


def _broadcast_div(p: Any, lhs: CSR, rhs: Any) -> CSR:
    """A csr matrix divided by a dense array that broadcasts to its shape, at the stored places."""
    rhs = rhs.reshape((1,) * (2 - rhs.ndim) + rhs.shape)
    row = lhs.rows if rhs.shape[0] != 1 else jnp.zeros_like(lhs.rows)
    col = lhs.indices if rhs.shape[1] != 1 else jnp.zeros_like(lhs.indices)
    return lhs.with_data(lhs.data / rhs.at[row, col].get(mode="fill", fill_value=1))


add_rule(("broadcast_mul",), (CSR_, DENSE), CSR_, _broadcast_mul, None)
add_rule(("broadcast_div",), (CSR_, DENSE), CSR_, _broadcast_div, None)
keeps_pattern("broadcast_mul", "broadcast_div")


# ---- storage of another array


def _like(p: Any, lhs: Any, rhs: Any) -> Any:
    """The first array in the storage type of the second."""
    stype = stype_of(rhs)
    return lhs if stype_of(lhs) == stype else as_stype(dense(lhs), stype)


add_rule(("_identity_with_attr_like_rhs",), lambda p, t: t != (DENSE, DENSE), lambda p, t: t[1:], _like, None)


# ---- any number of arrays


def _all_rows(p: Any, stypes: Stypes) -> bool:
    return bool(stypes) and all(t == ROWS for t in stypes)


def _some_sparse(p: Any, stypes: Stypes) -> bool:
    return any(t != DENSE for t in stypes) and any(t == DENSE for t in stypes)


def _add_n(p: Any, *args: RowSparse) -> RowSparse:
    """The sum of row_sparse arrays."""
    return merge_rows(args, lambda *xs: sum(xs[1:], xs[0]))


def _add_n_mixed(p: Any, *args: Any) -> Any:
    """The sum of dense and sparse arrays: dense."""
    total = registry.get("add_n")(p, *(a for a in args if not isinstance(a, CSR | RowSparse)))
    for a in args:
        if isinstance(a, CSR | RowSparse):
            total = scatter_add(total, a)
    return total


add_rule(("add_n",), _all_rows, ROWS, _add_n, None)
add_rule(("add_n",), _some_sparse, DENSE, _add_n_mixed, None)


# ---- gradients


@grad_stypes("abs", "sign", "relu", "square", "cos", "cosh")
def _by_input(p: Any, ins: Stypes, head: str) -> list[str]:
    """The head gradient times a function of the input: a product of two arrays."""
    return [head if head == ins[0] else DENSE]


vanishing("abs", "sign", "relu", "square")


@grad_stypes("negative", "_copy", "_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_div_scalar",
             "_scatter_plus_scalar", "_scatter_minus_scalar", "_contrib_round_ste", "_contrib_sign_ste", "elemwise_add",
             "elemwise_sub", "add_n", "cast_storage")
def _as_head(p: Any, ins: Stypes, head: str) -> list[str]:
    """The head gradient, times a number at most."""
    return [head] * len(ins)


_FLAT = ("BlockGrad", "ceil", "floor", "rint", "round", "fix", "trunc", "zeros_like", "ones_like", "logical_not")
_COMPARED = ("equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal", "logical_and", "logical_or",
             "logical_xor")
_COMPARING = [name.format(n) for n in _COMPARED for name in ("_{}", "_{}_scalar", "broadcast_{}")]


zero_gradient(*_FLAT, *_COMPARING)
vanishing(*_FLAT, *_COMPARING)


@grad_stypes("exp")
def _exp_gradient(p: Any, ins: Stypes, head: str) -> list[str]:
    return [ROWS if head == ROWS else DENSE]
