"""Record what optimizers, schedulers and initializers of real MXNet 1.9.1 do.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_training.py

Writes ``tests/golden/training.json``; `tests/training_cases.py` says what is done.
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
from training_cases import CASES, SCHEDULES, outcome, run_case, run_initializers, run_schedule  # noqa: E402


def main() -> None:
    recorded = {
        "optimizers": {k: outcome(lambda c=c: run_case(mx, c)) for k, c in CASES.items()},
        "schedules": {k: run_schedule(mx, k) for k in SCHEDULES},
        "initializers": run_initializers(mx),
    }
    failed = [k for k, v in recorded["optimizers"].items() if "raises" in v]
    path = TESTS / "golden" / "training.json"
    # one case a line, so that a difference shows which
    parts = [f'"{part}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}"
             for part, found in recorded.items()]
    path.write_text("{" + ",\n".join(parts) + "}\n")
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes; failed: {failed}", file=sys.stderr)


if __name__ == "__main__":
    main()
