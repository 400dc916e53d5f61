"""`mx.sym.np`: the functions of `mx.np` on symbols."""

from __future__ import annotations

import symjax._numpy  # noqa: F401  enters the definitions
from symjax._numpy.front import SYMBOLS, fill
from symjax.symbol.numpy._symbol import _Symbol as _Symbol

__getattr__, __dir__ = fill(SYMBOLS, "numpy", globals(), ("_internal", "_op", "linalg", "random"))
