"""Record how real MXNet 1.9.1 trains models on sparse data.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_sparse_training.py

Writes ``tests/golden/sparse_training.json``; `tests/sparse_training_cases.py` says what is done.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
from sparse_training_cases import MODELS, run_model  # noqa: E402


def main() -> None:
    lines = []
    for name in MODELS:
        begin = time.perf_counter()
        found = run_model(mx, name)
        print(f"{name}: {time.perf_counter() - begin:.1f} s, {found['losses']}", file=sys.stderr)
        lines.append(f'"{name}": {json.dumps(found)}')
    path = TESTS / "golden" / "sparse_training.json"
    path.write_text("{" + ",\n".join(lines) + "}\n")
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
