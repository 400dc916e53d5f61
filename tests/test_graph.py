"""Graphs of any depth and size; Symbol.gradient; lower."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax.lowering.errors import GraphFormatError, ParamError, UnknownOpError
from symjax.symbol._json import loads

N = 100_000


def chain(n: int) -> mx.Symbol:
    s = mx.sym.Variable("x")
    for _ in range(n):
        s = s + 1
    return s


def test_a_chain_of_100_000_nodes_builds_saves_loads_and_infers() -> None:
    start = time.perf_counter()
    net = chain(N)
    text = net.tojson()
    again = mx.sym.load_json(text)
    assert again.infer_shape(x=(2, 3))[1] == [(2, 3)]
    assert again.infer_type(x="float16")[1] == [np.float16]
    assert len(again.get_internals()) == N + 1 and again.list_arguments() == ["x"]
    assert mx.sym.Group([again, net])(x=mx.sym.Variable("y")).list_arguments() == ["y"]
    assert time.perf_counter() - start < 60  # linear: a quadratic step would take hours


def test_gradient_symbol_evaluates_and_round_trips() -> None:
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    net = mx.sym.sum(mx.sym.square(x * w))
    grad = net.gradient(["w", "x"])
    assert grad.list_arguments() == ["x", "w"]
    again = mx.sym.load_json(grad.tojson())
    assert again.infer_shape(x=(3,), w=(3,))[1] == [(3,), (3,)]
    xs, ws = np.array([1.0, 2, 3], "float32"), np.array([4.0, 5, 6], "float32")
    gw, gx = again.eval(x=mx.nd.array(xs), w=mx.nd.array(ws))
    np.testing.assert_allclose(gw.asnumpy(), 2 * xs * xs * ws)
    np.testing.assert_allclose(gx.asnumpy(), 2 * ws * ws * xs)
    second = mx.sym.sum(grad[0]).gradient(["w"])
    np.testing.assert_allclose(second.eval(x=mx.nd.array(xs), w=mx.nd.array(ws))[0].asnumpy(), 2 * xs * xs)
    with pytest.raises(ValueError, match=r"'v'.*not an argument"):
        net.gradient(["v"])


def test_gradient_keeps_the_loss_heads_own() -> None:
    net = mx.sym.SoftmaxOutput(mx.sym.Variable("d"), name="softmax")
    d, label = np.array([[1.0, 2, 3]], "float32"), np.array([2.0], "float32")
    p = np.exp(d) / np.exp(d).sum()
    got = net.gradient(["d"]).eval(d=mx.nd.array(d), softmax_label=mx.nd.array(label))[0].asnumpy()
    np.testing.assert_allclose(got, p - np.eye(3)[[2]], rtol=1e-5)


def lowered() -> tuple[mx.Symbol, mx.Lowered]:
    net = mx.sym.FullyConnected(mx.sym.Dropout(mx.sym.Variable("data"), p=0.5), num_hidden=3, name="fc")
    net = mx.sym.BatchNorm(net, name="bn", fix_gamma=False)
    return net, mx.lower(net, data=(4, 5))


def test_lower_jits_differentiates_and_vmaps() -> None:
    _, (fn, params, aux) = lowered()
    params = {k: jnp.asarray(np.random.RandomState(0).randn(*v.shape), v.dtype) for k, v in params.items()}
    x = np.random.RandomState(1).randn(4, 5).astype("float32")
    (out,), same = jax.jit(fn)(params, aux, data=x)
    assert out.shape == (4, 3) and set(same) == {"bn_moving_mean", "bn_moving_var"}
    np.testing.assert_array_equal(same["bn_moving_mean"], aux["bn_moving_mean"])

    def loss(p: dict[str, jax.Array]) -> tuple[jax.Array, dict[str, jax.Array]]:
        (y,), new = fn(p, aux, data=x, train=True, key=jax.random.key(0))
        return (y**2).sum(), new

    grads, new_aux = jax.grad(loss, has_aux=True)(params)
    assert set(grads) == set(params) and float(abs(new_aux["bn_moving_mean"]).max()) > 0
    batched = jax.vmap(lambda v: fn(params, aux, data=v)[0][0])(np.stack([x, x + 1]))
    np.testing.assert_allclose(batched[0], out, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"dropout.*key"):
        fn(params, aux, data=x, train=True)


def test_lower_keeps_64_bit_types_inside_a_32_bit_program() -> None:
    net = mx.sym.topk(mx.sym.Variable("d"), k=2, dtype="int64")
    fn, params, aux = mx.lower(net, d=(2, 5))
    (out,), _ = jax.jit(fn)(params, aux, d=np.ones((2, 5), "float32"))
    assert out.dtype == np.int64 and jnp.asarray(1.5).dtype == np.float32


def test_lower_needs_no_labels() -> None:
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc"), name="softmax")
    fn, params, aux = mx.lower(net, data=(2, 4))
    (out,), _ = fn(params, aux, data=np.ones((2, 4), "float32"))
    np.testing.assert_allclose(out, np.full((2, 3), 1 / 3), rtol=1e-6)
    with pytest.raises(ValueError, match="'datta'"):
        mx.lower(net, datta=(2, 4))


def test_lower_shards() -> None:
    _, (fn, params, aux) = lowered()
    mesh = jax.make_mesh((1,), ("batch",))
    x = jax.device_put(np.ones((4, 5), "float32"), jax.NamedSharding(mesh, jax.P("batch")))
    assert jax.jit(fn)(params, aux, data=x)[0][0].shape == (4, 3)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda t: t[:-40], "JSON"),
        (lambda t: t.replace('"heads": [[2, 0, 0]]', '"heads": [[9, 0, 0]]'), "heads"),
        (lambda t: t.replace("[[0, 0, 0], [1, 0, 0]]", "[[0, 0, 0], [2, 0, 0]]"), "cycle"),
        (lambda t: t.replace("[[0, 0, 0], [1, 0, 0]]", "[[0, 0, 0], [7, 0, 0]]"), "node number 7"),
        (lambda t: t.replace("[[0, 0, 0], [1, 0, 0]]", "[[0, 3, 0], [1, 0, 0]]"), "not number 3"),
        (lambda t: t.replace("[[0, 0, 0], [1, 0, 0]]", "[[0, 0, 0]]"), "expected 2 inputs"),
        (lambda t: t.replace("[[0, 0, 0], [1, 0, 0]]", '"abc"'), "list"),
        (lambda t: t.replace('"name": "a"', '"name": 5'), "strings"),
        (lambda t: "[" * 100_000, "deep"),
        (lambda t: t.replace('"heads": [[2, 0, 0]]', '"heads": []'), "no outputs"),
        (lambda t: "{}", "nodes"),
        (lambda t: t.replace('"op": "null"', '"op": "null", "extra": 1', 1), "extra"),
        (lambda t: "3", "nodes"),
        (lambda t: t.replace("10901", '"x"'), "mxnet_version"),
    ],
)
def test_broken_files_say_where(change: object, where: str) -> None:
    text = (mx.sym.Variable("a") + mx.sym.Variable("b")).tojson()
    broken = change(text)  # type: ignore[operator]
    assert broken != text
    with pytest.raises(GraphFormatError, match=where):
        mx.sym.load_json(broken)


def test_not_utf8() -> None:
    with pytest.raises(GraphFormatError, match="UTF-8"):
        loads(b"\xff\xfe{}")


def test_unknown_ops_are_listed_together() -> None:
    a = mx.sym.Variable("a")
    text = (mx.sym.Activation(a, act_type="relu", name="r") + mx.sym.tanh(a, name="t")).tojson()
    text = text.replace('"Activation"', '"Activatoin"').replace('"op": "tanh"', '"op": "tanhh"')
    with pytest.raises(UnknownOpError) as e:
        mx.sym.load_json(text)
    assert all(w in str(e.value) for w in ("Activatoin", "'r'", "'Activation'", "tanhh", "'t'", "'tanh'"))
    assert len(loads(text, allow_unknown=True).nodes) == 4


def test_unknown_parameter_of_a_file() -> None:
    text = mx.sym.Activation(mx.sym.Variable("a"), act_type="relu", name="r").tojson().replace("act_type", "act_typo")
    with pytest.raises((ParamError, RuntimeError), match=r"(?s)'r'.*act_typo.*act_type"):
        mx.sym.load_json(text)


def test_newer_version_warns() -> None:
    text = mx.sym.Variable("a").tojson().replace("10901", "20000")
    with pytest.warns(UserWarning, match=r"2\.0\.0"):
        mx.sym.load_json(text)


def test_huge_counts_in_a_small_file_are_refused() -> None:
    text = mx.sym.Concat(mx.sym.Variable("a"), mx.sym.Variable("b")).tojson()
    with pytest.raises(GraphFormatError, match="num_args"):
        mx.sym.load_json(text.replace('"num_args": "2"', '"num_args": "1000000000"'))
    text = mx.sym.SliceChannel(mx.sym.Variable("a"), num_outputs=2)[0].tojson()
    with pytest.raises(GraphFormatError, match="outputs"):
        mx.sym.load_json(text.replace('"num_outputs": "2"', '"num_outputs": "1000000000"'))
