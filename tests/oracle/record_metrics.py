"""Record what metrics of real MXNet 1.9.1 give.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_metrics.py

Writes ``tests/golden/metrics.json``; `tests/metric_cases.py` says what is done.
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
from metric_cases import CASES, run_case, run_composite, run_errors  # noqa: E402


def main() -> None:
    recorded = {"composite": run_composite(mx), "errors": run_errors(mx), **{k: run_case(mx, k) for k in CASES}}
    path = TESTS / "golden" / "metrics.json"
    # one case a line, so that a difference shows which
    path.write_text("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in recorded.items()) + "}\n")
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
