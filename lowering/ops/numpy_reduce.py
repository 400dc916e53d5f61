"""The reductions of `mx.np`: over all axes a result has shape (), sums of bool count, means of integers are float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops import _axes, reduce
from symjax.lowering.ops._elementwise import cast, is_float, wide_dtype
from symjax.lowering.ops.indexing import need_values
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op

Types = tuple[Sequence[str | None], Sequence[str | None]]
OutType = Literal["float16", "float32", "float64", "int32", "int64", "int8"]

_AXIS = "Axes to reduce; None for all, () for none. Negative ones count from the end."
_KEEPDIMS = "Whether reduced axes stay, with size 1."


class NumpyReduceParams(Params):
    axis: Shape | None = param(None, doc=_AXIS)
    keepdims: bool = param(False, doc=_KEEPDIMS)


class ExtremeParams(NumpyReduceParams):
    initial: float | None = param(None, doc="A number to compare with as well.")


class AccumulateParams(Params):
    axis: Shape | None = param(None, doc=_AXIS)
    dtype: Literal["bool"] | OutType | None = param(
        None, doc="Type of the result; None for the input's, and int64 for bool.")
    keepdims: bool = param(False, doc=_KEEPDIMS)
    initial: float | None = param(None, doc="A number to start from.")


def np_axes(axis: Shape | None, ndim: int) -> tuple[int, ...]:
    """The sorted axes to reduce: all for None, none for (). Of a scalar, axis 0 is accepted.

    Raises:
      ShapeError: an axis is outside the rank or occurs twice.
    """
    if ndim == 0 and axis in ((0,), (-1,)):
        return ()
    return reduce.reduced_axes(axis, ndim) if axis is None or axis else ()


def kept(y: Array, axes: tuple[int, ...], shape: tuple[int, ...], keepdims: bool) -> Array:
    """Gives a reduced array the axes of size 1 that `keepdims` asks for."""
    return y.reshape(tuple(1 if i in axes else d for i, d in enumerate(shape))) if keepdims else y


def _size(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    return math.prod(shape[a] for a in axes)


def _sum_types(p: AccumulateParams, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, [p.dtype or ("int64" if ins[0] == "bool" else ins[0])]


def _mean_types(p: AccumulateParams, ins: list[str | None], outs: list[str | None]) -> Types:
    known = ins[0]
    return ins, [p.dtype or (known if known is None or "float" in known else "float32")]


def _bool(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, ["bool"]


def _int64(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, ["int64"] * len(outs)


# name: (sum or product, how `initial` joins it, aliases, formula)
_SUMS: dict[str, tuple[Callable[..., Array], Callable[[Array, Array], Array], tuple[str, ...], str]] = {
    "_np_sum": (reduce.total, jnp.add, (), "the sum"),
    "_np_prod": (reduce.product, jnp.multiply, ("_np_product",), "the product"),
}
_EXTREMES: dict[str, tuple[Callable[..., Array], Callable[[Array, Array], Array], tuple[str, ...], str]] = {
    "_np_max": (jnp.max, jnp.maximum, ("_np_amax",), "the largest element"),
    "_np_min": (jnp.min, jnp.minimum, ("_np_amin",), "the smallest element"),
}
_TESTS: dict[str, tuple[Callable[..., Array], tuple[str, ...], str]] = {
    "_np_any": (jnp.any, ("_np_sometrue",), "whether an element is not zero"),
    "_np_all": (jnp.all, (), "whether no element is zero"),
}


def _register_sum(name: str, fn: Callable[..., Array], join: Callable[[Array, Array], Array], aliases: tuple[str, ...],
                  formula: str) -> None:
    def rule(p: AccumulateParams, a: Array) -> Array:
        axes = np_axes(p.axis, a.ndim)
        dtype = p.dtype or ("int64" if a.dtype == jnp.bool_ else a.dtype.name)
        y = fn(a, axes, dtype)
        y = y if p.initial is None else cast(join(y, jnp.asarray(p.initial, wide_dtype(y.dtype))), y.dtype)
        return kept(y, axes, a.shape, p.keepdims)

    # MXNet: the product of nothing is 0; here it is 1.
    rule.__doc__ = f"Returns {formula} over `axis`; half precision adds up in float32.\n\nMXNet lacks `initial`."
    op(name, aliases=aliases, params=AccumulateParams, infer_types=_sum_types, source=f"{__file__}:{name}")(rule)


def _register_extreme(name: str, fn: Callable[..., Array], join: Callable[[Array, Array], Array],
                      aliases: tuple[str, ...], formula: str) -> None:
    pick = reduce.extreme(fn)

    def rule(p: ExtremeParams, a: Array) -> Array:
        axes = np_axes(p.axis, a.ndim)
        if p.initial is None:
            if not _size(a.shape, axes):
                raise ShapeError(f"a has shape {a.shape}: {formula} of no elements does not exist")
            return kept(pick(a, axes), axes, a.shape, p.keepdims)
        start = cast(jnp.asarray(p.initial, wide_dtype(a.dtype)), a.dtype)
        y = pick(a, axes) if _size(a.shape, axes) else jnp.broadcast_to(start, reduced_shape(a.shape, axes))
        return kept(join(y, start), axes, a.shape, p.keepdims)

    rule.__doc__ = (f"Returns {formula} over `axis`; NaN spreads, and all tied elements get the gradient.\n\n"
                    f"MXNet lacks `initial`.")
    op(name, aliases=aliases, params=ExtremeParams, source=f"{__file__}:{name}")(rule)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without some axes."""
    return tuple(d for i, d in enumerate(shape) if i not in axes)


def _register_test(name: str, fn: Callable[..., Array], aliases: tuple[str, ...], formula: str) -> None:
    def rule(p: NumpyReduceParams, data: Array) -> Array:
        axes = np_axes(p.axis, data.ndim)
        return kept(fn(data != 0, axes), axes, data.shape, p.keepdims)

    rule.__doc__ = f"Returns {formula}, over `axis`: bool. NaN counts as not zero."
    op(name, aliases=aliases, params=NumpyReduceParams, infer_types=_bool, source=f"{__file__}:{name}")(rule)


for _name, _row in _SUMS.items():
    _register_sum(_name, *_row)
for _name, _row in _EXTREMES.items():
    _register_extreme(_name, *_row)
for _name, _test in _TESTS.items():
    _register_test(_name, *_test)


@op("_npi_mean", params=AccumulateParams, infer_types=_mean_types)
def mean(p: AccumulateParams, a: Array) -> Array:
    """Returns the mean over `axis`, float32 for integers; half precision adds up in float32.

    The mean of nothing is NaN; MXNet gives 0.
    """
    if p.initial is not None:
        raise ParamError("a mean has no initial value: leave `initial` out")
    axes = np_axes(p.axis, a.ndim)
    dtype = jnp.dtype(p.dtype or (a.dtype if is_float(a) else jnp.float32))
    wide = jnp.promote_types(wide_dtype(a.dtype), wide_dtype(dtype))
    y = jnp.sum(a, axes, dtype=wide) / _size(a.shape, axes)
    return kept(cast(y, dtype), axes, a.shape, p.keepdims)


class SpreadParams(Params):
    axis: Shape | None = param(None, doc=_AXIS)
    dtype: OutType | None = param(None, doc="Type of the result; None for the input's.")
    ddof: int = param(0, doc="What is taken off the count of elements in the divisor.")
    keepdims: bool = param(False, doc=_KEEPDIMS)


def _dtype_or_input(p: Any, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, [p.dtype or ins[0]]


def _variance(p: SpreadParams, a: Array, root: bool) -> Array:
    axes = np_axes(p.axis, a.ndim)
    dtype = jnp.dtype(p.dtype or a.dtype)
    x = lax.stop_gradient(a).astype(jnp.promote_types(wide_dtype(a.dtype), wide_dtype(dtype)))
    count = _size(a.shape, axes)
    middle = jnp.sum(x, axes, keepdims=True) / count
    y = jnp.sum(jnp.square(x - middle), axes) / (count - p.ddof)
    return kept(cast(jnp.sqrt(y) if root else y, dtype), axes, a.shape, p.keepdims)


@op("_npi_std", params=SpreadParams, outputs=("std",), infer_types=_dtype_or_input)
def std(p: SpreadParams, a: Array) -> Array:
    """Returns the standard deviation over `axis`: the root of the mean square distance from the mean.

    MXNet takes the mean of integers truncated; this one does not, but the result is in their type without `dtype`.
    """
    return _variance(p, a, True)


@op("_npi_var", params=SpreadParams, outputs=("var",), infer_types=_dtype_or_input)
def var(p: SpreadParams, a: Array) -> Array:
    """Returns the variance over `axis`: the mean square distance from the mean."""
    return _variance(p, a, False)


class NumpyArgParams(Params):
    axis: int | None = param(None, doc="Axis to search; None for the flattened array.")
    keepdims: bool = param(False, doc="Whether the axis stays, with size 1.")


def _index(fn: Callable[..., Array], p: NumpyArgParams, data: Array) -> Array:
    axes = np_axes(None if p.axis is None else (p.axis,), data.ndim)
    if not _size(data.shape, axes):
        raise ShapeError(f"data has shape {data.shape}: there is no element to find")
    index = fn(data.reshape(-1)) if p.axis is None or not data.ndim else fn(data, axes[0])
    return kept(index.astype(jnp.int64), axes, data.shape, p.keepdims)


@op("_npi_argmax", params=NumpyArgParams, infer_types=_int64)
def argmax(p: NumpyArgParams, data: Array) -> Array:
    """Returns the index of the (first) largest element: int64; NaN counts as largest."""
    return _index(_axes.argmax, p, data)


@argmax.variant(platform="cpu")
def _argmax_by_blocks(p: NumpyArgParams, data: Array) -> Array:
    return _index(_axes.argmax_by_blocks, p, data)


@op("_npi_argmin", params=NumpyArgParams, infer_types=_int64)
def argmin(p: NumpyArgParams, data: Array) -> Array:
    """Returns the index of the (first) smallest element: int64; NaN counts as smallest."""
    return _index(_axes.argmin, p, data)


class AverageParams(Params):
    axis: Shape | None = param(None, doc=_AXIS)
    returned: bool = param(False, doc="Whether the sum of the weights is a second visible output.")
    weighted: bool = param(True, doc="Whether there are weights; without them it is the mean.")


@op("_npi_average", params=AverageParams, outputs=2, num_visible=lambda p: 1 + p.returned,
    inputs=lambda p: ("a", "weights") if p.weighted else ("a",), all_inputs=("a", "weights"))
def average(p: AverageParams, a: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Returns sum(a w) / sum(w) over `axis`, and the sums of the weights; all in the type of `a`.

    `weights` has the shape of `a`, or is a vector along the one `axis`; of a vector, and where there are none (all are
    1), the sum is a scalar. Integers truncate.
    """
    axes = np_axes(p.axis, a.ndim)
    wide = wide_dtype(a.dtype) if is_float(a) else jnp.dtype(jnp.float64)
    x = a.astype(wide)
    if weights is None:
        count = _size(a.shape, axes)
        return cast(jnp.sum(x, axes) / count, a.dtype), jnp.full((), count, a.dtype)
    w = jnp.broadcast_to(_along(weights, a.shape, p.axis, axes).astype(wide), a.shape)
    scale = jnp.sum(w, axes)
    # MXNet: the sum of a vector of weights stays a scalar.
    total = scale if weights.ndim == a.ndim else jnp.sum(weights.astype(wide))
    return cast(jnp.sum(x * w, axes) / scale, a.dtype), cast(total, a.dtype)


def _along(weights: Array, shape: tuple[int, ...], axis: Shape | None, axes: tuple[int, ...]) -> Array:
    if weights.shape == shape:
        return weights
    if axis is None or len(axes) != 1:
        raise ShapeError(f"weights has shape {weights.shape}, a {shape}: give the one axis that the weights are along")
    if weights.shape != (shape[axes[0]],):
        raise ShapeError(f"weights has shape {weights.shape}: expected {shape} or {(shape[axes[0]],)}")
    return weights.reshape(tuple(-1 if i == axes[0] else 1 for i in range(len(shape))))


class PercentileParams(Params):
    axis: Shape | None = param(None, doc=_AXIS)
    interpolation: Literal["linear", "lower", "higher", "midpoint", "nearest"] = param(
        "linear", doc="What stands between two elements; the nearest one of a half is the upper one.")
    keepdims: bool = param(False, doc=_KEEPDIMS)
    q_scalar: float | None = param(None, doc="The percentile, where it is a number and no array.")


def _percentile_types(p: PercentileParams, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, [None if None in ins else "float64" if ins[0] == "float64" else "float32"]


@op("_npi_percentile", params=PercentileParams, infer_types=_percentile_types, all_inputs=("a", "q"),
    inputs=lambda p: ("a", "q") if p.q_scalar is None else ("a",))
def percentile(p: PercentileParams, a: Array, q: Array | None = None) -> Array:
    """Returns the q-th percentiles over `axis`, float64 for float64 and else float32: shape (*q.shape, *reduced).

    q lies in [0, 100], a number or a vector. NaN spreads. The gradient is 0, as in MXNet.
    """
    axes = np_axes(p.axis, a.ndim)
    if q is None:
        assert p.q_scalar is not None
        if not 0 <= p.q_scalar <= 100:
            raise ParamError(f"q_scalar={p.q_scalar} is outside [0, 100]")
        q = jnp.full((), p.q_scalar, jnp.float64 if a.dtype == jnp.float64 else jnp.float32)
    if q.ndim > 1:
        raise ShapeError(f"q has shape {q.shape}: expected a scalar or a vector")
    rest = reduced_shape(a.shape, axes)
    count = _size(a.shape, axes)
    if not count:
        raise ShapeError(f"a has shape {a.shape}: there are no elements to take percentiles of")
    x = jnp.moveaxis(lax.stop_gradient(a).astype(wide_dtype(a.dtype)), axes, range(len(axes)))
    x = jnp.sort(x.reshape(count, *rest), axis=0)
    spoiled = jnp.isnan(x[-1])
    y = _between(x, lax.stop_gradient(q).astype(x.dtype) / 100 * (count - 1), p.interpolation)
    y = jnp.where(spoiled, jnp.nan, y)
    return y.reshape(*q.shape, *(1 if i in axes else d for i, d in enumerate(a.shape))) if p.keepdims else y


def _between(x: Array, at: Array, how: str) -> Array:
    """Elements of the sorted `x` along axis 0 at real positions."""
    low, high = (jnp.clip(f(at), 0, x.shape[0] - 1).astype(jnp.int32) for f in (jnp.floor, jnp.ceil))
    if how == "nearest":
        return x[jnp.floor(at + 0.5).astype(jnp.int32)]
    if how in ("lower", "higher"):
        return x[low if how == "lower" else high]
    part = jnp.asarray(0.5, x.dtype) if how == "midpoint" else at - jnp.floor(at)
    part = jnp.broadcast_to(part, at.shape).reshape(at.shape + (1,) * (x.ndim - 1))
    return x[low] * (1 - part) + x[high] * part


class BincountParams(Params):
    minlength: int = param(0, ge=0, doc="Least length of the result.")
    has_weights: bool = param(False, doc="Whether `weights` are given; without them each element counts 1.")


def _bincount_types(p: BincountParams, ins: list[str | None], outs: list[str | None]) -> Types:
    return ins, [ins[-1]]


@op("_npi_bincount", params=BincountParams, infer_types=_bincount_types, infer_outputs=lambda p, ins: [None],
    inputs=lambda p: ("data", "weights") if p.has_weights else ("data",), all_inputs=("data", "weights"), eager=True)
def bincount(p: BincountParams, data: Array, weights: Array | None = None) -> Array:
    """Counts how often each of 0, 1, … occurs in the vector `data`, or adds up the weights of each.

    The length of the result, max(data) + 1 or `minlength`, depends on values: a graph with this op runs node by node,
    and jit refuses it.
    """
    need_values(data, "bincount", "data", "a sum over one_hot", "np.bincount")
    if data.ndim != 1 or (weights is not None and weights.shape != data.shape):
        raise ShapeError(f"data {data.shape} must be a vector, and weights like it")
    if is_float(data):
        raise ParamError(f"data has dtype {data.dtype}; bincount needs integers")
    if data.size and int(jnp.min(data)) < 0:
        raise ParamError("data holds a negative number")
    length = max(p.minlength, int(jnp.max(data)) + 1 if data.size else 0)
    each = jnp.ones(data.shape, data.dtype) if weights is None else weights
    return jnp.zeros(length, each.dtype).at[data].add(each)
