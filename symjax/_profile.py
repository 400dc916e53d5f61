"""What `mx.profiler` records: events of a Chrome trace, its own and JAX's, and statistics of them."""

from __future__ import annotations

import glob
import gzip
import json
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import jax

Stats = tuple[float, float, float, float, int]
"""Total, mean, minimum and maximum in milliseconds, and the number."""

Groups = dict[str, dict[str, Stats]]

METADATA = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": "symjax"}}]
_CALL = "PjitFunction("
_OWN = 0  # the process number of the program's own events


class _State:
    """Whether recording, and what was recorded."""

    def __init__(self) -> None:
        self.filename = "profile.json"
        self.continuous = self.running = self.paused = False
        self.events: list[dict[str, Any]] = []
        self.folder: Any = None
        self.began = 0.0


STATE = _State()
_ORIGIN = time.perf_counter()


def now() -> float:
    """Microseconds since the module was imported."""
    return (time.perf_counter() - _ORIGIN) * 1e6


def add(**event: Any) -> None:
    """Records an event of the program's own, if recording."""
    if STATE.running:
        STATE.events.append({**event, "pid": _OWN, "tid": threading.get_ident()})


def start() -> None:
    """Begins recording; nothing if it has begun."""
    if STATE.running:
        return
    STATE.running, STATE.paused = True, False
    folder = tempfile.TemporaryDirectory(prefix="symjax-profile-", ignore_cleanup_errors=True)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # every Python call would drown the rest
    try:
        jax.profiler.start_trace(folder.name, profiler_options=options)
    except Exception as e:
        folder.cleanup()
        warnings.warn(f"JAX's profiler does not start, so only spans of the program's own are recorded: {e}",
                      stacklevel=3)
        return
    STATE.folder, STATE.began = folder, now()


def stop() -> None:
    """Ends recording and takes over what JAX has recorded; nothing if it has ended."""
    if not STATE.running:
        return
    STATE.running = STATE.paused = False
    folder, STATE.folder = STATE.folder, None
    if folder is None:
        return
    with folder:
        jax.profiler.stop_trace()
        for path in glob.glob(os.path.join(folder.name, "**", "*.trace.json.gz"), recursive=True):
            with gzip.open(path, "rt", encoding="utf-8") as f:
                STATE.events.extend(_shifted(json.load(f).get("traceEvents", ())))


def _shifted(events: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """JAX's events, whose time begins at each start, in the time of the others."""
    for e in events:
        if e.get("ph"):
            yield {**e, "ts": e["ts"] + STATE.began} if "ts" in e else e


# ---- statistics


def _group(event: Mapping[str, Any]) -> tuple[str, str] | None:
    """The group and name under which an event counts; None if it does not."""
    name = str(event.get("name"))
    if event.get("pid") == _OWN:
        return str(event.get("cat")), name
    if "hlo_op" in (event.get("args") or {}):
        return "kernel", name
    if name.startswith(_CALL):
        return "operator", name[len(_CALL) : -1]
    return None


def statistics(events: Iterable[Mapping[str, Any]], order: int, ascending: bool) -> Groups:
    """Sums spans up by group and name.

    Args:
      events: of a Chrome trace.
      order: place in Stats of what they are sorted by: 0 total, 1 mean, 2 minimum, 3 maximum, 4 number.
      ascending: the smallest first.
    """
    spans: dict[str, dict[str, list[float]]] = {}
    until: dict[Any, float] = {}
    for e in events:
        key = _group(e) if e.get("ph") == "X" else None
        if key is None:
            continue
        begin, took = float(e["ts"]), float(e.get("dur", 0))
        place = (e.get("pid"), e.get("tid"), key)
        if begin < until.get(place, -1.0):  # a call within itself
            continue
        until[place] = begin + took if key[0] == "operator" else -1.0
        spans.setdefault(key[0], {}).setdefault(key[1], []).append(took / 1000)
    return {group: dict(sorted(((n, _stats(t)) for n, t in named.items()), key=lambda item: item[1][order],
                               reverse=not ascending)) for group, named in sorted(spans.items())}  # fmt: skip


def _stats(times: list[float]) -> Stats:
    return sum(times), sum(times) / len(times), min(times), max(times), len(times)


def as_table(groups: Groups) -> str:
    """The statistics as MXNet's table."""
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    columns = ("Total Count", "Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)")
    for group, named in groups.items():
        lines += [group, "=" * 17, f"{'Name':<25} " + " ".join(f"{c:>16}" for c in columns),
                  f"{'----':<25} " + " ".join(f"{'-' * len(c):>16}" for c in columns)]  # fmt: skip
        for name, (total, mean, least, most, n) in named.items():
            lines.append(f"{name:<25} {n:>16} {total:>16.4f} {least:>16.4f} {most:>16.4f} {mean:>16.4f}")
        lines.append("")
    return "\n".join(lines) + "\n"


def as_json(groups: Groups) -> str:
    """The statistics as JSON, with MXNet's names."""
    time_of = {group: {name: {"Count": n, "Total": total, "Min": least, "Max": most, "Avg": mean}
                       for name, (total, mean, least, most, n) in named.items()} for group, named in groups.items()}
    return json.dumps({"Time": time_of, "Unit": {"Time": "ms"}}, indent=4)
