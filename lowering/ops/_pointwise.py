"""Convolutions of one tap on the CPU, as products of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.ops._nn import linear, sum_dtype

LONG = 128
"""Positions from which a sample by itself makes a product as fast as the whole batch's, which needs transposes."""


def pointwise(x: Array, weight: Array, stride: Sequence[int], channel: int) -> Array:
    """Multiplies the channels at each place by the weight's matrix.

    Args:
      x: (N, C, spatial…), or (N, spatial…, C).
      weight: the weight in the same layout, 1 on its spatial axes.
      stride: the step on each spatial axis.
      channel: the axis of the channels.
    """
    steps = [1] * x.ndim
    first = 1 if channel > 1 else 2
    steps[first : first + len(stride)] = stride
    x = lax.slice(x, [0] * x.ndim, x.shape, steps)
    matrix = weight.reshape(weight.shape[0], -1)
    if channel > 1:
        return linear(x, matrix)
    n, c, *spatial = x.shape
    places = math.prod(spatial)
    flat = x.reshape(n, c, places)
    if places >= LONG:
        # a loop over the samples: no transposed copy, and the gradient of the weight adds up in one buffer
        out = lax.map(lambda v: jnp.matmul(matrix, v, preferred_element_type=sum_dtype(x)), flat)
    else:
        out = linear(flat.transpose(0, 2, 1).reshape(n * places, c), matrix)
        out = out.reshape(n, places, -1).transpose(0, 2, 1)
    return out.reshape(n, -1, *spatial)
