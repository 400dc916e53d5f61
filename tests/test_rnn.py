"""`mx.rnn`: graphs node for node as real MXNet builds them, their numbers, weights, checkpoints, sentences."""

from __future__ import annotations

import inspect
import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from tests.rnn_cases import CASES, NUMBERS, C, H, N, T, build, graph, numbers

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "rnn.json").read_text())


def test_all_cases_are_recorded() -> None:
    assert list(GOLDEN) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_graph_is_mxnets(name: str) -> None:
    cell, symbol, _ = build(mx, name)
    want_nodes, want_heads = GOLDEN[name]["graph"]
    nodes, heads = graph(symbol)
    for have, want in zip(nodes, want_nodes, strict=True):
        assert have == want
    assert heads == want_heads
    assert [list(s) for s in cell.state_shape] == GOLDEN[name]["states"]


@pytest.mark.parametrize("name", NUMBERS)
def test_the_numbers_are_mxnets(name: str) -> None:
    np.testing.assert_allclose(numbers(mx, np, name), GOLDEN[name]["numbers"], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_relu", "rnn_tanh"])
def test_unfused_equals_fused(mode: str, bidirectional: bool) -> None:
    fused = mx.rnn.FusedRNNCell(H, num_layers=2, mode=mode, bidirectional=bidirectional)
    stack = fused.unfuse()
    data, x = mx.sym.Variable("data"), np.random.default_rng(0).normal(size=(T, N, C)).astype(np.float32)
    one, _ = fused.unroll(T, data, layout="TNC", merge_outputs=True)
    many, _ = stack.unroll(T, data, layout="TNC", merge_outputs=True)
    sizes = dict(zip(one.list_arguments(), one.infer_shape(data=x.shape)[0], strict=True))
    vector = mx.nd.array(np.random.default_rng(1).normal(size=sizes[f"{mode}_parameters"]) * 0.3)
    weights = fused.unpack_weights({f"{mode}_parameters": vector, "other": mx.nd.ones((1,))})
    packed = fused.pack_weights(weights)
    np.testing.assert_array_equal(packed[f"{mode}_parameters"].asnumpy(), vector.asnumpy())
    assert set(packed) == {f"{mode}_parameters", "other"}
    weights = stack.pack_weights(weights)
    weights.pop("other")
    results = []
    for symbol, args in ((one, {f"{mode}_parameters": vector}), (many, weights)):
        exe = symbol.simple_bind(mx.cpu(), data=x.shape, grad_req="null")
        exe.copy_params_from(args)
        results.append(exe.forward(is_train=False, data=mx.nd.array(x))[0].asnumpy())
    assert results[0].shape == (T, N, H * (1 + bidirectional))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-6)


def test_initial_biases_of_the_forget_gate() -> None:
    cell = mx.rnn.FusedRNNCell(H, num_layers=2, mode="lstm", bidirectional=True, forget_bias=3.0)
    out, _ = cell.unroll(T, mx.sym.Variable("data"), layout="TNC")
    name = "lstm_parameters"
    shape = dict(zip(out.list_arguments(), out.infer_shape(data=(T, N, C))[0], strict=True))[name]
    vector = mx.nd.zeros(shape)
    mx.init.Uniform(0.1)(mx.init.InitDesc(name, out.attr_dict()[name]), vector)
    weights = cell.unpack_weights({name: vector})
    for key, value in weights.items():
        if key.endswith("_bias"):
            assert (value.asnumpy() == (3.0 if key.endswith("_f_bias") else 0.0)).all(), key
        else:
            assert 0 < abs(value.asnumpy()).max() <= 0.1, key


def test_packing_of_plain_cells() -> None:
    cell = mx.rnn.LSTMCell(2, prefix="x_")
    args = {f"x_{g}_{w}": mx.nd.array(np.arange(n).reshape(s)) for g in ("i2h", "h2h")
            for w, n, s in (("weight", 24, (8, 3)), ("bias", 8, (8,)))}
    parts = cell.unpack_weights(args)
    assert parts["x_i2h_f_weight"].asnumpy().tolist() == [[6, 7, 8], [9, 10, 11]]
    assert parts["x_h2h_o_bias"].asnumpy().tolist() == [6, 7]
    assert list(parts) == [f"x_{group}_{gate}_{what}" for group in ("i2h", "h2h") for gate in "ifco"
                           for what in ("weight", "bias")]  # the order that MXNet has, also in its files
    back = cell.pack_weights(parts)
    assert set(back) == set(args) and len(parts) == 16
    for key in args:
        np.testing.assert_array_equal(back[key].asnumpy(), args[key].asnumpy())


def test_a_conv_gru_of_images_with_channels_last() -> None:
    """MXNet cuts rows there instead of channels. Here it equals the cell with channels first."""
    results = []
    for layout in ("NCHW", "NHWC"):
        shape = (N, C, 6, 7) if layout == "NCHW" else (N, 6, 7, C)
        cell = mx.rnn.ConvGRUCell(shape, H, conv_layout=layout)
        assert cell.state_shape == [(0, H, 6, 7) if layout == "NCHW" else (0, 6, 7, H)]
        out, _ = cell(mx.sym.Variable("data"), cell.begin_state())
        exe = out.simple_bind(mx.cpu(), data=shape, grad_req="null")
        rng = np.random.default_rng(0)
        for name in ("data", "ConvGRU_i2h_weight", "ConvGRU_h2h_weight"):
            array = exe.arg_dict[name]
            size = array.shape if layout == "NCHW" else tuple(array.shape[i] for i in (0, 3, 1, 2))
            value = rng.normal(size=size)
            array[:] = value if layout == "NCHW" else value.transpose(0, 2, 3, 1)
        made = exe.forward()[0].asnumpy()
        results.append(made if layout == "NCHW" else made.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)


def test_checkpoints(tmp_path: Path) -> None:
    cell = mx.rnn.LSTMCell(H)
    out, _ = cell.unroll(T, mx.sym.Variable("data"), merge_outputs=True)
    shapes = dict(zip(out.list_arguments(), out.infer_shape(data=(N, T, C))[0], strict=True))
    args = {n: mx.nd.array(np.random.default_rng(1).normal(size=s)) for n, s in shapes.items() if n != "data"}
    prefix = str(tmp_path / "net")
    callback = mx.rnn.do_rnn_checkpoint(cell, prefix, period=2)
    callback(0, out, args, {})
    assert not list(tmp_path.iterdir())
    callback(1, out, args, {})
    saved = mx.nd.load(f"{prefix}-0002.params")
    assert isinstance(saved, dict)
    assert "arg:lstm_i2h_f_weight" in saved
    assert not any("i2h_weight" in k for k in saved)
    symbol, loaded, aux = mx.rnn.load_rnn_checkpoint([cell], prefix, 2)
    assert symbol.tojson() == out.tojson() and not aux and set(loaded) == set(args)
    for key in args:
        np.testing.assert_array_equal(loaded[key].asnumpy(), args[key].asnumpy())


def test_rnn_unroll_is_deprecated_and_works() -> None:
    with pytest.warns(UserWarning, match="deprecated"):
        outputs, _ = mx.rnn.rnn_unroll(mx.rnn.RNNCell(H), 2, mx.sym.Variable("data"))
    assert len(outputs) == 2


def test_wrong_use() -> None:
    data, cell = mx.sym.Variable("data"), mx.rnn.RNNCell(H)
    with pytest.raises(AssertionError, match="unroll\\(inputs=None\\)"):
        cell.unroll(T, None)
    with pytest.raises(AssertionError, match="2 inputs for length=3"):
        cell.unroll(T, [data, data])
    wrapped = mx.rnn.ResidualCell(cell)
    with pytest.raises(AssertionError, match="modifier"):
        cell.begin_state()
    wrapped.begin_state()
    fused = mx.rnn.FusedRNNCell(H)
    with pytest.raises(AssertionError, match="unfuse"):
        mx.rnn.ZoneoutCell(fused)
    with pytest.raises(NotImplementedError, match="unroll"):
        fused(data, [])
    with pytest.raises(mx.MXNetError, match="Invalid parameters size"):
        fused.unpack_weights({"lstm_parameters": mx.nd.zeros((7,))})
    with pytest.raises(AssertionError, match="odd number"):
        mx.rnn.ConvRNNCell((1, 1, 4, 4), 2, h2h_kernel=(2, 2))
    with pytest.raises(AssertionError, match="not both"):
        stack = mx.rnn.SequentialRNNCell(params=mx.rnn.RNNParams("p_"))
        stack.add(mx.rnn.RNNCell(H, params=mx.rnn.RNNParams("q_")))


def test_a_modified_stack_gives_its_states() -> None:
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.ZoneoutCell(mx.rnn.RNNCell(H), zoneout_states=0.5))
    cell = mx.rnn.ResidualCell(stack)
    assert [s.name for s in cell.begin_state(mx.sym.Variable)] == ["rnn_begin_state_0"]


def test_sentences() -> None:
    coded, vocab = mx.rnn.encode_sentences([["a", "b"], ["b", "c"]], invalid_label=1)
    assert coded == [[0, 2], [2, 3]] and vocab == {"\n": 1, "a": 0, "b": 2, "c": 3}
    assert mx.rnn.encode_sentences([["a"]], vocab=vocab)[0] == [[0]]
    with pytest.raises(AssertionError, match="Unknown token z"):
        mx.rnn.encode_sentences([["z"]], vocab=vocab)
    assert mx.rnn.encode_sentences([["z"]], vocab=vocab, unknown_token="u", start_label=9)[0] == [[9]]


@pytest.mark.parametrize("layout", ["NT", "TN"])
def test_buckets(layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    random.seed(3)
    np.random.seed(3)
    sentences = [list(range(1, n + 1)) for n in (2, 2, 2, 4, 4, 3, 9, 5)]
    it = mx.rnn.BucketSentenceIter(sentences, 2, buckets=[5, 2], invalid_label=0, layout=layout)
    assert capsys.readouterr().out == "WARNING: discarded 1 sentences longer than the largest bucket.\n"
    assert (it.buckets, it.default_bucket_key) == ([2, 5], 5)
    flip = layout == "TN"
    assert it.provide_data[0].shape == ((5, 2) if flip else (2, 5))
    seen = []
    for batch in it:
        assert batch.data and batch.label and batch.provide_data
        x, y = (a[0].asnumpy().T if flip else a[0].asnumpy() for a in (batch.data, batch.label))
        assert x.shape == (2, batch.bucket_key) and batch.provide_data[0].shape == batch.data[0].shape
        assert batch.provide_data[0].layout == layout and batch.pad == 0
        np.testing.assert_array_equal(y[:, :-1], x[:, 1:])
        assert (y[:, -1] == 0).all()
        seen.append(batch.bucket_key)
    assert sorted(seen) == [2, 5, 5]
    it.reset()
    assert len(list(it)) == 3
    assert mx.rnn.BucketSentenceIter(sentences, 2).buckets == [2, 4]
    with pytest.raises(ValueError, match="layout"):
        mx.rnn.BucketSentenceIter(sentences, 2, layout="XT")


def test_constructors_have_mxnets_parameters() -> None:
    text = str(inspect.signature(mx.rnn.FusedRNNCell))
    assert list(inspect.signature(mx.rnn.FusedRNNCell).parameters) == [
        "num_hidden", "num_layers", "mode", "bidirectional", "dropout", "get_next_state", "forget_bias", "prefix",
        "params"], text  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.rnn.FusedRNNCell(H).unroll(T, mx.sym.Variable("data"), layout="TNC")
    with pytest.warns(UserWarning, match="TNC"):
        mx.rnn.FusedRNNCell(H).unroll(T, mx.sym.Variable("data"))


def test_gates_that_are_nearly_closed() -> None:
    """A large cell shows how small the gates are: e^-20 of it, and not nothing."""
    for x in (-15.0, -20.0):
        data, parameters = mx.nd.array(np.full((2, 1, 1), x)), mx.nd.array([0, 1, 0.5, 0] + [0] * 12)
        for a in (data, parameters):
            a.attach_grad()
        cell = 1e6
        with mx.autograd.record():
            out = mx.nd.RNN(data, parameters, mx.nd.array([[[0.5]]]), mx.nd.array([[[cell]]]), mode="lstm",
                            state_size=1, num_layers=1)  # fmt: skip
            first = out[0]
        first.backward()
        forget = 1 / (1 + np.exp(-x))
        state = forget * cell + 0.5 * np.tanh(x / 2)
        np.testing.assert_allclose(first.asnumpy().item(), 0.5 * np.tanh(state), rtol=1e-5)
        slope = 0.5 * (1 - np.tanh(state) ** 2) * cell * forget * (1 - forget)  # of the forget gate's argument
        np.testing.assert_allclose(parameters.grad.asnumpy()[1], slope * x, rtol=1e-4)
