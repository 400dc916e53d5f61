"""`BucketingModule`: a module for each bucket key (such as a sequence length), with the same parameters."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symjax import ndarray
from symjax import symbol as sym
from symjax.context import cpu
from symjax.model import load_params, params_path
from symjax.module.base_module import UNIFORM, BaseModule, _check_input_names, require
from symjax.module.module import Module
from symjax.name import NameManager

_CPU = cpu()
SymGen = Callable[[Any], tuple[Any, Any, Any]]


class BucketingModule(BaseModule):
    """Modules for graphs that differ from batch to batch and share all parameters, gradients and states.

    A batch says by its `bucket_key` which graph it is for. A graph is made, bound and compiled when its key comes for
    the first time.

    Args:
      sym_gen: function of a bucket key that returns (symbol, data names, label names).
      default_bucket_key: the key of the graph that is bound first; it must have all parameters.
      logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params: see `Module`.
    """

    def __init__(
        self,
        sym_gen: SymGen,
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Any = _CPU,
        work_load_list: Any = None,
        fixed_param_names: Any = None,
        state_names: Any = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:
        super().__init__(logger=logger)
        require(default_bucket_key is not None, "BucketingModule: default_bucket_key is needed")
        self._default_bucket_key, self._sym_gen = default_bucket_key, sym_gen
        self._options = {
            "logger": logger, "context": context, "work_load_list": work_load_list,
            "fixed_param_names": list(fixed_param_names or ()), "state_names": list(state_names or ()),
            "group2ctxs": group2ctxs, "compression_params": compression_params}
        symbol, data_names, label_names = self._call_sym_gen(default_bucket_key)
        for names, kind in ((data_names, "data"), (label_names, "label"), (state_names, "state"),
                            (fixed_param_names, "fixed_param")):
            _check_input_names(symbol, list(names or ()), kind, kind != "label")
        self._monitor: Any = None
        self._grad_req: Any = None
        self._params_dirty = False
        self._reset_bind()

    def _reset_bind(self) -> None:
        self.binded = False
        self._buckets: dict[Any, Module] = {}
        self._current: Module | None = None
        self._curr_bucket_key: Any = None

    @property
    def _curr_module(self) -> Module:
        require(self._current is not None, "call bind first")
        assert self._current is not None
        return self._current

    def _call_sym_gen(self, key: Any) -> tuple[Any, Any, Any]:
        with NameManager():  # the same names for every key
            return self._sym_gen(key)

    # ---- what it is

    @property
    def data_names(self) -> Any:
        return self._curr_module.data_names if self.binded else self._call_sym_gen(self._default_bucket_key)[1]

    @property
    def output_names(self) -> Any:
        if self.binded:
            return self._curr_module.output_names
        return self._call_sym_gen(self._default_bucket_key)[0].list_outputs()

    @property
    def data_shapes(self) -> Any:
        return self._bound().data_shapes

    @property
    def label_shapes(self) -> Any:
        return self._bound().label_shapes

    @property
    def output_shapes(self) -> Any:
        return self._bound().output_shapes

    @property
    def symbol(self) -> Any:
        """The symbol of the current bucket."""
        return self._bound().symbol

    def _bound(self) -> Module:
        require(self.binded, "call bind first")
        return self._curr_module

    # ---- parameters

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns (arg_params, aux_params) on the CPU."""
        require(self.params_initialized, "call init_params first")
        module = self._curr_module
        module._params_dirty = self._params_dirty
        params = module.get_params()
        self._params_dirty = False
        return params

    def init_params(self, initializer: Any = UNIFORM, arg_params: Any = None, aux_params: Any = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        if self.params_initialized and not force_init:
            return
        require(self.binded, "call bind before initializing the parameters")
        self._curr_module.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
        self._params_dirty = False
        self.params_initialized = True

    def set_params(self, arg_params: Any, aux_params: Any, allow_missing: bool = False, force_init: bool = True,
                   allow_extra: bool = False) -> None:
        """Sets parameters; see `Module.set_params`."""
        if not allow_missing:
            self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)
            return
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. set_params call ignored.", stacklevel=2)
            return
        self._curr_module.set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)
        self._params_dirty = True
        self.params_initialized = True

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the states of the current bucket; see `Module.get_states`."""
        self._check_ready()
        return self._curr_module.get_states(merge_multi_context=merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states of the current bucket; see `Module.set_states`."""
        self._check_ready()
        self._curr_module.set_states(states, value)

    # ---- binding

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Binds the default bucket; see `BaseModule.bind`. The shapes are those of its batches."""
        params = self.get_params() if self.params_initialized and self._current is not None else None
        if force_rebind:
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        require(shared_module is None, "shared_module for BucketingModule is not supported")
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        key = self._default_bucket_key
        module = self._buckets.get(key) or self._made(key)
        module.bind(data_shapes, label_shapes, for_training, inputs_need_grad, grad_req=grad_req)
        self._buckets[key] = self._current = module
        self._curr_bucket_key, self.binded = key, True
        if params is not None:
            self.set_params(*params)

    def _made(self, key: Any) -> Module:
        return Module(*self._call_sym_gen(key), **self._options)

    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Makes the module of a bucket the current one; the shapes matter when it is new."""
        require(self.binded, "call bind before switching bucket")
        module = self._buckets.get(bucket_key)
        if module is None or not module.binded:
            old = self._curr_module
            module = module or self._made(bucket_key)
            module.bind(data_shapes, label_shapes, old.for_training, old.inputs_need_grad,
                        shared_module=self._buckets[self._default_bucket_key], grad_req=self._grad_req)
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            if self.optimizer_initialized and not module.optimizer_initialized:
                module.borrow_optimizer(old)
            self._buckets[bucket_key] = module
        self._current, self._curr_bucket_key = module, bucket_key

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd",
                       optimizer_params: Any = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Makes the optimizer that all buckets use; see `BaseModule.init_optimizer`."""
        self._check_ready()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        module = self._curr_module
        module._params_dirty = self._params_dirty
        module.init_optimizer(kvstore, optimizer, optimizer_params, force_init=force_init)
        for other in self._buckets.values():
            if other is not module and other.binded:
                other.borrow_optimizer(module)
        self.optimizer_initialized = True

    # ---- running

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Binds the bucket of the batch that comes next, and prepares it (`Module.prepare`)."""
        self._check_ready()
        current = self._curr_bucket_key
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._curr_module.prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
        self.switch_bucket(current, None, None)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs a batch on the module of its bucket."""
        self._check_ready()
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._curr_module.forward(data_batch, is_train=is_train)

    def backward(self, out_grads: Any = None) -> None:
        self._check_ready()
        self._curr_module.backward(out_grads=out_grads)

    def update(self) -> None:
        """Updates the parameters by the gradients of the current bucket."""
        self._check_optimizer()
        self._params_dirty = True
        self._curr_module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._check_ready()
        return self._curr_module.get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._check_ready()
        require(self.inputs_need_grad, "bind with inputs_need_grad=True to get gradients of the data")
        return self._curr_module.get_input_grads(merge_multi_context=merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        self._check_ready()
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def _update_metric_without(self, pad: int, eval_metric: Any, labels: Any) -> None:
        self._curr_module._update_metric_without(pad, eval_metric, labels)

    def install_monitor(self, mon: Any) -> None:
        require(self.binded, "call bind first")
        self._monitor = mon
        for module in self._buckets.values():
            if module.binded:
                module.install_monitor(mon)

    # ---- checkpoints

    def save_checkpoint(self, prefix: str, epoch: int, remove_amp_cast: bool = False) -> None:
        """Writes `<prefix>-<key>-symbol.json` of each bucket, their keys, and `<prefix>-<epoch>.params` last.

        Raises:
          AssertionError: there are no buckets, or a key is no integer.
        """
        require(self._buckets, "Empty BucketingModule cannot be saved")
        require(all(isinstance(k, (int, np.integer)) for k in self._buckets),
                "BucketingModule.save_checkpoint: bucket keys that are no integers cannot be saved")
        for key in self._buckets:
            symbol = self._call_sym_gen(key)[0]
            symbol.save(f"{prefix}-{key}-symbol.json", remove_amp_cast=remove_amp_cast)
        ndarray.save(f"{prefix}.buckets", ndarray.array(list(self._buckets), dtype=np.int32))
        self.save_params(params_path(prefix, epoch))

    @staticmethod
    def load(prefix: str, epoch: int, sym_gen: SymGen | None = None, default_bucket_key: Any = None,
             **kwargs: Any) -> BucketingModule:
        """Makes a module from a checkpoint; bind it before use.

        Args:
          prefix, epoch: see `save_checkpoint`.
          sym_gen, default_bucket_key: as for the class; needed.
          **kwargs: its other arguments.
        """
        require(sym_gen is not None, "sym_gen is required for loading BucketingModule")
        require(default_bucket_key is not None, "default_bucket_key is required for loading BucketingModule")
        assert sym_gen is not None
        keys: Any = ndarray.load(f"{prefix}.buckets")
        symbols = {k: sym.load(f"{prefix}-{k}-symbol.json") for k in keys[0].asnumpy().astype("int32").tolist()}
        return BucketingModule._of(symbols, sym_gen, default_bucket_key, load_params(prefix, epoch), kwargs)

    @staticmethod
    def load_dict(sym_dict: Any = None, sym_gen: SymGen | None = None, default_bucket_key: Any = None,
                  arg_params: Any = None, aux_params: Any = None, **kwargs: Any) -> BucketingModule:
        """Makes a module from symbols by bucket key, and parameters; see `load`."""
        for name, value in (("sym_dict", sym_dict), ("arg_params", arg_params), ("aux_params", aux_params),
                            ("default_bucket_key", default_bucket_key), ("sym_gen", sym_gen)):
            require(value is not None, f"{name} needs to be provided for BucketingModule.load_dict")
        assert sym_gen is not None
        return BucketingModule._of(sym_dict, sym_gen, default_bucket_key, (arg_params, aux_params), kwargs)

    @staticmethod
    def _of(symbols: dict[Any, Any], sym_gen: SymGen, default: Any, params: tuple[Any, Any],
            kwargs: dict[str, Any]) -> BucketingModule:
        found = BucketingModule(sym_gen, default, **kwargs)
        require(default in symbols, f"there is no bucket {default!r} among {list(symbols)}")
        for key, symbol in symbols.items():
            _, data_names, label_names = found._call_sym_gen(key)
            found._buckets[key] = Module(symbol, data_names, label_names, **found._options)
        first = found._current = found._buckets[default]
        first._arg_params, first._aux_params = params
        first.params_initialized = found.params_initialized = True
        return found
