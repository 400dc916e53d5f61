"""Operators written in Python: `mx.operator.register`, `CustomOp`, `CustomOpProp`, and the older `NumpyOp`, `NDArrayOp`.

    @mx.operator.register("scale")
    class ScaleProp(mx.operator.CustomOpProp):
        def __init__(self, factor="1"):  # parameters arrive as text
            super().__init__(need_top_grad=True)
            self.factor = float(factor)

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Scale(self.factor)

    y = mx.sym.Custom(x, op_type="scale", factor=3)      # in a graph, and in its JSON
    y = mx.nd.Custom(array, op_type="scale", factor=3)   # at once

On arrays the Python code is simply called. In a compiled graph it is called back on the host, with NDArrays on the CPU.
A CustomOpProp that overrides `create_jax_operator` gives JAX code instead, which is compiled with the graph, runs where
it runs, and is differentiated by JAX.
"""

from __future__ import annotations

import collections
import itertools
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from symjax.context import Context, cpu
from symjax.lowering import host as _custom
from symjax.lowering import registry as _ops
from symjax.lowering.errors import MissingLoweringError, MXNetError, ShapeError
from symjax.ndarray import dispatch as _dispatch
from symjax.ndarray import storage as _storage
from symjax.ndarray import tape as _tape
from symjax.ndarray.ndarray import NDArray
from symjax.symbol.symbol import Symbol

__all__ = ["CustomOp", "CustomOpProp", "NDArrayOp", "NumpyOp", "OperatorArguments", "PythonOp",
           "get_all_registered_operators", "get_operator_arguments", "register"]

P = TypeVar("P", bound="type[CustomOpProp]")


class CustomOp:
    """The computation of a custom operator: override `forward` and `backward`."""

    def __init__(self) -> None:
        pass

    def forward(self, is_train: bool, req: list[str], in_data: list[NDArray], out_data: list[NDArray],
                aux: list[NDArray]) -> None:
        """Computes the outputs into `out_data`.

        Args:
          is_train: whether this is a training pass.
          req: for each output "write", "add" or "null"; `assign` heeds it.
          in_data: the inputs.
          out_data: arrays of the inferred shapes and types, to be written.
          aux: the auxiliary states, which may be written.
        """

    def backward(self, req: list[str], out_grad: list[NDArray], in_data: list[NDArray], out_data: list[NDArray],
                 in_grad: list[NDArray], aux: list[NDArray]) -> None:
        """Computes the gradients of the inputs into `in_grad`.

        What `declare_backward_dependency` does not name is zeros.

        Args:
          req: for each input "write" or "null" (no gradient is wanted). Sums of gradients are made by the caller.
          out_grad: the gradients of the outputs.
          in_data, out_data: what the forward pass had.
          in_grad: arrays of zeros, to be written.
          aux: the auxiliary states after the forward pass. In a compiled graph a change here is lost.
        """

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Writes `src` to `dst` as `req` says: "write" or "inplace" replaces, "add" adds, "null" does nothing."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src


class CustomOpProp:
    """What a custom operator is like: names, shapes, types, and how to make the `CustomOp`.

    Args:
      need_top_grad: whether backward reads the gradients of the outputs; False for a loss, whose `backward()` needs no
        head gradient.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs; a node's output is called `<node>_<name>`."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states, which come after the inputs."""
        return []

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Completes the shapes: [] or a 0 is unknown.

        Returns:
          Shapes of the inputs, of the outputs, and (they may be left out) of the auxiliary states.
        """
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> Any:
        """Completes the types, NumPy's: returns those of the inputs, the outputs and the auxiliary states."""
        return (in_type, [in_type[0]] * len(self.list_outputs()), [in_type[0]] * len(self.list_auxiliary_states()))

    def infer_storage_type(self, in_stype: list[str]) -> Any:
        """Storage types of inputs, outputs and auxiliary states, from those of the inputs.

        Asked when `mx.nd.Custom` is given sparse arrays; one that raises, as this does, gets them dense. In a graph all
        is dense.
        """
        for i, stype in enumerate(in_stype):
            if stype != "default":
                raise MXNetError(f"input {i} has storage type {stype!r}: override infer_storage_type to take it")
        return (in_stype, ["default"] * len(self.list_outputs()), ["default"] * len(self.list_auxiliary_states()))

    def infer_storage_type_backward(self, ograd_stype: list[str], in_stype: list[str], out_stype: list[str],
                                    igrad_stype: list[str], aux_stype: list[str]) -> Any:
        """Storage types in the backward pass, all "default". Asked for the arrays of `mx.nd.Custom` as above."""
        every = (ograd_stype, in_stype, out_stype, igrad_stype, aux_stype)
        return tuple(["default"] * len(part) for part in every)

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Which arrays `backward` reads, by the numbers given: what is not named need not be kept."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    def create_operator(self, ctx: Context, in_shapes: list[list[int]], in_dtypes: list[Any]) -> CustomOp:
        """Makes the operator for inputs (auxiliary states last) of these shapes and types.

        A graph makes one for each node; it lives as long as the graph's compiled code. `mx.nd.Custom` makes one for
        each call. MXNet gives `in_dtypes` as numbers, here they are NumPy's types.
        """
        return CustomOp()

    def create_jax_operator(self, in_shapes: list[list[int]], in_dtypes: list[Any],
                            is_train: bool) -> Callable[..., Any] | None:
        """Not in MXNet: gives the operator as JAX code, which is compiled with the graph and stays on the device.

        Args:
          in_shapes, in_dtypes: shapes and types of the inputs, auxiliary states last.
          is_train: whether this is for a training pass.

        Returns:
          A traceable function `(*inputs, *auxiliary states) -> output, or tuple of outputs and then new auxiliary
          states`. JAX differentiates it; give it a `jax.custom_vjp` for another gradient. None, as here: the `CustomOp`
          is called on the host.
        """
        return None


def register(reg_name: str) -> Callable[[P], P]:
    """Decorator: makes a `CustomOpProp` the operator `Custom(op_type=reg_name)`.

    Registering a name again replaces the operator in graphs built from then on.

    Raises:
      TypeError: the class is no CustomOpProp.
    """

    def do_register(prop_cls: P) -> P:
        if not (isinstance(prop_cls, type) and issubclass(prop_cls, CustomOpProp)):
            raise TypeError(f"register({reg_name!r}): expected a subclass of CustomOpProp, got {prop_cls!r}")
        _custom.register_type(reg_name, lambda kwargs: _PropType(prop_cls(**kwargs), reg_name))
        _dispatch.forget(_ops.get("Custom"))
        return prop_cls

    return do_register


# ---- between NumPy, which lowering speaks, and NDArrays


def _nd(value: np.ndarray) -> NDArray:
    return NDArray._from_jax(_storage.to_device(value, cpu()), cpu())


def _parts(found: Any, what: str, counts: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """The lists that an infer function returns, the last of which may be left out."""
    parts = tuple(found)
    if len(parts) == 2:
        parts = (*parts, [])
    if len(parts) != 3:
        raise ShapeError(f"{what} must return 2 or 3 lists, it returned {len(parts)}")
    for part, n, name in zip(parts, counts, ("inputs", "outputs", "auxiliary states"), strict=True):
        if len(part) != n:
            raise ShapeError(f"{what} returned {len(part)} entries for the {n} {name}")
    return parts


class _PropType:
    """A CustomOpProp as lowering sees it."""

    def __init__(self, prop: CustomOpProp, name: str) -> None:
        self.prop, self.name = prop, name
        self.arguments = tuple(prop.list_arguments())
        self.outputs = tuple(prop.list_outputs())
        self.aux = tuple(prop.list_auxiliary_states())
        self._made: dict[Any, _HostOp] = {}
        self._lock = threading.Lock()

    @property
    def counts(self) -> tuple[int, int, int]:
        return len(self.arguments), len(self.outputs), len(self.aux)

    def infer_shape(self, ins: list[list[int]]) -> tuple[Any, Any, Any]:
        return _parts(self.prop.infer_shape(ins), f"{self.name}: infer_shape", self.counts)

    def infer_type(self, ins: list[Any]) -> tuple[Any, Any, Any]:
        return _parts(self.prop.infer_type(ins), f"{self.name}: infer_type", self.counts)

    def needs(self) -> frozenset[int]:
        n_in, n_out, _ = self.counts
        numbers = list(range(2 * n_out + n_in))
        found = self.prop.declare_backward_dependency(numbers[:n_out], numbers[n_out:n_out + n_in],
                                                      numbers[n_out + n_in:])
        return frozenset(int(i) for i in found)

    def create(self, ctx: Context, shapes: Any, dtypes: Any) -> CustomOp:
        """Makes a new CustomOp."""
        with ctx:
            return self.prop.create_operator(ctx, [list(s) for s in shapes], [np.dtype(d).type for d in dtypes])

    def operator(self, shapes: Any, dtypes: Any) -> _HostOp:
        key = (tuple(shapes), tuple(dtypes))
        with self._lock:
            if key not in self._made:
                self._made[key] = _HostOp(self.create(cpu(), shapes, dtypes))
            return self._made[key]

    def traceable(self, shapes: Any, dtypes: Any, train: bool) -> Callable[..., Any] | None:
        return self.prop.create_jax_operator([list(s) for s in shapes], [np.dtype(d).type for d in dtypes], train)


class _HostOp:
    """A CustomOp on NumPy arrays."""

    def __init__(self, made: CustomOp) -> None:
        self.op = made

    def forward(self, train: bool, inputs: Any, aux: Any, outs: Any) -> tuple[list[Any], list[Any]]:
        out_data, states = [_nd(o) for o in outs], [_nd(a) for a in aux]
        with cpu():
            self.op.forward(is_train=train, req=["write"] * len(outs), in_data=[_nd(x) for x in inputs],
                            out_data=out_data, aux=states)
        return [o.asnumpy() for o in out_data], [a.asnumpy() for a in states]

    def backward(self, reqs: Any, out_grads: Any, inputs: Any, outs: Any, aux: Any) -> list[Any]:
        in_grad, states = [_nd(np.zeros_like(x)) for x in inputs], [_nd(a) for a in aux]
        with cpu():
            self.op.backward(req=list(reqs), out_grad=[_nd(g) for g in out_grads], in_data=[_nd(x) for x in inputs],
                             out_data=[_nd(o) for o in outs], in_grad=in_grad, aux=states)
        if any(not np.array_equal(a, s.asnumpy(), equal_nan=a.dtype.kind == "f")
               for a, s in zip(aux, states, strict=True)):
            warnings.warn(f"{type(self.op).__name__}.backward changes an auxiliary state; in a compiled graph forward "
                          f"alone can", stacklevel=2)
        return [g.asnumpy() for g in in_grad]


# ---- mx.nd.Custom


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
    op = _ops.get("Custom")
    named = {k: kwargs.pop(k) for k in list(kwargs) if isinstance(kwargs[k], NDArray)}
    kwargs.pop("ctx", None)
    attrs = {k: _dispatch.attr_text(v) for k, v in kwargs.items()}
    params: Any = op.params.parse({**({} if op_type is None else {"op_type": op_type}), **attrs}, op.name)
    kind: _PropType = params.host
    inputs = _arranged(kind, data, named)
    if kind.traceable([x.shape for x in inputs], [np.dtype(x.dtype) for x in inputs], _tape.STATE.training) is not None:
        return _dispatch.invoke(op, inputs, params.to_attrs(), out)
    outs = _Call(kind, inputs).run()
    if out is None:
        return outs[0] if len(outs) == 1 else outs
    into = out if isinstance(out, (list, tuple)) else [out]
    if len(into) != len(outs):
        raise MXNetError(f"operator Custom ({op_type}): out= has {len(into)} arrays, the operator {len(outs)} outputs")
    for dst, src in zip(into, outs, strict=True):
        _tape.refuse_in_place(dst)
        dst[:] = src
        dst._tape = src._tape
    return out


def _arranged(kind: _PropType, data: Sequence[Any], named: dict[str, NDArray]) -> list[NDArray]:
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

    def __init__(self, kind: _PropType, inputs: list[NDArray]) -> None:
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
        recording, train = _tape.STATE.recording, _tape.STATE.training
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
            node = _tape.FunctionNode(self.pull, tuple(x._data for x in self.inputs), sources,
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
        grads = [_zeros(x.shape, x.dtype, self.ctx, k) for x, k in zip(self.inputs, self._gradient_stypes(), strict=True)]
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
    from symjax._bind import zeros

    return zeros(shape, np.dtype(dtype), ctx, stype)


def _detached(x: NDArray) -> NDArray:
    """The same contents in an array of its own, which later writes to `x` do not change."""
    return type(x)._from_jax(x._data, x.context)


class _Paused:
    """Nothing inside is recorded."""

    def __init__(self, training: bool) -> None:
        self.now = training

    def __enter__(self) -> None:
        self.before = _tape.STATE.recording, _tape.STATE.training
        _tape.STATE.recording, _tape.STATE.training = False, self.now

    def __exit__(self, *_: Any) -> None:
        _tape.STATE.recording, _tape.STATE.training = self.before


# ---- the older classes


class PythonOp:
    """Base class of `NumpyOp` and `NDArrayOp`; write a `CustomOp` instead, which can be saved and loaded.

    Args:
      need_top_grad: what `need_top_grad()` returns.
    """

    _numbers = itertools.count(1)

    def __init__(self, need_top_grad: bool = True) -> None:
        self.info_: str | None = None
        self.need_top_grad_ = need_top_grad
        warnings.warn(f"{type(self).__name__} is a PythonOp, which MXNet has deprecated: write a CustomOp",
                      DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Symbol:
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Symbol:
        """Makes a node of this object.

        Args:
          *args: input symbols by position; `**kwargs`: by name, and `name`.
        """
        raise NotImplementedError("override NumpyOp or NDArrayOp")

    def forward(self, in_data: list[Any], out_data: list[Any]) -> None:
        """Writes the outputs."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any]) -> None:
        """Writes the gradients of the inputs."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Returns the shapes of the inputs and of the outputs."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Whether backward reads the gradients of the outputs; False for a loss."""
        return self.need_top_grad_

    def _node(self, op_name: str, wrap: Callable[[np.ndarray], Any], args: Any, kwargs: Any, **attrs: Any) -> Symbol:
        from symjax.symbol import _internal

        self.info_ = format(next(self._numbers), "x")
        _custom.register_instance(self.info_, _PythonType(self, wrap))
        return getattr(_internal, op_name)(*args, info=self.info_, **attrs, **kwargs)


class NumpyOp(PythonOp):
    """An operator on NumPy arrays, in graphs of this process alone."""

    def get_symbol(self, *args: Any, **kwargs: Any) -> Symbol:
        """Makes a node of this object; see `PythonOp.get_symbol`."""
        return self._node("_Native", np.array, args, kwargs, need_top_grad=self.need_top_grad())


class NDArrayOp(PythonOp):
    """An operator on NDArrays, in graphs of this process alone."""

    def get_symbol(self, *args: Any, **kwargs: Any) -> Symbol:
        """Makes a node of this object; see `PythonOp.get_symbol`."""
        return self._node("_NDArray", _nd, args, kwargs)

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Which arrays `backward` reads, by the numbers given."""
        return [*(out_grad if self.need_top_grad() else ()), *in_data, *out_data]


class _PythonType:
    """A PythonOp as lowering sees it."""

    aux: tuple[str, ...] = ()

    def __init__(self, made: PythonOp, wrap: Callable[[np.ndarray], Any]) -> None:
        self.made, self.wrap = made, wrap
        self.arguments, self.outputs = tuple(made.list_arguments()), tuple(made.list_outputs())

    def infer_shape(self, ins: list[list[int]]) -> tuple[Any, Any, Any]:
        return _parts(self.made.infer_shape(ins), f"{type(self.made).__name__}.infer_shape",
                      (len(self.arguments), len(self.outputs), 0))

    def infer_type(self, ins: list[Any]) -> tuple[Any, Any, Any]:
        return ins, [ins[0] if ins else np.float32] * len(self.outputs), []

    def needs(self) -> frozenset[int]:
        n_in, n_out = len(self.arguments), len(self.outputs)
        numbers = list(range(2 * n_out + n_in))
        parts = numbers[:n_out], numbers[n_out:n_out + n_in], numbers[n_out + n_in:]
        if isinstance(self.made, NDArrayOp):
            return frozenset(self.made.declare_backward_dependency(*parts))
        return frozenset(numbers if self.made.need_top_grad() else numbers[n_out:])

    def operator(self, shapes: Any, dtypes: Any) -> _PythonType:
        return self

    def traceable(self, shapes: Any, dtypes: Any, train: bool) -> None:
        return None

    def forward(self, train: bool, inputs: Any, aux: Any, outs: Any) -> tuple[list[Any], list[Any]]:
        made = [self.wrap(o) for o in outs]
        self.made.forward(in_data=[self.wrap(x) for x in inputs], out_data=made)
        return [_numpy(m) for m in made], []

    def backward(self, reqs: Any, out_grads: Any, inputs: Any, outs: Any, aux: Any) -> list[Any]:
        made = [self.wrap(np.zeros_like(x)) for x in inputs]
        self.made.backward(out_grad=[self.wrap(g) for g in out_grads], in_data=[self.wrap(x) for x in inputs],
                           out_data=[self.wrap(o) for o in outs], in_grad=made)
        return [_numpy(m) for m in made]


def _numpy(x: Any) -> np.ndarray:
    return x.asnumpy() if isinstance(x, NDArray) else np.asarray(x)


# ---- what is registered

OperatorArguments = collections.namedtuple("OperatorArguments", ["narg", "names", "types"])  # noqa: PYI024  # MXNet's
"""The number of an operator's arguments (inputs, then parameters), their names and types."""


def get_all_registered_operators() -> list[str]:
    """Returns the names of all operators, aliases included."""
    return list(_ops.all_names())


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Returns the inputs and parameters of an operator.

    Raises:
      UnknownOpError: there is none of that name.
    """
    from symjax._op_functions import inputs_of

    op = _ops.get(op_name)
    ins = inputs_of(op)
    names = [*(ins.names or ([ins.variadic] if ins.variadic else [])), *op.params.__specs__]
    kind = "NDArray-or-Symbol[]" if ins.variadic else "NDArray-or-Symbol"
    types = [kind] * (len(names) - len(op.params.__specs__)) + [s.describe() for s in op.params.__specs__.values()]
    return OperatorArguments(len(names), names, types)


register("custom_op")(CustomOpProp)
