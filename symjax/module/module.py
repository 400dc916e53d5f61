"""`Module`: a symbol with its parameters and an optimizer, on one or several devices."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jax.sharding import Mesh

from symjax import ndarray
from symjax import optimizer as opt
from symjax._files import atomic_write
from symjax.context import Context, cpu
from symjax.executor import copy_into
from symjax.initializer import InitDesc
from symjax.io import DataDesc
from symjax.lowering.errors import ShapeError
from symjax.model import (
    _create_kvstore,
    _initialize_kvstore,
    _update_params,
    _update_params_on_kvstore,
    load_checkpoint,
    params_path,
)
from symjax.module._shapes import joined_shapes, shapes_of
from symjax.module.base_module import UNIFORM, BaseModule, _check_input_names, _parse_data_desc, require
from symjax.module.executor_group import DataParallelExecutorGroup
from symjax.ndarray import zeros

_CPU = cpu()


class Module(BaseModule):
    """A symbol that is trained and run.

    Args:
      symbol: the symbol.
      data_names, label_names: the arguments that batches feed. All others are parameters.
      logger: where messages go.
      context: a context, or a list: the batch is split over the devices, the gradients are summed. Or a
        `jax.sharding.Mesh`: its axis "data" (or "batch", or the first that no `__sharding__` attribute names) divides
        the batch, and variables lie as their attributes say.
      work_load_list: numbers in proportion to which devices share a batch; equal by default.
      fixed_param_names: parameters that are not trained.
      state_names: arguments that are neither; see `set_states`.
      group2ctxs: {name of a `ctx_group`: context, or one for each of `context`}, or a list of such dicts.
      compression_params: handed to the kvstore, if there is one.

    Raises:
      ValueError: a name is not an argument of the symbol (labels: a warning).
    """

    def __init__(
        self,
        symbol: Any,
        data_names: Any = ("data",),
        label_names: Any = ("softmax_label",),
        logger: Any = logging,
        context: Any = _CPU,
        work_load_list: Any = None,
        fixed_param_names: Any = None,
        state_names: Any = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        super().__init__(logger=logger)
        self._mesh = context if isinstance(context, Mesh) else None
        self._context: list[Context] = (
            [Context.from_jax_device(d) for d in context.devices.flat] if isinstance(context, Mesh)
            else [context] if isinstance(context, Context) else list(context))
        self._work_load_list = [1] * len(self._context) if work_load_list is None else work_load_list
        require(len(self._work_load_list) == len(self._context), "work_load_list needs a number for each context")
        self._group2ctxs, self._compression_params = group2ctxs, compression_params
        self._symbol = symbol
        self._data_names: list[str] = list(data_names or ())
        self._label_names: list[str] = list(label_names or ())
        self._state_names, self._fixed_param_names = list(state_names or ()), list(fixed_param_names or ())
        for names, kind in ((self._data_names, "data"), (self._label_names, "label"), (self._state_names, "state"),
                            (self._fixed_param_names, "fixed_param")):
            _check_input_names(symbol, names, kind, kind != "label")
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [n for n in symbol.list_arguments() if n not in inputs]
        self._aux_names, self._output_names = symbol.list_auxiliary_states(), symbol.list_outputs()
        self._arg_params: Any = None
        self._aux_params: Any = None
        self._params_dirty = False
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore: Any = None
        self._updater: Any = None
        self._preload_opt_states: str | None = None
        self._param_index: dict[str, int] = {}
        self._grad_req: Any = None
        self._reset_bind()

    def _reset_bind(self) -> None:
        self.binded = False
        self._group: DataParallelExecutorGroup | None = None
        self._data_shapes: Any = None
        self._label_shapes: Any = None

    @property
    def _exec_group(self) -> DataParallelExecutorGroup:
        require(self._group is not None, "call bind first")
        assert self._group is not None
        return self._group

    # ---- checkpoints

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """Makes a module from a checkpoint; bind it before use.

        Args:
          prefix, epoch: see `save_checkpoint`.
          load_optimizer_states: whether to read `<prefix>-<epoch>.states` when the optimizer is made.
          **kwargs: arguments of `Module`.
        """
        symbol, args, auxs = load_checkpoint(prefix, epoch)
        mod = Module(symbol=symbol, **kwargs)
        mod._arg_params, mod._aux_params, mod.params_initialized = args, auxs, True
        if load_optimizer_states:
            mod._preload_opt_states = _states_path(prefix, epoch)
        return mod

    def save_checkpoint(self, prefix: str, epoch: int, save_optimizer_states: bool = False,
                        remove_amp_cast: bool = True) -> None:
        """Writes `<prefix>-symbol.json` and `<prefix>-<epoch>.params`, and the optimizer's `.states` if asked.

        Each file appears whole or not at all, the parameters last: where they are, so is the rest.
        """
        self._symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
        states = _states_path(prefix, epoch)
        if save_optimizer_states:
            self.save_optimizer_states(states)
        self.save_params(params_path(prefix, epoch))
        logging.info('Saved checkpoint to "%s"', params_path(prefix, epoch))
        if save_optimizer_states:
            logging.info('Saved optimizer state to "%s"', states)

    def save_optimizer_states(self, fname: str) -> None:
        """Writes the optimizer's states; see `mx.optimizer.Updater.get_states`."""
        require(self.optimizer_initialized, "call init_optimizer first")
        updater = self._kvstore._updater if self._update_on_kvstore else self._updater
        if not hasattr(updater, "get_states"):
            self._kvstore.save_optimizer_states(fname)
            return
        with atomic_write(fname) as file:
            file.write(updater.get_states())

    def load_optimizer_states(self, fname: str) -> None:
        """Reads the optimizer's states, those that MXNet wrote too."""
        require(self.optimizer_initialized, "call init_optimizer first")
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
        else:
            self._updater.set_states(Path(fname).read_bytes())

    # ---- what it is

    @property
    def data_names(self) -> list[str]:
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """The names of the labels."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        return self._output_names

    @property
    def data_shapes(self) -> list[DataDesc]:
        require(self.binded, "call bind first")
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        require(self.binded, "call bind first")
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        require(self.binded, "call bind first")
        return self._exec_group.get_output_shapes()

    # ---- parameters

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns (arg_params, aux_params) on the CPU: the same arrays every time, with the latest values."""
        require(self.params_initialized, "call init_params first")
        if self._params_dirty:
            self._sync_params_from_devices()
        return self._arg_params, self._aux_params

    def init_params(self, initializer: Any = UNIFORM, arg_params: Any = None, aux_params: Any = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Initialises the parameters; see `BaseModule.init_params`. Names that are no parameters do not matter.

        Raises:
          RuntimeError: a value is missing, and not `allow_missing`.
          ShapeError: a value has another shape.
          AssertionError: the module is not bound.
        """
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. init_params call ignored.",
                          stacklevel=2)
            return
        require(self.binded, "call bind before initializing the parameters")
        attrs = self._symbol.attr_dict()
        for given, arrays in ((arg_params, self._arg_params), (aux_params, self._aux_params)):
            for name, array in sorted(arrays.items()):
                if given is not None and name in given:
                    _copy(name, given[name], array)
                    continue
                if given is not None and not allow_missing:
                    raise RuntimeError(f"{name} is not presented; give it, or allow_missing=True to initialise it")
                if initializer is not None:
                    initializer(InitDesc(name, attrs.get(name)), array)
                elif given is None:
                    raise RuntimeError(f"{name} is not presented, and there is no initializer")
        self.params_initialized = True
        self._params_dirty = False
        self._exec_group.set_params(self._arg_params, self._aux_params, allow_extra=allow_extra)

    def set_params(self, arg_params: Any, aux_params: Any, allow_missing: bool = False, force_init: bool = True,
                   allow_extra: bool = False) -> None:
        """Sets parameters; with `allow_missing`, those that are given only.

        Raises:
          ValueError: with `allow_missing`, a name is no parameter, and not `allow_extra`.
        """
        if not allow_missing:
            self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)
            return
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. set_params call ignored.", stacklevel=2)
            return
        self._exec_group.set_params(arg_params, aux_params, allow_extra=allow_extra)
        self._params_dirty = True
        self.params_initialized = True

    def _sync_params_from_devices(self) -> None:
        self._exec_group.get_params(self._arg_params, self._aux_params)
        if self._kvstore is not None and self._update_on_kvstore:
            for name, value in sorted(self._arg_params.items()):
                if value.stype == "row_sparse":
                    rows = ndarray.arange(0, value.shape[0], dtype="int64")
                    self._kvstore.row_sparse_pull(name, value, row_ids=rows)
        self._params_dirty = False

    # ---- binding

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Binds to shapes; see `BaseModule.bind`.

        Raises:
          ValueError: names of data differ from `data_names`.
          MXNetError: shapes do not fit the graph.
        """
        if force_rebind:
            self._rebind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        require(for_training or not inputs_need_grad, "inputs_need_grad=True needs for_training=True")
        self._data_shapes, self._label_shapes = _parse_data_desc(
            self.data_names, self.label_names, data_shapes, label_shapes)
        shared = None
        if shared_module is not None:
            require(isinstance(shared_module, Module) and shared_module.binded and shared_module.params_initialized,
                    "shared_module must be a Module that is bound and has parameters")
            shared = shared_module._exec_group
            require(len(shared.contexts) >= len(self._context), "shared_module has fewer contexts")
        self._group = DataParallelExecutorGroup(
            self._symbol, self._context, self._work_load_list, self._data_shapes, self._label_shapes,
            self._param_names, for_training, inputs_need_grad, shared, logger=self.logger,
            fixed_param_names=self._fixed_param_names, grad_req=grad_req, group2ctxs=self._group2ctxs,
            state_names=self._state_names, mesh=self._mesh)
        if shared_module is not None:
            self.params_initialized = True
            self._arg_params, self._aux_params = shared_module._arg_params, shared_module._aux_params
        elif self.params_initialized:
            self._group.set_params(self._arg_params, self._aux_params)
        else:
            self._make_params(self._group)
        if shared_module is not None and shared_module.optimizer_initialized:
            self.borrow_optimizer(shared_module)
        self.binded = True

    def _rebind(self) -> None:
        if self.binded and self.params_initialized and self._params_dirty:
            self._sync_params_from_devices()  # MXNet: goes back to the parameters of the last get_params
        self._reset_bind()

    def _make_params(self, group: DataParallelExecutorGroup) -> None:
        pairs = zip(group.param_names, group.param_arrays, strict=True)
        self._arg_params = {n: zeros(x[0].shape, dtype=x[0]._dtype.name, stype=x[0].stype) for n, x in pairs}
        pairs = zip(self._aux_names, group.aux_arrays, strict=True)
        self._aux_params = {n: zeros(x[0].shape, dtype=x[0]._dtype.name) for n, x in pairs}

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Goes over to other shapes of the batch. Programs and arrays of shapes bound before are used again."""
        require(self.binded, "call bind first")
        self._data_shapes, self._label_shapes = _parse_data_desc(
            self.data_names, self.label_names, data_shapes, label_shapes)
        self._exec_group.reshape(self._data_shapes, self._label_shapes)

    # ---- the optimizer

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd",
                       optimizer_params: Any = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Makes the optimizer; see `BaseModule.init_optimizer`. On one device no kvstore is made by name."""
        self._check_ready()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._params_dirty:
            self._sync_params_from_devices()
        names, n = self._exec_group.param_names, len(self._exec_group.execs)
        kvstore, on_kvstore = _create_kvstore(kvstore, n, self._arg_params)
        self._param_index = {name: i for i, name in enumerate(names)}
        if on_kvstore:
            idx2name = dict(enumerate(names))
        else:
            idx2name = {i * n + k: name for i, name in enumerate(names) for k in range(n)}
        self._optimizer = self._made_optimizer(optimizer, optimizer_params, kvstore, idx2name)
        self._kvstore, self._update_on_kvstore, self._updater = kvstore, on_kvstore, None
        if kvstore is not None:
            if self._compression_params:
                kvstore.set_gradient_compression(self._compression_params)
            if on_kvstore:
                kvstore.set_optimizer(self._optimizer)
            _initialize_kvstore(kvstore=kvstore, param_arrays=self._exec_group.param_arrays,
                                arg_params=self._arg_params, param_names=self._param_names,
                                update_on_kvstore=on_kvstore)
        if not on_kvstore:
            self._updater = opt.get_updater(self._optimizer)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _made_optimizer(self, optimizer: Any, params: Any, kvstore: Any, idx2name: dict[int, str]) -> Any:
        batch_size = self._exec_group.batch_size
        if kvstore is not None and "dist" in kvstore.type and "_sync" in kvstore.type:
            batch_size *= kvstore.num_workers
        rescale_grad = 1.0 / batch_size
        if isinstance(optimizer, str):
            given = {"rescale_grad": rescale_grad, **dict(params)}
            return opt.create(optimizer, sym=self.symbol, param_idx2name=idx2name, **given)
        require(isinstance(optimizer, opt.Optimizer), f"optimizer must be an Optimizer or a name, got "
                f"{type(optimizer).__name__}")
        if optimizer.rescale_grad != rescale_grad:
            warnings.warn(f"Optimizer created manually outside Module but rescale_grad is not normalized to "
                          f"1.0/batch_size/num_workers ({optimizer.rescale_grad} vs. {rescale_grad}). Is this "
                          f"intended?", stacklevel=3)
        if not optimizer.idx2name:
            optimizer.idx2name = dict(idx2name)
        return optimizer

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Uses the optimizer of another module, with its states; parameters are told apart by their names."""
        require(shared_module.optimizer_initialized, "the other module has no optimizer")
        self._optimizer, self._updater = shared_module._optimizer, shared_module._updater
        self._kvstore, self._update_on_kvstore = shared_module._kvstore, shared_module._update_on_kvstore
        self._param_index = shared_module._param_index
        self.optimizer_initialized = True

    # ---- running

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs a batch. One of other shapes than bound is bound first (once for each shape).

        Args:
          data_batch: a DataBatch, with or without labels, or a list of one for each device.
          is_train: whether in training mode; None: as bound.
        """
        self._check_ready()
        many = isinstance(data_batch, list)
        require(not many or data_batch, "Encountered empty data batch")
        shapes = joined_shapes(data_batch) if many else [tuple(a.shape) for a in data_batch.data]
        if shapes != [tuple(d.shape) for d in self._data_shapes]:
            first = data_batch[0] if many else data_batch
            self.reshape(*shapes_of(first, shapes, many, self._data_shapes, self._label_shapes))
        self._exec_group.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        self._check_ready()
        self._exec_group.backward(out_grads=out_grads)

    def update(self) -> None:
        """Updates the parameters by their gradients, summed over the devices."""
        self._check_optimizer()
        self._params_dirty = True
        group = self._exec_group
        require(group.grad_arrays is not None, "bind with for_training=True to update parameters")
        assert group.grad_arrays is not None
        if self._update_on_kvstore:
            _update_params_on_kvstore(group.param_arrays, group.grad_arrays, self._kvstore, group.param_names)
        else:
            _update_params(group.param_arrays, group.grad_arrays, self._updater, len(group.execs), self._kvstore,
                           group.param_names, self._param_index)

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the outputs of the last forward; lists of one for each device, if not merged."""
        self._check_ready()
        return self._exec_group.get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._check_ready()
        require(self.inputs_need_grad, "bind with inputs_need_grad=True to get gradients of the data")
        return self._exec_group.get_input_grads(merge_multi_context=merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the states: for each a list of one array for each device. `merge_multi_context` must be False."""
        self._check_ready()
        return self._exec_group.get_states(merge_multi_context=merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states from what `get_states` or `get_outputs(False)` gives, or all to one number."""
        self._check_ready()
        self._exec_group.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        self._exec_group.update_metric(eval_metric, labels, pre_sliced)

    def _update_metric_without(self, pad: int, eval_metric: Any, labels: Any) -> None:
        self._exec_group.update_metric_without(pad, eval_metric, labels)

    def install_monitor(self, mon: Any) -> None:
        require(self.binded, "call bind first")
        self._exec_group.install_monitor(mon)

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Gets the rows of row_sparse parameters that a batch needs, where a kvstore updates them.

        Args:
          data_batch: the batch that comes next.
          sparse_row_id_fn: function of it that returns a dict of row positions (NDArray) by parameter.
        """
        require(self.binded, "call bind first")
        if sparse_row_id_fn is None:
            return
        if self._kvstore is None or not self._update_on_kvstore:
            warnings.warn("Parameters are not updated in the KVStore. No need to call sparse_row_id_fn.", UserWarning,
                          stacklevel=2)
            return
        row_ids = sparse_row_id_fn(data_batch)
        require(isinstance(row_ids, Mapping), "Expected dict output from sparse_row_id_fn")
        group = self._exec_group
        for name, rows in row_ids.items():
            index = group.param_names.index(name)
            block = group.param_arrays[index]
            if block[0].stype != "row_sparse":
                warnings.warn(f"{name}.stype is not 'row_sparse'. No need to perform row_sparse_pull.", UserWarning,
                              stacklevel=2)
            else:
                self._kvstore.row_sparse_pull(name, block, row_ids=rows, priority=-index)


def _states_path(prefix: str, epoch: int) -> str:
    return f"{prefix}-{epoch:04d}.states"


def _copy(name: str, value: Any, array: Any) -> None:
    if value is array:
        return
    if tuple(value.shape) != array.shape:
        raise ShapeError(f"parameter {name!r}: expected shape {array.shape}, got {tuple(value.shape)}")
    copy_into(array, value)
