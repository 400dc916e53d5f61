"""The parent's side of the oracle: finds its Python, runs batches, survives crashes and hangs."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.parity.case import Case
from tests.parity.runner import Result

ROOT = Path(__file__).resolve().parents[2]
CASE_SECONDS = 60.0


def oracle_python() -> Path | None:
    """The interpreter that has real MXNet: $SYMJAX_ORACLE_PYTHON, else `.venv-oracle`, else None."""
    given = os.environ.get("SYMJAX_ORACLE_PYTHON")
    path = Path(given) if given else ROOT / ".venv-oracle" / "bin" / "python"
    return path if path.exists() else None


def run_oracle(cases: Sequence[Case]) -> list[Result]:
    """Results of real MXNet, one for each case, as `run_case` gives them, plus ``unstable`` keys.

    A case that kills the process has status "crashed", one that takes over a minute "timeout"; the others go on.

    Raises:
        RuntimeError: there is no oracle, or it cannot start.
    """
    python = oracle_python()
    if python is None:
        raise RuntimeError("real MXNet is not installed: run `make oracle` or set SYMJAX_ORACLE_PYTHON")
    results: dict[int, Result] = {}
    for backend in ("native", "onednn"):
        while waiting := {i: c for i, c in enumerate(cases) if c.backend == backend and i not in results}:
            results.update(_batch(python, backend, waiting))
    return [results[i] for i in range(len(cases))]


def _batch(python: Path, backend: str, cases: Mapping[int, Case]) -> dict[int, Result]:
    env = {
        **os.environ, "MXNET_SUBGRAPH_BACKEND": "NONE", "MXNET_MKLDNN_ENABLED": str(int(backend == "onednn")),
        "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0", "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        source, sink, log = Path(folder, "cases"), Path(folder, "results"), Path(folder, "log")
        source.write_text("".join(json.dumps([i, c.spec()]) + "\n" for i, c in cases.items()))
        sink.touch()
        with log.open("w") as err:
            process = subprocess.Popen(
                [str(python), "-m", "tests.parity.oracle_worker", str(source), str(sink)],
                cwd=folder, env=env, stdout=err, stderr=err,
            )  # fmt: skip
            hung = not _wait(process, sink)
        lines = [json.loads(line) for line in sink.read_text().splitlines() if line.endswith("}")]
        done = {x["end"]: _unpack(x["result"]) for x in lines if "end" in x}
        started = [x["start"] for x in lines if "start" in x]
        if not started:
            raise RuntimeError(f"the oracle {python} did not start:\n{log.read_text()[-2000:]}")
        if started[-1] not in done:
            done[started[-1]] = _lost("timeout" if hung else "crashed")
        return done


def _wait(process: subprocess.Popen[bytes], sink: Path) -> bool:
    """True when the process ended by itself; a case without an answer for CASE_SECONDS is killed."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        now = sink.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > CASE_SECONDS:
            process.kill()
            process.wait()
            return False
        time.sleep(0.02)
    return True


def _lost(status: str) -> Result:
    return {"status": status, "stage": "", "names": {}, "queries": [], "arrays": {}, "unstable": []}


def _unpack(result: Result) -> Result:
    result["arrays"] = {k: _array(*v) for k, v in result["arrays"].items()}
    return result


def _array(dtype: str, shape: list[int], text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(text), dtype=dtype).reshape(shape)
