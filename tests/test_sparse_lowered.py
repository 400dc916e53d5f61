"""Row_sparse gradients of functions of `symjax.lower`, and lazy optax transformations."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.sparse
from jax.experimental.sparse import BCOO, BCSR

import symjax
import symjax as mx
from symjax.sparse import RowSparse, lazy, value_and_grad

V, D = 5000, 4


def tower() -> Any:
    table = mx.sym.Variable("table")
    found = mx.sym.Embedding(mx.sym.Variable("ids"), table, input_dim=V, output_dim=D, sparse_grad=True)
    return mx.sym.FullyConnected(found, num_hidden=1, name="fc")


@pytest.fixture(scope="module")
def net() -> tuple[Any, dict[str, jax.Array]]:
    fn, params, _ = symjax.lower(tower(), ids=(3, 2), table=(V, D), inputs=["ids"])
    rng = np.random.RandomState(0)
    params = {k: jnp.asarray(rng.uniform(-1, 1, v.shape), "float32") for k, v in params.items()}

    def loss(p: Any, ids: Any) -> Any:
        (out,), _ = fn(p, {}, ids=ids)
        return jnp.mean(jnp.square(out - 1))

    return loss, params


IDS = jnp.asarray([[1, 3], [3, 7], [0, V - 1]], "float32")
TOUCHED = [0, 1, 3, 7, V - 1]


def shapes(jaxpr: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(primitive, shape) of everything that is computed."""
    for e in jaxpr.eqns:
        inner = [x for p in e.params.values() for x in (p if isinstance(p, (tuple, list)) else [p])]
        inner = [getattr(x, "jaxpr", x) for x in inner]
        inner = [x for x in inner if hasattr(x, "eqns")]
        for x in inner:
            yield from shapes(x)
        if not inner:
            yield from ((e.primitive.name, v.aval.shape) for v in e.outvars)


def test_the_gradient_holds_the_rows_touched(net: Any) -> None:
    loss, params = net
    value, grads = value_and_grad(loss, ["table"])(params, IDS)
    want_value, want = jax.value_and_grad(loss)(params, IDS)
    assert isinstance(grads["table"], RowSparse) and list(grads) == list(params)
    np.testing.assert_array_equal(grads["table"].host().indices, TOUCHED)
    np.testing.assert_allclose(value, want_value)
    for k, g in grads.items():
        np.testing.assert_allclose(g.todense() if k == "table" else g, want[k], rtol=1e-6, atol=1e-7)


def test_nothing_of_the_tables_size_is_made(net: Any) -> None:
    loss, params = net
    found = list(shapes(jax.make_jaxpr(value_and_grad(loss, ["table"]))(params, IDS).jaxpr))
    assert found and not [x for x in found if V in x[1]]
    assert [x for x in shapes(jax.make_jaxpr(jax.value_and_grad(loss))(params, IDS).jaxpr) if x[1] == (V, D)]


def test_a_step_writes_to_tables_in_place(net: Any) -> None:
    loss, params = net
    tx = lazy.adam(0.1)
    state = tx.init(params)

    def step(p: Any, s: Any, ids: Any) -> Any:
        value, grads = value_and_grad(loss, ["table"])(p, ids)
        updates, s = tx.update(grads, s, p)
        return lazy.apply_updates(p, updates), s, value

    made = {name for name, shape in shapes(jax.make_jaxpr(step)(params, state, IDS).jaxpr) if V in shape}
    assert made == {"scatter"}
    memory: Any = jax.jit(step, donate_argnums=(0, 1)).lower(params, state, IDS).compile().memory_analysis()
    assert memory.temp_size_in_bytes < V * D * 4 / 4
    assert memory.alias_size_in_bytes >= 3 * V * D * 4


def test_several_uses_and_aux(net: Any) -> None:
    loss, params = net

    def twice(p: Any, ids: Any) -> Any:
        return loss(p, ids) + 2 * loss(p, ids + 1), {"ids": ids}

    (value, aux), grads = jax.jit(value_and_grad(twice, ["table"], has_aux=True))(params, IDS)
    (want_value, _), want = jax.value_and_grad(twice, has_aux=True)(params, IDS)
    np.testing.assert_allclose(value, want_value, rtol=1e-6)
    np.testing.assert_array_equal(aux["ids"], IDS)
    np.testing.assert_allclose(grads["table"].todense(), want["table"], rtol=1e-5, atol=1e-7)
    assert set(grads["table"].host().indices) <= {0, 1, 2, 3, 4, 7, 8, V - 1}


def test_a_table_that_is_not_used() -> None:
    grads = value_and_grad(lambda p: jnp.sum(p["x"]), ["table"])({"x": jnp.ones(2), "table": jnp.ones((3, 2))})[1]
    assert grads["table"].shape == (3, 2) and not grads["table"].todense().any()


@pytest.mark.parametrize("full", [False, True])
def test_product_with_a_csr_matrix(full: bool) -> None:
    """The rows of the weight are those of the columns that are stored; the table may be a RowSparse."""
    x = mx.sym.Variable("x", stype="csr")
    fn, _, _ = symjax.lower(mx.sym.dot(x, mx.sym.Variable("w")), inputs=["x", "w"])
    matrix = symjax.sparse.csr_from_dense(jnp.asarray([[0, 2.0, 0, 1], [0, 3, 0, 0]]), 4)
    weight: Any = jnp.arange(8.0, dtype="float32").reshape(4, 2)
    if full:
        weight = RowSparse(weight, jnp.arange(4, dtype="int32"), (4, 2), full=True)

    def loss(p: Any) -> Any:
        return jnp.sum(fn({}, {}, {"x": matrix.astype("float32"), "w": p["w"]})[0][0] ** 2)

    _, grads = value_and_grad(loss, ["w"])({"w": weight})
    assert grads["w"].host().indices.tolist() == [1, 3]
    dense = jax.grad(lambda w: jnp.sum((matrix.astype("float32").todense() @ w) ** 2))(
        weight.data if full else weight)
    np.testing.assert_allclose(grads["w"].todense(), dense, rtol=1e-6)


@pytest.mark.parametrize("kind", ["scipy", "bcsr", "bcoo"])
def test_matrices_of_other_libraries_are_named_with_their_converter(kind: str) -> None:
    fn, params, _ = symjax.lower(mx.sym.dot(mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w")),
                                 x=(4, 6), w=(6, 2), inputs=["x"])  # fmt: skip
    params = {"w": np.arange(12, dtype="float32").reshape(6, 2)}
    dense: Any = np.array([[0, 1, 0, 0, 2, 0], [0] * 6, [3, 0, 0, 0, 0, 4], [0, 0, 5, 0, 0, 0]], "float32")
    value: Any = {
        "scipy": lambda: scipy.sparse.csr_matrix(dense),
        "bcsr": lambda: BCSR.fromdense(dense),
        "bcoo": lambda: BCOO.fromdense(dense),
    }[kind]()
    name = "csr_from_scipy" if kind == "scipy" else f"from_{kind}"
    with pytest.raises(TypeError, match=rf"'x' is a sparse matrix of another library .*symjax\.sparse\.{name}"):
        fn(params, {}, x=value)
    (out,), _ = fn(params, {}, x=getattr(mx.sparse, name)(value))
    np.testing.assert_allclose(out, dense @ params["w"])


def test_other_uses_are_errors(net: Any) -> None:
    loss, params = net
    square = symjax.lower(mx.sym.square(mx.sym.Variable("table")), table=(V, D)).fn
    for f, text in ((lambda p, ids: jnp.sum(p["table"] * 2), "otherwise"),
                    (lambda p, ids: jax.jit(lambda q: loss(q, ids))(p), "otherwise"),
                    (lambda p, ids: jnp.sum(square(p, {}, table=p["table"])[0][0]), "leave it out")):  # fmt: skip
        with pytest.raises(mx.base.MXNetError, match=text):
            value_and_grad(f, ["table"])(params, IDS)
    with pytest.raises(mx.base.MXNetError, match="is not a parameter"):
        value_and_grad(loss, ["tabel"])(params, IDS)
    with pytest.raises(mx.base.MXNetError, match="list"):
        value_and_grad(loss, "table")


# ---- optax

TRANSFORMATIONS: dict[str, tuple[Any, Any]] = {
    "sgd": (lazy.sgd(0.1), optax.sgd(0.1)),
    "momentum": (lazy.sgd(0.1, 0.9, nesterov=True), optax.sgd(0.1, 0.9, nesterov=True)),
    "adam": (lazy.adam(0.1), optax.adam(0.1)),
    "adagrad": (lazy.adagrad(0.1), optax.adagrad(0.1)),
    "chain": (lazy.wrap(optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(0.1))),
              optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(0.1))),
}  # fmt: skip


@pytest.mark.parametrize("name", list(TRANSFORMATIONS))
def test_as_optax_on_the_rows_touched(name: str, net: Any) -> None:
    """The rows touched (the same in every step) become what dense optax makes of them; the others stay."""
    loss, params = net
    tx, dense = TRANSFORMATIONS[name]

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(p: Any, s: Any) -> Any:
        updates, s = tx.update(value_and_grad(loss, ["table"])(p, IDS)[1], s, p)
        return lazy.apply_updates(p, updates), s

    p, s = jax.tree.map(jnp.copy, params), tx.init(params)
    want, t = params, dense.init(params)
    for _ in range(4):
        p, s = step(p, s)
        updates, t = dense.update(jax.grad(loss)(want, IDS), t, want)
        want = jax.tree.map(jnp.add, want, updates)
    rest = np.setdiff1d(np.arange(V), TOUCHED)
    np.testing.assert_array_equal(p["table"][rest], params["table"][rest])
    for k in params:
        at = np.array(TOUCHED) if k == "table" else ...
        np.testing.assert_allclose(p[k][at], want[k][at], rtol=1e-5, atol=1e-6)
    assert jax.tree.structure(s) == jax.tree.structure(t)
    for a, b in zip(jax.tree.leaves(s), jax.tree.leaves(t), strict=True):
        assert a.shape == b.shape
        at = np.array(TOUCHED) if a.shape == (V, D) else ...
        np.testing.assert_allclose(a[at], b[at], rtol=1e-5, atol=1e-6)


def test_ftrl_as_mxnet(net: Any) -> None:
    """The same numbers as the op on a row_sparse weight, and as the dense op for dense parameters."""
    _, params = net
    tx = lazy.ftrl(0.2, lamda1=0.1, wd=0.05)
    grad = mx.nd.sparse.row_sparse_array((np.ones((2, D), "float32") * 0.7, [1, 4]), shape=(6, D))
    table = np.asarray(params["table"][:6])
    weight = mx.nd.array(table).tostype("row_sparse")
    z, n = (mx.nd.sparse.zeros("row_sparse", (6, D)) for _ in range(2))
    dense = [mx.nd.array(table[:2]), mx.nd.zeros((2, D)), mx.nd.zeros((2, D))]
    p: Any = {"a": jnp.asarray(table), "b": jnp.asarray(table[:2])}
    s = tx.init(p)
    for _ in range(3):
        mx.nd.ftrl_update(weight, grad, z, n, out=weight, lr=0.2, lamda1=0.1, wd=0.05)
        mx.nd.ftrl_update(dense[0], mx.nd.ones((2, D)), *dense[1:], out=dense[0], lr=0.2, lamda1=0.1, wd=0.05)
        updates, s = tx.update({"a": grad._data, "b": jnp.ones((2, D))}, s, p)
        p = lazy.apply_updates(p, updates)
    np.testing.assert_allclose(p["a"], weight.asnumpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(p["b"], dense[0].asnumpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="parameters"):
        tx.update({"a": grad._data, "b": jnp.ones((2, D))}, s)


def test_apply_updates_checks_shapes() -> None:
    update = RowSparse(jnp.ones((1, 2)), jnp.zeros(1, "int32"), (3, 2))
    with pytest.raises(mx.base.MXNetError, match="shape"):
        lazy.apply_updates({"a": jnp.ones((4, 2))}, {"a": update})
    same = lazy.apply_updates({"a": jnp.ones((3, 2)), "b": jnp.ones(2)}, {"a": update, "b": None})
    np.testing.assert_array_equal(same["a"], [[2, 2], [1, 1], [1, 1]])
    np.testing.assert_array_equal(same["b"], [1, 1])
