"""Reading text into arrays, and how arrays print."""

from __future__ import annotations

from typing import Any

import numpy as onp

from symjax.numpy.multiarray import array

__all__ = ["genfromtxt", "set_printoptions"]


def genfromtxt(*args: Any, **kwargs: Any) -> Any:
    """Returns an array of the numbers in a text file; arguments as for `numpy.genfromtxt`, and `ctx`."""
    ctx = kwargs.pop("ctx", None)
    made = onp.genfromtxt(*args, **kwargs)
    return array(made, dtype=made.dtype, ctx=ctx)


def set_printoptions(precision: int | None = None, threshold: int | None = None, **kwarg: Any) -> None:
    """Sets numpy's options of printing.

    Args:
      precision: digits after the point.
      threshold: the number of elements above which some are left out.

    Raises:
      NotImplementedError: another option is given.
    """
    if kwarg:
        raise NotImplementedError(f"set_printoptions takes precision and threshold, not {', '.join(sorted(kwarg))}")
    onp.set_printoptions(precision=precision, threshold=threshold)
