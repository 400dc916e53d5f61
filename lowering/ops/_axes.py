"""Small helpers that the shape, indexing and matrix families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.registry import ShapeLike


def axis_of(axis: int, ndim: int, what: str = "axis") -> int:
    """Returns a non-negative axis.

    Raises:
      ShapeError: it lies outside [-ndim, ndim).
    """
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{what}={axis} is outside the {ndim} axes of the input (expected {-ndim} to {ndim - 1})")
    return axis % ndim


def axes_of(axes: Sequence[int], ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Returns non-negative axes; a repeated one is refused."""
    out = tuple(axis_of(a, ndim, what) for a in axes)
    if len(set(out)) != len(out):
        raise ShapeError(f"{what}={tuple(axes)} names an axis twice")
    return out


def argmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Returns the int32 index of the first largest element; NaN counts as largest.

    Other than `jnp.argmax`, whose int64 index under 64 bits cannot be lowered inside a program of 32 bits.
    """
    return _arg(lax.argmax, x, axis, keepdims)


def argmax_by_blocks(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """As `argmax`: the first largest element of the first block with the largest maximum.

    XLA:CPU compares several elements at once for a maximum, but one at a time for its index.
    """
    x = x.reshape(-1) if axis is None else x
    n = x.shape[-1]
    if axis_of(axis or 0, x.ndim) != x.ndim - 1 or n < 512 or not jnp.issubdtype(x.dtype, jnp.floating):
        return argmax(x, axis, keepdims)
    size = next((s for s in range(256, 63, -1) if n % s == 0), 128)
    blocks = -(-n // size)
    rest = [(0, 0)] * (x.ndim - 1) + [(0, blocks * size - n)]
    parts = jnp.pad(x, rest, constant_values=-jnp.inf).reshape(*x.shape[:-1], blocks, size)
    # XLA:CPU's maximum may lose a NaN.
    most = jnp.where(jnp.isnan(parts).any(-1), jnp.nan, parts.max(-1)).astype(x.dtype)
    block = argmax(most, -1, keepdims=True)
    # What is behind the end repeats the last element, which comes before it.
    place = jnp.minimum(block * size + jnp.arange(size, dtype=jnp.int32), n - 1)
    inner = argmax(jnp.take_along_axis(x, place, -1, mode="clip"), -1, keepdims=True)
    found = jnp.take_along_axis(place, inner, -1)
    return found if keepdims else found[..., 0]


def argmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Returns the int32 index of the first smallest element; NaN counts as smallest."""
    return _arg(lax.argmin, x, axis, keepdims)


def _arg(fn: Callable[..., Array], x: Array, axis: int | None, keepdims: bool) -> Array:
    x = x.reshape(-1) if axis is None else x
    axis = axis_of(axis or 0, x.ndim)
    x = x.astype(jnp.uint8) if x.dtype == jnp.bool_ else x
    index = fn(x, axis, jnp.int32 if x.shape[axis] < 2**31 else jnp.int64)
    return jnp.expand_dims(index, axis) if keepdims else index


def is_half(dtype: jnp.dtype) -> bool:
    """Whether a dtype has 16 bits and so needs wider sums."""
    return dtype in (jnp.float16, jnp.bfloat16)


def sum_type(dtype: jnp.dtype) -> jnp.dtype | None:
    """The type in which products of `dtype` are summed; None: its own."""
    return jnp.dtype(jnp.float32) if is_half(dtype) else None


def contract(a: Array, b: Array, axes: tuple[Sequence[int], Sequence[int]],
             batch: tuple[Sequence[int], Sequence[int]] = ((), ())) -> Array:
    """`lax.dot_general` whose result has the inputs' type and, for half precision, float32 sums."""
    out = jax.lax.dot_general(a, b, (axes, batch), preferred_element_type=sum_type(a.dtype))
    return out.astype(a.dtype)


_Read = Callable[[Array, Array], Array]


def gather(read: _Read, data: Array, index: Array, forward: _Read | None = None) -> Array:
    """Applies `read(data, index)`, linear in `data`, so that the gradient adds up in float32 for half precision.

    The cotangents of a row that many indices read are summed: in float16 such a sum stalls at 2048 times the addend.
    The forward pass reads `data` as it is, without a wide copy of the table.

    Args:
      read: what is differentiated.
      data, index: its arguments.
      forward: what gives the same values faster, where there is such a thing.
    """
    half = is_half(data.dtype)
    if forward is None and not half:
        return read(data, index)

    @jax.custom_jvp
    def call(data: Array, index: Array) -> Array:
        return (forward or read)(data, index)

    @call.defjvp
    def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
        data, index = primals
        t = tangents[0]
        return call(data, index), read(t.astype(jnp.float32) if half else t, index).astype(t.dtype)

    return call(data, index)


def read_rows(data: Array, index: Array, padded: bool = False) -> Array:
    """Returns `data[index]` along the first axis, differentiable as `gather` is.

    Args:
      data: (n, …).
      index: integers, not negative.
      padded: whether an index of n and beyond gives zeros; otherwise it gives the last row.
    """
    fill = padded or not data.shape[0]

    def read(d: Array, i: Array) -> Array:
        return jnp.take(d, i, axis=0, mode="fill", fill_value=0) if fill else jnp.take(d, i, axis=0, mode="clip")

    # LLVM unrolls XLA:CPU's loop over a row of less than 75 elements whole, and then does not vectorise it: the stores
    # of a row fill the store buffer of the processor, which waits for the memory of each row in turn. As a reduction
    # over the same row read twice it stays a loop, up to three times as fast from 24 elements on. XLA makes the reading
    # a part of a reduction's loop however often the rows are used; other operations it moves to each use.
    width = data.shape[1] if data.ndim == 2 else 0
    if not 24 <= width < 75 or data.dtype == jnp.bool_ or data.dtype.itemsize not in (2, 4):
        return gather(read, data, index)
    bits = jnp.int16 if data.dtype.itemsize == 2 else jnp.int32

    def either(x: Array, y: Array) -> Array:
        return lax.bitcast_convert_type(lax.bitcast_convert_type(x, bits) | lax.bitcast_convert_type(y, bits), x.dtype)

    def twice(d: Array, i: Array) -> Array:
        again = i + ((i * (i + 1)) & 1)  # the same, which neither XLA nor LLVM knows
        return lax.reduce(read(d, jnp.stack([i, again], -1)), d.dtype.type(0), either, (i.ndim,))

    def forward(d: Array, i: Array) -> Array:
        return lax.platform_dependent(d, i, cpu=twice, default=read)

    return gather(read, data, index, forward)


def as_index(index: Array) -> Array:
    """Integer indices from any numeric array; fractions are cut off towards zero."""
    if index.dtype in (jnp.int64, jnp.uint64, jnp.float64, jnp.uint32):
        return index.astype(jnp.int64)
    return index.astype(jnp.int32)


def bound_index(index: Array, size: int, mode: str) -> Array:
    """Brings indices into [0, size): "clip" moves to the nearest end, "wrap" counts modulo `size`."""
    index = as_index(index)
    index = jnp.mod(index, size) if mode == "wrap" else jnp.clip(index, 0, max(size - 1, 0))
    return index.astype(jnp.int32) if size < 2**31 else index


def from_output(p: object, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    """Shape rule: the first input has the first output's shape."""
    return [outs[0], *ins[1:]]


def without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1:])
