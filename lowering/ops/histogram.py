"""Counting and comparing whole arrays: _histogram, _contrib_allclose."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.params import Floats, Params, param
from symjax.lowering.registry import op


class HistogramParams(Params):
    bin_cnt: int | None = param(None, doc="Number of equal bins; None: the edges are the second input.", ge=1)
    range: Floats | None = param(None, doc="Lower end of the first and upper end of the last bin, with bin_cnt.")


def _types(p: HistogramParams, ins: list[str | None], outs: list[str | None]) -> tuple[Sequence[str | None],
                                                                                     Sequence[str | None]]:
    known = ins[0] or outs[1]
    return [known] * len(ins), ["int64", known]


def _edges(p: HistogramParams, dtype: jnp.dtype) -> Array:
    if p.bin_cnt is None or p.range is None or len(p.range) != 2 or p.range[0] >= p.range[1]:
        raise ParamError(f"bin_cnt={p.bin_cnt} and range={p.range} must both be given, range as (low, high)")
    low, high = p.range
    values = [(high * i + low * (p.bin_cnt - i)) / p.bin_cnt for i in range(p.bin_cnt + 1)]
    return jnp.asarray(values, jnp.float64).astype(dtype)


@op("_histogram", aliases=("_npi_histogram",), params=HistogramParams, outputs=2, infer_types=_types,
    inputs=lambda p: ("data", "bins") if p.bin_cnt is None else ("data",), all_inputs=("data", "bins"))
def histogram(p: HistogramParams, data: Array, bins: Array | None = None) -> tuple[Array, Array]:
    """Counts values per bin: returns counts (n,) int64 and edges (n + 1,).

    A bin holds [left, right), the last one [left, right]; values outside are not counted.
    """
    edges = _edges(p, data.dtype) if bins is None else bins
    if edges.ndim != 1 or edges.shape[0] < 2:
        raise ShapeError(f"argument 'bins': expected a vector of at least 2 edges, got {edges.shape}")
    n = edges.shape[0] - 1
    x = data.reshape(-1)
    at = jnp.searchsorted(edges, x, side="right").astype(jnp.int32) - 1
    at = jnp.where(x == edges[-1], n - 1, at)
    inside = (x >= edges[0]) & (x <= edges[-1])
    return jnp.zeros(n, jnp.int64).at[jnp.where(inside, at, n)].add(1, mode="drop"), edges


class AllcloseParams(Params):
    rtol: float = param(1e-5, doc="Tolerance relative to |b|.")
    atol: float = param(1e-8, doc="Absolute tolerance.")
    equal_nan: bool = param(True, doc="Whether NaN equals NaN.")


@op("_contrib_allclose", params=AllcloseParams,
    infer_types=lambda p, ins, outs: ([t := ins[0] or ins[1], t], ["uint8"]))
def allclose(p: AllcloseParams, a: Array, b: Array) -> Array:
    """1 if |a - b| <= atol + rtol |b| everywhere, else 0; shape (), uint8.

    Infinities are close when they have one sign (MXNet: also with opposite ones).
    """
    if a.shape != b.shape:
        raise ShapeError(f"a {a.shape} and b {b.shape} must have one shape")
    return jnp.all(jnp.isclose(a, b, rtol=p.rtol, atol=p.atol, equal_nan=p.equal_nan)).astype(jnp.uint8)
