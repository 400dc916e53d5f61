"""`mx.nd.Custom`: a user-written operator on NDArrays, called and differentiated as plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symjax._bind import zeros
from symjax._python_operators import PropType
from symjax.context import Context, cpu
from symjax.lowering import registry
from symjax.lowering.errors import MissingLoweringError, MXNetError
from symjax.ndarray import dispatch, tape
from symjax.ndarray.ndarray import NDArray


def call(*data: Any, op_type: str | None = None, out: Any = None, name: Any = None, **kwargs: Any) -> Any:
    """Runs a registered operator on NDArrays.

    Args:
      *data: the inputs, auxiliary states last; they may also be given by name.
      op_type: the name that it is registered under.
      out: an NDArray, or one for each output, to write in place.
      **kwargs: its parameters, and inputs by name.

    Returns:
      An NDArray, or a list of them for several outputs. An exception of the operator's Python passes through.
    """
    op = registry.get("Custom")
    named = {k: kwargs.pop(k) for k in list(kwargs) if isinstance(kwargs[k], NDArray)}
    kwargs.pop("ctx", None)
    attrs = {k: dispatch.attr_text(v) for k, v in kwargs.items()}
    params: Any = op.params.parse({**({} if op_type is None else {"op_type": op_type}), **attrs}, op.name)
    kind: PropType = params.host
    inputs = _arranged(kind, data, named)
    if kind.traceable([x.shape for x in inputs], [np.dtype(x.dtype) for x in inputs], tape.STATE.training) is not None:
        return dispatch.invoke(op, inputs, params.to_attrs(), out)
    outs = _Call(kind, inputs).run()
    if out is None:
        return outs[0] if len(outs) == 1 else outs
    into = out if isinstance(out, (list, tuple)) else [out]
    if len(into) != len(outs):
        raise MXNetError(f"operator Custom ({op_type}): out= has {len(into)} arrays, the operator {len(outs)} outputs")
    for dst, src in zip(into, outs, strict=True):
        tape.refuse_in_place(dst)
        dst[:] = src
        dst._tape = src._tape
    return out


def _arranged(kind: PropType, data: Sequence[Any], named: dict[str, NDArray]) -> list[NDArray]:
    names = (*kind.arguments, *kind.aux)
    given = dict(zip(names, data, strict=False))
    wrong = [k for k in named if k not in names or k in given]
    given.update(named)
    if wrong or len(data) > len(names) or len(given) < len(names):
        raise MXNetError(f"operator Custom ({kind.name}): expected {len(names)} inputs ({', '.join(names)}), got "
                         f"{len(data)} by position{' and ' if named else ''}{', '.join(named)}")
    bad = next((n for n in names if not isinstance(given[n], NDArray)), None)
    if bad is not None:
        raise TypeError(f"operator Custom ({kind.name}): argument {bad!r} must be an NDArray, got "
                        f"{type(given[bad]).__name__}")
    return [given[n] for n in names]


class _Call:
    """One call on NDArrays: the operator made for it, and what its backward needs."""

    def __init__(self, kind: PropType, inputs: list[NDArray]) -> None:
        self.kind, n = kind, len(kind.arguments)
        self.ctx = inputs[0].context if inputs else cpu()
        self.inputs, self.states = inputs[:n], inputs[n:]
        self.stypes = ["default"] * len(kind.outputs)
        if any(x.stype != "default" for x in self.inputs):
            try:
                self.stypes = list(kind.prop.infer_storage_type([x.stype for x in self.inputs])[1])
            except MXNetError:  # it takes dense arrays alone
                self.inputs = [x.tostype("default") for x in self.inputs]

    def run(self) -> list[NDArray]:
        recording, train = tape.STATE.recording, tape.STATE.training
        shapes, types = [x.shape for x in self.inputs], [np.dtype(x.dtype) for x in self.inputs]
        out_shapes = self.kind.infer_shape([list(s) for s in shapes])[1]
        out_types = self.kind.infer_type([t.type for t in types])[1]
        self.op = self.kind.create(self.ctx, [x.shape for x in (*self.inputs, *self.states)],
                                   [np.dtype(x.dtype) for x in (*self.inputs, *self.states)])
        outs = [_zeros(tuple(s), t, self.ctx, k) for s, t, k in zip(out_shapes, out_types, self.stypes, strict=True)]
        plain = [_detached(x) for x in self.inputs]
        with _Paused(train), self.ctx:
            self.op.forward(is_train=train, req=["write"] * len(outs), in_data=plain, out_data=outs, aux=self.states)
        sources = tuple(x._tape for x in self.inputs)
        if recording and any(s is not None for s in sources):
            self.plain, self.outs = plain, [_detached(o) for o in outs]
            node = tape.FunctionNode(self.pull, tuple(x._data for x in self.inputs), sources,
                                      tuple((o.shape, np.dtype(o.dtype)) for o in outs))
            for i, o in enumerate(outs):
                o._tape = (node, i)
        return outs

    def pull(self, cotangents: Sequence[NDArray], create_graph: bool) -> list[NDArray | None]:
        if create_graph:
            raise MissingLoweringError(f"custom operator {self.kind.name!r} has no gradient of its gradient; give its "
                                       f"CustomOpProp a create_jax_operator, which JAX can differentiate again")
        given = iter(cotangents)
        heads = [next(given) if np.dtype(o.dtype).kind in "fV" else _zeros(o.shape, o.dtype, self.ctx, "default")
                 for o in self.outs]
        needs = self.kind.needs()
        heads = [g if i in needs else _zeros(g.shape, g.dtype, self.ctx, "default") for i, g in enumerate(heads)]
        reqs = ["null" if x._tape is None else "write" for x in self.inputs]
        stypes = self._gradient_stypes()
        grads = [_zeros(x.shape, x.dtype, self.ctx, k) for x, k in zip(self.inputs, stypes, strict=True)]
        with _Paused(True), self.ctx:
            self.op.backward(req=reqs, out_grad=heads, in_data=self.plain, out_data=self.outs, in_grad=grads,
                             aux=self.states)
        return [None if r == "null" else g for g, r in zip(grads, reqs, strict=True)]

    def _gradient_stypes(self) -> list[str]:
        ins, outs = [x.stype for x in self.inputs], [o.stype for o in self.outs]
        if not any(s != "default" for s in (*ins, *outs)):
            return ins
        return list(self.kind.prop.infer_storage_type_backward(list(outs), ins, outs, ["default"] * len(ins),
                                                               [a.stype for a in self.states])[3])


def _zeros(shape: tuple[int, ...], dtype: Any, ctx: Context, stype: str) -> NDArray:
    return zeros(shape, np.dtype(dtype), ctx, stype)


def _detached(x: NDArray) -> NDArray:
    """The same contents in an array of its own, which later writes to `x` do not change."""
    return type(x)._from_jax(x._data, x.context)


class _Paused:
    """Nothing inside is recorded."""

    def __init__(self, training: bool) -> None:
        self.now = training

    def __enter__(self) -> None:
        self.before = tape.STATE.recording, tape.STATE.training
        tape.STATE.recording, tape.STATE.training = False, self.now

    def __exit__(self, *_: Any) -> None:
        tape.STATE.recording, tape.STATE.training = self.before
