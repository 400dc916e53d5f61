"""Sums of wide rows on the CPU, and broadcasts whose gradient is one, as products with ones.

Where rows hold more than some 16,000 numbers XLA's CPU code for their sum takes up to twenty times as long: 9 ms for 32
rows of 65,536, where the product takes 0.5.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

_WIDE = 1 << 14
_TYPES = ("float32", "float64")


def is_wide(shape: Sequence[int], rows: int, dtype: Any, least: int = _WIDE) -> bool:
    """Whether all but the first `rows` axes of a shape make a row of at least so many, and of a type that fits."""
    count = math.prod(shape[:rows])
    return rows > 0 and count > 1 and math.prod(shape[rows:]) >= least and jnp.dtype(dtype).name in _TYPES


def sum_rows(x: Array, rows: int) -> Array:
    """The sum over the first `rows` axes."""
    flat = x.reshape(math.prod(x.shape[:rows]), -1)
    return (jnp.ones(len(flat), x.dtype) @ flat).reshape(x.shape[rows:])


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def spread(x: Array, rows: tuple[int, ...]) -> Array:
    """x (…) as (*rows, …): the transpose of `sum_rows`."""
    return jnp.broadcast_to(x, (*rows, *x.shape))


@spread.defjvp
def _spread_jvp(rows: tuple[int, ...], primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    no_axes = (((), ()), ((), ()))
    outer = lax.dot_general(jnp.ones(math.prod(rows), dx.dtype), dx.reshape(-1), no_axes)
    return spread(x, rows), outer.reshape(*rows, *x.shape)


def stretched_rows(shape: Sequence[int], out: Sequence[int]) -> int:
    """How many axes of `out` an operand is repeated along; 0 unless those are its first ones."""
    rest = list(shape)
    while rest and rest[0] == 1:
        rest.pop(0)
    rows = len(out) - len(rest)
    return rows if list(out[rows:]) == rest else 0


def stretches(params: Any, avals: Sequence[Any]) -> bool:
    """Whether an operand of two is a row that is broadcast over the rows of the other."""
    out = jnp.broadcast_shapes(*(x.shape for x in avals))
    return any(is_wide(out, stretched_rows(x.shape, out), x.dtype) for x in avals)


def stretch(*arrays: Array) -> list[Array]:
    """Gives operands their common shape where `stretches` holds for them."""
    out = jnp.broadcast_shapes(*(x.shape for x in arrays))
    made = []
    for x in arrays:
        rows = stretched_rows(x.shape, out)
        made.append(spread(x.reshape(out[rows:]), out[:rows]) if is_wide(out, rows, x.dtype) else x)
    return made
