"""Recorded results of MXNet: `tests/golden/parity/<family>.json` (a line a case) and `.npz` (the numbers).

The npz holds one flat array for each dtype; a case's arrays are its slices in the order of the JSON, so small arrays
cost nothing but their bytes; a training output that equals the predicted one is a reference to it. Arrays over LIMIT
elements keep every stride-th element and statistics of the whole. The same results give the same bytes.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.parity.runner import Result

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "parity"
LIMIT = 2048


@dataclass(frozen=True)
class Kept:
    """A recorded array: its whole shape, the kept elements (flat) and, for a large one, statistics."""

    dtype: str
    shape: tuple[int, ...]
    data: np.ndarray[Any, Any]
    stride: int = 1
    stats: tuple[float, ...] = ()


def keep(array: np.ndarray[Any, Any]) -> Kept:
    """Thin an array out for the golden."""
    stride = max(1, array.size // LIMIT)
    if stride == 1:
        return Kept(array.dtype.name, array.shape, array.ravel())
    return Kept(array.dtype.name, array.shape, thin(array, stride), stride, statistics(array))


def thinned(result: Result) -> Result:
    """A result of the oracle in the form that goldens have."""
    return {**result, "arrays": {k: keep(a) for k, a in result["arrays"].items()}}


def thin(array: np.ndarray[Any, Any], stride: int) -> np.ndarray[Any, Any]:
    """The elements that are kept."""
    flat = array.ravel()
    return flat if stride == 1 else flat[::stride][:LIMIT]


def statistics(array: np.ndarray[Any, Any]) -> tuple[float, ...]:
    """Mean, mean magnitude, least and greatest of the finite elements, and how many are finite."""
    values = array.astype("float64").ravel()
    values = values[np.isfinite(values)]
    if not values.size:
        return (0.0, 0.0, 0.0, 0.0, 0.0)
    parts = (values.mean(), np.abs(values).mean(), values.min(), values.max())
    return (*(float(f"{p:.9g}") for p in parts), float(values.size))


def load(family: str) -> dict[str, Result]:
    """All recorded results of a family ({} if there are none); ``arrays`` hold `Kept`."""
    path = FOLDER / f"{family}.json"
    if not path.exists():
        return {}
    cases = json.loads(path.read_text())["cases"]
    with np.load(FOLDER / f"{family}.npz") as file:
        pools = {k: file[k] for k in file.files}
    at = dict.fromkeys(pools, 0)
    for result in cases.values():
        arrays = {}
        for key, entry in result["arrays"].items():
            if isinstance(entry, str):
                arrays[key] = arrays[entry]
                continue
            dtype, shape, stride, stats = entry
            size = math.prod(shape)
            count = size if stride == 1 else min(LIMIT, -(-size // stride))
            data = pools[dtype][at[dtype] : at[dtype] + count] if count else np.empty(0, dtype)
            at[dtype] = at.get(dtype, 0) + count
            arrays[key] = Kept(dtype, tuple(shape), data, stride, tuple(stats))
        result["arrays"] = arrays
    return cases


def save(family: str, cases: dict[str, Result]) -> None:
    """Write a family's results; keys are sorted and timestamps fixed, so equal results are equal files."""
    lines, pools = [], {}
    for name in sorted(cases):
        index = {}
        for key, kept in cases[name]["arrays"].items():
            twin = key.replace("train", "out")
            if key.startswith("train") and _same(kept, cases[name]["arrays"].get(twin)):
                index[key] = twin
                continue
            index[key] = [kept.dtype, list(kept.shape), kept.stride, list(kept.stats)]
            if kept.data.size:
                pools.setdefault(kept.dtype, []).append(kept.data)
        text = json.dumps({**cases[name], "arrays": index}, separators=(",", ":"))
        lines.append(f"{json.dumps(name)}:{text}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    _write(FOLDER / f"{family}.npz", _zip({k: np.concatenate(v) for k, v in sorted(pools.items())}))
    _write(FOLDER / f"{family}.json", ('{"mxnet":"1.9.1","cases":{\n' + ",\n".join(lines) + "\n}}\n").encode())


def _same(a: Kept, b: Kept | None) -> bool:
    return b is not None and (a.dtype, a.shape) == (b.dtype, b.shape) and a.data.tobytes() == b.data.tobytes()


def _zip(pools: dict[str, np.ndarray[Any, Any]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, pool in pools.items():
            data = io.BytesIO()
            np.save(data, pool, allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            file.writestr(info, data.getvalue(), zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".tmp")
    part.write_bytes(data)
    part.replace(path)
