"""quantize, quantize_v2, quantize_asym, dequantize, requantize and calibrate_entropy."""

from typing import Any

import numpy as np

from tests.parity.arrays import const, normal, randint, uniform, values
from tests.parity.case import Case, op_case

C = "_contrib_"
ALL = ("data", "min_range", "max_range")


def ranged(op: str, data: Any, low: float, high: float, params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case of an op whose data comes with a range; its outputs are not differentiable."""
    options = {"grads": False, "infer_from": ALL, "id": f"{params}-{low}..{high}".replace(" ", ""), **options}
    return op_case(C + op, {"data": data, "min_range": const(low, (1,), "float32"),
                            "max_range": const(high, (1,), "float32")}, params, **options)  # fmt: skip


def v2(data: Any, params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case of quantize_v2."""
    return op_case(C + "quantize_v2", {"data": data}, params, outputs=3, grads=False, **options)


def asym(data: Any, params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case of quantize_asym."""
    return op_case(C + "quantize_asym", {"data": data}, params, outputs=3, grads=False, **options)


def calib(low: float, high: float, **more: Any) -> dict[str, Any]:
    """The parameters of a calibrated node."""
    return {"min_calib_range": low, "max_calib_range": high, **more}


def shifted(low: float | None = None, high: float | None = None) -> Any:
    """What quantize_asym must give."""
    def run(x: dict[str, np.ndarray]) -> dict[str, Any]:
        data = x["data"]
        a, b = (data.min(), data.max()) if low is None else (np.float32(low), np.float32(high))
        scale = np.float32(255) / (b - a)
        shift = np.float32(255) - b * scale
        out = np.clip(np.rint(data * scale + shift), 0, 255).astype("uint8")
        outs = (out, np.reshape(scale, 1), np.reshape(shift, 1))
        return {f"{k}{i}": v for k in ("out", "train") for i, v in enumerate(outs)}
    return run


HIST = np.histogram(np.random.RandomState(0).standard_normal(4000), bins=401, range=(-4, 4))
SHARP = np.histogram(np.random.RandomState(1).laplace(size=30000), bins=601, range=(-9, 9))


def entropy(hist: Any, edges: Any, bins: int, **options: Any) -> Case:
    """A case of calibrate_entropy on a recorded histogram."""
    return op_case(C + "calibrate_entropy", {"hist": values(hist.tolist(), "float32"),
                                             "hist_edges": values(edges.tolist(), "float32")},
                   {"num_quantized_bins": bins}, outputs=2, grads=False, rtol=1e-4, **options)  # fmt: skip


CASES: list[Case] = [
    *(ranged("quantize", (2, 3, 4), -1, 1, {"out_type": t}, outputs=3) for t in ("int8", "uint8")),
    ranged("quantize", (2, 3), -0.5, 1, {"out_type": "int8"}, outputs=3),
    ranged("quantize", uniform((2, 5), 0, 1), 0, 1, {}, outputs=3),
    ranged("quantize", (5,), -1.5, 1, {}, outputs=3),
    ranged("quantize", values([-1.0, -0.5, 0.0, 0.5, 1.0]), -1, 1, {"out_type": "int8"}, outputs=3, id="ends"),
    ranged("quantize", values([0.5, -0.5, 1.5, -1.5, 2.5, -2.5]), -127, 127, {"out_type": "int8"}, outputs=3,
           id="halves"),
    ranged("quantize", values([-5.0, 5.0, 0.25]), -1, 1, {"out_type": "int8"}, outputs=3, id="outside"),
    ranged("quantize", values([-5.0, 5.0, 0.25]), -1, 1, {}, outputs=3, id="outside-uint8"),
    ranged("quantize", uniform((2, 5), 0.25, 2), 0.25, 2, {}, outputs=3, id="above"),
    ranged("quantize", uniform((2, 5), 0, 1), 0, 1, {}, outputs=3, id="null", infer=[{"data": (0, 5)}]),
    op_case(C + "quantize", {"data": (2, 3), "min_range": const(-1, (1,)), "max_range": const(1, (1,))}, {},
            outputs=3, grads=["data", "min_range"], infer_from=ALL, id="gradient"),
    v2((3, 4)),
    v2((3, 4), {"out_type": "uint8"}),
    v2((3, 4), {"out_type": "auto"}),
    v2(normal((2, 3, 2)), calib(-1.0, 0.75)),
    v2(uniform((2, 3), 0, 1), calib(0.0, 1.0, out_type="auto")),
    v2((2, 3), calib(-1.5, 1.0, out_type="auto")),
    v2((2, 3), calib(-1.0, 1.0, out_type="uint8")),
    v2(randint((3, 4), 0, 256, "uint8"), {"out_type": "uint8"}, id="u8"),
    v2(randint((3, 4), -127, 128, "int8"), {"out_type": "int8"}, id="s8"),
    v2(randint((3, 4), -127, 128, "int8"), calib(-2.0, 2.0), id="s8-calibrated"),
    v2(randint((3, 4), 0, 256, "uint8"), calib(0.0, 2.0, out_type="auto"), id="u8-calibrated"),
    v2((2, 3), {"min_calib_range": -1.0}, id="one-end"),
    asym((3, 4), better=True, expected=shifted()),
    asym(uniform((3, 4), 0.5, 2), better=True, expected=shifted(), id="above"),
    asym((3, 4), calib(-1.0, 1.5), better=True, expected=shifted(-1.0, 1.5)),
    asym(randint((3, 4), 0, 256, "uint8"), id="u8"),
    asym(randint((3, 4), -128, 128, "int8"), id="s8"),
    ranged("dequantize", randint((3, 4), -127, 128, "int8"), -1, 1),
    ranged("dequantize", randint((3, 4), -128, 128, "int8"), -0.5, 2, {"out_type": "float32"}),
    ranged("dequantize", randint((3, 4), 0, 256, "uint8"), 0, 3),
    ranged("dequantize", randint((3, 4), 0, 256, "uint8"), -1, 3),
    ranged("dequantize", randint((3, 4), 0, 256, "uint8"), 0.5, 2, id="above"),
    *(ranged("requantize", randint((3, 4), -3000, 3000, "int32"), -1e6, 1e6, p, outputs=3)
      for p in ({}, {"out_type": "auto"}, calib(-1.0, 0.5), calib(-2.0, 2.0, out_type="auto"))),
    ranged("requantize", randint((3, 4), -90000, 90000, "int32"), -1e5, 2e5, calib(-1.0, 1.0), outputs=3,
           id="outside"),
    entropy(*HIST, 255),
    entropy(*HIST, 31),
    entropy(*HIST, 127),
    entropy(*SHARP, 255),
]  # fmt: skip
