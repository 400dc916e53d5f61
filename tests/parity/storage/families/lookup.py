"""Lookups of rows: Embedding, take, retain and their kin."""

from __future__ import annotations

from tests.parity.arrays import signed, values
from tests.parity.storage.case import CSR, DEFAULT, ROWS, Stored, make, over

W = signed((7, 3), 0.2, 0.9)
IDS = values([[1, 4], [4, 0], [6, 1]], "float32")
FLAT = values([4, 1, 4, 6], "float32")
OUT = values([-3, 9, 2, 2], "float32")
DIMS = {"input_dim": 7, "output_dim": 3}


def _embeddings():
    for op in ("Embedding", "_contrib_SparseEmbedding"):
        for params in ({}, {"sparse_grad": True}, {"sparse_grad": False}):
            for stype, some in ((DEFAULT, "all"), (ROWS, "all"), (ROWS, "some"), (ROWS, "none"), (CSR, "some")):
                for label, ids in (("ids", IDS), ("flat", FLAT), ("outside", OUT)):
                    yield make(op, {"data": Stored(DEFAULT, ids), "weight": Stored(stype, W, some)}, {**DIMS, **params},
                               grads=("weight",), note=label)
        for ids in (CSR, ROWS):
            yield make(op, {"data": Stored(ids, IDS), "weight": Stored(DEFAULT, W)}, {**DIMS, "sparse_grad": True},
                       grads=("weight",))
    for stype in (DEFAULT, ROWS):
        for sparse in (False, True):
            yield make("Embedding", {"data": Stored(DEFAULT, IDS), "weight": Stored(stype, W, "all")},
                       {**DIMS, "sparse_grad": sparse}, grads=("weight",), note="add", grad_req="add")
            yield make("Embedding", {"data": Stored(DEFAULT, values([[1, 4], [4, 0]], "int32")),
                                     "weight": Stored(stype, W, "all")}, {**DIMS, "sparse_grad": sparse},
                       grads=("weight",), note="int32")


def _takes():
    for mode in ("clip", "wrap", "raise"):
        for stype in (DEFAULT, CSR, ROWS):
            for label, ids in (("flat", FLAT), ("ids", IDS), ("outside", OUT)):
                if mode != "raise" or label != "outside":
                    yield make("take", {"a": Stored(stype, W), "indices": Stored(DEFAULT, ids)},
                               {"axis": 0, "mode": mode}, grads=("a",), note=label)
        yield make("take", {"a": Stored(CSR, W), "indices": Stored(DEFAULT, values([1, 0], "float32"))},
                   {"axis": 1, "mode": mode}, grads=("a",))
        yield make("take", {"a": Stored(ROWS, W), "indices": Stored(DEFAULT, values([1, 0], "float32"))},
                   {"axis": 1, "mode": mode}, grads=("a",))
    for some in ("all", "none", "zeros"):
        yield make("take", {"a": Stored(CSR, W, some), "indices": Stored(DEFAULT, FLAT)}, {"axis": 0}, grads=("a",))


def _retains():
    for some in ("some", "all", "none", "zeros"):
        for label, ids in (("ascending", [0, 1, 4]), ("order", [4, 0]), ("twice", [0, 0, 2]), ("absent", [1, 3])):
            for dtype in ("float32", "int64"):
                yield make("_sparse_retain", {"data": Stored(ROWS, W, some), "indices": Stored(
                    DEFAULT, values(ids, dtype))}, grads=() if label == "twice" else ("data",), note=f"{label},{dtype}")
    for stype in (DEFAULT, CSR):
        yield make("_sparse_retain", {"data": Stored(stype, W), "indices": Stored(DEFAULT, values([0, 4], "int64"))},
                   grads=("data",))
    yield make("_sparse_retain", {"data": Stored(ROWS, signed((7, 2, 3))), "indices": Stored(
        DEFAULT, values([0, 4], "int64"))}, grads=("data",), note="3d")


CASES = [
    *_embeddings(),
    *_takes(),
    *_retains(),
    *over("batch_take", {"a": (4, 3), "indices": values([0, 2, 1, 0], "int32")}, grads=("a",), only={
        "indices": (DEFAULT,)}),
    *over("pick", {"data": (4, 3), "index": values([0, 2, 1, 0], "float32")}, {"axis": 1}, grads=("data",), only={
        "index": (DEFAULT,)}),
    *over("gather_nd", {"data": (4, 3), "indices": values([[0, 2], [1, 0]], "float32")}, grads=("data",), only={
        "indices": (DEFAULT,)}),
    *over("one_hot", {"indices": FLAT}, {"depth": 7}, grads=()),
    *over("SequenceMask", {"data": (4, 3)}, grads=("data",)),
]  # fmt: skip
