"""The README's example runs as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_example_gives_the_outputs_that_mxnet_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = EXAMPLES
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), names)
    expected = names["digits"]["test_probabilities"]
    np.testing.assert_allclose(names["probs"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(names["same"]), expected, rtol=1e-4, atol=1e-5)


SECTION = README[README.index("## Command line") :]
COMMANDS = [c.strip() for c in re.findall(r"^symjax (?!demo)([^#\n]+)", SECTION.split("```")[1], flags=re.MULTILINE)]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_run(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from symjax.cli import COMMANDS as known
    from symjax.cli import main

    assert {c.split()[0] for c in COMMANDS} | {"demo"} == set(known)
    monkeypatch.chdir(ROOT)
    if line.startswith("exec"):  # it gives the whole process another module
        run = subprocess.run([sys.executable, "-m", "symjax", *line.split()], capture_output=True, text=True)
        assert float(run.stdout.split()[-1]) > 0.9, run.stderr
        return
    result = CliRunner().invoke(main, re.sub(r"(-o |im2rec +)", rf"\1{tmp_path}/", line).split())
    assert result.exit_code == 0, result.output
    assert result.stdout or list(tmp_path.iterdir())


def test_documents_name_the_right_distribution() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("notebooks/[0-9]*"), *ROOT.glob("symjax/**/*.py")]
    wrong = re.compile(r"pip3? install (-\S+ )*['\"]?symjax(?!-mxnet)\b")
    assert [d.name for d in documents if wrong.search(d.read_text())] == []
    assert wrong.search("pip install -U symjax[image]")


@pytest.mark.parametrize("target", re.findall(r"^    (make [a-z-]+)", README, flags=re.MULTILINE))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target.split()[1]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_linked_files_exist(link: str) -> None:
    assert (ROOT / link).exists()
