"""`CSRNDArray`, a matrix in compressed sparse row form."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from symjax.lowering.errors import ArgumentError, StorageError
from symjax.ndarray._sparse_array import BaseSparseNDArray, place
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.elementwise import op_named
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import storage_class
from symjax.ndarray.tape import STATE
from symjax.serialization import CSRRecord
from symjax.sparse import CSR, convert

_RULES = ("Indices of csr NDArray should be non-negative, in ascending order per row and less than the number of "
          "columns; indptr should rise from 0 to the number of stored values")


def _shape_problem(shape: tuple[int, ...], data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> str | None:
    if len(shape) == 2 and indptr.shape == (shape[0] + 1,) and data.ndim == 1 and indices.shape == data.shape:
        return None
    return (f"Shape mismatch of this csr NDArray: shape {shape}, data {data.shape}, indices {indices.shape}, indptr "
            f"{indptr.shape}; expected indptr ({shape[0] + 1},) and data and indices of one length")


def _indptr_problem(data: np.ndarray, indptr: np.ndarray) -> str | None:
    if indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr) < 0).any():
        return f"{_RULES}; indptr {_brief(indptr)} does not, for {len(data)} values"
    return None


def _index_problem(shape: tuple[int, ...], data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> str | None:
    problem = _indptr_problem(data, indptr) or _range_problem(shape, data, indices, indptr)
    if problem or len(indices) < 2:
        return problem
    inside = np.ones(len(indices), bool)
    inside[indptr[:-1][indptr[:-1] < len(indices)]] = False  # where a row begins, its first column may be anything
    bad = np.flatnonzero(inside[1:] & (np.diff(indices) <= 0))
    if len(bad):
        row = int(np.searchsorted(indptr, bad[0] + 1, side="right")) - 1
        return f"{_RULES}; those of row {row} do not ascend: {_brief(indices[indptr[row] : indptr[row + 1]])}"
    return None


def _range_problem(shape: tuple[int, ...], data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> str | None:
    if len(indices) and (indices.min() < 0 or indices.max() >= shape[1]):
        bad = int(indices.min()) if indices.min() < 0 else int(indices.max())
        return f"{_RULES}; {bad} is not inside of {shape[1]} columns"
    return _indptr_problem(data, indptr)


def _brief(values: np.ndarray) -> str:
    return np.array2string(values, threshold=8, edgeitems=3)


@storage_class("csr")
class CSRNDArray(BaseSparseNDArray):
    """A matrix of which each row stores some columns, in ascending order, and the values there.

    Row i stores the columns `indices[indptr[i]:indptr[i + 1]]` with the values `data[indptr[i]:indptr[i + 1]]`.
    `csr_matrix` makes one.
    """

    __slots__ = ()
    __module__ = "symjax.ndarray.sparse"
    _container: ClassVar[type[Any]] = CSR
    _shape_problem = staticmethod(_shape_problem)
    _index_problem = staticmethod(_index_problem)
    _range_problem = staticmethod(_range_problem)

    @classmethod
    def _from_numpy(cls, x: np.ndarray) -> Any:
        return convert.csr_from_numpy(x)

    @property
    def _aux_types(self) -> list[Any]:
        return [np.int64, np.int64]

    def _aux_data(self, i: int) -> NDArray:
        return self._part((2, 1)[i])  # MXNet: indptr comes first

    @property
    def indices(self) -> NDArray:
        """A copy of the column of each stored value, (nnz,) int64."""
        return self._part(1)

    @indices.setter
    def indices(self, indices: Any) -> None:
        raise self._fixed("indices")

    @property
    def indptr(self) -> NDArray:
        """A copy of where each row begins in `data` and `indices`, (rows + 1,) int64."""
        return self._part(2)

    @indptr.setter
    def indptr(self, indptr: Any) -> None:
        raise self._fixed("indptr")

    def asscipy(self) -> Any:
        """Returns a copy as `scipy.sparse.csr_matrix`."""
        value: Any = self._data
        return convert.to_scipy(value)

    # ---- rows

    def __getitem__(self, key: Any) -> Any:
        """Returns rows as a CSRNDArray: row i as a (1, columns) matrix, or those of a slice with step 1.

        Raises:
          IndexError: the row does not exist.
          ValueError: another kind of key, or a step.
        """
        rows = self.shape[0]
        if isinstance(key, int):
            if not -rows <= key < rows:
                raise IndexError(f"index {key} is out of bounds for axis 0 with size {rows}")
            return self._rows(key % rows, key % rows + 1)
        if isinstance(key, slice):
            if key.step is not None:
                raise ValueError("CSRNDArray only supports continuous slicing on axis 0")
            if key.start is None and key.stop is None:
                return self
            # MXNet: a stop of 0 counts as none
            begin, end, _ = slice(key.start or 0, key.stop or rows).indices(rows)
            return self._rows(begin, max(begin, end))
        if isinstance(key, tuple):
            raise ValueError("Multi-dimension indexing is not supported")
        raise ValueError(f"Undefined behaviour for {key}")

    def _rows(self, begin: int, end: int) -> Any:
        if STATE.recording and self._tape is not None:
            return invoke(op_named("slice"), (self,), {"begin": (begin,), "end": (end,)})
        value: Any = self._data
        indptr = np.asarray(value.indptr)
        first, last = int(indptr[begin]), int(indptr[end])
        made = CSR.from_host(np.asarray(value.data)[first:last], np.asarray(value.indices)[first:last],
                             indptr[begin : end + 1] - first, (end - begin, self.shape[1]))
        return self._from_jax(place(made, self.context), self.context)

    def _bad_key(self, key: Any) -> Exception:
        if isinstance(key, (int, tuple)):
            return super()._bad_key(key)
        return ArgumentError(f"CSRNDArray only supports [:] for assignment, got {key!r}")

    def _assign_number(self, value: float) -> None:
        raise ValueError("Assigning numeric types to CSRNDArray is not implemented yet.")

    # ---- files

    def _to_record(self) -> CSRRecord:
        if self.handle is None:
            raise StorageError("this CSRNDArray holds nothing")
        value: Any = self._data
        data, indices, indptr = value.host()
        return CSRRecord(data, indptr, indices, self.shape)

    @classmethod
    def _read_record(cls, record: CSRRecord) -> CSR:
        indptr = record.indptr if len(record.indptr) else np.zeros(record.shape[0] + 1, np.int64)
        return CSR.from_host(record.data, record.indices, indptr, (record.shape[0], record.shape[1]))
