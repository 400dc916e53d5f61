"""Ctrl-C between training steps instead of inside of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self


class StepGuard:
    """While entered, Ctrl-C inside `with guard.step():` raises KeyboardInterrupt after it; a second one at once.

    A step overwrites the memory of weights; stopped in the middle it could lose some. Only the main thread gets
    signals, and a handler that the program has set is left alone.
    """

    def __init__(self) -> None:
        self._inside = self._pending = self._installed = False

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(self, *exc: object) -> None:
        if self._installed:
            self._installed = False
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self._inside or self._pending:
            raise KeyboardInterrupt
        self._pending = True

    @contextmanager
    def step(self) -> Iterator[None]:
        """What runs inside is not interrupted."""
        self._inside, self._pending = True, False
        try:
            yield
        finally:
            self._inside = False
        if self._pending:
            raise KeyboardInterrupt
