"""Rules that are written anew for the CPU compute what the operator's own rule does, derivatives included."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax.lowering import cpu
from symjax.lowering.ops.rnn import parameter_size
from symjax.lowering.registry import get

CONVOLUTION = {"num_filter": "6", "no_bias": "True"}
CASES: list[tuple[str, dict[str, str], list[tuple[int, ...]]]] = [
    ("Convolution", {**CONVOLUTION, "kernel": "(1, 1)"}, [(2, 4, 12, 13), (6, 4, 1, 1)]),
    ("Convolution", {**CONVOLUTION, "kernel": "(1, 1)", "stride": "(2, 1)"}, [(2, 4, 5, 4), (6, 4, 1, 1)]),
    ("Convolution", {**CONVOLUTION, "kernel": "(1, 1)", "layout": "NHWC"}, [(2, 5, 4, 3), (6, 1, 1, 3)]),
    ("Convolution", {**CONVOLUTION, "kernel": "(3, 2, 3)", "pad": "(1, 1, 0)", "stride": "(2, 1, 1)"},
     [(2, 4, 7, 6, 8), (6, 4, 3, 2, 3)]),
    ("Convolution", {**CONVOLUTION, "kernel": "(2, 3, 3)", "dilate": "(2, 1, 1)", "layout": "NDHWC"},
     [(2, 7, 6, 8, 3), (6, 2, 3, 3, 3)]),
    ("Convolution", {**CONVOLUTION, "kernel": "(3, 3)", "num_group": "6", "stride": "(2, 1)", "pad": "(1, 1)"},
     [(3, 6, 7, 8), (6, 1, 3, 3)]),
    ("Pooling", {"kernel": "(3, 3)", "stride": "(2, 2)", "pad": "(1, 1)"}, [(2, 3, 7, 8)]),
    ("Pooling", {"kernel": "(2, 2)", "stride": "(3, 3)"}, [(2, 3, 8, 7)]),
    ("Pooling", {"kernel": "(5, 4)", "pooling_convention": "full", "stride": "(2, 1)"}, [(2, 3, 8, 7)]),
    ("Pooling", {"kernel": "(3,)", "layout": "NWC"}, [(2, 9, 3)]),
    ("_contrib_AdaptiveAvgPooling2D", {"output_size": "(3, 4)"}, [(2, 3, 7, 8)]),
    ("Correlation", {"max_displacement": "4", "stride2": "2", "pad_size": "4", "kernel_size": "1"}, [(2, 3, 9, 8)] * 2),
    ("Correlation", {"max_displacement": "2", "stride1": "2", "pad_size": "3", "kernel_size": "3"}, [(1, 3, 9, 8)] * 2),
    ("FullyConnected", {"num_hidden": "16384", "flatten": "False"}, [(2, 3, 2), (16384, 2), (16384,)]),
    ("FullyConnected", {"num_hidden": "5"}, [(3, 2, 4), (5, 8), (5, 1)]),
    ("broadcast_add", {}, [(3, 2, 8192), (1, 2, 8192)]),
    ("broadcast_mul", {}, [(1, 1, 2, 8192), (2, 3, 2, 8192)]),
    ("_npi_multiply", {}, [(2, 8192), (3, 2, 8192)]),
    ("tile", {"reps": "(3, 1)"}, [(2, 16384)]),
    ("sum", {"axis": "(0, 1)"}, [(3, 2, 16384)]),
    ("sum", {"axis": "0", "keepdims": "True"}, [(3, 16384)]),
]  # fmt: skip


def _first(out: Any) -> jax.Array:
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize(("name", "attrs", "shapes"), CASES)
def test_cpu_form(name: str, attrs: dict[str, str], shapes: list[tuple[int, ...]]) -> None:
    op = get(name)
    p = op.params.parse(attrs)
    rng = np.random.RandomState(0)
    args = [jnp.asarray(rng.uniform(-1, 1, s), jnp.float32) for s in shapes]
    tangents = [jnp.asarray(rng.uniform(-1, 1, s), jnp.float32) for s in shapes]
    fast = op.rule_for(p, args, "cpu")
    assert fast is not op.rule
    own, own_tangent = jax.jvp(lambda *xs: _first(op.rule(p, *xs)), args, tangents)
    np.testing.assert_allclose(_first(fast(p, *args)), own, rtol=1e-5, atol=1e-5)
    if "num_group" not in attrs:  # that form has a gradient of its own and no tangents
        _, tangent = jax.jvp(lambda *xs: _first(fast(p, *xs)), args, tangents)
        np.testing.assert_allclose(tangent, own_tangent, rtol=1e-5, atol=1e-5)
    head = jnp.asarray(rng.uniform(-1, 1, own.shape), jnp.float32)
    expected = jax.vjp(lambda *xs: _first(op.rule(p, *xs)), *args)[1](head)
    got = jax.jit(lambda h, *xs: jax.vjp(lambda *ys: _first(fast(p, *ys)), *xs)[1](h))(head, *args)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_first_of_equal_maxima() -> None:
    p = get("Pooling").params.parse({"kernel": "(3, 3)", "stride": "(2, 2)"})
    x = jnp.asarray([[[[1, 2, 2], [2, 0, np.nan], [2, 2, 1]]]], jnp.float32)
    fast = get("Pooling").rule_for(p, [x], "cpu")
    (grad,) = jax.vjp(lambda x: fast(p, x), x)[1](jnp.ones((1, 1, 1, 1), jnp.float32))
    assert grad.ravel().tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0]


def test_options_of_convolutions() -> None:
    x = mx.sym.var("data")
    net, other = mx.sym.Convolution(x, kernel=(3, 3), num_filter=4), mx.sym.tanh(x)
    assert cpu.compiler_options(net._graph, "tpu") is None
    assert cpu.compiler_options(other._graph, "cpu") is None
    assert bool(cpu.compiler_options(net._graph, "cpu")) == cpu._accepted()


def test_missing_values_stay_in_their_bins() -> None:
    op = get("_contrib_AdaptiveAvgPooling2D")
    p = op.params.parse({"output_size": "(2, 2)"})
    x = np.ones((1, 1, 4, 4), np.float32)
    x[0, 0, 0, 0], x[0, 0, 3, 3] = np.nan, np.inf
    out = op.rule_for(p, [x], "cpu")(p, jnp.asarray(x))
    np.testing.assert_array_equal(out[0, 0], [[np.nan, 1], [1, np.inf]])


@pytest.mark.parametrize("shape", [(3, 4), (64, 1000), (3, 4, 500)])
@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("name", ["max", "min"])
def test_a_missing_value_is_the_extreme(name: str, axis: int | None, shape: tuple[int, ...]) -> None:
    x = np.random.RandomState(0).uniform(-1, 1, shape).astype("float32")
    x.reshape(-1)[:: x.size // 3] = np.nan
    given = {} if axis is None else {"axis": axis}
    expected = np.atleast_1d(getattr(np, name)(x, axis=axis))
    np.testing.assert_array_equal(getattr(mx.nd, name)(mx.nd.array(x), **given).asnumpy(), expected)
    np.testing.assert_array_equal(getattr(mx.np, name)(mx.np.array(x), axis=axis).asnumpy().reshape(-1),
                                  expected.reshape(-1))  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(7, 600), (5, 1000), (2, 3, 521), (1, 10007), (4, 512)])
def test_argmax_by_blocks(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.RandomState(0)
    ties = rng.randint(0, 40, shape)
    missing, infinite = ties.astype(dtype), np.full(shape, -np.inf, dtype)
    missing[..., shape[-1] // 2 :: 37] = np.nan
    infinite[..., 300] = 1
    zeros = np.where(rng.rand(*shape) < 0.5, 0.0, -0.0).astype(dtype)
    rising = np.broadcast_to(np.arange(shape[-1]), shape)
    for case in (rng.randn(*shape), ties, missing, infinite, np.full(shape, -np.inf), zeros, rising):
        x = case.astype(dtype)
        got = mx.nd.argmax(mx.nd.array(x, dtype=dtype), axis=-1).asnumpy()
        np.testing.assert_array_equal(got, x.argmax(-1).astype(dtype))


@pytest.mark.parametrize(("dtype", "steps", "tolerance"), [("float32", 1, 1e-5), ("float64", 4, 1e-12),
                                                           ("bfloat16", 4, 5e-2)])  # fmt: skip
def test_lstm_in_place(dtype: str, steps: int, tolerance: float) -> None:
    """Both directions and the final states; the gradients of everything, and of those again."""
    op = get("RNN")
    p: Any = op.params.parse({"state_size": "3", "num_layers": "1", "mode": "lstm", "bidirectional": "True",
                              "state_outputs": "True"})  # fmt: skip
    rng = np.random.RandomState(0)
    shapes = [(steps, 2, 4), (parameter_size(p, 4),), (2, 2, 3), (2, 2, 3)]
    with jax.enable_x64(dtype == "float64"):
        args = [jnp.asarray(rng.uniform(-1, 1, s), dtype) for s in shapes]
        fast = op.rule_for(p, args, "cpu")
        assert fast is not op.rule

        def total(rule: Any, *xs: jax.Array) -> Any:
            outs = [o.astype(jnp.promote_types(dtype, "float32")) for o in rule(p, *xs, train=True, key=None)]
            return sum(jnp.sum(jnp.sin(o) * (1 + k)) for k, o in enumerate(outs))

        def slope(rule: Any, *xs: jax.Array) -> Any:
            grads = jax.grad(total, argnums=(1, 2, 3, 4))(rule, *xs)
            return sum(jnp.sum(jnp.cos(g) * (1 + k)) for k, g in enumerate(grads))

        f = jax.jit(jax.value_and_grad(slope if dtype == "float64" else total, argnums=(1, 2, 3, 4)), static_argnums=0)
        for a, b in zip(jax.tree.leaves(f(fast, *args)), jax.tree.leaves(f(op.rule, *args)), strict=True):
            assert a.dtype == b.dtype
            a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


def test_no_loop_of_an_lstm_copies_all_steps() -> None:
    """Each step reads and writes one row of the arrays that hold all: a copy of one would show in the compiled loop."""
    op = get("RNN")
    p: Any = op.params.parse({"state_size": "8", "num_layers": "1", "mode": "lstm"})
    args = [jnp.zeros(s, jnp.float32) for s in ((50, 4, 6), (parameter_size(p, 6),), (1, 4, 8), (1, 4, 8))]
    fast = op.rule_for(p, args, "cpu")

    def total(*xs: jax.Array) -> jax.Array:
        return jnp.sum(fast(p, *xs, train=True, key=None))

    text = jax.jit(jax.grad(total, argnums=(0, 1))).lower(*args).compile().as_text() or ""
    inside = re.split(r"^ENTRY ", text, flags=re.MULTILINE)[0]
    assert inside.count("f32[50,4,32]") > 4
    assert not re.findall(r"f32\[50,4,(?:32|8)\]\S* copy\(", inside)
