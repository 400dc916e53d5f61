"""Products of arrays: dot, batch_dot, khatri_rao."""

from __future__ import annotations

import functools
from typing import Literal

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import contract
from symjax.lowering.params import Params, param
from symjax.lowering.registry import op


class DotParams(Params):
    transpose_a: bool = param(False, doc="Contract the first axis of lhs (dot) or transpose its matrices (batch_dot).")
    transpose_b: bool = param(False, doc="Contract the last axis of rhs (dot) or transpose its matrices (batch_dot).")
    forward_stype: Literal["csr", "default", "row_sparse"] | None = param(
        None, doc="Storage type of the result, where a sparse rule is asked for one.")


@op("dot", aliases=("_sparse_dot",), params=DotParams)
def dot(p: DotParams, lhs: Array, rhs: Array) -> Array:
    """Contracts the last axis of `lhs` with the first of `rhs`.

    transpose_a contracts the first axis of `lhs` instead, transpose_b the last of `rhs`. Shapes (a…, k) and (k, b…)
    give (a…, b…); two vectors give (1,). Half precision sums in float32.
    """
    a, b = 0 if p.transpose_a else lhs.ndim - 1, rhs.ndim - 1 if p.transpose_b else 0
    if lhs.ndim == 0 or rhs.ndim == 0 or lhs.shape[a] != rhs.shape[b]:
        raise ShapeError(f"dot of lhs {lhs.shape} and rhs {rhs.shape} (transpose_a={p.transpose_a}, "
                         f"transpose_b={p.transpose_b}): the contracted axes differ")
    out = contract(lhs, rhs, ((a,), (b,)))
    return out.reshape(1) if out.ndim == 0 else out


@op("batch_dot", aliases=("_npx_batch_dot",), params=DotParams)
def batch_dot(p: DotParams, lhs: Array, rhs: Array) -> Array:
    """Multiplies matrices batch by batch: (B…, m, k) and (B…, k, n) give (B…, m, n).

    The batch axes must be equal. Half precision sums in float32.
    """
    if lhs.ndim != rhs.ndim or lhs.ndim < 3 or lhs.shape[:-2] != rhs.shape[:-2]:
        raise ShapeError(f"batch_dot needs two arrays of one rank (3 or more) and equal batch axes, got lhs "
                         f"{lhs.shape} and rhs {rhs.shape}")
    n = lhs.ndim
    a, b = n - 2 if p.transpose_a else n - 1, n - 1 if p.transpose_b else n - 2
    if lhs.shape[a] != rhs.shape[b]:
        raise ShapeError(f"batch_dot of lhs {lhs.shape} and rhs {rhs.shape} (transpose_a={p.transpose_a}, "
                         f"transpose_b={p.transpose_b}): the contracted axes differ")
    batch = tuple(range(n - 2))
    return contract(lhs, rhs, ((a,), (b,)), (batch, batch))


class KhatriRaoParams(Params):
    num_args: int = param(doc="How many matrices.", ge=1)


def arg_names(p: object) -> tuple[str, ...]:
    """arg0, arg1, …: MXNet's names of a variable number of inputs."""
    return tuple(f"arg{i}" for i in range(getattr(p, "num_args")))  # noqa: B009  (p is any such parameter set)


@op("khatri_rao", params=KhatriRaoParams, inputs=arg_names, variadic="num_args", all_inputs=("args",))
def khatri_rao(p: KhatriRaoParams, *args: Array) -> Array:
    """Column-wise Kronecker product: matrices (m_i, k) give (prod m_i, k)."""
    if any(a.ndim != 2 or a.shape[1] != args[0].shape[1] for a in args):
        raise ShapeError(f"khatri_rao needs matrices of one width, got {', '.join(str(a.shape) for a in args)}")
    return functools.reduce(lambda x, y: (x[:, None, :] * y[None, :, :]).reshape(-1, x.shape[1]), args,
                            jnp.ones((1, args[0].shape[1]), args[0].dtype))
