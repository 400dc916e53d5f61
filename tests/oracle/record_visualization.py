"""Record what real MXNet 1.9.1 prints and draws of networks.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_visualization.py

Writes ``tests/golden/visualization.json``; `tests/visualization_cases.py` says what is done.
"""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from visualization_cases import Recorder, run_plots, run_summaries  # noqa: E402

sys.modules["graphviz"] = types.ModuleType("graphviz")
sys.modules["graphviz"].Digraph = Recorder  # type: ignore[attr-defined]

import mxnet as mx  # noqa: E402


def main() -> None:
    recorded = {"summaries": run_summaries(mx), "plots": run_plots(mx)}
    path = TESTS / "golden" / "visualization.json"
    parts = [f'"{part}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}"
             for part, found in recorded.items()]
    path.write_text("{" + ",\n".join(parts) + "}\n")
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
