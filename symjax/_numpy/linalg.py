"""Functions of `mx.np.linalg`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from symjax._numpy.front import define

_define = define("numpy.linalg")


def _plain(name: str, text: str, result: Callable[[Any], Any] | None = None) -> None:
    """Enters a function of one matrix."""

    def definition(F: Any, a: Any) -> Any:
        made = getattr(F.npi, name)(a)
        return made if result is None or F.symbolic else result(made)

    definition.__doc__ = text
    define("numpy.linalg", name)(definition)


_plain("svd", "Returns (U, L, V) with `a` = U diag(L) V, the singular values in falling order.", tuple)
_plain("cholesky", "Returns the lower triangular L with `a` = L L^T, for symmetric positive definite matrices.")
_plain("inv", "Returns the inverse of square matrices (the last two axes).")

@_define
def det(F: Any, a: Any) -> Any:
    """Returns the determinant of square matrices (the last two axes)."""
    made = F.npi.det(a)
    return made if F.symbolic or a.ndim != 2 else made.reshape(())  # the operator has classic shapes


@_define
def slogdet(F: Any, a: Any) -> Any:
    """Returns the sign and the logarithm of the absolute value of the determinant."""
    made = F.npi.slogdet(a)
    return made if F.symbolic or a.ndim != 2 else [x.reshape(()) for x in made]


_plain("eigvals", "Returns the eigenvalues of square matrices, which must be real.")
_plain("eig", "Returns the eigenvalues and eigenvectors (columns) of square matrices, which must be real.", tuple)


def _symmetric(name: str, text: str, result: Callable[[Any], Any] | None = None) -> None:
    def definition(F: Any, a: Any, UPLO: str = "L") -> Any:
        made = getattr(F.npi, name)(a, UPLO)
        return made if result is None or F.symbolic else result(made)

    definition.__doc__ = f"{text} `UPLO` tells which triangle is read."
    define("numpy.linalg", name)(definition)


_symmetric("eigvalsh", "Returns the eigenvalues of symmetric matrices in rising order.")
_symmetric("eigh", "Returns the eigenvalues in rising order and the eigenvectors of symmetric matrices.", tuple)


@_define
def solve(F: Any, a: Any, b: Any) -> Any:
    """Returns x with `a` x = `b`."""
    return F.npi.solve(a, b)


@_define
def tensorinv(F: Any, a: Any, ind: int = 2) -> Any:
    """Returns the inverse of `a` as a map from its last axes to its first `ind`."""
    return F.npi.tensorinv(a, ind)


@_define
def tensorsolve(F: Any, a: Any, b: Any, axes: Any = None) -> Any:
    """Returns x with tensordot(`a`, x, x.ndim) = `b`; the `axes` of `a` are moved to its end first."""
    return F.npi.tensorsolve(a, b, axes)


@_define
def pinv(F: Any, a: Any, rcond: Any = 1e-15, hermitian: bool = False) -> Any:
    """Returns the pseudo-inverse; singular values below `rcond` times the largest count as zero."""
    if hermitian is True:
        raise NotImplementedError("hermitian is not supported yet...")
    if onp.isscalar(rcond):
        return F.npi.pinv_scalar_rcond(a, rcond, hermitian)
    return F.npi.pinv(a, rcond, hermitian)


@_define
def norm(F: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Returns a vector or matrix norm.

    Args:
      x: array or symbol.
      ord: None (the 2-norm of all elements), a number, "fro", "nuc", "inf" or "-inf".
      axis: an axis for vector norms, two for matrix norms, None for all.
      keepdims: keep reduced axes with length 1.

    Raises:
      TypeError: `axis` is neither None nor ints.
    """
    if axis is not None and not isinstance(axis, (int, tuple)):
        raise TypeError("'axis' must be None, an integer or a tuple of integers.")
    axis = (axis,) if isinstance(axis, int) else axis
    if isinstance(ord, float) and onp.isinf(ord):  # MXNet: takes the words alone
        ord = "inf" if ord > 0 else "-inf"
    if axis is None and ord is None:
        return F.npi.norm(x, ord=2, axis=None, keepdims=keepdims, flag=-2)
    if axis is not None and len(axis) == 2:
        if ord in ("inf", "-inf", 1, -1):
            return _by_sums(F, x, ord, axis, keepdims)
        if ord in (2, -2):
            return F.npi.norm(x, ord=ord, axis=axis, keepdims=keepdims, flag=0)
    if ord in ("inf", "-inf"):
        return F.get("max" if ord == "inf" else "min")(F.get("abs")(x), axis=axis, keepdims=keepdims)
    flag = 1 if ord in (None, "fro", "f") else 2 if ord == "nuc" else -1
    return F.npi.norm(x, ord=2 if flag > 0 else ord, axis=axis, keepdims=keepdims, flag=flag)


def _by_sums(F: Any, x: Any, ord: Any, axis: tuple[int, int], keepdims: bool) -> Any:
    """The largest or least sum of absolute values of rows ("inf", "-inf") or columns (1, -1)."""
    summed, other = axis if ord in (1, -1) else (axis[1], axis[0])
    if not keepdims and other > summed:
        other -= 1
    sums = F.get("sum")(F.get("abs")(x), axis=summed, keepdims=keepdims)
    return getattr(sums, "max" if ord in (1, "inf") else "min")(axis=other, keepdims=keepdims)
