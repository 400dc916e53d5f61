"""Random numbers: the global state behind `mx.random.seed`, and MXNet's samplers.

Distributions are MXNet's, bit streams are not: every draw takes a fresh JAX key (threefry), made of the seed and a
counter, so equal seeds and equal calls give equal numbers on every machine and device.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, SupportsInt

import jax
import numpy as np

from symjax.base import integer_types
from symjax.context import Context

if TYPE_CHECKING:
    from symjax.ndarray.random import (
        exponential,
        gamma,
        generalized_negative_binomial,
        multinomial,
        negative_binomial,
        normal,
        poisson,
        randint,
        randn,
        shuffle,
        uniform,
    )

__all__ = ["exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial", "next_key",
           "normal", "poisson", "randint", "randn", "seed", "shuffle", "uniform"]

_IMPL = "threefry2x32"
_MASK = 0xFFFFFFFF


class _State:
    """A seed and how many keys it has given."""

    __slots__ = ("count", "seed")

    def __init__(self, seed: int) -> None:
        self.seed, self.count = seed & _MASK, 0

    def draw(self) -> np.ndarray:
        # The 64 bits of a threefry key may be any: distinct (seed, counter) pairs are independent streams.
        key = np.array(((self.seed + (self.count >> 32) * 0x9E3779B9) & _MASK, self.count & _MASK), np.uint32)
        self.count += 1
        return key


_lock = threading.Lock()
_everywhere = _State(0)
_by_context: dict[Context, _State] = {}


def seed(seed_state: SupportsInt, ctx: Context | str = "all") -> None:
    """Starts the random streams afresh.

    Args:
      seed_state: an int; its lowest 32 bits count.
      ctx: one context whose stream is seeded apart from the others, or "all".

    Raises:
      ValueError: `seed_state` is not an int.
    """
    global _everywhere
    if not isinstance(seed_state, integer_types):
        raise ValueError("seed_state must be int")
    with _lock:
        if isinstance(ctx, str) and ctx == "all":
            _everywhere = _State(int(seed_state))
            _by_context.clear()
        else:
            _by_context[Context.from_text(ctx) if isinstance(ctx, str) else ctx] = _State(int(seed_state))


def next_key_data(ctx: Context | None = None) -> np.ndarray:
    """Returns the two uint32 words of a fresh key (see `jax.random.wrap_key_data`)."""
    with _lock:
        state = _by_context.get(ctx, _everywhere) if _by_context and ctx is not None else _everywhere
        return state.draw()


def wrap_key(data: Any) -> jax.Array:
    """Returns the JAX key of two uint32 words; traceable."""
    return jax.random.wrap_key_data(data, impl=_IMPL)


def next_key(ctx: Context | None = None) -> jax.Array:
    """Returns a fresh typed JAX key from the global state (or that of `ctx`, where it was seeded apart)."""
    return wrap_key(jax.numpy.asarray(next_key_data(ctx)))


def get_state() -> tuple[int, int]:
    """Returns (seed, number of keys given) of the global state, for checkpoints."""
    with _lock:
        return _everywhere.seed, _everywhere.count


def set_state(state: tuple[int, int]) -> None:
    """Restores what `get_state` returned."""
    global _everywhere
    with _lock:
        _everywhere = _State(state[0])
        _everywhere.count = state[1]


def __getattr__(name: str) -> Any:
    # The samplers are NDArray functions, and NDArray needs this module's keys.
    if name in __all__:
        from symjax.ndarray import random as samplers

        return getattr(samplers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
