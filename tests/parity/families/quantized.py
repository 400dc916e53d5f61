"""_contrib_quantized_*: layers and elementwise operators on int8 and uint8, which MXNet runs with oneDNN alone."""

from typing import Any

import numpy as np

from tests.parity.arrays import Array, const, randint, uniform
from tests.parity.case import Case, op_case

Q = "_contrib_quantized_"
CONV = ("MXNet's CPU kernel gives uint8 products the range of int8 ones (twice the right one) and adds the bias as it "
        "is")  # fmt: skip
EPS = "MXNet divides by sqrt(1 + eps) twice"
FIXED = "MXNet ignores fix_gamma"
MIXED = "MXNet cuts the uint8 input off at 127 steps of the int32 output"
ROUNDED = "MXNet rounds the uint8 input to int8 before it adds"
STEPS = {"int8": 127.5, "uint8": 255.5}
WHOLE = {"int8": 127.0, "uint8": 255.0}
TOP = 2147483647.0


def s8(*shape: int) -> Array:
    """int8 numbers."""
    return randint(shape, -128, 128, "int8")


def u8(*shape: int) -> Array:
    """uint8 numbers."""
    return randint(shape, 0, 256, "uint8")


def case(op: str, arrays: dict[str, Array], ends: dict[str, tuple[float, float]], params: dict[str, Any],
         id: str, names: str = "{end}_{name}", **options: Any) -> Case:
    """A case of an op that takes arrays, then the ends of their ranges."""
    ranges = {names.format(end=end, name=n): const(e[i], (1,), "float32")
              for n, e in ends.items() for i, end in enumerate(("min", "max"))}
    inputs = {**arrays, **ranges}
    options = {"outputs": 3, "grads": False, "backend": "onednn", "infer_from": tuple(inputs), **options}
    return op_case(Q + op, inputs, params, id=id, **options)


def both(**outs: Any) -> dict[str, Any]:
    """Outputs of prediction and of training, which are the same."""
    return {f"{k}{n[1:]}": v for n, v in outs.items() for k in ("out", "train")}


def correlate(x: np.ndarray, w: np.ndarray, groups: int, pad: int = 0, stride: int = 1) -> np.ndarray:
    """Whole-number convolution of (N, C, H, W) with (O, C / groups, h, w)."""
    x = np.pad(x.astype("int64"), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    h, v = ((x.shape[i] - w.shape[i]) // stride + 1 for i in (2, 3))
    out = np.zeros((x.shape[0], w.shape[0], h, v), "int64")
    each, cin = w.shape[0] // groups, w.shape[1]
    for o in range(w.shape[0]):
        part = x[:, o // each * cin:(o // each + 1) * cin]
        for i in range(h):
            for j in range(v):
                a, b = i * stride, j * stride
                out[:, o, i, j] = (part[:, :, a:a + w.shape[2], b:b + w.shape[3]] * w[o]).sum((1, 2, 3))
    return out


def reach(x: dict[str, np.ndarray], name: str) -> float:
    """The larger end of a range."""
    return float(max(abs(x[f"min_{name}"][0]), abs(x[f"max_{name}"][0])))


def conv_numbers(groups: int = 1, pad: int = 0, stride: int = 1) -> Any:
    """What quantized_conv must give."""
    def run(x: dict[str, np.ndarray]) -> dict[str, Any]:
        out = correlate(x["data"], x["weight"], groups, pad, stride)
        t = x["data"].dtype.name
        if "bias" in x:
            steps = STEPS[t] / reach(x, "data") * STEPS["int8"] / reach(x, "weight") * reach(x, "bias") / STEPS["int8"]
            out = out + np.trunc(x["bias"] * steps).astype("int64").reshape(1, -1, 1, 1)
        high = TOP * reach(x, "data") / WHOLE[t] * reach(x, "weight") / WHOLE["int8"]
        return both(o0=out.astype("int32"), o1=np.array([-high]), o2=np.array([high]))
    return run


def conv(id: str, data: Array, out: int, params: dict[str, Any], formula: Any, bias: bool = False, groups: int = 1,
         **options: Any) -> Case:
    """A case of quantized_conv."""
    assert data.shape
    low = -1.0 if data.dtype == "int8" else 0.0
    arrays = {"data": data, "weight": s8(out, data.shape[1] // groups, *params["kernel"])}
    ends = {"data": (low, 1.0), "weight": (-2.0, 1.5)}
    if bias:
        arrays, ends = {**arrays, "bias": s8(out)}, {**ends, "bias": (-0.5, 0.25)}
    params = {"num_filter": out, "no_bias": not bias, "num_group": groups, **params}
    given = {"differs": CONV} if not options.get("better") else {}
    return case("conv", arrays, ends, params, id, expected=formula, **given, **options)


def fc(id: str, data: Array, hidden: int, params: dict[str, Any] | None = None, bias: bool = True,
       width: int = 0, **options: Any) -> Case:
    """A case of quantized_fully_connected."""
    assert data.shape
    low = -1.0 if data.dtype == "int8" else 0.0
    arrays = {"data": data, "weight": s8(hidden, width or int(np.prod(data.shape[1:])))}
    ends = {"data": (low, 1.0), "weight": (-2.0, 1.5)}
    if bias:
        arrays, ends = {**arrays, "bias": s8(hidden)}, {**ends, "bias": (-0.5, 0.25)}
    return case("fully_connected", arrays, ends, {"num_hidden": hidden, "no_bias": not bias, **(params or {})}, id,
                **options)  # fmt: skip


def pool(id: str, data: Array, params: dict[str, Any], **options: Any) -> Case:
    """A case of quantized_pooling."""
    if params["pool_type"] == "max":  # in training mode MXNet's fails
        options = {"better": True, **options}
    return case("pooling", {"data": data}, {"data": (-1.0, 1.5)}, params, id, **options)


def add(id: str, lhs: Array, rhs: Array, params: dict[str, Any] | None = None, op: str = "elemwise_add",
        **options: Any) -> Case:
    """A case of an operator of two arrays."""
    ends = {n: (-r if a.dtype == "int8" else 0.0, r) for n, a, r in (("lhs", lhs, 1.25), ("rhs", rhs, 2.0))}
    return case(op, {"lhs": lhs, "rhs": rhs}, ends, params or {}, id, names="{name}_{end}", **options)


def sums(dtype: str, low: float, high: float) -> Any:
    """What quantized_elemwise_add must give for a calibrated range, or without one (int32)."""
    def run(x: dict[str, np.ndarray]) -> dict[str, Any]:
        real = sum(x[n].astype("float64") * float(x[f"{n}_max"][0]) / STEPS[x[n].dtype.name] for n in ("lhs", "rhs"))
        top = max(abs(low), abs(high))
        steps = TOP if dtype == "int32" else STEPS[dtype]
        info = np.iinfo(dtype)
        return both(o0=np.clip(np.rint(real * steps / top), info.min, info.max))
    return run


def joined(id: str, arrays: list[Array], ends: list[tuple[float, float]], dim: int = 1) -> Case:
    """A case of quantized_concat."""
    named = {f"arg{i}": a for i, a in enumerate(arrays)}
    return case("concat", named, {f"arg{i}": e for i, e in enumerate(ends)}, {"num_args": len(arrays), "dim": dim}, id,
                names="{name}_{end}")  # fmt: skip


def bn(id: str, data: Array, params: dict[str, Any], **options: Any) -> Case:
    """A case of quantized_batch_norm."""
    assert data.shape
    low = -1.0 if data.dtype == "int8" else 0.0
    inputs = {"data": data, "gamma": uniform((2,), 0.5, 1.5, "float32"), "beta": uniform((2,), dtype="float32"),
              "moving_mean": uniform((2,), dtype="float32"), "moving_var": uniform((2,), 0.5, 2, "float32"),
              "min_data": const(low, (1,), "float32"), "max_data": const(1.0, (1,), "float32")}
    options = {"outputs": 3, "grads": False, "backend": "onednn", "infer_from": tuple(inputs), **options}
    return op_case(Q + "batch_norm", inputs, params, id=id, **options)


def normalized(gamma: bool, eps: float) -> Any:
    """What quantized_batch_norm must give for the range [-2, 3]."""
    def channel(v: np.ndarray) -> np.ndarray:
        return v.astype("float64").reshape(1, -1, 1, 1)

    def run(x: dict[str, np.ndarray]) -> dict[str, Any]:
        q = np.rint(x["data"] * (127.5 / 255.5)) if x["data"].dtype == np.uint8 else x["data"].astype("float64")
        y = (q / 127.5 - channel(x["moving_mean"])) / np.sqrt(channel(x["moving_var"]) + eps)
        y = y * (channel(x["gamma"]) if gamma else 1) + channel(x["beta"])
        return both(o0=np.clip(np.rint(y * 127.5 / 3), -128, 127))
    return run


RANGE = {"min_calib_range": -2.0, "max_calib_range": 3.0}

CASES: list[Case] = [
    conv("u8", u8(2, 3, 4, 4), 2, {"kernel": (3, 3)}, conv_numbers()),
    conv("u8-pad", u8(1, 4, 5, 5), 3, {"kernel": (3, 3), "pad": (1, 1), "stride": (2, 2)}, conv_numbers(1, 1, 2)),
    conv("u8-bias", u8(1, 3, 3, 3), 2, {"kernel": (2, 2)}, conv_numbers(), bias=True),
    conv("s8-bias", s8(1, 3, 3, 3), 2, {"kernel": (2, 2)}, conv_numbers(), bias=True, better=True),
    conv("s8", s8(2, 4, 4, 4), 4, {"kernel": (1, 1), "stride": (2, 2)}, conv_numbers(1, 0, 2), better=True),
    conv("u8-groups", u8(1, 4, 4, 4), 4, {"kernel": (2, 2)}, conv_numbers(4), groups=4, better=True),
    conv("s8-groups", s8(1, 4, 4, 4), 6, {"kernel": (3, 3), "pad": (1, 1)}, conv_numbers(2, 1), groups=2, better=True),
    fc("u8", u8(2, 5), 3),
    fc("s8", s8(2, 5), 3),
    fc("s8-no-bias", s8(3, 4), 2, bias=False),
    fc("u8-no-bias", u8(3, 4), 2, bias=False),
    fc("flatten", s8(2, 3, 2), 2),
    fc("no-flatten", u8(2, 3, 2), 4, {"flatten": False}, width=2),
    fc("long", u8(2, 1200), 2),
    *(pool(f"{t.dtype}-{k}", t, {"kernel": (2, 2), "stride": (2, 2), "pool_type": k})
      for t in (s8(1, 2, 4, 4), u8(1, 2, 4, 4)) for k in ("max", "avg")),
    *(pool(f"pad-{k}-{c}", s8(1, 2, 5, 5), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": k,
                                           "count_include_pad": c}) for k in ("max", "avg") for c in (True, False)),
    pool("full", s8(1, 2, 6, 6), {"kernel": (3, 3), "stride": (2, 2), "pool_type": "max",
                                  "pooling_convention": "full"}),
    pool("global", u8(2, 3, 3, 3), {"kernel": (1, 1), "global_pool": True, "pool_type": "avg"}),
    pool("sum", s8(1, 2, 4, 4), {"kernel": (2, 2), "pool_type": "sum"}),
    case("act", {"data": s8(3, 5)}, {"data": (-1.0, 2.0)}, {"act_type": "relu"}, "relu"),
    case("act", {"data": s8(3, 5)}, {"data": (-1.0, 2.0)}, {"act_type": "tanh"}, "tanh"),
    case("flatten", {"data": s8(2, 3, 2)}, {"data": (-1.0, 2.0)}, {}, "s8"),
    case("flatten", {"data": u8(2, 1, 2, 2)}, {"data": (0.0, 2.0)}, {}, "u8"),
    joined("s8", [s8(2, 3), s8(2, 2)], [(-1.0, 1.0), (-2.0, 1.0)]),
    joined("u8", [u8(2, 3), u8(2, 2), u8(2, 1)], [(0.0, 1.0), (0.0, 3.0), (0.0, 2.0)]),
    joined("mixed", [u8(2, 3), s8(2, 2)], [(0.0, 1.0), (-2.0, 1.0)]),
    joined("same", [s8(1, 2, 2), s8(1, 3, 2)], [(-2.0, 1.0), (-2.0, 1.5)]),
    joined("last", [s8(1, 2, 2), s8(1, 2, 1)], [(-2.0, 1.0), (-1.0, 1.5)], dim=2),
    add("s8", s8(3, 4), s8(3, 4), atol=1e-7),
    add("u8", u8(3, 4), u8(3, 4), atol=1e-7),
    add("mixed", u8(3, 4), s8(3, 4), differs=MIXED, expected=sums("int32", -3.25, 3.25), atol=1e-7),
    add("s8-calibrated", s8(3, 4), s8(3, 4), RANGE),
    add("u8-calibrated", u8(3, 4), u8(3, 4), {"min_calib_range": 0.0, "max_calib_range": 2.5}),
    add("mixed-calibrated", u8(3, 4), s8(3, 4), RANGE, differs=ROUNDED, expected=sums("int8", -2, 3)),
    add("mixed-other", s8(3, 4), u8(3, 4), RANGE, differs=ROUNDED, expected=sums("int8", -2, 3)),
    add("s8", s8(3, 4), s8(3, 4), op="elemwise_mul"),
    add("calibrated", s8(3, 4), s8(3, 4), RANGE, op="elemwise_mul"),
    add("float", s8(3, 4), s8(3, 4), {"enable_float_output": True}, op="elemwise_mul", outputs=1),
    add("u8", u8(3, 4), u8(3, 4), op="elemwise_mul"),
    bn("s8", s8(2, 2, 2, 3), {"fix_gamma": False, **RANGE}),
    bn("u8", u8(2, 2, 2, 3), {"fix_gamma": False, **RANGE}),
    bn("eps", s8(2, 2, 3, 1), {"fix_gamma": False, "eps": 0.1, "use_global_stats": True, **RANGE},
       differs=EPS, expected=normalized(True, 0.1)),
    bn("fix-gamma", s8(2, 2, 2, 2), RANGE, differs=FIXED, expected=normalized(False, 1e-3)),
    bn("no-range", s8(2, 2, 2, 2), {"fix_gamma": False}),
    op_case(Q + "embedding", {"data": randint((4,), -1, 6, "float32"), "weight": s8(5, 3),
                              "min_weight": const(-1, (1,), "float32"), "max_weight": const(2, (1,), "float32")},
            {"input_dim": 5, "output_dim": 3}, outputs=3, grads=False, backend="onednn",
            infer_from=("data", "weight", "min_weight", "max_weight")),
]  # fmt: skip
