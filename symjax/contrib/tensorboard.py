"""Training metrics for TensorBoard (MXNet's `mx.contrib.tensorboard`)."""

from __future__ import annotations

import importlib
import logging
from typing import Any

__all__ = ["LogMetricsCallback"]


class LogMetricsCallback:
    """A callback that writes the metric of an epoch (or batch, as it is used) as scalars.

    Args:
      logging_dir: the folder that TensorBoard reads.
      prefix: put before the metrics' names, with a hyphen.
      summary_writer: an object with `add_scalar(name, value, global_step=)`; by default the one of mxboard,
        tensorboardX or torch, whichever is installed.
    """

    def __init__(self, logging_dir: str, prefix: str | None = None, summary_writer: Any = None) -> None:
        self.prefix = prefix
        self.summary_writer = _writer(logging_dir) if summary_writer is None else summary_writer

    def __call__(self, param: Any) -> None:
        """Writes the metric, if there is one."""
        if param.eval_metric is None or self.summary_writer is None:
            return
        for name, value in param.eval_metric.get_name_value():
            label = name if self.prefix is None else f"{self.prefix}-{name}"
            self.summary_writer.add_scalar(label, value, global_step=param.epoch)


def _writer(folder: str) -> Any:
    for name in ("mxboard", "tensorboardX", "torch.utils.tensorboard"):
        try:
            return importlib.import_module(name).SummaryWriter(folder)
        except ImportError:
            continue
    logging.error("Nothing is written: install mxboard or tensorboardX, or give a summary_writer.")
    return None
