"""`make docs-ops`: what is known of each operator beyond its declaration, and the page made of it.

    python -m tests.record_ops [--ops a,b] [--measure]

The record (`symjax/cli/ops_record.json`, which `symjax ops` reads) holds MXNet's list of operators; by operator, the
number of parity cases and their known differences, the data types and storage types in them, and, where `--measure`
asks for it (minutes) or an operator is new, the platforms it lowers to and whether it has a gradient.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

from symjax.cli import _ops_page
from symjax.lowering.errors import MXNetError
from symjax.lowering.registry import Op
from symjax.sparse import rules
from tests.parity import golden
from tests.parity.coverage import nodes
from tests.parity.elsewhere import ELSEWHERE
from tests.parity.record import family_cases, family_names
from tests.registry_cases import DYNAMIC, KEY, Use, mxnet_operators, own_ops, uses

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "symjax" / "cli" / "ops_record.json"
PAGE = ROOT / "docs" / "operators.md"
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


# ---- from the parity cases and the rules, in seconds


@functools.cache
def parity() -> dict[str, dict[str, Any]]:
    """{op: counts of its cases, data types, reasons of differences} over all families."""
    from symjax.lowering import registry

    found: dict[str, dict[str, Any]] = defaultdict(lambda: {"cases": 0, "better": 0, "random": 0, "types": set(),
                                                            "differs": set()})
    for family in family_names():
        known = golden.load(family)
        for case in family_cases(family):
            ops = {op.name for n in nodes(json.loads(case.json)) if (op := registry.find(n["op"])) is not None}
            status = known.get(case.id, {}).get("status")
            for name in ops:
                entry = found[name]
                entry["cases"] += 1
                entry["better"] += case.better
                entry["random"] += case.random
                if case.differs and len(ops) == 1:
                    entry["differs"].add(case.differs)
                if status == "ok" or case.better:
                    entry["types"] |= {a.dtype or case.dtype for a in case.inputs.values()}
    return found


def storage(op: Op) -> list[str]:
    """What becomes of sparse inputs: "csr, default → csr" for each combination with a rule."""
    if op.name not in rules.rules():
        return []
    made: dict[str, None] = {}
    for use in uses().get(op.name, []) or [None]:
        try:
            params = op.params() if use is None else use.params
            n = 1 if use is None else len(use.avals)
            for stypes in itertools.product(rules.STYPES, repeat=n) if n <= 4 else ():
                rule = rules.decide(op, params, stypes)
                if rule is not None and rule.rule is not None:
                    made[f"{', '.join(stypes)} → {', '.join(rule.outs(op, params, stypes))}"] = None
        except (MXNetError, TypeError):
            continue
    return list(made)


def cheap(op: Op) -> dict[str, Any]:
    """What needs no operator to run."""
    entry = parity().get(op.name)
    out: dict[str, Any] = {}
    if entry is not None:
        out = {k: entry[k] for k in ("cases", "better", "random") if entry[k]}
        out |= {k: sorted(entry[k]) for k in ("types", "differs") if entry[k]}
    if op.name in ELSEWHERE:
        out["elsewhere"] = ELSEWHERE[op.name][0]
    if found := storage(op):
        out["storage"] = found
    return out


# ---- measured


def platforms(op: Op) -> list[str] | str:
    """Those that a use of the op lowers to; a word where that is no question or no case says how to use it."""
    if op.host:
        return "host"
    if op.name in DYNAMIC:
        return "by steps"
    for use in uses().get(op.name, [])[:1]:
        with jax.enable_x64(True):
            try:
                jax.export.export(jax.jit(use.function()), platforms=PLATFORMS)(KEY, *use.avals)
                return list(PLATFORMS)
            except Exception:
                return [p for p in PLATFORMS if _lowers(use, p)]
    return "unknown"


def _lowers(use: Use, platform: str) -> bool:
    try:
        jax.export.export(jax.jit(use.function()), platforms=(platform,))(KEY, *use.avals)
    except Exception:
        return False
    return True


def gradient(op: Op) -> str:
    """ "yes", "zero" or "none", by MXNet's recorded gradients; where they are zero, by tracing it in training."""
    if op.name in with_gradient():
        return "yes"
    if op.host or op.name in DYNAMIC:
        return "none"
    return next((_gradient(use) for use in uses().get(op.name, [])), "none")


@functools.cache
def with_gradient() -> set[str]:
    """The ops that have a case of their own in which a gradient is not zero."""
    from symjax.lowering import registry

    found = set()
    for family in family_names():
        known = golden.load(family)
        for case in family_cases(family):
            ops = list(nodes(json.loads(case.json)))
            arrays = known.get(case.id, {}).get("arrays", {})
            if len(ops) == 1 and (op := registry.find(ops[0]["op"])) is not None and not case.random and any(
                k.startswith("grad:") and np.any(a.data != 0) for k, a in arrays.items()
            ):
                found.add(op.name)
    return found


def _gradient(use: Use) -> str:
    """Whether the traced gradient depends on anything: the inputs, or what comes in from above."""
    wrt = [i for i, s in enumerate(use.avals) if np.issubdtype(s.dtype, np.floating)]

    def pulled(head: Any, key: Any, *inputs: Any) -> Any:
        def f(*diff: Any) -> Any:
            full = list(inputs)
            for i, v in zip(wrt, diff, strict=True):
                full[i] = v
            return [o for o in use.function(train=True)(key, *full) if np.issubdtype(o.dtype, np.floating)]

        outs, pull = jax.vjp(f, *(inputs[i] for i in wrt))
        return pull([jax.numpy.full(o.shape, head, o.dtype) for o in outs]) if outs else ()

    try:
        with jax.enable_x64(True):
            traced = jax.make_jaxpr(pulled)(1.0, KEY, *use.avals).jaxpr
    except Exception:
        return "none"
    if not wrt or not traced.outvars:
        return "none"
    live = set(map(id, traced.invars))
    for eqn in traced.eqns:
        if any(id(v) in live for v in eqn.invars):
            live |= set(map(id, eqn.outvars))
    return "yes" if any(id(v) in live for v in traced.outvars) else "zero"


# ---- the files


def record(old: dict[str, Any], measured: set[str]) -> dict[str, Any]:
    """The record anew; what is measured is taken from `old` for operators that are not in `measured`."""
    theirs = {n: sorted(o["aliases"]) for n, o in sorted(mxnet_operators().items())} or old["mxnet"]
    ops = {}
    for op in own_ops():
        known = old.get("ops", {}).get(op.name, {})
        made = cheap(op)
        if op.name in measured or "gradient" not in known:
            made |= {"platforms": platforms(op), "gradient": gradient(op)}
        else:
            made |= {"platforms": known["platforms"], "gradient": known["gradient"] or gradient(op)}
        ops[op.name] = made
    return {"mxnet": theirs, "ops": ops}


def text_of(made: dict[str, Any]) -> str:
    """JSON with a line an operator."""
    parts = []
    for key, part in made.items():
        rows = [f"{json.dumps(n)}: {json.dumps(v, ensure_ascii=False)}" for n, v in part.items()]
        parts.append(f'"{key}": {{\n' + ",\n".join(rows) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.record_ops", description=__doc__)
    parser.add_argument("--ops", default="", help="measure these again")
    parser.add_argument("--measure", action="store_true", help="measure all again")
    options = parser.parse_args()
    old = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    measured = {o.name for o in own_ops()} if options.measure else set(filter(None, options.ops.split(",")))
    RECORD.write_text(text_of(record(old, measured)))
    _ops_page.recorded.cache_clear()
    PAGE.write_text(_ops_page.markdown())
    print(f"{RECORD.relative_to(ROOT)} {RECORD.stat().st_size >> 10} KiB, "
          f"{PAGE.relative_to(ROOT)} {PAGE.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
