"""Random cases over the parameters of every op, live against real MXNet.

    python -m tests.parity.random_cases --n 300 --seed 1 [--ops Convolution,Pooling] [-v] [--lenient]

prints the cases that differ: op, dtype, parameters, shapes, the worst element. The same seed gives the same cases.
``--lenient`` also lists the cases that MXNet refuses and symjax runs, which are no difference by themselves.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.parity import draws, golden
from tests.parity.case import Case
from tests.parity.check import run_symjax
from tests.parity.compare import compare
from tests.parity.draw import DRAWS, draw_case
from tests.parity.oracle import run_oracle
from tests.parity.runner import Result

for _module in pkgutil.iter_modules(draws.__path__):
    importlib.import_module(f"{draws.__name__}.{_module.name}")


def random_cases(n: int, seed: int, ops: Sequence[str] = ()) -> list[Case]:
    """`n` cases, dealt evenly to the ops in random order."""
    names = sorted(ops or DRAWS)
    order: list[str] = []
    rng = random.Random(seed)
    while len(order) < n:
        order += rng.sample(names, len(names))
    return [draw_case(name, seed, i) for i, name in enumerate(order[:n])]


def differing(cases: Sequence[Case], lenient: bool = False) -> Iterator[tuple[Case, list[str], Result]]:
    """Runs the cases on both sides; yields those that differ, with the differences and symjax's result."""
    for case, raw in zip(cases, run_oracle(cases), strict=True):
        want = golden.thinned(raw)
        got = run_symjax(case)
        problems = compare(case, want, got).problems
        if problems and (lenient or not (want["status"] != "ok" and got["status"] == "ok")):
            yield case, problems, got


def describe(case: Case) -> str:
    """A case on one line: op, parameters, dtype, arrays."""
    node = next(n for n in json.loads(case.json)["nodes"] if n["op"] != "null")
    arrays = [f"{k}:{a.kind}{'' if a.shape is None else list(a.shape)}{a.dtype or ''}" for k, a in case.inputs.items()]
    return (f"{node['op']}({', '.join(f'{k}={v}' for k, v in node.get('attrs', {}).items())}) {case.dtype} "
            f"{' '.join(arrays)} grads={','.join(case.grads)} {case.grad_req} [{case.id}]")  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.random_cases", description=__doc__)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ops", default="", help="names, separated by commas")
    parser.add_argument("--lenient", action="store_true", help="also what only MXNet refuses")
    parser.add_argument("-v", action="store_true", help="symjax's tracebacks")
    args = parser.parse_args(argv)
    start, found = time.perf_counter(), Counter[str]()
    cases = random_cases(args.n, args.seed, args.ops.split(",") if args.ops else ())
    for case, problems, got in differing(cases, args.lenient):
        found[case.id.rsplit("-", 1)[0]] += 1
        print(describe(case), *(f"    {p}" for p in problems), sep="\n", flush=True)
        if args.v:
            print(got.get("traceback", ""))
    print(f"{args.n} cases, seed {args.seed}: {sum(found.values())} differ, {time.perf_counter() - start:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
