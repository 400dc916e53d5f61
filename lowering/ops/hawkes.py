"""The likelihood of marked Hawkes processes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from symjax.lowering.params import NoParams
from symjax.lowering.registry import op

Array = jax.Array


def _shapes(p: Any, ins: list[Any], outs: list[Any]) -> list[Any]:
    n, k = ins[0] if ins[0] is not None and len(ins[0]) == 2 else (0, 0)
    lags = ins[4] if ins[4] is not None else ins[5]
    t = lags[1] if lags is not None and len(lags) == 2 else 0
    return [(n, k), (k,), (k,), (n, k), (n, t), (n, t), (n,), (n,)]


def _types(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    known = next((t for i, t in enumerate((*ins, *outs)) if t and i != 5), None)
    return [*[known] * 5, "int32", known, known], [known, known]


@op("_contrib_hawkesll", params=NoParams, outputs=("output", "out_state"), infer_inputs=_shapes, infer_types=_types)
def hawkesll(p: NoParams, lda: Array, alpha: Array, beta: Array, state: Array, lags: Array, marks: Array,
             valid_length: Array, max_time: Array) -> tuple[Array, Array]:
    """Log likelihood of N marked point processes with exponentially decaying excitation, and the state they end in.

    The intensity of mark k at time t is `lda_k + alpha_k beta_k sum over its events of exp(-beta_k (t - t_event))`.

    Inputs: `lda` (N, K) background intensities; `alpha`, `beta` (K,) branching ratios and decays; `state` (N, K)
    the excitation left from before; `lags` (N, T) times since the event before; `marks` (N, T) int32;
    `valid_length` (N,) how many events count; `max_time` (N,) where observation ends. Outputs: (N,) and (N, K).

    The gradient is the derivative with respect to all floating-point inputs but `valid_length`. MXNet has it for the
    first output and for `lda`, `alpha` and `beta` only.
    """
    k = lda.shape[1]

    def one(mu: Array, start: Array, lag: Array, mark: Array, length: Array, end: Array) -> tuple[Array, Array]:
        def event(carry: Any, x: Any) -> tuple[Any, None]:
            total, time, last, s = carry
            d, m, counts = x
            here = time + d
            since = here - last[m]
            decay = jnp.exp(-beta[m] * since)
            intensity = mu[m] + alpha[m] * beta[m] * s[m] * decay
            compensator = mu[m] * since + alpha[m] * s[m] * (1 - decay)
            new = (total + jnp.log(intensity) - compensator, here, last.at[m].set(here), s.at[m].set(1 + s[m] * decay))
            return jax.tree.map(lambda a, b: jnp.where(counts, a, b), new, carry), None

        zero = jnp.zeros((), mu.dtype)
        counts = jnp.arange(lag.shape[0], dtype=jnp.int32) < length
        carry = (zero, zero, jnp.zeros((k,), mu.dtype), start)
        # masked events must not make a gradient of NaN either
        safe = jnp.where(counts, mark.astype(jnp.int32), 0)
        (total, _, last, s), _ = jax.lax.scan(event, carry, (lag, safe, counts))
        rest = end - last
        decay = jnp.exp(-beta * rest)
        return total - (mu * rest + alpha * s * (1 - decay)).sum(), s * decay

    return jax.vmap(one)(lda, state, lags, marks, jax.lax.stop_gradient(valid_length), max_time)
