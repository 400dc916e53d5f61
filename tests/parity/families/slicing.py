"""slice, slice_axis, slice_like, _slice_assign, _slice_assign_scalar."""

from tests.parity.arrays import randint
from tests.parity.case import Case, op_case

V, M = {"data": (5,)}, {"data": (3, 4, 5)}
RANGES = [
    ((-10,), (3,), ()), ((None,), (None,), (-1,)), ((3,), (0,), (-2,)), ((10,), (0,), (-2,)), ((0,), (100,), ()),
    ((-1,), (None,), (-2,)), ((None,), (-1,), (None,)), ((), (), ()), ((1,), (4,), (2,)), ((-4,), (-1,), (3,)),
]  # fmt: skip
EMPTY = [((3,), (-10,), ()), ((2,), (2,), ()), ((4,), (2,), ()), ((7,), (9,), ())]
DEEP = [((1,), (3,), ()), ((0, 1), (2, None), ()), ((None, 3, -1), (None, 0, None), (2, -1, -2)),
        ((None, None, 2), (None, None, 4), (None, None, 1))]  # fmt: skip


def cut(begin: tuple, end: tuple, step: tuple) -> dict:
    """Parameters of a slice."""
    return {"begin": begin, "end": end, **({"step": step} if step else {})}


CASES: list[Case] = [
    *(op_case("slice", V, cut(*r)) for r in RANGES),
    *(op_case("slice", V, cut(*r), np_shape=True) for r in EMPTY),
    *(op_case("slice", M, cut(*r)) for r in DEEP),
    op_case("slice", V, {"begin": (1,), "end": (4,), "step": (0,)}, id="zero_step"),
    op_case("slice", V, {"begin": (1, 1), "end": (2, 2)}, id="too_many"),
    op_case("slice", M, {"begin": (0, None), "end": (1, None)}, grad_req="add"),
    op_case("slice", M, {"begin": (None, 1), "end": (None, 3)}, id="rest", infer=[{"data": (0, 4, 5)}]),
    op_case("slice", {"data": randint((3, 4))}, {"begin": (1, None), "end": (None, -1)}, dtype="int64"),
    op_case("slice", V, {"begin": (1,), "end": (4,)}, dtype="float16"),
    *(op_case("slice_axis", M, {"axis": a, "begin": b, "end": e}) for a, b, e in [
        (1, -3, -1), (1, 1, None), (-1, 0, 2), (0, 0, 3), (2, 2, 2), (1, 1, 9), (1, -9, 2), (5, 0, 1), (-1, 1, 0)]),
    op_case("slice_axis", M, {"axis": 1, "begin": 0, "end": 1}, grad_req="add", infer=[{"data": (0, 4, 5)}]),
    op_case("slice_axis", {"data": randint((3, 4))}, {"axis": 1, "begin": 1, "end": 3}, dtype="int32"),
    *(op_case("slice_like", {"data": (3, 4), "shape_like": s}, p, id=f"{s}{p}") for s, p in [
        ((2, 2), {}), ((2, 2), {"axes": (-1,)}), ((2, 3), {"axes": (0,)}), ((2, 3, 2), {"axes": (1,)}), ((2, 5), {}),
        ((2, 2, 2), {})]),
    op_case("slice_like", {"data": (3, 4), "shape_like": randint((2, 3), dtype="int32")}, id="int"),
    *(op_case("_slice_assign", {"lhs": (3, 4), "rhs": r}, cut(*c), id=f"{r}{c}", grads=False) for r, c in [
        ((1, 4), ((1,), (2,), ())), ((1, 4), ((1, None), (2, None), (None, -1))), ((2, 2), ((0, 0), (3, 4), (2, 2))),
        ((4,), ((1,), (2,), ()))]),
    op_case("_slice_assign", {"lhs": (3, 4), "rhs": (1, 4)}, {"begin": (1,), "end": (2,)}, id="gradient",
            better=True),  # MXNet: it has no gradient
    *(op_case("_slice_assign_scalar", {"data": (3, 4)}, {"scalar": 1.5, **cut(*c)}, grads=False) for c in [
        ((1,), (2,), ()), ((0, None), (3, None), (2, -3)), ((), (), ())]),
    op_case("_slice_assign_scalar", {"data": randint((3, 4))}, {"scalar": 1.7, "begin": (1,), "end": (2,)},
            dtype="int32"),
]  # fmt: skip
