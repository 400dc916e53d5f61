"""A data iterator over a loader of pairs (MXNet's `mx.contrib.io`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax.io import DataDesc, DataIter
from symjax.ndarray import NDArray

__all__ = ["DataDesc", "DataIter", "DataLoaderIter"]


class DataLoaderIter(DataIter):
    """Makes a data iterator of a loader, for modules: anything iterable of `(data, label)`, batch by batch.

    The first batch, which is looked at for the shapes, is the largest; smaller ones are filled up, and their `pad` says
    by how much.

    Args:
      loader: iterable as often as wanted: a data loader of any library, a list.
      data_name: the data's name.
      label_name: the label's name.
      dtype: what batches are converted to.
    """

    def __init__(self, loader: Iterable[Any], data_name: str = "data", label_name: str = "softmax_label",
                 dtype: Any = "float32") -> None:
        super().__init__()
        self._loader = loader
        data, label = next(iter(loader))
        self.batch_size = int(data.shape[0])
        self.dtype = dtype
        self.provide_data = [DataDesc(data_name, tuple(data.shape), dtype)]
        self.provide_label = [DataDesc(label_name, tuple(label.shape), dtype)]
        self._current_batch: Any = None
        self._iter: Iterator[Any]
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self._iter = iter(self._loader)

    def iter_next(self) -> bool:
        """Goes to the next batch, and says whether there is one."""
        self._current_batch = next(self._iter, None)
        return self._current_batch is not None

    def getdata(self) -> list[NDArray]:
        """Returns the data of the batch."""
        return [self._filled(self._current_batch[0])]

    def getlabel(self) -> list[NDArray]:
        """Returns the labels of the batch."""
        return [self._filled(self._current_batch[1])]

    def getpad(self) -> int:
        """Returns how many rows at the end were made up."""
        return self.batch_size - int(self._current_batch[0].shape[0])

    def getindex(self) -> None:
        """Returns None: there are no numbers of samples."""

    def _filled(self, part: Any) -> NDArray:
        if isinstance(part, NDArray) and not self.getpad():
            return part.astype(self.dtype)
        rows = part.asnumpy() if isinstance(part, NDArray) else np.asarray(part)
        if self.getpad():
            rows = np.concatenate([rows, np.zeros((self.getpad(), *rows.shape[1:]), rows.dtype)])
        return nd.array(rows, dtype=self.dtype)
