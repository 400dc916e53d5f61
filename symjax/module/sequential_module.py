"""`SequentialModule`: modules in a row, each fed with the outputs of the one before."""

from __future__ import annotations

import copy
import logging
from typing import Any, Self

from symjax.module.base_module import UNIFORM, BaseModule, require


class SequentialModule(BaseModule):
    """Modules in a row; add them with `add`.

    Args:
      logger: where messages go.
    """

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Any = logging) -> None:
        super().__init__(logger=logger)
        self._modules: list[Any] = []
        self._metas: list[dict[str, Any]] = []
        self._label_shapes: Any = None
        self._meta_keys = {self.META_TAKE_LABELS, self.META_AUTO_WIRING}

    def add(self, module: BaseModule, **kwargs: Any) -> Self:
        """Adds a module, and returns this one.

        Args:
          module: the module.
          **kwargs: `take_labels=True`: it gets the labels. `auto_wiring=True`: its inputs are named as it wants,
            whatever the outputs before are called.
        """
        for key in kwargs:
            require(key in self._meta_keys, f'Unknown meta "{key}", a typo? There are {sorted(self._meta_keys)}')
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    def _takes_labels(self, i: int) -> bool:
        return bool(self._metas[i].get(self.META_TAKE_LABELS))

    @property
    def data_names(self) -> Any:
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> Any:
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> Any:
        require(self.binded, "call bind first")
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> Any:
        require(self.binded, "call bind first")
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        require(self.binded, "call bind first")
        return self._modules[-1].output_shapes

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the (arg_params, aux_params) of all modules in one."""
        self._check_ready()
        args: dict[str, Any] = {}
        auxs: dict[str, Any] = {}
        for module in self._modules:
            arg, aux = module.get_params()
            args.update(arg)
            auxs.update(aux)
        return args, auxs

    def init_params(self, initializer: Any = UNIFORM, arg_params: Any = None, aux_params: Any = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        if self.params_initialized and not force_init:
            return
        require(self.binded, "call bind before initializing the parameters")
        owners: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for i, module in enumerate(self._modules):
            module.init_params(initializer=initializer, arg_params=arg_params, aux_params=aux_params,
                               allow_missing=allow_missing, force_init=force_init, allow_extra=allow_extra)
            for known, params in zip(owners, module.get_params(), strict=True):
                for name in params:
                    first = known.setdefault(name, i)
                    require(first == i, f'Duplicated parameter names: name "{name}" in layer {i} ({type(module)}) is '
                            f"already used in layer {first} ({type(self._modules[first])}).")
        self.params_initialized = True

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Binds all modules, each to the output shapes of the one before; see `BaseModule.bind`."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        require(for_training or not inputs_need_grad, "inputs_need_grad=True needs for_training=True")
        require(shared_module is None, "Shared module is not supported")
        require(self._modules, "Attempting to bind an empty SequentialModule")
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        shapes = data_shapes
        for i, module in enumerate(self._modules):
            if self._metas[i].get(self.META_AUTO_WIRING):
                names = module.data_names
                require(len(names) == len(shapes), f"layer {i} takes {len(names)} inputs, and gets {len(shapes)}")
                shapes = [(name, d[1]) for name, d in zip(names, shapes, strict=True)]
            module.bind(data_shapes=shapes, label_shapes=label_shapes if self._takes_labels(i) else None,
                        for_training=for_training, inputs_need_grad=bool(inputs_need_grad or (for_training and i > 0)),
                        force_rebind=force_rebind, shared_module=None, grad_req=grad_req)
            shapes = module.output_shapes
        self.binded = True
        self._label_shapes = label_shapes if any(map(self._takes_labels, range(len(self._modules)))) else None

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd",
                       optimizer_params: Any = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Makes an optimizer for each module; see `BaseModule.init_optimizer`."""
        self._check_ready()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        for module in self._modules:
            module.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params,
                                  force_init=force_init)
        self.optimizer_initialized = True

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Runs a batch through all modules."""
        self._check_ready()
        batch = copy.copy(data_batch)
        for i, module in enumerate(self._modules):
            if i:
                before = self._modules[i - 1]
                batch.data = before.get_outputs()
                if hasattr(batch, "provide_data"):
                    names = module.data_names if self._metas[i].get(self.META_AUTO_WIRING) else before.output_names
                    batch.provide_data = [(n, x.shape) for n, x in zip(names, batch.data, strict=True)]
            module.forward(batch, is_train=is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Runs backward through all modules, from the last one."""
        self._check_ready()
        for i, module in reversed(list(enumerate(self._modules))):
            module.backward(out_grads=out_grads)
            if i:
                out_grads = module.get_input_grads()

    def update(self) -> None:
        """Updates the parameters of all modules."""
        self._check_optimizer()
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._check_ready()
        return self._modules[-1].get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._check_ready()
        require(self.inputs_need_grad, "bind with inputs_need_grad=True to get gradients of the data")
        return self._modules[0].get_input_grads(merge_multi_context=merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric by the modules that take labels."""
        self._check_ready()
        for i, module in enumerate(self._modules):
            if self._takes_labels(i):
                module.update_metric(eval_metric, labels, pre_sliced)

    def _update_metric_without(self, pad: int, eval_metric: Any, labels: Any) -> None:
        for i, module in enumerate(self._modules):
            if self._takes_labels(i):
                module._update_metric_without(pad, eval_metric, labels)

    def install_monitor(self, mon: Any) -> None:
        require(self.binded, "call bind first")
        for module in self._modules:
            module.install_monitor(mon)
