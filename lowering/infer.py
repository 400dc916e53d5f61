"""Shape and data type inference over a graph, both ways, to a fixpoint.

Two lattices, one engine: an attribute per entry (a shape or a dtype name), merged from what is given, from what
variables declare (`__shape__`, `__dtype__`) and from what each op derives. Sweeps alternate between forward and
backward order until nothing changes; a node whose inputs and outputs are complete and checked is not visited again,
so a sweep is linear and few are needed. Contradictions are collected and reported together.

Within the engine a shape is None (unknown) or a tuple in which 0 is an unknown and EMPTY an empty dimension. Classic
semantics cannot say EMPTY; under numpy's, callers write 0 for empty and -1 for unknown, and so they get it back.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import jax

from symjax.lowering.abstract import evaluate_shapes, key_aval
from symjax.lowering.errors import DTypeError, MXNetError, ShapeError
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.params import read_int, read_tuple
from symjax.lowering.registry import BROADCAST, SAME, ShapeLike
from symjax.lowering.subgraph import subgraphs_of
from symjax.lowering.trace import lower_graph

TYPE_FLAGS = {
    0: "float32",
    1: "float64",
    2: "float16",
    3: "uint8",
    4: "int32",
    5: "int8",
    6: "int64",
    7: "bool",
    12: "bfloat16",
}
"""MXNet's numbers for data types, as `.params` files and `__dtype__` write them."""

EMPTY = -1
"""A dimension known to be 0, inside the engine."""

T = TypeVar("T")


class Contradiction(Exception):
    """Two values for one entry that cannot both hold."""


def merge_shapes(a: ShapeLike, b: ShapeLike) -> ShapeLike:
    """Combines two partial shapes.

    Raises:
      Contradiction: they differ in rank or in a known dimension.
    """
    if a is None or a == b:
        return b
    if b is None:
        return a
    if len(a) != len(b):
        raise Contradiction
    out = []
    for x, y in zip(a, b, strict=True):
        if x and y and x != y:
            raise Contradiction
        out.append(x or y)
    return tuple(out)


def merge_types(a: str | None, b: str | None) -> str | None:
    """Combines two partial dtypes; raises Contradiction."""
    if a is None or a == b:
        return b
    if b is None:
        return a
    raise Contradiction


def is_complete(shape: ShapeLike, np_shape: bool = False) -> bool:
    """Whether all of a shape is known; under numpy's semantics only -1 is not."""
    return shape is not None and (-1 if np_shape else 0) not in shape


def exchange(shape: ShapeLike) -> ShapeLike:
    """Turns a shape of numpy's semantics into one of the engine's, and back: 0 and -1 change places."""
    return None if shape is None else tuple(-1 - d if d in (0, -1) else d for d in shape)


@dataclasses.dataclass
class Inferred(Generic[T]):
    """The result of an inference: one value per output of each node, and the problems met."""

    graph: Graph
    values: dict[Node, list[T | None]]
    problems: list[str]
    error: type[MXNetError]
    np_shape: bool = False

    def __getitem__(self, e: Entry) -> T | None:
        return self.values[e.node][e.index]

    def of(self, nodes: Sequence[Node]) -> list[T | None]:
        return [self.values[n][0] for n in nodes]

    def outputs(self) -> list[T | None]:
        return [self[e] for e in self.graph.outputs]

    def is_known(self, e: Entry) -> bool:
        """Whether all of an entry's value was found; of a shape, every dimension."""
        value: Any = self[e]
        return is_complete(value, self.np_shape) if isinstance(value, tuple) else value is not None

    def check(self) -> None:
        """Raises the collected problems, if any."""
        if self.problems:
            head = "" if len(self.problems) == 1 else f"{len(self.problems)} problems in this graph:\n"
            raise self.error(head + "\n".join(self.problems))


class _Engine(Generic[T]):
    """The fixpoint engine; a lattice supplies merge, completeness and the per-node rule."""

    def __init__(
        self,
        graph: Graph,
        merge: Callable[[T | None, T | None], T | None],
        complete: Callable[[T | None], bool],
        error: type[MXNetError],
        what: str,
    ) -> None:
        self.graph, self.merge, self.complete, self.what = graph, merge, complete, what
        self.values: dict[Node, list[T | None]] = {n: [None] * n.num_outputs for n in graph.nodes}
        self.result = Inferred(graph, self.values, [], error)
        self.settled: set[Node] = set()
        self.changed = False

    def seed(self, node: Node, value: T | None) -> None:
        self.values[node][0] = value

    def run(
        self, rule: Callable[[Node, list[T | None], list[T | None]], tuple[Sequence[T | None], Sequence[T | None]]]
    ) -> Inferred[T]:
        order = [n for n in self.graph.nodes if n.op is not None]
        forward = True
        while True:
            self.changed = False
            for node in order if forward else reversed(order):
                if node not in self.settled:
                    self._visit(node, rule)
            if not self.changed and not forward:
                break
            if not self.changed and len(self.settled) == len(order):
                break
            forward = not forward
        return self.result

    def _visit(self, node: Node, rule: Callable[..., Any]) -> None:
        ins = [self.values[e.node][e.index] for e in node.inputs]
        outs = list(self.values[node])
        was_complete = all(self.complete(v) for v in ins) and all(self.complete(v) for v in outs)
        try:
            new_ins, new_outs = rule(node, ins, outs)
            for i, v in enumerate(new_ins):
                if v != ins[i]:
                    self._assign(node, node.inputs[i], v, i)
            for i, v in enumerate(new_outs):
                if v != outs[i]:
                    self._assign(node, Entry(node, i), v, None)
        except MXNetError as e:
            self._problem(node, str(e))
            return
        if was_complete:
            self.settled.add(node)

    def _assign(self, node: Node, e: Entry, value: T | None, position: int | None) -> None:
        old = self.values[e.node][e.index]
        try:
            new = self.merge(old, value)
        except Contradiction:
            if position is None:
                where = f"output {e.output_name!r}"
            else:
                names = node.input_names
                where = f"argument {names[position] if position < len(names) else position!r} ({e.output_name!r})"
            raise self.result.error(f"{where}: expected {self.what} {_show(value)}, got {_show(old)}") from None
        if new != old:
            self.values[e.node][e.index] = new
            self.changed = True

    def _problem(self, node: Node, text: str) -> None:
        self.settled.add(node)
        assert node.op is not None
        lines = [f"Error in operator {node.name} ({node.op.name}): {text}"]
        names = node.input_names
        for i, e in enumerate(node.inputs):
            role = names[i] if i < len(names) else str(i)
            lines.append(f"  {role}: {self.what} {_show(self.values[e.node][e.index])} from {self._chain(e)}")
        self.result.problems.append("\n".join(lines))

    def _chain(self, e: Entry, depth: int = 3) -> str:
        """Names the producer of an entry and, through their first inputs, up to `depth` before it."""
        parts, node = [], e.node
        for _ in range(depth):
            parts.append(f"{node.name} ({node.op.name if node.op else 'variable'})")
            if not node.inputs:
                break
            node = node.inputs[0].node
        return " <- ".join(parts)


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        value = tuple(0 if d == EMPTY else d for d in value)
    return "unknown" if value is None else str(value)


def declared_shape(node: Node, np_shape: bool = False) -> ShapeLike:
    """The shape a variable declares in `__shape__`, as the engine has it.

    In classic semantics 0 and -1 are unknown dimensions and () says nothing; in numpy's only -1 is unknown.
    """
    text = node.attrs.get("__shape__")
    if text is None:
        return None
    try:
        dims = tuple(max(read_int(d), -1) for d in _split_dims(text))
    except ValueError:
        raise ShapeError(f"variable {node.name!r}: __shape__ {text!r} is not a shape") from None
    if np_shape:
        return None if text.strip() == "None" else exchange(dims)
    return tuple(max(d, 0) for d in dims) or None


def _split_dims(text: str) -> tuple[str, ...]:
    return read_tuple(text, str) if text.strip() not in ("None", "") else ()


def declared_dtype(node: Node) -> str | None:
    """The dtype name a variable declares in `__dtype__`."""
    text = node.attrs.get("__dtype__")
    if text is None:
        return None
    try:
        flag = int(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise DTypeError(f"variable {node.name!r}: __dtype__ {text!r} is not a type number") from None
    if flag == -1:
        return None
    if flag not in TYPE_FLAGS:
        raise DTypeError(f"variable {node.name!r}: __dtype__ {flag} is not one of {TYPE_FLAGS}")
    return TYPE_FLAGS[flag]


def infer_types(graph: Graph, given: Mapping[Node, str | None]) -> Inferred[str]:
    """Infers dtypes from those given for variables; a given one wins over the variable's `__dtype__`."""
    engine: _Engine[str] = _Engine(graph, merge_types, lambda v: v is not None, DTypeError, "dtype")
    for v in graph.inputs:
        engine.seed(v, given.get(v) or declared_dtype(v))
    return engine.run(_types_of)


def _types_of(
    node: Node, ins: list[str | None], outs: list[str | None]
) -> tuple[Sequence[str | None], Sequence[str | None]]:
    op = node.op
    assert op is not None
    if op.infer_types is not None:
        if node.subgraphs:
            return op.infer_types(node.params, ins, outs, subgraphs=subgraphs_of(node))
        return op.infer_types(node.params, ins, outs)
    found = None
    for i, t in enumerate((*ins, *outs)):
        if t is not None and found is not None and t != found:
            names = node.input_names
            where = f"argument {names[i]!r}" if i < len(ins) else f"output {i - len(ins)}"
            raise DTypeError(
                f"{where} has dtype {t}, but the inputs before it have {found}; there is no implicit "
                f"promotion, insert a Cast"
            )
        found = found or t
    return [found] * len(ins), [found] * len(outs)


def infer_shapes(
    graph: Graph, given: Mapping[Node, ShapeLike], dtypes: Inferred[str] | None = None, np_shape: bool = False
) -> Inferred[tuple[int, ...]]:
    """Infers shapes from those given for variables; what a given one leaves open `__shape__` may fill.

    Args:
      graph: the graph.
      given: shapes of variables; None is unknown, 0 an unknown dimension (under `np_shape`: -1, and 0 an empty one).
      dtypes: the inferred dtypes, where the caller has them; float32 is assumed elsewhere.
      np_shape: numpy's shape semantics, for what is given, declared and returned.
    """
    engine: _Engine[tuple[int, ...]] = _Engine(graph, merge_shapes, is_complete, ShapeError, "shape")
    for v in graph.inputs:
        shape, declared = given.get(v), declared_shape(v, np_shape)
        shape = exchange(shape) if np_shape else shape
        try:
            engine.seed(v, merge_shapes(shape, declared))
        except Contradiction:
            engine.seed(v, shape)

    def rule(
        node: Node, ins: list[ShapeLike], outs: list[ShapeLike]
    ) -> tuple[Sequence[ShapeLike], Sequence[ShapeLike]]:
        types = ["float32"] * len(ins) if dtypes is None else [dtypes[e] or "float32" for e in node.inputs]
        return _shapes_of(node, ins, outs, types, np_shape)

    found = engine.run(rule)
    if np_shape:
        found.np_shape = True
        for n, shapes in found.values.items():
            found.values[n] = [exchange(s) for s in shapes]
    return found


def _shapes_of(
    node: Node, ins: list[ShapeLike], outs: list[ShapeLike], dtypes: list[str], np_shape: bool
) -> tuple[Sequence[ShapeLike], Sequence[ShapeLike]]:
    op = node.op
    assert op is not None
    if op.shape == SAME:
        return _same(node, ins, outs)
    if op.shape == BROADCAST:
        return ins, [_broadcast(node, ins)] * len(outs)
    params, subs = node.params, subgraphs_of(node)
    new_ins: list[ShapeLike] = ins
    if op.infer_inputs is not None:
        extra = {"subgraphs": subs} if subs else {}
        hints = list(op.infer_inputs(params, _for_rules(ins), _for_rules(outs), **extra))
        new_ins = [_merge_input(node, i, a, b) for i, (a, b) in enumerate(zip(ins, hints, strict=True))]
    if op.infer_outputs is not None:
        found = list(op.infer_outputs(params, _for_rules(new_ins)))
        # What parameters alone say is meant as written: under numpy's semantics a 0 among them is an empty axis.
        return new_ins, _pad([exchange(s) for s in found] if np_shape and not ins else _for_rules(found), len(outs))
    out_shapes = None
    if "out_shapes" in op.asks:
        if not all(is_complete(o) for o in outs):
            return new_ins, outs
        out_shapes = tuple(tuple(max(d, 0) for d in o) for o in outs if o is not None)
    found = evaluate_shapes(
        op, params, new_ins, dtypes, out_shapes=out_shapes, subgraphs=subs, empty=EMPTY if np_shape else 0
    )
    return new_ins, outs if found is None else _pad(found[: len(outs)], len(outs))


def _for_rules(shapes: Sequence[ShapeLike]) -> list[ShapeLike]:
    """Shapes as an op's own inference takes them: it need not know of empty axes, and leaves them to evaluation."""
    return [None if s is None else tuple(max(d, 0) for d in s) for s in shapes]


def _merge_input(node: Node, i: int, have: ShapeLike, want: ShapeLike) -> ShapeLike:
    try:
        return merge_shapes(have, want)
    except Contradiction:
        names = node.input_names
        raise ShapeError(
            f"argument {names[i]!r} ({node.inputs[i].output_name!r}): expected shape {_show(want)}, got {_show(have)}"
        ) from None


def _pad(shapes: list[ShapeLike], n: int) -> list[ShapeLike]:
    return shapes + [None] * (n - len(shapes))


def _same(node: Node, ins: list[ShapeLike], outs: list[ShapeLike]) -> tuple[Sequence[ShapeLike], Sequence[ShapeLike]]:
    found: ShapeLike = None
    for i, s in enumerate((*ins, *outs)):
        try:
            found = merge_shapes(found, s)
        except Contradiction:
            names = node.input_names
            where = f"argument {names[i]!r}" if i < len(ins) else f"output {i - len(ins)}"
            raise ShapeError(
                f"{where}: expected shape {_show(found)}, got {_show(s)}; the operator needs equal shapes"
                f" (broadcast_* operators stretch)"
            ) from None
    return [found] * len(ins), [found] * len(outs)


def _broadcast(node: Node, ins: list[ShapeLike]) -> ShapeLike:
    known = [s for s in ins if s is not None]
    if len(known) != len(ins):
        return None
    rank = max(len(s) for s in known)
    out = []
    for axis in range(-rank, 0):
        dims = [s[axis] for s in known if -axis <= len(s)]
        wide = {d for d in dims if d not in (0, 1)}
        if len(wide) > 1:
            raise ShapeError(f"shapes {' and '.join(map(_show, known))} cannot be broadcast together")
        out.append(wide.pop() if wide else (0 if 0 in dims else 1))
    return tuple(out)


def evaluate_outputs(
    graph: Graph, inputs: Mapping[Node, tuple[tuple[int, ...], str]], out_shapes: Mapping[Node, Any]
) -> list[tuple[tuple[int, ...], str]]:
    """Returns (shape, dtype name) of each output where every input is known, empty axes included.

    Inference reads a 0 as unknown; here a 0 is an empty axis. The whole graph is evaluated abstractly.
    """
    fn = lower_graph(graph, out_shapes=out_shapes)
    avals = [[jax.ShapeDtypeStruct(*inputs[n]) for n in part] for part in (graph.arguments, graph.aux_states)]
    with jax.enable_x64(True):
        outs, _ = jax.eval_shape(lambda a, b, k: fn(a, b, k, False), *avals, key_aval())
    return [(tuple(o.shape), o.dtype.name) for o in outs]
