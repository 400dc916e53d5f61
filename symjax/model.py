"""Checkpoints (a symbol JSON file and a `.params` file with one prefix), FeedForward, and steps that modules share.

MXNet's `mx.model`.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symjax.lowering.errors import ParamsFormatError

if TYPE_CHECKING:
    from symjax.ndarray import NDArray
    from symjax.symbol import Symbol

BatchEndParam = namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])
"""What batch-end callbacks are given: numbers of epoch and batch, the metric, the caller's local variables."""

_LARGE = 1024 * 1024 * 16

# ---- gradients and updates, as modules and FeedForward do them


def _create_kvstore(kvstore: Any, num_device: int, arg_params: Mapping[str, Any]) -> tuple[Any, bool]:
    """Returns (KVStore or None, whether it updates the parameters).

    One device needs none by name: its updates go to the parameters directly, as part of the compiled step.
    """
    from symjax import kvstore as kvs

    if not (kvstore is None or isinstance(kvstore, (str, kvs.KVStoreBase))):
        raise TypeError(f"kvstore must be KVStore, str or None, got {type(kvstore).__name__}")
    on_kvstore = bool(int(os.getenv("MXNET_UPDATE_ON_KVSTORE", "1")))
    if isinstance(kvstore, str):
        if num_device == 1 and "dist" not in kvstore:
            return None, False
        if kvstore == "local" and max((math.prod(a.shape) for a in arg_params.values()), default=0) > _LARGE:
            on_kvstore = False
        kvstore = kvs.create(kvstore)
    if kvstore is None:
        return None, False
    return kvstore, on_kvstore and kvstore.is_capable(kvs.KVStoreBase.OPTIMIZER)


def _initialize_kvstore(kvstore: Any, param_arrays: Sequence[Any], arg_params: Mapping[str, Any],
                        param_names: Sequence[str], update_on_kvstore: bool) -> None:
    """Stores the parameters, and copies them to the devices where the store is to update them."""
    for name, block in zip(param_names, param_arrays, strict=True):
        # MXNet: workers that update by themselves start from different parameters.
        at_start = update_on_kvstore or getattr(kvstore, "num_workers", 1) > 1
        if at_start and arg_params[name].stype == "default":
            kvstore.broadcast(name, arg_params[name], out=block)
        else:
            kvstore.init(name, arg_params[name])


def _reduce(kvstore: Any, name: str, grads: Any, out: Any, index: int) -> None:
    if all(a.stype == "default" for a in (grads[0], out[0])):
        kvstore.pushpull(name, grads, out=out, priority=-index)
    else:
        kvstore.push(name, grads, priority=-index)
        kvstore.pull(name, out=out, priority=-index)


def _reduce_all(kvstore: Any, parts: Sequence[tuple[str, Any, Any]]) -> None:
    """Pushes the gradients of all parameters and pulls to their outputs: (name, gradients, outputs).

    Between processes, those that are dense share one call, which is one collective sum.
    """
    at_once = []
    if hasattr(kvstore, "gathers_keys"):
        at_once = [p for p in parts if all(a.stype == "default" for a in (p[1][0], p[2][0]))]
        if at_once:
            names, grads, outs = map(list, zip(*at_once, strict=True))
            kvstore.pushpull(names, grads, out=outs)
    done = {name for name, _, _ in at_once}
    for i, (name, grads, outs) in enumerate(parts):
        if name not in done:
            _reduce(kvstore, name, grads, outs, i)


def _update_params_on_kvstore(param_arrays: Sequence[Any], grad_arrays: Sequence[Any], kvstore: Any,
                              param_names: Sequence[str]) -> None:
    """Sends gradients to a store that updates the parameters, and gets these back."""
    _reduce_all(kvstore, [(name, grads, weights) for name, weights, grads
                          in zip(param_names, param_arrays, grad_arrays, strict=True) if grads[0] is not None])


def _update_params(param_arrays: Sequence[Any], grad_arrays: Sequence[Any], updater: Any, num_device: int,
                   kvstore: Any = None, param_names: Sequence[str] = (),
                   param_index: Mapping[str, int] | None = None) -> None:
    """Updates the parameters on each device; a store, if there is one, sums the gradients first.

    The updater's index of parameter i on device k is `i * num_device + k`. `param_index` gives i by name, for graphs
    that have the parameters in other orders than the one the optimizer was made for.
    """
    if kvstore is not None:
        _reduce_all(kvstore, [(name, grads, grads) for name, grads in zip(param_names, grad_arrays, strict=True)
                              if grads[0] is not None])
    updates: list[list[Any]] = [[] for _ in range(num_device)]
    for i, (weights, grads) in enumerate(zip(param_arrays, grad_arrays, strict=True)):
        if grads[0] is None:
            continue
        index = i if not param_index else param_index[param_names[i]]
        for k, (w, g) in enumerate(zip(weights, grads, strict=True)):
            updates[k].append((index * num_device + k, g, w))
    for of_device in filter(None, updates):
        updater(*map(list, zip(*of_device, strict=True)))


# ---- checkpoints


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Symbol | None,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
    remove_amp_cast: bool = True,
) -> None:
    """Writes `<prefix>-symbol.json` and `<prefix>-<epoch>.params` (four digits), each atomically.

    Args:
      prefix: path and beginning of the file names.
      epoch: number of the checkpoint.
      symbol: the symbol; None writes parameters only.
      arg_params, aux_params: parameters and auxiliary states by name.
      remove_amp_cast: leave mixed-precision casts out of the symbol.
    """
    from symjax import ndarray

    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
    arrays = {f"arg:{k}": v for k, v in arg_params.items()}
    arrays.update({f"aux:{k}": v for k, v in aux_params.items()})
    ndarray.save(params_path(prefix, epoch), arrays)
    logging.info('Saved checkpoint to "%s"', params_path(prefix, epoch))


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Reads `<prefix>-<epoch>.params` and returns (arg_params, aux_params).

    Names without `arg:` or `aux:` (Gluon's `save_parameters`) count as arguments.

    Raises:
      MXNetError: the file cannot be read or is not a dict of arrays.
    """
    from symjax import ndarray

    loaded = ndarray.load(params_path(prefix, epoch))
    if not isinstance(loaded, dict):
        if loaded:
            raise ParamsFormatError(
                f"{params_path(prefix, epoch)}: a list of {len(loaded)} arrays without names, not a checkpoint"
            )
        logging.warning("Params file '%s' is empty", params_path(prefix, epoch))
        loaded = {}
    return split_params(loaded)


def split_params(loaded: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits names by their `arg:` and `aux:` prefixes; unprefixed ones count as arguments."""
    args: dict[str, Any] = {}
    aux: dict[str, Any] = {}
    for key, value in loaded.items():
        kind, colon, name = key.partition(":")
        if colon and kind == "aux":
            aux[name] = value
        else:
            args[name if colon and kind == "arg" else key] = value
    return args, aux


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Reads a checkpoint and returns (symbol, arg_params, aux_params).

    Raises:
      MXNetError: a file is missing or broken.
    """
    from symjax import symbol

    net = symbol.load(f"{prefix}-symbol.json")
    return net, *load_params(prefix, epoch)


def params_path(prefix: str, epoch: int) -> str:
    """The name of a checkpoint's parameter file."""
    return f"{os.fspath(prefix)}-{epoch:04d}.params"


_ELSEWHERE = {"Context": "context", "cpu": "context", "DataDesc": "io", "Uniform": "initializer",
              "get_updater": "optimizer", "DataParallelExecutorManager": "executor_manager",
              "LogValidationMetricsCallback": "callback", "FeedForward": "_feed_forward"}


def __getattr__(name: str) -> Any:
    """Finds FeedForward, and names of other modules that MXNet has here too, when they are first used."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"symjax.{_ELSEWHERE[name]}"), name)
    return value
