"""Pooling and Pooling_v1."""

from __future__ import annotations

from tests.parity.arrays import distinct, randint, signed, values
from tests.parity.case import Case, op_case

SHAPES: dict[int, tuple[int, ...]] = {1: (2, 2, 9), 2: (2, 2, 7, 8), 3: (1, 2, 5, 6, 4)}
DATA = {r: distinct(s) for r, s in SHAPES.items()}
LAST = {1: distinct((2, 9, 2)), 2: distinct((2, 7, 8, 2)), 3: distinct((1, 5, 6, 4, 2))}
LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
TIED = randint((2, 2, 6, 7), 0, 3)
KINDS = ("max", "avg", "sum", "lp")


def _kind(kind: str) -> dict[str, object]:
    return {"pool_type": kind, **({"p_value": 2} if kind == "lp" else {})}


def _by_rank(rank: int) -> list[Case]:
    cases = []
    data = {"data": DATA[rank]}
    for kind in KINDS:
        k = {"kernel": (3, 2, 2)[:rank], **_kind(kind)}
        stride, pad = (2, 3, 2)[:rank], (1, 1, 1)[:rank]
        cases += [
            op_case("Pooling", data, k),
            op_case("Pooling", data, {**k, "stride": stride}),
            op_case("Pooling", data, {**k, "stride": stride, "pad": pad}),
            op_case("Pooling", data, {**k, "stride": stride, "pooling_convention": "full"}),
            op_case("Pooling", data, {**k, "stride": stride, "pad": pad, "pooling_convention": "full"}),
            op_case("Pooling", data, {"global_pool": True, **_kind(kind)}),
            op_case("Pooling", data, {**k, "stride": stride, "pad": pad, "layout": LAYOUTS[rank][0]}),
            op_case("Pooling", {"data": LAST[rank]}, {**k, "stride": stride, "pad": pad, "layout": LAYOUTS[rank][1]}),
            op_case("Pooling", {"data": LAST[rank]}, {"global_pool": True, "layout": LAYOUTS[rank][1], **_kind(kind)}),
        ]
        if rank == 1:
            cases += [op_case("Pooling", data, {**k, "stride": (s,), "pad": (0, 0, 0), "pooling_convention": "same"})
                      for s in (1, 2)]  # fmt: skip
    for convention in ("valid", "full"):
        cases.append(op_case("Pooling", data, {
            "kernel": (3, 2, 2)[:rank], "pool_type": "avg", "count_include_pad": False, "stride": (2, 3, 2)[:rank],
            "pad": (1,) * rank, "pooling_convention": convention}))  # fmt: skip
    return cases


CASES: list[Case] = [
    *_by_rank(1), *_by_rank(2), *_by_rank(3),
    op_case("Pooling", {"data": TIED}, {"kernel": (2, 2), "stride": (1, 1)}, id="ties"),
    op_case("Pooling", {"data": TIED}, {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}, id="ties_pad"),
    op_case("Pooling", {"data": TIED}, {"kernel": (4, 5), "stride": (1, 2), "pad": (2, 1)}, id="ties_large"),
    op_case("Pooling", {"data": TIED}, {"global_pool": True}, id="ties_global"),
    op_case("Pooling", {"data": TIED}, {"kernel": (6, 7)}, id="ties_whole"),
    op_case("Pooling", {"data": values([[[1, "nan", 2, "nan", "nan", 0]]])}, {"kernel": (2,)}, id="nan"),
    op_case("Pooling", {"data": values([[["inf", 1, "-inf", 2, "inf", "inf"]]])}, {"kernel": (2,)}, id="inf"),
    op_case("Pooling", {"data": values([[[0, 0, 0, 1, 0, -1]]])}, {"kernel": (2,), "pool_type": "lp", "p_value": 2},
            id="zeros"),
    *(op_case("Pooling", {"data": signed((2, 2, 9))}, {"kernel": (3,), "pool_type": "lp", "p_value": v, "stride": (2,)})
      for v in (1, 2, 3, 4)),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (2, 2), "pool_type": "lp"}, id="no_p"),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (1, 1), "stride": (3, 3), "pool_type": "avg",
                                           "pooling_convention": "full"}),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (2, 2), "pool_type": "avg", "count_include_pad": True,
                                           "pad": (1, 1)}),
    op_case("Pooling", {"data": DATA[2]}, {"global_pool": True, "kernel": (3, 3), "stride": (2, 2), "pad": (1, 1),
                                           "pool_type": "avg"}),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (9, 2)}, id="kernel_too_big"),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (2, 2), "pad": (2, 2)}, id="pad_not_below_kernel"),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (2,)}, id="kernel_rank"),
    op_case("Pooling", {"data": DATA[2]}, {}, id="no_kernel"),
    op_case("Pooling", {"data": (2, 3)}, {"kernel": (2, 2)}, id="rank"),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (2, 2), "layout": "NCW"}, id="layout_rank"),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (2, 2), "pooling_convention": "same"}, id="same_2d", better=True),
    op_case("Pooling", {"data": DATA[1]}, {"kernel": (2,), "pooling_convention": "same"}, id="same_1d", better=True),
    op_case("Pooling", {"data": DATA[1]}, {"kernel": (2,), "pooling_convention": "same", "pad": (1,)}, id="same_pad"),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (2, 2)}, id="partial", infer=[
        {"data": (0, 2, 7, 8)}, {"data": (2, 0, 7, 8)}]),
    *(op_case("Pooling", {"data": DATA[2]}, {"kernel": (2, 2), "pool_type": k}, dtype=t)
      for k in ("max", "avg", "sum") for t in ("float16", "float64")),
    op_case("Pooling", {"data": DATA[2]}, {"kernel": (2, 2)}, grad_req="add"),
    op_case("Pooling", {"data": randint((1, 2, 4, 4), 0, 100)}, {"kernel": (2, 2)}, dtype="int32", id="int",
            better=True),
    op_case("Pooling", {"data": (0, 2, 4, 4)}, {"kernel": (2, 2)}, id="empty", np_shape=True),
    op_case("_npx_pooling", {"data": DATA[2]}, {"kernel": (2, 2), "pool_type": "avg"}),
    *(op_case("Pooling_v1", {"data": DATA[2]}, {"kernel": (3, 2), "stride": (2, 3), "pool_type": k, "pad": q,
                                                "pooling_convention": c})
      for k in ("max", "avg", "sum") for q in ((0, 0), (1, 1)) for c in ("valid", "full")),
    *(op_case("Pooling_v1", {"data": DATA[2]}, {"global_pool": True, "kernel": (1, 1), "pool_type": k})
      for k in ("max", "avg", "sum")),
    op_case("Pooling_v1", {"data": TIED}, {"kernel": (2, 2)}, id="ties"),
    *(op_case("Pooling_v1", {"data": distinct((1, 2, 2, 1))}, {"kernel": (2, 2), "stride": (2, 4), "pad": (0, 1),
              "pool_type": k, "pooling_convention": "full"}, id=f"empty_window_{k}") for k in ("max", "avg", "sum")),
    op_case("Pooling_v1", {"data": distinct((2, 2, 6, 6), -2, -1)}, {"kernel": (3, 3), "pad": (1, 1)}, id="negative"),
]  # fmt: skip
