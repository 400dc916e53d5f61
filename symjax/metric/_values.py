"""Metrics of real numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from symjax.metric import _sums
from symjax.metric._base import EvalMetric, alias, check_label_shapes, on_device, register
from symjax.metric._classes import pairs
from symjax.ndarray import NDArray

Names = Sequence[str] | None


class _Difference(EvalMetric):
    """A mean over each pair, and the mean of those."""

    _step: Any = None

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels and predictions of one shape; those with one axis count as columns.

        Raises:
          ValueError: the shapes do not go together.
        """
        labels, preds = pairs(labels, preds)
        for label, pred in zip(labels, preds, strict=True):
            a, b = ((*x.shape, 1) if x.ndim == 1 else tuple(x.shape) for x in (label, pred))
            try:
                numpy.broadcast_shapes(a, b)
            except ValueError:
                raise ValueError(f"operands could not be broadcast together with shapes {_text(a)} {_text(b)} "
                                 f"(metric {self.name})") from None
        self._accumulate(type(self)._step, None, 1, labels, preds, len(preds))


def _text(shape: tuple[int, ...]) -> str:
    return str(shape).replace(" ", "")


@register
class MAE(_Difference):
    """Mean absolute error: the mean over batches of mean |label - pred|.

    Args:
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    _step = staticmethod(_sums.mean_absolute)

    def __init__(self, name: str = "mae", output_names: Names = None, label_names: Names = None) -> None:
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)


@register
class MSE(_Difference):
    """Mean squared error: the mean over batches of mean (label - pred)².

    Args:
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    _step = staticmethod(_sums.mean_square)

    def __init__(self, name: str = "mse", output_names: Names = None, label_names: Names = None) -> None:
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)


@register
class RMSE(_Difference):
    """Root mean squared error: the mean over batches (MXNet: not the root of a mean) of √(mean (label - pred)²).

    Args:
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    _step = staticmethod(_sums.root_mean_square)

    def __init__(self, name: str = "rmse", output_names: Names = None, label_names: Names = None) -> None:
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)


@register
@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation of labels and predictions.

    Args:
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
      average: "macro": the mean over pairs; "micro": of everything since `reset`.
    """

    def __init__(self, name: str = "pearsonr", output_names: Names = None, label_names: Names = None,
                 average: str = "macro") -> None:
        self.average = average
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels and predictions of one shape.

        Raises:
          ValueError: the shapes differ.
        """
        labels, preds = pairs(labels, preds)
        for label, pred in zip(labels, preds, strict=True):
            check_label_shapes(label, pred, False, True)
        step = _sums.correlation if self.average == "macro" else _sums.running_correlation
        self._accumulate(step, None, 1 if self.average == "macro" else 7, labels, preds, len(preds))

    def reset(self) -> None:
        """Forgets everything."""
        super().reset()
        self.reset_micro()

    def reset_micro(self) -> None:
        """Forgets what "micro" goes on with from batch to batch."""
        if self.average != "macro":
            self._state = None

    def update_variance(self, new_values: Any, *aggregate: Any) -> tuple[Any, Any, Any]:
        """Returns count, mean and sum of squared deviations, given those before `new_values` came."""
        count, mean, m_2 = aggregate
        return _sums.variance(new_values, count, mean, m_2)

    def update_cov(self, label: Any, pred: Any) -> None:
        """Adds the products of deviations of labels and predictions (numpy arrays) from the means so far."""
        state = self._running()
        state[6] += ((label - state[1]) * (pred - state[4])).sum()
        self._state = state

    def _running(self) -> numpy.ndarray:
        return numpy.zeros(7) if self._state is None else numpy.array(_sums.fetch(self._state))

    def _fetch(self) -> None:
        if self.average == "macro":
            super()._fetch()

    def get(self) -> tuple[str, float]:
        """Returns the name and the value; NaN if there was nothing since `reset_local`."""
        return super().get() if self.average == "macro" else (self.name, self._correlation(self.num_inst))

    def get_global(self) -> tuple[str, float]:
        """Returns the name and the value since `reset`."""
        # MXNet gives 0 for "micro"
        return super().get_global() if self.average == "macro" else (self.name, self._correlation(self.global_num_inst))

    def _correlation(self, updates: int) -> float:
        if updates == 0:
            return float("nan")
        n, _, sse_l, _, _, sse_p, product = self._running()
        with numpy.errstate(divide="ignore", invalid="ignore"):
            return float(product / ((n - 1) * numpy.sqrt(sse_p / (n - 1)) * numpy.sqrt(sse_l / (n - 1))))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if self._state is not None:
            state["_state"] = self._running()
        return state


@register
class Loss(EvalMetric):
    """The mean of all elements of the predictions, which are losses.

    Args:
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    def __init__(self, name: str = "loss", output_names: Names = None, label_names: Names = None) -> None:
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)

    def update(self, _: Any, preds: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Adds a batch; labels are not looked at."""
        arrays = on_device([preds] if isinstance(preds, NDArray) else preds)
        self._accumulate(_sums.total, None, 1, (), arrays, sum(math.prod(p.shape) for p in arrays))


@register
class Torch(Loss):
    """`Loss` by another name."""

    def __init__(self, name: str = "torch", output_names: Names = None, label_names: Names = None) -> None:
        super().__init__(name, output_names=output_names, label_names=label_names)


@register
class Caffe(Loss):
    """`Loss` by another name."""

    def __init__(self, name: str = "caffe", output_names: Names = None, label_names: Names = None) -> None:
        super().__init__(name, output_names=output_names, label_names=label_names)
