"""The operators `_npx__image_*`: pictures as arrays of `mx.np`."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("numpy_extension.image", globals())
