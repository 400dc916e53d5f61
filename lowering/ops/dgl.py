"""Operators on graphs that are stored as csr matrices of edge ids. Their rules are in `symjax.sparse.graph_ops`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jax import Array

from symjax.lowering.errors import ParamError, ShapeError, StorageError
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import SAME, ShapeLike, first_input_dtype, op

Types = tuple[Sequence[str | None], Sequence[str | None]]


def needs_csr(argument: str) -> str:
    """What is said where an argument must be csr and is not."""
    return f"argument {argument!r} must have csr storage; convert it with tostype('csr') or cast_storage(stype='csr')"


def _refuse(name: str, argument: str) -> NoReturn:
    raise StorageError(f"operator {name}: {needs_csr(argument)}")


def _square(shape: ShapeLike, argument: str) -> int:
    """The number of vertices of a graph, 0 if unknown."""
    if shape is None:
        return 0
    if len(shape) != 2 or (shape[0] and shape[1] and shape[0] != shape[1]):
        raise ShapeError(f"argument {argument!r}: expected a square matrix, got shape {shape}")
    return shape[0] or shape[1]


def check_vector(argument: str, shape: ShapeLike) -> None:
    """Raises ShapeError for a shape that is known and no vector's."""
    if shape is not None and len(shape) != 1:
        raise ShapeError(f"argument {argument!r}: expected a vector, got shape {shape}")


def check_matrix(argument: str, shape: ShapeLike) -> None:
    """Raises ShapeError for a shape that is known and no matrix's."""
    if shape is not None and len(shape) != 2:
        raise ShapeError(f"argument {argument!r}: expected a matrix, got shape {shape}")


# ---- sampling


class UniformSampleParams(Params):
    num_args: int = param(doc="How many inputs: the graph and the seed arrays.", ge=2)
    num_hops: int = param(1, doc="How far to go from the seeds.")
    num_neighbor: int = param(2, doc="At most how many edges to follow from a vertex.", ge=0)
    max_num_vertices: int = param(100, doc="Room for vertices in a result, at least the number of seeds.", ge=1)


class NonUniformSampleParams(UniformSampleParams):
    num_args: int = param(doc="How many inputs: the graph, the probabilities and the seed arrays.", ge=3)


def _numbered(first: tuple[str, ...], rest: str) -> Callable[[Any], tuple[str, ...]]:
    return lambda p: (*first, *(f"{rest}{i}" for i in range(p.num_args - len(first))))


_uniform_inputs = _numbered(("csr_matrix",), "seed_arrays")
_non_uniform_inputs = _numbered(("csr_matrix", "probability"), "seed_arrays")


def _sample_outputs(given: int, names: Callable[[Any], tuple[str, ...]]) -> Callable[..., list[ShapeLike]]:
    def outputs(p: UniformSampleParams, ins: list[ShapeLike]) -> list[ShapeLike]:
        n, room = _square(ins[0], "csr_matrix"), p.max_num_vertices
        for name, shape in list(zip(names(p), ins, strict=True))[1:]:
            check_vector(name, shape)
        sets: list[ShapeLike] = [(room + 1,), (room, n), *[(room,)] * given]
        return [s for s in sets for _ in range(p.num_args - given)]

    return outputs


def _uniform_types(p: UniformSampleParams, ins: Sequence[str | None], outs: Sequence[str | None]) -> Types:
    n = p.num_args - 1
    edge = ins[0] or next((t for t in outs[n:2 * n] if t), None)
    return [edge, *["int64"] * n], [*["int64"] * n, *[edge] * n, *["int64"] * n]


def _non_uniform_types(p: UniformSampleParams, ins: Sequence[str | None], outs: Sequence[str | None]) -> Types:
    n = p.num_args - 2
    edge = ins[0] or next((t for t in outs[n:2 * n] if t), None)
    return ([edge, "float32", *["int64"] * n],
            [*["int64"] * n, *[edge] * n, *["float32"] * n, *["int64"] * n])


@op("_contrib_dgl_csr_neighbor_uniform_sample", params=UniformSampleParams, variadic="num_args", eager=True,
    inputs=_uniform_inputs, all_inputs=("csr_matrix", "seed_arrays"), outputs=lambda p: 3 * (p.num_args - 1),
    infer_types=_uniform_types, infer_outputs=_sample_outputs(1, _uniform_inputs))
def dgl_csr_neighbor_uniform_sample(p: UniformSampleParams, *seed_arrays: Array, key: Array) -> NoReturn:
    """Samples the neighbourhoods of seed vertices in a graph.

    From the seeds (layer 0) at most `num_neighbor` edges of each vertex are followed, drawn without replacement, each
    set of them equally likely; from the vertices found (layer 1) likewise, up to `num_hops` layers. The walk ends
    early, with a warning, when `max_num_vertices` vertices are found.

    The inputs are the graph, a square csr matrix (V, V) of edge ids whose row v lists the neighbours of v, and arrays
    of seeds, int64 (S,). The outputs are, for N seed arrays and M = `max_num_vertices`:

    - N vectors (M + 1,), int64: the vertices found, ascending, then zeros; the last element is how many there are.
    - N csr matrices (M, V): row i has the ids of the edges that were followed from the i-th vertex.
    - N vectors (M,), int64: the layer of each vertex, then zeros.

    Raises:
      StorageError: the graph is not csr.
      ParamError: a seed is no vertex of the graph, or there are more seeds than `max_num_vertices`.
    """
    _refuse("_contrib_dgl_csr_neighbor_uniform_sample", "csr_matrix")


@op("_contrib_dgl_csr_neighbor_non_uniform_sample", params=NonUniformSampleParams, variadic="num_args", eager=True,
    inputs=_non_uniform_inputs, all_inputs=("csr_matrix", "probability", "seed_arrays"),
    outputs=lambda p: 4 * (p.num_args - 2), infer_types=_non_uniform_types,
    infer_outputs=_sample_outputs(2, _non_uniform_inputs))
def dgl_csr_neighbor_non_uniform_sample(p: NonUniformSampleParams, *seed_arrays: Array, key: Array) -> NoReturn:
    """Samples the neighbourhoods of seed vertices in a graph, likely vertices more often.

    As dgl_csr_neighbor_uniform_sample, but edges are drawn one after another with probabilities in proportion to those
    of the vertices they lead to. These are the second input, float32 (V,); they need not add up to 1. An edge to a
    vertex of probability 0 is followed only where a vertex has fewer than `num_neighbor` others.

    The outputs are as there, with N vectors (M,), float32, of the probabilities of the vertices before the layers.

    Raises:
      StorageError: the graph is not csr.
      ParamError: as there, or a probability is negative or not finite.
    """
    _refuse("_contrib_dgl_csr_neighbor_non_uniform_sample", "csr_matrix")


# ---- parts of graphs


class SubgraphParams(Params):
    num_args: int = param(doc="How many inputs: the graph and the arrays of vertices.", ge=2)
    return_mapping: bool = param(doc="Also return the subgraphs with the edge ids of the graph.")


_subgraph_inputs = _numbered(("graph",), "data")


def _subgraph_outputs(p: SubgraphParams, ins: list[ShapeLike]) -> list[ShapeLike]:
    check_matrix("graph", ins[0])
    for name, shape in list(zip(_subgraph_inputs(p), ins, strict=True))[1:]:
        check_vector(name, shape)
    return [None if s is None else (s[0], s[0]) for s in ins[1:]] * (1 + p.return_mapping)


def _subgraph_types(p: SubgraphParams, ins: Sequence[str | None], outs: Sequence[str | None]) -> Types:
    edge = ins[0] or next((t for t in outs if t), None)
    return [edge, *["int64"] * (p.num_args - 1)], [edge] * len(outs)


@op("_contrib_dgl_subgraph", params=SubgraphParams, variadic="num_args", eager=True, inputs=_subgraph_inputs,
    all_inputs=("graph", "data"),
    outputs=lambda p: (p.num_args - 1) * (1 + p.return_mapping), infer_types=_subgraph_types,
    infer_outputs=_subgraph_outputs)
def dgl_subgraph(p: SubgraphParams, *data: Array) -> NoReturn:
    """Takes the subgraphs induced by sets of vertices.

    The inputs are the graph, a csr matrix of edge ids, and arrays of vertices, int64 (n,), ascending. For each of these
    there is a csr matrix (n, n) of the edges between its vertices, numbered 0, 1, … in the order of rows; with
    `return_mapping` then for each a second matrix, which holds the edge ids of the graph.

    Raises:
      StorageError: the graph is not csr.
      ParamError: vertices do not ascend, or are not in the graph.
    """
    _refuse("_contrib_dgl_subgraph", "graph")


class GraphCompactParams(Params):
    num_args: int = param(doc="How many inputs: as many graphs as arrays of vertices.", ge=2)
    return_mapping: bool = param(doc="Also return the graphs with the edge ids they had.")
    graph_sizes: Shape = param(doc="How many vertices each graph has.", ge=0)


def compact_inputs(p: GraphCompactParams) -> tuple[str, ...]:
    """The names of the inputs: all graphs, then all arrays of vertices."""
    n = p.num_args // 2
    if p.num_args % 2:
        raise ParamError(f"num_args is {p.num_args}; there must be as many graphs as arrays of vertices")
    return (*(f"graph{i}" for i in range(n)), *(f"vertices{i}" for i in range(n)))


def _compact_outputs(p: GraphCompactParams, ins: list[ShapeLike]) -> list[ShapeLike]:
    n = p.num_args // 2
    for name, shape in zip(compact_inputs(p), ins, strict=True):
        (check_matrix if name.startswith("graph") else check_vector)(name, shape)
    if len(p.graph_sizes) < n:
        raise ParamError(f"graph_sizes {p.graph_sizes} has {len(p.graph_sizes)} entries for {n} graphs")
    for i, (size, shape) in enumerate(zip(p.graph_sizes, ins[:n], strict=False)):
        if shape is not None and shape[0] and size > shape[0]:
            raise ParamError(f"graph_sizes[{i}] is {size}, but argument 'graph{i}' has {shape[0]} rows")
    return [(s, s) for s in p.graph_sizes[:n]] * (1 + p.return_mapping)


@op("_contrib_dgl_graph_compact", params=GraphCompactParams, variadic="num_args", eager=True, inputs=compact_inputs,
    outputs=lambda p: p.num_args // 2 * (1 + p.return_mapping), infer_outputs=_compact_outputs,
    infer_types=lambda p, ins, outs: (["int64"] * len(ins), ["int64"] * len(outs)))
def dgl_graph_compact(p: GraphCompactParams, *graph_data: Array) -> NoReturn:
    """Drops the empty rows and columns of sampled graphs.

    The inputs are csr matrices (M, V) and then, for each, the vertices (M + 1,) that belong to its rows, as the
    sampling operators return them; `graph_sizes` are the numbers of vertices, the last elements of these vectors. For
    each there is a csr matrix (size, size) between the places of the vertices, its edges numbered 0, 1, … in the order
    of rows; with `return_mapping` then for each a second matrix, which holds the edge ids of the input.

    MXNet leaves the matrices of `return_mapping` empty.

    Raises:
      StorageError: a graph is not csr.
      ParamError: a size is not that of the vertices, or an edge leads to a vertex that is not among them (the sampling
        was cut short at `max_num_vertices`).
    """
    _refuse("_contrib_dgl_graph_compact", "graph0")


# ---- entries


@op("_contrib_dgl_adjacency", shape=SAME, infer_types=lambda p, ins, outs: (["int64"], ["float32"]))
def dgl_adjacency(p: Params, data: Array) -> NoReturn:
    """Returns the adjacency matrix of a graph: a csr matrix (V, V), float32, with 1 where `data` has an edge id.

    Raises:
      StorageError: the graph is not csr.
    """
    _refuse("_contrib_dgl_adjacency", "data")


def _edge_inputs(p: Params, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    check_matrix("data", ins[0])
    check_vector("u", ins[1])
    check_vector("v", ins[2])
    known = ins[1] or ins[2] or outs[0]
    return [ins[0], known, known]


@op("_contrib_edge_id", infer_inputs=_edge_inputs, infer_types=first_input_dtype,
    infer_outputs=lambda p, ins: [ins[1] or ins[2]])
def edge_id(p: Params, data: Array, u: Array, v: Array) -> NoReturn:
    """Looks up the ids of edges: `out[i] = data[u[i], v[i]]` if that is stored, else -1.

    `data` is a csr matrix; `u` and `v` are vectors of one length and of any dtype. The result has the dtype of `data`.
    Where an edge is stored twice, its first id counts.

    Raises:
      StorageError: the graph is not csr.
    """
    _refuse("_contrib_edge_id", "data")


class GetnnzParams(Params):
    axis: int | None = param(None, doc="0: count by column; 1: count by row; None: count all.", ge=0, le=1)


def _getnnz_outputs(p: GetnnzParams, ins: list[ShapeLike]) -> list[ShapeLike]:
    check_matrix("data", ins[0])
    if p.axis is None:
        return [(1,)]
    return [None if ins[0] is None else (ins[0][1 - p.axis],)]


@op("_contrib_getnnz", params=GetnnzParams, infer_outputs=_getnnz_outputs,
    infer_types=lambda p, ins, outs: (ins, ["int64"]))
def getnnz(p: GetnnzParams, data: Array) -> NoReturn:
    """Counts the stored values of a csr matrix (M, N), zeros that are stored included.

    The result is int64: (1,) without an axis, (N,) for `axis=0`, (M,) for `axis=1`. MXNet has no `axis=0`.

    Raises:
      StorageError: the matrix is not csr.
    """
    _refuse("_contrib_getnnz", "data")
