"""What every metric has: totals since `reset` and since `reset_local`, those on the device included."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy

from symjax import registry
from symjax.metric import _sums
from symjax.ndarray import NDArray


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Checks that labels and predictions are of one length.

    Args:
      labels: a list of arrays, or one.
      preds: a list of arrays, or one.
      wrap: whether a single NDArray is put in a list.
      shape: compare shapes instead of lengths.

    Returns:
      `labels, preds`.

    Raises:
      ValueError: they differ.
    """
    a, b = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if a != b:
        raise ValueError(f"Shape of labels {a} does not match shape of predictions {b}")
    if wrap:
        labels, preds = ([x] if isinstance(x, NDArray) else x for x in (labels, preds))
    return labels, preds


def on_device(arrays: Sequence[Any]) -> list[Any]:
    """Returns what compiled calls take: the JAX arrays of NDArrays (sparse ones made dense); others as numpy arrays."""
    return [x.tostype("default")._data if isinstance(x, NDArray) else x if isinstance(x, jax.Array)
            else numpy.asarray(x) for x in arrays]  # fmt: skip


class EvalMetric:
    """Base class: a mean, as a sum and the number of what was summed.

    A subclass has `update(labels, preds)`, which adds to `sum_metric` and `num_inst`, and to `global_sum_metric` and
    `global_num_inst` if it has global totals (`has_global_stats=True` among the keyword arguments). The first two
    are since `reset_local` (which `Speedometer` calls), the others since `reset`.

    symjax's own metrics add up on the device: `update` waits for nothing, and reading any total, or `get`, fetches
    the sums. What `update` cannot know without looking at the numbers (a label that is no class) is therefore
    reported by the first reading.

    Args:
      name: what `get` and logs call it.
      output_names: which predictions `update_dict` takes, and in what order; all if None.
      label_names: which labels it takes.
      kwargs: what else `get_config` tells.
    """

    _state: Any = None  # the part of the totals that is on the device
    _totals: Sequence[Any] = (0.0, 0, 0.0, 0)

    def __init__(self, name: str, output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None,
                 **kwargs: Any) -> None:
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def __getstate__(self) -> dict[str, Any]:
        self._fetch()
        return self.__dict__.copy()

    # ---- totals

    def _accumulate(self, step: _sums.Step, option: Hashable, size: int, labels: Sequence[Any], preds: Sequence[Any],
                    n: int) -> None:
        """Adds a step over pairs of device arrays to the state, and `n` to the counts."""
        if preds:
            self._state = _sums.run(step, option, self._state, size, labels, preds)
        totals = self._totals
        self._totals = [totals[0], totals[1] + n, totals[2], totals[3] + n]

    def _fetch(self) -> None:
        """Moves what is on the device to the totals; waits for it."""
        if self._state is not None:
            sums, self._state = _sums.fetch(self._state), None
            self._fold(sums)

    def _fold(self, sums: numpy.ndarray) -> None:
        """Adds sums that were on the device to the totals."""
        self._add(float(sums[0]), 0)

    def _add(self, value: Any, n: Any) -> None:
        a, i, b, j = self._totals
        self._totals = [a + value, i + n, b + value, j + n]

    def _get_total(self, which: int) -> Any:
        self._fetch()
        return self._totals[which]

    def _set_total(self, which: int, value: Any) -> None:
        self._fetch()
        self._totals = [value if i == which else t for i, t in enumerate(self._totals)]

    @property
    def sum_metric(self) -> Any:
        """The sum since the last `reset_local` or `reset`."""
        return self._get_total(0)

    @sum_metric.setter
    def sum_metric(self, value: Any) -> None:
        self._set_total(0, value)

    @property
    def num_inst(self) -> Any:
        """How many things were summed since the last `reset_local` or `reset`."""
        return self._get_total(1)

    @num_inst.setter
    def num_inst(self, value: Any) -> None:
        self._set_total(1, value)

    @property
    def global_sum_metric(self) -> Any:
        """The sum since the last `reset`."""
        return self._get_total(2)

    @global_sum_metric.setter
    def global_sum_metric(self, value: Any) -> None:
        self._set_total(2, value)

    @property
    def global_num_inst(self) -> Any:
        """How many things were summed since the last `reset`."""
        return self._get_total(3)

    @global_num_inst.setter
    def global_num_inst(self, value: Any) -> None:
        self._set_total(3, value)

    # ---- MXNet's interface

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments as a dict, with the class's name as "metric"; `create` takes it back."""
        return {**self._kwargs, "metric": type(self).__name__, "name": self.name, "output_names": self.output_names,
                "label_names": self.label_names}

    def update_dict(self, label: dict[str, Any], pred: dict[str, Any]) -> None:
        """Adds a batch given as dicts of arrays by name."""
        preds = list(pred.values()) if self.output_names is None else [pred[n] for n in self.output_names]
        labels = list(label.values()) if self.label_names is None else [label[n] for n in self.label_names]
        self.update(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch.

        Args:
          labels: a list of NDArrays.
          preds: a list of NDArrays, the network's outputs.
        """
        raise NotImplementedError()

    def reset(self) -> None:
        """Forgets everything."""
        self._state = None
        self._totals = [0.0, 0, 0.0, 0]

    def reset_local(self) -> None:
        """Begins new local totals; the global ones go on."""
        self._fetch()
        self._totals = [0.0, 0, *self._totals[2:]]

    def get(self) -> tuple[Any, Any]:
        """Returns the name and the value since `reset_local`; NaN if there was nothing."""
        n = self.num_inst
        return self.name, float("nan") if n == 0 else self.sum_metric / n

    def get_global(self) -> tuple[Any, Any]:
        """Returns the name and the value since `reset`."""
        if not self._has_global_stats:
            return self.get()
        n = self.global_num_inst
        return self.name, float("nan") if n == 0 else self.global_sum_metric / n

    def get_name_value(self) -> list[tuple[str, Any]]:
        """Returns `get` as a list of pairs."""
        return _pairs(*self.get())

    def get_global_name_value(self) -> list[tuple[str, Any]]:
        """Returns `get_global` as a list of pairs."""
        return _pairs(*self.get_global()) if self._has_global_stats else self.get_name_value()


def _pairs(name: Any, value: Any) -> list[tuple[str, Any]]:
    names, values = (x if isinstance(x, list) else [x] for x in (name, value))
    return list(zip(names, values, strict=False))


register = registry.get_register_func(EvalMetric, "metric")
alias = registry.get_alias_func(EvalMetric, "metric")
_create = registry.get_create_func(EvalMetric, "metric")


def create(metric: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the metric that a name, a function, a list of such, JSON text or a config describes.

    Args:
      metric: "acc", a function `(label, pred) -> value` of numpy arrays, a list (gives a composite metric), an
        EvalMetric (returned as it is), or what `get_config` gave.
      args: positional arguments of the metric.
      kwargs: keyword arguments of the metric.
    """
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, list):
        composite = CompositeEvalMetric()
        for m in metric:
            composite.add(create(m, *args, **kwargs))
        return composite
    return _create(metric, *args, **kwargs)


@register
@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics of the same labels and predictions.

    Args:
      metrics: what `create` takes, each.
      name: its name, which `get` does not use.
      output_names: which predictions the metrics see.
      label_names: which labels they see.
    """

    def __init__(self, metrics: Sequence[Any] | None = None, name: str = "composite",
                 output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None) -> None:
        self.metrics: list[Any] = []
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)
        self.metrics.extend(create(m) for m in metrics or ())

    def add(self, metric: Any) -> None:
        """Adds a metric, or what `create` makes one of."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> Any:
        """Returns a metric by its place."""
        try:
            return self.metrics[index]
        except IndexError:  # MXNet: the error is returned, not raised
            return ValueError(f"Metric index {index} is out of range 0 and {len(self.metrics)}")

    def update_dict(  # pyright: ignore[reportIncompatibleMethodOverride]  # MXNet's names of the arguments
        self, labels: dict[str, Any], preds: dict[str, Any]
    ) -> None:
        """Adds a batch given as dicts of arrays by name."""
        if self.label_names is not None:
            labels = {k: v for k, v in labels.items() if k in self.label_names}
        if self.output_names is not None:
            preds = {k: v for k, v in preds.items() if k in self.output_names}
        for m in self.metrics:
            m.update_dict(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch to every metric."""
        for m in self.metrics:
            m.update(labels, preds)

    def reset(self) -> None:
        """Resets every metric."""
        for m in self.metrics:
            m.reset()

    def reset_local(self) -> None:
        """Begins new local totals in every metric."""
        for m in self.metrics:
            m.reset_local()

    def get(self) -> tuple[list[str], list[Any]]:
        """Returns the names and values of all metrics as two lists."""
        return _joined([m.get() for m in self.metrics])

    def get_global(self) -> tuple[list[str], list[Any]]:
        """Returns the names and the global values of all metrics as two lists."""
        return _joined([m.get_global() for m in self.metrics])

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments as a dict, with the metrics' own."""
        return {**super().get_config(), "metrics": [m.get_config() for m in self.metrics]}


def _joined(found: list[tuple[Any, Any]]) -> tuple[list[str], list[Any]]:
    names: list[str] = []
    values: list[Any] = []
    for name, value in found:
        names.extend([name] if isinstance(name, str) else name)
        values.extend(value if isinstance(value, (list, tuple)) else [value])
    return names, values


@register
class CustomMetric(EvalMetric):
    """A metric computed by a function of numpy arrays, batch by batch, on the host.

    Args:
      feval: `(label, pred) -> value` or `-> (sum, number)`.
      name: its name; the function's if None.
      allow_extra_outputs: allow more predictions than labels; those left over are not looked at.
      output_names: which predictions `update_dict` takes.
      label_names: which labels it takes.
    """

    def __init__(self, feval: Callable[..., Any], name: str | None = None, allow_extra_outputs: bool = False,
                 output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None) -> None:
        if name is None:
            name = feval.__name__
            if "<" in name:
                name = f"custom({name})"
        super().__init__(name, feval=feval, allow_extra_outputs=allow_extra_outputs, output_names=output_names,
                         label_names=label_names, has_global_stats=True)
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch."""
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for pred, label in zip(preds, labels, strict=False):
            label, pred = (x.asnumpy() if isinstance(x, NDArray) else numpy.asarray(x) for x in (label, pred))
            value = self._feval(label, pred)
            self._add(*(value if isinstance(value, tuple) else (value, 1)))

    def get_config(self) -> dict[str, Any]:
        """Not possible.

        Raises:
          NotImplementedError: always: a function has no text.
        """
        raise NotImplementedError("CustomMetric cannot be serialized")


def np(numpy_feval: Callable[..., Any], name: str | None = None, allow_extra_outputs: bool = False) -> CustomMetric:
    """Returns the CustomMetric of a function of numpy arrays, named after it.

    Args:
      numpy_feval: `(label, pred) -> value` or `-> (sum, number)`.
      name: its name; the function's if None.
      allow_extra_outputs: allow more predictions than labels.
    """

    def feval(label: Any, pred: Any) -> Any:
        return numpy_feval(label, pred)

    feval.__name__ = numpy_feval.__name__
    return CustomMetric(feval, name, allow_extra_outputs)
