"""Record MXNet's storage table: ``python -m tests.parity.storage.record [FAMILY…] [--only-missing]``.

Every stage of every case runs in a worker of the oracle's Python; one that kills or hangs it is recorded as such.
`tests/golden/storage/table.txt` is the table for readers.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.parity.oracle import ROOT, oracle_python
from tests.parity.storage import families, golden
from tests.parity.storage.case import StorageCase

STAGE_SECONDS = 20.0
Work = tuple[str, str, dict[str, Any]]  # id, stage, spec
SHORT = {"default": "d", "csr": "c", "row_sparse": "r"}


def family_names() -> list[str]:
    """The modules under `families`."""
    return sorted(m.name for m in pkgutil.iter_modules(families.__path__))


def family_cases(family: str) -> list[StorageCase]:
    """A family's cases, whose ids must differ."""
    cases: list[StorageCase] = importlib.import_module(f"tests.parity.storage.families.{family}").CASES
    twice = [k for k, n in Counter(c.id for c in cases).items() if n > 1]
    if twice:
        raise ValueError(f"{family}: ids given twice: {twice}")
    return cases


def run_oracle(work: list[Work]) -> list[dict[str, Any]]:
    """Results of real MXNet, one for each piece of work.

    Raises:
        RuntimeError: there is no oracle, or it cannot start.
    """
    python = oracle_python()
    if python is None:
        raise RuntimeError("real MXNet is not installed: run `make oracle` or set SYMJAX_ORACLE_PYTHON")
    results: dict[int, dict[str, Any]] = {}
    while waiting := {i: w for i, w in enumerate(work) if i not in results}:
        results.update(_batch(python, waiting))
    return [results[i] for i in range(len(work))]


def _batch(python: Path, work: Mapping[int, Work]) -> dict[int, dict[str, Any]]:
    env = {
        **os.environ, "MXNET_SUBGRAPH_BACKEND": "NONE", "MXNET_MKLDNN_ENABLED": "0", "OMP_NUM_THREADS": "1",
        "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        source, sink, log = Path(folder, "work"), Path(folder, "results"), Path(folder, "log")
        source.write_text("".join(json.dumps([i, stage, spec]) + "\n" for i, (_, stage, spec) in work.items()))
        sink.touch()
        with log.open("w") as err:
            process = subprocess.Popen(
                [str(python), "-m", "tests.parity.storage.worker", str(source), str(sink)],
                cwd=folder, env=env, stdout=err, stderr=err,
            )  # fmt: skip
            hung = not _wait(process, sink)
        lines = [json.loads(line) for line in sink.read_text().splitlines() if line.endswith("}")]
        if not lines:
            raise RuntimeError(f"the oracle {python} did not start:\n{log.read_text()[-2000:]}")
    done = {x["end"]: _unpack(x["result"]) for x in lines if "end" in x}
    last = [x["start"] for x in lines if "start" in x][-1]
    if last not in done:
        done[last] = {"arrays": {}, "error": {"at": "", "type": "timeout" if hung else "crashed", "text": ""}}
    return done


def _wait(process: subprocess.Popen[bytes], sink: Path) -> bool:
    """True when the process ended by itself; one without an answer for STAGE_SECONDS is killed."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        now = sink.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > STAGE_SECONDS:
            process.kill()
            process.wait()
            return False
        time.sleep(0.02)
    return True


def _unpack(result: dict[str, Any]) -> dict[str, Any]:
    packed = result["arrays"]
    result["arrays"] = {k: np.frombuffer(base64.b64decode(t), d).reshape(s) for k, (d, s, t) in packed.items()}
    return result


def record(family: str, only_missing: bool = True) -> int:
    """Bring a family's golden up to date; returns how many cases were run."""
    cases, known = family_cases(family), golden.load(family)
    todo = [c for c in cases if not only_missing or known.get(c.id, {}).get("hash") != c.hash()]
    work = [(c.id, stage, c.spec()) for c in todo for stage in c.stages]
    for c in todo:
        known[c.id] = {"hash": c.hash(), "stages": {}}
    for (name, stage, _), result in zip(work, run_oracle(work) if work else [], strict=True):
        known[name]["stages"][stage] = result
    golden.save(family, {c.id: known[c.id] for c in cases})
    return len(todo)


def table_line(name: str, case: dict[str, Any]) -> str:
    """A row of the table: storage of the outputs and of the gradients in each stage, or the error."""
    cells = []
    for stage, result in case["stages"].items():
        out, grad = "".join(SHORT[s] for s in result.get("out", [])), "".join(
            SHORT[s] for s in result.get("grad", {}).values())
        text = f"{stage} {out}" + (f"/{grad}" if grad else "")
        if error := result.get("error"):
            text += f" !{error['at']} {error['type']}: {error['text'][:90]}"
        if result.get("unstable"):
            text += f" ?{','.join(result['unstable'])}"
        cells.append(text)
    return f"{name} | " + " | ".join(cells)


def write_table() -> None:
    """`table.txt`: every family's cases."""
    lines = ["# id | stage outputs/gradients (d default, c csr, r row_sparse) | …; ! error, ? not reproducible"]
    for family in family_names():
        lines.append(f"\n## {family}")
        lines.extend(table_line(k, c) for k, c in golden.load(family).items())
    (golden.FOLDER / "table.txt").write_text("\n".join(lines) + "\n")


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.storage.record", description=__doc__)
    parser.add_argument("family", nargs="*")
    parser.add_argument("--only-missing", action="store_true", help="run only new and changed cases")
    args = parser.parse_args(argv)
    for family in args.family or family_names():
        count = record(family, args.only_missing)
        size = Path(golden.FOLDER, f"{family}.npz").stat().st_size
        print(f"{family}: {count} run, {len(golden.load(family))} recorded, {size / 1000:.1f} kB", flush=True)
    write_table()
    return 0


if __name__ == "__main__":
    sys.exit(main())
