"""Neighbourhoods, induced subgraphs and compaction of graphs on the host, in numpy.

A graph is a square csr matrix: row v lists the neighbours of vertex v (columns) and the ids of the edges to them
(data).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symjax.sparse.csr import CSR, HostCSR

Chosen = tuple[np.ndarray, np.ndarray]
"""(which of the asked vertices, position of the edge in the graph) for each edge; both ascend."""

Choose = Callable[[np.ndarray], Chosen]
"""Vertices -> the edges that are followed from them."""

_FEW = 64


class Neighborhood(NamedTuple):
    """What a walk from some seeds came across.

    Attributes:
      vertices: the vertices, ascending.
      layers: for each, after how many hops it was found.
      rows: for each edge followed, the place in `vertices` of the vertex it leaves; ascending.
      edges: for each edge followed, its position in the graph; in the graph's order within a row.
      cut: whether there was no room left while there were vertices to follow.
    """

    vertices: np.ndarray
    layers: np.ndarray
    rows: np.ndarray
    edges: np.ndarray
    cut: bool


def host_view(x: CSR) -> HostCSR:
    """The stored entries as numpy arrays; those of a CPU array are not copied."""
    indptr = np.asarray(x.indptr)
    n = int(indptr[-1])
    return HostCSR(np.asarray(x.data)[:n], np.asarray(x.indices)[:n], indptr)


def edges_of(graph: HostCSR, vertices: np.ndarray) -> Chosen:
    """All edges that leave the vertices."""
    starts = graph.indptr[vertices].astype(np.int64)
    return _runs(starts, graph.indptr[vertices + 1] - starts)


def _runs(starts: np.ndarray, counts: np.ndarray) -> Chosen:
    """start, start + 1, … `count` times for each, one after another, with the number of the run."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, starts[owner] + _ranks(owner, counts)


def _ranks(owner: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The place of each element in its run."""
    return np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]


def uniform(graph: HostCSR, width: int, rng: np.random.Generator) -> Choose:
    """Follows at most `width` edges from a vertex, each set of them being equally likely."""

    def pick(vertices: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        return distinct(degrees, width, rng)

    return _choosing(graph, width, pick)


def by_probability(graph: HostCSR, width: int, weights: np.ndarray, rng: np.random.Generator) -> Choose:
    """Follows at most `width` edges from a vertex, drawn one after another by the weights of the vertices they lead to.

    Edges of weight 0 are followed only where too few others are there.
    """

    def pick(vertices: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        owner, position = edges_of(graph, vertices)
        weight = weights[graph.indices[position]].astype(np.float64)
        # Ordering by E / w with E exponential is the order of draws by w without replacement.
        draw = rng.standard_exponential(len(owner))
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = draw / weight
            early = _early(owner, wait, weight, len(degrees), width)
        order = early[np.lexsort((draw[early], wait[early], owner[early]))]
        ahead = _ranks(owner[order], np.bincount(owner[order], minlength=len(degrees))) < width
        taken = np.sort(order[ahead])
        return (taken - (np.cumsum(degrees) - degrees)[owner[taken]]).reshape(-1, width)

    return _choosing(graph, width, pick)


def _early(owner: np.ndarray, wait: np.ndarray, weight: np.ndarray, n: int, width: int) -> np.ndarray:
    """Edges among which are the `width` first of each of `n` vertices, so that not all need be sorted."""
    limit = 2 * width / np.bincount(owner, weight, n)
    early = wait < limit[owner]
    few = np.bincount(owner[early], minlength=n) < width
    return np.flatnonzero(early | few[owner])


def distinct(bounds: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """Draws `width` different integers below each bound, ascending, (len(bounds), width)."""
    if width > _FEW:
        rows = [rng.choice(b, width, replace=False, shuffle=False) for b in bounds]
        return np.sort(np.stack(rows), axis=1)
    picks = np.empty((len(bounds), width), np.int64)
    for j in range(width):  # Floyd's: a number that was drawn before gives way to the newest one
        top = bounds - width + j
        drawn = rng.integers(0, top, endpoint=True)
        taken = (picks[:, :j] == drawn[:, None]).any(axis=1)
        picks[:, j] = np.where(taken, top, drawn)
    return np.sort(picks, axis=1)


def _choosing(graph: HostCSR, width: int, pick: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Choose:
    """Takes all edges where there are at most `width`, else those of the places that `pick` gives, (n, width)."""

    def choose(vertices: np.ndarray) -> Chosen:
        starts = graph.indptr[vertices].astype(np.int64)
        degrees = graph.indptr[vertices + 1] - starts
        many = degrees > width
        counts = np.minimum(degrees, width)
        owner = np.repeat(np.arange(len(vertices)), counts)
        place = _ranks(owner, counts)
        if width and many.any():
            place[many[owner]] = pick(vertices[many], degrees[many]).reshape(-1)
        return owner, starts[owner] + place

    return choose


def walk(graph: HostCSR, seeds: np.ndarray, hops: int, room: int, choose: Choose) -> Neighborhood:
    """Goes from the seeds along chosen edges, nearest vertices first, until `hops` or until `room` vertices are found.

    Each vertex is followed once. All chosen edges of a vertex that is followed are kept, also those to vertices that
    there was no room for.
    """
    seen = np.zeros(len(graph.indptr) - 1, np.int32)  # hops + 1, 0 where not found yet
    frontier = seeds[np.sort(np.unique(seeds, return_index=True)[1])]
    seen[frontier] = 1
    found, followed, edges = [frontier], [frontier[:0]], [frontier[:0]]
    count, hop, cut = len(frontier), 0, False
    while hop < hops and len(frontier) and count < room:
        owner, edge = choose(frontier)
        heads = graph.indices[edge]
        fresh = np.flatnonzero(seen[heads] == 0)
        fresh = np.sort(fresh[np.unique(heads[fresh], return_index=True)[1]])
        if count + len(fresh) >= room:
            # MXNet: the walk ends with the vertex that fills the room
            fresh = fresh[: room - count]
            last = owner[fresh[-1]]
            cut = bool(last < len(frontier) - 1)
            keep = np.searchsorted(owner, last, side="right")
            owner, edge = owner[:keep], edge[:keep]
        followed.append(frontier[owner])
        edges.append(edge)
        hop += 1
        frontier = heads[fresh].astype(np.int64)
        seen[frontier] = hop + 1
        found.append(frontier)
        count += len(frontier)
    vertices = np.sort(np.concatenate(found))
    tails, positions = np.concatenate(followed), np.concatenate(edges)
    order = np.argsort(tails, kind="stable")
    rows = np.searchsorted(vertices, tails[order])
    return Neighborhood(vertices, seen[vertices].astype(np.int64) - 1, rows, positions[order],
                        cut or (hop < hops and len(frontier) > 0))


def induced(graph: HostCSR, vertices: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges between some vertices (n,).

    Returns:
      (rows, columns, positions): the places of both ends in `vertices`, and the position of the edge in the graph.
    """
    rows, positions = edges_of(graph, vertices)
    columns = locate(vertices, graph.indices[positions], size)
    there = np.flatnonzero(columns >= 0)
    return rows[there], columns[there], positions[there]


def locate(vertices: np.ndarray, ids: np.ndarray, size: int) -> np.ndarray:
    """The place of each id in `vertices` (the last of equal ones), -1 if it is not there; all are less than `size`."""
    place = np.zeros(size, np.int32)  # memory that is not read or written costs nothing
    place[vertices] = np.arange(1, len(vertices) + 1, dtype=np.int32)
    return place[ids] - 1


def indptr_of(rows: np.ndarray, n: int) -> np.ndarray:
    """The row boundaries of entries that are sorted by row, (n + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(rows, minlength=n))])
