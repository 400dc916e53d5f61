"""Networks that a Module trains, as functions of `mx`: real MXNet, or symjax.

`tests/oracle/record_modules.py` records the losses of all steps that MXNet gives; `test_module_training.py` compares.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

STEPS, BATCH = 50, 16
Result = dict[str, Any]

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"learning_rate": 0.1},
    "momentum": {"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-3, "clip_gradient": 0.5},
    "nag": {"learning_rate": 0.05, "momentum": 0.9},
    "adam": {"learning_rate": 0.01, "wd": 1e-3},
    "adagrad": {"learning_rate": 0.05},
    "rmsprop": {"learning_rate": 0.005},
    "centered rmsprop": {"learning_rate": 0.005, "centered": True},
    "adadelta": {"rho": 0.9},
    "adamax": {"learning_rate": 0.01},
    "nadam": {"learning_rate": 0.005},
    "ftrl": {"learning_rate": 0.1, "lamda1": 0.001},
    "ftml": {"learning_rate": 0.01},
    "signum": {"learning_rate": 0.002},
    "lamb": {"learning_rate": 0.01},
    "lars": {"learning_rate": 5.0, "momentum": 0.9},
    "lbsgd": {"learning_rate": 0.1, "momentum": 0.5, "warmup_strategy": "lars", "warmup_epochs": 3},
    "dcasgd": {"learning_rate": 0.1},
    "ccsgd": {"learning_rate": 0.1, "momentum": 0.5},
}
_CLASS = {"momentum": "sgd", "centered rmsprop": "rmsprop"}


# ---- data and first parameters


def blobs(rng: np.random.RandomState, n: int, shape: tuple[int, ...], classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples around a centre for each class, and their classes."""
    centres = rng.normal(size=(classes, *shape))
    label = rng.randint(0, classes, n)
    return (0.7 * centres[label] + rng.normal(size=(n, *shape))).astype("f"), label.astype("f")


def parameters(mx: Any, net: Any, seed: int = 0, **shapes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """First values of arguments and auxiliary states by name, the same wherever they are asked for."""
    found = []
    args, _, auxs = net.infer_shape(**shapes)
    for names, of in ((net.list_arguments(), args), (net.list_auxiliary_states(), auxs)):
        values = {}
        for name, shape in zip(names, of):  # noqa: B905  # the oracle's numbers of both agree
            if name in shapes:
                continue
            rng = np.random.RandomState(seed + sum(map(ord, name)))
            fan = max(int(np.prod(shape[1:])), 1)
            value = rng.normal(size=shape) * (2 / fan) ** 0.5 if name.endswith("weight") else np.zeros(shape)
            values[name] = mx.nd.array(value + name.endswith(("gamma", "var")))
        found.append(values)
    return found[0], found[1]


def cross_entropy(p: Any, label: np.ndarray) -> float:
    p = p.asnumpy().astype(np.float64)
    return float(-np.log(np.maximum(p[np.arange(len(p)), label.reshape(-1).astype(int)], 1e-12)).mean())


def fingerprint(module: Any) -> dict[str, list[float]]:
    """Some numbers of each parameter."""
    args, auxs = module.get_params()
    found = {}
    for name, x in sorted({**args, **auxs}.items()):
        a = x.asnumpy().reshape(-1).astype("d")
        found[name] = [float(a.sum()), float(np.abs(a).sum()), float(a[0]), float(a[-1])]
    return found


def train(module: Any, batches: Iterator[Any], losses: Callable[[Any], list[float]]) -> Result:
    """Runs a step for each batch; `losses(batch)` are read after it."""
    curve = []
    for batch in batches:
        module.forward_backward(batch)
        module.update()
        curve.append(losses(batch))
    return {"losses": curve, "params": fingerprint(module)}


def batches_of(mx: Any, data: list[np.ndarray], label: list[np.ndarray], steps: int = STEPS) -> Iterator[Any]:
    """Batches in order, beginning again at the end."""
    n = len(data[0]) // BATCH
    for i in range(steps):
        part = slice(i % n * BATCH, (i % n + 1) * BATCH)
        yield mx.io.DataBatch([mx.nd.array(a[part]) for a in data], [mx.nd.array(a[part]) for a in label], pad=0)


def classifier(mx: Any, net: Any, shape: tuple[int, ...], classes: int, optimizer: str, options: dict[str, Any],
               seed: int = 0, context: Any = None, steps: int = STEPS, **more: Any) -> Result:
    """Trains a net with one input on blobs."""
    x, y = blobs(np.random.RandomState(seed + 1), 6 * BATCH, shape, classes)
    module = mx.mod.Module(net, context=context or mx.cpu(), **more)
    shapes: dict[str, Any] = {"data": (BATCH, *shape), "softmax_label": (BATCH,)}
    module.bind([("data", shapes["data"])], [("softmax_label", (BATCH,))])
    module.init_params(None, *parameters(mx, net, seed, **shapes))
    module.init_optimizer(optimizer=optimizer, optimizer_params=options)

    def losses(batch: Any) -> list[float]:
        return [cross_entropy(module.get_outputs()[0], batch.label[0].asnumpy())]

    return train(module, batches_of(mx, [x], [y], steps), losses)


# ---- networks


def mlp(mx: Any) -> Any:
    h = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=12, name="fc1")
    h = mx.sym.Activation(h, act_type="tanh")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(h, num_hidden=3, name="fc2"), name="softmax")


def lenet(mx: Any) -> Any:
    h = mx.sym.Variable("data")
    for i, filters in enumerate((6, 8)):
        h = mx.sym.Convolution(h, kernel=(3, 3), num_filter=filters, name=f"conv{i}")
        h = mx.sym.Pooling(mx.sym.Activation(h, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
    h = mx.sym.Activation(mx.sym.FullyConnected(h, num_hidden=16, name="fc1"), act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(h, num_hidden=4, name="fc2"), name="softmax")


def resnet(mx: Any) -> Any:
    def conv(x: Any, filters: int, stride: int, name: str) -> Any:
        x = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), stride=(stride, stride), num_filter=filters, no_bias=True,
                               name=name)
        return mx.sym.BatchNorm(x, fix_gamma=False, eps=2e-5, momentum=0.9, name=f"{name}_bn")

    h = mx.sym.Activation(conv(mx.sym.Variable("data"), 6, 1, "stem"), act_type="relu")
    for i, filters in enumerate((6, 8)):
        stride = 1 if filters == 6 else 2
        inner = mx.sym.Activation(conv(h, filters, stride, f"unit{i}_a"), act_type="relu")
        short = h if stride == 1 else mx.sym.Convolution(h, kernel=(1, 1), stride=(2, 2), num_filter=filters,
                                                         no_bias=True, name=f"unit{i}_sc")
        h = mx.sym.Activation(conv(inner, filters, 1, f"unit{i}_b") + short, act_type="relu")
    h = mx.sym.Flatten(mx.sym.Pooling(h, global_pool=True, pool_type="avg", kernel=(2, 2)))
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(h, num_hidden=4, name="fc"), name="softmax")


def unrolled(mx: Any, length: int, vocabulary: int = 11, hidden: int = 8) -> Any:
    """A language model: an LSTM written out in simple operators, the label of every step its own row."""
    embed = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=vocabulary, output_dim=6, name="embed")
    words = mx.sym.SliceChannel(embed, num_outputs=length, axis=1, squeeze_axis=True, name="words")
    w = {n: mx.sym.Variable(f"lstm_{n}") for n in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")}
    c = h = None
    states = []
    for t in range(length):
        gates = mx.sym.FullyConnected(words[t], w["i2h_weight"], w["i2h_bias"], num_hidden=4 * hidden, name=f"i2h{t}")
        if h is not None:
            gates = gates + mx.sym.FullyConnected(h, w["h2h_weight"], w["h2h_bias"], num_hidden=4 * hidden,
                                                  name=f"h2h{t}")
        i, f, g, o = mx.sym.SliceChannel(gates, num_outputs=4, name=f"gates{t}")
        new = mx.sym.sigmoid(i) * mx.sym.tanh(g)
        c = new if c is None else mx.sym.sigmoid(f) * c + new
        h = mx.sym.sigmoid(o) * mx.sym.tanh(c)
        states.append(mx.sym.expand_dims(h, axis=1))
    rows = mx.sym.Reshape(mx.sym.Concat(*states, dim=1), shape=(-1, hidden))
    scores = mx.sym.FullyConnected(rows, num_hidden=vocabulary, name="out")
    label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
    return mx.sym.SoftmaxOutput(scores, label, name="softmax")


# ---- cases


def with_optimizer(name: str) -> Callable[[Any], Result]:
    return lambda mx: classifier(mx, mlp(mx), (10,), 3, _CLASS.get(name, name), OPTIMIZERS[name])


def scheduled_lenet(mx: Any) -> Result:
    rate = mx.lr_scheduler.FactorScheduler(step=10, factor=0.7)
    return classifier(mx, lenet(mx), (1, 14, 14), 4, "sgd",
                      {"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-3, "lr_scheduler": rate})


def resnet_momentum(mx: Any) -> Result:
    return classifier(mx, resnet(mx), (3, 8, 8), 4, "sgd", {"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-4})


def resnet_adam(mx: Any) -> Result:
    return classifier(mx, resnet(mx), (3, 8, 8), 4, "adam", {"learning_rate": 0.003})


def two_devices(mx: Any) -> Result:
    """Gradients are summed over devices, batch norm counts each device's half."""
    return classifier(mx, resnet(mx), (3, 8, 8), 4, "sgd", {"learning_rate": 0.05, "momentum": 0.9},
                      context=[mx.cpu(0), mx.cpu(1)])


def frozen(mx: Any) -> Result:
    return classifier(mx, lenet(mx), (1, 14, 14), 4, "adam", {"learning_rate": 0.01},
                      fixed_param_names=["conv0_weight", "conv0_bias"])


def several_inputs_and_outputs(mx: Any) -> Result:
    """Two inputs that share a layer, a class and a number to predict."""
    rng = np.random.RandomState(5)
    (a, y), b = blobs(rng, 6 * BATCH, (6,), 3), rng.normal(size=(6 * BATCH, 6)).astype("f")
    z = (b.sum(1, keepdims=True) + y[:, None]).astype("f")
    w = mx.sym.Variable("shared_weight")
    left, right = (mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Variable(n), w, no_bias=True, num_hidden=8,
                                                           name=f"fc_{n}"), act_type="relu") for n in ("a", "b"))
    both = mx.sym.Concat(left, right, dim=1)
    scores = mx.sym.FullyConnected(both, num_hidden=3, name="fc_y")
    first = mx.sym.SoftmaxOutput(scores, mx.sym.Variable("y"), name="y_out")
    second = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(both, num_hidden=1, name="fc_z"), mx.sym.Variable("z"),
                                           grad_scale=0.1, name="z_out")
    net = mx.sym.Group([first, second])
    shapes: dict[str, Any] = {"a": (BATCH, 6), "b": (BATCH, 6), "y": (BATCH,), "z": (BATCH, 1)}
    module = mx.mod.Module(net, data_names=["a", "b"], label_names=["y", "z"])
    module.bind([(n, shapes[n]) for n in "ab"], [(n, shapes[n]) for n in "yz"])
    module.init_params(None, *parameters(mx, net, **shapes))
    module.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.01})

    def losses(batch: Any) -> list[float]:
        p, q = module.get_outputs()
        return [cross_entropy(p, batch.label[0].asnumpy()),
                float(((q.asnumpy().astype("d") - batch.label[1].asnumpy()) ** 2).mean())]

    return train(module, batches_of(mx, [a, b], [y, z]), losses)


def added_gradients(mx: Any) -> Result:
    """grad_req "add": the gradients of two batches make a step."""
    net = mlp(mx)
    x, y = blobs(np.random.RandomState(2), 6 * BATCH, (10,), 3)
    shapes: dict[str, Any] = {"data": (BATCH, 10), "softmax_label": (BATCH,)}
    module = mx.mod.Module(net)
    module.bind([("data", (BATCH, 10))], [("softmax_label", (BATCH,))], grad_req="add")
    module.init_params(None, *parameters(mx, net, **shapes))
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.05, "momentum": 0.9})
    curve = []
    for i, batch in enumerate(batches_of(mx, [x], [y])):
        module.forward_backward(batch)
        curve.append([cross_entropy(module.get_outputs()[0], batch.label[0].asnumpy())])
        if i % 2:
            module.update()
            for grads in module._exec_group.grad_arrays:
                grads[0][:] = 0
    return {"losses": curve, "params": fingerprint(module)}


LENGTHS = (2, 3, 5)


def sentences(mx: Any, steps: int = STEPS) -> Iterator[Any]:
    """Batches of number words that count up, of three lengths."""
    rng = np.random.RandomState(3)
    for _ in range(steps):
        length = LENGTHS[rng.randint(3)]
        words = (rng.randint(1, 10, (BATCH, 1)) + np.arange(length + 1) * rng.randint(1, 3, (BATCH, 1))) % 11
        yield mx.io.DataBatch(
            [mx.nd.array(words[:, :-1])], [mx.nd.array(words[:, 1:])], pad=0, bucket_key=length,
            provide_data=[mx.io.DataDesc("data", (BATCH, length))],
            provide_label=[mx.io.DataDesc("softmax_label", (BATCH, length))])


def bucketing_module(mx: Any, optimizer: str = "adam", context: Any = None, **options: Any) -> Any:
    """Ready to run `sentences`."""
    longest = max(LENGTHS)
    module = mx.mod.BucketingModule(lambda n: (unrolled(mx, n), ("data",), ("softmax_label",)),
                                    default_bucket_key=longest, context=context or mx.cpu())
    shapes: dict[str, Any] = {"data": (BATCH, longest), "softmax_label": (BATCH, longest)}
    module.bind([("data", shapes["data"])], [("softmax_label", shapes["softmax_label"])])
    module.init_params(None, *parameters(mx, unrolled(mx, longest), **shapes))
    module.init_optimizer(optimizer=optimizer, optimizer_params=options or {"learning_rate": 0.02})
    return module


def bucketing(mx: Any) -> Result:
    module = bucketing_module(mx)

    def losses(batch: Any) -> list[float]:
        return [cross_entropy(module.get_outputs()[0], batch.label[0].asnumpy())]

    return train(module, sentences(mx), losses)


def states(mx: Any) -> Result:
    """Truncated back-propagation: the last hidden state of a batch is the first of the next one."""
    h, x = mx.sym.Variable("h0", shape=(BATCH, 5)), mx.sym.Variable("data")
    new = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=5, name="i2h")
                            + mx.sym.FullyConnected(h, num_hidden=5, name="h2h"), act_type="tanh")
    out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(new, num_hidden=3, name="fc"), name="softmax")
    net = mx.sym.Group([out, mx.sym.BlockGrad(new)])
    data, label = blobs(np.random.RandomState(7), 6 * BATCH, (4,), 3)
    shapes: dict[str, Any] = {"data": (BATCH, 4), "h0": (BATCH, 5), "softmax_label": (BATCH,)}
    module = mx.mod.Module(net, state_names=["h0"])
    module.bind([("data", (BATCH, 4))], [("softmax_label", (BATCH,))])
    module.init_params(None, *parameters(mx, net, **shapes))
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1, "momentum": 0.5})
    module.set_states(value=0)
    curve = []
    for batch in batches_of(mx, [data], [label]):
        module.forward_backward(batch)
        module.update()
        outputs = module.get_outputs(merge_multi_context=False)
        curve.append([cross_entropy(outputs[0][0], batch.label[0].asnumpy())])
        module.set_states(states=[[o.copy() for o in outputs[1]]])
    return {"losses": curve, "params": fingerprint(module)}


def sequence_of_modules(mx: Any) -> Result:
    """Features, then a loss written in Python."""
    h = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1"), act_type="relu")
    first = mx.mod.Module(h, label_names=None)
    second = mx.mod.Module(mx.sym.softmax(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc2")),
                           label_names=None)

    def gradient(scores: Any, labels: Any) -> Any:
        p, y = scores.asnumpy(), labels.asnumpy().astype(int)
        grad = np.zeros_like(p)
        grad[np.arange(len(y)), y] = -1 / np.maximum(p[np.arange(len(y)), y], 1e-6)
        return grad

    module = mx.mod.SequentialModule()
    module.add(first).add(second, auto_wiring=True)
    module.add(mx.mod.PythonLossModule(grad_func=gradient), take_labels=True, auto_wiring=True)
    x, y = blobs(np.random.RandomState(8), 6 * BATCH, (5,), 3)
    module.bind([("data", (BATCH, 5))], [("softmax_label", (BATCH,))])
    args = {"fc1_weight": (8, 5), "fc1_bias": (8,), "fc2_weight": (3, 8), "fc2_bias": (3,)}
    rng = np.random.RandomState(9)
    values = {n: mx.nd.array(rng.normal(size=s, scale=0.5)) for n, s in args.items()}
    module.init_params(None, arg_params=values, aux_params={})
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.05, "momentum": 0.9})

    def losses(batch: Any) -> list[float]:
        return [cross_entropy(module.get_outputs()[0], batch.label[0].asnumpy())]

    return train(module, batches_of(mx, [x], [y]), losses)


def sparse_linear(mx: Any) -> Result:
    """csr data, a row_sparse weight that only some rows of a batch touch."""
    rng = np.random.RandomState(10)
    columns, n = 200, 6 * BATCH
    dense = np.where(rng.uniform(size=(n, columns)) < 0.03, rng.normal(size=(n, columns)), 0).astype("f")
    label = (dense @ rng.normal(size=columns) > 0).astype("f")
    w = mx.sym.Variable("x_weight", stype="row_sparse", shape=(columns, 2))
    out = mx.sym.broadcast_add(mx.sym.sparse.dot(mx.sym.Variable("data", stype="csr"), w),
                               mx.sym.Variable("bias", shape=(2,)))
    net = mx.sym.SoftmaxOutput(out, name="softmax")
    module = mx.mod.Module(net)
    module.bind([("data", (BATCH, columns))], [("softmax_label", (BATCH,))])
    first = {"x_weight": rng.normal(size=(columns, 2), scale=0.1), "bias": np.zeros(2)}
    module.init_params(None, {k: mx.nd.array(v) for k, v in first.items()}, {})
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.5, "momentum": 0.9, "wd": 1e-3})
    curve = []
    for i in range(STEPS):
        part = slice(i % 6 * BATCH, (i % 6 + 1) * BATCH)
        batch = mx.io.DataBatch([mx.nd.array(dense[part]).tostype("csr")], [mx.nd.array(label[part])], pad=0)
        module.forward_backward(batch)
        module.update()
        curve.append([cross_entropy(module.get_outputs()[0], label[part])])
    return {"losses": curve, "params": fingerprint(module)}


CASES: dict[str, Callable[[Any], Result]] = {
    **{f"mlp, {name}": with_optimizer(name) for name in OPTIMIZERS},
    "lenet, momentum and a schedule": scheduled_lenet,
    "lenet, frozen layer, adam": frozen,
    "resnet, momentum": resnet_momentum,
    "resnet, adam": resnet_adam,
    "resnet on two devices": two_devices,
    "several inputs and outputs": several_inputs_and_outputs,
    "gradients of two batches": added_gradients,
    "buckets": bucketing,
    "states": states,
    "modules in a row, a loss in Python": sequence_of_modules,
    "sparse": sparse_linear,
}


def run_case(mx: Any, name: str) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return CASES[name](mx)
