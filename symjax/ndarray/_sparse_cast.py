"""`mx.nd.cast_storage`."""

from __future__ import annotations

from typing import Any

from symjax.base import _Null
from symjax.ndarray._functions import function_in
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.tape import STATE


def cast_storage(data: Any = None, stype: Any = _Null, out: Any = None, name: Any = None, **kwargs: Any) -> Any:
    """Returns the same numbers in another storage type.

    From dense to csr the elements that are not zero are kept, to row_sparse the rows that have one. csr needs a matrix.

    Args:
      data (NDArray): input.
      stype: "default", "csr" or "row_sparse".
      out (NDArray, optional): written in place of a new result.

    Raises:
      MXNetError: csr to row_sparse or the other way.
    """
    plain = out is None and not STATE.recording and not kwargs
    if plain and stype in ("csr", "row_sparse") and isinstance(data, NDArray) and data.stype == "default":
        return data.tostype(stype)  # counts on the host, where a compiled function needs room for every element
    return function_in("op", "cast_storage")(data, stype, out=out, **kwargs)
