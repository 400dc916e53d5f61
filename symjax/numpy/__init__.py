"""`mx.np`: numpy's functions on arrays that live on JAX's devices and can be differentiated.

The functions are operators of MXNet (`_np_*`, `_npi_*`); those that it does not have run on the host by numpy.
"""

from __future__ import annotations

from typing import Any

import symjax._numpy  # noqa: F401  enters the definitions
from symjax._numpy.front import ARRAYS, fill
from symjax.numpy import fallback as fallback
from symjax.numpy import utils as utils
from symjax.numpy.io import genfromtxt as genfromtxt
from symjax.numpy.io import set_printoptions as set_printoptions
from symjax.numpy.multiarray import array as array
from symjax.numpy.multiarray import empty as empty
from symjax.numpy.multiarray import ndarray as ndarray
from symjax.numpy.utils import _STR_2_DTYPE_ as _STR_2_DTYPE_

_MODULES = ("fallback", "io", "linalg", "multiarray", "random", "utils")
_get, _names = fill(ARRAYS, "numpy", globals(), _MODULES)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    if name in utils.__all__:
        return getattr(utils, name)
    if name in fallback.__all__ or name in fallback.FINANCIAL:
        return getattr(fallback, name)
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *utils.__all__, *fallback.__all__} - {"symjax", "ARRAYS"})
