"""What a picture of a graph shows: boxes and edges, parameters folded into their ops, large graphs by name prefix."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symjax.lowering.graph import Entry, Graph, Node, is_hidden
from symjax.lowering.registry import ShapeLike
from symjax.sparse.storage import Storage
from symjax.symbol import _roles

Shapes = Mapping[Node, Sequence[ShapeLike]]
"""Inferred shapes: one per output of each node."""

FAMILIES = {
    "linear": ("convolution", "fully_connected", "indexing", "matrix", "linalg"),
    "norm": ("norm", "dropout"),
    "activation": ("activation",),
    "pooling": ("pooling", "resize", "reduce", "patches"),
    "loss": ("loss", "softmax", "ctc"),
    "shape": ("reshape", "join", "slicing", "ordering"),
    "recurrent": ("rnn", "sequence", "attention", "control_flow"),
    "detection": ("multibox", "bounding_box", "roi", "proposal"),
    "source": ("init", "random", "sampler"),
}
"""Families of operators, by the module that declares them; all others are "math"."""
_FAMILY_OF = {module: family for family, modules in FAMILIES.items() for module in modules}
_ACTIVATIONS = frozenset(["relu", "sigmoid", "tanh", "softsign", "hard_sigmoid", "softrelu", "log_sigmoid", "mish"])
_QUIET = frozenset(
    [
        "no_bias",
        "workspace",
        "cudnn_tune",
        "cudnn_off",
        "layout",
        "num_args",
        "num_outputs",
        "ctx",
        "use_sequence_length",
    ]
)
_SEPARATORS = re.compile(r"[_/.:]+")
_MANY_INPUTS = 24
_MANY_SIBLINGS = 5


@dataclasses.dataclass(frozen=True)
class Known:
    """What is known of the entries of a graph.

    Attributes:
      shapes: their shapes.
      storage: their storage types; None where all are dense.
    """

    shapes: Shapes
    storage: Storage | None = None

    def text(self, node: Node, index: int) -> str | None:
        """ "2×3" or "2×3 csr"; None where there is nothing to say."""
        shapes = self.shapes.get(node, ())
        shape = shapes[index] if index < len(shapes) else None
        stype = "default" if self.storage is None else self.storage.values[node][index]
        if shape is None:
            return None if stype == "default" else stype
        return dims(shape) if stype == "default" else f"{dims(shape)} {stype}"

    def fallback(self, node: Node) -> str | None:
        """What it costs that a node makes sparse inputs dense; None for other nodes."""
        if self.storage is None or node not in self.storage.fallbacks:
            return None
        cost = self.storage.fallback_bytes(node, self.shapes)
        return "makes inputs dense" + (f": {cost:,} bytes" if cost else "")


@dataclasses.dataclass
class Box:
    """A node, or several folded into one.

    Attributes:
      nodes: the operators (or the variable) it stands for.
      title: what it is.
      detail: its key parameters, or a count.
      name: the node's name, or the common prefix.
      family: a key of `FAMILIES`, "math", "input", "output" or "unknown"; of several nodes the most frequent.
      weights: the variables folded into it.
    """

    nodes: list[Node]
    title: str
    detail: str
    name: str
    family: str
    weights: list[Node] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Diagram:
    """Boxes in a topological order, and edges (source, target, the entry that flows) with source < target."""

    boxes: list[Box]
    edges: list[tuple[int, int, Entry]]


def diagram(graph: Graph, *, fold: int = 200, parameters: bool = False) -> Diagram:
    """Decides what to draw.

    Args:
      graph: the graph.
      fold: graphs with more operators than this are folded to at most a third as many boxes; 0 never folds.
      parameters: draw weights and auxiliary states too, instead of folding them into their operators.
    """
    hidden = set() if parameters else _roles.parameters(graph)
    variables = [n for n in graph.nodes if n.is_variable and n not in hidden]
    ops = [n for n in graph.nodes if not n.is_variable]
    folded = bool(fold) and len(ops) > fold
    if folded and len(variables) > _MANY_INPUTS:
        variables = []
    groups = _fold(ops, max(fold // 3, 1)) if folded else [("", [n]) for n in ops]
    boxes = [Box([v], v.name, "", v.name, "input") for v in variables]
    boxes += [_op_box(nodes[0]) if len(nodes) == 1 else _group_box(name, nodes) for name, nodes in groups]
    where = {n: i for i, box in enumerate(boxes) for n in box.nodes}
    edges: dict[tuple[int, int], Entry] = {}
    for target, box in enumerate(boxes):
        for node in box.nodes:
            for e in node.inputs:
                source = where.get(e.node)
                if source is None:
                    box.weights.append(e.node)
                elif source != target:
                    edges.setdefault((source, target), e)
    _add_outputs(graph, boxes, where, edges)
    return Diagram(boxes, [(a, b, e) for (a, b), e in edges.items()])


def _add_outputs(
    graph: Graph, boxes: list[Box], where: Mapping[Node, int], edges: dict[tuple[int, int], Entry]
) -> None:
    if len(graph.outputs) > _MANY_INPUTS or all(e.node.is_variable for e in graph.outputs):
        return
    for e in graph.outputs:
        if e.node in where:
            edges[where[e.node], len(boxes)] = e
            boxes.append(Box([], e.output_name, "", e.output_name, "output"))


def family(node: Node) -> str:
    """The family of a node's operator."""
    assert node.op is not None
    if node.op.source == "unregistered":
        return "unknown"
    if node.op.name in _ACTIVATIONS:
        return "activation"
    module = re.split(r"[/\\]", node.op.source)[-1].split(".py")[0]
    return _FAMILY_OF.get(module, "math")


def _op_box(node: Node) -> Box:
    assert node.op is not None
    return Box([node], node.op.name, key_parameters(node), node.name, family(node))


def _group_box(name: str, nodes: list[Node]) -> Box:
    counts = collections.Counter(n.op.name for n in nodes if n.op is not None)
    listed, rest = "", len(counts)
    for op, k in counts.most_common():
        more = f"{listed}, {op}" if listed else op
        more += f" ×{k}" if k > 1 else ""
        if len(more) > 44 and listed:
            break
        listed, rest = more, rest - 1
    most = collections.Counter(map(family, nodes)).most_common(1)[0][0]
    return Box(nodes, name, f"{len(nodes)} operators", listed + (", …" if rest else ""), most)


# ---- folding


def _fold(ops: Sequence[Node], limit: int) -> list[tuple[str, list[Node]]]:
    """Groups operators that follow each other and share a name prefix, into at most `limit` groups.

    A group is an interval of a topological order, so what is left has no cycle.
    """
    tokens = [[t for t in _SEPARATORS.split(n.name) if t] or [n.name] for n in ops]
    auto = [_is_automatic(n) for n in ops]
    best: list[list[int]] = []
    finest: list[list[int]] = [[i] for i in range(len(ops))]
    for absorb in (False, True):
        for depth in range(min(max(map(len, tokens)), 8), 0, -1):
            runs = _runs(tokens, auto, depth, absorb)
            if len(best) < len(runs) <= limit:
                best = runs
            elif limit < len(runs) < len(finest):
                finest = runs
    if len(best) < limit // 5:
        best = finest
    named = [
        (_common_name([tokens[i] for i in run], [ops[i].name for i in run], [auto[i] for i in run]), run)
        for run in best
    ]
    per = -(-len(named) // limit)
    merged = []
    for k in range(0, len(named), per):
        some = named[k : k + per]
        first, last = some[0][0], some[-1][0]
        merged.append((_span(first, last), [ops[i] for _, run in some for i in run]))
    return _join_siblings(merged)


def _join_siblings(groups: list[tuple[str, list[Node]]]) -> list[tuple[str, list[Node]]]:
    """Joins groups that stand side by side: several that read the same groups and are read by the same ones."""
    where = {n: i for i, (_, nodes) in enumerate(groups) for n in nodes}
    reads: list[set[int]] = [set() for _ in groups]
    read_by: list[set[int]] = [set() for _ in groups]
    for target, (_, nodes) in enumerate(groups):
        for source in {where[e.node] for n in nodes for e in n.inputs if e.node in where} - {target}:
            reads[target].add(source)
            read_by[source].add(target)
    alike: dict[tuple[frozenset[int], frozenset[int]], list[int]] = {}
    for i in range(len(groups)):
        if reads[i] and read_by[i]:
            alike.setdefault((frozenset(reads[i]), frozenset(read_by[i])), []).append(i)
    first = {members[0]: members for members in alike.values() if len(members) >= _MANY_SIBLINGS}
    gone = {i for members in first.values() for i in members[1:]}
    out = []
    for i, (name, nodes) in enumerate(groups):
        if i in first:
            out.append((_span(name, groups[first[i][-1]][0]), [n for j in first[i] for n in groups[j][1]]))
        elif i not in gone:
            out.append((name, nodes))
    return out


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first.split(' … ')[0]} … {last.split(' … ')[-1]}"


def _is_automatic(node: Node) -> bool:
    """Whether the node has the name that a NameManager gives: the operator's and a number."""
    assert node.op is not None
    stem = node.name.rstrip("0123456789").strip("_").lower()
    names = (node.op.name, *node.op.aliases)
    return stem != node.name and any(stem == n.strip("_").lower() for n in names)


def _runs(tokens: Sequence[list[str]], auto: Sequence[bool], depth: int, absorb: bool) -> list[list[int]]:
    runs: list[list[int]] = []
    last: list[str] | None = None
    for i, parts in enumerate(tokens):
        key = parts[: min(depth, max(len(parts) - 1, 1))]
        if last is not None and (key == last or (absorb and auto[i])):
            runs[-1].append(i)
        else:
            runs.append([i])
            last = key
    return runs


def _common_name(tokens: Sequence[list[str]], names: Sequence[str], auto: Sequence[bool]) -> str:
    kept = [t for t, a in zip(tokens, auto, strict=True) if not a] or list(tokens)
    if len(names) == 1:
        return names[0]
    common = [next(iter(column)) for column in _while_equal(list(zip(*kept, strict=False)))]
    if not common:
        return _span(names[0], names[-1])
    first = next(n for n, a in zip(names, auto, strict=True) if not a or all(auto))
    size = 0
    for part in common:  # the separators stay as they are in the first name
        size = first.index(part, size) + len(part)
    return f"{first[:size]}_*"


def _while_equal(columns: Sequence[tuple[str, ...]]) -> Iterable[tuple[str, ...]]:
    for column in columns:
        if len(set(column)) > 1:
            return
        yield column


# ---- parameters in a few letters


def key_parameters(node: Node, width: int = 30) -> str:
    """The parameters that matter most, shortly: "3×3 /2, 64" of a convolution, "relu" of an activation."""
    assert node.op is not None
    attrs = {k: v for k, v in node.attrs.items() if not is_hidden(k)}
    text = ""
    if node.op.source != "unregistered":
        text = _SHORT.get(node.op.name, lambda p: "")(node.params)
    if not text:
        shown = [(k, v) for k, v in attrs.items() if k not in _QUIET]
        text = ", ".join(v if k in ("act_type", "scalar", "p") else f"{k}={v}" for k, v in shown)
    return clip(text, width)


def clip(text: str, width: int) -> str:
    """Shortens a text in its middle."""
    if len(text) <= width:
        return text
    head = (width - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def dims(shape: ShapeLike) -> str:
    """ "1×3×224×224"; "?" for what is unknown."""
    return "?" if shape is None else "×".join(str(d) if d else "?" for d in shape) or "scalar"


def _window(p: Any) -> str:
    stride: tuple[int, ...] = tuple(getattr(p, "stride", None) or [1])
    step = "" if set(stride) <= {1} else f" /{stride[0] if len(set(stride)) == 1 else dims(stride)}"
    return dims(tuple(p.kernel)) + step


def _convolution(p: Any) -> str:
    dilate = set(getattr(p, "dilate", ()) or ()) - {1}
    parts = [_window(p), str(p.num_filter)]
    parts += [f"dilate {max(dilate)}"] if dilate else []
    parts += [f"{p.num_group} groups"] if p.num_group > 1 else []
    return ", ".join(parts)


def _pooling(p: Any) -> str:
    return f"global {p.pool_type}" if p.global_pool else f"{p.pool_type} {_window(p)}"


def _rnn(p: Any) -> str:
    return f"{p.mode} {p.num_layers}×{p.state_size}" + (" both ways" if p.bidirectional else "")


_SHORT: dict[str, Any] = {
    "Convolution": _convolution,
    "Convolution_v1": _convolution,
    "Deconvolution": _convolution,
    "Pooling": _pooling,
    "Pooling_v1": _pooling,
    "RNN": _rnn,
    "FullyConnected": lambda p: str(p.num_hidden),
    "Activation": lambda p: p.act_type,
    "LeakyReLU": lambda p: p.act_type,
    "Dropout": lambda p: f"{p.p:g}",
    "Embedding": lambda p: f"{p.input_dim} → {p.output_dim}",
    "Concat": lambda p: f"axis {p.dim}",
    "BatchNorm": lambda p: " ",
    "transpose": lambda p: f"{p.axes}" if p.axes else "",
}
