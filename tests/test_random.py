"""The random state, and the samplers' shapes, types, moments and reproducibility."""

from __future__ import annotations

import threading

import jax
import numpy as np
import pytest

import symjax as mx
from symjax import random


def draw(**kwargs: object) -> list[float]:
    return mx.nd.random.uniform(shape=(5,), **kwargs).asnumpy().tolist()


def test_a_seed_fixes_the_stream() -> None:
    mx.random.seed(7)
    first = [draw(), draw()]
    mx.random.seed(7)
    assert [draw(), draw()] == first and first[0] != first[1]
    mx.random.seed(8)
    assert draw() != first[0]
    mx.random.seed(-1)
    mx.random.seed(np.int64(3))
    with pytest.raises(ValueError, match="int"):
        mx.random.seed(1.5)  # type: ignore[arg-type]


def test_a_context_can_be_seeded_apart() -> None:
    mx.random.seed(1)
    mx.random.seed(5, ctx=mx.cpu(1))
    apart = draw(ctx=mx.cpu(1))
    mx.random.seed(5, ctx="cpu(1)")
    draw(ctx=mx.cpu(0))
    assert draw(ctx=mx.cpu(1)) == apart
    mx.random.seed(1)


def test_keys_are_typed_distinct_and_thread_safe() -> None:
    assert jax.numpy.issubdtype(random.next_key().dtype, jax.dtypes.prng_key)
    seen: list[bytes] = []

    def work() -> None:
        seen.extend(random.next_key_data().tobytes() for _ in range(500))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(seen)) == 2000


def test_the_state_can_be_kept() -> None:
    state = random.get_state()
    first = draw()
    random.set_state(state)
    assert draw() == first


N = 4000
DISTRIBUTIONS = {
    "uniform": ({"low": -1.0, "high": 3.0}, 1.0, 16 / 12),
    "normal": ({"loc": 2.0, "scale": 0.5}, 2.0, 0.25),
    "exponential": ({"scale": 2.0}, 2.0, 4.0),
    "gamma": ({"alpha": 3.0, "beta": 0.5}, 1.5, 0.75),
    "poisson": ({"lam": 4.0}, 4.0, 4.0),
    "negative_binomial": ({"k": 3, "p": 0.4}, 3 * 0.6 / 0.4, 3 * 0.6 / 0.16),
    "generalized_negative_binomial": ({"mu": 2.0, "alpha": 0.3}, 2.0, 2 + 0.3 * 4),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_moments_for_numbers_and_arrays(name: str) -> None:
    params, mean, variance = DISTRIBUTIONS[name]
    mx.random.seed(11)
    sampler = getattr(mx.random, name)
    a = sampler(**params, shape=(N,))
    many = sampler(**{k: mx.nd.array([v, v]) for k, v in params.items()}, shape=(N // 2,))
    assert a.shape == (N,) and a.dtype == np.float32 and many.shape == (2, N // 2)
    spread = 6 * np.sqrt(variance / N)
    for x in (a.asnumpy(), many.asnumpy()):
        assert x.mean() == pytest.approx(mean, abs=spread)
        assert x.var() == pytest.approx(variance, rel=0.3)


def test_out_and_the_default_shape() -> None:
    out = mx.nd.zeros((3, 2), dtype="float64")
    assert mx.random.uniform(5, 6, out=out, dtype="float64") is out and out.asnumpy().min() >= 5
    assert mx.random.normal().shape == (1,)


def test_integers_categories_and_order() -> None:
    mx.random.seed(2)
    a = mx.random.randint(-3, 5, shape=(1000,)).asnumpy()
    assert a.dtype == np.int32 and set(a.tolist()) == set(range(-3, 5))
    assert mx.random.randint(0, 2**40, shape=(4,), dtype="int64").dtype == np.int64
    c = mx.random.multinomial(mx.nd.array([[0, 1, 0], [0.5, 0, 0.5]]), shape=(100,)).asnumpy()
    assert c.shape == (2, 100) and set(c[0]) == {1} and set(c[1]) == {0, 2}
    kinds, logs = mx.random.multinomial(mx.nd.array([0.25, 0.75]), shape=(4,), get_prob=True)
    assert logs.asnumpy() == pytest.approx(np.log([0.25, 0.75])[kinds.asnumpy()], rel=1e-5)
    rows = mx.random.shuffle(mx.nd.arange(20).reshape((10, 2))).asnumpy()
    assert sorted(rows[:, 0].tolist()) == list(range(0, 20, 2)) and (rows[:, 1] == rows[:, 0] + 1).all()
    assert mx.random.randn(2, 3, loc=1.0, scale=0.0).asnumpy().tolist() == [[1.0] * 3] * 2


def test_mixed_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="same type"):
        mx.random.normal(mx.nd.zeros(2), 1.0)
    with pytest.raises(ValueError, match="numbers"):
        mx.random.normal("a", "b")
