"""`mx.np.random`: samplers of `mx.np` arrays."""

from __future__ import annotations

from symjax._numpy import random as _definitions  # noqa: F401  enters them
from symjax._numpy.front import ARRAYS, fill

__getattr__, __dir__ = fill(ARRAYS, "numpy.random", globals())
