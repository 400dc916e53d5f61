"""`symjax summary`: nodes, operators, shapes and parameters."""

from __future__ import annotations

import math
from typing import Any

import click

from symjax.cli._source import Source, model_options
from symjax.cli._state import State, format_option, output_option


@click.command("summary")
@model_options
@format_option("text", "json")
@output_option
@click.pass_obj
def command(state: State, source: Source, format_: str, output: str | None) -> int:
    """List the nodes of MODEL with operator, output shape, dtype and parameters, and the totals.

    Shapes follow from the parameters and from --shape; what stays unknown shows as "?".
    """
    from symjax.cli._model import open_model

    model = open_model(source, state, allow_unknown=True)
    found = summarize(model, source)
    if format_ == "json":
        state.emit_json(found, output)
    else:
        state.emit(as_text(state, found), output)
    for problem in found["problems"]:
        state.error(problem)
    return 1 if found["problems"] else 0


def summarize(model: Any, source: Source) -> dict[str, Any]:
    """The rows and totals of a model, as JSON has them."""
    from symjax.cli._model import infer, parameter_nodes
    from symjax.cli._table import json_shape
    from symjax.lowering.infer import is_complete
    from symjax.sparse.storage import infer_storage

    shapes, types = infer(model, source)
    storage = infer_storage(model.graph)
    weights = parameter_nodes(model)
    counted: set[Any] = set()
    rows = []
    for node in model.graph.nodes:
        if node in weights:
            continue
        own = [e.node for e in node.inputs if e.node in weights and e.node not in counted]
        counted.update(own)
        known = [shapes.values[v][0] for v in own]
        outs = range(node.num_visible)
        rows.append({
            "name": node.name, "operator": node.op.name if node.op else None,
            "inputs": [e.node.name for e in node.inputs if e.node not in weights],
            "shapes": [json_shape(shapes.values[node][i]) for i in outs],
            "dtypes": [types.values[node][i] or "float32" for i in outs],
            "storage": list(storage.values[node][: node.num_visible]),
            "dense_copies": storage.fallback_bytes(node, shapes.values, types.values)
            if node in storage.fallbacks else None,
            "parameters": sum(math.prod(s or ()) for s in known) if all(map(is_complete, known)) else None,
        })  # fmt: skip
    return {"model": model.label, "params": model.params_file, "nodes": rows, **_totals(model, shapes, types, weights),
            "problems": [*types.problems, *shapes.problems]}  # fmt: skip


def _totals(model: Any, shapes: Any, types: Any, weights: set[Any]) -> dict[str, Any]:
    from symjax.lowering.infer import is_complete

    counts = {"parameters": 0, "auxiliary": 0, "bytes": 0, "of_unknown_shape": 0}
    for v in weights:
        shape = shapes.values[v][0]
        if not is_complete(shape):
            counts["of_unknown_shape"] += 1
            continue
        n = math.prod(shape)
        counts["parameters"] += n
        counts["auxiliary"] += n if v in model.graph.aux_nodes else 0
        counts["bytes"] += n * _item_size(types.values[v][0])
    return {"totals": counts}


def _item_size(dtype: str | None) -> int:
    import ml_dtypes
    import numpy as np

    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype or "float32").itemsize


def as_text(state: State, found: dict[str, Any]) -> str:
    """The table and the totals."""
    from symjax.cli._table import dims, number, size, table

    def shape_text(row: dict[str, Any]) -> str:
        shapes = row["shapes"]
        text = ", ".join(dims(s) for s in shapes[:3])
        return text if len(shapes) <= 3 else f"{text}, … ({len(shapes)})"

    rows = [[r["name"], r["operator"] or "(input)", shape_text(r), r["dtypes"][0] if r["dtypes"] else "",
             "?" if r["parameters"] is None else number(r["parameters"]) if r["parameters"] else ""]
            for r in found["nodes"]]  # fmt: skip
    header, right = ["node", "operator", "output", "dtype", "parameters"], 4
    if any(s != "default" for r in found["nodes"] for s in r["storage"]):
        header, right = [*header[:4], "storage", header[4]], 5
        rows = [[*cells[:4], ", ".join(dict.fromkeys(r["storage"])), cells[4]]
                for cells, r in zip(rows, found["nodes"], strict=True)]  # fmt: skip
    copies = [f"{r['name']} ({r['operator']}) makes its sparse inputs dense: {size(r['dense_copies'])}"
              for r in found["nodes"] if r["dense_copies"] is not None]  # fmt: skip
    t = found["totals"]
    total = f"{number(t['parameters'])} parameters ({size(t['bytes'])})"
    if t["auxiliary"]:
        total += f", {number(t['auxiliary'])} of them in auxiliary states"
    if t["of_unknown_shape"]:
        total += f"; {t['of_unknown_shape']} arrays of unknown shape: give --shape or --params"
    ops = sum(r["operator"] is not None for r in found["nodes"])
    return (table(state, header, rows, right=[right])
            + "".join(f"\n{c}" for c in ["", *copies] if copies)
            + f"\n\n{found['model']}: {ops} operator nodes, {total}")  # fmt: skip
