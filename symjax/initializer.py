"""Initial values of parameters, chosen by their names (MXNet's `mx.init`)."""

from __future__ import annotations

import json
import logging
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symjax import random, registry
from symjax.lowering.errors import ArgumentError, MXNetError
from symjax.ndarray import NDArray, load
from symjax.util import is_np_array as is_np_array

__all__ = ["Bilinear", "Constant", "FusedRNN", "InitDesc", "Initializer", "InitializerError", "LSTMBias", "Load",
           "MSRAPrelu", "Mixed", "Normal", "One", "Orthogonal", "Uniform", "Xavier", "Zero", "alias", "create",
           "register"]


class InitializerError(MXNetError, ValueError, AssertionError):
    """No initial value is known for a parameter, or one that does not fit it."""


class InitDesc(str):
    """A parameter's name, with what its initialization depends on.

    Args:
      name: the name.
      attrs: the variable's attributes as in `Symbol.attr_dict`; `__init__` holds an initializer's JSON text.
      global_init: the initializer to fall back to; the first one called with this descriptor if None.
    """

    attrs: Mapping[str, str]
    global_init: Initializer | None

    def __new__(cls, name: str, attrs: Mapping[str, str] | None = None,
                global_init: Initializer | None = None) -> InitDesc:
        made = super().__new__(cls, name)
        made.attrs = attrs or {}
        made.global_init = global_init
        return made


def _norm_per_root(x: NDArray) -> str:
    """|x| / sqrt(size) as text."""
    return str(np.float32(np.linalg.norm(x.asnumpy().astype(np.float64)) / math.sqrt(x.size)))


# (suffixes, method, whether it is said in verbose mode), first match wins
_BY_SUFFIX = (("weight", "_init_weight"), ("bias", "_init_bias"), ("gamma", "_init_gamma"), ("beta", "_init_beta"),
              ("min", "_init_zero"), ("max", "_init_one"), ("weight_quantize", "_init_quantized_weight"),
              ("bias_quantize", "_init_quantized_bias"))
_LEGACY_SUFFIX = (("bias", "_init_bias"), ("gamma", "_init_gamma"), ("beta", "_init_beta"), ("weight", "_init_weight"),
                  ("moving_mean", "_init_zero"), ("moving_var", "_init_one"), ("moving_inv_var", "_init_zero"),
                  ("moving_avg", "_init_zero"), ("min", "_init_zero"), ("max", "_init_one"))


class Initializer:
    """Base class: a callable `(InitDesc, NDArray)` that fills the array.

    A variable with an initializer of its own (`Variable(init=...)`) gets that one. Otherwise the end of the name
    decides: weight: `_init_weight`, which subclasses define; bias, beta, min: 0; gamma, max: 1; anything else is an
    error.

    Args:
      **kwargs: the arguments that `dumps` writes.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], str] | None = None

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None) -> Initializer:
        """Turns a log line for every array on or off, and returns the initializer.

        Args:
          verbose: whether to log.
          print_func: what to say of an array; |x| / sqrt(size) by default.
        """
        self._verbose = verbose
        self._print_func = print_func or _norm_per_root
        return self

    def _verbose_print(self, desc: str, init: str, arr: NDArray) -> None:
        if self._verbose and self._print_func:
            logging.info("Initialized %s as %s: %s", desc, init, self._print_func(arr))

    def dumps(self) -> str:
        """Returns the JSON text `["name", {arguments}]` that `create` reads, as MXNet writes it."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fills an array.

        Args:
          desc: an `InitDesc`; a plain name is deprecated and follows the rules of old MXNet.
          arr: the array.

        Raises:
          ValueError: the name has no known ending and the variable no initializer of its own.
        """
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        if desc.global_init is None:
            desc.global_init = self
        own = desc.attrs.get("__init__", "")
        if own:
            create(own)._init_weight(desc, arr)
            self._verbose_print(desc, own, arr)
            return
        for suffix, method in _BY_SUFFIX:
            if desc.endswith(suffix):
                getattr(self, method)(desc, arr)
                self._verbose_print(desc, suffix, arr)
                return
        self._init_default(desc, arr)

    def _legacy_init(self, name: Any, arr: Any) -> None:
        warnings.warn("Calling initializer with init(str, NDArray) has been deprecated. Please use "
                      "init(mx.init.InitDesc(...), NDArray) instead.", DeprecationWarning, stacklevel=3)
        if not isinstance(name, str):
            raise TypeError("name must be string")
        if not isinstance(arr, NDArray):
            raise TypeError("arr must be NDArray")
        if name.startswith("upsampling"):
            self._init_bilinear(name, arr)
        elif name.startswith("stn_loc") and name.endswith("weight"):
            self._init_zero(name, arr)
        elif name.startswith("stn_loc") and name.endswith("bias"):
            self._init_loc_bias(name, arr)
        else:
            method = next((m for s, m in _LEGACY_SUFFIX if name.endswith(s)), "_init_default")
            getattr(self, method)(name, arr)

    def _init_bilinear(self, _: str, arr: NDArray) -> None:
        arr[:] = _bilinear(arr.shape)

    def _init_loc_bias(self, _: str, arr: NDArray) -> None:
        if arr.shape[0] != 6:
            raise InitializerError(f"the bias of an affine localisation net has 6 numbers, got shape {arr.shape}")
        arr[:] = np.array([1.0, 0, 0, 0, 1.0, 0])

    def _init_zero(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_one(self, _: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_bias(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_quantized_bias(self, _: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_gamma(self, _: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_beta(self, _: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_weight(self, name: str, arr: NDArray) -> None:
        """Fills a weight; subclasses define it."""
        raise NotImplementedError("Must override it")

    def _init_quantized_weight(self, _: str, arr: NDArray) -> None:
        # MXNet: one random number fills the whole array.
        arr[:] = int(random.randint(-127, 127, dtype="int32").asscalar())

    def _init_default(self, name: str, _: Any) -> None:
        raise InitializerError(
            f'Unknown initialization pattern for {name}. Default initialization is now limited to "weight", "bias", '
            f'"gamma" (1.0), and "beta" (0.0). Please use mx.sym.Variable(init=mx.init.*) to set initialization pattern')

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = None  # type: ignore[assignment]


_register = registry.get_register_func(Initializer, "initializer")
alias = registry.get_alias_func(Initializer, "initializer")
create = registry.get_create_func(Initializer, "initializer")


def register(klass: type) -> type:
    """Class decorator: makes an initializer known to `create` and `__init__` attributes by its lower-case name."""
    return _register(klass)


class Load:
    """Takes initial values from a file or dict.

    Args:
      param: a `.params` file, or a dict of arrays; the prefixes `arg:` and `aux:` of names are dropped.
      default_init: the initializer of all other parameters.
      verbose: whether to log where each parameter came from.
    """

    def __init__(self, param: Any, default_init: Callable[[str, NDArray], None] | None = None,
                 verbose: bool = False) -> None:
        if isinstance(param, str):
            param = load(param)
        if not isinstance(param, dict):
            raise ArgumentError(f"param must be a file with names or a dict of arrays, got {type(param).__name__}")
        self.param = {k[4:] if k.startswith(("arg:", "aux:")) else k: v for k, v in param.items()}
        self.default_init = default_init
        self.verbose = verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fills an array.

        Raises:
          ValueError: the loaded array has another shape, or there is none and no `default_init`.
        """
        if name in self.param:
            loaded = self.param[name]
            if arr.shape != loaded.shape:
                raise InitializerError(f"Parameter {name} cannot be initialized from loading. Shape mismatch, target "
                                       f"{arr.shape} vs loaded {loaded.shape}")
            arr[:] = loaded
        elif self.default_init is None:
            raise InitializerError(f"Cannot Initialize {name}. Not found in loaded param and no default Initializer is "
                                   f"provided.")
        else:
            self.default_init(name, arr)
        if self.verbose:
            logging.info("Initialized %s by %s", name, "loading" if name in self.param else "default")


class Mixed:
    """Chooses the initializer by regular expressions on the name.

    Args:
      patterns: regular expressions, matched at the beginning of a name; the first that matches counts.
      initializers: one for each.
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Callable[[str, NDArray], None]]) -> None:
        if len(patterns) != len(initializers):
            raise InitializerError(f"{len(patterns)} patterns for {len(initializers)} initializers")
        self.map = [(re.compile(p), init) for p, init in zip(patterns, initializers, strict=True)]

    def __call__(self, name: str, arr: NDArray) -> None:
        """Fills an array.

        Raises:
          ValueError: no pattern matches the name.
        """
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise InitializerError(f'Parameter name {name} did not match any pattern. Consider adding a ".*" pattern at the '
                               f"end with default Initializer.")


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


def _uniform(scale: float, arr: NDArray) -> None:
    random.uniform(-scale, scale, arr.shape, out=arr, dtype=arr._dtype.name)


def _normal(sigma: float, arr: NDArray) -> None:
    random.normal(0, sigma, arr.shape, out=arr, dtype=arr._dtype.name)


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
            drawn = random.uniform(-1.0, 1.0, shape=shape).asnumpy()
        elif self.rand_type == "normal":
            drawn = random.normal(0.0, 1.0, shape=shape).asnumpy()
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


def _bilinear(shape: Sequence[int]) -> np.ndarray:
    """The kernel of bilinear upsampling in every channel of a 4-d shape; float32."""
    f = np.ceil(shape[3] / 2.0)
    c = (2 * f - 1 - f % 2) / (2.0 * f)
    y, x = (1 - np.abs(np.arange(n) / f - c) for n in shape[2:])  # MXNet: the height uses the width's f and c too.
    return np.broadcast_to(y[:, None] * x, shape).astype(np.float32)


@register
class Bilinear(Initializer):
    """Fills the 4-d weight of a Deconvolution or UpSampling with the kernel of bilinear upsampling."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = _bilinear(arr.shape)


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
        from symjax.ndarray import zeros

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
