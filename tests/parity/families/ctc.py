"""CTCLoss: blanks, padding and lengths."""

from typing import Any

from tests.parity.arrays import values
from tests.parity.case import Case, op_case

FIRST = values([[2, 2, 3], [1, 4, 0], [3, 0, 0], [0, 0, 0]])
LAST = values([[1, 1, 2], [0, 3, -1], [2, -1, -1], [-1, -1, -1]])
DATA = (7, 4, 5)


def _case(**params: Any) -> Case:
    label = LAST if params.get("blank_label") == "last" else FIRST
    inputs: dict[str, Any] = {"data": DATA, "label": label}
    if params.get("use_data_lengths"):
        inputs["data_lengths"] = values([7, 5, 2, 4])
    if params.get("use_label_lengths"):
        inputs["label"] = values([[2, 2, 3], [1, 4, 2], [3, 1, 1], [1, 2, 1]])
        inputs["label_lengths"] = values([3, 2, 1, 2])
    return op_case("CTCLoss", inputs, params, grads=["data"], infer_from=tuple(inputs))


CASES: list[Case] = [
    *(_case(blank_label=b) for b in ("first", "last")),
    *(_case(blank_label="first", use_data_lengths=d, use_label_lengths=n) for d, n in ((1, 0), (0, 1), (1, 1))),
    op_case("ctc_loss", {"data": DATA, "label": FIRST}, grads=["data"], grad_req="add",
            infer_from=("data", "label")),
    op_case("CTCLoss", {"data": (2, 4, 5), "label": FIRST}, grads=[], id="label_too_long",
            infer_from=("data", "label")),
]
