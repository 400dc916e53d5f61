"""DLPack: sharing arrays with other libraries without copying.

NDArray has `__dlpack__`, so `torch.from_dlpack(a)` and `numpy.from_dlpack(a)` read it directly. The functions here are
MXNet's, which hand capsules around.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.dlpack
import numpy as np

__all__ = ["from_dlpack", "to_dlpack_for_read", "to_dlpack_for_write"]


class _Capsule:
    """A capsule with the methods that consumers of the protocol ask for."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # a bare capsule does not say where it lies: main memory


def to_dlpack_for_read(data: Any) -> Any:
    """Returns a DLPack capsule of an NDArray's contents. The consumer must not write to it."""
    data.wait_to_read()
    return data._data.__dlpack__()


def to_dlpack_for_write(data: Any) -> Any:
    """Returns a DLPack capsule of memory that the NDArray goes on using.

    The array gets memory of its own first, so a consumer on the CPU that writes to it changes this array and no other,
    as long as nobody assigns to the array in between.
    """
    data._set_data(jax.device_put(np.array(data._data), data.context.jax_device))
    data.wait_to_read()
    return data._data.__dlpack__()


def from_dlpack(dlpack: Any) -> Any:
    """Returns an NDArray of the contents of a DLPack capsule, or of an object with `__dlpack__`; shared if possible.

    A bare capsule is taken to lie in main memory; give the array itself for other devices.
    """
    from symjax.context import Context
    from symjax.ndarray.ndarray import NDArray
    from symjax.ndarray.storage import to_device

    source = dlpack if hasattr(dlpack, "__dlpack__") else _Capsule(dlpack)
    with jax.enable_x64(True):
        value = jax.dlpack.from_dlpack(source)
    ctx = Context.from_jax_device(next(iter(value.devices())))
    return NDArray._from_jax(to_device(value, ctx), ctx)
