"""Checkpoints: a symbol JSON file and a `.params` file with one prefix (MXNet's `mx.model`)."""

from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from symjax.lowering.errors import ParamsFormatError

if TYPE_CHECKING:
    from symjax.ndarray import NDArray
    from symjax.symbol import Symbol

BatchEndParam = namedtuple("BatchEndParam", ["epoch", "nbatch", "eval_metric", "locals"])
"""What batch-end callbacks are given."""


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
