"""The generator of random cases, and (marker ``oracle``) a sample of them on real MXNet."""

from __future__ import annotations

import json
import os

import pytest

from tests.parity.oracle import oracle_python
from tests.parity.random_cases import DRAWS, describe, differing, random_cases


@pytest.mark.parametrize("op", sorted(DRAWS))
def test_cases_are_drawn_and_repeatable(op: str) -> None:
    for seed in range(4):
        (case,) = random_cases(1, seed, [op])
        assert case.spec() == random_cases(1, seed, [op])[0].spec()
        assert json.loads(case.json)["nodes"][-1]["op"] == op


@pytest.mark.oracle
def test_random_sample() -> None:
    """SYMJAX_PARITY_SAMPLE (default 40) is the number of cases, SYMJAX_PARITY_SEED (default 1) chooses them.

    The seed is fixed, for a new corner of MXNet should be met by who looks for one, not by who changed something else.
    """
    if oracle_python() is None:
        pytest.skip("real MXNet is not installed: `make oracle` or SYMJAX_ORACLE_PYTHON")
    seed = int(os.environ.get("SYMJAX_PARITY_SEED") or 1)
    n = int(os.environ.get("SYMJAX_PARITY_SAMPLE") or 40)
    print(f"python -m tests.parity.random_cases --n {n} --seed {seed}")
    found = ["\n    ".join([describe(case), *problems]) for case, problems, _ in differing(random_cases(n, seed))]
    assert not found, f"python -m tests.parity.random_cases --n {n} --seed {seed}\n" + "\n".join(found)
