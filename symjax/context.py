"""Contexts: where arrays live and operators run.

A `Context` is MXNet's name of a device; `jax_device` is the JAX device behind it. MXNet's CPU contexts of any id are
one and the same machine, so `cpu(3)` is valid everywhere; where JAX has several CPU devices
(`--xla_force_host_platform_device_count`), `cpu(i)` is the i-th of them.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

import jax

from symjax.lowering.errors import DeviceError, did_you_mean

__all__ = ["Context", "cpu", "cpu_pinned", "cpu_shared", "current_context", "gpu", "gpu_memory_info", "num_gpus",
           "num_tpus", "tpu"]

Device = Any
"""A `jax.Device`, which type checkers take for a variable."""

_TEXT = re.compile(r"^(\w+)\((\d+)\)$")


class _Current(threading.local):
    value: Context | None = None


class Context:
    """A device by type and number; as a `with` block it is the default for the arrays created inside.

    Args:
      device_type: "cpu", "gpu", "tpu", "cpu_pinned", "cpu_shared", or another Context to copy.
      device_id: number of the device among those of its type.

    Making one never fails for a known type: that the machine lacks the device shows when it is used (`DeviceError`).
    """

    __slots__ = ("_key", "_old", "_where", "device_id", "device_typeid")

    devtype2str: ClassVar[dict[int, str]] = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared", 6: "tpu"}
    devstr2type: ClassVar[dict[str, int]] = {name: number for number, name in devtype2str.items()}
    _default_ctx = _Current()
    spans: ClassVar[bool] = False
    """Whether it stands for several devices: see `symjax._mesh.MeshContext`."""

    def __init__(self, device_type: str | Context, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            self.device_typeid: int = device_type.device_typeid
            self.device_id: int = device_type.device_id
        else:
            if device_type not in self.devstr2type:
                known = ", ".join(self.devstr2type)
                raise DeviceError(f"unknown device type {device_type!r}; expected one of {known}."
                                  f"{did_you_mean(str(device_type), self.devstr2type)}")
            self.device_typeid = self.devstr2type[device_type]
            self.device_id = int(device_id)
        self._key = self.device_typeid << 32 | self.device_id
        self._where: tuple[str, Device] | None = None
        self._old: list[Context] = []

    @classmethod
    def from_text(cls, text: str) -> Context:
        """Reads "cpu(0)", "gpu(1)" or a bare "gpu"."""
        m = _TEXT.match(text.strip())
        return cls(m.group(1), int(m.group(2))) if m else cls(text.strip())

    @classmethod
    def from_jax_device(cls, device: Any) -> Context:
        """Returns the context of a JAX device."""
        kind = {"cpu": "cpu", "tpu": "tpu"}.get(device.platform, "gpu")
        peers = _devices(kind)
        return cls(kind, peers.index(device) if device in peers else 0)

    @property
    def device_type(self) -> str:
        """The device type as text."""
        return self.devtype2str[self.device_typeid]

    @property
    def jax_device(self) -> Device:
        """The JAX device.

        Raises:
          DeviceError: this machine (or this installation of JAX) has no such device; lists those there are.
        """
        return self.where[1]

    @property
    def platform(self) -> str:
        """"cpu", "cuda", "rocm" or "tpu": the key of the lowering rules' variants."""
        return self.where[0]

    @property
    def where(self) -> tuple[str, Device]:
        """(platform, JAX device)."""
        if self._where is None:
            device = _jax_device(self.device_type, self.device_id)
            self._where = _platform(device), device
        return self._where

    def layout(self, shape: Sequence[int]) -> jax.sharding.Sharding:
        """Returns the JAX sharding of an array of some shape: all of it on the device."""
        return jax.sharding.SingleDeviceSharding(self.jax_device)

    def empty_cache(self) -> None:
        """Does nothing: JAX's allocator returns memory by itself."""

    def __hash__(self) -> int:
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Context) and self.device_typeid == other.device_typeid
                                 and self.device_id == other.device_id)

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, (self.device_type, self.device_id)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Reads the pickle of a context that MXNet wrote: its attributes."""
        self.__init__(self.devtype2str[state["device_typeid"]], state["device_id"])

    def __enter__(self) -> Context:
        self._old.append(current_context())
        Context._default_ctx.value = self
        return self

    def __exit__(self, *exc: object) -> None:
        Context._default_ctx.value = self._old.pop()


_CPU0 = Context("cpu", 0)


def current_context() -> Context:
    """Returns the context of the innermost `with` block, `cpu(0)` outside of any."""
    return Context._default_ctx.value or _CPU0


def cpu(device_id: int = 0) -> Context:
    """Returns the CPU context (every id is the same processor)."""
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """Returns the context of one GPU (CUDA or ROCm)."""
    return Context("gpu", device_id)


def tpu(device_id: int = 0) -> Context:
    """Returns the context of one TPU core (not in MXNet)."""
    return Context("tpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Returns a CPU context for page-locked memory; JAX manages such memory itself, so it is plain CPU memory."""
    return Context("cpu_pinned", device_id)


def cpu_shared(device_id: int = 0) -> Context:
    """Returns a CPU context for memory shared between processes; plain CPU memory here."""
    return Context("cpu_shared", device_id)


def num_gpus() -> int:
    """Returns how many GPUs JAX sees."""
    return len(_devices("gpu"))


def num_tpus() -> int:
    """Returns how many TPU cores JAX sees."""
    return len(_devices("tpu"))


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Returns (free, total) bytes of the memory that JAX may use on one GPU.

    Raises:
      DeviceError: there is no such GPU, or its driver reports no memory statistics.
    """
    stats = gpu(device_id).jax_device.memory_stats()
    if not stats or "bytes_limit" not in stats:
        raise DeviceError(f"gpu({device_id}) reports no memory statistics")
    total = stats["bytes_limit"]
    return total - stats.get("bytes_in_use", 0), total


@functools.cache
def _devices(kind: str) -> list[Device]:
    try:
        return jax.local_devices(backend=kind)
    except RuntimeError:  # JAX: unknown or uninitialised backend
        return []


@functools.cache
def _jax_device(kind: str, number: int) -> Device:
    on_cpu = kind.startswith("cpu")
    found = _devices("cpu" if on_cpu else kind)
    if found and (on_cpu or number < len(found)):
        return found[number if number < len(found) else 0]
    have = [f"{k}({i})" for k in ("cpu", "gpu", "tpu") for i in range(len(_devices(k)))]
    remedy = "" if found else f" JAX finds no {kind}: install its {kind} build, or see JAX_PLATFORMS."
    raise DeviceError(f"{kind}({number}) does not exist here; there are {', '.join(have)}.{remedy}")


def _platform(device: Device) -> str:
    if device.platform != "gpu":
        return device.platform
    return "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"
