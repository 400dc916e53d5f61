"""`mx.nd.np`: the functions of `mx.np` that are operators of arrays."""

from __future__ import annotations

import symjax._numpy  # noqa: F401  enters the definitions
from symjax._numpy.front import ARRAYS, fill

__getattr__, __dir__ = fill(ARRAYS, "numpy", globals(), ("_api_internal", "_internal", "_op", "linalg", "random"))
