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


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_negative_dimensions_are_refused(stype: str) -> None:
    with pytest.raises(mx.base.MXNetError, match=r"\(-1, 3\)"):
        mx.nd.sparse.zeros(stype, (-1, 3))
