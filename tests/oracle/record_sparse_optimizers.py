"""Record what optimizers of real MXNet 1.9.1 do with row_sparse gradients.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_sparse_optimizers.py

Writes ``tests/golden/sparse_optimizers.json``: for each case of `tests/sparse_optimizer_cases.py` the weight after the
steps, or "raises".
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
from sparse_optimizer_cases import case_id, cases, trained  # noqa: E402


def main() -> None:
    found = {}
    for case in cases():
        try:
            found[case_id(case)] = trained(mx, case)
        except Exception as e:
            print(case_id(case), str(e).splitlines()[0], file=sys.stderr)
            found[case_id(case)] = "raises"
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()]
    (TESTS / "golden" / "sparse_optimizers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
