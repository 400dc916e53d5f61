"""`symjax infer`: shapes and dtypes."""

from __future__ import annotations

from typing import Any

import click

from symjax.cli._source import Source, model_options
from symjax.cli._state import State, format_option, output_option

_KINDS = {"arguments": "argument", "outputs": "output", "auxiliary_states": "auxiliary"}


@click.command("infer")
@model_options
@format_option("text", "json")
@output_option
@click.pass_obj
def command(state: State, source: Source, format_: str, output: str | None) -> int:
    """Infer the shapes and dtypes of the arguments, outputs and auxiliary states of MODEL.

    The exit code is 1 if shapes contradict each other or some cannot be decided. float32 stands where nothing says
    another dtype.
    """
    from symjax.cli._model import entry, infer, open_model
    from symjax.cli._table import dims, json_shape, table
    from symjax.lowering.infer import is_complete

    model = open_model(source, state)
    shapes, types = infer(model, source)
    graph = model.graph
    parts = {
        "arguments": [(n.name, entry(n)) for n in graph.arguments],
        "outputs": [(e.output_name, e) for e in graph.outputs],
        "auxiliary_states": [(n.name, entry(n)) for n in graph.aux_states],
    }
    problems = [*types.problems, *shapes.problems]
    unknown = [name for part in parts.values() for name, e in part if not is_complete(shapes[e])]
    if format_ == "json":
        found: dict[str, Any] = {kind: [{"name": n, "shape": json_shape(shapes[e]), "dtype": types[e] or "float32"}
                                        for n, e in part] for kind, part in parts.items()}  # fmt: skip
        state.emit_json({"model": model.label, **found, "complete": not unknown, "problems": problems}, output)
    else:
        rows = [[_KINDS[kind], name, dims(shapes[e]), types[e] or "float32"]
                for kind, part in parts.items() for name, e in part]  # fmt: skip
        state.emit(table(state, ["kind", "name", "shape", "dtype"], rows), output)
    for problem in problems:
        state.error(problem)
    if unknown and not problems:
        state.error(f"shapes that cannot be decided: {', '.join(unknown)}. Give some with --shape NAME=DIMS.")
    return 1 if problems or unknown else 0
