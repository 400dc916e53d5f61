"""The operators without a namespace of their own: `mx.nd.op.<name>`, also `mx.nd.<name>`."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("op", globals())
