"""Executors on several devices as `FeedForward` uses them (MXNet's `mx.executor_manager`)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from symjax._data_parallel import average, bind_sharing, cut, load_general
from symjax._data_parallel import split_input_slice as _split_input_slice
from symjax.context import cpu
from symjax.executor import Executor, copy_into
from symjax.io import DataDesc
from symjax.lowering.errors import ArgumentError
from symjax.symbol.symbol import Symbol

__all__ = ["DataDesc", "DataParallelExecutorGroup", "DataParallelExecutorManager", "cpu"]


def _check_arguments(symbol: Symbol) -> None:
    """Raises ValueError if two arguments, or two auxiliary states, have one name."""
    for names, what in ((symbol.list_arguments(), "argument"), (symbol.list_auxiliary_states(), "auxiliary param")):
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f'Find duplicated {what} name "{twice[0]}", please make the weight name non-duplicated '
                             f"(using name arguments), {what}s are {names}")


def _load_data(batch: Any, targets: Sequence[Any]) -> None:
    """Writes the data of a batch to arrays, or to the places of its parts."""
    load_general(batch.data, targets, [0] * len(targets), [f"data {i}" for i in range(len(targets))])


def _load_label(batch: Any, targets: Sequence[Any]) -> None:
    """Writes the labels of a batch likewise."""
    load_general(batch.label, targets, [0] * len(targets), [f"label {i}" for i in range(len(targets))])


class DataParallelExecutorGroup:
    """Executors of one symbol, one for each device.

    Args:
      sym: the symbol.
      arg_names, param_names: its arguments, and those that are parameters.
      ctx: the devices.
      slices: the examples of each device.
      train_data: what provides the descriptions of data and labels: an iterator or a batch.
      shared_group: the group whose parameters are used, None for new ones.
    """

    def __init__(self, sym: Symbol, arg_names: Sequence[str], param_names: Collection[str], ctx: Sequence[Any],
                 slices: Sequence[slice], train_data: Any,
                 shared_group: DataParallelExecutorGroup | None = None) -> None:
        _check_arguments(sym)
        self.slices = slices
        self.data_names = [d[0] for d in train_data.provide_data]
        self.label_names = [d[0] for d in train_data.provide_label]
        self.aux_names = sym.list_auxiliary_states()
        self.param_idx = [i for i, n in enumerate(arg_names) if n in param_names]
        self.param_names = [arg_names[i] for i in self.param_idx]
        inputs = [*train_data.provide_data, *train_data.provide_label]
        types = {d[0]: getattr(d, "dtype", "float32") for d in inputs}
        reqs = {n: "null" if n in types else "write" for n in arg_names}
        self.train_execs: list[Executor] = []
        for i, (context, part) in enumerate(zip(ctx, slices, strict=True)):
            shapes = {d[0]: (part.stop - part.start, *d[1][1:]) for d in inputs}
            shared = shared_group.train_execs[i] if shared_group else None
            self.train_execs.append(bind_sharing(sym, context, reqs, types, shapes, self.param_names, shared))
        execs = self.train_execs
        dicts = [e.arg_dict for e in execs]
        self.data_arrays, self.label_arrays = (
            [[(part, d[n]) for part, d in zip(slices, dicts, strict=True)] for n in names]
            for names in (self.data_names, self.label_names))
        self.param_arrays = [[e.arg_arrays[i] for e in execs] for i in self.param_idx]
        self.grad_arrays = [[e.grad_arrays[i] for e in execs] for i in self.param_idx]
        self.aux_arrays = [[e.aux_arrays[i] for e in execs] for i in range(len(self.aux_names))]

    def load_data_batch(self, data_batch: Any) -> None:
        """Writes a batch to the executors."""
        _load_data(data_batch, self.data_arrays)
        if data_batch.label:
            _load_label(data_batch, self.label_arrays)

    def forward(self, is_train: bool = False) -> None:
        """Runs all executors forward."""
        for e in self.train_execs:
            e.forward(is_train=is_train)

    def backward(self) -> None:
        """Runs all executors backward."""
        for e in self.train_execs:
            e.backward()

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric by labels of the batch (with `pre_sliced`: lists of them by device) and the outputs."""
        for i, (e, part) in enumerate(zip(self.train_execs, self.slices, strict=True)):
            metric.update(labels[i] if pre_sliced else [cut(label, part, 0) for label in labels], e.outputs)


class DataParallelExecutorManager:
    """Executors of one symbol, or of a symbol for each bucket, on several devices.

    Args:
      symbol: the symbol (with `sym_gen`: that of the default bucket).
      ctx: list of contexts.
      train_data: a DataIter.
      arg_names, param_names, aux_names: names of the arguments, the parameters, the auxiliary states.
      work_load_list: numbers in proportion to which devices share a batch.
      logger: where messages go.
      sym_gen: function of a bucket key that returns a symbol.

    Raises:
      AssertionError: `work_load_list` has another length than `ctx`.
    """

    def __init__(self, symbol: Symbol, ctx: Sequence[Any], train_data: Any, arg_names: Sequence[str],
                 param_names: Collection[str], aux_names: Sequence[str], work_load_list: Any = None,
                 logger: Any = None, sym_gen: Any = None) -> None:
        (logging if logger is None else logger).info("Start training with %s", str(ctx))
        loads = [1] * len(ctx) if work_load_list is None else work_load_list
        if not isinstance(loads, list) or len(loads) != len(ctx):
            raise ArgumentError("Invalid settings for work load: work_load_list needs a number for each context")
        self.slices = _split_input_slice(train_data.batch_size, loads)
        self.arg_names, self.param_names, self.aux_names = arg_names, param_names, aux_names
        self.ctx, self.symbol, self.sym_gen = ctx, symbol, sym_gen
        self.execgrp = DataParallelExecutorGroup(symbol, arg_names, param_names, ctx, self.slices, train_data)
        self.curr_execgrp = self.execgrp
        self.execgrp_bucket = {} if sym_gen is None else {train_data.default_bucket_key: self.execgrp}

    def install_monitor(self, monitor: Any) -> None:
        """Lets a Monitor watch all executors."""
        if self.sym_gen is not None:
            raise NotImplementedError("Monitoring is not implemented for bucketing")
        for e in self.execgrp.train_execs:
            monitor.install(e)

    def set_params(self, arg_params: Any, aux_params: Any) -> None:
        """Copies parameters and auxiliary states to all devices."""
        for e in self.execgrp.train_execs:
            e.copy_params_from(arg_params, aux_params)

    def copy_to(self, arg_params: Any, aux_params: Any) -> None:
        """Writes the parameters and auxiliary states, averaged over the devices, to arrays by name."""
        for names, blocks, found in ((self.execgrp.param_names, self.param_arrays, arg_params),
                                     (self.aux_names, self.aux_arrays, aux_params)):
            for name, block in zip(names, blocks, strict=True):
                copy_into(found[name], average(block))

    @property
    def param_arrays(self) -> list[list[Any]]:
        """For each parameter, the arrays of all devices."""
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self) -> list[list[Any]]:
        """For each parameter, the gradients of all devices (those of the current bucket)."""
        return self.curr_execgrp.grad_arrays if self.sym_gen else self.execgrp.grad_arrays

    @property
    def aux_arrays(self) -> list[list[Any]]:
        """For each auxiliary state, the arrays of all devices."""
        return self.execgrp.aux_arrays

    def load_data_batch(self, data_batch: Any) -> None:
        """Writes a batch to the executors of its bucket, which are bound when it comes for the first time."""
        if self.sym_gen is not None:
            key = data_batch.bucket_key
            if key not in self.execgrp_bucket:
                symbol = self.sym_gen(key)
                self.execgrp_bucket[key] = DataParallelExecutorGroup(
                    symbol, symbol.list_arguments(), self.param_names, self.ctx, self.slices, data_batch, self.execgrp)
            self.curr_execgrp = self.execgrp_bucket[key]
        self.curr_execgrp.load_data_batch(data_batch)

    def forward(self, is_train: bool = False) -> None:
        """Runs the batch forward."""
        self.curr_execgrp.forward(is_train=is_train)

    def backward(self) -> None:
        """Runs the batch backward."""
        self.curr_execgrp.backward()

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric by the outputs of the batch."""
        self.curr_execgrp.update_metric(metric, labels, pre_sliced)
