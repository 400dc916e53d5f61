"""Models on sparse data, trained by functions of `mx`: real MXNet, or symjax.

`tests/oracle/record_sparse_training.py` records what MXNet gives; `test_sparse_training.py` compares.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROWS, BATCH, EPOCHS = 2000, 256, 2
FEATURES, FACTORS = 100_000, 8
Batches = Callable[[], Iterator[dict[str, Any]]]


@dataclasses.dataclass
class Model:
    """A graph with its data, first weights and optimizer.

    Attributes:
      net: the symbol; its first output is a prediction of `label`.
      weights: the weights by name, numpy.
      shapes: those of the other arguments.
      batches: gives these arguments for each batch of an epoch.
      loss: (predictions, labels) -> a number.
      optimizer: what trains.
      label: name of the argument that is predicted.
    """

    net: Any
    weights: dict[str, np.ndarray]
    shapes: dict[str, tuple[int, ...]]
    batches: Batches
    loss: Callable[[np.ndarray, np.ndarray], float]
    optimizer: Any
    label: str = "label"


# ---- data


def zipf(rng: np.random.RandomState, size: Any, n: int) -> np.ndarray:
    """Ids below n, the first ones most frequent."""
    return (n * rng.uniform(size=size) ** 6).astype(np.int64)


def matrix(rng: np.random.RandomState, columns: int, per_row: int = 39) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns (values, columns, row boundaries) of ROWS rows with up to `per_row` entries, a third of them not 1."""
    rows = [np.unique(zipf(rng, per_row, columns)) for _ in range(ROWS)]
    indices = np.concatenate(rows)
    values = np.where(rng.uniform(size=len(indices)) < 0.3, rng.uniform(0.1, 2, len(indices)).round(3), 1.0)
    return values.astype(np.float32), indices, np.concatenate([[0], np.cumsum([len(r) for r in rows])])


def planted(rng: np.random.RandomState, x: tuple[np.ndarray, np.ndarray, np.ndarray], columns: int) -> np.ndarray:
    """Labels 0 and 1 of a linear model."""
    values, indices, indptr = x
    w = rng.normal(size=columns)
    score = np.add.reduceat(values * w[indices], indptr[:-1])
    return (score + rng.normal(size=ROWS) > 0).astype(np.float32)


def write_libsvm(path: Path, x: tuple[np.ndarray, np.ndarray, np.ndarray], label: np.ndarray) -> None:
    values, indices, indptr = x
    lines = []
    for i in range(len(label)):
        at = slice(indptr[i], indptr[i + 1])
        entries = (f"{c}:{v:g}" for c, v in zip(indices[at], values[at].astype(np.float64).round(3), strict=True))
        lines.append(f"{label[i]:g} " + " ".join(entries))
    path.write_text("\n".join(lines) + "\n")


def epochs(it: Any, names: Sequence[str]) -> Batches:
    """The batches of an iterator, by argument."""

    # MXNet: a reset before the end of an epoch takes effect after as many batches as happen to be read ahead
    def epoch() -> Iterator[dict[str, Any]]:
        for batch in it:
            yield dict(zip(names, batch.data + (batch.label or []), strict=True))
        it.reset()

    return epoch


def in_memory(mx: Any, last_batch: str = "pad", **arrays: Any) -> tuple[dict[str, tuple[int, ...]], Batches]:
    """Shapes and batches of arrays, csr (given as for `csr_matrix`) or dense."""
    data = {n: mx.nd.sparse.csr_matrix(a, shape=(ROWS, FEATURES)) if isinstance(a, tuple) else mx.nd.array(a)
            for n, a in arrays.items()}  # fmt: skip
    it = mx.io.NDArrayIter(data, batch_size=BATCH, last_batch_handle=last_batch)
    return {d.name: d.shape for d in it.provide_data}, epochs(it, [d.name for d in it.provide_data])


def normal(rng: np.random.RandomState, *shape: int, scale: float = 0.01) -> np.ndarray:
    """First values of a weight. None is 0: a row of zeros would not be stored."""
    return (rng.normal(0, scale, shape)).astype(np.float32)


# ---- losses


def cross_entropy(p: np.ndarray, label: np.ndarray) -> float:
    """Of the probabilities of two classes."""
    return -np.log(p[np.arange(len(p)), label.astype(int)].astype(np.float64)).mean()


def log_loss(p: np.ndarray, label: np.ndarray) -> float:
    """Of the probability of class 1."""
    p = p.astype(np.float64)
    return -np.where(label > 0, np.log(p), np.log1p(-p)).mean()


def square_loss(p: np.ndarray, label: np.ndarray) -> float:
    return ((p.astype(np.float64) - label) ** 2).mean()


# ---- models


def linear(mx: Any, folder: Path) -> Model:
    """Classification of a million features from a libsvm file; momentum, lazily. The last batch is filled up."""
    rng, columns = np.random.RandomState(0), 10 * FEATURES
    x = matrix(rng, columns)
    write_libsvm(folder / "train.libsvm", x, planted(rng, x, columns))
    rows = mx.io.LibSVMIter(data_libsvm=str(folder / "train.libsvm"), data_shape=(columns,), batch_size=BATCH)
    shapes = {"x": (BATCH, columns), "label": (BATCH,)}
    w = mx.sym.Variable("x_weight", stype="row_sparse")
    out = mx.sym.broadcast_add(mx.sym.sparse.dot(mx.sym.Variable("x", stype="csr"), w), mx.sym.Variable("bias"))
    net = mx.sym.SoftmaxOutput(out, mx.sym.Variable("label"), name="out")
    optimizer = mx.optimizer.SGD(learning_rate=0.5, momentum=0.9, wd=1e-3, rescale_grad=1 / BATCH)
    weights = {"x_weight": normal(rng, columns, 2), "bias": normal(rng, 2)}
    return Model(net, weights, shapes, epochs(rows, ["x", "label"]), cross_entropy, optimizer)


def factorization_machine(mx: Any, folder: Path) -> Model:
    """Pairs of features by factors: two weights used by products with the data and with its square; adagrad."""
    rng = np.random.RandomState(1)
    x = matrix(rng, FEATURES)
    label = planted(rng, x, FEATURES)[:, None]
    data = mx.sym.Variable("x", stype="csr")
    v, w = (mx.sym.Variable(n, stype="row_sparse") for n in ("v_weight", "w_weight"))
    squares = mx.sym.sparse.dot(mx.sym.square(data), mx.sym._internal._square_sum(v, axis=1, keepdims=True))
    pairs = mx.sym.sum(mx.sym.square(mx.sym.sparse.dot(data, v)), axis=1, keepdims=True) - squares
    score = mx.sym.broadcast_add(0.5 * pairs + mx.sym.sparse.dot(data, w), mx.sym.Variable("bias"))
    net = mx.sym.LogisticRegressionOutput(score, mx.sym.Variable("label"), name="out")
    weights = {"v_weight": normal(rng, FEATURES, FACTORS), "w_weight": normal(rng, FEATURES, 1), "bias": normal(rng, 1)}
    optimizer = mx.optimizer.AdaGrad(learning_rate=0.02, rescale_grad=1 / BATCH)
    return Model(net, weights, *in_memory(mx, "discard", x=x, label=label), log_loss, optimizer)


def wide_and_deep(mx: Any, folder: Path) -> Model:
    """A linear model beside a network of embedded ids and numbers; adam, lazily."""
    rng, fields, width = np.random.RandomState(2), 4, 8
    x = matrix(rng, FEATURES)
    label = planted(rng, x, FEATURES)
    ids = zipf(rng, (ROWS, fields), FEATURES).astype(np.float32)
    numbers = rng.normal(size=(ROWS, 5)).astype(np.float32)
    wide = mx.sym.sparse.dot(mx.sym.Variable("x", stype="csr"), mx.sym.Variable("wide_weight", stype="row_sparse"))
    table = mx.sym.Variable("embed_weight", stype="row_sparse")
    rows = mx.sym.sparse.Embedding(mx.sym.Variable("ids"), table, input_dim=FEATURES, output_dim=width,
                                   sparse_grad=True)  # fmt: skip
    deep = mx.sym.Concat(mx.sym.Flatten(rows), mx.sym.Variable("numbers"), dim=1)
    deep = mx.sym.Activation(mx.sym.FullyConnected(deep, num_hidden=16, name="fc1"), act_type="relu")
    out = mx.sym.FullyConnected(deep, num_hidden=2, name="fc2") + wide
    net = mx.sym.SoftmaxOutput(out, mx.sym.Variable("label"), name="out")
    weights = {"wide_weight": normal(rng, FEATURES, 2), "embed_weight": normal(rng, FEATURES, width, scale=0.1),
               "fc1_weight": normal(rng, 16, fields * width + 5, scale=0.2), "fc1_bias": normal(rng, 16),
               "fc2_weight": normal(rng, 2, 16, scale=0.3), "fc2_bias": normal(rng, 2)}  # fmt: skip
    batches = in_memory(mx, "discard", x=x, ids=ids, numbers=numbers, label=label)
    optimizer = mx.optimizer.Adam(learning_rate=0.01, wd=1e-3, rescale_grad=1 / BATCH)
    return Model(net, weights, *batches, cross_entropy, optimizer)


def matrix_factorization(mx: Any, folder: Path) -> Model:
    """Ratings by two embeddings; one table is declared row_sparse and the other is not; plain sgd, lazily."""
    rng, users, items = np.random.RandomState(3), 50_000, 20_000
    user, item = zipf(rng, ROWS, users), zipf(rng, ROWS, items)
    taste, kind = rng.normal(size=(users, 2)), rng.normal(size=(items, 2))
    rating = (3 + (taste[user] * kind[item]).sum(1) + rng.normal(0, 0.3, ROWS)).clip(1, 5).astype(np.float32)

    def embedded(name: str, n: int, stype: str | None) -> Any:
        weight = mx.sym.Variable(name + "_weight", stype=stype)
        return mx.sym.sparse.Embedding(mx.sym.Variable(name), weight, input_dim=n, output_dim=FACTORS,
                                       sparse_grad=True)  # fmt: skip

    product = mx.sym.sum(embedded("user", users, "row_sparse") * embedded("item", items, None), axis=1)
    net = mx.sym.LinearRegressionOutput(product, mx.sym.Variable("label"), name="out")
    weights = {n + "_weight": normal(rng, size, FACTORS, scale=0.5) for n, size in (("user", users), ("item", items))}
    batches = in_memory(mx, user=user.astype(np.float32), item=item.astype(np.float32), label=rating)
    optimizer = mx.optimizer.SGD(learning_rate=4.0, wd=1e-4, rescale_grad=1 / BATCH)
    return Model(net, weights, *batches, square_loss, optimizer)


MODELS: dict[str, Callable[[Any, Path], Model]] = {
    "linear": linear, "factorization_machine": factorization_machine, "wide_and_deep": wide_and_deep,
    "matrix_factorization": matrix_factorization,
}  # fmt: skip


# ---- training


def bound(mx: Any, model: Model) -> Any:
    """An executor with the model's first weights, and gradients for them."""
    shapes = {**model.shapes, **{n: w.shape for n, w in model.weights.items()}}
    req = {n: "write" if n in model.weights else "null" for n in model.net.list_arguments()}
    exe = model.net.simple_bind(mx.cpu(), grad_req=req, **shapes)
    for name, value in model.weights.items():
        exe.arg_dict[name][:] = mx.nd.array(value)
    return exe


def step(exe: Any, model: Model, updater: Any, batch: dict[str, Any]) -> float:
    """One update of all weights; returns the loss before it."""
    out = exe.forward(is_train=True, **batch)[0]
    exe.backward()
    for name in model.weights:
        updater(name, exe.grad_dict[name], exe.arg_dict[name])
    return model.loss(out.asnumpy(), batch[model.label].asnumpy())


def run_model(mx: Any, name: str) -> dict[str, Any]:
    """Trains a model and tells the loss of each batch and what became of the weights."""
    with tempfile.TemporaryDirectory() as folder:
        model = MODELS[name](mx, Path(folder))
        exe = bound(mx, model)
        updater = mx.optimizer.get_updater(model.optimizer)
        losses = [step(exe, model, updater, batch) for _ in range(EPOCHS) for batch in model.batches()]
        facts = {n: weight_facts(exe.arg_dict[n].asnumpy(), w) for n, w in model.weights.items()}
        stypes = {n: [exe.arg_dict[n].stype, exe.grad_dict[n].stype] for n in model.weights}
    return {"losses": [round(x, 9) for x in losses], "stypes": stypes, "weights": facts}


def weight_facts(new: np.ndarray, old: np.ndarray) -> dict[str, Any]:
    """The number of rows that changed, how far they went together, and the first and last of them."""
    change = new.astype(np.float64) - old
    rows = np.flatnonzero(change.reshape(len(old), -1).any(1))
    some = rows[[0, len(rows) // 2, -1]]
    return {"changed": len(rows), "moved": float(np.linalg.norm(change)), "rows": some.tolist(),
            "values": [[float(f"{v:.7g}") for v in new[r].reshape(-1)[:4]] for r in some]}  # fmt: skip
