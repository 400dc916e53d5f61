"""The examples in `docs/` run, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text()
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for example in re.finditer(r"```python\n(.*?)```", text, flags=re.DOTALL):
        line = text.count("\n", 0, example.start()) + 1
        exec(compile("\n" * line + example[1], page.name, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links(page: Path) -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link
