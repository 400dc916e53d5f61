"""Arrays made from nothing: constants, ranges, the identity; and index arrays of another array's shape.

An unknown shape (None or (), or a 0 in it) is filled by what consumes the array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._elementwise import scalar_as, wide_dtype
from symjax.lowering.ops.reduce import one_axis
from symjax.lowering.params import DType, Params, Shape, param
from symjax.lowering.registry import ShapeLike, op, output_dtype

Types = tuple[Sequence[str | None], Sequence[str | None]]
OutShapes = Sequence[ShapeLike] | None

_CTX = "Device; placement is the executor's, so it has no effect in a graph."


def declared(shape: Shape | None) -> ShapeLike:
    """A shape parameter as inference sees it: None and () are unknown, 0 an unknown dimension."""
    return tuple(max(d, 0) for d in shape) if shape else None


def shape_outputs(p: Any, ins: Sequence[ShapeLike]) -> Sequence[ShapeLike]:
    """Output shapes of an op with a `shape` parameter."""
    return [declared(p.shape)]


def known_shape(shape: Shape | None, out_shapes: OutShapes) -> tuple[int, ...]:
    """The shape to make: the inferred one, or the parameter where nothing was inferred.

    Raises:
      ShapeError: neither says it.
    """
    given = out_shapes[0] if out_shapes else None
    found = given if given is not None else declared(shape)
    if found is None or any(d < 0 for d in found):
        raise ShapeError("the shape is unknown: give `shape`, or use the array where its shape can be inferred")
    return tuple(found)


class ConstantParams(Params):
    shape: Shape = param((), doc="Shape; () or a 0 in it is filled from what consumes the array.")
    ctx: str = param("", doc=_CTX)
    dtype: DType = param("float32", doc="Type.")


@op("_zeros", params=ConstantParams, inputs=(), infer_types=output_dtype("float32"), infer_outputs=shape_outputs)
def zeros(p: ConstantParams, *, out_shapes: OutShapes = None) -> Array:
    """Returns an array of zeros."""
    return jnp.zeros(known_shape(p.shape, out_shapes), p.dtype)


@op("_ones", params=ConstantParams, inputs=(), infer_types=output_dtype("float32"), infer_outputs=shape_outputs)
def ones(p: ConstantParams, *, out_shapes: OutShapes = None) -> Array:
    """Returns an array of ones."""
    return jnp.ones(known_shape(p.shape, out_shapes), p.dtype)


class ZerosWithoutDtypeParams(Params):
    shape: Shape | None = param(None, doc="Shape; None, () or a 0 in it is filled from what consumes the array.")
    ctx: str = param("", doc=_CTX)
    dtype: int = param(-1, doc="Type number (0 float32, 1 float64, 2 float16, …); -1 for float32.")


_TYPE_NUMBERS = {-1: "float32", 0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64",
                 7: "bool", 12: "bfloat16"}


def _numbered(number: int) -> str:
    if number not in _TYPE_NUMBERS:
        raise ParamError(f"dtype={number} is not one of {sorted(_TYPE_NUMBERS)}")
    return _TYPE_NUMBERS[number]


def _numbered_types(p: ZerosWithoutDtypeParams, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, [_numbered(p.dtype)]


@op("_zeros_without_dtype", params=ZerosWithoutDtypeParams, inputs=(), infer_types=_numbered_types,
    infer_outputs=shape_outputs)
def zeros_without_dtype(p: ZerosWithoutDtypeParams, *, out_shapes: OutShapes = None) -> Array:
    """Returns an array of zeros, float32 unless `dtype` says otherwise.

    MXNet takes the type from what consumes the array; a consumer of another type needs `dtype` here.
    """
    return jnp.zeros(known_shape(p.shape, out_shapes), _numbered(p.dtype))


class FullParams(Params):
    shape: Shape | None = param(None, doc="Shape; None or a 0 in it is filled from what consumes it; () is a scalar.")
    ctx: str = param("", doc=_CTX)
    dtype: DType = param("float32", doc="Type.")
    value: float = param(doc="The value of every element.", traced=True)


def as_written(p: Any, ins: Sequence[ShapeLike]) -> Sequence[ShapeLike]:
    """Output shapes of an op whose `shape` of () is a scalar; only -1 (and None) is unknown under numpy's semantics."""
    return [p.shape]


@op("_full", aliases=("_npi_full",), params=FullParams, inputs=(), infer_types=output_dtype("float32"),
    infer_outputs=as_written)
def full(p: FullParams, *, out_shapes: OutShapes = None) -> Array:
    """Returns an array of one value (truncated for integer types)."""
    return jnp.broadcast_to(scalar_as(p.value, p.dtype), known_shape(p.shape, out_shapes))


class SetValueParams(Params):
    src: float = param(0.0, doc="The value of every element.", traced=True)


@op("_set_value", params=SetValueParams, inputs=(), infer_types=lambda p, ins, outs: (ins, ["float32"]),
    infer_outputs=lambda p, ins: [None])
def set_value(p: SetValueParams, *, out_shapes: OutShapes = None) -> Array:
    """Returns an array of one value, with the shape of the array given as `out`."""
    return jnp.broadcast_to(scalar_as(p.src, jnp.float32), known_shape(None, out_shapes))


class ArangeParams(Params):
    start: float = param(doc="First value; the stop, if `stop` is absent.")
    stop: float | None = param(None, doc="End, exclusive.")
    step: float = param(1.0, doc="Distance of two values.")
    repeat: int = param(1, ge=1, doc="How often each value occurs in a row.")
    infer_range: bool = param(False, doc="Whether the length comes from what consumes the array (without `stop`).")
    ctx: str = param("", doc=_CTX)
    dtype: DType = param("float32", doc="Type.")


def _is_open(p: ArangeParams) -> bool:
    return p.stop is None and p.infer_range


def range_length(p: ArangeParams) -> int:
    """How many values a range has, each once; 0 if it is empty.

    Raises:
      ParamError: the step is 0, or a number is not finite.
    """
    start, stop = (p.start, p.stop) if p.stop is not None else (0.0, p.start)
    if p.step == 0 or not all(map(math.isfinite, (start, stop, p.step))):
        raise ParamError(f"start={start}, stop={stop}, step={p.step} make no range")
    return max(math.ceil((stop - start) / p.step), 0)


def _arange_length(p: ArangeParams) -> int:
    length = range_length(p) * p.repeat
    if not length:
        raise ParamError(f"start={p.start}, stop={p.stop}, step={p.step} make an empty range")
    return length


def _arange_shapes(p: ArangeParams, ins: Sequence[ShapeLike]) -> Sequence[ShapeLike]:
    return [(-1,) if _is_open(p) else (_arange_length(p),)]


def progression(start: Any, step: Any, repeat: int, length: int, dtype: Any) -> Array:
    """Returns start + step * (i // repeat) for i in 0 … length-1; start and step take the type first."""
    wide = jnp.dtype(dtype) if jnp.issubdtype(dtype, jnp.integer) else wide_dtype(dtype)
    index = jnp.arange(length, dtype=jnp.int64) // repeat
    return (scalar_as(start, wide) + index.astype(wide) * scalar_as(step, wide)).astype(dtype)


@op("_arange", params=ArangeParams, inputs=(), infer_types=output_dtype("float32"), infer_outputs=_arange_shapes)
def arange(p: ArangeParams, *, out_shapes: OutShapes = None) -> Array:
    """Returns start, start + step, … up to but without `stop`, each value `repeat` times in a row.

    With one bound the range is 0 … start. With `infer_range` and no `stop` the length is the consumer's. An empty
    range is an error.
    """
    if _is_open(p):
        return progression(p.start, p.step, p.repeat, known_shape(None, out_shapes)[0], p.dtype)
    return progression(p.start if p.stop is not None else 0.0, p.step, p.repeat, _arange_length(p), p.dtype)


class LinspaceParams(Params):
    start: float = param(doc="First value.")
    stop: float | None = param(None, doc="Last value, or the end after it without `endpoint`.")
    num: int = param(1, ge=0, doc="How many values.")
    endpoint: bool = param(True, doc="Whether `stop` is the last value.")
    ctx: str = param("", doc=_CTX)
    dtype: DType = param("float32", doc="Type.")


@op("_linspace", aliases=("_npi_linspace",), params=LinspaceParams, inputs=(), infer_types=output_dtype("float32"))
def linspace(p: LinspaceParams) -> Array:
    """Returns `num` evenly spaced values from `start` to `stop`: shape (num,)."""
    if p.stop is None:
        raise ParamError("parameter stop is missing")
    wide = jnp.float64 if jnp.issubdtype(p.dtype, jnp.integer) else wide_dtype(p.dtype)
    parts = max(p.num - 1 if p.endpoint else p.num, 1)
    values = p.start + jnp.arange(p.num, dtype=wide) * ((p.stop - p.start) / parts)
    return values.astype(p.dtype)


class EyeParams(Params):
    N: int = param(doc="Number of rows.", ge=1)
    M: int = param(0, ge=0, doc="Number of columns; 0 for as many as rows.")
    k: int = param(0, doc="The diagonal of the ones: 0 the main one, above it positive, below negative.")
    ctx: str = param("", doc=_CTX)
    dtype: DType = param("float32", doc="Type.")


@op("_eye", params=EyeParams, inputs=(), infer_types=output_dtype("float32"))
def eye(p: EyeParams) -> Array:
    """Returns an (N, M) array with ones on diagonal k and zeros elsewhere."""
    return jnp.eye(p.N, p.M or p.N, k=p.k, dtype=p.dtype)


class ArangeLikeParams(Params):
    start: float = param(0.0, doc="First value.")
    step: float = param(1.0, doc="Distance of two values.")
    repeat: int = param(1, ge=1, doc="How often each value occurs in a row.")
    ctx: str = param("", doc=_CTX)
    axis: int | None = param(None, doc="The axis of `data` whose length the range has; None for its whole shape.")


@op("_contrib_arange_like", aliases=("_npx_arange_like",), params=ArangeLikeParams)
def arange_like(p: ArangeLikeParams, data: Array) -> Array:
    """Returns start, start + step, … in the type of `data`: as long as an axis, or in its whole shape (row by row)."""
    shape = data.shape if p.axis is None else (data.shape[one_axis(p.axis, data.ndim)],)
    return progression(p.start, p.step, p.repeat, math.prod(shape), data.dtype).reshape(shape)


class IndexArrayParams(Params):
    axes: Shape | None = param(None, doc="Axes whose indices are wanted, in this order; None for all.")


def _int64(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, ["int64"]


@op("_contrib_index_array", params=IndexArrayParams, infer_types=_int64)
def index_array(p: IndexArrayParams, data: Array) -> Array:
    """Returns the index of each element of `data`: int64 of shape (*data.shape, number of axes)."""
    axes = range(data.ndim) if p.axes is None else [one_axis(a, data.ndim) for a in p.axes]
    if not axes:
        return jnp.zeros((*data.shape, 0), jnp.int64)
    grids = [jnp.arange(data.shape[a], dtype=jnp.int64).reshape([-1 if i == a else 1 for i in range(data.ndim)])
             for a in axes]
    return jnp.stack([jnp.broadcast_to(g, data.shape) for g in grids], axis=-1)
