"""Runs a batch of cases on real MXNet; started by `oracle.py` under the oracle's Python.

    python -m tests.parity.oracle_worker CASES.jsonl RESULTS.jsonl

Each line of CASES is [number, spec]. {"start": number} is written before a case and its result after, so that the
parent knows which case killed the process. Every case runs twice: arrays that differ between the runs are
uninitialised memory or random.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import mxnet as mx  # pyright: ignore[reportMissingImports]  (only in the oracle's environment)
import numpy as np

from tests.parity.case import Case
from tests.parity.runner import Result, run_case


def pack(array: np.ndarray) -> list[Any]:
    """[dtype, shape, base64 of the little-endian bytes]."""
    return [array.dtype.name, list(array.shape), base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()]


def unstable(first: Result, second: Result) -> list[str]:
    """Keys whose arrays are not the same in two runs (to rounding: threads may add in another order)."""
    a, b = first["arrays"], second["arrays"]
    return sorted(k for k in a if k not in b or not np.allclose(
        a[k].astype("float64"), b[k].astype("float64"), rtol=1e-5, atol=1e-6, equal_nan=True))  # fmt: skip


def poison(result: Result) -> None:
    """Leave numbers in freed memory of the sizes that a case uses, so that reading it shows in its second run."""
    used = [a for a in result["arrays"].values() for _ in range(3)]
    junk = [mx.nd.array(np.full(max(a.size, 1), 77), dtype=a.dtype) for a in used]
    for array in junk:
        array.wait_to_read()


def record(spec: dict[str, Any]) -> Result:
    """Run a case twice and make it JSON data."""
    case = Case.from_spec(spec)
    result = run_case(mx, case)
    poison(result)
    again = run_case(mx, case)
    result["unstable"] = unstable(result, again)
    result["arrays"] = {k: pack(v) for k, v in result["arrays"].items()}
    result.pop("traceback", None)
    return result


def main(cases: str, results: str) -> None:
    """Read case specs from one file, write results to the other, a line each."""
    with open(cases) as source, open(results, "w", buffering=1) as sink:
        for line in source:
            number, spec = json.loads(line)
            sink.write(json.dumps({"start": number}) + "\n")
            sink.write(json.dumps({"end": number, "result": record(spec)}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
