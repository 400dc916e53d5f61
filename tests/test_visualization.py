"""Summaries and pictures of networks: MXNet's tables and boxes, with right counts."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import symjax as mx
from symjax._picture import Picture
from tests.visualization_cases import Recorder, nets, run_plots, run_summaries, summary

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "visualization.json").read_text())


def total(net: Any, **shapes: Any) -> int:
    found = re.search(r"Total params: *(\d+)", "\n".join(summary(mx, net, shape=shapes or None)))
    assert found
    return int(found[1])


def test_summaries() -> None:
    with mx.name.NameManager():  # numbers names from 0
        found = run_summaries(mx)
    for name, lines in GOLDEN["summaries"].items():
        assert found[name] == lines, name


def test_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("graphviz")
    module.Digraph = Recorder  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "graphviz", module)
    with mx.name.NameManager():
        run_summaries(mx)  # names were numbered on when this was recorded
        found = run_plots(mx)
    for name, wanted in GOLDEN["plots"].items():
        assert sorted(map(str, map(_ordered, found[name]))) == sorted(map(str, map(_ordered, wanted))), name


def _ordered(item: Any) -> Any:
    return [item[0], sorted(item[1].items())]


def test_counts_that_mxnet_gets_wrong() -> None:
    d = mx.sym.Variable("data")
    assert total(mx.sym.FullyConnected(d, num_hidden=5, name="f"), data=(1, 3, 2, 2)) == 5 * 12 + 5
    assert total(mx.sym.broadcast_mul(d, mx.sym.Variable("x", shape=(1, 3))), data=(4, 3)) == 3
    assert total(mx.sym.Deconvolution(d, num_filter=5, kernel=(3, 3), name="f"), data=(1, 3, 8, 8)) == 135
    # once, although two layers read it
    w = mx.sym.Variable("w")
    net = mx.sym.FullyConnected(mx.sym.FullyConnected(d, weight=w, num_hidden=4, no_bias=True), weight=w,
                                num_hidden=4, no_bias=True)  # fmt: skip
    assert total(net, data=(1, 4)) == 16
    rnn = mx.sym.RNN(d, mode="lstm", state_size=5, num_layers=1, name="rnn", parameters=mx.sym.Variable("p"),
                     state=mx.sym.zeros((1, 2, 5)), state_cell=mx.sym.zeros((1, 2, 5)))  # fmt: skip
    assert total(rnn, data=(3, 2, 4)) == 4 * 5 * (4 + 5 + 2)


def test_summary_without_shapes() -> None:
    net = mx.sym.FullyConnected(mx.sym.Embedding(mx.sym.Variable("data"), input_dim=10, output_dim=4, name="e"),
                                num_hidden=3, name="f")  # fmt: skip
    lines = summary(mx, net)
    assert total(net) == 40
    assert [line.split()[-2:] for line in lines if line.startswith("f(")] == [["?", "e"]]
    assert "unknown shape" in lines[-2]


def test_refusals() -> None:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3)
    with pytest.raises(TypeError, match="symbol must be Symbol"):
        mx.viz.print_summary(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="symbol must be a Symbol"):
        mx.viz.plot_network("net")  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="data: "), pytest.raises(ValueError, match="Input shape is incomplete"):
        summary(mx, net, shape={})
    with pytest.warns(RuntimeWarning, match="Repeated names: data"):
        mx.viz.plot_network(mx.sym.Variable("data") + mx.sym.Variable("data"))


def test_picture_without_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    monkeypatch.setenv("PATH", "")
    net, shape = nets(mx)["image"]
    plot = mx.viz.plot_network(net, title="my net", save_format="svg", shape=shape, dtype={"data": "float32"})
    assert isinstance(plot, Picture)
    assert '"c1" -> "data" [label="3x16x16(float32)" arrowtail="open" dir="back"]' in plot.source
    assert r'"c1" [label="Convolution\n3x3/2x2, 8" fillcolor="#fb8072"' in plot.source
    assert "c1_weight" not in plot.source
    made = plot.render("pictures/net.gv", tmp_path)
    assert made == str(tmp_path / "pictures" / "net.gv.svg")
    root = ElementTree.fromstring(Path(made).read_text())
    assert root.tag.endswith("svg") and "8×7×7" in Path(made).read_text()
    assert (tmp_path / "pictures" / "net.gv").read_text() == plot.source
    plot.render(directory=tmp_path, cleanup=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my net.gv.svg", "pictures"]
    assert plot._repr_mimebundle_()["image/svg+xml"] == plot._repr_svg_()
    with pytest.raises(mx.MXNetError, match="needs Graphviz's program dot"):
        plot.render(directory=tmp_path, format="pdf")
    shown = mx.viz.plot_network(net, hide_weights=False)
    assert '"c1_weight" [label="c1_weight"' in shown.source


def test_names_are_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    plot = mx.viz.plot_network(mx.sym.sin(mx.sym.Variable('a"b\\c\n'), name="x]"), title='t"')
    assert plot.source.startswith('digraph "t\\"" {')
    assert '"a\\"b\\\\c\\n" [' in plot.source
