"""Fourier transforms of the last axis: _contrib_fft, _contrib_ifft. Complex numbers lie as pairs (real, imaginary)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import is_half
from symjax.lowering.params import Params, param
from symjax.lowering.registry import op


class FourierParams(Params):
    compute_size: int = param(128, doc="MXNet's batch of one cuFFT call; without effect here.", ge=1)


def _real(data: Array) -> Array:
    return data.astype(jnp.float32) if is_half(data.dtype) or not jnp.issubdtype(data.dtype, jnp.floating) else data


@op("_contrib_fft", params=FourierParams)
def fft(p: FourierParams, data: Array) -> Array:
    """Transforms real rows: (…, n) gives (…, 2n), the pairs of Σ_t x_t exp(-2πi kt/n)."""
    x = _real(data)
    out = jnp.fft.fft(lax.complex(x, jnp.zeros_like(x)))
    pairs = jnp.stack([out.real, out.imag], axis=-1)
    return pairs.reshape(*data.shape[:-1], -1).astype(data.dtype)


@op("_contrib_ifft", params=FourierParams)
def ifft(p: FourierParams, data: Array) -> Array:
    """Real part of the inverse transform without its factor 1/n: (…, 2n) of pairs gives (…, n)."""
    if data.ndim == 0 or data.shape[-1] % 2:
        raise ShapeError(f"argument 'data': the last axis holds pairs, its size must be even, got {data.shape}")
    x = _real(data).reshape(*data.shape[:-1], -1, 2)
    out = jnp.fft.ifft(lax.complex(x[..., 0], x[..., 1])).real
    return (out * out.shape[-1]).astype(data.dtype)
