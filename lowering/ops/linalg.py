"""Linear algebra on batches of matrices: the _linalg_* family. The last two axes are the matrix.

Symmetric inputs are read from their lower triangle, as LAPACK is asked to; their gradients are symmetric. Half
precision is computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import argmax, axis_of, from_output, is_half
from symjax.lowering.params import Params, param
from symjax.lowering.registry import Op, ShapeLike, op


def square(a: Array, name: str = "A") -> int:
    """The size of square matrices; others are refused."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"argument {name!r}: expected square matrices (…, n, n), got {a.shape}")
    return a.shape[-1]


def wide(f: Callable[..., Array | tuple[Array, ...]], *args: Array) -> tuple[Array, ...]:
    """Runs `f` in float32 for half precision and casts floating results back."""
    dtype = args[0].dtype
    out = f(*(a.astype(jnp.float32) for a in args)) if is_half(dtype) else f(*args)
    out = out if isinstance(out, tuple) else (out,)
    return tuple(o.astype(dtype) if jnp.issubdtype(o.dtype, jnp.floating) else o for o in out)


def _t(a: Array) -> Array:
    return jnp.swapaxes(a, -1, -2)


def _scalars(x: Array) -> Array:
    """One number per matrix; (1,) for a single matrix."""
    return x.reshape(1) if x.ndim == 0 else x


@jax.custom_jvp
def from_lower(a: Array) -> Array:
    """The symmetric matrix of a lower triangle, with a symmetric gradient."""
    return jnp.tril(a) + _t(jnp.tril(a, -1))


@from_lower.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return from_lower(primals[0]), (tangents[0] + _t(tangents[0])) / 2


class Gemm2Params(Params):
    transpose_a: bool = param(False, doc="Transpose the matrices of A.")
    transpose_b: bool = param(False, doc="Transpose the matrices of B.")
    alpha: float = param(1.0, doc="Factor of the product.")
    axis: int = param(-2, doc="Axis of the matrix rows; the columns are the last axis.")


class GemmParams(Gemm2Params):
    beta: float = param(1.0, doc="Factor of C.")


def _product(p: Gemm2Params, a: Array, b: Array) -> Array:
    if a.ndim < 2 or a.ndim != b.ndim:
        raise ShapeError(f"A {a.shape} and B {b.shape} must have one rank of at least 2")
    row = axis_of(p.axis, a.ndim)
    if row == a.ndim - 1:
        raise ShapeError(f"axis={p.axis} must not be the last axis, which holds the columns")
    a, b = jnp.moveaxis(a, row, -2), jnp.moveaxis(b, row, -2)
    if a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(f"A {a.shape} and B {b.shape} must have equal batch axes")
    a, b = _t(a) if p.transpose_a else a, _t(b) if p.transpose_b else b
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"matrices of A (…, {a.shape[-2]}, {a.shape[-1]}) and B (…, {b.shape[-2]}, {b.shape[-1]}) "
                         f"cannot be multiplied")
    return jnp.moveaxis(p.alpha * jnp.matmul(a, b), -2, row)


@op("_linalg_gemm2", aliases=("linalg_gemm2",), params=Gemm2Params)
def gemm2(p: Gemm2Params, A: Array, B: Array) -> Array:
    """alpha * op(A) op(B), where op transposes if asked: (…, m, k) and (…, k, n) give (…, m, n)."""
    return wide(lambda a, b: _product(p, a, b), A, B)[0]


def _gemm_c(p: GemmParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    a, b, c = ins
    if a is None or b is None or len(a) != len(b) or len(a) < 2:
        return [a, b, outs[0] or c]
    row = axis_of(p.axis, len(a))
    want = [x or y for x, y in zip(a, b, strict=True)]
    want[row] = a[-1] if p.transpose_a else a[row]
    want[-1] = b[row] if p.transpose_b else b[-1]
    return [a, b, tuple(want)]


@op("_linalg_gemm", aliases=("linalg_gemm",), params=GemmParams, infer_inputs=_gemm_c)
def gemm(p: GemmParams, A: Array, B: Array, C: Array) -> Array:
    """alpha * op(A) op(B) + beta * C."""

    def run(a: Array, b: Array, c: Array) -> Array:
        out = _product(p, a, b)
        if out.shape != c.shape:
            raise ShapeError(f"argument 'C': expected {out.shape}, got {c.shape}")
        return out + p.beta * c

    return wide(run, A, B, C)[0]


@op("_linalg_potrf", aliases=("linalg_potrf",), infer_inputs=from_output)
def potrf(p: Params, A: Array) -> Array:
    """Cholesky factor: the lower triangular L with L Lᵀ = A. A matrix that is not positive definite gives NaN."""
    square(A)
    return wide(lambda a: jnp.linalg.cholesky(from_lower(a), symmetrize_input=False), A)[0]


@op("_linalg_potri", aliases=("linalg_potri",), infer_inputs=from_output)
def potri(p: Params, A: Array) -> Array:
    """(A Aᵀ)⁻¹ of a lower triangular A, the Cholesky factor of the matrix to invert."""
    n = square(A)

    def run(a: Array) -> Array:
        eye = jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), a.shape)
        inverse = lax.linalg.triangular_solve(jnp.tril(a), eye, left_side=True, lower=True)
        return _t(inverse) @ inverse

    return wide(run, A)[0]


class TrmmParams(Params):
    transpose: bool = param(False, doc="Use the transposed triangular matrix.")
    rightside: bool = param(False, doc="The triangular matrix stands on the right.")
    lower: bool = param(True, doc="A is lower triangular; else upper.")
    alpha: float = param(1.0, doc="Factor of the result.")


def _triangle_shapes(p: TrmmParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    b = ins[1] or outs[0]
    if b is None or len(b) < 2:
        return [ins[0], b]
    n = b[-1] if p.rightside else b[-2]
    return [(*b[:-2], n, n), outs[0] or b]


def _check_triangle(p: TrmmParams, a: Array, b: Array) -> None:
    n = square(a)
    if b.ndim != a.ndim or b.shape[:-2] != a.shape[:-2] or b.shape[-1 if p.rightside else -2] != n:
        raise ShapeError(f"argument 'B': {b.shape} does not fit triangular matrices {a.shape}")


@op("_linalg_trmm", aliases=("linalg_trmm",), params=TrmmParams, infer_inputs=_triangle_shapes)
def trmm(p: TrmmParams, A: Array, B: Array) -> Array:
    """alpha * op(A) B with a triangular A, or alpha * B op(A) with rightside. The other triangle is not read."""
    _check_triangle(p, A, B)

    def run(a: Array, b: Array) -> Array:
        a = jnp.tril(a) if p.lower else jnp.triu(a)
        a = _t(a) if p.transpose else a
        return p.alpha * (b @ a if p.rightside else a @ b)

    return wide(run, A, B)[0]


@op("_linalg_trsm", aliases=("linalg_trsm",), params=TrmmParams, infer_inputs=_triangle_shapes)
def trsm(p: TrmmParams, A: Array, B: Array) -> Array:
    """Solves op(A) X = alpha * B for a triangular A, or X op(A) = alpha * B with rightside."""
    _check_triangle(p, A, B)
    return wide(lambda a, b: lax.linalg.triangular_solve(
        jnp.tril(a) if p.lower else jnp.triu(a), p.alpha * b, left_side=not p.rightside, lower=p.lower,
        transpose_a=p.transpose), A, B)[0]


def _one_by_one(made: Op) -> Callable[..., Array]:
    def run(p: Any, *arrays: Array) -> Array:
        flat = tuple(x.reshape(-1, *x.shape[-2:]) for x in arrays)
        out = lax.map(lambda xs: made.rule(p, *xs), flat)
        return out.reshape(*arrays[0].shape[:-2], *out.shape[1:])

    return run


def _is_batch(p: Any, avals: Sequence[Any]) -> bool:
    batch = avals[0].shape[:-2]
    return math.prod(batch) > 0 and len(batch) > 0 and all(x.shape[:-2] == batch for x in avals)


# LAPACK solves one triangular system at a time; XLA's own code for batches of them is a hundred times slower.
for _op in (potrf, potri, trsm):
    _op.variant(platform="cpu", when=_is_batch)(_one_by_one(_op))


class SyrkParams(Params):
    transpose: bool = param(False, doc="Aᵀ A instead of A Aᵀ.")
    alpha: float = param(1.0, doc="Factor of the result.")


@op("_linalg_syrk", aliases=("linalg_syrk",), params=SyrkParams)
def syrk(p: SyrkParams, A: Array) -> Array:
    """alpha * A Aᵀ, or alpha * Aᵀ A: (…, m, n) gives (…, m, m) or (…, n, n)."""
    return wide(lambda a: p.alpha * (_t(a) @ a if p.transpose else a @ _t(a)), A)[0]


@op("_linalg_gelqf", aliases=("linalg_gelqf",), outputs=2)
def gelqf(p: Params, A: Array) -> tuple[Array, ...]:
    """LQ factors: A = L Q with L (…, m, m) lower triangular and Q (…, m, n) of orthonormal rows; returns Q, L."""
    if A.ndim < 2 or A.shape[-2] > A.shape[-1]:
        raise ShapeError(f"argument 'A': expected (…, m, n) with m <= n, got {A.shape}")

    def run(a: Array) -> tuple[Array, Array]:
        q, r = jnp.linalg.qr(_t(a))
        return _t(q), _t(r)

    return wide(run, A)


@op("_linalg_syevd", outputs=2)
def syevd(p: Params, A: Array) -> tuple[Array, ...]:
    """Eigenvectors and eigenvalues of symmetric matrices: A = Uᵀ diag(λ) U; returns U (rows) and ascending λ.

    The component of largest magnitude in each eigenvector is positive.
    """
    square(A)

    def run(a: Array) -> tuple[Array, Array]:
        v, w = lax.linalg.eigh(from_lower(a), symmetrize_input=False)
        return _t(with_sign(v)), w

    return wide(run, A)


def with_sign(v: Array) -> Array:
    """Columns v or -v, so that the component of largest magnitude in each is positive."""
    top = jnp.take_along_axis(v, argmax(jnp.abs(v), -2, keepdims=True), -2)
    return v * lax.stop_gradient(jnp.where(top < 0, -1, 1).astype(v.dtype))


@op("_linalg_sumlogdiag", aliases=("linalg_sumlogdiag",))
def sumlogdiag(p: Params, A: Array) -> Array:
    """Sum of the logarithms of the diagonal: (…, n, n) gives (…), a single matrix (1,)."""
    square(A)
    return wide(lambda a: _scalars(jnp.log(jnp.diagonal(a, axis1=-2, axis2=-1)).sum(-1)), A)[0]


@op("_linalg_inverse", aliases=("linalg_inverse", "_npi_inv"))
def inverse(p: Params, A: Array) -> Array:
    """Inverses of square matrices."""
    square(A)
    return wide(jnp.linalg.inv, A)[0]


def _factors(a: Array) -> tuple[Array, Array]:
    lu, pivots, _ = lax.linalg.lu(lax.stop_gradient(a))
    return lu, pivots


@op("_linalg_det", aliases=("linalg_det", "_npi_det"), outputs=3, num_visible=1,
    infer_types=lambda p, ins, outs: ([t := ins[0] or outs[0]], [t, t, "int32"]))
def det(p: Params, A: Array) -> tuple[Array, ...]:
    """Determinants: (…, n, n) gives (…), a single matrix (1,). Hidden outputs: the LU factors and pivots."""
    square(A)
    return wide(lambda a: (_scalars(jnp.linalg.det(a)), *_factors(a)), A)


@op("_linalg_slogdet", aliases=("linalg_slogdet", "_npi_slogdet"), outputs=4, num_visible=2,
    infer_types=lambda p, ins, outs: ([t := ins[0] or outs[0]], [t, t, t, "int32"]))
def slogdet(p: Params, A: Array) -> tuple[Array, ...]:
    """Sign and logarithm of the absolute determinant. Hidden outputs: the LU factors and pivots."""
    square(A)

    def run(a: Array) -> tuple[Array, ...]:
        sign, log = jnp.linalg.slogdet(a)
        return _scalars(sign), _scalars(log), *_factors(a)

    return wide(run, A)


class DiagonalParams(Params):
    offset: int = param(0, doc="Diagonal: 0 main, positive above, negative below.")


class TriangleParams(DiagonalParams):
    lower: bool = param(True, doc="Lower triangle; read only for offset 0 (else: below for a negative offset).")


@op("_linalg_extractdiag", aliases=("linalg_extractdiag",), params=DiagonalParams)
def extractdiag(p: DiagonalParams, A: Array) -> Array:
    """Diagonals of square matrices: (…, n, n) gives (…, n - |offset|)."""
    if abs(p.offset) >= square(A):
        raise ShapeError(f"offset={p.offset} lies outside matrices {A.shape}")
    return jnp.diagonal(A, p.offset, -2, -1)


@op("_linalg_makediag", aliases=("linalg_makediag",), params=DiagonalParams)
def makediag(p: DiagonalParams, A: Array) -> Array:
    """Matrices with a given diagonal: (…, n) gives (…, n + |offset|, n + |offset|)."""
    k = abs(p.offset)
    rows = jnp.arange(A.shape[-1], dtype=jnp.int32)
    out = jnp.zeros((*A.shape[:-1], A.shape[-1] + k, A.shape[-1] + k), A.dtype)
    return out.at[..., rows + max(-p.offset, 0), rows + max(p.offset, 0)].set(A)


def _triangle(p: TriangleParams, n: int) -> tuple[Array, Array]:
    """Rows and columns of the triangle's elements: a lower one row by row, an upper one column by column."""
    lower = p.lower if p.offset == 0 else p.offset < 0
    cells = [(i, j) for i in range(n) for j in range(n) if (j <= i + p.offset if lower else j >= i + p.offset)]
    if not lower:
        cells.sort(key=lambda c: c[::-1])
    rows, columns = zip(*cells, strict=True) if cells else ((), ())
    return jnp.asarray(rows, jnp.int32), jnp.asarray(columns, jnp.int32)


@op("_linalg_extracttrian", aliases=("linalg_extracttrian",), params=TriangleParams)
def extracttrian(p: TriangleParams, A: Array) -> Array:
    """Elements of a triangle: (…, n, n) gives (…, m(m+1)/2) with m = n - |offset|.

    The lower triangle is read row by row, the upper one column by column.
    """
    rows, columns = _triangle(p, square(A))
    return A[..., rows, columns]


@op("_linalg_maketrian", aliases=("linalg_maketrian",), params=TriangleParams)
def maketrian(p: TriangleParams, A: Array) -> Array:
    """Triangular matrices from their elements, the inverse of extracttrian."""
    m = (math.isqrt(8 * A.shape[-1] + 1) - 1) // 2
    if m * (m + 1) // 2 != A.shape[-1]:
        raise ShapeError(f"argument 'A': last axis {A.shape[-1]} is not m(m+1)/2 for any m")
    n = m + abs(p.offset)
    rows, columns = _triangle(p, n)
    return jnp.zeros((*A.shape[:-1], n, n), A.dtype).at[..., rows, columns].set(A)
