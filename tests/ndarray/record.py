"""Runs the snippets of the `.txt` files, one a line, and records what they give.

A line is statements and a last expression, with `mx`, `np`, a (2, 4) array A, a (2, 3, 4) array B and an int32 vector I
at hand; a (4, 3) csr array C and a (4, 2) row_sparse array R as well in the sections on sparse arrays. Its result is
the printed form of the expression (for a sparse array also what it stores), or the error classes. To renew the golden
file, run this with the oracle's Python:

    MXNET_SUBGRAPH_BACKEND=NONE MXNET_MKLDNN_ENABLED=0 python tests/ndarray/record.py
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


def run(mx: Any, code: str, section: str = "") -> Any:
    """The printed result, or {"raises": names of the error's classes}."""
    env: dict[str, Any] = {"mx": mx, "np": np}
    sparse = section.startswith("sparse")
    if sparse:
        env["S"] = s = mx.nd.sparse
        env["C"] = s.csr_matrix((np.array([1, 2, 3], "f"), [1, 0, 2], [0, 1, 2, 2, 3]), shape=(4, 3))
        env["R"] = s.row_sparse_array((np.array([[1, 2], [3, 4]], "f"), [1, 3]), shape=(4, 2))
    env["A"] = mx.nd.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    env["B"] = mx.nd.arange(24).reshape((2, 3, 4))
    env["I"] = mx.nd.array([5, -7, 1], dtype="int32")
    digits = np.printoptions(precision=3 if sparse else 8)  # the last digits of functions differ
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), digits:
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
            text = repr(result)
            if hasattr(result, "asnumpy"):
                values = result.asnumpy()
                if result.stype != "default":
                    where = result.indices.asnumpy()
                    if result.stype == "csr":
                        where = where[: result.indptr.asnumpy()[-1]]  # MXNet: there may be garbage behind
                    text += f"\n{values}\n{values.dtype}, stored: {where}"
            return _NUMPY2.sub(lambda m: m.group(1) or m.group(2), text)
        except Exception as e:
            mx.autograd.set_recording(False)
            return {"raises": [c.__name__ for c in type(e).__mro__]}


if __name__ == "__main__":
    import mxnet  # pyright: ignore[reportMissingImports]  (there in the oracle's environment only)

    found = {s: {code: run(mxnet, code, s) for code in snippets(s)} for s in SECTIONS}
    GOLDEN.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
