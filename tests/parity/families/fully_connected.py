"""FullyConnected."""

from tests.parity.case import Case, graph_case, graph_json, op_case

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
FROM_OUTPUT = graph_json(
    [("data",), ("w",), ("b",), ("like",), ("fc", "FullyConnected", {"num_hidden": 5}, ["data", "w", "b"]),
     ("sum", "elemwise_add", {}, ["fc", "like"])],
    ["sum"],
)  # fmt: skip

CASES: list[Case] = [
    op_case("FullyConnected", FC, {"num_hidden": 5}),
    op_case("FullyConnected", FC, {"num_hidden": 5, "flatten": False}),
    op_case("FullyConnected", {"data": (3, 4), "weight": None}, {"num_hidden": 5, "no_bias": True}),
    op_case("FullyConnected", {"data": (3, 2, 4), "weight": None}, {"num_hidden": 5, "no_bias": 1, "flatten": False}),
    op_case("FullyConnected", {"data": (2, 3, 2, 2), "weight": None, "bias": None}, {"num_hidden": 1}, id="images"),
    op_case("FullyConnected", {"data": (4,), "weight": None, "bias": None}, {"num_hidden": 3}, id="vector"),
    op_case("FullyConnected", {"data": (4,), "weight": None, "bias": None}, {"num_hidden": 3, "flatten": False},
            id="vector_last_axis"),
    op_case("FullyConnected", FC, {"num_hidden": 5}, dtype="float64"),
    op_case("FullyConnected", FC, {"num_hidden": 5}, dtype="float16", better=True),
    op_case("FullyConnected", FC, {"num_hidden": 5}, grad_req="add", infer=[
        {"data": (0, 6)}, {"weight": (5, 8)}]),
    op_case("FullyConnected", FC, {"num_hidden": 5, "flatten": False}, id="partial_last_axis", infer=[
        {"data": (0, 6)}, {"data": (2, 3, 0)}, {"data": (0, 0, 4)}, {"weight": (5, 4)}]),
    op_case("FullyConnected", {"data": (3, 4), "weight": (5, 3), "bias": (5,)}, {"num_hidden": 5}, id="bad_weight"),
    op_case("FullyConnected", {"data": (3, 4), "weight": None, "bias": (4,)}, {"num_hidden": 5}, id="bad_bias"),
    op_case("FullyConnected", {"data": (3, 4), "weight": None, "bias": None}, {"num_hidden": 0}, id="no_units"),
    op_case("FullyConnected", {"data": (3, 4), "weight": None, "bias": None}, id="missing_parameter"),
    op_case("FullyConnected", {"data": (0, 4), "weight": (3, 4), "bias": (3,)}, {"num_hidden": 3}, id="empty",
            np_shape=True),
    op_case("_npx_fully_connected", FC, {"num_hidden": 5}),
    graph_case("two_layers", TWO_LAYERS, {"data": (4, 3), "w1": None, "b1": None, "w2": None}),
    graph_case("batch_from_output", FROM_OUTPUT, {"data": (4, 3), "w": None, "b": None, "like": (4, 5)},
               infer=[{"data": (0, 3), "like": (4, 5)}, {"data": (0, 3, 2), "like": (4, 0)}, {"like": (4, 5)},
                      {"data": (2, 3), "like": (4, 5)}]),
]
