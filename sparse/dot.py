"""Products with a sparse operand."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.experimental.sparse import BCSR

from symjax.lowering import registry
from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._elementwise import wide_dtype
from symjax.sparse.csr import CSR
from symjax.sparse.demand import lookup
from symjax.sparse.row_sparse import Located, RowSparse, take_rows
from symjax.sparse.rules import CSR_, DENSE, ROWS, Stypes, add_rule, as_stype, by_column, converts, dense
from symjax.sparse.storage import grad_stypes


def _check(p: Any, lhs: Any, rhs: Any) -> None:
    if rhs.ndim > 2 or lhs.ndim > 2:
        raise ShapeError(f"dot with a sparse operand needs matrices or a vector on the right, got lhs {lhs.shape} and "
                         f"rhs {rhs.shape}")
    inner = lhs.shape[0] if p.transpose_a else lhs.shape[-1]
    outer = rhs.shape[-1] if p.transpose_b else rhs.shape[0]
    if inner != outer:
        raise ShapeError(f"dot of lhs {lhs.shape} and rhs {rhs.shape} (transpose_a={p.transpose_a}, "
                         f"transpose_b={p.transpose_b}): the contracted axes differ")


def _scaled(values: Any, data: Any) -> Any:
    """Rows times stored values, in the type that sums are made in."""
    wide = wide_dtype(values.dtype)
    return values.astype(wide) * data.reshape(-1, *([1] * (values.ndim - 1))).astype(wide)


_KERNEL_WIDTH = 8
"""Columns on the right from which the CPU kernel for csr matrices is the faster one."""


def csr_dot(lhs: CSR, rhs: Any, platform: str | None = None) -> Any:
    """Returns lhs · rhs for csr (M, K) and dense or row_sparse (K, N) or (K,): dense (M, N) or (M,).

    Every stored value multiplies a row of `rhs`; the products are summed by row, in float32 for half precision.
    """
    wide = rhs.ndim == 2 and rhs.shape[1] >= _KERNEL_WIDTH and rhs.dtype in (jnp.float32, jnp.float64)
    if platform == "cpu" and wide:
        if isinstance(rhs, Located):
            return _kernel_dot(lhs.data, rhs.table.data, rhs.inverse, lhs)
        if not isinstance(rhs, RowSparse) or rhs.full:
            return _kernel_dot(lhs.data, rhs.data if isinstance(rhs, RowSparse) else rhs, lhs.indices, lhs)
    return _summed(lhs.data, take_rows(rhs, lhs.indices, padded=False), lhs)


def _summed(data: Any, values: Any, pattern: CSR) -> Any:
    """The sums by row of values (capacity, …) times stored values."""
    products = _scaled(values, data)
    if pattern.width is not None and products.size == pattern.capacity:
        rows = products[: pattern.shape[0] * pattern.width].reshape(pattern.shape[0], pattern.width, *values.shape[1:])
        return rows.sum(1).astype(values.dtype)
    out = jax.ops.segment_sum(products, pattern.rows, pattern.shape[0], indices_are_sorted=True, mode="drop")
    return out.astype(values.dtype)


@jax.custom_jvp
def _kernel_dot(data: Any, table: Any, places: Any, pattern: CSR) -> Any:
    """As `_summed` of the rows `places` of a table, by JAX's csr kernel, which goes through `indptr` alone."""
    shape = (pattern.shape[0], table.shape[0])
    return BCSR((data, places.astype(jnp.int32), pattern.indptr.astype(jnp.int32)), shape=shape) @ table


def _kernel_dot_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    # the kernel's own derivative is a product with the transposed matrix: far slower than a gather and its transpose
    data, table, places, pattern = primals
    parts = []
    if not isinstance(tangents[1], SymbolicZero):
        parts.append(_summed(data, take_rows(tangents[1], places, padded=False), pattern))
    if not isinstance(tangents[0], SymbolicZero):
        parts.append(_summed(tangents[0], take_rows(table, places, padded=False), pattern))
    out = _kernel_dot(data, table, places, pattern)
    return out, sum(parts[1:], parts[0]) if parts else jnp.zeros_like(out)


_kernel_dot.defjvp(_kernel_dot_jvp, symbolic_zeros=True)


def csr_t_dot(lhs: CSR, rhs: Any, platform: str | None = None) -> RowSparse:
    """Returns lhsᵀ · rhs for csr (M, K) and dense (M, N) or (M,): row_sparse (K, N) or (K,).

    Its rows are the columns of `lhs` that hold something.
    """
    index = lhs.column_index()
    sorted_by_column = lhs.transposed()
    if sorted_by_column is not None:
        data = csr_dot(sorted_by_column, rhs, platform)
    else:
        rows = take_rows(rhs, lhs.rows, padded=False)
        data = jax.ops.segment_sum(_scaled(rows, lhs.data), index.inverse, index.unique.shape[0], mode="drop")
    return RowSparse(data.astype(rhs.dtype), index.unique, (lhs.shape[1], *rhs.shape[1:]))


def csr_t_dot_dense(lhs: CSR, rhs: Any) -> Any:
    """Returns lhsᵀ · rhs as a dense array."""
    rows = take_rows(rhs, lhs.rows, padded=False)
    zero = jnp.zeros((lhs.shape[1], *rhs.shape[1:]), wide_dtype(rhs.dtype))
    return zero.at[lhs.indices].add(_scaled(rows, lhs.data), mode="drop").astype(rhs.dtype)


def _rhs(p: Any, rhs: Any) -> Any:
    if not p.transpose_b or rhs.ndim < 2:
        return rhs
    return (rhs.todense() if isinstance(rhs, RowSparse) else rhs).T


def _csr_first(p: Any, lhs: CSR, rhs: Any, *, platform: str | None) -> Any:
    _check(p, lhs, rhs)
    rhs = _rhs(p, rhs)
    if not p.transpose_a:
        return as_stype(csr_dot(lhs, rhs, platform), p.forward_stype or DENSE)
    if p.forward_stype == DENSE:
        return csr_t_dot_dense(lhs, rhs)
    if isinstance(rhs, RowSparse):
        rhs = rhs.todense()  # (M, N), of the batch's size
    out, stype = csr_t_dot(lhs, rhs, platform), _csr_first_out(p, (CSR_, DENSE))[0]
    return out if stype == ROWS else as_stype(out.todense(), stype)


def _dense_first(p: Any, lhs: Any, rhs: CSR, *, platform: str | None) -> Any:
    """dense · csr: every stored value (r, c) adds lhs[:, r] times itself to column c."""
    _check(p, lhs, rhs)
    left = lhs if p.transpose_a else lhs.T  # rows of it are the columns of lhs
    out = csr_dot(rhs, left, platform) if p.transpose_b else csr_t_dot_dense(rhs, left)
    return as_stype(out.T, _dense_first_out(p, (DENSE, CSR_))[0])


def _dense_first_out(p: Any, stypes: Stypes) -> Stypes:
    # MXNet: on CPU the product is csr unless the left side is transposed or forward_stype says otherwise.
    return (p.forward_stype or (DENSE if p.transpose_a else CSR_),)


def _csr_first_out(p: Any, stypes: Stypes) -> Stypes:
    return (p.forward_stype or (ROWS if p.transpose_a and not p.transpose_b else DENSE),)


for _right in (DENSE, ROWS):
    add_rule(("dot",), (CSR_, _right), _csr_first_out, _csr_first, None)
add_rule(("dot",), (DENSE, CSR_), _dense_first_out, _dense_first, None)


def _dense_dot(p: Any, lhs: Any, rhs: Any) -> Any:
    """The dense product of any two arrays, converted to the storage type asked for."""
    return as_stype(registry.get("dot")(p, dense(lhs), dense(rhs)), p.forward_stype)


add_rule(("dot",), lambda p, t: True, lambda p, t: (p.forward_stype,), _dense_dot,
         lambda p: p.forward_stype not in (None, DENSE))


def _uncast(p: Any, stypes: Stypes) -> Any:
    """csrᵀ · x gives rows of its own accord; other sparse results are conversions."""
    by_rows = stypes[0] == CSR_ and stypes[1] != CSR_ and p.transpose_a and not p.transpose_b
    return p if by_rows and p.forward_stype in (None, ROWS) else dataclasses.replace(p, forward_stype=DENSE)


converts("dot", _uncast)
lookup("dot", table=1, index=0, ids=lambda csr: csr.indices,
       when=lambda p, stype: stype == CSR_ and not p.transpose_a and not p.transpose_b)

by_column("dot", 0, when=lambda p: p.transpose_a)


@grad_stypes("dot")
def _dot_gradient(p: Any, ins: Stypes, head: str) -> list[str]:
    rows = ins[0] == CSR_ and not p.transpose_a and not p.transpose_b and head != CSR_
    return [DENSE, ROWS if rows else DENSE]
