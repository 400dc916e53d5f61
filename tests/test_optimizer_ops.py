"""Optimizer updates of several weights against those of one, and what MXNet has no CPU kernel for."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symjax.lowering import registry
from symjax.lowering.errors import ParamError

RATES = {"lrs": "(0.1, 0.2)", "wds": "(0.05, 0.0)"}
BASE = {"rescale_grad": "0.5", "clip_gradient": "0.4"}
ADAM = {"beta1": "0.8", "beta2": "0.95", "epsilon": "0.001", "clip_gradient": "0.4"}


def draw(shape, seed, low=-1.0, dtype="float32"):
    return jnp.asarray(np.random.RandomState(seed).uniform(low, 1, shape), dtype)


def call(name, attrs, *arrays) -> tuple[Any, ...]:
    op = registry.get(name)
    with jax.enable_x64(True):
        out = op(op.params.parse(attrs, name), *arrays)
    return tuple(out) if isinstance(out, tuple) else (out,)


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_allclose(np.asarray(a, "float64"), np.asarray(b, "float64"), rtol=2e-6, atol=1e-7)


def weights(states, mixed):
    kind = "float16" if mixed else "float32"
    for i, shape in enumerate(((3, 2), (4,))):
        group = [draw(shape, i, dtype=kind), draw(shape, 10 + i, dtype=kind)]
        group += [draw(shape, 20 + i + 10 * k, 0.1 if s == "var" else -1.0) for k, s in enumerate(states)]
        yield group + ([group[0].astype("float32")] if mixed else [])


@pytest.mark.parametrize("mixed,loaded,momentum", list(itertools.product((False, True), repeat=3)))
def test_multi_sgd_is_sgd_for_each(mixed, loaded, momentum):
    name = f"{'preloaded_' if loaded else ''}multi_{'mp_' if mixed else ''}sgd_{'mom_' if momentum else ''}update"
    single = f"{'mp_' if mixed else ''}sgd_{'mom_' if momentum else ''}update"
    more = {**BASE, **({"momentum": "0.9"} if momentum else {})}
    groups = list(weights(("mom",) if momentum else (), mixed))
    tail = [jnp.array([0.1, 0.2], "float32"), jnp.array([0.05, 0.0], "float32")] if loaded else []
    got = call(name, {**({} if loaded else RATES), **more, "num_weights": "2"}, *itertools.chain(*groups), *tail)
    want = [call(single, {"lr": lr, "wd": wd, **more}, *g)
            for g, lr, wd in zip(groups, ("0.1", "0.2"), ("0.05", "0"), strict=True)]
    flat = [w[0] for w in want] + [x for w in want for x in w[1:]]
    for a, b in zip(got, flat, strict=True):
        same(a, b)


@pytest.mark.parametrize("mixed", [False, True])
def test_multi_adamw_is_adamw_for_each(mixed):
    mp = "mp_" if mixed else ""
    groups, scale = list(weights(("mean", "var"), mixed)), jnp.array([0.5], "float32")
    got = call(f"_multi_{mp}adamw_update", {**RATES, "etas": "(0.7, 1)", **ADAM, "num_weights": "2"},
               *itertools.chain(*groups), scale)
    want = [call(f"_{mp}adamw_update", {"lr": lr, "wd": wd, "eta": eta, **ADAM}, *g, scale)
            for g, lr, wd, eta in zip(groups, ("0.1", "0.2"), ("0.05", "0"), ("0.7", "1"), strict=True)]
    for a, b in zip(got, [w[0] for w in want] + [x for w in want for x in w[1:]], strict=True):
        same(a, b)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("more", [{}, {"lower_bound": "0.2", "upper_bound": "0.9"}, {"bias_correction": "False"}])
def test_multi_lamb_is_the_two_phases_for_each(mixed, more):
    mp = "mp_" if mixed else ""
    groups = list(weights(("mean", "var"), mixed))
    got = call(f"_multi_{mp}lamb_update", {"learning_rates": "(0.1, 0.2)", "wds": "(0.05, 0.0)", "step_count": "(1, 4)",
                                           "num_tensors": "2", "rescale_grad": "0.5", **ADAM, **more},
               *itertools.chain(*groups))
    outs, states = [], []
    bounds = {k: v for k, v in more.items() if "bound" in k}
    for g, lr, wd, t in zip(groups, ("0.1", "0.2"), ("0.05", "0"), ("1", "4"), strict=True):
        phase1 = {"t": t, "wd": wd, "rescale_grad": "0.5", **ADAM, **{k: v for k, v in more.items() if k not in bounds}}
        direction, mean, var = call(f"{mp}lamb_update_phase1", phase1, *g)
        r1 = jnp.sqrt(jnp.sum(jnp.square(g[0].astype("float32")))).reshape(1)
        r2 = jnp.sqrt(jnp.sum(jnp.square(direction))).reshape(1)
        new = call(f"{mp}lamb_update_phase2", {"lr": lr, **bounds}, g[0], direction, r1, r2, *g[4:])
        outs.append(new[0])
        states += [mean, var, *new[1:]]
    for a, b in zip(got, [*outs, *states], strict=True):
        same(a, b)


def test_lengths_of_rates_are_checked():
    with pytest.raises(ParamError, match="lrs has 1 values for 2 weights"):
        call("multi_sgd_update", {"lrs": "(0.1,)", "wds": "(0, 0)", "num_weights": "2"},
             *itertools.chain(*weights((), False)))


@pytest.mark.parametrize("column", [(3, 1), (3,)])
def test_group_adagrad(column):
    w, g, h = draw((3, 4), 0), draw((3, 4), 1), draw(column, 2, 0.1)
    new, history = call("_contrib_group_adagrad_update", {"lr": "0.1", "rescale_grad": "0.5", "clip_gradient": "0.3",
                                                          "epsilon": "0.001"}, w, g, h)
    clipped = np.clip(0.5 * np.asarray(g), -0.3, 0.3)
    want = np.asarray(h).reshape(3) + (clipped**2).mean(1)
    np.testing.assert_allclose(history, want.reshape(column), rtol=1e-6)
    np.testing.assert_allclose(new, np.asarray(w) - 0.1 * clipped / np.sqrt(want + 1e-3)[:, None], rtol=1e-5)


def test_reset_arrays():
    zeros = call("reset_arrays", {"num_arrays": "2"}, draw((2, 2), 0), draw((3,), 1, dtype="float16"))
    assert [z.dtype.name for z in zeros] == ["float32", "float16"] and not any(np.asarray(z).any() for z in zeros)
    op: Any = registry.get("reset_arrays")
    assert op.output_names(op.params(num_arrays=2)) == ()


def test_rates_do_not_compile_again():
    op: Any = registry.get("sgd_mom_update")
    count = 0

    def step(lr, momentum, *arrays):
        nonlocal count
        count += 1
        return op(op.params(lr=lr, momentum=momentum), *arrays)

    jitted = jax.jit(step)
    arrays = [draw((3,), i) for i in range(3)]
    with jax.enable_x64(True):
        first, second = jitted(0.1, 0.9, *arrays), jitted(0.2, 0.5, *arrays)
    assert count == 1
    assert first[0].dtype == jnp.float32 and not np.allclose(first[0], second[0])
