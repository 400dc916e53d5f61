"""Names of MXNet that stand for something outside of the graph: they have no computation to be lowered.

MXNet registers them so that its recorder of imperative calls has names for its nodes. What they do lies in objects of
the process that recorded them, which no attribute carries: MXNet, too, cannot run a graph that holds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from symjax.lowering.errors import MissingLoweringError
from symjax.lowering.params import Params
from symjax.lowering.registry import op


class _Recorded(Params):
    """Refuses to make a node, and says what to do."""

    remedy: ClassVar[str]

    @classmethod
    def parse(cls, attrs: Mapping[str, str], op: str = "") -> Self:
        raise MissingLoweringError(f"operator {op} stands for {cls.remedy}")


class _Block(_Recorded):
    remedy = ("a compiled block of the process that recorded it. Export the block (HybridBlock.export), or call it on "
              "symbols, to have the block's own operators in the graph")


class _Function(_Recorded):
    remedy = ("an autograd.Function of the process that recorded it. Write it as a CustomOp (mx.operator.register), "
              "which a graph finds by its name")


def _free(p: Any, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    return ins, outs


def _no_shape(p: Any, ins: list[Any]) -> list[None]:
    return [None]


_COMMON: dict[str, Any] = {"inputs": lambda p: (), "infer_types": _free, "infer_outputs": _no_shape, "eager": True}


def _refuse(name: str, remedy: str) -> Any:
    return MissingLoweringError(f"operator {name} stands for {remedy}")


@op("_CachedOp", params=_Block, all_inputs=("*data",), unregistered=lambda a: "a block of another process", **_COMMON)
def cached_op(p: Any, *data: Any) -> Any:
    """Stands for a call of a hybridized block; such a graph cannot run, as in MXNet."""
    raise _refuse("_CachedOp", _Block.remedy)


@op("_CachedOpThreadSafe", params=_Block, all_inputs=("*data",), unregistered=lambda a: "a block of another process",
    **_COMMON)  # fmt: skip
def cached_op_thread_safe(p: Any, *data: Any) -> Any:
    """Stands for a call of a hybridized block; such a graph cannot run, as in MXNet."""
    raise _refuse("_CachedOpThreadSafe", _Block.remedy)


@op("_CustomFunction", params=_Function, all_inputs=(), unregistered=lambda a: "a Function of another process",
    **_COMMON)  # fmt: skip
def custom_function(p: Any, *data: Any) -> Any:
    """Stands for a call of an `autograd.Function`; such a graph cannot run, as in MXNet."""
    raise _refuse("_CustomFunction", _Function.remedy)


@op("_NoGradient", infer_types=_free, infer_outputs=_no_shape, eager=True)
def no_gradient(p: Any) -> Any:
    """Marks, in MXNet's gradient graphs, an input that has no gradient; it has no value."""
    raise MissingLoweringError("_NoGradient marks the absence of a gradient and has no value; use zeros_like")
