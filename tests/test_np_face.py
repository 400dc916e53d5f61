"""`mx.np`, `mx.npx` and `mx.sym.np` against what MXNet gives for the same expressions (`tests/numpy_face`)."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

import symjax as mx
from tests.numpy_face import cases, record

CODES = cases.sections()


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, Any]]:
    return json.loads(gzip.decompress(record.GOLDEN.read_bytes()))


@pytest.fixture(autouse=True)
def numpy_semantics() -> Iterator[None]:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


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
        return "" if close else "values"
    if isinstance(theirs, dict) and isinstance(ours, dict) and set(theirs) == set(ours) and "nodes" not in theirs:
        key = next(iter(theirs), "")
        if key in ("list", "tuple") and len(theirs[key]) == len(ours[key]):
            return "; ".join(filter(None, map(differs, theirs[key], ours[key])))
        if key == "number":
            return "" if near(theirs[key], ours[key], 2e-5) else "number"
    return "" if theirs == ours else "differs"


def near(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
