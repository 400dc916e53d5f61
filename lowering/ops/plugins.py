"""Operators of MXNet's forks and plug-ins, which MXNet 1.9.1 itself refuses but real files hold.

Their meaning is what their authors published; there is no MXNet 1.9.1 to compare with. Each carries its `origin`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import MissingLoweringError, MXNetError, ParamError, ShapeError
from symjax.lowering.host import register_type
from symjax.lowering.ops import convolution as conv
from symjax.lowering.ops import fully_connected as dense
from symjax.lowering.ops import norm
from symjax.lowering.ops import proposal as rpn
from symjax.lowering.ops.ctc import ctc_loss
from symjax.lowering.params import Params, param, read_bool, read_float, read_int, read_tuple
from symjax.lowering.registry import ShapeLike, op

# ---- depthwise convolution and cuDNN's batch normalisation under names of their own


class ChannelwiseConvolutionParams(conv.ConvolutionParams):
    """As for Convolution."""


@op("ChannelwiseConvolution", params=ChannelwiseConvolutionParams, inputs=conv._inputs,
    all_inputs=("data", "weight", "bias"), infer_inputs=conv._infer_convolution, origin="MobileNet forks")  # fmt: skip
def channelwise_convolution(p: ChannelwiseConvolutionParams, data: Array, weight: Array,
                            bias: Array | None = None) -> Array:
    """Depthwise convolution of forks before MXNet 1.0: Convolution, which by now has a fast path for it."""
    return conv._convolve(p, data, weight, bias)


channelwise_convolution.variant(platform="cpu", when=conv._has_groups)(conv._convolve_groups)


@op("CuDNNBatchNorm", params=norm.BatchNormV1Params, aux=("moving_mean", "moving_var"), outputs=norm._STATS,
    num_visible=norm._visible, infer_inputs=norm._infer_channels(1), infer_types=norm._float32_statistics,
    input_attrs=norm._MOVING, origin="MXNet 0.x with cuDNN")  # fmt: skip
def cudnn_batch_norm(p: norm.BatchNormV1Params, data: Array, gamma: Array, beta: Array, moving_mean: Array,
                     moving_var: Array, *, train: bool) -> Any:
    """BatchNorm on axis 1, as MXNet before 1.0 called cuDNN's."""
    return norm._batch_norm(p, 1, train, data, gamma, beta, moving_mean, moving_var)


# ---- Baidu's CTC


class WarpCTCParams(Params):
    label_length: int = param(0, doc="Entries of each label, padding included.")
    input_length: int = param(0, doc="Time steps of each sequence.")


def _ctc_sizes(p: WarpCTCParams, data: Sequence[int]) -> tuple[int, int]:
    if len(data) != 2 or p.input_length < 1 or data[0] % p.input_length:
        raise ShapeError(f"argument 'data': expected (input_length * batch, classes) with "
                         f"input_length={p.input_length}, got shape {tuple(data)}")
    return p.input_length, data[0] // p.input_length


def _ctc_inputs(p: WarpCTCParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    data = ins[0] or outs[0]
    if not data or not data[0]:
        return [data, ins[1]]
    return [data, (_ctc_sizes(p, data)[1] * p.label_length,)]


def _ctc_types(p: Any, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None], list[str | None]]:
    known = ins[0] or outs[0]
    return [known, ins[1] or "int32"], [known]


@op("WarpCTC", params=WarpCTCParams, infer_inputs=_ctc_inputs, infer_types=_ctc_types, is_loss=True,
    origin="WarpCTC plug-in")  # fmt: skip
def warp_ctc(p: WarpCTCParams, data: Array, label: Array) -> Array:
    """Softmax forward; its gradient is that of the CTC loss, whatever the head gradient.

    data (T * N, C), step by step, of unnormalised scores; label (N * label_length,) of classes from 1 on, where 0, the
    blank, is left out. The losses of the batch are summed.
    """
    steps, batch = _ctc_sizes(p, data.shape)
    if label.size != batch * p.label_length:
        raise ShapeError(f"argument 'label': expected {batch} labels of label_length={p.label_length}, got shape "
                         f"{label.shape}")

    @jax.custom_vjp
    def loss(data: Array, label: Array) -> Array:
        return jax.nn.softmax(data, axis=-1)

    def forward(data: Array, label: Array) -> tuple[Array, tuple[Array, Array]]:
        return loss(data, label), (data, label)

    def backward(kept: tuple[Array, Array], head: Array) -> tuple[Array, None]:
        data, label = kept
        rows = label.reshape(batch, p.label_length).astype(jnp.int32)
        order = jnp.argsort(rows == 0, axis=1, stable=True)
        rows, lengths = jnp.take_along_axis(rows, order, axis=1), jnp.sum(rows != 0, axis=1, dtype=jnp.int32)
        scores = data.reshape(steps, batch, -1)
        full = jnp.full((batch,), steps, jnp.int32)
        grad = jax.grad(lambda x: ctc_loss(x, rows, full, lengths, 0).sum())(scores)
        return grad.reshape(data.shape).astype(data.dtype), None

    loss.defvjp(forward, backward)
    return loss(data, label)


# ---- BMXNet: binary and quantized networks (Yang et al., 2017)

_WORD = 32


class QActivationParams(Params):
    act_bit: int = param(1, ge=1, le=32, doc="Bits of the activation: 1 gives signs, more give levels from 0 to 1.")
    backward_only: bool = param(False, doc="Leave the data as they are; the layer that follows quantizes them.")


def _sign(x: Array) -> Array:
    """1 or -1, 1 at 0; the gradient passes where |x| <= 1."""
    hard = jnp.where(x >= 0, 1, -1).astype(x.dtype)
    soft = jnp.clip(x, -1, 1)
    return soft + jax.lax.stop_gradient(hard - soft)


def _levels(x: Array, bits: int) -> Array:
    """The nearest of 2^bits levels from 0 to 1; the gradient passes inside."""
    top = 2.0**bits - 1
    soft = jnp.clip(x, 0, 1)
    return soft + jax.lax.stop_gradient(jnp.round(soft * top) / top - soft)


def _quantized(x: Array, bits: int) -> Array:
    return x if bits == 32 else _sign(x) if bits == 1 else _levels(x, bits)


@op("QActivation", params=QActivationParams, origin="BMXNet")
def q_activation(p: QActivationParams, data: Array) -> Array:
    """Quantizes activations; the gradient passes straight through where the data are in range."""
    made = _quantized(data, p.act_bit)
    if p.backward_only:  # the value of the data, the gradient of what they are quantized to
        return made + jax.lax.stop_gradient(data - made)
    return made


def _weights(weight: Array, bits: int) -> Array:
    if bits in (1, 32):
        return _quantized(weight, bits)
    squashed = jnp.tanh(weight)
    return 2 * _levels(squashed / (2 * jax.lax.stop_gradient(jnp.max(jnp.abs(squashed)))) + 0.5, bits) - 1


def _unpacked(words: Array, dtype: Any) -> Array:
    """(n,) words in the bits of float32 -> (n, 32) of 1 and -1, lowest bit first."""
    if words.dtype != jnp.float32:
        raise ParamError(f"binarized weights are 32-bit words stored as float32, got {words.dtype}")
    raw = jax.lax.bitcast_convert_type(words, jnp.uint32)
    bits = (raw[:, None] >> jnp.arange(_WORD, dtype=jnp.uint32)) & 1
    return jnp.where(bits == 1, 1, -1).astype(dtype)


class QConvolutionParams(conv.ConvolutionParams):
    no_bias: bool = param(True, doc="Leave the bias out.")
    act_bit: int = param(1, ge=1, le=32, doc="Bits of data and weights.")
    scaling_factor: bool = param(False, doc="Multiply by the mean magnitude of each filter's weights.")
    binarized_weights_only: bool = param(False, doc="The weights are stored as signs, 32 to a float32's bits.")


class QFullyConnectedParams(dense.FullyConnectedParams):
    no_bias: bool = param(True, doc="Leave the bias out.")
    act_bit: int = param(1, ge=1, le=32, doc="Bits of data and weights.")
    binarized_weights_only: bool = param(False, doc="The weights are stored as signs, 32 to a float32's bits.")


def _packed_inputs(infer: Callable[..., Any]) -> Callable[..., Any]:
    def shapes(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
        if not p.binarized_weights_only:
            return list(infer(p, ins, outs))
        found = list(infer(p, [ins[0], None, *ins[2:]], outs))
        full = found[1]
        size = 1
        for d in full or (0,):
            size *= d
        found[1] = (size // _WORD,) if size else ins[1]
        return found

    return shapes


def _counts(dot: Array, n: int, bits: int) -> Array:
    """Of n products of signs, how many are 1: what XNOR and bit count give, and BMXNet returns."""
    return (dot + n) / 2 if bits == 1 else dot


@op("QConvolution", params=QConvolutionParams, inputs=conv._inputs, all_inputs=("data", "weight", "bias"),
    infer_inputs=_packed_inputs(conv._infer_convolution), origin="BMXNet")  # fmt: skip
def q_convolution(p: QConvolutionParams, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """Convolution of quantized data with quantized weights.

    With one bit the result is the number of products that are 1, `(dot + n) / 2` for the n products of a window;
    padding counts as half a one. Packed weights hold a filter (C, kernel…) in each row.
    """
    shape = (p.num_filter, data.shape[1] // p.num_group, *p.kernel)
    n = 1
    for d in shape[1:]:
        n *= d
    if p.binarized_weights_only:
        weight = _unpacked(weight, data.dtype).reshape(shape)
    scale = jnp.abs(weight).reshape(p.num_filter, -1).mean(1) if p.scaling_factor else None
    dot = conv._convolve(p, _quantized(data, p.act_bit), _weights(weight, p.act_bit), None)
    out = _counts(dot, n, p.act_bit)
    if scale is not None:
        out = out * scale.reshape(-1, *[1] * len(p.kernel))
    return out if bias is None else out + bias.reshape(-1, *[1] * len(p.kernel))


@op("QFullyConnected", params=QFullyConnectedParams, inputs=dense._inputs, all_inputs=("data", "weight", "bias"),
    infer_inputs=_packed_inputs(dense._infer_inputs), origin="BMXNet")  # fmt: skip
def q_fully_connected(p: QFullyConnectedParams, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """FullyConnected of quantized data with quantized weights; one bit as for QConvolution.

    Packed weights hold, for each 32 inputs, a word for each output.
    """
    rows = data.reshape(data.shape[0], -1) if p.flatten else data
    n = rows.shape[-1]
    if p.binarized_weights_only:
        words = _unpacked(weight, data.dtype).reshape(n // _WORD, p.num_hidden, _WORD)
        weight = words.transpose(1, 0, 2).reshape(p.num_hidden, n)
    dot = _quantized(rows, p.act_bit) @ _weights(weight, p.act_bit).T
    out = _counts(dot, n, p.act_bit)
    return out if bias is None else out + bias


# ---- MOON (Rudd et al., 2016), of tornadomeet's face models


class MoonOutputParams(Params):
    grad_scale: float = param(1.0, doc="Scale of the gradient.")
    src_dist_path: str = param("", doc="File of the distribution of the attributes, for training.")


@op("MoonOutput", params=MoonOutputParams, is_loss=True, origin="tornadomeet's MXNet", shape="same")
def moon_output(p: MoonOutputParams, data: Array, label: Array) -> Array:
    """The attribute scores as they are. Training, which balances attributes by a file, is not supported.

    Raises:
      MissingLoweringError: a gradient is asked for.
    """

    @jax.custom_vjp
    def scores(data: Array, label: Array) -> Array:
        return data

    def backward(kept: None, head: Array) -> Any:
        raise MissingLoweringError("MoonOutput has no gradient here: its weights came from a file of the authors. "
                                   "Train on its input with LinearRegressionOutput or a loss of your own")

    scores.defvjp(lambda data, label: (data, None), backward)
    return scores(data, label)


# ---- the Custom operator `proposal` of the Faster R-CNN example


class Proposal:
    """`proposal` of MXNet's example/rcnn, in Python there: `_contrib_Proposal` by another name.

    Where the example fills up with random proposals, those found are repeated from the start.
    """

    arguments: tuple[str, ...] = ("cls_prob", "bbox_pred", "im_info")
    outputs: tuple[str, ...]
    aux: tuple[str, ...] = ()

    def __init__(self, given: dict[str, str]) -> None:
        rest = dict(given)
        training = read_bool(rest.pop("is_train", "False"))
        number = {"rpn_pre_nms_top_n": 12000 if training else 6000, "rpn_post_nms_top_n": 2000 if training else 300,
                  "rpn_min_size": 16}  # fmt: skip
        try:
            values: dict[str, Any] = {k: read_int(rest.pop(k, str(v))) for k, v in number.items()}
            values["feature_stride"] = read_int(rest.pop("feat_stride", "16"))
            values["threshold"] = read_float(rest.pop("threshold", "0.7"))
            values["scales"] = read_tuple(rest.pop("scales", "(8, 16, 32)"), read_float)
            values["ratios"] = read_tuple(rest.pop("ratios", "(0.5, 1, 2)"), read_float)
            values["output_score"] = read_bool(rest.pop("output_score", "False"))
        except ValueError as e:
            raise ParamError(f"custom operator 'proposal' with parameters {given}: {e}") from None
        if rest:
            raise ParamError(f"custom operator 'proposal' has no parameter {sorted(rest)[0]!r}")
        self.params = rpn.ProposalParams(**values)
        self.outputs = ("output", "score") if self.params.output_score else ("output",)

    def infer_shape(self, ins: list[list[int]]) -> tuple[Any, Any, Any]:
        n = self.params.rpn_post_nms_top_n
        shapes = rpn._infer_inputs(self.params, [tuple(s) or None for s in ins], [])
        return [s or [] for s in shapes], [(n, 5), (n, 1)][:len(self.outputs)], []

    def infer_type(self, ins: list[Any]) -> tuple[Any, Any, Any]:
        return ins, [ins[0]] * len(self.outputs), []

    def needs(self) -> frozenset[int]:
        return frozenset()

    def operator(self, shapes: Any, dtypes: Any) -> Any:
        raise MXNetError("proposal runs on the device")

    def traceable(self, shapes: Any, dtypes: Any, train: bool) -> Callable[..., Any]:
        def run(*inputs: Array) -> tuple[Array, ...]:
            found = rpn._propose(self.params, *inputs)
            return tuple(map(jax.lax.stop_gradient, found))[:len(self.outputs)]

        return run


register_type("proposal", Proposal)
