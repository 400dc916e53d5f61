"""What the tests of modules start from."""

from __future__ import annotations

from typing import Any

import numpy as np

import symjax as mx
from tests.module_cases import BATCH, mlp, parameters

N, WIDTH = 90, 10
SHAPES = {"data": (BATCH, WIDTH), "softmax_label": (BATCH,)}
X = np.random.RandomState(0).normal(size=(N, WIDTH)).astype("f")
Y = (X[:, 0] > 0).astype("f") + (X[:, 1] > 0)


def data(n: int = N, **options: Any) -> Any:
    return mx.io.NDArrayIter(X[:n], Y[:n], BATCH, **options)


def ready(optimizer: str | None = "sgd", net: Any = None, bind: dict[str, Any] | None = None, **options: Any) -> Any:
    """A bound module with parameters, and an optimizer."""
    net = mlp(mx) if net is None else net
    module = mx.mod.Module(net, **options)
    module.bind([("data", SHAPES["data"])], [("softmax_label", SHAPES["softmax_label"])], **(bind or {}))
    module.init_params(None, *parameters(mx, net, **SHAPES))
    if optimizer:
        module.init_optimizer(optimizer=optimizer, optimizer_params={"learning_rate": 0.1})
    return module


def values(module: Any) -> dict[str, np.ndarray]:
    args, auxs = module.get_params()
    return {n: a.asnumpy() for n, a in {**args, **auxs}.items()}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray], rtol: float = 0) -> None:
    assert list(a) == list(b)
    for n in a:
        np.testing.assert_allclose(a[n], b[n], rtol=rtol, atol=rtol, err_msg=n)


def batch(i: int = 0, n: int = BATCH) -> Any:
    part = slice(i * n, (i + 1) * n)
    return mx.io.DataBatch([mx.nd.array(X[part])], [mx.nd.array(Y[part])], pad=0)


def step(module: Any, one: Any) -> None:
    module.forward_backward(one)
    module.update()
