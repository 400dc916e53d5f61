"""The operators that MXNet also lists under `sparse`, on dense arrays; sparse storage itself is not supported."""

from __future__ import annotations

from typing import Any

from symjax.lowering.errors import MissingLoweringError
from symjax.ndarray import _functions

_STORAGE = ("BaseSparseNDArray", "CSRNDArray", "RowSparseNDArray", "array", "csr_matrix", "empty", "row_sparse_array",
            "zeros")

_function, __dir__ = _functions.fill("sparse", globals())


def __getattr__(name: str) -> Any:
    if name in _STORAGE:
        raise MissingLoweringError(f"mx.nd.sparse.{name}: csr and row_sparse storage is not supported; use dense "
                                   f"arrays")
    return _function(name)
