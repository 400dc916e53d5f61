"""`FeedForward`: MXNet's first training interface. New programs use `mx.mod.Module`."""

from __future__ import annotations

import logging
import time
import warnings
from typing import Any

import numpy as np

from symjax import io, metric
from symjax import ndarray as nd
from symjax import optimizer as opt
from symjax import symbol as sym
from symjax._interrupt import StepGuard
from symjax.callback import LogValidationMetricsCallback
from symjax.context import Context, cpu
from symjax.executor import copy_into
from symjax.executor_manager import DataParallelExecutorManager, _check_arguments, _load_data
from symjax.initializer import InitDesc, Uniform
from symjax.lowering.errors import ArgumentError
from symjax.model import (
    BatchEndParam,
    _create_kvstore,
    _initialize_kvstore,
    _update_params,
    _update_params_on_kvstore,
    load_checkpoint,
    save_checkpoint,
)

UNIFORM = Uniform(0.01)
_LOG_VALIDATION = LogValidationMetricsCallback()


class FeedForward:
    """A symbol with parameters that is trained and run; deprecated, as in MXNet.

    Args:
      symbol: the symbol, or a function of a bucket key that returns it.
      ctx: a context or a list of them; the CPU by default.
      num_epoch: the epoch before which training ends.
      epoch_size: batches in an epoch; None: until the iterator ends.
      optimizer: an Optimizer or a name.
      initializer: of parameters that are not given.
      numpy_batch_size: batch size for arrays (of fewer examples: their number).
      arg_params, aux_params: dicts of parameters.
      allow_extra_params: whether these may hold others.
      begin_epoch: the first epoch.
      **kwargs: arguments of an optimizer given by name.
    """

    def __init__(self, symbol: Any, ctx: Any = None, num_epoch: int | None = None, epoch_size: int | None = None,
                 optimizer: Any = "sgd", initializer: Any = UNIFORM, numpy_batch_size: int = 128,
                 arg_params: Any = None, aux_params: Any = None, allow_extra_params: bool = False,
                 begin_epoch: int = 0, **kwargs: Any) -> None:
        warnings.warn("mx.model.FeedForward has been deprecated. Please use mx.mod.Module instead.",
                      DeprecationWarning, stacklevel=2)
        is_symbol = isinstance(symbol, sym.Symbol)
        if not is_symbol and not callable(symbol):
            raise ArgumentError(f"symbol must be a Symbol or a function that returns one, got {type(symbol).__name__}")
        self.symbol: Any = symbol if is_symbol else None
        self.sym_gen: Any = None if is_symbol else symbol
        self.arg_params, self.aux_params, self.allow_extra_params = arg_params, aux_params, allow_extra_params
        self.ctx = [cpu()] if ctx is None else [ctx] if isinstance(ctx, Context) else list(ctx)
        self.num_epoch, self.epoch_size, self.begin_epoch = num_epoch, epoch_size, begin_epoch
        self.optimizer, self.initializer, self.kwargs = optimizer, initializer, dict(kwargs)
        self.numpy_batch_size = numpy_batch_size
        self.argument_checked = False
        self._pred_exec: Any = None
        if is_symbol:
            self._check_arguments()

    def _check_arguments(self) -> None:
        if self.argument_checked:
            return
        _check_arguments(self.symbol)
        self.argument_checked = True
        if self.allow_extra_params:
            for params, names in ((self.arg_params, self.symbol.list_arguments()),
                                  (self.aux_params, self.symbol.list_auxiliary_states())):
                for extra in set(params or ()) - set(names):
                    del params[extra]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pred_exec": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # ---- parameters

    def _init_params(self, inputs: Any, overwrite: bool = False) -> tuple[list[str], list[str], list[str]]:
        """Makes all parameters; returns the names of arguments, parameters and auxiliary states."""
        inputs = [d if isinstance(d, io.DataDesc) else io.DataDesc(*d) for d in inputs]
        shapes, _, aux_shapes = self.symbol.infer_shape(**{d.name: d.shape for d in inputs})
        types, _, aux_types = self.symbol.infer_type(**{d.name: d.dtype for d in inputs})
        args, auxs = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        given = {d.name for d in inputs}
        attrs = self.symbol.attr_dict()

        def made(names: list[str], shapes: Any, types: Any, old: Any) -> dict[str, Any]:
            found = {}
            for name, shape, dtype in zip(names, shapes, types, strict=True):
                if name in given:
                    continue
                found[name] = nd.zeros(shape, dtype=dtype)
                if old and name in old and not overwrite:
                    copy_into(found[name], old[name])
                else:
                    self.initializer(InitDesc(name, attrs.get(name)), found[name])
            return found

        self.arg_params = made(args, shapes, types, self.arg_params)
        self.aux_params = made(auxs, aux_shapes, aux_types, self.aux_params)
        return args, list(self.arg_params), auxs

    # ---- data

    def _init_iter(self, X: Any, y: Any, is_train: bool) -> Any:
        if isinstance(X, (np.ndarray, nd.NDArray)):
            return self._iter_of_arrays(X, y, is_train)
        if not isinstance(X, io.DataIter):
            raise TypeError("X must be DataIter, NDArray or numpy.ndarray")
        return X

    def _iter_of_arrays(self, X: Any, y: Any, is_train: bool) -> Any:
        if y is None:
            if is_train:
                raise ValueError("y must be specified when X is numpy.ndarray")
            y = np.zeros(X.shape[0])
        if not isinstance(y, (np.ndarray, nd.NDArray)):
            raise TypeError("y must be ndarray when X is numpy.ndarray")
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"The numbers of data points and labels not equal: {X.shape[0]} and {y.shape[0]}")
        if len(y.shape) == 2 and y.shape[1] == 1:
            y = y.reshape(-1)
        if len(y.shape) != 1:
            raise ValueError("Label must be 1D or 2D (with 2nd dimension being 1)")
        size = min(X.shape[0], self.numpy_batch_size)
        if is_train:
            return io.NDArrayIter(X, y, size, shuffle=True, last_batch_handle="roll_over")
        return io.NDArrayIter(X, y, size, shuffle=False)

    def _init_eval_iter(self, eval_data: Any) -> Any:
        if eval_data is None or isinstance(eval_data, io.DataIter):
            return eval_data
        if not isinstance(eval_data, (tuple, list)) or len(eval_data) != 2:
            raise TypeError("Eval data must be DataIter, or NDArray/numpy.ndarray/list pair (i.e. tuple/list of length "
                            "2)")
        data, label = eval_data
        if data is None:
            raise ValueError("Eval data is NONE")
        if label is None and isinstance(data, io.DataIter):
            return data
        data, label = (np.array(a) if isinstance(a, list) else a for a in (data, label))
        return self._init_iter(data, label, is_train=True)

    # ---- running

    def _predictor(self, X: Any) -> Any:
        """An executor for the batches of an iterator, with the parameters as they are."""
        shapes = {d[0]: d[1] for d in X.provide_data}
        types = {n: a.dtype for n, a in self.arg_params.items()}
        types.update({d[0]: getattr(d, "dtype", np.float32) for d in X.provide_data})
        have = None if self._pred_exec is None else self._pred_exec.arg_dict
        if have is None or any(have[n].shape != tuple(s) for n, s in shapes.items()):
            _check_arguments(self.symbol)
            shapes = {**{n: a.shape for n, a in self.arg_params.items()}, **shapes}
            self._pred_exec = self.symbol.simple_bind(self.ctx[0], grad_req="null", type_dict=types, **shapes)
        run: Any = self._pred_exec
        # MXNet: keeps the parameters of the first prediction
        run.copy_params_from(self.arg_params, self.aux_params)
        return run

    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """Predicts, without what only fills batches.

        Args:
          X: a DataIter or array.
          num_batch: how many batches at most.
          return_data: whether to return data and labels too.
          reset: whether to reset the iterator first.

        Returns:
          The output as a numpy array (a list of several); with `return_data`, (outputs, data, labels) likewise.
        """
        X = self._init_iter(X, None, is_train=False)
        if reset:
            X.reset()
        run = self._predictor(X)
        targets = [run.arg_dict[d[0]] for d in X.provide_data]
        found: tuple[list[Any], ...] = ([], [], [])
        for i, batch in enumerate(X):
            if num_batch is not None and i == num_batch:
                break
            _load_data(batch, targets)
            run.forward(is_train=False)
            n = X.batch_size - (batch.pad or 0)
            for kept, arrays in zip(found, (run.outputs, batch.data, batch.label or ()), strict=True):
                kept.append([a[0:n].asnumpy() for a in arrays])
        outputs, data, label = ([np.concatenate(parts) for parts in zip(*kept, strict=True)] for kept in found)
        outputs, data, label = (x[0] if len(x) == 1 else x for x in (outputs, data, label))
        return (outputs, data, label) if return_data else outputs

    def score(self, X: Any, eval_metric: Any = "acc", num_batch: int | None = None, batch_end_callback: Any = None,
              reset: bool = True) -> float:
        """Predicts, and returns the value of a metric; examples that only fill a batch do not count (in MXNet they do).

        Args:
          X: a DataIter (arrays count as labelled 0).
          eval_metric: an EvalMetric or a name.
          num_batch: how many batches at most.
          batch_end_callback: function of a BatchEndParam, or a list of them.
          reset: whether to reset the iterator first.
        """
        eval_metric = eval_metric if isinstance(eval_metric, metric.EvalMetric) else metric.create(eval_metric)
        X = self._init_iter(X, None, is_train=False)
        if reset:
            X.reset()
        run = self._predictor(X)
        targets = [run.arg_dict[d[0]] for d in X.provide_data]
        for i, batch in enumerate(X):
            if num_batch is not None and i == num_batch:
                break
            _load_data(batch, targets)
            run.forward(is_train=False)
            n = X.batch_size - (batch.pad or 0)
            arrays = [*batch.label, *run.outputs]
            if n < X.batch_size and all(a.shape[:1] == (X.batch_size,) for a in arrays):
                arrays = [a[0:n] for a in arrays]
            eval_metric.update(arrays[:len(batch.label)], arrays[len(batch.label):])
            _tell(batch_end_callback, BatchEndParam(0, i, eval_metric, locals()))
        return eval_metric.get()[1]

    def fit(self, X: Any, y: Any = None, eval_data: Any = None, eval_metric: Any = "acc",
            epoch_end_callback: Any = None, batch_end_callback: Any = None, kvstore: Any = "local",
            logger: Any = None, work_load_list: Any = None, monitor: Any = None,
            eval_end_callback: Any = _LOG_VALIDATION, eval_batch_end_callback: Any = None) -> None:
        """Trains; see `mx.mod.Module.fit`.

        Args:
          X: a DataIter or array.
          y: labels, if X is an array.
          eval_data: a DataIter or pair (data, labels), or None.
          eval_metric: an EvalMetric or a name.
          epoch_end_callback, batch_end_callback, eval_end_callback, eval_batch_end_callback: functions, or lists of
            them.
          kvstore: a KVStore, its type, or None.
          logger: where messages go.
          work_load_list: numbers in proportion to which devices share a batch.
          monitor: a Monitor.
        """
        data, eval_data = self._init_iter(X, y, is_train=True), self._init_eval_iter(eval_data)
        if self.sym_gen:
            self.symbol = self.sym_gen(data.default_bucket_key)
            self._check_arguments()
        args, params, auxs = self._init_params([*data.provide_data, *data.provide_label])
        eval_metric = eval_metric if isinstance(eval_metric, metric.EvalMetric) else metric.create(eval_metric)
        kvstore, on_kvstore = _create_kvstore(kvstore, len(self.ctx), self.arg_params)
        optimizer = self._made_optimizer(data.batch_size, params, kvstore, on_kvstore)
        logger = logging if logger is None else logger
        manager = DataParallelExecutorManager(
            symbol=self.symbol, sym_gen=self.sym_gen, ctx=self.ctx, train_data=data, param_names=params,
            arg_names=args, aux_names=auxs, work_load_list=work_load_list, logger=logger)
        if monitor:
            manager.install_monitor(monitor)
        manager.set_params(self.arg_params, self.aux_params)
        updater = None if on_kvstore else opt.get_updater(optimizer)
        if kvstore is not None:
            if on_kvstore:
                kvstore.set_optimizer(optimizer)
            _initialize_kvstore(kvstore, manager.param_arrays, self.arg_params, params, on_kvstore)
        if self.num_epoch is None:
            raise ArgumentError("please specify number of epochs: FeedForward(num_epoch=...)")

        def update() -> None:
            if on_kvstore:
                _update_params_on_kvstore(manager.param_arrays, manager.grad_arrays, kvstore, params)
            else:
                _update_params(manager.param_arrays, manager.grad_arrays, updater, len(self.ctx), kvstore, params)

        data.reset()
        with StepGuard() as guard:
            for epoch in range(self.begin_epoch, self.num_epoch):
                tic = time.time()
                self._train_epoch(epoch, data, manager, update, eval_metric, monitor, batch_end_callback, logger, guard)
                logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - tic)
                if epoch_end_callback or epoch + 1 == self.num_epoch:
                    manager.copy_to(self.arg_params, self.aux_params)
                _tell(epoch_end_callback, epoch, self.symbol, self.arg_params, self.aux_params)
                if eval_data:
                    self._evaluate(epoch, eval_data, manager, eval_metric, eval_batch_end_callback, eval_end_callback)

    def _made_optimizer(self, batch_size: int, params: list[str], kvstore: Any, on_kvstore: bool) -> Any:
        n = 1 if on_kvstore else len(self.ctx)
        idx2name = {i * n + k: name for i, name in enumerate(params) for k in range(n)}
        if isinstance(self.optimizer, str):
            if kvstore is not None and "dist" in kvstore.type and "_async" not in kvstore.type:
                batch_size *= kvstore.num_workers
            return opt.create(self.optimizer, rescale_grad=1.0 / batch_size, sym=self.symbol, param_idx2name=idx2name,
                              **self.kwargs)
        if not isinstance(self.optimizer, opt.Optimizer):
            raise ArgumentError(f"optimizer must be an Optimizer or a name, got {type(self.optimizer).__name__}")
        if not self.optimizer.idx2name:
            self.optimizer.idx2name = idx2name
        return self.optimizer

    def _train_epoch(self, epoch: int, data: Any, manager: Any, update: Any, eval_metric: Any, monitor: Any,
                     batch_end_callback: Any, logger: Any, guard: StepGuard) -> None:
        eval_metric.reset()
        nbatch = 0
        while True:
            ended, before = True, nbatch
            for data_batch in data:
                manager.load_data_batch(data_batch)
                if monitor is not None:
                    monitor.tic()
                with guard.step():
                    manager.forward(is_train=True)
                    manager.backward()
                    update()
                if monitor is not None:
                    monitor.toc_print()
                manager.update_metric(eval_metric, data_batch.label)
                nbatch += 1
                _tell(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
                if self.epoch_size is not None and nbatch >= self.epoch_size:
                    ended = False
                    break
            if ended:
                logger.info("Epoch[%d] Resetting Data Iterator", epoch)
                data.reset()
            if self.epoch_size is None or nbatch >= self.epoch_size:
                return
            if nbatch == before:
                raise ArgumentError(f"the data give no batch in epoch {epoch}")

    def _evaluate(self, epoch: int, eval_data: Any, manager: Any, eval_metric: Any, batch_end: Any, end: Any) -> None:
        eval_metric.reset()
        eval_data.reset()
        total = 0
        for i, eval_batch in enumerate(eval_data):
            manager.load_data_batch(eval_batch)
            manager.forward(is_train=False)
            manager.update_metric(eval_metric, eval_batch.label)
            _tell(batch_end, BatchEndParam(epoch, i, eval_metric, locals()))
            total += 1
        _tell(end, BatchEndParam(epoch, total, eval_metric, locals()))
        eval_data.reset()

    # ---- checkpoints

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Writes a checkpoint, by default of the last epoch; see `mx.model.save_checkpoint`."""
        number = self.num_epoch if epoch is None else epoch
        if number is None:
            raise ArgumentError("save: the model has no num_epoch, give epoch")
        save_checkpoint(prefix, number, self.symbol, self.arg_params, self.aux_params, remove_amp_cast)

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """Makes a model from a checkpoint; training goes on at that epoch."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx=ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)

    @staticmethod
    def create(symbol: Any, X: Any, y: Any = None, ctx: Any = None, num_epoch: int | None = None,
               epoch_size: int | None = None, optimizer: Any = "sgd", initializer: Any = UNIFORM,
               eval_data: Any = None, eval_metric: Any = "acc", epoch_end_callback: Any = None,
               batch_end_callback: Any = None, kvstore: Any = "local", logger: Any = None, work_load_list: Any = None,
               eval_end_callback: Any = _LOG_VALIDATION, eval_batch_end_callback: Any = None,
               **kwargs: Any) -> FeedForward:
        """Makes a model and trains it; see the class and `fit`."""
        model = FeedForward(symbol, ctx=ctx, num_epoch=num_epoch, epoch_size=epoch_size, optimizer=optimizer,
                            initializer=initializer, **kwargs)
        model.fit(X, y, eval_data=eval_data, eval_metric=eval_metric, epoch_end_callback=epoch_end_callback,
                  batch_end_callback=batch_end_callback, kvstore=kvstore, logger=logger, work_load_list=work_load_list,
                  eval_end_callback=eval_end_callback, eval_batch_end_callback=eval_batch_end_callback)
        return model


def _tell(callbacks: Any, *args: Any) -> None:
    """Calls a callback, or a list of them."""
    for callback in callbacks if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else ():
        callback(*args)
