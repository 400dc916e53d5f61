"""Unary ops on each storage."""

from __future__ import annotations

from tests.parity.arrays import signed, uniform
from tests.parity.storage.case import CSR, DEFAULT, ROWS, Stored, make, over

# Ops whose domain is not around 0 get their own range; elsewhere the numbers avoid kinks and whole numbers.
RANGES = {"arccosh": (1.2, 2.0), "gamma": (0.3, 2.4), "gammaln": (0.3, 2.4), "arctanh": (-0.8, 0.8)}
POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "rcbrt"}
KEEP = (
    "abs", "sign", "round", "rint", "ceil", "floor", "trunc", "fix", "square", "sqrt", "cbrt", "expm1", "log1p", "sin",
    "tan", "arcsin", "arctan", "sinh", "arcsinh", "tanh", "arctanh", "degrees", "radians", "relu", "negative", "_copy",
    "BlockGrad", "zeros_like", "_contrib_round_ste", "_contrib_sign_ste",
)  # fmt: skip
DENSE = (
    "exp", "log", "log10", "log2", "cos", "cosh", "arccos", "arccosh", "sigmoid", "rsqrt", "rcbrt", "reciprocal",
    "gamma", "gammaln", "erf", "erfinv", "softsign", "ones_like", "logical_not",
)  # fmt: skip
UNARY = (*KEEP, *DENSE)


def numbers(op: str, shape: tuple[int, ...]):
    """A recipe within the op's domain."""
    if op in RANGES:
        return uniform(shape, *RANGES[op])
    return uniform(shape, 0.2, 0.9) if op in POSITIVE else signed(shape, 0.2, 0.8)


CASES = [
    *(c for op in UNARY for c in over(op, {"x": numbers(op, (5, 3))})),
    *over("make_loss", {"x": (5, 3)}, head="none"),
    *over("MakeLoss", {"x": (5, 3)}, {"grad_scale": 2.0}, head="none"),
    *over("identity", {"x": (5, 3)}),
    *over("hard_sigmoid", {"x": (5, 3)}),
    *over("smooth_l1", {"x": (5, 3)}, {"scalar": 1.0}),
    *(make(op, {"x": Stored(s, numbers(op, (5, 3)), some)}) for op in ("abs", "sqrt", "exp", "negative", "zeros_like")
      for s in (CSR, ROWS) for some in ("all", "none", "zeros")),
    *(make(op, {"x": Stored(s, numbers(op, (5, 2, 3)))}, note="3d") for op in ("abs", "exp") for s in (DEFAULT, ROWS)),
    *(make(op, {"x": Stored(s, uniform((5, 3), -3, 3, dtype))}, note=dtype) for op in ("abs", "square")
      for s in (CSR, ROWS) for dtype in ("float64", "float16", "int32")),
]  # fmt: skip
