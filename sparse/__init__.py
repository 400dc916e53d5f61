"""Sparse storage of symjax: the CSR and RowSparse containers and their lowering rules.

Imported as ``symjax.sparse`` only. The folder lies at the top level of the repository and is linked into the package.
"""

from typing import TYPE_CHECKING, Any

if __name__ != "symjax.sparse":
    raise ImportError(
        f"this package was imported as {__name__!r}; import it as 'symjax.sparse': "
        f"a second copy would register every op twice"
    )

from symjax.sparse.buckets import bucket
from symjax.sparse.convert import (
    csr_from_coo,
    csr_from_numpy,
    csr_from_scipy,
    from_bcoo,
    from_bcsr,
    row_sparse_from_numpy,
    to_bcoo,
    to_bcsr,
    to_numpy,
    to_scipy,
)
from symjax.sparse.csr import CSR, csr_from_dense
from symjax.sparse.row_sparse import RowSparse, row_sparse_from_dense, take_rows

if TYPE_CHECKING:
    from symjax.sparse.taps import value_and_grad

__all__ = [
    "CSR", "RowSparse", "bucket", "csr_from_coo", "csr_from_dense", "csr_from_numpy", "csr_from_scipy", "from_bcoo",
    "from_bcsr", "row_sparse_from_dense", "row_sparse_from_numpy", "take_rows", "to_bcoo", "to_bcsr", "to_numpy",
    "to_scipy", "value_and_grad",
]


def __getattr__(name: str) -> Any:
    if name == "value_and_grad":  # it needs the lowering, which needs this package
        from symjax.sparse.taps import value_and_grad

        return value_and_grad
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
