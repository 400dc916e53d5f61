"""Output layers: ops whose gradient is that of a loss, whatever gradient comes in from above."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.habits import habit
from symjax.lowering.ops._nn import check_rank, index_range, known_product, widen, zero_cotangent
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op


class SoftmaxOutputParams(Params):
    grad_scale: float = param(1.0, doc="Factor of the gradient.")
    ignore_label: float = param(-1.0, doc="Label whose cells get no gradient, with use_ignore.")
    multi_output: bool = param(False, doc="Softmax over axis 1, one label per remaining cell.")
    use_ignore: bool = param(False, doc="Heed ignore_label.")
    preserve_shape: bool = param(False, doc="Softmax over the last axis.")
    normalization: Literal["batch", "null", "valid"] = param(
        "null", doc="Divide the gradient by nothing, the batch size or the number of labels that are not ignored.")
    out_grad: bool = param(False, doc="Multiply the gradient by the head gradient.")
    smooth_alpha: float = param(0.0, ge=0, le=1, doc="Label smoothing: this much is taken from the label's class.")


_OWN_OUTPUT = habit("SoftmaxOutput", "With out_grad, the gradient is multiplied by the operator's own output.",
                    "It is multiplied by the head gradient, as MXNet documents.")
_UNSMOOTHED = habit("SoftmaxOutput", "With multi_output, smooth_alpha is not heeded.", "Labels are smoothed there too.")


def _folded(p: SoftmaxOutputParams, shape: Sequence[int]) -> tuple[int, ...]:
    """Data as (outer, classes), or (outer, classes, inner): XLA's CPU code is slow beside an axis of size 1."""
    if p.preserve_shape and not p.multi_output:
        return known_product(shape[:-1]), shape[-1]
    if not p.multi_output:
        return shape[0], known_product(shape[1:])
    inner = known_product(shape[2:])
    return (shape[0], shape[1]) if inner == 1 else (shape[0], shape[1], inner)


def _is_distribution(data: Array, label: Array) -> bool:
    """Whether the label holds a probability for every class."""
    return data.shape == label.shape


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _softmax_output(p: SoftmaxOutputParams, data: Array, label: Array) -> Array:
    return _softmax_output_forward(p, data, label)[0]


def _softmax_output_forward(p: SoftmaxOutputParams, data: Array, label: Array) -> tuple[Array, tuple[Array, Array]]:
    x = widen(data).reshape(_folded(p, data.shape))
    out = jax.nn.softmax(x, axis=1).reshape(data.shape).astype(data.dtype)
    return out, (out, label)


def _softmax_output_backward(p: SoftmaxOutputParams, residuals: tuple[Array, Array], head: Array) -> tuple[Array, Any]:
    out, label = residuals
    if _is_distribution(out, label):
        grad = (widen(out) - widen(label)) * p.grad_scale
    else:
        grad = _index_gradient(p, out, label)
    if p.out_grad:
        grad = grad * widen(out if _OWN_OUTPUT() else head)
    return grad.astype(out.dtype), zero_cotangent(label)


def _index_gradient(p: SoftmaxOutputParams, out: Array, label: Array) -> Array:
    """(probability - target) * grad_scale / d for labels that are class indices."""
    outer, classes, *rest = folded = _folded(p, out.shape)
    inner = known_product(rest)
    if label.size < outer * inner:
        raise ShapeError(f"argument label: the gradient needs {outer * inner} class indices for data of shape "
                         f"{out.shape}, got {label.shape}")
    # MXNet: it asks for labels of shape data.shape[:-1] even where all classes of a sample are one softmax, and then
    # reads the first N of them. Give (N,) labels, or set preserve_shape.
    label = label.reshape(-1)[:outer * inner]
    x = widen(out).reshape(folded)
    index = label.reshape(outer, 1, *rest).astype(jnp.int32)
    alpha = 0.0 if p.multi_output and _UNSMOOTHED() else p.smooth_alpha
    on, off = 1.0 - alpha, alpha / max(classes - 1, 1)
    is_target = index_range(classes, 1, len(folded)) == index
    target = jnp.where(is_target, jnp.asarray(on, x.dtype), jnp.asarray(off, x.dtype))
    grad = x - target
    ignored = index == int(p.ignore_label)
    if p.use_ignore:
        grad = jnp.where(ignored, jnp.zeros((), x.dtype), grad)
    scale = p.grad_scale / (1 if p.normalization == "valid" else inner)
    return (grad * (scale / _label_count(p, outer, ignored, x.dtype))).reshape(out.shape)


def _label_count(p: SoftmaxOutputParams, batch: int, ignored: Array, dtype: Any) -> Array | int:
    if p.normalization == "null":
        return 1
    if p.normalization == "batch":
        return batch
    return jnp.maximum((~ignored).sum(dtype=jnp.int32), 1).astype(dtype)


_softmax_output.defvjp(_softmax_output_forward, _softmax_output_backward)


def _infer_softmax_label(p: SoftmaxOutputParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    data, label = ins
    if not data or len(data) < 2 or (label is not None and label == data):
        return ins
    if not p.multi_output:
        return ins if label == data[:1] else [data, data[:-1]]
    accepted = [(data[0], known_product(data[2:])), (data[0], *data[2:]), (data[0], 1, *data[2:])]
    return ins if label in accepted else [data, accepted[0]]


@op("SoftmaxOutput", aliases=("Softmax",), params=SoftmaxOutputParams, is_loss=True,
    infer_inputs=_infer_softmax_label)
def softmax_output(p: SoftmaxOutputParams, data: Array, label: Array) -> Array:
    """Softmax whose gradient is that of the cross entropy with `label`, whatever head gradient comes.

    The softmax runs over axis 1 of 2-D data, axis 1 with multi_output, the last axis with preserve_shape, otherwise
    over all but axis 0. The gradient of data is `(p - target) * grad_scale / d`, with target 1 - smooth_alpha at the
    label and smooth_alpha / (classes - 1) elsewhere. d is 1 (null), the batch size (batch) or the number of labels not
    equal to ignore_label, at least 1 (valid); multi_output multiplies null and batch by the cells per sample, and with
    preserve_shape the batch is every row.

    label is (N,) for (N, C) data; (N, cells) or (N, cells…) with multi_output; data.shape[:-1] with preserve_shape; or
    of data's shape, then it holds target probabilities and only grad_scale applies. Its gradient is 0.

    With out_grad the gradient is multiplied by the head gradient, as MXNet documents but does not do.
    """
    check = data.ndim >= 2 or not p.multi_output
    if not check:
        check_rank("data", data.shape, (2, 3, 4, 5), "multi_output")
    return _softmax_output(p, data, label)


# ---- regression


class RegressionParams(Params):
    grad_scale: float = param(1.0, doc="Factor of the gradient.")


def _infer_regression_label(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    data, label = ins
    if not data or (label is not None and label != data and _same_cells(data, label)):
        return ins
    return [data, data[:1] if len(data) == 2 and data[1] == 1 and not label else data]


def _same_cells(data: tuple[int, ...], label: tuple[int, ...]) -> bool:
    if 0 in data or 0 in label or not label:
        return bool(label) and len(label) != len(data)
    return label[0] == data[0] and math.prod(label) == math.prod(data)


_Elementwise = Callable[[Array], Array]


def _regression(name: str, doc: str, forward: _Elementwise, residual: _Elementwise) -> None:
    """Registers an output layer of `forward(data)` with the gradient `residual(out - label)`."""

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def apply(p: RegressionParams, data: Array, label: Array) -> Array:
        return forward(data)

    def run(p: RegressionParams, data: Array, label: Array) -> tuple[Array, tuple[Array, Array]]:
        out = forward(data)
        return out, (out, label)

    def backward(p: RegressionParams, residuals: tuple[Array, Array], head: Array) -> tuple[Array, Any]:
        out, label = residuals
        cells = max(label.size // max(label.shape[0], 1), 1) if label.ndim else 1
        error = residual(widen(out) - widen(label).reshape(out.shape))
        return (error * (p.grad_scale / cells)).astype(out.dtype), zero_cotangent(label)

    apply.defvjp(run, backward)

    def rule(p: RegressionParams, data: Array, label: Array) -> Array:
        if label.shape != data.shape and (label.size != data.size or label.shape[:1] != data.shape[:1]):
            raise ShapeError(f"argument label: expected the shape of data, {data.shape}, got {label.shape}")
        return apply(p, data, label)

    rule.__doc__ = doc
    op(name, aliases=(f"_sparse_{name}",), params=RegressionParams, is_loss=True,
       infer_inputs=_infer_regression_label)(rule)


def _sign(d: Array) -> Array:
    # MXNet: -1 where the error is 0.
    return jnp.where(d > 0, jnp.ones((), d.dtype), -jnp.ones((), d.dtype))


_GRADIENT = """The gradient of data is `{0} * grad_scale / m`, m the label cells per sample, whatever head gradient
comes. label has data's shape; (N,) is taken for (N, 1). Its gradient is 0."""

_regression("LinearRegressionOutput", "The identity, with the gradient of the squared error.\n\n"
            + _GRADIENT.format("(out - label)"), lambda x: x, lambda d: d)
_regression("LogisticRegressionOutput", "The sigmoid, with the gradient of the logistic loss.\n\n"
            + _GRADIENT.format("(out - label)"), lax.logistic, lambda d: d)
_regression("MAERegressionOutput", "The identity, with the gradient of the absolute error.\n\n"
            + _GRADIENT.format("sign(out - label)"), lambda x: x, _sign)


# ---- support vector machine


class SVMOutputParams(Params):
    margin: float = param(1.0, doc="Margin of the hinge.")
    regularization_coefficient: float = param(1.0, doc="Factor of the gradient.")
    use_linear: bool = param(False, doc="The hinge itself instead of its square.")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _svm_output(p: SVMOutputParams, data: Array, label: Array) -> Array:
    return data


def _svm_forward(p: SVMOutputParams, data: Array, label: Array) -> tuple[Array, tuple[Array, Array]]:
    return data, (data, label)


def _svm_backward(p: SVMOutputParams, residuals: tuple[Array, Array], head: Array) -> tuple[Array, Any]:
    data, label = residuals
    x = widen(data).reshape(-1, data.shape[-1])
    hit = index_range(x.shape[1], 1, 2) == label.reshape(-1, 1).astype(jnp.int32)
    sign = jnp.where(hit, jnp.asarray(-1, x.dtype), jnp.asarray(1, x.dtype))
    room = p.margin + sign * x
    slope = (room > 0).astype(x.dtype) if p.use_linear else 2 * jnp.maximum(room, 0)
    grad = sign * slope * p.regularization_coefficient
    return grad.reshape(data.shape).astype(data.dtype), zero_cotangent(label)


_svm_output.defvjp(_svm_forward, _svm_backward)


def _infer_svm_label(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    return [ins[0], ins[0][:-1] if ins[0] else ins[1]]


@op("SVMOutput", params=SVMOutputParams, is_loss=True, infer_inputs=_infer_svm_label)
def svm_output(p: SVMOutputParams, data: Array, label: Array) -> Array:
    """The identity, with the gradient of a one-against-all hinge loss, whatever head gradient comes.

    With t = 1 for the label's class and -1 for the others, the gradient is `-2 t max(margin - t x, 0) c`, or
    `-t [margin > t x] c` with use_linear, c the regularization_coefficient. data is (…, C), label data.shape[:-1].
    """
    return _svm_output(p, data, label)


# ---- MakeLoss and the sparseness penalty


class MakeLossParams(Params):
    grad_scale: float = param(1.0, doc="The gradient.")
    valid_thresh: float = param(0.0, doc="Entries above it count for normalization valid.")
    normalization: Literal["batch", "null", "valid"] = param("null", doc="What the gradient is divided by.")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _make_loss(p: MakeLossParams, data: Array) -> Array:
    return data


def _make_loss_forward(p: MakeLossParams, data: Array) -> tuple[Array, Array]:
    return data, data


def _make_loss_backward(p: MakeLossParams, data: Array, head: Array) -> tuple[Array]:
    x, count = widen(data), 1
    if p.normalization == "batch":
        # MXNet: the batch is every axis but the last.
        count = max(math.prod(data.shape[:-1]), 1)
    elif p.normalization == "valid":
        count = jnp.maximum((x > p.valid_thresh).sum(dtype=jnp.int32), 1).astype(x.dtype)
    scale = jnp.asarray(p.grad_scale, x.dtype) / count
    return (jnp.broadcast_to(scale, data.shape).astype(data.dtype),)


_make_loss.defvjp(_make_loss_forward, _make_loss_backward)


@op("MakeLoss", params=MakeLossParams, is_loss=True)
def make_loss(p: MakeLossParams, data: Array) -> Array:
    """The identity, marking `data` as a loss: its gradient is `grad_scale / d`, whatever head gradient comes.

    d is 1 (null), the product of all axes but the last (batch), or the number of entries above valid_thresh, at least
    1 (valid).
    """
    return _make_loss(p, data)


class KLSparseRegParams(Params):
    sparseness_target: float = param(0.1, gt=0, doc="The wanted mean activation.")
    penalty: float = param(1e-3, doc="Weight of the penalty.")
    momentum: float = param(0.9, ge=0, doc="Weight of the old value in the moving average.")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _kl_sparse(p: KLSparseRegParams, data: Array, average: Array) -> Array:
    return data


def _kl_sparse_forward(p: KLSparseRegParams, data: Array, average: Array) -> tuple[Array, Array]:
    return data, average


def _kl_sparse_backward(p: KLSparseRegParams, average: Array, head: Array) -> tuple[Array, Array]:
    target = p.sparseness_target
    slope = p.penalty * ((1 - target) / (1 - average) - target / average)
    wide = slope.reshape(1, -1, *(1,) * (head.ndim - 2))
    return (widen(head) + widen(wide)).astype(head.dtype), jnp.zeros_like(average)


_kl_sparse.defvjp(_kl_sparse_forward, _kl_sparse_backward)


def _infer_average(p: Any, ins: list[ShapeLike], outs: list[ShapeLike]) -> Sequence[ShapeLike]:
    return [ins[0], ins[0][1:2] if ins[0] and len(ins[0]) > 1 else ins[1]]


@op("IdentityAttachKLSparseReg", params=KLSparseRegParams, aux=("moving_avg",), infer_inputs=_infer_average,
    input_attrs={"moving_avg": {"__init__": '["zero", {}]'}})
def identity_attach_kl_sparse_reg(p: KLSparseRegParams, data: Array, moving_avg: Array, *,
                                  train: bool) -> tuple[Array, Array]:
    """The identity, adding the gradient of a Kullback-Leibler penalty on the mean activation of each unit.

    In training moving_avg (C,) becomes `a = momentum * moving_avg + (1 - momentum) * mean of data over all but axis 1`
    and `penalty * ((1 - t) / (1 - a) - t / a)` is added to the head gradient, t the sparseness_target. data holds
    activations in (0, 1), e.g. of a sigmoid.
    """
    average = moving_avg
    if train:
        mean = widen(data).mean(tuple(i for i in range(data.ndim) if i != 1))
        average = lax.stop_gradient((p.momentum * moving_avg + (1 - p.momentum) * mean).astype(moving_avg.dtype))
    return _kl_sparse(p, data, average), average
