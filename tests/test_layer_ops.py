"""Layer ops beyond what MXNet on CPU can be asked: layouts, half precision, random masks, ties, higher derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symjax.lowering import registry
from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops.rnn import RNNParams, parameter_size, rnn

KEY = jax.random.key(0)


def call(name: str, attrs: dict[str, str], *inputs: Any, **asked: Any) -> Any:
    """Runs a rule, passing on what it asks for of `train` and `key`."""
    op = registry.get(name)
    asked = {k: v for k, v in {"train": False, "key": KEY, **asked}.items() if k in op.asks}
    with jax.enable_x64(True):
        params = op.params.parse(attrs, name)
        return jax.jit(lambda *args: op(params, *args, **asked))(*inputs)


def draw(*shape: int, seed: int = 0, dtype: str = "float32") -> jax.Array:
    return jnp.asarray(np.random.RandomState(seed).standard_normal(shape).astype(dtype))


def last(x: Any) -> jax.Array:
    return jnp.moveaxis(x, 1, -1)


def first(x: Any) -> jax.Array:
    return jnp.moveaxis(x, -1, 1)


WINDOWS: list[dict[str, str]] = [
    {"kernel": "(3, 2)", "stride": "(2, 1)", "pad": "(1, 0)"},
    {"kernel": "(3, 2)", "num_group": "2", "dilate": "(1, 2)"},
]


@pytest.mark.parametrize("attrs", WINDOWS, ids=["stride", "groups"])
@pytest.mark.parametrize("op", ["Convolution", "Deconvolution"])
def test_channels_last_convolution_is_the_transposed_channels_first(op: str, attrs: dict[str, str]) -> None:
    attrs = {**attrs, "num_filter": "6", "no_bias": "False"}
    groups = int(attrs.get("num_group", 1))
    weight = draw(6, 4 // groups, 3, 2, seed=1) if op == "Convolution" else draw(4, 6 // groups, 3, 2, seed=1)
    data, bias = draw(2, 4, 7, 8), draw(6, seed=2)

    def run(layout: str, *args: jax.Array) -> jax.Array:
        return (call(op, {**attrs, "layout": layout}, *args) ** 2).sum()

    want = call(op, {**attrs, "layout": "NCHW"}, data, weight, bias)
    np.testing.assert_allclose(first(call(op, {**attrs, "layout": "NHWC"}, last(data), last(weight), bias)), want,
                               rtol=1e-5, atol=1e-5)
    grads = jax.grad(run, (1, 2, 3))("NCHW", data, weight, bias)
    turned = jax.grad(run, (1, 2, 3))("NHWC", last(data), last(weight), bias)
    for a, b in zip(grads, (first(turned[0]), first(turned[1]), turned[2]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["Convolution", "Deconvolution"])
def test_ndhwc(op: str) -> None:
    attrs = {"kernel": "(2, 2, 2)", "num_filter": "3", "no_bias": "True", "stride": "(2, 1, 1)"}
    weight = draw(3, 2, 2, 2, 2) if op == "Convolution" else draw(2, 3, 2, 2, 2)
    data = draw(1, 2, 4, 3, 5)
    got = call(op, {**attrs, "layout": "NDHWC"}, last(data), last(weight))
    np.testing.assert_allclose(first(got), call(op, attrs, data, weight), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_sums_in_float32(dtype: str) -> None:
    ones = jnp.ones((1, 5000), dtype)
    assert float(call("FullyConnected", {"num_hidden": "1", "no_bias": "1"}, ones, ones)[0, 0]) == pytest.approx(
        5000, rel=1e-2)
    image = jnp.ones((1, 1, 70, 70), dtype)
    total = call("Pooling", {"kernel": "(70, 70)", "pool_type": "sum"}, image)
    assert total.dtype == dtype
    assert float(total[0, 0, 0, 0]) == pytest.approx(4900, rel=1e-2)
    assert float(call("Pooling", {"global_pool": "1", "pool_type": "avg"}, image)[0, 0, 0, 0]) == 1
    probability = call("softmax", {}, jnp.zeros((4096,), dtype))
    assert float(probability.astype(jnp.float32).sum()) == pytest.approx(1, rel=1e-2)
    conv = call("Convolution", {"kernel": "(70, 70)", "num_filter": "1", "no_bias": "1"}, image, image)
    assert float(conv[0, 0, 0, 0]) == pytest.approx(4900, rel=1e-2)


@pytest.mark.parametrize("kernel", ["(2, 2)", "(5, 4)"], ids=["one_stage", "by_axis"])
def test_max_pooling_gradient_goes_to_the_first_maximum(kernel: str) -> None:
    zeros = jnp.zeros((1, 1, 6, 6))
    grad = jax.grad(lambda x: call("Pooling", {"kernel": kernel}, x).sum())(zeros)
    out = call("Pooling", {"kernel": kernel}, zeros).shape
    expected = np.zeros(zeros.shape)
    expected[:, :, :out[2], :out[3]] = 1  # the top left corner of each window
    np.testing.assert_array_equal(grad, expected)


def test_max_pooling_differentiates_twice_and_forward() -> None:
    x = draw(1, 1, 4, 4)

    def f(v: jax.Array) -> jax.Array:
        return (call("Pooling", {"kernel": "(2, 2)", "stride": "(2, 2)"}, v) ** 3).sum()

    hessian = jax.jacfwd(jax.grad(f))(x).reshape(16, 16)
    maxima = np.asarray(call("Pooling", {"kernel": "(2, 2)", "stride": "(2, 2)"}, x)).ravel()
    np.testing.assert_allclose(np.sort(np.diag(hessian)[np.diag(hessian) != 0]), np.sort(6 * maxima), rtol=1e-5)


def test_dropout_drops_the_right_share_and_scales() -> None:
    x = jnp.ones((400, 50))
    out, mask = call("Dropout", {"p": "0.3"}, x, train=True)
    np.testing.assert_array_equal(out, mask)
    assert set(np.unique(out).tolist()) == {0.0, float(np.float32(1 / 0.7))}
    assert float((out == 0).mean()) == pytest.approx(0.3, abs=0.02)
    other, _ = call("Dropout", {"p": "0.3"}, x, train=True, key=jax.random.key(1))
    assert bool((other != out).any())
    np.testing.assert_array_equal(call("Dropout", {"p": "0.3"}, x)[0], x)
    assert bool((call("Dropout", {"p": "0.3", "mode": "always"}, x)[0] == 0).any())
    np.testing.assert_array_equal(call("Dropout", {"p": "1"}, x, train=True)[0], 0 * x)


def test_dropout_axes_share_a_draw_and_gradient_uses_the_mask() -> None:
    x = draw(6, 5, 4) + 10
    out, mask = call("Dropout", {"p": "0.5", "axes": "(1,)"}, x, train=True)
    assert mask.shape == (6, 1, 4)
    np.testing.assert_allclose(out, x * mask, rtol=1e-6)
    grad = jax.grad(lambda v: call("Dropout", {"p": "0.5", "axes": "(1,)"}, v, train=True)[0].sum())(x)
    np.testing.assert_allclose(grad, jnp.broadcast_to(mask, x.shape), rtol=1e-6)


def test_rrelu_slopes_lie_between_the_bounds() -> None:
    x = -jnp.ones((50, 40))
    attrs = {"act_type": "rrelu", "lower_bound": "0.2", "upper_bound": "0.6"}
    out, slope = call("LeakyReLU", attrs, x, train=True)
    np.testing.assert_allclose(out, -slope)
    assert float(slope.min()) >= 0.2
    assert float(slope.max()) < 0.6
    assert float(slope.mean()) == pytest.approx(0.4, abs=0.01)
    np.testing.assert_allclose(call("LeakyReLU", attrs, x)[0], -0.4 * jnp.ones_like(x), rtol=1e-6)


def test_softmax_output_out_grad_multiplies_by_the_head() -> None:
    data, label = draw(3, 4), jnp.asarray([0.0, 2.0, 3.0])

    def grad(out_grad: str, head: jax.Array) -> jax.Array:
        return jax.vjp(lambda x: call("SoftmaxOutput", {"out_grad": out_grad}, x, label), data)[1](head)[0]

    head = draw(3, 4, seed=3)
    np.testing.assert_allclose(grad("True", head), grad("False", head) * head, rtol=1e-6)


def test_loss_layers_take_integer_labels() -> None:
    data, label = draw(3, 4), jnp.asarray([0, 2, 3], jnp.int32)
    for name in ("SoftmaxOutput", "SVMOutput", "softmax_cross_entropy"):
        grads = [jax.grad(lambda x, y=y, n=name: call(n, {}, x, y).sum())(data) for y in (label, label.astype(
            jnp.float32))]
        np.testing.assert_allclose(*grads, rtol=1e-6)


BAD: list[tuple[str, dict[str, str], Sequence[tuple[int, ...]], type[Exception], str]] = [
    ("Convolution", {"kernel": "(9, 1)", "num_filter": "1"}, [(1, 1, 4, 4), (1, 1, 9, 1), (1,)], ShapeError, "data"),
    ("Convolution", {"kernel": "(2, 2)", "num_filter": "3", "num_group": "2"}, [(1, 2, 4, 4), (3, 1, 2, 2), (3,)],
     ParamError, "num_filter"),
    ("Pooling", {"kernel": "(2,)"}, [(1, 1, 4, 4)], ShapeError, "data"),
    ("Pooling", {"kernel": "(2, 2)", "pool_type": "lp"}, [(1, 1, 4, 4)], ParamError, "p_value"),
    ("GroupNorm", {"num_groups": "3"}, [(1, 4, 4), (3,), (3,)], ShapeError, "num_groups"),
    ("LRN", {"nsize": "2"}, [(1, 4, 4, 4)], ParamError, "nsize"),
    ("softmax", {"axis": "2"}, [(3, 4)], ParamError, "axis"),
    ("LinearRegressionOutput", {}, [(3, 4), (4, 3)], ShapeError, "label"),
    ("_contrib_AdaptiveAvgPooling2D", {"output_size": "(0, 1)"}, [(1, 1, 4, 4)], ParamError, "output_size"),
]


@pytest.mark.parametrize(("op", "attrs", "shapes", "error", "word"), BAD, ids=[f"{b[0]}-{b[4]}" for b in BAD])
def test_errors_name_the_argument(op: str, attrs: dict[str, str], shapes: Sequence[tuple[int, ...]],
                                  error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        call(op, attrs, *(draw(*s) for s in shapes))


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "lstm", "gru"])
def test_recurrent_layers_have_derivatives_of_both_modes_and_of_second_order(mode: str) -> None:
    p = RNNParams(state_size=3, num_layers=1, bidirectional=True, mode=mode, state_outputs=True,  # type: ignore[arg-type]
                  use_sequence_length=True)  # fmt: skip
    rng = np.random.RandomState(3)
    shapes = [(3, 2, 2), (parameter_size(p, 2),), *[(2, 2, 3)] * (2 if mode == "lstm" else 1)]
    inputs = [rng.uniform(-1, 1, s) for s in shapes]
    lengths = np.array([3.0, 2.0])
    def total(inputs: list[Any]) -> Any:
        outs = rnn(p, *inputs, lengths, train=True, key=KEY)
        return sum(jnp.sum(jnp.sin(o) * (1 + k)) for k, o in enumerate(outs))

    with jax.enable_x64(True):
        direction = [rng.uniform(-1, 1, s) for s in shapes]
        above, below = ([x + e * d for x, d in zip(inputs, direction, strict=True)] for e in (1e-5, -1e-5))
        value, grad = jax.jit(total), jax.jit(jax.grad(total))
        _, slope = jax.jit(lambda x: jax.jvp(total, (x,), (direction,)))(inputs)
        _, bend = jax.jit(lambda x: jax.jvp(jax.grad(total), (x,), (direction,)))(inputs)
        np.testing.assert_allclose(slope, (value(above) - value(below)) / 2e-5, rtol=1e-7)
        reverse = sum(np.vdot(g, d) for g, d in zip(grad(inputs), direction, strict=True))
        np.testing.assert_allclose(reverse, slope, rtol=1e-12)
        for b, g, h in zip(bend, grad(above), grad(below), strict=True):
            np.testing.assert_allclose(b, (g - h) / 2e-5, rtol=1e-5, atol=1e-8)
