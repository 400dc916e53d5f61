"""Real model files: symjax against what real MXNet gave for them. The files are not part of the project.

They lie in the folder `$SYMJAX_ZOO`, or `../shared/zoo` beside the project; its `run_zoo.py` does the comparing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ZOO = Path(os.environ.get("SYMJAX_ZOO") or ROOT.parent / "shared" / "zoo")
# Small ones, of different kinds: MLP, convolution with BatchNorm, multi-head detector, fused and unrolled RNN, losses.
SMALL = ["deepwater_mlp", "mtcnn_det1", "fused_rnn", "made_pooling", "made_losses", "made_indexing"]

needs_zoo = pytest.mark.skipif(
    not (ZOO / "run_zoo.py").exists(), reason=f"no model files at {ZOO}: set SYMJAX_ZOO to a folder with run_zoo.py"
)


def sweep(names: list[str], tmp_path: Path, seconds: float) -> dict[str, dict[str, str]]:
    """Run models in the zoo's own runner, a process each."""
    report = tmp_path / "report.json"
    chosen = ["--names", ",".join(names)] if names else []
    run = subprocess.run(
        [sys.executable, str(ZOO / "run_zoo.py"), "--impl", "symjax", "--json", str(report), *chosen],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=seconds,
    )  # fmt: skip
    assert report.exists(), run.stderr[-2000:]
    return json.loads(report.read_text())


def failures(results: dict[str, dict[str, str]]) -> str:
    return "\n".join(f"{k}: {r['detail']}" for k, r in results.items() if r["status"] == "FAIL")


@needs_zoo
@pytest.mark.parametrize("name", SMALL)
def test_small_model(name: str, tmp_path: Path) -> None:
    results = sweep([name], tmp_path, 300)
    assert results and not failures(results), failures(results)


@needs_zoo
@pytest.mark.slow
def test_every_model(tmp_path: Path) -> None:
    results = sweep([], tmp_path, 7200)
    assert results and not failures(results), failures(results)
