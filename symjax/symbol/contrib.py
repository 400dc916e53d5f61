"""`mx.sym.contrib`: control flow written with Python functions, and the contrib operators from the registry."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Sequence
from typing import Any

from symjax._op_functions import regroup
from symjax.attribute import AttrScope
from symjax.lowering import registry
from symjax.lowering.graph import Entry, Graph, Node, topological_order
from symjax.name import current
from symjax.symbol import _functions
from symjax.symbol._compose import create_node
from symjax.symbol.functions import var
from symjax.symbol.symbol import Symbol, call

__all__ = ["cond", "foreach", "rand_zipfian", "while_loop"]

_SCOPE = "__subgraph_name__"
_scope_counts: collections.Counter[str] = collections.Counter()

Nested = Any
"""A Symbol, or nested lists of Symbols."""


# ---- nested lists


def _flatten(args: Nested, what: str) -> tuple[list[Symbol], Any]:
    """Returns the single outputs in order, and the nesting (0: one output, n: a symbol of n outputs, a list)."""
    if isinstance(args, Symbol):
        return list(args), 0 if len(args) == 1 else len(args)
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"{what} must be a Symbol or nested lists of Symbols, got {type(args).__name__}")
    parts = [_flatten(a, what) for a in args]
    return [s for flat, _ in parts for s in flat], [fmt for _, fmt in parts]


# ---- subgraphs


class _Body:
    """A subgraph made from Python code: its graph, and where each of its inputs comes from.

    Nodes made in the scope belong to the subgraph. What they read from outside is cut off and becomes an input, and so
    does every variable made in the scope.
    """

    def __init__(self, scope: str, outputs: Sequence[Symbol]) -> None:
        entries = [self._inside(s, scope, outputs) for s in outputs]
        self._closure: dict[str, Entry] = {}
        self.graph = Graph(self._cut(scope, entries))
        self.inputs = self.graph.inputs
        names = [n.name for n in self.inputs]
        if len(set(names)) != len(names):
            raise ValueError(f"the inputs of a subgraph must have different names, got {', '.join(names)}")

    @staticmethod
    def _inside(symbol: Symbol, scope: str, outputs: Sequence[Symbol]) -> Entry:
        """The entry of an output; one from outside, or a variable, is passed through an identity node."""
        entry = symbol._entry
        if entry.node.is_variable or entry.node.attrs.get(_SCOPE) != scope:
            with AttrScope(**{_SCOPE: scope}):
                return call("_copy", [symbol], {}, hint="identity")._entry
        return entry

    def _cut(self, scope: str, outputs: Sequence[Entry]) -> list[Entry]:
        new: dict[Node, Node] = {}
        cut: dict[Entry, Node] = {}

        def mapped(e: Entry) -> Entry:
            if e.node in new:
                return Entry(new[e.node], e.index)
            if e not in cut:
                cut[e] = Node(None, e.output_name)
                self._closure[e.output_name] = e
            return Entry(cut[e], 0)

        for node in topological_order(outputs):
            if node.attrs.get(_SCOPE) == scope:
                copy = node.copy()
                copy.inputs = [mapped(e) for e in node.inputs]
                new[node] = copy
        return [mapped(e) for e in outputs]

    def source(self, node: Node, own: dict[str, Entry]) -> Entry:
        """What feeds an input that is no placeholder; `own` shares variables made inside among subgraphs."""
        hit = self._closure.get(node.name)
        if hit is None:
            hit = own.setdefault(node.name, Entry(Node(None, node.name, node.attrs), 0))
        return hit


def _scope_name(name: str) -> str:
    outer = current(AttrScope).get(None).get(_SCOPE)
    name = f"{outer}${name}" if outer else name
    _scope_counts[name] += 1
    return f"{name}{_scope_counts[name] - 1}"


def _placeholder_name(symbol: Symbol) -> str:
    entry = symbol._entry
    return f"{entry.node.name}-{entry.index}"


def _make(op_name: str, bodies: Sequence[_Body], inputs: Sequence[Entry], attrs: dict[str, Any]) -> list[Symbol]:
    text = {k: str(v) for k, v in attrs.items()}
    text["num_args"] = str(len(inputs) + len(bodies))
    node = create_node(registry.get(op_name), inputs, {}, text, None, op_name, None, [b.graph for b in bodies])
    return [Symbol._of((e,)) for e in node.entries()]


# ---- control flow


def foreach(
    body: Callable[[Any, Any], Any], data: Nested, init_states: Nested, name: str = "foreach"
) -> tuple[Nested, Nested]:
    """Runs `body` on each slice of `data` along axis 0, carrying states.

    Args:
      body: `(slice or nested slices, states) -> (outputs, new states)` in symbols; new states are nested as the old.
      data: what is cut; all with the same first axis.
      init_states: the states before the first step.
      name: prefix of the subgraph's name.

    Returns:
      The outputs of all steps, stacked along a new axis 0, and the final states, nested as `body` gave them.

    Raises:
      ValueError: the nesting of the states changes, or `body` ignores some data or state.
    """
    flat_data, data_fmt = _flatten(data, "data of foreach")
    flat_states, state_fmt = _flatten(init_states, "init_states of foreach")
    scope = _scope_name(name)
    names = [_placeholder_name(s) for s in (*flat_data, *flat_states)]
    n = len(flat_data)
    with AttrScope(**{_SCOPE: scope}):
        placeholders = [var(x) for x in names]
        out, states = body(regroup(placeholders[:n], data_fmt), regroup(placeholders[n:], state_fmt))
        flat_out, out_fmt = _flatten(out, "output of the body of foreach")
        new_states, new_fmt = _flatten(states, "states of the body of foreach")
    if new_fmt != state_fmt:
        raise ValueError(f"body of foreach must return states nested as init_states ({state_fmt}), got {new_fmt}")
    made = _Body(scope, [*flat_out, *new_states])
    place = {node.name: i for i, node in enumerate(made.inputs)}
    unused = [s.name for s, x in zip((*flat_data, *flat_states), names, strict=True) if x not in place]
    if unused:
        raise ValueError(f"body of foreach does not use {', '.join(map(str, unused))}: leave it out")
    locs = [place[x] for x in names]
    rest = [node for node in made.inputs if node.name not in names]
    inputs = [*(s._entry for s in (*flat_data, *flat_states)), *(made.source(node, {}) for node in rest)]
    outs = _make(
        "_foreach",
        [made],
        inputs,
        {
            "num_outputs": len(flat_out) + len(new_states),
            "num_out_data": len(flat_out),
            "in_state_locs": locs[n:],
            "in_data_locs": locs[:n],
            "remain_locs": [place[node.name] for node in rest],
        },
    )
    return regroup(outs[: len(flat_out)], out_fmt), regroup(outs[len(flat_out) :], state_fmt)


class _Union:
    """The inputs of a node with several subgraphs, each listed once."""

    def __init__(self, given: dict[str, Entry]) -> None:
        self._given = given
        self._own: dict[str, Entry] = {}
        self._place: dict[Entry, int] = {}

    @property
    def entries(self) -> list[Entry]:
        return list(self._place)

    def add(self, body: _Body) -> list[int]:
        """Where each input of the subgraph stands among the node's inputs."""
        sources = [self._given.get(n.name) or body.source(n, self._own) for n in body.inputs]
        return [self._place.setdefault(e, len(self._place)) for e in sources]


def while_loop(
    cond: Callable[..., Symbol],
    func: Callable[..., Any],
    loop_vars: Nested,
    max_iterations: Any = None,
    name: str = "while_loop",
) -> tuple[Nested, Nested]:
    """Runs `func` while `cond` holds, at most `max_iterations` times.

    Args:
      cond: `(*loop_vars) -> Symbol` of one number; 0 ends the loop.
      func: `(*loop_vars) -> (step outputs, new loop_vars)`.
      loop_vars: the variables before the first step.
      max_iterations: bound on the steps, and length of the stacked outputs.
      name: prefix of the subgraphs' names.

    Returns:
      The step outputs stacked along a new axis 0 (zeros behind the last step; MXNet leaves memory uninitialised
      there), and the final loop variables.

    Raises:
      ValueError: `max_iterations` is missing, the number of variables changes, or one takes no part.
    """
    if max_iterations is None:
        raise ValueError("max_iterations should be specified")
    try:
        max_iterations = int(max_iterations)
    except (TypeError, ValueError):
        raise ValueError("Cannot convert max_iterations to python int") from None
    flat, fmt = _flatten(loop_vars, "loop_vars of while_loop")
    if not flat:
        raise ValueError("loop_vars should contain at least one element")
    names = [_placeholder_name(s) for s in flat]
    single = not isinstance(fmt, list)

    def placeholders() -> list[Any]:
        grouped = regroup([var(x) for x in names], fmt)
        return [grouped] if single else grouped

    condition_scope = _scope_name(name + "_cond")
    with AttrScope(**{_SCOPE: condition_scope}):
        holds = cond(*placeholders())
        if not isinstance(holds, Symbol) or len(holds) != 1:
            raise ValueError("Return of cond must be a Symbol")
    condition = _Body(condition_scope, [holds])
    body_scope = _scope_name(name + "_func")
    with AttrScope(**{_SCOPE: body_scope}):
        out, new = func(*placeholders())
        flat_out, out_fmt = _flatten([] if out is None else out, "step outputs of while_loop")
        flat_new, _ = _flatten([] if new is None else new, "loop_vars of while_loop")
    if len(flat_new) != len(flat):
        raise ValueError("The number of loop_vars should be consistent during the loop")
    body = _Body(body_scope, [*flat_out, *flat_new])
    place = {node.name: i for i, node in enumerate(body.inputs)}
    for i, x in enumerate(names, 1):
        if x not in place:
            raise ValueError(f"The {i}-th loop_var doesn't involve into the computation")
    union = _Union({x: s._entry for x, s in zip(names, flat, strict=True)})
    cond_locs, func_locs = union.add(condition), union.add(body)
    outs = _make(
        "_while_loop",
        [condition, body],
        union.entries,
        {
            "max_iterations": max_iterations,
            "cond_input_locs": cond_locs,
            "func_input_locs": func_locs,
            "func_var_locs": [place[x] for x in names],
            "num_out_data": len(flat_out),
            "num_outputs": len(flat_out) + len(flat_new),
        },
    )
    return regroup(outs[: len(flat_out)], out_fmt), regroup(outs[len(flat_out) :], fmt)


def cond(pred: Symbol, then_func: Callable[[], Nested], else_func: Callable[[], Nested], name: str = "cond") -> Nested:
    """Evaluates one of two branches.

    Args:
      pred: a symbol of one number; 0 chooses the second branch.
      then_func, else_func: `() -> outputs`, alike in number, shapes and data types.
      name: prefix of the subgraphs' names.

    Returns:
      The outputs of the chosen branch, nested as `then_func` gave them.

    Raises:
      ValueError: `pred` has several outputs, or the branches differ in their number of outputs.
    """

    def branch(function: Callable[[], Nested], kind: str) -> tuple[_Body, int, Any]:
        scope = _scope_name(name + kind)
        with AttrScope(**{_SCOPE: scope}):
            flat, fmt = _flatten(function(), "outputs of a branch of cond")
        return _Body(scope, flat), len(flat), fmt

    condition, count, _ = branch(lambda: pred, "_pred")
    if count != 1:
        raise ValueError("pred should always be a single output")
    then, num_outputs, fmt = branch(then_func, "_then")
    other, num_else, _ = branch(else_func, "_else")
    if num_outputs != num_else:
        raise ValueError("Number of outputs differs between then-branch and else-branch")
    union = _Union({})
    locs = [union.add(b) for b in (condition, then, other)]
    outs = _make(
        "_cond",
        [condition, then, other],
        union.entries,
        {
            "cond_input_locs": locs[0],
            "then_input_locs": locs[1],
            "else_input_locs": locs[2],
            "num_outputs": num_outputs,
        },
    )
    return regroup(outs, fmt)


def rand_zipfian(true_classes: Symbol, num_sampled: int, range_max: int) -> tuple[Symbol, Symbol, Symbol]:
    """Draws classes from the approximate Zipf distribution P(c) = log((c + 2) / (c + 1)) / log(range_max + 1).

    Args:
      true_classes: (n,) classes whose expected counts are wanted.
      num_sampled: how many classes to draw, with replacement.
      range_max: number of classes.

    Returns:
      The classes drawn (num_sampled,) int64, and the expected counts P(c) * num_sampled of the true classes and of
      those drawn, float64.
    """
    from symjax.symbol import random

    log_range = math.log(range_max + 1)
    drawn = random.uniform(0, log_range, shape=(num_sampled,), dtype="float64")
    sampled = (drawn.exp() - 1).astype("int64") % range_max

    def expected(classes: Symbol) -> Symbol:
        c = classes.astype("float64")
        return ((c + 2.0) / (c + 1.0)).log() / log_range * num_sampled

    return sampled, expected(true_classes), expected(sampled)


__getattr__, __dir__ = _functions.fill("contrib", globals())
