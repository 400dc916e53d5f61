"""The fused recurrent layers: `RNN` in the modes rnn_relu, rnn_tanh, lstm and gru.

Each layer is one matrix product of the whole sequence with the input weights, then a `lax.scan` over time
(`_recurrence`), so what is compiled does not grow with the length of the sequence.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.ops._lstm import lstm
from symjax.lowering.ops._nn import linear, linear_by_rows, widen
from symjax.lowering.ops._recurrence import MODES, recurrence, scan_cells
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op


class RNNParams(Params):
    state_size: int = param(doc="Size H of the hidden state of a layer.", ge=0)
    num_layers: int = param(doc="Number of stacked layers.", ge=0)
    bidirectional: bool = param(False, doc="Run every layer in both directions and concatenate their outputs.")
    mode: Literal["gru", "lstm", "rnn_relu", "rnn_tanh"] = param(doc="The recurrent cell.")
    p: float = param(0.0, doc="Dropout rate of the outputs of all layers but the last, in training.", ge=0, le=1)
    state_outputs: bool = param(False, doc="Whether the final states are outputs too.")
    projection_size: int | None = param(None, doc="Size that an lstm's hidden state is projected to.")
    lstm_state_clip_min: float | None = param(None, doc="Lower bound of the lstm's cell state; goes with the upper.")
    lstm_state_clip_max: float | None = param(None, doc="Upper bound of the lstm's cell state; goes with the lower.")
    lstm_state_clip_nan: bool = param(False, doc="Whether clipping also replaces NaN in the cell state by the bound.")
    use_sequence_length: bool = param(False, doc="Whether there is an input of the sequences' lengths.")


class Cell(NamedTuple):
    """The weights of one layer in one direction: G is the number of gates, R the size of the recurrent state."""

    w_input: Array  # (G*H, I)
    w_state: Array  # (G*H, R)
    w_project: Array | None  # (P, H)
    b_input: Array  # (G*H,)
    b_state: Array  # (G*H,)


def _directions(p: RNNParams) -> int:
    return 2 if p.bidirectional else 1


def _recurrent_size(p: RNNParams) -> int:
    return p.state_size if p.projection_size is None else p.projection_size


def _cell_shapes(p: RNNParams, layer: int, input_size: int) -> list[tuple[int, int]]:
    """Shapes of the weight matrices of one direction of a layer, in the order in which `parameters` packs them."""
    size = input_size if layer == 0 else _recurrent_size(p) * _directions(p)
    rows = MODES[p.mode].gates * p.state_size
    shapes = [(rows, size), (rows, _recurrent_size(p))]
    return shapes if p.projection_size is None else [*shapes, (p.projection_size, p.state_size)]


def parameter_size(p: RNNParams, input_size: int) -> int:
    """Number of entries of the packed parameter vector.

    Args:
      p: the op's parameters.
      input_size: features I per time step of the data.
    """
    rows, total = MODES[p.mode].gates * p.state_size, 0
    for layer in range(p.num_layers):
        weights = sum(r * c for r, c in _cell_shapes(p, layer, input_size))
        total += _directions(p) * (weights + 2 * rows)
    return total


def unpack(p: RNNParams, parameters: Array, input_size: int) -> list[list[Cell]]:
    """Cuts the packed vector: all weights by layer and direction, then all biases in the same order."""
    order = [layer for layer in range(p.num_layers) for _ in range(_directions(p))]
    rows = MODES[p.mode].gates * p.state_size
    shapes: list[tuple[int, ...]] = [s for layer in order for s in _cell_shapes(p, layer, input_size)]
    shapes += [(rows,)] * (2 * len(order))
    # one split: its gradient is a concatenation, where XLA:CPU adds those of slices element by element
    parts = lax.split(parameters, [math.prod(s) for s in shapes])
    cut = iter([x.reshape(s) for x, s in zip(parts, shapes, strict=True)])
    weights = [[next(cut) for _ in _cell_shapes(p, layer, input_size)] for layer in order]
    cells: list[list[Cell]] = [[] for _ in range(p.num_layers)]
    for layer, matrices in zip(order, weights, strict=True):
        project = matrices[2] if len(matrices) == 3 else None
        cells[layer].append(Cell(matrices[0], matrices[1], project, next(cut), next(cut)))
    return cells


def _clip_cell(p: RNNParams, c: Array) -> Array:
    if p.lstm_state_clip_min is None or p.lstm_state_clip_max is None:
        return c
    clipped = jnp.clip(c, p.lstm_state_clip_min, p.lstm_state_clip_max)
    return jnp.where(jnp.isnan(c), p.lstm_state_clip_min, clipped) if p.lstm_state_clip_nan else clipped


def _run_direction(p: RNNParams, cell: Cell, data: Array, states: tuple[Array, ...], valid: Array | None,
                   reverse: bool, on_cpu: bool) -> tuple[Array, tuple[Array, ...]]:
    """One layer in one direction: (T, N, I) -> (T, N, R) in the accumulation type, and the final states."""
    mode = MODES[p.mode]
    bias = cell.b_input if mode.bias_apart else cell.b_input + cell.b_state
    data = data.astype(cell.w_input.dtype)
    states = tuple(map(widen, states))
    plain = cell.w_project is None and p.lstm_state_clip_min is None
    if on_cpu and plain and p.mode == "lstm" and valid is None and data.size:
        return lstm(reverse, cell.w_input, cell.w_state, bias, data, states)
    x = linear_by_rows(data, cell.w_input, bias) if on_cpu else linear(data, cell.w_input) + bias
    b = cell.b_state if mode.bias_apart else None
    if plain:
        return recurrence(p.mode, reverse, on_cpu, cell.w_state, b, x, valid, states)
    clip = functools.partial(_clip_cell, p)
    return scan_cells(p.mode, reverse, cell.w_state, b, x, valid, states, clip=clip, project=cell.w_project,
                      apart=on_cpu)[:2]


def _dropout(rate: float, key: Array, x: Array) -> Array:
    keep = jax.random.bernoulli(key, jnp.float32(1 - rate), x.shape)
    return jnp.where(keep, x / (1 - rate), 0).astype(x.dtype)


def _check(p: RNNParams, shapes: Sequence[tuple[int, ...]]) -> None:
    lstm_only = {"projection_size": p.projection_size, "lstm_state_clip_min": p.lstm_state_clip_min,
                 "lstm_state_clip_max": p.lstm_state_clip_max}
    for name, value in lstm_only.items():
        if value is not None and p.mode != "lstm":
            raise ParamError(f"{name} applies to mode='lstm' only, mode is {p.mode!r}")
    if (p.lstm_state_clip_min is None) != (p.lstm_state_clip_max is None):
        raise ParamError("lstm_state_clip_min and lstm_state_clip_max must be given together")
    if p.num_layers < 1 or p.state_size < 1:
        raise ParamError(f"num_layers and state_size must be positive, got {p.num_layers} and {p.state_size}")
    if len(shapes[0]) != 3:
        raise ShapeError(f"data must have three axes (time, batch, feature), got shape {shapes[0]}")
    for name, want, got in zip(input_names(p), _input_shapes(p, shapes[0]), shapes, strict=True):
        if want != got:
            raise ShapeError(f"{name} must have shape {want} for data of shape {shapes[0]}, got {got}")


def _input_shapes(p: RNNParams, data: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes of all inputs for data (T, N, I); a 0 in N is kept."""
    _, batch, features = data
    rows = p.num_layers * _directions(p)
    shapes: list[tuple[int, ...]] = [data, (parameter_size(p, features),), (rows, batch, _recurrent_size(p))]
    if p.mode == "lstm":
        shapes.append((rows, batch, p.state_size))
    return [*shapes, (batch,)] if p.use_sequence_length else shapes


def input_names(p: RNNParams) -> tuple[str, ...]:
    names = ["data", "parameters", "state"]
    if p.mode == "lstm":
        names.append("state_cell")
    if p.use_sequence_length:
        names.append("sequence_length")
    return tuple(names)


def _output_names(p: RNNParams) -> tuple[str, ...]:
    if not p.state_outputs:
        return ("output",)
    return ("output", "state_output", "statecell_output") if p.mode == "lstm" else ("output", "state_output")


def _infer_inputs(p: RNNParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    data = ins[0]
    if data is None or len(data) != 3:
        return ins
    shapes: list[ShapeLike] = list(_input_shapes(p, data))
    if data[2] == 0:
        shapes[1] = None
    return shapes


def _infer_types(p: RNNParams, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None],
                                                                                       list[str | None]]:
    lengths = ins[-1:] if p.use_sequence_length else []
    states = ins[:-1] if p.use_sequence_length else ins
    known = next((t for t in [*states, *outs] if t), None)
    return [known] * len(states) + [t or known for t in lengths], [known] * len(outs)


@op("RNN", aliases=("_npx_rnn",), params=RNNParams, inputs=input_names,
    all_inputs=("data", "parameters", "state", "state_cell", "sequence_length"), outputs=_output_names,
    infer_inputs=_infer_inputs, infer_types=_infer_types)
def rnn(p: RNNParams, *inputs: Array, train: bool, key: Array) -> Array | tuple[Array, ...]:
    """Runs stacked recurrent layers over a sequence.

    With x_t the input of a layer and h the state, per direction:

    - rnn_relu, rnn_tanh: h_t = act(W x_t + b + U h_{t-1} + c)
    - lstm: gates i, f, g, o of W x_t + b + U h_{t-1} + c; c_t = s(f) c_{t-1} + s(i) tanh(g); h_t = s(o) tanh(c_t),
      with `projection_size` h_t = R s(o) tanh(c_t)
    - gru: gates r, z, n; n = tanh(W_n x_t + b_n + s(r) (U_n h_{t-1} + c_n)); h_t = (1 - z) n + z h_{t-1}

    Shapes, with D = 2 if bidirectional else 1, L layers, R = projection_size or H: data (T, N, I), parameters (size,),
    state (L*D, N, R), state_cell (L*D, N, H), sequence_length (N,). Outputs: (T, N, D*R), and the final states with
    `state_outputs`. `parameters` holds W, U (and the projection) by layer and direction, then b, c likewise.

    With `use_sequence_length` the output is zero behind a sequence's end, its final state is the one at its end, and
    the reverse direction begins there.
    """
    return _run(p, inputs, train, key, on_cpu=False)


@rnn.variant(platform="cpu")
def _on_cpu(p: RNNParams, *inputs: Array, train: bool, key: Array) -> Array | tuple[Array, ...]:
    return _run(p, inputs, train, key, on_cpu=True)


def _run(p: RNNParams, inputs: Sequence[Array], train: bool, key: Array,
         on_cpu: bool) -> Array | tuple[Array, ...]:  # fmt: skip
    """Runs the layers; for `on_cpu` see `recurrence`."""
    _check(p, [x.shape for x in inputs])
    named = dict(zip(input_names(p), inputs, strict=True))
    data, state = named["data"], named["state"]
    initial = (state, named["state_cell"]) if p.mode == "lstm" else (state,)
    # MXNet: sequence_length, projection_size and cell clipping are refused on CPU; they follow its cuDNN path here.
    valid = None
    if p.use_sequence_length:
        steps = jnp.arange(data.shape[0], dtype=jnp.int32)
        valid = steps[:, None] < named["sequence_length"].astype(jnp.int32)
    cells = unpack(p, named["parameters"], data.shape[2])
    x, finals = data, []
    for layer, directions in enumerate(cells):
        if layer and train and p.p > 0:
            x = _dropout(p.p, jax.random.fold_in(key, layer), x)
        outputs = []
        for d, cell in enumerate(directions):
            row = layer * len(directions) + d
            out, final = _run_direction(p, cell, x, tuple(s[row] for s in initial), valid, d == 1, on_cpu)
            outputs.append(out.astype(data.dtype))
            finals.append(final)
        x = outputs[0] if len(outputs) == 1 else jnp.concatenate(outputs, axis=-1)
    if not p.state_outputs:
        return x
    return (x, *(jnp.stack(rows).astype(data.dtype) for rows in zip(*finals, strict=True)))
