"""Cases of numpy's norms, differences and polynomials, and of the gradients that graphs may hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.parity.arrays import fill, randint, signed, uniform, values
from tests.parity.case import Case, op_case

X = signed((2, 3), 0.3, 1.5)
KINDS = ("float64", "float16")
INTS = ("int32", "int64", "int8", "uint8")


def case(op: str, inputs: dict[str, Any], params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case under numpy semantics."""
    return op_case(op, inputs, params, np_shape=True, **options)


def norms() -> list[Case]:
    op, cube = "_npi_norm", signed((2, 3, 4), 0.3, 1.5)
    vectors = [{"ord": o, "axis": a, "flag": -1} for o in (0, 1, 2, 3, -1, 0.5) for a in ((1,), (-2,))]
    matrices = [{"ord": o, "axis": (0, 1), "flag": f} for o in (1, -1, 2, -2) for f in (0, -1)]
    return [
        *(case(op, {"data": X}, p) for p in vectors), *(case(op, {"data": X}, p, grads=False) for p in matrices),
        case(op, {"data": X}, grads=False), case(op, {"data": X}, {"ord": 2, "flag": 2}),
        *(case(op, {"data": a}, {"flag": -2, **p}, id=f"{i}")
          for i, (a, p) in enumerate(((X, {}), (cube, {"keepdims": True}), (values(-2.0), {})))),
        *(case(op, {"data": cube}, p, id=f"cube{i}", grads=p.get("flag") in (1, 2) or p.get("ord") == 3)
          for i, p in enumerate((
              {"ord": 1}, {"flag": 1, "axis": (0, 2)}, {"flag": 1, "axis": 1, "keepdims": True},
              {"ord": 2, "axis": (0, 1), "flag": 0, "keepdims": True}, {"ord": 2, "axis": (-2, -1), "flag": 2},
              {"ord": 3, "axis": (1,), "keepdims": True}, {"flag": 1, "axis": 3}))),
        *(case(op, {"data": X}, p, dtype=d, rtol=1e-4 if d == "float64" else 4e-3, grads=d == "float64")
          for d in KINDS for p in ({"flag": 1, "axis": 1}, {"ord": 1, "axis": 1})),
        case(op, {"data": values([[3, -2, 1], [1, 5, 1]])}, {"flag": 1, "axis": 1}, dtype="int32", grads=False),
        case(op, {"data": values([[0.0, 0.0]])}, {"flag": 1, "axis": 1}, id="zero"),
        case(op, {"data": (2, 0)}, {"flag": 1}, id="empty"),
        *(case(op, {"data": X}, {"ord": o, "axis": (0, 1), "flag": 0}, id=f"gradient{o}", expected=of_norm(o),
               differs="MXNet's gradients of matrix norms are wrong") for o in (1, 2)),
    ]  # fmt: skip


def of_norm(order: int) -> Callable[[dict[str, np.ndarray]], dict[str, Any]]:
    """The gradient of the largest column sum (1) or the largest singular value (2)."""

    def gradient(x: dict[str, np.ndarray]) -> dict[str, Any]:
        data = x["data"]
        sums = np.abs(data).sum(0)
        u, _, v = np.linalg.svd(data, full_matrices=False)
        slope = np.sign(data) * (sums == sums.max()) if order == 1 else np.outer(u[:, 0], v[0])
        return {"grad:data": slope * fill(f"_npi_norm-gradient{order}", "head0", uniform((), -1.5, 1.5), "float32")}

    return gradient


def differences() -> list[Case]:
    op = "_npi_diff"
    return [
        *(case(op, {"a": (3, 4)}, p) for p in (
            {}, {"n": 2}, {"n": 0}, {"axis": 0}, {"axis": -2, "n": 2}, {"n": 6}, {"axis": 2})),
        case(op, {"a": (4,)}, {"n": 3}), case(op, {"a": values(1.0)}, id="scalar"),
        case(op, {"a": (0, 3)}, id="empty"),
        *(case(op, {"a": randint((3, 4), 0, 20)}, {"n": 2}, dtype=d, grads=d.startswith("float"))
          for d in (*KINDS, *INTS[:3])),
        *flat(),
    ]  # fmt: skip


def flat() -> list[Case]:
    op, known, all_known = "_npi_ediff1d", ("input1", "input2"), ("input1", "input2", "input3")
    begin, end = {"to_begin_arr_given": True}, {"to_end_arr_given": True}
    return [
        *(case(op, {"input1": X}, p) for p in ({}, {"to_begin_scalar": 9}, {"to_end_scalar": 8.5},
                                               {"to_begin_scalar": 1.5, "to_end_scalar": -2})),
        case(op, {"input1": X, "input2": (2,)}, {**begin, "to_end_scalar": 0.5}, infer_from=known),
        case(op, {"input1": X, "input2": (2, 2)}, {**end, "to_begin_scalar": 0.5}, infer_from=known),
        case(op, {"input1": X, "input2": (2,), "input3": (1, 3)}, {**begin, **end}, infer_from=all_known),
        case(op, {"input1": X, "input2": (), "input3": (0,)}, {**begin, **end}, infer_from=all_known, id="odd"),
        case(op, {"input1": values(2.0)}, id="scalar"), case(op, {"input1": (0,)}, id="empty"),
        *(case(op, {"input1": randint((5,), 0, 9)}, {"to_end_scalar": 8.5}, dtype=d, grads=d.startswith("float"))
          for d in (*KINDS, *INTS[:3])),
        case(op, {"input1": X, "input2": randint((2,), dtype="int32")}, end, id="types", infer_from=known, grads=False),
    ]  # fmt: skip


def polynomials() -> list[Case]:
    op = "_npi_polyval"
    return [
        case(op, {"p": (4,), "x": (2, 3)}), case(op, {"p": (1,), "x": (3,)}, id="constant"),
        case(op, {"p": (3,), "x": values(1.5)}, id="scalar"), case(op, {"p": (0,), "x": (2,)}, id="none", grads=False),
        case(op, {"p": (3,), "x": (0, 2)}, id="empty"),
        case(op, {"p": (1, 3), "x": (3,)}, id="matrix", infer_from=("p", "x")),
        case(op, {"p": (3,), "x": (2, 2)}, grad_req="add"),
        *(case(op, {"p": (3,), "x": (4,)}, dtype=d, rtol=1e-5 if d == "float64" else 6e-3) for d in KINDS),
        *(case(op, {"p": randint((3,), 0, 3), "x": randint((4,), 0, 3)}, dtype=d, grads=False) for d in INTS),
        case(op, {"p": (3,), "x": randint((3,), dtype="int32")}, id="types", grads=False),
    ]  # fmt: skip


def both(*outputs: Any) -> dict[str, Any]:
    """The same expectation in both modes."""
    return {f"{k}{i}": v for k in ("out", "train") for i, v in enumerate(outputs)}


def gradients() -> list[Case]:
    """MXNet registers them as operators but cannot run them in a graph: it infers no shapes, or crashes."""

    def of_polyval(x: dict[str, np.ndarray]) -> dict[str, Any]:
        p, v, g = x["p"], x["x"], x["ograd"]
        return both(np.array([(g * v**k).sum() for k in (2, 1, 0)]), g * np.polyval(np.polyder(p), v))

    def of_ediff1d(x: dict[str, np.ndarray]) -> dict[str, Any]:
        g = x["ograd"]
        return both(np.array([-g[1], g[1] - g[2], g[2]]), g[3:])

    fault = "MXNet's executor gives nothing"
    return [
        case("_npi_backward_nan_to_num", {"ograd": (4,), "data": values([1.0, "nan", "inf", 2.0])}, {"nan": 1.0},
             grads=False, differs=fault, infer_from=("ograd", "data"), infers_more=True,
             expected=lambda x: both(np.where(np.isfinite(x["data"]), x["ograd"], 0))),
        case("_npi_backward_polyval", {"ograd": (4,), "p": (3,), "x": (4,)}, outputs=2, grads=False, better=True,
             expected=of_polyval),
        case("_npi_backward_ediff1d", {"ograd": (4,), "input1": (3,), "input2": uniform((1,))},
             {"to_end_arr_given": True, "to_begin_scalar": 1.0}, outputs=2, grads=False, differs=fault,
             infer_from=("ograd", "input1", "input2"), infers_more=True, expected=of_ediff1d),
    ]  # fmt: skip


CASES: list[Case] = [*norms(), *differences(), *polynomials(), *gradients()]
