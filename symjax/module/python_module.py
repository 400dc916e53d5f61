"""Modules written in Python: `PythonModule`, a base without parameters, and `PythonLossModule`, a loss."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from symjax import ndarray
from symjax.module.base_module import UNIFORM, BaseModule, require


class PythonModule(BaseModule):
    """Base of modules without parameters that compute in Python; a subclass defines what runs.

    That is `forward`, `backward`, `get_outputs`, `get_input_grads` and `_compute_output_shapes`.

    Args:
      data_names, label_names, output_names: lists of names; labels may be None.
      logger: where messages go.
    """

    def __init__(self, data_names: Any, label_names: Any, output_names: Any, logger: Any = logging) -> None:
        super().__init__(logger=logger)
        self._data_names = list(data_names) if isinstance(data_names, tuple) else data_names
        self._label_names = list(label_names) if isinstance(label_names, tuple) else label_names
        self._output_names = output_names
        self._data_shapes: Any = None
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    @property
    def data_names(self) -> Any:
        return self._data_names

    @property
    def output_names(self) -> Any:
        return self._output_names

    @property
    def data_shapes(self) -> Any:
        return self._data_shapes

    @property
    def label_shapes(self) -> Any:
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        return self._output_shapes

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns two empty dicts."""
        return {}, {}

    def init_params(self, initializer: Any = UNIFORM, arg_params: Any = None, aux_params: Any = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Does nothing but note that it was called: there are no parameters."""
        self.params_initialized = True

    def update(self) -> None:
        """Does nothing: there are no parameters."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric by the outputs, if the module takes labels."""
        if self._label_shapes is None:
            return
        if pre_sliced:
            raise RuntimeError("PythonModule does not support presliced labels")
        eval_metric.update(labels, self.get_outputs())

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Notes the shapes; see `BaseModule.bind`. Only grad_req "write" is supported."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        require(grad_req == "write", "Python module only support write gradient")
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        names = [d[0] for d in data_shapes]
        require(names == list(self._data_names), f"data_shapes are of {names}, expected {self._data_names}")
        self._data_shapes, self._label_shapes = data_shapes, label_shapes
        if label_shapes is not None:
            names = [d[0] for d in label_shapes]
            require(self._label_names is not None and names == list(self._label_names),
                    f"label_shapes are of {names}, expected {self._label_names}")
        self._output_shapes = self._compute_output_shapes()
        self.binded = True

    def _compute_output_shapes(self) -> Any:
        """Returns pairs (name, shape) of the outputs from the shapes that are bound."""
        raise NotImplementedError

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd",
                       optimizer_params: Any = (("learning_rate", 0.01),), force_init: bool = False) -> None:
        """Does nothing but note that it was called: there are no parameters."""
        self.optimizer_initialized = True


class PythonLossModule(PythonModule):
    """A loss at the end of a SequentialModule: it hands its input on, and computes the gradient in Python.

    Args:
      name: the output is called `<name>_output`.
      data_names, label_names: one name each.
      logger: where messages go.
      grad_func: function of (scores, labels), NDArrays, that returns the gradient of the scores, an NDArray or numpy
        array. A subclass may define `_backward_impl` instead.
    """

    def __init__(self, name: str = "pyloss", data_names: Any = ("data",), label_names: Any = ("softmax_label",),
                 logger: Any = logging, grad_func: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(data_names, label_names, [f"{name}_output"], logger=logger)
        self._name = name
        require(len(data_names) == len(label_names) == 1, "PythonLossModule takes one input and one label")
        require(grad_func is None or callable(grad_func), "grad_func must be a function of (scores, labels)")
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: Any = None
        self._grad_func = grad_func

    def _compute_output_shapes(self) -> Any:
        return [(f"{self._name}_output", self._data_shapes[0][1])]

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the scores that came in."""
        require(merge_multi_context is True, "PythonLossModule runs on one device: merge_multi_context must be True")
        return [self._scores]

    def backward(self, out_grads: Any = None) -> None:
        require(out_grads is None, "For a loss module, out_grads should be None")
        require(self.for_training, "re-bind with for_training=True to run backward")
        self._backward_impl()

    def _backward_impl(self) -> None:
        """Sets `_scores_grad` from `_scores` and `_labels`."""
        if self._grad_func is None:
            raise NotImplementedError("PythonLossModule: give grad_func, or define _backward_impl in a subclass")
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, ndarray.NDArray) else ndarray.array(grad)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the gradient of the scores."""
        require(merge_multi_context is True, "PythonLossModule runs on one device: merge_multi_context must be True")
        return [self._scores_grad]

    def install_monitor(self, mon: Any) -> None:
        raise NotImplementedError("PythonLossModule has no graph that a monitor could watch")
