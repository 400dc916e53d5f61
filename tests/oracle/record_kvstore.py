"""Record what the key-value store of real MXNet 1.9.1 does.

Run it with the oracle's interpreter::

    .venv-oracle/bin/python -m tests.oracle.record_kvstore

Writes ``tests/golden/kvstore.json``; `tests/kvstore_cases.py` says what is done.
"""

from __future__ import annotations

from tests.kvstore_cases import CASES, told
from tests.oracle.recorder import mx, write


def main() -> None:
    write("kvstore", {name: told(call(mx)) for name, call in CASES.items()})


if __name__ == "__main__":
    main()
