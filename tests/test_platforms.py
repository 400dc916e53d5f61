"""Every op lowers for every platform, forward and (slow) backward, on a machine that has none of them but the CPU."""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import numpy as np
import pytest

from symjax.lowering.registry import Op
from tests.registry_cases import DYNAMIC, KEY, Use, own_ops, uses

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
# Operators that run on the host cannot be exported.
PORTABLE = [o for o in own_ops() if o.name not in DYNAMIC and not o.host]
by_name = pytest.mark.parametrize("op", PORTABLE, ids=lambda o: o.name)


def check_export(use: Use, train: bool = False) -> None:
    """The portable rule lowers for every platform, and each variant for its own."""
    with jax.enable_x64(True):
        jax.export.export(jax.jit(use.function(train=train)), platforms=PLATFORMS)(KEY, *use.avals)
        for v in use.op.variants:
            if v.when is None or v.when(use.params, use.avals):
                platforms = PLATFORMS if v.platform is None else (v.platform,)
                jax.export.export(jax.jit(use.function(v.rule, train)), platforms=platforms)(KEY, *use.avals)


def test_few_operators_need_the_host() -> None:
    assert {o.name for o in own_ops() if o.host} == {
        "Custom", "_Native", "_NDArray", "_cvimdecode", "_cvimread", "_imdecode"}  # fmt: skip


@by_name
def test_lowers_for_every_platform(op: Op) -> None:
    for use in uses().get(op.name, [])[:1]:  # that there is one is test_every_op_has_a_case's business
        check_export(use)
        if "train" in op.asks:
            check_export(use, train=True)


def check_gradient_export(use: Use) -> None:
    """The gradient with respect to every floating-point input lowers for every platform."""
    wrt = [i for i, s in enumerate(use.avals) if np.issubdtype(s.dtype, np.floating)]

    def gradient(key: Any, *inputs: Any) -> Any:
        def f(*diff: Any) -> Any:
            full = list(inputs)
            for i, v in zip(wrt, diff, strict=True):
                full[i] = v
            return use.function(train=True)(key, *full)

        outs, pull = jax.vjp(f, *(inputs[i] for i in wrt))
        return pull(tuple(jax.numpy.ones_like(o) if np.issubdtype(o.dtype, np.floating) else
                          np.zeros(o.shape, jax.dtypes.float0) for o in outs))

    with jax.enable_x64(True):
        jax.export.export(jax.jit(gradient), platforms=PLATFORMS)(KEY, *use.avals)


@pytest.mark.slow
@by_name
def test_every_case_and_gradient_lowers(op: Op) -> None:
    for use in uses(10**6).get(op.name, []):
        check_export(use)
    for use in uses().get(op.name, [])[:1]:
        check_gradient_export(use)
