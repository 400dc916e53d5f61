"""Workloads on sparse arrays, under symjax and real MXNet alike; `sparse_jax` has the same written by hand in JAX.

Sizes are those of click logs: 512 rows of 39 entries out of 10^6 columns, popular columns more often. Steps go through
eight batches in turn, so that nothing worked out for a batch is worked out once only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

BATCH, COLUMNS, ENTRIES, BATCHES = 512, 10**6, 39, 8
IDS, WIDTH = 1024, 64
RATE = 0.1
Step = Callable[[], Any]


@cache
def matrix(rows: int, columns: int, entries: int, seed: int = 0, popular: int = 4) -> tuple[np.ndarray, ...]:
    """(data, indices, indptr) of a csr matrix with the same number of entries in each row."""
    rng = np.random.RandomState(seed)
    indices = []
    for _ in range(rows):
        drawn = np.unique((columns * rng.rand(entries * 2 + 16) ** popular).astype(np.int64))
        while len(drawn) < entries:
            drawn = np.unique(np.concatenate([drawn, rng.randint(0, columns, entries)]))
        indices.append(np.sort(rng.choice(drawn, entries, replace=False)))
    data = rng.uniform(0.1, 1, rows * entries).astype("float32")
    return data, np.concatenate(indices), np.arange(rows + 1, dtype=np.int64) * entries


def batches() -> list[tuple[np.ndarray, ...]]:
    return [matrix(BATCH, COLUMNS, ENTRIES, seed) for seed in range(BATCHES)]


def ids(vocabulary: int) -> list[np.ndarray]:
    return [(vocabulary * np.random.RandomState(s).rand(IDS) ** 4).astype("float32") for s in range(BATCHES)]


def dense(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).rand(rows, columns).astype("float32")


PRODUCTS = {  # name: rows, columns, entries a row, columns on the right, transposed
    **{f"dot_clicks_{n}": (512, 10**6, 39, n, False) for n in (1, 16, 64)},
    **{f"dot_t_clicks_{n}": (512, 10**6, 39, n, True) for n in (1, 16, 64)},
    "dot_1_percent": (512, 10**5, 1000, 16, False),
    "dot_t_1_percent": (512, 10**5, 1000, 16, True),
    "dot_tenth_percent": (512, 10**6, 1000, 16, False),
    "dot_t_tenth_percent": (512, 10**6, 1000, 16, True),
}


def product(mx: Any, rows: int, columns: int, entries: int, width: int, transposed: bool) -> Step:
    """`nd.sparse.dot` of csr and dense; a transposed product is row_sparse."""
    parts = matrix(rows, columns, entries, popular=1)
    lhs = mx.nd.sparse.csr_matrix(parts, shape=(rows, columns))
    rhs = mx.nd.array(dense(rows if transposed else columns, width))
    return lambda: mx.nd.sparse.dot(lhs, rhs, transpose_a=transposed).wait_to_read()


def executor_step(mx: Any, net: Any, shapes: Any, tables: Any, feeds: list[dict[str, Any]], optimizer: str) -> Step:
    """Forward, backward and the lazy update of every parameter, through an executor and an updater."""
    req = {n: "null" if n in shapes else "write" for n in net.list_arguments()}
    ex = net.simple_bind(mx.cpu(), grad_req=req, **shapes)
    for n, a in ex.arg_dict.items():
        if n in tables:
            a[:] = mx.nd.array(dense(*a.shape) * 0.01).tostype(a.stype)
    opt = mx.optimizer.create(optimizer, learning_rate=RATE, wd=0.0)
    update, names = mx.optimizer.get_updater(opt), [n for n in net.list_arguments() if req[n] == "write"]
    count = 0

    def step() -> None:
        nonlocal count
        for name, value in feeds[count % len(feeds)].items():
            value.copyto(ex.arg_dict[name])
        count += 1
        ex.forward(is_train=True)
        ex.backward()
        for i, n in enumerate(names):
            update(i, ex.grad_dict[n], ex.arg_dict[n])
        for n in names:
            ex.arg_dict[n].wait_to_read()

    return step


def embedding(mx: Any, vocabulary: int, optimizer: str) -> Step:
    table = mx.sym.Variable("table", stype="row_sparse")
    rows = mx.sym.sparse.Embedding(mx.sym.Variable("ids"), table, input_dim=vocabulary, output_dim=WIDTH,
                                   sparse_grad=True)  # fmt: skip
    net = mx.sym.MakeLoss(mx.sym.sum(mx.sym.square(rows)))
    feeds = [{"ids": mx.nd.array(x)} for x in ids(vocabulary)]
    return executor_step(mx, net, {"ids": (IDS,)}, {"table"}, feeds, optimizer)


def click_feeds(mx: Any, label: tuple[int, ...]) -> list[dict[str, Any]]:
    y = mx.nd.array((np.arange(BATCH) % 2).reshape(label))
    return [{"x": mx.nd.sparse.csr_matrix(parts, shape=(BATCH, COLUMNS)), "y": y} for parts in batches()]


def linear(mx: Any, optimizer: str) -> Step:
    x, w = mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w", stype="row_sparse", shape=(COLUMNS, 2))
    z = mx.sym.broadcast_add(mx.sym.sparse.dot(x, w), mx.sym.Variable("b", shape=(2,)))
    net = mx.sym.SoftmaxOutput(z, mx.sym.Variable("y"))
    shapes = {"x": (BATCH, COLUMNS), "y": (BATCH,)}
    return executor_step(mx, net, shapes, {"w"}, click_feeds(mx, (BATCH,)), optimizer)


def machine(mx: Any, optimizer: str) -> Step:
    """A factorization machine of rank 16."""
    x, v = mx.sym.Variable("x", stype="csr"), mx.sym.Variable("v", stype="row_sparse", shape=(COLUMNS, 16))
    w, b = mx.sym.Variable("w", stype="row_sparse", shape=(COLUMNS, 1)), mx.sym.Variable("b", shape=(1,))
    squares = mx.sym._internal._square_sum(v, axis=1, keepdims=True)
    pairs = mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)), axis=1, keepdims=True) - mx.sym.dot(mx.sym.square(x), squares)
    z = mx.sym.broadcast_add(mx.sym.dot(x, w), b) + 0.5 * pairs
    net = mx.sym.LogisticRegressionOutput(z, mx.sym.Variable("y"))
    shapes = {"x": (BATCH, COLUMNS), "y": (BATCH, 1)}
    return executor_step(mx, net, shapes, {"v", "w"}, click_feeds(mx, (BATCH, 1)), optimizer)


def libsvm_file(rows: int = 50_000) -> str:
    path = os.path.join(tempfile.gettempdir(), f"symjax-bench-{rows}.libsvm")
    if not os.path.exists(path):
        data, indices, _ = matrix(2048, COLUMNS, ENTRIES)
        lines = [f"{r % 2} " + " ".join(f"{c}:{v:.6g}" for c, v in zip(indices[r * ENTRIES:(r + 1) * ENTRIES].tolist(),
                 data[r * ENTRIES:(r + 1) * ENTRIES].tolist(), strict=True)) for r in range(2048)]  # fmt: skip
        text = "\n".join(lines) + "\n"
        with open(f"{path}.{os.getpid()}", "w") as f:
            f.write(text * (rows // 2048 + 1))
        os.replace(f.name, path)
    return path


def libsvm_epoch(mx: Any) -> Step:
    """One epoch over a libsvm file of 50,000 rows in batches of 512."""
    reader = mx.io.LibSVMIter(data_libsvm=libsvm_file(), data_shape=(COLUMNS,), batch_size=BATCH)

    def step() -> None:
        reader.reset()
        for batch in reader:
            batch.data[0].wait_to_read()

    return step


SPARSE: dict[str, Callable[[Any], Step]] = {
    **{name: partial(lambda mx, sizes: product(mx, *sizes), sizes=sizes) for name, sizes in PRODUCTS.items()},
    **{f"embedding_{o}": partial(embedding, vocabulary=10**6, optimizer=o) for o in ("sgd", "adagrad", "adam")},
    **{f"embedding_10e{p}": partial(embedding, vocabulary=10**p, optimizer="sgd") for p in (5, 6, 7)},
    "linear_sgd": partial(linear, optimizer="sgd"),
    "linear_adagrad": partial(linear, optimizer="adagrad"),
    "machine_adagrad": partial(machine, optimizer="adagrad"),
    "libsvm_epoch": libsvm_epoch,
}
