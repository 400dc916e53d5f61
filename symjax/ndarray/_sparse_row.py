"""`RowSparseNDArray`, an array of which few rows are stored."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from symjax.lowering.errors import ArgumentError, DTypeError, StorageError
from symjax.ndarray import tape
from symjax.ndarray._sparse_array import BaseSparseNDArray, place
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.elementwise import op_named
from symjax.ndarray.ndarray import NDArray
from symjax.ndarray.storage import storage_class
from symjax.ndarray.tape import STATE
from symjax.serialization import RowSparseRecord
from symjax.sparse import RowSparse, convert

_RULES = ("Indices of row_sparse NDArray should be non-negative, less than the size of the first dimension and in "
          "ascending order")


def _shape_problem(shape: tuple[int, ...], data: np.ndarray, indices: np.ndarray) -> str | None:
    if indices.ndim == 1 and data.shape == (len(indices), *shape[1:]):
        return None
    return (f"Shape mismatch of this row_sparse NDArray: shape {shape}, data {data.shape}, indices {indices.shape}; "
            f"expected one row of shape {shape[1:]} for each index")


def _index_problem(shape: tuple[int, ...], data: np.ndarray, indices: np.ndarray) -> str | None:
    problem = _range_problem(shape, data, indices)
    if problem is None and (np.diff(indices) <= 0).any():
        return f"{_RULES}; got {np.array2string(indices, threshold=8, edgeitems=3)}"
    return problem


def _range_problem(shape: tuple[int, ...], data: np.ndarray, indices: np.ndarray) -> str | None:
    if len(indices) and (indices.min() < 0 or indices.max() >= shape[0]):
        bad = int(indices.min()) if indices.min() < 0 else int(indices.max())
        return f"{_RULES}; {bad} is not inside of {shape[0]} rows"
    return None


@storage_class("row_sparse")
class RowSparseNDArray(BaseSparseNDArray):
    """An array of which some rows (slices along the first axis) are stored; the others are zero.

    Row `indices[i]` is `data[i]`; `indices` ascend. `row_sparse_array` makes one.
    """

    __slots__ = ()
    __module__ = "symjax.ndarray.sparse"
    _container: ClassVar[type[Any]] = RowSparse
    _shape_problem = staticmethod(_shape_problem)
    _index_problem = staticmethod(_index_problem)
    _range_problem = staticmethod(_range_problem)

    @classmethod
    def _from_numpy(cls, x: np.ndarray) -> Any:
        return convert.row_sparse_from_numpy(x)

    @property
    def _aux_types(self) -> list[Any]:
        return [np.int64]

    @property
    def indices(self) -> NDArray:
        """A copy of the positions of the stored rows, (rows stored,) int64."""
        return self._part(1)

    @indices.setter
    def indices(self, indices: Any) -> None:
        raise self._fixed("indices")

    # ---- rows

    def __getitem__(self, key: Any) -> Any:
        """Returns this array for `[:]`, the only key there is.

        Raises:
          ValueError, MXNetError: any other key; `retain` picks rows.
        """
        if isinstance(key, int):
            raise StorageError("__getitem__ with int key is not implemented for RowSparseNDArray; retain picks rows")
        if isinstance(key, slice):
            if key != slice(None):
                raise StorageError("RowSparseNDArray only supports [:] for __getitem__")
            return self
        if isinstance(key, tuple):
            raise ValueError("Multi-dimension indexing is not supported")
        raise ValueError(f"Undefined behaviour for {key}")

    def retain(self, indices: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the array with the rows `indices` alone; see `mx.nd.sparse.retain`.

        Args:
          indices: an NDArray of row positions. As in MXNet's own function, `retain(array, indices)` is taken too.
        """
        data = self
        if args and isinstance(indices, BaseSparseNDArray):
            data, indices = indices, args[0]
        return invoke(op_named("_sparse_retain"), (data, indices), kwargs)

    def _bad_key(self, key: Any) -> Exception:
        text = f"RowSparseNDArray only supports [:] for assignment, got {key!r}"
        return DTypeError(text) if isinstance(key, (int, tuple)) else ArgumentError(text)

    def _assign_number(self, value: float) -> None:
        if STATE.recording:
            tape.refuse_in_place(self)
        with np.errstate(all="ignore"):  # MXNet: every row is stored then, also rows of zeros
            rows = np.full(self.shape, np.asarray(value).astype(self._dtype), self._dtype)
        self._set_data(place(RowSparse.from_host(rows, np.arange(self.shape[0]), self.shape), self.context))

    # ---- files

    def _to_record(self) -> RowSparseRecord:
        if self.handle is None:
            raise StorageError("this RowSparseNDArray holds nothing")
        value: Any = self._data
        data, indices = value.host()
        return RowSparseRecord(data, indices, self.shape)

    @classmethod
    def _read_record(cls, record: RowSparseRecord) -> RowSparse:
        return RowSparse.from_host(np.array(record.data), record.indices, record.shape)
