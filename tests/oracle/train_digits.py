"""Train the demo's classifier with real MXNet 1.9.1 and write the files that the package carries.

Run it with the oracle's interpreter, which also needs scikit-learn::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/train_digits.py

Writes, with MXNet's own functions, ``symjax/data/digits-symbol.json`` and ``symjax/data/digits-0010.params``, and
beside them ``digits.npz`` with

* ``train_images`` (1297, 8, 8) uint8 in 0..16, ``train_labels`` (1297,) uint8,
* ``test_images`` (500, 8, 8) uint8, ``test_labels`` (500,) uint8: held out, never seen in training,
* ``test_probabilities`` (500, 10) float32: what MXNet's executor gave for the held-out images.
"""

from __future__ import annotations

import os

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")

import argparse
import logging
from pathlib import Path

import mxnet as mx
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BATCH = 50
EPOCHS = 10
HELD_OUT = 500
SEED = 7


def network() -> mx.sym.Symbol:
    """Two convolutions with batch normalisation and two dense layers on raw pixels (0..16)."""
    data = mx.sym.Variable("data") / 16
    body = data
    for i, channels in enumerate((16, 32), 1):
        body = mx.sym.Convolution(body, kernel=(3, 3), pad=(1, 1), num_filter=channels, no_bias=True, name=f"conv{i}")
        body = mx.sym.BatchNorm(body, fix_gamma=False, eps=1e-5, momentum=0.9, name=f"bn{i}")
        body = mx.sym.Activation(body, act_type="relu", name=f"relu{i}")
    body = mx.sym.Pooling(body, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    body = mx.sym.FullyConnected(mx.sym.Flatten(body, name="flatten"), num_hidden=48, name="fc1")
    body = mx.sym.Activation(body, act_type="relu", name="relu3")
    body = mx.sym.Dropout(body, p=0.3, name="dropout")
    body = mx.sym.FullyConnected(body, num_hidden=10, name="fc2")
    return mx.sym.SoftmaxOutput(body, name="softmax")


def images(values: np.ndarray) -> np.ndarray:
    """(n, 8, 8) uint8 pixels as the network's input, (n, 1, 8, 8) float32."""
    return values[:, None].astype(np.float32)


def main() -> None:
    default = Path(__file__).resolve().parents[2] / "symjax" / "data"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=default)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO)

    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        digits.images.astype(np.uint8), digits.target.astype(np.uint8),
        test_size=HELD_OUT, random_state=SEED, stratify=digits.target,
    )  # fmt: skip

    mx.random.seed(SEED)
    np.random.seed(SEED)
    train = mx.io.NDArrayIter(images(train_x), train_y.astype(np.float32), BATCH, shuffle=True)
    test = mx.io.NDArrayIter(images(test_x), test_y.astype(np.float32), BATCH)
    module = mx.mod.Module(network(), context=mx.cpu())
    module.fit(
        train, test, num_epoch=EPOCHS, optimizer="adam", optimizer_params={"learning_rate": 2e-3, "wd": 1e-4},
        initializer=mx.init.Xavier(magnitude=2),
    )  # fmt: skip

    args, aux = module.get_params()
    mx.model.save_checkpoint(str(out / "digits"), EPOCHS, module.symbol, args, aux)
    probabilities = module.predict(test).asnumpy()
    accuracy = float((probabilities.argmax(1) == test_y).mean())
    np.savez_compressed(
        out / "digits.npz", train_images=train_x, train_labels=train_y,
        test_images=test_x, test_labels=test_y, test_probabilities=probabilities,
    )  # fmt: skip
    size = sum(path.stat().st_size for path in out.glob("digits*"))
    print(f"held-out accuracy {accuracy:.4f}, files {size} bytes")
    assert accuracy >= 0.97, accuracy
    assert size < 500_000, size


if __name__ == "__main__":
    main()
