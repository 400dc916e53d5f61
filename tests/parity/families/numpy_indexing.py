"""Inserting, deleting, searching and masks under numpy semantics.

In a symbol MXNet has no result where the shape depends on values, nor for what works in place: there numpy's is meant.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.parity.arrays import Array, randint, uniform, values
from tests.parity.case import Case, op_case

NP: dict[str, Any] = {"np_shape": True, "grads": False}
DTYPES = ("float16", "float64", "int8", "uint8", "int32", "int64")
A = (2, 3)


def both(f: Callable[[dict[str, np.ndarray]], Any]) -> Callable[[dict[str, np.ndarray]], dict[str, Any]]:
    """A formula of the one output, in both modes."""
    return lambda x: {"out0": f(x), "train0": f(x)}


def insert(kind: str, params: dict, given: Array | tuple[int, ...] | None = None, obj: Array | None = None,
           arr: Array | tuple[int, ...] = A, **options: Any) -> Case:  # fmt: skip
    """A case of an insert operator."""
    inputs = {"arr": arr, **({} if given is None else {"values": given}), **({} if obj is None else {"obj": obj})}
    shapes = "".join(str(getattr(s, "shape", s)) for s in (arr, given) if s is not None)
    label = f"{shapes},{'' if obj is None else obj.args['values']}{params}".replace(" ", "").replace("'", "")
    return op_case(f"_npi_insert_{kind}", inputs, params, id=label, infer_from=tuple(inputs), **{**NP, **options})


def numpys(params: dict, where: Any) -> Callable[[dict[str, np.ndarray]], dict[str, Any]]:
    """What numpy inserts."""
    numpy: Any = np
    return both(lambda x: numpy.insert(x["arr"], where, x.get("values", params.get("val")), params.get("axis")))


def index(*v: int) -> Array:
    """Indices."""
    return values(list(v), dtype="int64")


SLICES: list[dict[str, Any]] = [
    {"start": 1, "axis": 1}, {"start": 0, "stop": 2, "axis": 1}, {"stop": 3, "step": 2, "axis": 1},
    {"step": -1, "axis": 1}, {"start": 0, "stop": 1, "axis": 0}, {"stop": 0, "axis": 1}, {"start": 2},
]  # fmt: skip


def as_slice(p: dict[str, Any]) -> slice:
    """The slice of the parameters."""
    return slice(p.get("start"), p.get("stop"), p.get("step"))


inserting = [
    *(insert("scalar", {"int_ind": i, "val": 7.5, **({} if a is None else {"axis": a})}) for i, a in [
        (1, None), (-1, None), (6, None), (3, 0), (-3, 0), (1, 2)]),
    *(insert("scalar", {"int_ind": i, "val": 7, "axis": a}, better=True, expected=numpys({"val": 7, "axis": a}, i))
      for i, a in [(-1, 0), (2, 0), (0, 0), (3, 1), (1, 1)]),  # MXNet stumbles over shapes of its own
    *(insert("scalar", {"int_ind": 1, "axis": 1}, s, arr=a) for a, s in [
        (A, (2,)), (A, (2, 1)), (A, (2, 2)), ((2, 2, 3), (2, 3)), ((2, 2, 3), (3,)), ((2, 2, 3), (2, 1, 3)),
        ((2, 2, 3), (2, 2, 3)), (A, ()), (A, (2, 2, 2))]),
    *(insert("scalar", {"int_ind": 1, "axis": 0}, s) for s in [(2, 3), (3,), (), (1, 3)]),
    insert("scalar", {"int_ind": 1}, (2,)), insert("scalar", {"int_ind": 1, "axis": 2}, (2, 2), arr=(2, 2, 3)),
    insert("scalar", {"int_ind": 1}, values([9, 8], dtype="int32")),
    insert("scalar", {"int_ind": 1}, values([9.5, 8.0], dtype="float32"), arr=randint(A), dtype="int32"),
    *(insert("scalar", {"int_ind": 1, "val": 7.5}, arr=randint((2,)), dtype=t) for t in DTYPES),
    insert("scalar", {"int_ind": 0, "val": 7.5}, arr=()),
    *(insert("slice", {**p, "val": 7}, better=True, expected=numpys({**p, "val": 7}, as_slice(p))) for p in SLICES),
    *(insert("slice", {"start": 0, "stop": 2, "axis": 1, "step": 1}, s) for s in [(2, 2), (2, 1), (2,)]),
    insert("slice", {"step": -1, "axis": 1}, (2, 3)), insert("slice", {"start": 0, "stop": 2, "step": 1}, (2,)),
    insert("slice", {"start": 0, "stop": 2, "axis": 1}, (2, 2), better=True,  # MXNet fails without a step
           expected=numpys({"axis": 1}, slice(0, 2))),
    insert("slice", {"start": 0, "stop": 1, "axis": 1}, (2, 2), better=True,
           expected=numpys({"axis": 1}, slice(0, 1))),
    # MXNet: it crashes, or takes the number for an array of another type.
    *(insert("tensor", {"val": 7.5, "axis": 1}, None, index(*o), dtype=t, better=True,
             expected=numpys({"val": 7.5, "axis": 1}, list(o)))
      for o in [(0, 2), (2, 0), (1, 1), (-1, 0), (3, 3), (1,)] for t in ("float32", "float64")),
    insert("tensor", {"val": 7.5}, None, index(1, 5), better=True, expected=numpys({"val": 7.5}, [1, 5])),
    *(insert("tensor", {"axis": 1}, s, index(2, 0)) for s in [(2, 2), (2,), (2, 1)]),
    *(insert("tensor", {"axis": 1}, s, index(1)) for s in [(2, 2), (2,), (2, 1)]),
    insert("tensor", {"axis": 1}, (2, 2), values(1, dtype="int64")), insert("tensor", {}, (2,), index(2, 0)),
    *(insert("tensor", {"axis": 0}, s, index(2, 0)) for s in [(2, 3), (3,), ()]),
]  # fmt: skip


def dynamic(op: str, inputs: dict[str, Any], params: dict, f: Any, outputs: int = 1, **options: Any) -> Case:
    """A case whose shape depends on values, of which MXNet's symbol gives nothing but empty arrays."""
    label = "".join(str(getattr(v, "args", v)) for v in inputs.values()) + str(params)
    return op_case(op, inputs, params, id="".join(c for c in label if c not in " '{}\"").replace("values:", ""), **{
        **NP, "infers_more": True, "differs": "MXNet's symbol returns an empty array", "outputs": outputs,
        "infer_from": tuple(inputs), "expected": f, **options})


def uniques(params: dict[str, Any]) -> Callable[[dict[str, np.ndarray]], dict[str, Any]]:
    """numpy's unique, as int64 vectors after the values."""

    numpy: Any = np

    def run(x: dict[str, np.ndarray]) -> dict[str, Any]:
        data = x["data"].reshape(x["data"].shape or (1,))
        found = numpy.unique(data, **{k: bool(v) if k != "axis" else v for k, v in params.items()})
        found = found if isinstance(found, tuple) else (found,)
        return {f"{m}{i}": v if i == 0 else v.reshape(-1) for m in ("out", "train") for i, v in enumerate(found)}

    return run


ALL = {"return_index": True, "return_inverse": True, "return_counts": True}
searching = [
    *(dynamic("_npi_delete", {"arr": A}, {**p, "axis": a}, both(lambda x, w=w, a=a: np.delete(x["arr"], w, a)))
      for p, w, a in [({"int_ind": 1}, 1, 1), ({"int_ind": -1}, -1, 0), ({"int_ind": 4}, 4, None),
                      ({"step": 2}, slice(None, None, 2), 1), ({"step": -1}, slice(None, None, -1), 1)]),
    *(dynamic("_npi_delete", {"arr": A}, {**p, "axis": 1}, both(lambda x, w=w: np.delete(x["arr"], w, 1)), better=True,
              differs="") for p, w in [({"start": 1}, slice(1, None)), ({"start": 0, "stop": 2}, slice(0, 2)),
                                       ({"start": 2, "stop": 1}, slice(2, 1))]),
    *(dynamic("_npi_delete", {"arr": A, "obj": o}, {"axis": a}, both(lambda x, a=a: np.delete(
        x["arr"], x["obj"].astype(int), a))) for o, a in [
        (index(1), 1), (index(0, 2), 1), (index(2, 0), 1), (index(1, 1), 1), (index(-1, 0), 1), (index(1, 3), None),
        (values(1, dtype="int64"), 1), (values([1.0, 0.0], dtype="float32"), 1), (index(1), 0)]),
    op_case("_npi_delete", {"arr": A}, {"int_ind": 5, "axis": 1}, **NP),
    *(dynamic("_npi_delete", {"arr": randint((3,))}, {"int_ind": 1}, both(lambda x: np.delete(x["arr"], 1)), dtype=t)
      for t in DTYPES),
    *(dynamic("_npi_unique", {"data": d}, p, uniques(p), 1 + sum(v is True for v in p.values())) for d, p in [
        (values([3, 1, 3, 2]), {}), (values([3, 1, 3, 2]), ALL), (values([[3, 1], [3, 2]]), ALL),
        (values([[3, 1], [3, 1], [1, 2]]), {**ALL, "axis": 0}), (values([[3, 1, 3], [3, 1, 3]]), {"axis": 1}),
        (values([[3, 1, 3], [3, 1, 3]]), {"axis": -1}), (values(3), {}), (values([3, 1, 3]), {"return_counts": True}),
        (values([3, 1, 3]), {"return_inverse": True}), (values([3, 1, 3]), {"return_index": True})]),
    *(dynamic("_npi_unique", {"data": values([3, 1, 3])}, {}, uniques({}), dtype=t) for t in DTYPES),
    op_case("_npi_unique", {"data": (2,)}, {"axis": 5}, **NP),
    *(dynamic("_npx_nonzero", {"x": d}, {}, both(lambda x: np.argwhere(x["x"].reshape(x["x"].shape or (1,)))), dtype=t)
      for d in (values([[1, 0], [0, 2]]), values([1, 0]), values(1), values(0), values([[0, 0]]))
      for t in ("float32", "int32", "bool")),
    dynamic("_npi_nonzero", {"x": values([0, 3, 4])}, {}, both(lambda x: np.argwhere(x["x"]))),
]  # fmt: skip


def masked(kind: str, data: Any, mask: Array, axis: int, value: Any = None, **options: Any) -> Case:
    """A case of an assignment under a mask, which MXNet makes in place alone."""

    def f(x: dict[str, np.ndarray]) -> np.ndarray:
        out = x["data"].copy()
        out[(slice(None),) * axis + (x["mask"] != 0,)] = x.get("value", 9.5)
        return out

    inputs = {"data": data, "mask": mask, **({} if value is None else {"value": value})}
    params = {"start_axis": axis, **({"value": 9.5} if value is None else {})}
    label = f"{data}{mask.args['values']}{axis}{getattr(value, 'shape', value) or ''}"
    return op_case(f"_npi_boolean_mask_assign_{kind}", inputs, params, better=True, expected=both(f),
                   id="".join(c for c in label if c not in " '{}").replace("Array", ""), infer_from=tuple(inputs),
                   **{**NP, **options})  # fmt: skip


B, M = values([1, 0], dtype="bool"), values([[1, 0, 1], [0, 1, 0]], dtype="bool")
C, Q = values([1, 0, 1], dtype="bool"), values([[1, 1], [0, 1]], dtype="bool")
masks = [
    *(masked("scalar", d, m, a) for d, m, a in [(A, B, 0), (A, M, 0), (A, C, 1), ((2, 2, 2), Q, 1)]),
    masked("scalar", A, values([2, 0], dtype="float32"), 0), masked("scalar", A, values([1, 0], dtype="int32"), 0),
    *(masked("scalar", randint((2,)), B, 0, dtype=t) for t in DTYPES),
    op_case("_npi_boolean_mask_assign_scalar", {"data": A, "mask": C}, {"value": 1, "start_axis": 0}, id="bad", **NP,
            infer_from=("data", "mask")),
    *(masked("tensor", d, m, a, v) for d, m, a, v in [
        (A, B, 0, (3,)), (A, B, 0, (1, 3)), (A, B, 0, (1,)), (A, B, 0, ()), (A, M, 0, (3,)), (A, M, 0, (1,)),
        (A, C, 1, (2,)), (A, C, 1, (2, 2)), (A, C, 1, (2, 1)), ((2, 2, 2), Q, 0, (3, 2)), ((2, 2, 2), Q, 0, (2,)),
        ((2, 2, 2), B, 1, (2, 1, 2)), ((2, 2, 2), Q, 1, (2, 3)), (A, values([0, 0], dtype="bool"), 0, (1,)),
        (A, values([0, 0], dtype="bool"), 0, (0, 3))]),
    *(masked("tensor", randint((2,)), B, 0, randint((1,)), dtype=t) for t in DTYPES),
    op_case("_npi_boolean_mask_assign_tensor", {"data": A, "mask": C, "value": (1,)}, {"start_axis": 0}, id="bad", **NP,
            infer_from=("data", "mask", "value")),
    op_case("_npi_boolean_mask_assign_tensor", {"data": A, "mask": B, "value": values([1], dtype="int32")},
            {"start_axis": 0}, id="types", **NP, infer_from=("data", "mask", "value")),
    op_case("_npi_share_memory", {"a": A, "b": A}, infer_from=("a", "b"), **NP),
    op_case("_npi_share_memory", {"a": (1,), "b": uniform((2,), dtype="float64")}, id="other",
            infer_from=("a", "b"), **NP),
    *(op_case("_npx_constraint_check", {"input": v}, p, dtype="bool", id=f"{i}{len(p)}", **NP) for i, v in [
        ("one_false", values([1, 0])), ("true", values([1, 1])), ("scalar", values(1)), ("matrix", values([[1]]))]
      for p in ({}, {"msg": "oops"})),
    op_case("_npx_constraint_check", {"input": (2,)}, id="floats", **NP),
]  # fmt: skip

CASES: list[Case] = [*inserting, *searching, *masks]
