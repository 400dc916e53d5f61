"""Cells that change what another cell does: zoneout, residual connections."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from symjax import symbol
from symjax.lowering.errors import ArgumentError
from symjax.rnn._base import BaseRNNCell, RNNParams, States, Weights, arrange
from symjax.rnn._fused import FusedRNNCell
from symjax.rnn._stacks import BidirectionalCell
from symjax.symbol import Symbol


class ModifierCell(BaseRNNCell):
    """Base class of cells that wrap another, which then must not be called by itself.

    Args:
      base_cell: the cell.
    """

    def __init__(self, base_cell: BaseRNNCell) -> None:
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        """The variables of the base cell."""
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[Any]:
        return self.base_cell.state_info

    @contextlib.contextmanager
    def _allowed(self) -> Iterator[None]:
        self.base_cell._modified = False
        try:
            yield
        finally:
            self.base_cell._modified = True

    def begin_state(  # type: ignore[override]  # MXNet: another name
        self, init_sym: Callable[..., Any] = symbol.zeros, **kwargs: Any
    ) -> States:
        """Returns the first states of the base cell. See `BaseRNNCell.begin_state`."""
        self._check_unmodified()
        # by name, and under both names: cells made of cells take nothing by position, and hand on what they get
        init_sym = kwargs.pop("func", init_sym)
        with self._allowed():
            return self.base_cell.begin_state(**{_maker_name(self.base_cell): init_sym}, **kwargs)

    def unpack_weights(self, args: Weights) -> Weights:
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Weights) -> Weights:
        return self.base_cell.pack_weights(args)

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        raise NotImplementedError


def _maker_name(cell: BaseRNNCell) -> str:
    return "init_sym" if isinstance(cell, ModifierCell) else "func"


class ZoneoutCell(ModifierCell):
    """Keeps some values of the step before, in training.

    Args:
      base_cell: the cell.
      zoneout_outputs: fraction of the outputs that keep their value.
      zoneout_states: fraction of the states that do.
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        if isinstance(base_cell, FusedRNNCell):
            raise ArgumentError("FusedRNNCell doesn't support zoneout. Please unfuse first.")
        if isinstance(base_cell, BidirectionalCell):
            raise ArgumentError("BidirectionalCell doesn't support zoneout since it doesn't support step. Please add "
                                "ZoneoutCell to the cells underneath instead.")
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states
        self.prev_output: Any = None

    def reset(self) -> None:
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        output, new = self.base_cell(inputs, states)
        before = self.prev_output if self.prev_output is not None else symbol.zeros((0, 0))
        if self.zoneout_outputs:
            output = _keep(self.zoneout_outputs, output, before)
        if self.zoneout_states:
            new = [_keep(self.zoneout_states, n, old) for n, old in zip(new, states, strict=True)]
        self.prev_output = output
        return output, new


def _keep(p: float, new: Symbol, old: Any) -> Symbol:
    return symbol.where(symbol.Dropout(symbol.ones_like(new), p=p), new, old)


class ResidualCell(ModifierCell):
    """Adds the input to the output of a cell, which must have the same shape.

    Args:
      base_cell: the cell.
    """

    def __init__(self, base_cell: BaseRNNCell) -> None:
        super().__init__(base_cell)

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        output, states = self.base_cell(inputs, states)
        return _plus(output, inputs), states

    def unroll(self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        self.reset()
        with self._allowed():
            outputs, states = self.base_cell.unroll(length, inputs=inputs, begin_state=begin_state, layout=layout,
                                                    merge_outputs=merge_outputs)
        merged = isinstance(outputs, Symbol) if merge_outputs is None else merge_outputs
        inputs = arrange(inputs, length, layout.find("T"), merged)
        if merged:
            return _plus(outputs, inputs), states
        return [_plus(o, i) for o, i in zip(outputs, inputs, strict=True)], states


def _plus(output: Symbol, inputs: Symbol) -> Symbol:
    return symbol.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")
