"""The distinct rows that a batch touches, and where each lookup finds its own among them."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.sparse.buckets import bucket, index_dtype, padded

_MAX_TABLE = 1 << 25
_MAX_SCRATCH = 1 << 22  # 16 MB for each thread


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class SortedEntries:
    """The stored entries of a csr matrix by column, a pytree.

    Attributes:
      order: which entry comes when, (capacity,).
      rows: its row, (capacity,).
      indptr: where the entries of each column of `RowIndex.unique` begin and end, (capacity of `unique` + 1,).
    """

    order: Any
    rows: Any
    indptr: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class RowIndex:
    """Distinct ids out of [0, n) and the place of each of many ids among them, a pytree.

    Attributes:
      unique: the distinct ids, ascending, (capacity,); padding, which is last, is n.
      inverse: for every id its place in `unique`, of the ids' shape. An id of n (padding) gets a place whose row is
        padding or beyond the last.
      by_column: the entries of a csr matrix, whose columns the ids are, sorted; where that is worth it.
    """

    unique: Any
    inverse: Any
    by_column: SortedEntries | None = None


def index_ids(ids: Any, n: int) -> RowIndex:
    """Returns the index of ids in [0, n] while tracing: the capacity is the number of ids.

    What is sorted is one array, of ids with their positions in the low bits: sorting pairs takes several times as long.
    """
    kind, count = index_dtype(n), ids.size
    bits = count.bit_length()
    if count == 0:
        return RowIndex(jnp.full((1,), n, kind), jnp.zeros(ids.shape, np.int32))
    if n.bit_length() + bits > 63:
        unique, inverse = jnp.unique(ids.reshape(-1).astype(kind), return_inverse=True, size=count, fill_value=n)
        return RowIndex(unique, inverse.reshape(ids.shape).astype(np.int32))
    with jax.enable_x64(True):
        keys = ids.reshape(-1).astype(np.int32 if n.bit_length() + bits <= 31 else np.int64) << bits
        keys = jnp.sort(keys | jnp.arange(count, dtype=keys.dtype))
        ordered, position = (keys >> bits).astype(kind), (keys & ((1 << bits) - 1)).astype(np.int32)
        first = jnp.concatenate([jnp.zeros(1, bool), ordered[1:] != ordered[:-1]])
        place = jnp.cumsum(first, dtype=np.int32)
        unique = jnp.full(count, n, kind).at[place].set(ordered)
        inverse = jnp.zeros(count, np.int32).at[position].set(place, unique_indices=True)
    return RowIndex(unique, inverse.reshape(ids.shape))


def index_on_host(ids: np.ndarray, n: int, clip: bool = False) -> RowIndex:
    """Returns the index of ids in [0, n], of numpy arrays whose capacity comes from the ladder.

    Several times faster than numpy's and XLA's unique with inverse.

    Args:
      ids: the ids.
      n: how many there are to choose from; n itself is padding.
      clip: whether ids may lie outside, and stand for 0 or n - 1 then.
    """
    kind, last = index_dtype(n), max(n - 1, 0)
    flat = ids.reshape(-1)
    if clip and flat.size and not 0 <= flat.min() <= flat.max() <= last:
        flat = np.clip(flat, 0, last)
    flat = flat.astype(kind, copy=False)
    if is_crowded(flat.size, n):
        unique, places = _by_table(flat, n)
    elif n <= _MAX_SCRATCH:
        unique, places = _by_lookup(flat, n)
    else:
        unique, places = _by_sorting(flat, n)
    if unique.size and unique[-1] == n:  # padding: its place is beyond the last
        unique = unique[:-1]
        places[flat == n] = bucket(len(unique))
    return RowIndex(padded(unique.astype(kind, copy=False), bucket(len(unique)), n), places.reshape(ids.shape))


def is_crowded(count: int, n: int) -> bool:
    """Whether `count` ids out of n are so many that what goes through all n costs little."""
    return count * 8 > n and n <= _MAX_TABLE


def _by_table(flat: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    seen = np.zeros(n + 1, bool)
    seen[flat] = True
    seen[n] = False
    unique = np.flatnonzero(seen)
    table = np.empty(n + 1, np.int32)
    table[unique] = np.arange(len(unique), dtype=np.int32)
    table[n] = bucket(len(unique))
    return unique, table[flat]


class _Scratch(threading.local):
    """Memory for `_by_lookup` that a thread keeps; what is in it means nothing."""

    places = np.empty(0, np.int32)

    def of(self, size: int) -> np.ndarray:
        if len(self.places) < size:
            self.places = np.empty(size, np.int32)
        return self.places


_scratch = _Scratch()


def _by_lookup(flat: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorts the ids alone, and notes the place of each in a table of n, of which only those are written and read."""
    ordered = np.sort(flat)
    unique = ordered[_is_first(ordered)]
    table = _scratch.of(n + 1)
    table[unique.astype(np.intp)] = np.arange(len(unique), dtype=np.int32)
    return unique, table.take(flat)


def _is_first(ordered: np.ndarray) -> np.ndarray:
    """Which of sorted ids differ from the one before."""
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _by_sorting(flat: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorts ids that carry their positions in the low bits: one pass of what numpy sorts fastest."""
    count = flat.size
    bits = count.bit_length()
    if flat.dtype.itemsize > 4 and n.bit_length() + bits > 63:
        unique, places = np.unique(flat, return_inverse=True)
        places = places.astype(np.int32)
    else:
        keys = np.left_shift(flat, bits, dtype=np.int64)
        keys |= np.arange(count)
        keys.sort()
        ordered = keys >> bits
        keys &= (1 << bits) - 1
        first = _is_first(ordered)
        unique = ordered[first]
        first[:1] = False
        places = np.empty(count, np.int32)
        places[keys] = first.cumsum(dtype=np.int32)
    return unique, places


def merge(parts: list[RowIndex], n: int, on_host: bool) -> RowIndex:
    """Returns one index for the ids of several lookups of one table; its `inverse` is the list of theirs."""
    if len(parts) == 1:
        return RowIndex(parts[0].unique, [parts[0].inverse])
    xp: Any = np if on_host else jnp
    if on_host:
        parts = [RowIndex(np.asarray(p.unique), np.asarray(p.inverse)) for p in parts]
    joined = xp.concatenate([p.unique for p in parts])
    whole = index_on_host(joined, n) if on_host else index_ids(joined, n)
    inverses, start = [], 0
    for p in parts:
        places = whole.inverse[start : start + len(p.unique)]
        start += len(p.unique)
        # one place more, for the ids that are padding
        places = xp.concatenate([places, xp.full((1,), len(whole.unique), places.dtype)])
        inverses.append(xp.take(places, xp.minimum(p.inverse, len(p.unique)), axis=0))
    return RowIndex(whole.unique, inverses)
