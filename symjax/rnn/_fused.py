"""All layers and steps as one operator, `RNN`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from symjax import initializer, ndarray, symbol
from symjax.lowering.errors import ArgumentError
from symjax.rnn._base import BaseRNNCell, RNNParams, States, Weights, arrange, need_even_split, one_symbol
from symjax.rnn._cells import GRUCell, LSTMCell, RNNCell
from symjax.rnn._stacks import BidirectionalCell, DropoutCell, SequentialRNNCell

_GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}


class FusedRNNCell(BaseRNNCell):
    """A stack of recurrent layers as one operator.

    Args:
      num_hidden: number of units of a layer and direction.
      num_layers: number of layers.
      mode: "rnn_relu", "rnn_tanh", "lstm", "gru".
      bidirectional: whether each layer runs both ways: outputs have 2 num_hidden units.
      dropout: fraction of the values between layers that is dropped in training.
      get_next_state: whether `unroll` returns the last states; otherwise an empty list.
      forget_bias: initial bias of an LSTM's forget gates.
      prefix: beginning of names, by default the mode and "_".
      params: variables to share: `parameters`, one vector of everything.
    """

    def __init__(self, num_hidden: int, num_layers: int = 1, mode: str = "lstm", bidirectional: bool = False,
                 dropout: float = 0.0, get_next_state: bool = False, forget_bias: float = 1.0,
                 prefix: str | None = None, params: RNNParams | None = None) -> None:
        super().__init__(prefix=f"{mode}_" if prefix is None else prefix, params=params)
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._dropout, self._get_next_state = bidirectional, dropout, get_next_state
        self._directions = ["l", "r"] if bidirectional else ["l"]
        init = initializer.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self.params.get("parameters", init=init)

    @property
    def state_info(self) -> list[Any]:
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(2 if self._mode == "lstm" else 1)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return _GATES[self._mode]

    def _pieces(self, num_input: int) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of what the vector consists of, in order: all weights, then all biases."""
        h, deep = self._num_hidden, self._num_hidden * len(self._directions)
        sides = [(f"{self._prefix}{d}{layer}_", deep if layer else num_input)
                 for layer in range(self._num_layers) for d in self._directions]
        weights = [(f"{side}{kind}{gate}_weight", (h, width)) for side, n in sides
                   for kind, width in (("i2h", n), ("h2h", h)) for gate in self._gate_names]
        biases = [(f"{side}{kind}{gate}_bias", (h,)) for side, _ in sides
                  for kind in ("i2h", "h2h") for gate in self._gate_names]
        return weights + biases

    def unpack_weights(self, args: Weights) -> Weights:
        """Returns the weights with one array for each layer, direction and gate instead of the vector."""
        args = dict(args)
        vector = args.pop(str(self._parameter.name))
        d, m, h = len(self._directions), len(self._gate_names), self._num_hidden
        num_input = vector.size // d // h // m - (self._num_layers - 1) * (h + d * h + 2) - h - 2
        pieces, start = self._pieces(num_input), 0
        need_even_split(vector.size, sum(_count(shape) for _, shape in pieces))
        for name, shape in pieces:
            end = start + _count(shape)
            args[name] = vector[start:end].reshape(shape).copy()
            start = end
        return args

    def pack_weights(self, args: Weights) -> Weights:
        """Returns the weights with the one vector: the reverse of `unpack_weights`."""
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        parts = [args.pop(name).reshape((-1,)) for name, _ in self._pieces(first.shape[1])]
        args[str(self._parameter.name)] = ndarray.concatenate(parts)
        return args

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        raise NotImplementedError("FusedRNNCell cannot be stepped. Please use unroll")

    def unroll(self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        self.reset()
        axis = layout.find("T")
        if axis not in (0, 1):
            raise ArgumentError(f"Unsupported layout {layout}")
        data = one_symbol(inputs, length, axis)
        if axis == 1:
            warnings.warn("NTC layout detected. Consider using TNC for FusedRNNCell for faster speed", stacklevel=2)
            data = symbol.swapaxes(data, dim1=0, dim2=1)
        states = self.begin_state() if begin_state is None else begin_state
        rnn = symbol.RNN(
            data=data, parameters=self._parameter, state_size=self._num_hidden, num_layers=self._num_layers,
            bidirectional=self._bidirectional, p=self._dropout, state_outputs=self._get_next_state, mode=self._mode,
            name=f"{self._prefix}rnn", **dict(zip(("state", "state_cell"), states, strict=False)))  # fmt: skip
        outputs, states = self._outputs(rnn)
        if axis == 1:
            outputs = symbol.swapaxes(outputs, dim1=0, dim2=1)
        return arrange(outputs, length, axis, merge_outputs), states

    def _outputs(self, rnn: Any) -> tuple[Any, States]:
        if not self._get_next_state:
            return rnn, []
        states = [rnn[i + 1] for i in range(len(self.state_info))]
        for state in states:
            state._set_attr(__layout__="LNC")
        return rnn[0], states

    def unfuse(self) -> SequentialRNNCell:
        """Returns a stack of plain cells that computes the same and can be stepped.

        Its variables are those of `unpack_weights`, packed by cell: unpack with this cell, pack with the stack.
        """
        stack = SequentialRNNCell()
        for i in range(self._num_layers):
            stack.add(self._layer(i))
            if self._dropout > 0 and i != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{i}_"))
        return stack

    def _layer(self, i: int) -> BaseRNNCell:
        left, *right = (self._plain_cell()(self._num_hidden, prefix=f"{self._prefix}{d}{i}_")
                        for d in self._directions)
        return BidirectionalCell(left, right[0], output_prefix=f"{self._prefix}bi_l{i}_") if right else left

    def _plain_cell(self) -> Callable[..., BaseRNNCell]:
        if self._mode.startswith("rnn_"):
            return lambda n, prefix: RNNCell(n, activation=self._mode.removeprefix("rnn_"), prefix=prefix)
        return LSTMCell if self._mode == "lstm" else GRUCell


def _count(shape: tuple[int, ...]) -> int:
    return shape[0] * shape[1] if len(shape) == 2 else shape[0]
