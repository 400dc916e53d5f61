"""Which tests run.

Tests marked `slow` are exhaustive sweeps. They are left out unless chosen: `-m slow` (or any other `-m`) decides
itself, `SYMJAX_SLOW=all` adds all of them, and `SYMJAX_SLOW=3/24` the shard 3 of 24, told apart by their names.
Continuous integration runs one shard, shard 1.

Property tests draw the same examples in every run, so that what fails comes from the change; `SYMJAX_EXPLORE=1` draws
others.
"""

from __future__ import annotations

import itertools
import os
import zlib

import pytest
from hypothesis import settings

from symjax.lowering.memory import drop_code

settings.register_profile("symjax", derandomize=not os.environ.get("SYMJAX_EXPLORE"), deadline=None)
settings.load_profile("symjax")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.markexpr:
        return
    chosen = os.environ.get("SYMJAX_SLOW", "")
    if chosen == "all":
        return
    shard, _, count = chosen.partition("/")
    keep, drop = [], []
    for item in items:
        mine = count and zlib.crc32(item.nodeid.encode()) % int(count) == int(shard) % int(count)
        (keep if mine or item.get_closest_marker("slow") is None else drop).append(item)
    items[:] = keep
    config.hook.pytest_deselected(items=drop)


_count = itertools.count(1)


def pytest_runtest_teardown() -> None:
    """Thousands of tests compile more than one process may hold; not in the midst of one that counts compilations."""
    if next(_count) % 50 == 0:
        drop_code(0.3)
