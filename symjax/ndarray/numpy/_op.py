"""The operators `_np_*`, which are functions of `mx.np` as they are."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("numpy._op", globals())
