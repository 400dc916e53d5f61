"""Record what autograd of real MXNet 1.9.1 does.

Run it with the oracle's interpreter::

    .venv-oracle/bin/python -m tests.oracle.record_autograd

Writes ``tests/golden/autograd.json``; `tests/autograd_cases.py` says what is done.
"""

from __future__ import annotations

import sys
from typing import Any

from tests.autograd_cases import CASES, attempt
from tests.oracle.recorder import mx, write


def main() -> None:
    found: dict[str, Any] = {}
    for name, call in CASES.items():
        print(name, file=sys.stderr, flush=True)
        found[name] = attempt(lambda call=call: call(mx))
        mx.autograd.set_recording(False)
        mx.autograd.set_training(False)
    write("autograd", found)


if __name__ == "__main__":
    main()
