"""Reusing the memory of large arrays that a call overwrites (`out=` an input, optimizer states).

A new buffer for every update costs several times the update itself on the CPU, where fresh pages must be mapped. The
old buffer is given away only if nobody else can hold it: the array owns it, and nothing else refers to it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax

MIN_SIZE = 1 << 15  # elements; below it an allocation costs nothing
_calls: dict[Any, Callable[..., Any]] = {}
_fits: dict[Any, bool] = {}


def candidates(inputs: Sequence[Any], out: Any, aux: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the positions of the inputs that the call will overwrite and whose buffers only they hold."""
    outs = {id(o) for o in (out if isinstance(out, (list, tuple)) else (out,))}
    uses, updated, found = Counter(map(id, inputs)), set(aux), []
    for i, x in enumerate(inputs):
        if not x._owned or x._lazy is not None or x._value.size < MIN_SIZE:
            continue
        if not (i in updated or id(x) in outs) or uses[id(x)] > 1:
            continue
        # the slot and the argument of getrefcount; for a container, also that nothing else holds its parts
        if sys.getrefcount(x._value) == 2 and (x.stype == "default" or holds_alone(x._value)):
            found.append(i)
    return tuple(found)


def holds_alone(container: Any) -> bool:
    """Whether nothing but a container refers to its arrays."""
    parts = vars(container)
    names = [k for k in parts if isinstance(parts[k], jax.Array)]
    # the dictionary of the container and the argument of getrefcount
    return parts.get("columns") is None and all(sys.getrefcount(parts[k]) == 2 for k in names)


def donating(call: Callable[..., Any], given: tuple[int, ...], arrays: tuple[Any, ...], inputs: Sequence[Any],
             out: Any, aux: tuple[int, ...], n_out: int, scalars: tuple[Any, ...],
             key: Any) -> Callable[..., Any] | None:
    """Returns `call` compiled to reuse the buffers of the inputs `given`; None if a result would not fit in its place.

    A result of another shape is an error that is raised after the call: by then the input must still be there.
    """
    signature = tuple(map(_signature, arrays))
    known = (call, given, signature, tuple(_targets(given, inputs, out, aux, n_out)))
    fits = _fits.get(known)
    if fits is None:
        results = jax.eval_shape(call, arrays, scalars, key)
        fits = _fits[known] = all(_signature(results[j]) == signature[i] for i, j in known[3])
    if not fits:
        return None
    made = _calls.get((call, given))
    if made is None:
        made = _calls[call, given] = _compile(call, given)
    return made


def _signature(value: Any) -> Any:
    if isinstance(value, jax.Array | jax.ShapeDtypeStruct):
        return value.shape, value.dtype
    leaves, structure = jax.tree.flatten(value)
    return structure, tuple((x.shape, x.dtype) for x in leaves)


def _targets(given: tuple[int, ...], inputs: Sequence[Any], out: Any, aux: tuple[int, ...],
             n_out: int) -> list[tuple[int, int]]:
    """Pairs each given input with the result that will replace it."""
    outs = out if isinstance(out, (list, tuple)) else (out,)
    places = {position: n_out + j for j, position in enumerate(aux)}
    written = {id(o): j for j, o in reversed(list(enumerate(outs)))}  # the first place of each
    return [(i, places[i] if i in places else written[id(inputs[i])]) for i in given]


def _compile(call: Callable[..., Any], given: tuple[int, ...]) -> Callable[..., Any]:
    place = {i: k for k, i in enumerate(given)}

    def split_call(mine: tuple[Any, ...], others: tuple[Any, ...], scalars: Any, key: Any) -> Any:
        rest = iter(others)
        arrays = [mine[place[i]] if i in place else next(rest) for i in range(len(mine) + len(others))]
        return call(tuple(arrays), scalars, key)

    compiled = jax.jit(split_call, donate_argnums=0)

    def donating_call(arrays: tuple[Any, ...], scalars: Any, key: Any) -> Any:
        mine = tuple([arrays[i] for i in given])
        return compiled(mine, tuple([a for i, a in enumerate(arrays) if i not in place]), scalars, key)

    return donating_call
