"""A subgraph of a control-flow node, as its lowering rule sees it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from symjax.lowering.errors import ParamError
from symjax.lowering.graph import Graph, Node
from symjax.lowering.registry import ShapeLike


class Subgraph:
    """A callable graph over its inputs in MXNet's list_inputs order (arguments and auxiliary states interleaved).

    Attributes:
      graph: the graph.
      input_names: the names of its inputs, in the order that calls take them.
      num_outputs: how many outputs it has.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.input_names = tuple(n.name for n in graph.inputs)
        self.num_outputs = len(graph.outputs)

    @functools.cached_property
    def _fn(self) -> Any:
        from symjax.lowering.trace import lower_graph

        return lower_graph(self.graph)

    def __call__(
        self, inputs: Sequence[Any], *, train: bool = False, key: Any = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Runs the subgraph.

        Returns:
          The outputs, and the new values of auxiliary states by name.
        """
        values = self._by_node(inputs)
        aux = self.graph.aux_states
        outs, new_aux = self._fn([values[n] for n in self.graph.arguments], [values[n] for n in aux], key, train)
        return list(outs), {n.name: v for n, v in zip(aux, new_aux, strict=True)}

    def _by_node(self, values: Sequence[Any]) -> dict[Node, Any]:
        if len(values) != len(self.input_names):
            raise ParamError(
                f"a subgraph has {len(self.input_names)} inputs ({', '.join(self.input_names[:8])}), but the "
                f"node's parameters give it {len(values)}"
            )
        return dict(zip(self.graph.inputs, values, strict=True))

    def infer_shapes(self, ins: Sequence[ShapeLike]) -> tuple[list[ShapeLike], list[ShapeLike]]:
        """Returns (input shapes, output shapes) completed from the given, possibly partial, input shapes."""
        from symjax.lowering.infer import infer_shapes

        found = infer_shapes(self.graph, self._by_node(ins))
        found.check()
        return found.of(self.graph.inputs), found.outputs()

    def infer_types(self, ins: Sequence[str | None]) -> tuple[list[str | None], list[str | None]]:
        """Returns (input dtypes, output dtypes) completed from the given ones."""
        from symjax.lowering.infer import infer_types

        found = infer_types(self.graph, self._by_node(ins))
        found.check()
        return found.of(self.graph.inputs), found.outputs()


@functools.lru_cache(maxsize=1024)
def _subgraph(graph: Graph) -> Subgraph:
    return Subgraph(graph)


def subgraphs_of(node: Node) -> tuple[Subgraph, ...]:
    """The subgraphs of a node; equal graphs objects give equal `Subgraph` objects, so results can be memoised."""
    return tuple(_subgraph(g) for g in node.subgraphs)
