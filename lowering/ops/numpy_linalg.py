"""Products and decompositions with numpy's meaning: dot, matmul, tensordot, einsum, and the `linalg` operators.

Half precision is computed in float32. Whole numbers count as float64 where MXNet says so (eig, solve and their kin);
the other decompositions refuse them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import DTypeError, ParamError, ShapeError
from symjax.lowering.ops import linalg as classic
from symjax.lowering.ops._axes import axes_of, contract, sum_type
from symjax.lowering.ops.linalg import square, wide
from symjax.lowering.ops.matrix import arg_names
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op

Types = tuple[Sequence[str | None], Sequence[str | None]]


@op("_np_dot")
def np_dot(p: Params, a: Array, b: Array) -> Array:
    """Contracts the last axis of `a` with the last but one of `b` (its only one, for a vector).

    (a…, k) and (b…, k, n) give (a…, b…, n); two vectors give a scalar; a scalar multiplies.
    """
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return _contracted(a, b, (a.ndim - 1,), (max(b.ndim - 2, 0),))


def _contracted(a: Array, b: Array, of_a: Shape, of_b: Shape) -> Array:
    if [a.shape[i] for i in of_a] != [b.shape[i] for i in of_b]:
        raise ShapeError(f"the axes {of_a} of a {a.shape} and {of_b} of b {b.shape} to sum over differ in size")
    return contract(a, b, (of_a, of_b))


@op("_npi_matmul", outputs=("out",))
def np_matmul(p: Params, a: Array, b: Array) -> Array:
    """Multiplies matrices, batch by batch: (…, m, k) and (…, k, n) give (…, m, n); the batch axes broadcast.

    A vector on the left is a row, on the right a column, and the axis goes again in the result.
    """
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"matmul takes no scalars, got a {a.shape} and b {b.shape}; multiply instead")
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise ShapeError(f"a {a.shape} and b {b.shape} cannot be multiplied: {a.shape[-1]} columns, "
                         f"{b.shape[max(b.ndim - 2, 0)]} rows")
    return jnp.matmul(a, b, preferred_element_type=sum_type(a.dtype)).astype(a.dtype)


class TensordotParams(Params):
    a_axes_summed: Shape = param(doc="Axes of `a` to sum over.")
    b_axes_summed: Shape = param(doc="The axes of `b` that go with them.")


@op("_npi_tensordot", params=TensordotParams)
def tensordot(p: TensordotParams, a: Array, b: Array) -> Array:
    """Sums the products of `a` and `b` over pairs of axes; the other axes of `a`, then those of `b` are left."""
    if len(p.a_axes_summed) != len(p.b_axes_summed):
        raise ParamError(f"a_axes_summed={p.a_axes_summed} and b_axes_summed={p.b_axes_summed} must have equal lengths")
    return _contracted(a, b, axes_of(p.a_axes_summed, a.ndim, "a_axes_summed"),
                       axes_of(p.b_axes_summed, b.ndim, "b_axes_summed"))


class TensordotIntParams(Params):
    axes: int = param(doc="How many axes: the last ones of `a` and the first ones of `b`.")


@op("_npi_tensordot_int_axes", params=TensordotIntParams)
def tensordot_int_axes(p: TensordotIntParams, a: Array, b: Array) -> Array:
    """Sums over the last `axes` axes of `a` and the first ones of `b`; 0 gives the outer product."""
    if not 0 <= p.axes <= min(a.ndim, b.ndim):
        raise ShapeError(f"axes={p.axes} must be between 0 and the ranks of a {a.shape} and b {b.shape}")
    return _contracted(a, b, tuple(range(a.ndim - p.axes, a.ndim)), tuple(range(p.axes)))


class EinsumParams(Params):
    num_args: int = param(doc="How many arrays.", ge=1)
    subscripts: str = param("", doc="Labels of the axes, as 'ij,jk->ik'; without '->' the labels met once, in order.")
    optimize: int = param(0, doc="Not read; the order of the products is chosen here.")


@op("_npi_einsum", params=EinsumParams, inputs=arg_names, variadic="num_args", all_inputs=("data",))
def einsum(p: EinsumParams, *data: Array) -> Array:
    """Sums of products by Einstein's convention: labels that the result lacks are summed over."""
    dtype = data[0].dtype
    if dtype == jnp.bool_:
        return jnp.einsum(p.subscripts, *(a.astype(jnp.int32) for a in data)) != 0
    return jnp.einsum(p.subscripts, *data, preferred_element_type=sum_type(dtype)).astype(dtype)


def need_float(a: Array, name: str = "A") -> None:
    """Refuses whole numbers."""
    if not jnp.issubdtype(a.dtype, jnp.floating):
        raise DTypeError(f"argument {name!r}: expected floating-point numbers, got {a.dtype.name}; insert a Cast")


@op("_npi_svd", outputs=3)
def svd(p: Params, A: Array) -> tuple[Array, ...]:
    """Singular values: A = UT diag(L) V; returns UT (…, m, m), L (…, m), falling, and V (…, m, n), for m <= n.

    Each column of UT has the sign that the platform's routine gives it.
    """
    need_float(A)
    if A.ndim < 2 or A.shape[-2] > A.shape[-1]:
        raise ShapeError(f"argument 'A': expected (…, m, n) with m <= n, got {A.shape}")
    m = A.shape[-2]
    if not A.size:
        batch = A.shape[:-2]
        return jnp.zeros((*batch, m, m), A.dtype), jnp.zeros((*batch, m), A.dtype), A
    return wide(lambda a: tuple(jnp.linalg.svd(a, full_matrices=False)), A)


@op("_npi_cholesky")
def np_cholesky(p: Params, A: Array) -> Array:
    """Cholesky factor: the lower triangular L with L Lᵀ = A, of which the lower triangle is read.

    A matrix that is not positive definite gives NaN (MXNet raises).
    """
    need_float(A)
    square(A)
    return classic.potrf.rule(p, A) if A.size else A


def solve_types(p: Params, ins: list[str | None], outs: list[str | None]) -> Types:
    """Each input has its own type; the result is float64 where one of them is it or of whole numbers."""
    if None in ins:
        return ins, outs
    return ins, [as_float(*(t for t in ins if t))]


def as_float(*types: str) -> str:
    """The floating type that arrays of these types are computed in."""
    whole = any(not t.startswith(("float", "bfloat")) for t in types)
    return "float64" if whole or "float64" in types else "float32" if len({*types}) > 1 else types[0]


def solve_square(a: Array, b: Array) -> Array:
    """Solves a x = b for square matrices and columns of equal batch axes; an empty system has an empty solution."""
    return jnp.linalg.solve(a, b) if b.size else b


@op("_npi_solve", infer_types=solve_types)
def solve(p: Params, A: Array, B: Array) -> Array:
    """Solves A X = B: (…, n, n) and (…, n, k) give (…, n, k); (…, n, n) and (…, n) give (…, n).

    A singular matrix gives inf or NaN (MXNet raises).
    """
    n = square(A)
    vector = B.ndim == A.ndim - 1
    if not (vector or B.ndim == A.ndim) or B.shape[:A.ndim - 2] != A.shape[:-2] or B.shape[A.ndim - 2] != n:
        raise ShapeError(f"argument 'B': {B.shape} does not fit matrices A {A.shape}: expected (…, {n}, k) or (…, {n})")
    dtype = as_float(A.dtype.name, B.dtype.name)

    def run(a: Array, b: Array) -> Array:
        return solve_square(a, b[..., None])[..., 0] if vector else solve_square(a, b)

    return wide(run, A.astype(dtype), B.astype(dtype))[0]


class PinvParams(Params):
    hermitian: bool = param(False, doc="A is symmetric, which is faster.")


class PinvScalarParams(Params):
    rcond: float = param(1e-15, doc="Singular values up to rcond times the largest count as 0.")
    hermitian: bool = param(False, doc="A is symmetric, which is faster.")


def _pinv(a: Array, rcond: Array | float, hermitian: bool) -> Array:
    if a.ndim < 2:
        raise ShapeError(f"argument 'A': expected matrices (…, m, n), got {a.shape}")
    if not a.size:
        return jnp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    return wide(lambda x: jnp.linalg.pinv(x, rcond, hermitian), a)[0]


# MXNet: the gradients of both are zero.
@op("_npi_pinv", params=PinvParams)
def pinv(p: PinvParams, A: Array, rcond: Array) -> Array:
    """Pseudo-inverses: (…, m, n) gives (…, n, m). Singular values up to rcond times the largest count as 0.

    `rcond` has a shape that broadcasts to the batch axes, and no gradient.
    """
    need_float(A)
    if jnp.broadcast_shapes(rcond.shape, A.shape[:-2]) != A.shape[:-2]:
        raise ShapeError(f"argument 'rcond': {rcond.shape} does not broadcast to the batch axes {A.shape[:-2]} of A")
    return _pinv(A, jnp.broadcast_to(rcond, A.shape[:-2]), p.hermitian)


@op("_npi_pinv_scalar_rcond", params=PinvScalarParams, infer_types=solve_types)
def pinv_scalar_rcond(p: PinvScalarParams, A: Array) -> Array:
    """Pseudo-inverses: (…, m, n) gives (…, n, m). Singular values up to rcond times the largest count as 0."""
    return _pinv(A.astype(as_float(A.dtype.name)), p.rcond, p.hermitian)


class TensorinvParams(Params):
    ind: int = param(2, doc="How many of the first axes are the rows.", gt=0)


@op("_npi_tensorinv", params=TensorinvParams)
def tensorinv(p: TensorinvParams, a: Array) -> Array:
    """The inverse of `a`, whose first `ind` axes count as rows and the others as columns; they change places."""
    need_float(a, "a")
    rows, columns = a.shape[:p.ind], a.shape[p.ind:]
    if math.prod(rows) != math.prod(columns):
        raise ShapeError(f"argument 'a': the first {p.ind} axes {rows} and the others {columns} must hold equally many")
    n = math.prod(rows)
    return wide(lambda x: jnp.linalg.inv(x.reshape(n, n)).reshape(columns + rows), a)[0] if n else a.reshape(
        columns + rows)


class TensorsolveParams(Params):
    a_axes: Shape | None = param((), doc="Axes of `a` that go to its end first.")


@op("_npi_tensorsolve", params=TensorsolveParams, infer_types=solve_types)
def tensorsolve(p: TensorsolveParams, a: Array, b: Array) -> Array:
    """Solves tensordot(a, x, x.ndim) = b: `a` has the axes of `b` (or as many elements), then those of x."""
    moved = axes_of(p.a_axes or (), a.ndim, "a_axes")
    a = jnp.transpose(a, [i for i in range(a.ndim) if i not in moved] + list(moved))
    out = a.shape[b.ndim:]
    if math.prod(out) ** 2 != a.size or b.size != math.prod(out):
        raise ShapeError(f"a {a.shape} (its axes moved) must have the elements of b {b.shape} in its first axes and "
                         f"equally many in the others")
    dtype = as_float(a.dtype.name, b.dtype.name)
    return wide(lambda x, y: solve_square(x.reshape(b.size, b.size), y.reshape(-1, 1)).reshape(out),
                a.astype(dtype), b.astype(dtype))[0]
