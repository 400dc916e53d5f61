"""Symbol.infer_shape and infer_type: MXNet's arguments, results and warnings over `symjax.lowering.infer`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from symjax.lowering.errors import DTypeError, MXNetError, did_you_mean
from symjax.lowering.graph import Graph, Node
from symjax.lowering.infer import Inferred, evaluate_outputs, infer_shapes, infer_types, is_complete
from symjax.lowering.params import NAMED_DTYPES
from symjax.lowering.trace import needs_shapes
from symjax.sparse.storage import infer_storage
from symjax.util import is_np_shape


def dtype_name(dtype: Any) -> str:
    """The name of a dtype given as text, numpy dtype or scalar type.

    Raises:
      DTypeError: it is not one of MXNet's types.
    """
    try:
        name = "bfloat16" if dtype is ml_dtypes.bfloat16 or dtype == "bfloat16" else np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in NAMED_DTYPES:
        raise DTypeError(f"dtype {name!r} is not supported; expected one of {', '.join(NAMED_DTYPES)}")
    return name


def numpy_type(name: str | None) -> Any:
    """The numpy scalar type of a dtype name."""
    if name is None:
        return None
    return ml_dtypes.bfloat16 if name == "bfloat16" else (np.bool_ if name == "bool" else np.dtype(name).type)


def infer_shape(graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool = False) -> Any:
    shapes = _given(graph, args, kwargs, _check_shape, "shape")
    if is_np_shape():
        return _infer_np_shape(graph, shapes, partial)
    found = infer_shapes(graph, {n: tuple(s) if s else None for n, s in shapes.items()})
    found.check()
    results = found.of(graph.arguments), found.outputs(), found.of(graph.aux_states)
    if not partial and not all(is_complete(s) for part in results for s in part):
        _warn_unknown(graph, found, is_complete, "shape", " (0s in shape means unknown dimensions)")
        return None, None, None
    return tuple([() if s is None else s for s in part] for part in results)


def _infer_np_shape(graph: Graph, shapes: Mapping[Node, tuple[int, ...]], partial: bool) -> Any:
    """Numpy semantics: () is a scalar and 0 an empty axis; -1 is an unknown dimension and None an unknown shape."""
    found = infer_shapes(graph, {n: tuple(max(d, 0) for d in s) for n, s in shapes.items()})
    found.check()
    known = {n: tuple(shapes[n]) if n in shapes and -1 not in shapes[n] else found.values[n][0] for n in graph.inputs}
    whole = {n: s for n, s in known.items() if s is not None and (n in shapes or 0 not in s) and -1 not in s}
    outs: list[Any] = found.outputs()
    if len(whole) == len(known) and not all(is_complete(s) for s in outs):
        fixed = {n: tuple(found.values[n]) for n in needs_shapes(graph)}
        outs = [s for s, _ in evaluate_outputs(graph, {n: (s, "float32") for n, s in whole.items()}, fixed)]
    elif len(whole) != len(known):
        if not partial:
            _warn_unknown(graph, found, is_complete, "shape", " (-1s in shape means unknown dimensions)")
            return None, None, None
        outs = [_np_unknown(s) for s in outs]
    inputs = {n: s if n in whole else _np_unknown(s) for n, s in known.items()}
    return [inputs[n] for n in graph.arguments], outs, [inputs[n] for n in graph.aux_states]


def _np_unknown(shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if shape is None else tuple(d or -1 for d in shape)


def infer_type(graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool = False) -> Any:
    given = {
        n: None if t is None else dtype_name(t)
        for n, t in _given(graph, args, kwargs, lambda k, v: None, "type").items()
    }
    found = infer_types(graph, given)
    found.check()
    results = found.of(graph.arguments), found.outputs(), found.of(graph.aux_states)
    if not partial and not all(t is not None for part in results for t in part):
        _warn_unknown(graph, found, lambda t: t is not None, "type", "")
        return None, None, None
    return tuple([numpy_type(t) for t in part] for part in results)


def infer_storage_type(graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    found = infer_storage(graph, _given(graph, args, kwargs, lambda k, v: None, "storage type"))
    arguments, aux = ([found.values[n][0] for n in nodes] for nodes in (graph.arguments, graph.aux_states))
    return arguments, found.outputs(), aux


def _given(graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any], check: Any, what: str) -> dict[Node, Any]:
    if args and kwargs:
        raise ValueError(f"Can only specify known argument {what}s either by positional or kwargs way.")
    if args:
        arguments = graph.arguments
        if len(args) > len(arguments):
            raise MXNetError(f"infer_{what}: {len(args)} {what}s given, but the graph has {len(arguments)} arguments")
        for i, v in enumerate(args):
            if v is not None:
                check(f"#{i}", v)
        return {n: v for n, v in zip(arguments, args, strict=False) if v is not None}
    names = {n.name for n in graph.inputs}
    for k, v in kwargs.items():
        check(k, v)
        if k not in names:
            order = [n.name for n in graph.inputs]
            raise MXNetError(
                f"infer_{what}: keyword argument name {k} not found.{did_you_mean(k, order)}\n"
                f"Candidate arguments: {', '.join(order)}"
            )
    return {n: kwargs[n.name] for n in graph.inputs if n.name in kwargs}


def _check_shape(key: str, value: Any) -> None:
    if not isinstance(value, tuple):
        raise TypeError(f"Arguments need to be shapes (tuple), but '{key}' is {type(value)}.")
    for d in value:
        if isinstance(d, bool) or not isinstance(d, (int, np.integer)):
            raise TypeError(f"Arguments need to be shapes (tuple of int), but '{key}' is {value}.")


def _warn_unknown(graph: Graph, found: Inferred[Any], known: Any, what: str, note: str) -> None:
    lines = [
        f"\t{n.name}: {'()' if v is None and what == 'shape' else v}"
        for n, v in zip(graph.inputs, found.of(graph.inputs), strict=True)
        if not known(v)
    ]
    if lines:
        text = f"Cannot decide {what} for the following arguments{note}. Consider providing them as input:\n"
    else:
        lines = [f"\t{n.name} ({n.op.name})" for n in graph.nodes if n.op and not all(map(known, found.values[n]))][:8]
        text = f"Cannot decide {what} for the outputs of the following nodes{note}:\n"
    warnings.warn(text + "\n".join(lines), stacklevel=4)
