"""`symjax ops` and docs/operators.md: what they say is up to date and true."""

from __future__ import annotations

import json
import os
import random
import re
from typing import Any

import pytest
from click.testing import CliRunner

from symjax.cli import _ops_page, main
from symjax.lowering.registry import Op
from tests import record_ops
from tests.registry_cases import mxnet_operators, own_ops

OPS = own_ops()


def ops(*args: str) -> str:
    result = CliRunner().invoke(main, ["ops", *args])
    assert result.exit_code == 0, result.output
    return result.output


def test_page_is_up_to_date() -> None:
    assert record_ops.PAGE.read_text() == _ops_page.markdown(), "run `make docs-ops`"
    assert record_ops.PAGE.stat().st_size < 1_500_000


def test_record_is_up_to_date() -> None:
    """All but what is measured, which is there for every operator."""
    recorded = _ops_page.recorded()
    assert recorded["ops"].keys() == {o.name for o in OPS}, "run `make docs-ops`"
    for op in OPS:
        known = dict(recorded["ops"][op.name])
        assert {known.pop("gradient")} <= {"yes", "zero", "none"}
        assert known.pop("platforms") is not None
        assert known == record_ops.cheap(op), f"{op.name}: run `make docs-ops`"
    if theirs := mxnet_operators():
        assert recorded["mxnet"] == {n: sorted(o["aliases"]) for n, o in theirs.items()}


@pytest.mark.parametrize("op", random.Random(os.environ.get("SYMJAX_SEED", "0")).sample(OPS, 4), ids=lambda o: o.name)
def test_what_was_measured(op: Op) -> None:
    known = _ops_page.recorded()["ops"][op.name]
    assert known["platforms"] == record_ops.platforms(op), "run `make docs-ops RECORD_OPS=--measure`"
    assert known["gradient"] == record_ops.gradient(op), "run `make docs-ops RECORD_OPS=--measure`"


def test_every_portable_operator_lowers_everywhere() -> None:
    known = _ops_page.recorded()["ops"]
    assert [n for n, k in known.items() if isinstance(k["platforms"], list) and len(k["platforms"]) < 4] == []
    assert all("elsewhere" in k for k in known.values() if k["platforms"] == "unknown")
    assert {o.name for o in OPS if o.host} == {n for n, k in known.items() if k["platforms"] == "host"}


def test_all_of_mxnet_is_here() -> None:
    assert _ops_page.coverage() == "615 of 615 operators of MXNet 1.9.1, every alias"
    assert ops().splitlines()[0] == _ops_page.coverage()


def test_coverage_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs: dict[str, Any] = {"relu": ["nothing_of_the_kind"], "no_such_operator": []}
    monkeypatch.setattr(_ops_page, "recorded", lambda: {"mxnet": theirs})
    assert _ops_page.coverage() == "1 of 2 operators of MXNet 1.9.1, without the aliases nothing_of_the_kind"


def test_page_names_every_operator_and_parameter() -> None:
    page = record_ops.PAGE.read_text()
    anchors = re.findall(r'<a id="op-([^"]+)"></a>', page)
    assert sorted(anchors) == sorted(o.name for o in OPS)
    assert set(re.findall(r"\(#op-([^)]+)\)", page)) == set(anchors)
    sections = dict(zip(anchors, page.split('<a id="op-')[1:], strict=True))
    for op in OPS:
        assert all(f"| `{p}` |" in sections[op.name] for p in op.params.__specs__), op.name
        assert all(f"`{a}`" in sections[op.name] for a in op.aliases), op.name


def test_facts_are_shown() -> None:
    text = ops("SoftmaxOutput")
    for part in ("Gradient: yes", "Runs on: cpu, cuda", "recorded cases (", "With exact_mxnet: With out_grad"):
        assert part in text
    dot = json.loads(ops("dot", "--format", "json"))
    assert "csr, default → default" in dot["storage"] and dot["gradient"] == "yes" and dot["parity"]["cases"] > 5
    assert ops("--format", "md").strip() == record_ops.PAGE.read_text().strip()
    assert "Gradient: zero" in ops("sign") and "Gradient: none" in ops("shape_array")
