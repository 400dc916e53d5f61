"""What recorders share: real MXNet with its own kernels and without fusion, and how a golden file is written.

`python -m tests.oracle.record_NAME` runs one with the oracle's interpreter, in the repository's root.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

for _name, _value in (("SUBGRAPH_BACKEND", "NONE"), ("MKLDNN_ENABLED", "0"), ("STORAGE_FALLBACK_LOG_VERBOSE", "0")):
    os.environ.setdefault(f"MXNET_{_name}", _value)  # before MXNet is imported

import mxnet as mx  # noqa: E402

__all__ = ["mx", "write"]

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def write(name: str, found: Mapping[str, Any]) -> None:
    """Writes ``tests/golden/<name>.json``, a case a line, so that a difference shows which."""
    path = GOLDEN / f"{name}.json"
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
    path.write_text(f"{{\n{lines}\n}}\n")
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes", file=sys.stderr)
