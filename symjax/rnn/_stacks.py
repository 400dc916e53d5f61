"""Cells made of cells: one after another, both ways; and dropout between them."""

from __future__ import annotations

from numbers import Number
from typing import Any

from symjax import symbol
from symjax.lowering.errors import ArgumentError
from symjax.rnn._base import BaseRNNCell, RNNParams, States, Weights, arrange, split_steps
from symjax.symbol import Symbol


class _Several(BaseRNNCell):
    """A cell whose states and weights are those of its cells."""

    _cells: list[BaseRNNCell]

    def __init__(self, params: RNNParams | None) -> None:
        super().__init__(prefix="", params=params)
        self._override_cell_params = params is not None
        self._cells = []

    def _adopt(self, cells: list[BaseRNNCell]) -> None:
        """Shares the variables with new cells, both ways."""
        if self._override_cell_params:
            if not all(cell._own_params for cell in cells):
                raise ArgumentError(f"Either specify params for {type(self).__name__} or child cells, not both.")
            for cell in cells:
                cell.params._params.update(self.params._params)
        for cell in cells:
            self.params._params.update(cell.params._params)
        self._cells.extend(cells)

    @property
    def state_info(self) -> list[Any]:
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **kwargs: Any) -> States:  # type: ignore[override]  # MXNet: by name only
        """Returns the first states of all cells. See `BaseRNNCell.begin_state`."""
        self._check_unmodified()
        return [state for cell in self._cells for state in cell.begin_state(**kwargs)]

    def unpack_weights(self, args: Weights) -> Weights:
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return args

    def pack_weights(self, args: Weights) -> Weights:
        for cell in self._cells:
            args = cell.pack_weights(args)
        return args


class SequentialRNNCell(_Several):
    """Cells one after another: the output of each is the input of the next.

    Args:
      params: variables for all of them.
    """

    def __init__(self, params: RNNParams | None = None) -> None:
        super().__init__(params)

    def add(self, cell: BaseRNNCell) -> None:
        """Appends a cell."""
        self._adopt([cell])

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        self._counter += 1
        start, after = 0, []
        for cell in self._cells:
            if isinstance(cell, BidirectionalCell):
                raise ArgumentError("a SequentialRNNCell with a BidirectionalCell cannot be stepped. Please use unroll")
            n = len(cell.state_info)
            inputs, new = cell(inputs, states[start:start + n])
            after.extend(new)
            start += n
        return inputs, after

    def unroll(self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        start, after = 0, []
        for i, cell in enumerate(self._cells):
            n = len(cell.state_info)
            last = i == len(self._cells) - 1
            inputs, new = cell.unroll(length, inputs=inputs, begin_state=states[start:start + n], layout=layout,
                                      merge_outputs=merge_outputs if last else None)
            after.extend(new)
            start += n
        return inputs, after


class DropoutCell(BaseRNNCell):
    """Drops values of its input in training.

    Args:
      dropout: the fraction that is dropped.
      prefix, params: as of other cells; it has no variables.
    """

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None) -> None:
        super().__init__(prefix, params)
        if not isinstance(dropout, Number):
            raise ArgumentError("dropout probability must be a number")
        self.dropout = dropout

    @property
    def state_info(self) -> list[Any]:
        return []

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        return (symbol.Dropout(data=inputs, p=self.dropout) if self.dropout > 0 else inputs), states

    def unroll(self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        self.reset()
        inputs = arrange(inputs, length, layout.find("T"), merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state=begin_state, layout=layout, merge_outputs=merge_outputs)


class BidirectionalCell(_Several):
    """One cell runs forwards, the other backwards; outputs are joined along the units.

    Args:
      l_cell: the one that runs forwards.
      r_cell: the one that runs backwards.
      params: variables for both.
      output_prefix: beginning of the outputs' names.
    """

    def __init__(self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None,
                 output_prefix: str = "bi_") -> None:
        super().__init__(params)
        self._output_prefix = output_prefix
        self._adopt([l_cell, r_cell])

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def unroll(self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        """As of other cells; the states are returned as [those of l_cell, those of r_cell]."""
        self.reset()
        axis = layout.find("T")
        steps = split_steps(inputs, length, axis)
        states = self.begin_state() if begin_state is None else begin_state
        left, right = self._cells
        n = len(left.state_info)
        kwargs: dict[str, Any] = {"layout": layout, "merge_outputs": merge_outputs}
        l_out, l_states = left.unroll(length, inputs=steps, begin_state=states[:n], **kwargs)
        r_out, r_states = right.unroll(length, inputs=steps[::-1], begin_state=states[n:], **kwargs)
        if merge_outputs is None:
            merge_outputs = isinstance(l_out, Symbol) and isinstance(r_out, Symbol)
        if merge_outputs:
            r_out = symbol.reverse(r_out, axis=axis)
            # MXNet: the axis of the units is taken to be 2
            outputs: Any = symbol.Concat(l_out, r_out, dim=2, name=f"{self._output_prefix}out")
        else:
            l_out, r_out = (
                list(symbol.SliceChannel(o, axis=axis, num_outputs=length, squeeze_axis=1))
                if isinstance(o, Symbol) else o for o in (l_out, r_out))  # fmt: skip
            outputs = [symbol.Concat(lo, ro, dim=1, name=f"{self._output_prefix}t{i}")
                       for i, (lo, ro) in enumerate(zip(l_out, reversed(r_out), strict=True))]
        return outputs, [l_states, r_states]
