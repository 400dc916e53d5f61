"""Records tests/golden/recordio.json. Run with a Python that has real MXNet 1.9.1."""

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
from recordio_cases import HEADERS, RECORDS  # noqa: E402


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    writer = mx.recordio.MXIndexedRecordIO(str(folder / "a.idx"), str(folder / "a.rec"), "w")
    for i, record in enumerate(RECORDS):
        writer.write_idx(3 * i, record)
    writer.close()
    packed = [mx.recordio.pack(mx.recordio.IRHeader(*h), b"data").hex() for h in HEADERS]
    found = {"rec": (folder / "a.rec").read_bytes().hex(), "idx": (folder / "a.idx").read_text(), "packed": packed}
    path = TESTS / "golden" / "recordio.json"
    path.write_text(json.dumps(found, indent=1) + "\n")


def read(path: str) -> None:
    """Prints the records of a file as real MXNet reads them: `python record_recordio.py FILE`."""
    reader, found = mx.recordio.MXRecordIO(path, "r"), []
    while (record := reader.read()) is not None:
        found.append(record.hex())
    print(json.dumps(found))


if __name__ == "__main__":
    read(sys.argv[1]) if len(sys.argv) > 1 else main()
