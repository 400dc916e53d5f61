"""Shapes, axes, diagonals, padding, joining and splitting under numpy semantics."""

from typing import Any

import numpy as np

from tests.parity.arrays import fill, randint, uniform, values
from tests.parity.case import Case, op_case

NP: dict[str, Any] = {"np_shape": True}
DTYPES = ("float16", "float64", "int8", "uint8", "int32", "int64")


def one(op: str, shape: tuple[int, ...], params: dict | None = None, *, arg: str = "a", **options: Any) -> Case:
    """A case of an op of one array; its shape is part of the id."""
    text = "x".join(map(str, shape)) or "scalar"
    label = ",".join(f"{k}={v}" for k, v in (params or {}).items()).replace(" ", "")
    recipe = randint(shape) if "int" in options.get("dtype", "") else shape
    return op_case(op, {arg: recipe}, params, id=options.pop("id", f"{text},{label}"), **{**NP, **options})


def many(op: str, shapes: list[tuple[int, ...]], params: dict | None = None, *, arg: str = "arg",
         **options: Any) -> Case:  # fmt: skip
    """A case of an op of several arrays."""
    text = "".join(map(str, shapes)).replace(" ", "")
    label = text + ",".join(f"{k}={v}" for k, v in (params or {}).items()).replace(" ", "")
    ints = "int" in options.get("dtype", "")
    inputs = {f"{arg}{i}": randint(s) if ints else s for i, s in enumerate(shapes)}
    return op_case(op, inputs, {"num_args": len(shapes), **(params or {})}, id=options.pop("id", label),
                   **{**NP, **options})  # fmt: skip


def head(case_id: str, shape: tuple[int, ...], i: int = 0) -> np.ndarray:
    """The cotangent of a case's output i."""
    return fill(case_id, f"head{i}", uniform(shape, -1.5, 1.5), "float32")


def start(case_id: str, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """What a gradient holds before two passes are added to it."""
    return fill(case_id, f"grad0:{name}", uniform(shape), "float32")


def padded(x: np.ndarray, widths: Any) -> dict[str, Any]:
    """What numpy pads to."""
    return {"out0": np.pad(x, widths), "train0": np.pad(x, widths)}


RESHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3), (3, -1)), ((1,), ()), ((2, 3), (6,)), ((0, 4), (0, 3)), ((0, 3), (-1, 3)), ((), (1, 1)),
    ((2, 3), (4,)), ((2, 3), (-2,)), ((2, 3), (0, -1)), ((0, 3), (-1, 0)), ((2, 3), (-1, -1)),
]  # fmt: skip
CODES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3), (-1,)), ((2, 3, 4), (-2, -1)), ((1, 3, 4), (-3, -1)), ((1, 3, 4), (-3, -4)), ((1, 3, 4), (-4,)),
    ((2, 3, 4), (-5, -2)), ((2, 3, 4), (-2, -5)), ((2, 3), (-6, 1, 2, -4)), ((2, 3), (-6, -1, 1, -2)),
    ((2, 3, 4), (-1, -5)), ((0,), (0,)), ((2, 3, 1, 2), (-5, -4)), ((1, 1), ()), ((4, 2, 3), (-2, 2, -1)),
    ((8, 1, 2, 2), (-6, 2, -1, -3, -5)), ((0, 3), (-4,)), ((2, 3), (-2, -4)),
    ((2, 3), (-3, -1)), ((4, 6), (-4, 2, 3)), ((4,), (-6, -1, -1)), ((2,), (-7,)), ((3, 4), (-4, -1, 2)),
    ((0, 3), (-2, -1)), ((2, 3), (-2, -2, -2)), ((2, 3), (-5, -2)),
]  # fmt: skip
REVERSED: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3, 4), (-1, -2)), ((2, 3, 4), (-4, -5)), ((2, 3, 4), (-5, -2)), ((2, 4, 1), (-4, -3)),
    ((2, 3, 4), (3, -1, -2)), ((2, 3, 4), (-2, -4)), ((4, 3), (2, 2, -6, -2)), ((3, 4), (-2, 2, -1, -6)),
]  # fmt: skip

TURNED = "MXNet turns the gradient of an odd k the same way round as the data, not back"

reshaping = [
    *(one("_np_reshape", s, {"newshape": t}) for s, t in RESHAPES),
    *(one("_np_reshape", (2, 2), {"newshape": (4,)}, dtype=t) for t in DTYPES),
    one("_np_reshape", (2, 3), {"newshape": 6, "order": "C"}, grad_req="add", infer=[{"a": (0, 3)}, {"a": (-1, 3)}]),
    *(one("_npx_reshape", s, {"newshape": t}) for s, t in CODES),
    *(one("_npx_reshape", s, {"newshape": t, "reverse": True}) for s, t in REVERSED),
    # MXNet takes -6 only after its factors when it reads from the right.
    one("_npx_reshape", (4, 3), {"newshape": (-6, 2, 2, -2), "reverse": True}, better=True, grads=False),
    one("_npx_reshape", (2, 3), {"newshape": (3, 2), "order": "C"}, grad_req="add"),
    one("_npi_reshape", (2, 3), {"newshape": (-5,)}),
    *(one("_np_transpose", s, p) for s, p in [
        ((2, 3), {}), ((2, 3), {"axes": "None"}), ((2, 3, 1), {"axes": (1, 2, 0)}), ((2, 3), {"axes": (-1, 0)}),
        ((), {}), ((2, 0, 1), {}), ((2, 3), {"axes": ()}), ((2, 3), {"axes": (0, 0)}), ((2, 3), {"axes": (0,)})]),
    *(one("_np_transpose", (2, 3), dtype=t) for t in DTYPES),
    *(one("_np_moveaxis", s, {"source": a, "destination": b}) for s, a, b in [
        ((2, 3, 1), (0,), (-1,)), ((2, 3, 1), (0, 2), (1, 0)), ((2, 3, 4), (-1, 0), (0, -1)), ((2, 0), (0,), (1,)),
        ((2, 3), (0, 1), (0, 0)), ((2, 3), (0,), (0, 1)), ((2, 3), (2,), (0,)), ((2, 3), (), ())]),
    *(one("_np_squeeze", s, p) for s, p in [
        ((1, 1), {}), ((1, 1), {"axis": (0,)}), ((2, 1), {"axis": (-1,)}), ((2, 1), {"axis": ()}), ((2, 1), {}),
        ((1, 2, 1), {"axis": (0, 2)}), ((1, 0), {}), ((2, 1), {"axis": 0}), ((), {})]),
    *(one("_np_roll", s, p, arg="data") for s, p in [
        ((2, 3), {"shift": (1,)}), ((2, 3), {"shift": (1, 2), "axis": (0, 1)}), ((2, 3), {"shift": 1, "axis": (0, 1)}),
        ((2, 3), {"shift": -4, "axis": -1}), ((), {"shift": 1}), ((0, 2), {"shift": 1}), ((2, 3), {}),
        ((2, 3), {"shift": (1, 2), "axis": (0,)}), ((2, 3), {"shift": (1, 2)}), ((3,), {"shift": 1, "axis": (0, 0)}),
        ((2, 3), {"shift": 1, "axis": 3})]),
    *(one("_np_roll", (3,), {"shift": 1}, arg="data", dtype=t) for t in DTYPES),
    *(one("_npi_flip", s, {"axis": x}, arg="data") for s, x in [
        ((2, 3), (0,)), ((2, 3), (1, 0)), ((2, 3), ()), ((), ()), ((2, 3), (2,)), ((0, 2), (0,))]),
    one("_npi_flip", (2, 3), {"axis": (-1,)}, arg="data", better=True, grads=False),
    *(one("_npi_rot90", s, {"axes": x, "k": k}, arg="data", id=f"{x}{k}", differs=TURNED, expected=lambda d, x=x, k=k: {
        "grad:data": np.rot90(head(f"_npi_rot90-{x}{k}", np.rot90(d["data"], k, x).shape), -k, x)})
      for s, x, k in [((2, 3), (0, 1), 1), ((2, 3), (1, 0), 5), ((2, 3), (0, -1), -1), ((1, 2, 3), (1, 2), 3)]),
    *(one("_npi_rot90", s, p, arg="data") for s, p in [
        ((1, 2, 3), {"axes": (0, 2), "k": 2}), ((2, 3), {"axes": (0, 1), "k": 0}), ((2, 3), {}),
        ((2, 3), {"axes": (0, 0)}), ((1, 2, 3), {"axes": (0, 1, 2)})]),
]  # fmt: skip

diagonals = [
    *(one("_np_diag", s, {"k": k}, arg="data") for s, k in [
        ((3,), 0), ((3,), 1), ((3,), -2), ((3, 2), 0), ((3, 2), -1), ((2, 3), 1), ((3, 2), 5), ((3, 3, 2), 0)]),
    *(one("_np_diagflat", s, {"k": k}, arg="data") for s, k in [((2, 2), 1), ((3,), 0), ((2, 1), -1)]),
    one("_np_diagflat", (), {}, arg="data", better=True, grads=False),
    *(one(op, s, {"offset": k, "axis1": a, "axis2": b}, arg="data") for op in ("_np_diagonal", "_np_trace")
      for s, k, a, b in [((3, 3), 1, 0, 1), ((2, 2, 3), 0, 1, 2), ((2, 2, 3), -1, 2, 0), ((2, 2, 3), 0, -1, 0),
                         ((3, 3), 9, 0, 1), ((3,), 0, 0, 1), ((2, 2, 3), 0, 1, 1)]),
    *(one(op, (2, 2), arg="data", dtype=t) for op in ("_np_diagonal", "_np_trace", "_np_diag") for t in DTYPES),
    one("_np_trace", (3, 3), arg="data", grad_req="add", id="x",
        differs="MXNet overwrites the gradient off the diagonal",
        expected=lambda d: {"grad:data": start("_np_trace-x-add", "data", (3, 3))
                            + 2 * head("_np_trace-x-add", ()) * np.eye(3)}),
]  # fmt: skip

WIDTHS = ((1, 2), (0, 1))
padding = [
    *(one("_npi_pad", (2, 3), {"pad_width": WIDTHS, "mode": m, "constant_value": 5}, arg="data", grads=m == "constant")
      for m in ("constant", "edge", "maximum", "minimum", "reflect", "symmetric")),
    one("_npi_pad", (2, 3), {"pad_width": ((1, 1), (3, 4)), "mode": "reflect"}, arg="data", grads=False),
    one("_npi_pad", (2, 3), {"pad_width": ((3, 1), (4, 7)), "mode": "symmetric"}, arg="data", grads=False),
    one("_npi_pad", (1, 2), {"pad_width": ((1, 2), (1, 1)), "mode": "reflect"}, arg="data", grads=False),
    one("_npi_pad", (2, 3, 2), {"pad_width": ((1, 1), (0, 2), (1, 0)), "mode": "reflect"}, arg="data", grads=False),
    one("_npi_pad", (2,), {"pad_width": (1, 2)}, arg="data"),
    one("_npi_pad", (3,), {"pad_width": ((1, 2),)}, arg="data", grads=False, better=True,
        expected=lambda x: padded(x["data"], (1, 2))),
    one("_npi_pad", (2, 2), {"pad_width": (1, 1)}, arg="data"),
    *(one("_npi_pad", (2, 2), {"pad_width": ((1, 1), (0, 1)), "constant_value": 1.7}, arg="data", dtype=t)
      for t in DTYPES),
    *(one("_npi_pad", (2, 2), {"pad_width": ((1, 1), (0, 1)), "mode": m}, arg="data", dtype=t, grads=False)
      for t in DTYPES for m in ("maximum", "minimum", "edge")),
    one("_npi_pad", (0, 2), {"pad_width": ((1, 1), (0, 0))}, arg="data"),
    one("_npi_pad", (2, 2), {"pad_width": ((0, 0), (0, 0))}, arg="data", grad_req="add"),
]  # fmt: skip

joining = [
    *(many("_npi_concatenate", s, {"axis": a}, arg="data", infer_from=[f"data{i}" for i in range(len(s))]) for s, a in [
        ([(2, 2), (1, 2)], 0), ([(2, 2), (2, 1)], -1), ([(0, 2), (1, 2)], 0),
        ([(2, 2), (1, 3)], 0), ([(2,), (2, 2)], 0), ([(2, 2)], 0), ([(), ()], 0)]),
    many("_npi_concatenate", [(2, 2), (2, 2)], arg="data", grad_req="add", infer_from=["data0", "data1"]),
    *(many("_npi_concatenate", [(2,), (1,)], arg="data", dtype=t, infer_from=["data0", "data1"]) for t in DTYPES),
    *(many("_npi_concatenate", s, {"axis": None}, arg="data", infer_from=["data0", "data1"]) for s in [
        [(4,), (3,)], [(2, 2), (1, 3)], [(), ()]]),
    *(many("_npi_stack", s, {"axis": a}, infer_from=("arg0", "arg1")) for s, a in [
        ([(2,), (2,)], 0), ([(2,), (2,)], -1), ([(), ()], 0), ([(2, 0), (2, 0)], 1), ([(2,), (3,)], 0),
        ([(2,), (2,)], 3)]),
    *(many(f"_npi_{n}", s, arg="arg" if n in ("vstack", "column_stack") else "data", infer_from=tuple(
        f"{'arg' if n in ('vstack', 'column_stack') else 'data'}{i}" for i in range(len(s))),
           infers_more=n in ("hstack", "dstack"))
      for n in ("hstack", "vstack", "dstack", "column_stack") for s in [
        [(2, 2), (2, 2)], [(2,), (2,)], [(), ()], [(2, 2, 1), (2, 2, 1)], [(2, 2)], [(2, 0), (2, 0)], [(2, 2), (3, 1)],
        [(2,), (3, 2)], [(2,), (2, 3)], [(2, 3), (2, 1)]]),
    many("_npi_hstack", [(2, 2), (2, 1)], {"dim": 0}, arg="data", infer_from=("data0", "data1"), infers_more=True),
    many("_npi_dstack", [(2, 2, 1), (2, 2, 2)], {"dim": 0}, arg="data", infer_from=("data0", "data1"),
         infers_more=True),
    *(many(f"_np_atleast_{n}d", s, arg="ary", outputs=len(s), infer_from=tuple(f"ary{i}" for i in range(len(s))),
           id=f"{s}".replace(" ", ""), differs="MXNet's gradient is zero", expected=lambda d, n=n, s=s: {
               f"grad:ary{i}": head(f"_np_atleast_{n}d-{s}".replace(" ", ""), t, i) for i, t in enumerate(s)})
      for n in (1, 2, 3) for s in [[()], [(2,), (2, 3)], [(2, 1, 2), (0,)]]),
]  # fmt: skip

splitting = [
    *(one(f"_npi_{op}", s, {"indices": i, **kw}, arg="data", outputs=kw.get("sections") or len(i))
      for op, s, i, kw in [
        ("hsplit", (2, 3), (0, 2), {}), ("hsplit", (3,), (0, 2), {}), ("hsplit", (2, 3), (0, 2), {"axis": 0}),
        ("hsplit", (2, 3), (), {"sections": 3}), ("hsplit", (2, 3), (), {"sections": 2}),
        ("hsplit", (2, 3), (0, 2, 2), {}),
        ("hsplit", (2, 2), (0, 1), {"squeeze_axis": True}), ("hsplit", (2, 3), (0, 5), {}), ("hsplit", (), (0, 2), {}),
        ("hsplit", (2, 3), (0, -1), {}), ("dsplit", (1, 2, 3), (0, 2), {"axis": 2}),
        ("dsplit", (1, 2, 3), (), {"sections": 3, "axis": 2}), ("dsplit", (2, 3), (0, 2), {"axis": 2}),
        ("dsplit", (2, 1, 2), (0, 1), {"axis": 2, "squeeze_axis": True})]),
    one("_npi_hsplit", (2, 3), {"indices": (0, 1)}, arg="data", outputs=2, grad_req="add", infer=[{"data": (-1, 3)}],
        id="x", differs="MXNet overwrites the gradient", expected=lambda d: {
            "grad:data": start("_npi_hsplit-x-add", "data", (2, 3)) + 2 * np.concatenate(
                [head("_npi_hsplit-x-add", (2, n), i) for i, n in enumerate((1, 2))], 1)}),
    # MXNet: it has no shape, and returns an empty array.
    op_case("_npi_hsplit_backward", {"grad0": (2, 2), "grad1": (2, 1)}, {"indices": (0, 2)}, grads=False, **NP,
            infers_more=True, differs="MXNet returns an empty array: the operator is meant for its own gradients",
            expected=lambda x: dict.fromkeys(("out0", "train0"), np.concatenate([x["grad0"], x["grad1"]], 1))),
    op_case("_npi_hsplit_backward", {"grad0": values([1, 2]), "grad1": values([3])}, {"indices": (), "sections": 2},
            grads=False, **NP, infers_more=True, differs="as above", dtype="float64",
            expected=lambda x: dict.fromkeys(("out0", "train0"), np.concatenate([x["grad0"], x["grad1"]]))),
]  # fmt: skip

CASES: list[Case] = [*reshaping, *diagonals, *padding, *joining, *splitting]
