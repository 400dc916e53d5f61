"""Calls of the operators on graphs, for real MXNet (`tests/oracle/record_dgl.py`) and `tests/test_dgl_ops.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

FULL = (np.arange(1, 21), np.array([1, 2, 3, 4, 0, 2, 3, 4, 0, 1, 3, 4, 0, 1, 2, 4, 0, 1, 2, 3]), np.arange(0, 21, 4))
"""Five vertices, each with an edge to every other."""
PATH = (np.arange(100, 107), np.arange(1, 8), np.minimum(np.arange(9), 7))
"""0 -> 1 -> … -> 7."""
TREE = (np.arange(10, 24), np.arange(1, 15), np.minimum(2 * np.arange(16), 14))
"""Fifteen vertices: i -> 2 i + 1 and 2 i + 2."""
JUMBLED = (np.array([10, 11, 12]), np.array([2, 0, 1]), np.array([0, 3, 3, 3]))
"""One row, whose columns do not ascend."""
LOOSE = (np.array([1, 2, 3, 4, 5, 6, 7]), np.array([0, 3, 0, 2, 1, 1, 2]), np.array([0, 2, 4, 5, 7]))
ZEROS = (np.array([0, 5, 6]), np.array([1, 2, 0]), np.array([0, 2, 2, 3]))
"""A zero is stored, a row is empty."""
SAMPLED = (np.array([50, 51, 52]), np.array([4, 2, 6]), np.array([0, 1, 2, 3, 3, 3]))
"""Five rows of eight columns, as sampling gives them."""
EMPTY = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(5, np.int64))

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]
Call = Callable[[Any], Any]


def graph(mx: Any, parts: Parts, dtype: str = "int64", columns: int | None = None) -> Any:
    rows = len(parts[2]) - 1
    return mx.nd.sparse.csr_matrix(parts, shape=(rows, columns or rows), dtype=dtype)


def ids(mx: Any, values: Any, dtype: str = "int64") -> Any:
    return mx.nd.array(values, dtype=dtype)


def sample(mx: Any, g: Any, *seeds: Any, hops: int = 1, width: int = 2, room: int = 10, prob: Any = None) -> list[Any]:
    """The outputs of a sampling operator, without the elements that MXNet does not set."""
    c = mx.nd.contrib
    more = {"num_hops": hops, "num_neighbor": width, "max_num_vertices": room}
    if prob is None:
        out = c.dgl_csr_neighbor_uniform_sample(g, *seeds, num_args=1 + len(seeds), **more)
    else:
        out = c.dgl_csr_neighbor_non_uniform_sample(g, prob, *seeds, num_args=2 + len(seeds), **more)
    n = len(seeds)
    counts = [int(v.asnumpy()[-1]) for v in out[:n]]
    shapes = [np.array(x.shape) for x in out]
    trimmed = [x if x.stype == "csr" else x[: counts[i % n]] for i, x in enumerate(out)]
    return [np.array(counts), *shapes, *trimmed]


def _sampled(parts: Parts, *seeds: list[int], prob: list[float] | None = None, **more: Any) -> Call:
    return lambda mx: sample(mx, graph(mx, parts), *(ids(mx, s) for s in seeds), **more,
                             prob=None if prob is None else mx.nd.array(prob))


def _subgraph(parts: Parts, *vertices: list[int], mapping: bool = True, dtype: str = "int64",
              columns: int | None = None) -> Call:
    return lambda mx: mx.nd.contrib.dgl_subgraph(graph(mx, parts, columns=columns),
                                                 *(ids(mx, v, dtype) for v in vertices), num_args=1 + len(vertices),
                                                 return_mapping=mapping)


def _compact(parts: Parts, vertices: list[int], size: Any, columns: int | None = None, **more: Any) -> Call:
    return lambda mx: mx.nd.contrib.dgl_graph_compact(graph(mx, parts, columns=columns), ids(mx, vertices), **{
        "num_args": 2, "return_mapping": False, "graph_sizes": size, **more})


def _two_compacted(mx: Any) -> Any:
    g = graph(mx, TREE)
    a, b, ga, gb, *_ = mx.nd.contrib.dgl_csr_neighbor_uniform_sample(
        g, ids(mx, [0]), ids(mx, [1, 2]), num_args=3, num_hops=2, num_neighbor=2, max_num_vertices=20)
    sizes = tuple(int(x.asnumpy()[-1]) for x in (a, b))
    return mx.nd.contrib.dgl_graph_compact(ga, gb, a, b, num_args=4, return_mapping=False, graph_sizes=sizes)


def _edge(parts: Parts, u: list[float], v: list[float], dtype: str = "int64", kind: str = "int64") -> Call:
    return lambda mx: mx.nd.contrib.edge_id(graph(mx, parts, kind), ids(mx, u, dtype), ids(mx, v, dtype))


def _count(parts: Parts, kind: str = "float32", columns: int | None = None, **more: Any) -> Call:
    return lambda mx: mx.nd.contrib.getnnz(graph(mx, parts, kind, columns), **more)


CASES: dict[str, Call] = {
    "sample: every edge": _sampled(FULL, [3], width=9),
    "sample: cut by the room": _sampled(FULL, [3], width=9, room=3),
    "sample: room for the seeds only": _sampled(FULL, [0, 1, 2, 3, 4], room=5),
    "sample: no neighbours": _sampled(FULL, [3], width=0),
    "sample: defaults": lambda mx: mx.nd.contrib.dgl_csr_neighbor_uniform_sample(graph(mx, PATH), ids(mx, [0]))[1],
    **{f"sample: path, {h} hops, room {m}": _sampled(PATH, [0], hops=h, room=m)
       for h, m in ((0, 4), (-1, 4), (3, 10), (3, 1), (3, 2), (3, 3), (3, 4))},
    "sample: seeds on one path": _sampled(PATH, [0, 2], hops=3),
    "sample: seeds in any order": _sampled(PATH, [5, 0], hops=3),
    "sample: one seed twice": _sampled(PATH, [2, 2], room=2),
    "sample: a leaf": _sampled(PATH, [7]),
    **{f"sample: tree, {h} hops, room {m}": _sampled(TREE, [0], hops=h, room=m)
       for h, m in ((2, 20), (3, 20), (3, 4), (3, 6), (3, 7))},
    "sample: two arrays": _sampled(TREE, [0], [1, 2], room=5),
    "sample: columns in any order": _sampled(JUMBLED, [0], width=3, room=4),
    "sample: more seeds than room": _sampled(PATH, [0, 2, 4], room=2),
    "sample: dense graph": lambda mx: sample(mx, mx.nd.ones((5, 5), dtype="int64"), ids(mx, [0])),
    "sample: seeds of float32": lambda mx: sample(mx, graph(mx, PATH), ids(mx, [0], "float32")),
    "sample: seeds in a matrix": lambda mx: sample(mx, graph(mx, PATH), ids(mx, [[0]])),
    "sample: not square": lambda mx: sample(mx, graph(mx, PATH, columns=9), ids(mx, [0])),
    "sample: no seeds": lambda mx: mx.nd.contrib.dgl_csr_neighbor_uniform_sample(graph(mx, PATH), num_args=1),
    "sample: no such vertex": _sampled(PATH, [77]),
    "sample: negative vertex": _sampled(PATH, [-1]),
    "likely: every edge": _sampled(TREE, [0], hops=2, prob=list(np.arange(15.0)), room=20),
    "likely: two arrays": _sampled(TREE, [0], [1, 2], prob=list(np.arange(15.0)), room=5),
    "likely: certain choice": _sampled(FULL, [0], prob=[0, 1, 0, 0, 1]),
    "likely: more probabilities": _sampled(PATH, [0], prob=[1.0] * 12),
    "likely: dense graph": lambda mx: sample(mx, mx.nd.ones((5, 5), dtype="int64"), ids(mx, [0]), prob=mx.nd.ones(5)),
    "likely: float64": lambda mx: sample(mx, graph(mx, PATH), ids(mx, [0]), prob=mx.nd.ones(8, dtype="float64")),
    "likely: matrix": lambda mx: sample(mx, graph(mx, PATH), ids(mx, [0]), prob=mx.nd.ones((8, 1))),
    "subgraph": _subgraph(LOOSE, [0, 1, 2]),
    "subgraph: no mapping": _subgraph(LOOSE, [0, 1, 2], mapping=False),
    "subgraph: two": _subgraph(LOOSE, [0, 1, 2], [1, 3]),
    "subgraph: two, no mapping": _subgraph(LOOSE, [0, 1, 2], [1, 3], mapping=False),
    "subgraph: one vertex twice": _subgraph(LOOSE, [0, 0, 1]),
    "subgraph: no edges": _subgraph(EMPTY, [0, 1]),
    "subgraph: an empty row": _subgraph(LOOSE, [2, 3]),
    "subgraph: columns in any order": _subgraph(JUMBLED, [0, 1, 2]),
    "subgraph: not square": _subgraph(LOOSE, [0, 1], columns=6),
    "subgraph: vertices of float32": _subgraph(LOOSE, [0, 1], dtype="float32"),
    "subgraph: vertices in a matrix": _subgraph(LOOSE, [[0], [1]]),  # type: ignore[list-item]  # an error
    "subgraph: not ascending": _subgraph(LOOSE, [2, 0, 1]),
    "subgraph: no such vertex": _subgraph(LOOSE, [0, 7]),
    "subgraph: nothing but a graph": _subgraph(LOOSE),
    "subgraph: dense graph": lambda mx: mx.nd.contrib.dgl_subgraph(
        mx.nd.ones((4, 4), dtype="int64"), ids(mx, [0]), num_args=2, return_mapping=True),
    "subgraph: return_mapping is missing": lambda mx: mx.nd.contrib.dgl_subgraph(graph(mx, LOOSE), ids(mx, [0])),
    "compact": _compact(FULL, [0, 1, 2, 3, 4, 5], 5),
    "compact: size as a tuple": _compact(FULL, [0, 1, 2, 3, 4, 5], (5,)),
    "compact: more sizes": _compact(FULL, [0, 1, 2, 3, 4, 5], (5, 3)),
    "compact: fewer rows": _compact(SAMPLED, [1, 2, 4, 6, 0, 4], 4, columns=8),
    "compact: two": _two_compacted,
    "compact: vertices in any order": _compact(JUMBLED, [2, 0, 1, 3], 3),
    "compact: no edges": _compact(EMPTY, [0, 1, 0, 0, 2], 2),
    "compact: other size": _compact(FULL, [0, 1, 2, 3, 4, 5], 4),
    "compact: larger than the graph": _compact(FULL, [0, 1, 2, 3, 4, 5], 6),
    "compact: too few vertices": _compact(FULL, [0, 1, 2, 3, 4], 4),
    "compact: a vertex is missing": _compact(JUMBLED, [2, 1, 0, 2], 2),
    "compact: no sizes": _compact(FULL, [0, 1, 2, 3, 4, 5], ()),
    "compact: dense graph": lambda mx: mx.nd.contrib.dgl_graph_compact(
        mx.nd.ones((1, 1), dtype="int64"), ids(mx, [0, 1]), num_args=2, return_mapping=False, graph_sizes=1),
    "compact: graph of float32": lambda mx: mx.nd.contrib.dgl_graph_compact(
        graph(mx, FULL, "float32"), ids(mx, [0, 1, 2, 3, 4, 5]), num_args=2, return_mapping=False, graph_sizes=5),
    "adjacency": lambda mx: mx.nd.contrib.dgl_adjacency(graph(mx, LOOSE)),
    "adjacency: stored zeros": lambda mx: mx.nd.contrib.dgl_adjacency(graph(mx, ZEROS, columns=5)),
    "adjacency: no edges": lambda mx: mx.nd.contrib.dgl_adjacency(graph(mx, EMPTY)),
    "adjacency: float32": lambda mx: mx.nd.contrib.dgl_adjacency(graph(mx, LOOSE, "float32")),
    "adjacency: dense": lambda mx: mx.nd.contrib.dgl_adjacency(mx.nd.ones((3, 3), dtype="int64")),
    **{f"edge_id: {kind} {t}": _edge(LOOSE, [0, 0, 1, 1, 2, 2, 3], [0, 1, 1, 2, 0, 1, 2], t, kind)
       for kind, t in (("int64", "int64"), ("int64", "float32"), ("float32", "float32"), ("float64", "int64"),
                       ("float16", "float64"), ("int32", "int32"), ("uint8", "int64"))},
    "edge_id: no such column": _edge(LOOSE, [1, 2], [9, -1]),
    "edge_id: fractions": _edge(LOOSE, [1.7], [0.9], "float32"),
    "edge_id: stored zeros": _edge(ZEROS, [0, 0, 1], [1, 2, 1]),
    "edge_id: columns in any order": _edge(JUMBLED, [0, 0, 0, 1], [0, 1, 2, 0]),
    "edge_id: no edges": _edge(EMPTY, [0, 3], [1, 2]),
    "edge_id: matrices": _edge(LOOSE, [[1]], [[0]]),  # type: ignore[list-item]  # an error
    "edge_id: lengths differ": _edge(LOOSE, [1, 2], [0]),
    "edge_id: dense": lambda mx: mx.nd.contrib.edge_id(mx.nd.ones((3, 3)), mx.nd.zeros(2), mx.nd.zeros(2)),
    **{f"getnnz: {kind}": _count(LOOSE, kind) for kind in ("float32", "float64", "float16", "int64", "int32", "uint8")},
    "getnnz: axis None": _count(LOOSE, axis=None),
    "getnnz: axis 1": _count(LOOSE, axis=1),
    "getnnz: stored zeros": _count(ZEROS, columns=5),
    "getnnz: stored zeros, axis 1": _count(ZEROS, columns=5, axis=1),
    "getnnz: no entries": _count(EMPTY, axis=1),
    "getnnz: axis -1": _count(LOOSE, axis=-1),
    "getnnz: axis 2": _count(LOOSE, axis=2),
    "getnnz: dense": lambda mx: mx.nd.contrib.getnnz(mx.nd.ones((3, 3))),
    "getnnz: row_sparse": lambda mx: mx.nd.contrib.getnnz(mx.nd.ones((3, 3)).tostype("row_sparse")),
}


def described(result: Any) -> list[Any]:
    """The outputs of a call as JSON: lists for numpy arrays, [storage, dtype, shape, numbers…] for NDArrays."""
    if not isinstance(result, (list, tuple)):
        result = [result]
    return [_described(x) for x in result]


def _described(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.tolist()
    parts = (x.data, x.indices, x.indptr) if x.stype == "csr" else (x,)
    return [x.stype, np.dtype(x.dtype).name, list(x.shape), *(p.asnumpy().tolist() for p in parts)]


# ---- distributions

WEIGHTS = [0.1, 0.5, 0.2, 0.05, 0.9]


def frequencies(mx: Any, width: int, prob: list[float] | None, calls: int, stars: int) -> dict[str, int]:
    """How often each set of neighbours was chosen, e.g. {"0 3": 17, …}.

    In each call vertices 0 … stars - 1 choose among the same five others. MXNet makes one choice for all of them.
    """
    k = len(WEIGHTS)
    n = stars + k
    parts = (np.arange(stars * k), np.tile(np.arange(stars, n), stars), np.minimum(np.arange(n + 1) * k, stars * k))
    g, seeds = graph(mx, parts), ids(mx, np.arange(stars))
    weights = None if prob is None else mx.nd.array([1.0] * stars + prob)
    found: Counter[str] = Counter()
    for _ in range(calls):
        edges = sample(mx, g, seeds, width=width, room=n + 1, prob=weights)[-3 if prob else -2]
        columns = edges.indices.asnumpy().reshape(stars, width) - stars
        found.update(" ".join(map(str, row)) for row in columns.tolist())
    return dict(sorted(found.items()))
