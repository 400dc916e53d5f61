"""Modules train as in real MXNet: the losses of 50 steps, and the parameters after them.

Measured, losses differ by up to 6e-6 of themselves; bounds leave room for other machines, whose sums in other orders
the updates carry on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from tests.module_cases import CASES, run_case

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "modules.json").read_text())


def test_all_networks_are_recorded() -> None:
    assert list(GOLDEN) == list(CASES)


ALWAYS = {"mlp, momentum", "mlp, adam", "mlp, ftrl", "mlp, lamb", *(n for n in CASES if not n.startswith("mlp, "))}
"""What runs in every run; the other optimizers are a slow sweep."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in ALWAYS else [pytest.mark.slow]) for n in CASES])
def test_training_is_mxnets(name: str) -> None:
    found, want = run_case(mx, name), GOLDEN[name]
    np.testing.assert_allclose(found["losses"], want["losses"], rtol=1e-4, atol=1e-6)
    assert list(found["params"]) == list(want["params"])
    for parameter, numbers in want["params"].items():
        np.testing.assert_allclose(found["params"][parameter], numbers, rtol=1e-3, atol=2e-4, err_msg=parameter)
