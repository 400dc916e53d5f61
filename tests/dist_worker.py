"""What one worker of `test_kvstore_dist.py` does; tells the results as a line of JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

import symjax as mx

N, SIZE = 64, 16


def told(array: Any) -> Any:
    return array.asnumpy().tolist()


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(3)
    x = rng.normal(size=(N, 6)).astype("float32")
    return x, (x.sum(1) > 0).astype("float32")


def net() -> Any:
    hidden = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5, name="a"), act_type="tanh")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=2, name="b"), name="softmax")


def trained(kvstore: Any, rank: int, workers: int, optimizer: str = "sgd", **params: Any) -> dict[str, Any]:
    """Fits on this worker's part of every batch; worker 0's first parameters count."""
    x, y = (a.reshape(N // SIZE, workers, SIZE // workers, *a.shape[1:])[:, rank].reshape(-1, *a.shape[1:])
            for a in data())
    mx.random.seed(7 + rank)
    np.random.seed(7 + rank)
    mod = mx.mod.Module(net())
    mod.fit(mx.io.NDArrayIter(x, y, SIZE // workers), num_epoch=3, kvstore=kvstore, optimizer=optimizer,
            optimizer_params={"learning_rate": 0.1, **params}, initializer=mx.init.Xavier(rnd_type="gaussian"))
    return {k: told(v) for k, v in mod.get_params()[0].items()}


def stores(kv: Any, r: int) -> dict[str, Any]:
    """The calls that MXNet's store was recorded with."""
    found: dict[str, Any] = {"workers": kv.num_workers, "type": kv.type}
    out = mx.nd.zeros(5)

    def pulled(key: str) -> Any:
        kv.pull(key, out)
        return told(out)

    kv.init("w", mx.nd.ones(5) * (r + 1))
    found["init"] = pulled("w")
    kv.push("w", [mx.nd.ones(5) * (r + 1)] * 2)
    found["push"] = pulled("w")
    kv.pushpull("w", mx.nd.ones(5) * (r + 1), out=out)
    found["pushpull"] = told(out)
    kv.broadcast("b", mx.nd.ones(5) * (r + 3), out=out)
    found["broadcast"] = told(out)
    kv._barrier()
    half, wide = mx.nd.zeros(3, dtype="float16"), mx.nd.zeros(3, dtype="float64")
    kv.init("h", half)
    kv.init("f", wide)
    kv.push(["h", "f"], [mx.nd.ones(3, dtype="float16") * (r + 1), mx.nd.ones(3, dtype="float64") * 1e-17 * (r + 1)])
    kv.pull(["h", "f"], [half, wide])
    found["half"], found["wide"] = told(half), told(wide)
    kv.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.1, rescale_grad=0.5, momentum=0.9))
    kv.init("v", mx.nd.ones(5))
    found["steps"] = []
    for _ in range(2):
        kv.push("v", mx.nd.ones(5) * (r + 1))
        found["steps"].append(pulled("v"))
    return found


def rows(kv: Any, r: int) -> list[Any]:
    """Row_sparse gradients of different rows in each worker."""
    kv.init("t", mx.nd.array(np.arange(10).reshape(5, 2) + 100 * r).tostype("row_sparse"))
    kv.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.1, rescale_grad=1.0, momentum=0.9))
    found, out = [], mx.nd.sparse.zeros("row_sparse", (5, 2))
    for _ in range(2):
        mine = [0, 3] if r == 0 else [1, 3]
        kv.push("t", mx.nd.sparse.row_sparse_array((np.full((2, 2), 10 * (r + 1), "float32"), mine), shape=(5, 2)))
        kv.row_sparse_pull("t", out, row_ids=mx.nd.array([0, 1, 2, 3, 4]))
        found.append(told(out.data))
    return found


def compressed(kv: Any, r: int) -> list[Any]:
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv.init("w", mx.nd.zeros(5))
    out, found = mx.nd.zeros(5), []
    gradient = mx.nd.array([[0.3, 0.6, -0.7, 1.2, -0.2], [0.3, 0.1, -0.7, 1.2, 0.3]][r])
    for copies in (1, 1, 1, 2, 2, 2):
        kv.push("w", [gradient] * copies)
        kv.pull("w", out)
        found.append(told(out))
    return found


def differs(kv: Any, r: int) -> str:
    """One worker pushes another key than the other."""
    kv.init(["x", "y"], [mx.nd.zeros(2), mx.nd.zeros(3)])
    try:
        kv.push(*(("x", mx.nd.ones(2)) if r == 0 else ("y", mx.nd.ones(3))))
    except mx.MXNetError as e:
        return str(e)
    return ""


def main() -> None:
    kv = mx.kv.create("dist_sync")
    r, n = kv.rank, kv.num_workers
    found = {"rank": r, "stores": stores(kv, r), "rows": rows(mx.kv.create("dist"), r),
             "compressed": compressed(mx.kv.create("dist_device_sync"), r)}
    found["sgd"] = trained("dist_sync", r, n, momentum=0.9)
    found["adam"] = trained(mx.kv.create("dist_device_sync"), r, n, "adam")
    os.environ["MXNET_UPDATE_ON_KVSTORE"] = "0"
    found["by themselves"] = trained("dist_sync", r, n, momentum=0.9)
    del os.environ["MXNET_UPDATE_ON_KVSTORE"]
    found["sgld"] = trained("dist_sync", r, n, "sgld")
    found["differs"] = differs(mx.kv.create("dist_sync"), r)
    print("FOUND" + json.dumps(found))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
