"""The plain cells: RNN, LSTM, GRU."""

from __future__ import annotations

from typing import Any

from symjax import initializer, symbol
from symjax.rnn._base import BaseRNNCell, RNNParams, States
from symjax.symbol import Symbol, _internal


class _DenseCell(BaseRNNCell):
    """A cell whose gates are dense layers of the input and of the output before."""

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, i2h_bias_init: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = num_hidden
        self._iW = self.params.get("i2h_weight")
        self._iB = self.params.get("i2h_bias", init=i2h_bias_init)
        self._hW = self.params.get("h2h_weight")
        self._hB = self.params.get("h2h_bias")

    @property
    def state_info(self) -> list[Any]:
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _dense(self, inputs: Symbol, states: States, name: str) -> tuple[Symbol, Symbol]:
        n = self._num_hidden * len(self._gate_names)
        i2h = symbol.FullyConnected(data=inputs, weight=self._iW, bias=self._iB, num_hidden=n, name=f"{name}i2h")
        h2h = symbol.FullyConnected(data=states[0], weight=self._hW, bias=self._hB, num_hidden=n, name=f"{name}h2h")
        return i2h, h2h


class RNNCell(_DenseCell):
    """Elman's cell: h' = activation(W x + b + U h + c).

    Args:
      num_hidden: number of units h.
      activation: "tanh", "relu", … or a function of a symbol (with `name=`).
      prefix: beginning of names.
      params: variables to share: `i2h_weight`, `i2h_bias`, `h2h_weight`, `h2h_bias`.
    """

    _gates = ("",)

    def __init__(self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_",
                 params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        name = self._next_step()
        i2h, h2h = self._dense(inputs, states, name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class LSTMCell(_DenseCell):
    """Long short-term memory: c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c'), gates packed in the order i, f, g, o.

    Args:
      num_hidden: number of units of h and of c.
      prefix, params: as of `RNNCell`.
      forget_bias: the initial bias of the forget gate f.
    """

    _gates = ("_i", "_f", "_c", "_o")

    def __init__(self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None,
                 forget_bias: float = 1.0) -> None:
        super().__init__(num_hidden, prefix, params, initializer.LSTMBias(forget_bias=forget_bias))

    @property
    def state_info(self) -> list[Any]:
        return super().state_info * 2

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        name = self._next_step()
        i2h, h2h = self._dense(inputs, states, name)
        sliced = symbol.SliceChannel(i2h + h2h, num_outputs=4, name=f"{name}slice")
        return lstm_step(self, sliced, states, name, "tanh")


def lstm_step(cell: BaseRNNCell, gates: Symbol, states: States, name: str, act: Any) -> tuple[Symbol, States]:
    """Returns (h', [h', c']) of an LSTM from its four gates before activation."""
    i, f = (symbol.Activation(gates[k], act_type="sigmoid", name=name + gate) for k, gate in ((0, "i"), (1, "f")))
    g = cell._get_activation(gates[2], act, name=f"{name}c")
    o = symbol.Activation(gates[3], act_type="sigmoid", name=f"{name}o")
    c = _internal._plus(f * states[1], i * g, name=f"{name}state")
    h = _internal._mul(o, cell._get_activation(c, act), name=f"{name}out")
    return h, [h, c]


class GRUCell(_DenseCell):
    """Gated recurrent unit, cuDNN's form: h' = (1 - z) tanh(x₃ + r h₃) + z h, gates packed in the order r, z, o.

    Args:
      num_hidden: number of units.
      prefix, params: as of `RNNCell`.
    """

    _gates = ("_r", "_z", "_o")

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        name = self._next_step()
        i2h, h2h = self._dense(inputs, states, f"{name}_")
        return gru_step(self, i2h, h2h, states[0], name, "tanh")


def gru_step(cell: BaseRNNCell, i2h: Symbol, h2h: Symbol, h: Symbol, name: str, act: Any,
             **axis: int) -> tuple[Symbol, States]:
    """Returns (h', [h']) of a GRU from what its three gates get from the input and from the state."""
    i2h_r, i2h_z, i2h_o = symbol.SliceChannel(i2h, num_outputs=3, name=f"{name}_i2h_slice", **axis)
    h2h_r, h2h_z, h2h_o = symbol.SliceChannel(h2h, num_outputs=3, name=f"{name}_h2h_slice", **axis)
    r = symbol.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{name}_r_act")
    z = symbol.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{name}_z_act")
    new = cell._get_activation(i2h_o + r * h2h_o, act, name=f"{name}_h_act")
    out = _internal._plus((1.0 - z) * new, z * h, name=f"{name}out")
    return out, [out]
