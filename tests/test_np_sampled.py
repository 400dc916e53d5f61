"""`mx.np` against numpy itself, on sampled keys, shapes and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
import pytest

import symjax as mx

np: Any = mx.np


@pytest.fixture(autouse=True)
def numpy_semantics() -> Iterator[None]:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def _slice(rng: onp.random.Generator, n: int) -> slice:
    def bound() -> int | None:
        return None if rng.random() < 0.4 else int(rng.integers(-n - 1, n + 2))

    step = int(rng.choice([1, 1, 2, -1, -2]))
    return slice(bound(), bound(), step)


def _key(rng: onp.random.Generator, shape: tuple[int, ...]) -> Any:
    """A random key: integers, slices, new axes, `...`, index arrays and masks."""
    key: list[Any] = []
    used, advanced = int(rng.integers(0, len(shape) + 1)), rng.random() < 0.4
    for n in shape[:used]:
        kind = rng.choice(["int", "slice", "array", "mask"] if advanced else ["int", "slice", "slice"])
        if kind == "int":
            key.append(int(rng.integers(-n, n)))
        elif kind == "slice":
            key.append(_slice(rng, n))
        elif kind == "array":
            key.append(rng.integers(-n, n, size=2))
        else:
            mask = onp.zeros(n, bool)
            mask[rng.permutation(n)[:2]] = True  # two of them, which broadcast with index arrays
            key.append(mask)
        if rng.random() < 0.15:
            key.append(None)
    if rng.random() < 0.3:
        key.append(Ellipsis)
    return tuple(key)


def _ours(key: Any) -> Any:
    """The key with arrays of `mx.np` in place of numpy's."""
    return tuple(np.array(k) if isinstance(k, onp.ndarray) else k for k in key)


@pytest.mark.parametrize("seed", range(4))
def test_reading_by_sampled_keys(seed: int) -> None:
    rng, a = onp.random.default_rng(seed), onp.arange(24, dtype="float32").reshape(2, 3, 4)
    x = np.array(a)
    for _ in range(20):
        key = _key(rng, a.shape)
        want, got = a[key], x[_ours(key)]
        assert got.shape == want.shape, key
        onp.testing.assert_array_equal(got.asnumpy(), want, err_msg=str(key))


@pytest.mark.parametrize("seed", range(4))
def test_writing_by_sampled_keys(seed: int) -> None:
    rng, a = onp.random.default_rng(seed + 100), onp.arange(24, dtype="float32").reshape(2, 3, 4)
    for _ in range(15):
        key = _key(rng, a.shape)
        want, got = a.copy(), np.array(a)
        shape = want[key].shape
        value = -1.0 if rng.random() < 0.5 else onp.arange(100, 100 + onp.prod(shape, dtype=int)).reshape(shape)
        if any(isinstance(k, onp.ndarray) and k.dtype != bool for k in key) and not isinstance(value, float):
            value = 7.0  # an element that is named twice may keep either value
        want[key] = value
        got[_ours(key)] = value if isinstance(value, float) else np.array(value)
        onp.testing.assert_array_equal(got.asnumpy(), want, err_msg=str(key))


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum over two axes": lambda m, x: m.sum(x, axis=(0, 2)),
    "mean, kept": lambda m, x: m.mean(x, axis=-1, keepdims=True),
    "standard deviation": lambda m, x: m.std(x, axis=1, ddof=1),
    "product": lambda m, x: m.prod(x, axis=0),
    "running sum": lambda m, x: m.cumsum(x, axis=2),
    "largest": lambda m, x: m.max(x, axis=(1, 2)),
    "index of the least": lambda m, x: m.argmin(x, axis=1),
    "sorted": lambda m, x: m.sort(x, axis=1),
    "order": lambda m, x: m.argsort(x, axis=0),
    "median": lambda m, x: m.percentile(x, 50, axis=2),
    "differences": lambda m, x: m.diff(x, n=2, axis=2),
    "transposed": lambda m, x: m.transpose(x, (2, 0, 1)),
    "axes moved": lambda m, x: m.moveaxis(x, (0, 1), (2, 0)),
    "tiled": lambda m, x: m.tile(x, (2, 1, 3)),
    "repeated": lambda m, x: m.repeat(x, 3, axis=1),
    "rolled": lambda m, x: m.roll(x, 2, axis=2),
    "turned": lambda m, x: m.rot90(x, 3, axes=(0, 2)),
    "split and stacked": lambda m, x: m.stack(m.array_split(x, 2, axis=0)[:1] + m.array_split(x, 2, axis=0)[1:], 1),
    "joined": lambda m, x: m.concatenate([x, x * 2], axis=1),
    "matrix products": lambda m, x: m.matmul(x, m.swapaxes(x, 1, 2)),
    "tensordot": lambda m, x: m.tensordot(x, x, axes=([0, 1], [0, 1])),
    "einsum": lambda m, x: m.einsum("ijk,ijl->kl", x, x),
    "where": lambda m, x: m.where(x > 0, x, -x),
    "clip": lambda m, x: m.clip(x, -0.5, 0.5),
    "padded": lambda m, x: m.pad(x, ((1, 0), (0, 2), (1, 1)), mode="reflect"),
    "constant padding": lambda m, x: m.pad(x, ((1, 0), (0, 2), (1, 1)), constant_values=3),
    "taken": lambda m, x: m.take(x, m.array([2, 0], dtype="int32"), axis=1),
    "different ones": lambda m, x: m.unique(m.sign(x)),
    "norm": lambda m, x: m.linalg.norm(x, axis=(0, 2)),
    "inner": lambda m, x: m.inner(x, x[0]),
    "trace": lambda m, x: m.trace(x, axis1=0, axis2=2),
    "flat diagonal": lambda m, x: m.diagonal(x, 1, 0, 2),
    "logarithms": lambda m, x: m.log1p(m.abs(x)) + m.expm1(x) * m.sinh(x),
    "powers": lambda m, x: m.power(m.abs(x), 1.7) % 0.7,
    "angles": lambda m, x: m.arctan2(x, x + 1) + m.hypot(x, 2) - m.degrees(x),
    "resized": lambda m, x: m.resize(x, (5, 7)),
    "inserted": lambda m, x: m.insert(x, 1, 5, axis=2) if m is onp else m.array(onp.insert(x.asnumpy(), 1, 5, axis=2)),
    "deleted": lambda m, x: m.delete(x, 1, axis=1),
    "lower triangle": lambda m, x: m.tril(x, -1),
    "broadcast": lambda m, x: m.broadcast_to(x[0], (2, *x.shape[:1], *x.shape[1:])),
    "quantiles": lambda m, x: m.quantile(x, 0.3, axis=0),
    "outer": lambda m, x: m.outer(x[0], x[1]),
    "kron on the host": lambda m, x: (onp.kron(x[0], x[1])),
    "cross product on the host": lambda m, x: onp.cross(x[..., :3], x[..., 1:]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_as_numpy(name: str) -> None:
    rng = onp.random.default_rng(sum(map(ord, name)))
    a = rng.standard_normal((2, 3, 4))
    want, got = FUNCTIONS[name](onp, a), FUNCTIONS[name](np, np.array(a))
    assert isinstance(got, np.ndarray)
    assert got.shape == onp.shape(want)
    onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["det", "inv", "pinv", "cholesky", "eigvalsh"])
def test_linear_algebra_as_numpy(name: str) -> None:
    m = onp.random.default_rng(3).standard_normal((2, 3, 3))
    a = m @ onp.swapaxes(m, 1, 2) + onp.eye(3)
    ours, theirs = getattr(np.linalg, name), getattr(onp.linalg, name)
    for given in (a, a[0]):
        want, got = theirs(given), ours(np.array(given))
        assert got.shape == onp.shape(want)
        onp.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name, args, mean", [
    ("uniform", (2.0, 4.0), 3.0), ("normal", (1.0, 2.0), 1.0), ("gamma", (2.0, 0.5), 1.0), ("exponential", (2.0,), 2.0),
    ("chisquare", (3.0,), 3.0), ("beta", (1.0, 3.0), 0.25), ("rayleigh", (1.0,), 1.2533),
    ("lognormal", (0.0, 0.5), 1.1331),
    ("weibull", (1.0,), 1.0), ("power", (2.0,), 0.6667), ("gumbel", (0.0, 1.0), 0.5772), ("logistic", (1.0, 1.0), 1.0)])
def test_means_of_samplers(name: str, args: tuple[float, ...], mean: float) -> None:
    mx.random.seed(7)
    draws = getattr(np.random, name)(*args, size=(20000,)).asnumpy()
    assert abs(draws.mean() - mean) < 6 * draws.std() / 20000**0.5 + 1e-3


def test_covariance_of_multivariate_normal() -> None:
    mx.random.seed(7)
    cov = onp.array([[4.0, 1.0], [1.0, 1.0]])
    mean = np.array([1.0, -1.0])
    draws = np.random.multivariate_normal(mean, np.array(cov, dtype="float32"), size=(20000,)).asnumpy()
    onp.testing.assert_allclose(draws.mean(0), [1, -1], atol=0.06)
    onp.testing.assert_allclose(onp.cov(draws.T), cov, atol=0.2)
