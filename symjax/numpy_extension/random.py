"""`mx.npx.random`: samplers beyond numpy's, and the seed."""

from __future__ import annotations

from typing import Any

from symjax import random as _random
from symjax._numpy import random as _definitions  # noqa: F401  enters them
from symjax._numpy.front import ARRAYS, fill


def seed(seed: int, ctx: Any = "all") -> None:
    """Seeds the samplers; see `mx.random.seed`."""
    _random.seed(seed, ctx)


__getattr__, __dir__ = fill(ARRAYS, "numpy_extension.random", globals())
