"""Operators about storage types: cast_storage, sparse retain. Their sparse rules are in `symjax.sparse`."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jax import Array

from symjax.lowering.params import Params, param
from symjax.lowering.registry import SAME, op

Types = tuple[list[str | None], list[str | None]]


class CastStorageParams(Params):
    stype: Literal["csr", "default", "row_sparse"] = param(doc="Storage type of the result.")


@op("cast_storage", aliases=("_sparse_cast_storage",), params=CastStorageParams, shape=SAME)
def cast_storage(p: CastStorageParams, data: Array) -> Array:
    """Returns the same numbers in another storage type.

    From dense to csr the elements that are not zero are kept, to row_sparse the rows that have one. csr needs a matrix.
    There is no conversion between csr and row_sparse.
    """
    return data


def _retain_types(p: Params, ins: list[str | None], outs: list[str | None]) -> Types:
    known = ins[0] or outs[0]
    return [known, ins[1]], [known]


@op("_sparse_retain", infer_types=_retain_types)
def sparse_retain(p: Params, data: Array, indices: Array) -> Array:
    """Keeps the rows `indices` (n,) of a row_sparse array; the others become zero.

    Data of another storage type is an error, which the sparse rules raise; this rule gives shapes and types.
    """
    ids = indices.astype("int32").reshape(-1)
    return jnp.zeros_like(data).at[ids].set(data.at[ids].get(mode="fill", fill_value=0), mode="drop")

