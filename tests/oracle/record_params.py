"""Write the golden `.params` files with real MXNet 1.9.1, and have it load the hand-made ones of older versions.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_params.py

Writes ``tests/golden/params/*.params``; `tests/params_cases.py` says what they hold.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from params_cases import CASES, CRAFTED, NP_SHAPE_CASES, Content, Item  # noqa: E402

FOLDER = TESTS / "golden" / "params"
BFLOAT16 = np.dtype([("bfloat16", np.uint16)])


def build(item: Item):
    """The MXNet array of an item; waited for, since MXNet writes a wrong size for a pending sparse array."""
    if item.dtype == "bfloat16":
        return mx.nd.array(item.values).astype(BFLOAT16)
    array = mx.nd.zeros(item.values.shape, dtype=item.dtype)
    if item.values.size:
        array = mx.nd.array(item.values, dtype=item.dtype)
    array = array.tostype(item.storage)
    array.wait_to_read()
    return array


def save(name: str, content: Content) -> None:
    built = {k: build(v) for k, v in content.items()} if isinstance(content, dict) else [build(v) for v in content]
    mx.nd.save(str(FOLDER / f"{name}.params"), built)


def check_crafted(name: str, data: bytes, content: Content) -> None:
    path = FOLDER / f"{name}.params"
    path.write_bytes(data)
    loaded = mx.nd.load(str(path))
    keys = content if isinstance(content, dict) else range(len(content))
    pairs = [(loaded[key], content[key]) for key in keys]
    for array, item in pairs:
        assert array.stype == item.storage and array.dtype == np.dtype(item.dtype), (name, array)
        np.testing.assert_array_equal(array.asnumpy(), item.values, err_msg=name)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in CASES.items():
        save(name, content)
    with mx.util.np_shape(True):
        for name, content in NP_SHAPE_CASES.items():
            save(name, content)
    for name, (data, content) in CRAFTED.items():
        check_crafted(name, data, content)
    print(f"MXNet {mx.__version__}: {len(list(FOLDER.glob('*.params')))} files in {FOLDER}", file=sys.stderr)


if __name__ == "__main__":
    main()
