"""Convolutions of volumes on the CPU, as convolutions of planes."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax


def by_planes(
    x: Array, weight: Array, depth: tuple[int, int, int], last: bool, convolve: Callable[[Array, Array], Array]
) -> Array:
    """Convolves volumes: the planes that a plane of the output sees become channels of one plane.

    XLA's CPU code for three spatial axes is several times slower than that for two.

    Args:
      x: (N, C, D, H, W), or (N, D, H, W, C) with `last`.
      weight: (filters, C, d, h, w), or (filters, d, h, w, C).
      depth: stride, dilation and padding of the depth.
      last: whether channels come last.
      convolve: the convolution of images with the other axes' windows.
    """
    stride, dilate, pad = depth
    if not last:
        x = jnp.moveaxis(x, 2, 1)
        weight = jnp.moveaxis(weight, 2, 1)
    n, taps = len(x), weight.shape[1]
    x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (pad, pad, 0), *[(0, 0, 0)] * 3])
    out = (x.shape[1] - (taps - 1) * dilate - 1) // stride + 1
    channel = 4 if last else 2
    seen = [lax.slice_in_dim(x, k * dilate, k * dilate + (out - 1) * stride + 1, stride, 1) for k in range(taps)]
    planes = jnp.concatenate(seen, channel)
    filters = jnp.concatenate([weight[:, k] for k in range(taps)], channel - 1)
    made = convolve(planes.reshape(n * out, *planes.shape[2:]), filters)
    made = made.reshape(n, out, *made.shape[1:])
    return made if last else jnp.moveaxis(made, 1, 2)
