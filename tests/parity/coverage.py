"""Which ops, parameters and enum values no case covers: ``python -m tests.parity.coverage [-k TEXT]``."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.parity.case import Case
from tests.parity.record import family_cases, family_names

# Parameters that choose an implementation, not a result.
SILENT = {"cudnn_off", "cudnn_tune", "workspace", "cudnn_algo_verbose", "cudnn_algo_fwd", "cudnn_algo_bwd_data",
          "cudnn_algo_bwd_filter", "cudnn_tensor_core", "ctx", "__layout__"}  # fmt: skip


def nodes(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Op nodes of a graph and of the graphs inside it."""
    for node in graph["nodes"]:
        if node["op"] != "null":
            yield node
        for inner in node.get("subgraphs", ()):
            yield from nodes(inner)


def used() -> dict[str, dict[str, set[str]]]:
    """{op's own name: {parameter: texts}} over all cases; "" holds the ids, "grad" those that differentiate."""
    from symjax.lowering import registry

    out: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for case in every_case():
        for node in nodes(json.loads(case.json)):
            op = registry.find(node["op"])
            entry = out[op.name if op else node["op"]]
            entry[""].add(case.id)
            if case.grads:
                entry["grad"].add(case.id)
            for key, text in (node.get("attrs") or node.get("attr") or node.get("param") or {}).items():
                entry[key].add(text)
    return out


def every_case() -> Iterator[Case]:
    """All cases of all families."""
    for family in family_names():
        yield from family_cases(family)


def uncovered() -> dict[str, list[str]]:
    """{op: what no case covers} for the package's own ops: the op itself, or its parameters."""
    from symjax.lowering import registry

    seen, out = used(), {}
    for op in registry.all_ops():
        if not (op.rule.__module__ or "").startswith("symjax."):
            continue  # registered by a test or a user
        if op.name not in seen:
            out[op.name] = ["no case"]
        elif lacking := sorted(set(op.params.__specs__) - set(seen[op.name]) - SILENT):
            out[op.name] = [f"parameter {p}" for p in lacking]
    return out


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.coverage", description=__doc__)
    parser.add_argument("-k", default="", metavar="TEXT", help="only ops whose name contains TEXT")
    args = parser.parse_args(argv)
    found = {k: v for k, v in uncovered().items() if args.k in k}
    for name, lacking in found.items():
        print(f"{name}: {', '.join(lacking)}")
    print(f"{len(found)} ops are not covered, or not with every parameter")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
