"""Symbol.infer_shape and infer_type: MXNet's arguments, results and warnings over `symjax.lowering.infer`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from symjax.lowering.errors import DTypeError, MXNetError, did_you_mean
from symjax.lowering.graph import Graph, Node
from symjax.lowering.infer import Inferred, infer_shapes, infer_types, is_complete
from symjax.lowering.params import NAMED_DTYPES
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
    np_shape = is_np_shape()
    found = infer_shapes(graph, shapes if np_shape else {n: s or None for n, s in shapes.items()}, np_shape=np_shape)
    found.check()
    results = found.of(graph.arguments), found.outputs(), found.of(graph.aux_states)
    if not partial and not all(is_complete(s, np_shape) for part in results for s in part):
        note = f" ({'-1' if np_shape else '0'}s in shape means unknown dimensions)"
        _warn_unknown(graph, found, lambda s: is_complete(s, np_shape), "shape", note)
        return None, None, None
    return tuple([() if s is None and not np_shape else s for s in part] for part in results)


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
