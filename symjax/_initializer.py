"""What all initializers share: names and how they decide, JSON text, registration, `Load` and `Mixed`."""

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
from symjax.context import Context
from symjax.lowering.errors import ArgumentError, MXNetError
from symjax.ndarray import NDArray, load


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


def generator(ctx: Context) -> np.random.Generator:
    """Returns a fresh source of random numbers on the host, from the state that `mx.random.seed` sets.

    Weights come in many shapes: drawn by JAX, each would have to be compiled first.
    """
    high, low = (int(k) for k in random.next_key_data(ctx))
    return np.random.Generator(np.random.Philox(key=high << 32 | low))


def bilinear(shape: Sequence[int]) -> np.ndarray:
    """The kernel of bilinear upsampling in every channel of a 4-d shape; float32."""
    f = np.ceil(shape[3] / 2.0)
    c = (2 * f - 1 - f % 2) / (2.0 * f)
    y, x = (1 - np.abs(np.arange(n) / f - c) for n in shape[2:])  # MXNet: the height uses the width's f and c too.
    return np.broadcast_to(y[:, None] * x, shape).astype(np.float32)


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
        arr[:] = bilinear(arr.shape)

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
        arr[:] = int(generator(arr.context).integers(-127, 127))

    def _init_default(self, name: str, _: Any) -> None:
        raise InitializerError(
            f'Unknown initialization pattern for {name}. Default initialization is now limited to "weight", "bias", '
            f'"gamma" (1.0), and "beta" (0.0). Please use mx.sym.Variable(init=mx.init.*) to set it')

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
        raise InitializerError(f'Parameter name {name} did not match any pattern. Consider adding a ".*" pattern at '
                               f"the end with default Initializer.")
