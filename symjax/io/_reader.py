"""Reading ahead: blocks parsed by several threads, batches put together by one more."""

from __future__ import annotations

import collections
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
S = TypeVar("S")

_MAX_WORKERS = 4


def worker_count() -> int:
    """Returns how many threads parse: more than half the processors would wait for each other and for the user."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MAX_WORKERS, max(1, cpus // 2))


class Parsed(Iterator[T]):
    """`parse(block)` of all blocks, in their order; at most `2 * workers` blocks are in memory.

    Args:
      parse: the function.
      blocks: its arguments.
      workers: threads that run it; with 0 it runs when its result is asked for.
    """

    def __init__(self, parse: Callable[[S], T], blocks: Iterable[S], workers: int) -> None:
        self._ready: Iterator[T] = map(parse, blocks)
        if workers:
            pool = ThreadPoolExecutor(workers, "symjax-parse")
            self._ready = _ordered((pool.submit(parse, b) for b in blocks), 2 * workers)
            weakref.finalize(self, pool.shutdown, wait=False, cancel_futures=True)

    def __next__(self) -> T:
        return next(self._ready)


def _ordered(futures: Iterator[Future[T]], window: int) -> Iterator[T]:
    coming: collections.deque[Future[T]] = collections.deque()
    for future in futures:
        coming.append(future)
        if len(coming) >= window:
            yield coming.popleft().result()
    while coming:
        yield coming.popleft().result()


class _Slots:
    """What one thread makes and another takes, at most `depth` items at a time."""

    def __init__(self, depth: int) -> None:
        self.items: collections.deque[Any] = collections.deque()
        self.depth, self.ended, self.closed = depth, False, False
        self.error: BaseException | None = None
        self.changed = threading.Condition()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.items.clear()
            self.changed.notify_all()

    def put(self, item: Any) -> bool:
        """Waits for room; False if nobody wants any more."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or len(self.items) < self.depth)
            if not self.closed:
                self.items.append(item)
                self.changed.notify_all()
            return not self.closed

    def end(self, error: BaseException | None) -> None:
        with self.changed:
            self.ended, self.error = True, error
            self.changed.notify_all()

    def get(self) -> Any:
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.ended or self.items)
            if self.items:
                item = self.items.popleft()
                self.changed.notify_all()
                return item
        error, self.error = self.error, None  # its traceback holds whoever runs `close` at the end: they must not meet
        raise StopIteration if error is None else error


class Ahead:
    """An iterator that a thread runs up to `depth` items ahead. An error comes where its item would.

    The thread starts at once, and ends with the items, at `close`, or when nobody holds this object any more.

    Args:
      items: what to run; after `close` or the last item it is left alone.
      depth: the number of items; with 0 there is no thread.
    """

    def __init__(self, items: Iterator[Any], depth: int) -> None:
        self._items, self._slots = items, None
        if depth:
            slots = self._slots = _Slots(depth)
            self._thread = threading.Thread(target=_run, args=(items, slots), name="symjax-batches", daemon=True)
            self._finalizer = weakref.finalize(self, slots.close)
            self._thread.start()

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> Any:
        return next(self._items) if self._slots is None else self._slots.get()

    def close(self) -> None:
        """Stops the thread and waits for it."""
        if self._slots is not None:
            self._slots.close()
            self._thread.join()


def _run(items: Iterator[Any], slots: _Slots) -> None:
    error: BaseException | None = None
    try:
        for item in items:
            if not slots.put(item):
                break
    except BaseException as e:  # whatever it is, the thread that waits must get it
        error = e
    with contextlib.suppress(Exception):
        slots.end(error)
