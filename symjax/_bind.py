"""Checking and making the arrays of an executor."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from symjax._mesh import Placement
from symjax.context import Context
from symjax.lowering.errors import BindError, MXNetError, ShapeError, did_you_mean
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.infer import Inferred, evaluate_outputs, infer_shapes, infer_types
from symjax.lowering.trace import lower_graph, needs_shapes
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import class_of, to_device
from symjax.sparse.csr import CSR
from symjax.sparse.row_sparse import RowSparse
from symjax.sparse.storage import Storage, infer_storage
from symjax.symbol._infer import dtype_name
from symjax.symbol.symbol import Symbol
from symjax.util import is_np_shape

REQS = {"null": 0, "write": 1, "add": 3}


@dataclasses.dataclass
class Bound:
    """The arrays of an executor and what was inferred for them."""

    args: list[NDArray]
    grads: list[NDArray | None]
    aux: list[NDArray]
    reqs: list[str]
    outputs: list[tuple[tuple[int, ...], Any]]
    out_shapes: dict[Node, tuple[tuple[int, ...], ...]]
    storage: Storage
    place: Placement

    def reshaped(self, symbol: Symbol, partial: bool, up: bool, shapes: Mapping[str, Any]) -> Bound:
        """The arrays for other input shapes; see `Executor.reshape`."""
        graph = symbol._graph
        names = [n.name for n in graph.arguments]
        for k in shapes:
            if k not in names:
                raise BindError(f"reshape: {k!r} is not an argument.{did_you_mean(k, names)}")
        given = {n: tuple(shapes[n.name]) for n in graph.arguments if n.name in shapes}
        types = infer_types(graph, {n: a._dtype.name for n, a in zip(graph.arguments, self.args, strict=True)})
        found = infer_shapes(graph, given, types, is_np_shape())
        found.check()
        args, grads, aux = [], [], []
        for n, a, g in zip(graph.arguments, self.args, self.grads, strict=True):
            args.append(_resize(n, a, found, partial or n.name in shapes, up, self.place))
            grads.append(g if g is None or args[-1] is a else zeros(args[-1].shape, g._dtype, self.place(n), g.stype))
        for n, a in zip(graph.aux_states, self.aux, strict=True):
            aux.append(_resize(n, a, found, partial, up, self.place))
        return Bound(args, grads, aux, self.reqs, *_outputs(graph, found, types, args, aux), self.storage, self.place)


def _not_a_context(ctx: Any) -> str:
    return f"Context type error: expected a Context such as mx.cpu() or mx.gpu(0), got {ctx!r:.100}"


def bind_arrays(symbol: Symbol, ctx: Any, args: Any, args_grad: Any, grad_req: Any, aux_states: Any,
                group2ctx: Any = None) -> Bound:
    """Checks given arrays; see `symjax.executor.bind`."""
    if not isinstance(ctx, Context):
        raise TypeError(_not_a_context(ctx))
    graph = symbol._graph
    arg_names, aux_names = [n.name for n in graph.arguments], [n.name for n in graph.aux_states]
    found_args = _arrays("args", args, arg_names, missing=False)
    found_aux = _arrays("aux_states", [] if aux_states is None else aux_states, aux_names, missing=False)
    grads: list[NDArray | None] = [None] * len(arg_names)
    if args_grad is not None:
        grads = _arrays("args_grad", args_grad, arg_names, missing=True)
    reqs = grad_reqs(grad_req, arg_names)
    given_args: list[NDArray] = [a for a in found_args if a is not None]
    given_aux: list[NDArray] = [a for a in found_aux if a is not None]
    types, shapes = _infer(graph, given_args, given_aux)
    for n, a, g in zip(arg_names, given_args, grads, strict=True):
        if g is not None and g.shape != a.shape:
            raise ShapeError(f"gradient array of {n!r}: expected shape {a.shape}, got {g.shape}")
    storage = infer_storage(graph, {n: a.stype for n, a in zip(graph.arguments, given_args, strict=True)})
    _report(storage, shapes, types)
    place = Placement(graph, ctx, group2ctx)
    if ctx.spans:
        for n, a, g in [*zip(graph.arguments, given_args, grads, strict=True),
                        *((n, a, None) for n, a in zip(graph.aux_states, given_aux, strict=True))]:
            for x in (a, g):
                _lay(x, place(n, a.shape))
    outs = _outputs(graph, shapes, types, given_args, given_aux)
    return Bound(given_args, grads, given_aux, reqs, *outs, storage, place)


def _lay(array: NDArray | None, ctx: Context) -> None:
    """Moves the contents of an array that is bound to a mesh there."""
    if array is not None:
        value = to_device(array._data, ctx)
        array._ctx = ctx
        array._set_data(value)


def _report(storage: Storage, shapes: Inferred[Any], types: Inferred[str]) -> None:
    storage.report(lambda n: storage.fallback_bytes(n, shapes.values, types.values))


def _infer(
    graph: Graph, args: Sequence[NDArray], aux: Sequence[NDArray]
) -> tuple[Inferred[str], Inferred[tuple[int, ...]]]:
    pairs = [*zip(graph.arguments, args, strict=True), *zip(graph.aux_states, aux, strict=True)]
    types = infer_types(graph, {n: a._dtype.name for n, a in pairs})
    types.check()
    shapes = infer_shapes(graph, {n: a.shape for n, a in pairs}, types, is_np_shape())
    shapes.check()
    return types, shapes


def simple_bind_arrays(
    symbol: Symbol,
    ctx: Any,
    grad_req: Any,
    type_dict: Any,
    stype_dict: Any,
    shared_arg_names: Any,
    shared_buffer: Any,
    shapes: Mapping[str, Any],
    group2ctx: Any = None,
    batch: Mapping[str, int] | None = None,
) -> Bound:
    """Infers and allocates; see `symjax.executor.simple_bind`."""
    if not isinstance(ctx, Context):
        raise TypeError(_not_a_context(ctx))
    graph = symbol._graph
    for k, s in shapes.items():
        if not isinstance(s, (tuple, list)) or any(not isinstance(d, (int, np.integer)) for d in s):
            raise BindError(f"simple_bind error: {k} must be a shape (tuple of int), got {type(s).__name__}")
    names = [n.name for n in graph.arguments]
    reqs = grad_reqs(grad_req, names)
    types = infer_types(
        graph, {n: dtype_name(type_dict[n.name]) for n in graph.inputs if type_dict and n.name in type_dict}
    )
    types.check()
    storage = infer_storage(graph, {n: stype_dict[n.name] for n in graph.inputs if stype_dict and n.name in stype_dict})
    np_shape = is_np_shape()
    given = {n: tuple(shapes[n.name]) for n in graph.inputs if n.name in shapes}
    found = infer_shapes(graph, given if np_shape else {n: s or None for n, s in given.items()}, types, np_shape)
    found.check()
    open_ = [n for n in graph.inputs if not found.is_known(Entry(n, 0))]
    if open_:
        listed = ", ".join(f"{n.name}: {found[Entry(n, 0)] or 'unknown'}" for n in open_)
        inputs = [n.name for n in graph.inputs]
        unused = "".join(f"\n  {k!r} is not an input.{did_you_mean(k, inputs)}" for k in shapes if k not in inputs)
        raise BindError(
            f"simple_bind error: cannot decide the shapes of some arguments ({-np_shape:d} means an unknown dimension)"
            f"; please provide them as keywords, such as {open_[0].name}=(2, 3): {listed}. "
            f"Given: {dict(shapes)}{unused}"
        )
    share: set[str] = set(shared_arg_names or ())
    _report(storage, found, types)
    place = Placement(graph, ctx, group2ctx, batch)
    args = [_shared(n, found, types, storage, place, share, shared_buffer) for n in graph.arguments]
    of_grads = storage.gradients(graph.arguments)
    grads = [
        zeros(a.shape, a._dtype, place(n), of_grads[n]) if r != "null" else None
        for n, a, r in zip(graph.arguments, args, reqs, strict=True)
    ]
    aux = []
    for n in graph.aux_states:
        shape = _known(found[Entry(n, 0)])
        aux.append(zeros(shape, types[Entry(n, 0)] or "float32", place(n, shape)))
    return Bound(args, grads, aux, reqs, *_outputs(graph, found, types, args, aux), storage, place)


def _shared(
    n: Node,
    shapes: Inferred[Any],
    types: Inferred[str],
    storage: Storage,
    place: Placement,
    share: set[str],
    buffer: dict[str, NDArray] | None,
) -> NDArray:
    shape, dtype, stype = _known(shapes[Entry(n, 0)]), types[Entry(n, 0)] or "float32", storage[Entry(n, 0)]
    if buffer is not None:
        old = buffer.get(n.name)
        same = old is not None and old.shape == shape and old._dtype.name == dtype and old.stype == stype
        if old is not None and same and (not share or n.name in share):
            return old
    made = zeros(shape, dtype, place(n, shape), stype)
    if buffer is not None and n.name not in buffer:
        buffer[n.name] = made
    return made


def zeros(shape: tuple[int, ...], dtype: Any, ctx: Context, stype: str = "default") -> NDArray:
    """An NDArray of zeros that takes no memory until it is read or written; a sparse one stores nothing."""

    def fill() -> Any:
        if stype == "default":
            return to_device(np.zeros(shape, dtype), ctx)
        with jax.enable_x64(True):
            kind: Any = CSR if stype == "csr" else RowSparse
            return jax.device_put(kind.empty(shape, dtype), ctx.jax_device)

    return class_of(stype)._pending(shape, dtype, ctx, fill)


def _known(shape: tuple[int, ...] | None) -> tuple[int, ...]:
    assert shape is not None
    return shape


def _outputs(
    graph: Graph, shapes: Inferred[Any], types: Inferred[str], args: Sequence[NDArray], aux: Sequence[NDArray]
) -> tuple[list[tuple[tuple[int, ...], Any]], dict[Node, Any]]:
    """Shapes and dtypes of the outputs, and the shapes of nodes whose rules need them."""
    fixed = {
        n: tuple(_known(s) for s in shapes.values[n])
        for n in needs_shapes(graph)
        if all(shapes.is_known(Entry(n, i)) for i in range(len(shapes.values[n])))
    }
    outs = list(zip(shapes.outputs(), [t or "float32" for t in types.outputs()], strict=True))
    if all(map(shapes.is_known, graph.outputs)):
        return [(_known(s), np.dtype(t)) for s, t in outs], fixed
    # Classic inference reads a 0 as unknown, but arrays may really be empty: what the graph does with them decides.
    if any(n.op is not None and n.op.eager for n in graph.nodes):
        fn = lower_graph(graph, out_shapes=fixed)
        with jax.enable_x64(True):
            result, _ = fn([a._data for a in args], [a._data for a in aux], jax.random.key(0), False)
        return [(tuple(o.shape), o.dtype) for o in result], fixed
    pairs = [*zip(graph.arguments, args, strict=True), *zip(graph.aux_states, aux, strict=True)]
    found = evaluate_outputs(graph, {n: (a.shape, a._dtype.name) for n, a in pairs}, fixed)
    return [(s, np.dtype(t)) for s, t in found], fixed


def grad_reqs(grad_req: Any, names: Sequence[str]) -> list[str]:
    """Expands a grad_req given as text, list or dict to one per argument.

    Raises:
      ValueError: an unknown request, or a list of the wrong length.
    """
    if isinstance(grad_req, str):
        reqs = [grad_req] * len(names)
    elif isinstance(grad_req, (list, tuple)):
        reqs = list(grad_req)
        if len(reqs) != len(names):
            raise BindError(f"grad_req has {len(reqs)} entries, but there are {len(names)} arguments")
    elif isinstance(grad_req, dict):
        reqs = [grad_req.get(n, "null") for n in names]
    else:
        raise ValueError(f"grad_req must be a str, list or dict, got {type(grad_req).__name__}")
    for r in [*reqs, *(grad_req.values() if isinstance(grad_req, dict) else ())]:
        if r not in REQS:
            raise ValueError(f"grad_req must be in {REQS}, got {r!r}")
    return reqs


def _arrays(what: str, given: Any, names: list[str], *, missing: bool) -> list[Any]:
    if isinstance(given, dict):
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise BindError(f"two variables are named {twice[0]!r}: bind {what} as a list in list_arguments order")
        for n in names:
            if n not in given and not missing:
                raise ValueError(f"key `{n}` is missing in `{what}`")
        arrays = [given.get(n) for n in names]
    elif isinstance(given, (list, tuple)):
        arrays = list(given)
        if len(arrays) != len(names):
            kind = "auxiliary states" if what == "aux_states" else "arguments"
            raise ValueError(
                f"Length of {what} does not match the number of {kind}: expected {len(names)}, got {len(arrays)}"
            )
    else:
        raise TypeError(
            f"Only accept list of NDArrays or dict of str to NDArray for {what}, got {type(given).__name__}"
        )
    for n, a in zip(names, arrays, strict=True):
        if not isinstance(a, NDArray) and not (a is None and missing):
            raise TypeError(
                f"Only accept list of NDArrays or dict of str to NDArray: {what} {n!r} is {type(a).__name__}"
            )
    return arrays


def _resize(n: Node, old: NDArray, found: Inferred[Any], allowed: bool, up: bool, place: Placement) -> NDArray:
    name, shape = n.name, found[Entry(n, 0)]
    if old.shape == shape:
        return old
    if shape is None or not found.is_known(Entry(n, 0)):
        raise BindError(f"reshape: the shape of {name!r} cannot be decided: {shape}")
    if not allowed:
        raise MXNetError(
            f"reshape: the shape of unspecified argument {name!r} changes from {old.shape} to {shape}, so the "
            f"new executor would not share it. If this is intended, set partial_shaping=True"
        )
    if math.prod(shape) > math.prod(old.shape):
        if not up:
            raise MXNetError(
                f"reshape: the new shape {shape} of {name!r} is larger than the original {old.shape}. First "
                f"making a big executor and then a smaller one is cheaper; otherwise set "
                f"allow_up_sizing=True"
            )
        return zeros(shape, old._dtype, place(n, shape), old.stype)
    if old.stype != "default":
        return zeros(shape, old._dtype, place(n, shape), old.stype)
    ctx = place(n, shape)
    with jax.enable_x64(True):
        return NDArray._from_jax(to_device(old._data.reshape(-1)[: math.prod(shape)].reshape(shape), ctx), ctx)

