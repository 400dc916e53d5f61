"""Runs stages of storage cases on real MXNet; started by `record.py` under the oracle's Python.

    python -m tests.parity.storage.worker WORK.jsonl RESULTS.jsonl

Each line of WORK is [number, stage, spec]. {"start": number} is written before a stage and its result after, so that
the parent knows which one killed the process. Every stage runs twice: what differs is uninitialised memory.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mxnet as mx  # pyright: ignore[reportMissingImports]  (only in the oracle's environment)
import numpy as np

from tests.parity.oracle_worker import pack, poison
from tests.parity.storage.case import StorageCase
from tests.parity.storage.runner import run_stage


def unstable(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Keys whose arrays are not the same in two runs."""
    a, b = first["arrays"], second["arrays"]
    return sorted(k for k in {*a, *b} if k not in a or k not in b or a[k].shape != b[k].shape or not np.allclose(
        a[k].astype("float64"), b[k].astype("float64"), rtol=1e-5, atol=1e-6, equal_nan=True))  # fmt: skip


def main(work: str, results: str) -> None:
    """Read work from one file, write results to the other, a line each."""
    with open(work) as source, open(results, "w", buffering=1) as sink:
        for line in source:
            number, stage, spec = json.loads(line)
            sink.write(json.dumps({"start": number}) + "\n")
            case = StorageCase.from_spec(spec)
            result = run_stage(mx, case, stage)
            poison(result)
            result["unstable"] = unstable(result, run_stage(mx, case, stage))
            result["arrays"] = {k: pack(v) for k, v in result["arrays"].items()}
            sink.write(json.dumps({"end": number, "result": result}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
