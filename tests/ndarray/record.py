"""Runs the snippets of the `.txt` files, one a line, and records what they give.

A line is statements and a last expression, with `mx`, `np`, a (2, 4) array A, a (2, 3, 4) array B and an int32 vector I
at hand. Its result is the printed form of the expression, or the error classes. To renew the golden file, run this
with the oracle's Python:  MXNET_SUBGRAPH_BACKEND=NONE MXNET_MKLDNN_ENABLED=0 python tests/ndarray/record.py
"""

import json
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden" / "ndarray.json"
SECTIONS = sorted(p.stem for p in HERE.glob("*.txt"))
_NUMPY2 = re.compile(r"np\.(?:float|int|uint)\d+\(([^()]*)\)|np\.(True|False)_")


def snippets(section: str) -> list[str]:
    return (HERE / f"{section}.txt").read_text(encoding="utf-8").splitlines()


def run(mx: Any, code: str) -> Any:
    """The printed result, or {"raises": names of the error's classes}."""
    env: dict[str, Any] = {"mx": mx, "np": np}
    env["A"] = mx.nd.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    env["B"] = mx.nd.arange(24).reshape((2, 3, 4))
    env["I"] = mx.nd.array([5, -7, 1], dtype="int32")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        *statements, last = code.replace("{tmp}", folder.replace("\\", "/")).split("; ")
        try:
            for s in statements:
                exec(s, env)
            try:
                compiled = compile(last, "snippet", "eval")
            except SyntaxError:
                exec(last, env)
                return "None"
            result = eval(compiled, env)
            if hasattr(result, "asnumpy"):
                result.asnumpy()
            return _NUMPY2.sub(lambda m: m.group(1) or m.group(2), repr(result))
        except Exception as e:
            mx.autograd.set_recording(False)
            return {"raises": [c.__name__ for c in type(e).__mro__]}


if __name__ == "__main__":
    import mxnet  # pyright: ignore[reportMissingImports]  (there in the oracle's environment only)

    found = {s: {code: run(mxnet, code) for code in snippets(s)} for s in SECTIONS}
    GOLDEN.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
