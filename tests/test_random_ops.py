"""Distributions of the samplers, by scipy's tests on large draws with fixed keys."""

from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from symjax.lowering import registry
from symjax.lowering.errors import ParamError

N = 20_000


def draw(name, attrs, *arrays, seed=5) -> Any:
    op = registry.get(name)
    extra = {"out_shapes": None} if "out_shapes" in op.asks else {}
    with jax.enable_x64(True):
        p = op.params.parse({k: str(v) for k, v in attrs.items()}, name)
        out = jax.jit(lambda key, *xs: op(p, *xs, key=key, **extra))(jax.random.key(seed), *arrays)
    return [np.asarray(x) for x in out] if isinstance(out, tuple) else np.asarray(out)


CONTINUOUS = {
    "uniform": ({"low": -1, "high": 3}, stats.uniform(-1, 4)),
    "normal": ({"loc": 1, "scale": 2}, stats.norm(1, 2)),
    "exponential": ({"lam": 2}, stats.expon(scale=0.5)),
    "gamma": ({"alpha": 0.7, "beta": 3}, stats.gamma(0.7, scale=3)),
}
DISCRETE = {
    "poisson": ({"lam": 3}, stats.poisson(3)),
    "negative_binomial": ({"k": 3, "p": 0.4}, stats.nbinom(3, 0.4)),
    "generalized_negative_binomial": ({"mu": 2, "alpha": 0.5}, stats.nbinom(2, 0.5)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    attrs, expected = CONTINUOUS[name]
    x = draw(f"_random_{name}", {**attrs, "shape": (N,)})
    assert x.dtype == np.float32
    assert stats.kstest(x, expected.cdf).pvalue > 1e-3


def counted(x, expected):
    """Chi-squared p-value of whole numbers, the tail in one bin."""
    top = int(expected.ppf(0.99))
    seen = np.bincount(np.minimum(x, top).astype(int), minlength=top + 1)
    wanted = np.append(expected.pmf(np.arange(top)), expected.sf(top - 1)) * len(x)
    return stats.chisquare(seen, wanted).pvalue


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    attrs, expected = DISCRETE[name]
    assert counted(draw(f"_random_{name}", {**attrs, "shape": (N,)}), expected) > 1e-3


def test_rows_have_their_own_parameters():
    x = draw("_sample_normal", {"shape": (N,)}, np.array([0, 10], np.float32), np.array([1, 3], np.float32))
    assert stats.kstest(x[0], stats.norm(0, 1).cdf).pvalue > 1e-3
    assert stats.kstest(x[1], stats.norm(10, 3).cdf).pvalue > 1e-3


def test_randint_is_uniform_and_wide():
    x = draw("_random_randint", {"low": -2, "high": 3, "shape": (N,)})
    assert x.dtype == np.int32 and stats.chisquare(np.bincount(x + 2, minlength=5)).pvalue > 1e-3
    wide = draw("_random_randint", {"low": 0, "high": 2**40, "shape": (100,), "dtype": "int64"})
    assert wide.dtype == np.int64 and wide.max() > 2**33
    with pytest.raises(ParamError, match="less than"):
        draw("_random_randint", {"low": 3, "high": 3, "shape": (2,)})


def test_multinomial_and_its_log_probability():
    p = np.array([[0.1, 0.0, 0.6, 0.3], [1, 0, 0, 0]], np.float32)
    x, logs = draw("_sample_multinomial", {"shape": (N,), "get_prob": True}, p)
    seen = np.bincount(x[0], minlength=4)
    assert seen[1] == 0 and stats.chisquare(seen[[0, 2, 3]], N * p[0][[0, 2, 3]]).pvalue > 1e-3
    assert (x[1] == 0).all()
    np.testing.assert_allclose(logs[0], np.log(p[0][x[0]]), rtol=1e-6)


def test_unique_zipfian():
    classes, tries = draw("_sample_unique_zipfian", {"range_max": 50, "shape": (2000, 4)})
    assert all(len(set(row)) == 4 for row in classes.tolist()) and (tries >= 4).all()
    assert classes.min() >= 0 and classes.max() < 50
    k = np.arange(50)
    p = (np.log(k + 2) - np.log(k + 1)) / np.log(51)
    seen = np.bincount(classes[:, 0], minlength=50)  # the first draw of a row is not conditioned
    assert stats.chisquare(np.append(seen[:20], seen[20:].sum()), 2000 * np.append(p[:20], p[20:].sum())).pvalue > 1e-3
    with pytest.raises(ParamError, match="cannot be drawn"):
        draw("_sample_unique_zipfian", {"range_max": 3, "shape": (1, 4)})


def test_shuffle_permutes_rows():
    x = np.arange(30, dtype=np.float32).reshape(10, 3)
    y = draw("_shuffle", {}, x)
    assert not np.array_equal(x, y) and np.array_equal(y[np.argsort(y[:, 0])], x)


def test_keys_decide():
    a, b, c = (draw("_random_normal", {"shape": (5,)}, seed=s) for s in (1, 1, 2))
    assert np.array_equal(a, b) and not np.array_equal(a, c)
