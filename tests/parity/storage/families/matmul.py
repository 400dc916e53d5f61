"""dot in every storage combination, FullyConnected, batch_dot."""

from __future__ import annotations

from tests.parity.arrays import signed
from tests.parity.storage.case import CSR, DEFAULT, ROWS, STYPES, Stored, make, over

FLAGS = ((False, False), (True, False), (False, True), (True, True))


def _shapes(a: bool, b: bool):
    """Operands of a product (4, 5) x (5, 3)."""
    left, right = ((5, 4) if a else (4, 5)), ((3, 5) if b else (5, 3))
    return {"lhs": signed(left, 0.2, 0.9), "rhs": signed(right, 0.2, 0.9)}


def _dots():
    for a, b in FLAGS:
        params = {"transpose_a": a, "transpose_b": b}
        yield from over("dot", _shapes(a, b), params)
        for stype in STYPES:
            yield from over("dot", _shapes(a, b), {**params, "forward_stype": stype})


def _patterns():
    for a, b in FLAGS:
        x = _shapes(a, b)
        for left, right in ((CSR, DEFAULT), (CSR, ROWS), (DEFAULT, CSR)):
            for some in ("all", "none", "zeros"):
                yield make("dot", {"lhs": Stored(left, x["lhs"], some), "rhs": Stored(right, x["rhs"], some, 1)},
                           {"transpose_a": a, "transpose_b": b})


CASES = [
    *_dots(),
    *over("dot", {"lhs": signed((4, 5), 0.2, 0.9), "rhs": signed((5, 9), 0.2, 0.9)}, note="wide"),
    *over("dot", {"lhs": signed((5, 4), 0.2, 0.9), "rhs": signed((5, 9), 0.2, 0.9)}, {"transpose_a": True},
          note="wide"),
    *_patterns(),
    *(c for a in (False, True) for c in over("dot", {"lhs": _shapes(a, False)["lhs"], "rhs": (5,)}, {"transpose_a": a},
                                             note="vector", only={"rhs": (DEFAULT, ROWS)})),
    *over("dot", {"lhs": (5,), "rhs": (5,)}, note="vectors"),
    *over("dot", {"lhs": (5,), "rhs": (5, 3)}, note="vector on the left"),
    *over("dot", {"lhs": (4, 5), "rhs": (5, 2, 3)}, note="3d"),
    *over("FullyConnected", {"data": (4, 5), "weight": (3, 5), "bias": (3,)}, {"num_hidden": 3}),
    *over("FullyConnected", {"data": (4, 5), "weight": (3, 5)}, {"num_hidden": 3, "no_bias": True}),
    *(make("FullyConnected", {"data": Stored(d, signed((4, 5), 0.2, 0.9)), "weight": Stored(
        ROWS, signed((3, 5), 0.2, 0.9), "all"), "bias": Stored(b, signed((3,), 0.2, 0.9), "all")}, {"num_hidden": 3})
      for d in (DEFAULT, CSR) for b in (DEFAULT, ROWS)),
    *(make("FullyConnected", {"data": Stored(d, signed((4, 5), 0.2, 0.9)), "weight": Stored(
        ROWS, signed((3, 5), 0.2, 0.9), "all")}, {"num_hidden": 3, "no_bias": True}) for d in (DEFAULT, CSR)),
    *over("batch_dot", {"lhs": (2, 4, 5), "rhs": (2, 5, 3)}),
]  # fmt: skip
