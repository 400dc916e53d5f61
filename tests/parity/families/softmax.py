"""softmax, log_softmax, softmin, softmax_cross_entropy."""

from typing import Any

from tests.parity.arrays import Array, normal, randint, values
from tests.parity.case import Case, op_case

X = normal((2, 3, 4), 2.0)
OPS = ("softmax", "log_softmax", "softmin")
LENGTH = values([[1, 3, 4], [2, 4, 0]], "int32")
CE: dict[str, Array] = {"data": normal((4, 3), 2.0), "label": randint((4,), 0, 3)}
BOTH: dict[str, Any] = {"infer_from": ("data", "label")}  # MXNet refuses to infer from data alone

CASES: list[Case] = [
    *(op_case(o, {"data": X}, infer=[{"data": (0, 3, 4)}]) for o in OPS),
    *(op_case(o, {"data": X}, {"axis": a}) for o in OPS for a in (0, 1, -2)),
    *(op_case(o, {"data": X}, {"temperature": 2.5}) for o in OPS),
    *(op_case(o, {"data": X}, dtype=d) for o in OPS for d in ("float64", "float16")),
    # MXNet computes in data's type, symjax in the wider one; gradients from outputs rounded or not.
    *(op_case(o, {"data": X}, {"dtype": t}, dtype=d, rtol=r) for o in OPS
      for d, t, r in (("float16", "float32", 2e-3), ("float32", "float64", 2e-6), ("float32", "float32", 1e-5),
                      ("float64", "float32", 1e-4))),
    *(op_case(o, {"data": X}, grad_req="add") for o in OPS),
    *(op_case(o, {"data": X}, {"axis": 3}, id="bad_axis") for o in OPS),
    *(op_case(o, {"data": values([[1000.0, 0.0, -1000.0], ["-inf", 0.0, 1.0]])}, id="extreme", grads=False)
      for o in OPS),
    op_case("softmax", {"data": (3,)}, id="vector"),
    op_case("softmax", {"data": randint((2, 3), -3, 4, "int32")}, {"dtype": "float32"}, id="int", grads=False,
            better=True),
    op_case("softmax", {"data": (0, 3)}, id="empty", np_shape=True),
    op_case("softmax", {"data": X, "length": LENGTH}, {"use_length": True}, infer=[
        {"data": (0, 3, 4)}]),
    op_case("softmax", {"data": X, "length": values([[1, 3, 2, 2], [2, 3, 0, 1]], "int32")},
            {"use_length": True, "axis": 1}),
    op_case("softmax", {"data": X, "length": LENGTH}, {"use_length": True, "temperature": 0.5}),
    op_case("softmax", {"data": X, "length": values([[1, 3, 4], [2, 4, 0]], "int64")}, {"use_length": True},
            id="length_int64"),
    op_case("softmax", {"data": X, "length": values([[1, 3, 4], [2, 4, 0]], "float32")}, {"use_length": True},
            id="length_float", grads=["data"], better=True),
    op_case("softmax", {"data": X, "length": randint((2, 4), 1, 4, "int32")}, {"use_length": True}, id="bad_length"),
    op_case("log_softmax", {"data": X}, {"use_length": True}),
    op_case("softmin", {"data": X}, {"use_length": True}),
    op_case("_npx_softmax", {"data": X}),
    op_case("_npx_log_softmax", {"data": X}),
    op_case("softmax_cross_entropy", CE, grads=["data"], **BOTH),
    op_case("softmax_cross_entropy", CE, grads=["data"], **BOTH, dtype="float64"),
    op_case("softmax_cross_entropy", CE, grads=["data"], **BOTH, dtype="float16"),
    op_case("softmax_cross_entropy", CE, grads=["data"], **BOTH, grad_req="add"),
    op_case("softmax_cross_entropy", {"data": values([[100.0, 0.0], [0.0, 100.0]]), "label": values([1, 0])},
            id="limit", grads=["data"], **BOTH),
    op_case("softmax_cross_entropy", {"data": (2, 3, 4), "label": randint((2,), 0, 3)}, id="rank", grads=["data"]),
]  # fmt: skip
