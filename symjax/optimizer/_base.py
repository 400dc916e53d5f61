"""The base class of optimizers: hyper-parameters, multipliers, and the count of updates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from symjax._run import join_pass
from symjax.lowering.errors import ArgumentError, did_you_mean
from symjax.lr_scheduler import LRScheduler
from symjax.ndarray import NDArray, zeros
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.elementwise import op_named
from symjax.ndarray.storage import NDArrayBase
from symjax.util import is_np_array

Index = Any
"""What tells weights apart: an int or a str."""

T = TypeVar("T", bound=type)


class Optimizer:
    """Base class of optimizers: `update` changes a weight in place by its gradient.

    The learning rate of a weight is `lr * lr_mult`, its decay `wd * wd_mult`. A multiplier is looked up in
    `param_dict` by the weight's index, then by index in what `set_lr_mult` or `set_wd_mult` were given, then by the
    name that `param_idx2name` has for the index; 1 if there is none. `wd_mult` is 0 for every name of
    `param_idx2name` that ends in neither `_weight` nor `_gamma`, unless the symbol or `set_wd_mult` says otherwise.

    Args:
      rescale_grad: factor of the gradient, applied first (often 1 / batch size).
      param_idx2name: {index: name of the parameter}.
      wd: weight decay.
      clip_gradient: bound of the rescaled gradient's magnitude; None: none.
      learning_rate: the rate; it replaces the `base_lr` of `lr_scheduler`. 0.01 if both are None.
      lr_scheduler: a callable `(number of updates) -> rate`.
      sym: the symbol that is trained; its variables' `lr_mult` and `wd_mult` count.
      begin_num_update: the number of updates that were done before.
      multi_precision: update float16 (and bfloat16) weights in a float32 copy.
      param_dict: {index: object with `lr_mult` and `wd_mult`}.
    """

    opt_registry: ClassVar[dict[str, type[Any]]] = {}
    draws_noise: ClassVar[bool] = False
    """Whether an update is random: stores of several processes then take over worker 0's result."""

    def __init__(self, rescale_grad: float = 1.0, param_idx2name: Mapping[Any, str] | None = None, wd: float = 0.0,
                 clip_gradient: float | None = None, learning_rate: float | None = None,
                 lr_scheduler: LRScheduler | None = None, sym: Any = None, begin_num_update: int = 0,
                 multi_precision: bool = False, param_dict: Mapping[Any, Any] | None = None) -> None:
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        self.lr: Any = 0.01 if lr_scheduler is None and learning_rate is None else learning_rate
        if lr_scheduler is not None and learning_rate is not None and lr_scheduler.base_lr != learning_rate:
            # MXNet: so does the default rate of Adam and others that have one.
            warnings.warn(f"learning rate {lr_scheduler.base_lr} of ``lr_scheduler`` has been overwritten by "
                          f"``learning_rate`` {learning_rate} of the optimizer", UserWarning, stacklevel=3)
            lr_scheduler.base_lr = learning_rate
        self.wd = wd
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        # One count for each device: weights that are copies of each other share their index.
        self._all_index_update_counts: dict[int, dict[Index, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.aggregate_num = 0
        if param_idx2name is not None and not isinstance(param_idx2name, dict):
            raise ArgumentError(f"param_idx2name should be a dict of param indexes to names, got "
                                f"{type(param_idx2name).__name__}")
        self.idx2name = dict(param_idx2name or {})
        self.sym_info: tuple[Any, ...] = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict: Any = param_dict or {}
        self.allow_np_array = is_np_array()
        self.set_lr_mult({})
        self.set_wd_mult({})

    # ---- by name

    @staticmethod
    def register(klass: T) -> T:
        """Class decorator: makes an optimizer known to `create` by its name in lower case."""
        if not isinstance(klass, type):
            raise ArgumentError(f"only a class can be registered as an optimizer, got {klass!r}")
        name = klass.__name__.lower()
        old = Optimizer.opt_registry.get(name)
        if old is not None:
            warnings.warn(f"WARNING: New optimizer {klass.__module__}.{klass.__name__} is overriding existing "
                          f"optimizer {old.__module__}.{old.__name__}", UserWarning, stacklevel=2)
        Optimizer.opt_registry[name] = klass
        return klass

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Any:
        """Returns a new optimizer.

        Args:
          name: its class name in any case, e.g. "sgd".
          **kwargs: its arguments.

        Raises:
          ValueError: there is none of that name.
        """
        klass = Optimizer.opt_registry.get(name.lower())
        if klass is None:
            raise ValueError(f"Cannot find optimizer {name}{did_you_mean(name.lower(), Optimizer.opt_registry)}")
        return klass(**kwargs)

    # ---- what subclasses define

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Returns what the optimizer remembers of a weight: None, an NDArray, or a tuple of them."""

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Updates a weight and its state in place.

        Args:
          index: the weight's index.
          weight: the weight.
          grad: its gradient, of the same shape and dtype. Of a row_sparse one, SGD, Adam, AdaGrad, Ftrl and
            GroupAdaGrad touch its own rows, as they say; for other optimizers it is made dense, with a warning.
          state: what `create_state` returned.
        """
        raise NotImplementedError

    # ---- mixed precision

    def create_state_multi_precision(self, index: Index, weight: NDArray) -> Any:
        """Returns the state; with `multi_precision`, for a half-precision weight, (float32 copy, its state)."""
        if self._is_mixed(weight):
            copy: Any = weight.astype(np.float32)
            return copy, self.create_state(index, copy)
        self._warn_of_half(weight)
        return self.create_state(index, weight)

    def update_multi_precision(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Updates a weight by way of its float32 copy, if it has one; see `update`."""
        if not self._is_mixed(weight):
            self.update(index, weight, grad, state)
            return
        copy, inner = state
        wide: Any = grad.astype(np.float32)
        self.update(index, copy, wide, inner)
        if weight.stype == "default":
            invoke(op_named("Cast"), (copy,), {"dtype": weight._dtype.name}, weight)
        else:
            copy.astype(weight._dtype.name).copyto(weight)

    def _is_mixed(self, weight: NDArray) -> bool:
        """Whether the weight has a float32 copy in its state."""
        return self.multi_precision and weight._dtype.name in ("float16", "bfloat16")

    def _warn_of_half(self, weight: NDArray) -> None:
        if weight._dtype.name == "float16":
            warnings.warn("Accumulating with float16 in optimizer can lead to poor accuracy or slow convergence. "
                          f"Consider using multi_precision=True option of {type(self).__name__}", stacklevel=3)

    # ---- hyper-parameters

    @property
    def learning_rate(self) -> float:
        """The present learning rate, without multipliers."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Sets the learning rate.

        Raises:
          UserWarning: there is a scheduler, which decides the rate.
        """
        if self.lr_scheduler is not None:
            raise UserWarning("LRScheduler of the optimizer has already been defined. Note that set_learning_rate can "
                              "mutate the value of the learning rate of the optimizer only when the LRScheduler of the "
                              "optimizer is undefined.")
        self.lr = lr

    def set_lr_scale(self, args_lrscale: Any) -> None:
        """Deprecated, and an error as in MXNet: use `set_lr_mult`."""
        raise DeprecationWarning("set_lr_scale is deprecated; use set_lr_mult")

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Sets multipliers of the learning rate by name or index; all others go back to those of the symbol."""
        self.lr_mult = {**self._of_symbol("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Sets multipliers of the weight decay by name or index; all others go back to their defaults."""
        self.wd_mult = {n: 0.0 for n in self.idx2name.values() if not n.endswith(("_weight", "_gamma"))}
        self.wd_mult.update(self._of_symbol("__wd_mult__"))
        self.wd_mult.update(args_wd_mult)

    def _of_symbol(self, key: str) -> dict[Any, float]:
        if not self.sym_info:
            return {}
        attrs, names = self.sym_info
        return {n: float(attrs[n][key]) for n in names if key in attrs.get(n, ())}

    def _set_current_context(self, device_id: int) -> None:
        """Chooses the device whose updates are counted."""
        counts = self._all_index_update_counts.get(device_id)
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {}) if counts is None else counts

    def _update_count(self, index: Any) -> None:
        """Counts an update of a weight, or of several."""
        counts = self._index_update_count
        for i in index if isinstance(index, (list, tuple)) else (index,):
            n = counts[i] = counts.get(i, self.begin_num_update) + 1
            if n > self.num_update:
                self.num_update = n

    def _multiplier(self, index: Index, kind: str, given: Mapping[Any, float]) -> float:
        if index in self.param_dict:
            return getattr(self.param_dict[index], kind)
        if index in given:
            return given[index]
        name = self.idx2name.get(index)
        return 1.0 if name is None else given.get(name, 1.0)

    def _get_lr(self, index: Index) -> float:
        """Returns the learning rate of a weight."""
        lr = self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)
        return lr * self._multiplier(index, "lr_mult", self.lr_mult)

    def _get_wd(self, index: Index) -> float:
        """Returns the weight decay of a weight."""
        return self.wd * self._multiplier(index, "wd_mult", self.wd_mult)

    def _get_lrs(self, indices: Sequence[Index]) -> list[float]:
        return [self._get_lr(i) for i in indices]

    def _get_wds(self, indices: Sequence[Index]) -> list[float]:
        return [self._get_wd(i) for i in indices]

    # ---- for the optimizers of this package

    def _check(self, index: Index, weight: Any, grad: Any) -> None:
        """Refuses what is no NDArray."""
        if not (isinstance(weight, NDArrayBase) and isinstance(grad, NDArrayBase)):
            what, x = ("grad", grad) if isinstance(weight, NDArrayBase) else ("weight", weight)
            raise ArgumentError(f"{type(self).__name__}: {what} of index {index!r} must be an NDArray, got "
                                f"{type(x).__name__}")

    def _begin(self, index: Index, weight: Any, grad: Any) -> dict[str, Any]:
        """Counts an update and returns the parameters that most update ops have."""
        self._check(index, weight, grad)
        self._update_count(index)
        return self._common(self._get_lr(index), self._get_wd(index))

    def _common(self, lr: float, wd: float) -> dict[str, Any]:
        params = {"lr": lr, "wd": wd, "rescale_grad": self.rescale_grad}
        if self.clip_gradient:  # MXNet: 0 does not clip
            params["clip_gradient"] = self.clip_gradient
        return params

    def _clipping(self) -> dict[str, Any]:
        """As in the optimizers that MXNet writes in Python, where a bound of 0 clips everything."""
        return {} if self.clip_gradient is None else {"clip_gradient": self.clip_gradient}

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "param_dict"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        self.param_dict = {}  # whoever restores an optimizer gives it its parameters
        for counts in self._all_index_update_counts.values():
            if counts == self._index_update_count:
                self._index_update_count = counts


def zeros_like(weight: NDArray, stype: str = "default") -> NDArray:
    """Zeros of a weight's shape, dtype and device. Without a stored row if `stype` is "row_sparse"."""
    return zeros(weight.shape, weight.context, dtype=weight._dtype.name, stype=stype)


def run(name: str, arrays: Sequence[NDArray], params: Mapping[str, Any]) -> None:
    """Calls an update op on (weight, gradient, states…) in place."""
    op = op_named(name)
    if not join_pass(op, arrays, params):
        invoke(op, arrays, params, arrays[0])


register = Optimizer.register
create = Optimizer.create_optimizer
__all__ = ["Optimizer", "create", "register"]
