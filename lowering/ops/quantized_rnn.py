"""`_contrib_quantized_rnn`: the LSTM on uint8 data and uint8 hidden states, with int8 weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._integer import FLOAT, RANGE, WHOLE, Types, check_types, dot, dot_by_floats, round_even, scalar
from symjax.lowering.ops.rnn import Cell, RNNParams, rnn, unpack
from symjax.lowering.params import param
from symjax.lowering.registry import ShapeLike, op

_INPUTS = ("data", "parameters", "state", "state_cell", "data_scale", "data_shift")


class QuantizedRNNParams(RNNParams):
    quantized: bool = param(True, doc="Set by MXNet's quantizer; ignored.")


def _check(p: QuantizedRNNParams) -> None:
    unsupported = {"projection_size": p.projection_size, "lstm_state_clip_min": p.lstm_state_clip_min,
                   "use_sequence_length": p.use_sequence_length or None}
    for name, value in unsupported.items():
        if value is not None:
            raise ParamError(f"parameter {name}={value} is not supported by the quantized LSTM")
    if p.mode != "lstm":
        raise ParamError(f"parameter mode={p.mode!r}: only the lstm is quantized")


def _shapes(p: QuantizedRNNParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    _check(p)
    assert rnn.infer_inputs is not None
    return [*rnn.infer_inputs(p, ins[:4], outs), RANGE, RANGE]


def _types(p: QuantizedRNNParams, ins: list[str | None], outs: list[str | None]) -> Types:
    _check(p)
    check_types(_INPUTS, ins[:1], ("uint8",))
    return ["uint8", *[FLOAT] * 5], [FLOAT] * len(outs)


def _outputs(p: QuantizedRNNParams) -> tuple[str, ...]:
    # MXNet: the last name is misspelt.
    return ("output", "state_output", "statecell_ouput") if p.state_outputs else ("output",)


def _weight_scales(cells: list[list[Cell]]) -> Array:
    """int8 steps per unit for each row of the weight matrices (4H,), shared by all layers and directions."""
    reach = jnp.zeros((cells[0][0].w_state.shape[0],), jnp.float32)
    for c in (c for layer in cells for c in layer):
        for w in (c.w_input, c.w_state):
            reach = jnp.maximum(reach, jnp.abs(w).max(1))
    return jnp.where(reach > 0, jnp.float32(WHOLE["int8"]) / reach, 1)


def _run(cell: Cell, x: Array, h: Array, c: Array, scales: Array, scale: Array, shift: Array, reverse: bool,
         product: Callable[[Array, Array], Array]) -> tuple[Array, Array, Array]:
    """One direction of a layer on uint8 x (T, N, I): all uint8 states (T, N, H), and the final states as floats."""
    w_input, w_state = (round_even(w * scales[:, None], jnp.int8) for w in (cell.w_input, cell.w_state))
    bias, unit = cell.b_input + cell.b_state, 1 / (scale * scales)
    offset = shift * (w_input.sum(1, dtype=jnp.int32) + w_state.sum(1, dtype=jnp.int32)).astype(jnp.float32)

    def step(carry: tuple[Array, Array], from_x: Array) -> tuple[tuple[Array, Array], Array]:
        total = (from_x + product(carry[0], w_state)).astype(jnp.float32)
        i, f, g, o = jnp.split((total - offset) * unit + bias, 4, axis=-1)
        c = jax.nn.sigmoid(f) * carry[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = round_even(jax.nn.sigmoid(o) * jnp.tanh(c) * scale + shift, jnp.uint8)
        return (h, c), h

    start = round_even(h * scale + shift, jnp.uint8), c
    final, states = lax.scan(step, start, product(x, w_input), reverse=reverse)
    return states, final[0], final[1]


def _quantized_rnn(product: Callable[[Array, Array], Array], p: QuantizedRNNParams, inputs: tuple[Array, ...]) -> Any:
    _check(p)
    data, parameters, h, c = lax.stop_gradient(inputs[:4])
    scale, shift = scalar(inputs[4]), scalar(inputs[5])
    if data.ndim != 3:
        raise ShapeError(f"argument data: expected (time, batch, feature), got shape {data.shape}")
    x, finals = round_even(data.astype(jnp.float32), jnp.uint8), []
    cells = unpack(p, parameters, data.shape[2])
    scales = _weight_scales(cells)
    for layer, directions in enumerate(cells):
        outs = []
        for d, cell in enumerate(directions):
            row = layer * len(directions) + d
            states, *final = _run(cell, x, h[row], c[row], scales, scale, shift, d == 1, product)
            outs.append(states)
            finals.append(final)
        x = outs[0] if len(outs) == 1 else jnp.concatenate(outs, axis=-1)

    def real(q: Array) -> Array:
        return (q.astype(jnp.float32) - shift) / scale

    if not p.state_outputs:
        return real(x)
    return real(x), real(jnp.stack([f[0] for f in finals])), jnp.stack([f[1] for f in finals])


@op("_contrib_quantized_rnn", params=QuantizedRNNParams, inputs=_INPUTS, outputs=_outputs, infer_inputs=_shapes,
    infer_types=_types)
def quantized_rnn(p: QuantizedRNNParams, data: Array, parameters: Array, state: Array, state_cell: Array,
                  data_scale: Array, data_shift: Array) -> Any:
    """An LSTM as RNN runs it, on uint8 data q that stands for `(q - data_shift) / data_scale`.

    The weights are rounded to int8, with one scale per row for all layers, and their products summed in int32; the
    hidden state goes from step to step and from layer to layer as uint8, with data_scale and data_shift. Bias, gates
    and the cell state are float32, and so are all outputs; their shapes are RNN's. data_scale and data_shift are (1,).
    """
    # MXNet: with several layers it reads the scale from misplaced weights. On processors with VNNI it does not run.
    return _quantized_rnn(dot, p, (data, parameters, state, state_cell, data_scale, data_shift))


@quantized_rnn.variant(platform="cpu")
def _quantized_rnn_cpu(p: QuantizedRNNParams, *inputs: Array) -> Any:
    return _quantized_rnn(dot_by_floats, p, inputs)
