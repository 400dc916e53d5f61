"""Convolution, Convolution_v1 and Deconvolution in one to three spatial dimensions."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._grouped import MOST_GROUPS, Shifts, by_group, depthwise
from symjax.lowering.ops._nn import Layout, along, batch_from_output, check_rank, layout_for, per_axis, sum_dtype
from symjax.lowering.ops._planes import by_planes
from symjax.lowering.ops._pointwise import pointwise
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, op

_Tune = Literal["fastest", "limited_workspace", "off"] | None
_Layout = Literal["NCDHW", "NCHW", "NCW", "NDHWC", "NHWC"] | None
_LayoutV1 = Literal["NCDHW", "NCHW", "NDHWC", "NHWC"] | None


class _WindowParams(Params):
    kernel: Shape = param(doc="Window size, one int per spatial axis: (w,), (h, w) or (d, h, w).")
    stride: Shape = param((), doc="Step of the window; 1 on each axis when empty.")
    dilate: Shape = param((), doc="Distance between taps of the kernel; 1 on each axis when empty.")
    pad: Shape = param((), doc="Zeros added on both sides of each spatial axis; 0 when empty.")
    num_filter: int = param(ge=1, doc="Number of output channels.")
    num_group: int = param(1, ge=1, doc="Number of groups that channels are divided into.")


class ConvolutionParams(_WindowParams):
    workspace: int = param(1024, ge=0, doc="MXNet's temporary memory limit in MB; ignored.")
    no_bias: bool = param(False, doc="Leave the bias out.")
    cudnn_tune: _Tune = param(None, doc="MXNet's choice of cuDNN algorithm; ignored.")
    cudnn_off: bool = param(False, doc="Ignored.")
    layout: _Layout = param(None, doc="Axes of data and output; NCW, NCHW or NCDHW when None.")


class ConvolutionV1Params(_WindowParams):
    workspace: int = param(1024, ge=0, doc="MXNet's temporary memory limit in MB; ignored.")
    no_bias: bool = param(False, doc="Leave the bias out.")
    cudnn_tune: _Tune = param(None, doc="MXNet's choice of cuDNN algorithm; ignored.")
    cudnn_off: bool = param(False, doc="Ignored.")
    layout: _LayoutV1 = param(None, doc="Axes of data and output; NCHW or NCDHW when None.")


class DeconvolutionParams(_WindowParams):
    adj: Shape = param((), doc="Extra size at the far end of each output axis, less than the stride.")
    target_shape: Shape = param((), doc="Spatial size of the output; replaces pad and adj.")
    workspace: int = param(512, ge=0, doc="MXNet's temporary memory limit in MB; ignored.")
    no_bias: bool = param(True, doc="Leave the bias out.")
    cudnn_tune: _Tune = param(None, doc="MXNet's choice of cuDNN algorithm; ignored.")
    cudnn_off: bool = param(False, doc="Ignored.")
    layout: _Layout = param(None, doc="Axes of data and output; NCW, NCHW or NCDHW when None.")


_AnyParams = ConvolutionParams | ConvolutionV1Params | DeconvolutionParams


@dataclasses.dataclass(frozen=True)
class _Window:
    """The geometry of one node, a tuple with an int per spatial axis each."""

    layout: Layout
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilate: tuple[int, ...]
    pad: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """The extent of the dilated kernel."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilate, strict=True))

    @property
    def shifts(self) -> Shifts:
        """The geometry for `depthwise`."""
        return Shifts(self.layout.channel, self.layout.spatial, self.kernel, self.stride, self.dilate, self.pad)


def _window(p: _AnyParams) -> _Window:
    n = len(p.kernel)
    layout = layout_for(p.layout, n)
    if min(p.kernel) < 1:
        raise ParamError(f"parameter kernel={p.kernel} must be at least 1 everywhere")
    if p.num_filter % p.num_group:
        raise ParamError(f"parameter num_filter={p.num_filter} is not a multiple of num_group={p.num_group}")
    return _Window(layout, p.kernel, per_axis("stride", p.stride, n, 1, 1), per_axis("dilate", p.dilate, n, 1, 1),
                   per_axis("pad", p.pad, n, 0, 0))


def _check_data(w: _Window, groups: int, shape: Sequence[int]) -> None:
    check_rank("data", shape, (w.layout.rank,), w.layout.text)
    channels = shape[w.layout.channel]
    if channels % groups:
        raise ShapeError(f"argument data: {channels} channels are not a multiple of num_group={groups}")


def _inputs(p: _AnyParams) -> tuple[str, ...]:
    return ("data", "weight") if p.no_bias else ("data", "weight", "bias")


def _inferred(p: _AnyParams, data: ShapeLike, weight: ShapeLike) -> list[ShapeLike]:
    return [data, weight, *([] if p.no_bias else [(p.num_filter,)])]


def _infer_convolution(p: ConvolutionParams | ConvolutionV1Params, ins: list[ShapeLike],
                       outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    w, data = _window(p), ins[0]
    if not data:
        return ins
    _check_data(w, p.num_group, data)
    weight = w.layout.place(p.num_filter, data[w.layout.channel] // p.num_group, w.kernel)
    return _inferred(p, _data_from_output(w, data, outs[0]), weight)


def _data_from_output(w: _Window, data: tuple[int, ...], out: ShapeLike) -> ShapeLike:
    """Fills the batch and, on axes of stride 1, the size of data that is not known."""
    filled = batch_from_output(data, out)
    if not filled or not out or len(out) != len(filled):
        return data
    dims = list(filled)
    for i, axis in enumerate(w.layout.spatial):
        if dims[axis] == 0 and out[axis] and w.stride[i] == 1:
            dims[axis] = out[axis] + w.reach[i] - 1 - 2 * w.pad[i]
    return tuple(dims)


def _checked_window(p: ConvolutionParams | ConvolutionV1Params, data: Array) -> _Window:
    w = _window(p)
    _check_data(w, p.num_group, data.shape)
    for axis, reach, pad in zip(w.layout.spatial, w.reach, w.pad, strict=True):
        if data.shape[axis] + 2 * pad < reach:
            raise ShapeError(f"argument data: the kernel spans {reach} on axis {axis}, more than the padded size "
                             f"{data.shape[axis] + 2 * pad} of {data.shape}")
    return w


def _contract(w: _Window, groups: int, data: Array, weight: Array) -> Array:
    return lax.conv_general_dilated(
        data, weight, w.stride, [(q, q) for q in w.pad], rhs_dilation=w.dilate, feature_group_count=groups,
        dimension_numbers=(w.layout.text, w.layout.weight("O", "I"), w.layout.text),
        preferred_element_type=sum_dtype(data))


def _convolve(p: ConvolutionParams | ConvolutionV1Params, data: Array, weight: Array, bias: Array | None) -> Array:
    w = _checked_window(p, data)
    return _add_bias(w, _contract(w, p.num_group, data, weight), bias).astype(data.dtype)


def _convolve_groups(
    p: ConvolutionParams | ConvolutionV1Params, data: Array, weight: Array, bias: Array | None = None
) -> Array:
    """Convolution in groups, as fast as it gets on the CPU."""
    w = _checked_window(p, data)
    if p.num_group == data.shape[w.layout.channel]:
        sizes = [(data.shape[a] + 2 * q - r) // s + 1
                 for a, q, r, s in zip(w.layout.spatial, w.pad, w.reach, w.stride, strict=True)]  # fmt: skip
        out = depthwise(w.shifts, data, weight, sizes)
    else:
        out = by_group(data, weight, p.num_group, w.layout.channel, functools.partial(_contract, w, 1))
    return _add_bias(w, out, bias).astype(data.dtype)


def _has_groups(p: _AnyParams, avals: Sequence[Any]) -> bool:
    if p.num_group == 1 or not jnp.issubdtype(avals[0].dtype, jnp.floating) or not math.prod(avals[0].shape):
        return False
    return p.num_group <= MOST_GROUPS or p.num_group == avals[0].shape[_window(p).layout.channel]


def _has_one_tap(p: _AnyParams, avals: Sequence[Any]) -> bool:
    x = avals[0]
    return (p.num_group == 1 and math.prod(p.kernel) == 1 and not any(p.pad) and math.prod(x.shape) > 0
            and jnp.issubdtype(x.dtype, jnp.floating))  # fmt: skip


def _convolve_one_tap(
    p: ConvolutionParams | ConvolutionV1Params, data: Array, weight: Array, bias: Array | None = None
) -> Array:
    """Convolution of one tap, as fast as it gets on the CPU."""
    w = _checked_window(p, data)
    return _add_bias(w, pointwise(data, weight, w.stride, w.layout.channel), bias).astype(data.dtype)


def _is_volume(p: _AnyParams, avals: Sequence[Any]) -> bool:
    x = avals[0]
    return (p.num_group == 1 and len(p.kernel) == 3 and math.prod(x.shape) > 0
            and jnp.issubdtype(x.dtype, jnp.floating))  # fmt: skip


def _convolve_volume(
    p: ConvolutionParams | ConvolutionV1Params, data: Array, weight: Array, bias: Array | None = None
) -> Array:
    """Convolution of volumes, as fast as it gets on the CPU."""
    w = _checked_window(p, data)
    plane = _Window(Layout(w.layout.text.replace("D", "")), w.kernel[1:], w.stride[1:], w.dilate[1:], w.pad[1:])
    out = by_planes(data, weight, (w.stride[0], w.dilate[0], w.pad[0]), w.layout.channel > 1,
                    functools.partial(_contract, plane, 1))  # fmt: skip
    return _add_bias(w, out, bias).astype(data.dtype)


def _add_bias(w: _Window, out: Array, bias: Array | None) -> Array:
    return out if bias is None else out + along(bias.astype(out.dtype), w.layout.channel, out.ndim)


@op("Convolution", aliases=("_npx_convolution",), params=ConvolutionParams, inputs=_inputs,
    all_inputs=("data", "weight", "bias"), infer_inputs=_infer_convolution)
def convolution(p: ConvolutionParams, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """Convolves (correlates) data with a bank of filters.

    `out[n, o, y] = bias[o] + sum over c, k of weight[o, c, k] * data[n, c, y * stride - pad + k * dilate]`, each group
    of output channels reading its own group of input channels. A spatial axis of size n becomes
    `floor((n + 2 pad - dilate (kernel - 1) - 1) / stride) + 1`.

    data is (N, C, spatial…), weight (num_filter, C / num_group, kernel…), bias (num_filter,). In a channels-last layout
    data is (N, spatial…, C) and weight (num_filter, kernel…, C / num_group).

    MXNet runs channels-last layouts on GPU alone; here they run everywhere. Half precision is summed in float32.
    """
    return _convolve(p, data, weight, bias)


convolution.variant(platform="cpu", when=_has_groups)(_convolve_groups)
convolution.variant(platform="cpu", when=_has_one_tap)(_convolve_one_tap)
convolution.variant(platform="cpu", when=_is_volume)(_convolve_volume)


@op("Convolution_v1", params=ConvolutionV1Params, inputs=_inputs, all_inputs=("data", "weight", "bias"),
    infer_inputs=_infer_convolution)
def convolution_v1(p: ConvolutionV1Params, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """The old name of Convolution; it computes the same."""
    return _convolve(p, data, weight, bias)


convolution_v1.variant(platform="cpu", when=_has_groups)(_convolve_groups)
convolution_v1.variant(platform="cpu", when=_has_one_tap)(_convolve_one_tap)
convolution_v1.variant(platform="cpu", when=_is_volume)(_convolve_volume)


def _deconvolution_pad(p: DeconvolutionParams, w: _Window,
                       sizes: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding and adjustment of each spatial axis, from target_shape if that is given."""
    n = len(p.kernel)
    adj = per_axis("adj", p.adj, n, 0, 0)
    target = per_axis("target_shape", p.target_shape, n, 0, 0)
    if not any(target) and any(a >= s for a, s in zip(adj, w.stride, strict=True)):
        raise ParamError(f"parameter adj={adj} must be less than stride={w.stride} everywhere")
    pads, adjs = list(w.pad), list(adj)
    for i, t in enumerate(target):
        if not t:
            continue
        excess = (sizes[i] - 1) * w.stride[i] + w.reach[i] - t
        if excess < 0:
            raise ShapeError(f"parameter target_shape={p.target_shape} is too big for data of spatial size "
                             f"{tuple(sizes)}: at most {t + excess} on spatial axis {i}")
        pads[i], adjs[i] = (excess + 1) // 2, excess % 2
    return tuple(pads), tuple(adjs)


def _infer_deconvolution(p: DeconvolutionParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    w, data = _window(p), ins[0]
    if not data:
        return ins
    _check_data(w, p.num_group, data)
    weight = w.layout.place(data[w.layout.channel], p.num_filter // p.num_group, w.kernel)
    return _inferred(p, data, weight)


def _grouped_weight(p: DeconvolutionParams, w: _Window, weight: Array) -> Array:
    """From (C, num_filter / groups, …) to (C / groups, num_filter, …), which lax expects."""
    if p.num_group == 1:
        return weight
    g, c = p.num_group, w.layout.channel
    split = weight.reshape(g, weight.shape[0] // g, *weight.shape[1:])
    order = list(range(1, split.ndim))
    order.insert(c, 0)
    shape = [weight.shape[0] // g, *weight.shape[1:]]
    shape[c] = p.num_filter
    return split.transpose(order).reshape(shape)


@op("Deconvolution", aliases=("_npx_deconvolution",), params=DeconvolutionParams, inputs=_inputs,
    all_inputs=("data", "weight", "bias"), infer_inputs=_infer_deconvolution)
def deconvolution(p: DeconvolutionParams, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """Transposed convolution: the gradient of a Convolution with respect to its data, applied to `data`.

    A spatial axis of size n becomes `(n - 1) stride - 2 pad + dilate (kernel - 1) + 1 + adj`. A nonzero entry t of
    target_shape makes that axis t long, with `pad = ceil(e / 2)`, `adj = e mod 2` for the excess
    `e = (n - 1) stride + dilate (kernel - 1) + 1 - t`.

    data is (N, C, spatial…), weight (C, num_filter / num_group, kernel…), bias (num_filter,). In a channels-last layout
    data is (N, spatial…, C) and weight (C, kernel…, num_filter / num_group).

    MXNet runs channels-last layouts on GPU alone; here they run everywhere. Half precision is summed in float32.
    """
    w = _window(p)
    _check_data(w, p.num_group, data.shape)
    pad, adj = _deconvolution_pad(p, w, [data.shape[a] for a in w.layout.spatial])
    out = _contract_transposed(p, w, p.num_group, (pad, adj), data, _grouped_weight(p, w, weight))
    return _add_bias(w, out, bias).astype(data.dtype)


def _contract_transposed(p: DeconvolutionParams, w: _Window, groups: int, edge: tuple[Sequence[int], Sequence[int]],
                         data: Array, weight: Array) -> Array:  # fmt: skip
    edges = [(r - 1 - q, r - 1 - q + a) for r, q, a in zip(w.reach, *edge, strict=True)]
    return lax.conv_general_dilated(
        data, lax.rev(weight, w.layout.spatial), (1,) * len(edges), edges, lhs_dilation=w.stride,
        rhs_dilation=w.dilate, feature_group_count=groups, preferred_element_type=sum_dtype(data),
        dimension_numbers=(w.layout.text, w.layout.weight("I", "O"), w.layout.text))


def _is_dense(p: DeconvolutionParams, avals: Sequence[Any]) -> bool:
    return p.num_group == 1 and jnp.issubdtype(avals[0].dtype, jnp.floating)


@deconvolution.variant(platform="cpu", when=_is_dense)
def _deconvolve_dense(p: DeconvolutionParams, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """Transposed convolution whose gradients are those of the convolution that it transposes.

    XLA's own gradient of the weight spreads the data by the stride and takes the large output for the kernel: fifteen
    times slower on the CPU.
    """
    w = _window(p)
    _check_data(w, 1, data.shape)
    pad, adj = _deconvolution_pad(p, w, [data.shape[a] for a in w.layout.spatial])
    back = functools.partial(_contract, dataclasses.replace(w, pad=tuple(pad)), 1)

    @jax.custom_vjp
    def transposed(x: Array, weight: Array) -> Array:
        return _contract_transposed(p, w, 1, (pad, adj), x, weight)

    def backward(residuals: tuple[Array, Array], head: Array) -> tuple[Array, Array]:
        x, weight = residuals
        out, pull = jax.vjp(back, head, weight.astype(head.dtype))
        return out.astype(x.dtype), pull(x.astype(out.dtype))[1].astype(weight.dtype)

    transposed.defvjp(lambda *x: (transposed(*x), x), backward)
    return _add_bias(w, transposed(data, weight), bias).astype(data.dtype)


@deconvolution.variant(platform="cpu", when=_has_groups)
def _deconvolve_groups(p: DeconvolutionParams, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """Transposed convolution in groups, as fast as it gets on the CPU."""
    w = _window(p)
    _check_data(w, p.num_group, data.shape)
    sizes = [data.shape[a] for a in w.layout.spatial]
    pad, adj = _deconvolution_pad(p, w, sizes)
    if p.num_group == data.shape[w.layout.channel]:
        out_sizes = [(n - 1) * s - 2 * q + r + a
                     for n, s, q, r, a in zip(sizes, w.stride, pad, w.reach, adj, strict=True)]  # fmt: skip
        out = depthwise(dataclasses.replace(w.shifts, pad=tuple(pad)), data, weight, out_sizes, transposed=True)
    else:
        out = by_group(data, weight, p.num_group, w.layout.channel,
                       functools.partial(_contract_transposed, p, w, 1, (pad, adj)))  # fmt: skip
    return _add_bias(w, out, bias).astype(data.dtype)
