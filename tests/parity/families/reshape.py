"""Reshape and its codes, transposes, squeezing, tiling, reversing, block moves, diag."""

from tests.parity.arrays import randint
from tests.parity.case import Case, graph_case, graph_json, op_case

X = {"data": (2, 3, 4)}
CODES = [
    (0, -1), (-2,), (-3, 0), (0, -3), (-4, 1, 2, -2), (-4, -1, 2, -2), (0, -4, 3, -1, -2), (6, 4), (-1,), (2, -2, 1, 1),
    (1, 1, 0, -1), (0, 0, 0, -1), (0, 0, 0, -2), (-1, 12), (4, 0, 2),
]  # fmt: skip
REVERSE_CODES = [(-1, 0), (0, -1), (-3, 0), (-2,), (2, 0, 0), (-1, 3, 0), (0, -3)]
BAD_CODES = [(-1, -1), (0, 0, 0, 0), (-3, -3), (-4, 3, 5, -2), (-4, -1, -1, -2), (5, 5)]
RANGES = [
    ((2, 3, 4), (2, 12), {}),
    ((2, 3, 4), (4, 6), {}),
    ((30, 7), (15, 2, 4), {"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2}),
    ((4, 6), (2, 2, 3), {"lhs_begin": 1, "lhs_end": None, "rhs_begin": -2}),
    ((2, 3, 4), (9, 6), {"lhs_begin": 0, "lhs_end": -1, "rhs_begin": 1}),
    ((2, 3, 4), (9, 6), {"lhs_begin": 2, "lhs_end": 1}),
]


def consumer(id: str, op: str, params: dict, out: tuple[int, ...], given: dict | None = None) -> Case:
    """What the output's shape, known from another input of its consumer, says about the op's input."""
    text = graph_json([("x",), ("y",), ("op", op, params, ["x"]), ("sum", "elemwise_add", {}, ["op", "y"])], ["sum"])
    return graph_case(f"{op}-consumer-{id}", text, {"y": out, "x": None if not given else given["x"]},
                      infer_from=("y",), infer=[{"y": out, **(given or {})}])  # fmt: skip


CASES: list[Case] = [
    *(op_case("Reshape", X, {"shape": s}) for s in CODES),
    *(op_case("Reshape", X, {"shape": s, "reverse": True}) for s in REVERSE_CODES),
    *(op_case("Reshape", X, {"shape": s}) for s in BAD_CODES),
    *(op_case("Reshape", X, {"shape": (0, -1)}, dtype=t) for t in ("float16", "float64", "int32", "uint8")),
    op_case("Reshape", X, {"shape": (-1, 6)}, id="partial", infer=[{"data": (0, 3, 2)}, {"data": (0, 3, 4)}]),
    op_case("Reshape", X, {"shape": (2, -1)}, id="partial2", infer=[{"data": (0, 3, 2)}], grad_req="add"),
    op_case("Reshape", X, {"shape": (-4, 2, -1, -2)}, id="partial3", infer=[{"data": (0, 3, 2)}]),
    op_case("Reshape", X, {"shape": (0, 12)}, id="partial4", infer=[{"data": (0, 3, 4)}, {"data": (2, 0, 4)}]),
    *(op_case("Reshape", X, {"target_shape": s}) for s in ((0, 12), (2, 0), (24,), (5, 0))),
    *(op_case("Reshape", X, {"target_shape": s, "keep_highest": True}) for s in ((0, 0), (9, 12), (0, 4, 0), (9, 0))),
    op_case("Reshape", {"data": (0, 3)}, {"shape": (-1, 0)}, id="empty", np_shape=True),
    *(op_case("reshape_like", {"lhs": a, "rhs": b}, p, id=f"{a}{b}{p}", grads=["lhs"], infer_from=("lhs", "rhs"))
      for a, b, p in RANGES),
    op_case("reshape_like", {"lhs": (2, 6), "rhs": randint((3, 4), dtype="int32")}, id="int_rhs", grads=["lhs"],
            infer_from=("lhs", "rhs")),
    *(op_case("Flatten", {"data": s}, id=str(s)) for s in ((3,), (2, 3), (2, 3, 2, 2))),
    *(op_case("transpose", X, {"axes": a}) for a in ((), (1, 0, 2), (2, 0, 1), (0, 1))),
    op_case("transpose", X, {"axes": (1, 0, 2)}, dtype="int32"),
    op_case("transpose", {"data": (2, 3)}, id="partial", infer=[{"data": (0, 3)}], grad_req="add"),
    consumer("axes", "transpose", {"axes": (2, 0, 1)}, (2, 3, 4)),
    consumer("expand", "expand_dims", {"axis": 1}, (2, 1, 3)),
    consumer("expand_last", "expand_dims", {"axis": -1}, (2, 3, 1)),
    consumer("reverse", "reverse", {"axis": (0,)}, (2, 3)),
    consumer("one_open", "Reshape", {"shape": (0, -1)}, (2, 6), {"x": (2, 3, 2)}),
    *(op_case("SwapAxis", X, p) for p in ({}, {"dim1": 0, "dim2": 2}, {"dim1": 2, "dim2": 1})),
    op_case("SwapAxis", {"data": (2, 3, 4, 2)}, {"dim1": 1, "dim2": 3}, infer=[{"data": (0, 3, 4, 2)}]),
    *(op_case("expand_dims", X, {"axis": a}) for a in (0, 1, 3, -1, -4, 4)),
    *(op_case("squeeze", {"data": (1, 2, 1, 3)}, p) for p in ({}, {"axis": 0}, {"axis": (0, 2)}, {"axis": -2},
                                                              {"axis": 1}, {"axis": (2, 0)})),
    op_case("squeeze", {"data": (1, 1)}, id="all_ones"),
    *(op_case("tile", X, {"reps": r}) for r in ((2,), (1, 2, 1), (2, 1, 1, 2), ())),
    op_case("tile", {"data": (3,)}, {"reps": (2, 2)}, dtype="float16"),
    op_case("repeat", X, {"repeats": 2}),
    *(op_case("repeat", X, {"repeats": 3, "axis": a}) for a in (0, 1, -1, 3)),
    op_case("repeat", {"data": (2, 3)}, {"repeats": 2, "axis": 0}, dtype="int32"),
    *(op_case("reverse", X, {"axis": a}) for a in ((0,), (0, 2), 1)),
    op_case("reverse", X, {"axis": (-1,)}, better=True),
    op_case("depth_to_space", {"data": (2, 8, 2, 3)}, {"block_size": 2}),
    op_case("depth_to_space", {"data": (1, 9, 1, 2)}, {"block_size": 3}, dtype="float64"),
    op_case("depth_to_space", {"data": (1, 3, 1, 2)}, {"block_size": 2}, id="bad"),
    op_case("space_to_depth", {"data": (2, 2, 4, 6)}, {"block_size": 2}),
    op_case("space_to_depth", {"data": (1, 1, 3, 4)}, {"block_size": 2}, id="bad"),
    *(op_case("diag", {"data": (3,)}, {"k": k}) for k in (0, 1, -2)),
    *(op_case("diag", {"data": (3, 4)}, {"k": k}) for k in (0, 2, -1)),
    *(op_case("diag", {"data": (2, 3, 4)}, p) for p in ({"axis1": 0, "axis2": 2}, {"axis1": -1, "axis2": 1, "k": 1},
                                                        {"axis1": 1, "axis2": 2, "k": -1})),
    op_case("diag", {"data": (2, 3)}, {"axis1": 1, "axis2": -1}, id="same_axes"),
]  # fmt: skip
