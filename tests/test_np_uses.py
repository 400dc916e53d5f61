"""`mx.np` arrays and symbols with the rest: switches, executors, optimizers, files, autograd, namespaces."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import symjax as mx

np: Any = mx.np
npx: Any = mx.npx


@pytest.fixture(autouse=True)
def numpy_semantics() -> Iterator[None]:
    npx.set_np()
    yield
    npx.reset_np()


def test_switches() -> None:
    assert npx.is_np_array() and npx.is_np_shape()
    with pytest.raises(ValueError, match="reset_np"):
        mx.util.set_np_shape(False)
    with pytest.raises(ValueError, match="Shape semantics"):
        npx.set_np(shape=False)
    npx.reset_np()
    assert not npx.is_np_array() and not npx.is_np_shape()

    @mx.util.use_np
    class Asked:
        def answer(self) -> tuple[bool, bool]:
            return npx.is_np_array(), npx.is_np_shape()

    assert Asked().answer() == (True, True)
    with mx.util.np_array(True), mx.util.np_shape(True):
        assert npx.is_np_array() and npx.is_np_shape()
    assert not npx.is_np_array()


def test_files_keep_scalars_and_empty_arrays(tmp_path: Path) -> None:
    given = {"a": np.array([[1.0, 2.0]]), "scalar": np.array(3.0), "empty": np.zeros((0, 2)),
             "flags": np.array([True, False], dtype="bool")}
    npx.save(str(tmp_path / "x"), given)
    found = npx.load(str(tmp_path / "x"))
    for k, v in given.items():
        assert type(found[k]) is np.ndarray and found[k].shape == v.shape and found[k].dtype == v.dtype
        onp.testing.assert_array_equal(found[k].asnumpy(), v.asnumpy())
    npx.reset_np()
    with pytest.raises(ValueError, match="set_np"):
        npx.save(str(tmp_path / "y"), given)
    with pytest.raises(ValueError, match="set_np"):
        npx.load(str(tmp_path / "x"))
    with pytest.raises(TypeError, match=r"npx\.save"):
        mx.nd.save(str(tmp_path / "y"), [np.ones((2,))])


def test_arrays_share_memory_with_classic_ones() -> None:
    classic = mx.nd.zeros((2, 3))
    new = classic.as_np_ndarray()
    new[1] = 5
    assert classic.asnumpy().sum() == 15
    classic[:] = 1
    assert new.sum().item() == 6
    assert np.shares_memory(new, new[0]) and not np.shares_memory(new[0], new[1])
    assert type(pickle.loads(pickle.dumps(new))) is np.ndarray


def test_kinds_do_not_mix() -> None:
    with pytest.raises(TypeError, match="as_np_ndarray"):
        np.sin(mx.nd.ones((2,)))
    with pytest.raises(TypeError, match="as_nd_ndarray"):
        mx.nd.sin(np.ones((2,)))
    with pytest.raises(TypeError, match="as_np_ndarray"):
        mx.sym.np.sin(mx.sym.var("x"))
    with pytest.raises(TypeError, match="as_nd_ndarray"):
        mx.sym.sin(mx.sym.var("x").as_np_ndarray())


def test_gradients_are_numpy_arrays_and_follow_conversions() -> None:
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with mx.autograd.record():
        y = (x.as_nd_ndarray() * 2).as_np_ndarray()
        z = (y[1:] ** 2).sum() + x[x > 2].sum()
    z.backward()
    assert type(x.grad) is np.ndarray and z.shape == ()
    assert x.grad.tolist() == [0, 16, 25]
    x.attach_grad("add")
    for _ in range(2):
        with mx.autograd.record():
            z = np.exp(x).sum()
        z.backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), 2 * onp.exp([1, 2, 3]), rtol=1e-6)


def test_training_a_network_of_numpy_operators() -> None:
    rng = onp.random.default_rng(0)
    data, truth = rng.standard_normal((64, 3)), onp.array([[1.0], [-2.0], [0.5]])
    x, y = np.array(data, dtype="float32"), np.array(data @ truth, dtype="float32")
    w, b = np.zeros((1, 3)), np.zeros((1,))
    update = mx.optimizer.get_updater(mx.optimizer.create("adam", learning_rate=0.1))
    for p in (w, b):
        p.attach_grad()
    loss = np.array(0)
    for _ in range(150):
        with mx.autograd.record():
            loss = ((npx.fully_connected(x, w, b, num_hidden=1) - y) ** 2).mean()
        loss.backward()
        for i, p in enumerate((w, b)):
            update(i, p.grad, p)
    assert loss.item() < 1e-3
    onp.testing.assert_allclose(w.asnumpy()[0], truth[:, 0], atol=0.05)


def test_executors_take_numpy_arrays_and_symbols() -> None:
    x = mx.sym.var("x").as_np_ndarray()
    out = (mx.sym.np.sin(x) * 2).sum(axis=1)
    given, grad = np.array([[0.0, 1.0], [2.0, 3.0]]), np.zeros((2, 2))
    ex = out.bind(mx.cpu(), {"x": given}, {"x": grad})
    got = ex.forward(is_train=True)[0]
    assert type(got) is mx.nd.NDArray  # as MXNet's executors do
    onp.testing.assert_allclose(got.asnumpy(), 2 * onp.sin(given.asnumpy()).sum(1), rtol=1e-6)
    ex.backward(np.ones((2,)))
    onp.testing.assert_allclose(grad.asnumpy(), 2 * onp.cos(given.asnumpy()), rtol=1e-6)
    assert mx.sym.np.sum(x).eval(x=np.zeros((0, 3)))[0].shape == ()


@pytest.mark.parametrize("key", [1, -1, (1, -1), (slice(None), 0), slice(1, 3), (slice(0, 2), slice(None, None, 2))])
def test_indexing_symbols(key: Any) -> None:
    x = mx.sym.var("x").as_np_ndarray()
    a = onp.arange(12, dtype="float32").reshape(3, 4)
    onp.testing.assert_array_equal(x[key].eval(x=np.array(a))[0].asnumpy(), a[key])


def test_fallback_operators_in_graphs() -> None:
    x, c = (mx.sym.var(n).as_np_ndarray() for n in "xc")
    s = mx.sym.np
    a = onp.arange(6, dtype="float32").reshape(2, 3)
    loaded = mx.sym.load_json(s.resize(x, (3, 3)).tojson())
    onp.testing.assert_array_equal(loaded.eval(x=np.array(a))[0].asnumpy(), onp.resize(a, (3, 3)))
    i = np.array([3, 5], dtype="int32")
    onp.testing.assert_array_equal(s.unravel_index(x, (2, 3)).eval(x=i)[0].asnumpy(), [[1, 1], [0, 2]])
    assert s.empty_like(x, dtype="int32").eval(x=np.array(a))[0].dtype == onp.int32
    draws = s.random.multivariate_normal(x, c, size=(5,)).eval(x=np.zeros((2,)), c=np.eye(2))[0]
    assert draws.shape == (5, 2)
    with pytest.raises(mx.MXNetError, match="cov"):
        np.random.multivariate_normal(np.zeros((2,)), np.eye(3))


def test_every_public_name_works_and_says_what_it_does() -> None:
    for module in (np, np.random, np.linalg, npx, npx.random, mx.sym.np, mx.sym.np.linalg, mx.sym.np.random, mx.nd.np):
        for name in dir(module):
            member = getattr(module, name)
            if callable(member) and not name.startswith("_") and not inspect.isclass(member):
                assert inspect.getdoc(member), f"{module.__name__}.{name}"
    assert set(mx.np.__all__) >= {"ndarray", "array", "zeros", "allclose", "float32", "sin"}
    with pytest.raises(AttributeError, match="Did you mean 'concatenate'"):
        getattr(np, "concatenat")  # noqa: B009
    with pytest.raises(AttributeError, match="numpy-financial"):
        getattr(np, "npv")  # noqa: B009


def test_internal_operators_stand_apart_from_the_classic_ones() -> None:
    assert not [n for n in dir(mx.nd._internal) + dir(mx.sym._internal) if n.startswith("_np")]
    assert mx.nd.np._internal.add(np.ones((2,)), np.ones((2,))).tolist() == [2, 2]
    assert mx.nd.np._api_internal.zeros((2,), None, "cpu(0)").tolist() == [0, 0]
    assert mx.sym.np._internal.add_scalar(mx.sym.var("x").as_np_ndarray(), 2).name == "add_scalar0"
    assert mx.nd.npx.relu(np.array([-1.0, 1.0])).tolist() == [0, 1]


def test_numpy_calls_ours_under_autograd_and_refuses_the_host() -> None:
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = onp.sum(onp.multiply(x, x))
        with pytest.raises(ValueError, match="autograd"):
            onp.cumprod(x)
    y.backward()
    assert x.grad.tolist() == [2, 4]
