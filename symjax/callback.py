"""Functions that training calls after a batch or an epoch (MXNet's `mx.callback`): logs and checkpoints.

Batch callbacks get a `BatchEndParam` (`epoch`, `nbatch`, `eval_metric`, `locals`), epoch callbacks
`(epoch, symbol, arg_params, aux_params)`. What they tell goes to Python's `logging` at level INFO.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from symjax.model import save_checkpoint

__all__ = ["LogValidationMetricsCallback", "ProgressBar", "Speedometer", "do_checkpoint", "log_train_metric",
           "module_checkpoint", "save_checkpoint"]  # fmt: skip


def module_checkpoint(mod: Any, prefix: str, period: int = 1,
                      save_optimizer_states: bool = False) -> Callable[..., None]:
    """Returns an epoch callback that saves a module.

    Args:
      mod: the module; its `save_checkpoint` is called.
      prefix: beginning of the file names.
      period: save every so many epochs.
      save_optimizer_states: whether the optimizer's states are saved too.
    """
    period = int(max(1, period))

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            mod.save_checkpoint(prefix, iter_no + 1, save_optimizer_states)

    return save


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """Returns an epoch callback that saves symbol and parameters; see `symjax.model.save_checkpoint`.

    Args:
      prefix: beginning of the file names.
      period: save every so many epochs.
    """
    period = int(max(1, period))

    def save(iter_no: int, sym: Any, arg: Mapping[str, Any], aux: Mapping[str, Any]) -> None:
        if (iter_no + 1) % period == 0:
            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return save


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[Any], None]:
    """Returns a batch callback that logs the training metric.

    Args:
      period: log every so many batches.
      auto_reset: begin new local totals of the metric each time.
    """

    def log(param: Any) -> None:
        if param.nbatch % period == 0 and param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
            if auto_reset:
                param.eval_metric.reset_local()

    return log


class Speedometer:
    """A batch callback that logs samples per second and the training metric.

    Args:
      batch_size: samples in a batch.
      frequent: log every so many batches.
      auto_reset: begin new local totals of the metric each time, so that a line tells of its own batches only.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        self.batch_size = batch_size
        self.frequent = frequent
        self.init = False
        self.tic: float = 0
        self.last_count = 0
        self.auto_reset = auto_reset

    def __call__(self, param: Any) -> None:
        """Notes a batch, and logs if it is time."""
        count = param.nbatch
        if self.last_count > count:  # another epoch
            self.init = False
        self.last_count = count
        if not self.init:
            self.init, self.tic = True, time.time()
        elif count % self.frequent == 0:
            self._log(param, count)
            self.tic = time.time()

    def _log(self, param: Any, count: int) -> None:
        # reading the metric waits for the batches, so time is taken after it
        metric = param.eval_metric
        values = None if metric is None else metric.get_name_value()
        seconds = time.time() - self.tic
        speed = self.frequent * self.batch_size / seconds if seconds else float("inf")
        if metric is None or values is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            return
        first = 0
        if self.auto_reset:
            metric.reset_local()
            first = count - self.frequent
        text = "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(values)
        logging.info(text, param.epoch, first, count, speed, *(x for pair in values for x in pair))


class ProgressBar:
    """A batch callback that logs a bar of the epoch's progress.

    Args:
      total: batches in an epoch.
      length: characters of the bar.
    """

    def __init__(self, total: int, length: int = 80) -> None:
        self.bar_len = length
        self.total = total

    def __call__(self, param: Any) -> None:
        """Logs the bar."""
        filled = round(self.bar_len * param.nbatch / float(self.total))
        bar = "=" * filled + "-" * (self.bar_len - filled)
        logging.info("[%s] %s%s\r", bar, math.ceil(100.0 * param.nbatch / float(self.total)), "%")


class LogValidationMetricsCallback:
    """A callback for the end of an evaluation: logs the validation metric."""

    def __call__(self, param: Any) -> None:
        """Logs the metric, if there is one."""
        if param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
