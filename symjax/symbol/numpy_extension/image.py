"""The operators `_npx__image_*`: pictures as arrays of `mx.np`."""

from __future__ import annotations

from symjax.symbol import _functions

__getattr__, __dir__ = _functions.fill("numpy_extension.image", globals())
