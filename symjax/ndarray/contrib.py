"""`mx.nd.contrib`: control flow and checks on arrays, and the contrib operators from the registry."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symjax._op_functions import regroup
from symjax.context import Context
from symjax.ndarray import _functions
from symjax.ndarray.creation import zeros
from symjax.ndarray.elementwise import logical_and
from symjax.ndarray.ndarray import NDArray

__all__ = ["cond", "foreach", "isfinite", "isinf", "isnan", "rand_zipfian", "while_loop"]

Nested = Any
"""An NDArray, or nested lists of NDArrays."""


def _flatten(args: Nested, what: str) -> tuple[list[NDArray], Any]:
    """Returns the arrays in order, and the nesting (0: an array)."""
    if isinstance(args, NDArray):
        return [args], 0
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"{what} must be an NDArray or nested lists of NDArrays, got {type(args).__name__}")
    parts = [_flatten(a, what) for a in args]
    return [x for flat, _ in parts for x in flat], [fmt for _, fmt in parts]


def _stack(arrays: Sequence[NDArray]) -> NDArray:
    return _functions.function_in("op", "stack")(*arrays)


def _truth(value: Any, what: str) -> bool:
    try:
        return bool(value.asscalar() if hasattr(value, "asscalar") else value)
    except (TypeError, ValueError):
        raise ValueError(f"Cannot convert {what} to python bool") from None


def foreach(body: Callable[[Any, Any], Any], data: Nested, init_states: Nested) -> tuple[Nested, Nested]:
    """Runs `body` on each slice of `data` along axis 0, carrying states; gradients are recorded step by step.

    Args:
      body: `(slice or nested slices, states) -> (outputs, new states)`.
      data: what is cut; all with the same first axis.
      init_states: the states before the first step.

    Returns:
      The outputs of all steps, stacked along a new axis 0, and the final states.

    Raises:
      ValueError: the data differ in their first axis, or have no step.
    """
    flat, fmt = _flatten(data, "data of foreach")
    _flatten(init_states, "init_states of foreach")
    steps = {x.shape[0] for x in flat}
    if len(steps) != 1 or 0 in steps:
        raise ValueError(f"the data of foreach must have the same first axis, not 0; got {[x.shape for x in flat]}")
    states, rows, out_fmt = init_states, [], None
    for i in range(steps.pop()):
        out, states = body(regroup([x[i] for x in flat], fmt), states)
        row, out_fmt = _flatten(out, "output of the body of foreach")
        rows.append(row)
    return regroup([_stack(column) for column in zip(*rows, strict=True)], out_fmt), states


def while_loop(cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Nested,
               max_iterations: Any = None) -> tuple[Nested, Nested]:
    """Runs `func` while `cond` holds, at most `max_iterations` times.

    Args:
      cond: `(*loop_vars) -> one number`; 0 ends the loop.
      func: `(*loop_vars) -> (step outputs, new loop_vars)`.
      loop_vars: the variables before the first step.
      max_iterations: bound on the steps, and length of the stacked outputs.

    Returns:
      The step outputs stacked along a new axis 0, zeros behind the last step (MXNet leaves memory uninitialised
      there), an empty list if there was no step; and the final loop variables.

    Raises:
      ValueError: `max_iterations` is missing, or the number of variables or outputs changes.
    """
    if max_iterations is None:
        raise ValueError("max_iterations should be specified")
    try:
        limit = int(max_iterations)
    except (TypeError, ValueError):
        raise ValueError("Cannot convert max_iterations to python int") from None
    single = isinstance(loop_vars, NDArray)
    variables = [loop_vars] if single else list(loop_vars)
    if not variables:
        raise ValueError("loop_vars should contain at least one element")
    rows: list[list[NDArray]] = []
    out_fmt: Any = []
    while len(rows) < limit and _truth(cond(*variables), "Return value of cond"):
        out, new = func(*variables)
        new = [] if new is None else [new] if isinstance(new, NDArray) else list(new)
        if len(new) != len(variables):
            raise ValueError("The length of loop_vars should be consistent during the loop")
        row, out_fmt = _flatten([] if out is None else out, "step outputs of while_loop")
        if rows and len(row) != len(rows[0]):
            raise ValueError("Number of elements in step_output should be the same in each step")
        variables = new
        rows.append(row)
    stacked = [_padded(column, limit) for column in zip(*rows, strict=True)]
    return regroup(stacked, out_fmt), variables[0] if single else variables


def _padded(steps: Sequence[NDArray], length: int) -> NDArray:
    first = steps[0]
    return _stack([*steps, *(zeros(first.shape, ctx=first.context, dtype=first.dtype)
                             for _ in range(length - len(steps)))])


def cond(pred: Any, then_func: Callable[[], Nested], else_func: Callable[[], Nested]) -> Nested:
    """Calls `then_func` if the one number of `pred` is not 0, else `else_func`, and returns what it gives."""
    return then_func() if _truth(pred, "pred") else else_func()


def isinf(data: NDArray) -> NDArray:
    """1 where an entry is positive or negative infinity, else 0, in the data's type."""
    return data.abs() == np.inf


def isfinite(data: NDArray) -> NDArray:
    """1 where an entry is neither infinite nor NaN, else 0, in the data's type."""
    return logical_and(data == data, data.abs() != np.inf)


def isnan(data: NDArray) -> NDArray:
    """1 where an entry is NaN, else 0, in the data's type."""
    return data != data


def rand_zipfian(true_classes: NDArray, num_sampled: int, range_max: int,
                 ctx: Context | None = None) -> tuple[NDArray, NDArray, NDArray]:
    """Draws classes from the approximate Zipf distribution P(c) = log((c + 2) / (c + 1)) / log(range_max + 1).

    Args:
      true_classes: (n,) classes whose expected counts are wanted.
      num_sampled: how many classes to draw, with replacement.
      range_max: number of classes.
      ctx: where to draw; the current context by default.

    Returns:
      The classes drawn (num_sampled,) int64, and the expected counts P(c) * num_sampled of the true classes and of
      those drawn, float64.
    """
    from symjax.ndarray import random

    log_range = math.log(range_max + 1)
    drawn = random.uniform(0, log_range, shape=(num_sampled,), dtype="float64", ctx=ctx)
    sampled = (drawn.exp() - 1).astype("int64") % range_max

    def expected(classes: NDArray) -> NDArray:
        c = classes.as_in_context(drawn.context).astype("float64")
        return ((c + 2.0) / (c + 1.0)).log() / log_range * num_sampled

    return sampled, expected(true_classes), expected(sampled)


__getattr__, __dir__ = _functions.fill("contrib", globals())
