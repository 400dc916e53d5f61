"""dot, batch_dot, khatri_rao, and joining and splitting: Concat, stack, SliceChannel, _split_v2."""

from typing import Any

from tests.parity.arrays import randint
from tests.parity.case import Case, graph_case, graph_json, op_case

T, F = True, False
DOTS = [
    ((3,), (3,), F, F), ((3,), (3, 4), F, F), ((2, 3), (3,), F, F), ((2, 3), (3, 4), F, F), ((2, 3, 4), (4, 5), F, F),
    ((2, 3, 4), (4, 2, 2), F, F), ((4, 3), (4, 5), T, F), ((4, 3, 2), (4, 5), T, F), ((2, 3), (4, 3), F, T),
    ((2, 3), (2, 4, 3), F, T), ((3, 2), (5, 3), T, T), ((3, 2, 4), (5, 3), T, T), ((2, 3), (4, 3), F, F),
]  # fmt: skip
BATCH = [((2, 3, 4), (2, 4, 5), F, F), ((2, 4, 3), (2, 4, 5), T, F), ((2, 3, 4), (2, 5, 4), F, T),
         ((2, 4, 3), (2, 5, 4), T, T), ((1, 3, 4), (2, 4, 5), F, F), ((1, 2, 3, 4), (1, 2, 4, 5), F, F)]  # fmt: skip


def consumer(id: str, op: str, params: dict, shapes: dict, out: tuple[int, ...]) -> Case:
    """Input shapes from the known output of a joining op."""
    names = list(shapes)
    text = graph_json([*((n,) for n in names), ("y",), ("op", op, params, names),
                       ("sum", "elemwise_add", {}, ["op", "y"])], ["sum"])  # fmt: skip
    return graph_case(f"{op}-consumer-{id}", text, {**shapes, "y": out})


def joined(op: str, shapes: list[tuple[int, ...]], params: dict, **options: Any) -> Case:
    """A case of an op with a variable number of inputs."""
    inputs = {f"arg{i}": s for i, s in enumerate(shapes)}
    # MXNet: a join of a known and an unknown shape infers a wrong output, so the first query gives all.
    options = {"infer_from": tuple(inputs), **options}
    return op_case(op, inputs, {"num_args": len(shapes), **params}, **options)


CASES: list[Case] = [
    *(op_case("dot", {"lhs": a, "rhs": b}, {"transpose_a": ta, "transpose_b": tb}, id=f"{a}{b}{ta}{tb}")
      for a, b, ta, tb in DOTS),
    op_case("dot", {"lhs": (2, 3), "rhs": (3, 4)}, {"forward_stype": "default"}, id="stype", grad_req="add"),
    op_case("dot", {"lhs": (2, 3), "rhs": (3, 4)}, id="f64", dtype="float64", infer=[{"lhs": (0, 3), "rhs": (3, 4)}]),
    op_case("dot", {"lhs": (2, 3), "rhs": (3, 4)}, id="f16", dtype="float16", better=True),
    op_case("dot", {"lhs": randint((2, 3)), "rhs": randint((3, 4))}, id="int", dtype="int32", better=True),
    *(op_case("batch_dot", {"lhs": a, "rhs": b}, {"transpose_a": ta, "transpose_b": tb}, id=f"{a}{b}{ta}{tb}")
      for a, b, ta, tb in BATCH),
    op_case("batch_dot", {"lhs": (2, 3, 4), "rhs": (2, 4, 5)}, id="f64", dtype="float64", grad_req="add"),
    op_case("batch_dot", {"lhs": (3, 4), "rhs": (4, 5)}, id="rank2"),
    joined("khatri_rao", [(2, 2), (3, 2)], {}, id="two", grads=False),
    joined("khatri_rao", [(2, 2), (3, 2)], {}, id="gradient", better=True),  # MXNet: it has no gradient
    joined("khatri_rao", [(2, 3), (1, 3), (2, 3)], {}, id="three", dtype="float64", grads=False),
    joined("khatri_rao", [(2, 2)], {}, id="one", grads=False),
    joined("khatri_rao", [(2, 2), (2, 3)], {}, id="bad"),
    *(joined("Concat", [(2, 3), (2, 1), (2, 2)], {"dim": d}, id=f"dim{d}") for d in (1, -1)),
    joined("Concat", [(2, 3), (4, 3)], {"dim": 0}, id="dim0", infer=[{"arg0": (2, 0), "arg1": (4, 3)}]),
    joined("Concat", [(2, 3, 2), (2, 1, 2)], {}, id="default", grad_req="add"),
    joined("Concat", [(2, 3)], {}, id="one"),
    joined("Concat", [(2, 3), (3, 3)], {}, id="bad"),
    joined("Concat", [(2,), (3,)], {"dim": 0}, id="rank1", dtype="float16"),
    op_case("Concat", {"arg0": randint((2, 2)), "arg1": randint((2, 1))}, {"num_args": 2}, id="int", dtype="int32",
            infer_from=("arg0", "arg1")),
    op_case("Concat", {"arg0": (2, 2), "arg1": randint((2, 1), dtype="int32")}, {"num_args": 2}, id="mixed",
            infer_from=("arg0", "arg1")),
    joined("Concat", [(2, 0), (2, 3)], {}, id="empty", np_shape=True),
    joined("_rnn_param_concat", [(6,), (4,), (3,)], {"dim": 0}, id="vectors"),
    joined("_rnn_param_concat", [(2, 3), (2, 1)], {"dim": 1}, id="matrices"),
    *(joined("stack", [(2, 3), (2, 3)], {"axis": a}) for a in (0, 1, 2, -1, -3)),
    joined("stack", [(3,)], {}, id="one"),
    joined("stack", [(2, 3), (2, 2)], {}, id="bad"),
    op_case("SliceChannel", {"data": (2, 6)}, {"num_outputs": 3}, outputs=3, infer=[{"data": (0, 6)}]),
    op_case("SliceChannel", {"data": (2, 3, 2)}, {"num_outputs": 3, "squeeze_axis": True}, outputs=3),
    op_case("SliceChannel", {"data": (2, 3, 4)}, {"num_outputs": 2, "axis": -1}, outputs=2, grad_req="add"),
    op_case("SliceChannel", {"data": (2, 3)}, {"num_outputs": 1}),
    op_case("SliceChannel", {"data": (2, 5)}, {"num_outputs": 2}, outputs=2, id="bad"),
    op_case("SliceChannel", {"data": (2, 4)}, {"num_outputs": 2, "squeeze_axis": True}, outputs=2, id="bad_squeeze"),
    graph_case("SliceChannel-unused", graph_json([("x",), ("op", "SliceChannel", {"num_outputs": 3}, ["x"]),
                                                  ("y", "tanh", {}, ["op:1"])], ["y"]), {"x": (2, 6)}),
    op_case("_split_v2", {"data": (2, 5)}, {"indices": (0, 1, 3)}, outputs=3),
    op_case("_split_v2", {"data": (4, 3)}, {"indices": (), "sections": 2, "axis": 0}, outputs=2),
    op_case("_split_v2", {"data": (2, 3)}, {"indices": (0, 1, 2), "squeeze_axis": True}, outputs=3),
    op_case("_split_v2", {"data": (2, 4)}, {"indices": (0, 1, 1)}, outputs=3, np_shape=True, id="empty_part"),
    op_case("_split_v2", {"data": (2, 4)}, {"indices": (0, 3, 1)}, outputs=3, id="bad"),
    op_case("_split_v2", {"data": (2, 3)}, {"indices": (0,)}),
]  # fmt: skip
