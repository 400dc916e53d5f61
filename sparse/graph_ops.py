"""Rules of the operators on graphs that are stored as csr matrices of edge ids.

Sampling, subgraphs and compaction give matrices whose size depends on values: they run on concrete arrays, on the host.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from symjax.lowering.errors import MissingLoweringError, ParamError, ShapeError
from symjax.lowering.ops.dgl import (
    GetnnzParams,
    GraphCompactParams,
    NonUniformSampleParams,
    SubgraphParams,
    UniformSampleParams,
    check_vector,
    compact_inputs,
    needs_csr,
)
from symjax.lowering.params import Params
from symjax.sparse import sampling
from symjax.sparse.csr import CSR, HostCSR
from symjax.sparse.rules import CSR_, DENSE, Stypes, add_rule, storage_rule

_UNIFORM, _NON_UNIFORM = "_contrib_dgl_csr_neighbor_uniform_sample", "_contrib_dgl_csr_neighbor_non_uniform_sample"
_SUBGRAPH, _COMPACT = "_contrib_dgl_subgraph", "_contrib_dgl_graph_compact"
_BLOCK = 64

F = TypeVar("F", bound=Callable[..., Any])


def _graph_rule(name: str, argument: str, out: Any) -> Callable[[F], F]:
    """A rule for a csr graph and dense arrays; whatever else is given is an error."""

    def register(rule: F) -> F:
        add_rule((name,), lambda p, have: have == (CSR_, *[DENSE] * (len(have) - 1)), out, rule, None)
        add_rule((name,), lambda p, have: True, f"{needs_csr(argument)}; other arguments must be dense", None, None)
        return rule

    return register


def _concrete(name: str, *arrays: Any) -> None:
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arrays)):
        raise MissingLoweringError(f"the size of the results of {name} depends on values, which a compiled function "
                                   f"does not have; call it on arrays and give its results to the compiled function")


def _placed(values: Sequence[Any], graph: CSR) -> tuple[Any, ...]:
    """Puts host arrays and matrices where the graph is."""
    place = next(iter(graph.devices())) if isinstance(graph.data, jax.Array) else None
    return tuple(jax.device_put(list(values), place))


def _vertices(argument: str, ids: Any, n: int) -> np.ndarray:
    """A vector of vertices as int64.

    Raises:
      ShapeError: it is no vector.
      ParamError: there are others than 0 … n - 1 in it.
    """
    check_vector(argument, ids.shape)
    ids = np.asarray(ids).astype(np.int64)
    wrong = ids[(ids < 0) | (ids >= n)]
    if wrong.size:
        raise ParamError(f"argument {argument!r}: vertex {wrong[0]} is not in a graph of {n} vertices")
    return ids


# ---- sampling


def _sample(p: UniformSampleParams, graph: CSR, seed_arrays: Sequence[Any], choose: sampling.Choose,
            host: HostCSR) -> list[tuple[sampling.Neighborhood, Any, CSR, Any]]:
    """For each array of seeds: the neighbourhood, and the vertices, edges and layers that are returned."""
    n, room = graph.shape[0], p.max_num_vertices
    if graph.shape[1] != n:
        raise ShapeError(f"argument 'csr_matrix': expected a square matrix, got shape {graph.shape}")
    found = []
    for i, seeds in enumerate(seed_arrays):
        ids = _vertices(f"seed_arrays{i}", seeds, n)
        if len(ids) > room:
            raise ParamError(f"argument 'seed_arrays{i}': {len(ids)} seeds are more than max_num_vertices={room}")
        got = sampling.walk(host, ids, p.num_hops, room, choose)
        if got.cut:
            warnings.warn(f"the neighbourhood of seed_arrays{i} was cut short: max_num_vertices={room} vertices were "
                          f"found before all edges were followed. Sample fewer seeds, neighbours or hops, or allow "
                          f"more vertices", UserWarning, stacklevel=2)
        vertices = np.zeros(room + 1, np.int64)
        vertices[: len(got.vertices)] = got.vertices
        vertices[-1] = len(got.vertices)
        edges = CSR.from_host(host.data[got.edges], host.indices[got.edges], sampling.indptr_of(got.rows, room),
                              (room, n))
        found.append((got, vertices, edges, _filled(got.layers, room)))
    return found


def _filled(values: np.ndarray, room: int) -> np.ndarray:
    out = np.zeros(room, values.dtype)
    out[: len(values)] = values
    return out


def _generator(key: Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


@_graph_rule(_UNIFORM, "csr_matrix", lambda p, have: _three(have, 1, ()))
def uniform_sample(p: UniformSampleParams, csr_matrix: CSR, *seed_arrays: Any, key: Array) -> tuple[Any, ...]:
    """Vertices, edges and layers of the neighbourhood of each array of seeds."""
    _concrete(_UNIFORM, csr_matrix, seed_arrays, key)
    host = sampling.host_view(csr_matrix)
    found = _sample(p, csr_matrix, seed_arrays, sampling.uniform(host, p.num_neighbor, _generator(key)), host)
    _, vertices, edges, layers = zip(*found, strict=True)
    return _placed([*vertices, *edges, *layers], csr_matrix)


@_graph_rule(_NON_UNIFORM, "csr_matrix", lambda p, have: _three(have, 2, (DENSE,)))
def non_uniform_sample(p: NonUniformSampleParams, csr_matrix: CSR, probability: Any, *seed_arrays: Any,
                       key: Array) -> tuple[Any, ...]:
    """Vertices, edges, probabilities and layers of the neighbourhood of each array of seeds."""
    _concrete(_NON_UNIFORM, csr_matrix, probability, seed_arrays, key)
    check_vector("probability", probability.shape)
    weights = np.asarray(probability)
    if len(weights) < csr_matrix.shape[0]:
        raise ShapeError(f"argument 'probability': expected one for each of {csr_matrix.shape[0]} vertices, got "
                         f"{len(weights)}")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ParamError("argument 'probability': probabilities must be finite and not negative")
    host = sampling.host_view(csr_matrix)
    choose = sampling.by_probability(host, p.num_neighbor, weights, _generator(key))
    found = _sample(p, csr_matrix, seed_arrays, choose, host)
    walks, vertices, edges, layers = zip(*found, strict=True)
    chances = [_filled(weights[w.vertices], p.max_num_vertices) for w in walks]
    return _placed([*vertices, *edges, *chances, *layers], csr_matrix)


def _three(have: Stypes, before: int, between: Stypes) -> Stypes:
    """The storage types of a sample: vectors, matrices and vectors for each array after the first `before` inputs."""
    n = len(have) - before
    return tuple(t for t in (DENSE, CSR_, *between, DENSE) for _ in range(n))


# ---- parts of graphs


@_graph_rule(_SUBGRAPH, "graph", CSR_)
def subgraph(p: SubgraphParams, graph: CSR, *data: Any) -> tuple[Any, ...]:
    """The induced subgraphs with new edge ids, then those with the old ones."""
    _concrete(_SUBGRAPH, graph, data)
    host = sampling.host_view(graph)
    new, old = [], []
    for i, ids in enumerate(data):
        vertices = _vertices(f"data{i}", ids, graph.shape[0])
        if (np.diff(vertices) < 0).any():
            raise ParamError(f"argument 'data{i}': the vertices must ascend")
        rows, columns, positions = sampling.induced(host, vertices, max(graph.shape))
        n = len(vertices)
        indptr = sampling.indptr_of(rows, n)
        # MXNet: edges are numbered from 0, its documentation counts from 1
        new.append(CSR.from_host(np.arange(len(rows), dtype=host.data.dtype), columns, indptr, (n, n)))
        old.append(CSR.from_host(host.data[positions], columns, indptr, (n, n)))
    return _placed([*new, *(old if p.return_mapping else ())], graph)


def _half_csr(p: Any, have: Stypes) -> bool:
    n = len(have) // 2
    return have == (*[CSR_] * n, *[DENSE] * n)


@storage_rule(_COMPACT, stypes=_half_csr, out=CSR_)
def graph_compact(p: GraphCompactParams, *graph_data: Any) -> tuple[Any, ...]:
    """The graphs between their own vertices with new edge ids, then those with the old ones."""
    _concrete(_COMPACT, graph_data)
    names = compact_inputs(p)
    n = len(graph_data) // 2
    if len(p.graph_sizes) < n:
        raise ParamError(f"graph_sizes {p.graph_sizes} has {len(p.graph_sizes)} entries for {n} graphs")
    new, old = [], []
    for name, graph, ids, size in zip(names[n:], graph_data[:n], graph_data[n:], p.graph_sizes, strict=False):
        host = sampling.host_view(graph)
        vertices = _vertices(name, _listed(name, ids, graph.shape[0], size), graph.shape[1])
        indptr = host.indptr[: size + 1].astype(np.int64)
        kept = slice(0, int(indptr[-1]))
        columns = sampling.locate(vertices, host.indices[kept], graph.shape[1])
        if (columns < 0).any():
            lost = host.indices[kept][columns < 0][0]
            raise ParamError(f"argument {name!r}: an edge leads to vertex {lost}, which is not among the {size} "
                             f"vertices; a sample can be compacted if max_num_vertices did not cut it short")
        new.append(CSR.from_host(np.arange(len(columns), dtype=host.data.dtype), columns, indptr, (size, size)))
        old.append(CSR.from_host(host.data[kept], columns, indptr, (size, size)))
    # MXNet: the matrices of return_mapping are left empty
    return _placed([*new, *(old if p.return_mapping else ())], graph_data[0])


add_rule((_COMPACT,), lambda p, have: True, f"{needs_csr('graph0')}, as all graphs do; vertices must be dense", None,
         None)


def _listed(argument: str, ids: Any, rows: int, size: int) -> np.ndarray:
    """The first `size` of a vector of vertices whose last element must be `size`."""
    check_vector(argument, ids.shape)
    if len(ids) != rows + 1:
        raise ShapeError(f"argument {argument!r}: expected {rows + 1} elements, one more than the graph has rows, got "
                         f"{len(ids)}")
    ids = np.asarray(ids)
    if ids[-1] != size or size > rows:
        raise ParamError(f"argument {argument!r}: its last element says that there are {ids[-1]} vertices, graph_sizes "
                         f"says {size}")
    return ids[:size]


# ---- entries


@_graph_rule("_contrib_dgl_adjacency", "data", CSR_)
def adjacency(p: Params, data: CSR) -> CSR:
    """1 for each stored entry."""
    return data.with_data(data.valid.astype(jnp.float32))


@_graph_rule("_contrib_edge_id", "data", DENSE)
def edge_id(p: Params, data: CSR, u: Array, v: Array) -> Array:
    """data[u, v] where it is stored, else -1."""
    rows, columns = u.astype(jnp.int64), v.astype(jnp.int64)
    inside = (rows >= 0) & (rows < data.shape[0])
    rows = jnp.where(inside, rows, 0)
    begin = data.indptr.at[rows].get(mode="fill", fill_value=0).astype(jnp.int64)
    end = data.indptr.at[rows + 1].get(mode="fill", fill_value=0).astype(jnp.int64)
    place = _bisect(data.indices, begin, end, columns)

    def is_there(place: Array) -> Array:
        return (place < end) & (data.indices.at[place].get(mode="clip") == columns)

    def in_any_order() -> Array:
        # matrices that nobody checked may have columns in any order
        ascending = jnp.all((data.indices[1:] >= data.indices[:-1]) | (data.rows[1:] != data.rows[:-1]))
        return jax.lax.cond(ascending, lambda: place, lambda: _scan(data.indices, begin, end, columns))

    place = jax.lax.cond(jnp.all(is_there(place)), lambda: place, in_any_order)
    none = jnp.asarray(-1, jnp.int64).astype(data.dtype)
    return jnp.where(inside & is_there(place), data.data.at[place].get(mode="clip"), none)


def _bisect(indices: Array, begin: Array, end: Array, columns: Array) -> Array:
    """The first place in [begin, end) whose column is not less, or `end`; columns ascend."""

    def halve(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) // 2
        less = indices.at[middle].get(mode="clip") < columns
        return jnp.where((low < high) & less, middle + 1, low), jnp.where((low < high) & ~less, middle, high)

    return jax.lax.fori_loop(0, indices.shape[0].bit_length(), halve, (begin, end))[0]


def _scan(indices: Array, begin: Array, end: Array, columns: Array) -> Array:
    """The first place in [begin, end) with the column, or `end`."""
    steps = jnp.arange(_BLOCK, dtype=jnp.int64)

    def look(state: tuple[Array, Array]) -> tuple[Array, Array]:
        place, hit = state
        block = place[:, None] + steps
        same = (indices.at[block].get(mode="clip") == columns[:, None]) & (block < end[:, None])
        found = jnp.any(same, axis=1)
        first = place + jnp.argmax(same, axis=1)
        return jnp.where(hit, place, jnp.where(found, first, jnp.minimum(place + _BLOCK, end))), hit | found

    def going(state: tuple[Array, Array]) -> Array:
        place, hit = state
        return jnp.any(~hit & (place < end))

    return jax.lax.while_loop(going, look, (begin, jnp.zeros(begin.shape, bool)))[0]


@_graph_rule("_contrib_getnnz", "data", DENSE)
def getnnz(p: GetnnzParams, data: CSR) -> Array:
    """The number of stored entries of the matrix, its columns or its rows."""
    if p.axis is None:
        return data.indptr[-1:].astype(jnp.int64)
    if p.axis == 1:
        return jnp.diff(data.indptr.astype(jnp.int64))
    return jnp.zeros((data.shape[1],), jnp.int64).at[data.indices].add(data.valid.astype(jnp.int64), mode="drop")
