"""Convolutional cells: states are images, gates are convolutions."""

from __future__ import annotations

import functools
from typing import Any

from symjax import symbol
from symjax.lowering.errors import ArgumentError
from symjax.rnn._base import BaseRNNCell, RNNParams, States
from symjax.rnn._cells import gru_step, lstm_step
from symjax.symbol import Symbol

Pair = tuple[int, int]
_LEAKY = functools.partial(symbol.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(BaseRNNCell):
    """Base class of convolutional cells.

    Args:
      input_shape: shape of the input of one step, the batch size first, in the `conv_layout`.
      num_hidden: number of channels of the state.
      h2h_kernel, h2h_dilate: of the convolution of the state, which keeps height and width; odd kernel sizes.
      i2h_kernel, i2h_stride, i2h_pad, i2h_dilate: of the convolution of the input.
      i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer: initializers, or
        their names.
      activation: name, or a function of a symbol (with `name=`).
      prefix, params: as of other cells.
      conv_layout: "NCHW" or "NHWC".
    """

    def __init__(self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair, h2h_dilate: Pair,
                 i2h_kernel: Pair, i2h_stride: Pair, i2h_pad: Pair, i2h_dilate: Pair, i2h_weight_initializer: Any,
                 h2h_weight_initializer: Any, i2h_bias_initializer: Any, h2h_bias_initializer: Any, activation: Any,
                 prefix: str = "", params: RNNParams | None = None, conv_layout: str = "NCHW") -> None:
        super().__init__(prefix=prefix, params=params)
        if h2h_kernel[0] % 2 != 1 or h2h_kernel[1] % 2 != 1:
            raise ArgumentError(f"Only support odd number, get h2h_kernel= {h2h_kernel}")
        self._num_hidden, self._input_shape, self._conv_layout = num_hidden, input_shape, conv_layout
        self._activation = activation
        pad = tuple(d * (k - 1) // 2 for d, k in zip(h2h_dilate, h2h_kernel, strict=True))
        self._i2h = {"kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate}
        self._h2h = {"kernel": h2h_kernel, "dilate": h2h_dilate, "pad": pad, "stride": (1, 1)}
        out = symbol.Convolution(data=symbol.Variable("data"), num_filter=num_hidden, layout=conv_layout, **self._i2h)
        self._state_shape = (0, *out.infer_shape(data=input_shape)[1][0][1:])
        self._iW = self.params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self.params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self.params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self.params.get("h2h_bias", init=h2h_bias_initializer)

    @property
    def state_info(self) -> list[Any]:
        return [{"shape": self._state_shape, "__layout__": self._conv_layout} for _ in range(self._num_states)]

    _num_states = 2

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

    def _conv_forward(self, inputs: Symbol, states: States, name: str) -> tuple[Symbol, Symbol]:
        n = self._num_hidden * self._num_gates
        i2h = symbol.Convolution(name=f"{name}i2h", data=inputs, num_filter=n, weight=self._iW, bias=self._iB,
                                 layout=self._conv_layout, **self._i2h)
        h2h = symbol.Convolution(name=f"{name}h2h", data=states[0], num_filter=n, weight=self._hW, bias=self._hB,
                                 layout=self._conv_layout, **self._h2h)
        return i2h, h2h

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        raise NotImplementedError("BaseConvRNNCell is abstract class for convolutional RNN")


class ConvRNNCell(BaseConvRNNCell):
    """h' = activation(W * x + b + U * h + c), where * is a convolution. Arguments: see `BaseConvRNNCell`."""

    _gates = ("",)
    _num_states = 1

    def __init__(self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair = (3, 3),
                 h2h_dilate: Pair = (1, 1), i2h_kernel: Pair = (3, 3), i2h_stride: Pair = (1, 1),
                 i2h_pad: Pair = (1, 1), i2h_dilate: Pair = (1, 1), i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", activation: Any = _LEAKY, prefix: str = "ConvRNN_",
                 params: RNNParams | None = None, conv_layout: str = "NCHW") -> None:
        super().__init__(
            input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate,
            i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, activation,
            prefix, params, conv_layout)  # fmt: skip

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        name = self._next_step()
        i2h, h2h = self._conv_forward(inputs, states, name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class ConvLSTMCell(BaseConvRNNCell):
    """An `LSTMCell` of convolutions, whose tanh is `activation`. Arguments: see `BaseConvRNNCell`."""

    _gates = ("_i", "_f", "_c", "_o")

    def __init__(self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair = (3, 3),
                 h2h_dilate: Pair = (1, 1), i2h_kernel: Pair = (3, 3), i2h_stride: Pair = (1, 1),
                 i2h_pad: Pair = (1, 1), i2h_dilate: Pair = (1, 1), i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", activation: Any = _LEAKY, prefix: str = "ConvLSTM_",
                 params: RNNParams | None = None, conv_layout: str = "NCHW") -> None:
        super().__init__(
            input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate,
            i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, activation,
            prefix, params, conv_layout)  # fmt: skip

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        name = self._next_step()
        i2h, h2h = self._conv_forward(inputs, states, name)
        gates = symbol.SliceChannel(i2h + h2h, num_outputs=4, axis=self._conv_layout.find("C"), name=f"{name}slice")
        return lstm_step(self, gates, states, name, self._activation)


class ConvGRUCell(BaseConvRNNCell):
    """A `GRUCell` of convolutions, whose tanh is `activation`. Arguments: see `BaseConvRNNCell`."""

    _gates = ("_r", "_z", "_o")
    _num_states = 1

    def __init__(self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair = (3, 3),
                 h2h_dilate: Pair = (1, 1), i2h_kernel: Pair = (3, 3), i2h_stride: Pair = (1, 1),
                 i2h_pad: Pair = (1, 1), i2h_dilate: Pair = (1, 1), i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", activation: Any = _LEAKY, prefix: str = "ConvGRU_",
                 params: RNNParams | None = None, conv_layout: str = "NCHW") -> None:
        super().__init__(
            input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate,
            i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, activation,
            prefix, params, conv_layout)  # fmt: skip

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        name = self._next_step()
        i2h, h2h = self._conv_forward(inputs, states, name)
        # MXNet: it slices axis 1 in any layout, which with NHWC cuts the rows of the image; here always the channels
        axis = self._conv_layout.find("C")
        where = {} if axis == 1 else {"axis": axis}
        return gru_step(self, i2h, h2h, states[0], name, self._activation, **where)
