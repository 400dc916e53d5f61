"""Functions outside of compiled code, that may look at how many entries are stored."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.sparse.buckets import bucket
from symjax.sparse.csr import CSR
from symjax.sparse.elementwise import merge_csr
from symjax.sparse.row_sparse import RowSparse, take_rows
from symjax.sparse.unique import index_on_host


def trimmed(x: Any) -> Any:
    """Returns a container with the capacity of its number of entries, an array as it is.

    What is made while tracing has room for the worst case.
    """
    if isinstance(x, CSR):
        room = bucket(int(x.indptr[-1]))
        if room >= x.capacity:
            return x
        return dataclasses.replace(x, data=x.data[:room], indices=x.indices[:room], rows=x.rows[:room], columns=None)
    if isinstance(x, RowSparse) and not x.full:
        room = bucket(int(np.searchsorted(np.asarray(x.indices), x.shape[0])))
        return x if room >= x.capacity else dataclasses.replace(x, data=x.data[:room], indices=x.indices[:room])
    return x


@jax.jit
def _add_at(unique: Any, x: RowSparse, y: RowSparse) -> RowSparse:
    return RowSparse(take_rows(x, unique) + take_rows(y, unique), unique, x.shape)


@jax.jit
def _add_csr(x: CSR, y: CSR) -> CSR:
    return merge_csr(x, y, jnp.add)


@jax.jit
def _add_full(x: RowSparse, y: RowSparse) -> RowSparse:
    return x.with_data(x.data + y.data)


def add(x: Any, y: Any) -> Any:
    """Returns the sum of two arrays or containers of one storage type and device, its capacity that of its entries."""
    if isinstance(x, CSR):
        return trimmed(_add_csr(x, y))
    if isinstance(x, RowSparse):
        if x.full and y.full:
            return _add_full(x, y)
        joined = np.concatenate([np.asarray(x.indices), np.asarray(y.indices)])
        unique = index_on_host(joined, x.shape[0]).unique
        return _add_at(jax.device_put(unique, next(iter(x.devices()))), x, y)
    return x + y
