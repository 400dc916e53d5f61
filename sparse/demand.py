"""Which rows of a table a graph touches, found from the graph: what makes a row_sparse gradient cost the batch.

A table whose every use is a lookup (possibly after functions of single rows, such as the sum of squares of each) is
replaced, inside the differentiated function, by the rows that the lookups name. JAX then differentiates with respect to
those rows alone, and they are the row_sparse gradient: nothing of the table's size is made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.registry import Op
from symjax.sparse.csr import CSR
from symjax.sparse.rules import ROWS, decide, rules
from symjax.sparse.unique import RowIndex, index_ids, index_on_host, merge


@dataclasses.dataclass(frozen=True)
class Lookup:
    """An input of an op of which it reads only some rows.

    Attributes:
      table: position of that input.
      index: position of the input that names the rows.
      ids: index values, of numpy or JAX -> ids in [0, rows of the table], that number for none.
      when: (params, storage type of the index input) -> whether the op reads single rows.
      clip: whether ids may lie outside, and stand for the first or last row then.
    """

    table: int
    index: int
    ids: Callable[[Any], Any]
    when: Callable[[Any, str], bool]
    clip: bool = False


_LOOKUPS: dict[str, Lookup] = {}
_ROWWISE: dict[str, Callable[[Any], bool]] = {}
_SAME_PATTERN: set[str] = set()
_VANISHING: set[str] = set()


def lookup(*ops: str, table: int, index: int, ids: Callable[[Any], Any],
           when: Callable[[Any, str], bool] = lambda p, stype: stype == "default",
           clip: bool = False) -> None:  # fmt: skip
    """Declares that ops read single rows of an input; see `Lookup`."""
    for name in ops:
        _LOOKUPS[name] = Lookup(table, index, ids, when, clip)


def rowwise(*ops: str, when: Callable[[Any], bool] = lambda p: True) -> None:
    """Declares that a row of the output depends on that row of the only input alone, and that zeros give zeros."""
    for name in ops:
        _ROWWISE[name] = when


def keeps_pattern(*ops: str) -> None:
    """Declares that the output, for a sparse first input, has its stored places."""
    _SAME_PATTERN.update(ops)


def vanishing(*ops: str) -> None:
    """Declares that the gradient is zero where the input is zero (as of a square), or everywhere."""
    _VANISHING.update(ops)


def gradient_vanishes(graph: Graph, n: Node) -> bool:
    """Whether the gradient of a variable is zero wherever the variable is, by what reads it."""
    readers = _readers(graph).get(n, [])
    return n not in {e.node for e in graph.outputs} and all(
        r.op is not None and r.op.name in _VANISHING for r, _ in readers)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Site:
    """One lookup in a graph, in terms that hold for every graph that computes the same.

    Attributes:
      place: position of the node among the graph's nodes.
      position: the input that is the table.
      index: the entry that names the rows: position of its node, and which output.
      lookup: what the op says of it.
    """

    place: int
    position: int
    index: tuple[int, int]
    lookup: Lookup


def sites_of(graph: Graph, table: Node, stypes: Mapping[Node, Sequence[str]]) -> list[Site] | None:
    """Returns the lookups through which a graph reads a variable; None if it reads it otherwise, or not at all.

    Args:
      graph: the graph.
      table: the variable.
      stypes: the storage types of every node's outputs (`storage.infer_storage`).
    """
    readers = _readers(graph)
    outputs = {e.node for e in graph.outputs}
    sites: list[Site] = []
    waiting, seen = [table], {table}
    while waiting:
        node = waiting.pop()
        if node in outputs:
            return None
        for reader, position in readers.get(node, ()):
            site = _site(graph, reader, position, stypes)
            if site is not None:
                sites.append(site)
            elif _is_rowwise(reader):
                if reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
            else:
                return None
    return sites or None


def _readers(graph: Graph) -> dict[Node, list[tuple[Node, int]]]:
    readers: dict[Node, list[tuple[Node, int]]] = {}
    for n in graph.nodes:
        for i, e in enumerate(n.inputs):
            readers.setdefault(e.node, []).append((n, i))
    return readers


def _site(graph: Graph, node: Node, position: int, stypes: Mapping[Node, Sequence[str]]) -> Site | None:
    assert node.op is not None
    found = lookup_of(node.op, node.params, position, [stypes[e.node][e.index] for e in node.inputs])
    if found is None:
        return None
    index = node.inputs[found.index]
    source = _pattern_source(index)
    return Site(graph.index[node], position, (graph.index[source.node], source.index), found)


def lookup_of(op: Op, params: Any, position: int, stypes: Sequence[str]) -> Lookup | None:
    """What an op, given inputs of these storage types, declares of the input at `position`."""
    rules()
    found = _LOOKUPS.get(op.name)
    if found is None or position != found.table or not found.when(params, stypes[found.index]):
        return None
    return found


def is_vanishing(op: Op) -> bool:
    """Whether the gradient of an op's input is zero where the input is."""
    return op.name in _VANISHING


def _pattern_source(e: Entry) -> Entry:
    """Goes back from a sparse entry to where its pattern comes from."""
    while e.node.op is not None and e.node.op.name in _SAME_PATTERN:
        e = e.node.inputs[0]
    return e


def _is_rowwise(node: Node) -> bool:
    assert node.op is not None
    when = _ROWWISE.get(node.op.name)
    return when is not None and when(node.params) and decide(node.op, node.params, (ROWS,)) is not None


def site_index(site: Site, value: Any, rows: int, on_host: bool) -> RowIndex:
    """Returns which rows a site reads.

    Args:
      site: the lookup.
      value: the value of `site.index`.
      rows: the number of rows of the table.
      on_host: work on the host, with numpy; the value must not be traced.
    """
    if isinstance(value, CSR):
        return value.column_index()
    if on_host:
        return index_on_host(site.lookup.ids(np.asarray(value)), rows, site.lookup.clip)
    ids = site.lookup.ids(value)
    return index_ids(jnp.clip(ids, 0, max(rows - 1, 0)) if site.lookup.clip else ids, rows)


def joint_index(sites: Sequence[Site], values: Sequence[Any], rows: int, on_host: bool) -> RowIndex:
    """Returns the rows that all sites of one table read; `inverse` is a list in their order."""
    parts: dict[tuple[Any, Lookup], RowIndex] = {}
    for s, v in zip(sites, values, strict=True):
        if (s.index, s.lookup) not in parts:
            parts[s.index, s.lookup] = site_index(s, v, rows, on_host)
    whole = merge(list(parts.values()), rows, on_host)
    of = dict(zip(parts, whole.inverse, strict=True))
    return RowIndex(whole.unique, [of[s.index, s.lookup] for s in sites])
