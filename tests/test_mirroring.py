"""Mirrored nodes: their results are computed again for the gradient, not kept; numbers stay."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax.lowering.mirror import mirrored
from tests.compiles import compiles
from tests.module_cases import parameters

SHAPES = {"data": (8, 2, 8, 8), "softmax_label": (8,)}
X = np.random.RandomState(0).normal(size=SHAPES["data"]).astype("f")
Y = np.random.RandomState(1).randint(0, 3, 8).astype("f")


def net(**attrs: str) -> Any:
    x = mx.sym.Variable("data")
    for i in range(2):
        x = mx.sym.Convolution(x, num_filter=8, kernel=(3, 3), pad=(1, 1), name=f"conv{i}")
        x = mx.sym.BatchNorm(x, fix_gamma=False, name=f"norm{i}")
        with mx.AttrScope(**attrs):
            x = mx.sym.Activation(x, act_type="tanh", name=f"act{i}")
            x = mx.sym.broadcast_mul(x, mx.sym.sigmoid(x, name=f"gate{i}"), name=f"mul{i}")
    x = mx.sym.Dropout(x, p=0.3, name="drop")
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=3, name="out")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def trained(symbol: Any) -> tuple[Any, int]:
    """Outputs, gradients and auxiliary states of a step, and how many bytes its forward pass keeps."""
    ex = symbol.simple_bind(mx.cpu(), **SHAPES)
    ex.copy_params_from(*parameters(mx, symbol, **SHAPES))
    mx.random.seed(3)
    ex.forward(is_train=True, data=X, softmax_label=Y)
    out = ex.outputs[0].asnumpy()  # read in between: residuals are handed over
    kept = sum(x.nbytes for x in jax.tree.leaves(ex._run.pull) if hasattr(x, "nbytes"))
    ex.backward()
    found = {"out": out, **{n: g.asnumpy() for n, g in ex.grad_dict.items()}}
    return {**found, **{n: a.asnumpy() for n, a in ex.aux_dict.items()}}, kept


def check(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    for name, value in a.items():
        np.testing.assert_allclose(b[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_forced_nodes_are_not_kept() -> None:
    plain, kept = trained(net())
    again, fewer = trained(net(force_mirroring="True"))
    check(plain, again)
    assert fewer < 0.7 * kept, (fewer, kept)
    symbol = mx.sym.load_json(net(force_mirroring="true").tojson())
    assert {n.name for n in mirrored(symbol._graph)} == {f"{k}{i}" for k in ("act", "gate", "mul") for i in range(2)}


def test_the_environment_mirrors_what_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, kept = trained(net())
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    again, fewer = trained(net())
    check(plain, again)
    assert fewer < 0.7 * kept, (fewer, kept)
    names = {n.name for n in mirrored(net()._graph)}
    assert {"act0", "mul1"} <= names and not names & {"conv0", "norm1", "drop", "out", "softmax"}
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "0")
    assert not mirrored(net()._graph)
    assert trained(net())[1] == kept  # the program of before


def test_a_heavy_node_that_is_forced() -> None:
    plain, _ = trained(net())
    x = net()
    for n in x._graph.nodes:
        if n.name in ("conv1", "norm1", "act1"):
            n.attrs["__force_mirroring__"] = "1"
    again, _ = trained(x)
    check(plain, again)
    assert {n.name for n in mirrored(x._graph)} == {"conv1", "norm1", "act1"}


def test_the_joint_step_and_lowered_functions() -> None:
    """The temporary memory of the compiled gradient falls, and a training step is still one call."""
    sizes, found = [], []
    for symbol in (deep(), deep(force_mirroring="True")):
        fn, params, aux = mx.lower(symbol, data=(64, 256), shapes={})

        def loss(params: Any, fn: Any = fn, aux: Any = aux) -> Any:
            (out,), _ = fn(params, aux, data=jnp.ones((64, 256), "float32"), train=True)
            return (out**2).sum()

        params = {n: jnp.asarray(np.random.RandomState(len(n)).normal(0, 0.06, p.shape), "float32")
                  for n, p in params.items()}
        compiled = jax.jit(jax.grad(loss)).lower(params).compile()
        memory: Any = compiled.memory_analysis()
        sizes.append(memory.temp_size_in_bytes)
        found.append(compiled(params))
    for name, g in found[0].items():
        np.testing.assert_allclose(found[1][name], g, rtol=1e-3, atol=1e-5)
    assert sizes[1] < sizes[0], sizes


def deep(**attrs: str) -> Any:
    x = mx.sym.Variable("data")
    for i in range(6):
        x = mx.sym.FullyConnected(x, num_hidden=256, name=f"fc{i}")
        with mx.AttrScope(**attrs):
            for _ in range(3):
                x = mx.sym.sin(mx.sym.tanh(x) * 1.5)
    return x


def test_a_module_of_mirrored_nodes() -> None:
    found = []
    for symbol in (net(), net(force_mirroring="True")):
        module = mx.mod.Module(symbol)
        module.bind([("data", SHAPES["data"])], [("softmax_label", SHAPES["softmax_label"])])
        module.init_params(None, *parameters(mx, symbol, **SHAPES))
        module.init_optimizer(optimizer_params={"learning_rate": 0.1})
        mx.random.seed(1)
        for i in range(3):
            with compiles() as count:
                module.forward_backward(mx.io.DataBatch([mx.nd.array(X)], [mx.nd.array(Y)]))
                module.update()
            assert i == 0 or not count.n
        args, auxs = module.get_params()
        found.append({n: a.asnumpy() for n, a in {**args, **auxs}.items()})
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-3, atol=1e-4, err_msg=name)


def test_what_runs_on_the_host_is_not_mirrored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    masked = mx.sym.contrib.boolean_mask(mx.sym.relu(mx.sym.Variable("a")), mx.sym.Variable("b"))
    assert not mirrored(masked._graph)
    rnn = mx.sym.RNN(mx.sym.Variable("x"), state_size=2, num_layers=1, mode="lstm", name="rnn")
    assert not mirrored(rnn._graph)


def test_rows_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row_sparse gradient of a table whose lookups are mirrored."""
    table = mx.sym.Variable("w", stype="row_sparse")
    x = mx.sym.Embedding(mx.sym.Variable("ids"), table, input_dim=20, output_dim=4, sparse_grad=True)
    symbol = mx.sym.MakeLoss(mx.sym.sum(mx.sym.tanh(mx.sym.sin(x)) ** 2))
    found = []
    for value in ("0", "1"):
        monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", value)
        ex = symbol.simple_bind(mx.cpu(), ids=(6,), grad_req={"w": "write"})
        ex.arg_dict["w"][:] = mx.nd.array(np.random.RandomState(0).normal(size=(20, 4))).tostype("row_sparse")
        ex.forward(is_train=True, ids=np.array([1, 5, 5, 7, 19, 0], "f"))
        ex.backward()
        found.append(ex.grad_dict["w"])
    assert found[0].stype == found[1].stype == "row_sparse"
    assert found[1].indices.asnumpy().tolist() == [0, 1, 5, 7, 19]
    np.testing.assert_allclose(found[1].asnumpy(), found[0].asnumpy(), rtol=1e-5)
