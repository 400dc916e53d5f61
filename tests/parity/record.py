"""Record MXNet's results: ``python -m tests.parity.record [FAMILY…] [--only-missing]`` (``make oracle-record``).

New and changed cases are run on the oracle (without ``--only-missing``: all of them), stale ones are dropped.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.parity import families, golden
from tests.parity.case import Case
from tests.parity.oracle import run_oracle
from tests.parity.runner import Result


def family_names() -> list[str]:
    """The modules under `families`."""
    return sorted(m.name for m in pkgutil.iter_modules(families.__path__))


def family_cases(family: str) -> list[Case]:
    """A family's cases; the second of one id is called ``id#2`` and so on."""
    cases: list[Case] = importlib.import_module(f"tests.parity.families.{family}").CASES
    seen: Counter[str] = Counter()
    out = []
    for case in cases:
        seen[case.id] += 1
        out.append(case if seen[case.id] == 1 else replace(case, id=f"{case.id}#{seen[case.id]}"))
    return out


def missing(cases: list[Case], known: dict[str, Result]) -> list[Case]:
    """Cases without a recorded result, or changed since."""
    return [c for c in cases if c.id not in known or known[c.id]["hash"] != c.hash()]


def record(family: str, only_missing: bool = True) -> list[str]:
    """Bring a family's golden up to date.

    Returns:
        The ids that were run.
    """
    cases, known = family_cases(family), golden.load(family)
    todo = missing(cases, known) if only_missing else cases
    fresh = {c.id: golden.thinned(r) for c, r in zip(todo, run_oracle(todo), strict=True)} if todo else {}
    _try_onednn([c for c in todo if fresh[c.id]["status"] != "ok" and c.backend == "native"], fresh)
    hashes = {c.id: c.hash() for c in cases}
    kept = {k: {"hash": hashes[k], **{n: v for n, v in (fresh.get(k) or known[k]).items() if n != "hash"}}
            for k in hashes}  # fmt: skip
    if todo or kept.keys() != known.keys():
        golden.save(family, kept)
    return [c.id for c in todo]


def _try_onednn(refused: list[Case], fresh: dict[str, Result]) -> None:
    """Note the cases that plain kernels refuse and oneDNN runs: their authors may want ``backend="onednn"``."""
    if refused:
        again = run_oracle([replace(c, backend="onednn") for c in refused])
        for case, result in zip(refused, again, strict=True):
            if result["status"] == "ok":
                fresh[case.id]["onednn"] = "ok"


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.record", description=__doc__)
    parser.add_argument("family", nargs="*")
    parser.add_argument("--only-missing", action="store_true", help="run only new and changed cases")
    args = parser.parse_args(argv)
    names = args.family or family_names()
    for family in names:
        done = record(family, args.only_missing)
        size = sum(Path(golden.FOLDER, f"{family}.{e}").stat().st_size for e in ("json", "npz"))
        print(f"{family}: {len(done)} run, {len(golden.load(family))} recorded, {size / 1000:.1f} kB", flush=True)
    if not args.family:
        for path in golden.FOLDER.glob("*.json"):
            if path.stem not in names:
                path.unlink()
                path.with_suffix(".npz").unlink(missing_ok=True)
                print(f"{path.stem}: family is gone, golden removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
