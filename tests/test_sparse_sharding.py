"""Sharded tables on eight virtual devices: `sharding_cases`, in a process of their own that has as many."""

from __future__ import annotations

import pytest

from tests.eight_devices import results_of
from tests.sharding_cases import CASES


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    return results_of("tests.sharding_cases", "-W", "error")


@pytest.mark.parametrize("case", CASES)
def test_on_eight_devices(case: str, results: dict[str, str]) -> None:
    assert results[case] == "", results[case]
