"""Imperative arrays: `NDArray`, its functions, and every registered op as a function of NDArrays."""

from __future__ import annotations

import importlib
from typing import Any

from symjax.ndarray import _functions as _functions
from symjax.ndarray.creation import (
    arange,
    array,
    empty,
    eye,
    from_dlpack,
    from_numpy,
    full,
    linspace,
    ones,
    to_dlpack_for_read,
    to_dlpack_for_write,
    zeros,
)
from symjax.ndarray.elementwise import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    hypot,
    lesser,
    lesser_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    modulo,
    multiply,
    not_equal,
    power,
    subtract,
    true_divide,
)
from symjax.ndarray.manipulation import (
    concatenate,
    get_indexing_dispatch_code,
    get_oshape_of_gather_nd_op,
    histogram,
    imdecode,
    indexing_key_expand_implicit_axes,
    moveaxis,
    onehot_encode,
    split_v2,
    waitall,
)
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.utils import load, load_frombuffer, save

_OWN = [
    "NDArray", "add", "arange", "array", "concatenate", "divide", "empty", "equal", "eye", "from_dlpack", "from_numpy",
    "full", "get_indexing_dispatch_code", "get_oshape_of_gather_nd_op", "greater", "greater_equal", "histogram",
    "hypot", "imdecode", "indexing_key_expand_implicit_axes", "lesser", "lesser_equal", "linspace", "load",
    "load_frombuffer", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "modulo", "moveaxis",
    "multiply", "not_equal", "ones", "onehot_encode", "power", "save", "split_v2", "subtract", "to_dlpack_for_read",
    "to_dlpack_for_write", "true_divide", "waitall", "zeros",
]
_MODULES = ("_internal", "contrib", "image", "linalg", "op", "random", "sparse", "utils")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = _functions.function_in("_internal" if name.startswith("_") else "op", name)
    return made


def __dir__() -> list[str]:
    from symjax._op_functions import names_in

    return sorted({*_OWN, *_MODULES, *names_in("op")})
