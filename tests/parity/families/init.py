"""Constants, ranges, identities and index arrays."""

from typing import Any

from tests.parity.arrays import uniform
from tests.parity.case import Case, graph_case, graph_json, op_case

TYPES = ("float16", "float32", "float64", "uint8", "int8", "int32", "int64")


def source(op: str, params: dict[str, Any], **options: Any) -> Case:
    """A case of an op without inputs."""
    return op_case(op, {}, params, grads=False, **options)


def filled(op: str, params: dict[str, Any], shape: tuple[int, ...], id: str) -> Case:
    """The op's array added to x, which gives it its shape."""
    text = graph_json([("x",), ("a", op, params, []), ("y", "elemwise_add", {}, ["a", "x"])], ["y"])
    return graph_case(f"{op}-filled_{id}", text, {"x": shape}, infer=[{"x": shape}])


CASES: list[Case] = [
    *(source(n, {"shape": (2, 3), "dtype": t}) for n in ("_zeros", "_ones") for t in (*TYPES, "bool")),
    *(source(n, {"shape": (2,)}) for n in ("_zeros", "_ones")),
    source("_zeros_without_dtype", {"shape": (2,), "dtype": 1}),
    *(source("_full", {"shape": (2, 3), "value": 2.7, "dtype": t}) for t in (*TYPES, "bool")),
    source("_full", {"shape": (2,), "value": -1}), source("_full", {"shape": (2,)}, id="no_value"),
    *(filled(n, {"shape": s, **more}, (2, 3), f"{i}")
      for n, more in (("_zeros", {}), ("_ones", {}), ("_full", {"value": 3}))
      for i, s in enumerate(((0, 3), (2, 0), (0, 0), (2, 3)))),
    filled("_zeros", {"shape": "()"}, (2, 3), "unknown"), filled("_full", {"value": 2}, (2, 3), "unknown"),
    filled("_zeros", {"shape": (2, 4)}, (2, 3), "misfit"),
    filled("_arange", {"start": 2, "step": 3, "infer_range": True}, (7,), "range"),
    filled("_arange", {"start": 2, "step": 3, "infer_range": True, "repeat": 2}, (7,), "repeat"),
    *(source("_arange", kw) for kw in (
        {"start": 5}, {"start": 1, "stop": 9, "step": 2}, {"start": 0, "stop": 1, "step": 0.3},
        {"start": 5, "stop": 0, "step": -2}, {"start": 0, "stop": 3, "repeat": 3}, {"start": 0, "stop": 0.3,
          "step": 0.1},
        {"start": 16777216, "stop": 16777220}, {"start": 0, "stop": 5, "step": -1}, {"start": 0, "stop": 0},
        {"start": 0, "stop": 5, "step": 0}, {"start": 0, "stop": 10, "step": 3, "infer_range": True}, {"stop": 3})),
    *(source("_arange", {"start": 1, "stop": 9, "step": 2, "dtype": t}) for t in TYPES),
    source("_arange", {"start": 0.5, "stop": 5, "step": 1.7, "dtype": "int32"}),
    *(source("_linspace", {"start": a, "stop": b, "num": n, "endpoint": e})
      for a, b, n, e in ((0, 1, 5, True), (0, 10, 4, False), (5, 0, 6, True), (0, 1, 1, True), (-1, 1, 7, False))),
    *(source("_linspace", {"start": 0, "stop": 10, "num": 4, "dtype": t}) for t in ("float64", "int32", "float16")),
    *(source("_eye", kw) for kw in ({"N": 3}, {"N": 3, "M": 5, "k": 1}, {"N": 3, "M": 2, "k": -1}, {"N": 2, "k": 5},
                                    {"N": 4, "M": 4, "k": -4})),
    *(source("_eye", {"N": 2, "M": 3, "dtype": t}) for t in TYPES),
    *(op_case("_contrib_arange_like", {"data": (2, 3)}, kw, grads=False) for kw in (
        {}, {"axis": 0}, {"axis": -1}, {"start": 2, "step": 0.5}, {"repeat": 2}, {"repeat": 4}, {"axis": 1,
          "repeat": 3},
        {"start": 1, "step": 2, "axis": 1})),
    *(op_case("_contrib_arange_like", {"data": (4,)}, grads=False, dtype=t) for t in ("float16", "float64", "int32")),
    *(op_case("_contrib_index_array", {"data": uniform((2, 3))}, kw, grads=False)
      for kw in ({}, {"axes": (1,)}, {"axes": (1, 0)}, {"axes": (-1,)})),
    op_case("_contrib_index_array", {"data": (2, 3, 2)}, dtype="float64", grads=False),
]  # fmt: skip
