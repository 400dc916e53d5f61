"""The custom operators that MXNet itself registers, made when one is first used."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from symjax.lowering import host

NAMES = ("empty_like_fallback", "resize_fallback", "unravel_index_fallback", "mvn_fallback")


def _make(name: str, kwargs: dict[str, str]) -> Any:
    return importlib.import_module("symjax._numpy.fallback_ops").make(name, kwargs)


for _name in NAMES:
    host.register_type(_name, functools.partial(_make, _name))
