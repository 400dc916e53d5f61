"""What a storage case is, and how to write one. Imports neither symjax nor mxnet: both sides read it."""

from __future__ import annotations

import hashlib
import itertools
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.parity.arrays import Array, fill, uniform
from tests.parity.case import graph_json

DEFAULT, CSR, ROWS = "default", "csr", "row_sparse"
STYPES = (DEFAULT, CSR, ROWS)
CODES = {DEFAULT: "0", ROWS: "1", CSR: "2"}  # the values of the attribute __storage_type__
STAGES = ("predict", "train", "bind", "nd", "tape")


@dataclass(frozen=True)
class Stored:
    """An input: its storage, its numbers (where something is stored) and the pattern of what is stored.

    Attributes:
        stype: default, csr or row_sparse.
        array: recipe of the numbers, seeded by the argument's name alone.
        some: "some" (a pattern that depends on `pattern`), "all", "none" (no storage at all) or "zeros" (some, of
            which the first are zeros that are stored). For default storage "all" has no zeros but the recipe's.
        pattern: which of several patterns; row 0 is stored in all of them.
        only: the rows that are stored (row_sparse) or the columns that have entries (csr).
    """

    stype: str
    array: Array
    some: str = "some"
    pattern: int = 0
    only: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        assert self.array.shape is not None
        return self.array.shape

    @property
    def dtype(self) -> str:
        return self.array.dtype or "float32"

    def mask(self, name: str) -> np.ndarray:
        """Which elements are stored."""
        shape = self.shape
        mask = np.ones(shape, bool)
        if self.some == "none":
            return mask & False
        if self.some == "all":
            return mask
        if self.stype == CSR:
            rng = np.random.RandomState(zlib.crc32(f"{name}/{self.pattern}".encode()))
            mask = rng.rand(*shape) < 0.55
            if self.only is not None:
                mask[0, self.only] = True
                mask[:, [i for i in range(shape[1]) if i not in self.only]] = False
            mask[(1 + self.pattern) % shape[0]] = False
            if self.only is None:
                mask[0, 0] = True
            return mask
        rows = {0, 2 + self.pattern, *([shape[0] - 1] if shape[0] > 5 else [])} if self.only is None else {*self.only}
        mask[[i for i in range(shape[0]) if i not in rows]] = False
        return mask

    def dense(self, name: str) -> np.ndarray:
        """The whole array."""
        values = fill("storage", name, self.array, "float32").copy()
        if self.stype == DEFAULT and self.some in ("some", "all"):
            return values
        mask = self.mask(name)
        values[~mask] = 0
        if self.some == "zeros":
            values[0] = 0
        return values

    def parts(self, name: str) -> tuple[np.ndarray, ...]:
        """(data, indices, indptr) of csr, (data, indices) of row_sparse."""
        dense, mask = self.dense(name), self.mask(name)
        if self.stype == CSR:
            indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
            return dense[mask], np.nonzero(mask)[1].astype(np.int64), indptr
        rows = np.nonzero(mask.reshape(len(mask), -1).any(axis=1))[0].astype(np.int64)
        return dense[rows], rows

    def spec(self) -> list[Any]:
        """The input as JSON data."""
        return [self.stype, self.array.spec(), self.some, self.pattern, None if self.only is None else list(self.only)]


@dataclass(frozen=True)
class StorageCase:
    """A graph with inputs in given storage.

    Attributes:
        id: unique; the part before the first "(" is the op.
        nodes: ``(name, op, params, inputs)`` for each op, as `tests.parity.case.graph_json` takes them, variables left
            out.
        heads: the outputs.
        inputs: arguments, in order.
        grads: arguments to differentiate.
        head: "fill": a dense cotangent for each output; "none": ``backward()`` alone (loss heads).
        grad_req: "write", or "add": two passes.
        stages: which of STAGES are run, or ("update",) for updates in place.
        mutates: arguments that the op writes to (update cases).
    """

    id: str
    nodes: tuple[tuple[str, str, Mapping[str, Any], tuple[str, ...]], ...]
    heads: tuple[str, ...]
    inputs: Mapping[str, Stored]
    grads: tuple[str, ...] = ()
    head: str = "fill"
    grad_req: str = "write"
    stages: tuple[str, ...] = STAGES
    mutates: tuple[str, ...] = ()

    @property
    def op(self) -> str:
        return self.id.split("(")[0]

    def json(self) -> str:
        """The symbol's JSON; variables carry their storage type."""
        variables = [(k, {} if v.stype == DEFAULT else {"__storage_type__": CODES[v.stype]})
                     for k, v in self.inputs.items()]
        return graph_json([*variables, *self.nodes], self.heads)

    def spec(self) -> dict[str, Any]:
        """All that MXNet's results depend on, as JSON data."""
        return {
            "id": self.id, "nodes": [[n, o, dict(p), list(i)] for n, o, p, i in self.nodes], "heads": list(self.heads),
            "inputs": {k: v.spec() for k, v in self.inputs.items()}, "grads": list(self.grads), "head": self.head,
            "grad_req": self.grad_req, "stages": list(self.stages), "mutates": list(self.mutates),
        }  # fmt: skip

    def hash(self) -> str:
        """Changes when the recorded results may, which the inputs' numbers are part of."""
        digest = hashlib.sha256(json.dumps(self.spec(), default=list).encode())
        for name, value in self.inputs.items():
            digest.update(value.dense(name).tobytes() + value.mask(name).tobytes())
        return digest.hexdigest()[:12]

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> StorageCase:
        """The case back from `spec`."""
        inputs = {}
        for name, (stype, a, some, pattern, only) in spec["inputs"].items():
            array = Array(a["kind"], tuple(a["shape"]), a["dtype"], a["args"])
            inputs[name] = Stored(stype, array, some, pattern, None if only is None else tuple(only))
        nodes = tuple((n, o, _params(p), tuple(i)) for n, o, p, i in spec["nodes"])
        heads, grads, stages, mutates = (tuple(spec[k]) for k in ("heads", "grads", "stages", "mutates"))
        return StorageCase(spec["id"], nodes, heads, inputs, grads, spec["head"], spec["grad_req"], stages, mutates)


def _params(params: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has lists where parameters are tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}


def _text(params: Mapping[str, Any]) -> str:
    return ",".join(f"{k}={v}" for k, v in params.items()).replace(" ", "")


def make(op: str, inputs: Mapping[str, Stored], params: Mapping[str, Any] | None = None, *, outputs: int = 1,
         note: str = "", grads: Sequence[str] | None = None, **options: Any) -> StorageCase:
    """The case of one op on given inputs; by default every floating-point input is differentiated."""
    params = dict(params or {})
    label = ",".join(v.stype if v.some == "some" else f"{v.stype}:{v.some}" for v in inputs.values())
    tail = "".join(f",{t}" for t in (_text(params), note) if t)
    wanted = tuple(k for k, v in inputs.items() if v.dtype.startswith("float")) if grads is None else tuple(grads)
    heads = tuple(f"op:{i}" if i else "op" for i in range(outputs))
    return StorageCase(f"{op}({label}){tail}", (("op", op, params, tuple(inputs)),), heads, dict(inputs), wanted,
                       **options)


def storages(
    inputs: Mapping[str, Array], only: Mapping[str, Sequence[str]] | None = None
) -> Iterator[dict[str, Stored]]:
    """Every combination of storage types of the inputs (csr where 2-D); each input has a pattern of its own."""
    kinds = [[s for s in (only or {}).get(k, STYPES) if s != CSR or len(a.shape or ()) == 2] for k, a in inputs.items()]
    for chosen in itertools.product(*kinds):
        yield {k: Stored(s, a, pattern=n) for n, (s, (k, a)) in enumerate(zip(chosen, inputs.items(), strict=True))}


def over(op: str, inputs: Mapping[str, Array | tuple[int, ...]], params: Mapping[str, Any] | None = None, *,
         only: Mapping[str, Sequence[str]] | None = None, **options: Any) -> list[StorageCase]:
    """The cases of one op over every combination of storage types (`only` restricts those of an input)."""
    arrays = {k: a if isinstance(a, Array) else uniform(tuple(a), 0.2, 0.9) for k, a in inputs.items()}
    return [make(op, chosen, params, **options) for chosen in storages(arrays, only)]


def stored(value: Stored, some: str) -> Stored:
    """The input with another pattern."""
    return replace(value, some=some)
