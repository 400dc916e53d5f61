"""symjax against the results of real MXNet 1.9.1, recorded and (marker ``oracle``) live."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.parity import golden
from tests.parity.case import Case
from tests.parity.check import run_symjax
from tests.parity.compare import compare, explain
from tests.parity.coverage import uncovered
from tests.parity.elsewhere import ELSEWHERE
from tests.parity.oracle import oracle_python, run_oracle
from tests.parity.record import family_cases, family_names, missing
from tests.parity.runner import Result

ROOT = Path(__file__).resolve().parents[2]
recorded = cache(golden.load)
EVERY = [(f, c) for f in family_names() for c in family_cases(f)]
ALWAYS = 2
"""Cases of an operator that run in every run; what it has beyond them is a slow sweep, of which a shard runs."""


def _sweeps() -> list[bool]:
    """For each case whether it belongs to the sweep: spread over the cases of its operator, so that all kinds run."""
    ops = [tuple(sorted({n["op"] for n in json.loads(c.json)["nodes"]})) for _, c in EVERY]
    count, seen = Counter(ops), Counter[tuple[str, ...]]()
    found = []
    for op in ops:
        i, n = seen[op], count[op]
        seen[op] += 1
        found.append(n > ALWAYS and i * ALWAYS // n == (i - 1) * ALWAYS // n)
    return found


_BY_CHANCE = ("unwritten", "uninitialised", "garbage")  # what MXNet leaves in memory may be right

PARAMS = [pytest.param(f, c, id=f"{f}:{c.id}", marks=[pytest.mark.slow] if sweep else [])
          for (f, c), sweep in zip(EVERY, _sweeps(), strict=True)]  # fmt: skip


@pytest.mark.parametrize("family", family_names())
def test_golden_is_up_to_date(family: str) -> None:
    cases = family_cases(family)
    todo = [c.id for c in missing(cases, recorded(family))]
    stale = recorded(family).keys() - {c.id for c in cases}
    assert not todo and not stale, f"run `python -m tests.parity.record {family} --only-missing`: {todo} {stale}"


@pytest.mark.parametrize(("family", "case"), PARAMS)
def test_case(family: str, case: Case) -> None:
    want = recorded(family).get(case.id)
    assert want is not None, f"not recorded: run `python -m tests.parity.record {family} --only-missing`"
    got = run_symjax(case)
    problems = compare(case, want, got).problems
    if problems:
        pytest.fail(explain(case, [*problems, got.get("traceback", "")]), pytrace=False)
    if case.differs and want["status"] == "ok" and not any(word in case.differs for word in _BY_CHANCE):
        assert compare(case.plain(), want, got).problems, f"MXNet has these numbers too: {case.differs!r} is not true"


def test_every_op_has_a_case() -> None:
    """Parameters without a case are listed by ``python -m tests.parity.coverage``."""
    lacking = {name for name, what in uncovered().items() if what == ["no case"]}
    assert not lacking - ELSEWHERE.keys(), f"ops without a parity case: {' '.join(sorted(lacking - ELSEWHERE.keys()))}"
    assert not ELSEWHERE.keys() - lacking, f"now have a case: {' '.join(sorted(ELSEWHERE.keys() - lacking))}"
    assert all(reason and (ROOT / where).exists() for reason, where in ELSEWHERE.values())


@pytest.mark.oracle
def test_live_sample() -> None:
    """A sample of cases, and what symjax writes after reading them, run on real MXNet now.

    SYMJAX_PARITY_SAMPLE (default 40) is the number of cases, SYMJAX_PARITY_SEED chooses them.
    """
    if oracle_python() is None:
        pytest.skip("real MXNet is not installed: `make oracle` or SYMJAX_ORACLE_PYTHON")
    seed = int(os.environ.get("SYMJAX_PARITY_SEED") or random.SystemRandom().randrange(10**6))
    print(f"SYMJAX_PARITY_SEED={seed}")
    every = [case for _, case in EVERY]
    sample = random.Random(seed).sample(every, min(len(every), int(os.environ.get("SYMJAX_PARITY_SAMPLE") or 40)))
    theirs = [golden.thinned(r) for r in run_oracle(sample)]
    problems = [_problems(c, want, run_symjax(c)) for c, want in zip(sample, theirs, strict=True)]
    rewritten = [c.plain() if text is None else replace(c.plain(), json=text) for c, text in (
        (c, rewrite(c)) for c in sample)]  # fmt: skip
    for case, want, got in zip(rewritten, theirs, run_oracle(rewritten), strict=True):
        problems.append(_problems(case, want, got))
    found = [p for p in problems if p]
    assert not found, f"SYMJAX_PARITY_SEED={seed}\n" + "\n".join(found)


def rewrite(case: Case) -> str | None:
    """The graph as symjax writes it; None where it (rightly or not: the sample tells) cannot be read."""
    from symjax import base, symbol

    try:
        return symbol.load_json(case.json).tojson(remove_amp_cast=False)
    except base.MXNetError:
        return None


def _problems(case: Case, want: Result, got: Result) -> str:
    problems = compare(case, want, got).problems
    return explain(case, problems) if problems else ""

