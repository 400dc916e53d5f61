"""Examples: Activation and FullyConnected."""

from tests.parity.arrays import signed, values
from tests.parity.case import Case, graph_case, graph_json, op_case

X = signed((2, 3, 4), lo=0.05)
FC = {"data": (3, 4, 2), "weight": None, "bias": None}
TWO_LAYERS = graph_json(
    [
        ("data",), ("w1",), ("b1",), ("w2",),
        ("fc1", "FullyConnected", {"num_hidden": 5}, ["data", "w1", "b1"]),
        ("act", "Activation", {"act_type": "tanh"}, ["fc1"]),
        ("fc2", "FullyConnected", {"num_hidden": 2, "no_bias": True}, ["act", "w2"]),
    ],
    ["fc2", "act"],
)  # fmt: skip

CASES: list[Case] = [
    *(op_case("Activation", {"data": X}, {"act_type": t}) for t in ("relu", "sigmoid", "tanh", "softrelu", "softsign")),
    op_case("Activation", {"data": X}, {"act_type": "tanh"}, dtype="float64"),
    op_case("Activation", {"data": X}, {"act_type": "sigmoid"}, dtype="float16"),
    op_case("Activation", {"data": X}, {"act_type": "sigmoid"}, grad_req="add"),
    op_case("Activation", {"data": values([[0.0, "inf", "-inf", "nan"]])}, {"act_type": "relu"}, id="special"),
    op_case("Activation", {"data": (0, 3)}, {"act_type": "relu"}, id="empty", np_shape=True),
    op_case("Activation", {"data": X}, {"act_type": "swish"}, id="unknown_type"),
    op_case("FullyConnected", FC, {"num_hidden": 5}),
    op_case("FullyConnected", FC, {"num_hidden": 5, "flatten": False}),
    op_case("FullyConnected", {"data": (3, 4), "weight": None}, {"num_hidden": 5, "no_bias": True}),
    op_case("FullyConnected", FC, {"num_hidden": 5}, dtype="float64"),
    op_case("FullyConnected", FC, {"num_hidden": 5}, dtype="float16", better=True),
    op_case("FullyConnected", FC, {"num_hidden": 5}, grad_req="add", infer=[{"data": (0, 6)}, {"weight": (5, 8)}]),
    op_case("FullyConnected", {"data": (3, 4), "weight": (5, 3), "bias": (5,)}, {"num_hidden": 5}, id="bad_weight"),
    graph_case("two_layers", TWO_LAYERS, {"data": (4, 3), "w1": None, "b1": None, "w2": None}),
]
