"""Joining and splitting along an axis: Concat, stack, SliceChannel, _split_v2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._axes import axis_of
from symjax.lowering.ops.matrix import arg_names
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, op


class ConcatParams(Params):
    num_args: int = param(doc="How many inputs.", ge=1)
    dim: int = param(1, doc="Axis along which to join.")


def concat_inputs(ins: list[ShapeLike], out: ShapeLike, dim: int, share: bool) -> list[ShapeLike]:
    """Fills what the inputs share, and the joined axis from the output: of one input, or (`share`) of many equally."""
    known = [s for s in (*ins, out) if s is not None]
    if not known:
        return ins
    axis = axis_of(dim, len(known[0]), "dim")
    common = [0] * len(known[0])
    for s in known:
        if len(s) != len(common):
            raise ShapeError(f"inputs of rank {len(common)} and {len(s)} cannot be joined")
        for i, d in enumerate(s):
            if i != axis and d and common[i] and d != common[i]:
                raise ShapeError(f"inputs differ in axis {i} ({common[i]} and {d}); only axis {axis} may differ")
            common[i] = common[i] or d
    common[axis] = 0
    sizes = [s[axis] if s is not None else 0 for s in ins]
    if out is not None and out[axis] and 0 in sizes and (share or sizes.count(0) == 1):
        rest = out[axis] - sum(sizes)
        if rest < 0 or rest % sizes.count(0):
            raise ShapeError(f"the inputs' sizes {sizes} along axis {axis} (0: unknown) do not fit {out[axis]}")
        sizes = [d or rest // sizes.count(0) for d in sizes]
    return [tuple(d if i == axis else c for i, c in enumerate(common)) for d in sizes]


def join(dim: int, args: Sequence[Array]) -> Array:
    """Joins arrays along an axis; they agree in all others."""
    ranks = {a.ndim for a in args}
    axis = axis_of(dim, args[0].ndim, "dim")
    if len(ranks) > 1 or len({(*a.shape[:axis], *a.shape[axis + 1:]) for a in args}) > 1:
        raise ShapeError(f"inputs {', '.join(str(a.shape) for a in args)} must agree in all axes but {axis}")
    return jnp.concatenate(args, axis)


@op("Concat", aliases=("concat", "_sparse_concat"), params=ConcatParams, inputs=arg_names, variadic="num_args",
    all_inputs=("data",), infer_inputs=lambda p, ins, outs: concat_inputs(ins, outs[0], p.dim, False))
def concat(p: ConcatParams, *data: Array) -> Array:
    """Joins arrays along the axis `dim`; they agree in all others."""
    return join(p.dim, data)


@op("_rnn_param_concat", aliases=("_npi_rnn_param_concat",), params=ConcatParams, inputs=arg_names,
    variadic="num_args", all_inputs=("data",),
    infer_inputs=lambda p, ins, outs: concat_inputs(ins, outs[0], p.dim, True))
def rnn_param_concat(p: ConcatParams, *data: Array) -> Array:
    """Concat whose unknown input sizes follow from a known output: what is missing is shared out equally."""
    return join(p.dim, data)


class StackParams(Params):
    axis: int = param(0, doc="Where the new axis stands in the result.")
    num_args: int = param(doc="How many inputs.", ge=1)


def stack_inputs(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    """All inputs have one shape: any of them, or the output's without the new axis."""
    known = [s for s in ins if s is not None]
    if outs[0]:
        axis = axis_of(p.axis, len(outs[0]))
        known.append((*outs[0][:axis], *outs[0][axis + 1:]))
    return [max(known, key=lambda s: sum(d > 0 for d in s))] * len(ins) if known else ins


@op("stack", params=StackParams, inputs=arg_names, variadic="num_args", all_inputs=("data",),
    infer_inputs=stack_inputs)
def stack(p: StackParams, *data: Array) -> Array:
    """Joins arrays of one shape along a new axis."""
    if len({a.shape for a in data}) > 1:
        raise ShapeError(f"stack needs inputs of one shape, got {', '.join(str(a.shape) for a in data)}")
    return jnp.stack(data, axis_of(p.axis, data[0].ndim + 1))


class SliceChannelParams(Params):
    num_outputs: int = param(doc="Number of equal parts.", ge=1, le=65_536)
    axis: int = param(1, doc="Axis to split.")
    squeeze_axis: bool = param(False, doc="Drop the axis where the parts have size 1.")


def _numbered(n: int) -> tuple[str, ...]:
    return tuple(f"output{i}" for i in range(n))


def _split_input(p: SliceChannelParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    src, out = ins[0], outs[0]
    if src is None or out is None or p.squeeze_axis or len(src) != len(out):
        return ins
    axis = axis_of(p.axis, len(src))
    return [tuple(s if i == axis else s or d for i, (s, d) in enumerate(zip(src, out, strict=True)))]


@op("SliceChannel", aliases=("split",), params=SliceChannelParams, outputs=lambda p: _numbered(p.num_outputs),
    infer_inputs=_split_input)
def slice_channel(p: SliceChannelParams, data: Array) -> tuple[Array, ...]:
    """Splits `data` along an axis into equal parts."""
    axis = axis_of(p.axis, data.ndim)
    n = data.shape[axis]
    if n % p.num_outputs:
        raise ShapeError(f"argument 'data': axis {axis} of size {n} cannot be split into {p.num_outputs} equal parts")
    if p.squeeze_axis and n != p.num_outputs:
        raise ShapeError(f"squeeze_axis needs parts of size 1, but axis {axis} has size {n} for {p.num_outputs} parts")
    size = n // p.num_outputs
    return parts(data, axis, [(i * size, (i + 1) * size) for i in range(p.num_outputs)], p.squeeze_axis)


def parts(data: Array, axis: int, bounds: list[tuple[int, int]], squeeze: bool) -> tuple[Array, ...]:
    """The ranges `bounds` of an axis, each an array; `squeeze` drops the axis, of size 1."""
    out = [lax.slice_in_dim(data, b, e, axis=axis) for b, e in bounds]
    return tuple(jnp.squeeze(x, axis) for x in out) if squeeze else tuple(out)


class SplitV2Params(Params):
    indices: Shape = param(doc="First element of each part (the front end's split_v2 adds the leading 0).")
    axis: int = param(1, doc="Axis to split.")
    squeeze_axis: bool = param(False, doc="Drop the axis; every part must have size 1.")
    sections: int = param(0, doc="Number of equal parts; 0: split at `indices`.", ge=0)


@op("_split_v2", aliases=("_npi_split",), params=SplitV2Params,
    outputs=lambda p: p.sections or len(p.indices))
def split_v2(p: SplitV2Params, data: Array) -> tuple[Array, ...]:
    """Splits `data` along an axis at given positions, or into `sections` parts.

    Part i is [indices[i], indices[i+1]). With sections the parts have n // sections elements, the first n % sections
    of them one more.
    """
    return split(p, data, axis_of(p.axis, data.ndim))


def split(p: SplitV2Params, data: Array, axis: int) -> tuple[Array, ...]:
    """The parts of split_v2 along a given axis."""
    n = data.shape[axis]
    if p.sections:
        size, longer = divmod(n, p.sections)
        starts = [i * size + min(i, longer) for i in range(p.sections)]
    else:
        starts = list(p.indices)
    bounds = list(zip(starts, [*starts[1:], n], strict=True))
    if any(not 0 <= b <= e <= n for b, e in bounds):
        raise ShapeError(f"indices={p.indices} must increase within the axis of size {n}")
    if p.squeeze_axis and any(e - b != 1 for b, e in bounds):
        raise ShapeError(f"squeeze_axis needs parts of size 1, got {[e - b for b, e in bounds]}")
    return parts(data, axis, bounds, p.squeeze_axis)
