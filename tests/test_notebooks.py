"""The notebooks run, and each .ipynb is its text twin without outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "notebooks").glob("[0-9]*.py"))
jupytext = pytest.importorskip("jupytext")


def test_there_are_notebooks() -> None:
    assert [s.stem for s in SCRIPTS] == ["01_quickstart", "02_port_symbol_json", "03_sparse", "04_module",
                                         "05_data_parallel", "06_char_rnn", "07_fine_tuning"]
    assert sorted(s.stem for s in SCRIPTS) == sorted(n.stem for n in (ROOT / "notebooks").glob("*.ipynb"))


def cells(notebook: Any) -> list[tuple[str, str]]:
    return [(c.cell_type, c.source) for c in notebook.cells]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_twins_agree(script: Path) -> None:
    notebook = jupytext.read(script.with_suffix(".ipynb"))
    assert cells(notebook) == cells(jupytext.read(script)), "run `make notebooks`"
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert not any(c.outputs or c.execution_count for c in code), "outputs are not committed"
    assert f"(notebooks/{script.stem}.ipynb)" in (ROOT / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.stem)
def test_notebook_runs(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = jupytext.read(script)
    notebook.metadata.setdefault("kernelspec", {"name": "python3", "display_name": "Python 3", "language": "python"})
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    complaints = [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    assert not complaints, complaints
    kinds = [k for o in outputs for k in o.get("data", {})]
    assert "image/png" in kinds
