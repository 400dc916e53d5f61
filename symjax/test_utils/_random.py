"""Arrays to test with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax.context import Context, current_context
from symjax.test_utils._compare import default_dtype

Shape = Sequence[int]


def default_context() -> Context:
    """The context that is used where none is given."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Sets the context that is used where none is given."""
    Context._default_ctx.value = ctx  # type: ignore[attr-defined]


def random_arrays(*shapes: Shape) -> Any:
    """Returns a list of arrays of standard normal numbers; the array itself for one shape."""
    arrays = [np.asarray(np.random.randn(*s), default_dtype()) for s in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes: Shape, **kwargs: Any) -> list[np.ndarray]:
    """Returns arrays of uniform numbers.

    Args:
      shapes: their shapes.
      kwargs: `low` (0), `high` (1), `dtype` (float32).
    """
    low, high, dtype = kwargs.pop("low", 0.0), kwargs.pop("high", 1.0), kwargs.pop("dtype", default_dtype())
    if kwargs:
        raise TypeError(f"Got unexpected argument/s : {kwargs.keys()}")
    return [np.random.uniform(low, high, size=tuple(s)).astype(dtype) for s in shapes]


def random_sample(population: Sequence[Any], k: int) -> Sequence[Any]:
    """Returns `k` elements in random order."""
    assert 0 <= k <= len(population), f"cannot draw {k} of {len(population)}"
    shuffled = population[:]
    np.random.shuffle(shuffled)  # type: ignore[arg-type]
    return shuffled[:k]


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, int]:
    """A random shape with dimensions up to `dim0` and `dim1`."""
    low = 0 if allow_zero_size else 1
    return np.random.randint(low, dim0 + 1), np.random.randint(low, dim1 + 1)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10,
                  allow_zero_size: bool = False) -> tuple[int, int, int]:
    """A random shape with dimensions up to `dim0`, `dim1` and `dim2`."""
    low = 0 if allow_zero_size else 1
    return np.random.randint(low, dim0 + 1), np.random.randint(low, dim1 + 1), np.random.randint(low, dim2 + 1)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of `num_dim` dimensions up to `dim`."""
    return tuple(np.random.randint(0 if allow_zero_size else 1, dim + 1, size=num_dim).tolist())


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[Any, Any]:
    """Two random int64, within x_low … x_high - 1 and y_low … y_high - 1."""
    return np.random.randint(x_low, x_high, dtype=np.int64), np.random.randint(y_low, y_high, dtype=np.int64)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> Any:
    """The NDArray (rows, columns) whose row i is full of i."""
    return nd.broadcast_to(nd.arange(0, rows, dtype=dtype).reshape(rows, 1), shape=(rows, columns))


def create_vector(size: int, dtype: Any = np.int64) -> Any:
    """The NDArray 0, 1, …, size - 1."""
    return nd.arange(0, size, dtype=dtype)


def get_identity_mat(size: int) -> Any:
    """The identity matrix as an NDArray."""
    return nd.array(np.eye(size))


def get_identity_mat_batch(size: int) -> Any:
    """Two identity matrices as an NDArray (2, size, size)."""
    return nd.array(np.stack([np.eye(size)] * 2))


def assign_each(the_input: Any, function: Callable[[Any], Any] | None) -> np.ndarray:
    """Applies a function of one number to each element."""
    if function is None:
        return np.array(the_input)
    return np.array([function(x) for x in np.ravel(the_input)], float).reshape(the_input.shape)


def assign_each2(input1: Any, input2: Any, function: Callable[[Any, Any], Any] | None) -> np.ndarray:
    """Applies a function of two numbers to each pair of elements."""
    if function is None:
        return np.array(input1)
    assert input1.shape == input2.shape, f"shapes {input1.shape} and {input2.shape} differ"
    pairs = zip(np.ravel(input1), np.ravel(input2), strict=True)
    return np.array([function(x, y) for x, y in pairs], float).reshape(input1.shape)


# ---- sparse arrays


def rand_ndarray(shape: Shape, stype: str = "default", density: float | None = None, dtype: Any = None,
                 modifier_func: Callable[[Any], Any] | None = None, shuffle_csr_indices: bool = False,
                 distribution: str | None = None, ctx: Context | None = None) -> Any:
    """Returns a random NDArray: normal numbers if dense, otherwise as `rand_sparse_ndarray` makes them."""
    if stype == "default":
        return nd.array(random_arrays(shape), dtype=dtype, ctx=ctx or default_context())
    return rand_sparse_ndarray(shape, stype, density=density, modifier_func=modifier_func, dtype=dtype,
                               shuffle_csr_indices=shuffle_csr_indices, distribution=distribution, ctx=ctx)[0]


def rand_sparse_ndarray(shape: Shape, stype: str, density: float | None = None, dtype: Any = None,
                        distribution: str | None = None, data_init: float | None = None, rsp_indices: Any = None,
                        modifier_func: Callable[[Any], Any] | None = None, shuffle_csr_indices: bool = False,
                        ctx: Context | None = None) -> tuple[Any, tuple[Any, ...]]:
    """Returns a random sparse NDArray of uniform numbers, and what it holds.

    Args:
      shape: its shape.
      stype: "row_sparse" or "csr".
      density: the part that is stored, of the rows or of the elements; random if None.
      dtype: float32 if None.
      distribution: "uniform"; for csr also "powerlaw": the rows hold twice as many elements each as the one before.
      data_init: the value of everything stored.
      rsp_indices: the rows stored.
      modifier_func: applied to each number of a row_sparse array.
      shuffle_csr_indices: shuffle the columns within rows.
      ctx: where.

    Returns:
      `array, (values, rows)` for row_sparse, `array, (indptr, indices, data)` for csr.
    """
    ctx = ctx or default_context()
    density = np.random.rand() if density is None else density
    dtype = default_dtype() if dtype is None else dtype
    distribution = distribution or "uniform"
    shape = tuple(shape)
    if stype == "row_sparse":
        assert distribution == "uniform", f"Distribution {distribution} not supported for row_sparse"
        return _rows(shape, density, dtype, data_init, rsp_indices, modifier_func, ctx)
    if stype != "csr":
        raise AssertionError("unknown storage type")
    assert len(shape) == 2, f"csr needs two dimensions, got {shape}"
    if distribution == "uniform":
        csr = _uniform(shape, density, dtype, data_init, shuffle_csr_indices)
    elif distribution == "powerlaw":
        csr = nd.array(_powerlaw(shape, density, dtype)).tostype("csr")
    else:
        raise AssertionError(f"Distribution not supported: {distribution}")
    csr = csr.as_in_context(ctx)
    return csr, (csr.indptr, csr.indices, csr.data)


def _rows(shape: tuple[int, ...], density: float, dtype: Any, data_init: float | None, rows: Any,
          modifier: Callable[[Any], Any] | None, ctx: Context) -> tuple[Any, tuple[Any, ...]]:
    if rows is None:
        rows = np.flatnonzero(np.random.rand(shape[0]) < density)
    rows = np.asarray(rows)
    assert len(rows) <= shape[0], f"{len(rows)} rows of {shape[0]}"
    if not len(rows):
        return nd.zeros(shape, stype="row_sparse", dtype=dtype, ctx=ctx), (np.array([], dtype), np.array([]))
    values = np.random.rand(len(rows), *shape[1:]).astype(dtype)
    if data_init is not None:
        values.fill(data_init)
    if modifier is not None:
        values = assign_each(values, modifier)
    return nd.sparse.row_sparse_array((values, rows), shape=shape, dtype=dtype, ctx=ctx), (values, rows)


def _check_density(shape: tuple[int, ...], density: float) -> None:
    if density < 0 or density > 1:
        raise ValueError("density has to be between 0 and 1")
    if shape[0] <= 0 or shape[1] <= 0:
        raise ValueError("num_rows or num_cols should be greater than 0")


def _uniform(shape: tuple[int, ...], density: float, dtype: Any, data_init: float | None, shuffle: bool) -> Any:
    _check_density(shape, density)
    n = round(shape[0] * shape[1] * density)
    at = np.sort(np.random.choice(shape[0] * shape[1], n, replace=False))
    data = np.random.rand(n).astype(dtype) if data_init is None else np.full(n, data_init, dtype)
    columns = at % shape[1]
    indptr = np.searchsorted(at, np.arange(shape[0] + 1) * shape[1])
    if shuffle:
        columns = np.concatenate([np.random.permutation(columns[a:b]) for a, b in pairwise(indptr)])
    return nd.sparse.csr_matrix((data, columns, indptr), shape=shape, dtype=dtype)


def _powerlaw(shape: tuple[int, ...], density: float, dtype: Any) -> np.ndarray:
    """The first column, then 2, 4, 8, … elements of each row, until there are enough."""
    _check_density(shape, density)
    left = int(shape[0] * shape[1] * density)
    text = f"not supported for this density: {density} for this shape {shape}"
    if left < 2 * shape[0]:
        raise ValueError(f"{text} Please keep : num_rows * num_cols * density >= 2 * num_rows")
    made = np.zeros(shape, dtype)
    made[:, 0] = 1 + np.random.uniform(0.001, 2, shape[0])
    left -= shape[0]
    for row in range(shape[0]):
        n = min(min(2 ** (row + 1), shape[1]) - 1, left)
        made[row, 1 : n + 1] = 1 + np.random.uniform(0.001, 2, n)
        left -= n
    if left > 0:
        raise ValueError(text)
    return made


def shuffle_csr_column_indices(csr: Any) -> None:
    """Shuffles the columns within each row of a SciPy csr matrix, without its data."""
    for a, b in pairwise(csr.indptr):
        np.random.shuffle(csr.indices[a:b])


def create_sparse_array(shape: Shape, stype: str, data_init: float | None = None, rsp_indices: Any = None,
                        dtype: Any = None, modifier_func: Callable[[Any], Any] | None = None, density: float = 0.5,
                        shuffle_csr_indices: bool = False) -> Any:
    """Returns a random sparse NDArray; see `rand_sparse_ndarray`."""
    if stype not in ("row_sparse", "csr"):
        raise AssertionError(f"Unknown storage type: {stype}")
    rows = None if rsp_indices is None or stype == "csr" else np.sort(np.asarray(rsp_indices))
    return rand_sparse_ndarray(shape, stype, density=density, data_init=data_init, rsp_indices=rows, dtype=dtype,
                               modifier_func=modifier_func, shuffle_csr_indices=shuffle_csr_indices)[0]


def create_sparse_array_zd(shape: Shape, stype: str, density: float, data_init: float | None = None,
                           rsp_indices: Any = None, dtype: Any = None,
                           modifier_func: Callable[[Any], Any] | None = None,
                           shuffle_csr_indices: bool = False) -> Any:
    """`create_sparse_array`, but a row_sparse one holds the given rows only: none if none are given."""
    if stype == "row_sparse":
        density = 0.0
        assert rsp_indices is None or len(rsp_indices) <= shape[0], f"{len(rsp_indices)} rows of {shape[0]}"
    return create_sparse_array(shape, stype, data_init=data_init, rsp_indices=rsp_indices, dtype=dtype,
                               modifier_func=modifier_func, density=density, shuffle_csr_indices=shuffle_csr_indices)


# ---- matrices


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """A random orthonormal (n, n) matrix."""
    x = np.random.randn(n, n)
    return np.linalg.qr(x.T @ x)[0]


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """A random symmetric (n, n) matrix with eigenvalues from -10 to 10."""
    q = new_orthonormal_matrix_2d(n)
    return q.T @ np.diag(np.random.uniform(-10.0, 10.0, n)) @ q


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """A random well-conditioned (n, n) matrix with real eigenvalues from -10 to 10."""
    while True:
        v = np.random.uniform(-1.0, 1.0, (n, 1))
        v /= np.linalg.norm(v)
        q = (np.eye(n) - 2 * v @ v.T) @ np.diag(np.random.uniform(-1.0, 1.0, n))
        if np.linalg.cond(q, 2) < 3:
            return np.linalg.inv(q) @ np.diag(np.random.uniform(-10.0, 10.0, n)) @ q


def _many(make: Callable[[int], np.ndarray], shape: Shape) -> np.ndarray:
    n = int(np.prod(shape[:-2])) if len(shape) > 2 else 1
    return np.array([make(shape[-1]) for _ in range(n)]).reshape(tuple(shape))


def new_matrix_with_real_eigvals_nd(shape: Shape) -> np.ndarray:
    """A stack of matrices as `new_matrix_with_real_eigvals_2d` makes them."""
    return _many(new_matrix_with_real_eigvals_2d, shape)


def new_sym_matrix_with_real_eigvals_nd(shape: Shape) -> np.ndarray:
    """A stack of matrices as `new_sym_matrix_with_real_eigvals_2d` makes them."""
    return _many(new_sym_matrix_with_real_eigvals_2d, shape)


def np_reduce(dat: Any, axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]) -> Any:
    """Reduces axes one after the other with a function `(array, axis=)`."""
    axes = [axis] if isinstance(axis, int) else list(range(dat.ndim) if axis is None else axis)
    shape = [1 if i in axes else n for i, n in enumerate(dat.shape)]
    for i in sorted(axes, reverse=True):
        dat = numpy_reduce_func(dat, axis=i)
    return dat.reshape(tuple(shape)) if keepdims else dat


def collapse_sum_like(a: Any, shape: Shape) -> Any:
    """Sums the axes along which `shape` would stretch to the shape of `a`."""
    assert a.ndim >= len(shape), f"{a.shape} has fewer axes than {shape}"
    extra = a.ndim - len(shape)
    if 0 in tuple(shape) or a.size == 0:
        return np.zeros(tuple(shape), dtype=a.dtype)
    axes = [i for i, n in enumerate(a.shape) if i < extra or n != shape[i - extra]]
    assert all(i < extra or shape[i - extra] == 1 for i in axes), f"{shape} does not stretch to {a.shape}"
    return np.sum(a, axis=tuple(axes)).reshape(tuple(shape))
