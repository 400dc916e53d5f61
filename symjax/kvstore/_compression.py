"""Gradient compression to two bits: what is lost is kept, and added to the next gradient."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.lowering.errors import DTypeError, MXNetError, ParamError


@functools.partial(jax.jit, static_argnums=2)
def _quantize(gradient: Any, residual: Any, threshold: float) -> tuple[Any, Any]:
    """Returns (values in {-t, 0, t}, what they leave out)."""
    t = jnp.asarray(threshold, gradient.dtype)
    total = residual + gradient
    sent = jnp.where(total >= t, t, jnp.where(total <= -t, -t, jnp.zeros((), total.dtype)))
    return sent, total - sent


@jax.jit
def pack(sent: Any) -> Any:
    """Returns values in {-t, 0, t} as two bits each, four in a byte: uint8 (ceil(size / 4),)."""
    codes = jnp.where(sent > 0, 1, jnp.where(sent < 0, 2, 0)).astype(jnp.uint8).reshape(-1)
    codes = jnp.pad(codes, (0, -codes.size % 4)).reshape(-1, 4)
    shifts = jnp.arange(0, 8, 2, dtype=jnp.uint8)
    return jnp.bitwise_or.reduce(codes << shifts, axis=1)


@functools.partial(jax.jit, static_argnums=(1, 2))
def unpacked_sum(packed: Any, threshold: float, shape: tuple[int, ...]) -> Any:
    """Returns the sum over workers of what they packed: float32.

    Args:
      packed: uint8 (workers, bytes).
      threshold: what a code stands for.
      shape: of the values.
    """
    codes = (packed[:, :, None] >> jnp.arange(0, 8, 2, dtype=jnp.uint8)) & 3
    signs = (codes == 1).astype(jnp.float32) - (codes == 2).astype(jnp.float32)
    total = signs.reshape(packed.shape[0], -1).sum(0) * jnp.asarray(threshold, jnp.float32)
    return total[:math.prod(shape)].reshape(shape)


@dataclasses.dataclass
class Compression:
    """Two-bit compression with error feedback.

    `r += g`; what is sent is `t` where `r >= t`, `-t` where `r <= -t` and 0 elsewhere, and is taken off `r`.

    Attributes:
      threshold: t.
    """

    threshold: float
    _residuals: dict[Any, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Compression:
        """Reads the dict of `set_gradient_compression`.

        Raises:
          MXNetError: no type or one that there is not; a threshold that is not above 0.
        """
        if "type" not in params:
            raise MXNetError("Required parameter type of string is not presented: gradient compression needs "
                             "{'type': '2bit'}")
        if params["type"] != "2bit":
            raise MXNetError(f"Unknown type for gradient compression {params['type']}: there is '2bit'")
        given = params.get("threshold", 0.5)
        try:
            threshold = float(given)
        except (TypeError, ValueError):
            raise ParamError(f"Invalid Parameter format for threshold expect float but value={given!r}") from None
        if not threshold > 0:
            raise ParamError(f"threshold must be greater than 0, got {given}")
        return cls(threshold)

    def __call__(self, key: Any, slot: int, gradient: Any) -> Any:
        """Returns what is sent of a gradient, a JAX array of values in {-t, 0, t}.

        Args:
          key: the key of the store.
          slot: which of several gradients of the key; each has its residual.
          gradient: float32.

        Raises:
          DTypeError: another dtype.
        """
        if gradient.dtype != np.float32:
            raise DTypeError(f"key {key}: gradient compression is for float32, got {gradient.dtype}; take the "
                             f"compression off, or cast the gradient")
        with jax.enable_x64(True):
            residual = self._residuals.get((key, slot))
            if residual is None or residual.shape != gradient.shape:
                residual = jnp.zeros_like(gradient)
            sent, self._residuals[key, slot] = _quantize(gradient, residual, self.threshold)
        return sent
