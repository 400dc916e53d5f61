"""Symbols: MXNet's symbolic front end, `mx.sym`. Every registered op is a function here or in a namespace."""

from __future__ import annotations

import importlib
from typing import Any

from symjax.symbol import _fallback_types as _fallback_types
from symjax.symbol import _functions
from symjax.symbol.functions import Variable as Variable
from symjax.symbol.functions import arange as arange
from symjax.symbol.functions import eye as eye
from symjax.symbol.functions import full as full
from symjax.symbol.functions import histogram as histogram
from symjax.symbol.functions import hypot as hypot
from symjax.symbol.functions import linspace as linspace
from symjax.symbol.functions import maximum as maximum
from symjax.symbol.functions import minimum as minimum
from symjax.symbol.functions import ones as ones
from symjax.symbol.functions import pow as pow
from symjax.symbol.functions import power as power
from symjax.symbol.functions import split_v2 as split_v2
from symjax.symbol.functions import var as var
from symjax.symbol.functions import zeros as zeros
from symjax.symbol.symbol import Group as Group
from symjax.symbol.symbol import Symbol as Symbol
from symjax.symbol.symbol import load as load
from symjax.symbol.symbol import load_json as load_json

_NAMESPACES = ("_internal", "contrib", "image", "linalg", "numpy", "numpy_extension", "op", "random", "sparse")
_SHORT = {"np": "numpy", "npx": "numpy_extension"}
_get, _names = _functions.fill("op", globals())


def __getattr__(name: str) -> Any:
    name = _SHORT.get(name, name)
    if name in _NAMESPACES:
        return importlib.import_module(f"{__name__}.{name}")
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *_NAMESPACES, *_SHORT})
