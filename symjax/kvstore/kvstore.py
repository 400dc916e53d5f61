"""`KVStore`: sums what is pushed, keeps it or updates weights by it, and hands it out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from symjax import autograd
from symjax.kvstore._compression import Compression
from symjax.kvstore.base import KVStoreBase
from symjax.lowering.errors import ArgumentError, MissingLoweringError, ShapeError, StorageError, did_you_mean
from symjax.ndarray import NDArray
from symjax.ndarray.sparse import add
from symjax.optimizer import Optimizer, get_updater
from symjax.sparse import RowSparse, take_rows
from symjax.sparse.exact import trimmed
from symjax.sparse.unique import index_on_host

Key = int | str
Updater = Callable[[Any, Any, Any], Any]


def _quiet(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: what the store computes is not part of a program that autograd records."""

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        with autograd.pause(train_mode=autograd.is_training()):
            return method(*args, **kwargs)

    return run


class KVStore(KVStoreBase):
    """Values by key, in one process; `mx.kv.create` makes one (`DistKVStore` for several processes).

    Keys are all ints or all strs. Wherever one value stands for a key, a list may: values that are pushed are summed
    (as gradients from several devices), and every array of `out` is written. For a list of keys, give a list with a
    value, or a list of values, for each. Priorities are taken and not used: XLA orders the work.

    Args:
      handle: the type, "local" or "device" (MXNet: a C handle).
    """

    _local_compression = True
    """Whether gradients are compressed before they are summed in this process."""

    def __init__(self, handle: str) -> None:
        self.handle = handle
        self._compression: Compression | None = None
        self._values: dict[Key, NDArray] = {}
        self._updater: Any = None
        self._placed: set[Key] = set()

    # ---- dense and sparse values

    @_quiet
    def init(self, key: Any, value: Any) -> None:
        """Stores the first value of a key, or of each of several.

        Args:
          key: an int, a str, or a list of either.
          value: an NDArray of any storage type for each key; it is copied.

        Raises:
          MXNetError: a key is stored already.
          AssertionError: keys or values of wrong type, or ints and strs mixed.
        """
        for k, v in self._pairs(key, value):
            if k in self._values:
                raise ArgumentError(f"duplicate init of key {k}: it is stored already; push changes it")
            self._values[k] = v.copy()

    @_quiet
    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sums the values of each key; the sum replaces what is stored, or is what the optimizer updates it by.

        All values of a key in one call, also where the key is there several times, make one sum, in the storage type,
        dtype and on the device of the first.

        Args:
          key: an int, a str, or a list of either.
          value: dense or row_sparse NDArrays; see the class.
          priority: not used.

        Raises:
          MXNetError: a key was not initialised; a csr value; values of different shapes.
        """
        groups: dict[Key, list[NDArray]] = {}
        for k, v in self._pairs(key, value):
            self._stored(k)
            if v.stype == "csr":
                raise StorageError(f"key {k}: a csr value cannot be pushed; push a dense or row_sparse one, "
                                   f"tostype('default')")
            groups.setdefault(k, []).append(v)
        order = list(self._values)
        # MXNet: updates go by key, strings by when they were initialised.
        keys = sorted(groups, key=lambda k: k if isinstance(k, int) else order.index(k))
        for k, total in self._summed({k: groups[k] for k in keys}).items():
            self._receive(k, total)

    def _summed(self, groups: dict[Key, list[NDArray]]) -> dict[Key, NDArray]:
        """Returns the sum of what is pushed to each key."""
        if self._compression is None or not self._local_compression:
            return {k: _sum(k, values) for k, values in groups.items()}
        return {k: _sum(k, [self._compressed(k, i, v) for i, v in enumerate(values)]) for k, values in groups.items()}

    def _compressed(self, key: Key, slot: int, value: NDArray) -> NDArray:
        if value.stype != "default":
            return value
        assert self._compression is not None
        return NDArray._from_jax(self._compression(key, slot, value._data), value.context)

    def _receive(self, key: Key, total: NDArray) -> None:
        if self._updater is None:
            # MXNet: keeps the very array that was pushed if it is one, so that writing to it later changes the store.
            self._values[key] = total
        else:
            # MXNet: updaters get strings as bytes.
            self._updater(key.encode() if isinstance(key, str) else key, *self._together(key, total))

    def _together(self, key: Key, total: NDArray) -> tuple[NDArray, NDArray]:
        """Returns the sum and what is stored on one device: the one where the first gradients came from."""
        stored = self._values[key]
        if key not in self._placed:
            self._placed.add(key)
            stored = self._values[key] = stored.as_in_context(total.context)
        return total.as_in_context(stored.context), stored

    @_quiet
    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copies what is stored to arrays, converting to their dtypes and devices.

        Args:
          key: an int, a str, or a list of either.
          out: the NDArrays to write; see the class.
          priority: not used.
          ignore_sparse: leave sparse arrays of `out` as they are (`row_sparse_pull` is for them).

        Raises:
          MXNetError: a key was not initialised; shapes differ.
          AssertionError: `out` is None.
        """
        if out is None:
            raise ArgumentError("pull: out is None; give the arrays to write")
        for k, o in self._pairs(key, out):
            stored = self._stored(k)
            if o.stype == "default" or not ignore_sparse:
                _copy(k, stored, o)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """`push`, then `pull` to `out`, or to the values themselves if it is None."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """`init`, then `pull` to `out`; so a key can be broadcast once."""
        self.init(key, value)
        self.pull(key, out, priority)

    # ---- rows

    @_quiet
    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Copies some rows of row_sparse values: `out` stores exactly those, distinct and ascending.

        A row that is not stored is stored in `out` as zeros.

        Args:
          key: an int, a str, or a list of either, of row_sparse values.
          out: the RowSparseNDArrays to write; see the class.
          priority: not used.
          row_ids: an NDArray of row positions of any shape, order and with repetitions, for each of `out`, or one for
            a whole list of them.

        Raises:
          MXNetError: a key was not initialised; what is stored or `out` is not row_sparse; a position out of range
            (MXNet reads foreign memory); shapes differ.
          AssertionError: an argument is missing, or the numbers of ids and arrays differ.
        """
        if out is None or row_ids is None:
            raise ArgumentError("row_sparse_pull: out and row_ids are needed")
        row_ids = [row_ids] if isinstance(row_ids, NDArray) else row_ids
        if not isinstance(row_ids, list):
            raise ArgumentError(f"row_ids should be NDArray or list of NDArray, got {type(row_ids).__name__}")
        if len(row_ids) == 1 and isinstance(out, list) and not isinstance(key, (list, tuple)):
            row_ids = row_ids * len(out)
        outs, ids = list(self._pairs(key, out)), list(self._pairs(key, row_ids))
        if len(ids) != len(outs):
            raise ArgumentError(f"the number of row_ids doesn't match the number of values: {len(ids)} and {len(outs)}")
        for (k, o), (_, i) in zip(outs, ids, strict=True):
            self._pull_rows(k, o, i)

    def _pull_rows(self, key: Key, out: NDArray, row_ids: NDArray) -> None:
        stored = self._stored(key)
        for what, x in (("what is stored", stored), ("out", out)):
            if x.stype != "row_sparse":
                raise StorageError(f"row_sparse_pull of key {key}: {what} has storage type {x.stype}, row_sparse is "
                                   f"expected; use pull for dense arrays")
        rows = stored.shape[0]
        ids = row_ids.asnumpy().astype(np.int64).reshape(-1)
        bad = ids[(ids < 0) | (ids >= rows)]
        if bad.size:
            raise ArgumentError(f"row_sparse_pull of key {key}: row {bad[0]} is not inside of {rows} rows")
        unique = jax.device_put(index_on_host(ids, rows).unique, stored.context.jax_device)
        part: Any = type(stored)._from_jax(trimmed(_rows(stored._data, unique)), stored.context)
        _copy(key, part, out)

    # ---- updates

    def set_optimizer(self, optimizer: Any) -> None:
        """Makes pushed values gradients: `optimizer` updates what is stored by their sum.

        Args:
          optimizer: an `mx.optimizer.Optimizer`; its `param_dict`, multipliers and counts go by the store's keys.
        """
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"set_optimizer: expected an Optimizer, got {type(optimizer).__name__}; "
                                f"mx.optimizer.create makes one by name")
        self._set_updater(get_updater(optimizer))

    def _set_updater(self, updater: Updater) -> None:
        """Sets the function `(key, sum of what is pushed, what is stored)` that changes the latter in place.

        String keys come as bytes, as in MXNet. What it raises, `push` raises (MXNet prints it and goes on).
        """
        self._updater = updater

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Writes the optimizer's states (and itself, if asked) to a file; see `mx.optimizer.Updater.get_states`."""
        if self._updater is None:
            raise ArgumentError("Cannot save states for distributed training: there is no optimizer; call "
                                "set_optimizer first")
        Path(fname).write_bytes(self._updater.get_states(dump_optimizer))

    def load_optimizer_states(self, fname: str) -> None:
        """Reads what `save_optimizer_states` wrote."""
        if self._updater is None:
            raise ArgumentError("Cannot load states for distributed training: there is no optimizer; call "
                                "set_optimizer first")
        self._updater.set_states(Path(fname).read_bytes())

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Makes pushed gradients values of two bits: `t` where `r + g >= t`, `-t` where `r + g <= -t`, else 0.

        What is lost is kept in `r`, one for each key and position in a list, and comes with the next push. A "device"
        store compresses each gradient before it sums them (which shows what compression does to training: nothing
        is sent there); a "dist" store what is sent to other processes. Sparse gradients stay as they are.

        Args:
          compression_params: `{"type": "2bit", "threshold": t}`; t is 0.5 by default.

        Raises:
          NotImplementedError: the store is a "local" one (MXNet: an Exception).
          MXNetError: another type; a threshold that is not above 0. At `push`: a gradient that is not float32.
        """
        if "device" not in self.type and "dist" not in self.type:
            raise MissingLoweringError(f"Gradient compression is not supported for this type of kvstore ({self.type}); "
                                       f"use 'device' or 'dist_sync'")
        self._compression = Compression.of(compression_params)

    # ---- what it is

    def is_capable(self, capability: str) -> bool:
        """Whether the store has a capability: "optimizer" is the only one that is known."""
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return True
        raise ValueError(f"Unknown capability: {capability}")

    @property
    def type(self) -> str:
        """The name that the store was made by."""
        return self.handle

    @property
    def rank(self) -> int:
        """The number of this process: 0."""
        return 0

    @property
    def num_workers(self) -> int:
        """The number of processes: 1."""
        return 1

    def _barrier(self) -> None:
        """Waits for all processes, which there is one of."""

    # ---- keys

    def _stored(self, key: Key) -> NDArray:
        found = self._values.get(key)
        if found is None:
            near = did_you_mean(key, [k for k in self._values if isinstance(k, str)]) if isinstance(key, str) else ""
            raise ArgumentError(f"key {key} doesn't exist. Did you init?{near}")
        return found

    def _pairs(self, keys: Any, values: Any) -> Iterator[tuple[Key, NDArray]]:
        """Yields each array with its key.

        Raises:
          AssertionError: wrong types, or another number of values than of keys.
        """
        pairs = list(_flat(keys, values))
        for kind in {isinstance(k, str) for k, _ in pairs}:
            if any(isinstance(k, str) != kind for k in (*self._values, *(k for k, _ in pairs))):
                raise ArgumentError("inconsistent types of keys detected. Mixed key types are not allowed: use ints or "
                                    "strs in one store")
        return iter(pairs)


def _flat(keys: Any, values: Any) -> Iterator[tuple[Key, NDArray]]:
    if isinstance(keys, (list, tuple)):
        if len(keys) != len(values):
            raise ArgumentError(f"{len(keys)} keys, but {len(values)} values: give a value, or a list, for each key")
        for k, v in zip(keys, values, strict=True):
            yield from _flat(k, v)
        return
    if not isinstance(keys, (int, str)):
        raise ArgumentError(f"unexpected type for keys: {type(keys)}")
    for v in (values,) if isinstance(values, NDArray) else values:
        if not isinstance(v, NDArray):
            raise ArgumentError(f"key {keys}: expected an NDArray, got {type(v).__name__}; mx.nd.array makes one")
        yield keys, v


def _sum(key: Key, values: Sequence[NDArray]) -> NDArray:
    first = values[0]
    total: Any = first.copy()
    for v in values[1:]:
        if v.shape != first.shape:
            raise ShapeError(f"key {key}: values of shapes {first.shape} and {v.shape} cannot be summed")
        same: Any = v if v._dtype == first._dtype else v.astype(first.dtype)
        if same.stype != first.stype:
            same = same.tostype(first.stype)
        total = add(total, same.as_in_context(first.context))
    return total


def _copy(key: Key, value: Any, out: Any) -> None:
    if value.shape != out.shape:
        raise ShapeError(f"key {key}: operands shape mismatch, what is stored has shape {value.shape}, out {out.shape}")
    if value.stype != out.stype and out.stype != "default":
        value = value.tostype(out.stype)
    value.copyto(out)


@jax.jit
def _rows(table: RowSparse, unique: Any) -> RowSparse:
    return RowSparse(take_rows(table, unique), unique, table.shape)
