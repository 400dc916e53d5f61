"""Counts XLA compilations, for tests that say how many a program may cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

_EVENT = "/jax/core/compile/backend_compile_duration"
_count = 0


def _listen(event: str, duration_secs: float, **_: str | int | float) -> None:
    global _count
    _count += event == _EVENT


jax.monitoring.register_event_duration_secs_listener(_listen)


class Counted:
    """How many functions were compiled inside the block."""

    def __init__(self) -> None:
        self.start = _count

    @property
    def n(self) -> int:
        return _count - self.start


@contextmanager
def compiles() -> Iterator[Counted]:
    yield Counted()
