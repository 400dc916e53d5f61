"""Files of `mx.np` arrays."""

from __future__ import annotations

from typing import Any

from symjax import serialization
from symjax.ndarray import utils as _utils
from symjax.ndarray._functions import as_numpy
from symjax.numpy.multiarray import ndarray
from symjax.util import is_np_array, is_np_shape

__all__ = ["load", "save"]


def _check_semantics(verb: str) -> None:
    if not (is_np_shape() and is_np_array()):
        raise ValueError(f"cannot {verb} mx.np arrays while numpy's semantics are off; call npx.set_np() first")


def save(file: str, arr: Any) -> None:
    """Writes arrays to a `.params` file (version 3, which keeps scalars and empty arrays).

    Args:
      file: the path.
      arr: an `mx.np.ndarray`, a list of them, or a dict of them by name.

    Raises:
      ValueError: numpy's semantics are off, or `arr` is something else.
      TypeError: something else is in the list or dict.
    """
    _check_semantics("save")
    if isinstance(arr, ndarray):
        arr = [arr]
    if not isinstance(arr, (list, dict)):
        raise ValueError("data needs to either be a ndarray, dict of (str, ndarray) pairs or a list of ndarrays.")
    names, values = (list(arr), list(arr.values())) if isinstance(arr, dict) else ([], arr)
    if not all(isinstance(n, str) for n in names) or not all(isinstance(v, ndarray) for v in values):
        raise TypeError("Only accepts dict str->ndarray or list of ndarrays")
    serialization.write_params(file, [v.asnumpy() for v in values], names, np_shape=True)


def load(file: str) -> Any:
    """Reads a `.params` file: a list of `mx.np.ndarray`s, or a dict by name.

    Raises:
      ValueError: numpy's semantics are off.
      ParamsFormatError: the file is not one, or broken.
    """
    _check_semantics("load")
    if not isinstance(file, str):
        raise TypeError("file required to be a string")
    made = _utils.load(file)
    as_numpy(list(made.values()) if isinstance(made, dict) else made)
    return made
