"""What metrics give, as functions of `mx`: real MXNet, or symjax.

`tests/oracle/record_metrics.py` records what MXNet gives; `test_metric.py` compares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BATCHES = 3
ROWS = 6

# name: (metric, arguments, what the batches are)
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "acc": ("acc", {}, "classes"),
    "accuracy_of_classes": ("accuracy", {}, "labels"),
    "accuracy_axis2": ("accuracy", {"axis": 2}, "sequences"),
    "accuracy_axis-1": ("accuracy", {"axis": -1, "name": "mine"}, "classes"),
    "top2": ("top_k_acc", {"top_k": 2}, "classes"),
    "top3": ("top_k_accuracy", {"top_k": 3}, "classes"),
    "f1": ("f1", {}, "binary"),
    "f1_micro": ("f1", {"average": "micro"}, "binary"),
    "mcc": ("mcc", {}, "binary"),
    "mcc_micro": ("mcc", {"average": "micro"}, "binary"),
    "pcc": ("pcc", {}, "classes"),
    "pcc_binary": ("pcc", {}, "binary"),
    "pcc_of_labels": ("pcc", {"has_global_stats": False}, "labels"),
    "perplexity": ("perplexity", {"ignore_label": None}, "classes"),
    "perplexity_ignore": ("perplexity", {"ignore_label": 1}, "classes"),
    "ce": ("ce", {}, "classes"),
    "ce_eps": ("ce", {"eps": 0.1}, "classes"),
    "nll": ("nll_loss", {}, "classes"),
    "mae": ("mae", {}, "columns"),
    "mae_vector": ("mae", {}, "vectors"),
    "mse": ("mse", {}, "columns"),
    "rmse": ("rmse", {}, "columns"),
    "rmse_wide": ("rmse", {}, "wide"),
    "mse_integers": ("mse", {}, "integers"),
    "mae_half": ("mae", {}, "half"),
    "pearson": ("pearsonr", {}, "columns"),
    "pearson_micro": ("pearsonr", {"average": "micro"}, "columns"),
    "loss": ("loss", {}, "columns"),
    "torch": ("torch", {}, "columns"),
    "caffe": ("caffe", {}, "columns"),
    "ce_two": ("ce", {}, "two"),
    "rmse_two": ("rmse", {}, "two columns"),
    "f1_two": ("f1", {}, "two binary"),
}


def batch(mx: Any, kind: str, seed: int) -> tuple[list[Any], list[Any]]:
    """Labels and predictions of one batch."""
    rng = np.random.RandomState(seed)
    if kind.startswith("two"):
        parts = [batch(mx, kind[4:] or "classes", seed + k) for k in (0, 50)]
        return [p[0][0] for p in parts], [p[1][0] for p in parts]
    scores = rng.rand(ROWS, 2 if kind == "binary" else 4).astype(np.float32)
    scores /= scores.sum(axis=1, keepdims=True)
    label = rng.randint(0, scores.shape[1], ROWS)
    columns, others = rng.randn(2, ROWS, 1)
    label, pred = {
        "classes": (label, scores), "binary": (label, scores),
        "labels": (label, rng.randint(0, 4, ROWS)),
        "sequences": (rng.randint(0, 5, (ROWS, 3)), rng.rand(ROWS, 3, 5)),
        "columns": (columns, others), "vectors": (columns[:, 0], others), "wide": (columns, rng.randn(ROWS, 3)),
        "integers": (label, rng.randint(-3, 3, ROWS)), "half": (columns, others),
    }[kind]
    dtype = {"half": "float16", "integers": "int32"}.get(kind, "float32")
    return [mx.nd.array(label, dtype=dtype)], [mx.nd.array(pred, dtype=dtype)]


def run_case(mx: Any, name: str) -> dict[str, Any]:
    """Values after each batch, local and global; after the second, new local totals begin."""
    metric, kwargs, kind = CASES[name]
    m = mx.metric.create(metric, **kwargs)
    found: dict[str, Any] = {"config": m.get_config(), "empty": m.get()[1]}
    local, everything, n = [], [], []
    for i in range(BATCHES):
        m.update(*batch(mx, kind, 10 * i + 7))
        local.append(float(m.get()[1]))
        everything.append(float(m.get_global()[1]))
        n.append(float(m.num_inst))
        if i == 1:
            m.reset_local()
    found.update(name=m.get()[0], local=local, everything=everything, n=n)
    m.reset()
    found["after"] = float(m.get_global()[1])
    return found


def run_composite(mx: Any) -> dict[str, Any]:
    """A composite metric and one of the user's, by names of outputs and labels."""
    m = mx.metric.create(["acc", "ce", mx.metric.np(lambda label, pred: float(np.abs(pred).sum()), name="mass")])
    mine = mx.metric.CustomMetric(lambda label, pred: (float(label.sum()), 3), name="mine", output_names=["b"],
                                  label_names=["y"])
    m.add(mine)
    for metric in m.metrics[:3]:
        metric.output_names, metric.label_names = ["a"], ["x"]
    for i in range(2):
        (x, y), (a, b) = batch(mx, "two", 10 * i)
        m.update_dict({"x": x, "y": y}, {"a": a, "b": b})
    return {"pairs": [[k, float(v)] for k, v in m.get_name_value()], "text": str(mx.metric.create("acc")),
            "global": [[k, float(v)] for k, v in m.get_global_name_value()],
            "config": mx.metric.create(["acc", "mse"]).get_config()}


def run_errors(mx: Any) -> dict[str, list[str]]:
    """What is refused, and as what."""
    nd, metric = mx.nd, mx.metric
    scores = nd.array([[0.1, 0.9], [0.4, 0.6]])
    attempts = {
        "lengths": lambda: metric.create("acc").update([nd.array([0, 1])], []),
        "sizes": lambda: metric.create("acc").update([nd.array([0, 1, 1])], [scores]),
        "top1": lambda: metric.TopKAccuracy(),
        "top_3d": lambda: metric.TopKAccuracy(2).update([nd.array([0, 1])], [nd.zeros((2, 2, 2))]),
        "top_sizes": lambda: metric.TopKAccuracy(2).update([nd.array([0, 1, 1])], [scores]),
        "perplexity": lambda: metric.Perplexity(None).update([nd.array([0, 1, 1])], [scores]),
        "pearson": lambda: metric.PearsonCorrelation().update([nd.array([0, 1])], [nd.array([1, 2, 3])]),
        "mae": lambda: metric.MAE().update([nd.zeros((2, 3))], [nd.zeros((3, 2))]),
        "unknown": lambda: metric.create("nothing"),
        "not text": lambda: metric.create(3),
        "custom": lambda: metric.np(lambda a, b: 0).get_config(),
        "base": lambda: metric.EvalMetric("x").update([], []),
        "shapes": lambda: metric.check_label_shapes(nd.zeros((2, 3)), nd.zeros((3, 2)), shape=True),
    }
    found = {}
    for name, attempt in attempts.items():
        try:
            attempt()
            found[name] = ["nothing"]
        except Exception as e:
            found[name] = [type(e).__name__, str(e)]
    return found
