"""`mx.engine`: how many operators MXNet runs as one. XLA compiles what belongs together, so it changes nothing."""

from __future__ import annotations

from types import TracebackType

__all__ = ["bulk", "set_bulk_size"]

_size = 0


def set_bulk_size(size: int) -> int:
    """Notes a number of operators to run as one, and returns the one before."""
    global _size
    previous, _size = _size, int(size)
    return previous


class _BulkScope:
    def __init__(self, size: int) -> None:
        self._size = size
        self._before: list[int] = []

    def __enter__(self) -> _BulkScope:
        self._before.append(set_bulk_size(self._size))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        set_bulk_size(self._before.pop())


def bulk(size: int) -> _BulkScope:
    """Returns a context manager that notes a number of operators to run as one, and the one before at the end."""
    return _BulkScope(size)
