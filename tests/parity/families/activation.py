"""Activation, LeakyReLU, SoftmaxActivation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.parity.arrays import fill, signed, uniform, values
from tests.parity.case import Case, graph_case, graph_json, op_case

X = signed((2, 3, 4), lo=0.05)
SPECIAL = values([[0.0, "inf", "-inf", "nan", 100.0, -100.0]])
KINDS = ("relu", "sigmoid", "tanh", "softrelu", "softsign")
LEAKY = ("leaky", "elu", "gelu")
FROM_OUTPUT = graph_json([("x",), ("like",), ("act", "Activation", {"act_type": "tanh"}, ["x"]),
                          ("sum", "elemwise_add", {}, ["act", "like"])], ["sum"])  # fmt: skip


def _head(case: str, data: np.ndarray) -> np.ndarray:
    return fill(case, "head0", uniform(data.shape, -1.5, 1.5), data.dtype.name)


def _selu(dtype: str = "float32", data: Any = X, name: str = "act_type=selu", rtol: float | None = None) -> Case:
    """MXNet's gradient of selu is not the derivative of its forward pass."""
    label = "-".join(["LeakyReLU", name, *([dtype] if dtype != "float32" else [])])

    def expected(inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        x = inputs["data"].astype("float64")
        slope = 1.0507009873554805 * np.where(x > 0, 1.0, 1.6732632423543772 * np.exp(np.minimum(x, 0)))
        return {"grad:data": (slope * _head(label, inputs["data"])).astype(dtype)}

    return op_case("LeakyReLU", {"data": data}, {"act_type": "selu"}, id=name, dtype=dtype, rtol=rtol,
                   differs="gradient", expected=expected)  # fmt: skip


def _softmax_instance(shape: tuple[int, ...], name: str) -> Case:
    """MXNet's gradient of mode instance is not the derivative of its forward pass beyond two dimensions."""

    def expected(inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        x = inputs["data"].astype("float64")
        p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        head = _head(f"SoftmaxActivation-{name}", inputs["data"])
        return {"grad:data": (p * (head - (p * head).sum(-1, keepdims=True))).astype("float32")}

    return op_case("SoftmaxActivation", {"data": shape}, id=name, differs="gradient", expected=expected)


def _quarter(inputs: dict[str, np.ndarray]) -> dict[str, Any]:
    x = inputs["data"]
    y = np.where(x > 0, x, np.float32(0.25) * x)
    return {"out0": y, "train0": y}


CASES: list[Case] = [
    *(op_case("Activation", {"data": X}, {"act_type": t}) for t in KINDS),
    *(op_case("Activation", {"data": X}, {"act_type": t}, dtype=d) for t in KINDS for d in ("float64", "float16")),
    op_case("Activation", {"data": X}, {"act_type": "sigmoid"}, grad_req="add"),
    *(op_case("Activation", {"data": SPECIAL}, {"act_type": t}, id=f"special_{t}") for t in KINDS),
    op_case("Activation", {"data": values([[0.0, -0.0, 1.0]])}, {"act_type": "relu"}, id="relu_at_0"),
    op_case("Activation", {"data": (0, 3)}, {"act_type": "relu"}, id="empty", np_shape=True),
    op_case("Activation", {"data": X}, {"act_type": "swish"}, id="unknown_type"),
    op_case("Activation", {"data": X}, id="missing_type"),
    op_case("_npx_activation", {"data": X}, {"act_type": "tanh"}),
    graph_case("activation_from_output", FROM_OUTPUT, {"x": (2, 3), "like": (2, 3)},
               infer=[{"like": (2, 3)}, {"x": (0, 3), "like": (2, 0)}]),
    *(op_case("LeakyReLU", {"data": X}, {"act_type": t}) for t in LEAKY),
    # MXNet's constants are float32.
    *(op_case("LeakyReLU", {"data": X}, {"act_type": t}, dtype=d, rtol={"float64": 1e-5}.get(d))
      for t in LEAKY for d in ("float64", "float16")),
    _selu(), _selu("float64", rtol=1e-6), _selu("float16"),
    _selu(data=values([[0.0, 100.0, -100.0]]), name="edges_selu"),
    *(op_case("LeakyReLU", {"data": X}, {"act_type": t, "slope": 0.6}) for t in ("leaky", "elu")),
    op_case("LeakyReLU", {"data": X}, id="defaults", infer=[{"data": (0, 3)}]),
    op_case("LeakyReLU", {"data": X}, grad_req="add"),
    *(op_case("LeakyReLU", {"data": SPECIAL}, {"act_type": t}, id=f"special_{t}", grads=False) for t in LEAKY),
    *(op_case("LeakyReLU", {"data": values([[0.0, 100.0, -100.0]])}, {"act_type": t}, id=f"edges_{t}") for t in LEAKY),
    op_case("LeakyReLU", {"data": X, "gamma": None}, {"act_type": "prelu"},
            infer=[{"data": (0, 3, 4)}, {"data": (2, 0, 4)}]),
    op_case("LeakyReLU", {"data": X, "gamma": uniform((1,))}, {"act_type": "prelu"}, id="shared"),
    op_case("LeakyReLU", {"data": signed((5, 3)), "gamma": None}, {"act_type": "prelu"}, id="matrix"),
    op_case("LeakyReLU", {"data": signed((2, 3, 2, 2)), "gamma": None}, {"act_type": "prelu"}, id="images"),
    op_case("LeakyReLU", {"data": signed((2, 3, 2)), "gamma": (5,)}, {"act_type": "prelu"}, id="bad_gamma"),
    op_case("LeakyReLU", {"data": signed((3, 3, 2)), "gamma": None}, {"act_type": "prelu"}, id="batch_is_channels"),
    op_case("LeakyReLU", {"data": signed((2, 3, 2)), "gamma": (2, 3, 2)}, {"act_type": "prelu"}, id="gamma_like_data"),
    op_case("LeakyReLU", {"data": X, "gamma": None}, {"act_type": "prelu"}, dtype="float64"),
    op_case("LeakyReLU", {"data": X, "gamma": None}, {"act_type": "prelu"}, dtype="float16"),
    op_case("LeakyReLU", {"data": X, "gamma": None}, {"act_type": "prelu"}, grad_req="add"),
    op_case("LeakyReLU", {"data": X}, {"act_type": "rrelu", "lower_bound": 0.25, "upper_bound": 0.25}, outputs=2,
            id="rrelu_fixed", better=True, expected=_quarter, random=True),  # MXNet fails in training
    op_case("LeakyReLU", {"data": X}, {"act_type": "rrelu"}, outputs=2, better=True, random=True),
    op_case("_npx_leaky_relu", {"data": X}, {"act_type": "elu"}),
    *(op_case("SoftmaxActivation", {"data": s}, {"mode": "channel"}, id=f"channel_{len(s)}d", better=len(s) == 2)
      for s in ((3, 4), (2, 3, 4), (2, 3, 2, 2))),
    op_case("SoftmaxActivation", {"data": (3, 4)}),
    _softmax_instance((2, 3, 4), "instance_3d"),
    _softmax_instance((2, 3, 2, 2), "instance_4d"),
    op_case("SoftmaxActivation", {"data": (2, 3)}, dtype="float64", better=True),
    op_case("SoftmaxActivation", {"data": (2, 3)}, dtype="float16", better=True),
    op_case("SoftmaxActivation", {"data": (2, 3)}, grad_req="add"),
    op_case("SoftmaxActivation", {"data": (2, 3)}, {"mode": "pixel"}, id="unknown_mode"),
]
