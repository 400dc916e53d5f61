"""Optimizers that MXNet keeps apart."""

from __future__ import annotations

from typing import Any

from symjax.lowering.errors import ArgumentError
from symjax.ndarray import NDArray, zeros
from symjax.optimizer._base import Index, Optimizer, register, run

__all__ = ["GroupAdaGrad"]


@register
class GroupAdaGrad(Optimizer):
    """AdaGrad with one rate for each row: h = h + mean of the row's g^2; w - lr g / sqrt(h + eps).

    Weights are 2-d; weight decay is not supported. A row_sparse gradient changes its own rows of w and h alone.

    Args:
      eps: keeps the divisor from 0.
      **kwargs: those of `Optimizer`.
    """

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Index, weight: NDArray) -> Any:
        if len(weight.shape) != 2:
            raise ArgumentError(f"GroupAdaGrad updates 2-d weights, got shape {weight.shape} at index {index!r}")
        return zeros((weight.shape[0], 1), weight.context, dtype=weight._dtype.name, stype=weight.stype)

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        params = {**self._begin(index, weight, grad), "epsilon": self.float_stable_eps}
        if grad.stype == "default":
            params.update(self._clipping())
        if params.pop("wd") != 0:
            raise ArgumentError("Weight decay is not supported for GroupAdaGrad")
        run("_contrib_group_adagrad_update", (weight, grad, state), params)
