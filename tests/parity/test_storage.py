"""Storage types, numbers and stored patterns of symjax against the recorded table of real MXNet 1.9.1.

Inference is checked for every case; the rest on one in 120, on all with ``SYMJAX_SLOW`` (see CONTRIBUTING.md).
"""

from __future__ import annotations

import warnings
import zlib
from functools import cache
from typing import Any

import pytest

import symjax as mx
from symjax.sparse.storage import infer_storage
from tests.parity.storage import golden
from tests.parity.storage.case import StorageCase
from tests.parity.storage.check import check_stage
from tests.parity.storage.differs import DIFFERENCES, differences
from tests.parity.storage.record import family_cases, family_names

recorded = cache(golden.load)
EVERY = [(f, c) for f in family_names() for c in family_cases(f)]


def _marks(case: StorageCase) -> Any:
    return () if zlib.crc32(case.id.encode()) % 120 == 0 else pytest.mark.slow


@pytest.mark.parametrize("family", family_names())
def test_golden_is_up_to_date(family: str) -> None:
    cases, known = family_cases(family), recorded(family)
    todo = [c.id for c in cases if known.get(c.id, {}).get("hash") != c.hash()]
    stale = known.keys() - {c.id for c in cases}
    command = f"python -m tests.parity.storage.record {family} --only-missing"
    assert not todo and not stale, f"run `{command}`: {todo} {stale}"


@pytest.mark.parametrize("family", [f for f in family_names() if f != "update"])
def test_inference(family: str) -> None:
    """Storage types of outputs and gradients by inference alone."""
    problems = []
    for case in family_cases(family):
        problems += _inference_problems(case, recorded(family)[case.id]["stages"])
    assert not problems, "\n".join(problems)


def _inference_problems(case: StorageCase, want: dict[str, Any]) -> list[str]:
    graph = mx.sym.load_json(case.json())._graph
    at_bind = want["predict"].get("error", {}).get("at") == "bind"
    must_raise = at_bind and any(d.raises for d in differences(case, "predict"))
    try:
        storage = infer_storage(graph)
    except mx.MXNetError as e:
        return [] if "out" not in want["predict"] else [f"{case.id}: raised {e}"]
    if must_raise:
        return [f"{case.id}: must raise"]
    problems = []
    if want["predict"].get("out", storage.outputs()) != storage.outputs():
        problems.append(f"{case.id}: outputs {storage.outputs()}, expected {want['predict']['out']}")
    variables = {n.name: n for n in graph.arguments}
    found = storage.gradients(graph.arguments)
    for k, stype in want["train"].get("grad", {}).items():
        if found[variables[k]] != stype:
            problems.append(f"{case.id}: gradient of {k} is {found[variables[k]]}, expected {stype}")
    return problems


@pytest.mark.parametrize(
    ("family", "case"), [pytest.param(f, c, marks=_marks(c), id=f"{f}:{c.id}") for f, c in EVERY]
)
def test_case(family: str, case: StorageCase) -> None:
    """Numbers and stored patterns of executors, imperative calls and gradients."""
    stages = recorded(family)[case.id]["stages"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problems = [p for stage in case.stages for p in check_stage(case, stage, stages[stage])]
    if problems:
        pytest.fail("\n  ".join([f"{case.id}: {case.json()[:800]}", *problems]), pytrace=False)


@pytest.mark.parametrize("number", range(len(DIFFERENCES)), ids=[d.why for d in DIFFERENCES])
def test_differences_exist(number: int) -> None:
    """A documented difference names cases."""
    d = DIFFERENCES[number]
    assert any(d in differences(c, stage) for _, c in EVERY for stage in c.stages), d.cases
