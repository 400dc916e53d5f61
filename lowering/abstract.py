"""Abstract evaluation of one lowering rule: output shapes and dtypes from input shapes and dtypes, without computing.

This is the only forward shape rule there is: what execution will do is what inference says.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax

from symjax.lowering.errors import MXNetError, ShapeError
from symjax.lowering.registry import Op, ShapeLike

_PROBES = (5040, 10080)
"""Stand-ins for an unknown dimension; highly divisible, so that reshapes and splits accept them."""

Avals = tuple[tuple[tuple[int, ...], str], ...]


@functools.cache
def key_aval() -> Any:
    """The abstract value of a random key."""
    return jax.eval_shape(lambda: jax.random.key(0))


@functools.lru_cache(maxsize=16384)
def evaluate(
    op: Op,
    params: Any,
    avals: Avals,
    train: bool = False,
    out_shapes: tuple[tuple[int, ...], ...] | None = None,
    subgraphs: tuple[Any, ...] = (),
) -> Avals:
    """Returns (shape, dtype name) of every output and, after them, of every updated auxiliary state.

    Raises:
      MXNetError: the rule refuses these shapes or dtypes.
    """
    asked: dict[str, Any] = {}
    if "train" in op.asks:
        asked["train"] = train
    if "out_shapes" in op.asks:
        asked["out_shapes"] = out_shapes
    if "subgraphs" in op.asks:
        asked["subgraphs"] = subgraphs
    ins = [jax.ShapeDtypeStruct(s, d) for s, d in avals]
    try:
        with jax.enable_x64(True):
            if "key" in op.asks:
                out = jax.eval_shape(lambda key, *xs: op.rule(params, *xs, key=key, **asked), key_aval(), *ins)
            else:
                out = jax.eval_shape(lambda *xs: op.rule(params, *xs, **asked), *ins)
    except MXNetError:
        raise
    except (TypeError, ValueError, IndexError, AssertionError, ZeroDivisionError, OverflowError) as e:
        raise ShapeError(_first_line(e)) from e
    outs = out if isinstance(out, (tuple, list)) else (out,)
    return tuple((tuple(o.shape), o.dtype.name) for o in outs)


def evaluate_shapes(
    op: Op,
    params: Any,
    ins: Sequence[ShapeLike],
    dtypes: Sequence[str],
    *,
    out_shapes: tuple[tuple[int, ...], ...] | None = None,
    subgraphs: tuple[Any, ...] = (),
    empty: int = 0,
) -> list[ShapeLike] | None:
    """Returns the output shapes for possibly partial input shapes; None if nothing can be said.

    An unknown dimension (0) is replaced by two probe sizes: what differs between the two results depends on it and
    stays unknown, what is equal is known. `empty` stands for a known dimension of size 0, in `ins` and in the results;
    if it is 0, empty and unknown are one.
    """
    shapes = [s for s in ins if s is not None]
    if len(shapes) != len(ins):
        return None
    if all(0 not in s for s in shapes):
        avals = tuple((tuple(max(d, 0) for d in s), t) for s, t in zip(shapes, dtypes, strict=True))
        return [_marked(s, empty) for s, _ in evaluate(op, params, avals, False, out_shapes, subgraphs)]
    results = []
    for probe in _PROBES:
        avals = tuple((tuple(max(d or probe, 0) for d in s), t) for s, t in zip(shapes, dtypes, strict=True))
        try:
            results.append([_marked(s, empty) for s, _ in evaluate(op, params, avals, False, out_shapes, subgraphs)])
        except MXNetError:
            return None
    return [
        tuple(x if x == y else 0 for x, y in zip(a, b, strict=True)) if len(a) == len(b) else None
        for a, b in zip(*results, strict=True)
    ]


def _marked(shape: tuple[int, ...], empty: int) -> tuple[int, ...]:
    return tuple(d or empty for d in shape)


def _first_line(e: Exception) -> str:
    text = str(e).strip()
    return text.splitlines()[0] if text else type(e).__name__
