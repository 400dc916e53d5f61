"""What broke in the hands of a user of sparse models: one test per fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner

import symjax as mx
from symjax.cli import main


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


def test_command_line_reads_sparse_parameters(tmp_path: Path) -> None:
    x, w = mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w", stype="row_sparse")
    mx.sym.sparse.dot(x, w).save(str(tmp_path / "m-symbol.json"))
    table = mx.nd.sparse.row_sparse_array(([[2.0, 3.0]], [1]), shape=(4, 2))
    mx.nd.save(str(tmp_path / "m-0001.params"), {"arg:w": table})
    np.savez(tmp_path / "x.npz", x=np.eye(3, 4, dtype="float32"))
    model = [str(tmp_path / "m"), "1", "--shape", "x=3,4"]
    for command in (["summary", *model], ["check", *model], ["infer", *model]):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output
    out = tmp_path / "out.npz"
    result = CliRunner().invoke(main, ["run", *model, "--input", str(tmp_path / "x.npz"), "-o", str(out)])
    assert result.exit_code == 0, result.output
    (value,) = np.load(out).values()
    np.testing.assert_array_equal(value, [[0, 0], [2, 3], [0, 0]])


def test_flax_module_takes_csr_inputs() -> None:
    from symjax.interop.flax import SymbolModule

    x, w = mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w", stype="row_sparse")
    module = SymbolModule(mx.sym.sparse.dot(x, w), {"w": np.arange(8, dtype="float32").reshape(4, 2)}, {})
    made = module(x=mx.sparse.csr_from_scipy(scipy.sparse.csr_matrix(np.eye(3, 4, dtype="float64"))))
    np.testing.assert_array_equal(made, np.arange(6).reshape(3, 2))


def test_csr_from_scipy_names_what_takes_dense_arrays() -> None:
    with pytest.raises(mx.base.MXNetError, match="csr_from_dense"):
        mx.sparse.csr_from_scipy(np.eye(3))


@pytest.mark.parametrize("stored", ["all rows", "one row", "dense"])
def test_a_row_that_a_gradient_stores_twice_counts_twice(stored: str) -> None:
    make = mx.nd.sparse.row_sparse_array
    gradient = make(([[1, 1.0], [2, 2]], [1, 1]), shape=(5, 2))
    weight = make(([[1, 1.0]], [1]), shape=(5, 2)) if stored == "one row" else mx.nd.ones((5, 2))
    weight = weight.tostype("row_sparse") if stored == "all rows" else weight
    mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.1, wd=0.0))(0, gradient, weight)
    np.testing.assert_allclose(weight.asnumpy()[1], [0.7, 0.7], rtol=1e-6)


def test_fallbacks_are_errors_for_calls_that_ran_before() -> None:
    x = mx.nd.ones((3, 4)).tostype("csr")
    with mx.config(storage_fallback="allow"):
        mx.nd.exp(x)
    with mx.config(storage_fallback="error"), pytest.raises(mx.MXNetError, match="exp"):
        mx.nd.exp(x)
