"""For tests over the registry: MXNet's declarations, and every op as it stands in a parity case."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import jax
import jax.numpy as jnp
import numpy as np

from symjax import symbol
from symjax.lowering import infer, registry
from symjax.lowering.errors import MXNetError
from symjax.lowering.graph import Graph, Node
from symjax.lowering.params import Params, Spec, to_text
from symjax.lowering.registry import Op
from symjax.lowering.subgraph import subgraphs_of
from tests.parity import golden
from tests.parity.arrays import fill
from tests.parity.case import Case
from tests.parity.record import family_cases, family_names

OPERATORS = Path(__file__).resolve().parents[2] / "shared" / "mxnet-1.9.1" / "operators.json"

DYNAMIC = {o.name for o in registry.all_ops() if o.eager}
"""Ops whose result's shape depends on values: they refuse to be traced."""

Avals = tuple[jax.ShapeDtypeStruct, ...]


# ---- MXNet's declarations


@functools.cache
def mxnet_operators() -> dict[str, dict[str, Any]]:
    """MXNet's own list of operators by name; empty where the file is not there."""
    return {o["name"]: o for o in json.loads(OPERATORS.read_text())} if OPERATORS.exists() else {}


def own_ops() -> list[Op]:
    """The package's ops: none that tests register."""
    return [o for o in registry.all_ops() if (o.rule.__module__ or "").startswith("symjax.")]


def default_text(declared: str) -> str | None:
    """The default in a declaration like "int, optional, default='1'", as attribute text; None: there is none."""
    found = re.search(r"default=(.*)$", declared)
    return None if found is None else found[1].strip("'").replace("[", "(").replace("]", ")")


def enum_values(declared: str) -> set[str]:
    """The spellings in a declaration like "{None, 'csr', 'default'}, optional"; empty for other types."""
    found = re.match(r"\{([^}]*)\}", declared)
    return {v.strip().strip("'") for v in found[1].split(",")} if found else set()


def spellings(tp: Any) -> set[str]:
    """The texts that a Literal type, or an optional one, takes."""
    if tp is type(None):
        return {"None"}
    args = get_args(tp)
    if get_origin(tp) is Literal:
        return {to_text(a) for a in args}
    return set().union(*(spellings(a) for a in args)) if args else set()


def same_default(spec: Spec, text: str) -> bool:
    """Whether a default is MXNet's, which may be printed in single precision."""
    want, have = spec.read(text), spec.default
    flat_want, flat_have = (v if isinstance(v, tuple) else (v,) for v in (want, have))
    return len(flat_want) == len(flat_have) and all(
        np.float32(a) == np.float32(b) if isinstance(a, float) and b is not None else a == b
        for a, b in zip(flat_want, flat_have, strict=True))


# ---- ops in parity cases


@dataclass(frozen=True)
class Use:
    """An op with parameters and input types, met in a parity case that MXNet runs."""

    op: Op
    params: Params
    avals: Avals
    types: tuple[str | None, ...]
    out_shapes: tuple[tuple[int, ...], ...] | None
    subgraphs: tuple[Any, ...]
    case: Case
    only_op: bool

    def function(self, rule: Callable[..., Any] | None = None, train: bool = False) -> Callable[..., tuple[Any, ...]]:
        """(key data, inputs) -> outputs, as one traceable function."""
        asked: dict[str, Any] = {"train": train, "out_shapes": self.out_shapes, "subgraphs": self.subgraphs}

        def run(key: Any, *inputs: Any) -> tuple[Any, ...]:
            given = {k: v for k, v in asked.items() if k in self.op.asks}
            if "key" in self.op.asks:
                given["key"] = jax.random.wrap_key_data(key)
            out = (rule or self.op.rule)(self.params, *inputs, **given)
            return tuple(out) if isinstance(out, (tuple, list)) else (out,)

        return run

    def inputs(self) -> list[Any]:
        """The case's numbers for a graph that is this op alone; uniform ones otherwise."""
        if self.only_op:
            arrays = {k: fill(self.case.id, k, a, self.case.dtype, s.shape) for (k, a), s in
                      zip(self.case.inputs.items(), self.avals, strict=True)}  # fmt: skip
            return [jnp.asarray(v, s.dtype) for v, s in zip(arrays.values(), self.avals, strict=True)]
        draw = np.random.RandomState(0)
        return [jnp.asarray(draw.uniform(0.1, 1.0, s.shape)).astype(s.dtype) for s in self.avals]


KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)


def key_data() -> Any:
    """The data of a random key."""
    return jax.random.key_data(jax.random.key(7))


@functools.cache
def uses(limit: int = 3) -> dict[str, list[Use]]:
    """Appearances of every op in parity cases, about `limit` each; those of an op alone in its graph come first."""
    found: dict[str, list[Use]] = {}
    for family in family_names():
        known = golden.load(family)
        for case in family_cases(family):
            if case.better or known.get(case.id, {}).get("status") == "ok":
                for use in _uses_in(case, {k for k, v in found.items() if len(v) >= limit}):
                    found.setdefault(use.op.name, []).append(use)
    return {k: sorted(v, key=lambda u: not u.only_op) for k, v in found.items()}


def _uses_in(case: Case, enough: set[str]) -> Iterator[Use]:
    """The nodes of a case that runs, if one of its ops is not in `enough`."""
    try:
        graph = symbol.load_json(case.json).handle
        if any(n.op is not None and n.op.name not in enough for n in graph.nodes):
            yield from _uses_of(graph, case)
    except MXNetError:
        return  # a case of an error


def _uses_of(graph: Graph, case: Case) -> Iterator[Use]:
    if any(a.shape is None for a in case.inputs.values()):
        given = {v: case.inputs[v.name].shape for v in graph.inputs if v.name in case.inputs}
    else:
        given = {v: case.inputs[v.name].shape for v in graph.inputs}
    types = infer.infer_types(graph, {v: case.inputs[v.name].dtype or case.dtype for v in graph.inputs
                                      if v.name in case.inputs})  # fmt: skip
    shapes = infer.infer_shapes(graph, given, types)
    if types.problems or shapes.problems:
        return
    nodes = [n for n in graph.nodes if n.op is not None]
    for node in nodes:
        if (use := _use(node, shapes, types, case, len(nodes) == 1)) is not None:
            yield use


def _use(node: Node, shapes: Any, types: Any, case: Case, alone: bool) -> Use | None:
    ins, dtypes = [shapes[e] for e in node.inputs], [types[e] or "float32" for e in node.inputs]
    if any(s is None for s in ins):
        return None
    assert node.op is not None
    out_shapes = tuple(s for s in shapes.values[node] if s is not None) if "out_shapes" in node.op.asks else None
    avals = tuple(jax.ShapeDtypeStruct(s, jnp.dtype(d)) for s, d in zip(ins, dtypes, strict=True))
    order = [e.node.name for e in node.inputs]
    return Use(node.op, node.params, avals, tuple(types.values[node]), out_shapes, subgraphs_of(node), case,
               alone and order == list(case.inputs))  # fmt: skip
