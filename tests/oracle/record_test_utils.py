"""Record what `test_utils` of real MXNet 1.9.1 says.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_test_utils.py

Writes ``tests/golden/test_utils.json``; `tests/utils_cases.py` says what is done.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
from utils_cases import run_checks, run_comparisons, run_tolerances  # noqa: E402


def main() -> None:
    recorded = {"comparisons": run_comparisons(mx), "tolerances": run_tolerances(mx), "checks": run_checks(mx)}
    path = TESTS / "golden" / "test_utils.json"
    parts = [f'"{part}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}"
             for part, found in recorded.items()]
    path.write_text("{" + ",\n".join(parts) + "}\n")
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
