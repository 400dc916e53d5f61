"""Reductions, arg-reductions, moments, norms, and the stretching of axes."""

from typing import Any

import numpy as np

from tests.parity.arrays import distinct, randint, uniform, values
from tests.parity.case import Case, op_case

X = distinct((2, 3, 4), -2.0, 2.1)
AWAY = uniform((2, 3, 4), 0.5, 1.5)
REDUCTIONS = ("sum", "mean", "prod", "nansum", "nanprod", "max", "min")
AXES: tuple[dict[str, Any], ...] = (
    {}, {"axis": "()"}, {"axis": 1}, {"axis": -1}, {"axis": (0, 2)}, {"axis": (2, 0)}, {"axis": (0, 1, 2)},
    {"keepdims": True}, {"axis": 1, "keepdims": True}, {"axis": (0, -1), "keepdims": True},
    {"axis": 1, "exclude": True}, {"axis": (0, 1), "exclude": True, "keepdims": True}, {"axis": "()", "exclude": True},
    {"axis": (0, 1, 2), "exclude": True}, {"axis": "None"},
)  # fmt: skip
BAD: tuple[dict[str, Any], ...] = ({"axis": 3}, {"axis": -4}, {"axis": (0, 0)}, {"axis": (-1, 2)})
NANS = values([[1.0, "nan", 2.0], ["nan", "nan", "nan"], [3.0, 1.0, 2.0]])
INFS = values([[1.0, "inf", 2.0], ["-inf", "inf", 1.0], ["-inf", 0.0, 1.0]])
TIES = values([[1.0, 1.0, 2.0], [2.0, 2.0, 0.0], [3.0, 3.0, 3.0]])


def reductions() -> list[Case]:
    ints = [(n, d) for n in REDUCTIONS for d in ("int32", "int64", "int8", "uint8")]
    return [
        *(op_case(n, {"data": AWAY if "prod" in n else X}, kw) for n in REDUCTIONS for kw in AXES),
        *(op_case(n, {"data": X}, kw) for n in ("sum", "max") for kw in BAD),
        *(op_case(n, {"data": AWAY}, {"axis": 1}, dtype=d, rtol=2e-5 if d == "float64" else 4e-3)
          for n in REDUCTIONS for d in ("float64", "float16")),
        *(op_case(n, {"data": randint((3, 5), 0, 9)}, {"axis": 1}, dtype=d, grads=False) for n, d in ints),
        op_case("mean", {"data": values([-1, -2, -2])}, dtype="int32", grads=False, id="truncates"),
        *(op_case(n, {"data": values([[0, 1], [0, 0]])}, {"axis": 1}, dtype="bool", grads=False) for n in REDUCTIONS),
        *(op_case(n, {"data": NANS}, {"axis": 1}, id="nan", grads=n in ("sum", "mean", "nansum")) for n in REDUCTIONS),
        *(op_case(n, {"data": INFS}, {"axis": 1}, id="inf", grads=False) for n in REDUCTIONS if n != "nansum"),
        *(op_case(n, {"data": TIES}, {"axis": 1}, id="ties") for n in ("max", "min")),
        *(op_case(n, {"data": X}, {"axis": 1}, grad_req="add") for n in ("sum", "max", "prod")),
        *(op_case(n, {"data": X}, {"axis": 1}, id="alias")
          for n in ("sum_axis", "max_axis", "min_axis", "_sparse_sum", "_sparse_mean")),
        op_case("prod", {"data": values([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]])}, {"axis": 1}, id="zeros",
                differs="MXNet divides by the zeros", expected=prod_grad),
        op_case("sum", {"data": (2, 3, 4)}, {"axis": 1}, id="infer", infer=[{"data": (0, 3, 4)}, {"data": (2, 0, 4)}]),
        op_case("sum", {"data": values(np.ones(3000).tolist())}, dtype="float16", id="long", grads=False),
        op_case("_square_sum", {"data": X}, {"axis": 1, "keepdims": True}, better=True, grads=False,
                expected=lambda x: {"out0": (x["data"] ** 2).sum(1, keepdims=True)}),
    ]  # fmt: skip


def prod_grad(x: dict[str, np.ndarray]) -> dict[str, Any]:
    from tests.parity.arrays import fill

    data = x["data"]
    head = fill("prod-zeros", "head0", uniform((3,), -1.5, 1.5), "float32")
    others = [[np.prod(np.delete(row, i)) for i in range(3)] for row in data]
    return {"grad:data": np.array(others) * head[:, None]}


def norms() -> list[Case]:
    return [
        *(op_case("norm", {"data": X}, {**kw, "ord": o}) for o in (1, 2)
          for kw in ({}, {"axis": 1}, {"axis": (0, 1)}, {"axis": (1, 2), "keepdims": True}, {"axis": (0, 1, 2)},
                     {"keepdims": True}, {"axis": -1})),
        op_case("norm", {"data": X}),
        op_case("norm", {"data": X}, {"ord": 3}),
        op_case("norm", {"data": X}, {"axis": 3}),
        op_case("norm", {"data": X}, {"axis": 1}, dtype="float64", rtol=2e-5),
        op_case("norm", {"data": X}, {"axis": 1}, dtype="float16", rtol=4e-3),
        op_case("norm", {"data": values([0.0, 0.0])}, id="zero"),
        op_case("norm", {"data": values([0.0, -2.0])}, {"ord": 1}, id="zero"),
        op_case("norm", {"data": values([[3, 4], [1, 1]])}, {"axis": 1}, dtype="int32", grads=False,
                differs="MXNet scales by the maximum in integer arithmetic", expected=lambda x: {
                    "out0": np.array([5, 1]), "train0": np.array([5, 1])}),
        op_case("_sparse_norm", {"data": X}),
    ]  # fmt: skip


def args() -> list[Case]:
    both = ("argmax", "argmin")
    return [
        *(op_case(n, {"data": X}, kw) for n in both for kw in (
            {}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": 1, "keepdims": True}, {"keepdims": True}, {"axis": 3},
            {"axis": -4}, {"axis": "None"})),
        *(op_case(n, {"data": randint((3, 4), 0, 9)}, {"axis": 1}, dtype=d, grads=False)
          for n in both for d in ("float64", "float16", "int32", "int64", "uint8", "int8")),
        *(op_case(n, {"data": TIES}, {"axis": 1}, id="ties", grads=False) for n in both),
        *(op_case(n, {"data": a}, {"axis": 1}, id=i, grads=False) for n in both
          for a, i in ((NANS, "nan"), (INFS, "inf"))),
        op_case("argmax_channel", {"data": X}, grads=False), op_case("argmax_channel", {"data": TIES}, grads=False,
          id="ties"),
        op_case("argmax_channel", {"data": (3,)}, id="vector", grads=False),
        op_case("argmax_channel", {"data": randint((2, 3))}, dtype="int32", grads=False),
    ]  # fmt: skip


def moments() -> list[Case]:
    return [
        *(op_case("moments", {"data": X}, kw, outputs=2)
          for kw in ({"axes": (0,)}, {"axes": (0, 1)}, {"axes": (1,), "keepdims": True}, {"axes": (-1,)},
                     {"axes": (0, 2)})),
        *(op_case("moments", {"data": X}, {"axes": (1,)}, outputs=2, dtype=d, rtol=r)
          for d, r in (("float64", 2e-5), ("float16", 8e-3))),
        op_case("moments", {"data": X}, outputs=2, grads=False, better=True, expected=lambda x: {
            "out0": x["data"].mean(keepdims=True).reshape(1), "out1": x["data"].var().reshape(1)}),
    ]  # fmt: skip


def finite() -> list[Case]:
    good, bad = values([1.0, 2.0]), values([1.0, "inf"])
    return [
        *(op_case("all_finite", {"data": a}, grads=False, id=i, dtype=d)
          for a, i in ((good, "good"), (bad, "inf"), (values(["nan", 1.0]), "nan")) for d in ("float32", "float16")),
        op_case("all_finite", {"data": good}, {"init_output": True}, grads=False),
        *(op_case("multi_all_finite", {"array_0": good, "array_1": a}, {"num_arrays": 2, "init_output": True},
          grads=False,
                  id=i) for a, i in ((good, "good"), (bad, "bad"))),
        *(op_case("multi_sum_sq", {"array_0": good, "array_1": uniform((2, 3))}, {"num_arrays": 2}, grads=False,
          dtype=d)
          for d in ("float32", "float16", "float64")),
    ]  # fmt: skip


def stretching() -> list[Case]:
    z = {"data": (1, 3, 1, 2)}
    return [
        *(op_case("broadcast_axis", z, {"axis": a, "size": s})
          for a, s in ((0, 2), ((0, 2), (2, 4)), (2, 5), ((2, 0), (3, 2)), ("()", "()"), (1, 4), ((0, 2), 4), (7, 2))),
        op_case("broadcast_axes", z, {"axis": 2, "size": 3}, dtype="float64"),
        *(op_case("broadcast_to", z, {"shape": s})
          for s in ((2, 3, 4, 2), (2, 0, 4, 0), (0, 0, 0, 0), (2, 4, 4, 2), (3, 4, 2), (2, 1, 3, 1, 2))),
        op_case("broadcast_to", {"data": randint((1, 2))}, {"shape": (2, 2)}, dtype="int32", grads=False),
        op_case("broadcast_to", {"data": (1, 2)}, {"shape": (3, 2)}, dtype="float16", rtol=4e-3),
        *(op_case("broadcast_like", {"lhs": (1, 3, 1, 2), "rhs": r}, kw, infer_from=("lhs", "rhs"))
          for r, kw in (((2, 3, 4, 2), {}), ((5, 4), {"lhs_axes": (0, 2), "rhs_axes": (0, 1)}),
                        ((5, 4), {"lhs_axes": (-2,), "rhs_axes": (-1,)}), ((3, 4, 2), {}), ((2, 4, 4, 2), {}),
                        ((5, 4), {"lhs_axes": (0,)}), ((5, 4), {"lhs_axes": (1,), "rhs_axes": (0,)}))),
        op_case("broadcast_like", {"lhs": (1, 2), "rhs": (3, 2)}, grad_req="add"),
    ]  # fmt: skip


def running_sums() -> list[Case]:
    return [
        *(op_case("_np_cumsum", {"a": X}, kw) for kw in ({}, {"axis": 1}, {"axis": 0, "dtype": "float64"})),
        op_case("_np_cumsum", {"a": AWAY}, {"axis": 2}, dtype="float64"),
        op_case("cumsum", {"a": randint((3, 4), -5, 6)}, {"axis": 1}, dtype="int32", grads=False),
    ]  # fmt: skip


CASES: list[Case] = [*running_sums(), *reductions(), *norms(), *args(), *moments(), *finite(), *stretching()]
