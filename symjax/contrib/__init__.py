"""`mx.contrib`: the older paths of the contrib operators (`mx.contrib.sym.MultiBoxPrior`, `mx.contrib.nd.box_nms`)."""

from __future__ import annotations

import importlib
from typing import Any

from symjax._absent import explain

_MODULES = {"sym": "symbol", "symbol": "symbol", "nd": "ndarray", "ndarray": "ndarray"}
_OWN = ("io", "quantization", "tensorboard", "text")


def __getattr__(key: str) -> Any:
    if key in _MODULES:
        value = globals()[key] = importlib.import_module(f"symjax.{_MODULES[key]}.contrib")
        return value
    if key in _OWN:
        return importlib.import_module(f"{__name__}.{key}")
    raise AttributeError(explain(f"contrib.{key}") or f"module {__name__!r} has no attribute {key!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_OWN})
