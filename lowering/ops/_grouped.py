"""Grouped convolutions for the CPU, where XLA runs those with feature groups in a scalar loop.

A depthwise one (a group for each channel) is a sum of shifted products, several ten times faster; so are its gradients
when they are written as the same sums. Other groups are convolutions of their own, joined.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.ops._nn import along, widen

MOST_GROUPS = 64
"""Groups up to which each is a convolution of its own; compiling takes as long as there are."""


@dataclasses.dataclass(frozen=True)
class Shifts:
    """The geometry of a depthwise convolution.

    Attributes:
      channel: the axis of the channels.
      spatial: the spatial axes of data.
      kernel, stride, dilate, pad: an int for each of them.
    """

    channel: int
    spatial: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilate: tuple[int, ...]
    pad: tuple[int, ...]

    def taps(self) -> Iterator[tuple[int, ...]]:
        """Yields the positions in the kernel."""
        return itertools.product(*(range(k) for k in self.kernel))

    def seen(self, x: Array, out: Sequence[int]) -> Callable[[tuple[int, ...]], Array]:
        """Returns what gives, for a tap, the element that each of `out` output positions multiplies with it."""
        config = [(0, 0, 0)] * x.ndim
        for i, axis in enumerate(self.spatial):
            last = (out[i] - 1) * self.stride[i] + (self.kernel[i] - 1) * self.dilate[i] + 1
            config[axis] = (self.pad[i], last - self.pad[i] - x.shape[axis], 0)
        padded = lax.pad(x, jnp.zeros((), x.dtype), config)

        def at(tap: tuple[int, ...]) -> Array:
            start, limit, step = [0] * x.ndim, list(padded.shape), [1] * x.ndim
            for i, axis in enumerate(self.spatial):
                start[axis], step[axis] = tap[i] * self.dilate[i], self.stride[i]
                limit[axis] = start[axis] + (out[i] - 1) * self.stride[i] + 1
            return lax.slice(padded, start, limit, step)

        return at


def _sum_of_taps(s: Shifts, at: Callable[[tuple[int, ...]], Array], taps: Array) -> Array:
    parts = (at(tap) * along(taps[(slice(None), *tap)], s.channel, len(s.spatial) + 2) for tap in s.taps())
    return functools.reduce(jnp.add, parts)


def _gather(s: Shifts, x: Array, taps: Array, out: Sequence[int]) -> Array:
    """out[y] = sum over k of taps[k] x[y stride - pad + k dilate]."""
    return _sum_of_taps(s, s.seen(x, out), taps)


def _scatter(s: Shifts, g: Array, taps: Array, size: Sequence[int]) -> Array:
    """The transpose of `_gather` in x: every g[y] adds taps[k] g[y] to position y stride - pad + k dilate of `size`."""
    config = [(0, 0, 0)] * g.ndim
    for i, axis in enumerate(s.spatial):
        before = (s.kernel[i] - 1) * s.dilate[i] - s.pad[i]
        length = (g.shape[axis] - 1) * s.stride[i] + 1
        config[axis] = (before, size[i] + (s.kernel[i] - 1) * s.dilate[i] - before - length, s.stride[i] - 1)
    padded = lax.pad(g, jnp.zeros((), g.dtype), config)

    def at(tap: tuple[int, ...]) -> Array:
        start, limit = [0] * g.ndim, list(padded.shape)
        for i, axis in enumerate(s.spatial):
            start[axis] = (s.kernel[i] - 1 - tap[i]) * s.dilate[i]
            limit[axis] = start[axis] + size[i]
        return lax.slice(padded, start, limit)

    return _sum_of_taps(s, at, taps)


def _of_taps(s: Shifts, x: Array, g: Array) -> Array:
    """The transpose of `_gather` in taps: (channels, *kernel).

    Sample by sample: what all taps read stays in the cache, three times faster than sums over the batch.
    """
    s = dataclasses.replace(s, channel=s.channel - 1, spatial=tuple(a - 1 for a in s.spatial))
    others = [a for a in range(x.ndim - 1) if a != s.channel]

    def of_sample(pair: tuple[Array, Array]) -> Array:
        sample, head = pair
        at = s.seen(sample, [head.shape[a] for a in s.spatial])
        return jnp.stack([jnp.sum(at(tap) * head, others) for tap in s.taps()], 1)

    return lax.map(of_sample, (x, g)).sum(0).reshape(-1, *s.kernel)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 3))
def _correlate(s: Shifts, x: Array, taps: Array, out: tuple[int, ...]) -> Array:
    return _gather(s, x, taps, out)


def _correlate_forward(s: Shifts, x: Array, taps: Array, out: tuple[int, ...]) -> tuple[Array, Any]:
    return _gather(s, x, taps, out), (x, taps)


def _correlate_backward(s: Shifts, out: tuple[int, ...], saved: Any, g: Array) -> tuple[Array, Array]:
    x, taps = saved
    return _spread(s, g, taps, tuple(x.shape[a] for a in s.spatial)), _of_taps(s, x, g)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 3))
def _spread(s: Shifts, x: Array, taps: Array, out: tuple[int, ...]) -> Array:
    return _scatter(s, x, taps, out)


def _spread_forward(s: Shifts, x: Array, taps: Array, out: tuple[int, ...]) -> tuple[Array, Any]:
    return _scatter(s, x, taps, out), (x, taps)


def _spread_backward(s: Shifts, out: tuple[int, ...], saved: Any, g: Array) -> tuple[Array, Array]:
    x, taps = saved
    return _correlate(s, g, taps, tuple(x.shape[a] for a in s.spatial)), _of_taps(s, g, x)


_correlate.defvjp(_correlate_forward, _correlate_backward)
_spread.defvjp(_spread_forward, _spread_backward)


def depthwise(s: Shifts, data: Array, weight: Array, out: Sequence[int], transposed: bool = False) -> Array:
    """Convolves every channel with filters of its own, in float32 for half precision.

    Args:
      s: the geometry.
      data: the data.
      weight: in the layout of the data, the filters in place of the batch (transposed: the channels; the filters of one
        in place of the channels).
      out: spatial sizes of the output.
      transposed: whether this is a transposed convolution, of which `s` is the geometry.
    """
    channels = data.shape[s.channel]
    taps = widen(jnp.moveaxis(weight, s.channel, 1).reshape(-1, *s.kernel))
    x = widen(data)
    if len(taps) != channels:
        x = jnp.repeat(x, len(taps) // channels, s.channel)
    return (_spread if transposed else _correlate)(s, x, taps, tuple(out))


def by_group(data: Array, weight: Array, groups: int, channel: int, convolve: Callable[[Array, Array], Array],
             weight_axis: int = 0) -> Array:  # fmt: skip
    """Convolves each group of channels by itself.

    Args:
      data, weight: those of the whole.
      groups: how many there are.
      channel: the axis of channels in the data and the result.
      convolve: convolution without groups.
      weight_axis: the axis of the weight that is divided.
    """
    parts = zip(jnp.split(data, groups, channel), jnp.split(weight, groups, weight_axis), strict=True)
    return jnp.concatenate([convolve(x, w) for x, w in parts], channel)
