"""One graph on several devices: a batch in slices, an executor for each, executors that share their parameters."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from symjax._bind import simple_bind_arrays
from symjax.context import Context, cpu
from symjax.executor import Executor, copy_into
from symjax.lowering.errors import ArgumentError, BindError, ShapeError
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.elementwise import op_named
from symjax.ndarray.ndarray import NDArray
from symjax.symbol.symbol import Symbol

Places = Sequence[tuple[slice, NDArray]]
"""Where the parts of a batch go: the examples, and the array for them, of each device."""


def split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """Returns the examples of each device, in proportion to its work load.

    Raises:
      ValueError: a device would get none.
    """
    total = sum(work_load_list)
    counts = [round(load * batch_size / total) for load in work_load_list]
    counts[-1] += max(batch_size - sum(counts), 0)
    slices, end = [], 0
    for n in counts:
        begin, end = end, min(end + n, batch_size)
        if begin >= end:
            raise ValueError(f"Too many slices. Some splits are empty. ({batch_size} examples for {len(counts)} "
                             f"devices)")
        slices.append(slice(begin, end))
    return slices


def cut(array: Any, part: slice, axis: int) -> Any:
    """Returns some examples of an array; all of them, and of an array without batch axis (-1), as it is."""
    if axis < 0 or (part.start == 0 and part.stop == array.shape[axis]):
        return array
    if axis == 0:
        return array[part]
    return invoke(op_named("slice_axis"), (array,), {"axis": axis, "begin": part.start, "end": part.stop})


def load_general(sources: Sequence[Any], targets: Sequence[Any], axes: Sequence[int], names: Sequence[str]) -> None:
    """Writes the arrays of a batch to those of the executors.

    Args:
      sources: an array for each input, or a list of one for each device.
      targets: for each input an NDArray, or its places.
      axes: the batch axis of each.
      names: of the inputs, for messages.

    Raises:
      ArgumentError: there are fewer arrays than inputs.
      ShapeError: an array does not have the shape that is bound.
    """
    if len(sources) < len(targets):
        raise ArgumentError(f"the batch has {len(sources)} arrays for the {len(targets)} inputs {', '.join(names)}")
    for source, target, axis, name in zip(sources, targets, axes, names, strict=False):
        if isinstance(target, NDArray):
            _put(source, target, name)
        elif isinstance(source, (list, tuple)):
            for one, (_, place) in zip(source, target, strict=True):
                _put(one, place, name)
        else:
            for part, place in target:
                _put(cut(source, part, axis), place, name)


def _put(source: Any, target: NDArray, name: str) -> None:
    if tuple(source.shape) != target.shape:
        raise ShapeError(f"input {name!r}: shape {target.shape} is bound, got {tuple(source.shape)}")
    copy_into(target, source)


def merge(parts: Sequence[NDArray], axis: int) -> NDArray:
    """Returns what the devices have as one array; the first one's if there is no batch axis."""
    if axis < 0 or len(parts) == 1:
        return parts[0]
    there = [p.as_in_context(parts[0].context) for p in parts]
    return invoke(op_named("Concat"), there, {"dim": axis, "num_args": len(there)})


def average(block: Sequence[Any]) -> Any:
    """Returns the mean of copies of a parameter as a new array on the CPU, which shares no memory with any."""
    if len(block) == 1:
        return separate(block[0].as_in_context(cpu()))
    return functools.reduce(operator.add, [w.as_in_context(cpu()) for w in block]) / len(block)


def separate(array: Any) -> Any:
    """Returns a copy in memory of its own, so that the array can still be updated in place."""
    with jax.enable_x64(True):
        return type(array)._from_jax(jax.tree.map(jnp.copy, array._data), array.context)


def bind_sharing(
    symbol: Symbol,
    ctx: Context,
    grad_req: Any,
    types: Mapping[str, Any],
    shapes: Mapping[str, Any],
    params: Collection[str],
    shared: Executor | None = None,
    group2ctx: Any = None,
    alike: Collection[str] = (),
    batch: Mapping[str, int] | None = None,
) -> Executor:
    """Binds a symbol to new arrays, and to the parameters, gradients and auxiliary states of another executor.

    Args:
      symbol, ctx, grad_req, group2ctx: see `Symbol.simple_bind`.
      types, shapes: those known, by name.
      params: the arguments that are taken from `shared`, with their gradients.
      shared: the other executor.
      alike: arguments that are taken from it where they fit.
      batch: the batch axis of each input, which a mesh divides.

    Raises:
      BindError: `shared` lacks a parameter.
      ShapeError: a parameter has another shape or type there.
    """
    bound = simple_bind_arrays(symbol, ctx, grad_req, types, None, None, None, shapes, group2ctx, batch)
    if shared is not None:
        have, grads, aux = shared.arg_dict, shared.grad_dict, shared.aux_dict
        for i, name in enumerate(symbol.list_arguments()):
            if name in params or (name in alike and name in have and _fits(bound.args[i], have[name])):
                bound.args[i] = _taken(name, bound.args[i], have)
                if bound.grads[i] is not None and grads.get(name) is not None:
                    bound.grads[i] = grads[name]
        for i, name in enumerate(symbol.list_auxiliary_states()):
            bound.aux[i] = _taken(name, bound.aux[i], aux)
    return Executor(bound, symbol, ctx, grad_req, group2ctx)


def _fits(new: NDArray, old: NDArray) -> bool:
    return (new.shape, new._dtype, new.stype) == (old.shape, old._dtype, old.stype)


def _taken(name: str, new: NDArray, have: Mapping[str, NDArray]) -> NDArray:
    old = have.get(name)
    if old is None:
        raise BindError(f"parameter {name!r} is not in the graph whose parameters are to be shared; bind the graph "
                        f"that has all of them first (default_bucket_key)")
    if not _fits(new, old):
        raise ShapeError(f"parameter {name!r} cannot be shared: {new.shape}, {new._dtype}, {new.stype} here, and "
                         f"{old.shape}, {old._dtype}, {old.stype} where it comes from")
    return old
