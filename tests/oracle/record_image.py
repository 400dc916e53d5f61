"""Records tests/golden/image.json. Run with a Python that has real MXNet 1.9.1."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.update(MXNET_SUBGRAPH_BACKEND="NONE", MXNET_MKLDNN_ENABLED="0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from image_cases import AUGMENTERS, DET, FUNCTIONS, run_augmenter, run_det, run_function  # noqa: E402


def main() -> None:
    parts = {"augmenters": (AUGMENTERS, run_augmenter), "det": (DET, run_det), "functions": (FUNCTIONS, run_function)}
    found = {part: {name: run(mx, np, name) for name in names} for part, (names, run) in parts.items()}
    path = TESTS / "golden" / "image.json"
    lines = [f'"{part}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in values.items()) + "\n}"
             for part, values in found.items()]
    path.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
