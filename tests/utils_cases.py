"""What `test_utils` says of arrays, as functions of `mx`: real MXNet, or symjax."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

A = np.array([1, 2, 3.0], np.float32)
B = np.array([1, 2.5, 3.1], np.float32)
TABLE = np.arange(200.0).reshape(20, 10)


def _says(attempt: Any) -> list[Any]:
    """What is printed, and what is raised."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            attempt()
        except Exception as e:
            return [text.getvalue(), type(e).__name__, str(e)]
    return [text.getvalue(), None, None]


def run_comparisons(mx: Any) -> dict[str, list[Any]]:
    t, nd = mx.test_utils, mx.nd
    attempts = {
        "equal": lambda: t.assert_almost_equal(A, A + 1e-6),
        "differ": lambda: t.assert_almost_equal(A, B),
        "tolerances": lambda: t.assert_almost_equal(nd.array(A), B, rtol=0.1, atol=0.01, names=("x", "y"),
                                                    mismatches=(1, 1)),
        "arrays": lambda: t.assert_almost_equal(nd.array(A), nd.array(B)),
        "halves": lambda: t.assert_almost_equal(nd.array(A, dtype="float16"), nd.array(B + 1, dtype="float16")),
        "half_and_single": lambda: t.assert_almost_equal(A.astype(np.float16), A + 0.1),
        "by_type": lambda: t.assert_almost_equal(A, B, rtol={np.dtype(np.float32): 0.5}, atol={}),
        "scalars": lambda: t.assert_almost_equal(1.0, 2.0),
        "bools": lambda: t.assert_almost_equal(np.array([True, False]), np.array([True, True])),
        "shapes": lambda: t.assert_almost_equal(A, B[:1], use_broadcast=False),
        "part": lambda: t.assert_almost_equal_with_err(A, B, etol=0.1),
        "enough": lambda: t.assert_almost_equal_with_err(A, B, etol=0.9),
        "nan": lambda: t.assert_almost_equal(np.array([1, np.nan]), np.array([1, np.nan])),
        "equal_nan": lambda: t.assert_almost_equal(np.array([1, np.nan]), np.array([1, np.nan]), equal_nan=True),
        "many": lambda: t.assert_almost_equal(TABLE, TABLE + 1),
        "all_of_many": lambda: t.assert_almost_equal(TABLE, TABLE + 1, mismatches=(3, 0)),
        "integers": lambda: t.assert_almost_equal(np.array([1, 2]), np.array([1, 3])),
        "allclose": lambda: t.assert_allclose(A, B),
        "ignore_nan": lambda: t.assert_almost_equal_ignore_nan(np.array([1, np.nan, 3]), np.array([1, 2, 4.0])),
        "tuples": lambda: t.compare_ndarray_tuple((nd.array(A), (nd.array(A), None)), (nd.array(A), (nd.array(B), 3))),
    }
    return {name: _says(attempt) for name, attempt in attempts.items()}


def run_tolerances(mx: Any) -> dict[str, Any]:
    t = mx.test_utils
    types = ["float16", "float32", "float64", "bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"]
    return {
        "rtols": {k: float(t.default_rtols()[np.dtype(k)]) for k in types},
        "atols": {k: float(t.default_atols()[np.dtype(k)]) for k in types},
        "eps": {k: float(t.default_numeric_eps()[np.dtype(k)]) for k in types[:3]},
        "tols": [list(map(float, t.get_tols(*pair, None, None))) for pair in ((A, B.astype(np.float16)), (A, 1.0))],
        "etol": t.get_etol(), "rtol": t.get_rtol(), "atol": t.get_atol(None, np.dtype(np.float32)),
        "almost": [bool(t.almost_equal(A, A + 1e-6)), bool(t.almost_equal(A, A)), bool(t.same(A, A.copy()))],
    }  # fmt: skip


def run_checks(mx: Any) -> dict[str, list[Any]]:
    """Which checks of symbols pass, and how the others fail."""
    t, sym = mx.test_utils, mx.sym
    x, w = np.array([[1.0, 2], [3, 4]], np.float32), np.array([[0.5, 1], [2, -1]], np.float32)
    product = sym.dot(sym.Variable("a"), sym.Variable("b"), name="dot")
    heads = np.ones((2, 2), np.float32)
    right = [heads @ w.T, x.T @ heads]
    attempts = {
        "forward": lambda: t.check_symbolic_forward(product, [x, w], [x @ w]),
        "forward_dict": lambda: t.check_symbolic_forward(product, {"a": x, "b": w}, {"dot_output": x @ w},
                                                         dtype=np.float64),
        "forward_wrong": lambda: t.check_symbolic_forward(product, [x, w], [x @ w + 1]),
        "backward": lambda: t.check_symbolic_backward(product, [x, w], [heads], right),
        "backward_add": lambda: t.check_symbolic_backward(product, [x, w], {"dot_output": heads}, right,
                                                          grad_req="add"),
        "backward_null": lambda: t.check_symbolic_backward(product, [x, w], [heads], {"a": right[0], "b": right[1]},
                                                           grad_req={"a": "write", "b": "null"}),
        "backward_wrong": lambda: t.check_symbolic_backward(product, [x, w], [heads], [right[0], right[1] * 2]),
        "numeric": lambda: t.check_numeric_gradient(sym.tanh(product), [x / 5, w / 5]),
        "numeric_double": lambda: t.check_numeric_gradient(sym.exp(sym.Variable("a")), [x / 5], dtype=np.float64),
        "numeric_null": lambda: t.check_numeric_gradient(product, [x, w], grad_nodes={"a": "add", "b": "null"}),
        "numeric_aux": lambda: t.check_numeric_gradient(
            sym.BatchNorm(sym.Variable("data"), fix_gamma=False, name="bn"),
            {"data": x, "bn_gamma": x[0], "bn_beta": x[1]}, [x[0] * 0, x[0] * 0 + 1], rtol=0.05, atol=0.05),
        "consistent": lambda: t.check_consistency(product, [
            {"ctx": mx.cpu(0), "a": (2, 3), "b": (3, 4), "type_dict": {"a": np.float64, "b": np.float64}},
            {"ctx": mx.cpu(0), "a": (2, 3), "b": (3, 4), "type_dict": {"a": np.float32, "b": np.float32}}]),
        "optimizers": lambda: t.compare_optimizer(mx.optimizer.SGD(momentum=0.5), mx.optimizer.SGD(momentum=0.5),
                                                  (3, 4), "float32"),
        "optimizers_differ": lambda: t.compare_optimizer(mx.optimizer.SGD(), mx.optimizer.Adam(), (1,), "float32",
                                                         compare_states=False),
    }  # fmt: skip
    np.random.seed(0)
    found = {name: _says(attempt)[1:] for name, attempt in attempts.items()}
    return {k: [kind, text if k.endswith("_wrong") else None] for k, (kind, text) in found.items()}
