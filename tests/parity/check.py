"""For authors of ops: ``python -m tests.parity.check FAMILY [-k TEXT] [-v] [--oracle]``.

Records what is missing, runs symjax on every case and prints a line each: pass or FAIL, the worst error in units of the
tolerance, what differs. ``--oracle`` runs MXNet in symjax's place (must pass: a check of the cases). Exit code 1
on a FAIL.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.parity import golden
from tests.parity.case import Case
from tests.parity.compare import compare, explain
from tests.parity.oracle import ROOT, oracle_python, run_oracle
from tests.parity.record import family_cases, family_names, missing, record
from tests.parity.runner import Result, run_case


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.check", description=__doc__)
    parser.add_argument("family", nargs="+", help="modules of tests/parity/families, or all")
    parser.add_argument("-k", default="", metavar="TEXT", help="only cases whose id contains TEXT")
    parser.add_argument("-v", action="store_true", help="graph and traceback of failing cases")
    parser.add_argument("-q", action="store_true", help="print failing cases only")
    parser.add_argument("--oracle", action="store_true", help="MXNet in the place of symjax")
    args = parser.parse_args(argv)
    _cache_compilations()
    counts = [_family(f, args) for f in (family_names() if args.family == ["all"] else args.family)]
    passed, failed = (sum(c) for c in zip(*counts, strict=True))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _cache_compilations() -> None:
    """Most of a run is XLA compiling what has not changed since the last one: keep it (set before JAX is imported)."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".jax_cache"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def _family(family: str, args: argparse.Namespace) -> tuple[int, int]:
    cases = family_cases(family)
    if missing(cases, golden.load(family)):
        if oracle_python() is None:
            raise SystemExit("new cases need real MXNet: run `make oracle` or set SYMJAX_ORACLE_PYTHON")
        print(f"{family}: recorded {len(record(family))}")
    known, failed = golden.load(family), 0
    cases = [c for c in cases if args.k in c.id]
    if args.oracle:  # MXNet is not better than itself, and keeps its faults
        cases = [c.plain() for c in cases]
    live = run_oracle(cases) if args.oracle else []
    for i, case in enumerate(cases):
        start = time.perf_counter()
        got = live[i] if args.oracle else run_symjax(case)
        failed += _report(case, known[case.id], got, time.perf_counter() - start, args)
    return len(cases) - failed, failed


def run_symjax(case: Case) -> Result:
    """A case on symjax."""
    import symjax

    return run_case(symjax, case)


def _report(case: Case, want: Result, got: Result, seconds: float, args: argparse.Namespace) -> bool:
    verdict = compare(case, want, got)
    note = "" if want["status"] == "ok" else f"(MXNet: {want['status']} {want['stage']} {_text(want)[:90]})"
    if want.get("onednn"):
        note += ' -- oneDNN runs it: backend="onednn"?'
    if want.get("unstable"):
        note += f" unstable in MXNet: {', '.join(want['unstable'])}"
    if verdict.problems or not args.q:
        state = "FAIL" if verdict.problems else "pass"
        print(f"{state}  {verdict.worst:8.2g}  {seconds:5.2f}s  {case.id}  {note}".rstrip(), flush=True)
    for problem in verdict.problems:
        print(f"        {problem}")
    if args.v and verdict.problems:
        print(explain(case, []), got.get("traceback", ""), sep="\n")
    return bool(verdict.problems)


def _text(result: Result) -> str:
    return (result.get("error") or {}).get("text", "")


if __name__ == "__main__":
    sys.exit(main())
