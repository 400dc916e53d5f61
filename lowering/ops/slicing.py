"""Slices: slice, slice_axis, slice_like and the assignments behind them."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._axes import axes_of, axis_of
from symjax.lowering.params import OptShape, Params, Shape, param
from symjax.lowering.registry import ShapeLike, first_input_dtype, op


class SliceParams(Params):
    begin: OptShape = param(doc="First index of each of the leading axes; None: the start for that step.")
    end: OptShape = param(doc="Index after the last; None: all the way.")
    step: OptShape = param((), doc="Step of each axis, may be negative; None or missing: 1.")


class SliceAssignScalarParams(SliceParams):
    scalar: float = param(0.0, doc="The value written.", traced=True)


class SliceAxisParams(Params):
    axis: int = param(doc="Axis to cut.")
    begin: int = param(doc="First index; negative counts from the end.")
    end: int | None = param(doc="Index after the last; None: the end.")


class SliceLikeParams(Params):
    axes: Shape = param((), doc="Axes to cut; (): all.")


def slices(p: SliceParams, shape: tuple[int, ...]) -> tuple[slice, ...]:
    if len(p.begin) != len(p.end) or (p.step and len(p.step) != len(p.begin)):
        raise ParamError(f"begin={p.begin}, end={p.end} and step={p.step} must have equal lengths")
    if len(p.begin) > len(shape):
        raise ShapeError(f"begin={p.begin} has more entries than data {shape} has axes")
    if 0 in p.step:
        raise ParamError(f"step={p.step} must not contain 0")
    return tuple(slice(b, e, s) for b, e, s in zip(p.begin, p.end, p.step or (None,) * len(p.begin), strict=True))


@op("slice", aliases=("crop", "_sparse_slice", "_npi_slice", "_npx_slice"), params=SliceParams)
def slice_op(p: SliceParams, data: Array) -> Array:
    """Cuts `data[b0:e0:s0, b1:e1:s1, …]` with Python's meaning; indices beyond the ends are moved to them."""
    return data[slices(p, data.shape)]


def _slice_shape(p: SliceParams, shape: tuple[int, ...]) -> tuple[int, ...]:
    where = slices(p, shape)
    return tuple(len(range(*s.indices(d))) for s, d in zip(where, shape, strict=False)) + shape[len(where):]


def _assigned(p: SliceParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    lhs = ins[0] if ins[0] is not None else outs[0]
    return [lhs, ins[1] if lhs is None or 0 in lhs else _slice_shape(p, lhs)]


@op("_slice_assign", aliases=("_crop_assign", "_npi_slice_assign"), params=SliceParams, infer_inputs=_assigned)
def slice_assign(p: SliceParams, lhs: Array, rhs: Array) -> Array:
    """Returns `lhs` with the slice replaced by `rhs`, which has exactly the slice's shape."""
    want = _slice_shape(p, lhs.shape)
    if rhs.shape != want:
        raise ShapeError(f"argument 'rhs': expected {want}, the shape of the slice, got {rhs.shape}")
    return lhs.at[slices(p, lhs.shape)].set(rhs)


@op("_slice_assign_scalar", aliases=("_crop_assign_scalar", "_npi_slice_assign_scalar"),
    params=SliceAssignScalarParams)
def slice_assign_scalar(p: SliceAssignScalarParams, data: Array) -> Array:
    """Returns `data` with the slice filled by a number, cut to the type of `data`."""
    return data.at[slices(p, data.shape)].set(jnp.asarray(p.scalar).astype(data.dtype))


@op("slice_axis", params=SliceAxisParams)
def slice_axis(p: SliceAxisParams, data: Array) -> Array:
    """Cuts [begin, end) out of one axis. An empty range or an end beyond the axis is an error."""
    axis = axis_of(p.axis, data.ndim)
    n = data.shape[axis]
    begin = p.begin + n if p.begin < 0 else p.begin
    end = n if p.end is None else p.end + n if p.end < 0 else p.end
    if not 0 <= begin < end <= n:
        raise ShapeError(f"begin={p.begin}, end={p.end} is not a range of axis {axis} of size {n}")
    return lax.slice_in_dim(data, begin, end, axis=axis)


@op("slice_like", params=SliceLikeParams, infer_types=first_input_dtype)
def slice_like(p: SliceLikeParams, data: Array, shape_like: Array) -> Array:
    """Cuts the start of each axis in `axes` to the size it has in `shape_like`, which has no gradient."""
    if not p.axes and data.ndim != shape_like.ndim:
        raise ShapeError(f"data {data.shape} and shape_like {shape_like.shape} differ in rank; name the axes")
    axes = axes_of(p.axes, data.ndim, "axes") if p.axes else tuple(range(data.ndim))
    like = axes_of(p.axes, shape_like.ndim, "axes") if p.axes else axes
    size = list(data.shape)
    for a, b in zip(axes, like, strict=True):
        if shape_like.shape[b] > data.shape[a]:
            raise ShapeError(f"axis {a}: shape_like {shape_like.shape} is larger than data {data.shape}")
        size[a] = shape_like.shape[b]
    return lax.slice(data, (0,) * data.ndim, size)
