"""Records tests/golden/image_record.json. Run with a Python that has real MXNet 1.9.1."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.update(MXNET_SUBGRAPH_BACKEND="NONE", MXNET_MKLDNN_ENABLED="0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from image_record_cases import CASES, run  # noqa: E402


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    lines = [f"{json.dumps(name)}: {json.dumps(run(mx, np, folder, name))}" for name in CASES]
    (TESTS / "golden" / "image_record.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
