"""Reading the model that a command names, and inferring its shapes and dtypes."""

from __future__ import annotations

import dataclasses
import glob
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import click
import numpy as np

from symjax.cli._source import Source
from symjax.cli._state import State, Unreadable
from symjax.lowering.errors import did_you_mean
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.infer import Inferred, infer_shapes, infer_types
from symjax.serialization import CSRRecord, RowSparseRecord, read_params
from symjax.symbol import _json, _roles
from symjax.symbol._infer import dtype_name

_SYMBOL = "-symbol.json"


@dataclasses.dataclass
class Model:
    """An open model.

    Attributes:
      label: what to call it in messages.
      text: its JSON text.
      graph: its graph; may hold unknown operators.
      params_file: where the parameters come from, None if none were named.
      params: the arrays of that file by name (sparse records as they are).
      kinds: "arg", "aux" or "" (no prefix in the file) by name.
    """

    label: str
    text: str
    graph: Graph
    params_file: str | None
    params: dict[str, Any]
    kinds: dict[str, str]


def open_model(source: Source, state: State, *, allow_unknown: bool = False) -> Model:
    """Reads the symbol and, where they are named, the parameters.

    Raises:
      Unreadable: there is no such file.
      MXNetError: the contents are not a model (GraphFormatError, ParamsFormatError) or not a supported one.
    """
    return build_model(*read_text(source, state), allow_unknown=allow_unknown)


def build_model(label: str, text: str, params_file: str | None, *, allow_unknown: bool = False) -> Model:
    """Makes a model of what `read_text` returned."""
    graph = _json.loads(text, source=label, allow_unknown=allow_unknown)
    params, kinds = load_params(params_file) if params_file else ({}, {})
    return Model(label, text, graph, params_file, params, kinds)


def read_text(source: Source, state: State) -> tuple[str, str, str | None]:
    """Returns (label, JSON text, params file or None)."""
    if source.model == "-":
        if source.epoch is not None:
            raise click.UsageError("a model from standard input has no EPOCH; use --params.")
        return "standard input", _decode(sys.stdin.buffer.read(), "standard input"), source.params
    path, prefix = _find(source.model)
    with open(path, "rb") as file:
        text = _decode(file.read(), path)
    params = source.params
    if params is None and (source.epoch is not None or path != source.model):
        params = _params_of(prefix, source.epoch, state)
    return path, text, params


def _find(model: str) -> tuple[str, str]:
    """The symbol file and the checkpoint prefix that a MODEL means."""
    if os.path.isfile(model):
        return model, model.removesuffix(_SYMBOL)
    if os.path.isfile(model + _SYMBOL):
        return model + _SYMBOL, model
    there = sorted(glob.glob(glob.escape(os.path.dirname(model) or ".") + f"/*{_SYMBOL}"))
    near = did_you_mean(os.path.basename(model), [os.path.basename(p).removesuffix(_SYMBOL) for p in there])
    raise Unreadable(f"there is neither a file {model!r} nor a checkpoint {model + _SYMBOL!r}.{near}")


def _params_of(prefix: str, epoch: int | None, state: State) -> str | None:
    if epoch is not None:
        path = f"{prefix}-{epoch:04d}.params"
        if not os.path.isfile(path):
            raise Unreadable(f"there is no {path!r}; there are: {', '.join(_checkpoints(prefix)) or 'none'}")
        return path
    found = _checkpoints(prefix)
    if found:
        state.note(f"parameters: {found[-1]}")
    return found[-1] if found else None


def _checkpoints(prefix: str) -> list[str]:
    pattern = re.compile(re.escape(os.path.basename(prefix)) + r"-\d{4,}\.params")
    return [p for p in sorted(glob.glob(glob.escape(prefix) + "-*.params")) if pattern.fullmatch(os.path.basename(p))]


def _decode(raw: bytes, label: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        hint = " It looks like a .params file: name it with --params." if label.endswith(".params") else ""
        raise Unreadable(f"{label}: not UTF-8 text (byte {e.start}); a symbol file is JSON.{hint}") from None


def load_params(path: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Reads a .params file; returns (arrays by name, kinds by name)."""
    records, names = read_params(path)
    if records and not names:
        raise Unreadable(f"{path}: a list of {len(records)} arrays without names; parameters have names")
    params, kinds = {}, {}
    for full, record in zip(names, records, strict=True):
        kind, _, name = full.partition(":")
        if kind not in ("arg", "aux") or not name:
            kind, name = "", full
        if record is not None:
            params[name], kinds[name] = record, kind
    return params, kinds


def dense(record: Any) -> np.ndarray:
    """The array of a record, sparse ones filled with zeros."""
    if isinstance(record, RowSparseRecord):
        out = np.zeros(record.shape, record.data.dtype)
        out[record.indices] = record.data
        return out
    if isinstance(record, CSRRecord):
        out = np.zeros(record.shape, record.data.dtype)
        out[np.repeat(np.arange(record.shape[0]), np.diff(record.indptr)), record.indices] = record.data
        return out
    return record


def _dtype_of(record: Any) -> str:
    return (record.data if isinstance(record, (CSRRecord, RowSparseRecord)) else record).dtype.name


def infer(model: Model, source: Source) -> tuple[Inferred[tuple[int, ...]], Inferred[str]]:
    """Infers shapes and dtypes from the parameters and from what the call gives; problems are kept in the results.

    Raises:
      click.UsageError: a name is no argument, or a dtype unknown.
    """
    check_names(model.graph, source.shapes, "--shape")
    check_names(model.graph, source.dtypes, "--dtype")
    try:
        wanted = {name: dtype_name(text) for name, text in source.dtypes.items()}
    except TypeError as e:
        raise click.UsageError(str(e)) from None
    known_types = {n: _dtype_of(model.params[n.name]) for n in model.graph.inputs if n.name in model.params}
    known_types.update({n: wanted[n.name] for n in model.graph.inputs if n.name in wanted})
    types = infer_types(model.graph, known_types)
    shapes: dict[Node, Any] = {
        n: tuple(model.params[n.name].shape) for n in model.graph.inputs if n.name in model.params
    }
    shapes.update({n: source.shapes[n.name] or None for n in model.graph.inputs if n.name in source.shapes})
    return infer_shapes(model.graph, shapes, types), types


def check_names(graph: Graph, given: Mapping[str, Any], option: str) -> None:
    """Refuses names that are no variables of the graph."""
    names = [n.name for n in graph.inputs]
    for name in given:
        if name not in names:
            free = ", ".join(n.name for n in _roles.data(graph)) or "none"
            raise click.UsageError(f"{option} {name}: the model has no such argument.{did_you_mean(name, names)} "
                                   f"Its inputs: {free}.")  # fmt: skip


def parameter_nodes(model: Model) -> set[Node]:
    """The variables that are parameters: those in the file, and what looks like one."""
    return {n for n in model.graph.inputs if n.name in model.params} | _roles.parameters(model.graph)


def entry(node: Node) -> Entry:
    return Entry(node, 0)
