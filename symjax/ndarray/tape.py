"""Recording of imperative calls for differentiation: thread-local flags, the tape's nodes, and the backward pass.

A recorded call keeps the pure function it ran and the JAX arrays it read. `backward` walks the nodes from the heads and
applies to each a compiled vector-Jacobian product of its function, which recomputes what it needs of the forward pass.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.lowering.errors import MXNetError
from symjax.lowering.row_gradients import GradientPlan, plan_call, stored
from symjax.ndarray import storage
from symjax.sparse import exact
from symjax.sparse.demand import joint_index
from symjax.sparse.elementwise import at_stored
from symjax.sparse.row_sparse import Located
from symjax.sparse.rules import apply, dense, is_converter, stype_of, without_cast

Call = Callable[..., tuple[Any, ...]]
"""`(arrays, scalars, key) -> outputs`, the form of the functions that `dispatch` compiles."""


class _State(threading.local):
    """Whether calls are recorded, and whether ops run in training mode; one per thread."""

    recording = False
    training = False


STATE = _State()


class Leaf:
    """A variable: an array whose gradient is wanted."""

    __slots__ = ("fresh", "grad", "req")

    def __init__(self, grad: Any, req: str) -> None:
        self.grad, self.req, self.fresh = grad, req, False


class Node:
    """A recorded call."""

    __slots__ = ("arrays", "call", "extra", "outputs", "rule", "sources")

    def __init__(self, call: Call | None, arrays: tuple[Any, ...], extra: tuple[Any, ...],
                 sources: tuple[Any, ...], outputs: tuple[Any, ...], rule: tuple[Any, Any] | None = None) -> None:
        self.call, self.arrays, self.extra = call, arrays, extra
        self.rule = rule  # the op and its parameters, if the call is of one
        self.sources = sources  # per input: None, a Leaf, or (Node, output index)
        self.outputs = outputs  # per output: its shape and dtype

    def wanted(self) -> tuple[int, ...]:
        """The inputs that gradients flow to."""
        return tuple(i for i, s in enumerate(self.sources) if s is not None and _is_float(self.arrays[i]))

    def pull(self, cotangents: Sequence[Any], create_graph: bool) -> dict[int, Any]:
        """Returns input cotangents by position from those of the floating outputs, all as NDArrays."""
        wanted = self.wanted()
        if not wanted:
            return {}
        if self.call is None:
            raise MXNetError("this graph was differentiated before and its buffers are freed; pass retain_graph=True "
                             "to the first backward to keep them")
        plans, rows = self._sparse_plans(wanted) if self.rule is not None and not create_graph else (None, {})
        call = backward_of(self._uncast(wanted, plans) or self.call, len(self.arrays), wanted, plans)
        sources = (*self.sources, *(c._tape for c in cotangents), None)
        made = _run(call, (*self.arrays, *(c._data for c in cotangents), rows), self.extra, sources,
                    cotangents[0].context, create_graph)
        return dict(zip(wanted, made, strict=True))

    def _uncast(self, wanted: tuple[int, ...], plans: tuple[GradientPlan, ...] | None) -> Call | None:
        """The call without the conversion of its dense result to sparse storage, if it ends with one."""
        if self.rule is None or not is_converter(self.rule[0]):
            return None
        op, params = self.rule
        made_dense = {i for k, i in enumerate(wanted) if plans is None or plans[k].way == "default"}
        stypes = ["default" if i in made_dense else stype_of(a) for i, a in enumerate(self.arrays)]
        plain = without_cast(op, params, tuple(stypes))
        return None if plain == params else _plain_call(op, plain)

    def _sparse_plans(self, wanted: tuple[int, ...]) -> tuple[tuple[GradientPlan, ...] | None, dict[int, Any]]:
        """How gradients are found that need not be dense, and the rows that lookups touch."""
        assert self.rule is not None
        plans = plan_call(*self.rule, [stype_of(a) for a in self.arrays], wanted)
        if all(p.way == p.stype == "default" for p in plans):
            return None, {}
        rows = {}
        for i, p in zip(wanted, plans, strict=True):
            for site in p.sites:
                value = self.arrays[site.index[0]]
                value = value.with_columns() if stype_of(value) == "csr" else value
                rows[i] = joint_index(p.sites, [value], self.arrays[i].shape[0], True)
        return plans, rows

    def free(self) -> None:
        """Lets go of the arrays; the node cannot be differentiated again."""
        self.call, self.arrays, self.extra = None, tuple(map(_typeof, self.arrays)), ()


class FunctionNode(Node):
    """A call whose gradient is Python code, `python(cotangents, create_graph) -> cotangents` (`autograd.Function`)."""

    __slots__ = ("python",)

    def __init__(self, python: Callable[..., Sequence[Any]], arrays: tuple[Any, ...], sources: tuple[Any, ...],
                 outputs: tuple[Any, ...]) -> None:
        super().__init__(None, arrays, (), sources, outputs)
        self.python = python

    def pull(self, cotangents: Sequence[Any], create_graph: bool) -> dict[int, Any]:
        grads = self.python(cotangents, create_graph)
        return {i: g for i, g in enumerate(grads) if g is not None and self.sources[i] is not None}


@functools.lru_cache(maxsize=256)
def _plain_call(op: Any, params: Any) -> Call:
    def fn(values: tuple[Any, ...], scalars: Any, key: Any) -> tuple[Any, ...]:
        return (apply(op, params, values, None, {}),)

    return jax.jit(fn)


def _typeof(a: Any) -> Any:
    return a if isinstance(a, dict) else jax.ShapeDtypeStruct(a.shape, a.dtype)


def _is_float(a: Any) -> bool:
    return jnp.issubdtype(a.dtype, jnp.inexact)


@functools.lru_cache(maxsize=8192)
def backward_of(call: Call, n: int, wanted: tuple[int, ...], plans: tuple[GradientPlan, ...] | None = None) -> Call:
    """Returns the vector-Jacobian product of a call of `n` inputs, itself a call.

    Its arrays are the inputs, the cotangents of the floating outputs (trailing ones may be missing: zero) and the rows
    that planned lookups touch, by input; its outputs the cotangents of the inputs `wanted`.
    """
    ways = plans or (GradientPlan(),) * len(wanted)

    def backward(values: tuple[Any, ...], scalars: Any, key: Any) -> tuple[Any, ...]:
        inputs, rows = values[:n], values[-1]

        def floating(*parts: Any) -> Any:
            full = list(inputs)
            for i, plan, part in zip(wanted, ways, parts, strict=True):
                full[i] = plan.join(inputs[i], rows.get(i), part)
                if i in rows:
                    full[i] = Located(full[i], rows[i].inverse[0])
            outs = tuple(o for o in call(tuple(full), scalars, key) if _is_float(o))
            return tuple(map(stored, outs)), outs

        parts = [plan.split(inputs[i], rows.get(i)) for i, plan in zip(wanted, ways, strict=True)]
        made, pull, outs = jax.vjp(floating, *parts, has_aux=True)
        given = values[n:-1]
        heads = [h if stype_of(o) == "default" else at_stored(o, h) for o, h in zip(outs, map(dense, given))]  # noqa: B905  # fewer heads than outputs
        got = pull((*heads, *(jnp.zeros(o.shape, o.dtype) for o in made[len(given):])))
        return tuple(p.gradient(inputs[i], rows.get(i), g) for i, p, g in zip(wanted, ways, got, strict=True))

    return jax.jit(backward) if hasattr(call, "lower") else backward  # ops that cannot be traced run as they are


_add = jax.jit(lambda xs, scalars, key: (xs[0] + xs[1],))


def _run(call: Call, arrays: tuple[Any, ...], extra: tuple[Any, ...], sources: tuple[Any, ...], ctx: Any,
         create_graph: bool) -> list[Any]:
    with jax.enable_x64(True):
        results = call(arrays, *extra)
    made = [storage.wrap(r, ctx) for r in results]
    if create_graph and any(s is not None for s in sources):
        node = Node(call, arrays, extra, sources, tuple((o.shape, o._dtype) for o in made))
        for i, o in enumerate(made):
            o._tape = (node, i)
    return made


def _sum(a: Any, b: Any, create_graph: bool) -> Any:
    if a.stype == b.stype != "default":
        with jax.enable_x64(True):
            return storage.wrap(exact.add(a._data, b._data), a.context)
    a, b = a.tostype("default"), b.tostype("default")
    return _run(_add, (a._data, b._data), ((), None), (a._tape, b._tape), a.context, create_graph)[0]


def _order(heads: Sequence[Any]) -> list[Node]:
    """The nodes that the heads depend on, every one after those it reads."""
    done: dict[int, Node] = {}
    stack: list[tuple[Node, bool]] = [(h._tape[0], False) for h in reversed(heads) if isinstance(h._tape, tuple)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if ready:
            done[id(node)] = node
            continue
        stack.append((node, True))
        stack.extend((s[0], False) for s in node.sources if isinstance(s, tuple) and id(s[0]) not in done)
    return list(done.values())


def differentiate(heads: Sequence[Any], head_grads: Sequence[Any], retain_graph: bool,
                  create_graph: bool) -> dict[int, tuple[Leaf, Any]]:
    """Returns the gradients of all variables that the heads depend on, by `id` of their leaf.

    Args:
      heads: NDArrays on the tape.
      head_grads: their cotangents as NDArrays.
      retain_graph: keep what is needed to differentiate again.
      create_graph: record the backward pass, so that gradients can be differentiated.

    Raises:
      MXNetError: a head is not on the tape, or its graph has been freed.
    """
    found: dict[Any, Any] = {}
    leaves: dict[int, tuple[Leaf, Any]] = {}

    def deposit(source: Any, value: Any) -> None:
        if isinstance(source, Leaf):
            old = leaves.get(id(source))
            leaves[id(source)] = (source, value if old is None else _sum(old[1], value, create_graph))
        elif source is not None:
            key = (id(source[0]), source[1])
            found[key] = _sum(found[key], value, create_graph) if key in found else value

    for h, g in zip(heads, head_grads, strict=True):
        if h._tape is None:
            raise MXNetError("Cannot differentiate node because it is not in a computational graph. Compute the heads "
                             "inside autograd.record(), from arrays that have attach_grad() called.")
        deposit(h._tape, g)
    nodes = _order(heads)
    for node in reversed(nodes):
        cotangents = _cotangents(node, found)
        if cotangents:
            for i, value in node.pull(cotangents, create_graph).items():
                deposit(node.sources[i], value)
    if not (retain_graph or create_graph):
        for node in nodes:
            node.free()
    return leaves


def _cotangents(node: Node, found: dict[Any, Any]) -> list[Any]:
    """The cotangents of the node's floating outputs, zeros where none came; empty if none came at all."""
    given = [found.pop((id(node), i), None) for i in range(len(node.outputs))]
    have = next((g for g in given if g is not None), None)
    if have is None:
        return []
    return [g if g is not None else storage.class_of("default")._from_jax(storage.to_device(np.zeros(shape, dtype),
                                                                                         have.context), have.context)
            for g, (shape, dtype) in zip(given, node.outputs, strict=True) if jnp.issubdtype(dtype, jnp.inexact)]


def record(call: Call, arrays: tuple[Any, ...], extra: tuple[Any, ...], inputs: Sequence[Any],
           outputs: Sequence[Any], rule: tuple[Any, Any] | None = None) -> None:
    """Puts a call on the tape if an input is on it.

    `outputs` are its leading outputs as NDArrays; `rule` the op and its parameters, if the call applies one.
    """
    sources = tuple([x._tape for x in inputs])
    if any(s is not None for s in sources):
        node = Node(call, arrays, extra, sources, tuple((o.shape, o._dtype) for o in outputs), rule)
        for i, o in enumerate(outputs):
            o._tape = (node, i)


def refuse_in_place(a: Any) -> None:
    """Raises where a recorded array would be overwritten."""
    if a._tape is not None:
        raise MXNetError("Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with autograd: "
                         "the array is part of the recorded computation")
