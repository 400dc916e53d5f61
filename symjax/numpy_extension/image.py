"""`mx.npx.image`: the operators on pictures, as functions of `mx.np` arrays."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("numpy_extension.image", globals())
