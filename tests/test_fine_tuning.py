"""A model file of somebody else learns a new task with frozen layers: by Module, and by Flax and Optax alike."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest
from flax import nnx

import symjax as mx
from symjax.interop.flax import SymbolModule
from tests.compiles import compiles

NAME = "cifar_resnet20_v2_mx2"
FOLDER = Path(os.environ.get("SYMJAX_ZOO") or Path(__file__).resolve().parents[2] / "shared" / "zoo") / NAME
STEPS, BATCH, RATE, MOMENTUM = 12, 16, 0.05, 0.9

pytestmark = [
    pytest.mark.skipif(not FOLDER.exists(), reason=f"no model file at {FOLDER}: set SYMJAX_ZOO"),
    pytest.mark.slow,  # notebooks/07_fine_tuning does the same with the digits' model in every run
]


def network() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """ResNet-20 without its head, which is new and has three classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a newer MXNet wrote it
        whole = mx.sym.load(str(FOLDER / f"{NAME}-symbol.json"))
    args, aux = mx.model.split_params(mx.nd.load(str(FOLDER / f"{NAME}-0000.params")))
    features = whole.get_internals()["cifarresnetv20_flatten0_flatten0_output"]
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(features, num_hidden=3, name="head"), name="softmax")
    known = {n: v for n, v in args.items() if n in net.list_arguments()}
    rng = np.random.RandomState(0)
    known["head_weight"] = mx.nd.array(rng.normal(0, 0.1, (3, 64)))
    known["head_bias"] = mx.nd.zeros(3)
    return net, known, {n: v for n, v in aux.items() if n in net.list_auxiliary_states()}


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Images whose brightest colour is their class."""
    rng = np.random.RandomState(1)
    labels = rng.randint(0, 3, STEPS * BATCH)
    images = rng.rand(STEPS * BATCH, 3, 32, 32)
    images[np.arange(len(labels)), labels] += 0.3
    return images.astype("float32"), labels.astype("float32")


def by_module(net: Any, args: dict[str, Any], aux: dict[str, Any]) -> tuple[list[float], dict[str, Any]]:
    frozen = [n for n in args if not n.startswith("head_")]
    module, curve = mx.mod.Module(net, fixed_param_names=frozen), []

    def note(p: Any) -> None:
        curve.append(p.eval_metric.get()[1])
        p.eval_metric.reset()

    module.fit(mx.io.NDArrayIter(*batches(), BATCH), eval_metric="ce", arg_params=args, aux_params=aux, num_epoch=1,
               optimizer_params={"learning_rate": RATE, "momentum": MOMENTUM}, batch_end_callback=note)  # fmt: skip
    new_args, new_aux = module.get_params()
    for n in frozen:
        np.testing.assert_array_equal(new_args[n].asnumpy(), args[n].asnumpy(), err_msg=n)
    return curve, {**{n: new_args[n] for n in ("head_weight", "head_bias")}, **new_aux}


def by_flax(net: Any, args: dict[str, Any], aux: dict[str, Any]) -> tuple[list[float], dict[str, Any]]:
    model = SymbolModule(net, args, aux, outputs="logits")
    trainable = nnx.All(nnx.Param, lambda path, value: str(path[-1]).startswith("head_"))
    optimizer = nnx.Optimizer(model, optax.sgd(RATE, momentum=MOMENTUM), wrt=trainable)

    @nnx.jit
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        def loss(model: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

        value, grads = nnx.value_and_grad(loss, argnums=nnx.DiffState(0, trainable))(model)
        optimizer.update(model, grads)
        return value

    model.train()
    images, labels = batches()
    curve = []
    for i in range(STEPS):
        part = slice(i * BATCH, (i + 1) * BATCH)
        with compiles() as count:
            curve.append(float(step(model, optimizer, images[part], labels[part].astype("int32"))))
        assert i < 2 or not count.n
    head = {n: model.params[n].get_value() for n in ("head_weight", "head_bias")}
    return curve, {**head, **{n: model.aux[n].get_value() for n in aux}}


def test_module_and_flax_draw_one_curve() -> None:
    model = network()
    curve, values = by_module(*model)
    other, other_values = by_flax(*model)
    assert len(curve) == STEPS and np.mean(curve[-4:]) < 0.7 * np.mean(curve[:2])
    np.testing.assert_allclose(other, curve, rtol=1e-3, atol=1e-5)
    for n, value in values.items():
        scale = float(np.abs(value.asnumpy()).max())
        got = jax.device_get(other_values[n])
        np.testing.assert_allclose(got, value.asnumpy(), rtol=1e-3, atol=1e-3 * scale, err_msg=n)
