"""Placing batches on a device."""

from __future__ import annotations

import functools
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding


def place(tree: Any, device: jax.Device) -> Any:
    """Copies numpy arrays, in containers of any kind, to a device, with their exact types.

    It is one compiled call for all of them: `jax.device_put` spends about 50 µs on each array, more than the copying.
    """
    with jax.enable_x64(True):
        return _copy_to(device)(tree)


@functools.cache
def _copy_to(device: jax.Device) -> Any:
    return jax.jit(_same, out_shardings=SingleDeviceSharding(device))


def _same(tree: Any) -> Any:
    return tree
