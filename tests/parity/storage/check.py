"""Compare symjax with MXNet's table: ``python -m tests.parity.storage.check [FAMILY…] [-k TEXT] [-s STAGE]``."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.parity.storage import golden
from tests.parity.storage.case import DEFAULT, ROWS, StorageCase
from tests.parity.storage.differs import Difference, differences
from tests.parity.storage.record import family_cases, family_names
from tests.parity.storage.runner import Result, run_stage

LOOSE = {"gamma": 20.0, "erfinv": 20.0}
"""Factors of the tolerance for functions that float32 libraries compute loosely."""
# dtype: (rtol, atol as a factor of the array's greatest magnitude)
TOLERANCE = {"float64": (1e-9, 1e-10), "float32": (1e-5, 2e-6), "float16": (2e-3, 2e-3)}


def check_stage(case: StorageCase, stage: str, want: Result) -> list[str]:
    """What differs between symjax and the record of a stage; [] when nothing does."""
    import symjax as mx

    got = run_stage(mx, case, stage)
    known = differences(case, stage)
    if "error" in want:
        return _against_dense(mx, case, stage, want, got, known)
    if "error" in got:
        if got["error"]["mxnet"] and any(d.raises for d in known):
            return []
        return [f"{stage} raised at {got['error']['at']}: {got['error']['type']}: {got['error']['text']}"]
    return [*_types(stage, want, got, known), *_arrays(case, stage, want, got, known),
            *_format(stage, got, ordered="retain" not in case.id)]


def _types(stage: str, want: Result, got: Result, known: list[Difference]) -> Iterator[str]:
    """Storage types of outputs and gradients."""
    if want.get("out") != got.get("out") and not any(d.types for d in known):
        yield f"{stage}: outputs are {got.get('out')}, expected {want.get('out')}"
    for k, stype in want.get("grad", {}).items():
        if got["grad"].get(k) != stype and not any(d.covers(f"grad:{k}") for d in known if d.types):
            yield f"{stage}: gradient of {k} is {got['grad'].get(k)}, expected {stype}"


def _arrays(case: StorageCase, stage: str, want: Result, got: Result, known: list[Difference]) -> Iterator[str]:
    shaky = {k.split(".")[0] for k in want.get("unstable", ())}
    dense = None
    for key in _keys(want):
        loose = any(d.covers(key) for d in known if d.pattern)
        if key in shaky or any(d.wrong and d.covers(key) for d in known):
            # MXNet gives what lay in memory, or is at fault: the dense definition counts.
            dense = run_stage_dense(case, stage) if dense is None else dense
            yield from _compare(f"{stage} {key} (dense)", whole(case, dense, key), whole(case, got, key))
            continue
        factor = max((f for name, f in LOOSE.items() if name in case.id), default=1.0)
        yield from _compare(f"{stage} {key}", whole(case, want, key), whole(case, got, key), factor)
        nothing = key.startswith("grad") and not want["arrays"].get(f"{key}.indices", np.ones(1)).size
        if not loose or (stage == "train" and nothing):
            yield from _pattern(f"{stage} {key}", want, got, key)


def _format(stage: str, got: Result, ordered: bool) -> Iterator[str]:
    """What is wrong with the containers that symjax gives: order (retain keeps that of its ids), range and lengths."""
    for key, indices in got["arrays"].items():
        name, _, part = key.rpartition(".")
        if part != "indices":
            continue
        indptr = got["arrays"].get(f"{name}.indptr")
        parts = [indices] if indptr is None else [indices[a:b] for a, b in itertools.pairwise(indptr)]
        if (ordered and any((np.diff(p) <= 0).any() for p in parts)) or (indices < 0).any():
            yield f"{stage} {name}: indices are not ascending: {indices.tolist()}"
        if len(got["arrays"][f"{name}.data"]) != len(indices):
            yield f"{stage} {name}: data and indices differ in length"


def _keys(result: Result) -> list[str]:
    """The arrays of a result, without the parts of containers."""
    return list(dict.fromkeys(k.rsplit(".", 1)[0] if k.endswith((".data", ".indices", ".indptr")) else k
                              for k in result["arrays"]))  # fmt: skip


def whole(case: StorageCase, result: Result, key: str) -> np.ndarray:
    """An array of a result, dense."""
    arrays = result["arrays"]
    if key in arrays:
        return arrays[key]
    data, indices = arrays[f"{key}.data"], arrays[f"{key}.indices"]
    if f"{key}.indptr" in arrays:
        indptr = arrays[f"{key}.indptr"]
        rows = np.repeat(np.arange(max(len(indptr) - 1, 0)), np.diff(indptr)) if len(indptr) else indices
        return _spread(data[: len(rows)], (rows, indices[: len(rows)]))
    return _spread(data, (indices,))


def _spread(data: np.ndarray, places: tuple[np.ndarray, ...]) -> np.ndarray:
    """Stored values as a dense array just large enough; `_compare` takes missing rows and columns for zeros."""
    shape = tuple(int(p.max()) + 1 if p.size else 0 for p in places)
    out = np.zeros((*shape, *data.shape[1:]), data.dtype)
    out[places] = data
    return out


def _compare(where: str, want: np.ndarray, got: np.ndarray, factor: float = 1.0) -> Iterator[str]:
    if want.ndim != got.ndim:
        yield f"{where}: shape {got.shape}, expected {want.shape}"
        return
    if want.dtype != got.dtype:
        yield f"{where}: dtype {got.dtype}, expected {want.dtype}"
    shape = tuple(map(max, want.shape, got.shape))
    a, b = _grown(want, shape), _grown(got, shape)
    rtol, atol = TOLERANCE.get(want.dtype.name, (0, 0))
    scale = max(float(np.nanmax(np.abs(np.where(np.isfinite(a), a, 0)), initial=0)), 1e-2)
    if not np.allclose(b, a, rtol * factor, atol * scale * factor, equal_nan=True):
        yield f"{where}: {b.tolist()}, expected {a.tolist()}"


def _grown(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.pad(array.astype("float64"), [(0, n - m) for m, n in zip(array.shape, shape, strict=True)])


def _pattern(where: str, want: Result, got: Result, key: str) -> Iterator[str]:
    for part in ("indices", "indptr"):
        a, b = want["arrays"].get(f"{key}.{part}"), got["arrays"].get(f"{key}.{part}")
        if a is not None and b is not None and not _same_places(a, b, part):
            yield f"{where}: {part} {b.tolist()}, expected {a.tolist()}"


def _same_places(a: np.ndarray, b: np.ndarray, part: str) -> bool:
    if part == "indptr" and not a.size:  # MXNet has no indptr where nothing was ever stored
        return not b.any()
    return a.dtype == b.dtype and np.array_equal(a, b)


def run_stage_dense(case: StorageCase, stage: str) -> Result:
    """The dense definition: the same graph with every input of default storage, run by symjax."""
    import symjax as mx

    if case.op == "_contrib_getnnz":  # which exists for csr alone
        ((name, data),) = case.inputs.items()
        return {"arrays": {"out0": np.asarray(data.mask(name).sum(axis=case.nodes[0][2].get("axis")), np.int64)}}
    inputs: dict[str, Any] = {k: v if v.stype == DEFAULT else Given(v.dense(k)) for k, v in case.inputs.items()}
    nodes = tuple((n, o, {k: v for k, v in p.items() if k not in ("forward_stype", "sparse_grad")}, i)
                  for n, o, p, i in case.nodes if o != "cast_storage")
    alias = {n: i[0] for n, o, _, i in case.nodes if o == "cast_storage"}
    for _, data, ids in [(o, *i) for _, o, _, i in nodes if o == "_sparse_retain"]:
        mask = np.zeros(inputs[data].shape, inputs[data].dtype)
        mask[case.inputs[ids].dense(ids).astype(int)] = 1
        inputs[ids] = Given(mask)
    nodes = tuple((n, "elemwise_mul" if o == "_sparse_retain" else o, p, i) for n, o, p, i in nodes)
    nodes = tuple((n, o, p, tuple(alias.get(x, x) for x in i)) for n, o, p, i in nodes)
    heads = tuple(alias.get(h, h) for h in case.heads)
    return run_stage(mx, replace(case, nodes=nodes, heads=heads, inputs=inputs), stage)


class Given:
    """An input of default storage with given numbers."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.stype, self.shape, self.dtype = values, DEFAULT, values.shape, values.dtype.name

    def dense(self, name: str) -> np.ndarray:
        return self.values


class FullRows(Given):
    """A row_sparse input with given numbers that stores all rows."""

    def __init__(self, values: np.ndarray) -> None:
        super().__init__(values)
        self.stype, self.some = ROWS, "all"

    def parts(self, name: str) -> tuple[np.ndarray, ...]:
        return self.values, np.arange(len(self.values))


def run_stage_full(case: StorageCase, stage: str) -> Result:
    """An update whose row_sparse weight and states store all rows, run by symjax."""
    import symjax as mx

    inputs: dict[str, Any] = {k: FullRows(v.dense(k)) if v.stype == ROWS and k in case.mutates else v
                              for k, v in case.inputs.items()}
    return run_stage(mx, replace(case, inputs=inputs), stage)


def _against_dense(mx: Any, case: StorageCase, stage: str, want: Result, got: Result,
                   known: list[Difference]) -> list[str]:
    """MXNet fails (or is wrong) here: symjax raises an MXNetError, or gives the dense definition's numbers."""
    if "error" in got:
        if any(d.runs for d in known):
            return [f"{stage} raised at {got['error']['at']}: {got['error']['type']}: {got['error']['text']}"]
        return [] if got["error"]["mxnet"] else [f"{stage} raised {got['error']['type']}, which is no MXNetError: "
                                                 f"{got['error']['text']}"]
    if any(d.raises for d in known):
        return [f"{stage} must raise: MXNet says {want['error']['text']}"]
    dense = (run_stage_full if any(d.full for d in known) else run_stage_dense)(case, stage)
    if "error" in dense:
        return [f"{stage} runs, but not in default storage: {dense['error']['text']}"]
    return [p for key in _keys(dense) for p in _compare(f"{stage} {key} (dense)", whole(case, dense, key), whole(
        case, got, key))]


def main(argv: list[str] | None = None) -> int:
    """The command line: prints what differs, and counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.storage.check", description=__doc__)
    parser.add_argument("family", nargs="*")
    parser.add_argument("-k", default="", help="cases whose id contains this pattern")
    parser.add_argument("-s", action="append", help="stages")
    args = parser.parse_args(argv)
    bad = count = 0
    for family in args.family or family_names():
        known = golden.load(family)
        for case in family_cases(family):
            if not re.search(args.k, case.id):
                continue
            for stage in case.stages:
                if args.s and stage not in args.s:
                    continue
                count += 1
                problems = check_stage(case, stage, known[case.id]["stages"][stage])
                bad += bool(problems)
                for p in problems:
                    print(f"{family}: {case.id}: {p}"[:400], flush=True)
    print(f"{bad} of {count} stages differ")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
