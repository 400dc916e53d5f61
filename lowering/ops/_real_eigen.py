"""Eigenvalues of real matrices whose eigenvalues are real, with plain JAX: the QR algorithm with shifts.

LAPACK's routine exists on CPU alone (and on some GPUs); this one runs everywhere. Each of its up to 40 n + 40 steps
costs O(n³), so it is meant for matrices of up to some hundred rows.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.ops._axes import argmax


def schur(a: Array) -> tuple[Array, Array, Array]:
    """T and Q of a = Q T Qᵀ with an upper triangular T, and whether it was found: it is where all eigenvalues are real.

    Args:
      a: one matrix (n, n), float32 or float64.
    """
    n = a.shape[0]
    eps = jnp.finfo(a.dtype).eps
    below = jnp.tril(jnp.ones((n, n), bool), -1)
    scale = jnp.max(jnp.abs(a), initial=0)

    def last_open(t: Array) -> Array:
        """The last row that still has something left of the diagonal; 0: none."""
        rest = jnp.sum(jnp.where(below, jnp.abs(t), 0), 1)
        return jnp.max(jnp.where(rest > 0, jnp.arange(n, dtype=jnp.int32), 0))

    def cleaned(t: Array) -> Array:
        """T with what is negligible below the diagonal set to 0."""
        size = jnp.abs(jnp.diagonal(t))
        near = eps * jnp.maximum(size[:, None] + size[None, :], eps * scale)
        whole_row = jnp.sum(jnp.where(below, jnp.abs(t), 0), 1)
        left = jnp.max(jnp.where(below, near, 0), 1)
        return jnp.where(below & (whole_row <= left)[:, None], 0, t)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, q, i = state
        m = last_open(t)
        k = jnp.maximum(m - 1, 0)
        shift = _shift(t[k, k], t[k, m], t[m, k], t[m, m])
        # now and then a shift off the eigenvalue, to get out of cycles
        shift = jnp.where(i % 11 == 10, 0.75 * (jnp.abs(t[m, k]) + jnp.abs(t[m, m])), shift)
        eye = jnp.eye(n, dtype=a.dtype)
        # what is done already must not be mixed in again: it is left out of the rotation
        active = jnp.arange(n, dtype=jnp.int32) <= m
        inner = active[:, None] & active[None, :]
        u, _ = jnp.linalg.qr(jnp.where(inner, t - shift * eye, eye))
        u = jnp.where(inner, u, eye)
        return cleaned(u.T @ t @ u), q @ u, i + 1

    def going(state: tuple[Array, Array, Array]) -> Array:
        return (last_open(state[0]) > 0) & (state[2] < 40 * n + 40)

    start = (cleaned(a), jnp.eye(n, dtype=a.dtype), jnp.zeros((), jnp.int32))
    t, q, _ = lax.while_loop(going, step, start)
    return t, q, last_open(t) == 0


def _shift(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The eigenvalue of [[a, b], [c, d]] that is nearer to d; d itself where they are complex."""
    half = (a - d) / 2
    square = half * half + b * c
    root = jnp.sqrt(jnp.maximum(square, 0))
    divisor = half + jnp.where(half < 0, -root, root)
    nearer = d - b * c / jnp.where(divisor == 0, 1, divisor)
    return jnp.where((square < 0) | (divisor == 0), d, nearer)


def eigenvectors(t: Array) -> Array:
    """Right eigenvectors of an upper triangular matrix, as columns of an upper triangular one."""
    n = t.shape[0]
    values = jnp.diagonal(t)
    least = jnp.maximum(jnp.finfo(t.dtype).eps * jnp.max(jnp.abs(t), initial=0), jnp.finfo(t.dtype).tiny)

    def row(i: Array, y: Array) -> Array:
        j = n - 1 - i
        gap = t[j, j] - values
        gap = jnp.where(jnp.abs(gap) < least, least, gap)
        columns = jnp.arange(n, dtype=jnp.int32)
        solved = -(t[j] @ y) / gap
        return y.at[j].set(jnp.where(columns > j, solved, jnp.where(columns == j, 1, 0).astype(t.dtype)))

    return lax.fori_loop(0, n, row, jnp.zeros_like(t))


def eigen(a: Array) -> tuple[Array, Array]:
    """Eigenvalues (n,) and eigenvectors (n, n) of one matrix; NaN where it has complex ones.

    The columns have norm 1, and their component of largest magnitude is positive.
    """
    t, q, found = schur(a)
    v = q @ eigenvectors(t)
    v = v / jnp.linalg.norm(v, axis=0, keepdims=True)
    top = jnp.take_along_axis(v, argmax(jnp.abs(v), 0, keepdims=True), 0)
    v = v * jnp.where(top < 0, -1, 1).astype(v.dtype)
    return jnp.where(found, jnp.diagonal(t), jnp.nan), jnp.where(found, v, jnp.nan)


def batched(a: Array) -> tuple[Array, Array]:
    """`eigen` of matrices (…, n, n)."""
    n = a.shape[-1]
    w, v = jax.vmap(eigen)(a.reshape(-1, n, n))
    return w.reshape(a.shape[:-1]), v.reshape(a.shape)
