"""Operators of MXNet's forks and plug-ins: against their meaning in plain NumPy, and in the files that hold them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax.lowering import registry
from symjax.lowering.errors import MissingLoweringError
from tests.test_zoo import ZOO, needs_zoo

RNG = np.random.RandomState(0)


def bound(s: mx.Symbol, arrays: dict[str, Any], **kwargs: Any) -> mx.Executor:
    shapes = {k: np.shape(v) for k, v in arrays.items()}
    e = s.simple_bind(mx.cpu(), **shapes, **kwargs)
    for k, v in arrays.items():
        e.arg_dict[k][:] = v
    return e


def gradient(e: mx.Executor) -> np.ndarray:
    """The gradient of the first argument."""
    found = e.grad_arrays[0]
    assert found is not None
    return found.asnumpy()


def test_they_say_where_they_are_from() -> None:
    found = {o.name: o.origin for o in registry.all_ops() if o.origin}
    assert {"WarpCTC", "ChannelwiseConvolution", "CuDNNBatchNorm", "QActivation", "QConvolution", "QFullyConnected",
            "MoonOutput"} <= set(found)  # fmt: skip
    assert found["QConvolution"] == "BMXNet"


def test_convolution_and_batch_norm_by_other_names() -> None:
    x, w = RNG.randn(2, 3, 5, 5).astype("float32"), RNG.randn(3, 1, 3, 3).astype("float32")
    kw = {"kernel": (3, 3), "num_filter": 3, "num_group": 3, "no_bias": True}
    a, b = (getattr(mx.nd, n)(mx.nd.array(x), mx.nd.array(w), **kw) for n in ("ChannelwiseConvolution", "Convolution"))
    np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    s = mx.sym.CuDNNBatchNorm(mx.sym.var("x"), fix_gamma=False, name="bn")
    assert s.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    e = bound(s, {"x": x})
    e.arg_dict["bn_gamma"][:] = 2
    got, mean, spread = e.forward(is_train=True)[0].asnumpy(), x.mean((0, 2, 3)), x.var((0, 2, 3))
    want = 2 * (x - mean[:, None, None]) / np.sqrt(spread + 1e-3)[:, None, None]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


# ---- WarpCTC


def loss_of_all_paths(y: np.ndarray, label: list[int]) -> float:
    """-log of the summed probability of every path (T steps) that reads as `label`; 0 is the blank."""
    total = 0.0
    for path in itertools.product(range(y.shape[1]), repeat=len(y)):
        read = [k for k, _ in itertools.groupby(path) if k != 0]
        if read == label:
            total += np.prod([y[t, k] for t, k in enumerate(path)])
    return -np.log(total)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_warp_ctc() -> None:
    steps, batch, classes = 4, 2, 3
    x = RNG.randn(steps * batch, classes)
    labels = [[1, 2], [2]]
    s = mx.sym.WarpCTC(mx.sym.var("x"), mx.sym.var("label"), label_length=3, input_length=steps)
    assert s.infer_shape(x=x.shape)[0] == [x.shape, (6,)] and s.infer_type(x="float32")[0][1] == np.int32
    e = bound(s, {"x": x}, type_dict={"x": "float64"}, grad_req={"x": "write", "label": "null"})
    e.arg_dict["label"][:] = [1, 0, 2, 0, 0, 2]  # blanks are left out wherever they stand
    np.testing.assert_allclose(e.forward(is_train=True)[0].asnumpy(), softmax(x))
    e.backward()

    def total(x: np.ndarray) -> float:
        y = softmax(x).reshape(steps, batch, classes)
        return sum(loss_of_all_paths(y[:, n], label) for n, label in enumerate(labels))

    want = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][i] += 1e-5
        moved[1][i] -= 1e-5
        want[i] = (total(moved[0]) - total(moved[1])) / 2e-5
    np.testing.assert_allclose(gradient(e), want, atol=1e-7)


# ---- BMXNet


def signs(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, 1.0, -1.0)


def test_q_activation() -> None:
    x = np.array([-1.5, -0.4, 0.0, 0.3, 2.0], "float32")
    for params, want in (({}, signs(x)), ({"backward_only": True}, x), ({"act_bit": 32}, x),
                         ({"act_bit": 2}, np.round(np.clip(x, 0, 1) * 3) / 3)):  # fmt: skip
        a = mx.nd.array(x)
        a.attach_grad()
        with mx.autograd.record():
            y = mx.nd.QActivation(a, **params)
        y.backward()
        np.testing.assert_allclose(y.asnumpy(), want, rtol=1e-6)
        inside = {1: abs(x) <= 1, 2: (x >= 0) & (x <= 1), 32: x == x}[params.get("act_bit", 1)]
        got = a.grad.asnumpy()
        at_the_edge = x == 0
        assert (got[~at_the_edge] == inside[~at_the_edge]).all()


def pack(bits: np.ndarray) -> np.ndarray:
    """(n, 32) of 1 and -1 to n words, kept in the bits of float32."""
    words = ((bits > 0).astype("uint64") << np.arange(32, dtype="uint64")).sum(1).astype("uint32")
    return words.view("float32")


def test_q_convolution_counts_agreeing_signs() -> None:
    x, w = RNG.randn(2, 8, 5, 5).astype("float32"), RNG.randn(4, 8, 2, 2).astype("float32")
    want = np.zeros((2, 4, 4, 4))
    for i, j in np.ndindex(4, 4):
        patch = signs(x[:, None, :, i:i + 2, j:j + 2])
        want[:, :, i, j] = (patch == signs(w)[None]).sum((2, 3, 4))
    kw = {"kernel": (2, 2), "num_filter": 4}
    full = mx.nd.QConvolution(mx.nd.array(x), mx.nd.array(w), **kw)
    np.testing.assert_allclose(full.asnumpy(), want)
    packed = pack(signs(w).reshape(-1, 32))
    s = mx.sym.QConvolution(mx.sym.var("x"), binarized_weights_only=True, name="q", **kw)
    assert s.infer_shape(x=x.shape) == ([x.shape, (4,)], [(2, 4, 4, 4)], [])
    e = s.bind(mx.cpu(), {"x": mx.nd.array(x), "q_weight": mx.nd.array(packed)})
    np.testing.assert_allclose(e.forward()[0].asnumpy(), want)
    scaled = mx.nd.QConvolution(mx.nd.array(x), mx.nd.array(w), scaling_factor=True, **kw).asnumpy()
    np.testing.assert_allclose(scaled, want * abs(w).reshape(4, -1).mean(1)[:, None, None], rtol=1e-5)


def test_q_fully_connected() -> None:
    x, w = RNG.randn(3, 64).astype("float32"), RNG.randn(5, 64).astype("float32")
    want = (signs(x)[:, None] == signs(w)[None]).sum(-1)
    np.testing.assert_allclose(mx.nd.QFullyConnected(mx.nd.array(x), mx.nd.array(w), num_hidden=5).asnumpy(), want)
    packed = pack(signs(w).reshape(5, 2, 32).transpose(1, 0, 2).reshape(-1, 32))
    got = mx.nd.QFullyConnected(mx.nd.array(x), mx.nd.array(packed), num_hidden=5, binarized_weights_only=True)
    np.testing.assert_allclose(got.asnumpy(), want)
    two = mx.nd.QFullyConnected(mx.nd.array(x), mx.nd.array(w), num_hidden=5, act_bit=2).asnumpy()
    squashed = np.tanh(w) / (2 * abs(np.tanh(w)).max()) + 0.5
    levels = 2 * np.round(squashed * 3) / 3 - 1
    np.testing.assert_allclose(two, np.round(np.clip(x, 0, 1) * 3) / 3 @ levels.T, rtol=1e-4, atol=1e-5)


@needs_zoo
def test_bmxnet_reads_digits() -> None:
    """Trained packed weights tell digits of another data set: wrong bits or signs would leave it guessing."""
    cv2 = pytest.importorskip("cv2")
    data = np.load(Path(mx.__file__).parent / "data" / "digits.npz")
    small, labels = data["test_images"].astype("float32") / 16, data["test_labels"]
    images = np.stack([np.pad(cv2.resize(i, (20, 20), interpolation=2).clip(0, 1), 4) for i in small])[:, None]
    s = mx.sym.load(ZOO / "bmxnet_mnist" / "bmxnet_mnist-symbol.json")
    e = s.simple_bind(mx.cpu(), grad_req="null", data=images.shape)
    for name, value in mx.nd.load(str(ZOO / "bmxnet_mnist" / "bmxnet_mnist-0001.params")).items():
        kind, _, name = name.partition(":")
        (e.arg_dict if kind == "arg" else e.aux_dict)[name][:] = value
    e.arg_dict["data"][:] = images
    assert (e.forward()[0].asnumpy().argmax(1) == labels).mean() > 0.6


# ---- MOON, and the files


def test_moon_output() -> None:
    s = mx.sym.MoonOutput(mx.sym.var("x"), mx.sym.var("y"), src_dist_path="./src_dict.txt")
    e = bound(s, {"x": np.ones((2, 3)), "y": np.zeros((2, 3))}, grad_req="null")
    assert (e.forward()[0].asnumpy() == 1).all()
    e = bound(s, {"x": np.ones((2, 3)), "y": np.zeros((2, 3))})
    with pytest.raises(MissingLoweringError, match="MoonOutput has no gradient"):
        e.forward(is_train=True)
        e.backward()
        gradient(e)


@needs_zoo
def test_warp_ctc_file_runs() -> None:
    """A bidirectional LSTM over 32 columns of a picture: its probabilities are finite and sum to 1."""
    s = mx.sym.load(ZOO / "crnn_digit_warpctc" / "crnn_digit_warpctc-symbol.json")
    states = {n: (1, 128) for n in s.list_arguments() if "_init_" in n}
    e = s.simple_bind(mx.cpu(), grad_req="null", data=(1, 3, 32, 256), label=(1, 24), **states)
    for name, a in e.arg_dict.items():
        a[:] = np.random.RandomState(len(name)).randn(*a.shape) * 0.1
    out = e.forward()[0].asnumpy()
    assert out.shape == (32, 11)
    np.testing.assert_allclose(out.sum(1), 1, rtol=1e-5)


@needs_zoo
def test_proposals_of_faster_rcnn() -> None:
    """The Custom operator `proposal` gives what `_contrib_Proposal` gives."""
    s = mx.sym.load(ZOO / "frcnn_face_r50" / "frcnn_face_r50-symbol.json")
    assert s.list_outputs()[0] == "rpn_rois_output"
    assert s.infer_shape(data=(1, 3, 128, 160), im_info=(1, 3))[1][0] == (300, 5)
    probs, deltas = RNG.uniform(0, 1, (1, 24, 3, 4)), RNG.uniform(-0.3, 0.3, (1, 48, 3, 4))
    arrays = [mx.nd.array(v) for v in (probs, deltas, [[48, 64, 1]])]
    common = {"scales": (4, 8, 16, 32), "ratios": (0.5, 1, 2), "rpn_post_nms_top_n": 20, "output_score": True}
    got = mx.nd.Custom(*arrays, op_type="proposal", feat_stride=16, is_train=False, **common)
    want = mx.nd.contrib.Proposal(*arrays, feature_stride=16, **common)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    with pytest.raises(mx.MXNetError, match="has no parameter 'zoom'"):
        mx.nd.Custom(*arrays, op_type="proposal", zoom=2)
