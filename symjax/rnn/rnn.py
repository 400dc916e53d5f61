"""Checkpoints in which the weights of cells are unpacked, gate by gate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from symjax.model import load_checkpoint, save_checkpoint
from symjax.rnn._base import BaseRNNCell, States, Weights
from symjax.symbol import Symbol

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint"]

Cells = BaseRNNCell | Sequence[BaseRNNCell]


def rnn_unroll(cell: BaseRNNCell, length: int, inputs: Any = None, begin_state: States | None = None,
               input_prefix: str = "", layout: str = "NTC") -> tuple[Any, States]:
    """Deprecated: `cell.unroll(length, inputs, begin_state, layout)`. `input_prefix` means nothing."""
    # MXNet: it hands input_prefix on to unroll, which refuses it: the call always fails
    warnings.warn("rnn_unroll is deprecated. Please call cell.unroll directly.", stacklevel=2)
    return cell.unroll(length=length, inputs=inputs, begin_state=begin_state, layout=layout)


def _each(cells: Cells) -> Sequence[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else cells


def save_rnn_checkpoint(cells: Cells, prefix: str, epoch: int, symbol: Symbol, arg_params: Weights,
                        aux_params: Weights) -> None:
    """Writes a checkpoint with the weights of cells unpacked. See `mx.model.save_checkpoint`.

    Args:
      cells: the cell or cells of the symbol.
      prefix, epoch, symbol, arg_params, aux_params: as of `mx.model.save_checkpoint`.
    """
    for cell in _each(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: Cells, prefix: str, epoch: int) -> tuple[Symbol, Weights, Weights]:
    """Reads a checkpoint that `save_rnn_checkpoint` wrote and returns (symbol, arg_params, aux_params), packed."""
    symbol, args, aux = load_checkpoint(prefix, epoch)
    for cell in _each(cells):
        args = cell.pack_weights(args)
    return symbol, args, aux


def do_rnn_checkpoint(cells: Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """Returns a callback for `Module.fit` that writes a checkpoint at the end of every `period` epochs."""
    period = int(max(1, period))

    def callback(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, iter_no + 1, sym, arg, aux)

    return callback
