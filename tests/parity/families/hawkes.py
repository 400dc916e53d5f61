"""Log likelihood of marked Hawkes processes."""

from tests.parity.arrays import randint, uniform, values
from tests.parity.case import Case, op_case


def _inputs(t: int = 4, lengths: tuple[float, ...] = (3.0, 4.0)) -> dict:
    return {"lda": uniform((2, 3), 0.2, 1), "alpha": uniform((3,), 0.1, 0.8), "beta": uniform((3,), 0.5, 2),
            "state": uniform((2, 3), 0.1, 1), "lags": uniform((2, t), 0.1, 1.5),
            "marks": randint((2, t), 0, 3, "int32"), "valid_length": values(list(lengths)),
            "max_time": values([8.0, 9.0])}  # fmt: skip


WRT = ("lda", "alpha", "beta")
FIRST = ("lda", "alpha", "beta", "state", "lags", "marks", "valid_length", "max_time")

CASES: list[Case] = [
    op_case("_contrib_hawkesll", _inputs(), id="both", outputs=2, grads=False, infer_from=FIRST),
    op_case("_contrib_hawkesll", _inputs(), id="gradient", grads=WRT, infer_from=FIRST),
    op_case("_contrib_hawkesll", _inputs(), id="gradient", grads=WRT, infer_from=FIRST, dtype="float64"),
    op_case("_contrib_hawkesll", _inputs(6, (0.0, 1.0)), id="short", outputs=2, grads=False, infer_from=FIRST),
]
