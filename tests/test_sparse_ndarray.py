"""Sparse NDArrays: contents, files, laziness, errors; conversions between storage forms."""

from __future__ import annotations

import gc
import pickle
import warnings
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from jax.experimental.sparse import BCOO, BCSR

import symjax as mx
from symjax import nd, sparse
from symjax.lowering.errors import MXNetError, ShapeError, StorageError
from symjax.sparse import CSR, RowSparse

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
FORMS = ("csr", "row_sparse")


@st.composite
def dense(draw: st.DrawFn, ndim: int | None = None) -> np.ndarray:
    """Mostly zeros, of every type, also with axes of length 0."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    dims = ndim or draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.integers(0, 6), min_size=dims, max_size=dims)))
    if dtype.kind == "b":
        return draw(hnp.arrays(dtype, shape, fill=st.just(False)))
    some = st.sampled_from([0, 0, 0, 1, 2, 3, 100])
    return draw(hnp.arrays(dtype, shape, elements=some, fill=st.just(0)))


@st.composite
def csr_parts(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Data (with explicit zeros), indices, indptr and shape of a matrix."""
    rows, cols = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    columns = [sorted(draw(st.sets(st.integers(0, cols - 1)))) if cols else [] for _ in range(rows)]
    indptr = np.cumsum([0, *(len(c) for c in columns)])
    indices = np.array([c for row in columns for c in row], np.int64)
    dtype = draw(st.sampled_from([t for t in DTYPES if t != "bool"]))
    data = draw(hnp.arrays(dtype, len(indices), elements=st.integers(0, 9)))
    return data, indices, indptr, (rows, cols)


def same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bool((np.asarray(a) == np.asarray(b)).all())


def stored(a: Any) -> tuple[list[Any], ...]:
    parts = (a.data, a.indices, a.indptr) if a.stype == "csr" else (a.data, a.indices)
    return tuple(p.asnumpy().tolist() for p in parts)


# ---- conversions


@given(dense(ndim=2))
@settings(max_examples=40, deadline=None)
def test_dense_and_csr(x: np.ndarray) -> None:
    c = nd.array(x, dtype=x.dtype.name).tostype("csr")
    assert same(c.asnumpy(), x) and c.data.shape == (np.count_nonzero(x),)
    reference = sp.csr_matrix(x.astype("float64"))
    assert stored(c) == (reference.data.tolist(), reference.indices.tolist(), reference.indptr.tolist())
    c.check_format()
    assert same(c.tostype("default").asnumpy(), x)


@given(dense())
@settings(max_examples=40, deadline=None)
def test_dense_and_row_sparse(x: np.ndarray) -> None:
    r = nd.array(x, dtype=x.dtype.name).tostype("row_sparse")
    rows = [i for i in range(len(x)) if x[i].any()]
    assert same(r.asnumpy(), x) and r.indices.asnumpy().tolist() == rows
    assert r.data.shape == (len(rows), *x.shape[1:])
    r.check_format()
    assert same(r.tostype("default").asnumpy(), x)


@given(csr_parts())
@settings(max_examples=25, deadline=None)
def test_csr_forms(parts: Any) -> None:
    data, indices, indptr, shape = parts
    c = nd.sparse.csr_matrix((data, indices, indptr), shape=shape)
    kept = (data.tolist(), indices.tolist(), indptr.tolist())
    assert c.dtype == data.dtype and stored(c) == kept  # zeros that were given stay
    value = c._data
    for back in (sparse.from_bcsr(sparse.to_bcsr(value)), sparse.from_bcoo(sparse.to_bcoo(value))):
        assert isinstance(back, CSR) and back.dtype == data.dtype
        assert tuple(x.tolist() for x in back.host()) == kept
    if data.dtype != np.float16:
        m = c.asscipy()
        assert (m.toarray() == c.asnumpy()).all() and m.nnz == len(data) and m.dtype == data.dtype
        assert stored(nd.sparse.array(m)) == kept
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
    order = np.random.RandomState(0).permutation(len(data))
    c2 = nd.sparse.csr_matrix((data[order], (rows[order], indices[order])), shape=shape)
    assert stored(c2) == kept


@given(dense())
@settings(max_examples=25, deadline=None)
def test_row_sparse_and_bcoo(x: np.ndarray) -> None:
    value = sparse.row_sparse_from_numpy(x)
    there = sparse.to_bcoo(value)
    back = sparse.from_bcoo(there)
    assert isinstance(back, RowSparse) and same(sparse.to_numpy(back), x)
    with jax.enable_x64(True):
        assert x.dtype.kind == "b" or same(np.asarray(there.todense()), x)


@pytest.mark.parametrize("form", [BCSR, BCOO])
def test_jax_sparse_in_a_compiled_function(form: Any) -> None:
    """A traced container keeps its padding, which JAX's own operations ignore."""
    x = np.array([[0, 1, 0], [2, 0, 0], [0, 0, 0], [0, 3, 4]], "f")
    convert = sparse.to_bcsr if form is BCSR else sparse.to_bcoo
    got = jax.jit(lambda c, y: convert(c) @ y)(nd.array(x).tostype("csr")._data, np.eye(3, dtype="f"))
    assert np.array_equal(got, x)
    assert np.array_equal(convert(nd.array(x).tostype("csr")._data).todense(), x)


def test_bcoo_that_no_container_holds() -> None:
    def one(*shape: int, dtype: Any = float) -> Any:
        return jax.numpy.ones(shape, dtype)

    with pytest.raises(ShapeError, match="n_batch=1"):
        sparse.from_bcoo(BCOO((one(2, 1), one(2, 1, 2, dtype=int)), shape=(2, 3, 4)))
    with pytest.raises(ShapeError, match="no container fits"):
        sparse.from_bcoo(BCOO((one(1), one(1, 3, dtype=int)), shape=(2, 3, 4)))
    with pytest.raises(ShapeError, match="n_batch=1"):
        sparse.from_bcsr(BCSR((one(2, 1), one(2, 1, dtype=int), one(2, 4, dtype=int)), shape=(2, 3, 4)))


def test_bcoo_with_entries_twice() -> None:
    x = BCOO((jax.numpy.array([1.0, 2, 4]), jax.numpy.array([[1, 0], [1, 0], [0, 1]])), shape=(2, 2))
    assert np.array_equal(sparse.to_numpy(sparse.from_bcoo(x)), [[0, 4], [3, 0]])


def test_positions_are_summed_in_the_type_of_the_data() -> None:
    big = 2**53 + 1
    c = nd.sparse.csr_matrix((np.array([big, 1, 5]), ([1, 1, 0], [2, 2, 0])))
    assert c.dtype == np.int64 and c.asnumpy().tolist() == [[5, 0, 0], [0, 0, big + 1]]
    half = nd.sparse.csr_matrix((np.array([1, 2], "float16"), ([0, 0], [0, 0])))
    assert half.dtype == np.float16 and half.asnumpy().tolist() == [[3]]


@pytest.mark.parametrize("form", ["coo", "csc", "lil", "dok", "bsr"])
def test_other_scipy_formats(form: str) -> None:
    x = np.array([[0, 1.5], [2, 0]])
    for source in (sp.csr_matrix(x).asformat(form), sp.csr_array(x).asformat(form)):
        for c in (nd.sparse.csr_matrix(source), nd.sparse.array(source), nd.array(source)):
            assert c.stype == "csr" and c.dtype == np.float64 and np.array_equal(c.asnumpy(), x)


def test_scipy_input_is_left_alone() -> None:
    m = sp.csr_matrix(([1.0, 2, 3], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    c = nd.sparse.array(m)
    assert m.nnz == 3 and stored(c) == ([3, 3], [1, 0], [0, 1, 2])
    c2 = nd.sparse.csr_matrix(sp.csr_matrix(np.eye(2)))
    m2 = c2.asscipy()
    m2.data[:] = 7
    assert c2.asnumpy().tolist() == [[1, 0], [0, 1]]


def test_scipy_lacks_half_precision() -> None:
    with pytest.raises(StorageError, match="float16"):
        nd.sparse.zeros("csr", (2, 2), dtype="float16").asscipy()


# ---- the cell


def test_contents_are_a_container_on_the_device() -> None:
    c = nd.sparse.csr_matrix((np.array([1, 2, 3]), [1, 0, 2], [0, 1, 2, 2, 3]), shape=(4, 3))
    value = c._data
    assert isinstance(value, CSR) and value.data.dtype == np.int64 and value.indices.dtype == np.int32
    assert all(x.committed for x in jax.tree.leaves(value)) and value.devices() == {mx.cpu().jax_device}
    assert c.indices.dtype == np.int64 and c.indptr.dtype == np.int64
    r = nd.sparse.row_sparse_array(([[1, 2]], [3]), shape=(10, 2))
    assert isinstance(r._data, RowSparse) and all(x.committed for x in jax.tree.leaves(r._data))


def test_float_arrays_of_whole_numbers_are_indices() -> None:
    """As `mx.nd.array` makes them where old programs say nothing of types."""
    c = nd.sparse.csr_matrix((nd.ones(2), nd.array([2, 0]), nd.array([0, 1, 2])), shape=(2, 3))
    assert c.asnumpy().tolist() == [[0, 0, 1], [1, 0, 0]]
    r = nd.sparse.row_sparse_array((nd.ones((1, 2)), nd.array([2])), shape=(4, 2))
    assert r.indices.dtype == np.int64 and r.indices.asnumpy().tolist() == [2]


def test_arrays_of_like_fill_share_a_capacity() -> None:
    def capacity(n: int) -> int:
        return nd.sparse.csr_matrix((np.ones(n, "f"), np.arange(n), [0, n]), shape=(1, 100))._data.capacity

    assert len({capacity(n) for n in range(41, 49)}) == 1


def test_pending_array() -> None:
    ran = []

    def thunk() -> Any:
        ran.append(1)
        return nd.sparse.row_sparse_array(([[1, 2]], [3]), shape=(5, 2))._data

    r = nd.sparse.RowSparseNDArray._pending((5, 2), "float32", mx.cpu(), thunk)
    assert (r.shape, r.dtype, r.context, r.stype, len(r)) == ((5, 2), np.float32, mx.cpu(), "row_sparse", 5)
    assert repr(r) == "\n<RowSparseNDArray 5x2 @cpu(0)>" and not ran
    assert r.indices.asnumpy().tolist() == [3] and ran == [1]
    r.wait_to_read()


def test_pending_array_runs_at_waitall() -> None:
    ran: list[int] = []

    def thunk() -> Any:
        ran.append(1)
        return CSR.empty((2, 2), "float32")

    kept = nd.sparse.CSRNDArray._pending((2, 2), "float32", mx.cpu(), thunk)
    nd.waitall()
    assert ran == [1] and kept.shape == (2, 2)


def test_detached_array_shares_contents() -> None:
    c = nd.array([[0, 1], [2, 0]]).tostype("csr")
    d = c.detach()
    d *= 2
    assert c.asnumpy().tolist() == [[0, 2], [4, 0]]
    c[:] = nd.zeros((2, 2))
    assert d.indices.shape == (0,) and d.shape == (2, 2) and d.dtype == np.float32


def test_copies_are_independent() -> None:
    for a in (nd.array([[0, 1], [2, 0]]).tostype("csr"), nd.array([[0, 0], [2, 0]]).tostype("row_sparse")):
        before = a.asnumpy()
        for b in (a.copy(), a.astype("float32"), a.tostype(a.stype), nd.sparse.array(a), a.copyto(a.copy())):
            b *= 3
            assert np.array_equal(a.asnumpy(), before) and np.array_equal(b.asnumpy(), before * 3)


def test_sources_are_copied() -> None:
    data, rows = np.ones((3, 2), "f"), np.arange(3)
    r = nd.sparse.row_sparse_array((data, rows))
    c = nd.sparse.csr_matrix((data[:, 0].copy(), rows, np.arange(4)), shape=(3, 3))
    data[:], rows[:] = 9, 0
    gc.collect()
    assert r.asnumpy().tolist() == [[1, 1]] * 3 and np.array_equal(c.asnumpy(), np.eye(3))


def test_large_shapes_cost_nothing() -> None:
    r = nd.sparse.row_sparse_array((np.ones((2, 16), "f"), [5, 99_999_999]), shape=(10**8, 16))
    z = nd.sparse.zeros("row_sparse", (10**12, 4), dtype="float64")
    assert (r * 2).data.asnumpy().sum() == 64 and z.indices.dtype == np.int64
    r.attach_grad()
    assert r.grad.stype == "row_sparse" and r.grad.data.shape == (0, 16)
    z.check_format()
    wide = nd.sparse.csr_matrix(([1.0, 2.0], [3, 2**40], [0, 1, 2]), shape=(2, 2**40 + 1))
    assert wide[1].indices.asnumpy().tolist() == [2**40] and wide[1].shape == (1, 2**40 + 1)


def test_contexts_of_several_devices() -> None:
    c = nd.array([[0, 1], [2, 0]]).tostype("csr").as_in_context(mx.cpu(1))
    assert c.context == mx.cpu(1) and c.data.context == mx.cpu(1) and c[0].context == mx.cpu(1)
    assert c.astype("float64").context == mx.cpu(1) and c.tostype("default").context == mx.cpu(1)


def test_operands_of_jax_functions() -> None:
    c = nd.array([[0, 1], [2, 0]]).tostype("csr")
    assert np.array_equal(jax.numpy.sum(jax.numpy.asarray(c), axis=0), [2, 1])
    assert np.array_equal(np.asarray(c), [[0, 1], [2, 0]]) and np.asarray(c, "int8").dtype == np.int8


# ---- reading and writing elements


@pytest.mark.parametrize("key", [slice(0, 2), slice(1, None), slice(-3, -1), slice(2, 1), slice(0, 100), 0, 3, -1, -4])
def test_rows_of_csr(key: Any) -> None:
    x = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 5, 6]], "f")
    got = nd.array(x).tostype("csr")[key]
    assert np.array_equal(got.asnumpy(), x[key].reshape(-1, 3)) and got.stype == "csr"
    got.check_format()


def test_rows_that_do_not_exist() -> None:
    c = nd.array([[0, 1], [2, 0]]).tostype("csr")
    for i in (2, -3):
        with pytest.raises(IndexError, match="out of bounds"):
            c[i]
    assert [r.asnumpy().tolist() for r in c] == [[[0, 1]], [[2, 0]]]


def test_box_assignment_goes_through_a_dense_copy() -> None:
    c = nd.array([[0, 1], [2, 0]]).tostype("csr")
    assert c.slice_assign(nd.ones((1, 2)), (0, 0), (1, 2), ()) is c
    assert c.stype == "csr" and c.asnumpy().tolist() == [[1, 1], [2, 0]]
    r = nd.array([[0, 0], [2, 0]]).tostype("row_sparse")
    r.slice_assign_scalar(5.0, (0, 1), (1, 2), ())
    assert r.indices.asnumpy().tolist() == [0, 1] and r.asnumpy().tolist() == [[0, 5], [2, 0]]


def test_numpy_is_assigned_with_a_warning() -> None:
    r = nd.sparse.zeros("row_sparse", (3, 2), dtype="float64")
    with pytest.warns(RuntimeWarning, match="not efficient"):
        r[:] = np.array([[0, 0], [1, 2], [0, 0]])
    assert r.dtype == np.float64 and r.indices.asnumpy().tolist() == [1]


def test_readonly() -> None:
    c = nd.sparse.zeros("csr", (2, 2))
    c.writable = False
    with pytest.raises(ValueError, match="readonly CSRNDArray"):
        c[:] = nd.ones((2, 2))


def test_retain_as_method_and_as_in_mxnet() -> None:
    r = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, 3]), shape=(4, 2))
    ids = nd.array([3], dtype="int64")
    for got in (r.retain(ids), r.retain(r, ids), nd.sparse.retain(r, ids)):
        assert got.stype == "row_sparse" and got.indices.asnumpy().tolist() == [3] and got.data.asnumpy().sum() == 7


# ---- errors


@pytest.mark.parametrize("parts, says", [
    (([1, 2, 3], [0, 2, 1], [0, 5, 2, 3]), "should rise"),
    (([1, 2, 3], [2, 1, 1], [0, 2, 2, 3]), "row 0 do not ascend"),
    (([1, 2, 3], [1, 2, 1], [0, 2, 2, 4]), "should rise"), (([1, 2, 3], [0, 2, 5], [0, 2, 2, 3]), "5 is not inside"),
    (([1, 2, 3], [0, 2, -1], [0, 2, 2, 3]), "-1 is not inside"), (([1, 2, 3], [0, 2, 1], [0, 2, 3]), "Shape mismatch"),
])
def test_malformed_csr(parts: Any, says: str) -> None:
    c = nd.sparse.csr_matrix(parts, shape=(3, 4))
    assert c.shape == (3, 4) and c.indices.asnumpy().tolist() == parts[1]
    with pytest.raises(MXNetError, match=says):
        c.check_format()


@pytest.mark.parametrize("rows, says", [
    ([1, 4], "4 is not inside"), ([1, 0], "ascending order"), ([1, -2], "-2 is not inside"),
])
def test_malformed_row_sparse(rows: list[int], says: str) -> None:
    r = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], rows), shape=(3, 2))
    r.check_format(full_check=False)
    with pytest.raises(MXNetError, match=says):
        r.check_format()


def test_malformed_arrays_say_why_when_used() -> None:
    c = nd.sparse.csr_matrix(([1, 2, 3], [0, 2, 5], [0, 2, 2, 3]), shape=(3, 4))
    for use in (c.asnumpy, lambda: c * 2, lambda: c[0], c.copy, lambda: pickle.dumps(c), c.wait_to_read):
        with pytest.raises(MXNetError, match=r"malformed and cannot be used: .*5 is not inside of 4 columns"):
            use()


@pytest.mark.parametrize("call, error, says", [
    (lambda c, r: c.tostype("row_sparse"), ValueError, "cast_storage from csr to row_sparse is not supported"),
    (lambda c, r: r.tostype("csr"), ValueError, "cast_storage from row_sparse to csr is not supported"),
    (lambda c, r: c.copyto(r), TypeError, "stype row_sparse"),
    (lambda c, r: c.reshape((1, 6)), mx.base.NotSupportedForSparseNDArray,
     r"Function reshape with arguments \(<class 'tuple'>\) is not supported for SparseNDArray"),
    (lambda c, r: c.size, NotImplementedError, "ambiguous"),
    (lambda c, r: c.to_dlpack_for_read(), mx.base.NotSupportedForSparseNDArray, "to_dlpack_for_read"),
    (lambda c, r: nd.sparse.csr_matrix(([1, 2], [0], [0, 1])), MXNetError, "2 values for 1 column indices"),
    (lambda c, r: nd.sparse.csr_matrix((nd.ones(1), nd.array([0.5]), nd.array([0, 1]))), TypeError, "whole numbers"),
    (lambda c, r: nd.sparse.csr_matrix(([1], ([3], [0])), shape=(2, 2)), ValueError, "row index 3 lies outside"),
    (lambda c, r: nd.sparse.zeros("csr", (2, 3, 4)), ValueError, "two axes"),
    (lambda c, r: nd.zeros((2, 3, 4)).tostype("csr"), ValueError, "2 Dimensional"),
    (lambda c, r: nd.sparse.array([[1]]), ValueError, "Unexpected source_array"),
    (lambda c, r: setattr(c, "data", 1), NotImplementedError, "cannot be set"),
])
def test_errors(call: Any, error: type[Exception], says: str) -> None:
    c, r = nd.array([[0, 1, 0], [2, 0, 0]]).tostype("csr"), nd.array([[0, 1, 0], [2, 0, 0]]).tostype("row_sparse")
    with pytest.raises(error, match=says):
        call(c, r)


# ---- files


@given(st.lists(st.one_of(csr_parts(), dense()), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_params_round_trip(tmp_path_factory: pytest.TempPathFactory, items: list[Any]) -> None:
    arrays = [nd.sparse.csr_matrix(p[:3], shape=p[3]) if isinstance(p, tuple) else nd.sparse.row_sparse_array(p)
              for p in items]
    path = tmp_path_factory.mktemp("params") / "a.params"
    nd.save(str(path), arrays)
    back = nd.load(str(path))
    for a, b in zip(arrays, back, strict=True):
        assert (type(a), a.shape, a.dtype) == (type(b), b.shape, b.dtype) and stored(a) == stored(b)
    again = path.with_name("b.params")
    nd.save(str(again), back)
    assert again.read_bytes() == path.read_bytes()


def test_loaded_arrays_are_read_when_used(tmp_path: Any) -> None:
    path = str(tmp_path / "a.params")
    nd.save(path, {"c": nd.array([[0, 1], [2, 0]]).tostype("csr")})
    c = nd.load(path)["c"]
    assert c._value is None and c.shape == (2, 2) and c.dtype == np.float32 and c.context == mx.cpu()
    assert c.asnumpy().tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize("stype", FORMS)
@pytest.mark.parametrize("dtype", [t for t in DTYPES if t != "bool"])
def test_pickle(stype: str, dtype: str) -> None:
    a = nd.array([[0, 0, 0], [1, 0, 2]], dtype=dtype).tostype(stype)
    b = pickle.loads(pickle.dumps(a))
    assert type(a) is type(b) and a.dtype == b.dtype and stored(a) == stored(b) and b.context == a.context
    assert b"symjax.ndarray.sparse" in pickle.dumps(a)


def test_no_warnings_from_plain_use() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c = nd.array([[0, 1], [2, 0]]).tostype("csr")
        c.copyto(nd.zeros((2, 2)))
        nd.ones((2, 2)).copyto(c)
        nd.sparse.csr_matrix((np.array([np.nan, 1e30]), ([0, 1], [0, 1])), dtype="int32")


def test_rows_in_any_order() -> None:
    """`retain` leaves rows in the order asked for; what follows finds them. Of a row given twice the last counts."""
    g = nd.sparse.row_sparse_array((np.array([[1, 1], [2, 2]], "f"), [1, 3]), shape=(5, 2))
    r = nd.sparse.retain(g, nd.array([3, 1]))
    assert r.indices.asnumpy().tolist() == [3, 1]
    assert np.array_equal((r + g).asnumpy(), 2 * g.asnumpy())
    assert np.array_equal(nd.sparse.retain(r, nd.array([1])).asnumpy()[1], [1, 1])
    assert np.array_equal(nd.sparse.dot(nd.array(np.eye(5)).tostype("csr"), r).asnumpy(), g.asnumpy())
    twice = nd.sparse.row_sparse_array((np.array([[1, 1], [2, 2]], "f"), [3, 3]), shape=(5, 2))
    assert np.array_equal((twice + twice).asnumpy(), 2 * twice.asnumpy())


def test_rows_of_equal_length() -> None:
    """Sums by row take another way then; numbers, derivatives and the padding behind stay the same."""
    rng = np.random.RandomState(0)
    rows, width, columns = 130, 37, 200
    cols = np.stack([np.sort(rng.choice(columns, width, replace=False)) for _ in range(rows)])
    data, ends = rng.rand(rows * width).astype("float32"), np.arange(rows + 1) * width
    even = nd.sparse.csr_matrix((data, cols.reshape(-1), ends), shape=(rows, columns))
    assert even._data.width == width and even._data.capacity > even._data.nnz
    ends[1:-1] += 1  # the first row one longer, the last one shorter
    uneven = nd.sparse.csr_matrix((data, cols.reshape(-1), ends), shape=(rows, columns))
    assert uneven._data.width is None
    for x in (even, uneven):
        dense = x.asnumpy()
        for right in ((columns, 1), (columns,), (columns, 3)):
            w = nd.array(rng.rand(*right))
            w.attach_grad()
            with mx.autograd.record():
                out = nd.sparse.dot(x, w)
            out.backward()
            np.testing.assert_allclose(out.asnumpy(), dense @ w.asnumpy(), rtol=1e-5)
            np.testing.assert_allclose(w.grad.asnumpy(), dense.T @ np.ones(out.shape), rtol=1e-5)
        assert same((x + x).asnumpy(), 2 * dense) and same(x[3:5].asnumpy(), dense[3:5])
        assert x._data.with_data(x._data.data * 2).width == x._data.width


@pytest.mark.parametrize("stype", ["row_sparse", "csr", "default", None])
def test_products_with_the_transpose_again(stype: str | None) -> None:
    """The index of the columns is worked out for the first call and placed for the second."""
    rng = np.random.RandomState(0)
    dense = rng.rand(6, 9).astype("float32") * (rng.rand(6, 9) < 0.3)
    dense[:, [2, 5]] = 0
    x, y = nd.array(dense).tostype("csr"), nd.array(rng.rand(6, 4))
    kinds = []
    for _ in range(3):
        out = nd.sparse.dot(x, y, transpose_a=True, **({"forward_stype": stype} if stype else {}))
        np.testing.assert_allclose(out.asnumpy(), dense.T @ y.asnumpy(), rtol=1e-5)
        assert out.stype == (stype or "row_sparse")
        if out.stype == "row_sparse":
            assert out.indices.asnumpy().tolist() == np.flatnonzero(dense.any(0)).tolist()
        if out.stype == "csr":
            assert out._data.capacity <= 32
        kinds.append(type(x._data.columns.inverse))
    assert kinds[0] is np.ndarray and issubclass(kinds[1], jax.Array) and kinds[2] is kinds[1]
