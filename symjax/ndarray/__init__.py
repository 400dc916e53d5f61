"""Imperative arrays: `NDArray`, its functions, and every registered op as a function of NDArrays."""

from __future__ import annotations

import importlib
from typing import Any

from symjax.ndarray import _functions as _functions
from symjax.ndarray._sparse_cast import cast_storage as cast_storage
from symjax.ndarray.creation import (
    arange as arange,
)
from symjax.ndarray.creation import (
    array as array,
)
from symjax.ndarray.creation import (
    empty as empty,
)
from symjax.ndarray.creation import (
    eye as eye,
)
from symjax.ndarray.creation import (
    from_dlpack as from_dlpack,
)
from symjax.ndarray.creation import (
    from_numpy as from_numpy,
)
from symjax.ndarray.creation import (
    full as full,
)
from symjax.ndarray.creation import (
    linspace as linspace,
)
from symjax.ndarray.creation import (
    ones as ones,
)
from symjax.ndarray.creation import (
    to_dlpack_for_read as to_dlpack_for_read,
)
from symjax.ndarray.creation import (
    to_dlpack_for_write as to_dlpack_for_write,
)
from symjax.ndarray.creation import (
    zeros as zeros,
)
from symjax.ndarray.elementwise import (
    add as add,
)
from symjax.ndarray.elementwise import (
    divide as divide,
)
from symjax.ndarray.elementwise import (
    equal as equal,
)
from symjax.ndarray.elementwise import (
    greater as greater,
)
from symjax.ndarray.elementwise import (
    greater_equal as greater_equal,
)
from symjax.ndarray.elementwise import (
    hypot as hypot,
)
from symjax.ndarray.elementwise import (
    lesser as lesser,
)
from symjax.ndarray.elementwise import (
    lesser_equal as lesser_equal,
)
from symjax.ndarray.elementwise import (
    logical_and as logical_and,
)
from symjax.ndarray.elementwise import (
    logical_or as logical_or,
)
from symjax.ndarray.elementwise import (
    logical_xor as logical_xor,
)
from symjax.ndarray.elementwise import (
    maximum as maximum,
)
from symjax.ndarray.elementwise import (
    minimum as minimum,
)
from symjax.ndarray.elementwise import (
    modulo as modulo,
)
from symjax.ndarray.elementwise import (
    multiply as multiply,
)
from symjax.ndarray.elementwise import (
    not_equal as not_equal,
)
from symjax.ndarray.elementwise import (
    power as power,
)
from symjax.ndarray.elementwise import (
    subtract as subtract,
)
from symjax.ndarray.elementwise import (
    true_divide as true_divide,
)
from symjax.ndarray.manipulation import (
    concatenate as concatenate,
)
from symjax.ndarray.manipulation import (
    get_indexing_dispatch_code as get_indexing_dispatch_code,
)
from symjax.ndarray.manipulation import (
    get_oshape_of_gather_nd_op as get_oshape_of_gather_nd_op,
)
from symjax.ndarray.manipulation import (
    histogram as histogram,
)
from symjax.ndarray.manipulation import (
    imdecode as imdecode,
)
from symjax.ndarray.manipulation import (
    indexing_key_expand_implicit_axes as indexing_key_expand_implicit_axes,
)
from symjax.ndarray.manipulation import (
    moveaxis as moveaxis,
)
from symjax.ndarray.manipulation import (
    onehot_encode as onehot_encode,
)
from symjax.ndarray.manipulation import (
    split_v2 as split_v2,
)
from symjax.ndarray.manipulation import (
    waitall as waitall,
)
from symjax.ndarray.ndarray import NDArray as NDArray
from symjax.ndarray.sparse import BaseSparseNDArray as _Sparse  # noqa: F401  registers the storage types
from symjax.ndarray.utils import load as load
from symjax.ndarray.utils import load_frombuffer as load_frombuffer
from symjax.ndarray.utils import save as save

_OWN = [
    "NDArray", "add", "arange", "array", "cast_storage", "concatenate", "divide", "empty", "equal", "eye",
    "from_dlpack", "from_numpy", "full", "get_indexing_dispatch_code", "get_oshape_of_gather_nd_op", "greater",
    "greater_equal", "histogram", "hypot", "imdecode", "indexing_key_expand_implicit_axes", "lesser", "lesser_equal",
    "linspace", "load", "load_frombuffer", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "modulo",
    "moveaxis", "multiply", "not_equal", "ones", "onehot_encode", "power", "save", "split_v2", "subtract",
    "to_dlpack_for_read", "to_dlpack_for_write", "true_divide", "waitall", "zeros",
]
_MODULES = ("_internal", "contrib", "image", "linalg", "numpy", "numpy_extension", "op", "random", "sparse", "utils")
_SHORT = {"np": "numpy", "npx": "numpy_extension"}


def __getattr__(name: str) -> Any:
    name = _SHORT.get(name, name)
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

    return sorted({*_OWN, *_MODULES, *_SHORT, *names_in("op")})
