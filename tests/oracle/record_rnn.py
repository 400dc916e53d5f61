"""Records tests/golden/rnn.json. Run with a Python that has real MXNet 1.9.1: python tests/oracle/record_rnn.py"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

# without MKLDNN, its RNN cannot give its states when it does not train
os.environ.update(MXNET_SUBGRAPH_BACKEND="NONE", MXNET_MKLDNN_ENABLED="1")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from rnn_cases import CASES, NUMBERS, build, graph, numbers  # noqa: E402


def record(name: str) -> dict:
    cell, symbol, _ = build(mx, name)
    found = {"graph": graph(symbol), "states": [list(s) for s in cell.state_shape]}
    if name in NUMBERS:
        found["numbers"] = numbers(mx, np, name)
    return found


def main() -> None:
    path = TESTS / "golden" / "rnn.json"
    lines = [f"{json.dumps(name)}: {json.dumps(record(name))}" for name in CASES]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(path, path.stat().st_size, file=sys.stderr)


if __name__ == "__main__":
    main()
