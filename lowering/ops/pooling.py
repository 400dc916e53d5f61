"""Pooling and Pooling_v1.

Windows are taken as strided slices, one per tap, and combined elementwise. Against `lax.reduce_window`, whose gradient
for a maximum is a select-and-scatter, this is several times faster on CPU, and it gives the tie rule that MXNet has.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._axes import argmax
from symjax.lowering.ops._held import held
from symjax.lowering.ops._nn import Layout, check_rank, layout_for, per_axis, widen
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op

_Layouts = Literal["NCDHW", "NCHW", "NCW", "NDHWC", "NHWC", "NWC"] | None

_ONE_STAGE = 9
"""Most taps that are combined over all axes at once; larger windows go axis by axis."""

_MOST_CHOICES = 127
"""Most taps that are told apart in a byte."""


class PoolingParams(Params):
    kernel: Shape = param((), doc="Window size, one int per spatial axis; not needed with global_pool.")
    pool_type: Literal["avg", "lp", "max", "sum"] = param("max", doc="How a window is reduced.")
    global_pool: bool = param(False, doc="One window over everything; kernel, stride and pad are ignored.")
    cudnn_off: bool = param(False, doc="Ignored.")
    pooling_convention: Literal["full", "same", "valid"] = param(
        "valid", doc="Rounding of the output size: valid down, full up, same ceil((n + 2 pad) / stride).")
    stride: Shape = param((), doc="Step of the window; 1 on each axis when empty.")
    pad: Shape = param((), doc="Padding on both sides of each spatial axis; 0 when empty.")
    p_value: int | None = param(None, doc="Exponent of lp pooling.")
    count_include_pad: bool | None = param(None, doc="Whether padding counts in an average; True when None.")
    layout: _Layouts = param(None, doc="Axes of data and output; NCW, NCHW or NCDHW when None.")


class PoolingV1Params(Params):
    kernel: Shape = param((), doc="Window size, one int per spatial axis; not needed with global_pool.")
    pool_type: Literal["avg", "max", "sum"] = param("max", doc="How a window is reduced.")
    global_pool: bool = param(False, doc="One window over everything; kernel, stride and pad are ignored.")
    pooling_convention: Literal["full", "valid"] = param("valid", doc="Rounding of the output size: down or up.")
    stride: Shape = param((), doc="Step of the window; 1 on each axis when empty.")
    pad: Shape = param((), doc="Padding on both sides of each spatial axis; 0 when empty.")


@dataclasses.dataclass(frozen=True)
class _Axis:
    """Pooling along one axis of `size`: windows start at `i * stride - pad` for i < `out`."""

    axis: int
    size: int
    kernel: int
    stride: int
    pad: int
    out: int

    @property
    def edges(self) -> tuple[int, int]:
        """Padding before and after, so that every window lies inside (after may be negative)."""
        return self.pad, (self.out - 1) * self.stride + self.kernel - self.size - self.pad

    def counts(self, include_pad: bool) -> np.ndarray:
        """How many elements of each window count, cut at the padded border or at the data.

        A window that the full convention puts past the border counts 0 or less elements, which makes its average NaN
        or 0 as in MXNet; without padding it counts 1 and averages 0.
        """
        start = np.arange(self.out) * self.stride - self.pad
        if include_pad:
            return np.minimum(start + self.kernel, self.size + self.pad) - start
        return np.maximum(np.minimum(start + self.kernel, self.size) - np.maximum(start, 0), 1)


def _out_size(p: PoolingParams, size: int, kernel: int, stride: int, pad: int) -> int:
    if p.pooling_convention == "same":
        return -(-(size + 2 * pad) // stride)
    room = size + 2 * pad - kernel
    return 1 + (-(-room // stride) if p.pooling_convention == "full" else room // stride)


def _axes(p: PoolingParams, layout: Layout, shape: Sequence[int]) -> list[_Axis]:
    n = len(p.kernel)
    if n and min(p.kernel) < 1:
        raise ParamError(f"parameter kernel={p.kernel} must be at least 1 everywhere")
    if p.pooling_convention == "same" and any(p.pad):
        raise ParamError(f"parameter pad={p.pad} must be 0 with pooling_convention='same'")
    # MXNet: "same" wants three zeros whatever the rank.
    given = () if p.pooling_convention == "same" else p.pad
    stride, pad = per_axis("stride", p.stride, n, 1, 1), per_axis("pad", given, n, 0, 0)
    made = []
    for axis, k, s, q in zip(layout.spatial, p.kernel, stride, pad, strict=True):
        if k > shape[axis] + 2 * q:
            raise ShapeError(f"argument data: the kernel {p.kernel} exceeds the padded size {shape[axis] + 2 * q} of "
                             f"axis {axis} of {tuple(shape)}")
        made.append(_Axis(axis, shape[axis], k, s, q, _out_size(p, shape[axis], k, s, q)))
    return made


def _taps(x: Array, axes: Sequence[_Axis], fill: Any) -> Iterator[Array]:
    """Yields, for each position in the window (row-major), what all windows see there."""
    config = [(0, 0, 0)] * x.ndim
    for a in axes:
        config[a.axis] = (*a.edges, 0)
    x = lax.pad(x, jnp.asarray(fill, x.dtype), config)
    for offsets in itertools.product(*(range(a.kernel) for a in axes)):
        start, limit, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
        for a, o in zip(axes, offsets, strict=True):
            start[a.axis], step[a.axis] = o, a.stride
            limit[a.axis] = o + (a.out - 1) * a.stride + 1
        yield lax.slice(x, start, limit, step)


def _lowest(dtype: Any) -> Any:
    # MXNet: a maximum starts at the lowest finite number, which a window of padding or NaN alone returns.
    return jnp.finfo(dtype).min if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _first_max(taps: Iterator[Array], lowest: Any = None) -> Array:
    """The maximum; its gradient goes to the first of equal elements, and NaN loses to any number."""
    first = next(taps)
    lowest = jnp.asarray(_lowest(first.dtype) if lowest is None else lowest, first.dtype)
    start = jnp.where(first > lowest, first, lowest)
    return functools.reduce(lambda best, x: jnp.where(x > best, x, best), taps, start)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _max_once(x: Array, axes: tuple[_Axis, ...], cpu: bool) -> Array:
    return _first_max(_taps(x, axes, _lowest(x.dtype)))


@_max_once.defjvp
def _max_once_jvp(axes: tuple[_Axis, ...], cpu: bool, primals: tuple[Array],
                  tangents: tuple[Array]) -> tuple[Array, Array]:  # fmt: skip
    """The derivative of the chosen taps: which they are is found once and kept in a byte for each window."""

    def find(x: Array) -> tuple[Array, Array]:
        best: Array = jnp.asarray(_lowest(x.dtype), x.dtype)
        chosen: Array = jnp.asarray(-1, jnp.int8)
        for number, tap in enumerate(_taps(x, axes, best)):
            larger = tap > best
            best, chosen = jnp.where(larger, tap, best), jnp.where(larger, jnp.int8(number), chosen)
        return best, chosen

    best, chosen = held(find, *primals) if cpu else find(*primals)
    return best, _choose(chosen, tangents[0], axes)


def _choose(chosen: Array, x: Array, axes: Sequence[_Axis]) -> Array:
    """The chosen tap of each window, 0 for the choice -1.

    Every axis is cut into steps of its stride: what a tap sees is then a slice without gaps, and the gradient, a sum of
    such slices with zeros around, takes half the time of one with zeros in between.
    """
    config, split = [(0, 0, 0)] * x.ndim, []
    steps = {a.axis: a.out - 1 - (-a.kernel // a.stride) for a in axes}
    for a in axes:
        config[a.axis] = (a.pad, steps[a.axis] * a.stride - a.size - a.pad, 0)
    cut = {a.axis: a for a in axes}
    for i, d in enumerate(x.shape):
        split += [steps[i], cut[i].stride] if i in cut else [d]
    parts = lax.pad(x, jnp.zeros((), x.dtype), config).reshape(split)
    total = jnp.zeros(chosen.shape, x.dtype)
    for number, tap in enumerate(itertools.product(*(range(a.kernel) for a in axes))):
        seen = parts
        for a, place in reversed(list(zip(axes, tap, strict=True))):
            before = sum(b.axis < a.axis for b in axes)
            step, phase = divmod(place, a.stride)
            seen = lax.index_in_dim(seen, phase, a.axis + before + 1, keepdims=False)
            seen = lax.slice_in_dim(seen, step, step + a.out, axis=a.axis + before)
        total = total + jnp.where(chosen == number, seen, jnp.zeros((), x.dtype))
    return total


def _max(x: Array, axes: Sequence[_Axis], cpu: bool) -> Array:
    def once(x: Array, some: Sequence[_Axis]) -> Array:
        if jnp.issubdtype(x.dtype, jnp.floating) and x.size and math.prod(a.kernel for a in some) <= _MOST_CHOICES:
            return _max_once(x, tuple(some), cpu)
        return _first_max(_taps(x, some, _lowest(x.dtype)))

    if math.prod(a.kernel for a in axes) <= _ONE_STAGE:
        return once(x, axes)
    # The last axis goes first: then the first maximum in row-major order wins, as in one stage.
    for a in reversed(axes):
        x = once(x, [a])
    return x


def _sum(x: Array, axes: Sequence[_Axis]) -> Array:
    if math.prod(a.kernel for a in axes) <= _ONE_STAGE:
        return functools.reduce(jnp.add, _taps(x, axes, 0))
    for a in reversed(axes):
        if a.out == 1 and a.edges == (0, 0):
            x = x.sum(a.axis, keepdims=True)
        else:
            x = functools.reduce(jnp.add, _taps(x, [a], 0))
    return x


def _average(x: Array, axes: Sequence[_Axis], include_pad: bool) -> Array:
    total = _sum(x, axes)
    for a in axes:
        counts = a.counts(include_pad)
        uniform = len(set(counts.tolist())) <= 1
        shape = [a.out if i == a.axis else 1 for i in range(x.ndim)]
        total = total / (int(counts[0]) if uniform and counts.size else
                         jnp.asarray(counts.reshape(shape), total.dtype))
    return total


def _power_mean(x: Array, reduce: Callable[[Array], Array], exponent: int) -> Array:
    """(reduce x^p)^(1/p) with a zero gradient where it is 0."""
    total = reduce(x ** exponent)
    if exponent == 1:
        return total
    nonzero = total != 0
    safe = jnp.where(nonzero, total, 1)
    return jnp.where(nonzero, jnp.sqrt(safe) if exponent == 2 else jnp.cbrt(safe), 0)


def _exponent(p: PoolingParams) -> int:
    if p.p_value not in (1, 2, 3):
        raise ParamError(f"parameter p_value={p.p_value} must be 1, 2 or 3 for pool_type='lp'")
    return p.p_value


def _global_max(x: Array, layout: Layout) -> Array:
    """The maximum over all spatial axes, its gradient to the first of equal elements."""
    channels_last = layout.channel == x.ndim - 1
    lowest = _lowest(x.dtype)
    flat = x.reshape(x.shape[0], -1, x.shape[-1]) if channels_last else x.reshape(*x.shape[:2], -1)
    axis = 1 if channels_last else 2
    number = jnp.where(flat > lowest, flat, jnp.asarray(lowest, x.dtype))  # also for NaN
    where = argmax(number, axis=axis, keepdims=True)
    picked = jnp.take_along_axis(number, where, axis=axis)
    return picked.reshape([1 if i in layout.spatial else d for i, d in enumerate(x.shape)])


def _pool_globally(p: PoolingParams, layout: Layout, x: Array) -> Array:
    if p.pool_type == "max":
        return _global_max(x, layout)
    if p.pool_type == "avg":
        return x.mean(layout.spatial, keepdims=True)
    total = functools.partial(jnp.sum, axis=layout.spatial, keepdims=True)
    return total(x) if p.pool_type == "sum" else _power_mean(x, total, _exponent(p))


def _pool(p: PoolingParams, data: Array, cpu: bool = False) -> Array:
    rank = data.ndim if p.global_pool else len(p.kernel) + 2
    check_rank("data", data.shape, (3, 4, 5) if p.global_pool else (rank,))
    layout = layout_for(p.layout, rank - 2)
    x = data if p.pool_type == "max" else widen(data)
    if p.global_pool:
        return _pool_globally(p, layout, x).astype(data.dtype)
    axes = _axes(p, layout, data.shape)
    if p.pool_type == "max":
        out = _max(x, axes, cpu)
    elif p.pool_type == "avg":
        out = _average(x, axes, p.count_include_pad is not False)
    elif p.pool_type == "sum":
        out = _sum(x, axes)
    else:
        out = _power_mean(x, functools.partial(_sum, axes=axes), _exponent(p))
    return out.astype(data.dtype)


@op("Pooling", aliases=("_npx_pooling",), params=PoolingParams)
def pooling(p: PoolingParams, data: Array) -> Array:
    """Reduces windows of `data` to their maximum, average, sum or p-norm.

    A spatial axis of size n becomes `floor((n + 2 pad - kernel) / stride) + 1` (valid), the same with ceil (full) or
    `ceil((n + 2 pad) / stride)` (same); 1 with global_pool. data is (N, C, spatial…) or, by layout, (N, spatial…, C).

    - max never takes padding; its gradient goes to the first maximum of a window, in row-major order. NaN is skipped;
      a window without any number gives the lowest finite one.
    - avg divides by the window's size as cut at the padded border, or at the data with count_include_pad=False.
    - lp is `(sum x^p)^(1/p)` for p = 1, 2, 3; x is not made positive, so p = 1 is the sum.

    MXNet has the convention "same" for one spatial axis only; here it works for all.
    """
    return _pool(p, data)


@pooling.variant(platform="cpu")
def _pool_on_cpu(p: PoolingParams, data: Array) -> Array:
    return _pool(p, data, cpu=True)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _tied_max(x: Array, axes: tuple[_Axis, ...]) -> Array:
    """The maximum of each window; every element that equals it gets the whole gradient. -inf: nothing is in it."""
    return _first_max(_taps(x, axes, -jnp.inf), -jnp.inf)


@_tied_max.defjvp
def _tied_max_jvp(axes: tuple[_Axis, ...], primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    x, t = primals[0], tangents[0]
    out = _tied_max(x, axes)
    pairs = zip(_taps(x, axes, -jnp.inf), _taps(t, axes, 0), strict=True)
    return out, functools.reduce(jnp.add, (jnp.where(v == out, d, jnp.zeros((), x.dtype)) for v, d in pairs))


def _v1_axes(p: PoolingV1Params, layout: Layout, shape: Sequence[int]) -> tuple[_Axis, ...]:
    """The windows of Pooling_v1 on data that is already padded."""
    if p.global_pool:
        return tuple(_Axis(a, shape[a], shape[a], 1, 0, 1) for a in layout.spatial)
    same = {"kernel": str(p.kernel), "stride": str(p.stride), "pooling_convention": p.pooling_convention}
    return tuple(_axes(PoolingParams.parse(same), layout, shape))


@op("Pooling_v1", params=PoolingV1Params)
def pooling_v1(p: PoolingV1Params, data: Array) -> Array:
    """The old Pooling, on (N, C, H, W) or (N, C, D, H, W), without lp, layouts and count_include_pad.

    It pads with zeros, which count in an average (always divided by the kernel's size) and compete in a maximum; all
    elements that equal the maximum get the gradient.
    """
    # MXNet: Pooling differs in each of these points; the old op is kept as it was.
    check_rank("data", data.shape, (4, 5) if p.global_pool else (len(p.kernel) + 2,))
    layout = layout_for(None, data.ndim - 2)
    x = data if p.pool_type == "max" else widen(data)
    if not p.global_pool:
        pad = per_axis("pad", p.pad, data.ndim - 2, 0, 0)
        x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *((q, q, 0) for q in pad)])
    axes = _v1_axes(p, layout, x.shape)
    if p.pool_type == "max":
        return _tied_max(x, axes)
    total = _sum(x, axes)
    scale = math.prod(a.kernel for a in axes) if p.pool_type == "avg" else 1
    return (total / scale).astype(data.dtype)
