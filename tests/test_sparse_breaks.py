"""What broke in the hands of a user of sparse models: one test per fault."""

from __future__ import annotations

import pytest

import symjax as mx


@pytest.mark.parametrize(("given", "name"), [("f2", "float16"), ("<f8", "float64"), ("int", "int64"), ("u1", "uint8")])
def test_numpys_other_spellings_of_a_type_reach_the_operators(given: str, name: str) -> None:
    assert mx.nd.ones(2).astype(given).dtype.__name__ == name
    assert mx.nd.one_hot(mx.nd.ones(2), 3, dtype=given).dtype.__name__ == name
    assert mx.nd.sparse.zeros("csr", (2, 3)).astype(given).dtype.__name__ == name
    x = mx.sym.Variable("x")
    assert x.astype(given).attr("dtype") == mx.sym.zeros((2,), dtype=given).attr("dtype") == name


def test_a_type_that_is_none_says_what_exists() -> None:
    with pytest.raises(mx.base.MXNetError, match="float16"):
        mx.sym.Cast(mx.sym.Variable("x"), dtype="floaty")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_indices_may_be_whole_numbers_of_any_type(dtype: str) -> None:
    one = mx.nd.ones(3)
    csr = mx.nd.sparse.csr_matrix((one, mx.nd.array([0, 1, 3], dtype=dtype), mx.nd.array([0, 1, 3], dtype=dtype)),
                                  shape=(2, 4))
    rows = mx.nd.sparse.row_sparse_array((one.reshape((3, 1)), mx.nd.array([0, 1, 3], dtype=dtype)), shape=(4, 1))
    for array in (csr, rows):
        assert array.indices.dtype.__name__ == "int64" and array.indices.asnumpy().tolist() == [0, 1, 3]


@pytest.mark.parametrize("index", [1.5, 2.0**24, float("nan")])
def test_indices_that_are_not_whole_or_rounded_are_refused(index: float) -> None:
    with pytest.raises(mx.base.MXNetError, match="dtype='int64'"):
        mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 2)), mx.nd.array([index])), shape=(2**25, 2))


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_negative_dimensions_are_refused(stype: str) -> None:
    with pytest.raises(mx.base.MXNetError, match=r"\(-1, 3\)"):
        mx.nd.sparse.zeros(stype, (-1, 3))
