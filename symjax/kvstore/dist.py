"""`DistKVStore`: one store in all processes of `jax.distributed`; what is pushed is summed over them."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from symjax.kvstore import _compression
from symjax.kvstore._processes import together
from symjax.kvstore.kvstore import Key, KVStore, _quiet
from symjax.lowering.errors import ArgumentError, MissingLoweringError, MXNetError
from symjax.ndarray import NDArray
from symjax.ndarray.sparse import add
from symjax.ndarray.storage import class_of, to_device
from symjax.sparse import RowSparse

_ALONE = ("kvstore {!r} needs to know the other processes: call jax.distributed.initialize(address, number, rank) "
          "before anything else of JAX or symjax runs, or start the program with MXNet's launcher (DMLC_ROLE=worker, "
          "DMLC_NUM_WORKER, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT, and a process with DMLC_ROLE=scheduler). In one "
          "process, 'device' is the store to use")
_ASYNC = ("kvstore {!r} is not supported: workers exchange gradients by collective sums, in which all take part at "
          "once, and there is no server that could update by each as it comes. Use 'dist_sync'; training then does not "
          "depend on how fast each worker is")


def create(name: str) -> KVStore:
    """Returns the store of several processes; `mx.kv.create` calls it.

    Raises:
      NotImplementedError: an asynchronous one.
      MXNetError: there is no `jax.distributed` and no launcher's environment.
    """
    from symjax import _launch

    if "_async" in name:
        raise MissingLoweringError(_ASYNC.format(name))
    if not _launch.joined():
        raise MXNetError(_ALONE.format(name))
    return DistKVStore(name)


class DistKVStore(KVStore):
    """A store that all processes hold and change in the same way.

    Every process makes the same calls with the same keys and shapes in the same order (MXNet's workers may differ in
    order; collective sums cannot). Gradients are summed by one collective call for each `push`, then every process
    makes the same update. Give lists of keys where you can: they share one call.

    Args:
      handle: the type, such as "dist_sync".
    """

    _local_compression = False
    gathers_keys = True
    """Whether a push of several keys is cheaper than pushes of each."""

    def __init__(self, handle: str) -> None:
        super().__init__(handle)
        self._seen: set[int] = set()
        self._unchecked: tuple[int, Any] | None = None

    # ---- what it is

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return jax.process_index()

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        return jax.process_count()

    def _barrier(self) -> None:
        """Waits until all processes are here."""
        self._agree("barrier", (), ())
        self._settle()

    # ---- values

    @_quiet
    def init(self, key: Any, value: Any) -> None:
        """Stores the first value of a key, or of each of several: those of worker 0; see `KVStore.init`."""
        pairs = list(self._pairs(key, value))
        super().init(key, value)
        keys = [k for k, _ in pairs]
        self._agree("init", keys, [self._values[k] for k in keys])
        self._follow(keys)

    def _follow(self, keys: Sequence[Key]) -> None:
        """Takes over worker 0's values."""
        dense = [k for k in keys if self._values[k].stype == "default"]
        if dense:
            arrays = together("first", [self._values[k]._data for k in dense], self._platform(dense))
            for k, x in zip(dense, arrays, strict=True):
                self._values[k] = NDArray._from_jax(to_device(x, self._values[k].context), self._values[k].context)
        for k in (k for k in keys if k not in dense):
            self._values[k] = self._rows_of_all(k, self._values[k])[0]

    def _summed(self, groups: dict[Key, list[NDArray]]) -> dict[Key, NDArray]:
        totals = super()._summed(groups)
        if self.num_workers == 1 and self._compression is None:
            return totals
        self._agree("push", list(totals), list(totals.values()))
        for k, x in totals.items():
            if x.stype != "default":
                parts = self._rows_of_all(k, x)
                totals[k] = parts[0]
                for part in parts[1:]:
                    totals[k] = add(totals[k], part)
        dense = [k for k, x in totals.items() if x.stype == "default"]
        if dense:
            exchange = self._exchange if self._compression is None else self._exchange_compressed
            for k, x in zip(dense, exchange(dense, totals), strict=True):
                totals[k] = NDArray._from_jax(to_device(x, totals[k].context), totals[k].context)
        return totals

    def _exchange(self, keys: Sequence[Key], totals: dict[Key, NDArray]) -> list[Any]:
        return together("sum", [totals[k]._data for k in keys], totals[keys[0]].context.jax_device.platform)

    def _exchange_compressed(self, keys: Sequence[Key], totals: dict[Key, NDArray]) -> list[Any]:
        """Sends two bits for each number."""
        compression = self._compression
        assert compression is not None
        with jax.enable_x64(True):
            packed = [_compression.pack(compression(k, 0, totals[k]._data)) for k in keys]
            every = together("gather", packed, totals[keys[0]].context.jax_device.platform)
            return [_compression.unpacked_sum(x, compression.threshold, totals[k].shape)
                    for k, x in zip(keys, every, strict=True)]

    def _rows_of_all(self, key: Key, array: Any) -> list[Any]:
        """Returns the row_sparse arrays of all processes."""
        host = array._data.host()
        platform = array.context.jax_device.platform
        counts = np.asarray(together("gather", [np.array(len(host.indices), np.int64)], platform)[0])
        room = int(counts.max())
        data = np.zeros((room, *array.shape[1:]), host.data.dtype)
        indices = np.zeros(room, np.int64)
        data[:len(host.data)], indices[:len(host.indices)] = host.data, host.indices
        every = [np.asarray(x) for x in together("gather", [data, indices], platform)]
        return [self._rows(array, d[:n], i[:n]) for d, i, n in zip(*every, counts, strict=True)]

    @staticmethod
    def _rows(like: Any, data: np.ndarray, indices: np.ndarray) -> Any:
        with jax.enable_x64(True):
            rows = jax.device_put(RowSparse.from_host(data, indices, like.shape), like.context.jax_device)
        return class_of("row_sparse")._from_jax(rows, like.context)

    def _platform(self, keys: Sequence[Key]) -> str:
        return self._values[keys[0]].context.jax_device.platform

    # ---- updates

    def set_optimizer(self, optimizer: Any) -> None:
        """Makes pushed values gradients: a copy of `optimizer` updates what is stored, the same in every process.

        As with MXNet's servers, changing the optimizer later does nothing; call this again. A learning rate scheduler
        goes on in the copy.
        """
        super().set_optimizer(copy.deepcopy(optimizer))

    def _receive(self, key: Key, total: NDArray) -> None:
        super()._receive(key, total)
        if getattr(getattr(self._updater, "optimizer", None), "draws_noise", False):
            self._follow([key])  # each process drew other numbers

    def _send_command_to_servers(self, head: int, body: Any) -> None:
        """Does nothing: there are no servers."""

    # ---- all do the same

    def _agree(self, what: str, keys: Sequence[Key], arrays: Sequence[NDArray]) -> None:
        """Makes sure that every process is in the same call; otherwise sums would wait, or mix what does not belong.

        The first time of a call the answer is waited for; later it is looked at in the next call, when it is there.

        Raises:
          ArgumentError: another process does something else.
        """
        text = repr((what, [(k, x.shape, x._dtype.name, x.stype) for k, x in zip(keys, arrays, strict=True)],
                     self._compression and self._compression.threshold))
        code = zlib.crc32(text.encode())
        self._settle()
        self._unchecked = code, (together("gather", [np.array(code, np.uint32)])[0], text)
        if code not in self._seen:
            self._settle()
            self._seen.add(code)

    def _settle(self) -> None:
        if self._unchecked is None:
            return
        code, (answers, text) = self._unchecked
        self._unchecked = None
        codes = np.asarray(answers)
        if (codes != code).any():
            others = ", ".join(str(i) for i in np.flatnonzero(codes != code))
            raise ArgumentError(f"workers do different things: worker {self.rank} is in {text}, worker {others} is "
                                f"not. With {self.type}, all make the same calls with the same keys and shapes in the "
                                f"same order, and the same number of batches")
