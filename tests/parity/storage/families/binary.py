"""Elementwise and broadcast ops of two or more arrays."""

from __future__ import annotations

from tests.parity.arrays import signed, uniform, values
from tests.parity.storage.case import CSR, DEFAULT, ROWS, Stored, make, over

AB = {"lhs": signed((5, 3), 0.2, 0.9), "rhs": signed((5, 3), 0.2, 0.9)}
ELEMWISE = ("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_maximum", "_minimum", "_hypot", "_power",
            "_mod", "_equal", "_not_equal", "_greater", "_greater_equal", "_lesser", "_lesser_equal", "_logical_and",
            "_logical_or", "_logical_xor", "_grad_add", "_scatter_elemwise_div",
            "_identity_with_attr_like_rhs")  # fmt: skip
BROADCAST = ("broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_maximum",
             "broadcast_minimum", "broadcast_power", "broadcast_mod", "broadcast_hypot", "broadcast_equal",
             "broadcast_not_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_lesser",
             "broadcast_lesser_equal", "broadcast_logical_and", "broadcast_logical_or",
             "broadcast_logical_xor")  # fmt: skip
UNDERIVED = ("_identity_with_attr_like_rhs", "_scatter_elemwise_div")  # ops of MXNet's gradient graphs
RHS = ((1, 3), (5, 1), (3,), (1, 1), (1,))
SPARSE = (CSR, ROWS)


def _fill(op: str):
    """Two sparse operands with every kind of pattern."""
    kinds = ("some", "all", "none", "zeros")
    return [make(op, {"lhs": Stored(a, AB["lhs"], s), "rhs": Stored(b, AB["rhs"], t, 1)})
            for a, b in ((CSR, CSR), (ROWS, ROWS), (DEFAULT, CSR), (DEFAULT, ROWS), (ROWS, DEFAULT))
            for s in (kinds if a != DEFAULT else ("some",)) for t in (kinds if b != DEFAULT else ("some",))
            if (s, t) != ("some", "some")]  # fmt: skip


def _positive(op: str):
    return {k: uniform((5, 3), 0.2, 0.9) for k in AB} if "power" in op else AB


CASES = [
    *(c for op in ELEMWISE for c in over(op, _positive(op), grads=() if op in UNDERIVED else None)),
    *(c for op in BROADCAST for c in over(op, _positive(op))),
    *(c for op in ("broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div") for shape in RHS
      for c in over(op, {"lhs": AB["lhs"], "rhs": signed(shape, 0.2, 0.9)}, note=str(shape).replace(" ", ""))),
    *(c for op in ("elemwise_add", "elemwise_mul", "elemwise_sub", "elemwise_div") for c in _fill(op)),
    *over("add_n", {"a": (5, 3), "b": (5, 3)}, {"num_args": 2}),
    *over("add_n", {"a": (5, 3), "b": (5, 3), "c": (5, 3)}, {"num_args": 3}),
    *over("add_n", {"a": (5, 3)}, {"num_args": 1}),
    *(make("add_n", {"a": Stored(ROWS, AB["lhs"], s), "b": Stored(ROWS, AB["rhs"], t, 1)}, {"num_args": 2})
      for s in ("all", "none", "zeros") for t in ("some", "all", "none")),
    *over("where", {"condition": values([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0]], "float32"),
                    "x": (5, 3), "y": (5, 3)}, grads=("x", "y")),
    *over("where", {"condition": values([1, 0, 1, 1, 0], "float32"), "x": (5, 3), "y": (5, 3)}, grads=("x", "y"),
          note="vector"),
    *over("_scatter_set_nd", {"lhs": (5, 3)}, only={"lhs": ()}),
]  # fmt: skip
