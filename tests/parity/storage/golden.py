"""Recorded results: `tests/golden/storage/<family>.npz`, the cases as JSON text and each array once."""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "storage"


def load(family: str) -> dict[str, dict[str, Any]]:
    """All recorded cases of a family ({} if there are none): {id: {"hash": …, "stages": {stage: result}}}."""
    path = FOLDER / f"{family}.npz"
    if not path.exists():
        return {}
    with np.load(path) as file:
        pools, at = {k: file[k] for k in file.files}, dict.fromkeys(file.files, 0)
    content = json.loads(pools["cases"].tobytes())
    table = []
    for dtype, shape in content["arrays"]:
        size = math.prod(shape)
        start = at.get(dtype, 0)
        data = pools[dtype][start : start + size] if size else np.empty(0, dtype)
        at[dtype] = start + size
        table.append(data.reshape(shape))
    for case in content["cases"].values():
        for result in case["stages"].values():
            result["arrays"] = {k: table[i] for k, i in result["arrays"].items()}
    return content["cases"]


def save(family: str, cases: dict[str, dict[str, Any]]) -> None:
    """Write a family's results; the same results give the same bytes."""
    table: dict[tuple[str, tuple[int, ...], bytes], int] = {}
    lines = []
    for name in sorted(cases):
        stages = {}
        for stage, result in cases[name]["stages"].items():
            arrays = {}
            for key, a in result["arrays"].items():
                arrays[key] = table.setdefault((a.dtype.name, a.shape, np.ascontiguousarray(a).tobytes()), len(table))
            stages[stage] = {k: v for k, v in {**result, "arrays": arrays}.items() if v != []}
        text = json.dumps({**cases[name], "stages": stages}, separators=(",", ":"))
        lines.append(f"{json.dumps(name)}:{text}")
    pools: dict[str, list[bytes]] = {}
    for dtype, _, data in table:
        pools.setdefault(dtype, []).append(data)
    header = json.dumps([[d, list(s)] for d, s, _ in table], separators=(",", ":"))
    text = f'{{"mxnet":"1.9.1","arrays":{header},"cases":{{\n' + ",\n".join(lines) + "\n}}\n"
    entries = {k: np.frombuffer(b"".join(v), k) for k, v in sorted(pools.items())}
    entries["cases"] = np.frombuffer(text.encode(), np.uint8)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{family}.npz").write_bytes(_zip(entries))


def _zip(pools: dict[str, np.ndarray[Any, Any]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, pool in pools.items():
            data = io.BytesIO()
            np.save(data, pool, allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            file.writestr(info, data.getvalue(), zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()
