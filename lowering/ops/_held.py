"""Intermediate results that XLA's CPU compiler shall not compute again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import lax


def held(f: Callable[..., Any], *args: jax.Array) -> Any:
    """Returns `f(*args)`, computed once for all who read it.

    XLA's CPU compiler fuses cheap elementwise code into every reader, however often that computes it again, and drops
    optimization barriers before it does. It does not look into a conditional: this is one whose branches are alike and
    whose predicate is not known until it runs.
    """
    return lax.cond(args[0].reshape(-1)[0] > 0, f, f, *args)
