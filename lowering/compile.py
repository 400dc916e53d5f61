"""Compiled functions of graphs, shared by everything that runs the same graph.

A `Program` holds the jitted functions of one graph. Programs are found by the graph's signature (what it computes, not
which objects it is made of), so two executors of one graph, or a reshape back, compile once; shapes and dtypes are
told apart by JAX's own cache.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.lowering.cpu import compiler_options
from symjax.lowering.errors import MXNetError
from symjax.lowering.graph import Graph, Node
from symjax.lowering.host import take_error
from symjax.lowering.layout import Layout
from symjax.lowering.mirror import mirrored
from symjax.lowering.parts import lower_parts
from symjax.lowering.row_gradients import GradientPlan, TouchedRows, converters, stored
from symjax.lowering.trace import LoweredFn, lower_graph, needs_key
from symjax.sparse.elementwise import at_stored
from symjax.sparse.rules import DENSE, ROWS, dense, stype_of
from symjax.sparse.unique import RowIndex
from symjax.sparse.update import PlacedRows

Plans = tuple[GradientPlan, ...]
Rows = Mapping[int, RowIndex] | None
"""The rows that the batch touches, by the position of the table among the arguments."""

_LIMIT = 512
_programs: collections.OrderedDict[Any, Program] = collections.OrderedDict()
_lock = threading.Lock()


class Program:
    """The compiled functions of one graph on one platform.

    Arguments and auxiliary states are tuples in the graph's order; `key` is the data of a random key (uint32[2]), None
    where `needs_key` is False. On a mesh the arrays keep their `layout`. A graph with nodes on several `devices` runs
    as one compiled call for each part, and updates do not join it.
    """

    def __init__(
        self, graph: Graph, out_shapes: Mapping[Node, tuple[tuple[int, ...], ...]], platform: str | None,
        layout: Layout | None = None, devices: Mapping[Node, Any] | None = None,
        mirrored: Collection[Node] = (),
    ) -> None:  # fmt: skip
        self.graph, self.out_shapes, self.platform, self.layout = graph, out_shapes, platform, layout
        if devices is None:
            self.fn = lower_graph(graph, out_shapes=out_shapes, platform=platform, mirrored=mirrored)
        else:
            self.fn = lower_parts(graph, devices, out_shapes=out_shapes, platform=platform, mirrored=mirrored)
        self.homes = None if devices is None else [devices[n] for n in graph.arguments]
        if layout is not None:
            self.fn = _keeping(layout, self.fn)
        self.needs_key = needs_key(graph)
        # A shape that depends on values is known only while running: such a graph runs node by node.
        self.eager = devices is not None or any(n.op is not None and n.op.eager for n in graph.nodes)
        self.calls_host = any(n.op is not None and n.op.host for n in graph.nodes)
        self.options = compiler_options(graph, platform)
        self.forward = self.compiled(self._forward, static_argnums=(3,))
        self.steps: dict[Any, Step] = {}

    def compiled(self, f: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """Returns a function of this program as it runs: compiled if it can be, its operators' exceptions told."""
        made = f if self.eager else jax.jit(f, compiler_options=self.options, **options)
        return reporting(made) if self.calls_host else made

    def _forward(self, args: Sequence[Any], aux: Sequence[Any], key: Any, train: bool) -> Any:
        return self.fn(args, aux, wrap_key(key), train)

    def step(self, wrt: tuple[int, ...], add: tuple[bool, ...], train: bool, plans: Plans | None = None) -> Step:
        """The differentiated functions with respect to the arguments at positions `wrt`.

        `add` says, for each, whether the gradient is added to the old one; `plans` how it is found and in which storage
        type it is delivered, by default as a dense array.
        """
        key = (wrt, add, train, plans)
        found = self.steps.get(key)
        if found is None:
            found = self.steps[key] = Step(self, wrt, add, train, plans or (GradientPlan(),) * len(wrt))
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Update:
    """A change of tables (a weight, then the states of its optimizer) by a gradient of a step.

    Attributes:
      call: `(arrays, scalars, key) -> results`; the arrays are the weight, the gradient, the states.
      grad: which of the step's gradients it uses.
      weight: the position of the weight among the arguments, None if it is none of them.
      large: for each table, whether its buffer is worth reusing.
      n_out: how many of the results come before the new states; the first is the new weight.
      aux: for each of the results after these, which of the arrays it replaces.
    """

    call: Callable[..., Any]
    grad: int
    weight: int | None
    large: tuple[bool, ...]
    n_out: int
    aux: tuple[int, ...]


class Step:
    """Forward and backward of a program: in one compiled call, with updates or without, or in two calls that hand over
    the residuals.
    """

    def __init__(
        self, program: Program, wrt: tuple[int, ...], add: tuple[bool, ...], train: bool, plans: Plans
    ) -> None:
        self.program, self.wrt, self.add, self.train, self.plans = program, wrt, add, train, plans
        jit = program.compiled
        self.fused, self.forward, self.backward = jit(self._fused), jit(self._vjp), jit(self._backward)
        self._updating: dict[tuple[Update, ...], Callable[..., Any]] = {}
        tables = {i: p for i, p in zip(wrt, plans, strict=True) if p.way == "rows"}
        self.uncast = converters(program.graph, [program.graph.arguments[i] for i in wrt])
        self.touched = TouchedRows(program.graph, tables, program.out_shapes, program.platform) if tables else None

    def rows(self, args: Sequence[Any], aux: Sequence[Any], key: Any) -> Rows:
        """Returns the rows that lookups touch, found on the host where that is fast; None leaves it to the call."""
        if self.touched is None or self.program.platform != "cpu" or self.touched.are_few(args):
            return None
        return self.touched.find_on_host(args, aux, key, self.train)

    def _vjp(self, args: Sequence[Any], aux: Sequence[Any], key: Any, rows: Rows = None) -> tuple[Any, Any, Any]:
        key = wrap_key(key)
        if rows is None and self.touched is not None:
            rows = self.touched.find(args, aux, key, self.train)
        rows = rows or {}
        where = {} if self.touched is None else self.touched.located(rows)

        def f(parts: Sequence[Any]) -> tuple[Any, Any]:
            full = list(args)
            for i, plan, part in zip(self.wrt, self.plans, parts, strict=True):
                full[i] = plan.join(args[i], rows.get(i), part)
            outs, new_aux = self.program.fn(full, aux, key, self.train, where, self.uncast)
            return [stored(o) for o in outs], (outs, new_aux)

        parts = [plan.split(args[i], rows.get(i)) for i, plan in zip(self.wrt, self.plans, strict=True)]
        _, pull, (outs, new_aux) = jax.vjp(f, parts, has_aux=True)
        return outs, new_aux, (pull, rows)

    def _backward(
        self, kept: tuple[Any, Rows], outs: Sequence[Any], heads: Sequence[Any] | None, old: Sequence[Any],
        args: Sequence[Any] = (),
    ) -> list[Any]:  # fmt: skip
        pull, rows = kept
        (parts,) = pull(
            [
                cotangent(o, None if heads is None else h)
                for o, h in zip(outs, heads or [None] * len(outs), strict=True)
            ]
        )
        grads = []
        for i, plan, part, add, before in zip(self.wrt, self.plans, parts, self.add, old, strict=True):
            grad = part if plan.way == plan.stype == DENSE else plan.gradient(args[i], (rows or {}).get(i), part)
            if self.program.layout is not None:
                grad = self.program.layout.like(i, grad)
            elif self.program.homes is not None:
                grad = jax.device_put(grad, self.program.homes[i])  # zeros are made anywhere
            # sparse sums are made by who called, who sees how many rows there are
            grads.append(before + grad if add and plan.stype == DENSE else grad)
        return grads

    def _fused(
        self, args: Sequence[Any], aux: Sequence[Any], key: Any, heads: Sequence[Any] | None, old: Sequence[Any],
        rows: Rows = None,
    ) -> tuple[Any, Any, list[Any]]:  # fmt: skip
        outs, new_aux, kept = self._vjp(args, aux, key, rows)
        return outs, new_aux, self._backward(kept, outs, heads, old, args)

    def updating(self, updates: tuple[Update, ...]) -> Callable[..., Any]:
        """Returns the compiled call of forward, backward and updates.

        It takes the contents of large tables, which it overwrites, and of the others, in the order of the updates;
        what `fused` takes, with None for weights among the arguments; and the scalars of each update. It returns the
        new tables of each update, and what `fused` returns.
        """
        found = self._updating.get(updates)
        if found is None:
            found = self._updating[updates] = jax.jit(
                functools.partial(self._update, updates), donate_argnums=0, compiler_options=self.program.options
            )
        return found

    def _update(
        self, updates: tuple[Update, ...], given: Sequence[Any], kept: Sequence[Any], args: Sequence[Any],
        aux: Sequence[Any], key: Any, heads: Sequence[Any] | None, old: Sequence[Any], rows: Rows,
        scalars: Sequence[Any],
    ) -> tuple[list[list[Any]], tuple[Any, Any, list[Any]]]:  # fmt: skip
        owned, others = iter(given), iter(kept)
        tables = [[next(owned if large else others) for large in u.large] for u in updates]
        full = list(args)
        for u, (weight, *_) in zip(updates, tables, strict=True):
            if u.weight is not None:
                full[u.weight] = weight
        outs, new_aux, grads = self._fused(full, aux, key, heads, old, rows)
        results = []
        for u, (weight, *states), numbers in zip(updates, tables, scalars, strict=True):
            grad = grads[u.grad]
            if self.plans[u.grad].way == "rows" and stype_of(grad) == ROWS:
                grad = PlacedRows(grad, (grad.indices,) * (1 + len(states)))  # each row once, in tables that store all
            arrays = [weight, grad, *states]
            values = u.call(tuple(arrays), numbers, None)
            arrays[0] = values[0]
            for position, value in zip(u.aux, values[u.n_out :], strict=False):
                arrays[position] = value
            changed = [arrays[0], *arrays[2:]]
            if self.program.layout is not None:
                changed = [self.program.layout.like(self.wrt[u.grad], x) for x in changed]
            results.append(changed)
        # buffers are reused in the order of the results: gradients would take those of the tables
        return results, (outs, new_aux, grads)


def cotangent(out: Any, head: Any) -> Any:
    """Returns what the gradient of an output begins with: its head gradient, ones where there is none."""
    part = stored(out)
    if not jnp.issubdtype(part.dtype, jnp.inexact):
        return np.zeros(part.shape, jax.dtypes.float0)
    if head is None:
        return jnp.ones(part.shape, part.dtype)
    return jnp.asarray(dense(head) if part is out else at_stored(out, dense(head)), part.dtype)


def reporting(call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a call that waits for its results and raises what an operator raised on the host, as an MXNetError."""

    @functools.wraps(call)
    def waiting(*args: Any) -> Any:
        take_error()
        try:
            return jax.block_until_ready(call(*args))
        except jax.errors.JaxRuntimeError as e:
            found = take_error()
            if found is None:
                raise
            name, error = found
            text = f"Error in custom operator {name}: {type(error).__name__}: {error}"
            raise MXNetError(text) from error if error.__traceback__ is not None else e

    return waiting


def wrap_key(data: Any) -> Any:
    """The typed key of the two words that a compiled call is given, or None."""
    return None if data is None else jax.random.wrap_key_data(data, impl="threefry2x32")


class _Signed:
    """A graph signature that computes its hash once."""

    __slots__ = ("_hash", "signature")

    def __init__(self, signature: tuple[Any, ...]) -> None:
        self.signature, self._hash = signature, hash(signature)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, _Signed) and self._hash == other._hash and self.signature == other.signature
        )


def _keeping(layout: Layout, fn: LoweredFn) -> LoweredFn:
    """Returns the function with its results laid out."""

    @functools.wraps(fn)
    def run(*args: Any) -> Any:
        return layout.results(*fn(*args))

    return run


def program_for(
    graph: Graph, out_shapes: Mapping[Node, tuple[tuple[int, ...], ...]], platform: str | None,
    layout: Layout | None = None, devices: Mapping[Node, Any] | None = None,
) -> Program:  # fmt: skip
    """Returns the program of a graph, made once for all graphs that compute the same.

    Args:
      graph: the graph.
      out_shapes: inferred shapes of the nodes whose rules ask for them.
      platform: "cpu", "cuda", "rocm", "tpu", or None.
      layout: the shardings of arguments, auxiliary states and outputs on a mesh.
      devices: the device of each node, where they are not all on one.

    Whether nodes are mirrored (see `lowering.mirror`) is decided now.
    """
    repeated = mirrored(graph)
    shapes = tuple((graph.index[n], s) for n, s in sorted(out_shapes.items(), key=lambda kv: graph.index[kv[0]]))
    where = None if devices is None else tuple([devices[n] for n in graph.nodes])
    key = (_Signed(graph.signature), shapes, platform, layout, where, frozenset(graph.index[n] for n in repeated))
    with _lock:
        found = _programs.get(key)
        if found is not None:
            _programs.move_to_end(key)
            return found
        found = _programs[key] = Program(graph, out_shapes, platform, layout, devices, repeated)
        while len(_programs) > _LIMIT:
            _programs.popitem(last=False)
        return found


def compilation_cache(directory: str) -> None:
    """Keeps compiled code in `directory` across processes (JAX's persistent cache, with no lower time limit)."""
    jax.config.update("jax_compilation_cache_dir", directory)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
