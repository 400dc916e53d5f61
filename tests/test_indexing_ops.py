"""What parity cannot show of the shape, indexing and sequence ops: half precision, errors, transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symjax.lowering import registry
from symjax.lowering.errors import MissingLoweringError, MXNetError, ShapeError
from symjax.lowering.ops._axes import read_rows
from symjax.lowering.ops.reshape import reshape_target


def rule(name: str, **attrs: Any) -> Callable[..., Any]:
    """The op with parameters as a function of arrays."""
    op = registry.get(name)
    params = op.params.parse({k: str(v) for k, v in attrs.items()}, name)
    return lambda *xs: op.rule(params, *xs)


RNG = np.random.RandomState
HALF = ["float16", "bfloat16"]


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", ["Embedding", "take"])
def test_half_gradient_of_repeated_rows_counts_on(dtype: str, name: str) -> None:
    """4096 reads of one row: a sum in float16 would stall at 2048, one in bfloat16 at 256."""
    table, index = jnp.ones((2, 1), dtype), jnp.zeros(4096, jnp.int32)
    f = rule("Embedding", input_dim=2, output_dim=1) if name == "Embedding" else lambda i, t: rule("take")(t, i)
    out, pull = jax.vjp(lambda t: f(index, t), table)
    grad = pull(jnp.ones_like(out))[0]
    assert grad.dtype == dtype
    np.testing.assert_array_equal(np.asarray(grad, np.float32), [[4096], [0]])


@pytest.mark.parametrize("dtype", HALF)
def test_half_gather_transforms(dtype: str) -> None:
    """Forward mode, vmap and second derivatives go through a half-precision look-up."""
    table, index = jnp.arange(6, dtype=dtype).reshape(3, 2), jnp.array([2, 2, 0], jnp.int32)

    def f(t: jax.Array) -> jax.Array:
        return (rule("take")(t, index) ** 2).astype(jnp.float32).sum()

    want = np.array([[0, 2], [0, 0], [16, 20]], np.float32)
    np.testing.assert_array_equal(np.asarray(jax.jacfwd(f)(table), np.float32), want)
    np.testing.assert_array_equal(np.asarray(jax.grad(f)(table), np.float32), want)
    rows = jax.vmap(lambda i: rule("take")(table, i))(index)
    np.testing.assert_array_equal(np.asarray(rows, np.float32), [[4, 5], [4, 5], [0, 1]])
    second = jax.hessian(f)(table).reshape(6, 6).astype(jnp.float32)
    np.testing.assert_array_equal(np.diag(np.asarray(second)), [2, 2, 0, 0, 4, 4])


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", ["dot", "batch_dot"])
def test_half_products_sum_in_float32(dtype: str, name: str) -> None:
    """A row of 4096 ones times one is 4096; gradients keep the type."""
    a = jnp.ones((1, 1, 4096), dtype)[0 if name == "dot" else slice(None)]
    b = jnp.swapaxes(a, -1, -2)
    out, pull = jax.vjp(rule(name), a, b)
    assert out.dtype == dtype and float(out.ravel()[0]) == 4096
    assert [g.dtype for g in pull(out)] == [dtype, dtype]


@pytest.mark.parametrize(("src", "codes", "reverse", "want"), [
    ((8, 3, 3, 3, 4, 4), (-4, 2, -1, 0, 0, 0, -3), False, (2, 4, 3, 3, 3, 16)),
    ((10, 5, 4), (-1, 0), True, (50, 4)),
    ((2, 3, 8), (0, 0, -4, 2, 4), True, (2, 3, 2, 4)),
    ((0, 3), (-1, 0), False, (0, 3)),
    ((2, 3), (), False, None),
])  # fmt: skip
def test_reshape_codes(src: tuple[int, ...], codes: tuple[int, ...], reverse: bool, want: Any) -> None:
    if want is None:
        with pytest.raises(ShapeError, match="cannot reshape"):
            reshape_target(src, codes, reverse)
    else:
        assert reshape_target(src, codes, reverse) == want


@pytest.mark.parametrize(("codes", "message"), [
    ((-1, -1), "only one axis"), ((-5,), "not a reshape code"), ((-4, 2), "two sizes"),
    ((-4, 2, 5, -2), "cannot be split"), ((0, 0, 0, 0), "needs 1 more"), ((7, 4), "24 elements"),
])  # fmt: skip
def test_reshape_errors(codes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        reshape_target((2, 3, 4), codes)


def test_take_raise_checks_where_values_are_known() -> None:
    a = jnp.arange(3.0)
    with pytest.raises(MXNetError, match=r"outside \[0, 3\)"):
        rule("take", mode="raise")(a, jnp.array([0, 3]))
    assert np.isnan(np.asarray(jax.jit(rule("take", mode="raise"))(a, jnp.array([0, 3, -1])))).tolist() == [False, True,
                                                                                                          True]


def test_boolean_mask_runs_on_values_only() -> None:
    data, mask = jnp.arange(6.0).reshape(3, 2), jnp.array([1, 0, 2])
    f = rule("_contrib_boolean_mask")
    np.testing.assert_array_equal(f(data, mask), [[0, 1], [4, 5]])
    np.testing.assert_array_equal(rule("_contrib_boolean_mask", axis=1)(data, jnp.array([0, 1])), [[1], [3], [5]])
    with pytest.raises(MissingLoweringError, match="SequenceMask"):
        jax.jit(f)(data, mask)


def test_interleaved_attention_refuses_a_width_that_does_not_split() -> None:
    with pytest.raises(ShapeError, match="a multiple of 6"):
        rule("_contrib_interleaved_matmul_selfatt_qk", heads=2)(jnp.ones((3, 2, 10)))


def test_im2col_in_one_and_three_dimensions() -> None:
    x = jnp.arange(4.0).reshape(1, 1, 4)
    np.testing.assert_array_equal(rule("im2col", kernel=(2,))(x)[0], [[0, 1, 2], [1, 2, 3]])
    volume = jnp.arange(8.0).reshape(1, 1, 2, 2, 2)
    np.testing.assert_array_equal(rule("im2col", kernel=(2, 2, 2))(volume)[0, :, 0], np.arange(8))


def test_nan_counts_as_the_greatest() -> None:
    x = jnp.array([1.0, np.nan, 3.0])
    assert rule("argsort", dtype="int32")(x).tolist() == [0, 2, 1]
    assert rule("topk", k=2, dtype="int32")(x).tolist() == [1, 2]


def test_sequence_last_of_an_empty_sequence_is_its_first_step() -> None:
    x = jnp.arange(4.0).reshape(2, 2)
    assert rule("SequenceLast", use_sequence_length=True)(x, jnp.array([0, 2])).tolist() == [0, 3]


def bits_of(x: Any) -> np.ndarray:
    x = np.asarray(x)
    if x.dtype == jnp.bfloat16:  # XLA:CPU computes it in float32, and makes one kind of NaN of the others
        x = np.where(np.isnan(x.astype(np.float32)), np.array(np.nan, x.dtype), x)
    return x.view(f"uint{8 * x.dtype.itemsize}") if x.dtype != bool else x


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8", "int16", "uint32", "bool"])
@pytest.mark.parametrize("width", [1, 23, 24, 64, 74, 75])
def test_rows_are_read_to_the_bit(width: int, dtype: str) -> None:
    """Subnormal numbers, every NaN and the sign of zero too, whichever way rows of this width are read."""
    rng = RNG(width)
    kind = jnp.dtype(dtype)
    table = (rng.rand(50, width) < 0.5) if dtype == "bool" else rng.randint(
        0, 256, (50, width * kind.itemsize)).astype(np.uint8).view(kind)  # fmt: skip
    ids = rng.randint(0, 50, (3, 7)).astype(np.int32)
    for i in (ids, ids.astype(np.int64), ids[0], ids[0, 0], ids[:0]):
        got = jax.jit(read_rows)(table, i)
        assert got.dtype == kind and got.shape == (*np.shape(i), width)
        np.testing.assert_array_equal(bits_of(got), bits_of(table[i]))
    beyond = np.array([49, 50, 2**31 - 1, 0], np.int32)
    np.testing.assert_array_equal(bits_of(jax.jit(read_rows)(table, beyond)), bits_of(table[[49, 49, 49, 0]]))
    filled = np.where(np.array([[1], [0], [0], [1]], bool), bits_of(table[[49, 49, 49, 0]]), 0)
    read = jax.jit(functools.partial(read_rows, padded=True))
    np.testing.assert_array_equal(bits_of(read(table, beyond)), filled)


@pytest.mark.parametrize("padded", [False, True])
def test_gradients_of_rows_of_every_width(padded: bool) -> None:
    ids = jnp.array([[3, 1, 3], [0, 3, 1]])
    for width in (23, 24, 74, 75):
        head = jnp.asarray(RNG(width).rand(2, 3, width), jnp.float32)
        table = jnp.asarray(RNG(0).rand(5, width), jnp.float32)
        want = np.zeros((5, width), np.float32)
        np.add.at(want, np.asarray(ids), np.asarray(head))
        got = jax.jit(jax.grad(lambda t, h: jnp.sum(read_rows(t, ids, padded) * h)))(table, head)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        out, tangent = jax.jvp(lambda t: read_rows(t, ids, padded), (table,), (2 * table,))
        np.testing.assert_array_equal(tangent, 2 * out)
        each = jax.vmap(lambda t, i: read_rows(t, i, padded), (None, 0))(table, ids)
        np.testing.assert_array_equal(each, table[ids])
