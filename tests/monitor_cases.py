"""What callbacks log and monitors collect, as functions of `mx`: real MXNet, or symjax."""

from __future__ import annotations

import logging
import re
import types
from typing import Any

import numpy as np


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "root":
            self.lines.append(re.sub(r"Speed: [\d.]+ ", "Speed: # ", record.getMessage()))


def param(epoch: int, nbatch: int, metric: Any) -> Any:
    """What a batch callback is given."""
    return types.SimpleNamespace(epoch=epoch, nbatch=nbatch, eval_metric=metric, locals=None)


def run_callbacks(mx: Any) -> dict[str, list[str]]:
    """The lines that each callback logs in two epochs of 7 batches."""
    made = {
        "speed": lambda: mx.callback.Speedometer(4, 2),
        "speed_going_on": lambda: mx.callback.Speedometer(4, frequent=3, auto_reset=False),
        "bar": lambda: mx.callback.ProgressBar(7, length=11),
        "train": lambda: mx.callback.log_train_metric(3),
        "train_reset": lambda: mx.callback.log_train_metric(2, auto_reset=True),
        "validation": lambda: mx.callback.LogValidationMetricsCallback(),
    }
    found = {}
    root = logging.getLogger()
    level = root.level
    for name, make in made.items():
        for kind in (["acc", "mse"], "none"):
            callback, handler = make(), _Lines()
            metric = None if kind == "none" else mx.metric.create(kind)
            root.addHandler(handler)
            root.setLevel(logging.INFO)
            try:
                for epoch in range(2):
                    if metric is not None:
                        metric.reset()
                    for nbatch in range(7):
                        if metric is not None:
                            rng = np.random.RandomState(nbatch)
                            metric.update([mx.nd.array([0, 1])], [mx.nd.array(rng.rand(2, 2))])
                        callback(param(epoch, nbatch, metric))
            finally:
                root.removeHandler(handler)
                root.setLevel(level)
            found[f"{name} {kind}"] = handler.lines
    return found


def network(mx: Any) -> Any:
    """A small net with auxiliary states."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc1")
    net = mx.sym.Activation(net, act_type="tanh", name="act")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=2, name="fc2"), name="softmax")


def run_monitor(mx: Any, **kwargs: Any) -> list[list[Any]]:
    """What `toc` returns for four batches."""
    ex = network(mx).simple_bind(mx.cpu(), data=(4, 5), softmax_label=(4,))
    rng = np.random.RandomState(0)
    for name, a in ex.arg_dict.items():
        a[:] = rng.randint(0, 2, a.shape) if name == "softmax_label" else rng.randn(*a.shape)
    monitor = mx.monitor.Monitor(**kwargs)
    monitor.install(ex)
    found = []
    for _ in range(4):
        monitor.tic()
        ex.forward(is_train=True)
        ex.backward()
        found.append([[n, k, v] for n, k, v in monitor.toc()])
    return found


MONITORS: dict[str, dict[str, Any]] = {
    "plain": {"interval": 1},
    "every_third": {"interval": 3},
    "weights": {"interval": 2, "pattern": ".*weight"},
    "sorted": {"interval": 1, "pattern": "fc|act", "sort": True},
}
