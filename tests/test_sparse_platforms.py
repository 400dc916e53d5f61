"""Every storage rule, and gradients of touched rows, lower for every platform on a machine that has the CPU alone."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import jax
import jax.export
import numpy as np
import pytest

import symjax as mx
from symjax.lowering import registry
from symjax.lowering.compile import Program
from symjax.lowering.errors import MXNetError
from symjax.lowering.graph import Graph
from symjax.lowering.row_gradients import plan_gradients
from symjax.sparse import CSR, RowSparse
from symjax.sparse.rules import decide, rules, stype_of
from symjax.sparse.storage import infer_storage
from tests.parity.storage import families
from tests.parity.storage.case import DEFAULT, StorageCase

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
UNTRACEABLE = {n for n in rules() if registry.get(n).eager}


def container(name: str, value: Any) -> Any:
    if value.stype == DEFAULT:
        return value.dense(name)
    kind: Any = CSR if value.stype == "csr" else RowSparse
    return kind.from_host(*value.parts(name), value.shape)


def by_rule() -> dict[str, list[StorageCase]]:
    """The first case that uses each storage rule of an op, by op; ops that no case uses have none."""
    found: dict[str, list[StorageCase]] = defaultdict(list)
    used: set[int] = set()
    for module in pkgutil.iter_modules(families.__path__):
        for case in importlib.import_module(f"{families.__name__}.{module.name}").CASES:
            if len(case.nodes) == 1:
                node = mx.sym.load_json(case.json())._graph.outputs[0].node
                assert node.op is not None
                try:
                    rule = decide(node.op, node.params, tuple(v.stype for v in case.inputs.values()))
                except MXNetError:  # a case of parameters that are refused
                    continue
                if rule is not None and rule.rule is not None and id(rule) not in used:
                    used.add(id(rule))
                    found[node.op.name].append(case)
    return found


CASES = by_rule()


def program(case: StorageCase, platform: str | None) -> tuple[Graph, Program, tuple[Any, ...], tuple[Any, ...]]:
    graph = mx.sym.load_json(case.json())._graph
    values = [container(n.name, case.inputs[n.name]) for n in graph.arguments]
    aux = [container(n.name, case.inputs[n.name]) for n in graph.aux_states]
    return graph, Program(graph, {}, platform), tuple(values), tuple(aux)


def export(fn: Any, platforms: Sequence[str], *args: Any) -> None:
    with jax.enable_x64(True):
        jax.export.export(jax.jit(fn), platforms=tuple(platforms))(*args)


def test_every_op_with_a_rule_has_a_case() -> None:
    """Rules that refuse a combination, and those of ops that depend on values, have nothing to lower."""
    lowered = {n for n, found in rules().items() if any(r.rule is not None for r in found)} - UNTRACEABLE
    assert sorted(lowered - set(CASES)) == ["_contrib_dgl_adjacency", "_contrib_edge_id"]  # tests/test_dgl_ops.py


@pytest.mark.parametrize("op", sorted(set(CASES) - UNTRACEABLE))
def test_rules_lower_for_every_platform(op: str) -> None:
    for case in CASES[op]:
        for platform, platforms in ((None, PLATFORMS), ("cpu", ("cpu",))):
            _, made, args, aux = program(case, platform)
            export(lambda a, x, made=made: made.fn(a, x, None, True)[0], platforms, args, aux)


@pytest.mark.parametrize("op", ["dot", "Embedding", "_contrib_SparseEmbedding", "square", "_square_sum", "add_n"])
@pytest.mark.filterwarnings("ignore::symjax.lowering.errors.StorageFallbackWarning")
def test_gradients_lower_for_every_platform(op: str) -> None:
    """With the rows that a batch touches found in the compiled function, as it is off the CPU."""
    for case in CASES[op]:
        graph, made, args, aux = program(case, None)
        storage = infer_storage(graph, {n: stype_of(v) for n, v in zip(graph.arguments, args, strict=True)})
        wrt = tuple(i for i, a in enumerate(args) if np.issubdtype(a.dtype, np.floating))
        plans = plan_gradients(storage, storage.gradients([graph.arguments[i] for i in wrt]))
        step = made.step(wrt, (False,) * len(wrt), True, plans)
        export(lambda a, x, step=step, wrt=wrt: step._fused(a, x, None, None, [None] * len(wrt)), PLATFORMS, args, aux)
