"""The operators of `mx.sym.sparse`, generated from the registry."""

from __future__ import annotations

from symjax.symbol import _functions

__getattr__, __dir__ = _functions.fill("sparse", globals())
