"""_sg_mkldnn_*: nodes of MXNet's oneDNN subgraph backend, in float32 and quantized."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.parity.arrays import Array, const, randint, uniform
from tests.parity.case import Case, graph_case, graph_json

Node = tuple[str, str, dict[str, Any]]
CALIB = {"min_calib_range": -8.0, "max_calib_range": 6.0}
QUANT = {"quantized": "true"}
SCALED = "MXNet applies the function to the sums scaled to int8, not to real numbers"
WIDE = "MXNet leaves a clip to the end of the calibrated range"
SUMMED = "MXNet reads a summand as if it had the type of the output"
ZERO = "MXNet gives the range [0, 0]"
STEPS = {"int8": 127.5, "uint8": 255.5}
RELU, TANH = ("Activation", {"act_type": "relu"}), ("Activation", {"act_type": "tanh"})
LEAKY = ("LeakyReLU", {"act_type": "leaky", "slope": 0.1})


def s8(*shape: int) -> Array:
    """int8 numbers."""
    return randint(shape, -128, 128, "int8")


def u8(*shape: int) -> Array:
    """uint8 numbers."""
    return randint(shape, 0, 256, "uint8")


def fused(op: str, attrs: Mapping[str, Any], inner: Sequence[Sequence[Any]], head: str, inputs: Sequence[str],
          outputs: int) -> str:
    """The JSON of a node `sg` whose subgraph is given by nodes like those of `graph_json`."""
    outer = json.loads(graph_json([*((n,) for n in inputs), ("sg", op, dict(attrs), list(inputs))],
                                  [f"sg:{i}" for i in range(outputs)]))
    sub = json.loads(graph_json(inner, [head]))
    outer["nodes"][-1]["subgraphs"] = [{k: sub[k] for k in ("nodes", "arg_nodes", "heads")}]
    return json.dumps(outer)


def ranges(ends: Mapping[str, tuple[float, float]]) -> dict[str, Array]:
    """Range inputs by name."""
    return {f"{n}_{end}": const(v[i], (1,)) for n, v in ends.items() for i, end in enumerate(("min", "max"))}


def conv(id: str, data: Array, attrs: Mapping[str, Any], *, kernel: int = 2, out: int = 4, bias: bool = True,
         norm: bool = False, act: tuple[str, dict[str, Any]] | None = None, summand: Array | None = None,
         early: bool = False, layer: Mapping[str, Any] | None = None, groups: int = 1, **options: Any) -> Case:
    """A case of `_sg_mkldnn_conv`; `early`: the activation comes before the sum."""
    assert data.shape
    arrays: dict[str, Array] = {"data": data, "weight": uniform((out, data.shape[1] // groups, kernel, kernel))}
    inner: list[Any] = [("data0",), ("weight0",)]
    if bias:
        arrays["bias"] = uniform((out,))
        inner.append(("bias0",))
    inner.append(("c", "Convolution", {"kernel": (kernel, kernel), "num_filter": out, "no_bias": not bias,
                                       "num_group": groups, **(layer or {})}, [f"{n}0" for n in arrays]))  # fmt: skip
    last, aux = "c", []
    if norm:
        statistics = {"gamma": uniform((out,), 0.5, 1.5), "beta": uniform((out,)), "mean": uniform((out,)),
                      "var": uniform((out,), 0.5, 2)}
        arrays.update(statistics)
        aux = ["mean", "var"]
        inner += [*((f"{n}0",) for n in statistics),
                  ("b", "BatchNorm", {"fix_gamma": "fixed" in id}, ["c", *(f"{n}0" for n in statistics)])]
        last = "b"
    steps: list[Any] = [("a", *act, None)] if act else []
    if summand:
        arrays["sum"] = summand
        steps.insert(len(steps) if early else 0, ("s", "elemwise_add", {}, "sum0"))
    for name, op, params, other in steps:
        if other:
            inner.append((other,))
        inner.append((name, op, params, [last, other] if other else [last]))
        last = name
    low = 0.0 if data.dtype == "uint8" else -1.0
    ends = {"data": (low, 2.0)} | ({"sum": (0.0 if summand.dtype == "uint8" else -3.0, 3.0)} if summand else {})
    inputs = {**arrays, **(ranges(ends) if attrs.get("quantized") else {})}
    text = fused("_sg_mkldnn_conv", attrs, inner, last, list(inputs), 3 if attrs.get("quantized") else 1)
    return graph_case(id, text, inputs, **{"grads": False, "backend": "onednn", "infer_from": tuple(
        n for n in inputs if n not in aux), **options})  # fmt: skip


def linear(id: str, data: Array, attrs: Mapping[str, Any], *, hidden: int = 3, bias: bool = True,
           act: tuple[str, dict[str, Any]] | None = None, layer: Mapping[str, Any] | None = None, width: int = 0,
           bias_range: float = 0.5, **options: Any) -> Case:
    """A case of `_sg_mkldnn_fully_connected`."""
    assert data.shape
    floats = not attrs.get("quantized") or attrs.get("channel_wise_quantize")
    size = width or int(np.prod(data.shape[1:]))
    arrays = {"data": data, "weight": uniform((hidden, size)) if floats else s8(hidden, size)}
    if bias:
        arrays["bias"] = uniform((hidden,)) if floats else s8(hidden)
    inner: list[Any] = [*((f"{n}0",) for n in arrays),
                        ("f", "FullyConnected", {"num_hidden": hidden, "no_bias": not bias, **(layer or {})},
                         [f"{n}0" for n in arrays])]
    if act:
        inner.append(("a", *act, ["f"]))
    ends = {"data": (0.0 if data.dtype == "uint8" else -1.0, 2.0)}
    if not floats:
        ends |= {"weight": (-0.5, 1.0)} | ({"bias": (-bias_range, 0.25)} if bias else {})
    inputs = {**arrays, **(ranges(ends) if attrs.get("quantized") else {})}
    outputs = 3 if attrs.get("quantized") and not attrs.get("enable_float_output") else 1
    text = fused("_sg_mkldnn_fully_connected", attrs, inner, "a" if act else "f", list(inputs), outputs)
    return graph_case(id, text, inputs, **{"grads": False, "backend": "onednn", "infer_from": tuple(inputs), **options})


def attention(kind: str, attrs: Mapping[str, Any], arrays: Mapping[str, Array], id: str, **options: Any) -> Case:
    """A case of `_sg_mkldnn_selfatt_qk` or `_valatt`."""
    ends = {"queries_keys_values": (-1.0, 2.0), "attention": (0.0, 1.0)}
    inner = [*((f"{n}0",) for n in arrays), ("t", f"_contrib_interleaved_matmul_selfatt_{kind}", {"heads": 2},
                                             [f"{n}0" for n in arrays])]
    inputs = {**arrays, **(ranges({n: ends[n] for n in arrays}) if attrs.get("quantized") else {})}
    outputs = 3 if attrs.get("quantized") and not attrs.get("enable_float_output") else 1
    text = fused(f"_sg_mkldnn_selfatt_{kind}", {"heads": 2, **attrs}, inner, "t", list(inputs), outputs)
    return graph_case(f"{kind}-{id}", text, inputs, **{"grads": False, "backend": "onednn",
                                                       "infer_from": tuple(inputs), **options})


def real_conv(x: dict[str, np.ndarray], function: Any, out: str, low: float = -8.0, high: float = 6.0) -> Any:
    """What a calibrated convolution of size 1 must give: rounded weights, then real numbers."""
    t = x["data"].dtype.name
    scale = (np.float32(127.5) / np.abs(x["weight"]).max(axis=(1, 2, 3)))
    weight = np.rint(x["weight"] * scale[:, None, None, None]).clip(-128, 127)
    steps = np.float32(STEPS[t]) / np.float32(max(abs(x["data_min"][0]), abs(x["data_max"][0])))
    total = np.einsum("nchw,ochw->no", x["data"].astype("float64"), weight)
    total = (total + np.rint(x["bias"] * (scale * steps))) / (scale * steps)
    if "sum" in x:
        reach = max(abs(x["sum_min"][0]), abs(x["sum_max"][0]))
        total = total + x["sum"][:, :, 0, 0] * (reach / STEPS[x["sum"].dtype.name])
    info, top = np.iinfo(out), max(abs(low), abs(high))
    q = np.rint(function(total) * STEPS[out] / top).clip(info.min, info.max).astype(out)[..., None, None]
    return {"out0": q, "train0": q}


def one(id: str, data: Array, act: tuple[str, dict[str, Any]] | None, function: Any, out: str, differs: str,
        **options: Any) -> Case:
    """A case that MXNet gets wrong, with a window as large as the data."""
    flags = {"with_act": "true"} if act else {"with_sum": "true"}
    return conv(id, data, {**QUANT, **CALIB, **flags}, act=act, differs=differs,
                expected=lambda x: real_conv(x, function, out), **options)  # fmt: skip


def both_sides(dtype: str, low: float) -> list[Case]:
    """Quantized convolutions of one type of data."""
    data, pixel = (Array("randint", s, dtype, {"lo": -128 if low else 0, "hi": 128 if low else 256})
                   for s in ((1, 4, 3, 3), (2, 4, 2, 2)))
    calib = {**QUANT, **CALIB}
    return [
        conv(f"conv-{dtype}", data, calib),
        conv(f"conv-{dtype}-no-bias", data, calib, bias=False),
        conv(f"conv-{dtype}-groups", data, calib, groups=4, layer={"pad": (1, 1), "stride": (2, 2)}),
        conv(f"conv-{dtype}-relu", data, {**calib, "with_act": "true"}, act=RELU),
        conv(f"conv-{dtype}-old-relu", data, {**calib, "with_relu": "true"}, act=RELU),
        conv(f"conv-{dtype}-norm-relu", data, {**calib, "with_act": "true", "with_bn": "true"}, norm=True, act=RELU),
        conv(f"conv-{dtype}-norm-fixed", data, {**calib, "with_bn": "true"}, norm=True, bias=False),
        conv(f"conv-{dtype}-leaky", data, {**calib, "with_act": "true"}, act=LEAKY),
        conv(f"conv-{dtype}-clip", data, {**QUANT, "min_calib_range": 0.0, "max_calib_range": 3.0, "with_act": "true"},
             act=("clip", {"a_min": 0, "a_max": 3})),
        conv(f"conv-{dtype}-uncalibrated", data, QUANT),
        conv(f"conv-{dtype}-uncalibrated-relu", data, {**QUANT, "with_act": "true"}, act=RELU),
        conv(f"conv-{dtype}-sum", pixel, {**calib, "with_sum": "true"}, summand=s8(2, 4, 1, 1)),
        conv(f"conv-{dtype}-sum-relu", pixel, {**calib, "with_sum": "true", "with_postsum_act": "true"}, act=RELU,
             summand=u8(2, 4, 1, 1)),
        conv(f"conv-{dtype}-relu-sum", pixel, {**calib, "with_sum": "true", "with_act": "true"}, act=RELU, early=True,
             summand=s8(2, 4, 1, 1)),
        conv(f"conv-{dtype}-uncalibrated-sum", pixel, {**QUANT, "with_sum": "true"}, summand=s8(2, 4, 1, 1)),
    ]


INT8_LINEAR: list[tuple[str, dict[str, Any], Any, dict[str, Any]]] = [
    ("calibrated", CALIB, None, {}), ("uncalibrated", {}, None, {}), ("no-bias", CALIB, None, {"bias": False}),
    ("float", {"enable_float_output": "True"}, None, {}),
    ("relu", {**CALIB, "with_eltwise": "True"}, RELU, {}),
    ("old-relu", {**CALIB, "with_relu": "True"}, RELU, {}),
    ("tanh", {**CALIB, "with_eltwise": "True"}, TANH, {}),
    ("sigmoid", {**CALIB, "with_eltwise": "True"}, ("Activation", {"act_type": "sigmoid"}), {}),
    ("softrelu", {**CALIB, "with_eltwise": "True"}, ("Activation", {"act_type": "softrelu"}), {}),
    ("square", {**CALIB, "with_eltwise": "True"}, ("square", {}), {}),
    ("exp", {**CALIB, "with_eltwise": "True"}, ("exp", {}), {}),
    ("abs", {**CALIB, "with_eltwise": "True"}, ("abs", {}), {}),
    ("clip", {**CALIB, "with_eltwise": "True"}, ("clip", {"a_min": 0, "a_max": 1}), {}),
    ("gelu", {**CALIB, "with_eltwise": "True"}, ("LeakyReLU", {"act_type": "gelu"}), {}),
    ("uncalibrated-relu", {"with_eltwise": "True"}, RELU, {}),
    ("float-relu", {"with_eltwise": "True", "enable_float_output": "True"}, RELU, {}),
    ("channels", {**CALIB, "channel_wise_quantize": "True"}, None, {}),
    ("channels-float", {"enable_float_output": "True", "channel_wise_quantize": "True"}, None, {}),
    ("channels-uncalibrated", {"channel_wise_quantize": "True"}, None, {}),
    ("large-bias", {"enable_float_output": "True"}, None, {"bias_range": 1e6}),
]

CASES: list[Case] = [
    conv("conv", uniform((2, 3, 4, 4)), {}),
    conv("conv-relu", uniform((2, 3, 4, 4)), {"with_act": "true"}, act=RELU, infer=({"data": (0, 3, 4, 4)},)),
    conv("conv-tanh", uniform((2, 3, 4, 4)), {"with_act": "true"}, act=TANH),
    conv("conv-norm-sum-relu", uniform((2, 3, 4, 4)),
         {"with_bn": "true", "with_sum": "true", "with_postsum_act": "true"}, norm=True, act=RELU,
         summand=uniform((2, 4, 3, 3))),
    conv("conv-norm-fixed", uniform((2, 3, 4, 4)), {"with_bn": "true"}, norm=True, bias=False),
    conv("conv-leaky", uniform((2, 4, 4, 4)), {"with_act": "true"}, act=LEAKY, groups=2, layer={"pad": (1, 1)}),
    *both_sides("int8", -1.0),
    *both_sides("uint8", 0.0),
    one("conv-tanh-scaled", s8(2, 3, 2, 2), TANH, np.tanh, "int8", SCALED),
    one("conv-sigmoid-scaled", u8(2, 3, 2, 2), ("Activation", {"act_type": "sigmoid"}), lambda v: 1 / (1 + np.exp(-v)),
        "uint8", SCALED),
    one("conv-clip-wide", s8(2, 3, 2, 2), ("clip", {"a_min": 0, "a_max": 1.5}), lambda v: v.clip(0, 1.5), "uint8",
        WIDE),
    one("conv-sum-mixed", s8(2, 3, 2, 2), None, lambda v: v, "int8", SUMMED, summand=u8(2, 4, 1, 1)),
    linear("linear", uniform((2, 5)), {}),
    linear("linear-relu", uniform((2, 5)), {"with_eltwise": "True"}, act=RELU),
    linear("linear-square", uniform((2, 3, 2)), {"with_eltwise": "True"}, act=("square", {}), bias=False),
    linear("linear-flat", uniform((2, 3, 2)), {}, layer={"flatten": False}, width=2),
    *(linear(f"linear-{d.dtype}-{name}", d, {**QUANT, **attrs}, act=act, **more)
      for d in (s8(2, 5), u8(2, 5)) for name, attrs, act, more in INT8_LINEAR),
    linear("linear-int8-flat", s8(2, 3, 2), {**QUANT, **CALIB}, layer={"flatten": False}, width=2),
    linear("linear-uint8-joined", u8(2, 3, 2), {**QUANT, **CALIB}),
    attention("qk", {}, {"queries_keys_values": uniform((3, 2, 12))}, "float"),
    attention("qk", {"quantized": "True", **CALIB}, {"queries_keys_values": s8(3, 2, 12)}, "calibrated"),
    attention("qk", {"quantized": "True", "enable_float_output": "True"}, {"queries_keys_values": s8(3, 2, 12)},
              "real"),
    attention("qk", {"quantized": "True"}, {"queries_keys_values": s8(3, 2, 12)}, "uncalibrated", differs=ZERO,
              expected=lambda x: {f"{k}{i}": np.array([s * 4 * 2147483647 / 127**2]) for k in ("out", "train")
                                  for i, s in ((1, -1), (2, 1))}),
    attention("valatt", {}, {"queries_keys_values": uniform((3, 2, 12)), "attention": uniform((4, 3, 3))}, "float"),
    *(attention("valatt", {"quantized": "True", **attrs},
                {"queries_keys_values": s8(3, 2, 12), "attention": u8(4, 3, 3)}, name)
      for name, attrs in (("calibrated", CALIB), ("real", {"enable_float_output": "True"}), ("uncalibrated", {}))),
]  # fmt: skip
