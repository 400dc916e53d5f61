"""The class NDArray."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from symjax.context import Context
from symjax.lowering.errors import MXNetError
from symjax.ndarray.storage import NDArrayBase, storage_class


@storage_class("default")
class NDArray(NDArrayBase):
    """A dense n-dimensional array on one device, with contents that can be replaced in place."""

    __slots__ = ()
    __array_priority__ = 1000.0

    @property
    def stype(self) -> str:
        """The storage type: "default"."""
        return "default"

    def wait_to_read(self) -> None:
        """Blocks until the contents are computed."""
        jax.block_until_ready(self._data)

    def asnumpy(self) -> np.ndarray:
        """Returns a writable copy as a numpy array."""
        return np.array(self._data)

    def asscalar(self) -> Any:
        """Returns the only element of an array of size 1 as a numpy scalar.

        Raises:
          ValueError: the size is not 1.
        """
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return self.asnumpy().reshape(-1)[0]

    def __repr__(self) -> str:
        dims = "x".join(map(str, self.shape))
        return f"\n{self.asnumpy()}\n<{type(self).__name__} {dims} @{self.context}>"
