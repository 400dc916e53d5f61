"""Reshaping and reordering: Reshape and its codes, transposes, squeezing, tiling, reversing, block moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._axes import axes_of, axis_of, from_output
from symjax.lowering.ops._wide_rows import is_wide, spread
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, op


class ReshapeParams(Params):
    shape: Shape = param((), doc="Target: sizes and the codes 0, -1, -2, -3, -4.")
    reverse: bool = param(False, doc="Match codes with source axes from the right.")
    target_shape: Shape = param((), doc="Legacy target in which one 0 is inferred; read only without `shape`.")
    keep_highest: bool = param(False, doc="Legacy: keep the first axis, whatever target_shape says.")


SKIP, EMPTY = -5, -6
"""Codes of the numpy operators alone: drop a source axis of size 1; an axis of size 0."""


def reshape_target(src: Sequence[int], codes: Sequence[int], reverse: bool = False,
                   least: int = -4) -> tuple[int, ...]:
    """Resolves MXNet's reshape codes against a known source shape.

    0 copies the source axis, -1 is inferred, -2 copies all that are left, -3 joins two, -4 splits one into the two
    numbers after it (one may be -1); a positive number stands for itself and consumes one source axis. Codes below
    `least` are refused.

    Raises:
      ShapeError: the codes ask for axes that are not there, or the sizes do not agree.
    """
    if not reverse:
        return _fill(src, *_resolve(src, _tokens(codes, least)))
    try:
        # MXNet: it turns the whole list round, so that a -4 stands after its two factors.
        tokens = _tokens(codes[::-1], least)
    except ShapeError:
        tokens = [(t[0], *t[:0:-1]) for t in reversed(_tokens(codes, least))]
    return _fill(src[::-1], *_resolve(src[::-1], tokens))[::-1]


def _tokens(codes: Sequence[int], least: int = -4) -> list[tuple[int, ...]]:
    out, i = [], 0
    while i < len(codes):
        if codes[i] < least:
            raise ShapeError(f"shape={tuple(codes)}: {codes[i]} is not a reshape code (0, -1, -2, -3, -4)")
        n = 3 if codes[i] == -4 else 1
        token = tuple(codes[i:i + n])
        if len(token) < n or any(c < -1 or c == 0 for c in token[1:]):
            raise ShapeError(f"shape={tuple(codes)}: -4 must be followed by two sizes, one of which may be -1")
        out.append(token)
        i += n
    return out


def _resolve(src: Sequence[int], tokens: list[tuple[int, ...]]) -> tuple[list[int], int | None]:
    """Applies codes; returns the sizes and the place of -1. A size that follows from a 0 in `src` is 0."""
    out: list[int] = []
    at, infer = 0, None
    for code, *factors in tokens:
        need = {0: 1, -3: 2, -4: 1, SKIP: 1}.get(code, 0)
        if need and at + need > len(src):
            raise ShapeError(f"reshape code {code} needs {need} more source axes, but {tuple(src)} has "
                             f"{max(len(src) - at, 0)} left")
        if code == -2:
            out += src[at:]
            at = len(src)
        elif code == -4:
            out += _split_axis(src[at], factors)
            at += 1
        elif code == -3:
            out.append(src[at] * src[at + 1])
            at += 2
        elif code == SKIP:
            if src[at] != 1:
                raise ShapeError(f"axis {at} of {tuple(src)} has size {src[at]}; only an axis of size 1 can be dropped")
            at += 1
        else:
            if code == -1:
                if infer is not None:
                    raise ShapeError("only one axis of a reshape can be -1")
                infer = len(out)
            out.append(src[at] if code == 0 else 1 if code == -1 else 0 if code == EMPTY else code)
            at += 1
    return out, infer


def _split_axis(size: int, factors: Sequence[int]) -> list[int]:
    a, b = factors
    if a == b == -1:
        raise ShapeError("only one of the two sizes after -4 can be -1")
    a, b = (size // b if a == -1 else a), (size // a if b == -1 else b)
    if size and a * b != size:
        raise ShapeError(f"an axis of size {size} cannot be split into {tuple(factors)}")
    return [a, b]


def _fill(src: Sequence[int], out: list[int], infer: int | None) -> tuple[int, ...]:
    size, known = math.prod(src), math.prod(out)
    if infer is not None:
        out[infer] = size // known if known else 0
        known *= out[infer]
    if known != size:
        raise ShapeError(f"cannot reshape {tuple(src)} ({size} elements) into {tuple(out)} ({known} elements)")
    return tuple(out)


def _legacy_target(src: Sequence[int], p: ReshapeParams) -> tuple[int, ...]:
    out = list(p.target_shape)
    if p.keep_highest:
        out[0] = src[0]
    open_axes = [i for i, d in enumerate(out) if d <= 0 and not (p.keep_highest and i == 0)]
    if len(open_axes) > 1:
        raise ShapeError(f"target_shape={p.target_shape}: only one axis can be inferred")
    for i in open_axes:
        out[i] = 1
    return _fill(src, out, open_axes[0] if open_axes else None)


def _reshape_input(p: ReshapeParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    """One unknown axis of the data follows from the size of a known output."""
    src, out = ins[0], outs[0]
    if src is not None and (out is None or 0 in out) and p.shape and not p.reverse:
        sizes, infer = _resolve(src, _tokens(p.shape))
        out = tuple(sizes) if infer is None else None
    return filled_input(src, out, ins)


def filled_input(src: ShapeLike, out: ShapeLike, ins: list[ShapeLike]) -> list[ShapeLike]:
    """Fills one unknown axis of a reshape's input from the size of its output."""
    if src is None or out is None or 0 in out or src.count(0) != 1:
        return ins
    known = math.prod(d for d in src if d)
    if math.prod(out) % known:
        raise ShapeError(f"argument 'data': {src} cannot hold the {math.prod(out)} elements of {out}")
    return [tuple(d or math.prod(out) // known for d in src)]


@op("Reshape", aliases=("reshape",), params=ReshapeParams, infer_inputs=_reshape_input)
def reshape(p: ReshapeParams, data: Array) -> Array:
    """Gives `data` another shape with the same elements in the same order.

    Codes in `shape`: 0 keeps the axis, -1 is inferred (once), -2 keeps all axes that are left, -3 joins two axes, -4
    splits one into the next two numbers, a positive number is a size. Example: (2, 3, 4) with (-3, 0) gives (6, 4).
    """
    # MXNet: with oneDNN a wrong total size silently truncates; here it is an error.
    if p.shape:
        return data.reshape(reshape_target(data.shape, p.shape, p.reverse))
    if p.target_shape:
        return data.reshape(_legacy_target(data.shape, p))
    raise ParamError("parameter 'shape' is missing")


class ReshapeLikeParams(Params):
    lhs_begin: int | None = param(None, doc="First axis of lhs to replace (None: 0).")
    lhs_end: int | None = param(None, doc="Axis of lhs after the last to replace (None: all).")
    rhs_begin: int | None = param(None, doc="First axis of rhs to take (None: 0).")
    rhs_end: int | None = param(None, doc="Axis of rhs after the last to take (None: all).")


def _axis_range(begin: int | None, end: int | None, ndim: int, side: str) -> tuple[int, int]:
    b, e = begin or 0, ndim if end is None else end
    b, e = (b + ndim if b < 0 else b), (e + ndim if e < 0 else e)
    if not (0 <= b < e <= ndim or b == e == ndim == 0):
        raise ShapeError(f"{side}_begin={begin}, {side}_end={end} is not a range of the {ndim} axes of {side}")
    return b, e


@op("reshape_like", aliases=("_npx_reshape_like",), params=ReshapeLikeParams,
    infer_types=lambda p, ins, outs: ([ins[0] or outs[0], ins[1]], [ins[0] or outs[0]]))
def reshape_like(p: ReshapeLikeParams, lhs: Array, rhs: Array) -> Array:
    """Reshapes `lhs` so that its axes [lhs_begin, lhs_end) become the axes [rhs_begin, rhs_end) of `rhs`.

    Without ranges the result has the shape of `rhs`. `rhs` gives only its shape and has no gradient.
    """
    lb, le = _axis_range(p.lhs_begin, p.lhs_end, lhs.ndim, "lhs")
    rb, re = _axis_range(p.rhs_begin, p.rhs_end, rhs.ndim, "rhs")
    shape = (*lhs.shape[:lb], *rhs.shape[rb:re], *lhs.shape[le:])
    if math.prod(shape) != lhs.size:
        raise ShapeError(f"argument 'lhs': {lhs.shape} ({lhs.size} elements) cannot become {shape} "
                         f"({math.prod(shape)} elements)")
    return lhs.reshape(shape)


@op("Flatten", aliases=("flatten", "_npx_batch_flatten"))
def flatten(p: Params, data: Array) -> Array:
    """Joins all axes but the first: (N, a, b, …) gives (N, a*b*…), and (N,) gives (N, 1)."""
    return data.reshape(data.shape[0], math.prod(data.shape[1:]))


class TransposeParams(Params):
    axes: Shape = param((), doc="Source axis of each result axis; () reverses all.")


def transpose_input(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    """Shape rule of a transpose: the output's sizes, back in their places."""
    out, order = outs[0], p.axes or ()
    if out is None or len(order) not in (0, len(out)):
        return ins
    src = list(out)
    for d, axis in zip(out, axes_of(order, len(out), "axes") or range(len(out) - 1, -1, -1), strict=True):
        src[axis] = d
    return [tuple(src)]


@op("transpose", params=TransposeParams, infer_inputs=transpose_input)
def transpose(p: TransposeParams, data: Array) -> Array:
    """Permutes the axes: result axis i is source axis axes[i]."""
    if p.axes and len(p.axes) != data.ndim:
        raise ShapeError(f"axes={p.axes} must name each of the {data.ndim} axes of {data.shape} once")
    return jnp.transpose(data, axes_of(p.axes, data.ndim, "axes") or None)


class SwapAxisParams(Params):
    dim1: int = param(0, doc="One axis.")
    dim2: int = param(0, doc="The other axis.")


@op("SwapAxis", aliases=("swapaxes", "_npi_swapaxes"), params=SwapAxisParams)
def swap_axis(p: SwapAxisParams, data: Array) -> Array:
    """Exchanges two axes."""
    return jnp.swapaxes(data, axis_of(p.dim1, data.ndim, "dim1"), axis_of(p.dim2, data.ndim, "dim2"))


class ExpandDimsParams(Params):
    axis: int = param(doc="Where the new axis stands in the result.")


def _expand_input(p: ExpandDimsParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    if not outs[0]:
        return ins
    axis = axis_of(p.axis, len(outs[0]))
    return [outs[0][:axis] + outs[0][axis + 1:]]


@op("expand_dims", aliases=("_npi_expand_dims",), params=ExpandDimsParams, infer_inputs=_expand_input)
def expand_dims(p: ExpandDimsParams, data: Array) -> Array:
    """Inserts an axis of size 1."""
    return jnp.expand_dims(data, axis_of(p.axis, data.ndim + 1))


class SqueezeParams(Params):
    axis: Shape | None = param(None, doc="Axes of size 1 to remove; None: all of them.")


@op("squeeze", params=SqueezeParams)
def squeeze(p: SqueezeParams, data: Array) -> Array:
    """Removes axes of size 1. If nothing would be left, the result keeps the shape (1,)."""
    return data.reshape(squeezed(p.axis, data.shape) or (1,))


def squeezed(axis: Shape | None, shape: Shape) -> Shape:
    """A shape without the axes `axis`, which have size 1; None: without all of size 1."""
    axes = axes_of(axis, len(shape)) if axis is not None else tuple(i for i, d in enumerate(shape) if d == 1)
    for a in axes:
        if shape[a] != 1:
            raise ShapeError(f"cannot squeeze axis {a} of size {shape[a]}")
    return tuple(d for i, d in enumerate(shape) if i not in axes)


class TileParams(Params):
    reps: Shape = param(doc="Repetitions of each axis; the shorter of reps and shape is filled with ones.")


@op("tile", aliases=("_npi_tile",), params=TileParams)
def tile(p: TileParams, data: Array) -> Array:
    """Repeats the whole array along each axis, as numpy.tile."""
    return jnp.tile(data, p.reps)


def _repeats_rows(p: TileParams, avals: Sequence[Any]) -> bool:
    shape, first = avals[0].shape, p.reps[:1]
    return len(p.reps) == len(shape) and set(p.reps[1:]) <= {1} and is_wide((*first, *shape), 1, avals[0].dtype)


@tile.variant(platform="cpu", when=_repeats_rows)
def _tile_rows(p: TileParams, data: Array) -> Array:
    return spread(data, p.reps[:1]).reshape(-1, *data.shape[1:])


class RepeatParams(Params):
    repeats: int = param(doc="How often each element is repeated.", ge=0)
    axis: int | None = param(None, doc="Axis along which to repeat; None: flatten first.")


@op("repeat", aliases=("_np_repeat",), params=RepeatParams)
def repeat(p: RepeatParams, data: Array) -> Array:
    """Repeats each element, as numpy.repeat with a single count."""
    if p.axis is None:
        return jnp.repeat(data.reshape(-1), p.repeats)
    return jnp.repeat(data, p.repeats, axis=axis_of(p.axis, data.ndim))


class ReverseParams(Params):
    axis: Shape = param(doc="Axes to reverse.")


@op("reverse", aliases=("flip",), params=ReverseParams, infer_inputs=from_output)
def reverse(p: ReverseParams, data: Array) -> Array:
    """Reverses the order of the elements along axes. Negative axes count from the end (MXNet refuses them)."""
    return jnp.flip(data, axes_of(p.axis, data.ndim))


class BlockParams(Params):
    block_size: int = param(doc="Side of the square blocks.", ge=1)


def _four_axes(data: Array) -> tuple[int, int, int, int]:
    if data.ndim != 4:
        raise ShapeError(f"argument 'data': expected 4 axes (N, C, H, W), got {data.shape}")
    n, c, h, w = data.shape
    return n, c, h, w


@op("depth_to_space", params=BlockParams)
def depth_to_space(p: BlockParams, data: Array) -> Array:
    """Moves channels into space: (N, C, H, W) gives (N, C/b², H*b, W*b).

    Channel (i*b + j) * C/b² + c goes to channel c at the offset (i, j) of each b×b block.
    """
    n, c, h, w = _four_axes(data)
    b = p.block_size
    if c % (b * b):
        raise ShapeError(f"argument 'data': {c} channels are not a multiple of block_size² = {b * b}")
    x = data.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // (b * b), h * b, w * b)


@op("space_to_depth", params=BlockParams)
def space_to_depth(p: BlockParams, data: Array) -> Array:
    """Moves space into channels: (N, C, H, W) gives (N, C*b², H/b, W/b); the inverse of depth_to_space."""
    n, c, h, w = _four_axes(data)
    b = p.block_size
    if h % b or w % b:
        raise ShapeError(f"argument 'data': {h} x {w} is not a multiple of block_size {b}")
    x = data.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * b * b, h // b, w // b)


class DiagParams(Params):
    k: int = param(0, doc="Diagonal: 0 main, positive above, negative below.")
    axis1: int = param(0, doc="First axis of the matrices (rows).")
    axis2: int = param(1, doc="Second axis of the matrices (columns).")


@op("diag", params=DiagParams)
def diag(p: DiagParams, data: Array) -> Array:
    """Takes the diagonal of matrices, or builds a matrix from a vector.

    A vector (n,) gives (n+|k|, n+|k|) with it on diagonal k. Otherwise axes axis1 and axis2 are removed and the
    diagonal becomes the last axis.
    """
    if data.ndim == 1:
        return jnp.diag(data, p.k)
    axis1, axis2 = axes_of((p.axis1, p.axis2), data.ndim, "axis1, axis2")
    return jnp.diagonal(data, p.k, axis1, axis2)
