"""Symbol JSON: reading every generation from MXNet 0.7 on, writing what MXNet 1.9.1 writes, byte for byte."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

from symjax.lowering import registry
from symjax.lowering.errors import GraphFormatError, GraphParamError, MXNetError, UnknownOpError, did_you_mean
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.params import NoParams
from symjax.symbol._legacy import upgrade_node
from symjax.util import is_np_shape

VERSION = 10901
"""The MXNet version that written files name: 1.9.1."""
_NODE_KEYS = frozenset(
    {"op", "name", "param", "attr", "attrs", "inputs", "backward_source_id", "control_deps", "subgraphs"}
)
_MAX_DEPTH = 64
_MAX_UNKNOWN_OUTPUTS = 1024


# ---- writing


def dumps(graph: Graph) -> str:
    """Returns the JSON text of a graph; numpy's shape semantics, where they are on, are noted in it."""
    return _write_graph(graph, 0)


def _write_graph(graph: Graph, indent: int) -> str:
    pad = " " * (indent + 2)
    nodes = graph.nodes
    row_ptr = [0]
    for n in nodes:
        row_ptr.append(row_ptr[-1] + n.num_outputs)
    heads = [f"[{graph.index[e.node]}, {e.index}, 0]" for e in graph.outputs]
    parts = [
        f'{pad}"nodes": [' + ", ".join(f"\n{pad}  {_write_node(graph, n, indent + 4)}" for n in nodes) + f"\n{pad}]",
        f'{pad}"arg_nodes": {_array([str(i) for i, n in enumerate(nodes) if n.is_variable], indent + 2)}',
        f'{pad}"node_row_ptr": {_array([str(i) for i in row_ptr], indent + 2)}',
        f'{pad}"heads": {_array(heads, indent + 2)}',
        f'{pad}"attrs": {_graph_attrs(pad)}',
    ]
    return "{\n" + ", \n".join(parts) + "\n" + " " * indent + "}"


def _graph_attrs(pad: str) -> str:
    version = f'"mxnet_version": ["int", {VERSION}]'
    return f'{{\n{pad}  "is_np_shape": ["int", 1], \n{pad}  {version}\n{pad}}}' if is_np_shape() else f"{{{version}}}"


def _write_node(graph: Graph, n: Node, indent: int) -> str:
    pad = " " * (indent + 2)
    rows = [f'{pad}"op": {_quote(n.op.name if n.op else "null")}', f'{pad}"name": {_quote(n.name)}']
    if n.attrs:
        rows.append(f'{pad}"attrs": {_attrs(n.attrs, indent + 2)}')
    aux = set(n.aux_positions())
    entries = [f"[{graph.index[e.node]}, {e.index}, {int(i in aux)}]" for i, e in enumerate(n.inputs)]
    rows.append(f'{pad}"inputs": {_array(entries, indent + 2)}')
    if n.subgraphs:
        inner = ", ".join(f"\n{pad}  {_write_graph(g, indent + 4)}" for g in n.subgraphs)
        rows.append(f'{pad}"subgraphs": [{inner}\n{pad}]')
    return "{\n" + ", \n".join(rows) + "\n" + " " * indent + "}"


def _attrs(attrs: dict[str, str], indent: int) -> str:
    items = [f"{_quote(k)}: {_quote(v)}" for k, v in sorted(attrs.items())]
    if len(items) == 1:
        return "{" + items[0] + "}"
    pad = " " * (indent + 2)
    return "{\n" + ", \n".join(pad + i for i in items) + "\n" + " " * indent + "}"


def _array(items: Sequence[str], indent: int) -> str:
    if len(items) <= 10:
        return "[" + ", ".join(items) + "]"
    pad = " " * (indent + 2)
    return "[\n" + ", \n".join(pad + i for i in items) + "\n" + " " * indent + "]"


def _quote(text: str) -> str:
    # dmlc's writer escapes these and nothing else; text beyond ASCII stays as it is.
    out = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + out.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t") + '"'


# ---- reading


def loads(text: str | bytes, *, source: str = "symbol JSON", allow_unknown: bool = False) -> Graph:
    """Reads a graph.

    Args:
      text: the JSON text.
      source: what to call it in messages (a file name).
      allow_unknown: open a graph with unregistered ops for looking at; such nodes carry an `UnknownOp`.

    Raises:
      GraphFormatError: the text is not JSON, or not a graph; the message says where.
      UnknownOpError: ops are not registered; all of them are listed.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as e:
            raise GraphFormatError(f"{source}: not UTF-8 text (byte {e.start}); is it a symbol JSON file?") from None
    try:
        # not strict: MXNet writes control characters in strings as they are
        doc = json.loads(text, parse_constant=_no_constant, strict=False)
    except RecursionError:
        raise GraphFormatError(f"{source}: nested too deeply to be a graph") from None
    except ValueError as e:
        raise GraphFormatError(f"{source}: not JSON: {e}") from None
    reader = _Reader(source, allow_unknown)
    graph = reader.graph(doc, 0)
    reader.finish()
    return graph


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _AnyParams(NoParams):
    """Parameters of an op that nobody knows: any text goes."""

    @classmethod
    def parse(cls, attrs: Mapping[str, str], op: str = "") -> Self:
        return cls()


class UnknownOp:
    """Stands for an op that is not registered, in a graph opened for looking at.

    It has as many outputs as the graph reads of it; inference passes through it and learns nothing.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.num_outputs = 1
        self.op = registry.Op(
            name=name,
            aliases=(),
            params=_AnyParams,
            rule=self._refuse,
            input_names=lambda p: (),
            output_names=lambda p: self._output_names(),
            aux_names=lambda p: (),
            num_visible=lambda p: self.num_outputs,
            variadic=None,
            shape=None,
            infer_inputs=None,
            infer_types=lambda p, ins, outs, **_: (ins, outs),
            is_loss=False,
            input_attrs={},
            infer_outputs=lambda p, ins: [None] * self.num_outputs,
            all_inputs=(),
            source="unregistered",
            asks=frozenset(),
        )

    def _output_names(self) -> tuple[str, ...]:
        return ("output",) if self.num_outputs == 1 else tuple(f"output{i}" for i in range(self.num_outputs))

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise UnknownOpError(f"operator {self.name!r} is not registered")


class _Reader:
    def __init__(self, source: str, allow_unknown: bool) -> None:
        self.source, self.allow_unknown = source, allow_unknown
        self.unknown: list[tuple[str, str]] = []
        self.problems: list[str] = []
        self.stand_ins: dict[str, UnknownOp] = {}

    def fail(self, where: str, what: str) -> GraphFormatError:
        return GraphFormatError(f"{self.source}: {where}: {what}")

    def finish(self) -> None:
        if self.unknown and not self.allow_unknown:
            known = registry.all_names()
            first: dict[str, list[str]] = {}
            for op, node in self.unknown:
                first.setdefault(op, []).append(node)
            lines = [
                f"  {op}: {len(nodes)} node(s), first {nodes[0]!r}.{did_you_mean(op, known)}"
                for op, nodes in first.items()
            ]
            raise UnknownOpError(
                f"{self.source}: {len(first)} operator(s) are not registered:\n"
                + "\n".join(lines)
                + "\n`symjax check` opens the graph all the same; register missing ones with "
                "symjax.lowering.registry.op, those of Custom nodes with mx.operator.register."
            )
        if self.problems:
            raise GraphParamError(f"{self.source}: " + "\n".join(self.problems))

    def graph(self, doc: Any, depth: int) -> Graph:
        if depth > _MAX_DEPTH:
            raise self.fail("subgraphs", f"nested more than {_MAX_DEPTH} deep")
        if not isinstance(doc, dict) or not isinstance(doc.get("nodes"), list):
            raise self.fail("top level", "expected an object with a list 'nodes'; this is not a symbol")
        version = self._version(doc)
        rows, nodes, need = doc["nodes"], [], []
        for i, row in enumerate(rows):
            nodes.append(self._node(row, i, len(rows), version, depth))
        for i, row in enumerate(rows):
            for j, e in enumerate(
                self._entries(row.get("inputs", []), f"node {i} ({nodes[i].name}) inputs", len(rows))
            ):
                need.append((i, j, e))
                nodes[i].inputs.append(Entry(nodes[e[0]], e[1]))
        self._check_acyclic(nodes)
        for n in nodes:
            if version < VERSION:
                upgrade_node(n, version)
            self._check_inputs(n)
        for i, j, (k, index) in need:
            self._check_index(nodes[k], index, f"node {i} ({nodes[i].name}) input {j}")
        heads = self._heads(doc, nodes)
        return Graph(heads)

    def _heads(self, doc: dict[str, Any], nodes: list[Node]) -> list[Entry]:
        if "heads" not in doc:
            raise self.fail("top level", "there is no 'heads'")
        heads = [Entry(nodes[k], index) for k, index in self._entries(doc["heads"], "heads", len(nodes))]
        if not heads:
            raise self.fail("heads", "the graph has no outputs")
        for e in heads:
            self._check_index(e.node, e.index, "heads")
        return heads

    def _version(self, doc: dict[str, Any]) -> int:
        value: Any = doc.get("attrs", {})
        value = value.get("mxnet_version", 800) if isinstance(value, dict) else 800
        if isinstance(value, list):
            value = value[1] if len(value) == 2 else None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail("attrs", f"mxnet_version is {value!r}, expected a number")
        if value > VERSION:
            warnings.warn(
                f"{self.source} was written by MXNet {value // 10000}.{value // 100 % 100}.{value % 100}, newer "
                f"than 1.9.1 which symjax follows",
                stacklevel=5,
            )
        return value

    def _node(self, row: Any, i: int, n_rows: int, version: int, depth: int) -> Node:
        where = f"node {i}"
        if not isinstance(row, dict):
            raise self.fail(where, f"expected an object, got {type(row).__name__}")
        extra = set(row) - _NODE_KEYS
        if extra:
            raise self.fail(where, f"unknown key {sorted(extra)[0]!r}")
        op, name = row.get("op"), row.get("name")
        if not isinstance(op, str) or not isinstance(name, str):
            raise self.fail(where, "'op' and 'name' must be strings")
        attrs: dict[str, str] = {}
        for key in ("param", "attr", "attrs"):
            given = row.get(key)
            if given is None:
                continue
            if not isinstance(given, dict):
                raise self.fail(f"{where} ({name})", f"{key!r} must be an object of strings")
            for k, v in given.items():
                if not isinstance(v, str):
                    raise self.fail(f"{where} ({name})", f"attribute {k!r} must be a string, got {v!r:.60}")
                attrs[k] = v
        subgraphs = row.get("subgraphs", [])
        if not isinstance(subgraphs, list):
            raise self.fail(f"{where} ({name})", "'subgraphs' must be a list")
        graphs = [self.graph(g, depth + 1) for g in subgraphs]
        return Node(self._op(op, name, attrs), name, attrs, (), graphs)

    def _op(self, op: str, node: str, attrs: Mapping[str, str]) -> registry.Op | None:
        if op == "null":
            return None
        lacking = registry.lacking(op, attrs)
        if lacking:
            self.unknown.append((lacking, node))
            return self.stand_ins.setdefault(op, UnknownOp(op)).op
        return registry.find(op)

    def _entries(self, rows: Any, where: str, n: int) -> list[tuple[int, int]]:
        if not isinstance(rows, list):
            raise self.fail(where, f"expected a list of [node, output], got {type(rows).__name__}")
        out = []
        for r in rows:
            if not isinstance(r, list) or len(r) not in (2, 3) or not all(type(x) is int for x in r):
                raise self.fail(where, f"expected [node, output] or [node, output, version], got {r!r:.60}")
            if not 0 <= r[0] < n:
                raise self.fail(where, f"node number {r[0]} is not in 0..{n - 1}")
            if r[1] < 0:
                raise self.fail(where, f"output number {r[1]} is negative")
            out.append((r[0], r[1]))
        return out

    def _check_acyclic(self, nodes: list[Node]) -> None:
        from symjax.lowering.graph import topological_order

        try:
            topological_order([Entry(n, 0) for n in nodes])
        except MXNetError as e:
            raise self.fail("nodes", str(e)) from None

    def _check_inputs(self, n: Node) -> None:
        if n.op is None:
            if n.inputs:
                raise self.fail(f"node {n.name!r}", "a variable has inputs")
            return
        if n.op.source == "unregistered":
            return
        if len(n.subgraphs) != n.op.num_subgraphs:
            raise self.fail(
                f"node {n.name!r} ({n.op.name})",
                f"it has {len(n.subgraphs) or 'no'} subgraphs, expected {n.op.num_subgraphs or 'none'}",
            )
        try:
            if n.op.variadic and len(n.input_names) != len(n.inputs):
                raise self.fail(
                    f"node {n.name!r} ({n.op.name})",
                    f"{n.op.variadic} is {getattr(n.params, n.op.variadic)}, but there are {len(n.inputs)} inputs",
                )
            names = n.input_names
            n.num_outputs  # noqa: B018 - reading it checks the parameters
        except GraphFormatError:
            raise
        except MXNetError as e:
            self.problems.append(str(e))
            return
        if len(n.inputs) != len(names):
            raise self.fail(
                f"node {n.name!r} ({n.op.name})",
                f"expected {len(names)} inputs ({', '.join(names[:8])}), got {len(n.inputs)}",
            )

    def _check_index(self, n: Node, index: int, where: str) -> None:
        if n.op is not None and n.op.source == "unregistered":
            if index >= _MAX_UNKNOWN_OUTPUTS:
                raise self.fail(where, f"node {n.name!r} has no output number {index}")
            stand_in = self.stand_ins[n.op.name]
            stand_in.num_outputs = max(stand_in.num_outputs, index + 1)
            return
        try:
            count = n.num_outputs
        except MXNetError:
            return
        if index >= count:
            raise self.fail(where, f"node {n.name!r} has {count} output(s), not number {index}")
