"""The operators of `mx.sym.linalg`, generated from the registry."""

from __future__ import annotations

from symjax.symbol import _functions

__getattr__, __dir__ = _functions.fill("linalg", globals())
