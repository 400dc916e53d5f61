"""What a parity case is, and how to write one. Imports neither symjax nor mxnet: both sides read it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.parity.arrays import Array, default_array, uniform

Expected = Callable[[dict[str, np.ndarray]], dict[str, Any]]
ArrayLike = Array | tuple[int, ...] | None


@dataclass(frozen=True)
class Case:
    """One graph with inputs, run by MXNet and by symjax.

    Attributes:
        id: unique within the family; seeds the arrays.
        json: symbol JSON, the same text on both sides.
        inputs: recipe of each argument and auxiliary state (shape None: the inferred shape).
        dtype: dtype of recipes that have none.
        grads: arguments to differentiate; empty: no backward pass.
        grad_req: "write", or "add": two passes accumulate into given initial gradients.
        head: "fill": a cotangent for each output; "none": ``backward()`` alone (loss heads).
        infer: extra shape queries, each {argument: shape}, run as infer_shape_partial.
        infer_from: arguments whose shape and dtype are given to the first, partial query (default: the first input).
        backend: "native" (MXNET_MKLDNN_ENABLED=0) or "onednn".
        np_shape: run under numpy shape semantics (empty arrays, zero-dimensional arrays).
        random: outputs depend on a random stream; shapes and dtypes alone are compared.
        rtol: tolerance in place of the dtype's.
        atol: the same, as a factor of the array's scale.
        differs: a documented fault of MXNet; `expected` then replaces the recorded arrays it names.
        better: MXNet fails or crashes on this case and symjax must run it.
        infers_more: MXNet leaves shapes unknown that symjax infers; the others must agree.
        expected: maps inputs {name: array} to {"out0" | "train0" | "grad:x" | "aux:x" | "aux_predict:x": array}.
    """

    id: str
    json: str
    inputs: Mapping[str, Array]
    dtype: str = "float32"
    grads: tuple[str, ...] = ()
    grad_req: str = "write"
    head: str = "fill"
    infer: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    infer_from: tuple[str, ...] = ()
    backend: str = "native"
    np_shape: bool = False
    random: bool = False
    rtol: float | None = None
    atol: float | None = None
    differs: str = ""
    better: bool = False
    infers_more: bool = False
    expected: Expected | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.differs and self.expected is None:
            raise ValueError(f"case {self.id}: differs needs an expected formula")
        if self.expected is not None and not (self.differs or self.better):
            raise ValueError(f"case {self.id}: expected needs a documented reason (differs=) or better=True")
        if self.grad_req not in ("write", "add") or self.head not in ("fill", "none"):
            raise ValueError(f"case {self.id}: grad_req is write or add, head is fill or none")
        if self.backend not in ("native", "onednn"):
            raise ValueError(f"case {self.id}: backend is native or onednn")

    def plain(self) -> Case:
        """The case without what symjax may do differently: MXNet against itself."""
        return replace(self, better=False, differs="", expected=None)

    def spec(self) -> dict[str, Any]:
        """All that MXNet's results depend on, as JSON data."""
        return {
            "id": self.id, "json": self.json, "inputs": {k: a.spec() for k, a in self.inputs.items()},
            "dtype": self.dtype, "grads": list(self.grads), "grad_req": self.grad_req, "head": self.head,
            "infer": [{k: list(s) for k, s in q.items()} for q in self.infer], "infer_from": list(self.infer_from),
            "backend": self.backend, "np_shape": self.np_shape, "random": self.random,
        }  # fmt: skip

    def hash(self) -> str:
        """Changes when the recorded results may."""
        return hashlib.sha256(json.dumps(self.spec()).encode()).hexdigest()[:16]

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Case:
        """The case back from `spec` (without tolerances and formulas)."""
        arrays = {
            k: Array(a["kind"], None if a["shape"] is None else tuple(a["shape"]), a["dtype"], a["args"])
            for k, a in spec["inputs"].items()
        }
        return Case(**{
            **spec, "inputs": arrays, "grads": tuple(spec["grads"]), "infer_from": tuple(spec["infer_from"]),
            "infer": tuple({k: tuple(s) for k, s in q.items()} for q in spec["infer"]),
        })  # fmt: skip


def attr_text(value: Any) -> str:
    """A parameter's value as attribute text: str as it is, the rest as Python prints it."""
    return value if isinstance(value, str) else str(value)


def graph_json(nodes: Sequence[Sequence[Any]], heads: Sequence[str]) -> str:
    """Symbol JSON from a compact list of nodes.

    Args:
        nodes: ``("x",)`` or ``("x", {"__shape__": "(2, 3)"})`` is a variable;
            ``("name", "Op", {params}, ["x", "other:1"])`` an op, ``:1`` choosing an output.
        heads: outputs, written like inputs.
    """
    index: dict[str, int] = {}
    out: list[dict[str, Any]] = []
    for node in nodes:
        op, attrs, inputs = "null", node[1] if len(node) == 2 else {}, []
        if len(node) > 2:
            op, attrs, inputs = node[1:]
        entry: dict[str, Any] = {"op": op, "name": node[0]}
        if attrs:
            entry["attrs"] = {k: attr_text(v) for k, v in attrs.items()}
        entry["inputs"] = [_entry(index, i) for i in inputs]
        index[node[0]] = len(out)
        out.append(entry)
    return json.dumps({
        "nodes": out, "arg_nodes": [i for i, n in enumerate(out) if n["op"] == "null"],
        "heads": [_entry(index, h) for h in heads], "attrs": {"mxnet_version": ["int", 10901]},
    })  # fmt: skip


def _entry(index: Mapping[str, int], text: str) -> list[int]:
    name, _, output = text.partition(":")
    return [index[name], int(output or 0), 0]


def _recipes(inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
    return {
        k: default_array(k) if a is None else a if isinstance(a, Array) else uniform(tuple(a))
        for k, a in inputs.items()
    }


def _grad_names(grads: bool | Sequence[str], arrays: Mapping[str, Array], dtype: str) -> tuple[str, ...]:
    if not isinstance(grads, bool):
        return tuple(grads)
    if not grads:
        return ()
    return tuple(k for k, a in arrays.items() if (a.dtype or dtype).startswith(("float", "bfloat")))


def op_case(
    op: str,
    inputs: Mapping[str, ArrayLike],
    params: Mapping[str, Any] | None = None,
    *,
    id: str = "",
    aux: Mapping[str, ArrayLike] | None = None,
    outputs: int = 1,
    grads: bool | Sequence[str] = True,
    **options: Any,
) -> Case:
    """A case of one op.

    Args:
        op: registered name.
        inputs: argument name -> recipe, in the op's order; a bare shape is uniform(-1, 1), None takes the shape
            from inference.
        params: op parameters; written as attribute text.
        id: told from other cases of the op by this (default: the parameters' text).
        aux: auxiliary states, in the op's order, after the inputs.
        outputs: how many (visible) outputs the op has here.
        grads: True = every floating-point input; or names; False = none.
        **options: the other fields of `Case`.
    """
    params = dict(params or {})
    args, states = _recipes(inputs), _recipes(aux or {})
    names = [*args, *states]
    text = graph_json(
        [*((n,) for n in names), ("op", op, params, names)], [f"op:{i}" if i else "op" for i in range(outputs)]
    )
    dtype = options.get("dtype", "float32")
    label = id or ",".join(f"{k}={attr_text(v)}" for k, v in params.items()).replace(" ", "")
    parts = [op, label, "" if dtype == "float32" else dtype, "add" if options.get("grad_req") == "add" else ""]
    return Case(
        id="-".join(p for p in parts if p), json=text, inputs={**args, **states},
        grads=_grad_names(grads, args, dtype), **options,
    )  # fmt: skip


def graph_case(
    id: str, json_text: str, inputs: Mapping[str, ArrayLike], *, grads: bool | Sequence[str] = True, **options: Any
) -> Case:
    """A case of a whole graph; `inputs` names every argument and auxiliary state (grads=True wants no auxiliary)."""
    arrays = _recipes(inputs)
    return Case(id=id, json=json_text, inputs=arrays,
                grads=_grad_names(grads, arrays, options.get("dtype", "float32")), **options)  # fmt: skip
