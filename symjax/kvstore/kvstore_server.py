"""The server process of a distributed store, which there is none of."""

from __future__ import annotations

from typing import Any

from symjax.kvstore.base import _REMEDY
from symjax.lowering.errors import MissingLoweringError


class KVStoreServer:
    """MXNet's parameter server.

    Args:
      kvstore: the store.
    """

    def __init__(self, kvstore: Any) -> None:
        self.kvstore = kvstore

    def run(self) -> None:
        """Not supported.

        Raises:
          NotImplementedError: always.
        """
        raise MissingLoweringError(f"kvstore servers are not supported: {_REMEDY.format('distributed')}")
