"""Arrays over the processes of `jax.distributed`: summed, gathered, or taken from process 0.

Every process calls the same functions with arrays of the same shapes, in the same order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

_HALF = ("float16", "bfloat16")


@functools.cache
def _mesh(platform: str | None) -> tuple[Mesh, Any]:
    """Returns (a mesh of the first device of each process, this process's device)."""
    first: dict[int, Any] = {}
    for device in sorted(jax.devices(platform), key=lambda d: d.id):
        first.setdefault(device.process_index, device)
    return Mesh(np.array([first[p] for p in sorted(first)]), ("process",)), first[jax.process_index()]


@functools.cache
def _program(what: str, mesh: Mesh) -> Any:
    everywhere = NamedSharding(mesh, PartitionSpec())
    return jax.jit(_WHAT[what], out_shardings=everywhere)


def _total(x: Any) -> Any:
    if x.dtype.name in _HALF:
        return x.astype(jnp.float32).sum(0).astype(x.dtype)
    return x.sum(0, dtype=x.dtype)


def _totals(arrays: Sequence[Any]) -> list[Any]:
    """Sums all arrays of a dtype as one: an exchange costs more than its bytes."""
    made: dict[int, Any] = {}
    for dtype in dict.fromkeys(x.dtype for x in arrays):
        same = [i for i, x in enumerate(arrays) if x.dtype == dtype]
        flat = _total(jnp.concatenate([arrays[i].reshape(arrays[i].shape[0], -1) for i in same], axis=1))
        begin = 0
        for i in same:
            size = math.prod(arrays[i].shape[1:])
            made[i] = flat[begin:begin + size].reshape(arrays[i].shape[1:])
            begin += size
    return [made[i] for i in range(len(arrays))]


_WHAT = {
    "sum": _totals,
    "gather": lambda arrays: list(arrays),
    "first": lambda arrays: [x[0] for x in arrays],
}


def together(what: str, arrays: Sequence[Any], platform: str | None = None) -> list[Any]:
    """Returns the arrays of all processes put together, in one collective call.

    Args:
      what: "sum"; "gather", with an axis for the processes in front; "first", those of process 0.
      arrays: numpy or JAX arrays.
      platform: the kind of devices that exchange them, JAX's default one if None.

    Returns:
      JAX arrays on this process's device, the same in all processes.
    """
    mesh, mine = _mesh(platform)
    shards = NamedSharding(mesh, PartitionSpec("process"))
    with jax.enable_x64(True):
        rows = [jax.device_put(x, mine)[None] for x in arrays]
        spread = [jax.make_array_from_single_device_arrays((mesh.size, *r.shape[1:]), shards, [r]) for r in rows]
        return [x.addressable_data(0) for x in _program(what, mesh)(spread)]
