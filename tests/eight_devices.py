"""Cases that run in a process of their own, which has eight virtual devices.

A module of cases has functions `case_<name>`, `CASES = cases_in(globals())`, and ends with `run_cases(CASES)` where it
is the main module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax

ROOT = Path(__file__).resolve().parents[1]
COUNT = 8
Cases = Mapping[str, Callable[[], None]]


def cases_in(names: Mapping[str, Any]) -> dict[str, Callable[[], None]]:
    """The cases of a module, by their names."""
    return {name.removeprefix("case_"): f for name, f in names.items() if name.startswith("case_")}


def run_cases(cases: Cases) -> None:
    """Runs the cases that the command line names, or all; prints, as JSON, the traceback of each that fails."""
    assert len(jax.devices()) == COUNT
    results = {}
    for name, f in cases.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        start = time.perf_counter()
        try:
            f()
            results[name] = ""
        except BaseException:  # pytest.raises fails with one that is no Exception
            results[name] = traceback.format_exc()
        print(f"{name}: {time.perf_counter() - start:.1f} s {'FAILED' * bool(results[name])}", flush=True)
    print(json.dumps(results))


def results_of(module: str, *flags: str) -> dict[str, str]:
    """What `run_cases` found in a new process of Python, started with `flags`."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT),
           "XLA_FLAGS": f"--xla_force_host_platform_device_count={COUNT}"}  # fmt: skip
    made = subprocess.run([sys.executable, *flags, "-m", module], cwd=ROOT, env=env, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-3000:]
    return json.loads(made.stdout.splitlines()[-1])
