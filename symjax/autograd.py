"""Differentiation of imperative code: `with autograd.record(): …`, then `loss.backward()`.

Gradients are JAX's vector-Jacobian products of the recorded calls (see `symjax.ndarray.tape`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from symjax.lowering.errors import ArgumentError, DTypeError, MXNetError
from symjax.ndarray import storage, tape
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.tape import STATE
from symjax.sparse.exact import add

__all__ = ["Function", "backward", "get_symbol", "grad", "is_recording", "is_training", "mark_variables", "pause",
           "predict_mode", "record", "set_recording", "set_training", "train_mode"]


class GradReqError(MXNetError, KeyError, ValueError):
    """A grad_req is none of those that there are (MXNet: a KeyError)."""


def set_recording(is_recording: bool) -> bool:
    """Turns recording on or off in this thread and returns what it was."""
    old, STATE.recording = STATE.recording, bool(is_recording)
    return old


def set_training(train_mode: bool) -> bool:
    """Turns training mode on or off in this thread and returns what it was."""
    old, STATE.training = STATE.training, bool(train_mode)
    return old


def is_recording() -> bool:
    """Returns whether calls are recorded."""
    return STATE.recording


def is_training() -> bool:
    """Returns whether ops run in training mode."""
    return STATE.training


class _Scope:
    """Sets the thread's flags for a `with` block or a decorated function; None leaves one as it is."""

    def __init__(self, recording: bool | None, training: bool | None) -> None:
        self._flags = recording, training
        self._old: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._old.append((STATE.recording, STATE.training))
        recording, training = self._flags
        if recording is not None:
            STATE.recording = recording
        if training is not None:
            STATE.training = training

    def __exit__(self, *exc: object) -> None:
        STATE.recording, STATE.training = self._old.pop()

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return scoped


def record(train_mode: bool = True) -> _Scope:
    """Returns a scope in which calls are recorded, in training mode unless told otherwise."""
    return _Scope(True, train_mode)


def pause(train_mode: bool = False) -> _Scope:
    """Returns a scope in which calls are not recorded."""
    return _Scope(False, train_mode)


def train_mode() -> _Scope:
    """Returns a scope in which ops run in training mode; recording stays as it is."""
    return _Scope(None, True)


def predict_mode() -> _Scope:
    """Returns a scope in which ops run in prediction mode; recording stays as it is."""
    return _Scope(None, False)


def mark_variables(variables: NDArray | Sequence[NDArray], gradients: NDArray | Sequence[NDArray],
                   grad_reqs: str | Sequence[str] = "write") -> None:
    """Makes arrays variables and attaches the arrays that their gradients go to.

    Args:
      variables: one or more NDArrays.
      gradients: one for each variable, of its shape.
      grad_reqs: "write", "add" or "null", for all or one for each.
    """
    if isinstance(variables, NDArray):
        assert isinstance(gradients, NDArray)
        variables, gradients = [variables], [gradients]
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else grad_reqs
    for v, g, req in zip(variables, gradients, reqs, strict=True):
        if req not in ("write", "add", "null"):
            raise GradReqError(f"grad_req {req!r} is not one of write, add, null")
        v._tape = tape.Leaf(g, req) if req != "null" else None


def _heads(heads: Any, head_grads: Any) -> tuple[list[NDArray], list[NDArray]]:
    heads = [heads] if isinstance(heads, storage.NDArrayBase) else list(heads)
    given = [head_grads] if head_grads is None or isinstance(head_grads, storage.NDArrayBase) else list(head_grads)
    if head_grads is None:
        given = [None] * len(heads)
    if len(given) != len(heads):
        raise ArgumentError(f"heads and head_grads must be lists of the same length: {len(heads)} heads, but "
                            f"{len(given)} head gradients")
    grads = []
    for h, g in zip(heads, given, strict=True):
        if g is not None and g.shape != h.shape:
            raise MXNetError(f"head gradient of shape {g.shape} for a head of shape {h.shape}")
        if g is not None and g._dtype != h._dtype:
            raise DTypeError(f"head gradient of dtype {g._dtype} for a head of dtype {h._dtype}; convert it with "
                             f"astype")
        grads.append(g if g is not None else NDArray._from_jax(storage.to_device(np.ones(h.shape, h._dtype), h.context),
                                                               h.context))
    return heads, grads


def backward(heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Computes the gradients of the heads and puts them into the variables' gradient arrays.

    Args:
      heads: an NDArray or several, computed inside `record()`.
      head_grads: their cotangents; ones where None.
      retain_graph: whether the same heads will be differentiated again.
      train_mode: accepted; an op is differentiated in the mode it ran in.
    """
    leaves = tape.differentiate(*_heads(heads, head_grads), retain_graph, False)
    for leaf, value in leaves.values():
        with jax.enable_x64(True):
            new = value.tostype(leaf.grad.stype)._data.astype(leaf.grad._dtype)
            if leaf.req == "add":
                new = add(leaf.grad._data, new)
        leaf.grad._set_data(storage.to_device(new, leaf.grad.context))
        leaf.fresh = True


def grad(heads: Any, variables: Any, head_grads: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, train_mode: bool = True) -> Any:
    """Returns the gradients of the heads with respect to variables as new arrays.

    Args:
      heads: an NDArray or several, computed inside `record()`.
      variables: an NDArray or several that have `attach_grad()` called.
      head_grads: cotangents of the heads; ones where None.
      retain_graph: as for `backward`; defaults to `create_graph`.
      create_graph: record this computation too, for gradients of gradients.
      train_mode: accepted; an op is differentiated in the mode it ran in.

    Returns:
      A list with one NDArray for each variable.

    Raises:
      MXNetError: a variable is none, or the heads do not depend on it.
    """
    # MXNet: a list even for a single variable, although its documentation promises an NDArray then.
    wanted = [variables] if isinstance(variables, storage.NDArrayBase) else list(variables)
    if not wanted:
        raise ArgumentError("variables cannot be an empty list: autograd.grad needs at least one")
    keep = create_graph if retain_graph is None else retain_graph
    leaves = tape.differentiate(*_heads(heads, head_grads), keep, create_graph)
    grads = []
    for i, v in enumerate(wanted):
        if not isinstance(v._tape, tape.Leaf) or id(v._tape) not in leaves:
            raise MXNetError(f"variable {i} is not one that the heads depend on; call attach_grad() on it before "
                             f"record()")
        grads.append(leaves[id(v._tape)][1])
    return grads


def get_symbol(x: NDArray) -> Any:
    """Returns the recorded calls that an array came from as a Symbol.

    Variables are called `var0`, `var1`, … in the order in which they are read, constants `null2`, … in the same count,
    and the calls `node_0`, …

    Args:
      x: an array computed inside `record()` and not differentiated yet.

    Raises:
      MXNetError: `x` is not recorded, or its graph is freed.
      NotImplementedError: an index, a slice or a `Function` is among the calls: these are no operators.
      AssertionError: `x` is no NDArray.
    """
    from symjax.ndarray.tape_symbol import symbol_of

    if not isinstance(x, storage.NDArrayBase):
        raise ArgumentError(f"get_symbol: expected an NDArray, got {type(x).__name__}")
    return symbol_of(x)


class Function:
    """A differentiable function in Python: override `forward(*inputs)` and `backward(*output_grads)`.

    `save_for_backward(*arrays)` in `forward` keeps arrays that `backward` finds in `self.saved_tensors`.
    """

    saved_tensors: tuple[NDArray, ...] = ()

    def save_for_backward(self, *args: NDArray) -> None:
        """Keeps arrays for `backward`."""
        self.saved_tensors = args

    def __call__(self, *inputs: NDArray) -> Any:
        recording = is_recording()
        with pause(train_mode=is_training()):
            outputs = self.forward(*inputs)
        single = isinstance(outputs, NDArray)
        outs = (outputs,) if single else tuple(outputs)
        sources = tuple(x._tape for x in inputs)
        if recording and any(s is not None for s in sources):
            # An output may be an input itself; the recorded one must be an array of its own.
            outs = tuple(type(o)._from_jax(o._data, o.context) for o in outs)
            node = tape.FunctionNode(self._pull(len(inputs)), tuple(x._data for x in inputs), sources,
                                     tuple((o.shape, o._dtype) for o in outs))
            for i, o in enumerate(outs):
                o._tape = (node, i)
        return outs[0] if single else list(outs) if isinstance(outputs, list) else outs

    def _pull(self, n: int) -> Any:
        def pull(cotangents: Sequence[NDArray], create_graph: bool) -> Sequence[NDArray | None]:
            with _Scope(create_graph, is_training()):
                grads = self.backward(*cotangents)
            grads = (grads,) if isinstance(grads, NDArray) else tuple(grads)
            if len(grads) != n:
                raise MXNetError(f"{type(self).__name__}.backward returned {len(grads)} gradients for {n} inputs")
            return grads

        return pull

    def forward(self, *inputs: Any, **_: Any) -> Any:
        """Computes the outputs; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def backward(self, *output_grads: Any, **_: Any) -> Any:
        """Computes the gradients of the inputs; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__}.backward")
