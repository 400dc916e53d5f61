"""Names, printed forms, inference results and error classes are those recorded from real MXNet 1.9.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

import symjax as mx
from tests.face import executors, symbols
from tests.face.record import GOLDEN

RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))
FACTS = {**symbols.FACTS, **executors.FACTS}


def differences(got: Any, want: Any, path: str = "") -> list[str]:
    if isinstance(want, dict) and set(want) == {"error"}:
        if not (isinstance(got, dict) and "error" in got):
            return [f"{path}: expected one of the errors {want['error']}, got {got!r:.200}"]
        # MXNet names only its own leaf; symjax's classes must be caught by the same except clauses.
        caught = [c for c in want["error"] if c != "Exception"][:1]
        return [] if set(caught) <= set(got["error"]) else [f"{path}: expected {caught}, got {got['error']}"]
    if isinstance(want, dict) and isinstance(got, dict):
        found = (
            []
            if list(got) == list(want) or set(got) == set(want)
            else [f"{path}: keys {sorted(got)} != {sorted(want)}"]
        )
        return found + [d for k in want if k in got for d in differences(got[k], want[k], f"{path}.{k}")]
    if isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
        return [d for i, (g, w) in enumerate(zip(got, want, strict=True)) for d in differences(g, w, f"{path}[{i}]")]
    if isinstance(want, float) or isinstance(got, float):
        return [] if got == pytest.approx(want, abs=2e-4, nan_ok=True) else [f"{path}: {got} != {want}"]
    return [] if got == want else [f"{path}: got {got!r:.400}, expected {want!r:.400}"]


@pytest.mark.parametrize("name", sorted(FACTS))
def test_same_as_mxnet(name: str) -> None:
    got = json.loads(json.dumps(symbols.plain(FACTS[name](mx))))
    problems = differences(got, RECORDED[name])
    assert not problems, "\n".join(problems[:20])
