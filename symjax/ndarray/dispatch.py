"""Imperative calls of registered ops: parsed, compiled and cached.

The first call of an op with some attributes builds an `_Entry`: parsed parameters, input checks and a jitted function.
Later calls find it by op, attributes and mode, and go straight to JAX's own dispatch. Parameters marked `traced`
(learning rates, scalar operands) are operands of the compiled function, so another value finds the same entry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from symjax import random as _random
from symjax._config import config
from symjax.base import dtype_name
from symjax.context import Context, current_context
from symjax.lowering.errors import DTypeError, MissingLoweringError, MXNetError, ParamError, ShapeError
from symjax.lowering.infer import Contradiction, merge_shapes
from symjax.lowering.params import to_text
from symjax.lowering.registry import BROADCAST, SAME, Op
from symjax.ndarray import storage, tape
from symjax.ndarray.donation import candidates, donating
from symjax.ndarray.storage import device_scalar
from symjax.ndarray.tape import STATE
from symjax.sparse import rules
from symjax.sparse.rules import is_by_value

Numbers = float | tuple[float, ...]

_NUMBERS = (float, int, np.floating, np.integer)
_MAX_ENTRIES = 1 << 14
_x64 = jax.enable_x64


@dataclasses.dataclass(slots=True, eq=False)
class _Entry:
    """A compiled imperative call."""

    op: Op
    call: Callable[..., tuple[Any, ...]]
    names: tuple[str, ...]
    params: Any
    n_out: int
    n_visible: int
    aux: tuple[int, ...]
    wants_key: bool
    by_column: int | None
    prepare: rules.Prepare | None


_entries: dict[Any, _Entry] = {}


def invoke(op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], out: Any = None) -> Any:
    """Applies an op to NDArrays.

    Args:
      op: the registered op.
      inputs: its NDArrays, auxiliary states last.
      attrs: parameters as Python values or MXNet text; `ctx` places the result of an op without inputs.
      out: an NDArray, or one per visible output, to write in place.

    Returns:
      `out` if given, otherwise a new NDArray, or a list of them for an op with several visible outputs.

    Raises:
      MXNetError: parameters, number, shapes or dtypes of the inputs do not fit the op.
    """
    entry, scalars, ctx = entry_for(op, inputs, attrs, out)
    if config._settings.storage_fallback == "error":  # a call that was traced before would not notice
        _refuse_fallback(op, entry.params, inputs)
    random_key = _random.next_key_data(ctx) if entry.wants_key else None
    call = entry.call
    with _x64(True):
        operands = operands_of(entry, scalars, ctx) if scalars else ()
        try:
            columns = None if entry.by_column is None else storage.work_out_columns(inputs[entry.by_column])
            replaced = storage.prepare(entry.prepare, inputs, attrs) if entry.prepare is not None else None
            may_give = (out is not None or entry.aux) and not STATE.recording and not op.eager
            given = candidates(inputs, out, entry.aux) if may_give else ()
            arrays = tuple([x._data for x in inputs])
            if replaced:
                arrays = tuple([replaced.get(i, x) for i, x in enumerate(arrays)])
            if given:
                call = donating(call, given, arrays, inputs, out, entry.aux, entry.n_out, operands, random_key) or call
            results = call(arrays, operands, random_key)
        except Exception as e:
            # what we raised ourselves says it all; JAX's frames around it would only hide it
            raise _explain(e, op, entry, inputs) from (None if isinstance(e, MXNetError) else e)
    if entry.aux:
        for position, value in zip(entry.aux, results[entry.n_out:], strict=False):
            inputs[position]._set_data(value)
            inputs[position]._owned = True
    if not STATE.recording:
        return _deliver(op, entry, results, ctx, out, columns)
    return _record(op, entry, results, ctx, out, inputs, arrays, (operands, random_key))


def entry_for(
    op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], out: Any
) -> tuple[_Entry, tuple[Numbers, ...], Context]:
    """Finds or builds the compiled call for the arguments of `invoke`; what its scalar operands are, and where it runs.

    Raises:
      MXNetError: the parameters, or the number of inputs, do not fit the op.
    """
    traced = op.params.__traced__
    if traced and not (is_by_value(op) and any(x.stype != "default" for x in inputs)):
        names, scalars, static = _split(op, traced, attrs)
    else:
        names, scalars, static = (), (), tuple(attrs.items())
    ctx = inputs[0].context if inputs else _context_of(attrs)
    train = STATE.training and "train" in op.asks
    shape = None
    if out is not None and "out_shapes" in op.asks:
        shape = tuple(o.shape for o in (out if isinstance(out, (list, tuple)) else (out,)))
    where = ctx.where[0 if inputs else 1]  # jit places a call with inputs by itself
    key = (op, len(inputs), where, train, names, static, shape)
    try:
        entry = _entries.get(key)
    except TypeError:  # an attribute is a list, say
        static = tuple((k, v if isinstance(v, str) else attr_text(v)) for k, v in static)
        key = (op, len(inputs), where, train, names, static, shape)
        entry = _entries.get(key)
    if entry is None:
        if len(_entries) >= _MAX_ENTRIES:  # attributes that differ in every call must not fill the memory
            _entries.clear()
        entry = _entries[key] = _build(op, len(inputs), ctx, train, names, scalars, static, shape)
    return entry, scalars, ctx


def forget(op: Op) -> None:
    """Drops the compiled calls of an op whose meaning has changed."""
    for key in [k for k in _entries if k[0] is op]:
        del _entries[key]


def _refuse_fallback(op: Op, params: Any, inputs: Sequence[Any]) -> None:
    stypes = tuple([x.stype for x in inputs])
    if any(s != "default" for s in stypes) and rules.decide(op, params, stypes) is None:
        rules.report_fallback(op, stypes)


def _split(op: Op, traced: Mapping[str, bool], attrs: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[Numbers, ...],
                                                                                tuple[tuple[str, Any], ...]]:
    """Separates the parameters that are operands from those that are compiled in."""
    names, scalars, static = [], [], []
    for k, v in attrs.items():
        many = traced.get(k)
        if many is not None:
            if many:
                v = _numbers(op, k, v)
            elif type(v) is not float:
                v = _number(op, k, v)
            if v is not None:
                spec = op.params.__specs__[k].field
                if spec.ge is not None or spec.gt is not None or spec.le is not None:
                    _check_bounds(op, k, v)
                names.append(k)
                scalars.append(v)
                continue
            v = "None"
        static.append((k, v))
    return tuple(names), tuple(scalars), tuple(static)


def _number(op: Op, name: str, value: Any) -> float | None:
    if isinstance(value, _NUMBERS) and not isinstance(value, bool):
        return float(value)
    try:
        read = op.params.__specs__[name].read(attr_text(value))
        return None if read is None else float(read)
    except (ValueError, TypeError) as e:
        raise ParamError(f"operator {op.name}: parameter {name}={value!r} is not a number: {e}") from None


def _numbers(op: Op, name: str, value: Any) -> tuple[float, ...]:
    if isinstance(value, (tuple, list)):
        return tuple([v if type(v) is float else _item(op, name, v) for v in value])
    try:
        return tuple(map(float, op.params.__specs__[name].read(attr_text(value))))
    except (ValueError, TypeError) as e:
        raise ParamError(f"operator {op.name}: parameter {name}={value!r} is not a tuple of numbers: {e}") from None


def _item(op: Op, name: str, value: Any) -> float:
    if isinstance(value, _NUMBERS) and not isinstance(value, bool):
        return float(value)
    raise ParamError(f"operator {op.name}: parameter {name}: {value!r} is not a number")


_CHANGING = frozenset({"lr", "t"})
"""Parameters that are likely to have another value in the next call: keeping that on the device would not pay."""


def operands_of(entry: _Entry, scalars: tuple[Numbers, ...], ctx: Context) -> tuple[Any, ...]:
    """Returns what a compiled call takes for its scalar parameters, always of the same kind for each."""
    return tuple([
        np.asarray(s, np.float64) if isinstance(s, tuple) else s if n in _CHANGING else device_scalar(s, ctx)
        for n, s in zip(entry.names, scalars, strict=True)
    ])  # fmt: skip


def _check_bounds(op: Op, name: str, value: Numbers) -> None:
    try:
        for v in value if isinstance(value, tuple) else (value,):
            op.params.__specs__[name]._check_bounds(v)
    except ValueError as e:
        raise ParamError(f"operator {op.name}: parameter {name}={value!r} {e}") from None


def _context_of(attrs: Mapping[str, Any]) -> Context:
    ctx = attrs.get("ctx")
    if isinstance(ctx, Context):
        return ctx
    return Context.from_text(ctx) if ctx else current_context()


def attr_text(value: Any) -> str:
    """Returns a Python value as MXNet attribute text."""
    if isinstance(value, str):
        return value
    if isinstance(value, (type, np.dtype)):
        return dtype_name(value)
    if isinstance(value, (list, tuple)):
        return str(tuple(_plain(v) for v in value))
    return to_text(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        plain = value.tolist()
        return tuple(plain) if isinstance(plain, list) else plain
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v) for v in value)
    return value


def _build(op: Op, n_inputs: int, ctx: Context, train: bool, names: tuple[str, ...], scalars: tuple[Numbers, ...],
           static: tuple[tuple[str, Any], ...], out_shapes: Any) -> _Entry:
    if "subgraphs" in op.asks:
        raise MissingLoweringError(f"operator {op.name} has subgraphs and exists in symbols only; mx.nd.contrib has "
                                   f"functions that do the same on NDArrays")
    given = {**dict(static), **dict(zip(names, scalars, strict=True))}
    if "ctx" in given and "ctx" not in op.params.__specs__:
        del given["ctx"]
    if op.variadic and op.variadic not in given and op.variadic in op.params.__specs__:
        given[op.variadic] = n_inputs
    params = op.params.parse({k: dtype_name(v) if k == "dtype" and isinstance(v, str) else attr_text(v)
                              for k, v in given.items()}, op.name)
    wanted = op.input_names(params)
    if len(wanted) != n_inputs:
        raise MXNetError(f"operator {op.name}: expected {len(wanted)} inputs ({', '.join(wanted) or 'none'}), "
                         f"got {n_inputs}")
    fn = pure_function(op, params, names, ctx.platform, train, out_shapes)
    if op.eager:
        call = fn
    elif n_inputs:
        call = jax.jit(fn)
    else:
        call = jax.jit(fn, out_shardings=ctx.layout(()))
    by_column = rules.column_input(op, params) if ctx.platform == "cpu" else None
    return _Entry(op=op, call=call, names=names, params=params, n_out=len(op.output_names(params)), by_column=by_column,
                  prepare=rules.preparation(op), n_visible=op.num_visible(params), wants_key="key" in op.asks,
                  aux=tuple(wanted.index(a) for a in op.aux_names(params) if a in wanted))


def pure_function(op: Op, params: Any, names: tuple[str, ...], platform: str, train: bool,
                  out_shapes: Any = None) -> Callable[..., tuple[Any, ...]]:
    """Returns `(arrays, scalars, key data) -> outputs and new auxiliary states` of one op application.

    Shapes and dtypes are checked while it is traced, so a compiled call pays nothing for the checks.
    """

    def fn(arrays: tuple[Any, ...], scalars: tuple[Any, ...], key: Any) -> tuple[Any, ...]:
        check_inputs(op, params, arrays)
        p = dataclasses.replace(params, **dict(zip(names, scalars, strict=True))) if names else params
        asked: dict[str, Any] = {}
        if "train" in op.asks:
            asked["train"] = train
        if "key" in op.asks:
            asked["key"] = _random.wrap_key(key)
        if "out_shapes" in op.asks:
            asked["out_shapes"] = out_shapes or (getattr(params, "shape", None),)
        result = rules.apply(op, p, arrays, platform, asked)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    fn.__name__ = fn.__qualname__ = op.name
    vars(fn)["operands"] = names  # which parameters `scalars` are
    return fn


def check_inputs(op: Op, params: Any, arrays: Sequence[Any]) -> None:
    """Checks the dtypes and shapes of an application, as far as the op's declaration tells what they must be.

    Raises:
      DTypeError: dtypes differ where the op wants one; MXNet has no implicit promotion.
      ShapeError: a shape is not the one that the op wants.
    """
    names = op.input_names(params)
    types = [a.dtype.name for a in arrays]
    if op.infer_types is None:
        expected: Sequence[str | None] = types[:1] * len(types)
    else:
        expected, _ = op.infer_types(params, list(types), [None] * len(op.output_names(params)))
    for name, have, want in zip(names, types, expected, strict=False):
        if want is not None and want != have:
            raise DTypeError(f"operator {op.name}: argument {name!r}: expected dtype {want}, got {have}; there is no "
                             f"implicit promotion, convert with astype")
    _check_shapes(op, params, names, [tuple(a.shape) for a in arrays])


def _check_shapes(op: Op, params: Any, names: Sequence[str], shapes: list[tuple[int, ...]]) -> None:
    tail = ""
    if op.shape == BROADCAST:
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise ShapeError(f"operator {op.name}: shapes {' and '.join(map(str, shapes))} cannot be broadcast "
                             f"together") from None
        return
    if op.shape == SAME:
        expected: Sequence[Any] = shapes[:1] * len(shapes)
        tail = "; the operator needs equal shapes (broadcast_* operators stretch)"
    elif op.infer_inputs is not None and all(d > 0 for s in shapes for d in s):  # inference reads a 0 as unknown
        expected = op.infer_inputs(params, list(shapes), [None] * len(op.output_names(params)))
    else:
        return
    for name, have, want in zip(names, shapes, expected, strict=False):
        try:
            merge_shapes(have, want)
        except Contradiction:
            raise ShapeError(f"operator {op.name}: argument {name!r}: expected shape {want}, got "
                             f"{have}{tail}") from None


def _explain(e: Exception, op: Op, entry: _Entry, inputs: Sequence[Any]) -> Exception:
    if isinstance(e, MXNetError):
        return type(e)(str(e) if op.name in str(e) else f"Error in operator {op.name}: {e}")
    if not isinstance(e, (TypeError, ValueError, IndexError, ZeroDivisionError, AssertionError, RuntimeError)):
        return e
    given = ", ".join(f"{n}: {x.shape} {x._dtype.name} on {x.context}" for n, x in
                      zip(op.input_names(entry.params), inputs, strict=False))
    text = str(e).strip().split("\n")[0]
    kind = MXNetError if isinstance(e, RuntimeError) else ShapeError
    return kind(f"Error in operator {op.name}: {text}\n  inputs: {given or 'none'}")


def _deliver(op: Op, entry: _Entry, results: tuple[Any, ...], ctx: Context, out: Any, columns: Any = None) -> Any:
    n = entry.n_visible
    if out is None:
        if n == 1:
            made = storage.wrap(results[0], ctx, tight=columns is not None and storage.lies_at(results[0], columns))
            made._owned = True
            return made
        return [storage.wrap(r, ctx) for r in results[:n]]
    if isinstance(out, storage.NDArrayBase):
        _write(op, out, results[0])
        return out
    if len(out) != n:
        raise MXNetError(f"operator {op.name}: out= has {len(out)} arrays, the operator has {n} outputs")
    for o, r in zip(out, results, strict=False):
        _write(op, o, r)
    return out


def _record(op: Op, entry: _Entry, results: tuple[Any, ...], ctx: Context, out: Any, inputs: Sequence[Any],
            arrays: tuple[Any, ...], extra: tuple[Any, ...]) -> Any:
    """Delivers the results and puts the call on the tape."""
    if out is not None:
        for o in out if isinstance(out, (list, tuple)) else (out,):
            tape.refuse_in_place(o)
    made = _deliver(op, entry, results, ctx, out)
    outs = made if isinstance(made, (list, tuple)) else (made,)
    tape.record(entry.call, arrays, extra, inputs, outs, (op, entry.params))
    return made


def _write(op: Op, out: Any, value: Any) -> None:
    have = out._value
    if have is None:
        have = out
        if out._lazy is None:  # an array that holds nothing takes whatever comes
            out._set_data(value)
            return
    if have.shape != value.shape:
        raise ShapeError(f"operator {op.name}: out= has shape {have.shape}, the result {value.shape}")
    if out._dtype != value.dtype:
        raise DTypeError(f"operator {op.name}: out= has dtype {out._dtype.name}, the result {value.dtype.name}")
    if rules.stype_of(value) != out.stype:
        value = storage.class_of("default")._from_jax(rules.dense(value), out._ctx).tostype(out.stype)._data
    out._set_data(value)
    out._owned = True
