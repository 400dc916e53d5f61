"""Records what MXNet's quantizer makes: `python -m tests.oracle.record_quantization`, by an interpreter with MXNet."""

from __future__ import annotations

import json
import os
from pathlib import Path

os.environ["MXNET_MKLDNN_ENABLED"] = "1"  # what is quantized runs in oneDNN alone

import mxnet as mx  # pyright: ignore[reportMissingImports]

from tests.quantization_cases import GRAPHS, calibrated, graph, outputs, ranges

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "quantization.json"


def main() -> None:
    """Writes the golden file."""
    made = {"graphs": [graph(mx, case) for case in GRAPHS]}
    for how in ("naive", "entropy"):
        made[f"ranges-{how}"] = {m: ranges(calibrated(mx, m, how)[0]) for m in ("conv", "linear", "mixed")}
    symbol, args, aux, data = calibrated(mx, "linear", "naive")
    made["linear"] = outputs(mx, symbol, args, aux, data)
    symbol, args, aux, data = calibrated(mx, "conv", "naive", "quantize_model_mkldnn")
    made["fused"] = {"json": symbol.tojson(), "out": outputs(mx, symbol, args, aux, data),
                     "int8": {n: a.asnumpy().tolist() for n, a in args.items() if "_quantize" in n}}  # fmt: skip
    GOLDEN.write_text(json.dumps(made))


if __name__ == "__main__":
    main()
