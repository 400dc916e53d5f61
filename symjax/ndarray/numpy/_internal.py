"""The operators `_npi_*`, which the functions of `mx.np` call: `mx.nd.np._internal`."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("numpy._internal", globals())
