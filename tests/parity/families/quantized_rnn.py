"""_contrib_quantized_rnn. MXNet runs it on processors without VNNI alone, so the numbers are a formula's.

The formula was checked against MXNet with DNNL_MAX_CPU_ISA=AVX512_CORE: one layer agrees to the last digit.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.parity.arrays import const, randint, uniform
from tests.parity.case import Case, op_case

T, N, WIDTH, H = 3, 2, 4, 5


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def weights(flat: np.ndarray, layers: int, directions: int) -> list[list[np.ndarray]]:
    """Input weights, state weights and bias by layer and direction."""
    place, cells = 0, []
    for row in range(layers * directions):
        cell = []
        for width in (WIDTH if row < directions else H * directions, H):
            cell.append(flat[place:place + 4 * H * width].reshape(4 * H, width))
            place += 4 * H * width
        cells.append(cell)
    for cell in cells:
        cell.append(flat[place:place + 4 * H] + flat[place + 4 * H:place + 8 * H])
        place += 8 * H
    return cells


def formula(layers: int, directions: int, states: bool) -> Any:
    """The quantized LSTM in float64."""
    def run(x: dict[str, np.ndarray]) -> Mapping[str, Any]:
        scale, shift = float(x["data_scale"][0]), float(x["data_shift"][0])
        cells = weights(x["parameters"].astype("float64"), layers, directions)
        steps = 127 / np.max([np.abs(np.concatenate(c[:2], 1)).max(1) for c in cells], 0)
        seen, hs, cs = x["data"].astype("float64"), [], []
        for layer in range(layers):
            outs = []
            for d in range(directions):
                row = layer * directions + d
                w, u = (np.rint(m * steps[:, None]) for m in cells[row][:2])
                h, c = quantized(x["state"][row].astype("float64"), scale, shift), x["state_cell"][row]
                sequence = []
                for t in range(T)[::-1 if d else 1]:
                    total = seen[t] @ w.T + h @ u.T - shift * (w.sum(1) + u.sum(1))
                    i, f, g, o = np.split(total / (scale * steps) + cells[row][2], 4, 1)
                    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                    h = quantized(sigmoid(o) * np.tanh(c), scale, shift)
                    sequence.append(h)
                outs.append(np.stack(sequence[::-1 if d else 1]))
                hs.append((h - shift) / scale)
                cs.append(c)
            seen = np.concatenate(outs, -1)
        found = [(seen - shift) / scale, np.stack(hs), np.stack(cs)][:3 if states else 1]
        return {f"{k}{i}": v for k in ("out", "train") for i, v in enumerate(found)}
    return run


def quantized(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """uint8 numbers."""
    return np.clip(np.rint(x * scale + shift), 0, 255)


def lstm(id: str, layers: int = 1, bidirectional: bool = False, states: bool = True, **params: Any) -> Case:
    """A case of the quantized LSTM."""
    d = 1 + bidirectional
    size = sum(d * 4 * H * ((WIDTH if layer == 0 else H * d) + H + 2) for layer in range(layers))
    inputs = {"data": randint((T, N, WIDTH), 0, 256, "uint8"), "parameters": uniform((size,)),
              "state": uniform((layers * d, N, H)), "state_cell": uniform((layers * d, N, H)),
              "data_scale": const(100, (1,)), "data_shift": const(128, (1,))}
    given = {"state_size": H, "num_layers": layers, "bidirectional": bidirectional, "mode": "lstm",
             "state_outputs": states, **params}
    return op_case("_contrib_quantized_rnn", inputs, given, id=id, outputs=3 if states else 1, grads=False,
                   backend="onednn", infer_from=tuple(inputs), better=True, expected=formula(layers, d, states))


CASES: list[Case] = [
    lstm("one"),
    lstm("no-states", states=False),
    lstm("two-layers", layers=2),
    lstm("bidirectional", bidirectional=True, quantized="true"),
    lstm("deep", layers=2, bidirectional=True),
]
