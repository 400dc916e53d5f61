"""SoftmaxOutput, regression outputs, SVMOutput, MakeLoss, IdentityAttachKLSparseReg."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.parity.arrays import normal, randint, uniform, values
from tests.parity.case import Case, graph_case, graph_json, op_case

X, Y = normal((4, 3)), values([0.0, 2.0, 1.0, 2.0])
IGNORED = values([0.0, -1.0, 1.0, -1.0])
CELLS, CELL_LABELS = normal((2, 3, 4)), values([[0.0, 2.0, -1.0, 1.0], [2.0, -1.0, -1.0, 0.0]])
NORMALIZATION = ("null", "batch", "valid")


def _softmax(params: Mapping[str, Any] | None = None, data: Any = X, label: Any = Y, **options: Any) -> Case:
    return op_case("SoftmaxOutput", {"data": data, "label": label}, params, **{"head": "none", **options})


def _head_times(inputs: dict[str, np.ndarray]) -> dict[str, Any]:
    """out_grad: (p - onehot) * head, with the head gradient of ones that `backward()` means."""
    e = np.exp(inputs["data"] - inputs["data"].max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    return {"grad:data": p - np.eye(3)[inputs["label"].astype(int)]}


def _smoothed_cells(inputs: dict[str, np.ndarray]) -> dict[str, Any]:
    x, alpha = inputs["data"].astype("float64"), 0.3
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    on = np.arange(3)[None, :, None] == inputs["label"].astype(int)[:, None, :]
    return {"grad:data": ((p - np.where(on, 1 - alpha, alpha / 2)) / 4).astype("float32")}


# Output layers that write to a bound gradient ignore grad_req="add" in MXNet; an op between heeds it.
ADD = graph_json(
    [("x",), ("softmax_label",), ("svm_label",), ("lin_label",), ("twice", "_mul_scalar", {"scalar": 2.0}, ["x"]),
     ("softmax", "SoftmaxOutput", {}, ["twice", "softmax_label"]), ("svm", "SVMOutput", {}, ["twice", "svm_label"]),
     ("lin", "LinearRegressionOutput", {}, ["twice", "lin_label"]), ("loss", "MakeLoss", {}, ["twice"])],
    ["softmax", "svm", "lin", "loss"],
)  # fmt: skip


def _regression(op: str) -> list[Case]:
    def case(data: Any, label: Any, params: Mapping[str, Any] | None = None, **options: Any) -> Case:
        return op_case(op, {"data": data, "label": label}, params, **{"head": "none", **options})

    return [
        case((4, 3), (4, 3), infer=[{"data": (4, 1)}, {"label": (4, 3)}, {"data": (4,)},
                                    {"data": (4, 1), "label": (4, 1)}]),
        case((4, 3), (4, 3), {"grad_scale": 2.5}),
        case((4, 1), (4,), id="column"),
        case((4, 1), (4, 1), id="columns"),
        case((4,), (4,), id="vector"),
        case((2, 3, 2), (2, 3, 2), id="cube"),
        case((2, 3, 2), (2, 6), id="flat_label"),
        case((4, 3), (3, 4), id="bad_label"),
        case((4, 3), (4, 3), dtype="float64"),
        case((4, 3), (4, 3), dtype="float16"),
        case((4, 3), (4, 3), head="fill", id="head_ignored"),
    ]  # fmt: skip


CASES: list[Case] = [
    _softmax(infer=[{"data": (0, 3)}, {"data": (4, 0)}, {"label": (4,)}, {"data": (2, 3, 4)}]),
    _softmax({"grad_scale": 2.5}),
    *(_softmax({"normalization": n}) for n in NORMALIZATION),
    *(_softmax({"normalization": n, "use_ignore": True}, label=IGNORED) for n in NORMALIZATION),
    *(_softmax({"normalization": n, "use_ignore": False}, label=IGNORED, id=f"unheeded_{n}") for n in NORMALIZATION),
    _softmax({"normalization": "valid", "use_ignore": True, "ignore_label": 2}),
    _softmax({"normalization": "valid", "use_ignore": True}, label=values([-1.0, -1.0, -1.0, -1.0]), id="all_ignored"),
    _softmax({"smooth_alpha": 0.3}),
    _softmax({"smooth_alpha": 0.3, "use_ignore": True, "normalization": "valid"}, label=IGNORED),
    _softmax({"multi_output": True}, label=Y),
    *(_softmax({"multi_output": True, "normalization": n}, CELLS, CELL_LABELS) for n in NORMALIZATION),
    *(_softmax({"multi_output": True, "normalization": n, "use_ignore": True, "grad_scale": 2}, CELLS, CELL_LABELS)
      for n in NORMALIZATION),
    _softmax({"multi_output": True, "smooth_alpha": 0.3}, CELLS, CELL_LABELS,
             differs="MXNet leaves smooth_alpha out with multi_output", expected=_smoothed_cells),
    _softmax({"multi_output": True}, normal((2, 3, 2, 2)), randint((2, 4), 0, 3), id="images", infer=[
        {"data": (2, 3, 4, 5)}, {"data": (2, 3, 4, 5), "label": (2, 4, 5)},
        {"data": (2, 3, 4, 5), "label": (2, 1, 4, 5)}, {"data": (2, 3, 4, 5), "label": (2, 3, 4, 5)},
        {"data": (2, 3, 4, 5), "label": (2, 5, 4)}]),
    _softmax({"multi_output": True}, normal((2, 3, 2, 2)), randint((2, 2, 2), 0, 3), id="images_label_3d"),
    _softmax({"multi_output": True}, normal((2, 3, 2, 2)), randint((2, 1, 2, 2), 0, 3), id="images_label_4d"),
    _softmax({"multi_output": True}, normal((2, 3, 2, 2)), randint((2, 5), 0, 3), id="bad_label"),
    *(_softmax({"preserve_shape": True, "normalization": n, "use_ignore": u}, normal((2, 2, 3)),
               values([[0.0, 2.0], [-1.0, 1.0]])) for n in NORMALIZATION for u in (False, True)),
    _softmax({"preserve_shape": True, "smooth_alpha": 0.2}, normal((2, 2, 3)), values([[0.0, 2.0], [-1.0, 1.0]])),
    _softmax({}, normal((2, 3, 4)), None, id="flattened", grads=False),
    _softmax({}, normal((2, 3, 4)), None, id="flattened_gradient", grads=["data"]),
    *(_softmax({"normalization": n, "grad_scale": 3}, X, uniform((4, 3), 0, 1), id=f"probabilities_{n}")
      for n in NORMALIZATION),
    _softmax({"multi_output": True}, CELLS, uniform((2, 3, 4), 0, 1), id="probabilities_cells"),
    _softmax({"preserve_shape": True}, CELLS, uniform((2, 3, 4), 0, 1), id="probabilities_last"),
    _softmax({"use_ignore": True, "ignore_label": 0.0}, X, values([[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]]),
             id="probabilities_ignore"),
    _softmax(label=values([0.0, 3.0, -2.0, 1.7]), id="labels_out_of_range"),
    _softmax({"out_grad": True}, differs="MXNet multiplies by the output", expected=_head_times),
    _softmax(dtype="float64"),
    _softmax(dtype="float16"),
    _softmax({"multi_output": True, "normalization": "valid", "use_ignore": True}, CELLS, CELL_LABELS, dtype="float16"),
    graph_case("add_through_loss", ADD, {"x": X, "softmax_label": Y, "svm_label": Y, "lin_label": (4, 3)},
               grads=["x"], grad_req="add", head="none"),
    _softmax(head="fill", id="head_ignored"),
    _softmax(label=randint((4,), 0, 3, "int32"), id="label_int32", grads=["data"]),
    op_case("Softmax", {"data": X, "label": Y}, head="none"),
    *_regression("LinearRegressionOutput"),
    *_regression("LogisticRegressionOutput"),
    *_regression("MAERegressionOutput"),
    op_case("MAERegressionOutput", {"data": values([[1.0, 2.0, 3.0]]), "label": values([[1.0, 3.0, 2.0]])},
            head="none", id="ties"),
    *(op_case("SVMOutput", {"data": X, "label": Y}, {"margin": m, "regularization_coefficient": c, "use_linear": u},
              head="none") for m, c in ((1.0, 1.0), (0.3, 2.5)) for u in (False, True)),
    op_case("SVMOutput", {"data": X, "label": Y}, head="none", infer=[{"data": (0, 3)}, {"data": (2, 3, 4)}]),
    op_case("SVMOutput", {"data": X, "label": Y}, head="none", dtype="float64"),
    op_case("SVMOutput", {"data": X, "label": Y}, head="none", dtype="float16"),
    op_case("SVMOutput", {"data": values([[1.0, -1.0, 0.0]]), "label": values([0.0])}, {"use_linear": True},
            head="none", id="edges"),
    op_case("SVMOutput", {"data": normal((2, 3, 2)), "label": None}, head="none", id="cube"),
    *(op_case("MakeLoss", {"data": s}, {"normalization": n, "grad_scale": 1.5}, head="none", id=f"{n}_{len(s)}d")
      for s in ((4, 3), (2, 3, 4), (5,)) for n in NORMALIZATION),
    *(op_case("MakeLoss", {"data": (4, 3)}, {"normalization": "valid", "valid_thresh": t}, head="none")
      for t in (0.5, -0.5, 9.0)),
    op_case("MakeLoss", {"data": (4, 3)}, head="none", infer=[{"data": (0, 3)}]),
    op_case("MakeLoss", {"data": (4, 3)}, head="none", dtype="float64"),
    op_case("MakeLoss", {"data": (4, 3)}, head="none", dtype="float16"),
    op_case("MakeLoss", {"data": (4, 3)}, head="none", grad_req="add"),
    op_case("MakeLoss", {"data": (4, 3)}, head="fill", id="head_ignored"),
    *(op_case("IdentityAttachKLSparseReg", {"data": uniform(s, 0.1, 0.9)}, p,
              aux={"moving_avg": uniform((3,), 0.2, 0.6)}, id=f"{len(s)}d_{len(p)}", better=len(s) == 3)
      for s in ((4, 3), (2, 3, 4)) for p in ({}, {"sparseness_target": 0.3, "penalty": 0.5, "momentum": 0.5})),
    op_case("IdentityAttachKLSparseReg", {"data": uniform((4, 3), 0.1, 0.9)}, {}, aux={"moving_avg": None},
            grad_req="add"),
]  # fmt: skip
