"""`python -m tests.benchmarks [name …]`: symjax against real MXNet, interleaved, as ratios.

The oracle's interpreter comes from SYMJAX_ORACLE_PYTHON or `.venv-oracle` (`make oracle`); without it symjax alone is
timed. MXNet runs with two threads and, where it is the faster then, with one; the better counts. Sparse workloads are
also timed as written by hand in JAX. A ratio above 1 means that symjax is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
from typing import Any

from tests.benchmarks.sparse_workloads import SPARSE
from tests.benchmarks.workloads import WORKLOADS
from tests.parity.oracle import oracle_python

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
GRAPH = ROOT.parent / "shared" / "zoo" / "crnn_ic13"

BARS = {
    "mlp_step": ("ratio", 1.0),
    "resnet50_first_bind": ("seconds", 1.0),
    "largest_graph": ("seconds", 1.0),
    "resnet50_bind": ("seconds", 0.05),
    "fit_mlp": ("ratio", 2.0),
    "lstm_language_model": ("ratio", 1.0),
    "fit_buckets": ("ratio", 1.0),
    "fit_bucket_cells": ("ratio", 1.0),
    "image_records": ("ratio", 1.0),
}
"""What must hold: at least this ratio to MXNet, or at most these seconds."""
BARS.update(dict.fromkeys(SPARSE, ("ratio", 1.0)))
SHORTEST = 0.25
"""Seconds for which a contender is timed in a round, at least."""
JAX_BAR = 1 / 1.2
"""At least this ratio to JAX written by hand."""


class Worker:
    def __init__(self, python: str, implementation: str, name: str) -> None:
        env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        implementation, _, threads = implementation.partition("@")
        env.update(OMP_NUM_THREADS=threads or "2", JAX_PLATFORMS="cpu", MXNET_SUBGRAPH_VERBOSE="0", **graph_settings())
        if implementation in ("symjax", "jax"):
            env["PYTHONPATH"] = str(ROOT)
            del env["OMP_NUM_THREADS"]
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), implementation, name],
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.times: list[float] = []
        self.peak = 0
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read()[-1000:])
        return json.loads(line)

    def run(self, n: int, seconds: float = 0) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"run {n} {seconds}\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.times += answer["times"]
        self.peak = answer["peak_mb"]

    def load(self, name: str) -> None:
        """Makes an operator's workload the one to run, in a worker of the workload "ops". RuntimeError if it fails."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"load {name}\n")
        self.process.stdin.flush()
        self.times = []
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(answer["error"])

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def graph_settings() -> dict[str, str]:
    """The graph of the workload `largest_graph`, where it is at hand."""
    if not GRAPH.exists():
        return {}
    inputs = json.loads((GRAPH / "source.json").read_text())["inputs"]
    shapes = {k: v["shape"] for k, v in inputs.items() if "shape" in v}
    return {"SYMJAX_BENCH_GRAPH": str(GRAPH / "crnn_ic13-symbol.json"), "SYMJAX_BENCH_SHAPES": json.dumps(shapes)}


def compare(name: str, contenders: dict[str, str], rounds: int, calls: int) -> dict[str, Worker]:
    """Times the contenders (implementation -> interpreter) in turn, so that other work falls on both alike."""
    first_only = getattr(WORKLOADS[name], "first_only", False)
    done: dict[str, Worker] = {}
    for _ in range(rounds):
        for implementation, python in contenders.items():
            worker = done.get(implementation)
            if worker is None or first_only:
                fresh = Worker(python, implementation, name)
                fresh.times = worker.times if worker else []
                if worker:
                    worker.close()
                worker = done[implementation] = fresh
            worker.run(1 if first_only else calls, 0 if first_only else SHORTEST)
    for worker in done.values():
        worker.close()
    return done


def import_times(python: str, rounds: int) -> tuple[float, float]:
    """Median seconds of `import jax`, and of `import jax, symjax` with its front ends."""

    def once(code: str) -> float:
        timer = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
        return float(subprocess.run([python, "-c", timer], capture_output=True, text=True, check=True, cwd=ROOT).stdout)

    pairs = [
        (once("import jax"), once("import jax, symjax; symjax.sym.Variable, symjax.nd.NDArray")) for _ in range(rounds)
    ]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(WORKLOADS)}, import")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5, help="timed calls a round")
    options = parser.parse_args()
    oracle = oracle_python()
    contenders = {"symjax": sys.executable, **({"mxnet@2": str(oracle), "mxnet@1": str(oracle)} if oracle else {})}
    names = options.names or [*WORKLOADS, "import"]
    print(f"{'workload':22}{'symjax':>12}{'mxnet':>12}{'ratio':>8}{'peak MB':>9}  bar")
    for name in names:
        if name == "import":
            alone, both = import_times(sys.executable, options.rounds)
            more = both - alone
            print(f"{'import over jax':22}{more:>11.3f}s{'':>20}{'':>9}  <= 0.3 s: {_verdict(more <= 0.3)}")
            continue
        if name == "largest_graph" and not graph_settings():
            print(f"{name:22} no graph at hand")
            continue
        by_hand = name in SPARSE and name != "libsvm_epoch"
        done = compare(name, contenders | ({"jax": sys.executable} if by_hand else {}), options.rounds, options.calls)
        ours = statistics.median(done["symjax"].times)
        theirs = min([statistics.median(w.times) for k, w in done.items() if "mxnet" in k], default=float("nan"))
        kind, bar = BARS.get(name, ("", 0.0))
        good = {"ratio": theirs / ours >= bar, "seconds": ours <= bar, "": None}[kind]
        text = "" if good is None else f"{'ratio >=' if kind == 'ratio' else '<='} {bar}: {_verdict(good)}"
        if by_hand:
            jax = statistics.median(done["jax"].times)
            text += f"; JAX by hand {jax * 1e3:.2f}ms, ratio {jax / ours:.2f} >= {JAX_BAR:.2f}: "
            text += _verdict(jax / ours >= JAX_BAR)
        numbers = f"{ours * 1e3:>10.2f}ms{theirs * 1e3:>10.2f}ms{theirs / ours:>8.2f}{done['symjax'].peak:>9}"
        print(
            f"{name:22}{numbers}  {text}",
            flush=True,
        )


def _verdict(good: bool) -> str:
    return "holds" if good else "MISSED"


if __name__ == "__main__":
    main()
