"""Resizing of images as OpenCV does it, for channels-last arrays of any number of leading axes.

Both axes are reduced by taps: each output cell is a weighted sum of a few input cells, whose positions and weights are
known from the sizes alone. For uint8, OpenCV computes in fixed point, and so does this, to give the same numbers.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from symjax.lowering.errors import DTypeError, ParamError

NEAREST, LINEAR, CUBIC, AREA, LANCZOS, LINEAR_EXACT = range(6)
_BITS = 11  # of a fixed-point weight


@dataclasses.dataclass(frozen=True)
class Taps:
    """For each output cell the input cells it is made of, (n_out, k), and their weights."""

    index: np.ndarray
    weight: np.ndarray


def resize(x: Any, height: int, width: int, interp: int) -> Any:
    """Resizes (..., H, W, C) to (..., height, width, C).

    Args:
      x: uint8 or floating-point array.
      height, width: the new size.
      interp: OpenCV's number: 0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos over 8x8, 5 bilinear, exact.

    Raises:
      ParamError: there is no such interpolation.
      DTypeError: an integer type other than uint8.
    """
    if interp not in range(6):
        raise ParamError(f"interp={interp}: expected 0 (nearest), 1 (bilinear), 2 (bicubic), 3 (area), 4 (Lanczos) or "
                         f"5 (bilinear, exact)")
    integer = not jnp.issubdtype(x.dtype, jnp.floating)
    if integer and x.dtype != jnp.uint8:
        raise DTypeError(f"images of dtype {x.dtype} cannot be resized; expected uint8 or a floating-point type")
    h, w = x.shape[-3:-1]
    if interp == NEAREST or (h, w) == (height, width):
        rows, cols = _nearest(h, height), _nearest(w, width)
        return jnp.take(jnp.take(x, rows, axis=-3), cols, axis=-2)
    half = (h, w) == (2 * height, 2 * width)
    if interp == LINEAR and half:
        interp = AREA
    shrinks = h >= height and w >= width
    # OpenCV sets the weights at the left and right edge to 0 and 1, but repeats the upper and lower row
    rows, cols = _taps(h, height, interp, shrinks, interp == LINEAR_EXACT), _taps(w, width, interp, shrinks, True)
    if integer:
        return _fixed(x, rows, cols, interp, shrinks, half)
    compute = jnp.promote_types(x.dtype, jnp.float32)
    y = _apply(_apply(x.astype(compute), cols, -2), rows, -3)
    return y.astype(x.dtype)


def _nearest(n: int, out: int) -> np.ndarray:
    scale = 1.0 / (out / n)
    return np.minimum(np.floor(np.arange(out) * scale), n - 1).astype(np.int32)


@functools.lru_cache(maxsize=1024)
def _taps(n: int, out: int, interp: int, shrinks: bool, whole: bool) -> Taps:
    inverse = out / n
    scale = 1.0 / inverse
    if interp == AREA and shrinks:
        return _area(n, out, scale)
    d = np.arange(out)
    if interp == AREA:
        at = np.floor(d * scale)
        f = (d + 1) - (at + 1) * inverse
        f = np.where(f <= 0, 0.0, f - np.floor(f)).astype(np.float32)
    else:
        exact = (d + 0.5) * scale - 0.5
        where = exact if interp == LINEAR_EXACT else exact.astype(np.float32)
        at = np.floor(where)
        f = where - at
    if interp in (LINEAR, AREA, LINEAR_EXACT):
        if whole:
            f = np.where((at < 0) | (at >= n - 1), 0.0, f).astype(f.dtype)
            at = np.clip(at, 0, n - 1)
        weight, first = np.stack([1 - f, f], 1), 0
    else:
        weight, first = (_cubic(f), -1) if interp == CUBIC else (_lanczos(f), -3)
    index = at.astype(np.int64)[:, None] + first + np.arange(weight.shape[1])
    return Taps(np.clip(index, 0, n - 1).astype(np.int32), weight)


def _cubic(f: np.ndarray) -> np.ndarray:
    a = np.float32(-0.75)
    g, one = 1 - f, np.float32(1)
    c0 = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a
    c1 = ((a + 2) * f - (a + 3)) * f * f + one
    c2 = ((a + 2) * g - (a + 3)) * g * g + one
    return np.stack([c0, c1, c2, one - c0 - c1 - c2], 1).astype(np.float32)


def _lanczos(f: np.ndarray) -> np.ndarray:
    s = math.sqrt(0.5)
    table = np.array([(1, 0), (-s, -s), (0, 1), (s, -s), (-1, 0), (s, s), (0, -1), (-s, s)])
    x = f.astype(np.float64)[:, None]
    y0 = -(x + 3) * math.pi / 4
    y = -(x + 3 - np.arange(8)) * math.pi / 4
    on_cell = x < np.finfo(np.float32).eps
    raw = (table[:, 0] * np.sin(y0) + table[:, 1] * np.cos(y0)) / np.where(on_cell, 1.0, y) ** 2
    raw = np.where(on_cell, np.arange(8) == 3, raw)
    return (raw / raw.sum(1, keepdims=True)).astype(np.float32)


def _area(n: int, out: int, scale: float) -> Taps:
    rows: list[list[tuple[int, float]]] = []
    for d in range(out):
        begin, end = d * scale, d * scale + scale
        cell = min(scale, n - begin)
        last = min(math.floor(end), n - 1)
        first = min(math.ceil(begin), last)
        row = [(first - 1, (first - begin) / cell)] if first - begin > 1e-3 else []
        row += [(i, 1 / cell) for i in range(first, last)]
        if end - last > 1e-3:
            row.append((last, min(end - last, 1.0, cell) / cell))
        rows.append(row)
    k = max(len(r) for r in rows)
    filled = [r + [(0, 0.0)] * (k - len(r)) for r in rows]
    return Taps(np.array([[i for i, _ in r] for r in filled], np.int32),
                np.array([[w for _, w in r] for r in filled], np.float32))


def _apply(x: Any, taps: Taps, axis: int) -> Any:
    """The weighted sums along one axis."""
    shape = [1] * x.ndim
    shape[axis] = -1
    parts = (jnp.take(x, taps.index[:, k], axis=axis) * jnp.asarray(taps.weight[:, k].reshape(shape), x.dtype)
             for k in range(taps.index.shape[1]))
    return functools.reduce(jnp.add, parts)


def _fixed(x: Any, rows: Taps, cols: Taps, interp: int, shrinks: bool, half: bool) -> Any:
    """The same for uint8, with OpenCV's rounding."""
    if interp == AREA and shrinks:
        if half:
            total = _apply(_apply(x.astype(jnp.int32), _ones(cols), -2), _ones(rows), -3)
            return ((total + 2) >> 2).astype(jnp.uint8)
        y = _apply(_apply(x.astype(jnp.float32), cols, -2), rows, -3)
        return jnp.clip(jnp.round(y), 0, 255).astype(jnp.uint8)
    bits = 8 if interp == LINEAR_EXACT else _BITS
    rows, cols = _rounded(rows, bits), _rounded(cols, bits)
    y = _apply(x.astype(jnp.int32), cols, -2)
    if interp in (LINEAR, AREA):
        shape = [1] * x.ndim
        shape[-3] = -1
        a, b = (lax.shift_right_arithmetic(
            jnp.asarray(rows.weight[:, k].reshape(shape), jnp.int32) * (jnp.take(y, rows.index[:, k], axis=-3) >> 4),
            jnp.int32(16)) for k in range(2))
        y = (a + b + 2) >> 2
    else:
        y = (_apply(y, rows, -3) + (1 << (2 * bits - 1))) >> (2 * bits)
    return jnp.clip(y, 0, 255).astype(jnp.uint8)


def _ones(taps: Taps) -> Taps:
    return Taps(taps.index, (taps.weight > 0).astype(np.int32))


def _rounded(taps: Taps, bits: int) -> Taps:
    one = 1 << bits
    weight = np.rint(taps.weight.astype(np.float64) * one).astype(np.int32)
    if bits == 8:  # two weights that make exactly one
        weight[:, 0] = one - weight[:, 1]
    return Taps(taps.index, weight)
