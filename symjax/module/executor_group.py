"""`DataParallelExecutorGroup`: the executors of a module, one for each device."""

from __future__ import annotations

import collections
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from symjax._data_parallel import average, bind_sharing, cut, load_general, merge, split_input_slice
from symjax._mesh import MeshContext, data_axis
from symjax._params_format import DTYPE_OF_FLAG
from symjax.context import Context
from symjax.executor import Executor, copy_into
from symjax.io import DataDesc
from symjax.lowering.errors import ArgumentError, ShapeError, did_you_mean
from symjax.module._divided import choose_mesh, in_parts, joined, prepare_group2ctxs
from symjax.ndarray import NDArray
from symjax.symbol.symbol import Symbol

_KEPT = 16
"""How many batch shapes keep their executors."""


class DataParallelExecutorGroup:
    """One symbol on several devices: each runs a slice of the batch, all have copies of the parameters.

    Devices that differ are a mesh: one executor, whose batch is divided and whose parameters are on all devices, gives
    the numbers of one device. A batch that cannot be divided evenly runs whole on each. What does not fit a mesh (see
    `choose_mesh`) has an executor for each device, as in MXNet.

    # MXNet: what is computed over the batch (statistics of BatchNorm, a loss divided by the batch size) is so over the
    # examples of each device, and its `get_params` takes the mean of their moving statistics. On a mesh it is over all
    # examples; `symjax.config(exact_mxnet=True)` asks for MXNet's way.

    Args:
      symbol: the symbol.
      contexts: the devices.
      workload: numbers in proportion to which the devices share a batch.
      data_shapes, label_shapes: descriptions (DataDesc, or name and shape) of the batch; labels may be None.
      param_names: the arguments that are parameters.
      for_training: whether gradients are kept.
      inputs_need_grad: whether the data get gradients.
      shared_group: the group whose parameters, gradients and auxiliary states are used, None for new ones.
      logger: where warnings go.
      fixed_param_names: parameters without gradient.
      grad_req: "write", "add" or "null", or a list or dict by argument.
      state_names: arguments that `set_states` sets.
      group2ctxs: contexts by the name of a `ctx_group`, for each device; see `Symbol.simple_bind`.
      mesh: the mesh to run on, in place of one that is made of the contexts.

    Attributes:
      execs: the executors, one alone on a mesh.
      param_arrays, grad_arrays, aux_arrays: for each parameter (auxiliary state), the arrays of all devices.
      data_arrays, label_arrays: for each input, (slice, array) of all devices.
    """

    def __init__(
        self,
        symbol: Symbol,
        contexts: Sequence[Context],
        workload: Sequence[float],
        data_shapes: Sequence[Any],
        label_shapes: Sequence[Any] | None,
        param_names: Sequence[str],
        for_training: bool,
        inputs_need_grad: bool,
        shared_group: DataParallelExecutorGroup | None = None,
        logger: Any = logging,
        fixed_param_names: Sequence[str] | None = None,
        grad_req: Any = "write",
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        mesh: Any = None,
    ) -> None:
        self.symbol, self.contexts, self.workload, self.logger = symbol, contexts, workload, logger
        self.param_names, self.for_training, self.inputs_need_grad = list(param_names), for_training, inputs_need_grad
        self.arg_names, self.aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.num_outputs = len(self.output_names)
        self.fixed_param_names, self.state_names = list(fixed_param_names or ()), list(state_names or ())
        self.group2ctxs = prepare_group2ctxs(group2ctxs, len(contexts))
        if shared_group is not None:
            mesh = shared_group.mesh
            self.contexts = contexts = contexts if mesh is None else shared_group.contexts
        self.mesh = mesh
        if mesh is not None or shared_group is None:
            self.mesh = choose_mesh(symbol._graph, contexts, workload, self.group2ctxs, mesh)
        self._homes: list[Context] = list(contexts) if self.mesh is None else [MeshContext(self.mesh)]
        data, labels = descriptions(data_shapes), None if label_shapes is None else descriptions(label_shapes)
        self.grad_req = self._requests(grad_req if for_training else "null", [d.name for d in data])
        self.output_layouts = [
            DataDesc.get_batch_axis(symbol[i].attr("__layout__")) for i in range(self.num_outputs)
        ]
        self._whole: set[int] = set()  # sizes of batches that could not be divided
        self._kept: collections.OrderedDict[Any, list[Executor]] = collections.OrderedDict()
        self._synced: dict[str, tuple[NDArray, int, int]] = {}
        self.execs: list[Executor] = []
        self.bind_exec(data, labels, shared_group)
        self._default_execs = self.execs

    def _requests(self, grad_req: Any, data_names: Sequence[str]) -> dict[str, str]:
        if isinstance(grad_req, (list, tuple)):
            if len(grad_req) != len(self.arg_names):
                raise ArgumentError(f"grad_req has {len(grad_req)} entries for {len(self.arg_names)} arguments")
            return dict(zip(self.arg_names, grad_req, strict=True))
        if not isinstance(grad_req, (str, dict)):
            raise ValueError("grad_req must be one of str, list, tuple, or dict.")
        usual = grad_req if isinstance(grad_req, str) else "write"
        wanted = {n for n in self.param_names if n not in self.fixed_param_names}
        if self.inputs_need_grad:
            wanted.update(data_names)
        found = {n: usual if n in wanted else "null" for n in self.arg_names}
        return found if isinstance(grad_req, str) else {**found, **grad_req}

    # ---- binding

    def decide_slices(self, data_shapes: Sequence[DataDesc]) -> list[int]:
        """Decides which examples each device gets, and returns the batch axes.

        Raises:
          ArgumentError: there is no input, or batch sizes differ.
        """
        if not data_shapes:
            raise ArgumentError("there are no inputs: data_shapes is empty")
        axes = [DataDesc.get_batch_axis(d.layout) for d in data_shapes]
        for d, axis in zip(data_shapes, axes, strict=True):
            if axis == -1:
                continue
            size = d.shape[axis]
            if self.batch_size is None:
                self.batch_size = size
                self.slices = split_input_slice(size, self.workload[: len(self._homes)])
            elif size != self.batch_size:
                raise ArgumentError(f"all data must have the same batch size: batch_size = {self.batch_size}, but "
                                    f"{d.name} has shape {d.shape}")
        return axes

    def bind_exec(
        self,
        data_shapes: Sequence[DataDesc],
        label_shapes: Sequence[DataDesc] | None,
        shared_group: DataParallelExecutorGroup | None = None,
        reshape: bool = False,
    ) -> None:
        """Binds an executor on each device, or takes those that were bound to these shapes before."""
        self.batch_size: Any = None
        self.slices = [slice(i, i + 1) for i in range(len(self._homes))]
        self.data_layouts = self.decide_slices(data_shapes)
        self.label_layouts = self.decide_slices(label_shapes) if label_shapes else []
        self.data_shapes, self.label_shapes = data_shapes, label_shapes
        self.data_names = [d.name for d in data_shapes]
        self.label_names = [d.name for d in label_shapes or ()]
        key = tuple((d.name, tuple(d.shape)) for d in (*data_shapes, *(label_shapes or ())))
        execs = self._kept.get(key)
        if execs is None:
            shared = self._default_execs if reshape else shared_group.execs if shared_group else None
            execs = self._kept[key] = [self._bind_ith_exec(i, shared, reshape) for i in range(len(self._homes))]
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        self._warn_of_rest()
        self.execs = execs
        self._collect_arrays()

    def _warn_of_rest(self) -> None:
        axis = None if self.mesh is None else data_axis(self.mesh, self.symbol._graph)
        size, n = self.batch_size, 1 if self.mesh is None or axis is None else self.mesh.shape[axis]
        if size is not None and size % n and size not in self._whole:
            self._whole.add(size)
            self.logger.warning("a batch of %d examples cannot be divided over %d devices: each of them runs all of it",
                                size, n)

    def _bind_ith_exec(self, i: int, shared: Sequence[Executor] | None, reshape: bool) -> Executor:
        labels = self.label_shapes or ()
        inputs = [*self._sliced(self.data_shapes, i, self.data_layouts), *self._sliced(labels, i, self.label_layouts)]
        if reshape and shared is not None:
            types = {n: a._dtype.name for n, a in shared[i].arg_dict.items()}
        else:
            types = {d.name: d.dtype for d in inputs}
            given = self.symbol.attr_dict()
            # MXNet: a variable's own type counts for data, not for labels
            for d in self.data_shapes:
                own = given.get(d.name, {}).get("__dtype__", "-1")
                if own != "-1":
                    types[d.name] = DTYPE_OF_FLAG[int(own)]
        # Of labels that count as parameters, since nobody named them, the shape goes with the batch.
        labels_too = _labels(self.symbol) if reshape else set()
        return bind_sharing(
            self.symbol, self._homes[i], self.grad_req, types, {d.name: d.shape for d in inputs},
            set(self.param_names) - labels_too, None if shared is None else shared[i], self.group2ctxs[i],
            {*self.state_names, *labels_too}, self._batch_axes())

    def _batch_axes(self) -> dict[str, int]:
        """The batch axes of inputs, which a mesh divides."""
        shapes = [*self.data_shapes, *(self.label_shapes or ())]
        axes = {d.name: axis for d, axis in zip(shapes, [*self.data_layouts, *self.label_layouts], strict=True)}
        return {**dict.fromkeys(self.state_names, 0), **axes}

    def _sliced(self, shapes: Sequence[DataDesc], i: int, axes: Sequence[int]) -> list[DataDesc]:
        part, found = self.slices[i], []
        for d, axis in zip(shapes, axes, strict=True):
            shape = list(d.shape)
            if axis >= 0:
                shape[axis] = part.stop - part.start
            found.append(DataDesc(d.name, tuple(shape), d.dtype, d.layout))
        return found

    def _collect_arrays(self) -> None:
        execs = self.execs
        dicts = [e.arg_dict for e in execs]

        def places(name: str) -> list[tuple[slice, NDArray]]:
            return [(part, d[name]) for part, d in zip(self.slices, dicts, strict=True)]

        for name in self.data_names:
            if name not in dicts[0]:
                raise ArgumentError(f"{name!r} is not an argument of the symbol.{did_you_mean(name, dicts[0])}")
        self.data_arrays = [places(n) for n in self.data_names]
        self.label_arrays = None if self.label_shapes is None else [
            places(n) if n in dicts[0] else [] for n in self.label_names]  # others are for the metric alone
        self.state_arrays = [[d[n] for d in dicts] for n in self.state_names]
        params = [i for i, n in enumerate(self.arg_names) if n in set(self.param_names)]
        self.param_arrays = [[e.arg_arrays[i] for e in execs] for i in params]
        self.grad_arrays = [[e.grad_arrays[i] for e in execs] for i in params] if self.for_training else None
        self.aux_arrays = [[e.aux_arrays[i] for e in execs] for i in range(len(self.aux_names))]
        self.input_grad_arrays: list[list[Any]] | None = None
        if self.inputs_need_grad:
            at = [self.arg_names.index(n) for n in self.data_names]
            self.input_grad_arrays = [[e.grad_arrays[i] for e in execs] for i in at]

    def reshape(self, data_shapes: Sequence[DataDesc], label_shapes: Sequence[DataDesc] | None) -> None:
        """Goes over to executors for other shapes of the batch, with the same parameters."""
        if data_shapes != self.data_shapes or label_shapes != self.label_shapes:
            self.bind_exec(data_shapes, label_shapes, reshape=True)

    # ---- parameters

    def set_params(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any] | None,
                   allow_extra: bool = False) -> None:
        """Copies parameters and auxiliary states to all devices.

        Raises:
          ValueError: a name is not in the graph, and not `allow_extra`.
          ShapeError: a shape differs.
        """
        for given, names, blocks in self._groups(arg_params, aux_params or {}):
            known = dict(zip(names, blocks, strict=True))
            for name, value in given.items():
                block = known.get(name)
                if block is None and name in self.arg_names:  # an input: MXNet sets it as well
                    block = [e.arg_dict[name] for e in self.execs]
                if block is None:
                    if not allow_extra:
                        raise ValueError(f'Find name "{name}" that is not in the arguments{did_you_mean(name, known)}')
                elif not self._is_synced(name, value, block):
                    self._set(name, value, block)

    def _groups(self, arg_params: Any, aux_params: Any) -> list[tuple[Any, list[str], list[list[NDArray]]]]:
        order = [n for n in self.arg_names if n in set(self.param_names)]
        return [(arg_params, order, self.param_arrays), (aux_params, self.aux_names, self.aux_arrays)]

    def _set(self, name: str, value: Any, block: list[NDArray]) -> None:
        if tuple(value.shape) != block[0].shape:
            raise ShapeError(f"parameter {name!r}: expected shape {block[0].shape}, got {tuple(value.shape)}")
        for array in block:
            copy_into(array, value)

    def _is_synced(self, name: str, value: Any, block: list[NDArray]) -> bool:
        """Whether `value` is what `get_params` has written last, and neither has changed since."""
        host, host_version, version = self._synced.get(name, (None, 0, 0))
        return host is value and value._version == host_version and block[0]._version == version

    def get_params(self, arg_params: dict[str, Any], aux_params: dict[str, Any]) -> None:
        """Writes the parameters, averaged over the devices, to arrays by name."""
        for found, names, blocks in self._groups(arg_params, aux_params):
            for name, block in zip(names, blocks, strict=True):
                if name in found and self._is_synced(name, found[name], block):
                    continue
                mean = average(block)
                if name in found:
                    copy_into(found[name], mean)
                else:
                    found[name] = mean
                if len(block) == 1:
                    self._synced[name] = (found[name], found[name]._version, block[0]._version)

    # ---- running

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Loads a batch, or a list of one for each device, and runs it forward; training is as bound by default."""
        many = isinstance(data_batch, list)
        first = data_batch[0] if many else data_batch
        data = [[b.data[i] for b in data_batch] for i in range(len(self.data_names))] if many else data_batch.data
        if self.mesh is not None:
            data = list(map(joined, data, self.data_layouts))
        load_general(data, self.data_arrays, self.data_layouts, self.data_names)
        if self.label_arrays and getattr(first, "label", None):
            label = data_batch.label if not many else [
                [b.label[i] for b in data_batch] for i in range(len(self.label_names))]
            if self.mesh is not None:
                label = list(map(joined, label, self.label_layouts))
            load_general(label, self.label_arrays, self.label_layouts, self.label_names)
        train = self.for_training if is_train is None else is_train
        for e in self.execs:
            e.forward(is_train=train)

    def backward(self, out_grads: Any = None) -> None:
        """Runs backward.

        Args:
          out_grads: an NDArray, or a list of one for each output, of the whole batch; None where outputs are losses.
        """
        if not self.for_training:
            raise ArgumentError("re-bind with for_training=True to run backward")
        heads = [] if out_grads is None else [out_grads] if isinstance(out_grads, NDArray) else out_grads
        for e, part, ctx in zip(self.execs, self.slices, self._homes, strict=True):
            e.backward([cut(g, part, axis).as_in_context(ctx)
                        for g, axis in zip(heads, self.output_layouts, strict=False)])

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the outputs for the whole batch."""
        found = []
        for i, (name, axis) in enumerate(zip(self.output_names, self.output_layouts, strict=True)):
            shapes = [e.outputs[i].shape for e in self.execs]
            shape = list(shapes[0])
            if axis >= 0 and shape:
                # MXNet: the batch size, also where an output has another number of rows
                shape[axis] = sum(s[axis] for s in shapes)
            found.append((name, tuple(shape)))
        return found

    def get_outputs(self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None) -> list[Any]:
        """Returns the outputs, as one array each, or as lists of one for each device."""
        outputs = [[e.outputs[i] for e in self.execs] for i in range(self.num_outputs)[begin:end]]
        return self._seen(outputs, self.output_layouts[begin:end], merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the gradients of the data likewise."""
        if self.input_grad_arrays is None:
            raise ArgumentError("bind with inputs_need_grad=True to get gradients of the data")
        return self._seen(self.input_grad_arrays, self.data_layouts, merge_multi_context)

    def _seen(self, arrays: Sequence[Any], axes: Sequence[int], merged: bool) -> list[Any]:
        """Returns arrays of the executors as users see them: on the first context, or in parts on each."""
        if self.mesh is None:
            return [merge(parts, axis) for parts, axis in zip(arrays, axes, strict=True)] if merged else list(arrays)
        if merged:
            return [whole.as_in_context(self.contexts[0]) for (whole,) in arrays]
        return [in_parts(whole, axis, self.contexts, self.batch_size)
                for (whole,), axis in zip(arrays, axes, strict=True)]

    def get_states(self, merge_multi_context: bool = True) -> list[list[NDArray]]:
        """Returns the states, lists of one for each device; `merge_multi_context` must be False."""
        if merge_multi_context:
            raise ArgumentError("merge_multi_context=True is not supported for get_states yet.")
        return self.state_arrays if self.mesh is None else self._seen(self.state_arrays, [0] * len(self.state_names),
                                                                      False)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states from lists as `get_states` gives them (or arrays for the whole batch), or all to a number."""
        if (states is None) == (value is None):
            raise ArgumentError("set_states: give either states or value, one of them")
        if states is not None:
            if self.mesh is not None:
                states = [joined(s, 0) for s in states]
            targets = [list(zip(self.slices, block, strict=True)) for block in self.state_arrays]
            load_general(states, targets, [0] * len(targets), self.state_names)
        else:
            for array in (a for block in self.state_arrays for a in block):
                array[:] = value

    # ---- metrics

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Gives a metric the labels and outputs of each device.

        Args:
          eval_metric: an EvalMetric.
          labels: a list of arrays of the whole batch; with `pre_sliced`, such a list for each device.
        """
        for i, (e, part) in enumerate(zip(self.execs, self.slices, strict=True)):
            if pre_sliced:
                mine = labels[i] if self.mesh is None else [
                    joined(parts, axis) for parts, axis in zip(zip(*labels, strict=True), self.label_layouts,
                                                               strict=False)]
            elif len(self.execs) == 1:
                mine = labels or ()
            else:
                mine = [cut(label, part, axis) for label, axis in zip(labels or (), self.label_layouts, strict=False)]
            eval_metric.update_dict(dict(zip(self.label_names, mine, strict=False)),
                                    dict(zip(self.output_names, e.outputs, strict=True)))

    def update_metric_without(self, pad: int, eval_metric: Any, labels: Any) -> None:
        """Likewise, without the last `pad` examples, where every label and output has one row for each example."""
        n = self.batch_size
        outputs = self.get_outputs()
        pairs = [*zip(outputs, self.output_layouts, strict=True), *zip(labels or (), self.label_layouts, strict=False)]
        if not all(axis >= 0 and x.ndim > axis and x.shape[axis] == n for x, axis in pairs):
            self.update_metric(eval_metric, labels)
            return
        if pad >= n:
            return
        kept = [cut(x, slice(0, n - pad), axis) for x, axis in pairs]
        eval_metric.update_dict(dict(zip(self.label_names, kept[len(outputs):], strict=False)),
                                dict(zip(self.output_names, kept, strict=False)))

    def install_monitor(self, mon: Any) -> None:
        """Lets a Monitor watch all executors."""
        for e in self.execs:
            mon.install(e)


def descriptions(shapes: Sequence[Any]) -> list[DataDesc]:
    """Returns DataDescs of what may be tuples."""
    return [d if isinstance(d, DataDesc) else DataDesc(*d) for d in shapes]


def _labels(symbol: Symbol) -> set[str]:
    """The arguments that only losses use, as their labels."""
    graph = symbol._graph
    used = [(e.node, node.is_loss and name == "label")
            for node in graph.nodes if node.op is not None
            for e, name in zip(node.inputs, node.input_names, strict=False)]
    others = {n for n, as_label in used if not as_label}
    return {n.name for n, as_label in used if as_label and n.op is None and n not in others}
