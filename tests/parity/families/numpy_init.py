"""Cases of the arrays that numpy operators make: constants, ranges, windows, grids, triangles."""

from __future__ import annotations

from typing import Any

from tests.parity.arrays import randint, values
from tests.parity.case import Case, graph_case, graph_json, op_case

KINDS = ("float64", "float16", "int32", "int64", "int8", "uint8")


def made(op: str, params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case of an op without inputs."""
    return op_case(op, {}, params, np_shape=True, **options)


def case(op: str, inputs: dict[str, Any], params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case under numpy semantics."""
    return op_case(op, inputs, params, np_shape=True, **options)


def constants() -> list[Case]:
    ops = ("_npi_zeros", "_npi_ones")
    filled = graph_json([("x",), ("c", "_npi_ones", {"shape": (-1, 3)}, []), ("y", "elemwise_add", {}, ["x", "c"])],
                        ["y"])
    return [
        *(made(op, p) for op in ops for p in (
            {}, {"shape": 3}, {"shape": (2, 3)}, {"shape": (2, 0)}, {"shape": "()", "dtype": "int32"},
            {"shape": (-1, 3)}, {"shape": (2,), "ctx": "cpu(0)"})),
        *(made(op, {"shape": (2,), "dtype": d}) for op in ops for d in (*KINDS, "bool")),
        graph_case("filled", filled, {"x": (2, 3)}, np_shape=True),
        *(made("_npi_identity", p) for p in (
            {"shape": (3, 3)}, {"shape": (0, 0)}, {"shape": (2, 2), "dtype": "bool"},
            {"shape": (2, 2), "ctx": "cpu(0)"}, {"shape": (1, 1), "dtype": "float16"})),
        *(made("_npi_full", p) for p in ({"shape": "()", "value": 2.5}, {"shape": (0, 2), "value": 1})),
        *(made("_npi_eye", p) for p in (
            {"N": 3}, {"N": 3, "M": 2, "k": 1}, {"N": 2, "M": "None", "k": -1}, {"N": 0}, {"N": 2, "M": 0},
            {"N": 2, "k": 5, "ctx": "cpu(0)"}, {"M": 3}, *({"N": 2, "dtype": d} for d in KINDS))),
    ]  # fmt: skip


def likes() -> list[Case]:
    op = "_npi_full_like"
    return [
        case(op, {"a": (2, 3)}, {"fill_value": 2.5}), case(op, {"a": ()}, {"fill_value": -1, "ctx": "cpu(0)"}),
        case(op, {"a": (0, 3)}, {"fill_value": 1}), case(op, {"a": (2,)}),
        *(case(op, {"a": randint((2,))}, {"fill_value": 2.5}, dtype=d, grads=False) for d in KINDS),
        *(case(op, {"a": (2,)}, {"fill_value": 2.5, "dtype": d}) for d in (*KINDS, "bool")),
    ]  # fmt: skip


def ranges() -> list[Case]:
    return [
        *(made("_npi_arange", p) for p in (
            {"start": 0, "stop": 5}, {"start": 5}, {"start": 5, "stop": 0}, {"start": 5, "stop": 0, "step": -1.5},
            {"start": 1, "stop": 2, "step": 0.25, "dtype": "float64"}, {"start": 0.5, "stop": 3.2, "dtype": "int32"},
            {"start": 0, "stop": "None", "step": 2}, {"start": 0, "stop": 5, "infer_range": True},
            {"start": 0, "step": 0, "stop": 3}, {"start": 0, "stop": 4, "repeat": 2}, {"start": 2, "ctx": "cpu(0)"},
            *({"start": 1, "stop": 4, "dtype": d} for d in KINDS))),
        *(made("_npi_logspace", p, rtol=3e-6 if "float64" in str(p) else None) for p in (
            {"start": 0, "stop": 2, "num": 3}, {"start": 0, "stop": 2, "num": 3, "endpoint": False, "base": 2.0},
            {"start": 0, "stop": 2, "num": 0}, {"start": 1, "stop": 2, "num": 1}, {"start": 0, "stop": -1, "num": 4},
            {"start": 0, "stop": 2, "num": 5, "dtype": "int32", "ctx": "cpu(0)"},
            {"start": 0, "stop": 2, "num": -1}, *({"start": 0, "stop": 1.5, "num": 4, "dtype": d} for d in KINDS[:2]))),
        *(made("_npi_indices", p) for p in (
            {"dimensions": (2, 3)}, {"dimensions": (2, 0)}, {"dimensions": "()"}, {"dimensions": (4,), "ctx": "cpu(0)"},
            *({"dimensions": (1, 2, 2), "dtype": d} for d in KINDS))),
    ]  # fmt: skip


def windows() -> list[Case]:
    ops = ("_npi_hanning", "_npi_hamming", "_npi_blackman")
    return [
        *(made(op, {"M": m}) for op in ops for m in (1, 2, 5, 0, -1)), *(made(op) for op in ops),
        *(made(op, {"M": 6, "dtype": d, "ctx": "cpu(0)"}, rtol=1e-5 if d == "float64" else None)
          for op in ops for d in ("float64", "float16")),
    ]  # fmt: skip


def others() -> list[Case]:
    tril, diagonal, stretch = "_npi_tril", "_npi_diag_indices_from", "_npi_broadcast_to"
    return [
        *(case(tril, {"data": s}, {"k": k}, id=f"{len(s)}d{k}") for s in ((3, 4), (2, 4, 3), (3,)) for k in (-1, 0, 2)),
        case(tril, {"data": (2, 2)}), case(tril, {"data": (0, 3)}, id="empty"),
        case(tril, {"data": values(1.0)}, id="scalar"), case(tril, {"data": (3, 3)}, grad_req="add"),
        *(case(tril, {"data": randint((3, 3))}, dtype=d, grads=d.startswith("float")) for d in KINDS),
        *(case(diagonal, {"data": s}, id=f"{len(s)}d{s[-1]}", grads=False)
          for s in ((3, 3), (2, 2, 2), (3,), (2, 3), (0, 0))),
        case(diagonal, {"data": randint((2, 2))}, dtype="int32", grads=False),
        *(case(stretch, {"array": s}, {"shape": p}, id=f"{s}{p}".replace(" ", ""))
          for p, s in (((2, 3), (3,)), ((2, 3), (1,)), ("()", ()), ((2, 2), ()), ((0, 3), (3,)), ((-1, 3), (2, 1)),
                       ((-2, 3), (2, 1)), ((2, 3), (2,)), ((2, 3, -2), (4,)), ((2, 0), (1,)), ((3,), (2, 3)),
                       ((2, 2, 3), (2, 1, 3)))),
        *(case(stretch, {"array": randint((1, 2))}, {"shape": (3, 2)}, dtype=d, grads=d.startswith("float"))
          for d in KINDS),
        case(stretch, {"array": (2, 1)}, {"shape": (2, 3)}, grad_req="add"),
    ]  # fmt: skip


CASES: list[Case] = [*constants(), *likes(), *ranges(), *windows(), *others()]
