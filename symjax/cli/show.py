"""`symjax show`: the graph as text or picture."""

from __future__ import annotations

import os
from typing import Any

import click

from symjax.cli._source import Source, model_options
from symjax.cli._state import State, clean, format_option, output_option

_ENDINGS = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".dot": "dot", ".gv": "dot", ".json": "json"}


@click.command("show")
@model_options
@format_option("text", "svg", "mermaid", "dot", "json")
@output_option
@click.option(
    "--fold",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    metavar="N",
    help="Fold graphs of more than N operators by name prefix; 0 never folds. Not for text and json.",
)
@click.option("--all", "parameters", is_flag=True, help="Draw weights and auxiliary states too.")
@click.pass_context
def command(ctx: click.Context, source: Source, format_: str, output: str | None, fold: int,
            parameters: bool) -> None:  # fmt: skip
    """Show the graph of MODEL. The ending of --output decides the format where --format is not given.

    --format json is the symbol as MXNet 1.9.1 writes it, whatever generation it was read from.
    """
    from symjax.cli._model import infer, open_model
    from symjax.symbol import _json

    state: State = ctx.obj
    if output and ctx.get_parameter_source("format_") is click.core.ParameterSource.DEFAULT:
        format_ = _ENDINGS.get(os.path.splitext(output)[1].lower(), format_)
    model = open_model(source, state, allow_unknown=format_ != "json")
    if format_ == "json":
        state.emit(_json.dumps(model.graph), output)
        return
    shapes: Any = {}
    if source.shapes or source.dtypes or model.params or _declares(model.graph):
        found = infer(model, source)[0]
        shapes = found.values
        for problem in found.problems:
            state.note(f"Warning: {clean(problem)}")
    state.emit(_draw(format_, model.graph, shapes, fold, parameters), output)


def _declares(graph: Any) -> bool:
    return any("__shape__" in v.attrs for v in graph.inputs)


def _draw(format_: str, graph: Any, shapes: Any, fold: int, parameters: bool) -> str:
    if format_ == "text":
        return as_text(graph, shapes)
    if format_ == "svg":
        from symjax.symbol._svg import render

        return render(graph, shapes, fold=fold, parameters=parameters)
    from symjax.symbol._diagram import diagram

    picture = diagram(graph, fold=fold, parameters=parameters)
    return (as_mermaid if format_ == "mermaid" else as_dot)(picture, shapes)


def as_text(graph: Any, shapes: Any) -> str:
    """One line per node: `name = Op(inputs, parameters)  → shapes`."""
    from symjax.lowering.graph import is_hidden
    from symjax.symbol._diagram import dims

    lines = []
    for n in graph.nodes:
        known = [s for s in shapes.get(n, ())[: n.num_visible] if s is not None]
        tail = f"  → {', '.join(map(dims, known))}" if known else ""
        if n.op is None:
            lines.append(f"{n.name}: {'auxiliary state' if n in graph.aux_nodes else 'variable'}{tail}")
            continue
        inputs = [e.node.name if e.index == 0 else f"{e.node.name}[{e.index}]" for e in n.inputs]
        attrs = [f"{k}={v}" for k, v in sorted(n.attrs.items()) if not is_hidden(k)]
        lines.append(f"{n.name} = {n.op.name}({', '.join([*inputs, *attrs])}){tail}")
    lines.append(f"outputs: {', '.join(e.output_name for e in graph.outputs)}")
    return clean("\n".join(lines))


def _flow(shapes: Any, e: Any) -> str:
    from symjax.symbol._diagram import dims

    known = shapes.get(e.node)
    return dims(known[e.index]) if known and known[e.index] is not None else ""


def as_mermaid(picture: Any, shapes: Any) -> str:
    """A Mermaid flowchart."""
    lines = ["flowchart TD"]
    for i, box in enumerate(picture.boxes):
        text = _quoted(" ".join([box.title, box.detail]).strip(), box.name, "<br/>", _mermaid_escape)
        opening, closing = ("([", "])") if box.family in ("input", "output") else ("[", "]")
        lines.append(f'  n{i}{opening}"{text}"{closing}')
    for a, b, e in picture.edges:
        shape = _flow(shapes, e)
        lines.append(f"  n{a} -->|{shape}| n{b}" if shape else f"  n{a} --> n{b}")
    return "\n".join(lines)


def as_dot(picture: Any, shapes: Any) -> str:
    """A Graphviz digraph."""
    lines = ["digraph symbol {", '  node [shape=box, style="rounded", fontname="sans-serif", fontsize=11];']
    for i, box in enumerate(picture.boxes):
        text = _quoted(" ".join([box.title, box.detail]).strip(), box.name, "\\n", _dot_escape)
        lines.append(f'  n{i} [label="{text}"{", shape=oval" if box.family in ("input", "output") else ""}];')
    for a, b, e in picture.edges:
        lines.append(f'  n{a} -> n{b} [label="{_flow(shapes, e)}"];')
    return "\n".join([*lines, "}"])


def _quoted(title: str, name: str, newline: str, escape: Any) -> str:
    return escape(title) if name == title else f"{escape(title)}{newline}{escape(name)}"


def _mermaid_escape(text: str) -> str:
    return "".join(c if c.isalnum() or c in " _-.,×/=()…→" else f"#{ord(c)};" for c in text)


def _dot_escape(text: str) -> str:
    clean = "".join(c if c.isprintable() else "�" for c in text)
    return clean.replace("\\", "\\\\").replace('"', '\\"')
