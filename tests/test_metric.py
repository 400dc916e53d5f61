"""Metrics: MXNet's numbers, and sums that stay on the device until somebody reads them."""

from __future__ import annotations

import builtins
import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax.lowering import errors
from tests.compiles import compiles
from tests.metric_cases import CASES, batch, run_case, run_composite, run_errors

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "metrics.json").read_text())
NO_TOTALS = ("pearson_micro",)  # MXNet's global value of it is always 0


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    found, wanted = run_case(mx, name), dict(GOLDEN[name])
    assert (found["config"], found["name"], found["n"]) == (wanted["config"], wanted["name"], wanted["n"])
    rtol = 2e-3 if name.endswith("half") else 1e-6
    if name in NO_TOTALS:
        wanted["everything"] = wanted["local"]
    for part in ("empty", "local", "everything", "after"):
        np.testing.assert_allclose(found[part], wanted[part], rtol, 1e-7, err_msg=part)


def test_composite_and_custom() -> None:
    found, wanted = run_composite(mx), GOLDEN["composite"]
    assert (found["text"], found["config"]) == (wanted["text"], wanted["config"])
    for part in ("pairs", "global"):
        assert [k for k, _ in found[part]] == [k for k, _ in wanted[part]]
        np.testing.assert_allclose([v for _, v in found[part]], [v for _, v in wanted[part]], rtol=1e-6)


def test_errors() -> None:
    found, wanted = run_errors(mx), GOLDEN["errors"]
    for name, (kind, text) in wanted.items():
        mine, message = found[name]
        assert mine == kind or issubclass(getattr(errors, mine), getattr(builtins, kind)), name
        assert text in message or (name == "not text" and message.startswith(text)), (name, message)


@contextmanager
def no_fetching() -> Iterator[None]:
    """Refuses every way from a JAX array to the host."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("fetched")

    kind: Any = type(jnp.zeros(2))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("__array__", "__float__", "__int__", "__bool__", "__index__", "item", "tolist"):
            patch.setattr(kind, name, refuse)
        patch.setattr(mx.nd.NDArray, "asnumpy", refuse)
        patch.setattr(jax, "device_get", refuse)
        yield


def test_updates_fetch_nothing() -> None:
    batches = {n: batch(mx, kind, 3) for n, (_, _, kind) in CASES.items()}
    metrics = {n: mx.metric.create(CASES[n][0], **CASES[n][1]) for n in CASES}
    for n, m in metrics.items():
        m.update(*batches[n])  # compiles: constants are read
    with no_fetching():
        for n, m in metrics.items():
            m.update(*batches[n])
            with pytest.raises(AssertionError, match="fetched"):
                m.get()
    for n, (kind, kwargs, _) in CASES.items():
        m = mx.metric.create(kind, **kwargs)
        for _ in range(2):
            m.update(*batches[n])
            assert m.num_inst > 0
        value = m.get()[1]
        m.reset()
        m.update(*batches[n])
        m.update(*batches[n])
        assert m.get()[1] == pytest.approx(value, rel=1e-9, nan_ok=True), n


@pytest.mark.parametrize("name", CASES)
def test_no_compilation_after_the_first_batch(name: str) -> None:
    metric, kwargs, kind = CASES[name]
    m = mx.metric.create(metric, **kwargs)
    m.update(*batch(mx, kind, 1))
    m.get()
    batches = [batch(mx, kind, 2 + i) for i in range(3)]
    with compiles() as count:
        for i, b in enumerate(batches):
            m.update(*b)
            if i == 1:
                m.get()
                m.reset_local()
        m.reset()
        m.update(*batches[0])
        m.get()
    assert count.n == 0


def test_one_call_for_all_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    from symjax.metric import _sums

    calls = []
    real = _sums._compiled
    monkeypatch.setattr(_sums, "_compiled", lambda *args: calls.append(args[0]) or real(*args))
    m = mx.metric.create("ce")
    m.update(*batch(mx, "two", 0))
    assert len(calls) == 1


def test_users_metric() -> None:
    """A subclass written for MXNet: sums in Python, resets by hand."""

    @mx.metric.register
    class Largest(mx.metric.EvalMetric):
        def __init__(self, name: str = "largest") -> None:
            super().__init__(name)

        def update(self, labels: Any, preds: Any) -> None:
            self.sum_metric += float(preds[0].asnumpy().max())
            self.num_inst += 1

    m = mx.metric.create("largest")
    m.update([], [mx.nd.array([1, 5])])
    m.update([], [mx.nd.array([3, 2])])
    assert m.get() == ("largest", 4.0) and m.get_global() == m.get()
    assert str(m) == "EvalMetric: {'largest': 4.0}"
    m.num_inst = 0
    assert np.isnan(m.get()[1])


def test_a_subclass_that_goes_on_adding() -> None:
    class Half(mx.metric.Accuracy):
        def update(self, labels: Any, preds: Any) -> None:
            super().update(labels, preds)
            self.sum_metric /= 2

    m, plain = Half(), mx.metric.Accuracy()
    pair = [mx.nd.array([0, 1])], [mx.nd.array([[1, 0], [0, 1]])]
    m.update(*pair)
    plain.update(*pair)
    assert (m.get()[1], m.get_global()[1], plain.get()[1]) == (0.5, 1.0, 1.0)


@pytest.mark.parametrize("metric", ["f1", "mcc"])
def test_third_class(metric: str) -> None:
    m = mx.metric.create(metric)
    m.update([mx.nd.array([0, 1, 2])], [mx.nd.ones((3, 2))])
    with pytest.raises(ValueError, match="currently only supports binary classification"):
        m.get()


@pytest.mark.parametrize("metric", ["ce", "nll_loss"])
def test_label_that_is_no_class(metric: str) -> None:
    m = mx.metric.create(metric)
    m.update([mx.nd.array([0, 5])], [mx.nd.array([[0.1, 0.9], [0.5, 0.5]])])
    with pytest.raises(IndexError, match="1 labels are out of bounds"):
        m.get()
    m.reset()
    m.update([mx.nd.array([0, -1])], [mx.nd.array([[0.5, 0.5], [0.5, 0.5]])])  # counted from the end, as numpy does
    assert m.get()[1] == pytest.approx(np.log(2))


@pytest.mark.parametrize("name", ["acc", "f1_micro", "pcc", "pearson_micro", "perplexity_ignore"])
def test_copies_and_pickles(name: str) -> None:
    metric, kwargs, kind = CASES[name]
    m = mx.metric.create(metric, **kwargs)
    m.update(*batch(mx, kind, 7))
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        other.update(*batch(mx, kind, 17))
        assert other.get()[1] == pytest.approx(GOLDEN[name]["local"][1], rel=1e-6)
    assert m.get()[1] == pytest.approx(GOLDEN[name]["local"][0], rel=1e-6)


def test_config_makes_the_metric_again() -> None:
    for spec in ("acc", "mse", ["acc", "ce"], mx.metric.Perplexity(3)):
        config = mx.metric.create(spec).get_config()
        assert mx.metric.create(config).get_config() == config
    assert isinstance(mx.metric.create('["top_k_acc", {"top_k": 4}]'), mx.metric.TopKAccuracy)


def test_pcc_over_many_batches_and_new_classes() -> None:
    m = mx.metric.PCC()
    rng = np.random.RandomState(0)
    labels, preds = rng.randint(0, 3, (150, 4)), rng.randint(0, 3, (150, 4))
    labels[100:] += 4
    for label, pred in zip(labels, preds, strict=True):
        m.update([mx.nd.array(label)], [mx.nd.array(pred)])
    cells = np.zeros((7, 7))
    np.add.at(cells, (preds.reshape(-1), labels.reshape(-1)), 1)
    n, x, y = cells.sum(), cells.sum(1), cells.sum(0)
    expected = (cells.diagonal() * n - x * y).sum() / np.sqrt((x * (n - x)).sum() * (y * (n - y)).sum())
    assert m.get()[1] == pytest.approx(expected)


def test_other_kinds_of_arrays() -> None:
    """numpy and JAX arrays, csr labels, one array instead of a list."""
    scores = np.array([[0.2, 0.8], [0.9, 0.1]], np.float32)
    expected = 0.5
    for label in (np.array([1, 1]), mx.nd.array([1, 1]), mx.nd.array([[1, 1]]).tostype("csr")):
        m = mx.metric.create("acc")
        m.update([label], [jnp.asarray(scores)])
        assert m.get()[1] == expected
    m = mx.metric.create("acc")
    m.update(mx.nd.array([1, 1]), mx.nd.array(scores))
    assert m.get()[1] == expected
    m = mx.metric.create("acc")
    m.update([], [])
    assert np.isnan(m.get()[1])


def test_get_metric_gives_an_error_for_a_wrong_place() -> None:
    m = mx.metric.create(["acc"])
    assert isinstance(m.get_metric(0), mx.metric.Accuracy)
    assert isinstance(m.get_metric(3), ValueError)



def test_predictions_on_many_devices() -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tests.metric_sharding"], text=True, check=True,
                          stdout=subprocess.PIPE, env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
                          cwd=Path(__file__).resolve().parents[1])  # fmt: skip
    found = json.loads(done.stdout)
    for name, (metric, kwargs, kind) in CASES.items():
        m = mx.metric.create(metric, **kwargs)
        for i in (0, 1, 2, 0):
            m.update(*batch(mx, kind, 10 * i + 7))
        assert found[name][0] == pytest.approx(m.get()[1], rel=1e-6, nan_ok=True), name
        assert found[name][1] == 0, name
