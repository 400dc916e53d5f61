"""Types and constants of `mx.np`."""

from __future__ import annotations

import builtins

import numpy as onp

__all__ = ["NAN", "NINF", "NZERO", "PINF", "PZERO", "NaN", "bool", "bool_", "e", "finfo", "float16", "float32",
           "float64", "inf", "int8", "int32", "int64", "nan", "newaxis", "pi", "uint8"]

float16, float32, float64 = onp.float16, onp.float32, onp.float64
int8, int32, int64, uint8 = onp.int8, onp.int32, onp.int64, onp.uint8
bool_ = onp.bool_
bool = builtins.bool
finfo = onp.finfo
newaxis = None
pi, e, inf, nan = onp.pi, onp.e, onp.inf, onp.nan
NAN = NaN = nan
PINF, NINF, PZERO, NZERO = inf, -inf, 0.0, -0.0

_STR_2_DTYPE_ = {"float16": float16, "float32": float32, "float64": float64, "float": float64, "uint8": uint8,
                 "int8": int8, "int32": int32, "int64": int64, "int": int64, "bool": bool, "bool_": bool_,
                 "None": None}
