"""`mx.profiler`, `mx.runtime`, `mx.engine`, `mx.log`."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import pytest

import symjax as mx


@pytest.fixture
def profile(tmp_path: Path) -> Any:
    mx.profiler.set_config(filename=str(tmp_path / "profile.json"), profile_all=True, aggregate_stats=True)
    yield tmp_path / "profile.json"
    mx.profiler.set_state("stop")
    mx.profiler.dumps(reset=True)
    mx.profiler.set_config()


def _events(path: Path, **wanted: Any) -> list[dict[str, Any]]:
    events = json.loads(path.read_text())["traceEvents"]
    return [e for e in events if all(e.get(k) == v for k, v in wanted.items())]


def test_trace(profile: Path) -> None:
    domain = mx.profiler.Domain("work")
    task, counter = domain.new_task("multiply"), domain.new_counter("steps", 3)
    a = mx.nd.ones((50, 50))
    mx.profiler.set_state("run")
    task.start()
    mx.nd.dot(a, a).wait_to_read()
    task.stop()
    counter += 2
    counter.decrement()
    domain.new_marker("here").mark()
    with domain.new_frame("frame"), mx.profiler.Event("event"):
        pass
    mx.profiler.set_state("stop")
    domain.new_task("late").start()
    mx.profiler.dump()
    (span,) = _events(profile, name="multiply", ph="X")
    assert span["cat"] == "work" and span["dur"] > 0
    assert [e["args"]["value"] for e in _events(profile, name="steps")] == [5, 4]
    assert len(_events(profile, name="here", ph="i", s="p")) == 1
    calls = [e for e in _events(profile, name="PjitFunction(dot)") if e["pid"] != span["pid"]]
    assert calls, "JAX's own events are there"
    begin = calls[0]["ts"]
    assert span["ts"] - 50e3 < begin < span["ts"] + span["dur"] + 50e3, "on one clock"
    assert not _events(profile, name="late")
    assert [p.name for p in profile.parent.iterdir()] == ["profile.json"]
    assert (str(domain), str(task), str(counter)) == ("work", "multiply", "steps")


def test_statistics(profile: Path) -> None:
    domain, x = mx.profiler.Domain("work"), mx.nd.ones((3,))
    mx.nd.exp(x).wait_to_read()
    mx.profiler.set_state("run")
    for name in ("a", "a", "b"):
        with domain.new_task(name):
            mx.nd.exp(x).wait_to_read()
    table = mx.profiler.dumps()
    rows = [line.split() for line in table.splitlines()]
    assert ["work"] in rows and rows[5][:5] == ["Name", "Total", "Count", "Time", "(ms)"]
    mx.profiler.set_state("stop")
    found = json.loads(mx.profiler.dumps(format="json", sort_by="count", ascending=True))["Time"]
    assert list(found["work"]) == ["b", "a"] and found["work"]["a"]["Count"] == 2
    assert found["work"]["a"]["Avg"] == pytest.approx(found["work"]["a"]["Total"] / 2)
    assert found["operator"]["exp"]["Count"] == 3 and found["kernel"]
    mx.profiler.dumps(reset=True)
    assert json.loads(mx.profiler.dumps(format="json"))["Time"] == {}
    for wrong in ({"format": "xml"}, {"sort_by": "name"}):
        with pytest.raises(AssertionError, match="Invalid value provided for"):
            mx.profiler.dumps(**wrong)


def test_pause(profile: Path) -> None:
    domain = mx.profiler.Domain("work")
    mx.profiler.resume()  # nothing to go on with
    mx.profiler.set_state("run")
    for name in ("first", "between", "last"):
        if name == "between":
            mx.profiler.pause()
        with domain.new_task(name):
            pass
        if name == "between":
            mx.profiler.resume()
    mx.profiler.dump()
    assert [e["name"] for e in _events(profile, cat="work")] == ["first", "last"]
    mx.profiler.dump()
    assert not _events(profile, cat="work")


def test_refusals_and_old_names(profile: Path) -> None:
    with pytest.raises(TypeError, match=r"unknown option 'file_name'.*filename"):
        mx.profiler.set_config(file_name="x")
    with pytest.raises(KeyError):
        mx.profiler.set_state("go")
    with pytest.raises(AssertionError, match="no server processes"):
        mx.profiler.pause("server")
    with pytest.warns(UserWarning, match="deprecated"):
        mx.profiler.profiler_set_config("all", str(profile))
    with pytest.warns(UserWarning, match="deprecated"):
        mx.profiler.profiler_set_state("run")
    with pytest.warns(UserWarning, match="deprecated"):
        mx.profiler.dump_profile()
    assert profile.exists()


def test_jax_profiling_already(profile: Path, tmp_path: Path) -> None:
    import jax

    with jax.profiler.trace(str(tmp_path / "jax")):
        with pytest.warns(UserWarning, match="only spans of the program's own"):
            mx.profiler.set_state("run")
        with mx.profiler.Event("mine"):
            pass
        mx.profiler.dump()
    assert _events(profile, name="mine")


def test_features() -> None:
    features = mx.runtime.Features()
    assert features is mx.runtime.Features()
    assert features.is_enabled("int64_tensor_size") and not features["TVM_OP"].enabled
    assert len(features) == len(mx.runtime.feature_list())
    assert repr(features["TVM_OP"]) == "✖ TVM_OP" and "✔ LAPACK" in repr(features)
    assert features.is_enabled("CUDA") == (mx.num_gpus() > 0 and features["CUDA"].enabled)
    with pytest.raises(RuntimeError, match="Feature 'XX' is unknown, known features are"):
        features.is_enabled("xx")


def test_bulk() -> None:
    before = mx.engine.set_bulk_size(7)
    with mx.engine.bulk(3), mx.engine.bulk(5):
        assert mx.engine.set_bulk_size(5) == 5
    assert mx.engine.set_bulk_size(before) == 7


def test_loggers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger().handlers[:]
    logger = mx.log.get_logger("symjax.test.colour", level=mx.log.INFO)
    logger.propagate = False
    assert mx.log.get_logger("symjax.test.colour") is logger and len(logger.handlers) == 1
    logger.info("hello %d", 3)
    logger.debug("not this")
    text = capsys.readouterr().err
    assert text.startswith("\x1b[32mI") and text.endswith("]\x1b[0m hello 3\n") and "test_loggers" in text
    logger.error("bad")
    assert capsys.readouterr().err.startswith("\x1b[31mE")
    with pytest.warns(DeprecationWarning, match="get_logger"):
        to_file = mx.log.getLogger("symjax.test.file", str(tmp_path / "log"), level=mx.log.DEBUG)
    to_file.debug("kept")
    assert (tmp_path / "log").read_text() == "kept\n"
    with warnings.catch_warnings():
        mx.log.get_logger()
    assert logging.getLogger().handlers == root
    for handler in to_file.handlers:
        handler.close()


def test_there_is_no_library() -> None:
    assert mx.libinfo.__version__ == "1.9.1"
    for find in (mx.libinfo.find_lib_path, mx.libinfo.find_include_path, mx.libinfo.find_conf_path):
        with pytest.raises(RuntimeError, match="symjax is Python on JAX"):
            find()
