"""`mx.np.linalg`: linear algebra on `mx.np` arrays; some functions are numpy's own and run on the host."""

from __future__ import annotations

from typing import Any

import numpy as onp

from symjax._numpy import linalg as _definitions  # noqa: F401  enters them
from symjax._numpy.front import ARRAYS, fill
from symjax.numpy.fallback import LINALG as _FALLBACK

_get, _names = fill(ARRAYS, "numpy.linalg", globals())


def __getattr__(name: str) -> Any:
    return getattr(onp.linalg, name) if name in _FALLBACK else _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *_FALLBACK} - {"Any", "onp"})
