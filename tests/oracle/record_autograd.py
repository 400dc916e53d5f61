"""Record what autograd of real MXNet 1.9.1 does.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_autograd.py

Writes ``tests/golden/autograd.json``; `tests/autograd_cases.py` says what is done.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
os.environ.setdefault("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
from autograd_cases import CASES, attempt  # noqa: E402


def main() -> None:
    found = {}
    for name, call in CASES.items():
        print(name, file=sys.stderr, flush=True)
        found[name] = attempt(lambda call=call: call(mx))
        mx.autograd.set_recording(False)
        mx.autograd.set_training(False)
    path = TESTS / "golden" / "autograd.json"
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    path.write_text(f"{{\n{lines}\n}}\n")
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
