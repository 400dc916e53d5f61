"""Modules on a device mesh: when a list of contexts is one, and arrays in parts for each device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax.sharding import Mesh

from symjax._config import config
from symjax._data_parallel import cut, merge
from symjax._mesh import MeshContext, mesh_of
from symjax.context import Context
from symjax.lowering.errors import ArgumentError
from symjax.lowering.graph import Graph
from symjax.ndarray import NDArray
from symjax.sparse.storage import infer_storage


def choose_mesh(graph: Graph, contexts: Sequence[Context], workload: Sequence[float], group2ctxs: Sequence[Any],
                given: Mesh | None) -> Mesh | None:
    """Returns the mesh that a module runs on, None for an executor on each context.

    That is for one context, contexts that are one device, unequal work loads, contexts of groups, sparse storage,
    operators that run on the host or whose shapes depend on values, and `config.exact_mxnet`.

    Raises:
      ArgumentError: a mesh is given, and the graph cannot run on it.
    """
    obstacle = _obstacle(graph, workload, group2ctxs)
    if given is not None:
        if obstacle:
            raise ArgumentError(f"a module cannot run on a mesh because of {obstacle}; give a list of contexts")
        return given
    if len(contexts) == 1 or obstacle or config.exact_mxnet:
        return None
    return mesh_of(contexts)


def _obstacle(graph: Graph, workload: Sequence[float], group2ctxs: Sequence[Any]) -> str:
    if len(set(workload)) > 1:
        return "unequal work loads"
    if any(group2ctxs):
        return "group2ctxs"
    for n in graph.nodes:
        if n.op is not None and (n.op.eager or n.op.host):
            return f"operator {n.op.name} ({n.name}), which runs on the host or node by node"
    storage = infer_storage(graph)
    stypes = {s for values in storage.values.values() for s in values}
    stypes.update(storage.gradients(graph.arguments).values())
    return "sparse storage (see symjax.sparse.sharding)" if stypes != {"default"} else ""


def in_parts(array: NDArray, axis: int, contexts: Sequence[Context], batch_size: int) -> list[NDArray]:
    """Returns the part of an array that belongs to each device; all of it if it has no row for each example."""
    ctx = array.context
    assert isinstance(ctx, MeshContext)
    n = len(contexts)
    shape = array.shape
    if axis < 0 or axis >= len(shape) or shape[axis] % batch_size or batch_size < n:
        return [array.as_in_context(c) for c in contexts]
    value = array._data
    parts = ctx.parts(value)
    wanted = (*shape[:axis], shape[axis] // n, *shape[axis + 1:])
    if shape[axis] % n == 0 and all(p.shape == wanted for p in parts):
        return [NDArray._from_jax(p, c) for p, c in zip(parts, contexts, strict=True)]
    each = shape[axis] // batch_size
    ends = [each * (batch_size * i // n) for i in range(n + 1)]
    whole = array.as_in_context(contexts[0])
    return [cut(whole, slice(ends[i], ends[i + 1]), axis).as_in_context(c) for i, c in enumerate(contexts)]


def joined(source: Any, axis: int) -> Any:
    """Returns one array of those of each device; an array as it is."""
    return merge(source, axis) if isinstance(source, (list, tuple)) else source


def prepare_group2ctxs(group2ctxs: Any, n: int) -> list[Any]:
    """Returns a dict from groups to contexts for each device."""
    if group2ctxs is None:
        return [None] * n
    if isinstance(group2ctxs, list):
        if len(group2ctxs) != n:
            raise ArgumentError(f"length of group2ctxs should be {n}, got {len(group2ctxs)}")
        return group2ctxs
    if not isinstance(group2ctxs, dict):
        raise ArgumentError("group2ctxs should be list of dict of str to context, or dict of str to context or list of "
                            "context")
    found: list[dict[str, Context]] = [{} for _ in range(n)]
    for group, given in group2ctxs.items():
        ctxs = [given] if isinstance(given, Context) else list(given)
        if len(ctxs) not in (1, n):
            raise ArgumentError(f"length of group2ctxs[{group}] should be {n} or 1, got {len(ctxs)}")
        for i, mine in enumerate(found):
            mine[group] = ctxs[i if len(ctxs) == n else 0]
    return found
