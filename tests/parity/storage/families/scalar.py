"""Ops of an array and a number, and ops with a range."""

from __future__ import annotations

from tests.parity.arrays import signed
from tests.parity.storage.case import CSR, ROWS, Stored, make, over

SCALAR = (
    "_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_div_scalar", "_rdiv_scalar", "_mod_scalar",
    "_rmod_scalar", "_power_scalar", "_rpower_scalar", "_maximum_scalar", "_minimum_scalar", "_hypot_scalar",
    "_equal_scalar", "_not_equal_scalar", "_greater_scalar", "_greater_equal_scalar", "_lesser_scalar",
    "_lesser_equal_scalar", "_logical_and_scalar", "_logical_or_scalar", "_logical_xor_scalar",
)  # fmt: skip
SCATTER = ("_scatter_plus_scalar", "_scatter_minus_scalar")
RANGES = ((-0.5, 0.5), (0.0, 0.5), (-0.5, 0.0), (0.1, 0.5), (-0.5, -0.1))
X = signed((5, 3), 0.2, 0.9)

CASES = [
    *(c for op in SCALAR for value in (2.0, 0.0, -1.5) for c in over(op, {"x": X}, {"scalar": value})),
    *(c for op in SCATTER for value in (2.0, 0.0, -1.5) for c in over(op, {"x": X}, {"scalar": value}, grads=())),
    *(c for low, high in RANGES for c in over("clip", {"x": X}, {"a_min": low, "a_max": high})),
    *(make(op, {"x": Stored(s, X, some)}, {"scalar": 2.0})
      for op in ("_mul_scalar", "_plus_scalar", "_div_scalar") for s in (CSR, ROWS)
      for some in ("all", "none", "zeros")),
    *(make("clip", {"x": Stored(s, X, some)}, {"a_min": -0.5, "a_max": 0.5}) for s in (CSR, ROWS)
      for some in ("all", "none", "zeros")),
]  # fmt: skip
