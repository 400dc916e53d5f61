"""`symjax check`: are all operators of a model supported, and do its parameters fit?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import click

from symjax.cli._source import Source, model_options
from symjax.cli._state import State, clean, format_option, output_option


@dataclasses.dataclass
class _Use:
    """One operator of a model: how often it occurs, and what is known about it."""

    name: str
    count: int
    first: str
    supported: bool
    nearest: str | None


@click.command("check")
@model_options
@format_option("text", "json")
@output_option
@click.pass_obj
def command(state: State, source: Source, format_: str, output: str | None) -> int:
    """Count the operators of MODEL, tell which are supported, and check its parameters.

    With --params (or an EPOCH) missing, unexpected and misshapen parameters are reported; with --shape the shapes are
    inferred too. The exit code is 1 if anything is wrong.
    """
    from symjax.cli._model import read_text

    label, text, params_file = read_text(source, state)
    uses = list(_uses(text, label))
    problems, params = _examine(source, label, text, params_file)
    ok = not problems and all(u.supported for u in uses) and not any(params.get(k) for k in _MISFITS)
    if format_ == "json":
        state.emit_json({"model": label, "params": params_file and {"file": params_file, **params}, "ok": ok,
                         "nodes": sum(u.count for u in uses), "operators": [_row(u) for u in uses],
                         "problems": problems}, output)  # fmt: skip
    else:
        state.emit(_text(state, label, uses, problems, params, ok), output)
    return 0 if ok else 1


_MISFITS = {"missing": "missing from the file", "unexpected": "in the file, but not in the graph",
            "wrong_kind": "argument in one place, auxiliary state in the other"}  # fmt: skip


def _uses(text: str, label: str) -> Iterator[_Use]:
    """The operators of a text, read as JSON only: it works for a graph whose parameters are wrong as well."""
    from symjax.lowering import registry
    from symjax.lowering.errors import GraphFormatError
    from symjax.symbol import _json

    try:
        found = list(_op_rows(json.loads(text)))
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        _json.loads(text, source=label, allow_unknown=True)  # says what is wrong with it
        raise GraphFormatError(f"{label}: not a symbol") from None
    count: dict[str, int] = {}
    first: dict[str, str] = {}
    lacking: dict[str, bool] = {}
    for op, attrs, node in found:
        missing = registry.lacking(op, attrs)
        op = missing or op
        lacking[op] = missing is not None
        count[op] = count.get(op, 0) + 1
        first.setdefault(op, node)
    for op in sorted(count, key=lambda o: (-count[o], o)):
        known = not lacking[op]
        yield _Use(op, count[op], first[op], known, None if known else _nearest(op))


def _op_rows(doc: dict[str, Any]) -> Iterator[tuple[str, dict[str, str], str]]:
    waiting = [doc]
    while waiting:
        for row in waiting.pop()["nodes"]:
            if row["op"] != "null":
                attrs = {k: v for key in ("param", "attr", "attrs") for k, v in dict(row.get(key) or {}).items()}
                yield str(row["op"]), attrs, str(row["name"])
            waiting.extend(row.get("subgraphs", []))


def _nearest(op: str) -> str | None:
    """The registered name that is most like an unknown one; prefixes such as _contrib_ and _npi_ do not count."""
    import difflib

    from symjax.lowering import registry

    names: dict[str, str] = {}
    for name in registry.all_names():
        names.setdefault(_stem(name), name)
    near = difflib.get_close_matches(_stem(op), names, n=1, cutoff=0.7)
    return names[near[0]] if near else None


def _stem(name: str) -> str:
    for prefix in ("_contrib_", "_npi_", "_npx_", "_np_"):
        name = name.removeprefix(prefix)
    return name.strip("_").lower()


def _examine(source: Source, label: str, text: str, params_file: str | None) -> tuple[list[str], dict[str, list[str]]]:
    """Opens the graph and, where parameters or shapes are given, infers it: (problems, misfits of parameters)."""
    from symjax.cli._model import build_model, infer
    from symjax.lowering.errors import FileError, GraphFormatError, GraphParamError, MXNetError, ParamsFormatError

    try:
        model = build_model(label, text, params_file, allow_unknown=True)
        misfits = _misfits(model) if model.params_file else {}
        shapes, types = infer(model, source)
    except MXNetError as e:
        unreadable = isinstance(e, GraphFormatError | ParamsFormatError | FileError)
        if unreadable and not isinstance(e, GraphParamError):
            raise
        return [line for line in str(e).removeprefix(f"{label}: ").split("\n") if line], {}
    return [*types.problems, *shapes.problems], misfits


def _misfits(model: Any) -> dict[str, list[str]]:
    from symjax.cli._model import parameter_nodes

    names = [n.name for n in model.graph.inputs]
    aux = {n.name for n in model.graph.aux_states}
    wanted = parameter_nodes(model)
    return {
        "missing": [n.name for n in model.graph.inputs if n in wanted and n.name not in model.params],
        "unexpected": [n for n in model.params if n not in set(names)],
        "wrong_kind": [n for n in names if model.kinds.get(n) and (model.kinds[n] == "aux") != (n in aux)],
    }


def _row(use: _Use) -> dict[str, Any]:
    return {"name": use.name, "count": use.count, "first_node": use.first, "supported": use.supported,
            "nearest": use.nearest}  # fmt: skip


def _text(
    state: State, label: str, uses: list[_Use], problems: list[str], params: dict[str, list[str]], ok: bool
) -> str:
    from symjax.cli._table import table

    rows = [[u.name, str(u.count), "yes" if u.supported else "NO", u.nearest or "", u.first] for u in uses]
    parts = [table(state, ["operator", "count", "supported", "nearest", "first node"], rows, right=[1])]
    for key, meaning in _MISFITS.items():
        if params.get(key):
            parts.append(f"Parameters {meaning}: {clean(', '.join(params[key]))}")
    parts += map(clean, problems)
    missing = [u for u in uses if not u.supported]
    if missing:
        parts.append(f"{len(missing)} of {len(uses)} operators are not supported; register them with "
                     f"symjax.lowering.registry.op (Custom ones with mx.operator.register), or replace them."
                     )  # fmt: skip
    total = sum(u.count for u in uses)
    verdict = state.paint("good", fg="green") if ok else state.paint("not good", fg="red")
    return "\n\n".join([*parts, f"{label}: {total} operator nodes, {len(uses)} operators: {verdict}"])
