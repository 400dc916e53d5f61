"""Recording and differentiation of imperative code."""

from __future__ import annotations

import numpy as np
import pytest

from symjax import autograd
from symjax import ndarray as nd
from symjax.lowering.errors import MissingLoweringError, MXNetError
from tests.compiles import Counted


def variable(*values: float) -> nd.NDArray:
    x = nd.array(values)
    x.attach_grad()
    return x


def numbers(a: nd.NDArray) -> list[float]:
    return a.asnumpy().reshape(-1).tolist()


def test_scopes_set_and_restore_the_flags() -> None:
    def flags() -> tuple[bool, bool]:
        return autograd.is_recording(), autograd.is_training()

    assert flags() == (False, False)
    with autograd.record():
        assert flags() == (True, True)
        with autograd.pause():
            assert flags() == (False, False)
        with autograd.predict_mode():
            assert flags() == (True, False)
        assert flags() == (True, True)
    with autograd.record(train_mode=False), autograd.train_mode():
        assert flags() == (True, True)
    assert flags() == (False, False)

    @autograd.record()
    def inside() -> tuple[bool, bool]:
        return flags()

    assert inside() == (True, True) and flags() == (False, False)


def test_a_layer_and_a_loss_train() -> None:
    rng = np.random.default_rng(0)
    x = nd.array(rng.normal(size=(32, 4)))
    y = nd.dot(x, nd.array([[1], [-2], [3], [0.5]]))
    w, b = nd.zeros((1, 4)), nd.zeros((1,))
    for p in (w, b):
        p.attach_grad()
    losses, counted, start = [], Counted(), 0
    for step in range(60):
        with autograd.record():
            out = nd.FullyConnected(x, w, b, num_hidden=1)
            loss = nd.mean(nd.square(out - y))
        loss.backward()
        for p in (w, b):
            nd.sgd_update(p, p.grad, out=p, lr=0.1)
        losses.append(loss.asscalar())
        if step == 3:
            start = counted.n
    assert counted.n == start, "later steps compiled again"
    assert losses[-1] < 1e-3 * losses[0] and numbers(w) == pytest.approx([1, -2, 3, 0.5], abs=0.05)


def test_gradients_of_gradients() -> None:
    x = variable(1, 2)
    with autograd.record():
        y = nd.sin(x) * x
        (first,) = autograd.grad(y, x, create_graph=True)
        (second,) = autograd.grad(first, x, create_graph=True)
    (third,) = autograd.grad(second, x)
    v = np.array([1.0, 2.0])
    assert numbers(first) == pytest.approx(np.sin(v) + v * np.cos(v), rel=1e-6)
    assert numbers(second) == pytest.approx(2 * np.cos(v) - v * np.sin(v), rel=1e-6)
    assert numbers(third) == pytest.approx(-3 * np.sin(v) - v * np.cos(v), rel=1e-6)


def test_parts_rejoin_and_repeat() -> None:
    x = variable(1, 2, 3)
    with autograd.record():
        y = nd.concat(x[0:2], x[1:3], x[::-1], dim=0) * nd.array([1, 2, 3, 4, 5, 6, 7])
    y.backward()
    assert numbers(x.grad) == [1 + 7, 2 + 3 + 6, 4 + 5]


def test_integers_on_the_way_stop_the_gradient() -> None:
    x = variable(1.5, 2.5)
    with autograd.record():
        y = x * x.astype("int32").astype("float32")
    y.backward()
    assert numbers(x.grad) == [1, 2]


def test_requests() -> None:
    x, y, z = nd.array([1.0]), nd.array([2.0]), nd.array([3.0])
    grads = [nd.array([10.0]), nd.array([20.0]), nd.array([30.0])]
    autograd.mark_variables([x, y, z], grads, ["write", "add", "null"])
    with autograd.record():
        out = x * y * z
    out.backward()
    assert [g.asscalar() for g in grads] == [6, 23, 30]
    with pytest.raises(MXNetError, match="grad_req"):
        x.attach_grad("always")


def test_what_was_read_counts_even_if_overwritten_later() -> None:
    x, w = variable(3), nd.array([2.0])
    with autograd.record():
        y = x * w
    w[:] = 100
    y.backward()
    assert numbers(x.grad) == [2]


def test_writing_into_a_new_array_is_recorded_once() -> None:
    x = variable(1, 2)
    with autograd.record():
        y = nd.zeros((2, 2))
        y[1] = x * 3
        z = y * 2
    z.backward()
    assert numbers(x.grad) == [6, 6]
    with autograd.record():
        y = x * 1
        for write in (lambda: y.__setitem__(0, 1), lambda: y.__iadd__(1), lambda: nd.exp(x, out=y)):
            with pytest.raises(MXNetError, match="Inplace"):
                write()


def test_errors() -> None:
    x = variable(1)
    with pytest.raises(MXNetError, match="not in a computational graph"):
        (x * 2).backward()
    with autograd.record():
        y = x * 2
        z = y * y
    y.backward()
    with pytest.raises(MXNetError, match="retain_graph"):
        z.backward()
    with autograd.record():
        y = x * 2
    with pytest.raises(MXNetError, match="variable 0"):
        autograd.grad(y, nd.ones(1), retain_graph=True)
    with pytest.raises(MXNetError, match="shape"):
        y.backward(nd.ones(3))
    with autograd.record():
        y = x[0:1] * 2
    with pytest.raises(MissingLoweringError, match=r"an index, slice.*mx\.sym"):
        autograd.get_symbol(y)


def test_a_function_in_python() -> None:
    class Cube(autograd.Function):
        def forward(self, x: nd.NDArray) -> nd.NDArray:
            self.save_for_backward(x)
            return x * x * x

        def backward(self, dy: nd.NDArray) -> nd.NDArray:
            assert not autograd.is_recording()
            (x,) = self.saved_tensors
            return dy * x * 100  # not the derivative, to see that this is what is used

    x = variable(1, 2)
    with autograd.record():
        y = Cube()(x * 2)
    y.backward()
    assert numbers(y) == [8, 64] and numbers(x.grad) == [400, 800]


def test_a_function_in_python_twice_differentiated() -> None:
    class Square(autograd.Function):
        def forward(self, x: nd.NDArray) -> nd.NDArray:
            self.save_for_backward(x)
            return x * x

        def backward(self, dy: nd.NDArray) -> nd.NDArray:
            return dy * self.saved_tensors[0] * 2

    x = variable(1, 2)
    with autograd.record():
        (first,) = autograd.grad(Square()(x), x, create_graph=True)
    assert numbers(first) == [2, 4] and numbers(autograd.grad(first, x)[0]) == [2, 2]


def test_shapes_that_depend_on_values() -> None:
    x = variable(1, 2, 3)
    with autograd.record():
        y = nd.contrib.boolean_mask(x * 2, nd.array([1, 0, 1]))
    y.backward(nd.array([10, 100]))
    assert numbers(y) == [2, 6] and numbers(x.grad) == [20, 0, 200]


def test_deep_chains() -> None:
    x = variable(1)
    with autograd.record():
        y = x
        for _ in range(3000):
            y = y + 1
    y.backward()
    assert numbers(x.grad) == [1]


def test_dropout_uses_one_mask_both_ways() -> None:
    x = variable(*[1.0] * 200)
    with autograd.record():
        y = nd.Dropout(x, p=0.5)
    y.backward()
    assert 0 < sum(v == 0 for v in numbers(y)) < 200 and numbers(x.grad) == numbers(y)
    with autograd.predict_mode():
        assert numbers(nd.Dropout(x, p=0.5)) == [1.0] * 200
