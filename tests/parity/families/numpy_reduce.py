"""Cases of the numpy reductions: sums, extremes, tests, means, spreads, indices, averages, percentiles, counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.parity.arrays import distinct, fill, randint, signed, uniform, values
from tests.parity.case import Case, op_case

X = distinct((2, 3, 4), -1.0, 1.3)
AXES: tuple[dict[str, Any], ...] = (
    {}, {"axis": -1}, {"axis": (0, 2), "keepdims": True}, {"axis": (2, 0)}, {"axis": "()"}, {"keepdims": True})
BAD: tuple[dict[str, Any], ...] = ({"axis": 3}, {"axis": (1, -2)})
TIES = values([[1.0, 2.0, 2.0, -3.0], [4.0, 4.0, 0.0, 4.0]])
NANS = values([["nan", 1.0, 2.0], [3.0, "nan", -1.0], [1.0, 2.0, 3.0]])
DTYPES = ("float64", "float16", "int32", "int64", "int8", "uint8")
TRUTHS = values([[1, 0, 1], [1, 1, 1], [0, 0, 0]], dtype="bool")

SUMS = ("_np_sum", "_np_prod")
EXTREMES = ("_np_max", "_np_min")
TESTS = ("_np_any", "_np_all")
SPREADS = ("_npi_std", "_npi_var")
ARGS = ("_npi_argmax", "_npi_argmin")
NAMES: dict[str, str] = dict.fromkeys((*TESTS, *ARGS), "data")


def case(op: str, inputs: dict[str, Any], params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case under numpy semantics."""
    return op_case(op, inputs, params, np_shape=True, **options)


def one(op: str, array: Any, params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case of an op with one input."""
    return case(op, {NAMES.get(op, "a"): array}, params, **options)


def both(value: Any) -> dict[str, Any]:
    """The same expectation in both modes."""
    return {"out0": value, "train0": value}


def shapes() -> list[Case]:
    """Axes, ranks and types that all of them share."""
    out: list[Case] = []
    for op in (*SUMS, *EXTREMES, *TESTS, "_npi_mean", *SPREADS):
        x = signed((2, 3, 4), 0.5, 1.5) if op == "_np_prod" else X
        out += [one(op, x, p) for p in (*AXES, *BAD)]
        out += [one(op, values(2.5), p, id=f"scalar{i}", better=op in EXTREMES and bool(i))
                for i, p in enumerate(({}, {"axis": 0}))]
        out += [one(op, x, {"axis": 1}, dtype="float16", rtol=4e-3)]
        out += [one(op, X, {"axis": 1}, id="infer", infer=[{NAMES.get(op, "a"): (-1, 3, 4)}], dtype="float64",
                    rtol=1e-5, infers_more=True)]
    for op in (*SUMS, *EXTREMES, *TESTS, "_npi_mean"):
        out += [one(op, randint((3, 4), 0, 4), {"axis": 0}, dtype=d, grads=False) for d in ("int32", "uint8")]
        out += [one(op, TRUTHS, {"axis": 1}, id="bool", grads=False)]
    out += [one(op, signed((2, 3), 0.5, 1.5), {"axis": 1}, grad_req="add") for op in (*SUMS, *EXTREMES)]
    return out


def typed() -> list[Case]:
    """Results of another type."""
    halves = values([[0.6, 0.7, 1.5], [1.5, -2.5, 2.0]])
    kinds = ("bool", "float16", "float64", "int32")
    return [
        *(one(op, halves, {"dtype": d, "axis": 1}, id=f"float32>{d}", grads=False)
          for op in (*SUMS, "_npi_mean", *SPREADS) for d in kinds[op in SPREADS:]),
        *(one(op, randint((2, 3), 1, 6), {"dtype": d, "axis": 1}, id=f"int32>{d}", dtype="int32", grads=False)
          for op in (*SUMS, "_npi_mean") for d in kinds),
        *(one(op, TRUTHS, {"dtype": d, "axis": 1}, id=f"bool>{d}", grads=False)
          for op in (*SUMS, "_npi_mean") for d in ("float32", "int32")),
        one("_np_sum", halves, {"dtype": "float64"}, id="gradient"),
        one("_npi_mean", halves, {"dtype": "float64", "axis": 1}, id="gradient"),
        one("_np_sum", values([1.0] * 3000), dtype="float16", id="long", grads=False),
        *(one(op, values([[1, 2, 4], [3, 3, 3]]), {"axis": 1, "dtype": "float32"}, dtype="int32", id="int32>float32",
              grads=False, differs="MXNet truncates the mean of integers", expected=lambda x, f=f: both(f(x["a"], 1)))
          for op, f in zip(SPREADS, (np.std, np.var), strict=True)),
        *(one(op, values([[1, 5], [3, 3]]), {"axis": 1}, dtype=d, grads=False) for op in SPREADS for d in DTYPES[2:4]),
        *(one(op, X, {"ddof": n, "axis": (0, 1)}) for op in SPREADS for n in (1, 2)),
    ]  # fmt: skip


def empty() -> list[Case]:
    """More in tests/test_numpy_values.py: MXNet fails where nothing is left, and then in what follows."""
    none = (0, 3)
    return [
        one("_np_sum", none, id="empty"),
        *(one(op, none, p, id="empty") for op in EXTREMES for p in ({}, {"axis": 0})),
        *(one(op, none, p, id="empty", grads=False) for op in TESTS for p in ({}, {"axis": 0})),
    ]  # fmt: skip


def corners() -> list[Case]:
    return [
        *(one(op, TIES, {"axis": 1}, id="ties") for op in (*EXTREMES, *ARGS)),
        *(one(op, NANS, {"axis": 1}, id="nan", grads=False) for op in (*SUMS, *EXTREMES, "_npi_mean", *SPREADS)),
        *(one(op, NANS, {"axis": 0}, id="nan", grads=False) for op in TESTS),
        one("_np_prod", values([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]), {"axis": 1}, id="zeros",
            differs="MXNet divides by the zeros", expected=prod_grad),
        *(one(op, values([[1.0, 2.0], [3.0, 4.0]]), {"axis": 1, "initial": 2.5}, better=True, grads=False,
              expected=lambda x, f=f: both(f(x["a"], axis=1, initial=2.5)))
          for op, f in (("_np_sum", np.sum), ("_np_prod", np.prod), ("_np_max", np.max), ("_np_min", np.min))),
        one("_npi_mean", X, {"initial": 1.0}),
        *(one(n, X, {"axis": 1}, id="alias") for n in ("_np_product", "_np_amax", "_np_amin")),
        op_case("_np_sometrue", {"data": X}, {"axis": 1}, id="alias", np_shape=True),
    ]  # fmt: skip


def prod_grad(x: dict[str, np.ndarray]) -> dict[str, Any]:
    head = fill("_np_prod-zeros", "head0", uniform((2,), -1.5, 1.5), "float32")
    return {"grad:a": np.array([[np.prod(np.delete(r, i)) for i in range(3)] for r in x["a"]]) * head[:, None]}


def args() -> list[Case]:
    return [
        *(one(op, X, p) for op in ARGS for p in (
            {}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"keepdims": True}, {"axis": 3}, {"axis": "None"})),
        *(one(op, randint((3, 4), 0, 9), {"axis": 1}, dtype=d, grads=False) for op in ARGS for d in DTYPES),
        *(one(op, (0, 3), {"axis": 1}, id="empty") for op in ARGS),
    ]  # fmt: skip


def averages() -> list[Case]:
    op, w, along, known = "_npi_average", uniform((2, 3, 4), 0.5, 2), uniform((3,), 0.5, 2), ("a", "weights")
    return [
        *(case(op, {"a": X, "weights": w}, p, infer_from=known) for p in ({}, {"axis": 1}, {"axis": (0, -1)})),
        *(case(op, {"a": X, "weights": v}, {"axis": 1, "returned": True}, outputs=2, id=i, grads=["a"],
               infer_from=known)  # MXNet drops the second output's gradient
          for v, i in ((w, "whole"), (along, "along"))),
        *(case(op, {"a": X, "weights": along}, p, id=f"along{i}", infer_from=known)
          for i, p in enumerate(({"axis": -2}, {}, {"axis": 2}, {"axis": (0, 1)}))),
        *(case(op, {"a": X}, {"weighted": False, **p}) for p in ({}, {"axis": 1}, {"axis": (0, 2)})),
        case(op, {"a": X}, {"weighted": False, "axis": 1, "returned": True}, outputs=2),
        *(case(op, {"a": X, "weights": w}, {"axis": 1}, dtype=d, rtol=r, infer_from=known)
          for d, r in (("float64", 1e-6), ("float16", 6e-3))),
        case(op, {"a": randint((2, 3), 0, 9), "weights": randint((2, 3), 1, 4)}, {"axis": 1}, dtype="int32",
             grads=False, infer_from=known),
        case(op, {"a": X, "weights": along}, {"axis": 1}, grad_req="add", infer_from=known),
    ]  # fmt: skip


HOW = ("linear", "lower", "higher", "midpoint", "nearest")


def percentiles() -> list[Case]:
    op, known = "_npi_percentile", ("a", "q")
    q = values([0.0, 12.5, 40.0, 100.0])
    return [
        *(case(op, {"a": X, "q": q}, {"axis": 1, "interpolation": how}, infer_from=known) for how in HOW),
        *(case(op, {"a": X, "q": q}, {**p, "axis": a}, infer_from=known)
          for p in ({}, {"keepdims": True}) for a in ((0, 2), -1, "None")),
        case(op, {"a": X, "q": values(30.0)}, {"axis": 1, "keepdims": True}, infer_from=known, id="scalar"),
        *(case(op, {"a": X}, {"q_scalar": 37.5, "axis": 1, "interpolation": how}) for how in HOW),
        *(case(op, {"a": X}, {"q_scalar": 50.0, **p}) for p in ({}, {"axis": (0, 1), "keepdims": True})),
        *(case(op, {"a": randint((3, 4), 0, 20), "q": values([20.0, 80.0], dtype=t)}, {"axis": 1}, dtype=d,
               id=f"q {t}", grads=False, infer_from=known, rtol=4e-3 if d == "float16" else None)
          for d, t in (("float64", "float32"), ("float16", "float32"), ("int32", "int32"), ("uint8", "float64"))),
        case(op, {"a": X}, {"q_scalar": 130.0}), case(op, {"a": X, "q": (2, 2)}, infer_from=known),
        case(op, {"a": NANS}, {"q_scalar": 30.0, "axis": 1}, id="nan", differs="MXNet sorts NaN anywhere",
             expected=lambda x: both(np.percentile(x["a"], 30, axis=1))),
    ]  # fmt: skip


def counts() -> list[Case]:
    op, data = "_npi_bincount", values([0, 2, 2, 5])

    def counted(x: dict[str, np.ndarray]) -> dict[str, Any]:
        return both(np.bincount(x["data"], x.get("weights"), 4))

    fault = {"differs": "MXNet's executor leaves the length open and gives nothing", "expected": counted}
    return [
        *(case(op, {"data": data}, {"minlength": 4}, dtype=d, grads=False, **fault)
          for d in ("int32", "int64", "uint8")),
        case(op, {"data": data, "weights": values([0.5, 1.0, 2.0, -1.0], dtype="float32")},
             {"minlength": 4, "has_weights": True}, dtype="int32", grads=False, infer_from=("data", "weights"),
             **fault),
        case(op, {"data": (3,)}, grads=False),
    ]  # fmt: skip


CASES: list[Case] = [*shapes(), *typed(), *empty(), *corners(), *args(), *averages(), *percentiles(), *counts()]
