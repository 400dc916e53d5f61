"""Reductions."""

from __future__ import annotations

from tests.parity.arrays import distinct
from tests.parity.storage.case import CSR, ROWS, Stored, make, over

X = {"data": distinct((5, 3), -0.9, 1.0)}
AXES = ({}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": (0, 1)}, {"axis": ()}, {"axis": 0, "keepdims": True},
        {"axis": 1, "keepdims": True}, {"keepdims": True}, {"axis": 0, "exclude": True}, {"axis": 1, "exclude": True},
        {"axis": 0, "keepdims": True, "exclude": True})  # fmt: skip
NORMS = tuple({"ord": o, **p} for o in (1, 2) for p in AXES[:4] + AXES[6:9])
SQUARES = ({"axis": 1}, {"axis": 1, "keepdims": True}, {"axis": 0}, {"axis": 0, "keepdims": True}, {"axis": (0, 1)}, {})

CASES = [
    *(c for op in ("sum", "mean") for p in AXES for c in over(op, X, p)),
    *(c for op in ("max", "min", "prod", "nansum", "nanprod") for p in (*AXES[:3], AXES[6]) for c in over(op, X, p)),
    *(c for p in ({}, *NORMS) for c in over("norm", X, p)),
    *(c for p in SQUARES for c in over("_square_sum", X, p)),
    *(c for op in ("argmax", "argmin") for p in ({"axis": 0}, {"axis": 1}) for c in over(op, X, p, grads=())),
    *(make(op, {"data": Stored(s, X["data"], some)}, p) for op in ("sum", "mean", "norm") for p in AXES[:3]
      for s in (CSR, ROWS) for some in ("all", "none", "zeros")),
    *(make("_square_sum", {"data": Stored(ROWS, X["data"], some)}, p) for p in SQUARES[:4]
      for some in ("all", "none", "zeros")),
    *(c for axis in (None, 0, 1) for c in over("_contrib_getnnz", X, {} if axis is None else {"axis": axis}, grads=())),
    *(make("_contrib_getnnz", {"data": Stored(CSR, X["data"], some)}, grads=()) for some in ("all", "none", "zeros")),
]  # fmt: skip
