"""Dropout: what does not depend on the random stream; its statistics are tested elsewhere."""

from tests.parity.arrays import signed
from tests.parity.case import Case, op_case

X = signed((2, 3, 4))

CASES: list[Case] = [
    op_case("Dropout", {"data": X}, random=True, infer=[{"data": (0, 3)}]),
    op_case("Dropout", {"data": X}, {"p": 0}),
    op_case("Dropout", {"data": X}, {"p": 0, "mode": "always"}),
    op_case("Dropout", {"data": X}, {"p": 0.5, "mode": "always"}, random=True),
    op_case("Dropout", {"data": X}, {"p": 0.3, "axes": (1,)}, random=True),
    op_case("Dropout", {"data": X}, {"p": 0.3, "axes": (0, 2), "cudnn_off": True}, random=True),
    op_case("Dropout", {"data": X}, {"p": 0.3}, dtype="float16", random=True),
    op_case("Dropout", {"data": X}, {"p": 0}, dtype="float64"),
    op_case("Dropout", {"data": X}, {"p": 0}, grad_req="add"),
    op_case("Dropout", {"data": X}, {"p": 1.5}, id="p_above_1"),
    op_case("Dropout", {"data": X}, {"p": 0.5, "mode": "never"}, id="unknown_mode"),
    op_case("_npx_dropout", {"data": X}, {"p": 0}),
]
