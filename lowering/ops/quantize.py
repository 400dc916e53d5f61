"""Between float32 and int8: quantize, dequantize, requantize, and the choice of a threshold by entropy.

What int8 and uint8 arrays and their ranges mean stands in `_integer.py`.
"""

from __future__ import annotations

from typing import Any, Literal

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._axes import argmin
from symjax.lowering.ops._integer import (
    FLOAT,
    LEVELS,
    QUANTIZED,
    RANGE,
    WHOLE,
    CalibratedParams,
    Types,
    as_range,
    calibrated,
    check_types,
    largest,
    round_even,
    scalar,
    scale_of,
    step_of,
)
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op


class QuantizeParams(Params):
    out_type: Literal["int8", "uint8"] = param("uint8", doc="The type of the output.")


class QuantizeV2Params(Params):
    out_type: Literal["auto", "int8", "uint8"] = param(
        "int8", doc="The type of the output; auto: uint8 for a calibrated range without negative numbers.")
    min_calib_range: float | None = param(None, doc="Lower end of the data's range; the data's own minimum if None.")
    max_calib_range: float | None = param(None, doc="Upper end of the data's range; the data's own maximum if None.")


class RequantizeParams(Params):
    out_type: Literal["auto", "int8", "uint8"] = param(
        "int8", doc="The type of the output; auto: uint8 for a calibrated range without negative numbers.")
    min_calib_range: float | None = param(None, doc="Lower end of the output's range; of the data at hand if None.")
    max_calib_range: float | None = param(None, doc="Upper end of the output's range; of the data at hand if None.")


class DequantizeParams(Params):
    out_type: Literal["float32"] = param("float32", doc="The type of the output.")


class CalibrateEntropyParams(Params):
    num_quantized_bins: int = param(255, doc="How many steps the quantized numbers have.", ge=1)


def chosen_type(p: QuantizeV2Params | RequantizeParams) -> str:
    """The output type: `auto` follows the calibrated range."""
    if p.out_type != "auto":
        return p.out_type
    ends = calibrated(p)
    return "uint8" if ends is not None and ends[0] >= 0 else "int8"


def _with_ranges(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    return [ins[0] or outs[0], RANGE, RANGE]


def _to_quantized(x: Array, low: Any, high: Any, dtype: str) -> tuple[Array, Array, Array]:
    """x in steps of the range, and the range that the result has."""
    out = round_even(x * scale_of(dtype, low, high), dtype)
    if dtype == "uint8":
        return out, as_range(low), as_range(high)
    reach = largest(low, high)
    return out, as_range(-reach), as_range(reach)


def _quantize_types(p: QuantizeParams, ins: list[str | None], outs: list[str | None]) -> Types:
    return [FLOAT] * 3, [p.out_type, FLOAT, FLOAT]


@op("_contrib_quantize", params=QuantizeParams, outputs=3, infer_inputs=_with_ranges,
    infer_types=_quantize_types)
def quantize(p: QuantizeParams, data: Array, min_range: Array, max_range: Array) -> tuple[Array, Array, Array]:
    """Quantizes float32 data with the range [min_range, max_range], arrays of shape (1,).

    With `R = max(|min_range|, |max_range|)` the output is `round(x 127 / R)` as int8, whose range is [-R, R], or
    `round(x 255 / R)` as uint8, whose range stays; halves go to even, numbers outside of the range to its ends,
    negative ones to 0 in uint8. Gradients are 0.
    """
    # MXNet: the other operators, dequantize too, count 127.5 and 255.5 steps. Its documentation describes an offset for
    # uint8, which its kernels for CPU do not have.
    low, high = scalar(min_range), scalar(max_range)
    reach = largest(low, high)
    out = round_even(lax.stop_gradient(data) * scale_of(p.out_type, low, high, WHOLE), p.out_type)
    if p.out_type == "uint8":
        return out, as_range(low), as_range(high)
    return out, as_range(-reach), as_range(reach)


def _quantize_v2_types(p: QuantizeV2Params, ins: list[str | None], outs: list[str | None]) -> Types:
    check_types(("data",), ins, (FLOAT, *QUANTIZED))
    return ins, [chosen_type(p), FLOAT, FLOAT]


@op("_contrib_quantize_v2", params=QuantizeV2Params, outputs=3, infer_types=_quantize_v2_types,
    infer_inputs=lambda p, ins, outs: [ins[0] or outs[0]])
def quantize_v2(p: QuantizeV2Params, data: Array) -> tuple[Array, Array, Array]:
    """Quantizes float32 data with the calibrated range, or with that of the data.

    With R the larger end's magnitude the output is `round(x 127.5 / R)` as int8, whose range is [-R, R], or
    `round(x 255.5 / R)` as uint8, whose range stays; halves go to even, numbers outside of the range to its ends.

    Data that is int8 or uint8 already passes unchanged; its range is the calibrated one, or [-127.5, 127.5] and
    [0, 255.5]. Gradients are 0.
    """
    out_type, ends = chosen_type(p), calibrated(p)
    if data.dtype.name in QUANTIZED:
        if ends is None:
            ends = (0.0, LEVELS["uint8"]) if data.dtype.name == "uint8" else (-LEVELS["int8"], LEVELS["int8"])
        return data.astype(out_type), as_range(ends[0]), as_range(ends[1])
    data = lax.stop_gradient(data)
    low, high = (data.min(), data.max()) if ends is None else ends
    return _to_quantized(data, low, high, out_type)


def _asym_types(p: CalibratedParams, ins: list[str | None], outs: list[str | None]) -> Types:
    return [FLOAT], ["uint8", FLOAT, FLOAT]


@op("_contrib_quantize_asym", params=CalibratedParams, outputs=("output", "scale", "shift"), infer_types=_asym_types,
    infer_inputs=lambda p, ins, outs: [ins[0] or outs[0]])
def quantize_asym(p: CalibratedParams, data: Array) -> tuple[Array, Array, Array]:
    """Quantizes float32 data to uint8 with an offset: `round(x scale + shift)`, halves to even.

    `scale = 255 / (max - min)` and `shift = 255 - max scale` for the calibrated range, or that of the data; both are
    outputs of shape (1,). Numbers outside of the range get its ends. Gradients are 0.
    """
    data, ends = lax.stop_gradient(data), calibrated(p)
    low, high = (data.min(), data.max()) if ends is None else (jnp.float32(ends[0]), jnp.float32(ends[1]))
    scale = jnp.where(high > low, 255.0 / (high - low), 0).astype(jnp.float32)
    shift = 255.0 - high * scale
    return round_even(data * scale + shift, "uint8"), as_range(scale), as_range(shift)


def _dequantize_types(p: DequantizeParams, ins: list[str | None], outs: list[str | None]) -> Types:
    check_types(("data",), ins, QUANTIZED)
    return [ins[0], FLOAT, FLOAT], [FLOAT]


@op("_contrib_dequantize", params=DequantizeParams, infer_inputs=_with_ranges, infer_types=_dequantize_types)
def dequantize(p: DequantizeParams, data: Array, min_range: Array, max_range: Array) -> Array:
    """The float32 numbers that int8 or uint8 data stands for: `q R / 127.5` or `q R / 255.5`.

    R is max(|min_range|, |max_range|), of arrays of shape (1,). Gradients are 0.
    """
    return data.astype(jnp.float32) * step_of(data.dtype, scalar(min_range), scalar(max_range))


def _requantize_types(p: RequantizeParams, ins: list[str | None], outs: list[str | None]) -> Types:
    return ["int32", FLOAT, FLOAT], [chosen_type(p), FLOAT, FLOAT]


@op("_contrib_requantize", params=RequantizeParams, outputs=3, infer_inputs=_with_ranges,
    infer_types=_requantize_types)
def requantize(p: RequantizeParams, data: Array, min_range: Array, max_range: Array) -> tuple[Array, Array, Array]:
    """Narrows int32 sums to int8 or uint8.

    The data stands for `x = q max(|min_range|, |max_range|) / (2^31 - 1)`. With R the larger end of the calibrated
    range, or of the data at hand, the output is `round(x 127 / R)` as int8, with the range [-R, R], or
    `round(x 255 / R)` as uint8, with the range [0, R]; halves go to even, numbers outside of the range to its ends.
    """
    # MXNet: 127 and 255 here, 127.5 and 255.5 in dequantize.
    step = step_of("int32", scalar(min_range), scalar(max_range))
    ends, dtype, x = calibrated(p), chosen_type(p), data.astype(jnp.float32)
    reach = largest(x.min(), x.max()) * step if ends is None else largest(*ends)
    out = round_even(x * (step * scale_of(dtype, reach, reach, WHOLE)), dtype)
    return out, as_range(0 if dtype == "uint8" else -reach), as_range(reach)


# ---- calibration


@op("_contrib_calibrate_entropy", params=CalibrateEntropyParams, outputs=("threshold", "divergence"),
    infer_outputs=lambda p, ins: [RANGE, RANGE], infer_types=lambda p, ins, outs: ([FLOAT] * 2, [FLOAT] * 2))
def calibrate_entropy(p: CalibrateEntropyParams, hist: Array, hist_edges: Array) -> tuple[Array, Array]:
    """The threshold at which a quantized distribution is nearest to the distribution of a histogram.

    `hist` (n,) counts values in bins around 0, `hist_edges` (n + 1,) are their edges. For each i from
    `num_quantized_bins // 2` to n // 2, P is the middle 2i + 1 bins with what lies outside added to the end ones; Q
    merges these bins (without the outliers) into `num_quantized_bins` and spreads each over its bins that P fills. Both
    are smoothed (0.0001 for zeros, taken off the rest) and normalized. Returns the edge of the window with the least
    KL divergence sum(P log(P / Q)), and that divergence; shapes (1,).
    """
    n, bins = hist.shape[0], p.num_quantized_bins
    if hist_edges.shape != (n + 1,):
        raise ShapeError(f"argument 'hist_edges': expected shape ({n + 1},), got {hist_edges.shape}")
    if n // 2 < bins // 2:
        raise ParamError(f"parameter num_quantized_bins={bins} is more than the {n} bins of the histogram")
    half = jnp.arange(bins // 2, n // 2 + 1, dtype=jnp.int32)
    divergence = _divergences(hist.astype(jnp.float32), half, bins)
    best = argmin(divergence)
    return hist_edges[n // 2 + half[best] + 1].reshape(1), divergence[best].reshape(1)


def _divergences(hist: Array, half: Array, bins: int) -> Array:
    """The divergence of each window; a scan over bins adds them up in MXNet's order."""
    n = hist.shape[0]
    start, length = n // 2 - half, 2 * half + 1
    zero = jnp.zeros((1,), jnp.int64)
    counts = jnp.concatenate([zero, jnp.cumsum(hist.astype(jnp.int64))])
    filled = jnp.concatenate([zero, jnp.cumsum((hist.astype(jnp.int64) != 0).astype(jnp.int64))])
    low = counts[start + 1].astype(jnp.float32)
    high = (counts[-1] - counts[start + length - 1]).astype(jnp.float32)
    merged = length // bins

    def at(b: Array) -> tuple[Array, Array, Array]:
        """Whether bin b lies in each window, and P and Q there."""
        k = b - start
        inside = (k >= 0) & (k < length)
        prob = jnp.where(k == 0, low, jnp.where(k == length - 1, high, hist[b]))
        # MXNet: what was in the window's first bin counts among the outliers.
        j = jnp.minimum(k // merged, bins - 1)
        first = jnp.maximum(j * merged, 1)
        last = jnp.where(j == bins - 1, length, (j + 1) * merged)
        first, last = jnp.clip(start + first, 0, n), jnp.clip(start + last, 0, n)
        norm = filled[last] - filled[first]
        total = (counts[last] - counts[first]).astype(jnp.float32)
        spread = jnp.where((norm > 0) & (prob != 0), total / jnp.maximum(norm, 1).astype(jnp.float32), 0)
        return inside, prob, spread

    def count(carry: tuple[Array, Array], b: Array) -> tuple[tuple[Array, Array], None]:
        inside, prob, spread = at(b)
        return (carry[0] + (inside & (prob == 0)), carry[1] + (inside & (spread == 0))), None

    index = jnp.arange(n, dtype=jnp.int32)
    none = jnp.zeros(half.shape, jnp.int32)
    (empty_p, empty_q), _ = lax.scan(count, (none, none), index)
    ends = [_smoothing(e, length) for e in (empty_p, empty_q)]

    def smoothed(b: Array) -> tuple[Array, Array, Array]:
        inside, *both = at(b)
        prob, spread = (jnp.where(x == 0, jnp.float32(1e-4), x - e) for x, e in zip(both, ends, strict=True))
        return inside, prob, spread

    def total(carry: tuple[Array, Array], b: Array) -> tuple[tuple[Array, Array], None]:
        inside, prob, spread = smoothed(b)
        return (carry[0] + jnp.where(inside, prob, 0), carry[1] + jnp.where(inside, spread, 0)), None

    nothing = jnp.zeros(half.shape, jnp.float32)
    (sum_p, sum_q), _ = lax.scan(total, (nothing, nothing), index)

    def entropy(carry: Array, b: Array) -> tuple[Array, None]:
        inside, prob, spread = smoothed(b)
        prob, spread = prob / sum_p, spread / sum_q
        return carry + jnp.where(inside, prob * jnp.log(prob / spread), 0), None

    found, _ = lax.scan(entropy, nothing, index)
    return jnp.where((ends[1] < 1) & (empty_q < length), found, jnp.inf)


def _smoothing(empty: Array, length: Array) -> Array:
    """What smoothing takes off every bin that is not empty."""
    rest = jnp.maximum(length - empty, 1).astype(jnp.float32)
    return jnp.float32(1e-4) * empty.astype(jnp.float32) / rest
