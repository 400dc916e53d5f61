"""`mx.nd.npx`: operators beyond numpy's."""

from __future__ import annotations

import importlib
from typing import Any

from symjax.ndarray.numpy_extension import _op

_MODULES = ("_op", "image", "random")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__all__":
        return dir(_op)
    return getattr(_op, name)


def __dir__() -> list[str]:
    return sorted({*dir(_op), *_MODULES})
