"""Callbacks and monitors: MXNet's log lines and statistics."""

from __future__ import annotations

import json
import logging
import types
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import symjax as mx
from tests.compiles import compiles
from tests.monitor_cases import MONITORS, network, param, run_callbacks, run_monitor

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "monitor.json").read_text())


def test_callbacks_log_what_mxnet_logs() -> None:
    assert run_callbacks(mx) == GOLDEN["callbacks"]


@pytest.mark.parametrize("name", MONITORS)
def test_monitor(name: str) -> None:
    found, wanted = run_monitor(mx, **MONITORS[name]), GOLDEN["monitors"][name]
    for mine, theirs in zip(found, wanted, strict=True):
        assert [item[:2] for item in mine] == [item[:2] for item in theirs]
        assert [len(item[2]) for item in mine] == pytest.approx([len(item[2]) for item in theirs], abs=2)
        values = [[float(v) for v in item[2].split()] for item in mine]
        np.testing.assert_allclose(values, [[float(v) for v in item[2].split()] for item in theirs], rtol=1e-5)


def _bound(net: Any, **shapes: Any) -> Any:
    ex = net.simple_bind(mx.cpu(), **shapes)
    for a in ex.arg_arrays:
        a[:] = 0.5
    return ex


def test_monitor_of_everything_and_own_statistic(caplog: pytest.LogCaptureFixture) -> None:
    ex = _bound(network(mx), data=(4, 5), softmax_label=(4,))
    mon = mx.mon.Monitor(1, stat_func=lambda x: [x.min(), x.max()], pattern="fc1", monitor_all=True)
    mon.install(ex)
    mon.tic()
    ex.forward()
    with caplog.at_level(logging.INFO):
        mon.toc_print()
    lines = [r.getMessage().split() for r in caplog.records]
    assert lines[0] == ["Batch:", "1", "fc1_weight", "0.5", "0.5"]
    assert ["Batch:", "1", "fc1_output", "1.75", "1.75"] in lines
    assert ["Batch:", "1", "fc1_data", "0.5", "0.5"] in lines


def test_a_monitor_at_rest_costs_nothing() -> None:
    ex = _bound(network(mx), data=(4, 5), softmax_label=(4,))
    seen: list[str] = []
    mon = mx.mon.Monitor(2, stat_func=lambda x: seen.append("") or x)
    mon.install(ex)
    counts = []
    for _ in range(4):
        with compiles() as count:
            mon.tic()
            ex.forward(is_train=True)
            ex.backward()
            mon.toc()
        counts.append(count.n)
    assert len(seen) == 2 * (4 + 9 + 6)  # outputs, gradients, arguments
    assert counts[2:] == [0, 0]


def test_monitor_sees_the_masks_of_the_pass() -> None:
    net = mx.sym.Dropout(mx.sym.Variable("data"), p=0.5, name="drop")
    ex = _bound(net, data=(4, 50))
    seen = []
    ex.set_monitor_callback(lambda name, array: seen.append(array.asnumpy()))
    out = ex.forward(is_train=True)[0].asnumpy()
    assert 0 < (out == 0).mean() < 1
    np.testing.assert_array_equal(seen[0], out)


def test_monitor_refuses_a_wrong_statistic() -> None:
    ex = _bound(network(mx), data=(4, 5), softmax_label=(4,))
    mon = mx.mon.Monitor(1, stat_func=lambda x: 3.0)
    mon.install(ex)
    mon.tic()
    ex.forward()
    with pytest.raises(AssertionError, match="gave float for fc1_output"):
        mon.toc()


def test_checkpoints(tmp_path: Path) -> None:
    net = network(mx)
    save = mx.callback.do_checkpoint(str(tmp_path / "net"), period=2)
    for epoch in range(4):
        save(epoch, net, {"fc1_weight": mx.nd.ones((3, 5)) * epoch}, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net-0002.params", "net-0004.params", "net-symbol.json"]
    _, args, _ = mx.model.load_checkpoint(str(tmp_path / "net"), 4)
    assert args["fc1_weight"].asnumpy().max() == 3

    class Module:
        saved: ClassVar[list[Any]] = []

        def save_checkpoint(self, *args: Any) -> None:
            self.saved.append(args)

    save = mx.callback.module_checkpoint(Module(), "p", period=3, save_optimizer_states=True)
    for epoch in range(6):
        save(epoch)
    assert Module.saved == [("p", 3, True), ("p", 6, True)]


def test_speed_counts_samples(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    now = iter([0.0, 2.0, 2.0, 2.0, 2.0])
    monkeypatch.setattr("symjax.callback.time", types.SimpleNamespace(time=lambda: next(now)))
    speed = mx.callback.Speedometer(batch_size=8, frequent=2)
    with caplog.at_level(logging.INFO):
        for i in range(5):
            speed(param(0, i, None))
    assert [r.getMessage() for r in caplog.records] == [
        "Iter[0] Batch [2]\tSpeed: 8.00 samples/sec", "Iter[0] Batch [4]\tSpeed: inf samples/sec"]
