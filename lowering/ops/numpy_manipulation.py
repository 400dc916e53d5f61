"""Shapes, axes, diagonals and padding with numpy's meaning: the `_np_*`, `_npi_*` and `_npx_*` operators.

Zero-dimensional and empty arrays are arrays like others here. What the classic operators have too is theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops import reshape as classic
from symjax.lowering.ops._axes import axes_of, from_output, is_half
from symjax.lowering.ops._elementwise import scalar_as
from symjax.lowering.params import Params, Shape, Shapes, param
from symjax.lowering.registry import ShapeLike, op


class NewShapeParams(Params):
    newshape: Shape = param(doc="Sizes of the result; one may be -1, which is inferred.")
    order: Literal["C"] = param("C", doc="Order of the elements: the last axis varies fastest.")


def _reshape_input(p: NewShapeParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    return classic.filled_input(ins[0], outs[0] if any(d < 0 for d in p.newshape) else p.newshape, ins)


@op("_np_reshape", params=NewShapeParams, infer_inputs=_reshape_input)
def np_reshape(p: NewShapeParams, a: Array) -> Array:
    """Gives `a` another shape with the same elements in the same order; a 0 is an axis of size 0."""
    # MXNet: other orders than C run, as C.
    if any(d < -1 for d in p.newshape):
        raise ShapeError(f"newshape={p.newshape}: sizes, and -1 for one that is inferred")
    return a.reshape(_target(a.shape, [classic.EMPTY if d == 0 else d for d in p.newshape], p.newshape, False))


class CodedShapeParams(Params):
    newshape: Shape = param(doc="Target: sizes and the codes -1 to -6.")
    reverse: bool = param(False, doc="Match codes with source axes from the right.")
    order: Literal["C"] = param("C", doc="Order of the elements: the last axis varies fastest.")


# A code of npx.reshape and the code of Reshape that means the same.
_CODES = {0: classic.EMPTY, -1: -1, -2: 0, -3: classic.SKIP, -4: -2, -5: -3, -6: -4}


@op("_npx_reshape", aliases=("_npi_reshape",), params=CodedShapeParams)
def npx_reshape(p: CodedShapeParams, a: Array) -> Array:
    """Gives `a` another shape with the same elements in the same order.

    Codes in `newshape`: -1 is inferred (once), -2 keeps the axis, -3 drops an axis of size 1, -4 keeps all axes that
    are left, -5 joins two axes, -6 splits one into the next two numbers (one may be -1); others are sizes, 0 included.
    Example: (8, 3, 3, 3, 4, 4) with (-6, 2, -1, -2, -2, -5, -4) gives (2, 4, 3, 3, 12, 4).
    """
    if any(d < -6 for d in p.newshape):
        raise ShapeError(f"newshape={p.newshape}: codes are -1 to -6")
    return a.reshape(_target(a.shape, [_CODES.get(d, d) for d in p.newshape], p.newshape, p.reverse))


def _target(src: Shape, codes: Sequence[int], given: Shape, reverse: bool) -> Shape:
    out = classic.reshape_target(src, codes, reverse, least=classic.EMPTY)
    if -1 in codes and out.count(0) > 1:
        raise ShapeError(f"newshape={given}: -1 cannot be inferred from {src}, where any size would do")
    return out


class TransposeParams(Params):
    axes: Shape | None = param(None, doc="Source axis of each result axis; None reverses all.")


@op("_np_transpose", params=TransposeParams, infer_inputs=classic.transpose_input)
def np_transpose(p: TransposeParams, a: Array) -> Array:
    """Permutes the axes: result axis i is source axis axes[i]."""
    if p.axes is not None and len(p.axes) != a.ndim:
        raise ShapeError(f"axes={p.axes} must name each of the {a.ndim} axes of {a.shape} once")
    return jnp.transpose(a, p.axes and axes_of(p.axes, a.ndim, "axes"))


class MoveAxisParams(Params):
    source: Shape = param(doc="Axes to move.")
    destination: Shape = param(doc="Where each of them goes.")


@op("_np_moveaxis", params=MoveAxisParams)
def moveaxis(p: MoveAxisParams, a: Array) -> Array:
    """Moves axes to new places; the others keep their order."""
    if len(p.source) != len(p.destination):
        raise ParamError(f"source={p.source} and destination={p.destination} must have equal lengths")
    return jnp.moveaxis(a, axes_of(p.source, a.ndim, "source"), axes_of(p.destination, a.ndim, "destination"))


@op("_np_squeeze", params=classic.SqueezeParams)
def np_squeeze(p: classic.SqueezeParams, a: Array) -> Array:
    """Removes axes of size 1: those named, or all."""
    return a.reshape(classic.squeezed(p.axis, a.shape))


class RollParams(Params):
    shift: Shape | None = param(None, doc="By how many places; one number, or one for each axis. Required.")
    axis: Shape | None = param(None, doc="Axes to roll; None: the flattened array.")


@op("_np_roll", params=RollParams)
def roll(p: RollParams, data: Array) -> Array:
    """Shifts the elements along axes; those that leave at one end come back at the other."""
    if p.shift is None:
        raise ParamError("parameter 'shift' is missing")
    if len(p.shift) not in (1, len(p.axis or ())):
        raise ParamError(f"shift={p.shift} must be one number, or one for each axis of axis={p.axis}")
    if p.axis is None:
        return jnp.roll(data, p.shift[0])
    axes = axes_of(p.axis, data.ndim)
    return jnp.roll(data, p.shift * len(axes) if len(p.shift) == 1 else p.shift, axes)


class FlipParams(Params):
    axis: Shape | None = param(doc="Axes to reverse; None: all.")


@op("_npi_flip", params=FlipParams, infer_inputs=from_output)
def flip(p: FlipParams, data: Array) -> Array:
    """Reverses the order of the elements along axes. Negative axes count from the end."""
    return jnp.flip(data, None if p.axis is None else axes_of(p.axis, data.ndim))


class Rot90Params(Params):
    k: int = param(1, doc="How many quarter turns, from the first axis towards the second.")
    axes: Shape | None = param(None, doc="The two axes of the plane. Required.")


@op("_npi_rot90", params=Rot90Params)
def rot90(p: Rot90Params, data: Array) -> Array:
    """Turns the array by k * 90 degrees in the plane of two axes."""
    if p.axes is None or len(p.axes) != 2:
        raise ParamError(f"axes={p.axes} must name two axes")
    first, second = axes_of(p.axes, data.ndim, "axes")
    return jnp.rot90(data, p.k, (first, second))


class DiagParams(Params):
    k: int = param(0, doc="Diagonal: 0 main, positive above, negative below.")


@op("_np_diag", params=DiagParams)
def np_diag(p: DiagParams, data: Array) -> Array:
    """The k-th diagonal of a matrix, or, from a vector (n,), a matrix (n + |k|, n + |k|) that has it there."""
    if data.ndim not in (1, 2):
        raise ShapeError(f"argument 'data': expected 1 or 2 axes, got {data.shape}")
    return jnp.diag(data, p.k)


@op("_np_diagflat", params=DiagParams)
def diagflat(p: DiagParams, data: Array) -> Array:
    """A square matrix with all elements of `data` on its k-th diagonal."""
    return jnp.diag(data.reshape(-1), p.k)


class DiagonalParams(Params):
    offset: int = param(0, doc="Diagonal: 0 main, positive above, negative below.")
    axis1: int = param(0, doc="Axis of the rows.")
    axis2: int = param(1, doc="Axis of the columns.")


def _plane(p: DiagonalParams, data: Array) -> tuple[int, int]:
    if data.ndim < 2:
        raise ShapeError(f"argument 'data': expected 2 axes or more, got {data.shape}")
    first, second = axes_of((p.axis1, p.axis2), data.ndim, "axis1, axis2")
    return first, second


@op("_np_diagonal", params=DiagonalParams)
def diagonal(p: DiagonalParams, data: Array) -> Array:
    """Diagonals of matrices: the axes axis1 and axis2 go, the diagonal becomes the last axis."""
    return jnp.diagonal(data, p.offset, *_plane(p, data))


@op("_np_trace", params=DiagonalParams)
def trace(p: DiagonalParams, data: Array) -> Array:
    """Sums of diagonals: the axes axis1 and axis2 go. Half precision sums in float32."""
    wide = jnp.float32 if is_half(data.dtype) else data.dtype
    return jnp.trace(data, p.offset, *_plane(p, data), dtype=wide).astype(data.dtype)


class ArraysParams(Params):
    num_args: int = param(doc="How many arrays.", ge=1)


def _arys(p: ArraysParams) -> tuple[str, ...]:
    return tuple(f"ary{i}" for i in range(p.num_args))


def _register_atleast(ndim: int, places: str) -> None:
    at_least = {1: jnp.atleast_1d, 2: jnp.atleast_2d, 3: jnp.atleast_3d}[ndim]

    def rule(p: ArraysParams, *arys: Array) -> tuple[Array, ...]:
        return tuple(at_least(a) for a in arys)

    rule.__doc__ = f"The arrays with {ndim} axes or more. {places}"
    op(f"_np_atleast_{ndim}d", params=ArraysParams, inputs=_arys, variadic="num_args", all_inputs=("arys",),
       outputs=lambda p: p.num_args, source=f"{__file__}:_np_atleast_{ndim}d")(rule)


_register_atleast(1, "A scalar becomes (1,).")
_register_atleast(2, "() becomes (1, 1) and (n,) becomes (1, n).")
_register_atleast(3, "() becomes (1, 1, 1), (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1).")


class PadParams(Params):
    pad_width: Shapes = param(doc="(before, after) of each axis; of a single axis also (before, after) itself.")
    mode: Literal["constant", "edge", "maximum", "minimum", "reflect", "symmetric"] = param(
        "constant", doc="What the new elements are.")
    constant_value: float = param(0.0, doc="The value of mode constant, cut to the type of `data`.")
    reflect_type: Literal["even", "odd"] = param(
        "even", doc="reflect and symmetric: even repeats the values, odd turns them round the edge (2 edge - value).")


def _widths(p: PadParams, ndim: int) -> list[tuple[int, int]]:
    widths = [tuple(w) for w in p.pad_width]
    if ndim == 1 and [len(w) for w in widths] == [1, 1]:
        widths = [(widths[0][0], widths[1][0])]
    if len(widths) != ndim or any(len(w) != 2 or min(w) < 0 for w in widths):
        raise ShapeError(f"pad_width={p.pad_width} must have (before, after) of 0 or more for {ndim} axes")
    return [(w[0], w[1]) for w in widths]


@op("_npi_pad", params=PadParams)
def np_pad(p: PadParams, data: Array) -> Array:
    """Puts elements before and after each axis.

    constant: one value; edge: the nearest element; maximum and minimum: that of the whole row along the axis; reflect:
    mirrored at the edge element, symmetric: at the edge, which is repeated.
    """
    widths = _widths(p, data.ndim)
    if p.mode == "constant":
        return jnp.pad(data, widths, constant_values=scalar_as(p.constant_value, data.dtype))
    for axis, (size, w) in enumerate(zip(data.shape, widths, strict=True)):
        if size == 0 and any(w):
            raise ShapeError(f"mode={p.mode}: axis {axis} has no element to repeat; mode=constant needs none")
    if p.mode in ("reflect", "symmetric"):
        return jnp.pad(data, widths, mode=p.mode, reflect_type=p.reflect_type)
    return jnp.pad(data, widths, mode=p.mode)
