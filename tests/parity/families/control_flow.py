"""foreach, while_loop and cond: nodes with subgraphs, as MXNet's Python front end writes them."""

import json
from collections.abc import Sequence
from typing import Any

from tests.parity.arrays import values
from tests.parity.case import Case, graph_case, graph_json


def _graph(nodes: Sequence[tuple[Any, ...]], heads: Sequence[str], subgraphs: dict[str, list[str]]) -> str:
    """`graph_json` with subgraphs (JSON texts) by node name."""
    graph = json.loads(graph_json(nodes, heads))
    for node in graph["nodes"]:
        if node["name"] in subgraphs:
            parts = [json.loads(text) for text in subgraphs[node["name"]]]
            node["subgraphs"] = [{k: p[k] for k in ("nodes", "arg_nodes", "heads")} for p in parts]
    return json.dumps(graph)


BODY = graph_json([("x-0",), ("w",), ("m", "elemwise_mul", {}, ["x-0", "w"]), ("s-0",),
                   ("o", "elemwise_add", {}, ["m", "s-0"]), ("n", "elemwise_add", {}, ["s-0", "x-0"])], ["o", "n"])
FOREACH = _graph(
    [("x",), ("s",), ("w",), ("loop", "_foreach", {"num_args": 4, "num_outputs": 2, "num_out_data": 1,
                                                   "in_data_locs": "[0]", "in_state_locs": "[2]",
                                                   "remain_locs": "[1]"}, ["x", "s", "w"])],
    ["loop", "loop:1"], {"loop": [BODY]})  # fmt: skip

CONDITION = graph_json([("i-0",), ("c", "_lesser_scalar", {"scalar": 3}, ["i-0"])], ["c"])
STEP = graph_json([("i-0",), ("s-0",), ("w",), ("m", "elemwise_mul", {}, ["s-0", "w"]),
                   ("o", "elemwise_add", {}, ["i-0", "m"]), ("i", "_plus_scalar", {"scalar": 1}, ["i-0"]),
                   ("s", "elemwise_add", {}, ["m", "i-0"])], ["o", "i", "s"])


def _while(limit: int) -> str:
    return _graph(
        [("i",), ("s",), ("w",), ("loop", "_while_loop", {
            "num_args": 5, "num_outputs": 3, "num_out_data": 1, "max_iterations": limit, "cond_input_locs": "[0]",
            "func_input_locs": "[0, 1, 2]", "func_var_locs": "[0, 1]"}, ["i", "s", "w"]),
         ("out", "slice_axis", {"axis": 0, "begin": 0, "end": min(limit, 3)}, ["loop"])],
        ["out", "loop:1", "loop:2"], {"loop": [CONDITION, STEP]})  # fmt: skip


COND = _graph(
    [("p",), ("a",), ("b",), ("if", "_cond", {"num_args": 6, "num_outputs": 1, "cond_input_locs": "[0]",
                                              "then_input_locs": "[1, 2]", "else_input_locs": "[2]"}, ["p", "a", "b"])],
    ["if"],
    {"if": [graph_json([("p",), ("q", "_copy", {}, ["p"])], ["q"]),
            graph_json([("a",), ("b",), ("t", "elemwise_mul", {}, ["a", "b"])], ["t"]),
            graph_json([("b",), ("e", "_mul_scalar", {"scalar": 3}, ["b"])], ["e"])]},
)  # fmt: skip

CASES: list[Case] = [
    graph_case("foreach", FOREACH, {"x": (4, 3), "s": (3,), "w": (3,)}, infer=[{"x": (0, 3)}, {"x": (4, 3)}]),
    graph_case("foreach-vector", FOREACH, {"x": (4,), "s": (1,), "w": (1,)}),
    graph_case("foreach-float64", FOREACH, {"x": (3, 2, 2), "s": (2, 2), "w": (2, 2)}, dtype="float64"),
    graph_case("foreach-add", FOREACH, {"x": (4, 3), "s": (3,), "w": (3,)}, grad_req="add"),
    *(graph_case(f"while-{n}", _while(n), {"i": values([0]), "s": (1,), "w": (1,)}, infer_from=("i", "s", "w"),
                 infers_more=True)
      for n in (2, 3, 5)),
    *(graph_case(f"cond-{p}", COND, {"p": values([p]), "a": (2, 3), "b": (2, 3)}, grads=["a", "b"],
                 infer_from=("p", "a", "b"), infers_more=True) for p in (0, 1)),
]  # fmt: skip
