"""`random` of `mx.npx`, for arrays; the functions are those of `symjax._numpy.random`."""

from __future__ import annotations

from symjax._numpy import random as _definitions  # noqa: F401  enters them
from symjax._numpy.front import ARRAYS, fill

__getattr__, __dir__ = fill(ARRAYS, "numpy_extension.random", globals())
