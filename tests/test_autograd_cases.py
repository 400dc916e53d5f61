"""autograd against what MXNet was recorded to do, and where symjax does more."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import symjax as mx
from tests.autograd_cases import CASES, SECOND, attempt, second

GOLDEN = json.loads((Path(__file__).parent / "golden" / "autograd.json").read_text())
DIFFERENT = {
    "expression: cast to integers", "integers",  # JAX has no gradients through integers: they are zero
    "the same head twice",  # MXNet forgets one
    "head of another shape",  # MXNet takes it and computes something
    "setitem into zeros",  # recorded; MXNet raises
    *(f"second order {n}" for n in ("cube", "log", "relu", "sum", "square")),  # MXNet's operators have no gradients
}
"""Cases that differ on purpose; each has a test below."""


def agree(got: Any, want: Any) -> bool:
    """Whether two results are equal: numbers to five digits, an error where the class is one of those raised."""
    if isinstance(want, dict) and "raises" in want:
        return isinstance(got, dict) and want["raises"][0] in got.get("raises", ())
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(agree(got[k], want[k]) for k in want)
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(agree, got, want))
    if isinstance(want, float):
        return isinstance(got, float) and (math.isclose(got, want, rel_tol=2e-5, abs_tol=2e-6)
                                           or (math.isnan(got) and math.isnan(want)))
    return type(got) is type(want) and got == want


@pytest.mark.parametrize("case", [c for c in CASES if c not in DIFFERENT])
def test_as_mxnet(case: str) -> None:
    try:
        got = json.loads(json.dumps(attempt(lambda: CASES[case](mx))))
    finally:
        mx.autograd.set_recording(False)
        mx.autograd.set_training(False)
    assert agree(got, GOLDEN[case]), f"\ngot  {got}\nwant {GOLDEN[case]}"


def test_every_record_has_a_case() -> None:
    assert set(GOLDEN) == set(CASES)


# ---- different on purpose


@pytest.mark.parametrize("case", sorted(c for c in DIFFERENT if c.startswith("second order")))
def test_second_order_gradients_that_mxnet_lacks(case: str) -> None:
    assert "MXNetError" in GOLDEN[case]["raises"]
    f = SECOND[case.removeprefix("second order ")]
    (_, first), (_, got) = second(mx, lambda x: f(mx, x))

    def value(at: list[float]) -> tuple[list[float], float]:
        x = mx.nd.array(at, dtype="float64")
        x.attach_grad()
        with mx.autograd.record():
            y = f(mx, x)
        y.backward()
        return x.grad.asnumpy().tolist(), float((x.grad * x.grad).sum().asscalar())

    at, step = [0.5, -1.25], 1e-5
    assert first == pytest.approx(value(at)[0], rel=1e-5)
    for i in range(2):
        up, down = list(at), list(at)
        up[i] += step
        down[i] -= step
        assert got[i] == pytest.approx((value(up)[1] - value(down)[1]) / (2 * step), rel=1e-4, abs=1e-5)


def test_integers_have_no_gradients() -> None:
    assert attempt(lambda: CASES["integers"](mx)) == [None, ["int32", [0, 0]]]
    assert all(v == 0 for row in CASES["expression: cast to integers"](mx)[1][1] for v in row)


def test_a_head_given_twice_counts_twice() -> None:
    assert CASES["the same head twice"](mx) == ["float32", [4.0, 8.0]]


def test_a_head_gradient_must_fit() -> None:
    assert "of shape (3,) for a head of shape (2,)" in CASES["head of another shape"](mx)["text"]
    assert "float64 for a head of dtype float32" in CASES["head of another type"](mx)["text"]


def test_writing_into_a_new_array_is_recorded() -> None:
    assert CASES["setitem into zeros"](mx) == ["float32", [6.0, 6.0]]


# ---- the recorded calls as a Symbol


def test_get_symbol() -> None:
    x, w = mx.nd.array([1, 2]), mx.nd.array([3, 4])
    for a in (x, w):
        a.attach_grad()
    values = []
    for factor in (2.0, 3.0):  # one compiled call, two numbers
        with mx.autograd.record():
            y = mx.nd.exp(x * w * 0.1 + mx.nd.ones(2)) + x * factor
            net = mx.autograd.get_symbol(y)
        assert net.list_arguments() == ["var0", "var1", "null2"] and net.name == "node_5"
        ex = net.bind(mx.cpu(), {"var0": x, "var1": w, "null2": mx.nd.ones(2)})
        values.append(ex.forward()[0].asnumpy().tolist())
        assert values[-1] == pytest.approx(y.asnumpy().tolist(), rel=1e-6)
        y.backward()
    assert values[0] != values[1]
    with pytest.raises(mx.MXNetError, match="freed"):
        mx.autograd.get_symbol(y)
    with pytest.raises(mx.MXNetError, match="not part of a computation graph"):
        mx.autograd.get_symbol(mx.nd.ones(2))
    assert mx.autograd.get_symbol(x).list_arguments() == ["var0"]


def test_get_symbol_of_several_outputs() -> None:
    x = mx.nd.array([[1, 2, 3, 4]])
    x.attach_grad()
    with mx.autograd.record():
        a, b = mx.nd.split(x, 2, axis=1)
        net = mx.autograd.get_symbol(mx.nd.clip(a * b, 0, 5))
    got = net.bind(mx.cpu(), {"var0": x}).forward()[0].asnumpy().tolist()
    assert got == [[3.0, 5.0]]
