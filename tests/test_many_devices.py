"""Modules and executors on eight virtual devices: `mesh_cases`, in a process of their own that has as many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jax.sharding import PartitionSpec

from symjax.lowering.errors import BindError
from symjax.lowering.layout import parse_sharding
from tests.mesh_cases import CASES

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT),
           "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}  # fmt: skip
    command = [sys.executable, "-m", "tests.mesh_cases"]
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize(("text", "spec"), [
    ("model,None", ("model", None)), ("(None, 'model')", (None, "model")), ("", ()), ("None", (None,)),
    ("PartitionSpec(('data', 'model'), None)", (("data", "model"), None)), ("(a, b), c", (("a", "b"), "c")),
])  # fmt: skip
def test_texts(text: str, spec: tuple[object, ...]) -> None:
    assert parse_sharding(text) == PartitionSpec(*spec)
    assert parse_sharding(str(PartitionSpec(*spec))) == PartitionSpec(*spec)


@pytest.mark.parametrize("text", ["3", "model;None", "(1,)", "a,,b", "[a]", "f(x)", "(((a))", "((a, None), b)"])
def test_texts_that_cannot_be_read(text: str) -> None:
    with pytest.raises(BindError, match=r"__sharding__=.* cannot be read; give a mesh axis or None"):
        parse_sharding(text)


@pytest.mark.parametrize("case", CASES)
def test_on_eight_devices(case: str, results: dict[str, str]) -> None:
    assert results[case] == "", results[case]
