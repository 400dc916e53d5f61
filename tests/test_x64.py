"""Every op, with its 64-bit parts, lowers and differentiates inside a program of a user who left JAX at 32 bits."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symjax.lowering.registry import Op
from tests.registry_cases import DYNAMIC, KEY, Use, own_ops, uses

by_name = pytest.mark.parametrize("op", [o for o in own_ops() if o.name not in DYNAMIC], ids=lambda o: o.name)


def inside(use: Use, key: Any, *inputs: Any) -> Any:
    """The op as a lowered graph runs it: traced with 64 bits, whatever is set outside."""
    with jax.enable_x64(True):
        return use.function(train=True)(key, *inputs)


@by_name
def test_lowers_with_its_gradient_in_a_32_bit_program(op: Op) -> None:
    assert not jax.config.read("jax_enable_x64")
    for use in uses().get(op.name, [])[:1]:
        wrt = [i for i, s in enumerate(use.avals) if s.dtype in (np.float16, np.float32)]

        def total(diff: Any, key: Any, inputs: Any, use: Use = use, wrt: Any = wrt) -> Any:
            full = list(inputs)
            for i, v in zip(wrt, diff, strict=True):
                full[i] = v
            outs = inside(use, key, *full)
            sums = [o.astype(jnp.float32).sum() for o in outs if o.dtype in (jnp.float16, jnp.float32)]
            return sum(sums) + jnp.float32(0), outs

        call = jax.grad(total, has_aux=True) if wrt else total
        jax.jit(call).lower([use.avals[i] for i in wrt], KEY, list(use.avals))
