"""Models to quantize, run by MXNet (`oracle/record_quantization.py`) and by symjax (`test_quantization.py`)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

SHAPES = {"conv": (2, 3, 6, 6), "linear": (4, 6), "mixed": (2, 3, 5, 5)}


def conv(mx: Any) -> Any:
    """Layers, and all that is quantized between layers."""
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, pad=(1, 1), name="c0", no_bias=True)
    r = mx.sym.Activation(x, act_type="relu", name="r0")
    b = mx.sym.BatchNorm(r, name="b0", fix_gamma=False)
    c = mx.sym.Convolution(b, kernel=(1, 1), num_filter=4, name="c1", no_bias=True)
    s = mx.sym.Activation(mx.sym.elemwise_add(c, r, name="add"), act_type="relu", name="r1")
    p = mx.sym.Pooling(s, kernel=(2, 2), stride=(2, 2), pool_type="max", name="p")
    f = mx.sym.Flatten(mx.sym.Concat(p, p, dim=1, name="cat"), name="fl")
    return mx.sym.softmax(mx.sym.FullyConnected(f, num_hidden=5, name="fc"), name="sm")


def linear(mx: Any) -> Any:
    """What MXNet runs without fusing."""
    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="f0")
    x = mx.sym.Activation(x, act_type="relu", name="r0")
    return mx.sym.FullyConnected(x, num_hidden=3, name="f1")


def mixed(mx: Any) -> Any:
    """Operators that stay in float32, with their ways of naming outputs."""
    c = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="c0", no_bias=True)
    t = mx.sym.clip(mx.sym.tanh(c, name="t"), a_min=0, a_max=6, name="cl")
    x = mx.sym.LeakyReLU(mx.sym.Convolution(t, kernel=(1, 1), num_filter=4, name="c1", no_bias=True), name="l")
    parts = mx.sym.split(mx.sym.elemwise_mul(x, x, name="mul"), num_outputs=2, axis=1, name="sp")
    f = mx.sym.FullyConnected(parts[1], num_hidden=3, name="fc")
    return mx.sym.Group([f, mx.sym.Pooling(parts[0], kernel=(2, 2), pool_type="avg", name="p")])


MODELS = {"conv": conv, "linear": linear, "mixed": mixed}

GRAPHS = [(m, mode, dtype, names, ops) for m in MODELS for mode in ("full", "smart")
          for dtype, names, ops in (("int8", [], []), ("auto", ["c1", "f1"], []),
                                    ("uint8", [], ["Pooling", "BatchNorm"]))]  # fmt: skip
"""Model, mode, type, excluded names and excluded operators."""


def parameters(mx: Any, model: str) -> tuple[Any, dict[str, Any], dict[str, Any], np.ndarray]:
    """A model's symbol, its arguments and auxiliary states, and six examples."""
    symbol, rng = MODELS[model](mx), np.random.RandomState(0)
    shapes, _, states = symbol.infer_shape(data=SHAPES[model])
    args = {n: mx.nd.array(rng.uniform(-1, 1, s)) for n, s in zip(symbol.list_arguments(), shapes, strict=True)
            if n != "data"}
    aux = {n: mx.nd.array(rng.uniform(0.5, 1, s)) for n, s in zip(symbol.list_auxiliary_states(), states, strict=True)}
    return symbol, args, aux, rng.uniform(-1, 1, (6, *SHAPES[model][1:])).astype("float32")


def nodes(symbol: Any) -> list[Any]:
    """A graph as [op, name, attributes, inputs] of its nodes; ranges are left to `ranges`."""
    rows = json.loads(symbol.tojson())["nodes"]
    return [[r["op"], r["name"], {k: v for k, v in r.get("attrs", {}).items() if "calib" not in k},
             [e[:2] for e in r["inputs"]]] for r in rows]  # fmt: skip


def ranges(symbol: Any) -> dict[str, list[float]]:
    """The calibrated ranges by node."""
    rows = json.loads(symbol.tojson())["nodes"]
    return {r["name"]: [float(r["attrs"]["min_calib_range"]), float(r["attrs"]["max_calib_range"])]
            for r in rows if "min_calib_range" in r.get("attrs", {})}  # fmt: skip


def graph(mx: Any, case: Any) -> list[Any]:
    """What `quantize_model` makes without calibration."""
    model, mode, dtype, names, ops = case
    symbol, args, aux, _ = parameters(mx, model)
    made, _, _ = mx.contrib.quantization.quantize_model(
        symbol, args, aux, label_names=None, calib_mode="none", quantize_mode=mode, quantized_dtype=dtype,
        excluded_sym_names=list(names), excluded_op_names=list(ops))
    return nodes(made)


def calibrated(mx: Any, model: str, how: str, function: str = "quantize_model") -> tuple[Any, Any, Any, np.ndarray]:
    """A calibrated int8 model (symbol, arguments, auxiliary states), and the examples."""
    symbol, args, aux, data = parameters(mx, model)
    batches = mx.io.NDArrayIter(data, batch_size=2)
    made = getattr(mx.contrib.quantization, function)(
        symbol, args, aux, label_names=None, calib_mode=how, calib_data=batches, quantize_mode="smart",
        quantized_dtype="auto")
    return (*made, data)


def outputs(mx: Any, symbol: Any, args: Any, aux: Any, data: np.ndarray) -> list[Any]:
    """What a model gives for the first two examples."""
    bound = symbol.bind(mx.cpu(), {**args, "data": mx.nd.array(data[:2])}, aux_states=aux or None, grad_req="null")
    return [o.asnumpy().tolist() for o in bound.forward(is_train=False)]
