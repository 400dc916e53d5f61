"""Conversions between the containers and dense arrays, scipy.sparse, BCSR and BCOO, exact in what they store.

Everything here looks at the numbers on the host, so that a result stores what there is and no more (its capacity is
the bucket of that count). Inside a traced function use `csr_from_dense` and `row_sparse_from_dense`. Containers made
from host data hold numpy arrays; `jax.device_put` places them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.core import Tracer

from symjax.lowering.errors import ArgumentError, ShapeError, StorageError
from symjax.sparse.csr import CSR
from symjax.sparse.row_sparse import RowSparse

if TYPE_CHECKING:
    from jax.experimental.sparse import BCOO, BCSR  # imported where they are made, for it takes time

_ALIGNMENT = 64  # bytes
_BLOCK = 1 << 20  # elements of a dense array looked at in one go, so that finding non-zeros needs little memory


def csr_from_numpy(x: Any) -> CSR:
    """Returns the elements of a dense matrix that are not zero (NaN is not; -0.0 is).

    Args:
      x: anything numpy takes for an array, (M, N).

    Raises:
      ShapeError: it has not two axes.
    """
    x = np.asarray(x)
    if x.ndim != 2:
        raise ShapeError(f"csr: a matrix is needed, got an array of shape {x.shape}")
    step = max(1, _BLOCK // max(1, x.shape[1]))
    parts = [_nonzero(x[i : i + step]) for i in range(0, x.shape[0], step)] or [_nonzero(x)]
    data, cols, counts = (np.concatenate(p) for p in zip(*parts, strict=True))
    return CSR.from_host(data, cols, np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), x.shape)


def _nonzero(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The non-zero values of a matrix in row order, their columns, and how many there are in each row."""
    flat = np.flatnonzero(x != 0)  # several times faster than of x itself
    rows, cols = np.divmod(flat, max(1, x.shape[1]))
    return x.reshape(-1)[flat], cols, np.bincount(rows, minlength=x.shape[0])


def row_sparse_from_numpy(x: Any) -> RowSparse:
    """Returns the rows of a dense array (slices along its first axis) that are not all zero.

    Args:
      x: anything numpy takes for an array with at least one axis.

    Raises:
      ShapeError: it has no axes.
    """
    x = np.asarray(x)
    if x.ndim == 0:
        raise ShapeError("row_sparse: an array with at least one axis is needed, got a scalar")
    width = max(1, x.size // max(1, x.shape[0]))
    step = max(1, _BLOCK // width)
    some = [(x[i : i + step] != 0).reshape(len(x[i : i + step]), -1).any(axis=1) for i in range(0, x.shape[0], step)]
    indices = np.flatnonzero(np.concatenate(some)) if some else np.empty(0, np.int64)
    rows = _zeros((len(indices), *x.shape[1:]), x.dtype)
    return RowSparse.from_host(np.take(x, indices, axis=0, out=rows, mode="clip"), indices, x.shape)


def to_numpy(value: CSR | RowSparse) -> np.ndarray:
    """Returns a container as a dense numpy array. Entries that a CSR stores twice add up."""
    if isinstance(value, CSR):
        data, cols, indptr = value.host()
        return _dense_of(data, np.repeat(np.arange(value.shape[0]), np.diff(indptr)), cols, value.shape)
    data, indices = value.host()
    out = _zeros(value.shape, data.dtype)
    out[indices] = data
    return out


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros at an address that JAX can take over without a copy."""
    room = np.zeros(math.prod(shape) * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : room.size - _ALIGNMENT + start].view(dtype).reshape(shape)


def _dense_of(data: np.ndarray, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    out = _zeros(shape, data.dtype)
    flat = rows * shape[1] + cols
    if (flat[1:] > flat[:-1]).all():  # no entry twice: assigning is several times faster
        out.reshape(-1)[flat] = data
    else:
        np.add.at(out.reshape(-1), flat, data)
    return out


def csr_from_coo(data: Any, rows: Any, cols: Any, shape: tuple[int, int] | None = None) -> CSR:
    """Returns the CSR of entries in any order; equal positions are added, zeros are kept.

    Args:
      data: values, (n,).
      rows, cols: their positions, (n,) each.
      shape: the shape; one more than the largest positions by default.

    Raises:
      ValueError: the lengths differ, a position lies outside, or there is neither a shape nor an entry.
    """
    data, rows, cols = np.asarray(data), np.asarray(rows), np.asarray(cols)
    if not data.shape == rows.shape == cols.shape or data.ndim != 1:
        raise ShapeError(f"coo: values, rows and columns must be vectors of one length, got shapes {data.shape}, "
                         f"{rows.shape} and {cols.shape}")
    rows, cols = rows.astype(np.int64), cols.astype(np.int64)
    if shape is None:
        if not len(data):
            raise ShapeError("coo: cannot infer dimensions from zero sized index arrays; give shape=")
        shape = (int(rows.max()) + 1, int(cols.max()) + 1)
    for what, index, size in (("row", rows, shape[0]), ("column", cols, shape[1])):
        if len(index) and (index.min() < 0 or index.max() >= size):
            bad = int(index.min()) if index.min() < 0 else int(index.max())
            raise ShapeError(f"coo: {what} index {bad} lies outside of shape {shape}")
    data, rows, cols = _merged(data, rows, cols)
    counts = np.bincount(rows, minlength=shape[0])
    return CSR.from_host(data, cols, np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), shape)


def _merged(data: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorts entries by row and column and adds those of one position."""
    if not len(data):
        return data, rows, cols
    width = int(cols.max()) + 1
    flat = int(rows.max()) < (1 << 62) // width
    order = np.argsort(rows * width + cols, kind="stable") if flat else np.lexsort((cols, rows))
    data, rows, cols = data[order], rows[order], cols[order]
    first = np.ones(len(data), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    if first.all():
        return data, rows, cols
    starts = np.flatnonzero(first)
    add = np.logical_or if data.dtype == bool else np.add
    wide = data.astype(np.float32) if data.dtype.itemsize == 2 and data.dtype.kind != "i" else data
    return add.reduceat(wide, starts).astype(data.dtype), rows[starts], cols[starts]


def csr_from_scipy(x: Any) -> CSR:
    """Returns a scipy sparse matrix or array of any format, with sorted columns and duplicates added.

    Args:
      x: the matrix, (M, N).

    Raises:
      ArgumentError: it is no scipy matrix.
      ShapeError: it has not two axes.
    """
    if not hasattr(x, "tocsr"):
        raise ArgumentError(f"csr_from_scipy: a scipy sparse matrix is needed, got {type(x).__name__}; csr_from_dense "
                            f"takes dense arrays")
    if len(x.shape) != 2:
        raise ShapeError(f"csr: a matrix is needed, got a sparse array of shape {x.shape}")
    csr = x.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is x else csr
        csr.sum_duplicates()
    return CSR.from_host(csr.data, csr.indices, csr.indptr, csr.shape)


def to_scipy(value: CSR) -> Any:
    """Returns a CSR as `scipy.sparse.csr_matrix` with private arrays (int32 indices where they fit).

    Raises:
      StorageError: the value is a RowSparse, or of a dtype that scipy lacks (float16, bfloat16).
    """
    import scipy.sparse

    if not isinstance(value, CSR):
        raise StorageError("only csr arrays have a scipy form; make the array dense first")
    data, indices, indptr = value.host()
    if data.dtype.kind not in "fiub" or data.dtype == np.float16:
        raise StorageError(f"scipy has no sparse matrices of dtype {data.dtype}; use astype('float32') first")
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=value.shape)


def to_bcsr(value: CSR) -> BCSR:
    """Returns a CSR as `jax.experimental.sparse.BCSR`.

    A concrete matrix is trimmed to its entries; a traced one keeps its padding (out-of-range indices, which JAX
    ignores).
    """
    from jax.experimental.sparse import BCSR

    n = _count(value.indptr[-1])
    ordered = n is not None and _ascending(value)
    with jax.enable_x64(True):
        return BCSR((value.data[:n], value.indices[:n], value.indptr), shape=value.shape, unique_indices=ordered,
                    indices_sorted=ordered)


def from_bcsr(x: BCSR) -> CSR:
    """Returns a concrete BCSR matrix without batch and dense axes as a CSR; entries of one position are added.

    Raises:
      ShapeError: it has batch or dense axes, or not two axes.
    """
    if x.n_batch or x.n_dense or len(x.shape) != 2:
        raise ShapeError(f"csr: a BCSR matrix without batch and dense axes is needed, got shape {x.shape} with "
                         f"n_batch={x.n_batch}, n_dense={x.n_dense}")
    indptr = np.asarray(x.indptr).astype(np.int64)
    n = int(indptr[-1])
    data, cols = np.asarray(x.data)[:n], np.asarray(x.indices)[:n]
    return _csr_inside(data, np.repeat(np.arange(x.shape[0]), np.diff(indptr)), cols, x.shape)


def to_bcoo(value: CSR | RowSparse) -> BCOO:
    """Returns a container as `jax.experimental.sparse.BCOO`.

    A CSR becomes entries with two sparse axes, a RowSparse rows with one sparse axis and dense ones. A concrete array
    is trimmed to what it stores; a traced one keeps its padding (out-of-range indices, which JAX ignores).
    """
    from jax.experimental.sparse import BCOO

    with jax.enable_x64(True):
        n = _count(value.indptr[-1] if isinstance(value, CSR) else value.num_rows)
        ordered = n is not None and _ascending(value)
        if isinstance(value, CSR):
            where = jax.numpy.stack([value.rows[:n], value.indices[:n]], axis=1)
        else:
            where = jax.numpy.asarray(value.indices[:n])[:, None]
        return BCOO((value.data[:n], where), shape=value.shape, indices_sorted=ordered, unique_indices=ordered)


def from_bcoo(x: BCOO) -> CSR | RowSparse:
    """Returns a concrete BCOO array as a container; entries of one position are added, padding is dropped.

    Args:
      x: an array without batch axes: a matrix with two sparse axes gives a CSR, one sparse axis gives a RowSparse.

    Raises:
      ShapeError: it has other axes.
    """
    where, data = np.asarray(x.indices), np.asarray(x.data)
    if x.n_batch == 0 and x.n_sparse == 2 and x.n_dense == 0:
        return _csr_inside(data, where[:, 0], where[:, 1], x.shape)
    if x.n_batch or x.n_sparse != 1:
        raise ShapeError(f"no container fits a BCOO array of shape {x.shape} with n_batch={x.n_batch}, "
                         f"n_sparse={x.n_sparse}, n_dense={x.n_dense}: csr wants two sparse axes, row_sparse one "
                         f"followed by dense ones")
    inside = where[:, 0] < x.shape[0]
    rows, at = np.unique(where[inside, 0], return_inverse=True)
    out = np.zeros((len(rows), *x.shape[1:]), data.dtype)
    np.add.at(out, at.reshape(-1), data[inside])
    return RowSparse.from_host(out, rows, x.shape)


def _csr_inside(data: np.ndarray, rows: np.ndarray, cols: np.ndarray, shape: Any) -> CSR:
    """The CSR of entries among which those outside of the shape are padding."""
    inside = (rows < shape[0]) & (cols < shape[1])
    return csr_from_coo(data[inside], rows[inside], cols[inside], (shape[0], shape[1]))


def _ascending(value: CSR | RowSparse) -> bool:
    """Whether the stored positions ascend strictly, as they should; MXNet's constructors do not check it."""
    if isinstance(value, RowSparse):
        return bool((np.diff(value.host().indices) > 0).all())
    _, cols, indptr = value.host()
    inside = np.ones(len(cols), bool)
    inside[indptr[:-1][indptr[:-1] < len(cols)]] = False  # where a row begins, its column may be anything
    return bool((np.diff(cols) > 0)[inside[1:]].all())


def _count(n: Any) -> int | None:
    return None if isinstance(n, Tracer) else int(n)
