"""Ops that move elements: casts, slices, concatenation, reshaping."""

from __future__ import annotations

from tests.parity.arrays import signed, values
from tests.parity.storage.case import CSR, DEFAULT, ROWS, STYPES, Stored, make, over

X = {"data": signed((6, 4), 0.2, 0.9)}
SLICES = (
    {"begin": (1,), "end": (4,)}, {"begin": (1, 1), "end": (4, 3)}, {"begin": (0, 1), "end": (6, 4)},
    {"begin": (None, 1), "end": (None, 3)}, {"begin": (-3,), "end": (None,)},
    {"begin": (0,), "end": (6,), "step": (2,)},
    {"begin": (2, 0), "end": (3, 4)}, {"begin": (1, 0), "end": (2, 1)},
)  # fmt: skip
MOVES = (
    ("Flatten", {}), ("reshape", {"shape": (4, 6)}), ("reshape", {"shape": (-1,)}), ("transpose", {}),
    ("expand_dims", {"axis": 1}), ("Cast", {"dtype": "float64"}), ("Cast", {"dtype": "float32"}),
    ("amp_cast", {"dtype": "float64"}), ("slice_axis", {"axis": 0, "begin": 1, "end": 4}),
    ("slice_axis", {"axis": 1, "begin": 1, "end": 3}), ("tile", {"reps": (1, 2)}),
    ("repeat", {"repeats": 2, "axis": 0}), ("reverse", {"axis": 0}), ("softmax", {"axis": 1}),
    ("log_softmax", {"axis": 1}), ("SwapAxis", {"dim1": 0, "dim2": 1}),
    ("broadcast_to", {"shape": (6, 4)}), ("L2Normalization", {}), ("LeakyReLU", {"act_type": "leaky"}),
    ("Activation", {"act_type": "relu"}),
)  # fmt: skip


def _casts():
    for stype in STYPES:
        yield from over("cast_storage", X, {"stype": stype})
        for have in (DEFAULT, CSR, ROWS):
            for some in ("all", "none", "zeros"):
                yield make("cast_storage", {"data": Stored(have, X["data"], some)}, {"stype": stype})
    yield from over("cast_storage", {"data": (5, 2, 3)}, {"stype": "row_sparse"}, note="3d")
    some = Stored(DEFAULT, values([[0, 1, 0], [0, 0, 0], [2, 0, 3], [0, 0, 0]], "float32"))
    for stype in (CSR, ROWS):
        yield make("cast_storage", {"data": some}, {"stype": stype}, note="zeros among")


CASES = [
    *_casts(),
    *(c for p in SLICES for c in over("slice", X, p)),
    *(make("slice", {"data": Stored(CSR, X["data"], some)}, p) for p in SLICES[:2]
      for some in ("all", "none", "zeros")),
    *over("slice", {"data": (5, 2, 3)}, {"begin": (1,), "end": (4,)}, note="3d"),
    *(c for op, p in MOVES for c in over(op, X, p)),
    *(c for dim in (0, 1) for c in over("Concat", {"a": (3, 4), "b": (3, 4)}, {"num_args": 2, "dim": dim})),
    *over("Concat", {"a": (2, 4), "b": (3, 4), "c": (4, 4)}, {"num_args": 3, "dim": 0}, only={"c": (CSR, DEFAULT)}),
    *(make("Concat", {"a": Stored(CSR, X["data"], s), "b": Stored(CSR, X["data"], t, 1)}, {"num_args": 2, "dim": 0})
      for s in ("all", "none", "zeros") for t in ("some", "none")),
    *over("stack", {"a": (3, 4), "b": (3, 4)}, {"num_args": 2, "axis": 0}),
    *over("SliceChannel", X, {"num_outputs": 2, "axis": 1}, outputs=2),
    *over("slice_like", {"data": X["data"], "shape_like": (3, 2)}, grads=("data",)),
    *over("zeros_like", X),
    *over("broadcast_like", {"lhs": (6, 4), "rhs": (6, 4)}, grads=("lhs",)),
    *over("reshape_like", {"lhs": (6, 4), "rhs": (4, 6)}, grads=("lhs",)),
    *over("LinearRegressionOutput", {"data": (5, 3), "label": (5, 3)}, head="none", grads=("data",)),
    *over("MAERegressionOutput", {"data": (5, 3), "label": (5, 3)}, head="none", grads=("data",)),
    *over("LogisticRegressionOutput", {"data": (5, 3), "label": (5, 3)}, {"grad_scale": 2.0}, head="none",
          grads=("data",)),
    *over("LinearRegressionOutput", {"data": (5, 1), "label": (5, 1)}, {"grad_scale": 0.5}, head="none",
          grads=("data",), note="column"),
    *over("SoftmaxOutput", {"data": (5, 3), "label": values([0, 2, 1, 1, 0], "float32")}, head="none", grads=("data",)),
]  # fmt: skip
