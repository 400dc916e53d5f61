"""`NDArrayIter`: batches of arrays that are in memory."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
from jax import lax

from symjax.io.description import DataBatch, DataDesc
from symjax.io.iterator import DataIter
from symjax.lowering.errors import ArgumentError, MissingLoweringError, ParamError, ShapeError
from symjax.ndarray import NDArray, array
from symjax.ndarray.storage import class_of
from symjax.sparse import CSR
from symjax.sparse.csr import HostCSR

__all__ = ["NDArrayIter"]

_HANDLES = ("pad", "discard", "roll_over")


class NDArrayIter(DataIter):
    """Walks arrays in memory, batch after batch along their batch axis.

    Sources that are not NDArrays become float32. A csr source gives csr batches; it needs
    `last_batch_handle="discard"`.

    Args:
      data: an array (NDArray, numpy, csr, scipy csr, anything numpy can convert), a list of them, or a dict by name.
        One array is called `data_name`; a list gives `_0_data`, `_1_data`, …
      label: likewise, or None.
      batch_size: examples in a batch.
      shuffle: whether to put the examples into a new order at every reset, by `numpy.random`.
      last_batch_handle: what happens to the examples that do not fill the last batch: "pad" fills it up from the first
        examples, "discard" drops them, "roll_over" makes them the beginning of the next epoch.
      data_name: the name of a single array, and the ending of the names of several.
      label_name: likewise for labels.
      layout: letters of the axes; "N" is the batch axis.

    Raises:
      ArgumentError: there are no data.
      TypeError: something given is not an array.
      ShapeError: an array has fewer examples than the first.
      MissingLoweringError: csr arrays are to be padded or rolled over.

    Example:
      >>> import numpy as np
      >>> import symjax as mx
      >>> batches = mx.io.NDArrayIter(np.arange(5), np.arange(5) % 2, batch_size=2)
      >>> [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist(), b.pad) for b in batches]
      [([0.0, 1.0], [0.0, 1.0], 0), ([2.0, 3.0], [0.0, 1.0], 0), ([4.0, 0.0], [0.0, 0.0], 1)]
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
    ) -> None:
        super().__init__(int(batch_size))
        self.data = _named(data, data_name)
        self.label = _named(label, label_name)
        if not self.data:
            raise ArgumentError("NDArrayIter: data must be at least one array")
        self.shuffle, self.last_batch_handle, self.layout = shuffle, last_batch_handle, layout
        self._axis = layout.find("N")
        # MXNet: counts along the first axis even where the batch axis is another
        self.num_data = self.data[0][1].shape[self._axis]
        self._check()
        self.idx = np.arange(self.num_data)
        self.cursor = -self.batch_size
        self._rest: tuple[list[Any], list[Any]] | None = None
        self.reset()

    def _check(self) -> None:
        if self.last_batch_handle not in _HANDLES:
            raise ParamError(f"NDArrayIter: last_batch_handle must be one of {', '.join(_HANDLES)}, got "
                             f"{self.last_batch_handle!r}")
        if self.batch_size < 1:
            raise ParamError(f"NDArrayIter: batch_size must be at least 1, got {self.batch_size}")
        for name, a in self.data + self.label:
            if len(a.shape) <= self._axis or a.shape[self._axis] < self.num_data:
                raise ShapeError(f"NDArrayIter: {name} has shape {a.shape}, too few examples: {self.data[0][0]} has "
                                 f"{self.num_data}")
            if a.stype == "csr" and self.last_batch_handle != "discard":
                raise MissingLoweringError(f"NDArrayIter: {name} is csr, which needs last_batch_handle='discard', not "
                                           f"{self.last_batch_handle!r}")

    @property
    def data_list(self) -> list[Any]:
        """The arrays, data first."""
        return [a for _, a in self.data + self.label]

    @property
    def num_source(self) -> int:
        """The number of arrays."""
        return len(self.data) + len(self.label)

    @property
    def provide_data(self) -> list[DataDesc]:
        return self._describe(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        return self._describe(self.label)

    def _describe(self, arrays: list[tuple[str, Any]]) -> list[DataDesc]:
        axis, out = self._axis, []
        for name, a in arrays:
            shape = list(a.shape)
            shape[axis] = self.batch_size
            out.append(DataDesc(name, tuple(shape), a.dtype, self.layout))
        return out

    def hard_reset(self) -> None:
        """Goes back to the first example and forgets those rolled over."""
        self._shuffle()
        self.cursor, self._rest = -self.batch_size, None

    def reset(self) -> None:
        """Goes back to the first example, behind those rolled over."""
        self._shuffle()
        over = self.cursor - self.num_data
        rolled = self.last_batch_handle == "roll_over" and -self.batch_size < over < 0
        self.cursor = over - self.batch_size if rolled else -self.batch_size

    def _shuffle(self) -> None:
        if not self.shuffle:
            return
        # MXNet: the order is kept and shuffled on, and it is applied to arrays that are in the last order
        np.random.shuffle(self.idx)
        self.data, self.label = ([(n, _reordered(a, self.idx, self._axis)) for n, a in arrays]
                                 for arrays in (self.data, self.label))

    def iter_next(self) -> bool:
        self.cursor += self.batch_size
        return self.cursor < self.num_data

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        data, label = self.getdata(), self.getlabel()
        if self._rolled_over:
            self._rest = None
        if data[0].shape[self._axis] != self.batch_size:
            self._rest = (data, label)
            raise StopIteration
        return DataBatch(data, label, self.getpad())

    @property
    def _rolled_over(self) -> bool:
        return self.last_batch_handle == "roll_over" and -self.batch_size < self.cursor < 0

    def getdata(self) -> list[Any]:
        return self._batch(self.data, 0)

    def getlabel(self) -> list[Any]:
        return self._batch(self.label, 1)

    def getpad(self) -> int:
        if self.last_batch_handle == "pad":
            return max(self.cursor + self.batch_size - self.num_data, 0)
        return -self.cursor if self._rolled_over else 0

    def _batch(self, arrays: list[tuple[str, Any]], part: int) -> list[Any]:
        first, last = self.cursor, self.cursor + self.batch_size
        if first >= self.num_data:
            raise ArgumentError("NDArrayIter: the epoch is over; call reset")
        if self._rolled_over:
            if self._rest is None:
                raise ArgumentError("NDArrayIter: there are no examples rolled over from an epoch before; call reset")
            # MXNet: fails where these are fewer than a batch; here they roll over to the epoch after
            new = [_window(a, 0, min(last, self.num_data), self._axis) for _, a in arrays]
            return [_joined(old, a, self._axis) for old, a in zip(self._rest[part], new, strict=True)]
        if last <= self.num_data or self.last_batch_handle != "pad":
            return [_window(a, max(first, 0), min(last, self.num_data), self._axis) for _, a in arrays]
        which = np.arange(first, last) % self.num_data
        return [_reordered(a, which, self._axis) for _, a in arrays]


def _named(source: Any, name: str) -> list[tuple[str, Any]]:
    """Returns the arrays by name, in the order of the names."""
    if source is None:
        return []
    if not isinstance(source, (list, dict)):
        source = [source]
    if isinstance(source, list):
        source = {name: source[0]} if len(source) == 1 else {f"_{i}_{name}": a for i, a in enumerate(source)}
    return [(key, _as_array(key, source[key])) for key in sorted(source)]


def _as_array(name: str, source: Any) -> Any:
    if isinstance(source, NDArray):
        return source.tostype("default") if source.stype == "row_sparse" else source
    try:
        return array(source)
    except TypeError as e:
        raise TypeError(f"NDArrayIter: {name} must be an NDArray, a numpy array or a csr matrix, got "
                        f"{type(source).__name__}: {e}") from None


@functools.partial(jax.jit, static_argnums=(2, 3))
def _slice(value: Any, start: Any, size: int, axis: int) -> Any:
    return lax.dynamic_slice_in_dim(value, start, size, axis)


@functools.partial(jax.jit, static_argnums=2)
def _take(value: Any, which: Any, axis: int) -> Any:
    return jax.numpy.take(value, which, axis=axis, mode="clip")


@jax.jit
def _concat(first: Any, second: Any) -> Any:
    return jax.numpy.concatenate([first, second], 0)


def _window(source: Any, start: int, stop: int, axis: int) -> Any:
    """Returns the examples `start` to `stop`, a copy."""
    if source.stype == "csr":
        data, indices, indptr = _host(source)
        low, high = indptr[start], indptr[stop]
        return _csr_like(source, data[low:high], indices[low:high], indptr[start : stop + 1] - low)
    with jax.enable_x64(True):
        return source._from_jax(_slice(source._data, np.int64(start), stop - start, axis % source.ndim), source.context)


def _reordered(source: Any, which: np.ndarray, axis: int) -> Any:
    """Returns the examples of the given numbers, in their order."""
    if source.stype == "csr":
        data, indices, indptr = _host(source)
        counts = np.diff(indptr)[which]
        bounds = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(bounds[-1]) + np.repeat(indptr[which] - bounds[:-1], counts)
        return _csr_like(source, data[at], indices[at], bounds)
    with jax.enable_x64(True):
        return source._from_jax(_take(source._data, which, axis % source.ndim), source.context)


def _joined(first: Any, second: Any, axis: int) -> Any:
    with jax.enable_x64(True):
        a, b = (jax.numpy.moveaxis(x._data, axis, 0) for x in (first, second))
        return first._from_jax(jax.numpy.moveaxis(_concat(a, b), 0, axis), first.context)


def _host(source: Any) -> HostCSR:
    """The stored entries as numpy arrays; no copy where the array is on the CPU."""
    value: CSR = source._data
    indptr = np.asarray(value.indptr)
    return HostCSR(np.asarray(value.data), np.asarray(value.indices), indptr)


def _csr_like(source: Any, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    value = CSR.from_host(data, indices, indptr, (len(indptr) - 1, source.shape[1]))
    with jax.enable_x64(True):
        placed = jax.device_put(value, source.context.jax_device)
    return class_of("csr")._from_jax(placed, source.context)
