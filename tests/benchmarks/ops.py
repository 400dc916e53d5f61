"""`python -m tests.benchmarks.ops [--ops a,b] [--json FILE] [--picture FILE]`: operators against MXNet's, worst first.

One process of each runs every workload of `op_workloads.py` in turn with the other's, MXNet with two threads. A ratio
above 1 means that symjax is faster; below 1 / 1.2 it is marked, unless `REASONS` says why it cannot be otherwise.
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

_ONE_CORE = "XLA:CPU copies on one core; in a larger graph the copy is part of what reads it"
_EXP = "the exponential function alone takes XLA:CPU as long as MXNet needs for all"
_SHORT = "a call of some 60 us, most of it JAX's dispatch"

REASONS: dict[str, str] = {
    "conv_grouped*": "XLA:CPU has no fast grouped convolution: separate ones reach a fifth of oneDNN's rate",
    "conv_depthwise*": "sums of shifted products: oneDNN keeps a channel's taps in registers, XLA reads them again",
    "conv7x7/2*": "XLA:CPU's convolution of few channels runs at half of oneDNN's rate, its weight gradient at a third",
    "conv*": "XLA:CPU's convolutions and products reach 50-90 % of oneDNN's rate on two cores",
    "deconv*": "XLA:CPU spreads the data by the stride and multiplies the zeros",
    "quantized_*": "XLA:CPU has no products of bytes: int8 is multiplied as float32",
    "fc_large*": "oneDNN packs a large weight once, XLA:CPU in every call",
    "maxpool3x3*": "reads with a stride of 2 are not vectorised by XLA:CPU",
    "im2col*": "reads with borders, which XLA:CPU does element by element",
    "lrn forward": "five shifted reads with border tests, which XLA:CPU does not keep in registers",
    "multibox_detection*": "suppression settles blocks of boxes by some twenty small kernels, dispatched one by one",
    "selfatt_qk*": "XLA:CPU's batched product alone takes as long as all of MXNet's operator",
    "sort_words*": "XLA:CPU's sort of bare keys takes as long",
    "linalg_trsm*": "one call of LAPACK for each matrix, in a loop of XLA's",
    "dropout*": "bits of a generator that gives the same ones on every platform (threefry)",
    "softmax*": _EXP,
    "log_softmax*": _EXP,
    "transpose*": _ONE_CORE,
    "split*": _ONE_CORE,
    "concat*": _ONE_CORE,
    "slice*": _ONE_CORE,
    "tile forward": _ONE_CORE,
    "multibox_prior*": _SHORT,
    "pick*": _SHORT,
    "l2norm*": _SHORT,
    "add*": "bound by memory, as MXNet's: 0.8 to 1.1 of it from run to run",
    "relu*": "bound by memory, as MXNet's: 0.8 to 1.1 of it from run to run",
}
"""Workloads that may be slower than 1.2 times MXNet's, and why; of several patterns the first counts."""


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
    """How many times faster symjax is, by the least times; infinite where one of the two does not run."""
    return r["mxnet_least"] / r["symjax_least"] if "symjax" in r and "mxnet" in r else float("inf")


def line(r: dict[str, Any]) -> str:
    """A row of the table."""
    errors = [f"{k.removesuffix('_error')}: {v[:90]!r}" for k, v in r.items() if k.endswith("_error")]
    if errors or "mxnet" not in r:
        return f"{r['name']:32}  {'; '.join(errors) or format(r['symjax'] * 1e3, '.3f') + ' ms'}"
    reason = next((t for p, t in REASONS.items() if fnmatch.fnmatch(r["name"], p)), "")
    verdict = "" if ratio(r) >= JAX_BAR else reason or "SLOWER"
    least, other = r["symjax_least"] * 1e3, r["mxnet_least"] * 1e3
    medians = r["mxnet"] / r["symjax"]
    return f"{r['name']:32}{least:>10.3f}{other:>10.3f}{ratio(r):>8.2f}{medians:>8.2f}  {verdict}"


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Draws every workload's ratio, slowest first."""
    import matplotlib.pyplot as plt

    pairs = sorted((ratio(r), r["name"]) for r in results if "symjax" in r and "mxnet" in r)
    values = [v for v, _ in pairs]
    figure, axis = plt.subplots(figsize=(9, 3.6), layout="constrained")
    colours = ["C3" if v < JAX_BAR else "C7" if v < 1 else "C0" for v in values]
    axis.bar(range(len(values)), [v - 1 for v in values], bottom=1, color=colours, width=0.9)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_yscale("log")
    axis.set_yticks([0.2, 0.5, 1, 2, 5, 10, 20], ["0.2", "0.5", "1", "2", "5", "10", "20"])
    axis.minorticks_off()
    for i, side, shift in ((0, "left", 12), (len(values) - 1, "right", -12)):
        axis.annotate(pairs[i][1], (i, values[i]), (shift, 0), textcoords="offset points", ha=side, va="center")
    axis.margins(x=0.01)
    axis.set(xlabel=f"{len(values)} workloads, a bar each", ylabel="times as fast as MXNet", xticks=[])
    figure.savefig(path, dpi=110)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ops", description=__doc__)
    parser.add_argument("--ops", default="*", help="names of workloads, with commas between; they may hold *")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5, help="timed calls a round")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--picture", type=Path, help="draw them into this file")
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
    if options.picture:
        draw(results, options.picture)
    print(f"{'workload':32}{'symjax ms':>10}{'mxnet ms':>10}{'ratio':>8}{'medians':>8}")
    for r in sorted(results, key=ratio):
        print(line(r))


if __name__ == "__main__":
    main()
