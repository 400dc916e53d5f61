"""Dropout."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from symjax.lowering.ops._nn import axis_of
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op


class DropoutParams(Params):
    p: float = param(0.5, ge=0, le=1, doc="Probability that an element is dropped.")
    mode: Literal["always", "training"] = param("training", doc="Drop in training only, or in prediction too.")
    axes: Shape = param((), doc="Axes along which one draw is shared.")
    cudnn_off: bool | None = param(False, doc="Ignored.")


def _mask_shape(p: DropoutParams, shape: tuple[int, ...]) -> tuple[int, ...]:
    shared = {axis_of(a, len(shape), "axes") for a in p.axes}
    return tuple(1 if i in shared else d for i, d in enumerate(shape))


@op("Dropout", aliases=("_npx_dropout",), params=DropoutParams, outputs=("output", "mask"), num_visible=1)
def dropout(p: DropoutParams, data: Array, *, train: bool, key: Array) -> tuple[Array, Array]:
    """Sets elements to 0 with probability p and divides the others by 1 - p, in training or with mode "always".

    The hidden output mask holds the factors, 0 or 1 / (1 - p); its size is 1 along `axes`. With p = 1 all is 0.
    """
    shape = _mask_shape(p, data.shape)
    if p.p == 0 or not (train or p.mode == "always"):
        return data, jnp.ones(shape, data.dtype)
    if p.p == 1:
        return jnp.zeros_like(data), jnp.zeros(shape, data.dtype)
    keep = 1 - p.p
    # Raw bits against a threshold: no conversion to floating point, and a probability exact to 2^-32.
    threshold = min(round(keep * 2**32), 2**32 - 1)
    kept = jax.random.bits(key, shape, jnp.uint32) < jnp.asarray(threshold, jnp.uint32)
    mask = jnp.where(kept, jnp.asarray(1 / keep, data.dtype), jnp.zeros((), data.dtype))
    return jnp.where(kept, data * mask, jnp.zeros((), data.dtype)), mask
