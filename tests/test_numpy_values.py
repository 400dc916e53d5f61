"""Numpy reductions, norms and other values where MXNet 1.9.1 has no answer: of nothing, of any shape, exactly."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import symjax as mx
from symjax.lowering import registry
from symjax.lowering.errors import MissingLoweringError, MXNetError


def run(name: str, *arrays: Any, **params: Any) -> np.ndarray:
    """The result of an operator's rule on arrays."""
    op = registry.get(name)
    with jax.enable_x64(True):
        out = op(op.params(**params), *(jax.numpy.asarray(a) for a in arrays))
    return np.asarray(out[0] if isinstance(out, tuple) else out)


EMPTY = np.zeros((0, 3), np.float32)


@pytest.mark.parametrize(("name", "params", "expected"), [
    ("_np_sum", {"axis": (0,)}, np.zeros(3)),
    ("_np_prod", {"axis": (0,)}, np.ones(3)),
    ("_np_prod", {}, np.ones(())),
    ("_npi_mean", {}, np.full((), np.nan)),
    ("_npi_var", {"axis": (0,)}, np.full(3, np.nan)),
    ("_np_max", {"initial": 2.0}, np.full((), 2.0)),
    ("_np_max", {"axis": (1,)}, np.zeros(0)),
    ("_npi_mean", {"axis": (1,)}, np.zeros(0)),
    ("_npi_std", {"axis": (1,)}, np.zeros(0)),
])
def test_reductions_of_nothing(name: str, params: dict[str, Any], expected: np.ndarray) -> None:
    got = run(name, EMPTY, **params)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, expected)


def test_matrix_norms_of_any_shape() -> None:
    x = np.random.RandomState(0).standard_normal((4, 3))
    for order in (1, -1, 2, -2, np.inf, -np.inf):
        np.testing.assert_allclose(run("_npi_norm", x, ord=order, axis=(0, 1), flag=0), np.linalg.norm(x, order))
    np.testing.assert_allclose(run("_npi_norm", x, axis=(0, 1), flag=2), np.linalg.norm(x, "nuc"))
    np.testing.assert_allclose(run("_npi_norm", x, ord=np.inf, axis=(0,)), np.abs(x).max(0))
    with pytest.raises(MXNetError, match="ord=3"):
        run("_npi_norm", x, ord=3, axis=(0, 1))


def test_ldexp_is_exact() -> None:
    powers = np.arange(-30, 31).astype(np.float32)
    np.testing.assert_array_equal(run("_npi_ldexp", np.ones_like(powers), powers), 2.0**powers)


def test_bincount_is_eager() -> None:
    data = np.array([0, 2, 2, 5])
    np.testing.assert_array_equal(run("_npi_bincount", data), np.bincount(data))
    with pytest.raises(MXNetError, match="negative"):
        run("_npi_bincount", -data)
    with pytest.raises(MissingLoweringError, match="depends on the values"):
        jax.eval_shape(lambda x: registry.get("_npi_bincount")(registry.get("_npi_bincount").params(), x), data)


def test_names_are_kept_apart() -> None:
    """As in MXNet, the classic namespaces do not hold them; JSON does."""
    for module in (mx.sym, mx.nd, mx.sym._internal, mx.nd._internal, mx.sym.op, mx.nd.op):
        assert not [n for n in dir(module) if n.startswith(("_np_", "_npi_", "_npx_"))]
