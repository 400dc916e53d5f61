"""The server process of a distributed store, which has nothing to do here: sums go between the workers."""

from __future__ import annotations

from typing import Any

from symjax import _launch


class KVStoreServer:
    """MXNet's parameter server.

    Args:
      kvstore: the store.
    """

    def __init__(self, kvstore: Any) -> None:
        self.kvstore = kvstore

    def run(self) -> None:
        """Returns at once: workers sum gradients and update by themselves."""


def _init_kvstore_server_module() -> None:
    """Ends the process if it was started as a server or a scheduler; `import symjax` does so already."""
    _launch.start()
