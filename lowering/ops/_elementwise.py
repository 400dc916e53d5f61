"""Helpers of the elementwise op families: type conversion as MXNet does it, and widening of the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import DTypeLike


def is_float(x: Array) -> bool:
    """Whether the array is of a floating type (bfloat16 included)."""
    return jnp.issubdtype(x.dtype, jnp.floating)


def wide_dtype(dtype: DTypeLike) -> Any:
    """The floating type that transcendental functions and accumulations of a type use: float64 or float32."""
    return jnp.dtype(jnp.float64 if jnp.dtype(dtype) == jnp.float64 else jnp.float32)


def cast(x: Array, dtype: DTypeLike) -> Array:
    """Converts as C does: floats truncate towards zero, integers wrap, and any non-zero is True.

    The narrow integer types go through int32, so that 300.5 becomes 44 in uint8 on every platform.
    """
    target = jnp.dtype(dtype)
    if x.dtype == target:
        return x
    if target == jnp.bool_:
        return x != 0
    if is_float(x) and jnp.issubdtype(target, jnp.integer) and target.itemsize < 4:
        return x.astype(jnp.int32).astype(target)
    return x.astype(target)


def scalar_as(value: Any, dtype: DTypeLike) -> Array:
    """A number (a Python number or a traced scalar) as a constant of a dtype; integers truncate and wrap."""
    target = jnp.dtype(dtype)
    if jnp.issubdtype(target, jnp.integer):
        return lax.convert_element_type(lax.convert_element_type(value, jnp.int64), target)
    return lax.convert_element_type(value, target)


def widened(fn: Callable[..., Array]) -> Callable[..., Array]:
    """Makes a function of floats work on every type: computed in float32 (float64 for float64), then converted back.

    MXNet's kernels do the same: exp of an int32 array is an int32 array.
    """

    def run(*xs: Array) -> Array:
        dtype = xs[0].dtype
        wide = wide_dtype(dtype)
        return cast(fn(*(x.astype(wide) for x in xs)), dtype)

    return run


@jax.custom_jvp
def _float_relu(x: Array) -> Array:
    return jnp.where(x <= 0, jnp.zeros((), x.dtype), x)


@_float_relu.defjvp
def _float_relu_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    x, t = primals[0], tangents[0]
    return _float_relu(x), t * jnp.where(jnp.isnan(x), x, (x > 0).astype(x.dtype))


def relu(x: Array) -> Array:
    """max(x, 0) with a derivative of 0 at 0; NaN stays NaN, and so does its derivative."""
    return _float_relu(x) if is_float(x) else jnp.maximum(x, 0)


@jax.custom_jvp
def softsign(x: Array) -> Array:
    """x / (1 + |x|)."""
    return x / (1 + jnp.abs(x))


@softsign.defjvp
def _softsign_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # Autodiff of the quotient would give NaN at infinity instead of 0.
    x, t = primals[0], tangents[0]
    return softsign(x), t / jnp.square(1 + jnp.abs(x))
