"""Sparse rules of conversions, slices, joins and reductions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from symjax.lowering import registry
from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._elementwise import is_float, wide_dtype
from symjax.lowering.ops.reduce import finish, reduced_axes
from symjax.lowering.ops.slicing import slices
from symjax.sparse.buckets import index_dtype
from symjax.sparse.csr import CSR, csr_from_rows
from symjax.sparse.demand import rowwise, vanishing
from symjax.sparse.row_sparse import RowSparse
from symjax.sparse.rules import CSR_, DENSE, ROWS, STYPES, Stypes, add_rule, as_stype, converts, refuse, storage_rule
from symjax.sparse.rules import zeros_where_padding as zeroed
from symjax.sparse.storage import grad_stypes

# ---- conversions


def _cast(p: Any, data: Any) -> Any:
    return as_stype(data, p.stype)


rowwise("cast_storage", when=lambda p: p.stype == ROWS)
converts("cast_storage", lambda p, stypes: dataclasses.replace(p, stype=DENSE) if stypes[0] == DENSE else p)

for _from in STYPES:
    for _to in STYPES:
        if _from == _to or DENSE in (_from, _to):
            add_rule(("cast_storage",), (_from,), _to, _cast, lambda p, to=_to: p.stype == to)
refuse("cast_storage", stypes=(CSR_,), when=lambda p: p.stype == ROWS,
       text="there is no conversion from csr to row_sparse; cast to default storage first")
refuse("cast_storage", stypes=(ROWS,), when=lambda p: p.stype == CSR_,
       text="there is no conversion from row_sparse to csr; cast to default storage first")
for _stype in (DENSE, CSR_):
    refuse("_sparse_retain", stypes=(_stype, DENSE),
           text=f"argument 'data' must be row_sparse, got {_stype} storage; "
                f"convert it with cast_storage(stype='row_sparse')")


@storage_rule("where", stypes=lambda p, t: t == (CSR_, DENSE, DENSE))
def where_csr(p: Any, condition: CSR, x: Any, y: Any) -> Any:
    """Chooses by a csr condition; the result is dense, so its condition may be as well."""
    return registry.get("where")(p, condition.todense(), x, y)


# ---- slices and joins


def select_entries(x: CSR, keep: Any, rows: Any, cols: Any, shape: tuple[int, int]) -> CSR:
    """Returns the entries chosen by `keep`, moved to `rows` and `cols`, as a matrix of another shape."""
    (at,) = jnp.nonzero(keep, size=x.capacity, fill_value=x.capacity)
    kind = index_dtype(max(*shape, x.capacity))
    return csr_from_rows(
        x.data.at[at].get(mode="fill", fill_value=0),
        rows.astype(kind).at[at].get(mode="fill", fill_value=shape[0]),
        cols.astype(kind).at[at].get(mode="fill", fill_value=shape[1]),
        shape,
    )


def _no_steps(p: Any) -> bool:
    return all(s in (None, 1) for s in p.step)


@storage_rule("slice", stypes=(CSR_,), out=CSR_, when=_no_steps)
def slice_csr(p: Any, data: CSR) -> CSR:
    """Cuts rows and columns out of a csr matrix."""
    where = (*slices(p, data.shape), slice(None), slice(None))[:2]
    (r0, r1, rs), (c0, c1, cs) = (s.indices(d) for s, d in zip(where, data.shape, strict=True))
    keep = (data.rows >= r0) & (data.rows < r1) & ((data.rows - r0) % rs == 0)
    keep &= (data.indices >= c0) & (data.indices < c1) & ((data.indices - c0) % cs == 0)
    shape = (len(range(r0, r1, rs)), len(range(c0, c1, cs)))
    return select_entries(data, keep & data.valid, (data.rows - r0) // rs, (data.indices - c0) // cs, shape)


def _rows_of_csr(p: Any, stypes: Stypes) -> bool:
    return p.dim == 0 and bool(stypes) and all(t == CSR_ for t in stypes)


@storage_rule("Concat", stypes=_rows_of_csr, out=CSR_)
def concat_csr(p: Any, *parts: CSR) -> CSR:
    """Stacks csr matrices: csr."""
    widths = {x.shape[1] for x in parts}
    if len(widths) > 1:
        raise ShapeError(f"inputs {', '.join(str(x.shape) for x in parts)} must agree in axis 1")
    width, height = parts[0].shape[1], sum(x.shape[0] for x in parts)
    room = sum(x.capacity for x in parts)
    kind = index_dtype(max(height, width, room))
    rows, start = [], 0
    for x in parts:
        rows.append(jnp.where(x.valid, x.rows.astype(kind) + start, height))
        start += x.shape[0]
    row = jnp.concatenate(rows)
    order = jnp.argsort(row, stable=True)  # moves padding to the end
    data = jnp.concatenate([x.data for x in parts])[order]
    cols = jnp.concatenate([x.indices.astype(kind) for x in parts])[order]
    return csr_from_rows(data, row[order], cols, (height, width))


# ---- reductions


def _summed(x: CSR | RowSparse, values: Any, axes: tuple[int, ...]) -> Any:
    """Sums stored values (of the wide type) over axes of the whole array; the axes vanish."""
    if isinstance(x, CSR):
        if axes == (0, 1):
            return jnp.sum(values)
        if axes == (1,):
            return jax.ops.segment_sum(values, x.rows, x.shape[0], indices_are_sorted=True, mode="drop")
        return jnp.zeros(x.shape[1], values.dtype).at[x.indices].add(values, mode="drop")
    if 0 in axes:
        return jnp.sum(values, axes)
    rows = jnp.sum(values, axes)
    return rows if x.full else jnp.zeros((x.shape[0], *rows.shape[1:]), rows.dtype).at[x.indices].add(rows, mode="drop")


def _reduction(name: str, of: Callable[[Any, Any], Any], after: Callable[[Any, Any, int], Any]) -> None:
    def rule(p: Any, data: CSR | RowSparse) -> Any:
        axes = reduced_axes(p.axis, data.ndim, getattr(p, "exclude", False))
        wide = wide_dtype(data.dtype) if is_float(data.data) else data.dtype
        total = _summed(data, of(p, data.data.astype(wide)), axes) if axes else of(p, data.todense().astype(wide))
        out = after(p, total, math.prod(data.shape[a] for a in axes))
        return finish(out.astype(getattr(p, "out_dtype", None) or data.dtype), axes, data.shape, p.keepdims)

    rule.__doc__ = f"{name} of a sparse array over any axes: dense."
    for stype in (CSR_, ROWS):
        add_rule((name,), (stype,), DENSE, rule, None)


_reduction("sum", lambda p, x: x, lambda p, t, n: t)
_reduction("mean", lambda p, x: x, lambda p, t, n: t / n if jnp.issubdtype(t.dtype, jnp.inexact) else t // n)
_reduction("norm", lambda p, x: x * x if p.ord == 2 else x * jax.lax.stop_gradient(jnp.sign(x)),
           lambda p, t, n: jnp.sqrt(t) if p.ord == 2 else t)


def _by_rows(p: Any) -> bool:
    return bool(p.keepdims) and not p.exclude and tuple(p.axis or ()) == (1,)


@storage_rule("_square_sum", stypes=(ROWS,), out=ROWS, when=_by_rows)
def square_sum_of_rows(p: Any, data: RowSparse) -> RowSparse:
    """The sum of squares of each row of a matrix, kept as a column: row_sparse."""
    wide = wide_dtype(data.dtype)
    sums = jnp.sum(jnp.square(data.data.astype(wide)), 1, keepdims=True)
    return data.with_data(zeroed(data, sums.astype(data.dtype)))


_reduction("_square_sum", lambda p, x: x * x, lambda p, t, n: t)
rowwise("_square_sum", when=_by_rows)


@grad_stypes("_square_sum")
def _square_sum_gradient(p: Any, ins: Stypes, head: str) -> list[str]:
    return [ROWS if ins[0] == ROWS else DENSE]


vanishing("_square_sum")
