"""Attention on interleaved projections, as GluonNLP's BERT uses it.

Queries, keys and values of one token lie side by side for each head: an input (T, N, H * 3 * D) is read as
(T, N, H, 3, D). Attention maps have the shape (N * H, queries, keys).
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import contract
from symjax.lowering.params import Params, param
from symjax.lowering.registry import op


class HeadsParams(Params):
    heads: int = param(doc="Number of attention heads.", ge=1)


def _heads(x: Array, heads: int, parts: int, name: str) -> list[Array]:
    """(T, N, H * parts * D) to `parts` arrays (N * H, T, D)."""
    if x.ndim != 3 or x.shape[2] % (heads * parts):
        raise ShapeError(f"argument {name!r}: expected (length, batch, a multiple of {heads * parts}), got {x.shape}")
    t, n, width = x.shape
    x = x.reshape(t, n * heads, parts, width // (heads * parts))
    return [x[:, :, i].transpose(1, 0, 2) for i in range(parts)]  # cut first: a part that is not used is not moved


def _scores(q: Array, k: Array) -> Array:
    q = q * jnp.asarray(1.0 / math.sqrt(q.shape[-1])).astype(q.dtype)
    return contract(q, k, ((2,), (2,)), ((0,), (0,)))


def _mix(attention: Array, v: Array, heads: int) -> Array:
    if attention.ndim != 3 or attention.shape[::2] != v.shape[:2]:
        raise ShapeError(f"argument 'attention': expected ({v.shape[0]}, queries, {v.shape[1]}), got {attention.shape}")
    out = contract(attention, v, ((2,), (1,)), ((0,), (0,)))
    out = out.reshape(-1, heads, *out.shape[1:]).transpose(2, 0, 1, 3)
    return out.reshape(*out.shape[:2], -1)


@op("_contrib_interleaved_matmul_selfatt_qk", params=HeadsParams)
def selfatt_qk(p: HeadsParams, queries_keys_values: Array) -> Array:
    """Scores q kᵀ / sqrt(D) of self-attention: (T, N, H*3*D) gives (N*H, T, T)."""
    q, k, _ = _heads(queries_keys_values, p.heads, 3, "queries_keys_values")
    return _scores(q, k)


@op("_contrib_interleaved_matmul_selfatt_valatt", params=HeadsParams)
def selfatt_valatt(p: HeadsParams, queries_keys_values: Array, attention: Array) -> Array:
    """Values weighted by attention: (T, N, H*3*D) and (N*H, T, T) give (T, N, H*D)."""
    return _mix(attention, _heads(queries_keys_values, p.heads, 3, "queries_keys_values")[2], p.heads)


@op("_contrib_interleaved_matmul_encdec_qk", params=HeadsParams)
def encdec_qk(p: HeadsParams, queries: Array, keys_values: Array) -> Array:
    """Scores q kᵀ / sqrt(D) between two sequences: (Tq, N, H*D) and (Tk, N, H*2*D) give (N*H, Tq, Tk)."""
    q, = _heads(queries, p.heads, 1, "queries")
    k, _ = _heads(keys_values, p.heads, 2, "keys_values")
    if q.shape[::2] != k.shape[::2]:
        raise ShapeError(f"queries {queries.shape} and keys_values {keys_values.shape} differ in batch or head width")
    return _scores(q, k)


@op("_contrib_interleaved_matmul_encdec_valatt", params=HeadsParams)
def encdec_valatt(p: HeadsParams, keys_values: Array, attention: Array) -> Array:
    """Values weighted by attention: (Tk, N, H*2*D) and (N*H, Tq, Tk) give (Tq, N, H*D)."""
    return _mix(attention, _heads(keys_values, p.heads, 2, "keys_values")[1], p.heads)
