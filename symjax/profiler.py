"""Timing programs (MXNet's `mx.profiler`): JAX's profiler and spans of the program's own, in one Chrome trace.

`set_config(filename=…)`, `set_state("run")`, the program, `set_state("stop")`, `dump()`. Open the file in
https://ui.perfetto.dev or chrome://tracing; `dumps()` is a table of the same. `jax.profiler` has more to offer
(TensorBoard, memory profiles) and cannot be used at the same time.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
import warnings
from typing import Any

from symjax import _profile
from symjax._profile import STATE
from symjax.lowering.errors import ArgumentError, did_you_mean

__all__ = ["Counter", "Domain", "Event", "Frame", "Marker", "Task", "dump", "dump_profile", "dumps", "pause",
           "profiler_set_config", "profiler_set_state", "resume", "set_config", "set_kvstore_handle",
           "set_state"]  # fmt: skip

_OPTIONS = {"filename": "profile.json", "profile_all": False, "profile_symbolic": True, "profile_imperative": True,
            "profile_memory": True, "profile_api": True, "continuous_dump": False, "dump_period": 1.0,
            "aggregate_stats": False, "profile_process": "worker", "profile_rank": 0,
            "gpu_memory_profile_filename_prefix": ""}  # fmt: skip
_SORTS = ("total", "avg", "min", "max", "count")


def set_config(**kwargs: Any) -> None:
    """Sets options; those not given have their defaults.

    Args:
      kwargs: `filename` ("profile.json") is where `dump` writes. `continuous_dump` writes at every stop, too.
        `profile_all`, `profile_symbolic`, `profile_imperative`, `profile_memory`, `profile_api`, `aggregate_stats`,
        `dump_period`, `profile_process` and the others of MXNet are accepted: XLA does not tell these apart, and
        everything is recorded.

    Raises:
      TypeError: an option is unknown.
    """
    for name in kwargs:
        if name not in _OPTIONS:
            raise ArgumentError(f"profiler.set_config: unknown option {name!r}{did_you_mean(name, _OPTIONS)}; "
                                f"there are {', '.join(_OPTIONS)}")
    STATE.filename = str(kwargs.get("filename", _OPTIONS["filename"]))
    STATE.continuous = _true(kwargs.get("continuous_dump", False))


def _true(value: Any) -> bool:
    return str(value).lower() in ("1", "true")


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """`set_config` by its old name."""
    warnings.warn("profiler.profiler_set_config() is deprecated. Please use profiler.set_config() instead",
                  stacklevel=2)
    set_config(**{f"profile_{mode}": True, "filename": filename})


def set_kvstore_handle(handle: Any) -> None:
    """Accepted: there are no server processes to profile."""


def _check_process(profile_process: str) -> None:
    if profile_process not in ("worker", "server"):
        raise KeyError(profile_process)
    if profile_process == "server":
        raise ArgumentError("profiler: profile_process='server': there are no server processes; use 'worker'")


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Starts ("run") or stops ("stop") recording.

    Raises:
      KeyError: another state.
    """
    if state not in ("run", "stop"):
        raise KeyError(state)
    _check_process(profile_process)
    if state == "run":
        _profile.start()
    else:
        _profile.stop()
        if STATE.continuous:
            dump(False)


def profiler_set_state(state: str = "stop") -> None:
    """`set_state` by its old name."""
    warnings.warn("profiler.profiler_set_state() is deprecated. Please use profiler.set_state() instead", stacklevel=2)
    set_state(state)


def pause(profile_process: str = "worker") -> None:
    """Stops recording for a while, if it is running."""
    _check_process(profile_process)
    if STATE.running:
        _profile.stop()
        STATE.paused = True


def resume(profile_process: str = "worker") -> None:
    """Goes on recording after `pause`."""
    _check_process(profile_process)
    if STATE.paused:
        _profile.start()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Writes the Chrome trace to the file that `set_config` named.

    Args:
      finished: whether recording stops and the next `dump` begins anew.
      profile_process: "worker".
    """
    _check_process(profile_process)
    was_running = STATE.running
    _profile.stop()
    part = f"{STATE.filename}.{os.getpid()}.part"
    with open(part, "w", encoding="utf-8") as f:
        json.dump({"traceEvents": [*_profile.METADATA, *STATE.events], "displayTimeUnit": "ms"}, f)
    os.replace(part, STATE.filename)
    if finished:
        STATE.events.clear()
    elif was_running:
        _profile.start()


def dump_profile() -> None:
    """`dump` by its old name."""
    warnings.warn("profiler.dump_profile() is deprecated. Please use profiler.dump() instead", stacklevel=2)
    dump(True)


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Returns how often everything ran, and for how long, as text.

    Args:
      reset: forget it afterwards.
      format: "table" (milliseconds) or "json".
      sort_by: "total", "avg", "min", "max" or "count".
      ascending: the smallest first.

    Raises:
      AssertionError: an argument is none of these.
    """
    for name, value, known in (("format", format, ("table", "json")), ("sort_by", sort_by, _SORTS),
                               ("ascending", ascending, (False, True)), ("reset", reset, (False, True))):  # fmt: skip
        if value not in known:
            raise ArgumentError(f"Invalid value provided for {name}: {value}. Support: {', '.join(map(repr, known))}")
    was_running = STATE.running
    _profile.stop()
    groups = _profile.statistics(STATE.events, _SORTS.index(sort_by), ascending)
    text = _profile.as_json(groups) if format == "json" else _profile.as_table(groups)
    if reset:
        STATE.events.clear()
    if was_running:
        _profile.start()
    return text


# ---- spans of the program's own


class Domain:
    """A group of spans, counters and markers.

    Args:
      name: what it is called.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """Makes a Task in this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """Makes a Frame in this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> Counter:
        """Makes a Counter in this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """Makes a Marker in this domain."""
        return Marker(self, name)


class _Span:
    """Times from `start` to `stop`; also a context manager."""

    def __init__(self, category: str, name: str) -> None:
        self.name = name
        self._category = category
        self._begin: float | None = None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Begins."""
        self._begin = _profile.now()

    def stop(self) -> None:
        """Ends, and records if the profiler is running."""
        if self._begin is not None:
            _profile.add(ph="X", name=self.name, cat=self._category, ts=self._begin, dur=_profile.now() - self._begin)
            self._begin = None

    def __enter__(self) -> _Span:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Task(_Span):
    """A span of work in a domain.

    Args:
      domain: the domain.
      name: what it is called.
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(domain.name, name)


class Frame(_Span):
    """One of a series of spans in a domain.

    Args:
      domain: the domain.
      name: what it is called.
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(f"{domain.name},frame", name)


class Event(_Span):
    """A span without a domain.

    Args:
      name: what it is called.
    """

    def __init__(self, name: str) -> None:
        super().__init__("event", name)


class Counter:
    """A number that changes.

    Args:
      domain: the domain.
      name: what it is called.
      value: the first value.
    """

    def __init__(self, domain: Domain, name: str, value: float | None = None) -> None:
        self.name = name
        self._domain = domain
        self._value = 0
        self._lock = threading.Lock()
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: float) -> None:
        """Sets the value, as an integer."""
        with self._lock:
            self._value = int(value)
            _profile.add(ph="C", name=self.name, cat=self._domain.name, ts=_profile.now(), args={"value": self._value})

    def increment(self, delta: float = 1) -> None:
        """Adds to the value."""
        self.set_value(self._value + int(delta))

    def decrement(self, delta: float = 1) -> None:
        """Subtracts from the value."""
        self.set_value(self._value - int(delta))

    def __iadd__(self, delta: float) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> Counter:
        self.decrement(delta)
        return self


class Marker:
    """A point in time.

    Args:
      domain: the domain.
      name: what it is called.
    """

    def __init__(self, domain: Domain, name: str) -> None:
        self.name = name
        self.domain = domain

    def mark(self, scope: str = "process") -> None:
        """Marks now; `scope` is what it concerns: "global", "process", "thread", "task" or "marker"."""
        known = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}
        if scope not in known:
            raise ArgumentError(f"profiler: marker {self.name!r}: scope {scope!r} is not one of {', '.join(known)}")
        group = f"{self.domain.name},instant_marker"
        _profile.add(ph="i", name=self.name, cat=group, ts=_profile.now(), s=known[scope])


def _at_exit() -> None:
    if STATE.running:
        dump(True)


atexit.register(_at_exit)

if _true(os.environ.get("MXNET_PROFILER_AUTOSTART", "0")):
    set_state("run")
