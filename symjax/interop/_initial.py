"""Initial values of parameters, by MXNet's rules on names."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import jax
import jax.numpy as jnp

from symjax.lowering.graph import Graph, Node
from symjax.symbol._roles import readers

Initializer = Callable[..., jax.Array]
"""(key, shape, dtype) -> array, as `jax.nn.initializers` make them."""

_ONE = ("gamma", "moving_var", "running_var")
_ZERO = ("bias", "beta", "moving_mean", "running_mean", "moving_avg", "min", "max")
_STATES = frozenset(["state", "state_cell"])


def he_normal(key: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """Normal with variance 2 / fan_in for MXNet's layout (out, in, ...); uniform in ±0.07 for arrays of one axis."""
    if len(shape) < 2:
        return jax.random.uniform(key, shape, dtype, -0.07, 0.07)
    return jax.nn.initializers.he_normal(in_axis=1, out_axis=0)(key, shape, dtype)


def initial_values(
    graph: Graph,
    given: AbstractSet[str],
    params: dict[str, jax.Array],
    aux: dict[str, jax.Array],
    initializer: Initializer,
    key: Callable[[], jax.Array],
) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """Initialises what is not given; `key` makes a random key, and is called only if one is needed."""
    nodes = {n.name: n for n in graph.inputs}
    uses = readers(graph)

    def value(name: str, zeros: jax.Array) -> jax.Array:
        if name in given or not jnp.issubdtype(zeros.dtype, jnp.inexact):
            return zeros
        if name.endswith(_ONE):
            return jnp.ones_like(zeros)
        if name.endswith(_ZERO) or name in aux or _is_state(uses[nodes[name]]):
            return zeros
        return initializer(key(), zeros.shape, zeros.dtype)

    with jax.enable_x64(True):
        return {k: value(k, v) for k, v in params.items()}, {k: value(k, v) for k, v in aux.items()}


def _is_state(uses: list[tuple[Node, int]]) -> bool:
    return bool(uses) and all(i < len(n.input_names) and n.input_names[i] in _STATES for n, i in uses)
