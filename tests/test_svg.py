"""The picture of a symbol: well-formed, escaped, folded, small, with shapes."""

from __future__ import annotations

import json
import re
import time
import xml.etree.ElementTree as ET

import pytest

import symjax as mx
from symjax.lowering.graph import Graph
from symjax.lowering.infer import infer_shapes
from symjax.symbol import Symbol, _json
from symjax.symbol._diagram import Diagram, diagram
from symjax.symbol._layout import layout
from symjax.symbol._svg import MAX_BYTES, render

SVG = "{http://www.w3.org/2000/svg}"


def mlp(**data: object) -> Symbol:
    net = mx.sym.Variable("data", **data)  # type: ignore[arg-type]
    net = mx.sym.FullyConnected(net, num_hidden=32, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=10, name="fc2"), name="softmax")


def units(count: int, layers: int = 4) -> Symbol:
    net = mx.sym.Variable("data")
    for u in range(count):
        before = net
        for i in range(layers):
            net = mx.sym.FullyConnected(net, num_hidden=8, name=f"stage{u // 10}_unit{u}_fc{i}")
        net = mx.sym.elemwise_add(before, net, name=f"stage{u // 10}_unit{u}_add")
    return net


def unrolled(steps: int) -> Symbol:
    weight, state = mx.sym.Variable("w"), mx.sym.Variable("h0")
    parts = mx.sym.SliceChannel(mx.sym.Variable("data"), num_outputs=steps, squeeze_axis=True, name="split")
    for t in range(steps):
        x = mx.sym.FullyConnected(parts[t], weight, num_hidden=8, no_bias=True, name=f"rnn_t{t}_i2h")
        state = mx.sym.Activation(x + state, act_type="tanh", name=f"rnn_t{t}_out")
    return state


def texts(svg: str) -> list[str]:
    return ["".join(t.itertext()) for t in ET.fromstring(svg).iter(f"{SVG}text")]


def boxes_of(svg: str) -> list[ET.Element]:
    return [g for g in ET.fromstring(svg).iter(f"{SVG}g") if g.get("class")]


def graph_of(picture: Diagram) -> None:
    """The edges of a diagram go forward: what is folded has no cycle."""
    assert all(a < b for a, b, _ in picture.edges)


def test_boxes_and_shapes_of_a_declared_input() -> None:
    svg = render(mlp(shape=(64, 784))._graph)
    assert ET.fromstring(svg).tag == f"{SVG}svg"
    shown = texts(svg)
    for text in ("data", "64×784", "FullyConnected32", "fc1", "Activationrelu", "softmax_output", "64×10"):
        assert text in shown, (text, shown)
    assert not any("fc1_weight" in t for t in shown)
    assert "fc1_weight: 32×784" in svg  # in the tooltip


def test_shapes_can_be_given() -> None:
    graph = mlp()._graph
    assert "×" not in "".join(texts(render(graph)))
    found = infer_shapes(graph, {graph.inputs[0]: (5, 784)})
    assert "5×32" in texts(render(graph, found.values))


def test_contradicting_declarations_still_draw() -> None:
    x, y = mx.sym.Variable("x", shape=(2, 3)), mx.sym.Variable("y", shape=(4, 5))
    assert "elemwise_add" in texts(render(mx.sym.elemwise_add(x, y)._graph))
    bad = {"op": "null", "name": "x", "attrs": {"__shape__": "nonsense"}, "inputs": []}
    nodes = [bad, {"op": "relu", "name": "r", "inputs": [[0, 0, 0]]}]
    assert "relu" in texts(render(_json.loads(json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}))))


def test_parameters_on_demand() -> None:
    assert "fc1_weight" in texts(render(mlp()._graph, parameters=True))


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "a&b\"'>",
        "]]>",
        "null\x00\x1b[2Jbell\x07",
        "\ud800",
        "\u202eabc",
        "é漢字🙂",
        "x" * 5000,
    ],
)
def test_hostile_names_are_text(name: str) -> None:
    nodes = [
        {"op": "null", "name": name, "inputs": []},
        {"op": name, "name": name, "attrs": {name: name}, "inputs": [[0, 0, 0]]},
        {"op": "relu", "name": name, "inputs": [[1, 0, 0]]},
    ]
    doc = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[2, 0, 0]]})
    svg = render(_json.loads(doc, allow_unknown=True))
    root = ET.fromstring(svg.encode())
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {
        "svg",
        "style",
        "rect",
        "path",
        "g",
        "title",
        "text",
        "tspan",
    }
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", svg)
    assert len(svg) < 20_000


def test_no_script_no_reference_light_and_dark() -> None:
    svg = render(mlp()._graph)
    assert not re.search(r"<script|href|url\(|@import|\son\w+=", svg)
    assert "@media(prefers-color-scheme:dark)" in svg
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", svg[svg.index("<style>") + 7 : svg.index("</style>")])
    assert all(r.startswith((".sjx", "@media")) for r in rules), rules


def test_folding_by_name_prefix() -> None:
    graph = units(60)._graph  # 300 operators
    picture = diagram(graph)
    graph_of(picture)
    names = [b.title for b in picture.boxes]
    assert "stage0_unit3_*" in names and len(picture.boxes) <= 70
    assert sum(len(b.nodes) for b in picture.boxes) == 300 + 1  # all operators and the input
    svg = render(graph)
    assert "5 operators" in texts(svg) and len(boxes_of(svg)) == len(picture.boxes)
    assert len(boxes_of(render(graph, fold=0))) == 302


def test_small_graphs_are_not_folded() -> None:
    assert all(len(b.nodes) <= 1 for b in diagram(units(20)._graph).boxes)


def test_nameless_graphs_fold_by_position() -> None:
    net = mx.sym.Variable("data")
    for _ in range(1000):
        net = mx.sym.relu(net)
    picture = diagram(net._graph)
    graph_of(picture)
    assert 20 < len(picture.boxes) <= 70
    assert any("…" in b.title for b in picture.boxes)


def test_siblings_are_joined() -> None:
    net = mx.sym.Variable("data")
    for i in range(150):
        net = mx.sym.relu(net, name=f"body_relu{i}")
    heads = [mx.sym.exp(mx.sym.sin(net, name=f"head{i}_sin"), name=f"head{i}_exp") for i in range(30)]
    picture = diagram(mx.sym.Concat(*heads, name="join")._graph)
    graph_of(picture)
    assert any(len(b.nodes) >= 60 for b in picture.boxes)
    assert len(picture.boxes) < 12


@pytest.mark.parametrize("net", [units(600, 7), unrolled(1700)], ids=["residual", "unrolled"])
def test_large_graphs_are_small_and_quick(net: Symbol) -> None:
    graph: Graph = net._graph
    assert len(graph.nodes) > 4800
    start = time.process_time()
    svg = render(graph)
    assert time.process_time() - start < 6
    assert len(svg.encode()) < MAX_BYTES
    ET.fromstring(svg)


def test_tooltips_go_before_the_size_does() -> None:
    net = mx.sym.Variable("data")
    for i in range(199):
        net = mx.sym.FullyConnected(net, num_hidden=1, name=f"layer{i}_" + "long" * 60, attr={"__note__": "text " * 80})
    svg = render(net._graph)
    assert len(svg.encode()) < MAX_BYTES and len(boxes_of(svg)) == 201


def test_boxes_do_not_overlap() -> None:
    sizes = [(60.0 + 10 * (i % 5), 40.0) for i in range(60)]
    edges = sorted({(i, j) for j in range(1, 60) for i in {j // 2, j // 3, max(0, j - 7)} if i < j})
    plan = layout(sizes, edges)
    placed = list(zip(plan.centers, sizes, strict=True))
    for i, ((x, y), (w, h)) in enumerate(placed):
        assert w / 2 <= x <= plan.width - w / 2 and h / 2 <= y <= plan.height - h / 2
        for (u, v), (w2, h2) in placed[:i]:
            assert abs(x - u) >= (w + w2) / 2 or abs(y - v) >= (h + h2) / 2
    for (a, b), route in zip(edges, plan.routes, strict=True):
        assert plan.centers[a][1] < plan.centers[b][1]
        assert route[-1][1] == pytest.approx(plan.centers[b][1] - 20)


def test_jupyter_gets_svg_and_text() -> None:
    bundle = mlp()._repr_mimebundle_()
    assert bundle["text/plain"] == "<Symbol softmax>"
    assert bundle["image/svg+xml"].startswith("<svg ")


def test_a_variable_and_a_group_draw() -> None:
    assert "x" in texts(render(mx.sym.Variable("x")._graph))
    net = mlp()
    assert "softmax_output" in texts(render(mx.sym.Group([net, net.get_internals()["fc1_output"]])._graph))
    assert texts(render(net.get_internals()._graph))
