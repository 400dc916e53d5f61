"""`BaseModule`: what all modules can do by their basic operations: fit, score, predict."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from symjax import ndarray
from symjax._interrupt import StepGuard
from symjax.context import cpu
from symjax.initializer import Uniform
from symjax.io import DataBatch, DataIter
from symjax.model import BatchEndParam
from symjax.module._checks import _check_input_names as _check_input_names
from symjax.module._checks import _parse_data_desc as _parse_data_desc
from symjax.module._checks import as_list, require

UNIFORM = Uniform(0.01)
"""What initialises parameters by default."""



class BaseModule:
    """Base class of modules.

    A module is bound to shapes (`bind`), gets parameters (`init_params`) and an optimizer (`init_optimizer`), and then
    runs batches (`forward`, `backward`, `update`). `fit`, `score` and `predict` are made of these. A subclass defines
    the properties and methods that raise NotImplementedError here.

    Args:
      logger: where messages go.

    Attributes:
      binded, params_initialized, optimizer_initialized: whether this was done.
      for_training, inputs_need_grad: as bound.
    """

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = self.for_training = self.inputs_need_grad = False
        self.params_initialized = self.optimizer_initialized = False
        self._symbol: Any = None

    # ---- what is made of the rest

    def forward_backward(self, data_batch: Any) -> None:
        """Runs forward in training mode, and backward."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def score(
        self,
        eval_data: Any,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        score_end_callback: Any = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Any = None,
    ) -> list[tuple[str, float]]:
        """Predicts batches and returns a metric's (name, value) pairs. Examples that only fill a batch do not count.

        (MXNet counts them. They do here too where an output or label has another number of rows than the batch.)

        Args:
          eval_data: a DataIter.
          eval_metric: an EvalMetric, a name, or a list of them; it is reset first.
          num_batch: how many batches at most.
          batch_end_callback, score_end_callback: functions of a BatchEndParam, or lists of them.
          reset: whether to reset `eval_data` first.
          epoch: for the callbacks.
          sparse_row_id_fn: see `Module.prepare`.
        """
        self._check_ready()
        if reset:
            eval_data.reset()
        eval_metric = _metric(eval_metric)
        eval_metric.reset()
        actual_num_batch = 0
        for nbatch, eval_batch in enumerate(eval_data):
            if num_batch is not None and nbatch == num_batch:
                break
            self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(eval_batch, is_train=False)
            self._count_batch(eval_metric, eval_batch)
            if batch_end_callback is not None:
                _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            actual_num_batch += 1
        if score_end_callback:
            _call(score_end_callback, BatchEndParam(epoch, actual_num_batch, eval_metric, locals()))
        return eval_metric.get_name_value()

    def _count_batch(self, eval_metric: Any, batch: Any) -> None:
        """Updates a metric by the batch that ran, without what only fills it."""
        pad = getattr(batch, "pad", None)
        if pad:
            self._update_metric_without(pad, eval_metric, batch.label)
        else:
            self._update_metric(eval_metric, batch)

    def _update_metric(self, eval_metric: Any, batch: Any) -> None:
        if isinstance(batch, list):
            self.update_metric(eval_metric, [b.label for b in batch], pre_sliced=True)
        else:
            self.update_metric(eval_metric, batch.label)

    def _update_metric_without(self, pad: int, eval_metric: Any, labels: Any) -> None:
        """Like `update_metric`, without the last `pad` examples where it can tell which these are."""
        self.update_metric(eval_metric, labels)

    def iter_predict(
        self, eval_data: Any, num_batch: int | None = None, reset: bool = True, sparse_row_id_fn: Any = None
    ) -> Iterator[tuple[list[Any], int, Any]]:
        """Yields (outputs without what fills the batch, number of the batch, the batch); see `score`."""
        self._check_ready()
        if reset:
            eval_data.reset()
        for nbatch, eval_batch in enumerate(eval_data):
            if num_batch is not None and nbatch == num_batch:
                break
            self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(eval_batch, is_train=False)
            pad = getattr(eval_batch, "pad", None) or 0
            yield [out[0 : out.shape[0] - pad] if pad else out for out in self.get_outputs()], nbatch, eval_batch

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Any = None,
    ) -> Any:
        """Predicts batches and returns the outputs as NDArrays, without what only fills the batches.

        Args:
          eval_data: a DataIter, or an array of one batch (then its first output is returned).
          num_batch: how many batches at most.
          merge_batches: whether to join the batches; otherwise the result is a list of lists of outputs.
          reset: whether to reset `eval_data` first.
          always_output_list: whether a single output comes in a list too.
          sparse_row_id_fn: see `Module.prepare`.

        Raises:
          ValueError: `eval_data` is neither.
          AssertionError: batches have different numbers of outputs and are to be merged.
        """
        self._check_ready()
        if isinstance(eval_data, (ndarray.NDArray, np.ndarray)):
            # MXNet: runs as bound, that is in training mode for a module that is trained
            batch = ndarray.array(eval_data) if isinstance(eval_data, np.ndarray) else eval_data
            self.forward(DataBatch([batch]), is_train=False)
            return self.get_outputs()[0]
        if not isinstance(eval_data, DataIter):
            raise ValueError("eval_data must be of type NDArray or DataIter")
        found = [
            [out.copy() for out in outputs]
            for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)
        ]
        if not found or not merge_batches:
            return found
        require(len({len(outputs) for outputs in found}) == 1, "Cannot merge batches, as num of outputs is not the "
                "same in mini-batches. Maybe bucketing is used? merge_batches=False returns them as they are")
        merged = [ndarray.concatenate(list(parts)) for parts in zip(*found, strict=True)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def fit(
        self,
        train_data: Any,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        initializer: Any = UNIFORM,
        arg_params: Any = None,
        aux_params: Any = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Any = None,
        sparse_row_id_fn: Any = None,
    ) -> None:
        """Trains the parameters.

        The module is bound and initialised first, where it is not yet. Every step is one compiled call, unless a
        callback or monitor reads gradients or outputs between. After Ctrl-C the module holds the parameters of the last
        finished step; KeyboardInterrupt is raised.

        Args:
          train_data: a DataIter; it is reset after each epoch.
          eval_data: a DataIter on which to score after each epoch, or None.
          eval_metric: an EvalMetric, a name, or a list of them, for training.
          epoch_end_callback: function `(epoch, symbol, arg_params, aux_params)`, or a list of them.
          batch_end_callback: function of a BatchEndParam, or a list of them.
          kvstore, optimizer, optimizer_params: see `init_optimizer`.
          eval_end_callback, eval_batch_end_callback: as `batch_end_callback`, of scoring.
          initializer, arg_params, aux_params, allow_missing, force_init: see `init_params`.
          force_rebind: whether to bind again.
          begin_epoch, num_epoch: the first epoch, and the one before which training ends.
          validation_metric: for `eval_data`; `eval_metric` if None.
          monitor: a Monitor.
          sparse_row_id_fn: see `Module.prepare`.

        Raises:
          AssertionError: there is no `num_epoch`, or `train_data` gives no batch.
          KeyboardInterrupt: after Ctrl-C.
        """
        require(num_epoch is not None, "please specify number of epochs: fit(num_epoch=...)")
        assert num_epoch is not None
        self.bind(data_shapes=train_data.provide_data, label_shapes=train_data.provide_label, for_training=True,
                  force_rebind=force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        self.init_params(initializer=initializer, arg_params=arg_params, aux_params=aux_params,
                         allow_missing=allow_missing, force_init=force_init)
        self.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        eval_metric = _metric(eval_metric)
        epoch, nbatch = begin_epoch, 0
        try:
            with StepGuard() as guard:
                for epoch in range(begin_epoch, num_epoch):
                    tic = time.time()
                    eval_metric.reset()
                    nbatch, values = 0, []
                    batches = iter(train_data)
                    next_data_batch = next(batches, None)
                    require(next_data_batch is not None, f"train_data gives no batch in epoch {epoch}; was it reset?")
                    while next_data_batch is not None:
                        data_batch = next_data_batch
                        if monitor is not None:
                            monitor.tic()
                        with guard.step():
                            self.forward_backward(data_batch)
                            self.update()
                        self._update_metric(eval_metric, data_batch)
                        next_data_batch = next(batches, None)
                        if next_data_batch is not None:
                            self.prepare(next_data_batch, sparse_row_id_fn=sparse_row_id_fn)
                        if monitor is not None:
                            monitor.toc_print()
                        if next_data_batch is None:
                            values = eval_metric.get_global_name_value()  # before callbacks reset it
                        if batch_end_callback is not None:
                            _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
                        nbatch += 1
                    for name, val in values:
                        self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, val)
                    self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - tic)
                    arg_params, aux_params = self.get_params()
                    self.set_params(arg_params, aux_params)
                    if epoch_end_callback is not None:
                        _call(epoch_end_callback, epoch, self.symbol, arg_params, aux_params)
                    if eval_data is not None:
                        res = self.score(eval_data, validation_metric, score_end_callback=eval_end_callback,
                                         batch_end_callback=eval_batch_end_callback, epoch=epoch)
                        for name, val in res:
                            self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, val)
                    train_data.reset()
        except KeyboardInterrupt:
            self.logger.info("Epoch[%d] Batch [%d] interrupted; the module keeps the parameters of the last step",
                             epoch, nbatch)
            raise

    # ---- parameters

    def set_params(self, arg_params: Any, aux_params: Any, allow_missing: bool = False, force_init: bool = True,
                   allow_extra: bool = False) -> None:
        """Sets parameters and auxiliary states from dicts; see `init_params`."""
        self.init_params(initializer=None, arg_params=arg_params, aux_params=aux_params, allow_missing=allow_missing,
                         force_init=force_init, allow_extra=allow_extra)

    def save_params(self, fname: str) -> None:
        """Writes the parameters to a `.params` file, atomically."""
        arg_params, aux_params = self.get_params()
        arrays = {f"arg:{k}": v.as_in_context(cpu()) for k, v in arg_params.items()}
        arrays.update({f"aux:{k}": v.as_in_context(cpu()) for k, v in aux_params.items()})
        ndarray.save(fname, arrays)

    def load_params(self, fname: str) -> None:
        """Sets the parameters from a `.params` file.

        Raises:
          ValueError: a name in it begins neither with "arg:" nor with "aux:".
        """
        found: dict[str, dict[str, Any]] = {"arg": {}, "aux": {}}
        loaded: Any = ndarray.load(fname)
        if not isinstance(loaded, dict):
            raise ValueError(f"Invalid param file {fname}: its arrays have no names")
        for key, value in loaded.items():
            kind, colon, name = key.partition(":")
            if not colon or kind not in found:
                raise ValueError(f"Invalid param file {fname}: {key!r} begins neither with 'arg:' nor with 'aux:'")
            found[kind][name] = value
        self.set_params(found["arg"], found["aux"])

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the states: none here."""
        self._check_ready()
        require(not merge_multi_context, "get_states: merge_multi_context must be False")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states: there are none here."""
        self._check_ready()
        require(not states and not value, f"{type(self).__name__} has no states to set")

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Prepares for a batch that is about to run."""
        if sparse_row_id_fn is not None:
            warnings.warn("sparse_row_id_fn is not invoked for BaseModule.", UserWarning, stacklevel=2)

    def _check_ready(self) -> None:
        require(self.binded and self.params_initialized, "call bind and init_params first")

    def _check_optimizer(self) -> None:
        self._check_ready()
        require(self.optimizer_initialized, "call init_optimizer first")

    # ---- what subclasses define

    @property
    def data_names(self) -> Any:
        """The names of the inputs."""
        raise NotImplementedError

    @property
    def output_names(self) -> Any:
        """The names of the outputs."""
        raise NotImplementedError

    @property
    def data_shapes(self) -> Any:
        """Descriptions of the inputs, as bound."""
        raise NotImplementedError

    @property
    def label_shapes(self) -> Any:
        """Descriptions of the labels, as bound; empty or None if there are none."""
        raise NotImplementedError

    @property
    def output_shapes(self) -> Any:
        """Pairs (name, shape) of the outputs."""
        raise NotImplementedError

    @property
    def symbol(self) -> Any:
        """The symbol, None if there is none."""
        return self._symbol

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns (arg_params, aux_params), dicts of NDArrays on the CPU."""
        raise NotImplementedError

    def init_params(self, initializer: Any = UNIFORM, arg_params: Any = None, aux_params: Any = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Initialises the parameters.

        Args:
          initializer: for those that are not given.
          arg_params, aux_params: dicts of values, or None.
          allow_missing: whether `initializer` may fill what is missing in the dicts.
          force_init: whether to do it again if it was done.
          allow_extra: whether names may be given that are no parameters.
        """
        raise NotImplementedError

    def install_monitor(self, mon: Any) -> None:
        """Lets a Monitor watch what runs."""
        raise NotImplementedError

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs a batch; in training mode if it was bound for training and `is_train` is None."""
        raise NotImplementedError

    def backward(self, out_grads: Any = None) -> None:
        """Computes gradients, given those of the outputs (None for losses)."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the outputs of the last forward."""
        raise NotImplementedError

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the gradients of the data of the last backward."""
        raise NotImplementedError

    def update(self) -> None:
        """Updates the parameters by their gradients."""
        raise NotImplementedError

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric by labels and the outputs of the last forward."""
        raise NotImplementedError

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Binds to shapes.

        Args:
          data_shapes: DataDescs, or pairs (name, shape), of the data.
          label_shapes: likewise of the labels, or None.
          for_training: whether gradients are kept.
          inputs_need_grad: whether the data get gradients.
          force_rebind: whether to bind again if it was done.
          shared_module: a module whose parameters are used.
          grad_req: "write", "add" or "null", or a list or dict by argument.
        """
        raise NotImplementedError

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd",
                       optimizer_params: Any = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Makes the optimizer.

        Args:
          kvstore: a KVStore, its type, or None; what sums gradients of several devices.
          optimizer: an Optimizer, or a name. One made by name gets `rescale_grad` 1 / batch size.
          optimizer_params: its arguments, a dict or pairs.
          force_init: whether to do it again if it was done.
        """
        raise NotImplementedError


def _metric(metric: Any) -> Any:
    from symjax import metric as metrics

    return metric if isinstance(metric, metrics.EvalMetric) else metrics.create(metric)


def _call(callbacks: Any, *args: Any) -> None:
    for callback in as_list(callbacks):
        callback(*args)
