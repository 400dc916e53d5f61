"""`python -m tests.benchmarks.ops [--ops a,b] [--rounds N] [--json FILE]`: operators against MXNet's, worst first.

One process of each runs every workload of `op_workloads.py` in turn with the other's, MXNet with two threads. A ratio
above 1 means that symjax is faster; below 1 / 1.2 it is marked, unless `SLOWER` says why it cannot be otherwise.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks import op_workloads
from tests.benchmarks.__main__ import JAX_BAR, Worker
from tests.parity.oracle import oracle_python

SLOWER: dict[str, str] = {
    "conv_grouped*": "XLA:CPU has no fast grouped convolution: separate ones reach a fifth of oneDNN's rate",
    "conv7x7/2*": "XLA:CPU's convolution of few channels runs at half of oneDNN's rate, its weight gradient at a third",
    "conv3x3*": "XLA:CPU's convolutions reach 70-90 % of oneDNN's rate",
    "fc_large*": "bound by reading the weight, which oneDNN packs once",
}
"""Workloads that may be slower than 1.2 times MXNet's, and why."""


def measure(name: str, workers: dict[str, Worker], rounds: int, calls: int) -> dict[str, Any]:
    """Medians in seconds by implementation, or the errors."""
    result: dict[str, Any] = {"name": name}
    for key, worker in workers.items():
        try:
            worker.load(name)
        except RuntimeError as e:
            result[f"{key}_error"] = str(e)[-2000:]
    if len(result) == 1:
        for _ in range(rounds):
            for worker in workers.values():
                worker.run(calls)
        result |= {key: statistics.median(w.times) for key, w in workers.items()}
        # the least time is what the code can do; medians on a busy machine show the neighbours
        result |= {f"{key}_least": min(w.times) for key, w in workers.items()}
    return result


def ratio(r: dict[str, Any]) -> float:
    """How many times faster symjax is, by the medians; infinite where one of the two does not run."""
    return r["mxnet"] / r["symjax"] if "symjax" in r and "mxnet" in r else float("inf")


def line(r: dict[str, Any]) -> str:
    """A row of the table."""
    errors = [f"{k.removesuffix('_error')}: {v[:90]!r}" for k, v in r.items() if k.endswith("_error")]
    if errors or "mxnet" not in r:
        return f"{r['name']:32}  {'; '.join(errors) or format(r['symjax'] * 1e3, '.3f') + ' ms'}"
    reason = next((t for p, t in SLOWER.items() if fnmatch.fnmatch(r["name"], p)), "")
    verdict = "" if ratio(r) >= JAX_BAR else reason or "SLOWER"
    least = r["mxnet_least"] / r["symjax_least"]
    return f"{r['name']:32}{r['symjax'] * 1e3:>10.3f}{r['mxnet'] * 1e3:>10.3f}{ratio(r):>8.2f}{least:>8.2f}  {verdict}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ops", description=__doc__)
    parser.add_argument("--ops", default="*", help="names of workloads, with commas between; they may hold *")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5, help="timed calls a round")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    patterns = options.ops.split(",")
    chosen = [n for n in op_workloads.names()
              if any(fnmatch.fnmatch(t, p) for p in patterns for t in (n, n.split()[0]))]  # fmt: skip
    oracle = oracle_python()
    pythons = {"symjax": sys.executable, **({"mxnet": str(oracle)} if oracle else {})}
    workers: dict[str, Worker] = {}
    results = []
    for i, name in enumerate(chosen):
        for key, python in pythons.items():
            if key not in workers or workers[key].process.poll() is not None:  # a crash ends the process
                workers[key] = Worker(python, "mxnet@2" if key == "mxnet" else key, "ops")
        results.append(measure(name, workers, options.rounds, options.calls))
        print(f"{i + 1}/{len(chosen)} {line(results[-1])}", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    for worker in workers.values():
        worker.close()
    print(f"{'workload':32}{'symjax ms':>10}{'mxnet ms':>10}{'ratio':>8}{'least':>8}")
    for r in sorted(results, key=ratio):
        print(line(r))


if __name__ == "__main__":
    main()
