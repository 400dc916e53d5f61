"""The _linalg_* operators."""

from typing import Any

from tests.parity.arrays import Array, signed, spd, values
from tests.parity.case import Case, op_case

S2, S3 = spd((3, 3)), spd((2, 3, 3))
T, F = True, False
LOWER = values([[2.0, 9.0, 9.0], [1.0, 3.0, 9.0], [-0.5, 0.5, 1.5]])
SWAPPED = values([[0.1, 1.0, 0.3], [1.2, 0.2, -0.4], [0.3, 0.7, 2.0]])
DTYPES = ("float32", "float64")
LOOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4}


def one(op: str, a: Array | tuple[int, ...], params: dict | None = None, **options: Any) -> Case:
    """A case of an op with the input A."""
    return op_case(f"_linalg_{op}", {"A": a}, params or {}, **{**LOOSE, **options})


GEMM_SHAPES = [  # A, B, C, transpose_a, transpose_b, axis
    ((2, 3), (3, 4), (2, 4), F, F, -2), ((3, 2), (3, 4), (2, 4), T, F, -2), ((2, 3), (4, 3), (2, 4), F, T, -2),
    ((3, 2), (4, 3), (2, 4), T, T, -2), ((2, 2, 3), (2, 3, 4), (2, 2, 4), F, F, -2),
    ((2, 2, 3), (3, 2, 4), (2, 2, 4), F, F, 0), ((3, 2, 2), (3, 2, 4), (2, 2, 4), T, F, 0),
    ((2, 2, 2, 3), (2, 3, 2, 4), (2, 2, 2, 4), F, F, 1),
]  # fmt: skip
FLAGS = [(t, r, lo) for t in (F, T) for r in (F, T) for lo in (T, F)]

CASES: list[Case] = [
    *(op_case("_linalg_gemm2", {"A": a, "B": b}, {"transpose_a": ta, "transpose_b": tb, "axis": x, "alpha": 1.5},
              id=f"{a}{b}{ta}{tb}{x}", **LOOSE) for a, b, _, ta, tb, x in GEMM_SHAPES),
    *(op_case("_linalg_gemm", {"A": a, "B": b, "C": c}, {"transpose_a": ta, "transpose_b": tb, "axis": x, "beta": 0.5},
              id=f"{a}{b}{ta}{tb}{x}", **LOOSE) for a, b, c, ta, tb, x in GEMM_SHAPES),
    op_case("_linalg_gemm", {"A": (2, 3), "B": (3, 4), "C": None}, {}, id="infer", infer_from=("A", "B"), **LOOSE),
    op_case("_linalg_gemm2", {"A": (2, 3), "B": (3, 4)}, dtype="float64"),
    op_case("_linalg_gemm2", {"A": (2, 3), "B": (3, 4)}, dtype="float16", better=True),
    op_case("_linalg_gemm2", {"A": (2, 3), "B": (2, 3)}, id="bad"),
    op_case("_linalg_gemm2", {"A": (2, 3), "B": (2, 3, 4)}, id="ranks"),
    *(one(o, a, dtype=t) for o in ("potrf", "inverse", "det", "sumlogdiag") for a in (S2,) for t in DTYPES),
    *(one(o, S3, id="batch") for o in ("potrf", "inverse", "det", "sumlogdiag")),
    *(one(o, S3, id="batch", grad_req="add") for o in ("potrf", "det", "sumlogdiag")),
    one("potrf", spd((1, 2, 2, 2)), id="rank4"),
    one("potrf", (2, 3), id="not_square"),
    one("potri", LOWER), one("potri", LOWER, dtype="float64"), one("potri", LOWER, grad_req="add", id="add"),
    *(one(o, SWAPPED, id="general", outputs=1) for o in ("inverse", "det")),
    one("det", values([[1.0, 2.0], [3.0, 1.0]]), id="negative", infer=[{"A": (0, 2, 2)}]),
    *(one("slogdet", a, outputs=2, id=i) for i, a in [("one", SWAPPED), ("batch", S3)]),
    one("slogdet", S2, outputs=2, dtype="float64"),
    *(op_case(f"_linalg_{o}", {"A": LOWER, "B": b}, {"transpose": t, "rightside": r, "lower": lo, "alpha": 1.5},
              id=f"{t}{r}{lo}", **LOOSE) for o in ("trmm", "trsm") for t, r, lo in FLAGS
      for b in [(2, 3) if r else (3, 2)]),
    *(op_case(f"_linalg_{o}", {"A": signed((2, 3, 3), 0.5), "B": (2, 3, 4)}, id="batch", **LOOSE)
      for o in ("trmm", "trsm")),
    *(op_case(f"_linalg_{o}", {"A": LOWER, "B": (3, 2)}, dtype="float64") for o in ("trmm", "trsm")),
    *(op_case(f"_linalg_{o}", {"A": LOWER, "B": (2, 2)}, id="bad") for o in ("trmm", "trsm")),
    *(one("syrk", a, {"transpose": t, "alpha": 0.5}, id=f"{a}{t}") for a in ((2, 3), (2, 2, 3)) for t in (F, T)),
    one("syrk", (2, 3), dtype="float64", grad_req="add"),
    *(one("gelqf", a, outputs=2, id=str(a), dtype=t) for a in ((2, 3), (3, 3), (2, 2, 4)) for t in DTYPES),
    one("gelqf", (3, 2), outputs=2, id="tall"),
    *(one("syevd", a, outputs=2, id=i, dtype=t) for i, a in [("one", S2), ("batch", S3)] for t in DTYPES),
    *(one("extractdiag", (2, 4, 4), {"offset": k}) for k in (0, 1, -2)),
    *(one("makediag", (2, 3), {"offset": k}) for k in (0, 1, -2)),
    *(one("extracttrian", (2, 4, 4), {"offset": k, "lower": lo}) for k in (0, 1, -2) for lo in (T, F)),
    *(one("maketrian", (2, 6), {"offset": k, "lower": lo}) for k in (0, 1, -2) for lo in (T, F)),
    *(one(o, a, dtype="float64", grad_req="add") for o, a in [
        ("extractdiag", (3, 3)), ("makediag", (3,)), ("extracttrian", (3, 3)), ("maketrian", (3,))]),
    one("maketrian", (2,), id="bad"),
]  # fmt: skip
