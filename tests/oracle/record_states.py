"""Record optimizer states as real MXNet 1.9.1 pickles them.

Run it with the oracle's interpreter::

    MXNET_SUBGRAPH_BACKEND=NONE .venv-oracle/bin/python tests/oracle/record_states.py

Writes ``tests/golden/optimizer_states.json``: the bytes (base64) and what they hold.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
from pathlib import Path
from typing import Any

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")

import mxnet as mx
import numpy as np


def trained(name: str, stype: str = "default", dtype: str = "float32", **kwargs: Any) -> Any:
    """An updater that has updated a weight by index and one by name."""
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, **kwargs))
    weight = mx.nd.array(np.arange(6.0).reshape(3, 2) + 1, dtype=dtype)
    grad = mx.nd.array(np.arange(6.0).reshape(3, 2) / 10 + 0.1, dtype=dtype)
    if stype == "row_sparse":
        weight = weight.tostype(stype)
        grad = mx.nd.sparse.row_sparse_array(([[0.1, 0.2]], [1]), shape=(3, 2))
    updater(0, grad, weight)
    updater("fc_weight", grad, weight.copy())
    return updater


def shown(state: Any) -> Any:
    if state is None or isinstance(state, (int, float)):
        return state
    if isinstance(state, (tuple, list)):
        return [shown(s) for s in state]
    return {"stype": state.stype, "dtype": np.dtype(state.dtype).name, "value": state.asnumpy().tolist()}


def recorded(updater: Any, data: bytes) -> dict[str, Any]:
    return {"bytes": base64.b64encode(data).decode(), "states": [[k, shown(s)] for k, s in updater.states.items()]}


def main() -> None:
    cases = {
        "plain": {"name": "sgd"},
        "momentum": {"name": "sgd", "momentum": 0.9},
        "adam": {"name": "adam"},
        "centered rmsprop": {"name": "rmsprop", "centered": True},
        "nadam": {"name": "nadam"},
        "half": {"name": "adam", "dtype": "float16", "multi_precision": True},
        "rows": {"name": "sgd", "momentum": 0.9, "stype": "row_sparse"},
    }
    found = {}
    for key, options in cases.items():
        updater = trained(**options)
        found[key] = recorded(updater, updater.get_states())
    updater = trained("sgd", momentum=0.9)
    found["protocol 2"] = recorded(updater, pickle.dumps(updater.states, 2))
    found["keys of a store"] = recorded(updater, pickle.dumps({b"fc_weight": updater.states["fc_weight"]}))
    found["keys of a store"]["states"] = [["fc_weight", shown(updater.states["fc_weight"])]]
    found["with the optimizer"] = recorded(updater, updater.get_states(dump_optimizer=True))
    path = Path(__file__).resolve().parents[1] / "golden" / "optimizer_states.json"
    path.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")


if __name__ == "__main__":
    main()
