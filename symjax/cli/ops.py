"""`symjax ops`: the operators that symjax has."""

from __future__ import annotations

import fnmatch
from typing import Any

import click
from click.shell_completion import CompletionItem

from symjax.cli._state import Problem, State, common_options, format_option, output_option


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from symjax.lowering import registry

    return [CompletionItem(n) for n in registry.all_names() if n.lower().startswith(incomplete.lower())]


@click.command("ops")
@click.argument("pattern", required=False, shell_complete=_complete)
@format_option("text", "json", "md")
@output_option
@common_options
@click.pass_obj
def command(state: State, pattern: str | None, format_: str, output: str | None) -> None:
    """List the operators, those with PATTERN in their name or an alias, or explain the one of that name.

    A PATTERN may hold * and ?; capital letters do not matter unless it is a whole name. With --format md, the page of
    all operators.
    """
    from symjax.cli import _ops_page
    from symjax.lowering import registry

    if format_ == "md":
        if pattern:
            raise Problem("--format md is a page of all operators: leave the pattern out")
        state.emit(_ops_page.markdown().rstrip("\n"), output)
        return

    one = registry.find(pattern) if pattern else None
    if one is not None:
        text = describe(state, one)
        found: Any = to_json(one)
    else:
        ops = [op for op in registry.all_ops() if _matches(op, pattern)]
        if not ops:
            from symjax.lowering.errors import did_you_mean

            raise Problem(f"no operator matches {pattern!r}.{did_you_mean(pattern or '', registry.all_names())}")
        found = [to_json(op) for op in ops]
        text = _list(state, ops) if pattern else f"{_ops_page.coverage()}\n\n{_list(state, ops)}"
    if format_ == "json":
        state.emit_json(found, output)
    else:
        state.emit(text, output)


def _matches(op: Any, pattern: str | None) -> bool:
    if not pattern:
        return True
    low = pattern.lower()
    glob = low if any(c in low for c in "*?[") else f"*{low}*"
    return any(fnmatch.fnmatchcase(n.lower(), glob) for n in (op.name, *op.aliases))


def to_json(op: Any) -> dict[str, Any]:
    """An operator as JSON: names, inputs, outputs, parameters with type, default and documentation, and `facts`."""
    from symjax._op_functions import inputs_of
    from symjax.cli._ops_page import facts
    from symjax.lowering.params import to_text, type_name

    ins = inputs_of(op)
    parameters = [{"name": n, "type": type_name(s.type), "required": s.required,
                   "default": None if s.required else to_text(s.default), "doc": s.field.doc}
                  for n, s in op.params.__specs__.items()]  # fmt: skip
    return {"name": op.name, "aliases": list(op.aliases), "inputs": list(ins.names), "variable_inputs": ins.variadic,
            "auxiliary_states": _aux(op), "outputs": _outputs(op), "parameters": parameters, "loss": op.is_loss is True,
            "host": op.host, "origin": op.origin or "MXNet", **facts(op), "doc": op.doc}  # fmt: skip


def _aux(op: Any) -> list[str]:
    try:
        return list(op.aux_names(op.params()))
    except TypeError:  # required parameters decide about the states
        return []


def _outputs(op: Any) -> list[str] | None:
    try:
        return list(op.output_names(op.params()))
    except TypeError:  # required parameters decide about the outputs
        return None


def _list(state: State, ops: list[Any]) -> str:
    from symjax.cli._table import table

    rows = [[op.name, ", ".join(op.aliases), _marks(op) + op.doc.split("\n")[0]] for op in ops]
    return table(state, ["operator", "aliases", "what it does"], rows) + f"\n\n{len(ops)} operators"


def _marks(op: Any) -> str:
    """"[BMXNet, host] ": whose operator it is if not MXNet's, and whether it runs on the host."""
    marks = [m for m in (op.origin, "host" if op.host else "") if m]
    return f"[{', '.join(marks)}] " if marks else ""


def describe(state: State, op: Any) -> str:
    """One operator, at length."""
    from symjax._op_functions import place
    from symjax.cli._ops_page import lines as fact_lines

    found = to_json(op)
    inputs = f"*{found['variable_inputs']}" if found["variable_inputs"] else ", ".join(found["inputs"]) or "none"
    lines = [state.paint(op.name, bold=True), "", *op.doc.splitlines(), "", f"Inputs: {inputs}"]
    if found["auxiliary_states"]:
        lines.append(f"Auxiliary states: {', '.join(found['auxiliary_states'])}")
    if found["outputs"]:
        lines.append(f"Outputs: {', '.join(found['outputs'])}")
    if op.origin:
        lines.append(f"Not an operator of MXNet: it is {op.origin}'s")
    if op.host:
        lines.append("Runs on the host: a graph with it needs Python beside the device, and cannot be exported")
    if op.aliases:
        lines.append(f"Aliases: {', '.join(op.aliases)}")
    lines += [f"{title}: {text}" for title, text in fact_lines(found)]
    places = [p for p in map(place, (op.name, *op.aliases)) if p is not None]
    calls = dict.fromkeys(
        f"mx.sym.{p.name}" if p.namespace == "op" else f"mx.sym.{p.namespace}.{p.name}" for p in places
    )
    if calls:
        lines.append(f"Call it as: {', '.join(calls)}")
    if found["parameters"]:
        lines += ["", "Parameters:"]
    for n, spec in op.params.__specs__.items():
        lines.append(f"  {state.paint(n, bold=True)}: {spec.describe()}")
        if spec.field.doc:
            lines.append(f"      {spec.field.doc}")
    return "\n".join(lines)
