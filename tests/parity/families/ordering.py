"""topk, sort, argsort."""

from tests.parity.arrays import distinct, randint, values
from tests.parity.case import Case, op_case

X = {"data": distinct((2, 3, 4))}
TIES = {"data": values([[2.0, 1.0, 2.0, 1.0, 2.0, 1.0], [0.0, -0.0, 0.0, 3.0, 3.0, -3.0]])}
INF = {"data": values([["inf", 1.0, "-inf", 0.5]])}
KINDS = ("indices", "value", "mask", "both")


def kind(ret_typ: str) -> dict:
    """Visible outputs and gradients of a ret_typ."""
    return {"outputs": 2 if ret_typ == "both" else 1, "grads": ret_typ in ("value", "both")}


CASES: list[Case] = [
    *(op_case("topk", X, {"ret_typ": r, "k": 2, **p}, **kind(r)) for r in KINDS
      for p in ({}, {"axis": 0}, {"axis": 1, "is_ascend": True}, {"axis": None})),
    op_case("topk", X, grads=False),
    *(op_case("topk", X, {"k": k}, grads=False) for k in (0, -1, 9)),
    *(op_case("topk", TIES, {"k": 4, "ret_typ": "both", "is_ascend": a}, outputs=2, id=f"ties{a}") for a in (0, 1)),
    *(op_case("topk", INF, {"k": 4, "ret_typ": "both", "is_ascend": a}, outputs=2, id=f"inf{a}") for a in (0, 1)),
    *(op_case("topk", X, {"k": 2, "ret_typ": "both", "dtype": t}, outputs=2)
      for t in ("float16", "float32", "float64", "int32", "int64", "uint8")),
    *(op_case("topk", {"data": randint((3, 5), 0, 4)}, {"k": 3, "ret_typ": r}, dtype=t, **kind(r))
      for r in ("both", "mask") for t in ("int8", "uint8", "int32", "int64")),
    *(op_case("topk", X, {"k": 2, "ret_typ": "both"}, dtype=t, outputs=2) for t in ("float16", "float64")),
    op_case("topk", X, {"ret_typ": "value"}, grad_req="add"),
    op_case("topk", {"data": distinct((3, 70))}, {"k": 5, "ret_typ": "both"}, outputs=2, id="wide"),
    # MXNet: the gradient of sort fails unless the axis is given as text.
    op_case("sort", X, id="default", better=True),
    *(op_case("sort", X, {"axis": a, "is_ascend": s}) for a in (-1, 0, 1) for s in (True, False)),
    *(op_case("sort", X, {"axis": None, "is_ascend": s}, grads=False) for s in (True, False)),
    op_case("sort", TIES, {"axis": -1, "is_ascend": False}, id="ties"),
    *(op_case("sort", {"data": randint((3, 5), 0, 9)}, {"is_ascend": False}, dtype=t)
      for t in ("uint8", "int8", "int32", "int64")),
    op_case("sort", X, {"axis": -1}, dtype="float64"),
    op_case("sort", X, {"axis": -1}, dtype="float16", better=True),
    op_case("sort", X, {"axis": 2}, grad_req="add"),
    *(op_case("argsort", X, {"axis": a, "is_ascend": s}, grads=False) for a in (-1, 0, None) for s in (True, False)),
    *(op_case("argsort", TIES, {"is_ascend": s}, id=f"ties{s}", grads=False) for s in (True, False)),
    *(op_case("argsort", X, {"dtype": t}, grads=False) for t in ("float16", "float64", "int32", "int64", "uint8")),
    op_case("argsort", {"data": randint((3, 5), 0, 4)}, dtype="int32"),
    op_case("argsort", X, {"axis": 3}, grads=False),
]  # fmt: skip
