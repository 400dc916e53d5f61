"""Embedding, take, pick, one_hot, gather and scatter, where, index arithmetic, histogram."""

from typing import Any

import numpy as np

from tests.parity.arrays import Array, randint, values
from tests.parity.case import Case, op_case

W = (4, 3)
OUTER = values([-1, 0, 2.7, 4, -5, 9], dtype="float32")
EMB = {"input_dim": 4, "output_dim": 3}
FLOATS = ("float16", "float64")
INTS = ("int8", "uint8", "int32", "int64")


def embed(index: Array, **options: Any) -> Case:
    """Embedding, differentiated with respect to the table."""
    return op_case("Embedding", {"data": index, "weight": None}, EMB, grads=["weight"], **options)


def filled(a: np.ndarray, values: np.ndarray, columns: np.ndarray, one_row: bool = False) -> np.ndarray:
    """A copy of `a` with one element of each row (or several of the only one) replaced."""
    out = a.copy()
    out[0 if one_row else np.arange(len(a)), columns.astype(int)] = values
    return out


CASES: list[Case] = [
    embed(values([[0, 3], [1, 1]], dtype="float32"), id="plain"),
    embed(OUTER, id="outer"),
    *(embed(values([0, 3, 3, 1], dtype=t), id=f"index_{t}") for t in ("int32", "int64", "uint8", "float64")),
    embed(values([0, 3, 3], dtype="float32"), id="add", grad_req="add"),
    embed(values([0, 3, 3], dtype="float32"), id="partial", infer=[{"data": (0, 2)}, {"weight": (4, 3)}]),
    *(op_case("Embedding", {"data": values([0, 3, 3], dtype="int32"), "weight": W}, {**EMB, "dtype": t}, dtype=t,
              grads=["weight"]) for t in FLOATS),
    op_case("Embedding", {"data": values([0, 3, 3], dtype="int32"), "weight": W}, EMB, id="plain", grads=False),
    op_case("_contrib_SparseEmbedding", {"data": values([0, 3, 3], dtype="float32"), "weight": None}, EMB, grads=False),
    *(op_case("take", {"a": W, "indices": OUTER}, {"mode": m}, grads=["a"]) for m in ("clip", "wrap")),
    *(op_case("take", {"a": W, "indices": values([[0, -1], [5, 2]], dtype="int32")}, {"mode": m, "axis": a},
              grads=["a"]) for m in ("clip", "wrap") for a in (1, -1, 0)),
    op_case("take", {"a": W, "indices": values([0, 3, 3], dtype="float32")}, {"mode": "raise"}, grads=["a"]),
    op_case("take", {"a": (2, 3, 2), "indices": values([[1], [0]], dtype="float32")}, {"axis": 1}, grads=["a"],
            grad_req="add", infer=[{"a": (0, 3, 2), "indices": (2,)}]),
    *(op_case("take", {"a": W, "indices": values([0, 3, 3], dtype="int64")}, dtype=t, grads=["a"]) for t in FLOATS),
    *(op_case("take", {"a": randint(W), "indices": values([0, 3], dtype="int32")}, dtype=t) for t in INTS),
    op_case("take", {"a": W, "indices": (2,)}, {"axis": 2}, grads=False, id="bad_axis", infer_from=("a", "indices")),
    op_case("batch_take", {"a": W, "indices": values([-1, 1, 2, 7], dtype="int32")}, grads=False,
            infer_from=("a", "indices")),
    op_case("batch_take", {"a": W, "indices": values([0, 1, 2, 1], dtype="int32")}, id="gradient", grads=["a"],
            better=True),  # MXNet: it has no gradient
    *(op_case("pick", {"data": W, "index": values([-1, 1.9, 7, 2], dtype="float32")}, {"mode": m, "keepdims": k},
              grads=["data"]) for m in ("clip", "wrap") for k in (False, True)),
    op_case("pick", {"data": (2, 3, 4), "index": randint((2, 4), 0, 3, dtype="int32")}, {"axis": 1}, grads=["data"]),
    op_case("pick", {"data": (2, 3, 4), "index": randint((3, 4), 0, 2, dtype="int64")}, {"axis": 0, "keepdims": True},
            grads=["data"], grad_req="add"),
    op_case("pick", {"data": W, "index": values([[0], [1], [1], [2]], dtype="float32")}, id="kept", grads=["data"]),
    op_case("pick", {"data": W, "index": randint((4,), 0, 3)}, id="infer", grads=["data"], infer=[{"data": (0, 3)}]),
    op_case("pick", {"data": (3,), "index": values([1], dtype="float32")}, {"axis": 0}, grads=["data"]),
    *(op_case("pick", {"data": W, "index": randint((4,), 0, 3, dtype="int32")}, dtype=t, grads=["data"])
      for t in FLOATS),
    op_case("pick", {"data": W, "index": (3,)}, id="bad", grads=False, infer_from=("data", "index")),
    op_case("one_hot", {"indices": values([0, -1, 3, 1.5, 2], dtype="float32")}, {"depth": 3}, grads=False),
    *(op_case("one_hot", {"indices": values([[0, 1]], dtype="int64")},
              {"depth": 2, "on_value": 2.5, "off_value": -1, "dtype": t}, grads=False) for t in
      ("float16", "float32", "float64", "int8", "int32", "int64")),
    op_case("one_hot", {"indices": randint((2, 3), 0, 4, dtype="int32")}, {"depth": 4}),
    op_case("gather_nd", {"data": W, "indices": values([[3, 0, 1], [0, 1, 2]], dtype="float32")}, grads=["data"]),
    # MXNet: the gradient of a negative index is lost.
    op_case("gather_nd", {"data": W, "indices": values([[-1, 0, 1], [0, 1, -2]], dtype="float32")}, id="negative",
            grads=False),
    op_case("gather_nd", {"data": W, "indices": values([[1, 0, 1]], dtype="int32")}, id="rows", grads=["data"]),
    op_case("gather_nd", {"data": (2, 3, 2), "indices": values([[[1, 0]], [[2, 2]]], dtype="int64")}, id="blocks",
            grads=["data"], grad_req="add"),
    op_case("gather_nd", {"data": W, "indices": values([[0, 0], [1, 1]], dtype="int32")}, dtype="float64",
            grads=["data"]),
    op_case("gather_nd", {"data": (3,), "indices": (2, 2)}, id="too_deep", grads=False),
    op_case("scatter_nd", {"data": (4,), "indices": values([[0, 2, 4, 1]], dtype="float32")}, {"shape": (5,)},
            grads=["data"], infer_from=("data", "indices")),
    op_case("scatter_nd", {"data": (2, 2), "indices": values([[0, 2]], dtype="int64")}, {"shape": (3, 2)},
            grads=["data"], infer_from=("data", "indices")),
    op_case("scatter_nd", {"data": (3,), "indices": values([[0, 2, 1], [1, 0, 1]], dtype="int32")}, {"shape": (3, 2)},
            grads=["data"], grad_req="add", infer_from=("data", "indices")),
    op_case("scatter_nd", {"data": randint((3,)), "indices": values([[0, 0, 1]], dtype="int32")}, {"shape": (2,)},
            dtype="int32", id="last", infer_from=("data", "indices")),
    op_case("_backward_gather_nd", {"data": (4,), "indices": values([[0, 2, 2, 1]], dtype="float32")},
            {"shape": (5,)}, grads=False, infer_from=("data", "indices")),
    *(op_case("where", {"condition": c, "x": (3, 2), "y": (3, 2)}, id=i, grads=["x", "y"],
              infer_from=("condition", "x", "y")) for i, c in [
        ("vector", values([1, 0, 2], dtype="float32")), ("vector_int", values([1, 0, 2], dtype="int32")),
        ("same", values([[1, 0], [0, -1], [0.5, 0]], dtype="float32")), ("bad", randint((2,), dtype="float32"))]),
    op_case("where", {"condition": randint((2, 3), 0, 2), "x": (2, 3), "y": (2, 3)}, id="add", grads=["x", "y"],
            grad_req="add"),
    op_case("where", {"condition": values([1, 0], dtype="float32"), "x": (2,), "y": (2,)}, id="rank1",
            grads=["x", "y"], infer_from=("condition", "x", "y")),
    *(op_case("where", {"condition": randint((2, 3), 0, 2, dtype="float32"), "x": (2, 3), "y": (2, 3)}, dtype=t,
              grads=["x", "y"]) for t in FLOATS),
    op_case("where", {"condition": randint((2, 3), 0, 2), "x": randint((2, 3)), "y": randint((2, 3))}, dtype="int32"),
    op_case("_contrib_index_copy", {"old_tensor": W, "index_vector": values([2, 0], dtype="int64"),
                                    "new_tensor": (2, 3)}, grads=["old_tensor", "new_tensor"],
            infer_from=("old_tensor", "index_vector", "new_tensor")),
    op_case("_contrib_index_copy", {"old_tensor": W, "index_vector": values([3, 1], dtype="float32"),
                                    "new_tensor": (2, 3)}, id="float", grads=["old_tensor", "new_tensor"],
            infer_from=("old_tensor", "index_vector", "new_tensor")),
    # MXNet: these have no symbol, need their output in place, or a result of unknown shape.
    op_case("fill_element_0index", {"lhs": W, "mhs": (4,), "rhs": values([0, 1, 2, 1], dtype="float32")}, grads=False,
            better=True, expected=lambda x: {"out0": filled(x["lhs"], x["mhs"], x["rhs"])}),
    op_case("_onehot_encode", {"lhs": values([0, 2, 5, -1], dtype="float32"), "rhs": (4, 3)}, grads=False, better=True,
            expected=lambda x: {"out0": (x["lhs"][:, None] == np.arange(3)).astype(np.float32)}),
    op_case("_scatter_set_nd", {"lhs": (4,), "rhs": (2,), "indices": values([[0, 2]], dtype="float32")},
            {"shape": (4,)}, grads=False, better=True, infer_from=("lhs", "rhs", "indices"),
            expected=lambda x: {"out0": filled(x["lhs"][None], x["rhs"], x["indices"][0], True)[0]}),
    op_case("_contrib_boolean_mask", {"data": W, "index": values([1, 0, 2, 0], dtype="float32")}, grads=["data"],
            infer_from=("data", "index")),
    *(op_case("_ravel_multi_index", {"data": values([[3, 6, 6], [4, 5, 1]])}, {"shape": s}, dtype=t, grads=False)
      for s in ((7, 6), (-1, 6)) for t in ("float32", "int32", "int64")),
    op_case("_ravel_multi_index", {"data": values([[9, -1], [4, 9]])}, {"shape": (7, 6)}, dtype="int32", id="outer"),
    *(op_case("_unravel_index", {"data": values([22, 41, 37, 100])}, {"shape": s}, dtype=t, grads=False)
      for s in ((7, 6), (-1, 6), (2, 3, 7)) for t in ("float32", "int32", "int64")),
    op_case("_histogram", {"data": values([0.1, 0.5, 1, 2, -1, 0.25])}, {"bin_cnt": 4, "range": (0.0, 1.0)}, outputs=2,
            grads=False),
    op_case("_histogram", {"data": values([0, 1, 2, 3, 3])}, {"bin_cnt": 2, "range": (0, 3)}, outputs=2,
            dtype="int32"),
    op_case("_histogram", {"data": values([[0.1, 0.5, 1, 2], [-1, 0.25, 4, 0.0]]), "bins": values([0, 0.25, 0.5, 4])},
            outputs=2, grads=False, infer_from=("data", "bins")),
    op_case("_histogram", {"data": values([0.1, 0.5])}, {"bin_cnt": 2}, outputs=2, id="no_range", grads=False),
    *(op_case("_contrib_allclose", {"a": values(a), "b": values(b)}, p, id=i, grads=False, np_shape=True,
              infer_from=("a", "b"))
      for i, a, b, p in [
        ("near", [1.0, 2.0], [1.0, 2.000001], {}), ("far", [1.0, 2.0], [1.0, 2.1], {}),
        ("atol", [1.0, 2.0], [1.0, 2.1], {"atol": 0.2}), ("rtol", [1.0, 2.0], [1.0, 2.1], {"rtol": 0.1}),
        ("nan", ["nan"], ["nan"], {}), ("nan_unequal", ["nan"], ["nan"], {"equal_nan": False}),
        ("inf", ["inf"], ["inf"], {})]),
]  # fmt: skip
