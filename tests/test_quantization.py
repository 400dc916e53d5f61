"""`mx.contrib.quantization` and its pass, against what MXNet's quantizer was recorded to make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import symjax as mx
from symjax.base import MXNetError
from symjax.contrib import quantization
from symjax.lowering.ops._integer import convolve, convolve_by_floats, dot, dot_by_floats
from symjax.lowering.passes.quantize import quantize, set_ranges
from tests.quantization_cases import GRAPHS, calibrated, graph, nodes, outputs, parameters, ranges

GOLDEN = json.loads((Path(__file__).parent / "golden" / "quantization.json").read_text())


@pytest.mark.parametrize("case", range(len(GRAPHS)), ids=lambda i: "-".join(map(str, GRAPHS[i][:3])))
def test_graph_is_mxnets(case: int) -> None:
    assert graph(mx, GRAPHS[case]) == GOLDEN["graphs"][case]


@pytest.mark.parametrize("model", ["conv", "linear", "mixed"])
def test_ranges_are_mxnets(model: str) -> None:
    got, want = ranges(calibrated(mx, model, "naive")[0]), GOLDEN["ranges-naive"][model]
    # MXNet looks the range of an elementwise product up under another name than it keeps it, so it is not calibrated.
    got.pop("requantize_mul", None)
    assert got.keys() == want.keys()
    for name, ends in want.items():
        np.testing.assert_allclose(got[name], ends, rtol=1e-4, atol=1e-5, err_msg=name)


def test_ranges_by_entropy() -> None:
    """Of few bins, to be quick: within the data's range, and near what MXNet takes of many."""
    symbol, args, aux, data = parameters(mx, "linear")
    qsym, _, _, collector = quantization.quantize_graph(symbol, args, aux, quantized_dtype="auto",
                                                        quantize_mode="smart")
    collector.num_bins = 801
    bound = symbol.bind(mx.cpu(), {**args, "data": mx.nd.array(data)}, grad_req="null")
    bound.set_monitor_callback(collector.collect, monitor_all=True)
    bound.forward(is_train=False)
    got = ranges(quantization.calib_graph(qsym, args, aux, collector, quantized_dtype="auto")[0])
    want = GOLDEN["ranges-entropy"]["linear"]
    assert got.keys() == want.keys()
    for name, ends in want.items():
        np.testing.assert_allclose(got[name], ends, rtol=0.1, err_msg=name)


def test_numbers_are_mxnets() -> None:
    np.testing.assert_allclose(outputs(mx, *calibrated(mx, "linear", "naive")), GOLDEN["linear"], rtol=1e-5, atol=1e-6)


def test_fused_model_of_mxnet_runs() -> None:
    """A model that quantize_model_mkldnn made, with its fused nodes."""
    want = GOLDEN["fused"]
    symbol = mx.sym.load_json(want["json"])
    _, args, aux, data = parameters(mx, "conv")
    given = {n: args[n] for n in symbol.list_arguments() if n in args}
    for n, v in want["int8"].items():
        given[n] = mx.nd.array(v, dtype="float32" if n.endswith(("_min", "_max")) else "int8")
    # MXNet's BatchNorm divides by sqrt(1 + eps) twice, which moves a rounding.
    np.testing.assert_allclose(outputs(mx, symbol, given, aux, data), want["out"], rtol=0.03, atol=1e-6)


def test_fused_nodes_are_quantized() -> None:
    """A float32 model with fused nodes: what MXNet wrote, with its marks of quantization taken off."""
    doc = json.loads(GOLDEN["fused"]["json"])
    fused = next(n for n in doc["nodes"] if n["op"] == "_sg_mkldnn_conv")
    data, weight = mx.sym.var("data"), mx.sym.var("weight")
    inner = fused["subgraphs"][0]["nodes"]
    keep = [n for n in inner if n["op"] == "null"][:2] + [n for n in inner if n["op"] == "Convolution"]
    plain = {"nodes": keep, "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}
    text = json.dumps({"nodes": [
        *json.loads(data.tojson())["nodes"], *json.loads(weight.tojson())["nodes"],
        {"op": "_sg_mkldnn_conv", "name": "sg", "inputs": [[0, 0, 0], [1, 0, 0]], "subgraphs": [plain]}],
        "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})  # fmt: skip
    made = mx.sym.load_json(text)._graph
    assert [r[:2] for r in nodes(mx.sym.Symbol(quantize(made, offline={"weight"}).graph))] == [
        ["null", "data"], ["_contrib_quantize_v2", "data_quantize"], ["null", "weight"],
        ["_sg_mkldnn_conv", "quantized_sg"], ["_contrib_requantize", "requantize_sg"],
        ["_contrib_dequantize", "sg_dequantize"]]


PASS = """\
data
weight_quantize
weight_quantize_min
weight_quantize_max
data_quantize = _contrib_quantize_v2(data) max_calib_range=0.500000 min_calib_range=-1.000000 out_type=int8
quantized_c = _contrib_quantized_conv(data_quantize, weight_quantize, data_quantize:1, data_quantize:2, \
weight_quantize_min, weight_quantize_max) kernel=(1, 1) no_bias=True num_filter=2
requantize_c = _contrib_requantize(quantized_c, quantized_c:1, quantized_c:2) out_type=int8
c_dequantize = _contrib_dequantize(requantize_c, requantize_c:1, requantize_c:2)
s = softmax(c_dequantize)"""


def text(symbol: Any) -> str:
    """A graph as text, variables first."""
    rows, lines = json.loads(symbol.tojson())["nodes"], []
    for r in sorted(rows, key=lambda r: r["op"] != "null"):
        names = [rows[i]["name"] + (f":{k}" if k else "") for i, k, _ in r["inputs"]]
        attrs = "".join(f" {k}={v}" for k, v in r.get("attrs", {}).items())
        lines.append(r["name"] if r["op"] == "null" else f"{r['name']} = {r['op']}({', '.join(names)}){attrs}")
    return "\n".join(lines)


def test_pass_as_text() -> None:
    data, weight = mx.sym.var("data"), mx.sym.var("weight")
    net = mx.sym.softmax(mx.sym.Convolution(data, weight=weight, kernel=(1, 1), num_filter=2, no_bias=True, name="c"),
                         name="s")  # fmt: skip
    before = net.tojson()
    made = quantize(net._graph, offline={"weight"})
    assert {n: e.output_name for n, e in made.calibrate.items()} == {"data": "data", "c_output": "c_output"}
    assert text(mx.sym.Symbol(set_ranges(made.graph, {"data": (-1.0, 0.5)}))) == PASS
    assert "calib" not in mx.sym.Symbol(made.graph).tojson()
    assert net.tojson() == before


def test_int8_model_is_near_the_float_model() -> None:
    symbol, args, aux, data = parameters(mx, "conv")
    want = np.array(outputs(mx, symbol, args, aux, data))
    np.testing.assert_allclose(outputs(mx, *calibrated(mx, "conv", "naive")), want, atol=0.05)


def test_graph_with_a_collector() -> None:
    """quantize_graph and calib_graph give what quantize_model gives."""
    symbol, args, aux, data = parameters(mx, "linear")
    qsym, _, _, collector = quantization.quantize_graph(symbol, args, aux, calib_mode="naive", quantized_dtype="auto",
                                                        quantize_mode="smart")
    bound = symbol.bind(mx.cpu(), {**args, "data": mx.nd.array(data[:2])}, grad_req="null")
    bound.set_monitor_callback(collector.collect, monitor_all=True)
    for i in range(0, 6, 2):
        bound.forward(is_train=False, data=mx.nd.array(data[i:i + 2]))
    new, qargs, qaux = quantization.calib_graph(qsym, args, aux, collector, calib_mode="naive", quantized_dtype="auto")
    assert ranges(new) == ranges(calibrated(mx, "linear", "naive")[0])
    np.testing.assert_allclose(outputs(mx, new, qargs, qaux, data), GOLDEN["linear"], rtol=1e-5, atol=1e-6)


def test_histograms_grow() -> None:
    first, second = np.array([-1.0, 0.25, 0.5]), np.array([2.5, -0.75])
    counts, edges = np.histogram(first, bins=5, range=(-1, 1))
    counts, edges, low, high, reach = quantization.combine_histogram((counts, edges, -1.0, 0.5, 1.0), second, -0.75,
                                                                     2.5, 2.5)
    assert (counts.sum(), low, high) == (5, -1.0, 2.5) and len(edges) == len(counts) + 1
    assert reach >= 2.5 and np.isclose(edges[1] - edges[0], 0.4)
    again = quantization.combine_histogram((counts, edges, low, high, reach), first, -1.0, 0.5, 1.0)
    assert again[0].sum() == 8 and len(again[0]) == len(counts)


@pytest.mark.parametrize(("changed", "error"), [
    ({"quantized_dtype": "int4"}, ValueError), ({"quantize_mode": "clever"}, MXNetError),
    ({"calib_mode": "guess"}, ValueError), ({"calib_mode": "naive"}, ValueError),
    ({"excluded_sym_names": "fc"}, ValueError), ({"quantize_granularity": "row"}, ValueError), ({"ctx": 3}, ValueError),
])  # fmt: skip
def test_wrong_arguments(changed: dict[str, Any], error: type[Exception]) -> None:
    symbol, args, aux, _ = parameters(mx, "linear")
    with pytest.raises(error, match=r"int4|clever|guess|calib_data|list|row|context"):
        quantization.quantize_model(symbol, args, aux, **{"calib_mode": "none", **changed})


def test_gluon_networks_are_told_the_way() -> None:
    with pytest.raises(MXNetError, match="export"):
        quantization.quantize_net(object())


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("channels", "groups", "kernel"), [(6, 1, 3), (6, 3, 3), (4, 4, 2), (700, 1, 1), (80, 1, 3)])
def test_exact_sums_on_every_platform(dtype: str, channels: int, groups: int, kernel: int) -> None:
    """Products of matrices in int8 and blocks of float32 give the same whole numbers, those of int64 arithmetic."""
    rng, window = np.random.RandomState(0), {"stride": (2, 1), "dilate": (1, 1), "pad": (1, 0), "groups": groups}
    low = -128 if dtype == "int8" else 0
    x = jnp.asarray(rng.randint(low, low + 256, (1, channels, 5, 4)), dtype)
    w = jnp.asarray(rng.randint(-128, 128, (2 * groups, channels // groups, kernel, kernel)), "int8")

    def plain(a: Any, b: Any) -> Any:
        return lax.conv_general_dilated(a, b, (2, 1), [(1, 1), (0, 0)], feature_group_count=groups)

    with jax.enable_x64(True):
        want = plain(x.astype("float64"), w.astype("float64"))
        for got in (convolve(x, w, **window), convolve_by_floats(x, w, **window, convolution=plain)):
            assert got.dtype == "int32"
            np.testing.assert_array_equal(got, want)
        flat_x, flat_w = x.reshape(4, -1), w.reshape(w.shape[0], -1)
        flat_x = flat_x[:, :min(flat_x.shape[1], flat_w.shape[1])]
        flat_w = flat_w[:, :flat_x.shape[1]]
        for got in (dot(flat_x, flat_w), dot_by_floats(flat_x, flat_w)):
            assert got.dtype == "int32"
            np.testing.assert_array_equal(got, np.asarray(flat_x, "int64") @ np.asarray(flat_w, "int64").T)
