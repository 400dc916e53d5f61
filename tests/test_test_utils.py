"""`mx.test_utils`: MXNet's messages and tolerances, and checks that pass and fail where its do."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax import test_utils as tu
from tests.utils_cases import run_checks, run_comparisons, run_tolerances

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "test_utils.json").read_text())


def test_messages() -> None:
    found = run_comparisons(mx)
    for name, wanted in GOLDEN["comparisons"].items():
        if name == "bools":  # numpy's own message, which differs between its versions
            assert found[name][1] == "AssertionError"
        else:
            assert found[name] == wanted, name


def test_tolerances() -> None:
    assert run_tolerances(mx) == GOLDEN["tolerances"]


def test_checks() -> None:
    assert run_checks(mx) == GOLDEN["checks"]


def test_a_failed_check_says_which_context(capsys: pytest.CaptureFixture[str]) -> None:
    a = mx.sym.Variable("a")
    contexts = [{"ctx": mx.cpu(), "a": (2, 3)}, {"ctx": mx.cpu(), "a": (2, 3)}]
    with pytest.raises(AssertionError, match="exceeds tolerance"):
        tu.check_consistency([mx.sym.sin(a, name="f"), mx.sym.cos(a, name="f")], contexts)
    assert "Predict Err: ctx 1 vs ctx 0 at f_output" in capsys.readouterr().out
    tu.check_consistency([mx.sym.sin(a, name="f"), mx.sym.cos(a, name="f")], contexts, raise_on_err=False)
    truth = tu.check_consistency(mx.sym.sin(a, name="f"), contexts, grad_req="add", use_uniform=True)
    assert set(truth) == {"f_output", "a"}


def test_wrong_gradient_is_found() -> None:
    with pytest.raises(AssertionError, match="NUMERICAL_x"):
        tu.check_numeric_gradient(mx.sym.BlockGrad(mx.sym.Variable("x")), [np.ones((2, 2))])


def test_sparse_gradients() -> None:
    data, w = mx.sym.Variable("data"), mx.sym.Variable("w", stype="row_sparse")
    net = mx.sym.Embedding(data, weight=w, input_dim=4, output_dim=2, sparse_grad=True)
    ids = np.array([1, 3])
    grad = np.zeros((4, 2))
    grad[[1, 3]] = 1
    found = tu.check_symbolic_backward(
        net, {"data": ids, "w": mx.nd.ones((4, 2)).tostype("row_sparse")}, [np.ones((2, 2))],
        {"w": grad}, grad_req={"data": "null", "w": "write"}, grad_stypes={"w": "row_sparse"})
    assert found["w"].stype == "row_sparse"


def test_location_by_name_must_fit() -> None:
    net = mx.sym.Variable("a") + mx.sym.Variable("b")
    with pytest.raises(ValueError, match="Symbol arguments and keys of the given location do not match"):
        tu.check_symbolic_forward(net, {"a": np.ones(2)}, [np.ones(2)])
    with pytest.raises(AssertionError):
        tu.check_numeric_gradient(net, [np.ones(2), np.ones(2)], dtype=np.int32)
    with pytest.raises(ValueError, match="grad_req"):
        tu.check_symbolic_backward(net, [np.ones(2)] * 2, [np.ones(2)], [np.ones(2)] * 2, grad_req="rite")


def test_bfloat16() -> None:
    a = mx.nd.array([1, 2, 300], dtype="bfloat16")
    tu.assert_almost_equal(a, np.array([1.01, 2, 302], np.float32))
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(a, np.array([1, 2, 400], np.float32))


@pytest.mark.parametrize("stype", ["default", "csr", "row_sparse"])
def test_random_arrays(stype: str) -> None:
    a = tu.rand_ndarray((20, 30), stype, density=0.25)
    assert (a.shape, a.stype, a.dtype) == ((20, 30), stype, np.float32)
    part = (a.asnumpy() != 0).mean()
    assert part == 1 if stype == "default" else 0.05 < part < 0.6


def test_sparse_arrays() -> None:
    a, (values, rows) = tu.rand_sparse_ndarray((6, 2), "row_sparse", rsp_indices=np.array([1, 4]), data_init=3)
    assert rows.tolist() == [1, 4] and a.indices.asnumpy().tolist() == [1, 4] and np.all(values == 3)
    a, _ = tu.rand_sparse_ndarray((6, 2), "row_sparse", density=1.0, modifier_func=lambda x: -2.0)
    assert np.all(a.asnumpy() == -2)
    assert tu.create_sparse_array_zd((5, 2), "row_sparse", 0.7).indices.size == 0
    power, (indptr, _, _) = tu.rand_sparse_ndarray((8, 32), "csr", density=0.3, distribution="powerlaw")
    assert np.diff(indptr.asnumpy())[:4].tolist() == [2, 4, 8, 16] and (power.asnumpy() != 0).sum() == int(256 * 0.3)
    for bad in (lambda: tu.rand_sparse_ndarray((4, 4), "csr", density=2),
                lambda: tu.rand_sparse_ndarray((4, 4), "csr", density=0.1, distribution="powerlaw")):
        with pytest.raises(ValueError, match="density"):
            bad()
    for bad in (lambda: tu.rand_sparse_ndarray((4, 4), "rows"), lambda: tu.create_sparse_array((4, 4), "dense"),
                lambda: tu.rand_sparse_ndarray((4, 4), "csr", distribution="normal")):
        with pytest.raises(AssertionError):
            bad()


def test_small_helpers() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(tu.np_reduce(x, (0, 2), True, np.sum), x.sum((0, 2), keepdims=True))
    np.testing.assert_array_equal(tu.np_reduce(x, None, False, np.max), x.max())
    np.testing.assert_array_equal(tu.collapse_sum_like(x, (3, 1)), x.sum((0, 2)).reshape(3, 1))
    np.testing.assert_array_equal(tu.assign_each2(x, x, lambda a, b: a - 2 * b), -x)
    assert tu.create_2d_tensor(3, 2).asnumpy().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert tu.get_identity_mat_batch(3).shape == (2, 3, 3)
    a = mx.nd.arange(6).reshape((2, 3))
    assert tu.same_array(a, a[:]) and not tu.same_array(a, a.copy()) and a.asnumpy()[1, 2] == 5
    net = mx.sym.sin(mx.sym.Variable("x"))
    assert tu.same_symbol_structure(net, mx.sym.sin(mx.sym.Variable("y")))
    assert not tu.same_symbol_structure(net, mx.sym.cos(mx.sym.Variable("x")))
    assert tu.simple_forward(net, x=np.zeros((2,))).tolist() == [0, 0]
    assert tu.check_speed(net, N=2, x=(3,)) > 0
    assert tu.check_speed(net, {"x": np.ones(3)}, N=2, typ="forward") > 0
    q = tu.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-12)
    for make in (tu.new_matrix_with_real_eigvals_nd, tu.new_sym_matrix_with_real_eigvals_nd):
        assert np.abs(np.linalg.eigvals(make((2, 3, 3))).imag).max() < 1e-6
    tu.assert_exception(lambda: 1 // 0, ZeroDivisionError)
    with pytest.raises(AssertionError):
        tu.assert_exception(lambda: 1, ZeroDivisionError)
    with mx.Context("cpu", 3):
        assert tu.default_context() == mx.cpu(3)
    assert list(tu.list_gpus()) == list(range(mx.num_gpus()))


def test_retry_and_environment(capfd: pytest.CaptureFixture[str]) -> None:
    attempts = []

    @tu.retry(3)
    def flaky() -> str:
        attempts.append(1)
        assert len(attempts) == 3
        return "done"

    assert flaky() == "done"
    with pytest.raises(AssertionError):
        tu.retry(2)(lambda: tu.assert_almost_equal(1.0, 2.0))()
    with tu.environment("SYMJAX_TEST_VARIABLE", "1"), tu.environment({"SYMJAX_TEST_VARIABLE": None, "HOME": "/x"}):
        assert "SYMJAX_TEST_VARIABLE" not in os.environ and os.environ["HOME"] == "/x"
    assert "SYMJAX_TEST_VARIABLE" not in os.environ and os.environ["HOME"] != "/x"
    with capfd.disabled(), tu.discard_stderr():
        os.write(2, b"nobody reads this")
    assert "nobody" not in capfd.readouterr().err
    assert sys.stderr is not None


def test_generators() -> None:
    pytest.importorskip("scipy")
    from scipy import stats

    rng = np.random.RandomState(0)
    buckets, probs = tu.gen_buckets_probs_with_ppf(stats.norm.ppf, 5)
    tu.verify_generator(lambda n: rng.randn(n), buckets, probs, nsamples=10000)
    with pytest.raises(AssertionError, match="Generator test fails"):
        tu.verify_generator(lambda n: rng.randn(n) + 0.1, buckets, probs, nsamples=10000)
    tu.verify_generator(lambda n: rng.randint(0, 3, n), [0, 1, 2], [1 / 3] * 3, nsamples=9999)
    assert tu.mean_check(rng.randn, 0, 1, 10000) and tu.var_check(rng.randn, 1, 10000)
    assert not tu.mean_check(rng.randn, 0.2, 1, 10000) and not tu.var_check(rng.randn, 1.2, 10000)


def test_files_that_are_there_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mnist.pkl.gz").write_bytes(b"x")
    tu.get_mnist_pkl()
    assert tu.download("http://localhost/name.bin", dirname="data", fname="mnist.pkl.gz") == "data/mnist.pkl.gz"
    with pytest.raises(OSError, match="cannot be fetched"):
        tu.download("http://localhost:1/name.bin", retries=0)
    assert [p.name for p in tmp_path.iterdir()] == ["data"]
    with pytest.raises(ValueError, match="http or https"):
        tu.download("file:///etc/hostname")
    assert tu.download_model("unknown") == (None, 0)


def test_dummy_iterator() -> None:
    it = tu.DummyIter(mx.io.NDArrayIter(np.arange(8), batch_size=2))
    assert [it.next().data[0].asnumpy().tolist() for _ in range(3)] == [[0, 1]] * 3
