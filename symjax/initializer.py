"""Initial values of parameters, chosen by their names (MXNet's `mx.init`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symjax._initializer import (
    InitDesc as InitDesc,
)
from symjax._initializer import (
    Initializer as Initializer,
)
from symjax._initializer import (
    InitializerError as InitializerError,
)
from symjax._initializer import (
    Load as Load,
)
from symjax._initializer import (
    Mixed as Mixed,
)
from symjax._initializer import (
    alias as alias,
)
from symjax._initializer import (
    bilinear,
    generator,
)
from symjax._initializer import (
    create as create,
)
from symjax._initializer import (
    register as register,
)
from symjax.ndarray import NDArray, zeros
from symjax.ndarray import load as load
from symjax.util import is_np_array as is_np_array

__all__ = ["Bilinear", "Constant", "FusedRNN", "InitDesc", "Initializer", "InitializerError", "LSTMBias", "Load",
           "MSRAPrelu", "Mixed", "Normal", "One", "Orthogonal", "Uniform", "Xavier", "Zero", "alias", "create",
           "register"]


@register
@alias("zeros")
class Zero(Initializer):
    """Fills weights with 0."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0


@register
@alias("ones")
class One(Initializer):
    """Fills weights with 1."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 1


@register
class Constant(Initializer):
    """Fills weights with a number, or an array of their shape."""

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = np.asarray(self.value) if isinstance(self.value, (list, tuple)) else self.value

    def dumps(self) -> str:
        """Returns the JSON text; an array is written as nested lists."""
        value = self._kwargs["value"]
        if isinstance(value, NDArray):
            value = value.asnumpy()
        if isinstance(value, (np.ndarray, np.generic)):
            self._kwargs["value"] = value.tolist()
        return super().dumps()


@register
class Uniform(Initializer):
    """Draws weights uniformly from [-scale, scale)."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _uniform(self.scale, arr)


@register
class Normal(Initializer):
    """Draws weights from the normal distribution of mean 0 and standard deviation `sigma`."""

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: NDArray) -> None:
        _normal(self.sigma, arr)


def _wide(arr: NDArray) -> type[Any]:
    return np.float64 if arr._dtype == np.float64 else np.float32


def _uniform(scale: float, arr: NDArray) -> None:
    drawn = generator(arr.context).random(arr.shape, _wide(arr))
    arr[:] = drawn * (2 * scale) - scale


def _normal(sigma: float, arr: NDArray) -> None:
    arr[:] = generator(arr.context).standard_normal(arr.shape, _wide(arr)) * sigma


@register
class Orthogonal(Initializer):
    """Makes a weight of shape (rows, …) a random matrix of orthogonal rows (or columns, whichever are fewer).

    Args:
      scale: factor of the matrix.
      rand_type: "uniform" or "normal": the distribution of the matrix whose singular vectors are taken.
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        if self.rand_type == "uniform":
            drawn = generator(arr.context).uniform(-1.0, 1.0, shape)
        elif self.rand_type == "normal":
            drawn = generator(arr.context).standard_normal(shape)
        else:
            raise InitializerError(f"rand_type must be uniform or normal, got {self.rand_type!r}")
        u, _, v = np.linalg.svd(drawn, full_matrices=False)
        arr[:] = self.scale * (u if u.shape == shape else v).reshape(arr.shape)


@register
class Xavier(Initializer):
    """Draws weights at a scale that keeps gradients alike in all layers.

    With fan_in = shape[1] * prod(shape[2:]), fan_out = shape[0] * prod(shape[2:]) and c = sqrt(magnitude / factor):
    uniform on [-c, c), or normal of standard deviation c.

    Args:
      rnd_type: "uniform" or "gaussian".
      factor_type: "avg" ((fan_in + fan_out) / 2), "in" or "out".
      magnitude: see above.

    Raises (when called):
      ValueError: a weight has fewer than 2 dimensions, or a type is unknown.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: NDArray) -> None:
        shape = arr.shape
        if len(shape) < 2:
            raise InitializerError(f"Xavier initializer cannot be applied to vector {name}. It requires at least 2D.")
        area = math.prod(shape[2:])
        fan_in, fan_out = shape[1] * area, shape[0] * area
        factors = {"avg": (fan_in + fan_out) / 2.0, "in": fan_in, "out": fan_out}
        if self.factor_type not in factors:
            raise InitializerError("Incorrect factor type")
        scale = math.sqrt(self.magnitude / factors[self.factor_type])
        if self.rnd_type == "uniform":
            _uniform(scale, arr)
        elif self.rnd_type == "gaussian":
            _normal(scale, arr)
        else:
            raise InitializerError("Unknown random type")


@register
class MSRAPrelu(Xavier):
    """Xavier, gaussian, with magnitude 2 / (1 + slope^2): for layers behind (P)ReLU.

    Args:
      factor_type: "avg", "in" or "out".
      slope: of the negative part.
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """Fills the 4-d weight of a Deconvolution or UpSampling with the kernel of bilinear upsampling."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = bilinear(arr.shape)


@register
class LSTMBias(Initializer):
    """Fills the bias of an LSTM cell with 0, and that of its forget gate (the second quarter) with `forget_bias`."""

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        n = arr.shape[0] // 4
        values = np.zeros(arr.shape, np.float32)
        values[n:2 * n] = self.forget_bias
        arr[:] = values


_GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}


@register
class FusedRNN(Initializer):
    """Fills the one parameter vector of the operator `RNN`, gate by gate.

    Args:
      init: the initializer of the gates' weights and biases, as an instance or its JSON text; None: the global one.
      num_hidden, num_layers, mode, bidirectional: as of the RNN (its `state_size`, `num_layers`, `mode`, …).
      forget_bias: bias of an LSTM's forget gate.
    """

    def __init__(self, init: Any, num_hidden: int, num_layers: int, mode: str, bidirectional: bool = False,
                 forget_bias: float = 1.0) -> None:
        if isinstance(init, str):
            init = create(init)
        super().__init__(init=init.dumps() if init is not None else None, num_hidden=num_hidden, num_layers=num_layers,
                         mode=mode, bidirectional=bidirectional, forget_bias=forget_bias)
        if mode not in _GATES:
            raise InitializerError(f"mode must be one of {', '.join(_GATES)}, got {mode!r}")
        self._init = init
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._forget_bias = bidirectional, forget_bias

    def _parts(self, size: int) -> list[tuple[str, tuple[int, ...]]]:
        """The names and shapes of the pieces that the vector consists of, in order."""
        gates, n = _GATES[self._mode], self._num_hidden
        sides = ("l", "r") if self._bidirectional else ("l",)
        d, rows = len(sides), len(gates) * n
        # Each direction has two biases; layers after the first have inputs of d * n numbers.
        rest = d * rows * (self._num_layers * (n + 2) + (self._num_layers - 1) * d * n)
        width, odd = divmod(size - rest, d * rows)
        if odd or width < 1:
            raise InitializerError(f"{size} parameters do not fit an RNN of mode {self._mode} with {self._num_layers} "
                                   f"layers of {n}, {d} direction(s)")
        layers = [(f"{s}{i}_", width if i == 0 else d * n) for i in range(self._num_layers) for s in sides]
        weights = [(f"{p}{kind}{g}_weight", (n, w)) for p, w_in in layers
                   for kind, w in (("i2h", w_in), ("h2h", n)) for g in gates]
        return weights + [(f"{p}{kind}{g}_bias", (n,)) for p, _ in layers for kind in ("i2h", "h2h") for g in gates]

    def _init_weight(self, name: str, arr: NDArray) -> None:
        fallback = self._init if self._init is not None else getattr(name, "global_init", None)
        if fallback is None:
            raise InitializerError(f"FusedRNN of {name} has no initializer, and there is no global one")
        pieces = []
        for part, shape in self._parts(arr.size):
            if self._mode == "lstm" and part.endswith("_f_bias"):
                pieces.append(np.full(shape, self._forget_bias, np.float32))
                continue
            piece = zeros(shape, ctx=arr.context)
            fallback(InitDesc(part, global_init=getattr(name, "global_init", None)), piece)
            pieces.append(piece.asnumpy())
        arr[:] = np.concatenate([p.reshape(-1) for p in pieces]).reshape(arr.shape)
