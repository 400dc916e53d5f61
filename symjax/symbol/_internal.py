"""The operators of `mx.sym._internal`, generated from the registry."""

from __future__ import annotations

from symjax.symbol import _functions

__getattr__, __dir__ = _functions.fill("_internal", globals())
