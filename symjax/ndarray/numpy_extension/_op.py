"""The operators `_npx_*`: neural networks on arrays of `mx.np`."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("numpy_extension._op", globals())
