"""`mx.contrib.quantization`: int8 models from float32 models.

    qsym, qarg, qaux = mx.contrib.quantization.quantize_model(
        sym, arg_params, aux_params, calib_mode="naive", calib_data=data_iter, quantized_dtype="auto")

The graph is rewritten by `symjax.lowering.passes.quantize`; the ranges of its values come from running the float32
graph on calibration data, or from the data at hand in every call without calibration. Weights are quantized ahead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from symjax import ndarray as nd
from symjax.base import MXNetError
from symjax.context import Context, cpu
from symjax.io import DataIter
from symjax.lowering.graph import Entry
from symjax.lowering.passes.quantize import Quantized, quantize, set_ranges
from symjax.model import split_params
from symjax.ndarray import NDArray
from symjax.symbol import Symbol, load

__all__ = ["calib_graph", "combine_histogram", "quantize_graph", "quantize_model", "quantize_model_mkldnn",
           "quantize_net", "quantize_net_v2"]

Arrays = Mapping[str, NDArray]
Ranges = dict[str, tuple[float, float]]
Histogram = tuple[np.ndarray, np.ndarray, float, float, float]
"""Counts, edges of the bins, smallest and largest value, and the magnitude up to which it reaches."""

_DTYPES = ("int8", "uint8", "auto")
_GRANULARITIES = ("tensor-wise", "channel-wise")
_NUM_BINS = 8001
_CPU = cpu()


class Collector(Protocol):
    """What looks at the values of the float32 graph."""

    def collect(self, name: str, arr: Any) -> None:
        """Takes a value of the name."""


class _LayerOutputMinMaxCollector:
    """Keeps the smallest and the largest number of each value: `min_max_dict`."""

    def __init__(self, quantized_dtype: str, include_layer: Sequence[str] | None = None, logger: Any = None) -> None:
        self.min_max_dict: Ranges = {}
        self.quantized_dtype = quantized_dtype
        self.include_layer = include_layer
        self.logger = logger

    def collect(self, name: Any, arr: Any) -> None:
        """Takes a value; usable as a monitor callback."""
        name, values = _wanted(name, arr, self.include_layer)
        if values is None:
            return
        low, high = float(values.min()), float(values.max())
        old = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = (min(low, old[0]), max(high, old[1]))
        if self.logger:
            self.logger.debug("layer %s: min_range=%f, max_range=%f", name, low, high)


class _LayerHistogramCollector:
    """Counts the numbers of each value in bins around 0: `hist_dict`."""

    def __init__(self, num_bins: int = _NUM_BINS, include_layer: Sequence[str] | None = None,
                 logger: Any = None) -> None:
        self.hist_dict: dict[str, Histogram] = {}
        self.num_bins = num_bins
        self.include_layer = include_layer
        self.logger = logger

    def collect(self, name: Any, arr: Any) -> None:
        """Takes a value; usable as a monitor callback."""
        name, values = _wanted(name, arr, self.include_layer)
        if values is None:
            return
        low, high = float(values.min()), float(values.max())
        reach = max(abs(low), abs(high))
        if name in self.hist_dict:
            self.hist_dict[name] = combine_histogram(self.hist_dict[name], values, low, high, reach)
        else:
            counts, edges = np.histogram(values, bins=self.num_bins, range=(-reach, reach))
            self.hist_dict[name] = (counts, edges, low, high, reach)
        if self.logger:
            self.logger.debug("layer %s: histogram of shape %s", name, values.shape)


def _wanted(name: Any, arr: Any, names: Sequence[str] | None) -> tuple[str, np.ndarray | None]:
    text = name.decode() if isinstance(name, bytes) else str(name)
    if names is not None and text not in names:
        return text, None
    return text, np.asarray(arr.asnumpy() if isinstance(arr, NDArray) else arr)


def combine_histogram(old_hist: Histogram, arr: Any, new_min: float, new_max: float, new_th: float) -> Histogram:
    """Adds numbers to a histogram.

    Args:
      old_hist: (counts, edges, min, max, reach), the bins of equal width from -reach to reach.
      arr: the numbers.
      new_min, new_max: their smallest and largest.
      new_th: the larger magnitude of these.

    Returns:
      The same of all numbers; bins of the old width are added at both ends where `new_th` is beyond the old reach.
    """
    counts, edges, low, high, reach = old_hist
    if new_th > reach:
        width = 2 * reach / len(counts)
        more = int((new_th - reach) // width + 1)
        reach += more * width
        new, edges = np.histogram(arr, bins=len(counts) + 2 * more, range=(-reach, reach))
        new[more:len(new) - more] += counts
    else:
        new = counts + np.histogram(arr, bins=len(counts), range=(-reach, reach))[0]
    return new, edges, min(low, new_min), max(high, new_max), reach


def quantize_model(
    sym: Symbol | str,
    arg_params: Arrays | str,
    aux_params: Arrays,
    data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] | None = ("softmax_label",),
    ctx: Context = _CPU,
    excluded_sym_names: list[str] | None = None,
    excluded_op_names: list[str] | None = None,
    calib_mode: str | None = "entropy",
    calib_data: DataIter | None = None,
    num_calib_examples: int | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Makes an int8 model from a float32 model.

    Args:
      sym: the model, or the path of its JSON file.
      arg_params, aux_params: its parameters.
      data_names, label_names: the names of the inputs that the calibration data is for, and of labels.
      ctx: where to run the calibration.
      excluded_sym_names: names of nodes to leave in float32.
      excluded_op_names: names of operators to leave in float32.
      calib_mode: "naive" takes the smallest and the largest number that each value has on the calibration data,
        "entropy" the range that keeps its distribution best (Kullback-Leibler divergence); "none" or None measures in
        every call.
      calib_data: the calibration data; needed unless calib_mode is "none".
      num_calib_examples: stop calibrating after so many examples.
      quantized_dtype: the type of data and results: "int8", "uint8", or "auto" (uint8 where nothing is negative).
      quantize_mode: "full" quantizes every operator that can be, "smart" layers and what is between them.
      quantize_granularity: "channel-wise" gives fused linear layers a scale per output; "tensor-wise".
      logger: gets what is going on.

    Returns:
      (symbol, arguments, auxiliary states); weights and biases are int8, named `…_quantize`, with `…_min`, `…_max`.

    Raises:
      ValueError: an argument is none of its choices, or calibration data is missing.
    """
    symbol = _symbol(sym)
    _check(quantized_dtype, quantize_granularity, excluded_sym_names, excluded_op_names, ctx)
    if calib_mode not in (None, "none", "naive", "entropy"):
        raise ValueError(f"unknown calibration mode {calib_mode}, expected 'none', 'naive' or 'entropy'")
    args, aux = _params(arg_params, aux_params)
    made = _quantized(symbol, args, excluded_sym_names, excluded_op_names, quantized_dtype, quantize_mode,
                      quantize_granularity)
    qsym, ranges = Symbol(made.graph), {}
    if calib_mode not in (None, "none"):
        if not isinstance(calib_data, DataIter):
            raise ValueError(f"calib_data must be a DataIter for calib_mode={calib_mode!r}, got {type(calib_data)}")
        collector = _collector(str(calib_mode), quantized_dtype, list(made.calibrate), logger)
        count = _collect(made, args, aux, data_names, label_names or (), ctx, calib_data, num_calib_examples,
                         collector)
        _say(logger, f"Collected statistics from {count} examples")
        ranges = _ranges(collector, quantized_dtype, logger)
        qsym = Symbol(set_ranges(made.graph, ranges))
    return qsym, _quantize_params(qsym, args, ranges), aux


def quantize_model_mkldnn(
    sym: Symbol | str,
    arg_params: Arrays | str,
    aux_params: Arrays,
    data_names: Sequence[str] = ("data",),
    label_names: Sequence[str] | None = ("softmax_label",),
    ctx: Context = _CPU,
    excluded_sym_names: list[str] | None = None,
    excluded_op_names: list[str] | None = None,
    calib_mode: str | None = "entropy",
    calib_data: DataIter | None = None,
    num_calib_examples: int | None = None,
    quantized_dtype: str = "int8",
    quantize_mode: str = "smart",
    quantize_granularity: str = "tensor-wise",
    logger: Any = None,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Makes an int8 model as `quantize_model` does.

    MXNet joins layers and what follows them into oneDNN nodes (`_sg_mkldnn_conv`) before and after. XLA joins operators
    by itself, so no such nodes are made here; models that hold them are read and quantized, too.
    """
    return quantize_model(sym, arg_params, aux_params, data_names, label_names, ctx, excluded_sym_names,
                          excluded_op_names, calib_mode, calib_data, num_calib_examples, quantized_dtype,
                          quantize_mode, quantize_granularity, logger)


def quantize_graph(
    sym: Symbol | str,
    arg_params: Arrays | str,
    aux_params: Arrays,
    ctx: Context = _CPU,
    excluded_sym_names: list[str] | None = None,
    excluded_op_names: list[str] | None = None,
    calib_mode: str | None = "entropy",
    quantized_dtype: str = "int8",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    LayerOutputCollector: Any = None,
    logger: Any = None,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray], Any]:
    """Makes an int8 model without calibrating it, and a collector for the calibration.

    The collector's `collect` is a monitor callback for executors of the float32 model; `calib_graph` takes it when it
    has seen enough.

    Args:
      calib_mode: "none", "naive", "entropy", or "customize": `LayerOutputCollector` then is the collector; it must have
        `min_max_dict` in the end.
      sym, arg_params, aux_params, ctx, excluded_sym_names, excluded_op_names, quantized_dtype, quantize_mode,
        quantize_granularity, logger: as for `quantize_model`.

    Returns:
      (symbol, arguments, auxiliary states, collector); the collector is None without calibration.
    """
    symbol = _symbol(sym)
    _check(quantized_dtype, quantize_granularity, excluded_sym_names, excluded_op_names, ctx)
    args, aux = _params(arg_params, aux_params)
    made = _quantized(symbol, args, excluded_sym_names, excluded_op_names, quantized_dtype, quantize_mode,
                      quantize_granularity)
    collector = None
    if calib_mode == "customize" and LayerOutputCollector is not None:
        collector = LayerOutputCollector
    elif calib_mode not in (None, "none"):
        collector = _collector(calib_mode, quantized_dtype, list(made.calibrate), logger)
    qsym = Symbol(made.graph)
    return qsym, _quantize_params(qsym, args, {}), aux, collector


def calib_graph(
    qsym: Symbol,
    arg_params: Arrays | str,
    aux_params: Arrays,
    collector: Any,
    calib_mode: str | None = "entropy",
    quantized_dtype: str = "int8",
    logger: Any = logging,
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Writes what a collector saw into a model that `quantize_graph` made.

    Args:
      qsym: the quantized model.
      arg_params, aux_params: the parameters of the float32 model.
      collector: the collector that `quantize_graph` gave, filled.
      calib_mode: "naive", "entropy" or "customize", as in `quantize_graph`.
      quantized_dtype, logger: as for `quantize_model`.

    Returns:
      (symbol, arguments, auxiliary states).

    Raises:
      ValueError: the mode is none of these.
    """
    if calib_mode not in ("naive", "entropy", "customize"):
        raise ValueError(f"calibration mode {calib_mode}: expected 'naive', 'entropy' or 'customize'")
    args, aux = _params(arg_params, aux_params)
    ranges = _ranges(collector, quantized_dtype, logger)
    new = Symbol(set_ranges(qsym._graph, ranges))
    return new, _quantize_params(new, args, ranges), aux


def quantize_net(network: Any, *args: Any, **kwargs: Any) -> Any:
    """Quantizes a Gluon network in MXNet.

    Raises:
      MXNetError: always. Export the network (`network.export`), load the symbol and use `quantize_model`.
    """
    raise MXNetError("quantize_net is for Gluon networks, which are not part of symjax: export the network in MXNet "
                     "(network.export), load the symbol and its parameters here and call quantize_model")


quantize_net_v2 = quantize_net


# ---- the steps


def _check(dtype: str, granularity: str, names: Any, ops: Any, ctx: Any) -> None:
    if dtype not in _DTYPES:
        raise ValueError(f"unknown quantized_dtype {dtype}, expected one of {', '.join(_DTYPES)}")
    if granularity not in _GRANULARITIES:
        raise ValueError(f"unknown quantize_granularity {granularity}, expected one of {', '.join(_GRANULARITIES)}")
    for what, value in (("excluded_sym_names", names), ("excluded_op_names", ops)):
        if value is not None and not isinstance(value, list):
            raise ValueError(f"{what} must be a list of names, got {type(value)}")
    if not isinstance(ctx, Context):
        raise ValueError(f"ctx must be one context, got {ctx}")


def _symbol(sym: Any) -> Symbol:
    if isinstance(sym, str):
        return load(sym)
    if not isinstance(sym, Symbol):
        raise ValueError(f"expected a Symbol or the path of a symbol file, got {type(sym)}")
    return sym


def _params(args: Any, aux: Any) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    if isinstance(args, str):
        return split_params(nd.load(args))
    return dict(args), dict(aux)


def _quantized(symbol: Symbol, args: Arrays, names: Any, ops: Any, dtype: str, mode: str,
               granularity: str) -> Quantized:
    if mode not in ("full", "smart"):
        raise MXNetError(f"unknown quantize_mode {mode}, expected 'full' or 'smart'")
    return quantize(symbol._graph, mode=mode, out_type=dtype, excluded_names=names or (), excluded_ops=ops or (),
                    offline=args, channel_wise=granularity == "channel-wise")


def _collector(mode: str, dtype: str, names: Sequence[str], logger: Any) -> Any:
    if mode == "naive":
        return _LayerOutputMinMaxCollector(quantized_dtype=dtype, include_layer=names, logger=logger)
    if mode == "entropy":
        return _LayerHistogramCollector(include_layer=names, logger=logger)
    raise ValueError(f"unknown calibration mode {mode}, expected 'none', 'naive', 'entropy' or 'customize'")


def _collect(made: Quantized, args: Arrays, aux: Arrays, data_names: Sequence[str], label_names: Sequence[str],
             ctx: Context, data: DataIter, most: int | None, collector: Collector) -> int:
    """Shows the collector the values to calibrate, for each batch; returns how many examples there were."""
    names, entries = list(made.calibrate), list(made.calibrate.values())
    runs = _Runs(entries, args, aux, ctx)
    count = 0
    for batch in data:
        given = dict(zip(data_names, batch.data, strict=False))
        given.update(zip(label_names, batch.label or (), strict=False))
        for name, value in zip(names, runs(given), strict=True):
            collector.collect(name, value)
        count += data.batch_size
        if most is not None and count >= most:
            break
    return count


class _Runs:
    """Runs the graph up to some entries, on one executor as long as shapes stay."""

    def __init__(self, entries: Sequence[Entry], args: Arrays, aux: Arrays, ctx: Context) -> None:
        self.symbol, self.ctx, self.args, self.aux = Symbol._of(entries), ctx, args, aux
        self.executor: Any = None

    def __call__(self, given: Mapping[str, NDArray]) -> Iterator[NDArray]:
        needed = self.symbol.list_arguments()
        given = {n: v for n, v in given.items() if n in needed}
        shapes = {n: v.shape for n, v in given.items()}
        if self.executor is None or any(self.executor.arg_dict[n].shape != s for n, s in shapes.items()):
            self.executor = self.symbol.simple_bind(self.ctx, grad_req="null", **shapes)
            self.executor.copy_params_from(dict(self.args), dict(self.aux), allow_extra_params=True)
        return iter(self.executor.forward(is_train=False, **given))


def _ranges(collector: Any, dtype: str, logger: Any) -> Ranges:
    if hasattr(collector, "hist_dict"):
        return {n: _best_range(n, h, dtype, logger) for n, h in collector.hist_dict.items()}
    return collector.min_max_dict


def _best_range(name: str, hist: Histogram, dtype: str, logger: Any, bins: int = 255) -> tuple[float, float]:
    """The range with the least divergence: from 0 for uint8 of numbers that are not negative, else around 0."""
    counts, edges, low, _, _ = hist
    positive = low >= 0 and dtype in ("auto", "uint8")
    threshold, divergence = nd.contrib.calibrate_entropy(
        nd.array(counts, dtype="float32"), nd.array(edges, dtype="float32"),
        num_quantized_bins=2 * bins + 1 if positive else bins)
    reach = float(threshold.asnumpy()[0])
    _say(logger, f"layer {name}: threshold {reach:f}, divergence {float(divergence.asnumpy()[0]):f}", "debug")
    return (0.0, reach) if positive else (-reach, reach)


def _quantize_params(qsym: Symbol, params: Arrays, ranges: Ranges) -> dict[str, NDArray]:
    """The arguments of a quantized model: those of the float32 model, and int8 ones with their ranges."""
    out: dict[str, NDArray] = {}
    for name in qsym.list_arguments():
        if name in params:
            out[name] = params[name]
            continue
        stem = name.removesuffix("_quantize")
        if stem != name and stem in params:
            value = params[stem]
            made = nd.contrib.quantize(value, nd.min(value), nd.max(value), out_type="int8")
            out[name], out[f"{name}_min"], out[f"{name}_max"] = made
    return out


def _say(logger: Any, text: str, level: str = "info") -> None:
    if logger:
        getattr(logger, level)(text)
