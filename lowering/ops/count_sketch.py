"""Count sketches: random projections for compact bilinear pooling."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from symjax.lowering.errors import ShapeError
from symjax.lowering.params import Params, param
from symjax.lowering.registry import op

Array = jax.Array


class CountSketchParams(Params):
    out_dim: int = param(ge=1, doc="Length of the sketch.")
    processing_batch_size: int = param(32, doc="Has no effect; MXNet's kernels go through so many rows at a time.")


def _shapes(p: CountSketchParams, ins: list[Any], outs: list[Any]) -> list[Any]:
    n = ins[0][-1] if ins[0] else 0
    return [ins[0], (1, n), (1, n)]


@op("_contrib_count_sketch", params=CountSketchParams, infer_inputs=_shapes)
def count_sketch(p: CountSketchParams, data: Array, h: Array, s: Array) -> Array:
    """`out[..., h[i]] += s[i] * data[..., i]`: the sketch of the last axis, (N, d) or (N, H, W, d) -> (…, out_dim).

    `h` (1, d) holds a place from 0 to out_dim - 1 for each element, `s` (1, d) a sign of 1 or -1; places outside are
    left out. MXNet has it on GPUs only, with a gradient for `data` alone; here `s` has its own as well.
    """
    if data.ndim not in (2, 4):
        raise ShapeError(f"argument 'data': expected 2 or 4 dimensions, got shape {data.shape}")
    places = jax.lax.stop_gradient(h).reshape(-1).astype(jnp.int32)
    places = jnp.where(places < 0, p.out_dim, places)
    zeros = jnp.zeros((*data.shape[:-1], p.out_dim), data.dtype)
    return zeros.at[..., places].add(data * s.reshape(-1), mode="drop")
