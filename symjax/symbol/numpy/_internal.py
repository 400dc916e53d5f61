"""The operators `_npi_*`, which the functions of `mx.np` call: `mx.sym.np._internal`."""

from __future__ import annotations

from symjax.symbol import _functions

__getattr__, __dir__ = _functions.fill("numpy._internal", globals())
