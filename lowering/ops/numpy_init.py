"""The arrays that `mx.np` makes from nothing: constants, ranges, windows, grids; and those of another array's shape.

A shape of () is a scalar and a 0 in one an empty axis, as written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._elementwise import scalar_as, wide_dtype
from symjax.lowering.ops.init import ArangeParams, OutShapes, as_written, known_shape, progression, range_length
from symjax.lowering.params import DType, Params, Shape, param
from symjax.lowering.registry import SAME, op, output_dtype

Types = tuple[Sequence[str | None], Sequence[str | None]]
NumberType = Literal["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8"]

_CTX = "Device; placement is the executor's, so it has no effect in a graph."
_float32 = output_dtype("float32")


class NumpyConstantParams(Params):
    shape: Shape = param((), doc="Shape; () is a scalar, and a dimension of -1 is filled from what consumes the array.")
    ctx: str = param("", doc=_CTX)
    dtype: DType = param("float32", doc="Type.")


@op("_npi_zeros", params=NumpyConstantParams, inputs=(), infer_types=_float32, infer_outputs=as_written)
def zeros(p: NumpyConstantParams, *, out_shapes: OutShapes = None) -> Array:
    """Returns an array of zeros."""
    return jnp.zeros(known_shape(p.shape, out_shapes), p.dtype)


@op("_npi_ones", params=NumpyConstantParams, inputs=(), infer_types=_float32, infer_outputs=as_written)
def ones(p: NumpyConstantParams, *, out_shapes: OutShapes = None) -> Array:
    """Returns an array of ones."""
    return jnp.ones(known_shape(p.shape, out_shapes), p.dtype)


@op("_npi_identity", params=NumpyConstantParams, inputs=(), infer_types=_float32)
def identity(p: NumpyConstantParams) -> Array:
    """Returns the identity matrix of shape (n, n).

    Of a shape that is not square MXNet makes ones in its first column; here it is an error.
    """
    if len(p.shape) != 2 or p.shape[0] != p.shape[1]:
        raise ShapeError(f"shape={p.shape} is not that of a square matrix")
    return jnp.eye(p.shape[0], dtype=p.dtype)


class NumpyEyeParams(Params):
    N: int = param(doc="Number of rows.", ge=0)
    M: int | None = param(None, doc="Number of columns; None for as many as rows.", ge=0)
    k: int = param(0, doc="The diagonal of the ones: 0 the main one, above it positive, below negative.")
    ctx: str = param("", doc=_CTX)
    dtype: NumberType = param("float32", doc="Type.")


@op("_npi_eye", params=NumpyEyeParams, inputs=(), infer_types=_float32)
def eye(p: NumpyEyeParams) -> Array:
    """Returns an (N, M) array with ones on diagonal k and zeros elsewhere."""
    return jnp.eye(p.N, p.N if p.M is None else p.M, k=p.k, dtype=p.dtype)


class FullLikeParams(Params):
    fill_value: float = param(doc="The value of every element.", traced=True)
    ctx: str = param("", doc=_CTX)
    dtype: DType | None = param(None, doc="Type; None for the array's.")


@op("_npi_full_like", params=FullLikeParams, shape=SAME, infer_types=lambda p, ins, outs: (ins, [p.dtype or ins[0]]))
def full_like(p: FullLikeParams, a: Array) -> Array:
    """Returns an array of one value in the shape of `a` (truncated for integer types); it has no gradient."""
    return jnp.broadcast_to(scalar_as(p.fill_value, p.dtype or a.dtype), a.shape)


class NumpyArangeParams(ArangeParams):
    dtype: NumberType = param("float32", doc="Type.")


@op("_npi_arange", params=NumpyArangeParams, inputs=(), infer_types=_float32)
def arange(p: NumpyArangeParams) -> Array:
    """Returns start, start + step, … up to but without `stop`; empty where `stop` is not ahead.

    With one bound the range is 0 … start. Start and step take the type first.
    """
    if p.repeat != 1:
        raise ParamError(f"repeat={p.repeat}: a numpy range holds each value once, use repeat()")
    return progression(p.start if p.stop is not None else 0.0, p.step, 1, range_length(p), p.dtype)


class LogspaceParams(Params):
    start: float = param(doc="Exponent of the first value.")
    stop: float = param(doc="Exponent of the last value, or of the end after it without `endpoint`.")
    num: int = param(doc="How many values.", ge=0)
    endpoint: bool = param(True, doc="Whether `stop` is the last exponent.")
    base: float = param(10.0, doc="What is raised to the exponents.")
    ctx: str = param("", doc=_CTX)
    dtype: NumberType = param("float32", doc="Type.")


@op("_npi_logspace", params=LogspaceParams, inputs=(), infer_types=_float32)
def logspace(p: LogspaceParams) -> Array:
    """Returns base^start … base^stop, `num` values whose exponents are evenly spaced; integers truncate."""
    parts = max(p.num - 1 if p.endpoint else p.num, 1)
    # In Python's double precision, so that 10^2 is 100 in integers as well.
    values = [p.base ** (p.start + i * ((p.stop - p.start) / parts)) for i in range(p.num)]
    return jnp.array(values, jnp.float64).astype(p.dtype)


class IndicesParams(Params):
    dimensions: Shape = param(doc="Shape of the grid.", ge=0)
    dtype: NumberType = param("int32", doc="Type.")
    ctx: str = param("", doc=_CTX)


@op("_npi_indices", params=IndicesParams, inputs=(), infer_types=output_dtype("int32"))
def indices(p: IndicesParams) -> Array:
    """Returns the indices of a grid along each of its axes: shape (rank, *dimensions)."""
    if not p.dimensions:
        return jnp.zeros((0,), p.dtype)
    return jnp.indices(p.dimensions, dtype=p.dtype)


class WindowParams(Params):
    M: int | None = param(None, doc="Number of points; none where it is not positive.")
    ctx: str = param("", doc=_CTX)
    dtype: NumberType = param("float32", doc="Type.")


# name: (weights of cos(0), cos(2 pi n / (M - 1)), cos(4 pi n / (M - 1)), formula)
_WINDOWS: dict[str, tuple[tuple[float, ...], str]] = {
    "hanning": ((0.5, -0.5), "0.5 - 0.5 cos t"),
    "hamming": ((0.54, -0.46), "0.54 - 0.46 cos t"),
    "blackman": ((0.42, -0.5, 0.08), "0.42 - 0.5 cos t + 0.08 cos 2t"),
}


def _register_window(name: str, weights: tuple[float, ...], formula: str) -> None:
    def rule(p: WindowParams) -> Array:
        if p.M is None:
            raise ParamError("parameter M is missing")
        if p.M == 1:
            return jnp.ones(1, p.dtype)
        t = jnp.arange(max(p.M, 0), dtype=jnp.int32).astype(wide_dtype(p.dtype)) * (2 * math.pi / max(p.M - 1, 1))
        y = sum((w * jnp.cos(k * t) for k, w in enumerate(weights)), jnp.zeros_like(t))
        return y.astype(p.dtype)

    rule.__doc__ = f"Returns the {name} window {formula} with t = 2 pi n / (M - 1) for n = 0 … M - 1; 1 for M = 1."
    op(f"_npi_{name}", params=WindowParams, inputs=(), infer_types=_float32, source=f"{__file__}:{name}")(rule)


for _name, (_weights, _formula) in _WINDOWS.items():
    _register_window(_name, _weights, _formula)


class TrilParams(Params):
    k: int = param(0, doc="The last diagonal that is kept: 0 the main one, above it positive, below negative.")


def _is_kept(rows: int, columns: int, k: int) -> Array:
    grid: Callable[..., Array] = jnp.arange
    return grid(rows, dtype=jnp.int32)[:, None] + k >= grid(columns, dtype=jnp.int32)


@op("_npi_tril", params=TrilParams)
def tril(p: TrilParams, data: Array) -> Array:
    """Returns the lower triangles of the matrices in the last two axes; of a vector (n,), that of n rows of it."""
    if not data.ndim:
        raise ShapeError("data is a scalar: at least one dimension is needed")
    x = jnp.broadcast_to(data, (data.shape[0], data.shape[0])) if data.ndim == 1 else data
    return jnp.where(_is_kept(x.shape[-2], x.shape[-1], p.k), x, jnp.zeros((), x.dtype))


@op("_npi_diag_indices_from", infer_types=lambda p, ins, outs: (ins, ["int64"]))
def diag_indices_from(p: Any, data: Array) -> Array:
    """Returns the indices of the main diagonal of an array of equal dimensions n: int64 of shape (rank, n)."""
    if data.ndim < 2 or len(set(data.shape)) != 1:
        raise ShapeError(f"data has shape {data.shape}: expected at least two dimensions, all of one size")
    return jnp.broadcast_to(jnp.arange(data.shape[0], dtype=jnp.int64), (data.ndim, data.shape[0]))


class NumpyBroadcastParams(Params):
    shape: Shape = param((), doc="The new shape; -2 keeps the dimension of the array.")


@op("_npi_broadcast_to", params=NumpyBroadcastParams)
def broadcast_to(p: NumpyBroadcastParams, array: Array) -> Array:
    """Stretches the array to a shape, aligned from the right; dimensions of size 1 and missing ones stretch."""
    lead = len(p.shape) - array.ndim
    old = (1,) * lead + array.shape
    if lead < 0 or any(d < 0 and not (d == -2 and i >= lead) for i, d in enumerate(p.shape)):
        raise ShapeError(f"array has shape {array.shape}: it cannot be stretched to {p.shape}")
    shape = tuple(o if d == -2 else d for o, d in zip(old, p.shape, strict=True))
    if any(o not in (1, d) for o, d in zip(old, shape, strict=True)):
        raise ShapeError(f"array has shape {array.shape}: it cannot be stretched to {p.shape}")
    return jnp.broadcast_to(array, shape)
