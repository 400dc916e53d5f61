"""A network as a table of layers, and as a picture (MXNet's `mx.visualization`, `mx.viz`)."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symjax._picture import Picture
from symjax.lowering.graph import Graph, Node
from symjax.symbol import Symbol
from symjax.symbol._roles import labels, parameters

__all__ = ["plot_network", "print_summary"]

Shape = tuple[int, ...]


def print_summary(symbol: Symbol, shape: Mapping[str, Any] | None = None, line_length: int = 120,
                  positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0)) -> None:
    """Prints a table of layers: name and operator, output shape, number of parameters, what it reads.

    Every argument that is neither an input (named in `shape`) nor a label counts as a parameter of the first layer that
    reads it; auxiliary states do not count. Output shapes are without the batch.

    Args:
      symbol: the network.
      shape: shapes of the inputs by name. Without it, only what variables and operators declare is counted.
      line_length: characters of a line.
      positions: where columns end, in characters or as parts of the line.

    Raises:
      TypeError: `symbol` is not a Symbol.
      ValueError: the shapes do not decide those of all layers.
    """
    if not isinstance(symbol, Symbol):
        raise TypeError("symbol must be Symbol")
    graph = symbol._graph
    shapes = _shapes(symbol, shape)
    counted = _parameters(graph, shape)
    inputs = set(graph.arguments) - counted - labels(graph)
    ends = [int(line_length * p) for p in positions] if positions[-1] <= 1 else [int(p) for p in positions]
    print("_" * line_length)
    print(_row(("Layer (type)", "Output Shape", "Param #", "Previous Layer"), ends))
    print("=" * line_length)
    total, unknown = 0, False
    rows = [n for n in graph.nodes if n.op is not None or n in inputs]
    for node in rows:
        sizes = [_size(shapes.get((v, 0))) for v in _new(node, counted)]
        unknown |= None in sizes
        total += sum(filter(None, sizes))
        before = [e.node.name for e in node.inputs if e.node.op is not None or e.node in inputs]
        out = shapes.get((node, 0)) if shape is not None else None
        kind = node.op.name if node.op is not None else "null"
        print(_row((f"{node.name}({kind})", "x".join(map(str, (out or ())[1:])),
                    "?" if None in sizes else sum(filter(None, sizes)), before[0] if before else ""), ends))
        for name in before[1:]:
            print(_row(("", "", "", name), ends))
        print(("=" if node is rows[-1] else "_") * line_length)
    print(f"Total params: {total}{' and those of unknown shape (marked ?): give `shape`' if unknown else ''}")
    print("_" * line_length)


def _shapes(symbol: Symbol, shape: Mapping[str, Any] | None) -> dict[tuple[Node, int], Shape | None]:
    """The shape of every node's outputs, None where it is not known."""
    internals = symbol.get_internals()
    if shape is None:
        _, found, _ = internals.infer_shape_partial()
    else:
        _, found, _ = internals.infer_shape(**shape)
        if found is None:
            raise ValueError("Input shape is incomplete")
    return {(e.node, e.index): s for e, s in zip(internals._graph.outputs, found, strict=True)}


def _parameters(graph: Graph, shape: Mapping[str, Any] | None) -> set[Node]:
    """The variables that count as parameters."""
    found = {v for v in parameters(graph) if v not in graph.aux_nodes}
    if shape is not None:
        found |= {v for v in graph.arguments if v.name not in shape} - labels(graph)
    return found


def _new(node: Node, counted: set[Node]) -> Iterator[Node]:
    """The parameters that a node is the first to read; takes them out of the set of those to come."""
    for e in node.inputs:
        if e.node in counted:
            counted.discard(e.node)
            yield e.node


def _size(shape: Shape | None) -> int | None:
    return None if not shape or any(d <= 0 for d in shape) else math.prod(shape)


def _row(fields: Sequence[Any], ends: Sequence[int]) -> str:
    line = ""
    for field, end in zip(fields, ends, strict=True):
        line = (line + str(field))[:end].ljust(end)
    return line


# ---- pictures

_HIDDEN = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")
_COLOURS = ("#8dd3c7", "#fb8072", "#ffffb3", "#bebada", "#80b1d3", "#fdb462", "#b3de69", "#fccde5")  # "Set3"
_KINDS = {"Convolution": 1, "FullyConnected": 1, "Activation": 2, "LeakyReLU": 2, "BatchNorm": 3, "Pooling": 4,
          "Concat": 5, "Flatten": 5, "Reshape": 5, "Softmax": 6}  # fmt: skip
_BOX = {"shape": "box", "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled"}


def plot_network(symbol: Symbol, title: str = "plot", save_format: str = "pdf", shape: Mapping[str, Any] | None = None,
                 dtype: Mapping[str, Any] | None = None, node_attrs: Mapping[str, str] | None = None,
                 hide_weights: bool = True) -> Any:
    """Draws a network: a box for each layer, an arrow from each to those that read it.

    Args:
      symbol: the network.
      title: what the picture is called; `render` writes `<title>.<save_format>`.
      save_format: "svg", or another format of Graphviz such as "pdf" or "png".
      shape: shapes of the inputs by name; arrows then tell shapes, without the batch.
      dtype: types of the inputs by name; arrows then tell types.
      node_attrs: Graphviz attributes of all boxes.
      hide_weights: leave out variables that are called like weights.

    Returns:
      A `graphviz.Digraph` if that package is installed, otherwise an object with its `source`, `render`, `save`,
      `pipe` and `view`. Both show themselves in Jupyter; the latter needs nothing installed for that.

    Raises:
      TypeError: `symbol` is not a Symbol.
      ValueError: the shapes or types do not decide those of all layers.
    """
    if not isinstance(symbol, Symbol):
        raise TypeError("symbol must be a Symbol")
    graph = symbol._graph
    shapes = None if shape is None else _shapes(symbol, shape)
    types = None if dtype is None else _types(symbol, dtype)
    names = [n.name for n in graph.nodes]
    if len(set(names)) < len(names):
        twice = ",".join(sorted({n for n in names if names.count(n) > 1}))
        warnings.warn(f"There are multiple variables with the same name in your graph, this may result in cyclic "
                      f"graph. Repeated names: {twice}", RuntimeWarning, stacklevel=2)
    dot = _digraph(title, save_format, symbol, shape, hide_weights)
    hidden = {n for n in graph.nodes if hide_weights and n.op is None and n.name.endswith(_HIDDEN)}
    for node in graph.nodes:
        if node not in hidden:
            dot.node(name=node.name, label=_label(node), **{**_BOX, **(node_attrs or {}), **_look(node)})
    for node in graph.nodes:
        for e in node.inputs:
            if e.node not in hidden:
                text = _arrow((e.node, e.index), shapes, types)
                dot.edge(tail_name=node.name, head_name=e.node.name, dir="back", arrowtail="open", label=text)
    return dot


def _digraph(title: str, save_format: str, symbol: Symbol, shape: Any, hide_weights: bool) -> Any:
    try:
        from graphviz import Digraph  # pyright: ignore[reportMissingImports]
    except ImportError:
        return Picture(title, save_format, symbol, shape, hide_weights)
    return Digraph(name=title, format=save_format)


def _types(symbol: Symbol, dtype: Mapping[str, Any]) -> dict[tuple[Node, int], Any]:
    internals = symbol.get_internals()
    _, found, _ = internals.infer_type(**dtype)
    if found is None:
        raise ValueError("Input type is incomplete")
    return {(e.node, e.index): t for e, t in zip(internals._graph.outputs, found, strict=True)}


def _arrow(entry: tuple[Node, int], shapes: Mapping[Any, Any] | None, types: Mapping[Any, Any] | None) -> str:
    text = "" if shapes is None else "x".join(map(str, (shapes.get(entry) or ())[1:]))
    return text if types is None else f"{text}({getattr(types[entry], '__name__', types[entry])})"


def _look(node: Node) -> dict[str, str]:
    if node.op is None:
        return {"shape": "oval", "fillcolor": _COLOURS[0]}
    return {"fillcolor": _COLOURS[_KINDS.get(node.op.name, 7)]}


def _label(node: Node) -> str:
    """What a box says: the name, or the operator with what it is known by."""
    op, attrs = None if node.op is None else node.op.name, node.attrs
    if op == "Convolution":
        return f"Convolution\n{_times(attrs['kernel'])}/{_times(attrs.get('stride', '1'))}, {attrs['num_filter']}"
    if op == "FullyConnected":
        return f"FullyConnected\n{attrs['num_hidden']}"
    if op == "Activation":
        return f"Activation\n{attrs['act_type']}"
    if op == "LeakyReLU":
        return f"LeakyReLU\n{attrs.get('act_type', 'Leaky')}"
    if op == "Pooling":
        kernel = _times(attrs["kernel"]) if "kernel" in attrs else "[]"
        return f"Pooling\n{attrs.get('pool_type', 'max')}, {kernel}/{_times(attrs.get('stride', '1'))}"
    return str(attrs["op_type"]) if op == "Custom" else node.name


def _times(text: str) -> str:
    return "x".join(re.findall(r"\d+", text))
