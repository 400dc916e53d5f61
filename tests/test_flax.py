"""Symbols as Flax NNX modules: MXNet's numbers, training, state."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx

import symjax as mx
from symjax.interop.flax import Constant, SymbolModule
from tests.compiles import compiles
from tests.parity.oracle import oracle_python

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "symjax" / "data" / "digits"
ZOO = Path(os.environ.get("SYMJAX_ZOO") or ROOT.parent / "shared" / "zoo")
RECIPE = ZOO / "make_golden.py"
needs_zoo = pytest.mark.skipif(not RECIPE.exists(), reason=f"no model files at {ZOO}: set SYMJAX_ZOO")
MODELS = ["deepwater_mlp", "sagemaker_linear", "aws_onnx_module", "mnist_mentalblood", "lotto_net", "save_000800",
          "fused_lstm", "fused_rnn", "made_foreach_rnn", "made_losses", "made_pooling", "neumf"]  # fmt: skip


# ---- real files


class ZooModel:
    """A model file, its values by the recipe of the folder, and what MXNet gave."""

    def __init__(self, name: str) -> None:
        spec = importlib.util.spec_from_file_location("make_golden", RECIPE)
        assert spec is not None and spec.loader is not None
        self.recipe = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.recipe)
        self.name, folder = name, ZOO / name
        source = json.loads((folder / "source.json").read_text())
        self.golden = json.loads((folder / "golden.json").read_text())
        self.arrays = dict(np.load(folder / "golden.npz"))
        self.symbol = mx.sym.load(str(folder / f"{name}-symbol.json"))
        shapes = self.golden["shapes"]
        self.inputs = {n: self.fill(n, shapes[n], s, s.get("dtype", "float32")) for n, s in source["inputs"].items()}
        stored = self.golden["params"]
        values: dict[str, Any] = dict(mx.model.split_params(mx.nd.load(str(folder / stored)))[0]) if stored else {}
        if stored:
            values.update(mx.model.split_params(mx.nd.load(str(folder / stored)))[1])
        for n, shape in shapes.items():
            if n not in values and n not in self.inputs:
                rule = self.recipe.param_spec(n, shape, source.get("random") or {}, source.get("gain", 2.0))
                values[n] = self.fill(n, shape, rule, "float32")
        self.values = values

    def fill(self, array: str, shape: Any, spec: dict[str, Any], dtype: str) -> np.ndarray:
        return self.recipe.fill(self.name, array, shape, spec, dtype)

    def module(self, **kwargs: Any) -> SymbolModule:
        aux = set(self.symbol.list_auxiliary_states())
        states = {k: v for k, v in self.values.items() if k in aux}
        params = {k: v for k, v in self.values.items() if k not in aux}
        return SymbolModule(self.symbol, params, states, inputs=list(self.inputs), **kwargs)

    def check(self, key: str, value: Any, tolerance: float) -> None:
        want = self.arrays[key]
        got = self.recipe.subset(np.asarray(value))[0]
        assert got.dtype == want.dtype, key
        scale = float(np.abs(want).max()) or 1.0
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, err_msg=key)


def as_tuple(outs: Any) -> tuple[jax.Array, ...]:
    return outs if isinstance(outs, tuple) else (outs,)


@needs_zoo
@pytest.mark.parametrize("name", MODELS)
def test_model_files_give_what_mxnet_gave(name: str) -> None:
    zoo = ZooModel(name)
    model = zoo.module(rngs=nnx.Rngs(0))
    outs = as_tuple(nnx.jit(lambda m, x: m(**x))(model, zoo.inputs))
    assert len(outs) == len(zoo.golden["out"])
    for i, out in enumerate(outs):
        zoo.check(f"out{i}", out, 1e-4)
    if "train" in zoo.golden:
        check_training(zoo, model)


def check_training(zoo: ZooModel, model: SymbolModule) -> None:
    model.train()
    heads = [
        zoo.fill(f"ograd{i}", o["shape"], {"kind": "uniform"}, o["dtype"]) for i, o in enumerate(zoo.golden["out"])
    ]

    @nnx.jit
    def gradients(model: SymbolModule, inputs: dict[str, Any]) -> Any:
        def objective(model: SymbolModule) -> Any:
            outs = as_tuple(model(**inputs))
            return sum((o * h).sum() for o, h in zip(outs, heads, strict=True)), outs

        return nnx.grad(objective, has_aux=True)(model)

    grads, outs = gradients(model, zoo.inputs)
    for i, out in enumerate(outs):
        zoo.check(f"train_out{i}", out, 1e-3)
    compared = 0
    for key in zoo.arrays:
        kind, _, name = key.partition(":")
        if kind == "grad" and name in grads["params"]:
            zoo.check(key, grads["params"][name].get_value(), 1e-3)
            compared += 1
        elif kind == "aux_after":
            zoo.check(key, model.aux[name].get_value(), 1e-3)
    assert compared or not any(k.startswith("grad:") and k[5:] not in zoo.inputs for k in zoo.arrays)


@pytest.fixture(scope="module")
def digits() -> dict[str, np.ndarray]:
    with np.load(f"{DIGITS}.npz") as file:
        return {k: file[k] for k in file.files}


def load(**kwargs: Any) -> SymbolModule:
    return SymbolModule.from_checkpoint(DIGITS, 10, **kwargs)


def pixels(images: np.ndarray) -> np.ndarray:
    return images[:, None].astype(np.float32)


def test_embedded_checkpoint(digits: dict[str, np.ndarray]) -> None:
    model = load()
    assert model.input_names == ("data", "softmax_label")
    images, want = pixels(digits["test_images"]), digits["test_probabilities"]
    for outs in (model(images), model(data=images), nnx.jit(lambda m, x: m(x))(model, images)):
        np.testing.assert_allclose(outs, want, rtol=1e-4, atol=1e-5)
    logits = load(outputs="logits")
    assert logits.input_names == ("data",)
    np.testing.assert_allclose(jax.nn.softmax(logits(images)), want, rtol=1e-4, atol=1e-5)


def test_imports_as_gluon_does(digits: dict[str, np.ndarray]) -> None:
    model = SymbolModule.imports(f"{DIGITS}-symbol.json", ["data"], f"{DIGITS}-0010.params")
    out = model(pixels(digits["test_images"]))
    np.testing.assert_allclose(out, digits["test_probabilities"], rtol=1e-4, atol=1e-5)


def test_bytes_as_images_are_cast(digits: dict[str, np.ndarray]) -> None:
    raw = digits["test_images"][:8, None]
    model = load()
    assert raw.dtype == np.uint8
    for images in (raw, raw.astype(np.float64), mx.nd.array(raw), jnp.asarray(raw)):
        out = model(images)
        assert out.dtype == jnp.float32
        np.testing.assert_allclose(out, digits["test_probabilities"][:8], rtol=1e-4, atol=1e-5)


# ---- training


def small(hidden: int = 4) -> mx.sym.Symbol:
    body = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=hidden, name="fc")
    return mx.sym.BatchNorm(body, fix_gamma=False, name="bn")


def classifier() -> mx.sym.Symbol:
    body = mx.sym.Dropout(mx.sym.Activation(small(32), act_type="relu"), p=0.1)
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(body, num_hidden=10, name="fc2"), name="softmax")


def fine_tune(model: SymbolModule, prepare: Any, digits: dict[str, np.ndarray], objective: Any) -> list[float]:
    optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model: SymbolModule, optimizer: Any, images: Any, labels: Any) -> Any:
        (_, loss), grads = nnx.value_and_grad(objective, has_aux=True)(model, images, labels)
        optimizer.update(model, grads)
        return loss

    # turned digits: what the checkpoint has not seen
    images, labels = prepare(np.rot90(digits["train_images"], axes=(1, 2))), digits["train_labels"]
    model.train()
    losses = []
    for i in range(20):
        part = slice(64 * i, 64 * i + 64)
        losses.append(float(step(model, optimizer, images[part], labels[part])))
    model.eval()
    return losses


def mxnet_objective(model: SymbolModule, images: Any, labels: Any) -> Any:
    out = model(images, softmax_label=labels)
    likelihood = jnp.take_along_axis(out, labels[:, None].astype(int), 1)
    return out.sum(), -jnp.log(likelihood + 1e-12).mean()


def optax_objective(model: SymbolModule, images: Any, labels: Any) -> Any:
    loss = optax.softmax_cross_entropy_with_integer_labels(model(images), labels.astype(int)).mean()
    return loss, loss


@pytest.fixture(scope="module")
def tuned(digits: dict[str, np.ndarray]) -> tuple[SymbolModule, list[float]]:
    model = load(outputs="logits", rngs=nnx.Rngs(0))
    return model, fine_tune(model, pixels, digits, optax_objective)


def test_fine_tuning(tuned: tuple[SymbolModule, list[float]]) -> None:
    model, losses = tuned
    assert np.mean(losses[-3:]) < 0.6 * np.mean(losses[:3]), losses
    before, after = load().aux, model.aux
    assert all(np.abs(after[k].get_value() - before[k].get_value()).max() > 1e-3 for k in before)


def test_training_by_the_loss_heads_own_gradient(digits: dict[str, np.ndarray]) -> None:
    model = SymbolModule(classifier(), rngs=nnx.Rngs(0), data=(1, 64))
    losses = fine_tune(model, lambda x: x.reshape(-1, 64) / 16, digits, mxnet_objective)
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3]), losses


def test_both_ways_have_one_gradient(digits: dict[str, np.ndarray]) -> None:
    """SoftmaxOutput's own gradient is that of the cross entropy on the logits, times the batch size."""
    images, labels = digits["train_images"][:16].reshape(16, 64), digits["train_labels"][:16]
    found = []
    outputs: Any
    for outputs, objective in (("symbol", mxnet_objective), ("logits", optax_objective)):
        model = SymbolModule(classifier(), outputs=outputs, rngs=nnx.Rngs(3), data=(1, 64))
        model.train()
        found.append(nnx.to_pure_dict(nnx.grad(objective, has_aux=True)(model, images, labels)[0]))
    for a, b in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(a / len(labels), b, rtol=1e-3, atol=1e-5)


def test_modes(digits: dict[str, np.ndarray]) -> None:
    images = pixels(digits["test_images"][:8])
    model = load(outputs="logits", rngs=nnx.Rngs(0))
    first = model(images)
    np.testing.assert_array_equal(first, model(images))
    assert model.rng is not None and int(model.rng.count.get_value()) == 0, "prediction draws nothing"
    model.train()
    noisy = model(images)
    assert np.abs(noisy - model(images)).max() > 1e-3, "dropout changes from call to call"
    a, b, c = (model(images, rngs=jax.random.key(k)) for k in (5, 5, 6))
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - c).max() > 1e-3
    np.testing.assert_array_equal(model(images, rngs=nnx.Rngs(1)), model(images, rngs=nnx.Rngs(dropout=1)))


def test_a_module_around_it_switches_the_mode() -> None:
    class Outer(nnx.Module):
        def __init__(self) -> None:
            self.body = load(rngs=nnx.Rngs(0))

    outer = Outer()
    assert outer.body.deterministic
    outer.train()
    assert not outer.body.deterministic
    assert nnx.view(outer, deterministic=True).body.deterministic


def test_initial_values() -> None:
    model = SymbolModule(small(), rngs=nnx.Rngs(0), data=(8, 100))
    assert {k: v.get_value().shape for k, v in model.params.items()} == {
        "fc_weight": (4, 100), "fc_bias": (4,), "bn_gamma": (4,), "bn_beta": (4,)}  # fmt: skip
    assert float(model.params["fc_weight"].get_value().std()) == pytest.approx((2 / 100) ** 0.5, rel=0.2)
    assert all(float(model.params[f"bn_{k}"].get_value()[0]) == v for k, v in (("gamma", 1), ("beta", 0)))
    assert float(model.aux["bn_moving_var"].get_value()[0]) == 1
    again = SymbolModule(small(), rngs=nnx.Rngs(0), shapes={"data": (8, 100)})
    np.testing.assert_array_equal(again.params["fc_weight"].get_value(), model.params["fc_weight"].get_value())
    ones = SymbolModule(small(), rngs=nnx.Rngs(0), initializer=jax.nn.initializers.ones, data=(8, 100))
    assert bool((ones.params["fc_weight"].get_value() == 1).all())
    with pytest.raises(ValueError, match=r"rngs=nnx\.Rngs"):
        SymbolModule(small(), data=(8, 100))


def test_a_new_head_on_old_layers() -> None:
    net, args, aux = mx.model.load_checkpoint(str(DIGITS), 10)
    features = net.get_internals()["relu3_output"]
    head = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(features, num_hidden=3, name="new"), name="softmax")
    model = SymbolModule(head, args, aux, inputs=["data"], rngs=nnx.Rngs(0), data=(1, 1, 8, 8))
    assert model.input_names == ("data", "softmax_label")
    np.testing.assert_array_equal(model.params["fc1_weight"].get_value(), args["fc1_weight"].asnumpy())
    assert float(jnp.abs(model.params["new_weight"].get_value()).min()) > 0
    assert model(np.zeros((5, 1, 8, 8), "float32")).shape == (5, 3)


def test_samplers_draw_in_prediction() -> None:
    noise = mx.sym.Variable("data") + mx.sym.random.normal(shape=(3, 4), name="noise")
    model = SymbolModule(noise, rngs=nnx.Rngs(0), data=(3, 4))
    x = np.zeros((3, 4), "float32")
    draw = nnx.jit(lambda m, x: m(x))
    assert np.abs(draw(model, x) - draw(model, x)).max() > 1e-3
    with pytest.raises(ValueError, match="random numbers") as caught:
        SymbolModule(noise, data=(3, 4))(x)
    assert "rngs=nnx.Rngs" in "".join(caught.value.__notes__)


# ---- dtypes


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype: str) -> None:
    weight = np.arange(12).reshape(4, 3).astype(jnp.dtype(dtype)) / 7
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), no_bias=True, num_hidden=4, name="fc")
    model = SymbolModule(net, {"fc_weight": weight}, inputs=["data"])
    assert not jax.config.read("jax_enable_x64")
    x = np.arange(6).reshape(2, 3) / 4
    for out in (model(x), nnx.jit(lambda m, x: m(x))(model, x)):
        assert out.dtype == model.params["fc_weight"].get_value().dtype == dtype
    tolerance = {"float64": 1e-15, "float32": 1e-6}.get(dtype, 1e-2)
    np.testing.assert_allclose(np.float64(model(x)), x @ np.float64(weight).T, rtol=tolerance, atol=tolerance)
    assert model.to_params()[0]["fc_weight"].asnumpy().dtype == jnp.dtype(dtype)


def test_64_bit_training() -> None:
    with jax.enable_x64(True):
        model = SymbolModule(small(), {"fc_weight": np.ones((4, 3))}, inputs=["data"], rngs=nnx.Rngs(0), data=(5, 3))
        model.train()
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)

        @nnx.jit
        def step(model: SymbolModule, optimizer: Any, x: Any) -> None:
            optimizer.update(model, nnx.grad(lambda m: (m(x) ** 3).sum())(model))

        step(model, optimizer, np.random.default_rng(0).normal(size=(5, 3)))
        assert {v.dtype.name for v in jax.tree.leaves(nnx.state(model, nnx.Param))} == {"float64"}
    assert {v.get_value().dtype.name for v in model.aux.values()} == {"float64"}
    net = mx.sym.Cast(mx.sym.Variable("data"), dtype="float64") * mx.sym.Variable("w")
    model = SymbolModule(net, {"w": np.array([1 / 3])}, inputs=["data"])
    assert model(np.ones(1, "float32")).dtype == "float64", "what jax_enable_x64 says does not matter"


def test_integer_parameters_have_no_gradient() -> None:
    table = mx.sym.Variable("table")
    net = mx.sym.Embedding(mx.sym.take(table, mx.sym.Variable("i")), input_dim=9, output_dim=2, name="e")
    values = {"table": np.array([5, 7, 8], "int64"), "e_weight": np.ones((9, 2), "float32")}
    model = SymbolModule(net, values, inputs=["i"])
    assert isinstance(model.params["table"], Constant) and model.params["table"].get_value().dtype == "int64"
    grads = nnx.grad(lambda m: m(np.array([0, 0, 2])).sum())(model)
    assert list(grads["params"]) == ["e_weight"]
    np.testing.assert_array_equal(grads["params"]["e_weight"].get_value()[:, 0], [0, 0, 0, 0, 0, 2, 0, 0, 1])


# ---- state

ODD = "net.a/b:0.items"


def odd() -> SymbolModule:
    """Names with dots, slashes and colons, and those of a dict's methods."""
    body = mx.sym.FullyConnected(
        mx.sym.Variable("data.0"), mx.sym.Variable(ODD), mx.sym.Variable("items"), num_hidden=2
    )
    body = mx.sym.broadcast_add(body, mx.sym.Variable("net.a"))
    return SymbolModule(
        body,
        {ODD: np.eye(2, dtype="float32"), "items": np.ones(2, "float32"), "net.a": np.ones((1, 2), "float32")},
        inputs=["data.0"],
    )


def test_odd_names(tmp_path: Path) -> None:
    model = odd()
    x = np.array([[1.0, 2.0]], "float32")
    want = np.array([[3.0, 4.0]])
    np.testing.assert_array_equal(model(x), want)
    np.testing.assert_array_equal(nnx.jit(lambda m, x: m(**{"data.0": x}))(model, x), want)
    assert set(nnx.grad(lambda m: m(x).sum())(model)["params"]) == {ODD, "items", "net.a"}
    model.save_checkpoint(tmp_path / "odd", 0)
    again = SymbolModule.from_checkpoint(tmp_path / "odd", 0)
    np.testing.assert_array_equal(again(x), want)


def test_inputs_named_as_the_arguments_of_calls() -> None:
    names = ("key", "train", "params", "aux", "inputs", "shapes", "symbol")
    total = mx.sym.add_n(*[mx.sym.Variable(n) for n in names], name="total")
    model = SymbolModule(total, inputs=names, shapes=dict.fromkeys(names, (2,)))
    x = np.ones(2, "float32")
    np.testing.assert_array_equal(model(**dict.fromkeys(names, x)), np.full(2, 7.0))


def test_split_merge_clone_copy_pickle(digits: dict[str, np.ndarray]) -> None:
    images = pixels(digits["test_images"][:8])
    model = load(rngs=nnx.Rngs(0))
    want = model(images)
    definition, state = nnx.split(model)
    functional = jax.jit(lambda state, x: nnx.merge(definition, state)(x))
    with compiles() as count:
        functional(state, images)
        functional(jax.tree.map(lambda v: v, state), images)
    assert count.n <= 1
    for other in (
        nnx.merge(definition, state),
        nnx.clone(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_array_equal(other(images), want)


def test_equal_modules_share_a_compilation(digits: dict[str, np.ndarray]) -> None:
    images = pixels(digits["test_images"][:8])
    run = nnx.jit(lambda m, x: m(x))
    run(load(), images)
    with compiles() as count:
        run(load(), images)
    assert count.n == 0
    assert nnx.graphdef(load()) == nnx.graphdef(load()) != nnx.graphdef(load(outputs="logits"))


def test_vmap_over_models() -> None:
    x = np.ones((2, 3), "float32")
    definition, first = nnx.split(SymbolModule(small(), rngs=nnx.Rngs(0), data=(2, 3)))
    model = SymbolModule(small(), rngs=nnx.Rngs(1), data=(2, 3))
    both = jax.tree.map(lambda *v: jnp.stack(v), first, nnx.state(model))
    outs = jax.vmap(lambda s: nnx.merge(definition, s)(x))(both)
    np.testing.assert_allclose(outs[1], model(x), rtol=1e-5, atol=1e-6)
    assert np.abs(outs[0] - outs[1]).max() > 1e-3


@pytest.mark.parametrize("make", [load, odd])
def test_orbax(tmp_path: Path, make: Any) -> None:
    model, fresh = make(), make()
    state = jax.tree.map(lambda v: v * 2 + 1, nnx.state(model))
    with ocp.StandardCheckpointer() as saver:
        saver.save(tmp_path / "state", state)
    with ocp.StandardCheckpointer() as saver:
        nnx.update(fresh, saver.restore(tmp_path / "state", nnx.state(fresh)))
    for a, b in zip(jax.tree.leaves(nnx.state(fresh)), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(a, b)


def test_back_to_a_checkpoint(tmp_path: Path, digits: dict[str, np.ndarray],
                              tuned: tuple[SymbolModule, list[float]]) -> None:  # fmt: skip
    images, model = pixels(digits["test_images"]), tuned[0]
    model.save_checkpoint(tmp_path / "tuned", 3)
    net, args, aux = mx.model.load_checkpoint(str(tmp_path / "tuned"), 3)
    assert net.list_outputs() == ["softmax_output"], "the loss head is back"
    exe = net.simple_bind(mx.cpu(), data=images.shape, grad_req="null")
    exe.copy_params_from(args, aux)
    probabilities = exe.forward(data=images)[0].asnumpy()
    np.testing.assert_allclose(probabilities, jax.nn.softmax(model(images)), rtol=1e-4, atol=1e-5)
    assert np.abs(probabilities - digits["test_probabilities"]).max() > 1e-3
    untouched = load().to_params()
    original = mx.model.load_params(str(DIGITS), 10)
    for ours, theirs in zip(untouched, original, strict=True):
        assert {k: v.asnumpy().tobytes() for k, v in ours.items()} == {
            k: v.asnumpy().tobytes() for k, v in theirs.items()
        }


IN_MXNET = """
import sys
import mxnet as mx, numpy as np
prefix, digits = sys.argv[1:]
net, args, auxs = mx.model.load_checkpoint(prefix, 3)
images = np.load(digits)["test_images"][:, None].astype("float32")
exe = net.simple_bind(mx.cpu(), data=images.shape, grad_req="null")
exe.copy_params_from(args, auxs)
np.save(prefix + ".npy", exe.forward(data=images)[0].asnumpy())
"""


@pytest.mark.oracle
def test_mxnet_runs_what_was_tuned(
    tmp_path: Path, digits: dict[str, np.ndarray], tuned: tuple[SymbolModule, list[float]]
) -> None:
    python = oracle_python()
    if python is None:
        pytest.skip("real MXNet is not installed: run `make oracle` or set SYMJAX_ORACLE_PYTHON")
    tuned[0].save_checkpoint(tmp_path / "tuned", 3)
    env = {**os.environ, "MXNET_SUBGRAPH_BACKEND": "NONE", "MXNET_MKLDNN_ENABLED": "0"}
    command = [str(python), "-c", IN_MXNET, str(tmp_path / "tuned"), f"{DIGITS}.npz"]
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    want = np.load(tmp_path / "tuned.npy")
    np.testing.assert_allclose(jax.nn.softmax(tuned[0](pixels(digits["test_images"]))), want, rtol=1e-4, atol=1e-5)


SHARDED = """
import jax, numpy as np
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec as P
from symjax.interop.flax import SymbolModule
prefix, data = {prefix!r}, np.load({prefix!r} + ".npz")
mesh = jax.make_mesh((2, 2), ("batch", "model"))
split, whole = NamedSharding(mesh, P("model")), NamedSharding(mesh, P())
model = SymbolModule.from_checkpoint(prefix, 10, sharding={{r"fc1_(weight|bias)$": split, "": whole}})
assert model.params["fc1_weight"].get_value().sharding == split
assert model.params["fc2_weight"].get_value().sharding == whole == model.aux["bn1_moving_var"].get_value().sharding
images = jax.device_put(data["test_images"][:64, None].astype("float32"), NamedSharding(mesh, P("batch")))
out = nnx.jit(lambda m, x: m(x))(model, images)
np.testing.assert_allclose(out, data["test_probabilities"][:64], rtol=1e-4, atol=1e-5)
assert len(out.sharding.device_set) == 4
assert model.to_params()[0]["fc1_weight"].shape == (48, 512)
"""


def test_sharding() -> None:
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT),
           "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", SHARDED.format(prefix=str(DIGITS))], env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]


# ---- outputs and errors


def test_several_outputs_and_loss_heads() -> None:
    data = mx.sym.Variable("data")
    score = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
    net = mx.sym.Group([mx.sym.LogisticRegressionOutput(score, name="l"), mx.sym.MakeLoss(score.sum(), name="m"),
                        mx.sym.BlockGrad(score, name="b")])  # fmt: skip
    values = {"fc_weight": np.ones((3, 2), "float32"), "fc_bias": np.zeros(3, "float32")}
    model = SymbolModule(net, values, outputs="logits", inputs=["data"])
    first, loss, blocked = model(np.ones((1, 2), "float32"))
    np.testing.assert_array_equal(first, [[2, 2, 2]])
    np.testing.assert_array_equal(np.ravel(loss), [6])
    np.testing.assert_array_equal(blocked, first)
    grads = nnx.grad(lambda m: m(np.ones((1, 2), "float32"))[2].sum())(model)
    assert float(jnp.abs(grads["params"]["fc_weight"].get_value()).max()) == 0, "BlockGrad still blocks"


def test_errors(digits: dict[str, np.ndarray]) -> None:
    images = pixels(digits["test_images"][:2])
    model = load(rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match=r"'dta' is not an input.*Did you mean 'data'"):
        model(dta=images)
    with pytest.raises(ValueError, match="'data' is missing"):
        model()
    with pytest.raises(ValueError, match="by position and by name"):
        model(images, data=images)
    with pytest.raises(ValueError, match="3 inputs given"):
        model(images, images, images)
    with pytest.raises(ValueError, match="outputs must be"):
        load(outputs="loss")
    model.train()
    with pytest.raises(ValueError, match=r"label 'softmax_label' is missing.*outputs='logits'"):
        model(images)
