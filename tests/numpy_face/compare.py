"""Comparing results with the golden ones, and the differences that are meant."""

from __future__ import annotations

import functools
import gzip
import json
import math
from typing import Any

import pytest

import symjax as mx
from tests.numpy_face import cases, record

_LENIENT = "MXNet refuses; numpy's result is given"
_FOR_BOOLS = [f"np.{f}" for f in ("abs(T)", "sign(T)", "square(T)", "sin(T)", "ceil(T)", "mod(T, T)", "remainder(T, T)",
                                  "maximum(T, T)", "minimum(T, T)")]
_MIXED = [*(f"np.{f}({p})" for f in ("subtract", "divide", "mod") for p in ("U, I", "I, L")),
          "np.divide(A, D[:3])"]
MEANT: dict[str, str] = {
    **dict.fromkeys((*_FOR_BOOLS, "T % T", *_MIXED, "V[3:1]", "Z[...]", "Z[None]", "np.sum(A, initial=5)"), _LENIENT),
    **dict.fromkeys(("np.equal(T, 2)", "np.less(T, 2)"), "MXNet makes the number a bool before it compares"),
    **dict.fromkeys(("np.var(I)", "np.std(I)", "np.std(I, axis=0)"),
                    "MXNet rounds the mean of integers before it squares the distances"),
    **dict.fromkeys(("np.insert(V, np.array([1, 2], dtype='int64'), 9)", "np.insert(V, slice(0, 4, 2), 9)",
                     "np.insert(A, 1, 5, axis=1)"), "MXNet's shape inference fails"),
    "np.pad(V, ((1, 2),))": "MXNet fails, for it pads twice",
    "V.attach_grad(); mx.autograd.set_recording(True); R = np.pad(V, ((1, 1),), mode='edge').sum(); R.backward(); "
    "(R, V.grad)": "MXNet has no gradient of it",
    "iter(Z)": "MXNet's error comes with the first element",
    "onp.array(A)": "MXNet's arrays have no __array__: numpy gets objects",
    "onp.asarray(I)": "MXNet's arrays have no __array__: numpy gets objects",
    "onp.sum([V, W])": "MXNet's arrays have no __array__: numpy gets objects",
    "np.nansum(N)": "numpy 1.23's nansum fails on MXNet's arrays",
    "np.alltrue(T)": "numpy 2 has no alltrue; all returns an array",
    "list(range(10))[np.array(3, dtype='int32')]": "MXNet's arrays have no __index__",
    "np.all(a=T)": "MXNet takes data= alone, against the signature that it shows",
    "A[0:'a']": "int('a') raises ValueError",
    "V.attach_grad(); mx.autograd.set_recording(True); onp.median(V)": "MXNet fails while it makes the message",
    "np.random.multivariate_normal(np.zeros(3), P, tol=1)": "MXNet forgets tol",
    "abs(X)": "MXNet refuses abs of a symbol of mx.np",
    "import pickle; pickle.loads(pickle.dumps(X + Y))": "MXNet forgets the class",
}
"""Expression -> why the result is not MXNet's."""


@functools.cache
def golden() -> dict[str, dict[str, Any]]:
    return json.loads(gzip.decompress(record.GOLDEN.read_bytes()))


def params(*names: str) -> list[Any]:
    """`cases.chunks` as pytest parameters: every third in every run, the others are slow sweeps."""
    return [pytest.param(*value, id=key, marks=[pytest.mark.slow] if i % 3 else [])
            for i, (key, value) in enumerate(cases.chunks(*names).items())]


def check(section: str, codes: list[str]) -> list[str]:
    """Evaluates expressions of a section under numpy's semantics: what differs, and what is meant to and does not."""
    wrong = []
    mx.npx.set_np()
    try:
        for code in codes:
            ours = record.run(mx, code)
            why = differs(golden()[section][code], ours)
            if bool(why) is not (code in MEANT):
                wrong.append(f"{code}: {why or 'is as MXNet has it'}; {str(ours)[:200]}")
    finally:
        mx.npx.reset_np()
    return wrong


def differs(theirs: Any, ours: Any) -> str:
    """Why a result is not MXNet's, "" if it is."""
    if isinstance(theirs, dict) and "raises" in theirs:
        if not (isinstance(ours, dict) and "raises" in ours):
            return "no error"
        wanted = theirs["raises"][0]
        return "" if wanted in ("MXNetError", *ours["raises"]) else f"raises {ours['raises']}"
    if isinstance(theirs, dict) and isinstance(ours, dict) and "values" in theirs and "values" in ours:
        heads = [{k: v for k, v in x.items() if k != "values"} for x in (theirs, ours)]
        if heads[0] != heads[1]:
            return f"{heads[1]} instead of {heads[0]}"
        kind = next(iter(theirs.values()))
        tolerance = {"float16": 2e-3, "float64": 1e-7}.get(kind, 2e-5)
        close = all(near(a, b, tolerance) for a, b in zip(theirs["values"], ours["values"], strict=True))
        return "" if close else f"values instead of {theirs['values']}"
    if isinstance(theirs, dict) and isinstance(ours, dict) and set(theirs) == set(ours) and "nodes" not in theirs:
        key = next(iter(theirs), "")
        if key in ("list", "tuple") and len(theirs[key]) == len(ours[key]):
            return "; ".join(filter(None, map(differs, theirs[key], ours[key])))
        if key == "number":
            return "" if near(theirs[key], ours[key], 2e-5) else "number"
    return "" if theirs == ours else f"differs from {str(theirs)[:200]}"


def near(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
