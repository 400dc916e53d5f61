"""What the neural-network op families share: accumulation types, layouts and pieces of shape inference."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.registry import ShapeLike

HALF = ("float16", "bfloat16")


def is_half(x: Any) -> bool:
    """Whether an array has a 16-bit floating-point type."""
    return str(x.dtype) in HALF


def widen(x: Array) -> Array:
    """Casts half precision to float32, in which all sums are taken; other types stay."""
    return x.astype(jnp.float32) if is_half(x) else x


def sum_dtype(x: Array) -> Any:
    """The `preferred_element_type` of a contraction over `x`: float32 for half precision, else None."""
    return jnp.float32 if is_half(x) else None


def linear(x: Array, weight: Array) -> Array:
    """x (…, K) · weightᵀ, for weight (H, K): (…, H), half precision in float32, in which it is summed."""
    return lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())), preferred_element_type=sum_dtype(x))


def linear_by_rows(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """As `linear`, and bias (H,) added, with one axis for all but the last of x.

    XLA's CPU compiler then transposes nothing for the gradient of the weight, and adds the bias in the product.
    Elsewhere it gains nothing, and arrays divided over devices along one of the joined axes would have to move.
    """
    out = linear(x.reshape(known_product(x.shape[:-1]), x.shape[-1]), weight)
    if bias is not None:
        out = out + bias
    return out.reshape(*x.shape[:-1], weight.shape[0])


def zero_cotangent(x: Array) -> Any:
    """The cotangent of an input that a custom gradient does not differentiate."""
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.zeros(x.shape, x.dtype)
    return np.zeros(x.shape, jax.dtypes.float0)


def along(vector: Array, axis: int, ndim: int) -> Array:
    """Reshapes a vector so that it broadcasts along one axis of a rank-`ndim` array."""
    return vector.reshape([-1 if i == axis else 1 for i in range(ndim)])


def axis_of(axis: int, ndim: int, what: str = "axis") -> int:
    """Resolves a negative axis.

    Raises:
      ParamError: the axis does not exist.
    """
    if not -ndim <= axis < ndim:
        raise ParamError(f"parameter {what}={axis} is out of range for data with {ndim} dimensions")
    return axis % ndim


def index_range(length: int, axis: int, ndim: int, dtype: Any = jnp.int32) -> Array:
    """0 … length-1 along `axis`, with ones elsewhere."""
    return along(lax.iota(dtype, length), axis, ndim)


def merged(shape: ShapeLike, other: ShapeLike) -> ShapeLike:
    """`shape` with its unknown dimensions taken from `other` where the ranks agree."""
    if shape is None or other is None:
        return other if shape is None else shape
    if len(shape) != len(other):
        return shape
    return tuple(b if a == 0 else a for a, b in zip(shape, other, strict=True))


def data_from_output(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    """Inference for ops whose first output has the shape of their first input."""
    return [merged(ins[0], outs[0]), *ins[1:]]


def batch_from_output(data: ShapeLike, out: ShapeLike) -> ShapeLike:
    """`data` with an unknown batch dimension taken from the output."""
    if not data or not out or data[0] != 0:
        return data
    return (out[0], *data[1:])


def known_product(dims: Sequence[int]) -> int:
    """The product of dimensions, 0 (unknown) when one of them is."""
    return math.prod(dims)


def check_rank(name: str, shape: Sequence[int], ranks: Sequence[int], what: str = "") -> None:
    """Refuses a rank.

    Raises:
      ShapeError: the rank of `shape` is none of `ranks`.
    """
    if len(shape) not in ranks:
        expected = " or ".join(str(r) for r in ranks)
        raise ShapeError(f"argument {name}: expected {expected} dimensions{f' ({what})' if what else ''}, "
                         f"got {len(shape)}: {tuple(shape)}")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where batch, channel and spatial axes lie, e.g. "NCHW" or "NDHWC"."""

    text: str

    @property
    def rank(self) -> int:
        return len(self.text)

    @property
    def channel(self) -> int:
        return self.text.index("C")

    @property
    def spatial(self) -> tuple[int, ...]:
        return tuple(i for i, c in enumerate(self.text) if c not in "NC")

    def weight(self, out_axis: str, in_axis: str) -> str:
        """The weight's axes: N stands for `out_axis`, C for `in_axis` (NHWC gives OHWI)."""
        return self.text.replace("N", out_axis).replace("C", in_axis)

    def place(self, batch: int, channel: int, spatial: Sequence[int]) -> tuple[int, ...]:
        """A shape in this layout."""
        rest = iter(spatial)
        return tuple(batch if c == "N" else channel if c == "C" else next(rest) for c in self.text)


_DEFAULT_LAYOUT = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def layout_for(text: str | None, spatial_rank: int) -> Layout:
    """Chooses the layout of data with `spatial_rank` spatial axes.

    Raises:
      ParamError: the layout given has another rank, or there is none for that rank.
    """
    if spatial_rank not in _DEFAULT_LAYOUT:
        raise ParamError(f"only 1, 2 or 3 spatial axes are supported, got {spatial_rank}")
    layout = Layout(text or _DEFAULT_LAYOUT[spatial_rank])
    if layout.rank != spatial_rank + 2:
        raise ParamError(f"parameter layout={text!r} has {layout.rank - 2} spatial axes, but the kernel has "
                         f"{spatial_rank}")
    return layout


def per_axis(name: str, value: Sequence[int], n: int, default: int, least: int) -> tuple[int, ...]:
    """A window parameter with one int per spatial axis; empty means `default` on each.

    Raises:
      ParamError: its length differs from the kernel's or an entry is less than `least`.
    """
    if not value:
        return (default,) * n
    if len(value) != n:
        raise ParamError(f"parameter {name}={tuple(value)} has {len(value)} entries, but the kernel has {n}")
    if min(value) < least:
        raise ParamError(f"parameter {name}={tuple(value)} must be at least {least} everywhere")
    return tuple(value)
