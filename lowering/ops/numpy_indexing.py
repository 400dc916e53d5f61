"""Inserting, deleting, searching and masks with numpy's meaning.

Where the result's shape depends on values (unique, nonzero, delete at given indices) the operators are exact in
imperative calls and in graphs, which then run node by node; a compiled function refuses them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from symjax.lowering.errors import MXNetError, ParamError, ShapeError
from symjax.lowering.ops._axes import as_index, axis_of
from symjax.lowering.ops._elementwise import cast, scalar_as
from symjax.lowering.ops.indexing import need_values
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op

Types = tuple[Sequence[str | None], Sequence[str | None]]


class PlaceParams(Params):
    start: int | None = param(None, doc="First index of a slice.")
    stop: int | None = param(None, doc="Index after the last of a slice.")
    step: int | None = param(None, doc="Step of a slice.")
    int_ind: int | None = param(None, doc="A single index.")
    axis: int | None = param(None, doc="Axis; None: the flattened array.")

    @property
    def is_slice(self) -> bool:
        return any(v is not None for v in (self.start, self.stop, self.step))


class InsertParams(PlaceParams):
    val: float | None = param(None, doc="A number to insert in the place of `values`.")


def _on_axis(arr: Array, axis: int | None) -> tuple[Array, int]:
    """The array, flattened without an axis, and the axis; a scalar is a vector of one."""
    if axis is None or arr.ndim == 0:
        return arr.reshape(-1), 0
    return arr, axis_of(axis, arr.ndim)


def _one_place(index: int, size: int, last: int) -> int:
    if not -size <= index <= last:
        raise ShapeError(f"index {index} lies outside an axis of size {size}")
    return index + size if index < 0 else index


def _typed_as_arr(p: Params, ins: list[str | None], outs: list[str | None]) -> Types:
    known = ins[0] or outs[0]
    return [known, *ins[1:]], [known]


def _insert_names(p: InsertParams) -> tuple[str, ...]:
    return ("arr",) if p.val is not None else ("arr", "values")


def _insert_tensor_names(p: InsertParams) -> tuple[str, ...]:
    return (*_insert_names(p), "obj")


def _values(p: InsertParams, arr: Array, given: tuple[Array, ...]) -> Array:
    return cast(given[0], arr.dtype) if p.val is None else scalar_as(p.val, arr.dtype)


def _insert(arr: Array, axis: int, index: Array, values: Array, scalar: bool) -> Array:
    """numpy.insert: `values` go before the elements `index` (m,) of an axis, all counted in the old array.

    A single place takes as many values as it is given; a scalar one takes them with its axis first.
    """
    if values.ndim > arr.ndim:
        raise ShapeError(f"argument 'values': {values.shape} has more axes than the array {arr.shape}")
    values = values.reshape((1,) * (arr.ndim - values.ndim) + values.shape)
    if scalar:
        values = jnp.moveaxis(values, 0, axis)
    size, count = arr.shape[axis], index.shape[0]
    if count == 1:
        count = values.shape[axis]
        index = jnp.broadcast_to(index, (count,))
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1:])
    try:
        values = jnp.broadcast_to(values, shape)
    except ValueError:
        raise ShapeError(f"argument 'values': {values.shape} does not broadcast to {shape}, what is inserted") from None
    index = as_index(index)
    index = jnp.clip(jnp.where(index < 0, index + size, index), 0, size)
    # Where each old element and each new one stands in the result: both in rising order.
    order = jnp.argsort(index, stable=True)
    new_at = index[order] + jnp.arange(count, dtype=index.dtype)
    old = jnp.arange(size, dtype=index.dtype)
    old_at = old + jnp.searchsorted(index[order], old, side="right").astype(index.dtype)
    out = jnp.zeros((*arr.shape[:axis], size + count, *arr.shape[axis + 1:]), arr.dtype)
    before = (slice(None),) * axis
    return out.at[(*before, old_at)].set(arr).at[(*before, new_at)].set(jnp.take(values, order, axis))


@op("_npi_insert_scalar", params=InsertParams, inputs=_insert_names, all_inputs=("arr", "values"),
    infer_types=_typed_as_arr)
def insert_scalar(p: InsertParams, arr: Array, *values: Array) -> Array:
    """Inserts values, or the number `val`, before the element `int_ind` of an axis."""
    if p.int_ind is None:
        raise ParamError("parameter 'int_ind' is missing")
    arr, axis = _on_axis(arr, p.axis)
    index = _one_place(p.int_ind, arr.shape[axis], arr.shape[axis])
    return _insert(arr, axis, jnp.full(1, index, jnp.int32), _values(p, arr, values), True)


@op("_npi_insert_slice", params=InsertParams, inputs=_insert_names, all_inputs=("arr", "values"),
    infer_types=_typed_as_arr)
def insert_slice(p: InsertParams, arr: Array, *values: Array) -> Array:
    """Inserts values, or the number `val`, before each element of the slice [start:stop:step] of an axis."""
    # MXNet: it fails where the slice holds one index, and with `val` on arrays that are not float64.
    arr, axis = _on_axis(arr, p.axis)
    places = range(*slice(p.start, p.stop, p.step).indices(arr.shape[axis]))
    return _insert(arr, axis, jnp.asarray(list(places), jnp.int32), _values(p, arr, values), False)


@op("_npi_insert_tensor", params=InsertParams, inputs=_insert_tensor_names, all_inputs=("arr", "values", "obj"),
    infer_types=_typed_as_arr)
def insert_tensor(p: InsertParams, arr: Array, *rest: Array) -> Array:
    """Inserts values, or the number `val`, before the elements `obj` of an axis.

    `obj` is a vector or a scalar of indices into the old array; outer ones are moved to the nearest end (MXNet raises).
    """
    *values, obj = rest
    if obj.ndim > 1:
        raise ShapeError(f"argument 'obj': expected a vector or a scalar, got {obj.shape}")
    arr, axis = _on_axis(arr, p.axis)
    return _insert(arr, axis, obj.reshape(-1), _values(p, arr, tuple(values)), obj.ndim == 0)


def _delete_names(p: PlaceParams) -> tuple[str, ...]:
    return ("arr",) if p.is_slice or p.int_ind is not None else ("arr", "obj")


def _static_places(p: PlaceParams, size: int) -> list[int]:
    if p.int_ind is not None:
        return [_one_place(p.int_ind, size, size - 1)]
    return list(range(*slice(p.start, p.stop, p.step).indices(size)))


def _deleted_shape(p: PlaceParams, ins: list[ShapeLike]) -> list[ShapeLike]:
    src = ins[0]
    if len(ins) > 1 or src is None or 0 in src:
        return [None]
    axis = 0 if p.axis is None or not src else axis_of(p.axis, len(src))
    src = (math.prod(src),) if p.axis is None else src or (1,)
    rest = src[axis] - len(set(_static_places(p, src[axis])))
    return [(*src[:axis], rest or -1, *src[axis + 1:])]


@op("_npi_delete", params=PlaceParams, inputs=_delete_names, all_inputs=("arr", "obj"), infer_types=_typed_as_arr,
    infer_outputs=_deleted_shape, eager=True)
def delete(p: PlaceParams, arr: Array, *obj: Array) -> Array:
    """Leaves elements of an axis out: the one at `int_ind`, the slice [start:stop:step], or those at `obj`.

    `obj` holds indices, in any order and repeated as they may be, or a truth value for each element. With `obj` the
    size of the result depends on values: a compiled function refuses it.
    """
    arr, axis = _on_axis(arr, p.axis)
    size = arr.shape[axis]
    keep = np.ones(size, bool)
    if not obj:
        keep[_static_places(p, size)] = False
    else:
        need_values(obj[0], "delete", "obj", "a mask and where", "np.delete")
        keep[_places(np.asarray(obj[0]), size)] = False
    return jnp.take(arr, jnp.asarray(np.flatnonzero(keep), jnp.int32), axis)


def _places(obj: np.ndarray, size: int) -> np.ndarray:
    if obj.dtype == np.bool_:
        if obj.shape != (size,):
            raise ShapeError(f"argument 'obj': expected ({size},) truth values, got {obj.shape}")
        return obj
    index = obj.reshape(-1).astype(np.int64)
    if ((index < -size) | (index >= size)).any():
        raise MXNetError(f"delete, argument 'obj': an index lies outside an axis of size {size}")
    return index


class UniqueParams(Params):
    return_index: bool = param(False, doc="Also the first place of each value.")
    return_inverse: bool = param(False, doc="Also, for each element, the place of its value in the result.")
    return_counts: bool = param(False, doc="Also how often each value occurs.")
    axis: int | None = param(None, doc="Axis whose slices are compared; None: the elements.")


def _unique_count(p: UniqueParams) -> int:
    return 1 + p.return_index + p.return_inverse + p.return_counts


def _indices_type(p: Params, ins: list[str | None], outs: list[str | None]) -> Types:
    known = ins[0] or outs[0]
    return [known], [known, *["int64"] * (len(outs) - 1)]


@op("_npi_unique", params=UniqueParams, outputs=_unique_count, infer_types=_indices_type,
    infer_outputs=lambda p, ins: [None] * _unique_count(p), eager=True)
def unique(p: UniqueParams, data: Array) -> tuple[Array, ...]:
    """The different values in rising order, or the different slices along an axis; then int64 vectors as asked for.

    The size of the result depends on values: a compiled function refuses it.
    """
    need_values(data, "unique", "data", "a sort and a comparison of neighbours", "np.unique")
    if data.ndim == 0:
        data = data.reshape(1)
    axis = None if p.axis is None else axis_of(p.axis, data.ndim)
    found = jnp.unique(data, p.return_index, p.return_inverse, p.return_counts, axis)
    values, *rest = found if isinstance(found, tuple) else (found,)
    return values, *(r.reshape(-1).astype(jnp.int64) for r in rest)


@op("_npx_nonzero", aliases=("_npi_nonzero",), infer_types=lambda p, ins, outs: (ins, ["int64"]),
    infer_outputs=lambda p, ins: [None], eager=True)
def nonzero(p: Params, x: Array) -> Array:
    """Places of the elements that are not zero: int64 (count, rank), a row of coordinates each, in row-major order.

    The size of the result depends on values: a compiled function refuses it.
    """
    need_values(x, "nonzero", "x", "where or a multiplication by the mask", "npx.nonzero")
    return jnp.stack(jnp.nonzero(x.reshape(x.shape or (1,))), 1).astype(jnp.int64)


class MaskedScalarParams(Params):
    value: float = param(0.0, doc="The value written, cut to the type of `data`.", traced=True)
    start_axis: int = param(0, doc="Axis of `data` that the first axis of the mask belongs to.")


class MaskedTensorParams(Params):
    start_axis: int = param(0, doc="Axis of `data` that the first axis of the mask belongs to.")


def _axis_of_mask(start: int, data: Array, mask: Array) -> int:
    axis = start + data.ndim if start < 0 else start
    covered = data.shape[axis:axis + mask.ndim]
    if axis < 0 or covered != mask.shape:
        raise ShapeError(f"argument 'mask': {mask.shape} does not fit the axes of data {data.shape} from axis {axis}")
    return axis


def _spread(mask: Array, data: Array, axis: int) -> Array:
    """The mask with axes of size 1 for the axes of `data` that it does not cover."""
    return mask.reshape((1,) * axis + mask.shape + (1,) * (data.ndim - axis - mask.ndim))


def _only_data_typed(p: Params, ins: list[str | None], outs: list[str | None]) -> Types:
    known = ins[0] or outs[0] or (ins[2] if len(ins) > 2 else None)
    return [known, ins[1], *[known] * (len(ins) - 2)], [known]


# MXNet: both work in place alone, so that no graph can hold them.
@op("_npi_boolean_mask_assign_scalar", params=MaskedScalarParams, infer_types=_only_data_typed)
def boolean_mask_assign_scalar(p: MaskedScalarParams, data: Array, mask: Array) -> Array:
    """Returns `data` with a number written where the mask, over some of its axes, is not zero."""
    axis = _axis_of_mask(p.start_axis, data, mask)
    return jnp.where(_spread(mask != 0, data, axis), scalar_as(p.value, data.dtype), data)


@op("_npi_boolean_mask_assign_tensor", params=MaskedTensorParams, infer_types=_only_data_typed)
def boolean_mask_assign_tensor(p: MaskedTensorParams, data: Array, mask: Array, value: Array) -> Array:
    """Returns `data` with values written where the mask, over the axes from `start_axis`, is not zero.

    `value` broadcasts to data[mask], in which those axes are one, of the length of the mask's count: the first value
    goes to the first place in row-major order. A compiled function cannot compare the count; where there are fewer
    values than places the last one is repeated, and those too many are not read.
    """
    axis = _axis_of_mask(p.start_axis, data, mask)
    tail = data.ndim - axis - mask.ndim
    if value.ndim > axis + 1 + tail:
        raise ShapeError(f"argument 'value': {value.shape} has more axes than data[mask], {axis + 1 + tail}")
    value = value.reshape((1,) * (axis + 1 + tail - value.ndim) + value.shape)
    given = value.shape[axis]
    _check_count(mask, given)
    if not given:
        return data
    place = jnp.cumsum((mask != 0).reshape(-1), dtype=jnp.int32) - 1
    rows = jnp.take(value, jnp.clip(place, 0, given - 1), axis)
    rows = rows.reshape(*rows.shape[:axis], *mask.shape, *rows.shape[axis + 1:])
    return jnp.where(_spread(mask != 0, data, axis), jnp.broadcast_to(rows, data.shape), data)


def _check_count(mask: Array, given: int) -> None:
    if given == 1 or isinstance(mask, Tracer):
        return
    places = np.count_nonzero(np.asarray(mask))  # by numpy: within a trace jnp would give a tracer
    if places != given:
        raise ShapeError(f"argument 'value': {given} values for {places} places of the mask")


@op("_npi_share_memory", infer_types=lambda p, ins, outs: (ins, ["bool"]))
def share_memory(p: Params, a: Array, b: Array) -> Array:
    """Whether two arrays share memory: False, for values have none to share."""
    return jnp.zeros((), bool)


class ConstraintParams(Params):
    msg: str = param("Constraint violated.", doc="The text of the error.")


class ConstraintError(MXNetError, ValueError):
    """A constraint that `constraint_check` was given does not hold."""


@op("_npx_constraint_check", params=ConstraintParams, infer_types=lambda p, ins, outs: (["bool"], ["bool"]),
    infer_outputs=lambda p, ins: [()], eager=True)
def constraint_check(p: ConstraintParams, input: Array) -> Array:
    """Whether all elements of `input` are true, as a scalar.

    Raises a ValueError with the text `msg` where they are not and values are known; a compiled function, which cannot
    raise, returns False.
    """
    holds = jnp.all(input)
    if not isinstance(holds, Tracer) and not bool(holds):
        raise ConstraintError(p.msg)
    return holds
