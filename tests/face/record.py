"""Records the facts of `tests.face` from real MXNet: run with the oracle's Python, `python -m tests.face.record`."""

from __future__ import annotations

import json
import os
import pathlib

os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "face.json"


def main() -> None:
    import mxnet as mx  # type: ignore[import-not-found]

    from tests.face import executors, symbols

    found = {}
    for module in (symbols, executors):
        found.update({name: symbols.plain(fn(mx)) for name, fn in module.FACTS.items()})
    GOLDEN.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
