"""Statistics of outputs, weights and gradients while a network trains (MXNet's `mx.monitor`)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from math import sqrt
from typing import Any

from symjax import ndarray
from symjax.ndarray import NDArray

__all__ = ["Monitor"]


class _Watcher:
    """What an executor calls with its operators' outputs; it need not work them out while `activated` is False."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    @property
    def activated(self) -> bool:
        return self._monitor.activated

    def __call__(self, name: Any, array: NDArray) -> None:
        self._monitor._watch(name if isinstance(name, str) else name.decode(), array)


class Monitor:
    """Collects a statistic of every operator's output, and of arguments and auxiliary states, every `interval` batches.

    `install` it on executors (`Module.install_monitor` does), then call `tic` before and `toc` or `toc_print` after a
    batch. Batches that are not looked at cost nothing.

    Args:
      interval: batches from one look to the next.
      stat_func: `(NDArray) -> NDArray` or list of NDArrays; the norm over the root of the size if None.
      pattern: regular expression that the beginning of a name must match.
      sort: sort by name.
      monitor_all: look at operators' inputs too.
    """

    def __init__(self, interval: int, stat_func: Callable[[NDArray], Any] | None = None, pattern: str = ".*",
                 sort: bool = False, monitor_all: bool = False) -> None:
        self.stat_func = _root_mean_square if stat_func is None else stat_func
        self.interval = interval
        self.activated = False
        self.queue: list[tuple[int, str, Any]] = []
        self.step = 0
        self.exes: list[Any] = []
        self.re_prog = re.compile(pattern)
        self.sort = sort
        self.monitor_all = monitor_all
        self.stat_helper: Callable[[Any, NDArray], None] = _Watcher(self)

    def _watch(self, name: str, array: NDArray) -> None:
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Watches an executor; any number of them may be watched."""
        exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        self.exes.append(exe)

    def tic(self) -> None:
        """Begins a batch; it is looked at if its number is a multiple of the interval."""
        if self.step % self.interval == 0:
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """Ends a batch.

        Returns:
          `(number of the batch, name, statistic as text)` of all that was looked at.
        """
        if not self.activated:
            return []
        for exe in self.exes:
            symbol = exe._symbol
            for names, arrays in ((symbol.list_arguments(), exe.arg_arrays),
                                  (symbol.list_auxiliary_states(), exe.aux_arrays)):  # fmt: skip
                for name, array in zip(names, arrays, strict=True):
                    self._watch(name, array)
        self.activated = False
        found, self.queue = self.queue, []
        if self.sort:
            found.sort(key=lambda item: item[1])
        return [(step, name, _text(name, value)) for step, name, value in found]

    def toc_print(self) -> None:
        """Ends a batch and logs what `toc` returns."""
        for step, name, text in self.toc():
            logging.info(f"Batch: {step:7d} {name:30s} {text:s}")


def _root_mean_square(x: NDArray) -> NDArray:
    return ndarray.norm(x) / sqrt(x.size)


def _text(name: str, value: Any) -> str:
    values = [value] if isinstance(value, NDArray) else value
    if not isinstance(values, list) or not all(isinstance(v, NDArray) for v in values):
        raise AssertionError(f"monitor: stat_func must give an NDArray or a list of them, gave {type(value).__name__} "
                             f"for {name}")
    # str, for a float32 within an f-string is written as a float64
    return "".join(str(v.asscalar() if v.shape == (1,) else v.asnumpy()) + "\t" for v in values)
