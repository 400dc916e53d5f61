"""`random` of `mx.npx`, for symbols; the functions are those of `symjax._numpy.random`."""

from __future__ import annotations

from symjax._numpy import random as _definitions  # noqa: F401  enters them
from symjax._numpy.front import SYMBOLS, fill

__getattr__, __dir__ = fill(SYMBOLS, "numpy_extension.random", globals())
