"""What the fuzz targets have in common."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

atheris: Any = import_module("atheris")  # has no types, and is not installed where they are checked

_HEADROOM = 1 << 30


def limit_memory() -> None:
    """Lets the process grow by 1 GiB and no more: a larger allocation is then a MemoryError, which is a finding."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _HEADROOM, resource.RLIM_INFINITY))


def fuzz(check: Callable[[bytes], None], mutate: Callable[[bytes, int, int], bytes] | None = None) -> None:
    """Hands the process over to libFuzzer, which runs `check` on inputs of its own making."""
    if mutate is None:
        atheris.Setup(sys.argv, check)
    else:
        atheris.Setup(sys.argv, check, custom_mutator=mutate)
    limit_memory()
    atheris.Fuzz()
