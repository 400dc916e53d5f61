"""UpSampling, BilinearResize2D and AdaptiveAvgPooling2D."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._nn import along, check_rank, widen
from symjax.lowering.ops.convolution import DeconvolutionParams, deconvolution
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, op


class UpSamplingParams(Params):
    scale: int = param(ge=1, doc="Factor of height and width.")
    num_filter: int = param(0, ge=0, doc="Number of channels, for sample_type bilinear.")
    sample_type: Literal["bilinear", "nearest"] = param(doc="Repeat pixels, or a learnable bilinear kernel.")
    multi_input_mode: Literal["concat", "sum"] = param("concat", doc="How several inputs are joined (nearest).")
    num_args: int = param(ge=1, doc="Number of inputs; for bilinear the weight may count.")
    workspace: int = param(512, ge=0, doc="MXNet's temporary memory limit in MB; ignored.")


def _upsampling_inputs(p: UpSamplingParams) -> tuple[str, ...]:
    if p.sample_type == "bilinear":
        return ("data", "weight")
    return ("data",) if p.num_args == 1 else tuple(f"arg{i}" for i in range(p.num_args))


def _kernel(p: UpSamplingParams) -> int:
    return 2 * p.scale - p.scale % 2


def _infer_upsampling(p: UpSamplingParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    if p.sample_type != "bilinear" or not ins[0]:
        return ins
    check_rank("data", ins[0], (4,), "NCHW")
    return [ins[0], (ins[0][1], 1, _kernel(p), _kernel(p))]


def _bilinear_upsampling(p: UpSamplingParams, data: Array, weight: Array) -> Array:
    channels = data.shape[1]
    if p.num_filter != channels:
        raise ParamError(f"parameter num_filter={p.num_filter} must equal the {channels} channels of data for "
                         "sample_type='bilinear'")
    k, pad = _kernel(p), p.scale // 2
    window = DeconvolutionParams.parse({"kernel": f"({k}, {k})", "stride": f"({p.scale}, {p.scale})",
                                        "pad": f"({pad}, {pad})", "num_filter": str(channels),
                                        "num_group": str(channels)})
    return deconvolution(window, data, weight)


@op("UpSampling", params=UpSamplingParams, inputs=_upsampling_inputs, variadic="num_args",
    all_inputs=("data", "weight"), infer_inputs=_infer_upsampling,
    input_attrs={"weight": {"__init__": '["bilinear", {}]'}})
def up_sampling(p: UpSamplingParams, data: Array, *more: Array) -> Array:
    """Enlarges images (N, C, H, W) to (N, C, H·scale, W·scale).

    nearest repeats pixels; further inputs are enlarged to the size of the first one's result (which must be a multiple
    of theirs) and concatenated along channels, or added. bilinear is a Deconvolution of each channel by its own kernel,
    the second input `weight` of shape (C, 1, k, k), k = 2 scale - scale mod 2: a learnable argument that the
    initializer "bilinear" makes an interpolation.
    """
    for i, x in enumerate((data, *more)):
        check_rank(f"arg{i}" if more else "data", x.shape, (4,), "NCHW")
    if p.sample_type == "bilinear":
        return _bilinear_upsampling(p, data, more[0])
    height, width = data.shape[2] * p.scale, data.shape[3] * p.scale
    enlarged = [_repeat(x, i, height, width) for i, x in enumerate((data, *more))]
    if p.multi_input_mode == "concat" or len(enlarged) == 1:
        return jnp.concatenate(enlarged, axis=1) if len(enlarged) > 1 else enlarged[0]
    return sum(enlarged[1:], enlarged[0])


def _repeat(x: Array, i: int, height: int, width: int) -> Array:
    n, c, h, w = x.shape
    if h == 0 or w == 0 or height % h or width % w or height // h != width // w:
        raise ShapeError(f"argument arg{i}: height and width of {x.shape} do not divide the output's {height} and "
                         f"{width} by one factor")
    wide = jnp.broadcast_to(x[:, :, :, None, :, None], (n, c, h, height // h, w, width // w))
    return wide.reshape(n, c, height, width)


_ResizeMode = Literal["like", "odd_scale", "size", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"]


class BilinearResize2DParams(Params):
    height: int = param(1, ge=1, doc="Height of the output, for mode size.")
    width: int = param(1, ge=1, doc="Width of the output, for mode size.")
    scale_height: float | None = param(None, doc="Factor of the height, for modes size and odd_scale.")
    scale_width: float | None = param(None, doc="Factor of the width, for modes size and odd_scale.")
    mode: _ResizeMode = param("size", doc="How the output size follows from the input's.")
    align_corners: bool = param(True, doc="Corner pixels stay at the corners; otherwise pixels are areas.")


def _resize_inputs(p: BilinearResize2DParams) -> tuple[str, ...]:
    return ("data", "like") if p.mode == "like" else ("data",)


def _resized(p: BilinearResize2DParams, size: int, fixed: int, scale: float | None) -> int:
    if p.mode == "size":
        return fixed if scale is None else int(np.float32(scale) * np.float32(size))
    if p.mode == "odd_scale":
        if scale is None:
            raise ParamError("parameters scale_height and scale_width are required for mode='odd_scale'")
        even = size % 2 == 0
        return int(np.float32(size if even else size - 1) * np.float32(scale)) + (0 if even else 1)
    odd = size % 2
    return {"to_even_down": size - odd, "to_even_up": size + odd, "to_odd_down": size - 1 + odd,
            "to_odd_up": size + 1 - odd}[p.mode]


def _interpolate(x: Array, axis: int, size: int, align_corners: bool) -> Array:
    """Resamples one axis linearly."""
    old = x.shape[axis]
    if old == size:
        return x
    place = np.arange(size, dtype=np.float64)
    if size == 1:  # MXNet: a single pixel is the first one in both modes.
        place = np.zeros(1)
    elif align_corners:
        place = place * ((old - 1) / (size - 1))
    else:
        place = np.maximum((place + 0.5) * (old / size) - 0.5, 0)
    low = np.minimum(place.astype(np.int32), old - 1)
    high = np.minimum(low + 1, old - 1)
    weight = along(jnp.asarray(place - low, x.dtype), axis, x.ndim)
    below, above = (jnp.take(x, jnp.asarray(i, jnp.int32), axis=axis, mode="clip") for i in (low, high))
    return below * (1 - weight) + above * weight


@op("_contrib_BilinearResize2D", params=BilinearResize2DParams, inputs=_resize_inputs, all_inputs=("data", "like"))
def bilinear_resize_2d(p: BilinearResize2DParams, data: Array, like: Array | None = None) -> Array:
    """Resizes images (N, C, H, W) by bilinear interpolation.

    The output is height x width, or scale times the input (mode size); the size of `like` (mode like); or the nearest
    even or odd size (to_even_down, to_even_up, to_odd_down, to_odd_up); odd_scale scales an odd size to an odd one:
    `(n - 1) scale + 1`. Output pixel i reads position `i (n - 1) / (m - 1)` with align_corners, else
    `max((i + 1/2) n / m - 1/2, 0)`; the only pixel of a size of 1 reads position 0.
    """
    check_rank("data", data.shape, (4,), "NCHW")
    if like is not None:
        check_rank("like", like.shape, (4,), "NCHW")
        height, width = like.shape[2:]
    else:
        height = _resized(p, data.shape[2], p.height, p.scale_height)
        width = _resized(p, data.shape[3], p.width, p.scale_width)
    if height < 1 or width < 1:
        raise ShapeError(f"argument data: resizing {data.shape} gives an empty image of {height} x {width}")
    x = _interpolate(widen(data), 2, height, p.align_corners)
    return _interpolate(x, 3, width, p.align_corners).astype(data.dtype)


class AdaptiveAvgPooling2DParams(Params):
    output_size: Shape = param((), doc="(height, width) of the output, one int for both, or () for 1 x 1.")


def _average_bins(x: Array, axis: int, size: int) -> Array:
    """Averages `size` bins of an axis, bin i covering floor(i n / size) up to ceil((i + 1) n / size)."""
    n = x.shape[axis]
    if n % size == 0:
        shape = [*x.shape[:axis], size, n // size, *x.shape[axis + 1:]]
        return x.reshape(shape).mean(axis + 1)
    start, end = _ends(n, size)
    index = start[:, None] + np.arange(int((end - start).max()))
    inside = index < end[:, None]
    taken = jnp.take(x, jnp.asarray(np.minimum(index, n - 1).ravel(), jnp.int32), axis=axis, mode="clip")
    taken = taken.reshape([*x.shape[:axis], *index.shape, *x.shape[axis + 1:]])
    tail = (1,) * (x.ndim - axis - 1)
    total = jnp.where(inside.reshape(*inside.shape, *tail), taken, jnp.zeros((), x.dtype)).sum(axis + 1)
    return total / jnp.asarray((end - start).reshape(-1, *tail), x.dtype)


@op("_contrib_AdaptiveAvgPooling2D", params=AdaptiveAvgPooling2DParams)
def adaptive_avg_pooling_2d(p: AdaptiveAvgPooling2DParams, data: Array) -> Array:
    """Averages images (N, C, H, W) over a grid of bins to (N, C, output height, output width).

    Bin i of m covers `floor(i n / m)` up to `ceil((i + 1) n / m)`, so bins may overlap.
    """
    height, width = _bins(p, data.shape)
    return _average_bins(_average_bins(widen(data), 3, width), 2, height).astype(data.dtype)


def _bins(p: AdaptiveAvgPooling2DParams, shape: Sequence[int]) -> tuple[int, int]:
    """Height and width of the output."""
    check_rank("data", shape, (4,), "NCHW")
    if len(p.output_size) > 2 or any(s < 1 for s in p.output_size):
        raise ParamError(f"parameter output_size={p.output_size} must be one or two positive ints")
    height, width = (p.output_size * 2)[:2] if p.output_size else (1, 1)
    if 0 in shape[2:]:
        raise ShapeError(f"argument data: an empty image {tuple(shape)} has no average")
    return height, width


_UNROLLED = 512
"""Height and width, together, up to which the sums of bins are written out."""


@adaptive_avg_pooling_2d.variant(
    platform="cpu", when=lambda p, avals: max(p.output_size, default=1) > 1 and sum(avals[0].shape[2:]) <= _UNROLLED)
def _average_by_sums(p: AdaptiveAvgPooling2DParams, data: Array) -> Array:
    """The same as sums of rows, then of columns, written out one by one; several times faster.

    The gradient is that of two products with matrices of the bins' weights.
    """
    height, width = _bins(p, data.shape)

    @jax.custom_jvp
    def call(x: Array) -> Array:
        return _means_of_bins(_means_of_bins(widen(x), 2, height), 3, width).astype(x.dtype)

    @call.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        return call(*primals), _average_by_products(tangents[0], height, width)

    return call(data)


def _ends(size: int, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """The first element of each bin and the one after its last."""
    number = np.arange(bins)
    return number * size // bins, -(-(number + 1) * size // bins)


def _means_of_bins(x: Array, axis: int, bins: int) -> Array:
    """The average of each bin along an axis."""
    rows = [lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis])]
    start, end = _ends(len(rows), bins)
    means = [functools.reduce(jnp.add, rows[a:b]) / int(b - a) for a, b in zip(start, end, strict=True)]
    return jnp.stack(means, axis)


def _average_by_products(x: Array, height: int, width: int) -> Array:
    n, c, *sizes = x.shape
    rows = widen(x).reshape(-1, sizes[1])
    down, across = (jnp.asarray(_bin_weights(*s), rows.dtype) for s in zip(sizes, (height, width), strict=True))
    parts = jnp.matmul(rows, across.T).reshape(n * c, sizes[0], width)
    return jnp.einsum("bhj,ih->bij", parts, down).reshape(n, c, height, width).astype(x.dtype)


def _bin_weights(size: int, bins: int) -> np.ndarray:
    """(bins, size): what each element weighs in the average of each bin."""
    place = np.arange(size)
    start, end = (x[:, None] for x in _ends(size, bins))
    return ((place >= start) & (place < end)) / (end - start)
