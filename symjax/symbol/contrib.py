"""The operators of `mx.sym.contrib`, generated from the registry."""

from __future__ import annotations

from symjax.symbol import _functions

__getattr__, __dir__ = _functions.fill("contrib", globals())
