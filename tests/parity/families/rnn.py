"""RNN in all modes. Plain kernels refuse float32 in this build, so those cases run on oneDNN."""

from typing import Any

from tests.parity.arrays import signed, uniform
from tests.parity.case import Case, op_case

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}


def _case(mode: str, layers: int = 1, both: bool = False, states: bool = False, **options: Any) -> Case:
    params = {"mode": mode, "num_layers": layers, "state_size": 3, "bidirectional": both, "state_outputs": states}
    rows = layers * (2 if both else 1)
    inputs: dict[str, Any] = {"data": signed((4, 2, 3), lo=0.1), "parameters": None, "state": uniform((rows, 2, 3))}
    if mode == "lstm":
        inputs["state_cell"] = uniform((rows, 2, 3))
    outputs = 1 if not states else 3 if mode == "lstm" else 2
    return op_case("RNN", inputs, params, outputs=outputs, backend="onednn", **options)


CASES: list[Case] = [
    *(_case(m) for m in GATES),
    *(_case(m, 2, both=True, states=True) for m in GATES),
    *(_case(m, 2, states=True, dtype="float64") for m in ("gru", "lstm")),
    _case("lstm", grad_req="add"),
    _case("gru", 3, infer=[{"data": (5, 0, 6)}, {"data": (0, 2, 6)}]),
]
