"""One LSTM layer in one direction as XLA's CPU compiler runs it best, for reverse-mode differentiation.

Small matrices leave the arrays that a step reads and writes as the larger part of the work. The loop forward keeps the
gates in the place of the input's part, which is read only then; the loop backward puts the gradient of the gates'
arguments in the place of the gates. So neither fills new arrays, and what a step writes is in the cache already. The
gradients of both weights and the bias are one product over all steps.

XLA copies a whole array in each step unless what reads a row is sure to run before what writes it: the writer takes
what the readers make (forward), or the row was read in the step before (backward).
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.ops._nn import linear, linear_by_rows, sum_dtype, widen
from symjax.lowering.ops._recurrence import MODES, States, cut, scan_cells, states_before

_CELL = MODES["lstm"]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def lstm(reverse: bool, w: Array, u: Array, bias: Array, data: Array, states: States) -> tuple[Array, States]:
    """Runs an LSTM layer over all steps; see `rnn.rnn` for the formula.

    Args:
      reverse: whether to go from the last step to the first.
      w: (4*H, I), the weights of the input.
      u: (4*H, H), those of the state.
      bias: (4*H,), the sum of both biases.
      data: (T, N, I), neither T nor N 0, in the type of the weights.
      states: (h, c) before the first step, (N, H), in the accumulation type.

    Returns:
      The hidden states (T, N, H), and the states after the last step, in the accumulation type.
    """
    outputs, final, _ = scan_cells("lstm", reverse, u, None, linear_by_rows(data, w, bias), None, states, apart=True)
    return outputs, final


def _forward(reverse: bool, w: Array, u: Array, bias: Array, data: Array, states: States) -> Any:
    rows = linear_by_rows(data, w, bias)
    across, last = u.T, data.shape[0] - 1

    def body(k: Array, carried: Any) -> Any:
        states, rows, hidden, cells = carried
        t = last - k if reverse else k
        product = _product(states[0].astype(u.dtype), across)
        (h, c), gates = _CELL.step(cut(rows[t], 4), cut(product, 4), states, lambda c: c)
        return (h, c), _put(rows, t, jnp.concatenate(gates, axis=-1)), _put(hidden, t, h), _put(cells, t, c)

    empty = jnp.zeros((*rows.shape[:2], u.shape[1]), rows.dtype)
    final, gates, hidden, cells = lax.fori_loop(0, last + 1, body, (states, rows, empty, empty))
    return (hidden, final), (w, u, data, states, gates, hidden, cells)


def _backward(reverse: bool, kept: Any, cotangents: Any) -> Any:
    w, u, data, states, gates, hidden, cells = kept
    d_outputs, d_final = cotangents
    last, wide = data.shape[0] - 1, widen(u)

    def body(k: Array, carried: Any) -> Any:
        (dh, dc), row, rows = carried
        t = k if reverse else last - k
        earlier = t + 1 if reverse else t - 1
        before = jnp.where(k == last, states[1], cells[jnp.clip(earlier, 0, last)])
        # the coefficients depend on the cells alone: any hidden state will do
        ki, kf, kg, ko, stays, through = _CELL.coefficients(tuple(cut(row, 4)), (dh, before), (dh, cells[t]))
        dh = dh + d_outputs[t]
        dc = dc + dh * through
        d = jnp.concatenate([dc * ki, dc * kf, dc * kg, dh * ko], axis=-1)
        rows = _put(rows, t, d)
        return (_product(d, wide), dc * stays), rows[jnp.clip(earlier, 0, last)], rows

    first = gates[0 if reverse else last]
    d_states, _, d = lax.fori_loop(0, last + 1, body, (d_final, first, gates))
    (before,) = states_before(states[:1], (hidden,), reverse)
    ones = jnp.ones((*data.shape[:2], 1), d.dtype)
    inputs = jnp.concatenate([widen(data), widen(before.astype(u.dtype)), ones], axis=-1)
    d_all = lax.dot_general(_flat(inputs), _flat(d), (((0,), (0,)), ((), ()))).T
    d_data = linear(_flat(d), widen(w).T).reshape(data.shape)
    d_w, d_u, d_bias = d_all[:, : w.shape[1]], d_all[:, w.shape[1] : -1], d_all[:, -1]
    return d_w.astype(w.dtype), d_u.astype(u.dtype), d_bias.astype(w.dtype), d_data.astype(data.dtype), d_states


lstm.defvjp(_forward, _backward)


def _flat(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _product(x: Array, y: Array) -> Array:
    return jnp.matmul(x, y, preferred_element_type=sum_dtype(x))


def _put(rows: Array, t: Array, row: Array) -> Array:
    return lax.dynamic_update_index_in_dim(rows, row, t, 0)
