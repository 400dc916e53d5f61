"""Greedy non-maximum suppression of boxes that lie in the order of their preference."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

Boxes = tuple[Array, ...]
"""What overlaps are computed from, each number by itself: contiguous numbers are read several at once."""
Overlap = Callable[[Boxes, Boxes], Array]

_BLOCK = 128
"""Boxes that are settled together: their overlaps among each other are one matrix."""
_CHUNK = 64
"""Survivors that a block is held against at once."""


def sides(boxes: Array) -> Boxes:
    """Boxes (..., 4) as four arrays (...)."""
    return tuple(boxes[..., i] for i in range(4))


def common_area(a: Boxes, b: Boxes, border: int = 0) -> Array:
    """Area common to corner boxes; `border` is what a side is longer than the difference of its ends."""
    wide, high = (jnp.maximum(jnp.minimum(a[i + 2], b[i + 2]) - jnp.maximum(a[i], b[i]) + border, 0) for i in (0, 1))
    return wide * high


def greedy_nms(alive: Array, boxes: Boxes, overlap: Overlap, limit: int | None = None) -> Array:
    """Greedy non-maximum suppression: each survivor, first to last, removes the boxes behind it that it overlaps.

    Goes through the boxes in blocks. The survivors of earlier blocks remove boxes of a block, then the block is settled
    by itself. The work is that of holding every box against every survivor before it and against its block; the memory
    that for the survivors and one block.

    Args:
      alive: (B, N) bool, the candidates.
      boxes: arrays (B, N).
      overlap: maps boxes of broadcastable shapes (B, K, 1) and (B, 1, M), the first before the second, to (B, K, M)
        bool, whether the first suppress the second.
      limit: only this many survivors are wanted; None: all.

    Returns:
      (B, N) bool, the survivors; those behind the first `limit` of a row may be missing.
    """
    batch, n = alive.shape
    if 0 in alive.shape:
        return alive
    size = min(_BLOCK, n)
    blocks = -(-n // size)
    alive, *boxes = (jnp.pad(x, ((0, 0), (0, blocks * size - n))) for x in (alive, *boxes))
    most = n if limit is None else min(limit, n)
    room = -(-most // _CHUNK) * _CHUNK
    end = jnp.max(jnp.where(alive, jnp.arange(1, blocks * size + 1, dtype=jnp.int32), 0))

    def body(state: tuple[Array, Array, Array, Boxes]) -> tuple[Array, Array, Array, Boxes]:
        at, keep, count, kept = state
        mine = tuple(_part(x, at, size) for x in boxes)
        live = _drop(_part(alive, at, size), mine, count, kept, overlap)
        live = lax.cond(jnp.any(live), functools.partial(_settle, mine=mine, overlap=overlap), lambda x: x, live)
        # The survivors join those before them; a place without room drops the write.
        place = count[:, None] + jnp.cumsum(live, axis=1, dtype=jnp.int32) - 1
        put = jax.vmap(lambda to, place, x: to.at[place].set(x, mode="drop"))
        kept = tuple(put(k, jnp.where(live, place, room), x) for k, x in zip(kept, mine, strict=True))
        return at + size, lax.dynamic_update_slice_in_dim(keep, live, at, axis=1), place[:, -1] + 1, kept

    start = (jnp.zeros((), jnp.int32), jnp.zeros_like(alive), jnp.zeros(batch, jnp.int32),
             tuple(jnp.zeros((batch, room), x.dtype) for x in boxes))  # fmt: skip
    return lax.while_loop(lambda s: (s[0] < end) & jnp.any(s[2] < most), body, start)[1][:, :n]


def _part(x: Array, at: Array, size: int) -> Array:
    return lax.dynamic_slice_in_dim(x, at, size, axis=1)


def _pairs(overlap: Overlap, a: Boxes, b: Boxes) -> Array:
    return overlap(tuple(x[:, :, None] for x in a), tuple(x[:, None] for x in b))


def _drop(live: Array, mine: Boxes, count: Array, kept: Boxes, overlap: Overlap) -> Array:
    """Those of the live boxes that none of the first `count` kept ones suppresses."""

    def against(step: Array, live: Array) -> Array:
        at = step * _CHUNK
        real = at + jnp.arange(_CHUNK, dtype=jnp.int32) < count[:, None]
        over = _pairs(overlap, tuple(_part(x, at, _CHUNK) for x in kept), mine)
        return live & ~jnp.any(over & real[:, :, None], axis=1)

    steps = (jnp.minimum(jnp.max(count), kept[0].shape[1]) + _CHUNK - 1) // _CHUNK
    return lax.fori_loop(jnp.zeros((), jnp.int32), steps, against, live)


def _settle(live: Array, mine: Boxes, overlap: Overlap) -> Array:
    """Survivors of one block.

    A box survives if none before it that survives suppresses it. Taken for all boxes at once and again until nothing
    changes: the first i boxes are right after i times, but mostly a few times are enough for all.
    """
    place = jnp.arange(live.shape[1], dtype=jnp.int32)
    over = _pairs(overlap, mine, mine) & (place[:, None] < place)

    def again(state: tuple[Array, Array]) -> tuple[Array, Array]:
        return state[1], live & ~jnp.any(over & state[1][:, :, None], axis=1)

    return lax.while_loop(lambda s: jnp.any(s[0] != s[1]), again, (jnp.zeros_like(live), live))[1]
