"""Recurrent graphs, for real MXNet and for symjax: `CASES[name](mx)` returns the outputs and the states of one.

`tests/golden/rnn.json` holds what MXNet makes of them (`tests/oracle/record_rnn.py`).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

T, N, C, H = 3, 2, 4, 5


def _unrolled(make: Callable[[Any], Any], shape: tuple[int, ...] = (N, T, C), **kwargs: Any) -> Callable[[Any], Any]:
    def case(mx: Any) -> Any:
        cell = make(mx.rnn)
        outputs, states = cell.unroll(T, mx.sym.Variable("data"), **kwargs)
        return cell, outputs, states, shape

    return case


def _bi(r: Any, **kwargs: Any) -> Any:
    return r.BidirectionalCell(r.LSTMCell(H, prefix="l_"), r.GRUCell(H, prefix="r_"), **kwargs)


def _stack(r: Any) -> Any:
    stack = r.SequentialRNNCell()
    for cell in (r.LSTMCell(H, prefix="a_"), r.DropoutCell(0.5), r.ResidualCell(r.GRUCell(H, prefix="b_")), _bi(r)):
        stack.add(cell)
    return stack


def _shared(r: Any) -> Any:
    params = r.RNNParams("both_")
    stack = r.SequentialRNNCell()
    stack.add(r.RNNCell(C, prefix="x_", params=params))
    stack.add(r.RNNCell(C, activation="relu", prefix="y_", params=params))
    return stack


def _steps(mx: Any) -> Any:
    """Steps by hand, with states that are inputs."""
    cell = mx.rnn.LSTMCell(H, forget_bias=2.0)
    states = cell.begin_state(func=mx.sym.Variable)
    out, states = cell(mx.sym.Variable("data"), states)
    out, states = cell(out, states)
    return cell, out, states, (N, H)


def _fused(mode: str, **kwargs: Any) -> Callable[[Any], Any]:
    return lambda r: r.FusedRNNCell(H, mode=mode, get_next_state=True, **kwargs)


IMAGE = (N, T, C, 6, 7)

CASES: dict[str, Callable[[Any], Any]] = {
    "rnn": _unrolled(lambda r: r.RNNCell(H)),
    "rnn_relu_merged": _unrolled(lambda r: r.RNNCell(H, activation="relu"), merge_outputs=True),
    "lstm": _unrolled(lambda r: r.LSTMCell(H, forget_bias=0.5)),
    "lstm_time_major": _unrolled(lambda r: r.LSTMCell(H), (T, N, C), layout="TNC", merge_outputs=True),
    "gru": _unrolled(lambda r: r.GRUCell(H), merge_outputs=False),
    "steps": _steps,
    "stack": _unrolled(_stack),
    "stack_merged": _unrolled(_stack, merge_outputs=True),
    "shared": _unrolled(_shared),
    "bidirectional": _unrolled(_bi),
    "bidirectional_merged": _unrolled(_bi, merge_outputs=True),
    "bidirectional_time_major": _unrolled(_bi, (T, N, C), layout="TNC", merge_outputs=True),
    "dropout_merged": _unrolled(lambda r: r.DropoutCell(0.3), merge_outputs=True),
    "zoneout": _unrolled(lambda r: r.ZoneoutCell(r.LSTMCell(H), zoneout_outputs=0.2, zoneout_states=0.3)),
    "residual": _unrolled(lambda r: r.ResidualCell(r.GRUCell(C)), merge_outputs=True),
    "residual_list": _unrolled(lambda r: r.ResidualCell(r.GRUCell(C))),
    "fused_lstm": _unrolled(_fused("lstm", num_layers=2, dropout=0.4, forget_bias=0.5)),
    "fused_gru_bidirectional": _unrolled(_fused("gru", num_layers=2, bidirectional=True), (T, N, C), layout="TNC"),
    "fused_relu": _unrolled(_fused("rnn_relu", prefix="f_"), merge_outputs=False),
    "fused_without_states": _unrolled(lambda r: r.FusedRNNCell(H, mode="rnn_tanh"), merge_outputs=True),
    "unfused_lstm": _unrolled(lambda r: _fused("lstm", num_layers=2, dropout=0.4)(r).unfuse()),
    "unfused_gru": _unrolled(lambda r: _fused("gru", num_layers=2, bidirectional=True)(r).unfuse()),
    "conv_rnn": _unrolled(lambda r: r.ConvRNNCell((N, C, 6, 7), H), IMAGE),
    "conv_lstm": _unrolled(lambda r: r.ConvLSTMCell((N, C, 6, 7), H, i2h_stride=(2, 2), h2h_dilate=(2, 2),
                                                    activation="tanh"), IMAGE),
    "conv_lstm_nhwc": _unrolled(lambda r: r.ConvLSTMCell((N, 6, 7, C), H, conv_layout="NHWC"), (N, T, 6, 7, C)),
    "conv_gru": _unrolled(lambda r: r.ConvGRUCell((N, C, 6, 7), H, i2h_weight_initializer="ones"), IMAGE),
}  # fmt: skip

# those whose numbers are recorded: no randomness without training, convolutions and states of every kind
NUMBERS = ("rnn", "lstm", "gru", "stack_merged", "bidirectional_merged", "residual", "fused_lstm", "conv_gru",
           "fused_gru_bidirectional")


def build(mx: Any, name: str) -> tuple[Any, Any, tuple[int, ...]]:
    """Returns (the cell, all outputs and states as one symbol, the shape of the data)."""
    with mx.name.NameManager(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cell, outputs, states, shape = CASES[name](mx)
    return cell, mx.sym.Group([*_flat(outputs), *_flat(states)]), shape


def _flat(tree: Any) -> list[Any]:
    return [s for t in tree for s in _flat(t)] if isinstance(tree, list | tuple) else [tree]


def graph(symbol: Any) -> list[Any]:
    """A symbol's JSON, node by node: [op, name, attributes, inputs], and the heads."""
    found = json.loads(symbol.tojson())
    nodes = [[n["op"], n["name"], n.get("attrs", {}), n["inputs"]] for n in found["nodes"]]
    return [nodes, found["heads"]]


def numbers(mx: Any, np: Any, name: str) -> list[list[float]]:
    """[sum, first, last] of every output, for weights that are the same everywhere."""
    _, symbol, shape = build(mx, name)
    exe = symbol.simple_bind(mx.cpu(), data=shape, grad_req="null")
    for i, arg in enumerate(sorted(exe.arg_dict)):
        array = exe.arg_dict[arg]
        size = int(np.prod(array.shape))
        array[:] = np.sin(np.arange(size) * 0.7 + i).reshape(array.shape) * 0.5
    outs = [o.asnumpy().ravel() for o in exe.forward(is_train=False)]
    return [[float(o.sum()), float(o[0]), float(o[-1])] for o in outs]
