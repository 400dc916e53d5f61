"""Executor: a graph bound to arrays, run forward and backward.

`forward(is_train=True)` only notes the arrays' contents; what follows decides how it runs (`_run`). `backward()` and
an optimizer's updates next: all are one compiled call. An output read first: the forward pass runs alone and keeps its
residuals, from which `backward()` goes on. MXNet's own engine is asynchronous too, so neither is visible but in time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from symjax._bind import Bound, bind_arrays, simple_bind_arrays, zeros
from symjax._mesh import MeshContext, as_context
from symjax._run import Known, Run, UpdatingCall
from symjax._watch import MonitorCallback, Watch
from symjax.context import Context
from symjax.lowering.compile import Program, Step, program_for
from symjax.lowering.errors import BindError, MXNetError, ShapeError, did_you_mean
from symjax.lowering.graph import Graph
from symjax.lowering.layout import Layout
from symjax.lowering.memory import drop_code, return_memory
from symjax.lowering.row_gradients import plan_gradients
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import class_of, to_device
from symjax.sparse.rules import column_input
from symjax.symbol.symbol import Symbol


def bind(
    symbol: Symbol,
    ctx: Any,
    args: Any,
    args_grad: Any = None,
    grad_req: Any = "write",
    aux_states: Any = None,
    group2ctx: Any = None,
    shared_exec: Any = None,
) -> Executor:
    """Binds arrays to a symbol; they are used in place.

    Args:
      symbol: the symbol.
      ctx: the context to run on; a `jax.sharding.Mesh` runs on all its devices, and arrays move there.
      args: arguments as a list in list_arguments order, or a dict by name (further names are ignored).
      args_grad: arrays that receive gradients, as a list (None: no gradient) or dict.
      grad_req: "write", "add" or "null" for all, or a list or dict of them (names not in a dict: "null").
      aux_states: auxiliary states as a list or dict.
      group2ctx: contexts by name: an operator of the attribute `ctx_group` runs there, others on `ctx`.
      shared_exec: accepted; XLA shares memory by itself.

    Raises:
      ValueError: a name is missing, a list has the wrong length, a grad_req is unknown.
      TypeError: something is not an NDArray or a Context.
      MXNetError: shapes or dtypes do not fit the graph.
    """
    ctx = as_context(ctx)
    bound = bind_arrays(symbol, ctx, args, args_grad, grad_req, aux_states, group2ctx)
    return Executor(bound, symbol, ctx, grad_req, group2ctx)


def simple_bind(
    symbol: Symbol,
    ctx: Any,
    grad_req: Any = "write",
    type_dict: Any = None,
    stype_dict: Any = None,
    group2ctx: Any = None,
    shared_arg_names: Any = None,
    shared_exec: Any = None,
    shared_buffer: Any = None,
    **kwargs: Any,
) -> Executor:
    """Infers all shapes and dtypes from those given, allocates zeros, and binds.

    Args:
      symbol: the symbol.
      ctx: the context to run on; a `jax.sharding.Mesh` lays variables over its devices as their `__sharding__`
        attributes say, and others whole on each.
      grad_req: as for `bind`.
      type_dict: dtypes by name; float32 is taken for what stays unknown.
      stype_dict: storage types by name; others are `Variable(stype=)`'s, or "default". Gradient arrays get the types
        that inference finds.
      group2ctx: as for `bind`; the arrays of variables with the attribute are made there.
      shared_arg_names, shared_buffer: arguments to take from (and put into) a dict of arrays, where they fit.
      **kwargs: shapes by name; names that are no arguments are ignored.

    Raises:
      MXNetError: a shape cannot be decided (the arguments are named), or contradicts another.
    """
    ctx = as_context(ctx)
    bound = simple_bind_arrays(
        symbol, ctx, grad_req, type_dict, stype_dict, shared_arg_names, shared_buffer, kwargs, group2ctx)
    return Executor(bound, symbol, ctx, grad_req, group2ctx)


class Executor:
    """A symbol bound to arrays; made by `Symbol.bind` and `Symbol.simple_bind`.

    Attributes:
      arg_arrays, grad_arrays, aux_arrays: the arrays in list_arguments / list_auxiliary_states order (gradients: None
        where none is kept).
      outputs: the output arrays; the same objects after every forward.
    """

    def __init__(self, handle: Bound, symbol: Symbol, ctx: Context, grad_req: Any, group2ctx: Any) -> None:
        self._bound, self._symbol, self._ctx, self._grad_req, self._group2ctx = handle, symbol, ctx, grad_req, group2ctx
        self.arg_arrays: list[NDArray] = handle.args
        self.aux_arrays: list[NDArray] = handle.aux
        self.grad_arrays: list[NDArray | None] = handle.grads
        self._graph: Graph = symbol._graph
        self._layout = self._laid_out() if ctx.spans else None
        self._devices = handle.place.devices
        self._program: Program = program_for(
            self._graph, handle.out_shapes, ctx.platform, self._layout, self._devices)
        self._wrt = tuple(
            i
            for i, (r, a) in enumerate(zip(handle.reqs, handle.args, strict=True))
            if r != "null" and handle.grads[i] is not None and jnp.issubdtype(a._dtype, jnp.inexact)
        )
        self._add = tuple(handle.reqs[i] == "add" for i in self._wrt)
        self._shares_targets = len({id(handle.grads[i]) for i in self._wrt}) < len(self._wrt)
        eager = {
            n.inputs[i].node
            for n in self._graph.nodes
            if n.op is not None and n.op.aux_in_forward
            for i in n.aux_positions()
        }
        self._forward_aux = tuple(i for i, n in enumerate(self._graph.aux_states) if n in eager)
        self._run: Run | None = None
        self._lock = threading.RLock()  # another thread may read what this one's pass is to compute
        self._steps: dict[bool, Step] = {}
        self._updating: UpdatingCall | None = None  # the last one
        self._known: dict[int, Known] = {}  # the updates that joined the last pass, by the id of their gradient
        self._watch: Watch | None = None
        storage = handle.storage
        targets = {self._graph.arguments[i]: handle.grads[i] for i in self._wrt}
        self._plans = plan_gradients(storage, {n: g.stype for n, g in targets.items() if g is not None})
        self._by_column = self._indexing() if ctx.platform == "cpu" else []
        self._outputs = [
            class_of(stype)._pending(s, t, handle.place(e.node) if group2ctx else ctx, self._first_read)
            for e, (s, t), stype in zip(self._graph.outputs, handle.outputs, storage.outputs(), strict=True)
        ]

    def _laid_out(self) -> Layout:
        """The shardings of the arrays on a mesh."""
        bound, batch, ctx = self._bound, self._bound.place.data_axis, self._ctx
        assert isinstance(ctx, MeshContext)
        outs: list[Any] = []
        for e, (shape, _) in zip(self._graph.outputs, bound.outputs, strict=True):
            axis = (e.node.attrs.get("__layout__") or "N").find("N")
            outs.append(MeshContext(ctx.mesh, PartitionSpec(*[None] * axis, batch)).layout(shape)
                        if batch and axis >= 0 else None)
        args, aux = (tuple([_layout(a) for a in arrays]) for arrays in (bound.args, bound.aux))
        return Layout(args, aux, tuple(outs))

    def _indexing(self) -> list[NDArray]:
        """The csr arguments that the program goes through by columns."""
        nodes = {self._graph.nodes[s.index[0]] for p in self._plans for s in p.sites}
        for n in self._graph.nodes:
            position = None if n.op is None else column_input(n.op, n.params)
            if position is not None:
                nodes.add(n.inputs[position].node)
        pairs = zip(self._graph.arguments, self.arg_arrays, strict=True)
        return [a for n, a in pairs if n in nodes and a.stype == "csr"]

    # ---- the arrays

    @property
    def outputs(self) -> list[NDArray]:
        return self._outputs

    @cached_property
    def arg_dict(self) -> dict[str, NDArray]:
        """Arguments by name. Raises ValueError if two have one name."""
        return _by_name(self._symbol.list_arguments(), self.arg_arrays, "arguments")

    @cached_property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """Gradient arrays by argument name, None where none is kept."""
        return _by_name(self._symbol.list_arguments(), self.grad_arrays, "arguments")

    @cached_property
    def aux_dict(self) -> dict[str, NDArray]:
        """Auxiliary states by name."""
        return _by_name(self._symbol.list_auxiliary_states(), self.aux_arrays, "auxiliary_states")

    @cached_property
    def output_dict(self) -> dict[str, NDArray]:
        """Outputs by name."""
        return _by_name(self._symbol.list_outputs(), self.outputs, "outputs")

    # ---- running

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Runs the graph and returns the outputs.

        Args:
          is_train: training mode (dropout, batch statistics).
          **kwargs: arrays to copy into arguments first.

        Raises:
          TypeError: a name is not an argument.
          ValueError: a value is not an array, or has another shape.
        """
        with self._lock:
            if kwargs:
                self._feed(kwargs)
            if self._run is None:
                return_memory()
                drop_code()
            run = Run(self, bool(is_train))
            if self._watch is not None and self._watch.activated:
                self._watch.forward(run)
            self._run = run
            if self._wrt and is_train and not self._forward_aux:
                for o, (shape, dtype) in zip(self._outputs, self._bound.outputs, strict=True):
                    o._set_pending(shape, dtype, run.read)
            else:
                run.read()
            return self._outputs

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Computes gradients into the bound gradient arrays, and updates the auxiliary states.

        Args:
          out_grads: one head gradient per output (NDArray, list or dict by output name); may be left out if every
            output is a loss, whose gradient ignores it.
          is_train: accepted; gradients are those of the pass that `forward` ran.

        Raises:
          MXNetError: head gradients are missing, or have another number or shape.
        """
        heads = self._heads(out_grads)
        with self._lock:
            if self._run is None:
                self.forward(is_train=True)
            assert self._run is not None
            if self._watch is not None and self._watch.activated and self._run.train:
                self._watch.backward(self._run, heads)
            self._run.backward(heads)

    def _first_read(self) -> Any:
        # Outputs of an executor that has not run: MXNet shows zeros or whatever the memory holds.
        with jax.enable_x64(True):
            for o, (s, t) in zip(self._outputs, self._bound.outputs, strict=True):
                if o._value is None:
                    o._set_data(zeros(s, t, o.context, o.stype)._data)

    @cached_property
    def _without_loss(self) -> list[str]:
        """The outputs that are no losses."""
        return [e.output_name for e in self._graph.outputs if not e.node.is_loss]

    def _feed(self, values: Mapping[str, Any]) -> None:
        args = self.arg_dict
        for name, value in values.items():
            if not isinstance(value, (NDArray, np.ndarray, jax.Array)):
                raise ValueError(
                    f"only accept keyword argument of NDArrays and numpy.ndarray, but {name} is {type(value).__name__}"
                )
            target = args.get(name)
            if target is None:
                near = did_you_mean(name, args)
                raise TypeError(f"Unknown argument {name}{near and '.' + near}")
            if tuple(value.shape) != target.shape:
                raise ValueError(f"Shape not match! Argument {name}, need: {target.shape}, received: {value.shape}")
            copy_into(target, value)

    def _heads(self, out_grads: Any) -> list[Any] | None:
        if out_grads is None or (isinstance(out_grads, (list, tuple)) and not out_grads):
            if self._without_loss and self._wrt:
                raise MXNetError(
                    f"output {self._without_loss[0]!r} is not a loss, so backward needs its head gradient: pass "
                    f"out_grads, or wrap the output in make_loss to minimize it. (Because the last operator is not "
                    f"Loss function, head_gradient is required when calling backward.)"
                )
            return None
        if isinstance(out_grads, NDArray):
            out_grads = [out_grads]
        elif isinstance(out_grads, dict):
            out_grads = [out_grads[n] for n in self._symbol.list_outputs()]
        if not isinstance(out_grads, (list, tuple)) or any(not isinstance(g, NDArray) for g in out_grads):
            raise TypeError("inputs must be NDArray")
        if len(out_grads) < len(self._outputs):
            raise MXNetError(
                f"backward needs {len(self._outputs)} head gradients, one for each output, got {len(out_grads)}"
            )
        for g, (shape, _), name in zip(out_grads, self._bound.outputs, self._symbol.list_outputs(), strict=False):
            if g.shape != shape:
                raise ShapeError(f"head gradient of {name!r}: expected shape {shape}, got {g.shape}")
        return [g._data for g in out_grads[: len(self._outputs)]]

    # ---- other arrays, other shapes

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """Returns an executor of the same symbol for other input shapes; arrays of unchanged shape are shared.

        Args:
          partial_shaping: allow arguments that are not named to change their shape.
          allow_up_sizing: allow arrays to grow.
          **kwargs: new shapes by argument name.

        Raises:
          MXNetError: a change needs one of the two permissions.
        """
        bound = self._bound.reshaped(self._symbol, partial_shaping, allow_up_sizing, kwargs)
        return Executor(bound, self._symbol, self._ctx, self._grad_req, self._group2ctx)

    def copy_params_from(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copies parameters and auxiliary states in by name, converting dtypes.

        Raises:
          ValueError: a name is not in the graph and `allow_extra_params` is False.
          MXNetError: a shape differs.
        """
        for given, have, what in (
            (arg_params, self.arg_dict, "arguments"),
            (aux_params or {}, self.aux_dict, "auxiliary states"),
        ):
            for name, value in given.items():
                if name in have:
                    if tuple(value.shape) != have[name].shape:
                        raise ShapeError(f"parameter {name!r}: expected shape {have[name].shape}, got {value.shape}")
                    copy_into(have[name], value)
                elif not allow_extra_params:
                    near = did_you_mean(name, have)
                    raise ValueError(f'Find name "{name}" that is not in the {what}{near and "." + near}')

    # ---- looking inside

    def set_monitor_callback(self, callback: MonitorCallback, monitor_all: bool = False) -> None:
        """Calls `callback(name, array)` for every operator output of each forward, and in training for every gradient
        that `backward` finds of an operator's inputs: `<node>_backward_output` or `<node>_backward_output<i>`.

        With `monitor_all` also for the inputs of the graph and of each operator, in topological order. An operator's
        input is called `<node>_<input>`; MXNet calls some of them `<node>_input0`. A callback that has an attribute
        `activated` is not called while that is false, and costs nothing then.
        """
        self._watch = Watch(self, callback, monitor_all)

    def debug_str(self) -> str:
        """The symbol's listing and the size of the arrays bound, in MXNet's format."""
        arrays = [*self.arg_arrays, *self.aux_arrays, *(g for g in self.grad_arrays if g is not None), *self._outputs]
        size = sum(int(np.prod(a.shape)) * a._dtype.itemsize for a in arrays)
        return f"{self._symbol.debug_str()}Total {size >> 20} MB allocated\nTotal 0 TempSpace resource requested\n"

    def get_optimized_symbol(self) -> Symbol:
        """The symbol as bound: XLA optimises below this level."""
        return self._symbol

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{n}</td><td>{tuple(a.shape)}</td><td>{a._dtype.name}</td><td>{r}</td></tr>"
            for n, a, r in zip(self._symbol.list_arguments(), self.arg_arrays, self._bound.reqs, strict=True)
        )
        return f"<table><tr><th>argument</th><th>shape</th><th>dtype</th><th>grad_req</th></tr>{rows}</table>"


def _layout(array: NDArray) -> NamedSharding:
    assert isinstance(array.context, MeshContext)
    return array.context.layout(array.shape)


def copy_into(target: NDArray, value: Any) -> None:
    """Replaces the contents of `target` by those of `value`, on its device and in its dtype."""
    with jax.enable_x64(True):
        if isinstance(value, NDArray):
            if value.stype != target.stype:
                value = value.tostype(target.stype)
            same_place = value._ctx == target._ctx and not target.context.spans  # on a mesh the layouts may differ
            data = value._data
        else:
            same_place, data = False, value
            if target.stype != "default":
                value = NDArray._from_jax(to_device(value, target.context), target.context).tostype(target.stype)
                same_place, data = True, value._data
        if data.dtype != target._dtype:
            data = data.astype(target._dtype)
        target._set_data(data if same_place else to_device(data, target.context))


def _by_name(names: Sequence[str], arrays: Sequence[Any], what: str) -> dict[str, Any]:
    found = dict(zip(names, arrays, strict=True))
    if len(found) != len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise BindError(f"Duplicate names detected in the {what}, {', '.join(twice)}: address them by position")
    return found
