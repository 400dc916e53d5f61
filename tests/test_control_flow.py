"""Control flow written with Python functions, symbolic and imperative, and the loops behind detection and RNN."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax.lowering import registry
from symjax.lowering.errors import GraphFormatError
from symjax.lowering.ops.rnn import RNNParams, parameter_size


def _array(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape)) * 0.7).reshape(shape).astype("float32")


def _rnn_body(data, states):
    new = mx.sym.tanh(mx.sym.FullyConnected(data, num_hidden=3, name="i") + states[0] * mx.sym.var("w"))
    return new, [new]


def _gradients(symbol, inputs):
    grads = {k: mx.nd.zeros(v.shape) for k, v in inputs.items()}
    executor = symbol.bind(mx.cpu(), {k: mx.nd.array(v) for k, v in inputs.items()}, args_grad=grads)
    outs = executor.forward(is_train=True)
    executor.backward([mx.nd.array(np.cos(np.arange(o.size)).reshape(o.shape)) for o in outs])
    return [o.asnumpy() for o in outs], {k: g.asnumpy() for k, g in grads.items()}


def test_foreach_equals_numpy_and_its_gradient_the_difference_quotient():
    x, s = mx.sym.var("x"), mx.sym.var("s")
    out, (final,) = mx.sym.contrib.foreach(_rnn_body, x, [s])
    looped = mx.sym.Group([out, final])
    inputs = {"x": _array(4, 2, 5), "s": _array(2, 3), "w": _array(2, 3), "i_weight": _array(3, 5), "i_bias": _array(3)}
    outs, grads = _gradients(looped, inputs)
    h = inputs["s"]
    for t in range(4):
        h = np.tanh(inputs["x"][t] @ inputs["i_weight"].T + inputs["i_bias"] + h * inputs["w"])
        np.testing.assert_allclose(outs[0][t], h, rtol=1e-5)
    base = dict(inputs)
    for name, at in (("x", (0, 1, 2)), ("i_weight", (1, 3)), ("s", (1, 0))):
        values = []
        for e in (1e-2, -1e-2):
            base[name] = inputs[name].copy()
            base[name][at] += e
            o, _ = _gradients(looped, base)
            values.append(sum((np.cos(np.arange(v.size)).reshape(v.shape) * v).sum() for v in o))
        base[name] = inputs[name]
        assert abs((values[0] - values[1]) / 2e-2 - grads[name][at]) < 2e-3


def test_json_of_nested_loops_round_trips():
    x, s, w = mx.sym.var("x"), mx.sym.var("s"), mx.sym.var("w")

    def outer(d, state):
        inner, state = mx.sym.contrib.foreach(lambda e, t: (e * w + t, t + e), d, state)
        return mx.sym.sum(inner, axis=0), state

    out, final = mx.sym.contrib.foreach(outer, x, s)
    net = mx.sym.Group([out, final])
    again = mx.sym.load_json(net.tojson())
    inputs = {"x": _array(2, 4, 3), "s": _array(3), "w": _array(3)}
    for a, b in zip(_gradients(net, inputs)[0], _gradients(again, inputs)[0], strict=True):
        np.testing.assert_array_equal(a, b)
    node = next(n for n in json.loads(net.tojson())["nodes"] if n["op"] == "_foreach")
    assert node["attrs"]["num_args"] == str(len(node["inputs"]) + 1)
    assert again.list_arguments() == ["x", "s", "w"]


def test_while_loop_pads_with_zeros():
    i, s = mx.sym.var("i"), mx.sym.var("s")
    out, states = mx.sym.contrib.while_loop(lambda i, s: i < 3, lambda i, s: ([i + s], [i + 1, s * 2]), [i, s],
                                            max_iterations=5)
    result = mx.sym.Group([*out, *states]).eval(i=mx.nd.array([0]), s=mx.nd.array([1]))
    np.testing.assert_array_equal(result[0].asnumpy()[:, 0], [1, 3, 6, 0, 0])
    assert (result[1].asscalar(), result[2].asscalar()) == (3, 8)


def test_wrong_loops_say_why():
    x, s = mx.sym.var("x"), mx.sym.var("s")
    with pytest.raises(ValueError, match="does not use s"):
        mx.sym.contrib.foreach(lambda d, t: (d, [d]), x, [s])
    with pytest.raises(ValueError, match="nested as init_states"):
        mx.sym.contrib.foreach(lambda d, t: (d, [t[0], d]), x, [s])
    with pytest.raises(ValueError, match="max_iterations"):
        mx.sym.contrib.while_loop(lambda a: a < 1, lambda a: (a, a), x)
    with pytest.raises(ValueError, match="differs between"):
        mx.sym.contrib.cond(x < 1, lambda: [x], lambda: [x, s])
    out, _ = mx.sym.contrib.foreach(lambda d, t: (d, [mx.sym.concat(t[0], d, dim=0)]), x, [s])
    with pytest.raises(mx.base.MXNetError, match="shape"):
        out.eval(x=mx.nd.ones((2, 3)), s=mx.nd.ones((3,)))


def test_imperative_control_flow_records_gradients():
    x, s = mx.nd.array([[1, 2], [3, 4.0]]), mx.nd.array([1, 1.0])
    x.attach_grad()
    with mx.autograd.record():
        out, (final,) = mx.nd.contrib.foreach(lambda d, t: (d * t[0], [t[0] + d]), x, [s])
        total = out.sum() + final.sum()
    total.backward()
    np.testing.assert_array_equal(out.asnumpy(), [[1, 2], [6, 12]])
    np.testing.assert_array_equal(x.grad.asnumpy(), [[5, 6], [3, 4]])
    out, last = mx.nd.contrib.while_loop(lambda i: i < 2, lambda i: (i, i + 1), mx.nd.array([0]), max_iterations=3)
    np.testing.assert_array_equal(out.asnumpy()[:, 0], [0, 1, 0])
    assert last.asscalar() == 2
    odd = mx.nd.array([1, np.inf, np.nan])
    assert mx.nd.contrib.isnan(odd).asnumpy().tolist() == [0, 0, 1]
    assert mx.nd.contrib.isfinite(odd).asnumpy().tolist() == [1, 0, 0]


def test_compiled_rnn_does_not_grow_with_time():
    op = registry.get("RNN")
    p = RNNParams.parse({"mode": "lstm", "state_size": "3", "num_layers": "2"})

    def size(steps: int) -> int:
        shapes = [(steps, 2, 4), (parameter_size(p, 4),), (2, 2, 3), (2, 2, 3)]
        args = [jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]
        text = jax.jit(lambda *a: op(p, *a, train=False, key=None)).lower(*args).as_text()
        return len(text.splitlines())

    assert size(7) == size(700)


def test_rnn_sequence_length_equals_the_short_sequence():
    op = registry.get("RNN")
    attrs = {"mode": "gru", "state_size": "3", "num_layers": "1", "bidirectional": "True", "state_outputs": "True"}
    masked = RNNParams.parse({**attrs, "use_sequence_length": "True"})
    data, weights, state = _array(5, 2, 4), _array(parameter_size(masked, 4)), _array(2, 2, 3)
    lengths = jnp.asarray([3, 5], dtype=jnp.int32)
    out, final = op(masked, jnp.asarray(data), weights, state, lengths, train=False, key=None)
    short, short_final = op(op.params.parse(attrs), jnp.asarray(data[:3, :1]), weights, state[:, :1], train=False,
                            key=None)
    np.testing.assert_allclose(out[:3, :1], short, rtol=1e-5)
    np.testing.assert_allclose(final[:, :1], short_final, rtol=1e-5)
    assert not np.any(np.asarray(out[3:, 0]))


def _graphs() -> list[dict]:
    i, x = mx.sym.var("i"), mx.sym.var("x")
    looped, final = mx.sym.contrib.while_loop(
        lambda i, x: i < 3, lambda i, x: (i * x, (i + 1, x)), (i, x), max_iterations=4
    )
    scanned, last = mx.sym.contrib.foreach(lambda d, s: (d * s[0], [s[0] + d]), x, [i])
    chosen = mx.sym.contrib.cond(i.sum() < 3, lambda: x * i, lambda: x + i)
    groups = (mx.sym.Group([looped, *final]), mx.sym.Group([scanned, *last]), chosen)
    return [json.loads(g.tojson()) for g in groups]


@pytest.mark.filterwarnings("ignore:Cannot decide")
@pytest.mark.parametrize("number", range(3))
def test_contradictory_locations_are_mxnet_errors(number):
    text = json.dumps(_graphs()[number])
    refused = 0
    for name in next(n for n in json.loads(text)["nodes"] if "subgraphs" in n)["attrs"]:
        for value in ("()", "(0,)", "(0, 1)", "(0, 0)", "(5,)", "(-1,)", "(0, 1, 2)", "0", "3", "99"):
            doc = json.loads(text)
            next(n for n in doc["nodes"] if "subgraphs" in n)["attrs"][name] = value
            try:
                symbol = mx.sym.load_json(json.dumps(doc))
                symbol.infer_type(i="float32", x="float32")
                symbol.infer_shape(i=(1,), x=(1,))
            except mx.base.MXNetError:
                refused += 1
    assert refused > 15


@pytest.mark.parametrize("number", range(3))
def test_a_node_has_the_declared_number_of_subgraphs(number):
    doc = _graphs()[number]
    node = next(n for n in doc["nodes"] if "subgraphs" in n)
    node["subgraphs"].append(node["subgraphs"][0])
    with pytest.raises(GraphFormatError, match=f"it has {len(node['subgraphs'])} subgraphs"):
        mx.sym.load_json(json.dumps(doc))
    plain = json.loads(mx.sym.tanh(mx.sym.var("x")).tojson())
    plain["nodes"][1]["subgraphs"] = node["subgraphs"][:1]
    with pytest.raises(GraphFormatError, match="it has 1 subgraphs, expected none"):
        mx.sym.load_json(json.dumps(plain))


def test_an_op_whose_rule_asks_for_subgraphs_says_how_many():
    with pytest.raises(mx.base.MXNetError, match="num_subgraphs is 0"):
        registry.op("test_without_number")(lambda p, data, *, subgraphs: data)
