"""Eigenvalues with numpy's meaning: eig, eigvals, eigh, eigvalsh.

Whole numbers are computed in float64. MXNet has no complex numbers: eig and eigvals are for matrices whose eigenvalues
are real. Others give NaN here, where MXNet raises: a compiled function cannot.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.ops import _real_eigen
from symjax.lowering.ops.linalg import from_lower, square, wide, with_sign
from symjax.lowering.ops.numpy_linalg import as_float
from symjax.lowering.params import Params, param
from symjax.lowering.registry import op

Types = tuple[Sequence[str | None], Sequence[str | None]]
Eigen = Callable[[Array], tuple[Array, Array]]


def _types(p: Params, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, [None if ins[0] is None else as_float(ins[0])] * len(outs)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _eigen(find: Eigen, a: Array) -> tuple[Array, Array]:
    return find(a)


# MXNet: all gradients here are zero.
@_eigen.defjvp
def _(find: Eigen, primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """With M = V⁻¹ dA V: dw is its diagonal; dV = V (M / (w_j - w_i)), less what would change the columns' norm."""
    w, v = _eigen(find, primals[0])
    m = jnp.linalg.solve(v, tangents[0] @ v)
    gap = w[..., None, :] - w[..., :, None]
    own = jnp.eye(w.shape[-1], dtype=bool)
    dv = v @ jnp.where(own, 0, m / jnp.where(own, 1, gap))
    dv = dv - v * jnp.sum(v * dv, -2, keepdims=True)
    return (w, v), (jnp.diagonal(m, axis1=-2, axis2=-1), dv)


def _lapack(a: Array) -> tuple[Array, Array]:
    w, v = jnp.linalg.eig(a)
    real = jnp.all(w.imag == 0, -1)
    return jnp.where(real[..., None], w.real, jnp.nan), jnp.where(real[..., None, None], v.real, jnp.nan)


def _general(find: Eigen, a: Array) -> tuple[Array, Array]:
    square(a)
    dtype = as_float(a.dtype.name)
    if not a.size:
        return jnp.zeros(a.shape[:-1], dtype), jnp.zeros(a.shape, dtype)
    w, v = wide(lambda x: _eigen(find, x), a.astype(dtype))
    return w, v


@op("_npi_eig", outputs=2, infer_types=_types)
def eig(p: Params, A: Array) -> tuple[Array, Array]:
    """Eigenvalues (…, n) and, as columns, eigenvectors (…, n, n) of norm 1 of square matrices.

    On CPU by LAPACK; elsewhere by the QR algorithm, whose order and signs may be others. Matrices with complex
    eigenvalues give NaN.
    """
    return _general(_real_eigen.batched, A)


@eig.variant(platform="cpu")
def _(p: Params, A: Array) -> tuple[Array, Array]:
    return _general(_lapack, A)


@op("_npi_eigvals", infer_types=_types)
def eigvals(p: Params, A: Array) -> Array:
    """Eigenvalues (…, n) of square matrices, in no particular order; NaN where there are complex ones."""
    return _general(_real_eigen.batched, A)[0]


@eigvals.variant(platform="cpu")
def _(p: Params, A: Array) -> Array:
    return _general(_lapack, A)[0]


class TriangleParams(Params):
    UPLO: Literal["L", "U"] = param("L", doc="The triangle that is read: L lower, U upper.")


def _symmetric(p: TriangleParams, a: Array) -> tuple[Array, Array]:
    square(a)
    dtype = as_float(a.dtype.name)
    if not a.size:
        return jnp.zeros(a.shape[:-1], dtype), jnp.zeros(a.shape, dtype)

    def run(x: Array) -> tuple[Array, Array]:
        lower = x if p.UPLO == "L" else jnp.swapaxes(x, -1, -2)
        v, w = lax.linalg.eigh(from_lower(lower), symmetrize_input=False)
        return w, with_sign(v)

    w, v = wide(run, a.astype(dtype))
    return w, v


@op("_npi_eigh", params=TriangleParams, outputs=2, infer_types=_types)
def eigh(p: TriangleParams, A: Array) -> tuple[Array, Array]:
    """Rising eigenvalues (…, n) and, as columns, eigenvectors (…, n, n) of norm 1 of symmetric matrices.

    One triangle is read; the gradient is symmetric. The component of largest magnitude in each vector is positive.
    """
    return _symmetric(p, A)


@op("_npi_eigvalsh", params=TriangleParams, infer_types=_types)
def eigvalsh(p: TriangleParams, A: Array) -> Array:
    """Rising eigenvalues (…, n) of symmetric matrices, of which one triangle is read; the gradient is symmetric."""
    return _symmetric(p, A)[0]
