"""Sparse storage of symjax: the CSR and RowSparse containers and their lowering rules.

Imported as ``symjax.sparse`` only. The folder lies at the top level of the repository and is linked into the package.
"""

if __name__ != "symjax.sparse":
    raise ImportError(
        f"this package was imported as {__name__!r}; import it as 'symjax.sparse': "
        f"a second copy would register every op twice"
    )

from symjax.sparse.buckets import bucket
from symjax.sparse.csr import CSR, csr_from_dense
from symjax.sparse.row_sparse import RowSparse, row_sparse_from_dense, take_rows

__all__ = ["CSR", "RowSparse", "bucket", "csr_from_dense", "row_sparse_from_dense", "take_rows"]
