"""Operators on graphs that are stored as csr: against MXNet's records, and what the random ones must hold."""

from __future__ import annotations

import itertools
import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import symjax as mx
from symjax.lowering import registry
from symjax.lowering.errors import DTypeError, MissingLoweringError, MXNetError, ParamError, ShapeError, StorageError
from symjax.lowering.params import Params
from symjax.sparse import CSR, graph_ops, sampling
from tests.compiles import compiles
from tests.dgl_cases import (
    CASES,
    EMPTY,
    FULL,
    JUMBLED,
    LOOSE,
    PATH,
    SAMPLED,
    TREE,
    WEIGHTS,
    ZEROS,
    described,
    frequencies,
    graph,
    ids,
    sample,
)

GOLDEN = json.loads((Path(__file__).parent / "golden" / "dgl.json").read_text())
C = mx.nd.contrib


def matrix(parts: Any, dtype: str = "int64", columns: int | None = None) -> CSR:
    data, indices, indptr = parts
    rows = len(indptr) - 1
    return CSR.from_host(data.astype(dtype), indices, indptr, (rows, columns or rows))


@pytest.mark.parametrize("name", CASES)
def test_as_mxnet(name: str) -> None:
    """The same results; where MXNet raises, or ends the process, an MXNetError."""
    wanted = GOLDEN["cases"][name]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the neighbourhood of", UserWarning)
        if isinstance(wanted, str):
            with pytest.raises(MXNetError):
                CASES[name](mx)
        else:
            assert described(CASES[name](mx)) == wanted


def test_no_stale_records() -> None:
    assert set(GOLDEN["cases"]) == set(CASES)


# ---- errors and warnings


def refused(error: type[Exception], *words: str) -> Any:
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, words)))


@pytest.mark.parametrize(("name", "argument"), [
    ("sample: dense graph", "csr_matrix"), ("likely: dense graph", "csr_matrix"), ("subgraph: dense graph", "graph"),
    ("compact: dense graph", "graph0"), ("adjacency: dense", "data"), ("edge_id: dense", "data"),
    ("getnnz: dense", "data"), ("getnnz: row_sparse", "data"),
])  # fmt: skip
def test_a_graph_that_is_not_csr(name: str, argument: str) -> None:
    with refused(StorageError, "_contrib_", f"{argument!r} must have csr storage", "tostype('csr')"):
        CASES[name](mx)


def test_the_dense_rules_say_what_is_wrong() -> None:
    for op in registry.all_ops():
        if op.rule.__module__ == "symjax.lowering.ops.dgl":
            given = {n: "2" if s.type is not bool else "0" for n, s in op.params.__specs__.items() if s.required}
            params = op.params.parse({**given, **({"num_args": "4"} if "num_args" in given else {})})
            with refused(StorageError, op.name, "must have csr storage"):
                op(params, *map(np.zeros, range(len(op.input_names(params)))),
                   **({"key": None} if "key" in op.asks else {}))


@pytest.mark.parametrize(("name", "error", "words"), [
    ("sample: more seeds than room", ParamError, ("seed_arrays0", "3 seeds", "max_num_vertices=2")),
    ("sample: no such vertex", ParamError, ("seed_arrays0", "vertex 77", "8 vertices")),
    ("sample: negative vertex", ParamError, ("seed_arrays0", "vertex -1")),
    ("sample: not square", ShapeError, ("csr_matrix", "square", "(8, 9)")),
    ("sample: seeds of float32", DTypeError, ("seed_arrays0", "int64", "float32")),
    ("sample: seeds in a matrix", ShapeError, ("seed_arrays0", "(1, 1)")),
    ("likely: matrix", ShapeError, ("probability", "(8, 1)")),
    ("likely: float64", DTypeError, ("probability", "float32", "float64")),
    ("subgraph: not ascending", ParamError, ("data0", "ascend")),
    ("subgraph: no such vertex", ParamError, ("data0", "vertex 7", "4 vertices")),
    ("subgraph: vertices in a matrix", ShapeError, ("data0", "(2, 1)")),
    ("compact: other size", ParamError, ("vertices0", "5", "4")),
    ("compact: larger than the graph", ParamError, ("vertices0", "5", "6")),
    ("compact: too few vertices", ShapeError, ("vertices0", "6", "5")),
    ("compact: a vertex is missing", ParamError, ("vertices0", "vertex 0", "max_num_vertices")),
    ("compact: no sizes", ParamError, ("graph_sizes", "1 graphs")),
    ("edge_id: matrices", ShapeError, ("'u'", "(1, 1)")),
    ("edge_id: lengths differ", ShapeError, ("'v'", "(2,)", "(1,)")),
    ("getnnz: axis 2", ParamError, ("axis", "2")),
])  # fmt: skip
def test_errors_name_the_argument(name: str, error: type[Exception], words: tuple[str, ...]) -> None:
    with refused(error, *words):
        CASES[name](mx)


@pytest.mark.parametrize("wrong", [[1.0, -1.0, 0, 0, 0], [np.nan, 1.0, 0, 0, 0], [np.inf, 1.0, 0, 0, 0]])
def test_no_probabilities(wrong: list[float]) -> None:
    with refused(ParamError, "'probability'", "negative"):
        sample(mx, graph(mx, FULL), ids(mx, [0]), prob=mx.nd.array(wrong))


def test_too_few_probabilities() -> None:
    with refused(ShapeError, "'probability'", "5", "3"):
        sample(mx, graph(mx, FULL), ids(mx, [0]), prob=mx.nd.ones(3))


@pytest.mark.parametrize(("hops", "room", "cut"), [(3, 3, True), (3, 4, False), (3, 5, False), (1, 1, True)])
def test_a_walk_that_is_cut_short_warns(hops: int, room: int, cut: bool) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        sample(mx, graph(mx, PATH), ids(mx, [0]), hops=hops, room=room)
    assert [f"max_num_vertices={room}" in str(w.message) for w in seen] == [True] * cut


# ---- what samples hold


def random_graph(rng: np.random.Generator, n: int, degree: int) -> Any:
    """A graph with vertices of all degrees from none; its edge ids are no positions."""
    dense = rng.random((n, n)) < rng.random((n, 1)) * degree / n * 2
    rows, columns = np.nonzero(dense)
    return (rng.permutation(len(rows)) + 7, columns, np.concatenate([[0], np.cumsum(dense.sum(axis=1))]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("likely", [False, True])
def test_samples_are_neighbourhoods(seed: int, likely: bool) -> None:
    rng = np.random.default_rng(seed)
    n, width, hops = 60, [1, 2, 3, 5, 8, 70][seed], 1 + seed % 3
    parts = random_graph(rng, n, 8)
    data, indices, indptr = parts
    prob = mx.nd.array(rng.random(n) + 0.01) if likely else None
    starts = [rng.choice(n, 4), rng.choice(n, 2)]
    out = sample(mx, graph(mx, parts), *(ids(mx, s) for s in starts), hops=hops, width=width, room=n + 1, prob=prob)
    sets = [x if x.stype == "csr" else x.asnumpy() for x in out if not isinstance(x, np.ndarray)]
    for start, vertices, edges, *between, layers in zip(starts, *(sets[i:i + 2] for i in range(0, len(sets), 2)),
                                                        strict=True):
        assert len(between) == likely
        if prob is not None:
            np.testing.assert_array_equal(between[0], prob.asnumpy()[vertices])
        assert (np.diff(vertices) > 0).all()
        assert set(vertices[layers == 0]) == set(start)
        found, columns, bounds = edges.data.asnumpy(), edges.indices.asnumpy(), edges.indptr.asnumpy()
        layer = dict(zip(vertices, layers, strict=True))
        reached = dict.fromkeys(start, 0)
        for i, v in sorted(enumerate(vertices), key=lambda iv: layers[iv[0]]):
            row = slice(bounds[i], bounds[i + 1])
            all_ids = dict(zip(indices[indptr[v]:indptr[v + 1]], data[indptr[v]:indptr[v + 1]], strict=True))
            assert len(found[row]) == (min(width, len(all_ids)) if layer[v] < hops else 0)
            assert (np.diff(columns[row]) > 0).all()  # so all differ
            assert [all_ids[c] for c in columns[row]] == list(found[row])
            for c in columns[row]:
                reached.setdefault(c, layer[v] + 1)
        assert reached == layer
        assert (bounds[len(vertices):] == len(found)).all()


def test_room_ends_the_walk() -> None:
    g = graph(mx, random_graph(np.random.default_rng(3), 40, 6))
    for room in (1, 2, 3, 5, 8, 13, 21, 34):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (n,), _, _, _, vertices, edges, layers = sample(mx, g, ids(mx, [5]), hops=4, width=3, room=room)
        assert n <= room and vertices.shape == layers.shape == (n,) and edges.shape == (room, 40)


def test_unset_elements_are_zero() -> None:
    vertices, _, layers = C.dgl_csr_neighbor_uniform_sample(graph(mx, PATH), ids(mx, [7]), num_args=2)
    assert vertices.asnumpy().tolist() == [7] + [0] * 99 + [1]
    assert layers.asnumpy().tolist() == [0] * 100


def exact(width: int, prob: list[float] | None) -> dict[str, float]:
    """The probability of each set of `width` draws without replacement."""
    weights = np.asarray([1.0] * len(WEIGHTS) if prob is None else prob)
    found: dict[str, float] = {}
    for order in itertools.permutations(range(len(weights)), width):
        rest, chance = weights.sum(), 1.0
        for i in order:
            chance, rest = chance * weights[i] / rest, rest - weights[i]
        key = " ".join(map(str, sorted(order)))
        found[key] = found.get(key, 0) + chance
    return found


def assert_distributed(counts: dict[str, int], wanted: dict[str, float]) -> None:
    """Every set was drawn as often as its probability says, within five standard deviations."""
    n = sum(counts.values())
    assert set(counts) <= set(wanted)
    for key, p in wanted.items():
        assert abs(counts.get(key, 0) - n * p) < 5 * math.sqrt(n * p * (1 - p)) + 1, (key, counts.get(key), n * p)


@pytest.mark.parametrize("kind", ["uniform", "likely"])
def test_distribution_is_mxnets(kind: str) -> None:
    wanted = exact(2, WEIGHTS if kind == "likely" else None)
    assert_distributed(GOLDEN["frequencies"][kind], wanted)
    with pytest.raises(AssertionError):
        assert_distributed(GOLDEN["frequencies"][kind], exact(2, [0.2, 0.5, 0.2, 0.05, 0.8]))


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("prob", [None, WEIGHTS, [0.001, 5.0, 1.0, 1.0, 0.01]])
def test_distribution(width: int, prob: list[float] | None) -> None:
    mx.random.seed(11 + width)
    assert_distributed(frequencies(mx, width, prob, 4, 3000), exact(width, prob))


def test_calls_differ_and_a_seed_repeats_them() -> None:
    g, start = graph(mx, random_graph(np.random.default_rng(0), 50, 20)), ids(mx, [1, 2, 3])

    def draw(prob: Any = None) -> str:
        return str(described(sample(mx, g, start, hops=2, width=3, room=60, prob=prob)))

    mx.random.seed(5)
    first = [draw(), draw(), draw(mx.nd.ones(50))]
    mx.random.seed(5)
    assert [draw(), draw(), draw(mx.nd.ones(50))] == first
    assert len(set(first)) == 3


@pytest.mark.parametrize("prob", [[0, 1.0, 0, 0, 0], [0.0] * 5])
def test_improbable_neighbours_only_fill_up(prob: list[float]) -> None:
    """MXNet returns one edge twice."""
    seen = set()
    for _ in range(40):
        edges = sample(mx, graph(mx, FULL), ids(mx, [0]), prob=mx.nd.array(prob))[-3]
        columns = edges.indices.asnumpy().tolist()
        assert len(set(columns)) == 2 and (prob[1] == 0 or 1 in columns)
        seen.update(columns)
    assert seen == {1, 2, 3, 4}


@pytest.mark.parametrize("width", [1, 5, 63, 64, 65, 90])
def test_distinct(width: int) -> None:
    bounds = np.array([91, 200, 1000, 100_000])
    for picks in (sampling.distinct(bounds, width, np.random.default_rng(i)) for i in range(20)):
        assert picks.shape == (4, width)
        assert (np.diff(picks, axis=1) > 0).all() and (picks >= 0).all() and (picks < bounds[:, None]).all()


def test_wide_draws_reach_every_place_alike() -> None:
    counts = np.zeros(80)
    for i in range(600):
        counts[sampling.distinct(np.array([80]), 70, np.random.default_rng(i))[0]] += 1
    assert abs(counts - 600 * 7 / 8).max() < 5 * math.sqrt(600 * 7 / 64)


# ---- better than MXNet


def test_compact_maps_edges() -> None:
    """MXNet leaves the mapping empty."""
    parts = (SAMPLED[0], SAMPLED[1], SAMPLED[2])
    new, old = C.dgl_graph_compact(graph(mx, parts, columns=8), ids(mx, [1, 2, 4, 6, 0, 4]), num_args=2,
                                   return_mapping=True, graph_sizes=4)
    assert described([new, old]) == [["csr", "int64", [4, 4], [0, 1, 2], [2, 1, 3], [0, 1, 2, 3, 3]],
                                     ["csr", "int64", [4, 4], [50, 51, 52], [2, 1, 3], [0, 1, 2, 3, 3]]]


def test_a_sample_compacts() -> None:
    g = graph(mx, random_graph(np.random.default_rng(2), 40, 6))
    vertices, edges, _ = C.dgl_csr_neighbor_uniform_sample(g, ids(mx, [3, 4]), num_args=2, num_hops=2, num_neighbor=3)
    n = int(vertices.asnumpy()[-1])
    new, old = C.dgl_graph_compact(edges, vertices, num_args=2, return_mapping=True, graph_sizes=n)
    assert new.shape == old.shape == (n, n)
    assert new.data.asnumpy().tolist() == list(range(len(new.data)))
    places = vertices.asnumpy()
    rows = np.repeat(np.arange(n), np.diff(old.indptr.asnumpy()))
    looked_up = C.edge_id(g, ids(mx, places[rows]), ids(mx, places[old.indices.asnumpy()]))
    assert looked_up.asnumpy().tolist() == old.data.asnumpy().tolist() == edges.data.asnumpy().tolist()


def test_counts_by_column() -> None:
    """MXNet has no axis=0."""
    assert described(C.getnnz(graph(mx, LOOSE), axis=0)) == [["default", "int64", [4], [2, 2, 2, 1]]]
    assert described(C.getnnz(graph(mx, ZEROS, columns=5), axis=0)) == [["default", "int64", [5], [1, 1, 1, 0, 0]]]
    assert described(C.getnnz(graph(mx, EMPTY), axis=0)) == [["default", "int64", [4], [0, 0, 0, 0]]]


def test_subgraph_of_floats_and_of_nothing() -> None:
    """MXNet ends the process, and refuses an empty vector."""
    new, old = C.dgl_subgraph(graph(mx, LOOSE, "float32"), ids(mx, [1, 2]), num_args=2, return_mapping=True)
    assert described([new, old]) == [["csr", "float32", [2, 2], [0, 1], [1, 0], [0, 1, 2]],
                                     ["csr", "float32", [2, 2], [4, 5], [1, 0], [0, 1, 2]]]
    none = C.dgl_subgraph(graph(mx, LOOSE), mx.nd.array(np.zeros(0), dtype="int64"), num_args=2, return_mapping=False)
    assert none.shape == (0, 0)


def test_edges_from_no_vertex() -> None:
    """MXNet reads beyond the graph."""
    found = C.edge_id(graph(mx, LOOSE), ids(mx, [-1, 4, 77, 3]), ids(mx, [0, 1, 0, 2]))
    assert found.asnumpy().tolist() == [-1, -1, -1, 7]


def test_edges_of_a_large_row() -> None:
    rng = np.random.default_rng(0)
    columns = rng.permutation(1000)
    row = (np.arange(1000), columns, np.array([0, 1000] + [1000] * 999))
    wanted = np.argsort(columns)
    u, v = ids(mx, np.zeros(1001)), ids(mx, np.arange(1001))
    assert C.edge_id(graph(mx, row), u, v).asnumpy().tolist() == [*wanted, -1]  # by looking at all
    ordered = (wanted, np.arange(1000), row[2])
    assert C.edge_id(graph(mx, ordered), u, v).asnumpy().tolist() == [*wanted, -1]  # by bisection


# ---- traced


def compiled(op: str, **attrs: str) -> Any:
    params = registry.get(op).params.parse(attrs)
    rule = {"_contrib_getnnz": graph_ops.getnnz, "_contrib_edge_id": graph_ops.edge_id,
            "_contrib_dgl_adjacency": graph_ops.adjacency}[op]  # fmt: skip
    return jax.jit(lambda *xs: rule(params, *xs))


TRACED = [("_contrib_getnnz", {}), ("_contrib_getnnz", {"axis": "0"}), ("_contrib_getnnz", {"axis": "1"}),
          ("_contrib_dgl_adjacency", {}), ("_contrib_edge_id", {})]  # fmt: skip


@pytest.mark.parametrize(("op", "attrs"), TRACED)
def test_matrices_of_one_capacity_share_code(op: str, attrs: dict[str, str]) -> None:
    f = compiled(op, **attrs)
    more = (np.array([0, 1]), np.array([0, 1])) if op == "_contrib_edge_id" else ()
    with jax.enable_x64(True):
        f(matrix(LOOSE), *more)
        with compiles() as made:
            for parts in (EMPTY, (np.array([9]), np.array([3]), np.array([0, 1, 1, 1, 1]))):
                result = f(matrix(parts), *more)
                if isinstance(result, CSR):
                    assert (np.asarray(result.data) == (np.asarray(result.rows) < 4)).all()
    assert made.n == 0


@pytest.mark.parametrize(("op", "attrs"), TRACED)
def test_lowers_for_every_platform(op: str, attrs: dict[str, str]) -> None:
    f = compiled(op, **attrs)
    more = (np.array([0, 1]), np.array([0, 1])) if op == "_contrib_edge_id" else ()
    g = matrix(JUMBLED)
    leaves, shape = jax.tree.flatten(g)
    with jax.enable_x64(True):
        module = jax.export.export(jax.jit(lambda xs, ys: jax.tree.leaves(f(jax.tree.unflatten(shape, xs), *ys))),
                                   platforms=["cpu", "cuda", "rocm", "tpu"])(leaves, more).mlir_module()
    assert "func.func" in module


def test_what_depends_on_values_is_not_traced() -> None:
    seeds = np.array([0])
    for rule, params, inputs in (
        (graph_ops.uniform_sample, {"num_args": "2"}, (matrix(TREE), seeds)),
        (graph_ops.non_uniform_sample, {"num_args": "3"}, (matrix(TREE), np.ones(15, np.float32), seeds)),
        (graph_ops.subgraph, {"num_args": "2", "return_mapping": "1"}, (matrix(TREE), seeds)),
        (graph_ops.graph_compact, {"num_args": "2", "return_mapping": "1", "graph_sizes": "1"}, (matrix(TREE), seeds)),
    ):
        more = {"key": jax.random.key(0)} if "sample" in rule.__name__ else {}
        name = {"uniform_sample": "_contrib_dgl_csr_neighbor_uniform_sample",
                "non_uniform_sample": "_contrib_dgl_csr_neighbor_non_uniform_sample"}.get(
                    rule.__name__, f"_contrib_dgl_{rule.__name__}")
        p: Params = registry.get(name).params.parse(params)
        with pytest.raises(MissingLoweringError, match=name):
            jax.jit(lambda *xs, rule=rule, p=p, more=more: rule(p, *xs, **more))(*inputs)


# ---- on the graph


def test_symbols() -> None:
    S, V = mx.sym.contrib, mx.sym.Variable
    g = V("g", stype="csr", shape=(15, 15), dtype="int64")
    a, b = V("a", shape=(1,), dtype="int64"), V("b", shape=(2,), dtype="int64")
    p = V("p", shape=(15,))
    given = {"g": graph(mx, TREE), "a": ids(mx, [0]), "b": ids(mx, [1, 2]), "p": mx.nd.arange(15)}
    more = {"num_hops": 1, "num_neighbor": 2, "max_num_vertices": 6}
    sizes = {"num_args": 3, "return_mapping": True}
    i64, f32 = np.int64, np.float32
    for symbol, call, shapes, types in (
        (S.dgl_csr_neighbor_uniform_sample(g, a, b, num_args=3, **more),
         lambda c, g, a, b, p: c.dgl_csr_neighbor_uniform_sample(g, a, b, num_args=3, **more),
         [(7,), (7,), (6, 15), (6, 15), (6,), (6,)], [i64] * 6),
        (S.dgl_csr_neighbor_non_uniform_sample(g, p, a, b, num_args=4, **more),
         lambda c, g, a, b, p: c.dgl_csr_neighbor_non_uniform_sample(g, p, a, b, num_args=4, **more),
         [(7,), (7,), (6, 15), (6, 15), (6,), (6,), (6,), (6,)], [i64] * 4 + [f32] * 2 + [i64] * 2),
        (S.dgl_subgraph(g, a, b, **sizes), lambda c, g, a, b, p: c.dgl_subgraph(g, a, b, **sizes),
         [(1, 1), (2, 2), (1, 1), (2, 2)], [i64] * 4),
        (S.dgl_adjacency(g), lambda c, g, a, b, p: c.dgl_adjacency(g), [(15, 15)], [f32]),
        (S.getnnz(g, axis=1), lambda c, g, a, b, p: c.getnnz(g, axis=1), [(15,)], [i64]),
        (S.getnnz(g), lambda c, g, a, b, p: c.getnnz(g), [(1,)], [i64]),
    ):
        names = symbol.list_arguments()
        assert symbol.infer_shape()[1] == shapes
        assert symbol.infer_type()[1] == types
        read = mx.sym.load_json(symbol.tojson())
        outs = read.bind(mx.cpu(), {n: given[n] for n in names}, grad_req="null").forward()
        eager = call(C, *(given[n] for n in ("g", "a", "b", "p")))
        assert described(outs) == described(eager)  # nothing here is left to chance


def test_edge_id_symbol() -> None:
    u, v = mx.sym.Variable("u"), mx.sym.Variable("v")
    symbol = mx.sym.contrib.edge_id(mx.sym.Variable("g", stype="csr"), u, v)
    assert symbol.infer_shape(g=(4, 4), u=(3,))[:2] == ([(4, 4), (3,), (3,)], [(3,)])
    assert symbol.infer_type(g="float64", u="int64", v="int32")[1] == [np.float64]
    given = {"g": graph(mx, LOOSE), "u": ids(mx, [0, 1, 3]), "v": ids(mx, [3, 3, 2])}
    assert symbol.bind(mx.cpu(), given, grad_req="null").forward()[0].asnumpy().tolist() == [2, -1, 7]


def test_symbol_of_a_dense_graph() -> None:
    symbol = mx.sym.contrib.getnnz(mx.sym.Variable("g"), name="count")
    with refused(StorageError, "'count'", "'data' must have csr storage"):
        symbol.bind(mx.cpu(), {"g": mx.nd.ones((2, 2))}).forward()


def test_samples_on_the_graph_vary() -> None:
    g, a = mx.sym.Variable("g", stype="csr"), mx.sym.Variable("a")
    out = mx.sym.contrib.dgl_csr_neighbor_uniform_sample(g, a, num_args=2, num_neighbor=1, max_num_vertices=9)
    adjacency = mx.sym.contrib.dgl_adjacency(out[1])
    bound = adjacency.bind(mx.cpu(), {"g": graph(mx, FULL), "a": ids(mx, [0, 1, 2])}, grad_req="null")
    mx.random.seed(1)
    seen = {str(described(bound.forward())) for _ in range(8)}
    assert len(seen) > 1
    mx.random.seed(1)
    assert {str(described(bound.forward())) for _ in range(8)} == seen


@pytest.mark.parametrize("op", ["sample", "subgraph"])
def test_gradients_beside_a_graph(op: str) -> None:
    """One layer of a graph network: features of neighbours are added up, over edges known only when it runs."""
    S, V = mx.sym.contrib, mx.sym.Variable
    g, a, x = V("g", stype="csr"), V("a"), V("x")
    if op == "sample":
        edges = S.dgl_csr_neighbor_uniform_sample(g, a, num_args=2, num_neighbor=9, max_num_vertices=6)[1]
        wanted = [1, 2, 2, 1, 2]  # from the vertices 0 and 3 to all others
    else:
        edges = S.dgl_subgraph(g, a, num_args=2, return_mapping=False)
        wanted = [1, 1]  # between the vertices 0 and 3
    layer = mx.sym.sum(mx.sym.dot(S.dgl_adjacency(edges), x))
    given = {"g": graph(mx, FULL), "a": ids(mx, [0, 3]), "x": mx.nd.ones((len(wanted), 2))}
    bound = layer.bind(mx.cpu(), given, grad_req={"g": "null", "a": "null", "x": "write"},
                       args_grad={"x": mx.nd.zeros((len(wanted), 2))})
    bound.forward(is_train=True)
    bound.backward(mx.nd.ones(1))
    found = bound.grad_dict["x"].asnumpy()
    assert found.tolist() == [[n, n] for n in wanted]


def test_calls_are_recorded() -> None:
    x = mx.nd.ones((5, 2))
    x.attach_grad()
    with mx.autograd.record():
        _, edges, _ = C.dgl_csr_neighbor_uniform_sample(graph(mx, FULL), ids(mx, [0, 3]), num_args=2, num_neighbor=9,
                                                        max_num_vertices=6)
        y = mx.nd.sparse.dot(C.dgl_adjacency(edges), x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [[n, n] for n in (1, 2, 2, 1, 2)]
