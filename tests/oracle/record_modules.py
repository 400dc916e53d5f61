"""Record how Modules of real MXNet 1.9.1 train.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_modules.py

Writes ``tests/golden/modules.json``; `tests/module_cases.py` says what is done.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
from module_cases import CASES, run_case  # noqa: E402


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value]


def main() -> None:
    found = {}
    for name in CASES:
        try:
            found[name] = rounded(run_case(mx, name))
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
            raise
        print(f"{name}: {found[name]['losses'][0]} … {found[name]['losses'][-1]}", file=sys.stderr)
    path = TESTS / "golden" / "modules.json"
    path.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
