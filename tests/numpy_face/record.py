"""Evaluates the expressions of `cases` and records what they give.

To renew the golden file, run this with the oracle's Python:

    MXNET_SUBGRAPH_BACKEND=NONE MXNET_MKLDNN_ENABLED=0 python tests/numpy_face/record.py
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as onp

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden" / "numpy_face.json.gz"


def environment(mx: Any) -> dict[str, Any]:
    """The names that expressions use."""
    np = mx.np
    env: dict[str, Any] = {"mx": mx, "np": np, "npx": mx.npx, "onp": onp, "S": mx.sym.np}
    env["A"] = np.array([[0, 1, 2], [3, 4, 5]])
    env["B"] = np.arange(24).reshape(2, 3, 4)
    env["H"] = np.array([1.5, -2, 0.25], dtype="float16")
    env["D"] = np.array([0.5, -1.5, 2, 3], dtype="float64")
    env["I"] = np.array([5, -7, 1], dtype="int32")
    env["J"] = np.array([2, 3, 1], dtype="int32")
    env["L"] = np.array([2, -3, 1], dtype="int64")
    env["U"] = np.array([2, 200, 1], dtype="uint8")
    env["T"] = np.array([True, False, True], dtype="bool")
    env["K"] = np.array([[True, False, True], [False, True, True]], dtype="bool")
    env["Z"] = np.array(2.5)
    env["E"] = np.zeros((0, 3))
    env["V"] = np.array([0.5, -1.5, 2, 2])
    env["W"] = np.array([1, -0.5, 2, 3])
    env["Q"] = np.array([0.5, 1, 2, 7])
    env["N"] = np.array([onp.nan, onp.inf, -onp.inf, 1])
    env["P"] = np.array([[4, 1, 0.5], [1, 3, 0], [0.5, 0, 2]])
    env["X"], env["Y"] = mx.sym.var("x").as_np_ndarray(), mx.sym.var("y").as_np_ndarray()
    return env


def run(mx: Any, code: str) -> Any:
    """What an expression gives, or {"raises": the error's class}."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), mx.name.NameManager():
        warnings.simplefilter("ignore")
        env = environment(mx)
        *statements, last = code.replace("{tmp}", folder).split("; ")
        try:
            for s in statements:
                exec(s, env)
            try:
                compiled = compile(last, "expression", "eval")
            except SyntaxError:
                exec(last, env)
                return None
            return encode(mx, eval(compiled, env))
        except Exception as e:
            return {"raises": [c.__name__ for c in type(e).__mro__ if c not in (Exception, BaseException, object)]}
        finally:
            mx.autograd.set_recording(False)


def encode(mx: Any, x: Any) -> Any:
    """A result as JSON: arrays by kind, type, shape and values; symbols by their nodes."""
    if isinstance(x, mx.sym.Symbol):
        graph = json.loads(x.tojson())
        nodes = [[n["op"], n["name"], n.get("attrs", {}), n["inputs"]] for n in graph["nodes"]]
        return {"symbol": type(x).__name__, "nodes": nodes, "heads": graph["heads"]}
    kind = "np" if isinstance(x, mx.np.ndarray) else "nd" if isinstance(x, mx.nd.NDArray) else "onp"
    if kind != "onp" or isinstance(x, onp.ndarray):
        array: Any = x
        values = array if kind == "onp" else array.asnumpy()
        return {kind: str(values.dtype), "shape": list(values.shape), "values": _values(values)}
    if isinstance(x, (list, tuple)):
        return {type(x).__name__ if type(x) in (list, tuple) else "tuple": [encode(mx, v) for v in x]}
    if isinstance(x, (bool, onp.bool_)):
        return bool(x)
    if x is None or isinstance(x, str):
        return x
    if isinstance(x, (int, float, onp.number)):
        return {"number": _number(float(x))}
    if isinstance(x, complex):
        return {"complex": [x.real, x.imag]}
    return {"text": x.__name__ if hasattr(x, "__name__") else str(x)}


def _number(v: float) -> Any:
    return float(f"{v:.8g}") if onp.isfinite(v) else str(v)


def _values(a: onp.ndarray) -> list[Any]:
    return [_number(v) for v in a.astype(onp.float64).ravel().tolist()]


def record(mx: Any, sections: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    found = {}
    for section, codes in sections.items():
        found[section] = {}
        for code in codes:
            if os.environ.get("VERBOSE"):
                print(section, code, file=sys.stderr, flush=True)
            found[section][code] = run(mx, code)
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    import cases  # type: ignore[import-not-found]
    import mxnet  # type: ignore[import-not-found]

    mxnet.npx.set_np()
    text = json.dumps(record(mxnet, cases.sections()), separators=(",", ":"))
    with open(GOLDEN, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as g:
        g.write(text.encode())
