"""SequenceLast, SequenceMask, SequenceReverse."""

from tests.parity.arrays import Array, values
from tests.parity.case import Case, op_case

LENGTHS = values([1, 3], dtype="float32")
USE = {"use_sequence_length": True}


def both(length: Array = LENGTHS, shape: tuple[int, ...] = (3, 2, 2)) -> dict:
    """Data and lengths."""
    return {"data": shape, "sequence_length": length}


OPS = ("SequenceLast", "SequenceMask", "SequenceReverse")

CASES: list[Case] = [
    *(op_case(o, {"data": (3, 2, 2)}, id="full") for o in OPS),
    *(op_case(o, both(), USE, grads=["data"]) for o in OPS),
    *(op_case(o, both(shape=(3, 2)), USE, id="rank2", grads=["data"]) for o in OPS),
    *(op_case(o, both(shape=(3, 2, 1, 2)), USE, id="rank4", grads=["data"]) for o in OPS),
    *(op_case(o, both(values([2, 3], dtype=t)), USE, id=f"lengths_{t}", grads=["data"]) for o in OPS
      for t in ("int32", "int64")),
    *(op_case(o, both(), USE, id="add", grads=["data"], grad_req="add") for o in OPS),
    *(op_case(o, both(values([1, 3], dtype=t)), USE, dtype=t, grads=["data"]) for o in OPS
      for t in ("float16", "float64")),
    *(op_case(o, both(), USE, id="partial", grads=["data"], infer=[{"data": (0, 2, 2)}, {"data": (3, 0, 2)}])
      for o in OPS),
    op_case("SequenceMask", both(), {**USE, "value": -1.5}, grads=["data"]),
    op_case("SequenceMask", both(values([0, 1.7], dtype="float32")), USE, id="fraction", grads=["data"]),
    op_case("SequenceMask", both(values([1, 2, 0], dtype="float32")), {**USE, "axis": 1}, grads=["data"]),
    op_case("SequenceLast", both(values([1, 2, 1], dtype="float32")), {**USE, "axis": 1}, grads=["data"]),
    op_case("SequenceLast", {"data": (3, 2, 2)}, {"axis": 1}),
    op_case("SequenceReverse", both(values([0, 2], dtype="float32")), USE, id="zero", grads=["data"]),
    op_case("SequenceMask", {"data": (2, 2), "sequence_length": values([1, 0], dtype="float32")},
            {**USE, "value": 2.7}, dtype="int32"),
]  # fmt: skip
