"""Loggers with coloured levels (MXNet's `mx.log`)."""

from __future__ import annotations

import logging
import warnings
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]

_LETTERS = {CRITICAL: "C", ERROR: "E", WARNING: "W", INFO: "I", DEBUG: "D"}
_RED, _GREEN, _BLUE, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[0m"


class _Formatter(logging.Formatter):
    """`<level's letter><month, day, time> <process> <file>:<function>:<line>] <message>`, coloured up to `]`."""

    def __init__(self) -> None:
        super().__init__("%(head)s%(asctime)s %(process)d %(pathname)s:%(funcName)s:%(lineno)d]" + _PLAIN
                         + " %(message)s", datefmt="%m%d %H:%M:%S", validate=False)  # fmt: skip

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelno
        color = _RED if level >= WARNING else _GREEN if level >= INFO else _BLUE
        record.head = color + _LETTERS.get(level, "U")
        return super().format(record)


def get_logger(name: str | None = None, filename: str | None = None, filemode: str | None = None,
               level: int = WARNING) -> logging.Logger:
    """Returns a logger, and gives it a handler when it is asked for the first time.

    Args:
      name: its name; None is the root logger, which is left as it is.
      filename: a file to write to; the error stream, in colours, if None.
      filemode: how to open the file, "a" if None.
      level: the least level that is told.
    """
    logger = logging.getLogger(name)
    if name is not None and not getattr(logger, "_init_done", False):
        logger._init_done = True  # type: ignore[attr-defined]  # MXNet's mark
        if filename:
            handler: logging.Handler = logging.FileHandler(filename, filemode or "a")
        else:
            handler = logging.StreamHandler()
            handler.setFormatter(_Formatter())
        logger.addHandler(handler)
        logger.setLevel(level)
    return logger


def getLogger(name: str | None = None, filename: str | None = None, filemode: str | None = None,
              level: int = WARNING) -> logging.Logger:
    """`get_logger` by its old name."""
    warnings.warn("getLogger is deprecated, Use get_logger instead.", DeprecationWarning, stacklevel=2)
    return get_logger(name, filename, filemode, level)
