"""Record what the operators on graphs of real MXNet 1.9.1 do.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_dgl.py

Writes ``tests/golden/dgl.json``; `tests/dgl_cases.py` says what is done. Each case runs in a process of its own, since
MXNet's checks in these operators end the process.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
from dgl_cases import CASES, WEIGHTS, described, frequencies  # noqa: E402


def apart(call) -> object:
    """The result of a call in a child process; "raises" or "crashes" where there is none."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            found = json.dumps(described(call(mx)))
        except mx.MXNetError:
            found = '"raises"'
        os.write(write, found.encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    text = os.read(read, 1 << 16)
    os.close(read)
    return "crashes" if status else json.loads(text)


def main() -> None:
    cases = {name: apart(call) for name, call in CASES.items()}
    chances = {"uniform": frequencies(mx, 2, None, 4000, 1), "likely": frequencies(mx, 2, WEIGHTS, 4000, 1)}
    path = TESTS / "golden" / "dgl.json"
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items())
    path.write_text(f'{{"cases": {{\n{lines}\n}},\n"frequencies": {json.dumps(chances)}}}\n')
    failed = [k for k, v in cases.items() if isinstance(v, str)]
    print(f"MXNet {mx.__version__}: {path}, {path.stat().st_size} bytes; failed: {failed}", file=sys.stderr)


if __name__ == "__main__":
    main()
