"""Arithmetic on quantized arrays: ranges, rounding, and products of int8 and uint8 summed exactly in int32.

A quantized array comes with two arrays of shape (1,), `min` and `max`. With `R = max(|min|, |max|)`, int8 q stands for
the real number `q R / 127.5`, uint8 q for `q R / 255.5` and int32 q for `q R / (2^31 - 1)`: there is no offset. Real
numbers become quantized ones by `round(x / step)`, halves to even, limited to the type's ends. Nothing here has a
gradient. All this is MXNet's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import DTypeError, ShapeError
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike

LEVELS = {"int8": 127.5, "uint8": 255.5, "int32": 2147483647.0}
"""How many steps R has in a type."""

WHOLE = {"int8": 127.0, "uint8": 255.0}
"""The same for the operators that count whole numbers only."""

QUANTIZED = ("int8", "uint8")
RANGE: ShapeLike = (1,)
FLOAT = "float32"
RANGED = ("output", "min_output", "max_output")
Types = tuple[Sequence[str | None], Sequence[str | None]]
Ends = tuple[Any, Any]

_EXACT = 1 << 24
"""Sums of whole numbers below it are exact in float32, in any order."""


class CalibratedParams(Params):
    min_calib_range: float | None = param(None, doc="Lower end of the output's range, from calibration.")
    max_calib_range: float | None = param(None, doc="Upper end of the output's range, from calibration.")


def calibrated(p: Any) -> tuple[float, float] | None:
    """The calibrated range of a node, None where it lacks an end."""
    if p.min_calib_range is None or p.max_calib_range is None:
        return None
    return p.min_calib_range, p.max_calib_range


def as_range(value: Any) -> Array:
    """A number as an end of a range, shape (1,)."""
    return jnp.full((1,), value, jnp.float32)


def ends_of(low: Array, high: Array) -> Ends:
    """The numbers in two range arrays."""
    return scalar(low), scalar(high)


def scalar(x: Array) -> Array:
    """The number in a range array of one element, without gradient."""
    return lax.stop_gradient(x).reshape(-1)[0].astype(jnp.float32)


def largest(low: Any, high: Any) -> Array:
    """R = max(|low|, |high|) as a float32 scalar."""
    return jnp.maximum(jnp.abs(jnp.asarray(low, jnp.float32)), jnp.abs(jnp.asarray(high, jnp.float32)))


def _levels(dtype: Any, levels: Mapping[str, float]) -> float:
    # inference of shapes alone evaluates rules with float32 inputs
    return levels.get(jnp.dtype(dtype).name, levels["int8"])


def scale_of(dtype: Any, low: Any, high: Any, levels: Mapping[str, float] = LEVELS) -> Array:
    """Quantized steps per unit, `levels / R`; 0 for an empty range, in which everything is 0."""
    reach = largest(low, high)
    return jnp.where(reach > 0, jnp.float32(_levels(dtype, levels)) / reach, 0)


def step_of(dtype: Any, low: Any, high: Any, levels: Mapping[str, float] = LEVELS) -> Array:
    """The real number that one quantized step stands for, `R / levels`."""
    return largest(low, high) / jnp.float32(_levels(dtype, levels))


def saturate(x: Array, dtype: Any) -> Array:
    """Casts to an integer type, limited to its ends; NaN becomes 0."""
    if not jnp.issubdtype(dtype, jnp.integer):
        return x.astype(dtype)  # inference of shapes alone
    info = jnp.iinfo(dtype)
    top = float(info.max)
    # float32 has no 2^31 - 1: limit below the next number that it has, then take the exact end.
    if info.bits == 32:
        inside = jnp.clip(x, float(info.min), 2147483520.0)
        return jnp.where(x >= top, info.max, jnp.nan_to_num(inside).astype(dtype)).astype(dtype)
    return jnp.nan_to_num(jnp.clip(x, float(info.min), top)).astype(dtype)


def round_even(x: Array, dtype: Any) -> Array:
    """Rounds halves to even, as oneDNN does, and saturates."""
    return saturate(jnp.rint(x), dtype)


def round_away(x: Array, dtype: Any) -> Array:
    """Rounds halves away from 0, as C's `round` does, and saturates."""
    return saturate(jnp.trunc(x + jnp.copysign(jnp.float32(0.5), x)), dtype)


def truncate(x: Array, dtype: Any) -> Array:
    """Cuts the fraction off, as a cast in C does, and saturates."""
    return saturate(jnp.trunc(x), dtype)


def product_range(a: Array, b: Array, a_ends: Ends, b_ends: Ends) -> tuple[Array, Array]:
    """The range (min, max) of int32 sums of products of the arrays a and b, which have these ranges."""
    step = step_of(a.dtype, *a_ends, WHOLE) * step_of(b.dtype, *b_ends, WHOLE)
    high = step * jnp.float32(LEVELS["int32"])
    return as_range(-high), as_range(high)


def check_types(names: Sequence[str], ins: Sequence[str | None], allowed: Sequence[str]) -> None:
    """Refuses known types that are not among `allowed`.

    Raises:
      DTypeError: the first input of another type.
    """
    for name, t in zip(names, ins, strict=False):
        if t is not None and t not in allowed:
            raise DTypeError(f"argument {name!r}: expected {' or '.join(allowed)}, got {t}")


# ---- exact products

Contract = Callable[[Array, Array], Array]


def _signed(x: Array) -> tuple[Array, bool]:
    """x as int8, and whether 128 was taken off."""
    if x.dtype == jnp.uint8:
        return (x.astype(jnp.int16) - 128).astype(jnp.int8), True
    return x, False


def dot(x: Array, weight: Array) -> Array:
    """x (…, K) · weight (M, K) in int8 products summed in int32: (…, M)."""
    x, shifted = _signed(x)
    out = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
    return out + 128 * weight.sum(1, dtype=jnp.int32) if shifted else out


def dot_by_floats(x: Array, weight: Array) -> Array:
    """The same in float32, in blocks of K whose sums stay exact: what is fast where int8 is not (CPU)."""
    size = _block(x, weight)
    total: Array | None = None
    for k in range(0, max(x.shape[-1], 1), size):
        a, b = x[..., k:k + size].astype(jnp.float32), weight[:, k:k + size].astype(jnp.float32)
        part = lax.dot_general(a, b, (((a.ndim - 1,), (1,)), ((), ())), precision=lax.Precision.HIGHEST)
        total = part.astype(jnp.int32) if total is None else total + part.astype(jnp.int32)
    assert total is not None
    return total


def batch_dot(a: Array, b: Array) -> Array:
    """a (…, M, K) · b (…, K, N) summed in int32."""
    axes = tuple(range(a.ndim - 2))
    dims = (((a.ndim - 1,), (b.ndim - 2,)), (axes, axes))
    if a.dtype != b.dtype:
        a, b = a.astype(jnp.int16), b.astype(jnp.int16)
    return lax.dot_general(a, b, dims, preferred_element_type=jnp.int32)


def _block(x: Array, weight: Array) -> int:
    """How many products of these types float32 sums exactly."""
    top = {"int8": 128, "uint8": 255}
    return _EXACT // (top[x.dtype.name] * top[weight.dtype.name])


def convolve(x: Array, weight: Array, *, stride: Sequence[int], dilate: Sequence[int], pad: Sequence[int],
             groups: int) -> Array:
    """Convolution of x (N, C, …) with weight (O, C / groups, …), summed in int32.

    One product of matrices for each tap of the kernel: matrix units take int8, convolution units often do not.
    """
    x, shifted = _signed(x)
    _check_reach(x.shape, weight.shape, dilate, pad)
    edges = [(0, 0), (0, 0), *((q, q) for q in pad)]
    x = jnp.pad(x, edges, constant_values=-128 if shifted else 0)
    kernel = weight.shape[2:]
    out_size = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilate, strict=True)]
    n, channels = x.shape[:2]
    grouped = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    total = jnp.zeros((groups, grouped.shape[1], n, *out_size), jnp.int32)
    for tap in itertools.product(*(range(k) for k in kernel)):
        start = [0, 0, *(t * d for t, d in zip(tap, dilate, strict=True))]
        limit = [n, channels, *(b + (m - 1) * s + 1 for b, m, s in zip(start[2:], out_size, stride, strict=True))]
        seen = lax.slice(x, start, limit, [1, 1, *stride])
        seen = seen.reshape(n, groups, channels // groups, *out_size)
        at = grouped[(..., *tap)]
        total = total + lax.dot_general(at, seen, (((2,), (2,)), ((0,), (1,))), preferred_element_type=jnp.int32)
    out = jnp.moveaxis(total, 2, 0).reshape(n, weight.shape[0], *out_size)
    if shifted:
        sums = weight.sum(tuple(range(1, weight.ndim)), dtype=jnp.int32)
        out = out + 128 * sums.reshape(1, -1, *([1] * len(kernel)))
    return out


def _depthwise(x: Array, weight: Array, stride: Sequence[int], dilate: Sequence[int], pad: Sequence[int]) -> Array:
    """A filter for each channel: one elementwise product for each tap, which XLA joins into one loop."""
    _check_reach(x.shape, weight.shape, dilate, pad)
    x = jnp.pad(x.astype(jnp.float32), [(0, 0), (0, 0), *((q, q) for q in pad)])
    kernel = weight.shape[2:]
    ends = [n - d * (k - 1) for n, k, d in zip(x.shape[2:], kernel, dilate, strict=True)]
    total: Any = 0
    for tap in itertools.product(*(range(k) for k in kernel)):
        start = [t * d for t, d in zip(tap, dilate, strict=True)]
        limit = [a + e for a, e in zip(start, ends, strict=True)]
        seen = lax.slice(x, [0, 0, *start], [*x.shape[:2], *limit], [1, 1, *stride])
        total = total + seen * weight[(slice(None), 0, *tap)].astype(jnp.float32).reshape(1, -1, *([1] * len(kernel)))
    return total.astype(jnp.int32)


def _pointwise(x: Array, weight: Array) -> Array:
    """A convolution with one tap, as a product of matrices."""
    out = lax.dot_general(weight.reshape(weight.shape[:2]), x, (((1,), (1,)), ((), ())),
                          precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(out, 0, 1)


def _check_reach(x: Sequence[int], weight: Sequence[int], dilate: Sequence[int], pad: Sequence[int]) -> None:
    for n, k, d, q in zip(x[2:], weight[2:], dilate, pad, strict=True):
        if n + 2 * q < d * (k - 1) + 1:
            raise ShapeError(f"argument data: the kernel spans {d * (k - 1) + 1}, more than the padded size "
                             f"{n + 2 * q} of {tuple(x)}")


def convolve_by_floats(x: Array, weight: Array, *, stride: Sequence[int], dilate: Sequence[int], pad: Sequence[int],
                       groups: int, convolution: Contract) -> Array:
    """The same by a float32 convolution of blocks of channels whose sums stay exact.

    Args:
      x, weight, stride, dilate, pad, groups: as for `convolve`.
      convolution: (data, weight) -> output in float32, with these parameters.
    """
    taps = math.prod(weight.shape[2:])
    size = max(1, _block(x, weight) // taps)
    if taps > _block(x, weight):
        return convolve(x, weight, stride=stride, dilate=dilate, pad=pad, groups=groups)
    if groups == x.shape[1] == weight.shape[0]:
        return _depthwise(x, weight, stride, dilate, pad)
    if groups == taps == 1 and set(stride) == {1} and not any(pad):
        convolution = _pointwise
    if weight.shape[1] <= size:
        return convolution(x.astype(jnp.float32), weight.astype(jnp.float32)).astype(jnp.int32)
    per_group = weight.shape[1]
    split = x.reshape(x.shape[0], groups, per_group, *x.shape[2:])
    total: Array | None = None
    for c in range(0, per_group, size):
        part = split[:, :, c:c + size]
        part = part.reshape(x.shape[0], -1, *x.shape[2:]).astype(jnp.float32)
        out = convolution(part, weight[:, c:c + size].astype(jnp.float32)).astype(jnp.int32)
        total = out if total is None else total + out
    assert total is not None
    return total
