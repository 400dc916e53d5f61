"""`linalg` of `mx.np`, for symbols; the functions are those of `symjax._numpy.linalg`."""

from __future__ import annotations

from symjax._numpy import linalg as _definitions  # noqa: F401  enters them
from symjax._numpy.front import SYMBOLS, fill

__getattr__, __dir__ = fill(SYMBOLS, "numpy.linalg", globals())
