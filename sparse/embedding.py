"""Sparse rules of lookups: Embedding, take, retain."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import as_index, bound_index
from symjax.sparse.buckets import index_dtype
from symjax.sparse.csr import CSR, csr_from_rows
from symjax.sparse.demand import lookup
from symjax.sparse.row_sparse import Located, RowSparse, take_rows
from symjax.sparse.rules import CSR_, DENSE, ROWS, STYPES, Stypes, refuse, storage_rule
from symjax.sparse.storage import grad_stypes

_EMBEDDINGS = ("Embedding", "_contrib_SparseEmbedding")


@storage_rule(*_EMBEDDINGS, stypes=(DENSE, ROWS))
def embedding_of_rows(p: Any, data: Any, weight: RowSparse | Located) -> Any:
    """Looks rows of a row_sparse table up; rows that are not stored are zero."""
    return take_rows(weight, bound_index(data, weight.shape[0], "clip"), padded=False)


for _data in STYPES:
    for _weight in STYPES:
        if _data != DENSE or _weight == CSR_:
            refuse(*_EMBEDDINGS, stypes=(_data, _weight),
                   text=f"data must have default storage and the weight default or row_sparse, got {_data} and "
                        f"{_weight}")


def _whole(index: Any) -> Any:
    return index.astype("int64" if index.dtype.itemsize == 8 else "int32")


lookup(*_EMBEDDINGS, table=1, index=0, ids=_whole, clip=True)


@grad_stypes("Embedding")
def _embedding_gradient(p: Any, ins: Stypes, head: str) -> list[str]:
    return [DENSE, ROWS if p.sparse_grad else DENSE]


@grad_stypes("_contrib_SparseEmbedding")
def _sparse_embedding_gradient(p: Any, ins: Stypes, head: str) -> list[str]:
    return [DENSE, ROWS]




@storage_rule("take", stypes=(ROWS, DENSE), when=lambda p: p.axis == 0 and p.mode != "raise")
def take_of_rows(p: Any, a: RowSparse | Located, indices: Any) -> Any:
    """Reads rows of a row_sparse array: dense."""
    return take_rows(a, bound_index(indices, a.shape[0], p.mode), padded=False)


lookup("_sparse_retain", table=0, index=1, ids=_whole, clip=True)
lookup("take", table=0, index=1, ids=_whole, clip=True,
       when=lambda p, stype: stype == DENSE and p.axis == 0 and p.mode == "clip")


@storage_rule("take", stypes=(CSR_, DENSE), out=CSR_, when=lambda p: p.axis == 0 and p.mode != "raise")
def take_of_csr(p: Any, a: CSR, indices: Any) -> CSR:
    """Reads rows of a csr matrix: csr. There is room for every index to read as many entries as `a` has room for."""
    if indices.ndim != 1:
        raise ShapeError(f"take from a csr matrix needs a vector of indices, got shape {indices.shape}; cast the "
                         f"matrix to default storage first")
    ids = bound_index(indices, a.shape[0], p.mode)
    counts = (a.indptr[1:] - a.indptr[:-1])[ids]
    room = max(1, min(a.capacity * ids.size, a.shape[1] * ids.size))
    kind = index_dtype(max(room, a.shape[1], ids.size))
    ends = jnp.cumsum(counts, dtype=kind)
    places = jnp.arange(room, dtype=kind)
    row = jnp.searchsorted(ends, places, side="right").astype(kind)
    inside = row < ids.size
    row_or_0 = jnp.where(inside, row, 0)
    source = a.indptr[ids[row_or_0]] + (places - (ends - counts)[row_or_0])
    source = jnp.where(inside, source, a.capacity)
    data = a.data.at[source].get(mode="fill", fill_value=0)
    cols = a.indices.at[source].get(mode="fill", fill_value=a.shape[1])
    return csr_from_rows(data, jnp.where(inside, row, ids.size), cols, (ids.size, a.shape[1]))


@storage_rule("_sparse_retain", stypes=(ROWS, DENSE), out=ROWS)
def retain(p: Any, data: RowSparse | Located, indices: Any) -> RowSparse:
    """Keeps the given rows, in the order given; rows that `data` does not store become stored zeros."""
    ids = as_index(indices).reshape(-1)
    rows = take_rows(data, ids)
    return RowSparse(rows, ids.astype(index_dtype(data.shape[0])), data.shape)


@grad_stypes("_sparse_retain")
def _retain_gradient(p: Any, ins: Stypes, head: str) -> list[str]:
    return [ROWS, DENSE]
