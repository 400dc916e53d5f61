"""What the containers of sparse arrays have in common."""

from __future__ import annotations

import math
from typing import Any, Self

import jax


class Container:
    """A pytree with stored values `data` and a static `shape`; the subclass says where the values stand."""

    data: Any
    shape: tuple[int, ...]

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the array, stored or not."""
        return math.prod(self.shape)

    @property
    def capacity(self) -> int:
        """How many entries (csr) or rows (row_sparse) there is room for."""
        return self.data.shape[0]

    def devices(self) -> set[Any]:
        return self.data.devices()

    def block_until_ready(self) -> Self:
        """Waits until all parts are computed, as `jax.Array.block_until_ready` does, and returns the container."""
        return jax.block_until_ready(self)

    def with_data(self, data: Any) -> Self:
        """Returns a container with the same pattern and other values."""
        raise NotImplementedError(f"{type(self).__name__}.with_data")

    def astype(self, dtype: Any) -> Self:
        return self.with_data(self.data.astype(dtype))
