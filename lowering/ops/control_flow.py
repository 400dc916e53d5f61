"""Control flow over subgraphs: `_foreach`, `_while_loop` and `_cond`.

The subgraphs are callables over their inputs; `*_locs` parameters say which input of the node feeds which input of a
subgraph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import ShapeLike, op
from symjax.lowering.subgraph import Subgraph

Subgraphs = Sequence[Subgraph]
Types = list[str | None]


def _data_names(p: Any, subgraphs: int) -> tuple[str, ...]:
    """Names of the node's inputs; `num_args` counts the subgraphs too."""
    return tuple(f"data{i}" for i in range(p.num_args - subgraphs))


def _pick(values: Sequence[Any], locs: Sequence[int], name: str) -> list[Any]:
    if any(not 0 <= i < len(values) for i in locs):
        raise ParamError(f"{name}={tuple(locs)} does not fit the node's {len(values)} inputs")
    return [values[i] for i in locs]


def _step_key(key: Any, step: Array) -> Any:
    return None if key is None else jax.random.fold_in(key, step)


def _count(what: str, values: Sequence[Any], expected: int) -> None:
    if len(values) != expected:
        raise ParamError(f"the subgraph gives {len(values)} new {what}s, but the *_locs parameters name {expected}")


def _same(what: str, old: Sequence[Array], new: Sequence[Array]) -> None:
    _count(what, new, len(old))
    for i, (a, b) in enumerate(zip(old, new, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ShapeError(f"{what} {i} changes from {a.dtype}{list(a.shape)} to {b.dtype}{list(b.shape)}; it must "
                             "keep its shape and dtype")


def _merge(a: ShapeLike, b: ShapeLike) -> ShapeLike:
    """What either knows; contradictions are left to the engine, which sees both."""
    if a is None or b is None or len(a) != len(b):
        return b if a is None else a
    return tuple(x or y for x, y in zip(a, b, strict=True))


def _first(a: str | None, b: str | None) -> str | None:
    return a or b


# ---- foreach


class ForeachParams(Params):
    num_args: int = param(doc="Number of inputs, the subgraph counted as one.", ge=1)
    num_outputs: int = param(doc="Number of outputs: those of the iterations, then the final states.", ge=0)
    num_out_data: int = param(doc="How many outputs collect a value of every iteration.", ge=0)
    in_state_locs: Shape = param(doc="Inputs of the subgraph that are states.")
    in_data_locs: Shape = param(doc="Inputs of the subgraph that are slices of the data.")
    remain_locs: Shape = param(doc="Inputs of the subgraph that stay the same in every iteration.")


def _order(p: ForeachParams, count: int) -> Shape:
    """The inputs of the subgraph in the order of the node's."""
    locs = (*p.in_data_locs, *p.in_state_locs, *p.remain_locs)
    if sorted(locs) != list(range(count)):
        raise ParamError(f"in_data_locs={p.in_data_locs}, in_state_locs={p.in_state_locs} and remain_locs="
                         f"{p.remain_locs} must name each of the {count} inputs once")
    return locs


def _body_inputs(p: ForeachParams, values: Sequence[Any]) -> list[Any]:
    """Puts data, states and the rest, the order of the node's inputs, into the order of the subgraph's."""
    placed = dict(zip(_order(p, len(values)), values, strict=True))
    return [placed[i] for i in range(len(values))]


def _from_body(p: ForeachParams, values: Sequence[Any]) -> list[Any]:
    """The inverse of `_body_inputs`."""
    return [values[i] for i in _order(p, len(values))]


def _with_states(p: ForeachParams, ins: Sequence[Any], outs: Sequence[Any],
                 merge: Callable[[Any, Any], Any]) -> list[Any]:
    """The inputs with what is known of the final states."""
    n = len(p.in_data_locs)
    out = list(ins)
    _order(p, len(out))
    _count("state", outs[p.num_out_data:], len(p.in_state_locs))
    for i, final in enumerate(outs[p.num_out_data:]):
        out[n + i] = merge(out[n + i], final)
    return out


def _infer_foreach(p: ForeachParams, ins: list[ShapeLike], outs: list[ShapeLike], *,
                   subgraphs: Subgraphs) -> list[ShapeLike]:
    n = len(p.in_data_locs)
    steps = next((s[0] for s in ins[:n] if s and s[0]), 0)
    known = _with_states(p, ins, outs, _merge)
    # MXNet: a slice of a vector has shape (1,).
    slices: list[ShapeLike] = [None if s is None else s[1:] or (1,) for s in known[:n]]
    found = _from_body(p, subgraphs[0].infer_shapes(_body_inputs(p, [*slices, *known[n:]]))[0])
    for i in range(n):
        given, inner = ins[i], found[i]
        found[i] = (steps,) if given is not None and len(given) == 1 else None if inner is None else (steps, *inner)
    return found


def _foreach_types(p: ForeachParams, ins: Types, outs: Types, *, subgraphs: Subgraphs) -> tuple[Types, Types]:
    found, inner = subgraphs[0].infer_types(_body_inputs(p, _with_states(p, ins, outs, _first)))
    return _from_body(p, found), inner


@op("_foreach", params=ForeachParams, inputs=lambda p: _data_names(p, 1), all_inputs=("*data",), num_subgraphs=1,
    outputs=lambda p: p.num_outputs, infer_inputs=_infer_foreach, infer_types=_foreach_types)
def foreach(p: ForeachParams, *inputs: Array, train: bool, key: Any, subgraphs: Subgraphs) -> tuple[Array, ...]:
    """Runs the subgraph on each slice of the data along axis 0, carrying states.

    The node's inputs are the data, the initial states, and what every iteration sees whole. The subgraph's outputs are
    `num_out_data` values that are stacked along a new axis 0, then the new states. Compiled as one loop, whatever the
    number of steps. Auxiliary states inside the subgraph are read, not updated.
    """
    (body,) = subgraphs
    n, m = len(p.in_data_locs), len(p.in_data_locs) + len(p.in_state_locs)
    data, states, rest = inputs[:n], inputs[n:m], inputs[m:]
    if not data:
        raise ParamError("in_data_locs is empty: there is nothing to iterate over")
    steps = {x.shape[:1] for x in data}
    if len(steps) > 1 or () in steps:
        raise ShapeError(f"the data inputs must agree in their first axis, got shapes {[x.shape for x in data]}")

    def run(carry: tuple[Array, ...], at: tuple[Array, list[Array]]) -> tuple[tuple[Array, ...], list[Array]]:
        step, slices = at
        outs, _ = body(_body_inputs(p, [*slices, *carry, *rest]), train=train, key=_step_key(key, step))
        new = outs[p.num_out_data:]
        _same("state", carry, new)
        return tuple(new), outs[:p.num_out_data]

    # MXNet: a slice of a vector has shape (1,).
    slices = [x[:, None] if x.ndim == 1 else x for x in data]
    count = jnp.arange(data[0].shape[0], dtype=jnp.int32)
    final, stacked = lax.scan(run, tuple(states), (count, slices))
    return (*stacked, *final)


# ---- while_loop


class WhileLoopParams(Params):
    num_args: int = param(doc="Number of inputs, the two subgraphs counted as one each.", ge=2)
    num_outputs: int = param(doc="Number of outputs: those of the iterations, then the final loop variables.", ge=0)
    num_out_data: int = param(doc="How many outputs collect a value of every iteration.", ge=0)
    max_iterations: int = param(doc="Bound on the iterations, and length of the collected outputs.")
    cond_input_locs: Shape = param(doc="Inputs of the node that the condition takes.")
    func_input_locs: Shape = param(doc="Inputs of the node that the body takes.")
    func_var_locs: Shape = param(doc="Inputs of the body that are loop variables.")


def _variables(p: WhileLoopParams) -> list[int]:
    """The node's inputs that are loop variables."""
    return _pick(p.func_input_locs, p.func_var_locs, "func_var_locs")


def _scalar(outs: list[Array], what: str) -> Array:
    if len(outs) != 1 or outs[0].size != 1:
        raise ShapeError(f"{what} must give one number, got shapes {[o.shape for o in outs]}")
    return outs[0].reshape(()) != 0


def _spread(ins: list[Any], locs: Sequence[int], found: Sequence[Any],
            merge: Callable[[Any, Any], Any]) -> None:
    _count("loop variable", found, len(locs))
    for i, value in zip(locs, found, strict=True):
        ins[i] = merge(ins[i], value)


def _infer_while(p: WhileLoopParams, ins: list[ShapeLike], outs: list[ShapeLike], *,
                 subgraphs: Subgraphs) -> list[ShapeLike]:
    ins = list(ins)
    _spread(ins, _variables(p), outs[p.num_out_data:], _merge)
    found, inner = subgraphs[1].infer_shapes(_pick(ins, p.func_input_locs, "func_input_locs"))
    _spread(ins, p.func_input_locs, found, _merge)
    _spread(ins, _variables(p), inner[p.num_out_data:], _merge)
    found, _ = subgraphs[0].infer_shapes(_pick(ins, p.cond_input_locs, "cond_input_locs"))
    _spread(ins, p.cond_input_locs, found, _merge)
    return ins


def _while_types(p: WhileLoopParams, ins: Types, outs: Types, *, subgraphs: Subgraphs) -> tuple[Types, Types]:
    _spread(ins, _variables(p), outs[p.num_out_data:], _first)
    found, inner = subgraphs[1].infer_types(_pick(ins, p.func_input_locs, "func_input_locs"))
    _spread(ins, p.func_input_locs, found, _first)
    found, _ = subgraphs[0].infer_types(_pick(ins, p.cond_input_locs, "cond_input_locs"))
    _spread(ins, p.cond_input_locs, found, _first)
    return ins, inner


@op("_while_loop", params=WhileLoopParams, inputs=lambda p: _data_names(p, 2), all_inputs=("*data",), num_subgraphs=2,
    outputs=lambda p: p.num_outputs, infer_inputs=_infer_while, infer_types=_while_types)
def while_loop(p: WhileLoopParams, *inputs: Array, train: bool, key: Any, subgraphs: Subgraphs) -> tuple[Array, ...]:
    """Runs the body while the condition holds, at most `max_iterations` times.

    The first subgraph maps its inputs to a number, 0 to end; the second gives `num_out_data` values, which are
    collected along a new axis 0 of length `max_iterations`, and the new loop variables. Rows behind the last iteration
    are zero. It is a loop of `max_iterations` steps that does nothing once the condition has failed, so that it can be
    differentiated in reverse mode.
    """
    # MXNet: the rows behind the last iteration are uninitialised memory.
    condition, body = subgraphs
    places = _variables(p)

    def feed(variables: Sequence[Array], locs: Sequence[int], name: str) -> list[Array]:
        values = list(inputs)
        for i, x in zip(places, variables, strict=True):
            values[i] = x
        return _pick(values, locs, name)

    def goes_on(variables: Sequence[Array], step: Array) -> Array:
        outs, _ = condition(feed(variables, p.cond_input_locs, "cond_input_locs"), train=train,
                            key=_step_key(key, 2 * step))
        return _scalar(outs, "the condition of the loop")

    def once(variables: tuple[Array, ...], step: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        outs, _ = body(feed(variables, p.func_input_locs, "func_input_locs"), train=train,
                       key=_step_key(key, 2 * step + 1))
        new = outs[p.num_out_data:]
        _same("loop variable", variables, new)
        return tuple(new), tuple(outs[:p.num_out_data])

    start = tuple(inputs[i] for i in places)
    zero = jnp.zeros((), jnp.int32)
    shapes = jax.eval_shape(once, start, zero)[1]

    def run(carry: tuple[Array, tuple[Array, ...]], step: Array) -> tuple[Any, tuple[Array, ...]]:
        active, variables = carry
        active = active & lax.cond(active, lambda v: goes_on(v, step), lambda v: jnp.zeros((), bool), variables)
        idle = tuple(jnp.zeros(s.shape, s.dtype) for s in shapes)
        variables, outs = lax.cond(active, lambda v: once(v, step), lambda v: (v, idle), variables)
        return (active, variables), outs

    (_, final), stacked = lax.scan(run, (jnp.ones((), bool), start), jnp.arange(p.max_iterations, dtype=jnp.int32))
    return (*stacked, *final)


# ---- cond


class CondParams(Params):
    num_args: int = param(doc="Number of inputs, the three subgraphs counted as one each.", ge=3)
    num_outputs: int = param(doc="Number of outputs of either branch.")
    cond_input_locs: Shape = param(doc="Inputs of the node that the condition takes.")
    then_input_locs: Shape = param(doc="Inputs of the node that the first branch takes.")
    else_input_locs: Shape = param(doc="Inputs of the node that the second branch takes.")


def _locs(p: CondParams) -> tuple[Shape, Shape, Shape]:
    return p.cond_input_locs, p.then_input_locs, p.else_input_locs


def _infer_cond(p: CondParams, ins: list[ShapeLike], outs: list[ShapeLike], *,
                subgraphs: Subgraphs) -> list[ShapeLike]:
    ins = list(ins)
    for sub, locs in zip(subgraphs, _locs(p), strict=True):
        found, _ = sub.infer_shapes(_pick(ins, locs, "input_locs"))
        _spread(ins, locs, found, _merge)
    return ins


def _cond_types(p: CondParams, ins: Types, outs: Types, *, subgraphs: Subgraphs) -> tuple[Types, Types]:
    for sub, locs in zip(subgraphs, _locs(p), strict=True):
        found, inner = sub.infer_types(_pick(ins, locs, "input_locs"))
        _spread(ins, locs, found, _first)
        if len(inner) == len(outs) and sub is not subgraphs[0]:
            outs = [a or b for a, b in zip(outs, inner, strict=True)]
    return ins, outs


@op("_cond", params=CondParams, inputs=lambda p: _data_names(p, 3), all_inputs=("*data",), num_subgraphs=3,
    outputs=lambda p: p.num_outputs, infer_inputs=_infer_cond, infer_types=_cond_types)
def cond(p: CondParams, *inputs: Array, train: bool, key: Any, subgraphs: Subgraphs) -> tuple[Array, ...]:
    """Runs one of two subgraphs, by the number that the first subgraph gives (0: the second branch).

    Only the chosen branch is evaluated, and only it passes gradients on.
    """
    values = [_pick(inputs, locs, "input_locs") for locs in _locs(p)]
    keys = [_step_key(key, jnp.asarray(i, jnp.int32)) for i in range(3)]
    outs, _ = subgraphs[0](values[0], train=train, key=keys[0])

    def branch(i: int) -> Callable[[list[list[Array]]], tuple[Array, ...]]:
        return lambda given: tuple(subgraphs[i](given[i], train=train, key=keys[i])[0])

    _same("output", jax.eval_shape(branch(1), values), jax.eval_shape(branch(2), values))
    return lax.cond(_scalar(outs, "the condition"), branch(1), branch(2), values)
