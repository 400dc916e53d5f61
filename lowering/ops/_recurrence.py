"""Recurrent cells run over a sequence by one `lax.scan`, with derivatives that cost little more than the scan itself.

Autodiff through a scan adds up the gradient of the recurrent weight step by step. Here the tangent is stated instead,
as a recurrence linear in the tangents whose coefficients are worked out for all steps at once; the weight enters it
from outside, so that its gradient is one product over all steps. It is a `custom_jvp`: all modes of differentiation
work.

Every array written in the loop costs, and so does every kernel in it. On the CPU the input's part of each gate is an
array of its own (`apart`) where the gates are not kept: XLA makes one kernel of all that reads a block, and does not
vectorise it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.ops._nn import linear, linear_by_rows, sum_dtype

States = tuple[Array, ...]
Clip = Callable[[Array], Array]
Parts = Sequence[Array]


class Mode(NamedTuple):
    """A cell, in its three parts; u is U h of the step (and c, where `bias_apart`), x is W x + b (+ c where not).

    Attributes:
      gates: G, how many blocks of H rows the weights have.
      step: (x by gates, u by gates, states, clip) -> the new states, and what the coefficients are made of.
      coefficients: (that, the states before, the states after), of all steps -> the coefficients of `linear`.
      tangent: (tangent of x, that of u where the states stay) -> what `linear` takes of them: one for u, and others.
      linear: (coefficients, tangent of u, the others, tangents of the states) -> tangents of the new states.
      bias_apart: whether the recurrent bias belongs to u.
    """

    gates: int
    step: Callable[[Parts, Parts, States, Clip], tuple[States, States]]
    coefficients: Callable[[States, States, States], States]
    tangent: Callable[[Array, Array], tuple[Array, States]]
    linear: Callable[[States, Array, States, States], States]
    bias_apart: bool = False


def cut(x: Array, count: int) -> list[Array]:
    """The blocks of H columns, one for each gate."""
    return jnp.split(x, count, axis=-1)


def _sum(dx: Array, du: Array) -> tuple[Array, States]:
    return dx + du, ()


def _lstm_step(x: Parts, u: Parts, states: States, clip: Clip) -> tuple[States, States]:
    i, f, g, o = (a + b for a, b in zip(x, u, strict=True))
    i, f, g, o = jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)
    c = clip(f * states[1] + i * g)
    return (o * jnp.tanh(c), c), (i, f, g, o)


def _lstm_coefficients(kept: States, before: States, after: States) -> States:
    i, f, g, o = kept
    t = jnp.tanh(after[1])
    return g * i * (1 - i), before[1] * f * (1 - f), i * (1 - g * g), t * o * (1 - o), f, o * (1 - t * t)


def _lstm_linear(k: States, du: Array, rest: States, states: States) -> States:
    i, f, g, o = cut(du, 4)
    c = k[4] * states[1] + (k[0] * i + k[1] * f + k[2] * g)
    return k[3] * o + k[5] * c, c


def _gru_step(x: Parts, u: Parts, states: States, clip: Clip) -> tuple[States, States]:
    (xr, xz, xn), (ur, uz, un) = x, u
    r, z = jax.nn.sigmoid(xr + ur), jax.nn.sigmoid(xz + uz)
    n = jnp.tanh(xn + r * un)
    return ((1 - z) * n + z * states[0],), (r, z, n, un)


def _gru_coefficients(kept: States, before: States, after: States) -> States:
    r, z, n, un = kept
    into = (1 - z) * (1 - n * n)
    return into * un * r * (1 - r), (before[0] - n) * z * (1 - z), into * r, into, z


def _gru_tangent(dx: Array, du: Array) -> tuple[Array, States]:
    size = dx.shape[-1] // 3
    both = dx[..., : 2 * size] + du[..., : 2 * size]
    return jnp.concatenate([both, du[..., 2 * size :]], axis=-1), (dx[..., 2 * size :],)


def _gru_linear(k: States, du: Array, rest: States, states: States) -> States:
    r, z, n = cut(du, 3)
    return (k[0] * r + k[1] * z + k[2] * n + k[3] * rest[0] + k[4] * states[0],)


def _vanilla(activation: Callable[[Array], Array], slope: Callable[[Array], Array]) -> Mode:
    def step(x: Parts, u: Parts, states: States, clip: Clip) -> tuple[States, States]:
        return (activation(x[0] + u[0]),), ()

    def linear(k: States, du: Array, rest: States, states: States) -> States:
        return (k[0] * du,)

    return Mode(1, step, lambda kept, before, after: (slope(after[0]),), _sum, linear)


MODES: dict[str, Mode] = {
    "rnn_relu": _vanilla(jax.nn.relu, lambda h: (h > 0).astype(h.dtype)),
    "rnn_tanh": _vanilla(jnp.tanh, lambda h: 1 - h * h),
    "lstm": Mode(4, _lstm_step, _lstm_coefficients, _sum, _lstm_linear),
    "gru": Mode(3, _gru_step, _gru_coefficients, _gru_tangent, _gru_linear, bias_apart=True),
}


def scan_cells(
    mode: str, reverse: bool, w: Array, b: Array | None, x: Array, valid: Array | None, states: States,
    clip: Clip = lambda c: c, project: Array | None = None, keep: bool = False, apart: bool = False,
) -> tuple[Array, States, Any]:  # fmt: skip
    """Runs a cell over all steps, with JAX's own derivatives; see `recurrence`.

    Args:
      clip: applied to the cell state.
      project: (P, H), applied to the hidden state.
      keep: return also, for all steps, what the coefficients are made of, and the states after.
      apart: cut x into the gates' parts before the loop; of use without `keep`.
    """
    cell = MODES[mode]
    across = w.T  # laid out once, before the loop

    def body(before: States, at: tuple[Any, Array | None]) -> tuple[States, Any]:
        x, inside = at
        h = before[0].astype(w.dtype)
        u = jnp.matmul(h, across, preferred_element_type=sum_dtype(h))
        parts = x if apart else cut(x, cell.gates)
        new, kept = cell.step(parts, cut(u if b is None else u + b, cell.gates), before, clip)
        if project is not None:
            new = (linear(new[0].astype(project.dtype), project), *new[1:])
        new = tuple(s.astype(c.dtype) for s, c in zip(new, before, strict=True))
        if inside is None:
            return new, (new[0], None, (kept, new[1:]) if keep else None)
        mask = inside[:, None]
        out = jnp.where(mask, new[0], 0)
        new = tuple(jnp.where(mask, s, c) for s, c in zip(new, before, strict=True))
        return new, (out, new[0] if keep else None, (kept, new[1:]) if keep else None)

    steps = cut(x, cell.gates) if apart else x
    final, (outputs, hidden, kept) = lax.scan(body, states, (steps, valid), reverse=reverse)
    if not keep:
        return outputs, final, None
    return outputs, final, (kept[0], (outputs if hidden is None else hidden, *kept[1]))


def states_before(first: States, after: States, reverse: bool) -> States:
    """The states before each step, of those after each."""
    parts = [(s[1:], f[None]) if reverse else (f[None], s[:-1]) for f, s in zip(first, after, strict=True)]
    return tuple(map(jnp.concatenate, parts))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def recurrence(
    mode: str, reverse: bool, on_cpu: bool, w: Array, b: Array | None, x: Array, valid: Array | None, states: States
) -> tuple[Array, States]:
    """Runs a cell over all steps.

    Args:
      mode: a key of `MODES`, whose number of gates is G.
      reverse: whether to go from the last step to the first.
      on_cpu: whether the gates' parts come apart, and the product over all steps is `linear_by_rows`.
      w: (G*H, H), U.
      b: (G*H,), c, where the mode keeps it apart.
      x: (T, N, G*H), W x + b of all steps, in the accumulation type.
      valid: bool (T, N), False where a sequence has ended: states stay and the output is zero.
      states: the states before the first step, (N, H), in the accumulation type.

    Returns:
      The hidden states (T, N, H), and the states after the last step.
    """
    outputs, final, _ = scan_cells(mode, reverse, w, b, x, valid, states, apart=on_cpu)
    return outputs, final


@recurrence.defjvp
def _recurrence_jvp(mode: str, reverse: bool, on_cpu: bool, primals: Any, tangents: Any) -> Any:
    w, b, x, valid, states = primals
    dw, db, dx, _, dstates = tangents
    cell = MODES[mode]
    outputs, final, (kept, after) = scan_cells(mode, reverse, w, b, x, valid, states, keep=True)
    before = states_before(states, after, reverse)
    du = (linear_by_rows if on_cpu else linear)(before[0].astype(w.dtype), dw)
    du, rest = cell.tangent(dx, du if db is None else du + db)

    def body(d: States, at: Any) -> tuple[States, Array]:
        k, du, rest, inside = at
        new = cell.linear(k, du + linear(d[0].astype(w.dtype), w), rest, d)
        new = tuple(s.astype(c.dtype) for s, c in zip(new, d, strict=True))
        if inside is None:
            return new, new[0]
        mask = inside[:, None]
        return tuple(jnp.where(mask, s, c) for s, c in zip(new, d, strict=True)), jnp.where(mask, new[0], 0)

    steps = (cell.coefficients(kept, before, after), du, rest, valid)
    dfinal, doutputs = lax.scan(body, dstates, steps, reverse=reverse)
    return (outputs, final), (doutputs, dfinal)
