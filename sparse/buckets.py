"""Sizes that sparse arrays are padded to, so that compiled code is shared between arrays of different fill."""

from __future__ import annotations

from typing import Any

import numpy as np

_SMALLEST = 8
_INT32_MAX = np.iinfo(np.int32).max


def bucket(n: int) -> int:
    """Returns the capacity for `n` stored entries: the next of 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, …

    Four steps to a doubling: at most a fifth of the room is unused, and batches that differ by a quarter in fill share
    two or three compiled functions.
    """
    if n <= _SMALLEST:
        return _SMALLEST
    step = 1 << ((n - 1).bit_length() - 3)
    return -(-n // step) * step


def index_dtype(size: int) -> np.dtype:
    """Returns the type of indices into an axis of `size`, with one value more for padding: int32 where it fits."""
    return np.dtype(np.int32 if size <= _INT32_MAX else np.int64)


def padded(values: Any, capacity: int, fill: Any) -> np.ndarray:
    """Returns a copy of a numpy array whose first axis is `capacity` long; the new entries are `fill`."""
    values = np.asarray(values)
    out = np.empty((capacity, *values.shape[1:]), values.dtype)
    out[: len(values)] = values
    out[len(values) :] = fill
    return out
