"""Records tests/golden/io.json. Run with a Python that has real MXNet 1.9.1: python tests/oracle/record_io.py

Every case runs in a process of its own: an iterator of MXNet that failed may take its process down later.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(MXNET_SUBGRAPH_BACKEND="NONE", MXNET_MKLDNN_ENABLED="0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import io_cases  # noqa: E402


def record(kind: str, name: str):
    """The result of one case, or the name of its error."""
    import mxnet as mx
    import numpy as np

    try:
        if kind == "arrays":
            return io_cases.run_arrays(mx, np, io_cases.ARRAYS[name])
        case = getattr(io_cases, kind.upper())[name]
        os.chdir(tempfile.mkdtemp())
        io_cases.write(case)
        it = getattr(mx.io, case.cls)(**case.args)
        return [repr(it.provide_data + it.provide_label), io_cases.walk(it, case.plan)]
    except Exception as e:  # whatever MXNet raises is what is recorded
        return type(e).__name__


def run(kind: str, name: str):
    """`record` in a process of its own. MXNet sometimes crashes at the end of a short file; then it runs again."""
    for _ in range(8):
        made = subprocess.run([sys.executable, __file__, kind, name], capture_output=True, text=True, timeout=60)
        for line in made.stdout.splitlines():
            if line.startswith("RESULT"):
                return json.loads(line.removeprefix("RESULT"))
    return "crash"


def main() -> None:
    """Writes the file and names the cases that did not go as their table says."""
    out = {}
    for kind, cases in (("files", io_cases.FILES), ("errors", io_cases.ERRORS), ("arrays", io_cases.ARRAYS)):
        rows = {name: run(kind, name) for name in cases}
        print(kind, [name for name, r in rows.items() if (kind == "errors") != isinstance(r, str)])
        out[kind] = ",\n".join(f"{json.dumps(n)}: {json.dumps(r, separators=(',', ':'))}" for n, r in rows.items())
    text = ",\n".join(f'"{kind}": {{\n{rows}\n}}' for kind, rows in out.items())
    (TESTS / "golden" / "io.json").write_text(f"{{\n{text}\n}}\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print("RESULT" + json.dumps(record(*sys.argv[1:])))
    else:
        main()
