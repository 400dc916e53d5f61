"""Names of MXNet that stand for something outside of the graph: they have no computation to be lowered.

MXNet registers them so that its recorder of imperative calls has names for its nodes. What they do lies in objects of
the process that recorded them, which no attribute carries: MXNet, too, cannot run a graph that holds one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symjax.lowering.errors import MissingLoweringError
from symjax.lowering.registry import op

_BLOCK = ("a compiled block of the process that recorded it. Export the block (HybridBlock.export), or call it on "
          "symbols, to have the block's own operators in the graph")
_FUNCTION = ("an autograd.Function of the process that recorded it. Write it as a CustomOp (mx.operator.register), "
             "which a graph finds by its name")


def _free(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ins, outs


def _no_shape(p: Any, ins: list[Any]) -> list[None]:
    return [None]


def _refusing(name: str, meaning: str) -> Callable[..., tuple[str, ...]]:
    """Names no inputs, which every node and call asks for first, but says what to do instead."""

    def refuse(*_: Any) -> Any:
        raise MissingLoweringError(f"operator {name} stands for {meaning}")

    return refuse


def _placeholder(name: str, meaning: str, lacking: str, inputs: tuple[str, ...], doc: str) -> None:
    refuse = _refusing(name, meaning)

    def rule(p: Any, *data: Any) -> Any:
        return refuse()

    rule.__doc__ = f"Stands for a call of {doc}; such a graph cannot run, as in MXNet."
    op(name, inputs=refuse, all_inputs=inputs, infer_types=_free, infer_outputs=_no_shape,
       unregistered=lambda attrs: lacking)(rule)


_placeholder("_CachedOp", _BLOCK, "a block of another process", ("*data",), "a hybridized block")
_placeholder("_CachedOpThreadSafe", _BLOCK, "a block of another process", ("*data",), "a hybridized block")
_placeholder("_CustomFunction", _FUNCTION, "a Function of another process", (), "an `autograd.Function`")


@op("_NoGradient", infer_types=_free, infer_outputs=_no_shape)
def no_gradient(p: Any) -> Any:
    """Marks, in MXNet's gradient graphs, an input that has no gradient; it has no value."""
    raise MissingLoweringError("_NoGradient marks the absence of a gradient and has no value; use zeros_like")
