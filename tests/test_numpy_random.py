"""Distributions and gradients of the numpy operators' samplers, by scipy's tests on large draws with fixed keys."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from symjax.lowering import registry
from symjax.lowering.errors import ParamError, ShapeError

N = 20_000


def draw(name: str, attrs: dict[str, Any], *arrays: Any, seed: int = 5) -> Any:
    """All outputs of a sampler, hidden ones included."""
    op = registry.get(f"_npi_{name}")
    with jax.enable_x64(True):
        p = op.params.parse({k: str(v) for k, v in attrs.items()}, name)
        out = jax.jit(lambda key, *xs: op(p, *xs, key=key))(jax.random.key(seed), *map(jnp.asarray, arrays))
    return [np.asarray(x) for x in out] if isinstance(out, tuple) else np.asarray(out)


def gradients(name: str, attrs: dict[str, Any], *arrays: Any, seed: int = 5) -> list[np.ndarray]:
    """The gradients of the samples' sum by the arrays."""
    op = registry.get(f"_npi_{name}")
    with jax.enable_x64(True):
        p = op.params.parse({k: str(v) for k, v in attrs.items()}, name)

        def total(*xs: Any) -> Any:
            out = op(p, *xs, key=jax.random.key(seed))
            return (out[0] if isinstance(out, tuple) else out).sum()

        return [np.asarray(g) for g in jax.grad(total, tuple(range(len(arrays))))(*map(jnp.asarray, arrays))]


CONTINUOUS: dict[str, tuple[dict[str, Any], Any]] = {
    "uniform": ({"low": -1, "high": 3}, stats.uniform(-1, 4)),
    "uniform_n": ({"low": -1, "high": 3}, stats.uniform(-1, 4)),
    "normal": ({"loc": 1, "scale": 2}, stats.norm(1, 2)),
    "normal_n": ({"loc": 1, "scale": 2}, stats.norm(1, 2)),
    "gumbel": ({"loc": 1, "scale": 2}, stats.gumbel_r(1, 2)),
    "logistic": ({"loc": 1, "scale": 2}, stats.logistic(1, 2)),
    "exponential": ({"scale": 2}, stats.expon(scale=2)),
    "rayleigh": ({"scale": 2}, stats.rayleigh(scale=2)),
    "weibull": ({"a": 1.5}, stats.weibull_min(1.5)),
    "pareto": ({"a": 2.5}, stats.lomax(2.5)),
    "powerd": ({"a": 2.5}, stats.powerlaw(2.5)),
    "gamma": ({"shape": 0.7, "scale": 3}, stats.gamma(0.7, scale=3)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution_of_numbers_and_of_arrays(name: str) -> None:
    attrs, expected = CONTINUOUS[name]
    first = draw(name, {**attrs, "size": (N,)})
    x = first[0] if isinstance(first, list) else first
    assert x.dtype == np.float32 and stats.kstest(x, expected.cdf).pvalue > 1e-3
    assert abs(x.mean() - expected.mean()) < 6 * expected.std() / N**0.5
    by_array = {**dict.fromkeys(attrs, "None"), "size": (N,)}
    second = draw(name, by_array, *(np.float32(v) for v in attrs.values()))
    np.testing.assert_allclose(second[0] if isinstance(second, list) else second, x, rtol=1e-5)


@pytest.mark.parametrize("name", ["normal_n", "uniform_n"])
def test_size_stands_before_the_parameters(name: str) -> None:
    a, b = CONTINUOUS[name][0]
    x = draw(name, {a: "None", b: 20, "size": (N,)}, np.array([0, 10], np.float32))
    x = x[0] if isinstance(x, list) else x
    assert x.shape == (N, 2) and abs(x[:, 1].mean() - x[:, 0].mean() - (10 if name == "normal_n" else 5)) < 1


SMOOTH = {
    "exponential": lambda x, s: x / s,
    "rayleigh": lambda x, s: x / s,
    "weibull": lambda x, a: -x * np.log(x) / a,
    "pareto": lambda x, a: -(1 + x) * np.log1p(x) / a,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_by_the_only_parameter(name: str) -> None:
    (only,) = CONTINUOUS[name][0]
    a = np.array([0.7, 2.0, 3.0])
    x, slope = draw(name, {only: "None", "size": (4, 3)}, a)
    np.testing.assert_allclose(slope, SMOOTH[name](x.astype(np.float64), a), rtol=2e-4)
    np.testing.assert_allclose(gradients(name, {only: "None", "size": (4, 3)}, a)[0], slope.sum(0), rtol=1e-4)


@pytest.mark.parametrize("name", ["normal", "normal_n", "gumbel", "logistic"])
def test_gradients_by_location_and_scale(name: str) -> None:
    loc, scale = np.array([1.0, 2.0], np.float32), np.array([[2.0], [3.0]], np.float32)
    attrs = {"loc": "None", "scale": "None", "size": (3,) if name == "normal_n" else (3, 2, 2)}
    x, noise = draw(name, attrs, loc, scale)
    np.testing.assert_allclose(loc + scale * noise, x, rtol=1e-5)
    by_loc, by_scale = gradients(name, attrs, loc, scale)
    np.testing.assert_allclose(by_loc, [6, 6], rtol=1e-6)
    np.testing.assert_allclose(by_scale[:, 0], noise.sum((0, 2)), rtol=1e-4, atol=1e-5)


def test_others_have_no_gradient() -> None:
    assert not np.any(gradients("uniform", {"low": "None", "high": "None"}, np.zeros(2), np.ones(2)))
    assert not np.any(gradients("powerd", {"a": "None"}, np.ones(2)))
    assert not np.any(gradients("bernoulli", {"prob": "None", "logit": "None", "is_logit": False}, np.full(2, 0.5)))


def test_parameters_out_of_range() -> None:
    for name, attrs in (("normal", {"loc": 0, "scale": -1}), ("weibull", {"a": 0}), ("rayleigh", {"scale": -1}),
                        ("bernoulli", {"prob": 2, "logit": "None", "is_logit": False})):  # fmt: skip
        with pytest.raises(ParamError):
            draw(name, attrs)
    bad = np.array([-1, 1], np.float32)
    for name, attrs in (("normal", {"loc": 0, "scale": "None"}), ("pareto", {"a": "None"}), ("powerd", {"a": "None"})):
        x = draw(name, attrs, bad)
        assert np.isnan(x[0] if isinstance(x, np.ndarray) else x[0][0])
    with pytest.raises(ShapeError, match="broadcast"):
        draw("normal", {"loc": 0, "scale": "None", "size": (3,)}, np.ones(2, np.float32))


def test_bernoulli() -> None:
    for attrs in ({"prob": 0.3, "logit": "None", "is_logit": False},
                  {"prob": "None", "logit": np.log(0.3 / 0.7), "is_logit": True}):  # fmt: skip
        x = draw("bernoulli", {**attrs, "size": (N,)})
        assert set(np.unique(x)) == {0, 1} and stats.binomtest(int(x.sum()), N, 0.3).pvalue > 1e-3


def test_multinomial_counts() -> None:
    p = np.array([0.1, 0.0, 0.6, 0.3], np.float32)
    x = draw("multinomial", {"n": 10, "size": (4000,)}, p)
    assert x.dtype == np.int64 and (x.sum(1) == 10).all() and not x[:, 1].any()
    seen = x.sum(0)
    assert stats.chisquare(seen[[0, 2, 3]], 40_000 * np.array([0.1, 0.6, 0.3])).pvalue > 1e-3
    assert abs(x[:, 2].var() - 10 * 0.6 * 0.4) < 0.2


def test_choice() -> None:
    x = draw("choice", {"a": 5, "size": (N,)})
    assert stats.chisquare(np.bincount(x, minlength=5)).pvalue > 1e-3
    weights = np.array([1, 0, 3, 6], np.float32)
    x = draw("choice", {"a": 4, "size": (N,), "weighted": True}, weights)
    seen = np.bincount(x, minlength=4)
    assert not seen[1] and stats.chisquare(seen[[0, 2, 3]], N * np.array([0.1, 0.3, 0.6])).pvalue > 1e-3
    once = draw("choice", {"a": 50, "size": (50,), "replace": False})
    assert sorted(once) == list(range(50)) and list(once) != sorted(once)
    few = draw("choice", {"a": 4, "size": (3,), "replace": False, "weighted": True}, weights)
    assert set(few) == {0, 2, 3}
    with pytest.raises(ParamError, match="cannot be chosen"):
        draw("choice", {"a": 2, "size": (3,), "replace": False})
