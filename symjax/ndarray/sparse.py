"""`mx.nd.sparse`: arrays of csr and row_sparse storage, and the operators that MXNet lists here."""

from __future__ import annotations

from symjax.base import NotSupportedForSparseNDArray as NotSupportedForSparseNDArray
from symjax.context import Context as Context
from symjax.context import current_context as current_context
from symjax.ndarray import _functions
from symjax.ndarray._sparse_arithmetic import add as add
from symjax.ndarray._sparse_arithmetic import divide as divide
from symjax.ndarray._sparse_arithmetic import multiply as multiply
from symjax.ndarray._sparse_arithmetic import subtract as subtract
from symjax.ndarray._sparse_array import BaseSparseNDArray as BaseSparseNDArray
from symjax.ndarray._sparse_cast import cast_storage as cast_storage
from symjax.ndarray._sparse_creation import array as array
from symjax.ndarray._sparse_creation import csr_matrix as csr_matrix
from symjax.ndarray._sparse_creation import empty as empty
from symjax.ndarray._sparse_creation import row_sparse_array as row_sparse_array
from symjax.ndarray._sparse_creation import zeros as zeros
from symjax.ndarray._sparse_csr import CSRNDArray as CSRNDArray
from symjax.ndarray._sparse_row import RowSparseNDArray as RowSparseNDArray
from symjax.ndarray.ndarray import NDArray as NDArray

__getattr__, __dir__ = _functions.fill("sparse", globals())
