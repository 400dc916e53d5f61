"""Where symjax does not follow MXNet's storage table, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.parity.storage.case import StorageCase


@dataclass(frozen=True)
class Difference:
    """Cases in which symjax differs from MXNet.

    Attributes:
        cases: pattern of the case ids.
        why: the reason.
        stages: stages concerned.
        keys: pattern of the arrays concerned.
        types: the storage types differ (the numbers agree).
        pattern: what is stored differs (the numbers agree).
        wrong: MXNet's numbers are wrong: the dense definition counts.
        raises: MXNet raises and symjax must.
        runs: MXNet raises and symjax must not.
    """

    cases: str
    why: str
    stages: tuple[str, ...] = ()
    keys: str = ""
    types: bool = False
    pattern: bool = False
    wrong: bool = False
    raises: bool = False
    runs: bool = False

    def covers(self, key: str) -> bool:
        return re.search(self.keys, key) is not None


DIFFERENCES: tuple[Difference, ...] = ()


def differences(case: StorageCase, stage: str) -> list[Difference]:
    """The documented differences of a case's stage."""
    return [d for d in DIFFERENCES if re.search(d.cases, case.id) and (not d.stages or stage in d.stages)]
