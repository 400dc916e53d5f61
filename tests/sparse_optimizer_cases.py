"""Optimizers on row_sparse gradients, run alike by real MXNet (`oracle/record_sparse_optimizers.py`) and symjax."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

SHAPE = (6, 2)
STEPS = ((0, 2), (2, 3, 4), (), (0, 5), (2,))
"""The rows of the gradient of each step."""

OPTIMIZERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sgd", {}),
    ("sgd", {"lazy_update": False}),
    ("sgd", {"momentum": 0.9}),
    ("sgd", {"momentum": 0.9, "lazy_update": False}),
    ("adam", {"learning_rate": 0.1}),
    ("adam", {"learning_rate": 0.1, "lazy_update": False}),
    ("adagrad", {"learning_rate": 0.1}),
    ("groupadagrad", {"learning_rate": 0.1}),
    ("ftrl", {"learning_rate": 0.1, "lamda1": 0.02}),
    ("nag", {"momentum": 0.9}),
    ("rmsprop", {}),
    ("signum", {}),
    ("adadelta", {}),
    ("ftml", {}),
    ("nadam", {}),
)
NO_DECAY = ("adagrad", "groupadagrad", "nag")
"""The first two have none for such gradients. MXNet: in place, NAG's momentum decays by the new weight."""
COMMON = ({}, {"rescale_grad": 0.5, "clip_gradient": 0.2, "wd": 0.1})


def cases() -> list[tuple[str, dict[str, Any], str]]:
    """(optimizer, its arguments, storage type of the weight)."""
    found = []
    for (name, args), common, stype in itertools.product(OPTIMIZERS, COMMON, ("default", "row_sparse")):
        given = {k: v for k, v in common.items() if k != "wd" or name not in NO_DECAY}
        found.append((name, {**args, **given}, stype))
    return found


def case_id(case: tuple[str, dict[str, Any], str]) -> str:
    name, args, stype = case
    return f"{name}({', '.join(f'{k}={v}' for k, v in args.items())}) {stype}"


def start() -> np.ndarray:
    return np.linspace(0.5, 1.6, SHAPE[0] * SHAPE[1]).astype("float32").reshape(SHAPE)


def gradients(mx: Any) -> list[Any]:
    """One row_sparse gradient for each step."""
    found = []
    for i, rows in enumerate(STEPS):
        data = (np.arange(len(rows) * 2).reshape(-1, 2) * 0.3 - 0.4 + i * 0.1).astype("float32")
        found.append(mx.nd.sparse.row_sparse_array((data, rows), shape=SHAPE) if rows else
                     mx.nd.sparse.zeros("row_sparse", SHAPE))
    return found


def trained(mx: Any, case: tuple[str, dict[str, Any], str]) -> list[list[float]]:
    """The weight after the steps."""
    name, args, stype = case
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, param_idx2name={0: "embed_weight"}, **args))
    weight = mx.nd.array(start()).tostype(stype)
    for g in gradients(mx):
        updater(0, g, weight)
    return [[float(x) for x in row] for row in weight.asnumpy()]
