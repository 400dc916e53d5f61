"""Reductions over axes, arg-reductions, and the broadcasts that are their transposes.

Without an axis (None or ()) everything is reduced, to shape (1,); half precision accumulates in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.habits import habit
from symjax.lowering.ops import _axes
from symjax.lowering.ops._elementwise import cast, is_float, wide_dtype
from symjax.lowering.ops._wide_rows import is_wide, sum_rows
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op

Types = tuple[Sequence[str | None], Sequence[str | None]]
Reduction = Callable[[Array, tuple[int, ...]], Array]


class ReduceParams(Params):
    axis: Shape | None = param(None, doc="Axes to reduce; None or () for all. Negative ones count from the end.")
    keepdims: bool = param(False, doc="Whether reduced axes stay, with size 1.")
    exclude: bool = param(False, doc="Whether to reduce the axes that are not in `axis` instead.")


def reduced_axes(axis: Shape | None, ndim: int, exclude: bool = False) -> tuple[int, ...]:
    """Returns the sorted axes to reduce.

    Raises:
      ShapeError: an axis is outside the rank or occurs twice.
    """
    if not axis:
        return tuple(range(ndim))
    axes = sorted(one_axis(a, ndim) for a in axis)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis={axis} names an axis twice")
    return tuple(a for a in range(ndim) if a not in axes) if exclude else tuple(axes)


def one_axis(axis: int, ndim: int) -> int:
    """Returns an axis as a non-negative number, or raises ShapeError."""
    if not -ndim <= axis < ndim:
        raise ShapeError(f"axis {axis} is outside an array of {ndim} dimensions")
    return axis % ndim


def finish(y: Array, axes: tuple[int, ...], shape: tuple[int, ...], keepdims: bool) -> Array:
    """Gives a reduced array (without its axes) MXNet's shape."""
    if keepdims:
        return y.reshape(tuple(1 if i in axes else d for i, d in enumerate(shape)))
    # MXNet: classic arrays have at least one dimension.
    return y.reshape(1) if y.ndim == 0 else y


def accumulated(reduce: Callable[..., Array], test: Callable[..., Array]) -> Callable[..., Array]:
    """A sum or product over axes in a type (by default the array's): wide for floats, and a truth value for bool."""

    def run(x: Array, axes: tuple[int, ...], dtype: Any = None) -> Array:
        dtype = jnp.dtype(dtype or x.dtype)
        if dtype == jnp.bool_:
            return test(x, axes)
        types = [t for t in (x.dtype, dtype) if jnp.issubdtype(t, jnp.floating)]
        wide = max((wide_dtype(t) for t in types), key=lambda t: t.itemsize, default=dtype)
        return cast(reduce(x, axes, dtype=wide), dtype)

    return run


total = accumulated(jnp.sum, jnp.any)
_DIVIDED = habit(("prod", "nanprod", "_np_prod"), "The gradient is the product divided by the element: NaN at a zero.",
                 "The gradient is the product of the other elements.")


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _divided_product(x: Array, axes: tuple[int, ...]) -> Array:
    return jnp.prod(x, axes)


def _divided_forward(x: Array, axes: tuple[int, ...]) -> tuple[Array, tuple[Array, Array]]:
    out = jnp.prod(x, axes)
    return out, (x, out)


def _divided_backward(axes: tuple[int, ...], residuals: tuple[Array, Array], head: Array) -> tuple[Array]:
    x, out = residuals
    return (jnp.expand_dims(head * out, axes) / x,)


_divided_product.defvjp(_divided_forward, _divided_backward)


def _prod(x: Array, axes: tuple[int, ...], dtype: Any) -> Array:
    if _DIVIDED() and jnp.issubdtype(dtype, jnp.floating):
        return _divided_product(x.astype(dtype), axes)
    return jnp.prod(x, axes, dtype=dtype)


product = accumulated(_prod, jnp.all)


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    if is_float(x):
        return cast(jnp.mean(x, axes, dtype=wide_dtype(x.dtype)), x.dtype)
    count = 1
    for a in axes:
        count *= x.shape[a]
    total = jnp.sum(x, axes, dtype=jnp.int64)
    # MXNet: the mean of integers truncates towards zero; of booleans it is whether there is a True.
    return total != 0 if x.dtype == jnp.bool_ else lax.div(total, jnp.full_like(total, count)).astype(x.dtype)


def _without_nan(x: Array, value: int) -> Array:
    return jnp.where(jnp.isnan(x), jnp.full((), value, x.dtype), x) if is_float(x) else x


def extreme(reduce: Callable[..., Array]) -> Reduction:
    """A max or min whose gradient goes in full to every tied element; NaN spreads."""

    def run(x: Array, axes: tuple[int, ...]) -> Array:
        @jax.custom_jvp
        def picked(x: Array) -> Array:
            y = reduce(x, axes)
            if not is_float(x) or not x.size:
                return y
            # XLA's CPU code for large arrays leaves NaN out
            missing = jnp.sum(jnp.isnan(x), axes, dtype=x.dtype) > 0
            return jnp.where(missing, jnp.asarray(jnp.nan, x.dtype), y)

        @picked.defjvp
        def _jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
            y = picked(primals[0])
            hit = primals[0] == jnp.expand_dims(y, axes)
            return y, jnp.sum(jnp.where(hit, tangents[0], 0), axes, dtype=x.dtype)

        return picked(x)

    return run


def _square_sum(x: Array, axes: tuple[int, ...]) -> Array:
    wide = x.astype(wide_dtype(x.dtype)) if is_float(x) else x
    return cast(jnp.sum(jnp.square(wide), axes, dtype=wide.dtype), x.dtype)


# name: (function, aliases, formula)
_REDUCTIONS: dict[str, tuple[Reduction, tuple[str, ...], str]] = {
    "sum": (total, ("sum_axis", "_sparse_sum"), "the sum"),
    "mean": (_mean, ("_sparse_mean",), "the mean; of integers truncated towards zero"),
    "prod": (product, (), "the product"),
    "nansum": (lambda x, axes: total(_without_nan(x, 0), axes), (), "the sum of what is not NaN"),
    "nanprod": (lambda x, axes: product(_without_nan(x, 1), axes), (), "the product of what is not NaN"),
    "max": (extreme(jnp.max), ("max_axis",), "the largest element; NaN spreads, all tied elements get the gradient"),
    "min": (extreme(jnp.min), ("min_axis",), "the smallest element; NaN spreads, all tied elements get the gradient"),
    "_square_sum": (_square_sum, (), "the sum of squares"),
}


def _over_axes(fn: Reduction) -> Callable[[ReduceParams, Array], Array]:
    def rule(p: ReduceParams, data: Array) -> Array:
        axes = reduced_axes(p.axis, data.ndim, p.exclude)
        return finish(fn(data, axes), axes, data.shape, p.keepdims)

    return rule


def _register(name: str, fn: Reduction, aliases: tuple[str, ...], formula: str) -> None:
    rule = _over_axes(fn)
    rule.__doc__ = (f"Returns {formula} over `axis`, in the type of `data`.\n\nThe reduced axes vanish, or stay as 1 "
                    f"with `keepdims`; reducing all of them gives shape (1,).")
    made = op(name, aliases=aliases, params=ReduceParams, source=f"{__file__}:{name}")(rule)
    if fn is total:
        made.variant(platform="cpu", when=_sums_rows)(_over_axes(lambda x, axes: sum_rows(x, len(axes))))


def _sums_rows(p: ReduceParams, avals: Sequence[Any]) -> bool:
    shape = avals[0].shape
    axes = reduced_axes(p.axis, len(shape), p.exclude)
    return axes == tuple(range(len(axes))) and is_wide(shape, len(axes), avals[0].dtype)


for _name, (_fn, _aliases, _formula) in _REDUCTIONS.items():
    _register(_name, _fn, _aliases, _formula)


class NormParams(Params):
    ord: int = param(2, doc="1 for the sum of magnitudes, 2 for the root of the sum of squares.", ge=1, le=2)
    axis: Shape | None = param(None, doc="Axes to reduce; None or () for all.")
    out_dtype: Literal["float16", "float32", "float64", "int32", "int64", "int8"] | None = param(
        None, doc="Type of the output; None for the input's.")
    keepdims: bool = param(False, doc="Whether reduced axes stay, with size 1.")


def _norm_types(p: NormParams, ins: list[str | None], outs: list[str | None]) -> Types:
    if p.out_dtype:
        return ins, [p.out_dtype]
    known = ins[0] or outs[0]
    return [known], [known]


@op("norm", aliases=("_sparse_norm",), params=NormParams, infer_types=_norm_types)
def norm(p: NormParams, data: Array) -> Array:
    """Returns the norm over `axis`: (sum |x|^ord)^(1/ord). The gradient of the 2-norm at 0 is NaN."""
    axes = reduced_axes(p.axis, data.ndim)
    x = data.astype(wide_dtype(data.dtype))
    # Squares are summed as they are: scaling against overflow would cost a pass over the array.
    y = jnp.sqrt(jnp.sum(x * x, axes)) if p.ord == 2 else jnp.sum(x * lax.stop_gradient(jnp.sign(x)), axes)
    return finish(cast(y, p.out_dtype or data.dtype), axes, data.shape, p.keepdims)


class ArgParams(Params):
    axis: int | None = param(None, doc="Axis to search; None for the flattened array.")
    keepdims: bool = param(False, doc="Whether the axis stays, with size 1.")


def _arg(fn: Callable[..., Array], p: ArgParams, data: Array) -> Array:
    if p.axis is None:
        return fn(data.reshape(-1)).astype(data.dtype).reshape((1,) * (data.ndim if p.keepdims else 1))
    axis = one_axis(p.axis, data.ndim)
    return finish(fn(data, axis).astype(data.dtype), (axis,), data.shape, p.keepdims)


@op("argmax", params=ArgParams)
def argmax(p: ArgParams, data: Array) -> Array:
    """Returns the index of the (first) largest element, in the type of `data`; NaN counts as largest.

    An index above 2^24 (float32) or 2048 (float16) is rounded, as in MXNet.
    """
    return _arg(_axes.argmax, p, data)


@argmax.variant(platform="cpu")
def _argmax_by_blocks(p: ArgParams, data: Array) -> Array:
    return _arg(_axes.argmax_by_blocks, p, data)


@op("argmin", params=ArgParams)
def argmin(p: ArgParams, data: Array) -> Array:
    """Returns the index of the (first) smallest element, in the type of `data`; NaN counts as smallest."""
    return _arg(_axes.argmin, p, data)


@op("argmax_channel")
def argmax_channel(p: Any, data: Array) -> Array:
    """Returns the index of the largest element along axis 1, in the type of `data`: (N, C, ...) -> (N, ...)."""
    if data.ndim < 2:
        raise ShapeError(f"data has shape {data.shape}; at least two dimensions are needed")
    return _axes.argmax(data, 1).astype(data.dtype)


class MomentsParams(Params):
    axes: Shape | None = param(None, doc="Axes to reduce; None or () for all.")
    keepdims: bool = param(False, doc="Whether reduced axes stay, with size 1.")


@op("moments", params=MomentsParams, outputs=2)
def moments(p: MomentsParams, data: Array) -> tuple[Array, Array]:
    """Returns the mean and the (biased) variance over `axes`.

    MXNet fails when all axes are reduced; this gives shape (1,).
    """
    axes = reduced_axes(p.axes, data.ndim)
    x = data.astype(wide_dtype(data.dtype))
    mean = jnp.mean(x, axes, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axes)
    return (finish(cast(mean, data.dtype).reshape(variance.shape), axes, data.shape, p.keepdims),
            finish(cast(variance, data.dtype), axes, data.shape, p.keepdims))


class AllFiniteParams(Params):
    init_output: bool = param(True, doc="Whether to ignore what the output held; it is always ignored here.")


class MultiAllFiniteParams(Params):
    num_arrays: int = param(1, ge=1, doc="Number of arrays.")
    init_output: bool = param(True, doc="Whether to ignore what the output held; it is always ignored here.")


class MultiSumSqParams(Params):
    num_arrays: int = param(doc="Number of arrays.", ge=1)


def _float32_out(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, ["float32"]


def _same_in(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    return [next((t for t in ins if t), None)] * len(ins), ["float32"]


def _array_names(p: Any) -> tuple[str, ...]:
    return tuple(f"array_{i}" for i in range(p.num_arrays))


@op("all_finite", params=AllFiniteParams, infer_types=_float32_out)
def all_finite(p: AllFiniteParams, data: Array) -> Array:
    """Returns 1 if no element is NaN or infinite, else 0: float32 of shape (1,)."""
    return jnp.all(jnp.isfinite(data)).astype(jnp.float32).reshape(1)


@op("multi_all_finite", params=MultiAllFiniteParams, inputs=_array_names, variadic="num_arrays",
    infer_types=_float32_out, infer_outputs=lambda p, ins: [(1,)])
def multi_all_finite(p: MultiAllFiniteParams, *data: Array) -> Array:
    """Returns 1 if no element of any array is NaN or infinite, else 0: float32 of shape (1,)."""
    return jnp.stack([jnp.all(jnp.isfinite(a)) for a in data]).all().astype(jnp.float32).reshape(1)


@op("multi_sum_sq", params=MultiSumSqParams, inputs=_array_names, variadic="num_arrays", infer_types=_same_in,
    infer_outputs=lambda p, ins: [(p.num_arrays,)])
def multi_sum_sq(p: MultiSumSqParams, *data: Array) -> Array:
    """Returns the sum of squares of each array: float32 of shape (num_arrays,)."""
    return jnp.stack([jnp.sum(jnp.square(a.astype(wide_dtype(a.dtype)))).astype(jnp.float32) for a in data])


class BroadcastAxisParams(Params):
    axis: Shape = param((), doc="Axes of size 1 to stretch.")
    size: Shape = param((), doc="Their new sizes.")


@op("broadcast_axis", aliases=("broadcast_axes",), params=BroadcastAxisParams)
def broadcast_axis(p: BroadcastAxisParams, data: Array) -> Array:
    """Stretches each of `axis`, of size 1, to the corresponding `size`."""
    if len(p.axis) != len(p.size):
        raise ParamError(f"axis={p.axis} and size={p.size} differ in length")
    shape = list(data.shape)
    for axis, size in zip(p.axis, p.size, strict=True):
        a = one_axis(axis, data.ndim)
        if data.shape[a] != 1:
            raise ShapeError(f"data has shape {data.shape}: axis {axis} must have size 1 to be stretched")
        shape[a] = size
    return jnp.broadcast_to(data, tuple(shape))


class BroadcastToParams(Params):
    shape: Shape = param((), doc="The new shape; 0 keeps the input's dimension.", ge=0)


@op("broadcast_to", params=BroadcastToParams)
def broadcast_to(p: BroadcastToParams, data: Array) -> Array:
    """Stretches the dimensions of size 1 to `shape`, of the same rank; 0 keeps a dimension."""
    if not p.shape:
        return data
    return _stretch(data, tuple(s or d for s, d in zip(p.shape, data.shape, strict=False)), len(p.shape))


def _stretch(data: Array, shape: tuple[int, ...], rank: int) -> Array:
    if rank != data.ndim:
        raise ShapeError(f"data has shape {data.shape}: expected a target of {data.ndim} dimensions, got {rank}")
    for i, (have, want) in enumerate(zip(data.shape, shape, strict=True)):
        if have not in (1, want):
            raise ShapeError(f"data has shape {data.shape}: axis {i} cannot be stretched to {want}")
    return jnp.broadcast_to(data, shape)


class BroadcastLikeParams(Params):
    lhs_axes: Shape | None = param(None, doc="Axes of lhs to stretch; None for all.")
    rhs_axes: Shape | None = param(None, doc="Axes of rhs that give their sizes; None for all.")


def _lhs_dtype(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    known = ins[0] or outs[0]
    return [known, ins[1]], [known]


@op("broadcast_like", params=BroadcastLikeParams, infer_types=_lhs_dtype)
def broadcast_like(p: BroadcastLikeParams, lhs: Array, rhs: Array) -> Array:
    """Stretches dimensions of size 1 of `lhs` to those of `rhs`; all of them, or `lhs_axes` to those of `rhs_axes`."""
    if p.lhs_axes is None and p.rhs_axes is None:
        return _stretch(lhs, rhs.shape, rhs.ndim)
    left, right = p.lhs_axes or (), p.rhs_axes or ()
    if not left or len(left) != len(right):
        raise ParamError(f"lhs_axes={p.lhs_axes} and rhs_axes={p.rhs_axes} must be given together, of one length")
    shape = list(lhs.shape)
    for a, b in zip(left, right, strict=True):
        shape[one_axis(a, lhs.ndim)] = rhs.shape[one_axis(b, rhs.ndim)]
    return _stretch(lhs, tuple(shape), len(shape))


class CumsumParams(Params):
    axis: int | None = param(None, doc="The axis to add along; None adds along the flattened array.")
    dtype: Literal["float16", "float32", "float64", "int32", "int64", "int8"] | None = param(
        None, doc="Type of the sums; None keeps the input's.")


def _cumsum_type(p: CumsumParams, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None],
                                                                                         list[str | None]]:
    return ins, [p.dtype or ("int64" if ins[0] == "bool" else ins[0])]


@op("_np_cumsum", aliases=("cumsum",), params=CumsumParams, infer_types=_cumsum_type)
def cumsum(p: CumsumParams, a: Array) -> Array:
    """Returns the running sums along `axis`; half precision is added up in float32."""
    dtype = p.dtype or ("int64" if a.dtype == jnp.bool_ else a.dtype.name)
    x = a if p.axis is not None else a.reshape(-1)
    return jnp.cumsum(x.astype(wide_dtype(jnp.dtype(dtype))), axis=p.axis or 0).astype(dtype)
