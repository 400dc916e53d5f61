"""Layered layout of a directed acyclic graph, top to bottom (the method of Sugiyama, Tagawa and Toda).

Layers by longest path, long edges cut by bends at every layer, order within a layer by barycentres, positions by
isotonic regression: each step is linear in nodes and bends, up to sorting.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

_MAX_BENDS = 20_000
_ORDER_SWEEPS = 12
_PLACE_SWEEPS = 10
_BEND_WIDTH = 8.0

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where things go, in pixels.

    Attributes:
      centers: the centre of each node.
      routes: for each edge its points, from the source's bottom to the target's top. Long edges of one source share a
        trunk: the points of all but the first of them begin where they leave it.
      width, height: the size of the drawing.
    """

    centers: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


class _Grid:
    """Nodes and bends in layers. Items 0..n-1 are the nodes, the rest are bends."""

    def __init__(self, n: int, edges: Sequence[tuple[int, int]]) -> None:
        self.layer = _layers(n, edges)
        self.up: list[list[int]] = [[] for _ in range(n)]
        self.down: list[list[int]] = [[] for _ in range(n)]
        self._trunks: dict[tuple[int, int], int] = {}
        self.chains = [self._chain(a, b) for a, b in edges]
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=0) + 1)]
        for item, layer in enumerate(self.layer):
            self.rows[layer].append(item)

    def _chain(self, a: int, b: int) -> list[int]:
        """The items along an edge, from where it leaves the trunk that all long edges of `a` share."""
        chain = [a]
        if len(self.layer) < _MAX_BENDS:
            for layer in range(self.layer[a] + 1, self.layer[b]):
                bend = self._trunks.get((a, layer))
                if bend is None:
                    bend = self._trunks[a, layer] = len(self.layer)
                    self.layer.append(layer)
                    self.up.append([])
                    self.down.append([])
                    self._link(chain[-1], bend)
                    chain.append(bend)
                else:
                    chain = [bend]
        self._link(chain[-1], b)
        return [*chain, b]

    def _link(self, x: int, y: int) -> None:
        self.down[x].append(y)
        self.up[y].append(x)


def layout(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    *,
    gap: float = 22.0,
    layer_gap: float = 34.0,
    margin: float = 12.0,
) -> Layout:
    """Lays out nodes of given (width, height).

    Args:
      sizes: (width, height) of each node, in a topological order.
      edges: (source, target) pairs with source < target.
      gap: space between neighbours of one layer.
      layer_gap: space between layers.
      margin: space around the drawing.
    """
    grid = _Grid(len(sizes), edges)
    widths = [w for w, _ in sizes] + [_BEND_WIDTH] * (len(grid.layer) - len(sizes))
    _order(grid)
    x = _place(grid, widths, gap, len(sizes))
    left = min((x[i] - widths[i] / 2 for i in range(len(x))), default=0.0)
    x = [v - left + margin for v in x]
    tops, bottoms, y = [], [], margin
    for row in grid.rows:
        tall = max((sizes[i][1] for i in row if i < len(sizes)), default=0.0)
        tops.append(y)
        bottoms.append(y + tall)
        y += tall + layer_gap
    centers = [(x[i], (tops[grid.layer[i]] + bottoms[grid.layer[i]]) / 2) for i in range(len(sizes))]
    ports = _ports(grid, x, widths, len(sizes))
    routes = []
    for e, chain in enumerate(grid.chains):
        a, b = chain[0], chain[-1]
        points = [(x[a], centers[a][1] + sizes[a][1] / 2 if a < len(sizes) else bottoms[grid.layer[a]])]
        for bend in chain[1:-1]:
            points += [(x[bend], tops[grid.layer[bend]]), (x[bend], bottoms[grid.layer[bend]])]
        points.append((ports[e], centers[b][1] - sizes[b][1] / 2))
        routes.append(points)
    width = max((x[i] + widths[i] / 2 for i in range(len(x))), default=0.0) + margin
    return Layout(centers, routes, width, y - layer_gap + margin)


def _layers(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Longest path from the sources; sources themselves stand right above their first reader."""
    readers: list[list[int]] = [[] for _ in range(n)]
    fed = [False] * n
    for a, b in edges:
        readers[a].append(b)
        fed[b] = True
    layer = [0] * n
    for a in range(n):
        for b in readers[a]:
            layer[b] = max(layer[b], layer[a] + 1)
    for a in range(n):
        if readers[a] and not fed[a]:
            layer[a] = min(layer[b] for b in readers[a]) - 1
    return layer


def _order(grid: _Grid) -> None:
    """Reorders each row by the mean position of its neighbours above, then below, in turns."""
    position = [0.0] * len(grid.layer)
    for row in grid.rows:
        for i, item in enumerate(row):
            position[item] = float(i)
    for sweep in range(_ORDER_SWEEPS):
        downward = sweep % 2 == 0
        near = grid.up if downward else grid.down
        for row in grid.rows if downward else reversed(grid.rows):
            mean = {i: sum(position[j] for j in near[i]) / len(near[i]) if near[i] else position[i] for i in row}
            row.sort(key=mean.__getitem__)
            for i, item in enumerate(row):
                position[item] = float(i)


def _place(grid: _Grid, widths: Sequence[float], gap: float, n: int) -> list[float]:
    """x of each item: near its neighbours' mean, in the order of the row, without overlap."""
    x = [0.0] * len(widths)
    for row in grid.rows:
        at = 0.0
        for i in row:
            x[i] = at + widths[i] / 2
            at += widths[i] + gap
        for i in row:
            x[i] -= at / 2
    for sweep in range(_PLACE_SWEEPS):
        downward = sweep % 2 == 0
        for row in grid.rows if downward else reversed(grid.rows):
            goals, weights = [], []
            for i in row:
                near = grid.up[i] if downward else grid.down[i]
                near = near or (grid.down[i] if downward else grid.up[i])
                if i >= n:  # a trunk is straight, whatever leaves it on the way
                    near = [j for j in near if j >= n] or near
                goals.append(sum(x[j] for j in near) / len(near) if near else x[i])
                weights.append(1.0 if i < n else 4.0)
            for i, v in zip(row, _spread(goals, weights, [widths[i] for i in row], gap), strict=True):
                x[i] = v
    return x


def _spread(goals: Sequence[float], weights: Sequence[float], widths: Sequence[float], gap: float) -> list[float]:
    """Positions nearest to the goals (least squares) that keep order and distance: pool adjacent violators."""
    offsets, at = [], 0.0
    for i, w in enumerate(widths):
        if i:
            at += (widths[i - 1] + w) / 2 + gap
        offsets.append(at)
    blocks: list[list[float]] = []  # [mean, weight, count]
    for goal, weight, offset in zip(goals, weights, offsets, strict=True):
        blocks.append([goal - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            m, w, c = blocks.pop()
            m0, w0, c0 = blocks[-1]
            blocks[-1] = [(m * w + m0 * w0) / (w + w0), w + w0, c + c0]
    levels = [m for m, _, c in blocks for _ in range(int(c))]
    return [level + offset for level, offset in zip(levels, offsets, strict=True)]


def _ports(grid: _Grid, x: Sequence[float], widths: Sequence[float], n: int) -> list[float]:
    """Where each edge enters its target, spread over the target's top from left to right."""
    arriving: list[list[int]] = [[] for _ in range(n)]
    for e, chain in enumerate(grid.chains):
        arriving[chain[-1]].append(e)
    ports = [0.0] * len(grid.chains)
    for target, edges in enumerate(arriving):
        edges.sort(key=lambda e: x[grid.chains[e][-2]])
        step = min(16.0, widths[target] * 0.8 / max(len(edges), 1))
        for k, e in enumerate(edges):
            ports[e] = x[target] + (k - (len(edges) - 1) / 2) * step
    return ports
