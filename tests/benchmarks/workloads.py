"""Workloads that run under symjax and under real MXNet alike.

Each takes the module `mx` and returns a step to be timed: a function that runs once and waits for its results.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    from tests.benchmarks.sparse_workloads import SPARSE
    from tests.benchmarks.training_workloads import TRAINING
except ImportError:  # run as a worker, beside it
    from sparse_workloads import SPARSE  # type: ignore[no-redef]
    from training_workloads import TRAINING  # type: ignore[no-redef]

Step = Callable[[], Any]
WORKLOADS: dict[str, Callable[[Any], Step]] = {}


def workload(make: Callable[[Any], Step]) -> Callable[[Any], Step]:
    WORKLOADS[make.__name__] = make
    return make


def mlp(mx: Any) -> Any:
    x = mx.sym.Variable("data")
    for i, hidden in enumerate((128, 64)):
        x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=hidden, name=f"fc{i}"), act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=10, name="out"), name="softmax")


@workload
def mlp_step(mx: Any) -> Step:
    """Forward, backward and in-place SGD of a 784-128-64-10 MLP, batch 64; one call is 20 steps."""
    net = mlp(mx)
    inputs = ("data", "softmax_label")
    req = {n: "null" if n in inputs else "write" for n in net.list_arguments()}
    ex = net.simple_bind(mx.cpu(), data=(64, 784), grad_req=req)
    rng = np.random.RandomState(0)
    for n, a in ex.arg_dict.items():
        if n not in inputs:
            a[:] = rng.uniform(-0.1, 0.1, a.shape)
    images, labels = mx.nd.array(rng.rand(64, 784)), mx.nd.array(rng.randint(0, 10, 64))
    pairs = [(ex.arg_dict[n], ex.grad_dict[n]) for n in net.list_arguments() if n not in inputs]

    def step() -> None:
        for _ in range(20):
            ex.forward(is_train=True, data=images, softmax_label=labels)
            ex.backward()
            for weight, grad in pairs:
                mx.nd.sgd_update(weight, grad, out=weight, lr=0.1, wd=1e-4, rescale_grad=1 / 64)
        for weight, _ in pairs:
            weight.wait_to_read()

    return step


def residual_unit(mx: Any, x: Any, filters: int, stride: int, same: bool, name: str) -> Any:
    def conv(x: Any, n: int, kernel: int, stride: int, suffix: str) -> Any:
        pad = (kernel // 2, kernel // 2)
        x = mx.sym.Convolution(
            x,
            num_filter=n,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=pad,
            no_bias=True,
            name=f"{name}_conv{suffix}",
        )
        return mx.sym.BatchNorm(x, fix_gamma=False, eps=2e-5, name=f"{name}_bn{suffix}")

    y = mx.sym.Activation(conv(x, filters // 4, 1, 1, "1"), act_type="relu")
    y = mx.sym.Activation(conv(y, filters // 4, 3, stride, "2"), act_type="relu")
    y = conv(y, filters, 1, 1, "3")
    shortcut = x if same else conv(x, filters, 1, stride, "_sc")
    return mx.sym.Activation(y + shortcut, act_type="relu")


def resnet50(mx: Any) -> Any:
    x = mx.sym.Convolution(
        mx.sym.Variable("data"), num_filter=64, kernel=(7, 7), stride=(2, 2), pad=(3, 3), no_bias=True, name="conv0"
    )
    x = mx.sym.Activation(mx.sym.BatchNorm(x, fix_gamma=False, name="bn0"), act_type="relu")
    x = mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    for stage, (units, filters) in enumerate(zip((3, 4, 6, 3), (256, 512, 1024, 2048), strict=True)):
        for unit in range(units):
            stride = 2 if unit == 0 and stage else 1
            x = residual_unit(mx, x, filters, stride, unit > 0, f"stage{stage}_unit{unit}")
    x = mx.sym.Flatten(mx.sym.Pooling(x, global_pool=True, kernel=(7, 7), pool_type="avg"))
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=1000, name="fc1"), name="softmax")


@workload
def resnet50_bind(mx: Any) -> Step:
    """`simple_bind` of a freshly built ResNet-50, without compiling it."""
    net = resnet50(mx)
    return lambda: net.simple_bind(mx.cpu(), data=(1, 3, 224, 224), grad_req="null")


def first(make: Callable[[Any], Step]) -> Callable[[Any], Step]:
    """Marks a workload whose first call alone counts."""
    make.first_only = True  # type: ignore[attr-defined]
    return make


@workload
@first
def resnet50_first_bind(mx: Any) -> Step:
    """The first `simple_bind` of ResNet-50 in a process, shapes never seen before."""
    return resnet50_bind(mx)


@workload
@first
def largest_graph(mx: Any) -> Step:
    """Load and infer a graph of 1,300 nodes given as a file (`SYMJAX_BENCH_GRAPH`, `…_SHAPES`), first call."""
    path = os.environ["SYMJAX_BENCH_GRAPH"]
    shapes = {k: tuple(v) for k, v in json.loads(os.environ["SYMJAX_BENCH_SHAPES"]).items()}
    mx.sym.Activation(mx.sym.Variable("x"), act_type="relu")  # imports are not what is timed
    return lambda: mx.sym.load(path).infer_shape(**shapes)


@workload
def imperative_update(mx: Any) -> Step:
    """1,000 `nd.sgd_update` calls on a small array: the cost of an imperative call."""
    weight, grad = mx.nd.ones((16,)), mx.nd.ones((16,))

    def step() -> None:
        for _ in range(1000):
            mx.nd.sgd_update(weight, grad, out=weight, lr=0.1, wd=0.0, rescale_grad=1.0)
        weight.wait_to_read()

    return step


@workload
def updater_update(mx: Any) -> Step:
    """1,000 updates of a small array by SGD with momentum through an `Updater`; compare with `imperative_update`."""
    opt = mx.optimizer.SGD(momentum=0.9, wd=0.1, param_idx2name={0: "a_weight"}, rescale_grad=1 / 64)
    updater, weight, grad = mx.optimizer.get_updater(opt), mx.nd.ones((16,)), mx.nd.ones((16,))

    def step() -> None:
        for _ in range(1000):
            updater(0, grad, weight)
        weight.wait_to_read()

    return step


def sparse_update(mx: Any, name: str, stype: str, states: int, **params: float) -> Step:
    """Ten updates of a table of 10^6 rows of 64 by a row_sparse gradient of 1,000 rows."""
    rows, width = 10**6, 64
    rng = np.random.RandomState(0)
    grads = [
        mx.nd.sparse.row_sparse_array(
            (np.ones((1000, width), "float32"), np.sort(rng.choice(rows, 1000, replace=False))), shape=(rows, width)
        )
        for _ in range(10)
    ]
    weight = mx.nd.ones((rows, width)).tostype(stype)
    own = [mx.nd.zeros((rows, width), stype=stype) for _ in range(states)]
    update = getattr(mx.nd.sparse, name)

    def step() -> None:
        for i, grad in enumerate(grads):
            update(weight, grad, *own, out=weight, lr=0.1 / (i + 1), **params)
        weight.wait_to_read()

    return step


@workload
def sparse_sgd(mx: Any) -> Step:
    """Ten lazy SGD updates of a dense table, see `sparse_update`."""
    return sparse_update(mx, "sgd_update", "default", 0)


@workload
def sparse_adam(mx: Any) -> Step:
    """Ten lazy Adam updates of a row_sparse table, see `sparse_update`."""
    return sparse_update(mx, "adam_update", "row_sparse", 2)


@workload
def sparse_adagrad(mx: Any) -> Step:
    """Ten AdaGrad updates of a row_sparse table, see `sparse_update`."""
    return sparse_update(mx, "adagrad_update", "row_sparse", 1)


@workload
def params_load(mx: Any) -> Step:
    """`nd.load` of 100 arrays of 1 MB, without using them."""
    path = os.path.join(tempfile.gettempdir(), f"symjax-bench-{os.getpid()}.params")
    mx.nd.save(path, {f"arg:w{i}": mx.nd.ones((512, 512)) for i in range(100)})
    return lambda: mx.nd.load(path)


@workload
def json_round_trip(mx: Any) -> Step:
    """`tojson` and `load_json` of ResNet-50."""
    net = resnet50(mx)
    return lambda: io.StringIO(mx.sym.load_json(net.tojson()).tojson())


WORKLOADS.update(SPARSE)
WORKLOADS.update(TRAINING)
