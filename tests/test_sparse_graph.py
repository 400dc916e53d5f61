"""Sparse storage on the graph: inference, binding, gradients of touched rows, compilations, pictures."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest

import symjax as mx
from symjax.lowering import row_gradients
from symjax.lowering.errors import MXNetError, StorageError, StorageFallbackWarning
from tests.compiles import compiles

RNG = np.random.RandomState(0)


@pytest.fixture(params=[4096, -1], ids=["in the step", "on the host"], autouse=True)
def few_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rows that lookups touch are found."""
    monkeypatch.setattr(row_gradients, "FEW_ROWS", request.param)


def sparse_matrix(rows: int, cols: int, density: float = 0.2, seed: int = 0) -> np.ndarray:
    rng = np.random.RandomState(seed)
    return ((rng.rand(rows, cols) < density) * rng.rand(rows, cols)).astype("float32")


def factorization_machine() -> Any:
    x = mx.sym.Variable("x", stype="csr")
    v, w = mx.sym.Variable("v", stype="row_sparse"), mx.sym.Variable("w", stype="row_sparse")
    squares = mx.sym._internal._square_sum(v, axis=1, keepdims=True)
    pairs = mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)), axis=1, keepdims=True) - mx.sym.dot(mx.sym.square(x), squares)
    return mx.sym.LogisticRegressionOutput(0.5 * pairs + mx.sym.dot(x, w), mx.sym.Variable("y"), name="fm")


def test_types_flow_from_variables() -> None:
    net = factorization_machine()
    args, outs, aux = net.infer_storage_type()
    assert dict(zip(net.list_arguments(), args, strict=True)) == {"x": "csr", "v": "row_sparse", "w": "row_sparse",
                                                                  "y": "default"}
    assert (outs, aux) == (["default"], [])
    assert net.infer_storage_type(x="default")[0][0] == "default"
    with pytest.raises(MXNetError, match="'dense' is not one of"):
        net.infer_storage_type(x="dense")


def test_direct_conversion_is_an_error_on_the_graph() -> None:
    net = mx.sym.cast_storage(mx.sym.Variable("x", stype="csr"), stype="row_sparse", name="bad")
    with pytest.raises(StorageError, match=r"node 'bad'.*no conversion from csr to row_sparse"):
        net.simple_bind(mx.cpu(), x=(2, 3))


def test_factorization_machine_has_gradients_of_the_batch() -> None:
    x = sparse_matrix(4, 50, 0.1)
    ex = factorization_machine().simple_bind(mx.cpu(), x=(4, 50), v=(50, 3), w=(50, 1), y=(4, 1),
                                             grad_req={"v": "write", "w": "add"})  # fmt: skip
    assert [ex.grad_dict[n].stype for n in ("v", "w")] == ["row_sparse"] * 2
    v, w = RNG.rand(50, 3).astype("f"), RNG.rand(50, 1).astype("f")
    for name, value in {"x": x, "v": v, "w": w}.items():
        ex.arg_dict[name][:] = mx.nd.array(value)

    def loss(v: Any, w: Any) -> Any:
        z = x @ w + 0.5 * (((x @ v) ** 2).sum(1, keepdims=True) - (x**2) @ (v**2).sum(1, keepdims=True))
        return jax.numpy.sum(jax.numpy.logaddexp(0, z))

    for _ in range(2):
        ex.forward(is_train=True)
        ex.backward()
    want_v, want_w = jax.grad(loss, (0, 1))(v, w)
    touched = np.unique(np.nonzero(x)[1])
    for name, want in {"v": want_v, "w": 2 * want_w}.items():
        assert ex.grad_dict[name].indices.asnumpy().tolist() == touched.tolist()
        np.testing.assert_allclose(ex.grad_dict[name].asnumpy(), want, rtol=1e-5, atol=1e-6)


def test_documented_pipeline_has_exactly_the_sampled_rows() -> None:
    """Embedding, then a product with a transposed table, a cast and a squared loss."""
    ids, table = mx.sym.Variable("ids"), mx.sym.Variable("table", stype="row_sparse")
    rows = mx.sym.sparse.Embedding(ids, table, input_dim=1000, output_dim=4, sparse_grad=True)
    scores = mx.sym.dot(rows, mx.sym.Variable("other"), transpose_b=True)
    net = mx.sym.make_loss(mx.sym.sum(mx.sym.square(mx.sym.cast_storage(scores, stype="default"))))
    ex = net.simple_bind(mx.cpu(), ids=(6,), other=(5, 4), grad_req={"table": "write"})
    assert ex.grad_dict["table"].stype == "row_sparse"
    ex.arg_dict["ids"][:] = np.array([7, 3, 7, 999, 0, 3])
    ex.arg_dict["table"][:] = mx.nd.array(RNG.rand(1000, 4))
    ex.arg_dict["other"][:] = RNG.rand(5, 4).astype("f")
    ex.forward(is_train=True)
    ex.backward()
    assert ex.grad_dict["table"].indices.asnumpy().tolist() == [0, 3, 7, 999]


def two_lookups(sparse: bool = True) -> Any:
    w = mx.sym.Variable("w")
    parts = [mx.sym.Embedding(mx.sym.Variable(n), w, input_dim=40, output_dim=3, sparse_grad=sparse) for n in "ab"]
    return mx.sym.make_loss(mx.sym.sum(mx.sym.square(mx.sym.Concat(*parts, dim=0))))


@pytest.mark.parametrize("read", [False, True])
def test_ids_outside_stand_for_the_first_and_last_row(read: bool) -> None:
    """Also with the outputs read between the passes, which are two compiled calls then."""
    ex = two_lookups().simple_bind(mx.cpu(), a=(3,), b=(2,))
    w = RNG.rand(40, 3).astype("f")
    ex.arg_dict["w"][:] = w
    ex.arg_dict["a"][:], ex.arg_dict["b"][:] = np.array([-3, 40, 7]), np.array([0, 99])
    ex.forward(is_train=True)
    if read:
        assert ex.outputs[0].asnumpy() == pytest.approx((w[[0, 39, 7, 0, 39]] ** 2).sum(), rel=1e-5)
    ex.backward()
    grad = ex.grad_dict["w"]
    assert grad.indices.asnumpy().tolist() == [0, 7, 39]
    np.testing.assert_allclose(grad.data.asnumpy(), w[[0, 7, 39]] * np.array([[4], [2], [4]]), rtol=1e-5)


@pytest.mark.parametrize("req", ["write", "add"])
def test_lookups_of_one_table_are_merged(req: str) -> None:
    w = RNG.rand(40, 3).astype("f")
    ids = {"a": np.array([1.0, 5, 1], "f"), "b": np.array([5.0, 39], "f")}
    grads = {}
    for sparse in (True, False):
        ex = two_lookups(sparse).simple_bind(mx.cpu(), a=(3,), b=(2,), grad_req={"w": req})
        assert ex.grad_dict["w"].stype == ("row_sparse" if sparse else "default")
        ex.arg_dict["w"][:] = w
        for step in range(2):
            for name, value in ids.items():
                ex.arg_dict[name][:] = (value + step) % 40
            ex.forward(is_train=True)
            ex.backward()
        grads[sparse] = ex.grad_dict["w"]
    np.testing.assert_allclose(grads[True].asnumpy(), grads[False].asnumpy(), rtol=1e-6)
    assert grads[True].indices.asnumpy().tolist() == ([0, 2, 6] if req == "write" else [0, 1, 2, 5, 6, 39])


def test_ids_may_be_computed_in_the_graph() -> None:
    ids = mx.sym.slice(mx.sym.Cast(mx.sym.Variable("raw") * 2, dtype="int32"), begin=(1,), end=(3,))
    net = mx.sym.make_loss(mx.sym.Embedding(ids, mx.sym.Variable("w"), input_dim=20, output_dim=2, sparse_grad=True))
    ex = net.simple_bind(mx.cpu(), raw=(4,), grad_req={"w": "write"})
    ex.arg_dict["raw"][:] = np.array([9, 3, 1, 9])
    ex.forward(is_train=True)
    ex.backward()
    assert ex.grad_dict["w"].indices.asnumpy().tolist() == [2, 6]


def test_a_dense_use_makes_the_gradient_dense() -> None:
    w = mx.sym.Variable("w")
    lookup = mx.sym.Embedding(mx.sym.Variable("i"), w, input_dim=6, output_dim=2, sparse_grad=True)
    net = mx.sym.make_loss(mx.sym.sum(lookup) + mx.sym.sum(mx.sym.square(w)))
    ex = net.simple_bind(mx.cpu(), i=(3,), grad_req={"w": "write"})
    assert ex.grad_dict["w"].stype == "default"
    ex.arg_dict["w"][:] = 1
    ex.arg_dict["i"][:] = np.array([4, 4, 0])
    ex.forward(is_train=True)
    ex.backward()
    assert ex.grad_dict["w"].asnumpy()[:, 0].tolist() == [3, 2, 2, 2, 4, 2]


def test_a_dense_gradient_array_stays_dense() -> None:
    w = mx.nd.array(RNG.rand(6, 2))
    args = {"x": mx.nd.array(sparse_matrix(3, 6, 0.5)).tostype("csr"), "w": w}
    grad = mx.nd.zeros((6, 2))
    net = mx.sym.dot(mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w"))
    ex = net.bind(mx.cpu(), args, args_grad={"w": grad}, grad_req={"x": "null", "w": "write"})
    ex.forward(is_train=True)
    ex.backward([mx.nd.ones((3, 2))])
    assert grad.stype == "default"
    np.testing.assert_allclose(grad.asnumpy(), args["x"].asnumpy().T @ np.ones((3, 2)), rtol=1e-6)


def test_batches_of_other_fill_share_compiled_code() -> None:
    """An epoch of varying numbers of non-zeros compiles at most once per capacity."""
    ex = factorization_machine().simple_bind(mx.cpu(), x=(16, 500), v=(500, 4), w=(500, 1), y=(16, 1),
                                             grad_req={"v": "write", "w": "write"})  # fmt: skip
    ex.arg_dict["v"][:] = mx.nd.array(RNG.rand(500, 4))
    ex.arg_dict["w"][:] = mx.nd.array(RNG.rand(500, 1))

    def step(seed: int) -> tuple[int, int]:
        x = mx.nd.array(sparse_matrix(16, 500, 0.01 + 0.01 * (seed % 7), seed)).tostype("csr")
        ex.arg_dict["x"][:] = x
        ex.forward(is_train=True)
        ex.backward()
        return x._data.capacity, ex.grad_dict["v"]._data.capacity

    seen: set[tuple[int, int]] = set()
    fused = ex._program.step(ex._wrt, ex._add, True, ex._plans).fused  # that of every executor of this graph
    before = fused._cache_size()
    for seed in range(60):
        seen.add(step(seed))
    assert len(seen) < 25
    assert fused._cache_size() - before <= len(seen)
    with compiles() as count:
        for seed in range(60):
            step(seed)
    assert count.n == 0


def arrays_in(jaxpr: Any) -> set[tuple[int, ...]]:
    """The shapes of everything that a jaxpr computes, inner ones too."""
    found: set[tuple[int, ...]] = set()
    for eqn in jaxpr.eqns:
        found |= {v.aval.shape for v in eqn.outvars if hasattr(v.aval, "shape")}
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    found |= arrays_in(inner)
    return found


def test_a_step_makes_no_array_of_the_tables_size() -> None:
    vocabulary, width = 10**8, 16
    ids = mx.sym.Variable("ids")
    table = mx.sym.Variable("table", stype="row_sparse")
    rows = mx.sym.Embedding(ids, table, input_dim=vocabulary, output_dim=width, sparse_grad=True)
    net = mx.sym.make_loss(mx.sym.sum(mx.sym.square(rows)))
    ex = net.simple_bind(mx.cpu(), ids=(64,), type_dict={"ids": "int64"}, grad_req={"table": "write"})
    some = np.sort(RNG.choice(vocabulary, 100, replace=False))
    stored = (np.ones((100, width), "f"), some)
    ex.arg_dict["table"][:] = mx.nd.sparse.row_sparse_array(stored, shape=(vocabulary, width))
    ex.arg_dict["ids"][:] = mx.nd.array(some[RNG.randint(0, 100, 64)], dtype="int64")
    ex.forward(is_train=True)
    ex.backward()
    used = np.unique(ex.arg_dict["ids"].asnumpy())
    assert ex.grad_dict["table"].indices.asnumpy().tolist() == used.tolist()
    step = ex._program.step(ex._wrt, ex._add, True, ex._plans)
    args = tuple(a._data for a in ex.arg_arrays)
    for found in (None, step.rows(args, (), None)):
        with jax.enable_x64(True):
            jaxpr = jax.make_jaxpr(step._fused)(args, (), None, None, [None], found)
        assert max(s[0] for s in arrays_in(jaxpr.jaxpr) if s) < 1000


def test_a_fallback_says_what_it_costs() -> None:
    net = mx.sym.cos(mx.sym.Variable("x", stype="csr", shape=(30, 40)), name="cosine")
    with mx.config(storage_fallback="error"), pytest.raises(StorageError, match=r"'cosine' \(cos\).*4,800 bytes"):
        net.simple_bind(mx.cpu())
    with mx.config(storage_fallback="allow"), warnings.catch_warnings():
        warnings.simplefilter("error")
        net.simple_bind(mx.cpu())


def test_a_fallback_warns_once() -> None:
    from symjax.sparse import rules

    rules._warned.clear()
    net = mx.sym.arccos(mx.sym.Variable("x", stype="csr"))
    with mx.config(storage_fallback="warn"):
        with pytest.warns(StorageFallbackWarning, match="arccos"):
            net.simple_bind(mx.cpu(), x=(3, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            net.simple_bind(mx.cpu(), x=(3, 5))


def test_pictures_show_storage() -> None:
    net = mx.sym.cos(mx.sym.Variable("x", stype="csr", shape=(3, 4)))
    picture = net._repr_mimebundle_()["image/svg+xml"]
    assert "3×4 csr" in picture
    assert "makes inputs dense: 48 bytes" in picture
