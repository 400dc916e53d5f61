"""Operators whose names start with an underscore: `mx.nd._internal._plus_scalar`, …."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("_internal", globals())
