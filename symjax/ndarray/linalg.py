"""Linear algebra operators (`_linalg_*`): `mx.nd.linalg.<name>`."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("linalg", globals())
