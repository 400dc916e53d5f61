"""Joining and splitting with numpy's meaning: concatenate, stack and its kin, hsplit, dsplit."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops import join as classic
from symjax.lowering.ops.matrix import arg_names
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op


class ArraysParams(Params):
    num_args: int = param(doc="How many arrays.", ge=1)


class ConcatenateParams(ArraysParams):
    axis: int | None = param(0, doc="Axis along which to join; None: the flattened arrays.")


class UnreadDimParams(ArraysParams):
    dim: int = param(1, doc="Not read.")


def _data_names(p: ArraysParams) -> tuple[str, ...]:
    return tuple(f"data{i}" for i in range(p.num_args))


def _concatenate_inputs(p: ConcatenateParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    if p.axis is None or not any(ins):
        return ins
    return classic.concat_inputs(ins, outs[0], p.axis, False)


# MXNet: it documents a parameter `dim`, but reads `axis`.
@op("_npi_concatenate", params=ConcatenateParams, inputs=_data_names, variadic="num_args", all_inputs=("data",),
    outputs=("out",), infer_inputs=_concatenate_inputs)
def concatenate(p: ConcatenateParams, *data: Array) -> Array:
    """Joins arrays along an axis; they agree in all others. axis=None joins them flattened."""
    if p.axis is None:
        return jnp.concatenate([a.reshape(-1) for a in data])
    return classic.join(p.axis, data)


@op("_npi_stack", params=classic.StackParams, inputs=arg_names, variadic="num_args", all_inputs=("data",),
    infer_inputs=classic.stack_inputs)
def np_stack(p: classic.StackParams, *data: Array) -> Array:
    """Joins arrays of one shape along a new axis."""
    return classic.stack.rule(p, *data)


def _register(name: str, params: type[Params], inputs: Callable[..., tuple[str, ...]], axis: int,
              at_least: Callable[[Array], Array], doc: str) -> None:
    def rule(p: Params, *data: Array) -> Array:
        arrays = [at_least(a) for a in data]
        return classic.join(min(axis, arrays[0].ndim - 1), arrays)

    rule.__doc__ = doc
    op(f"_npi_{name}", params=params, inputs=inputs, variadic="num_args", all_inputs=("data",),
       outputs=("out",) if inputs is _data_names else ("output",), source=f"{__file__}:_npi_{name}")(rule)


def _columns(a: Array) -> Array:
    return a.reshape(-1, 1) if a.ndim < 2 else a


_register("hstack", UnreadDimParams, _data_names, 1, jnp.atleast_1d,
          "Joins arrays along the second axis, vectors and scalars along the only one.")
_register("vstack", ArraysParams, arg_names, 0, jnp.atleast_2d,
          "Joins arrays along the first axis; a vector (n,) is a row (1, n).")
_register("dstack", UnreadDimParams, _data_names, 2, jnp.atleast_3d,
          "Joins arrays along the third axis; (m, n) counts as (m, n, 1) and (n,) as (1, n, 1).")
_register("column_stack", ArraysParams, arg_names, 1, _columns,
          "Joins arrays along the second axis; a vector (n,) is a column (n, 1).")


def _hsplit_axis(ndim: int) -> int:
    if ndim < 1:
        raise ShapeError("hsplit needs an array of 1 axis or more")
    return min(1, ndim - 1)


def _split_count(p: classic.SplitV2Params) -> int:
    return p.sections or len(p.indices)


@op("_npi_hsplit", params=classic.SplitV2Params, outputs=_split_count)
def hsplit(p: classic.SplitV2Params, data: Array) -> tuple[Array, ...]:
    """Splits along the second axis, a vector along its only one; `axis` is not read.

    Part i is [indices[i], indices[i+1]). With sections the parts have ceil(n/sections) elements, the last ones what
    is left.
    """
    return classic.split(p, data, _hsplit_axis(data.ndim))


def _grad_names(p: classic.SplitV2Params) -> tuple[str, ...]:
    return tuple(f"grad{i}" for i in range(_split_count(p)))


@op("_npi_hsplit_backward", params=classic.SplitV2Params, inputs=_grad_names, all_inputs=("*grads",))
def hsplit_backward(p: classic.SplitV2Params, *grads: Array) -> Array:
    """The gradient of hsplit: the parts' gradients, joined again."""
    if p.squeeze_axis:
        grads = tuple(jnp.expand_dims(g, min(1, g.ndim)) for g in grads)
    return classic.join(_hsplit_axis(grads[0].ndim), grads)


@op("_npi_dsplit", params=classic.SplitV2Params, outputs=_split_count)
def dsplit(p: classic.SplitV2Params, data: Array) -> tuple[Array, ...]:
    """Splits an array of 3 axes or more along the third, as hsplit does along the second; `axis` is not read."""
    # MXNet: where `axis` is not 2 the parts have these shapes and uninitialised numbers.
    if data.ndim < 3:
        raise ShapeError(f"dsplit needs an array of 3 axes or more, got {data.shape}")
    return classic.split(p, data, 2)
