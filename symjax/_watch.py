"""What a monitor sees of an executor: the outputs of all operators, and in training their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.lowering.compile import Program, cotangent, program_for, wrap_key
from symjax.lowering.graph import Entry, Graph, Node
from symjax.lowering.row_gradients import stored
from symjax.lowering.trace import lower_graph
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import wrap

if TYPE_CHECKING:
    from symjax._run import Run
    from symjax.executor import Executor

MonitorCallback = Callable[[str, NDArray], Any]


class _Name(str):
    """A name given to a monitor callback. MXNet gives bytes there, which callbacks decode."""

    def decode(self, *args: Any) -> str:
        return str(self)


class Watch:
    """Works out, beside the pass itself, what it computes inside, and calls a callback with each.

    Args:
      ex: the executor.
      callback: `(name, array)`; not called while it has an attribute `activated` that is false.
      everything: call it with inputs too.
    """

    def __init__(self, ex: Executor, callback: MonitorCallback, everything: bool) -> None:
        self.ex, self.callback, self.everything = ex, callback, everything
        self.nodes = [n for n in ex._graph.nodes if n.op is not None]
        self._values: dict[Entry, Any] = {}

    @property
    def activated(self) -> bool:
        return bool(getattr(self.callback, "activated", True))

    @cached_property
    def _inside(self) -> tuple[Graph, Program]:
        ex, inside = self.ex, Graph([e for n in self.nodes for e in n.entries()])
        return inside, program_for(inside, dict(ex._bound.out_shapes), ex._ctx.platform, devices=ex._devices)

    def _arrays(self) -> dict[Node, NDArray]:
        ex = self.ex
        pairs = [*zip(ex._graph.arguments, ex.arg_arrays, strict=True),
                 *zip(ex._graph.aux_states, ex.aux_arrays, strict=True)]  # fmt: skip
        return dict(pairs)

    def forward(self, run: Run) -> None:
        """Shows the outputs of a forward pass, with the random numbers of the pass itself."""
        ex, arrays = self.ex, self._arrays()
        inside, program = self._inside
        with jax.enable_x64(True):
            outs, _ = program.forward(
                tuple(arrays[n]._data for n in inside.arguments),
                tuple(arrays[n]._data for n in inside.aux_states),
                run.key,
                run.train,
            )
        values = self._values = dict(zip(inside.outputs, outs, strict=True))
        for n in ex._graph.nodes if self.everything else self.nodes:
            if n.op is None:  # MXNet: an input of the graph counts as an output here
                self.callback(_Name(n.name), arrays[n])
                continue
            if self.everything:
                for name, e in zip(n.input_names, n.inputs, strict=True):
                    self.callback(_Name(f"{n.name}_{name}"), arrays[e.node] if e.node.is_variable else
                                  wrap(values[e], ex._ctx))  # fmt: skip
            for e in n.entries():
                self.callback(_Name(e.output_name), wrap(values[e], ex._ctx))

    # ---- gradients

    @cached_property
    def _sites(self) -> list[tuple[Node, int]]:
        """The inputs of operators on the way from a differentiated argument, last operators first."""
        ex = self.ex
        reached = {ex._graph.arguments[i] for i in ex._wrt}
        for n in self.nodes:
            if any(e.node in reached for e in n.inputs):
                reached.add(n)
        # MXNet: the gradient of elemwise_add is its head, handed on without an operator
        with_gradient = [n for n in reversed(self.nodes) if n in reached and n.op and n.op.name != "elemwise_add"]
        return [(n, i) for n in with_gradient for i in _differentiated(n)]

    @cached_property
    def _gradients(self) -> Callable[..., Any]:
        ex = self.ex
        fn = lower_graph(ex._graph, out_shapes=ex._bound.out_shapes, platform=ex._ctx.platform)

        def gradients(taps: Sequence[Any], args: Any, aux: Any, key: Any, heads: Sequence[Any] | None) -> Any:
            def tapped(taps: Sequence[Any]) -> Any:
                added = {s: t for s, t in zip(self._sites, taps, strict=True) if t is not None}
                outs, _ = fn(args, aux, wrap_key(key), True, taps=added)
                return [stored(o) for o in outs], outs

            _, pull, outs = jax.vjp(tapped, taps, has_aux=True)
            (found,) = pull([cotangent(o, h) for o, h in zip(outs, heads or [None] * len(outs), strict=True)])
            return found

        return ex._program.compiled(gradients)

    def backward(self, run: Run, heads: Sequence[Any] | None) -> None:
        """Shows the gradients of all operators' inputs; those of sparse and integer ones are left out."""
        ex, arrays = self.ex, self._arrays()
        if not self._values:
            return
        with jax.enable_x64(True):
            taps = [self._tap(arrays[e.node]._data if e.node.is_variable else self._values[e])
                    for e in (n.inputs[i] for n, i in self._sites)]  # fmt: skip
            given = [a._data for a in ex.arg_arrays], [a._data for a in ex.aux_arrays], run.key, heads
            if ex._devices is not None:  # all in one place: what is watched need not be fast
                given = jax.device_put(given, ex._ctx.jax_device)
            found = self._gradients(taps, *given)
        for (n, i), value in zip(self._sites, found, strict=True):
            if value is not None:
                which = "" if len(_differentiated(n)) == 1 else i
                self.callback(_Name(f"{n.name}_backward_output{which}"), wrap(value, ex._ctx))

    def _tap(self, value: Any) -> Any:
        if hasattr(value, "stype") or not jnp.issubdtype(value.dtype, jnp.inexact):
            return None
        return np.zeros(value.shape, value.dtype)


def _differentiated(n: Node) -> list[int]:
    """The inputs of an operator that MXNet's gradient has outputs for."""
    return [i for i in range(len(n.inputs)) if i not in set(n.aux_positions())]
