"""Metrics of class labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from symjax.lowering.errors import ArgumentError, ShapeError
from symjax.metric import _sums
from symjax.metric._base import EvalMetric, alias, check_label_shapes, on_device, register

Names = Sequence[str] | None


def pairs(labels: Any, preds: Any) -> tuple[list[Any], list[Any]]:
    """Returns labels and predictions as lists of device arrays of one length."""
    labels, preds = check_label_shapes(labels, preds, True)
    return on_device(labels), on_device(preds)


def _check_axis(metric: EvalMetric, pred: Any, axis: int) -> None:
    if not -pred.ndim <= axis < pred.ndim:
        raise ShapeError(f"metric {metric.name}: axis {axis} exceeds the input dimension of {pred.ndim}: predictions "
                         f"have shape {tuple(pred.shape)}; they need an axis of classes or the shape of the labels")


@register
@alias("acc")
class Accuracy(EvalMetric):
    """The share of labels that are the predicted class.

    Args:
      axis: the predictions' axis of classes; not looked at if predictions have the shape of the labels: they are
        classes then.
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    def __init__(self, axis: int = 1, name: str = "accuracy", output_names: Names = None,
                 label_names: Names = None) -> None:
        super().__init__(name, axis=axis, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels of any shape; predictions with an axis of classes more, or of the same shape.

        Raises:
          ValueError: the numbers of labels and predictions differ.
        """
        labels, preds = pairs(labels, preds)
        n = 0
        for label, pred in zip(labels, preds, strict=True):
            size = math.prod(pred.shape)
            if pred.shape != label.shape:
                _check_axis(self, pred, self.axis)
                size //= pred.shape[self.axis] or 1
            if math.prod(label.shape) != size:
                raise ValueError(f"Shape of labels {math.prod(label.shape)} does not match shape of predictions {size}")
            n += size
        self._accumulate(_sums.correct, self.axis, 1, labels, preds, n)


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The share of labels that are among the `top_k` classes of the highest scores.

    Args:
      top_k: how many; more than 1.
      name: its name, to which the number is added.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    def __init__(self, top_k: int = 1, name: str = "top_k_accuracy", output_names: Names = None,
                 label_names: Names = None) -> None:
        super().__init__(name, top_k=top_k, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.top_k = top_k
        if top_k <= 1:
            raise ArgumentError("Please use Accuracy if top_k is no more than 1")
        self.name += f"_{top_k:d}"

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels of shape (batch,), scores of shape (batch, classes).

        Raises:
          ValueError: the lengths differ, or there are fewer than `top_k` classes.
        """
        labels, preds = pairs(labels, preds)
        for label, pred in zip(labels, preds, strict=True):
            if pred.ndim > 2:
                raise ArgumentError("Predictions should be no more than 2 dims")
            if pred.ndim < 2:  # MXNet compares labels with an order of the numbers, which means nothing
                raise ShapeError(f"metric {self.name}: predictions must have shape (batch, classes), got {pred.shape}")
            if pred.shape[1] < self.top_k:
                raise ValueError(f"metric {self.name}: top_k={self.top_k} of {pred.shape[1]} classes")
            check_label_shapes(label, pred)
        n = sum(p.shape[0] for p in preds)
        self._accumulate(_sums.correct_in_top, self.top_k, 1, labels, preds, n)


class _Binary(EvalMetric):
    """A score of the confusion matrix of two classes, by batch ("macro") or of all batches together."""

    _score: Any = None
    _average = "macro"
    _cells: tuple[Any, Any] = (numpy.zeros(4), numpy.zeros(4))  # since reset_local, since reset

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels of shape (batch,), 0 or 1; scores of shape (batch, 2).

        Raises:
          ValueError: the lengths differ. Reading the value raises it if there was a third label.
        """
        labels, preds = pairs(labels, preds)
        for label, pred in zip(labels, preds, strict=True):
            _check_axis(self, pred, 1)
            check_label_shapes(label, pred)
        if self._average == "macro":
            self._accumulate(_sums.scores, type(self)._score, 2, labels, preds, 1)
        else:
            self._accumulate(_sums.confusion, None, 5, labels, preds, 0)

    def _fold(self, sums: numpy.ndarray) -> None:
        *found, third = sums
        if third:
            raise ValueError(f"{type(self).__name__} currently only supports binary classification.")
        if self._average == "macro":
            self._add(float(found[0]), 0)
            return
        local, everything = self._cells = (self._cells[0] + found, self._cells[1] + found)
        self._totals = [*self._of(local), *self._of(everything)]

    def _of(self, cells: numpy.ndarray) -> tuple[float, int]:
        return float(type(self)._score(numpy, *cells)) * float(cells.sum()), int(cells.sum())

    def reset(self) -> None:
        """Forgets everything."""
        super().reset()
        self._cells = (numpy.zeros(4), numpy.zeros(4))

    def reset_local(self) -> None:
        """Begins new local totals; the global ones go on."""
        super().reset_local()
        self._cells = (numpy.zeros(4), self._cells[1])


@register
class F1(_Binary):
    """F1 = 2 precision recall / (precision + recall) of two classes, 1 being the positive one.

    Args:
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
      average: "macro": the mean over batches; "micro": of all batches together.
    """

    _score = staticmethod(_sums.f_score)

    def __init__(self, name: str = "f1", output_names: Names = None, label_names: Names = None,
                 average: str = "macro") -> None:
        self.average = self._average = average
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)


@register
class MCC(_Binary):
    """Matthews' correlation coefficient of two classes: (tp tn - fp fn) / √((tp+fp)(tp+fn)(tn+fp)(tn+fn)).

    Args:
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
      average: "macro": the mean over batches; "micro": of all batches together.
    """

    _score = staticmethod(_sums.matthews)

    def __init__(self, name: str = "mcc", output_names: Names = None, label_names: Names = None,
                 average: str = "macro") -> None:
        self._average = average
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)


@register
class PCC(EvalMetric):
    """Pearson's correlation of any number of classes, which is Matthews' for two: of all batches together.

    Args:
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
      has_global_stats: whether `get_global` tells the value since `reset`.
    """

    _AT_MOST = 64  # batches kept on the device: the number of classes is not known before they are looked at

    def __init__(self, name: str = "pcc", output_names: Names = None, label_names: Names = None,
                 has_global_stats: bool = True) -> None:
        super().__init__(name=name, output_names=output_names, label_names=label_names,
                         has_global_stats=has_global_stats)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels of shape (batch,); scores of shape (batch, classes), or classes like the labels."""
        labels, preds = pairs(labels, preds)
        for label, pred in zip(labels, preds, strict=True):
            if pred.shape != label.shape:
                _check_axis(self, pred, 1)
            self._waiting.append(_sums.indices(label, pred, 1))
        self._totals = [0.0, self._totals[1] + 1, 0.0, self._totals[3] + 1]
        if len(self._waiting) >= self._AT_MOST:
            self._fetch()

    def _fetch(self) -> None:
        waiting, self._waiting = self._waiting, []
        for label, pred in _sums.fetch(waiting):
            n = max(len(self._local), int(label.max(initial=1)) + 1, int(pred.max(initial=1)) + 1)
            self._local, self._all = (numpy.pad(m, (0, n - len(m))) for m in (self._local, self._all))
            for m in (self._local, self._all):
                numpy.add.at(m, (pred, label), 1)

    def _get_total(self, which: int) -> Any:
        self._fetch()
        n = self._totals[which | 1]  # a sum is the coefficient times the number of updates
        return n if which & 1 else _multiclass(self._all if which & 2 else self._local) * n

    def reset(self) -> None:
        """Forgets everything."""
        self._waiting: list[Any] = []
        self._local = self._all = numpy.zeros((2, 2))
        super().reset()

    def reset_local(self) -> None:
        """Begins new local totals; the global ones go on."""
        super().reset_local()
        self._local = numpy.zeros((2, 2))


def _multiclass(cells: numpy.ndarray) -> float:
    n, x, y = cells.sum(), cells.sum(axis=1), cells.sum(axis=0)
    xx, yy = (x * (n - x)).sum(), (y * (n - y)).sum()
    if xx == 0 or yy == 0:
        return float("nan")
    return float((cells.diagonal() * n - x * y).sum() / (xx * yy) ** 0.5)


class _LogLoss(EvalMetric):
    """-Σ log(p + eps) over labels, p being the probability predicted for the label."""

    eps: float

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels of shape (batch,), probabilities of shape (batch, classes).

        Raises:
          AssertionError: the lengths differ.
          IndexError: when the value is read: a label was not a class.
        """
        labels, preds = pairs(labels, preds)
        for label, pred in zip(labels, preds, strict=True):
            if pred.ndim < 2:
                raise IndexError(f"metric {self.name}: probabilities need shape (batch, classes), got {pred.shape}")
            if math.prod(label.shape) != pred.shape[0]:
                raise ArgumentError(f"metric {self.name}: labels {tuple(label.shape)}, predictions {pred.shape}")
        n = sum(p.shape[0] for p in preds)
        self._accumulate(_sums.log_loss, self.eps, 2, labels, preds, n)

    def _fold(self, sums: numpy.ndarray) -> None:
        if sums[1]:
            raise IndexError(f"metric {self.name}: {sums[1]:.0f} labels are out of bounds: not classes of the "
                             f"predictions; reset() starts anew")
        self._add(float(sums[0]), 0)


@register
@alias("ce")
class CrossEntropy(_LogLoss):
    """Cross entropy: the mean of -log(p + eps), p being the probability predicted for the label.

    Args:
      eps: added to probabilities.
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    def __init__(self, eps: float = 1e-12, name: str = "cross-entropy", output_names: Names = None,
                 label_names: Names = None) -> None:
        super().__init__(name, eps=eps, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.eps = eps


@register
@alias("nll_loss")
class NegativeLogLikelihood(_LogLoss):
    """Negative log-likelihood: the mean of -log(p + eps), as `CrossEntropy`.

    Args:
      eps: added to probabilities.
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    def __init__(self, eps: float = 1e-12, name: str = "nll-loss", output_names: Names = None,
                 label_names: Names = None) -> None:
        super().__init__(name, eps=eps, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.eps = eps


@register
class Perplexity(EvalMetric):
    """exp of the mean of -log max(1e-10, p), p being the probability predicted for the label.

    Args:
      ignore_label: the label that does not count; None if all do.
      axis: the axis of classes.
      name: its name.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    def __init__(self, ignore_label: float | None, axis: int = -1, name: str = "perplexity",
                 output_names: Names = None, label_names: Names = None) -> None:
        super().__init__(name, ignore_label=ignore_label, output_names=output_names, label_names=label_names,
                         has_global_stats=True)
        self.ignore_label = ignore_label
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: labels of any shape with `n` elements, probabilities of shape (n, classes).

        Raises:
          AssertionError: the numbers of labels and rows differ.
        """
        if len(labels) != len(preds):
            raise ArgumentError(f"metric {self.name}: {len(labels)} labels for {len(preds)} predictions")
        labels, preds = pairs(labels, preds)
        for label, pred in zip(labels, preds, strict=True):
            if math.prod(label.shape) != math.prod(pred.shape) / pred.shape[-1]:
                raise ArgumentError(f"shape mismatch: {tuple(label.shape)} vs. {tuple(pred.shape)}")
            if pred.ndim != 2:
                raise ShapeError(f"metric {self.name}: predictions must have shape (n, classes), got {pred.shape}")
        n = sum(math.prod(x.shape) for x in labels)
        self._accumulate(_sums.perplexity, (self.ignore_label, self.axis), 2, labels, preds, n)

    def _fold(self, sums: numpy.ndarray) -> None:
        self._add(float(sums[0]), -int(sums[1]))

    def get(self) -> tuple[str, float]:
        """Returns the name and the value since `reset_local`; NaN if there was nothing."""
        return self.name, _exp(self.sum_metric, self.num_inst)

    def get_global(self) -> tuple[str, float]:
        """Returns the name and the value since `reset`."""
        return self.name, _exp(self.global_sum_metric, self.global_num_inst)


def _exp(total: float, n: float) -> float:
    return float("nan") if n == 0 else math.exp(total / n)
