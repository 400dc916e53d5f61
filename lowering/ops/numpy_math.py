"""Numpy operators of calculus: norms, differences, polynomials; and their gradients as MXNet names them in graphs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._axes import axis_of
from symjax.lowering.ops._elementwise import cast, is_float, scalar_as, wide_dtype
from symjax.lowering.ops.numpy_elementwise import NanToNumParams, nan_to_num
from symjax.lowering.ops.numpy_reduce import kept, np_axes
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op


class NumpyNormParams(Params):
    ord: float = param(2.0, doc="The order of the norm.")
    axis: Shape | None = param(None, doc="Axis of the vectors, or the two (rows, columns) of the matrices; None for "
                                         "the last two, or the only one.")
    keepdims: bool = param(False, doc="Whether reduced axes stay, with size 1.")
    flag: int = param(-1, doc="1: the root of the sum of squares over `axis`; -2: over all; 2: of matrices, with ord "
                              "2, the sum of the singular values; else `ord` decides.")


@op("_npi_norm", params=NumpyNormParams, outputs=4, num_visible=1)
def norm(p: NumpyNormParams, data: Array) -> tuple[Array, Array, Array, Array]:
    """Returns the norms of the vectors or matrices in `axis`; hidden outputs stand for MXNet's decomposition.

    Vectors: (sum |x|^ord)^(1/ord), the count of what is not zero for ord 0, the largest or smallest |x| for ord inf or
    -inf. Matrices: the largest column sum of |x| for ord 1, the largest row sum for inf, the largest singular value
    for 2, the smallest of them for -1, -inf and -2. MXNet cannot take singular values of matrices that have more rows
    than columns, and takes row sums for orders that have no meaning.
    """
    x = data.astype(wide_dtype(data.dtype))
    if p.flag in (1, -2):
        axes = np_axes(p.axis if p.flag == 1 else None, data.ndim)
        y = jnp.sqrt(jnp.sum(x * x, axes))
    else:
        pair = (-2, -1) if p.axis is None and data.ndim > 1 else p.axis
        axes = np_axes(pair, data.ndim)
        y = _vector_norm(x, axes, p.ord) if len(axes) < 2 else _matrix_norm(x, _pair(pair or (), data.ndim), p)
    none = jnp.zeros((0,), data.dtype)
    return kept(cast(y, data.dtype), axes, data.shape, p.keepdims), none, none, none


def _pair(axis: Shape, ndim: int) -> tuple[int, int]:
    if len(axis) != 2:
        raise ShapeError(f"axis={axis}: expected one axis (vectors) or two (matrices)")
    return axis_of(axis[0], ndim), axis_of(axis[1], ndim)


def _size(x: Array) -> Array:
    return x * lax.stop_gradient(jnp.sign(x))


def _matrix_norm(x: Array, pair: tuple[int, int], p: NumpyNormParams) -> Array:
    x = jnp.moveaxis(x, pair, (-2, -1))
    if abs(p.ord) not in (1, 2, math.inf):
        raise ParamError(f"ord={p.ord:g} is no norm of matrices: expected 1, 2 or inf, or one of them negative")
    pick = jnp.max if p.ord > 0 else jnp.min
    if abs(p.ord) != 2:
        return pick(jnp.sum(_size(x), -2 if abs(p.ord) == 1 else -1), -1)
    values = jnp.linalg.svd(x, compute_uv=False)
    return jnp.sum(values, -1) if p.flag == 2 else pick(values, -1)


def _vector_norm(x: Array, axes: tuple[int, ...], order: float) -> Array:
    if order == 2:
        return jnp.sqrt(jnp.sum(x * x, axes))
    if order == 0:
        return jnp.sum((x != 0).astype(x.dtype), axes)
    if math.isinf(order):
        return (jnp.max if order > 0 else jnp.min)(_size(x), axes)
    powers = _size(x) if order == 1 else _size(x) ** order
    return jnp.sum(powers, axes) if order == 1 else jnp.sum(powers, axes) ** (1 / order)


class DiffParams(Params):
    n: int = param(1, ge=0, doc="How often differences are taken.")
    axis: int = param(-1, doc="Axis along which they are taken.")


@op("_npi_diff", params=DiffParams)
def diff(p: DiffParams, a: Array) -> Array:
    """Returns a[i + 1] - a[i] along an axis, `n` times over; each time the axis is shorter by one."""
    axis = axis_of(p.axis, a.ndim)
    for _ in range(min(p.n, a.shape[axis])):
        high, low = lax.slice_in_dim(a, 1, None, axis=axis), lax.slice_in_dim(a, 0, a.shape[axis] - 1, axis=axis)
        a = high ^ low if a.dtype == jnp.bool_ else high - low
    return a


class Ediff1dParams(Params):
    to_begin_arr_given: bool = param(False, doc="Whether an array to put in front is the second input.")
    to_end_arr_given: bool = param(False, doc="Whether an array to append is the last input.")
    to_begin_scalar: float | None = param(None, doc="A number to put in front.")
    to_end_scalar: float | None = param(None, doc="A number to append.")


_EDIFF_INPUTS = ("input1", "input2", "input3")


def _ediff_inputs(p: Ediff1dParams) -> tuple[str, ...]:
    return _EDIFF_INPUTS[: 1 + p.to_begin_arr_given + p.to_end_arr_given]


@op("_npi_ediff1d", params=Ediff1dParams, inputs=_ediff_inputs, all_inputs=_EDIFF_INPUTS)
def ediff1d(p: Ediff1dParams, input1: Array, *ends: Array) -> Array:
    """Returns the differences of neighbours in the flattened array, between what is put in front and appended."""
    x = input1.reshape(-1)
    rest = list(ends)
    parts = [x[1:] - x[:-1]]
    if p.to_begin_arr_given:
        parts.insert(0, rest.pop(0).reshape(-1))
    elif p.to_begin_scalar is not None:
        parts.insert(0, scalar_as(p.to_begin_scalar, x.dtype).reshape(1))
    if p.to_end_arr_given:
        parts.append(rest.pop(0).reshape(-1))
    elif p.to_end_scalar is not None:
        parts.append(scalar_as(p.to_end_scalar, x.dtype).reshape(1))
    return jnp.concatenate(parts)


@op("_npi_polyval", inputs=("p", "x"))
def polyval(p: Any, coefficients: Array, x: Array) -> Array:
    """Returns p[0] x^(n-1) + … + p[n-1] for each element of `x`; `p` is a vector (n,)."""
    if coefficients.ndim != 1:
        raise ShapeError(f"p has shape {coefficients.shape}: expected a vector")
    y, _ = lax.scan(lambda y, c: (y * x + c, None), jnp.zeros_like(x), coefficients)
    return y


# ---- gradients, as graphs that hold them name them


@op("_npi_backward_nan_to_num", params=NanToNumParams)
def backward_nan_to_num(p: NanToNumParams, ograd: Array, data: Array) -> Array:
    """Returns the cotangent of `data` in _npi_nan_to_num: `ograd` where data is finite, else 0."""
    return _cotangents(lambda x: nan_to_num(p, x), (data,), ograd)[0]


@op("_npi_backward_polyval", inputs=("ograd", "p", "x"), outputs=2)
def backward_polyval(p: Any, ograd: Array, coefficients: Array, x: Array) -> tuple[Array, ...]:
    """Returns the cotangents of `p` and `x` in _npi_polyval."""
    return _cotangents(lambda c, x: polyval(p, c, x), (coefficients, x), ograd)


@op("_npi_backward_ediff1d", params=Ediff1dParams, inputs=lambda p: ("ograd", *_ediff_inputs(p)),
    all_inputs=("ograd", *_EDIFF_INPUTS), outputs=lambda p: len(_ediff_inputs(p)))
def backward_ediff1d(p: Ediff1dParams, ograd: Array, input1: Array, *ends: Array) -> tuple[Array, ...]:
    """Returns the cotangents of the inputs of _npi_ediff1d."""
    return _cotangents(lambda *xs: ediff1d(p, *xs), (input1, *ends), ograd)


def _cotangents(fn: Callable[..., Array], primals: tuple[Array, ...], ograd: Array) -> tuple[Array, ...]:
    if not is_float(primals[0]):
        return tuple(jnp.zeros_like(x) for x in primals)
    return jax.vjp(fn, *primals)[1](ograd)
