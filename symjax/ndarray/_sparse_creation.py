"""Functions that make sparse arrays: from their parts, from dense and scipy arrays, from shapes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from symjax.base import as_shape, integer_types, mx_real_t
from symjax.context import Context, current_context
from symjax.lowering.errors import ArgumentError, DTypeError, ShapeError, StorageError
from symjax.ndarray import creation
from symjax.ndarray._sparse_array import place
from symjax.ndarray._sparse_csr import CSRNDArray
from symjax.ndarray._sparse_row import RowSparseNDArray
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import class_of
from symjax.sparse import convert


def _context(ctx: Context | str | None) -> Context:
    if isinstance(ctx, str):
        return Context.from_text(ctx)
    return current_context() if ctx is None else ctx


def _is_scipy(x: Any) -> bool:
    return hasattr(x, "tocsr") and hasattr(x, "nnz")


def _default_dtype(source: Any, dtype: Any) -> np.dtype:
    """The type asked for, that of an array, or float32."""
    if dtype is None:
        dtype = source.dtype if isinstance(source, (NDArray, np.ndarray)) or _is_scipy(source) else mx_real_t
    return creation._dtype(dtype)


def _host(source: Any, dtype: np.dtype) -> np.ndarray:
    """A private numpy array of a part of a sparse array.

    Raises:
      TypeError: the source is not array-like.
    """
    if isinstance(source, NDArray):
        source = source.asnumpy()
    try:
        return creation._to_host(source, dtype)
    except (TypeError, ValueError, OverflowError) as e:
        raise TypeError(f"values must be array like object: {e}") from None


def _positions(source: Any) -> np.ndarray:
    """A private int64 array of indices or row boundaries.

    Raises:
      TypeError: an NDArray of numbers that are not whole, or too large for their type to be sure; not array-like.
    """
    if isinstance(source, NDArray) and source._dtype.kind not in "iu":
        # mx.nd.array makes float32 by default, and old programs pass that on
        values, exact = source.asnumpy(), 2.0 ** (jnp.finfo(source._dtype).nmant + 1)
        if not ((values == np.floor(values)) & (np.abs(values) <= exact)).all():
            raise DTypeError(f"indices of a sparse array are int64, got an NDArray of {source._dtype.name} whose "
                             f"values are not all whole numbers up to {exact:.0f}: make it with dtype='int64'")
        return values.astype(np.int64)
    return _host(source, np.dtype(np.int64))


def _check_shape(have: Any, want: Any) -> None:
    if have and want and tuple(have) != tuple(want):
        raise ValueError(f"Shape mismatch detected. {have} v.s. {want}")


def _is_shape(arg: tuple[Any, ...]) -> bool:
    return all(isinstance(n, (*integer_types, np.integer)) for n in arg)


def csr_matrix(arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None) -> CSRNDArray:
    """Makes a matrix in compressed sparse row form.

    Args:
      arg1: one of
        a dense array or nested list, (M, N), whose zeros are left out;
        a `CSRNDArray` or scipy sparse matrix;
        `(M, N)`, a shape, for a matrix of zeros;
        `(data, indices, indptr)`: row i has `data[indptr[i]:indptr[i + 1]]` in the columns
        `indices[indptr[i]:indptr[i + 1]]`, which should ascend (`check_format` tells);
        `(data, (row, col))`: values and their positions in any order; equal positions are added.
      shape: the shape. By default that of `arg1`, or one more than the largest positions.
      ctx: where; the current context by default.
      dtype: the element type. By default that of `arg1` or its data where that is an array (and for `(data, (row,
        col))` the one numpy would give the list), float32 otherwise.

    Raises:
      ValueError: shapes contradict each other or cannot be found, or `arg1` is a `RowSparseNDArray`.
      TypeError: parts that are not array-like.
    """
    if isinstance(arg1, tuple):
        if len(arg1) == 3:
            return _csr_from_parts(*arg1, shape=shape, ctx=_context(ctx), dtype=dtype)
        if len(arg1) != 2:
            raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
        if isinstance(arg1[1], (tuple, list)) and len(arg1[1]) == 2:
            return _csr_from_positions(arg1[0], arg1[1][0], arg1[1][1], shape, _context(ctx), dtype)
        _check_shape(arg1, shape)
        return empty("csr", arg1, ctx, dtype)
    if isinstance(arg1, RowSparseNDArray):
        raise ValueError("Unexpected input type: RowSparseNDArray")
    if isinstance(arg1, CSRNDArray) or _is_scipy(arg1):
        _check_shape(arg1.shape, shape)
        return array(arg1, ctx, dtype)
    return _from_dense("csr", arg1, shape, ctx, dtype)


def _csr_from_parts(data: Any, indices: Any, indptr: Any, shape: Any, ctx: Context, dtype: Any) -> CSRNDArray:
    values = _host(data, _default_dtype(data, dtype))
    cols, bounds = _positions(indices), _positions(indptr)
    if shape is None:
        if cols.size == 0:
            raise ValueError("invalid shape: give shape=, it cannot be inferred without stored values")
        shape = (len(bounds) - 1, int(cols.max()) + 1)
    if values.ndim != 1 or bounds.ndim != 1 or cols.ndim != 1 or len(bounds) == 0 or len(shape) != 2:
        raise ValueError(f"invalid shape: csr needs vectors and a shape of two axes, got data {values.shape}, indices "
                         f"{cols.shape}, indptr {bounds.shape} and shape {tuple(shape)}")
    if len(values) != len(cols):
        raise StorageError(f"csr: {len(values)} values for {len(cols)} column indices")
    return CSRNDArray._from_parts(as_shape(shape), ctx, values, cols, bounds)


def _csr_from_positions(data: Any, row: Any, col: Any, shape: Any, ctx: Context, dtype: Any) -> CSRNDArray:
    values, rows, cols = (x.asnumpy() if isinstance(x, NDArray) else np.asarray(x) for x in (data, row, col))
    made = convert.csr_from_coo(values, rows, cols, None if shape is None else tuple(shape))
    kind = creation._dtype(values.dtype if dtype is None else dtype)
    with np.errstate(all="ignore"):
        return CSRNDArray._from_jax(place(made.astype(kind), ctx), ctx)


def _from_dense(stype: str, source: Any, shape: Any, ctx: Context | None, dtype: Any) -> Any:
    kind = _default_dtype(source, dtype)
    if isinstance(source, NDArray) and source._tape is not None:  # stays on the tape
        dense = source if source._dtype == kind else source.astype(kind.name)
        _check_shape(dense.shape, shape)
        return (dense if ctx is None else dense.as_in_context(ctx)).tostype(stype)
    where = source.context if isinstance(source, NDArray) and ctx is None else _context(ctx)
    host = _host(source, kind)
    _check_shape(host.shape, shape)
    if stype == "csr" and host.ndim != 2:
        raise ValueError(f"To convert to a CSR, the NDArray should be 2 Dimensional. Current shape is {host.shape}")
    return class_of(stype)._of_dense(host, where)


def row_sparse_array(arg1: Any, shape: Any = None, ctx: Context | None = None, dtype: Any = None) -> RowSparseNDArray:
    """Makes an array that stores some of its rows.

    Args:
      arg1: one of
        a dense array or nested list, whose rows of zeros are left out;
        a `RowSparseNDArray`;
        `(D0, D1, …)`, a shape of at least two axes, for an array of zeros;
        `(data, indices)`: row `indices[i]` is `data[i]`; indices should ascend (`check_format` tells).
      shape: the shape. By default that of `arg1`, or as many rows as the last index needs.
      ctx: where; the current context by default.
      dtype: the element type. By default that of `arg1` or its data where that is an array, float32 otherwise.

    Raises:
      ValueError: shapes contradict each other or cannot be found, or `arg1` is a `CSRNDArray`.
      TypeError: parts that are not array-like.
    """
    if isinstance(arg1, tuple):
        if len(arg1) < 2:
            raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
        if len(arg1) > 2 or _is_shape(arg1):
            _check_shape(arg1, shape)
            return empty("row_sparse", arg1, ctx, dtype)
        return _rows_from_parts(*arg1, shape=shape, ctx=_context(ctx), dtype=dtype)
    if isinstance(arg1, CSRNDArray):
        raise ValueError("Unexpected input type: CSRNDArray")
    if isinstance(arg1, RowSparseNDArray):
        _check_shape(arg1.shape, shape)
        return array(arg1, ctx, dtype)
    return _from_dense("row_sparse", arg1, shape, ctx, dtype)


def _rows_from_parts(data: Any, indices: Any, shape: Any, ctx: Context, dtype: Any) -> RowSparseNDArray:
    values, rows = _host(data, _default_dtype(data, dtype)), _positions(indices)
    if shape is None:
        if rows.size == 0:
            raise ValueError("invalid shape: give shape=, it cannot be inferred without stored rows")
        shape = (int(rows.reshape(-1)[-1]) + 1, *values.shape[1:])
    if values.ndim != len(shape) or rows.ndim != 1:
        raise ValueError(f"invalid shape: {rows.shape} row positions and rows {values.shape} do not make an array of "
                         f"shape {tuple(shape)}")
    if values.shape != (len(rows), *shape[1:]):
        raise StorageError(f"row_sparse: rows of shape {values.shape} for {len(rows)} positions in an array of shape "
                           f"{tuple(shape)}")
    return RowSparseNDArray._from_parts(as_shape(shape), ctx, values, rows)


def zeros(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> Any:
    """Returns an array of zeros that stores nothing.

    Args:
      stype: the storage type, "csr", "row_sparse" or "default".
      shape: an int or a tuple.
      ctx: where; the current context by default.
      dtype: the element type, float32 by default.
      out: an array to fill instead.

    Raises:
      ValueError: there is no such storage type, or the shape has not two axes for csr.
    """
    if stype == "default":
        return creation.zeros(shape, ctx, dtype, **kwargs)
    if stype not in ("csr", "row_sparse"):
        raise ValueError(f"unknown storage type {stype}")
    out = creation._out(kwargs)
    if out is not None:
        out[:] = zeros(stype, shape, ctx, dtype)
        return out
    dims, where = as_shape(shape), _context(ctx)
    cls = class_of(stype)
    if stype == "csr" and len(dims) != 2:
        raise ShapeError(f"csr arrays have two axes, got shape {dims}")
    if any(d < 0 for d in dims):
        raise ShapeError(f"a sparse array has no negative dimension, got shape {dims}")
    return cls._from_jax(place(cls._container.empty(dims, creation._dtype(dtype)), where), where)


def empty(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> Any:
    """Returns a sparse array of zeros; arguments as for `zeros`.

    Raises:
      MXNetError: the storage type is not "csr" or "row_sparse".
    """
    if stype not in ("csr", "row_sparse"):
        raise StorageError(f"unknown stype : {stype}")
    return zeros(stype, shape, ctx, dtype)


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> Any:
    """Returns a copy of a sparse array.

    Args:
      source_array: a `CSRNDArray`, `RowSparseNDArray`, or scipy sparse matrix (columns are sorted, duplicates added).
      ctx: where; the current context by default.
      dtype: the element type, by default that of the source.

    Raises:
      ValueError: the source is something else; `mx.nd.array` and `tostype` are for dense arrays.
    """
    if isinstance(source_array, NDArray):
        if source_array.stype == "default":
            raise ArgumentError("Please use `tostype` to create RowSparseNDArray or CSRNDArray from an NDArray")
        kind = _default_dtype(source_array, dtype)
        made = source_array if source_array._dtype == kind else source_array.astype(kind.name)
        return made.copyto(_context(ctx))
    if _is_scipy(source_array):
        where, kind = _context(ctx), _default_dtype(source_array, dtype)
        with np.errstate(all="ignore"):
            return CSRNDArray._from_jax(place(convert.csr_from_scipy(source_array).astype(kind), where), where)
    if isinstance(source_array, (np.ndarray, np.generic)):
        raise ValueError(f"Please use mx.nd.array to create an NDArray with source_array of type {type(source_array)}")
    raise ValueError(f"Unexpected source_array type: {type(source_array)}")
