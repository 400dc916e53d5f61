"""Image operators (`_image_*`): `mx.nd.image.<name>`."""

from __future__ import annotations

from symjax.ndarray import _functions

__getattr__, __dir__ = _functions.fill("image", globals())
