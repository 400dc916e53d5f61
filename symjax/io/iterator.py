"""The base class of data iterators, and iterators made of other iterators."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from symjax.io.description import DataBatch, DataDesc
from symjax.lowering.errors import ArgumentError, MXNetError

__all__ = ["DataIter", "PrefetchingIter", "ResizeIter"]


class DataIter:
    """The base of data iterators: `for batch in iterator` walks one epoch, `reset` starts the next.

    A subclass has `provide_data` and `provide_label` (lists of DataDesc), and either `next`, or `iter_next` with
    `getdata`, `getlabel`, `getpad` and `getindex`.

    Args:
      batch_size: the number of examples in a batch.
    """

    provide_data: Any
    provide_label: Any

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Goes back to the first example."""

    def next(self) -> DataBatch:
        """Returns the next batch.

        Raises:
          StopIteration: the epoch is over.
        """
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> Any:
        """Goes to the next batch; False at the end of the epoch."""

    def getdata(self) -> Any:
        """Returns the inputs of this batch, a list of NDArrays."""

    def getlabel(self) -> Any:
        """Returns the targets of this batch, a list of NDArrays."""

    def getindex(self) -> Any:
        """Returns the numbers of the examples in this batch, or None."""
        return None

    def getpad(self) -> Any:
        """Returns how many examples at the end of this batch only fill it up."""


class _Current(DataIter):
    """An iterator that keeps the batch it is at."""

    current_batch: Any = None

    def _batch(self) -> DataBatch:
        if self.current_batch is None:
            raise MXNetError(f"{type(self).__name__}: there is no batch before iter_next or next is called")
        return self.current_batch

    def getdata(self) -> Any:
        return self._batch().data

    def getlabel(self) -> Any:
        return self._batch().label

    def getindex(self) -> Any:
        return self._batch().index

    def getpad(self) -> Any:
        return self._batch().pad


class ResizeIter(_Current):
    """Another iterator with epochs of `size` batches; it starts over as often as needed.

    Args:
      data_iter: the iterator.
      size: batches in an epoch.
      reset_internal: whether `reset` resets `data_iter` too, or goes on where it is.
    """

    def __init__(self, data_iter: Any, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal = data_iter, size, reset_internal
        self.cur = 0
        self.provide_data, self.provide_label = data_iter.provide_data, data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        if self.cur == self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self._first()
        self.cur += 1
        return True

    def _first(self) -> DataBatch:
        try:
            return self.data_iter.next()
        except StopIteration:
            raise MXNetError(f"ResizeIter: {type(self.data_iter).__name__} gives no batch after a reset") from None


class PrefetchingIter(_Current):
    """Iterators run side by side, each one batch ahead in a thread of its own; their arrays form one batch.

    An error of an iterator is raised by the call that wants its batch.

    Args:
      iters: an iterator or a list of them, with the same number of batches.
      rename_data: for each iterator a dict from the names it provides to those wanted, or None.
      rename_label: likewise for labels.
    """

    def __init__(self, iters: Any, rename_data: Any = None, rename_label: Any = None) -> None:
        self.iters: list[Any] = iters if isinstance(iters, list) else [iters]
        self.n_iter = len(self.iters)
        if not self.iters:
            raise ArgumentError("PrefetchingIter needs at least one iterator")
        self.rename_data, self.rename_label = rename_data, rename_label
        super().__init__(self.provide_data[0][1][0])
        self._pool = ThreadPoolExecutor(self.n_iter, "symjax-prefetch")
        self._coming: list[Future[DataBatch | None]] = []
        self._fetch()

    def _fetch(self) -> None:
        self._coming = [self._pool.submit(_next_or_none, it) for it in self.iters]

    @property
    def provide_data(self) -> list[Any]:
        return self._provided("provide_data", self.rename_data)

    @property
    def provide_label(self) -> list[Any]:
        return self._provided("provide_label", self.rename_label)

    def _provided(self, what: str, renames: Any) -> list[Any]:
        given = [getattr(it, what) for it in self.iters]
        if renames is None:
            return [desc for descs in given for desc in descs]
        return [_renamed(desc, names) for names, descs in zip(renames, given, strict=True) for desc in descs]

    def reset(self) -> None:
        for coming in self._coming:
            coming.exception()  # waits; an error of the epoch that is left matters no more
        for it in self.iters:
            it.reset()
        self._fetch()

    def iter_next(self) -> bool:
        batches = [coming.result() for coming in self._coming]
        parts = [b for b in batches if b is not None]
        if not parts:
            return False
        first = parts[0]
        if len(parts) < len(batches) or any(b.pad != first.pad for b in parts):
            raise ArgumentError("PrefetchingIter: the iterators differ in their number of examples")
        self.current_batch = DataBatch(
            [a for b in parts for a in b.data or ()], [a for b in parts for a in b.label or ()], first.pad,
            first.index, provide_data=self.provide_data, provide_label=self.provide_label)
        self._fetch()
        return True

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return self._batch()


def _next_or_none(iterator: Any) -> DataBatch | None:
    try:
        return iterator.next()
    except StopIteration:
        return None


def _renamed(desc: Any, names: dict[str, str]) -> DataDesc:
    if isinstance(desc, DataDesc):
        return DataDesc(names[desc.name], desc.shape, desc.dtype, desc.layout)
    return DataDesc(*desc)
