"""The interface of key-value stores, and how one is made by name."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, TypeVar

from symjax.lowering.errors import ArgumentError, MissingLoweringError, did_you_mean

T = TypeVar("T", bound=type)

LOCAL = ("local", "device", "nccl", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device")
"""The types of stores in one process. Where they differ in MXNet, in the device that sums, XLA decides here."""

DISTRIBUTED = ("dist", "dist_sync", "dist_device_sync", "dist_sync_device", "dist_device")
"""The types of stores in several processes; MXNet tells where each sums."""

_PLUGIN = ("kvstore {!r} is not supported: it is a library of its own in MXNet. 'dist_sync' sums over processes by "
           "JAX's collectives; jax.distributed.initialize tells it the processes")


class KVStoreBase:
    """What a key-value store offers; a subclass that is registered can be made by `create`."""

    OPTIMIZER = "optimizer"
    kv_registry: ClassVar[dict[str, type[Any]]] = {}

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Stores a value under a key and copies it to all of `out`."""
        raise NotImplementedError

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sums values, and copies the result to all of `out`, or back to the values."""
        raise NotImplementedError

    def set_optimizer(self, optimizer: Any) -> None:
        """Makes pushed values gradients by which an optimizer updates what is stored."""
        raise NotImplementedError

    def is_capable(self, capability: str) -> bool:
        """Whether the store has a capability, such as "optimizer"."""
        raise NotImplementedError

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Writes the optimizer's states to a file."""
        raise NotImplementedError

    def load_optimizer_states(self, fname: str) -> None:
        """Reads the optimizer's states from a file."""
        raise NotImplementedError

    @property
    def type(self) -> str:
        """The name of the kind of store."""
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        raise NotImplementedError

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        raise NotImplementedError

    @staticmethod
    def register(klass: T) -> T:
        """Class decorator: makes a store known to `create` by its class name in lower case."""
        if not isinstance(klass, type):
            raise ArgumentError(f"only a class can be registered as a kvstore, got {klass!r}")
        name = klass.__name__.lower()
        old = KVStoreBase.kv_registry.get(name)
        if old is not None:
            warnings.warn(f"WARNING: New kvstore {klass.__module__}.{klass.__name__} is overriding existing kvstore "
                          f"{old.__module__}.{old.__name__}", UserWarning, stacklevel=2)
        KVStoreBase.kv_registry[name] = klass
        return klass


def create(name: str = "local") -> Any:
    """Returns a new key-value store.

    Args:
      name: "local", "device" or "nccl" (the same here, but for gradient compression), "dist_sync",
        "dist_device_sync" or "dist_sync_device" (one store in all processes; see `symjax.kvstore.dist.DistKVStore`), or
        the name of a registered class; in any case.

    Raises:
      TypeError: the name is no text.
      NotImplementedError: an asynchronous store ("dist_async"), or a plug-in ("horovod", "byteps").
      MXNetError: a store of several processes, and the others are not known.
      ValueError: there is no store of that name (MXNet makes a local one).
    """
    from symjax.kvstore.kvstore import KVStore

    if not isinstance(name, str):
        raise TypeError("name must be a string")
    name = name.lower()
    if name in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[name]()
    if name in LOCAL:
        return KVStore(name)
    if name in DISTRIBUTED or "_async" in name:
        from symjax.kvstore import dist

        return dist.create(name)
    if name in ("horovod", "p3", "byteps"):
        raise MissingLoweringError(_PLUGIN.format(name))
    known = (*LOCAL, *DISTRIBUTED, *KVStoreBase.kv_registry)
    raise ValueError(f"there is no kvstore {name!r}; there are {', '.join(known)}.{did_you_mean(name, known)}")
