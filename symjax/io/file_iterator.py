"""The iterators over files: what `LibSVMIter` and `CSVIter` have in common."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar

import jax
import numpy as np

from symjax.base import dtype_name
from symjax.context import Context, Device, current_context
from symjax.io._place import place
from symjax.io._reader import Ahead
from symjax.io._rows import RowStream
from symjax.io.description import DataBatch, DataDesc
from symjax.io.iterator import DataIter
from symjax.lowering.errors import DataFormatError, MXNetError
from symjax.lowering.params import Params, param
from symjax.ndarray.storage import class_of

__all__ = ["MXDataIter"]

DType = Literal["bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]
P = TypeVar("P", bound=Params)


class FileParams(Params):
    """Parameters of every iterator over files."""

    batch_size: int = param(ge=1, doc="Number of examples in a batch.")
    round_batch: bool = param(True, doc="Whether the last batch is filled up from the first examples.")
    prefetch_buffer: int = param(4, ge=0, doc="How many batches are read ahead; 0 reads when a batch is asked for.")
    dtype: DType | None = param(None, doc="Type of the arrays, float32 if not given.")
    data_name: str = param("data", doc="Name of the data.")
    label_name: str = param("softmax_label", doc="Name of the label.")

    @property
    def kind(self) -> np.dtype:
        """The type of the arrays."""
        return jax.numpy.dtype(self.dtype or "float32")


@dataclasses.dataclass(frozen=True, slots=True)
class Arrays:
    """One batch: containers or arrays on the device, the number of fill rows, the numbers of the rows."""

    data: Any
    label: Any
    pad: int
    index: np.ndarray


class RowBatches:
    """Batches of the rows of one or more streams that are walked together, epoch after epoch.

    Args:
      name: the iterator's name, for messages.
      params: its parameters.
      open_streams: returns new streams, the first of which says how many rows there are.
      pack: makes the data and the label of a batch from the pieces that were taken from each stream.
      data, label: descriptions of the arrays.
      put: places a batch on a device.

    Attributes:
      device: where the batches are placed, by the thread that reads ahead.
    """

    device: Device

    def __init__(
        self,
        name: str,
        params: FileParams,
        open_streams: Callable[[], list[RowStream]],
        pack: Callable[[list[list[Any]]], tuple[Any, Any]],
        data: DataDesc,
        label: DataDesc,
        put: Callable[[Any, Device], Any] = place,
    ) -> None:
        self._put = put
        self.name, self.params, self.data, self.label = name, params, data, label
        self._open, self._pack = open_streams, pack
        self._streams: list[RowStream] = []
        self._ahead: Ahead | None = None
        self._over = self._filled = False

    def reset(self) -> None:
        """Starts the next epoch.

        After an epoch whose last batch was filled up from the first rows, it begins behind those.
        """
        # MXNet: an epoch left early begins at the first row again, or, if reading ahead had come to the end, behind
        # the rows that filled the last batch. Here always at the first row.
        if not (self._over and self.params.round_batch and self._filled):
            self._close()
            self._streams = []
        self._ahead, self._over = None, False

    def _close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()

    def next(self) -> Arrays:
        """Returns the next batch.

        Raises:
          StopIteration: the epoch is over.
        """
        if self._over:
            raise StopIteration
        if self._ahead is None:
            self._streams = self._streams or self._open()
            self._filled = False
            self._ahead = Ahead(self._epoch(self._streams), self.params.prefetch_buffer)
        try:
            batch = next(self._ahead)
        except StopIteration:
            self._over = True
            raise
        self._filled = batch.pad > 0
        return batch

    def _epoch(self, streams: list[RowStream]) -> Iterator[Arrays]:
        return _epoch(self.name, self.params, streams, self._pack, self.device, self._put)


def _epoch(
    name: str, params: FileParams, streams: list[RowStream], pack: Callable[..., Any], device: Device,
    put: Callable[[Any, Device], Any],
) -> Iterator[Arrays]:
    """Yields the batches up to the one with the last row. Knows nothing of its iterator, which may be gone."""
    size, pad = params.batch_size, 0
    while not pad:
        start = streams[0].position
        taken = _take(name, streams, size)
        count = sum(map(len, taken[0]))
        if not count:
            return
        index = [np.arange(start, start + count, dtype=np.uint64)]
        pad = size - count
        if pad and params.round_batch:
            for stream in streams:
                stream.restart()
            more = _take(name, streams, pad)
            if sum(map(len, more[0])) < pad:
                raise MXNetError(f"{name}: batch_size={size} is more than the rows there are; give a smaller one, or "
                                 f"round_batch=False for a batch that is filled up with empty rows")
            taken = [a + b for a, b in zip(taken, more, strict=True)]
        if pad:
            index.append(np.arange(pad, dtype=np.uint64) if params.round_batch else np.zeros(pad, np.uint64))
        data, label = put(pack(taken), device)
        yield Arrays(data, label, pad, np.concatenate(index))


def _take(name: str, streams: list[RowStream], count: int) -> list[list[Any]]:
    taken = [streams[0].take(count)]
    rows = sum(map(len, taken[0]))
    for stream in streams[1:]:
        taken.append(stream.take(rows))
        if sum(map(len, taken[-1])) < rows:
            raise DataFormatError(f"{name}: the label file has {stream.position} rows, fewer than the data file")
    return taken


class MXDataIter(DataIter):
    """The base of the iterators over files.

    Args:
      handle: the source of batches: `next()` returns `Arrays` or raises StopIteration, `reset()` starts the next
        epoch, `data`, `label` and `params` describe what it gives, `device` is set to where it goes.
      data_name: name of the data.
      label_name: name of the label.
      ctx: where the batches go, the current context by default.
    """

    def __init__(
        self, handle: Any, data_name: str = "data", label_name: str = "softmax_label", ctx: Any = None, **_: Any
    ) -> None:
        super().__init__(handle.params.batch_size)
        self.handle = handle
        # MXNet: ctx="gpu" or "cpu" says for which device memory to read ahead; batches are on the CPU in any case
        self._ctx = ctx if isinstance(ctx, Context) else current_context()
        handle.device = self._ctx.jax_device
        self.provide_data = [handle.data._replace(name=data_name)]
        self.provide_label = [handle.label._replace(name=label_name)]
        for given, desc in ((self.provide_data, handle.data), (self.provide_label, handle.label)):
            given[0].dtype, given[0].layout = desc.dtype, desc.layout
        self._current: tuple[Any, Any, int, np.ndarray] | None = None
        self._debug_skip_load = False

    def debug_skip_load(self) -> None:
        """From now on every batch is the one at hand, without end: to time what uses them without the reading."""
        self._debug_skip_load = True

    def reset(self) -> None:
        self.handle.reset()
        if not self._debug_skip_load:
            self._current = None

    def iter_next(self) -> bool:
        if self._debug_skip_load and self._current is not None:
            return True
        try:
            batch = self.handle.next()
        except StopIteration:
            return False
        self._current = (self._array(batch.data), self._array(batch.label), batch.pad, batch.index)
        return True

    def _array(self, value: Any) -> Any:
        return class_of(getattr(value, "stype", "default"))._from_jax(value, self._ctx)

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def _at(self) -> tuple[Any, Any, int, np.ndarray]:
        if self._current is None:
            raise MXNetError(f"{type(self).__name__}: there is no batch before iter_next or next is called")
        return self._current

    def getdata(self) -> Any:
        """Returns the data of this batch, an NDArray."""
        return self._at()[0]

    def getlabel(self) -> Any:
        """Returns the label of this batch, an NDArray."""
        return self._at()[1]

    def getpad(self) -> int:
        return self._at()[2]

    def getindex(self) -> np.ndarray:
        """Returns the numbers of the rows in this batch, counted in the part that is read, uint64."""
        return self._at()[3]


def read_params(cls: type[P], name: str, given: Mapping[str, Any]) -> P:
    """Reads the arguments of an iterator as MXNet does, by their text.

    An unknown argument is passed over, with a warning.

    Raises:
      ParamError: an argument is missing or cannot be read.
    """
    known = {k: v for k, v in given.items() if k in cls.__specs__}
    if odd := sorted(set(given) - set(known) - {"ctx"}):
        warnings.warn(f"{name} has no argument {', '.join(odd)}; it is passed over", stacklevel=3)
    if known.get("dtype") is not None:
        known["dtype"] = dtype_name(known["dtype"])
    text = {k: str(v) for k, v in known.items() if v is not None}
    return cls.parse(text, name)
