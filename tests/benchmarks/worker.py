"""One implementation of one workload in a process of its own; answers `run N S` on stdin with timings in seconds.

There are N of them, or more until S seconds have passed: the first short calls after a pause tell of cold caches.
The workload "ops" begins with none; `load NAME` makes that of an operator the one to run.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from typing import Any


def main() -> None:
    implementation, name = sys.argv[1:3]
    make: Any = None
    mx: Any = None
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints goes to stderr
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if name == "ops":
        mx = importlib.import_module(implementation)
        make = importlib.import_module("op_workloads").make
        step = lambda: None  # noqa: E731
    elif implementation == "jax":
        make = importlib.import_module("sparse_jax").JAX[name]
        step = make()
    else:
        mx = importlib.import_module(implementation)
        make = importlib.import_module("workloads").WORKLOADS[name]
        step = make(mx)
    if not getattr(make, "first_only", False):
        for _ in range(3):
            step()
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "load":
            try:
                step = make(mx, rest)
                for _ in range(3):
                    step()
                answer = {"ready": True}
            except Exception as e:
                answer = {"error": f"{type(e).__name__}: {e}"}
            print(json.dumps(answer), file=out, flush=True)
            continue
        times: list[float] = []
        calls, seconds = rest.split()
        end = time.perf_counter() + float(seconds)
        while len(times) < int(calls) or time.perf_counter() < end:
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps({"times": times, "peak_mb": peak}), file=out, flush=True)


main()
