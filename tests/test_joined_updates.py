"""Forward, backward and updates as one compiled call: the same numbers, whoever reads in between, and in place."""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax import _run
from symjax.lowering.compile import Step
from tests.compiles import compiles

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"learning_rate": 0.1, "wd": 0.01},
    "momentum": {"learning_rate": 0.1, "momentum": 0.9, "clip_gradient": 0.5},
    "adam": {"learning_rate": 0.01},
    "adagrad": {"learning_rate": 0.1},
    "rmsprop": {"learning_rate": 0.01},
    "nadam": {"learning_rate": 0.01},
    "signum": {"learning_rate": 0.01},
}
LARGE = 300


def network() -> Any:
    hidden = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=LARGE, name="one")
    hidden = mx.sym.Activation(mx.sym.BatchNorm(hidden, name="norm"), act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=3, name="two"), name="softmax")


def bound(net: Any = None, **options: Any) -> Any:
    ex = (net or network()).simple_bind(mx.cpu(), x=(8, LARGE), **options)
    rng = np.random.RandomState(0)
    for name, a in ex.arg_dict.items():
        a[:] = rng.randint(0, 3, a.shape) if name == "softmax_label" else rng.uniform(-0.2, 0.2, a.shape)
    return ex


def train(optimizer: str, between: Callable[[Any], Any] | None, steps: int = 4) -> list[np.ndarray]:
    """Trains; `between` backward and the updates (a reader) forces separate calls."""
    ex = bound()
    options = OPTIMIZERS[optimizer]
    update = mx.optimizer.get_updater(mx.optimizer.create(optimizer.replace("momentum", "sgd"), **options))
    names = [n for n in ex.arg_dict if n not in ("x", "softmax_label")]
    rng = np.random.RandomState(1)
    for _ in range(steps):
        ex.forward(is_train=True, x=mx.nd.array(rng.rand(8, LARGE)))
        ex.backward()
        if between:
            between(ex)
        for i, n in enumerate(names):
            update(i, ex.grad_dict[n], ex.arg_dict[n])
    arrays = [*ex.arg_dict.values(), *ex.aux_dict.values(), *ex.outputs, *(ex.grad_dict[n] for n in names)]
    return [a.asnumpy() for a in arrays]


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many updates each joint call made."""
    found: list[int] = []
    real = _run.Run._with_updates

    def counted(self: Any) -> Any:
        found.append(len(self.joined))
        return real(self)

    monkeypatch.setattr(_run.Run, "_with_updates", counted)
    return found


READERS: dict[str, Callable[[Any], Any]] = {
    "outputs": lambda ex: ex.outputs[0].asnumpy(),
    "a gradient": lambda ex: ex.grad_dict["two_weight"].asnumpy(),
    "an auxiliary state": lambda ex: ex.aux_dict["norm_moving_mean"].asnumpy(),
    "everything": lambda ex: mx.nd.waitall(),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_same_as_separate_calls(optimizer: str, joined: list[int]) -> None:
    together = train(optimizer, None)
    made = list(joined)
    if optimizer != "nadam":  # whose formula is several calls
        assert made == [6] * 4
    for a, b in zip(together, train(optimizer, READERS["everything"]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("reader", READERS)
def test_readers_between_see_what_there_is(reader: str, joined: list[int]) -> None:
    for a, b in zip(train("momentum", READERS[reader]), train("momentum", READERS["everything"]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert not joined


def test_a_step_compiles_once_and_works_in_place(joined: list[int]) -> None:
    ex = bound()
    update = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    names = [n for n in ex.arg_dict if n not in ("x", "softmax_label")]

    def step() -> None:
        ex.forward(is_train=True)
        ex.backward()
        for i, n in enumerate(names):
            update(i, ex.grad_dict[n], ex.arg_dict[n])

    step()
    mx.nd.waitall()
    tables = [ex.arg_dict["one_weight"], *update.states[names.index("one_weight")]]
    where = {t._data.unsafe_buffer_pointer() for t in tables}
    with compiles() as counted:
        for _ in range(3):
            step()
        mx.nd.waitall()
    assert counted.n == 0
    assert joined == [6] * 4
    assert {t._data.unsafe_buffer_pointer() for t in tables} == where


def test_what_somebody_holds_is_left_alone() -> None:
    ex = bound()
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.1))
    for _ in range(3):
        ex.forward(is_train=True)
        ex.backward()
        held, copy = ex.arg_dict["one_weight"]._data, ex.arg_dict["one_weight"].copy()
        before = np.array(held)
        for i, n in enumerate(ex.arg_dict):
            if ex.grad_dict[n] is not None:
                update(i, ex.grad_dict[n], ex.arg_dict[n])
        assert np.abs(ex.arg_dict["one_weight"].asnumpy() - before).max() > 0
        np.testing.assert_array_equal(np.asarray(held), before)
        np.testing.assert_array_equal(copy.asnumpy(), before)


def test_overwritten_before_it_ran() -> None:
    ex = bound()
    ex.forward(is_train=True)
    ex.backward()
    ex.grad_dict["one_weight"][:] = 7
    ex.aux_dict["norm_moving_mean"][:] = 5
    assert (ex.grad_dict["one_weight"].asnumpy() == 7).all()
    assert np.abs(ex.grad_dict["two_weight"].asnumpy()).max() > 0
    assert (ex.aux_dict["norm_moving_mean"].asnumpy() == 5).all()
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=1.0))
    ex.forward(is_train=True)
    ex.backward()
    update(0, ex.grad_dict["one_weight"], ex.arg_dict["one_weight"])
    ex.arg_dict["one_weight"][:] = 3
    assert (ex.arg_dict["one_weight"].asnumpy() == 3).all()
    assert np.isfinite(ex.outputs[0].asnumpy()).all()
    assert (ex.arg_dict["one_weight"].asnumpy() == 3).all()


def other_rate(ex: Any, update: Any) -> None:
    update.optimizer.set_learning_rate(0.5)


def other_weight(ex: Any, update: Any) -> None:
    ex.arg_dict["one_weight"][:] = 0.125


def other_states(ex: Any, update: Any) -> None:
    update.set_states(update.get_states())
    update.states[0][:] = 1


def other_optimizer(ex: Any, update: Any) -> None:
    update.optimizer = mx.optimizer.create("sgd", learning_rate=0.25, momentum=0.5, clip_gradient=0.01)


def held_weight(ex: Any, update: Any) -> None:
    update.held = ex.arg_dict["one_weight"]._data


def no_change(ex: Any, update: Any) -> None:
    pass


@pytest.mark.parametrize("change", [no_change, other_rate, other_weight, other_states, other_optimizer, held_weight])
def test_a_change_between_steps(change: Callable[[Any, Any], None], joined: list[int]) -> None:
    """What is known of an update from the pass before is not taken for what has changed since."""

    def run(separately: bool) -> list[np.ndarray]:
        ex = bound()
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9))
        names = [n for n in ex.arg_dict if n not in ("x", "softmax_label")]
        for k in range(6):
            if k in (2, 4):
                change(ex, update)
            ex.forward(is_train=True)
            ex.backward()
            if separately:
                mx.nd.waitall()
            for i, n in enumerate(names):
                update(i, ex.grad_dict[n], ex.arg_dict[n])
        states = [update.states[i] for i in range(len(names))]
        return [a.asnumpy() for a in (*ex.arg_dict.values(), *ex.aux_dict.values(), *states)]

    together = run(False)
    assert joined == [6] * 6
    for a, b in zip(together, run(True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert len(joined) == 6


def test_states_go_with_their_optimizer() -> None:
    ex = bound()
    update = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    ex.forward(is_train=True)
    ex.backward()
    for i, n in enumerate(ex.arg_dict):
        if ex.grad_dict[n] is not None:
            update(i, ex.grad_dict[n], ex.arg_dict[n])
    ref = weakref.ref(next(s for s in update.states.values() if s is not None)[0])
    assert ref() is not None
    del update
    assert ref() is None


def test_a_table_of_few_rows_after_one_of_all() -> None:
    """A weight that no longer stores every row is updated by the call that may add rows."""
    w = mx.sym.Variable("w", stype="row_sparse")
    rows = mx.sym.sparse.Embedding(mx.sym.Variable("x"), w, 8, 2, sparse_grad=True)
    net = mx.sym.MakeLoss(mx.sym.sum(mx.sym.square(rows)))
    ex = net.simple_bind(mx.cpu(), x=(3,), stype_dict={"w": "row_sparse"}, grad_req={"x": "null", "w": "write"})
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.25))
    dense = np.arange(16, dtype="f").reshape(8, 2)
    ids = np.array([5, 1, 5])
    ex.arg_dict["x"][:] = ids
    for kept in (np.arange(8), [1, 5], np.arange(8)):
        part = mx.nd.array(dense).tostype("row_sparse").retain(mx.nd.array(kept))
        part.copyto(ex.arg_dict["w"])
        want = part.asnumpy()
        for _ in range(3):
            ex.forward(is_train=True)
            ex.backward()
            update(0, ex.grad_dict["w"], ex.arg_dict["w"])
            grad = np.zeros_like(want)
            np.add.at(grad, ids, 2 * want[ids])
            want -= 0.25 * grad
            np.testing.assert_allclose(ex.arg_dict["w"].asnumpy(), want, rtol=1e-6)


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("read_first", [False, True])
def test_one_gradient_array_for_two_arguments(req: str, read_first: bool) -> None:
    """Written: the last one stays. Added: both are in it."""
    a, b, x = (mx.sym.Variable(n) for n in "abx")
    net = mx.sym.MakeLoss(mx.sym.sum(mx.sym.square(a * x) + b * x * 3))
    both = mx.nd.ones((3,))
    value = np.array([1, 2, 3], "f")
    args = {"a": mx.nd.array(value), "b": mx.nd.ones((3,)), "x": mx.nd.array(value)}
    ex = net.bind(mx.cpu(), args, args_grad={"a": both, "b": both}, grad_req={"a": req, "b": req, "x": "null"})
    want = np.ones(3, "f")
    for _ in range(2):
        ex.forward(is_train=True)
        if read_first:
            ex.outputs[0].asnumpy()
        ex.backward()
        want = 3 * value if req == "write" else want + 2 * value**3 + 3 * value
        np.testing.assert_allclose(both.asnumpy(), want, rtol=1e-6)


def test_gradient_arrays_that_change_places() -> None:
    runs = []
    for separately in (False, True):
        ex = bound()
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.1))
        one = ex.grad_dict["norm_gamma"]
        for k in range(4):
            if k == 2:
                at, other = map(list(ex.arg_dict).index, ("norm_gamma", "norm_beta"))
                grads = ex.grad_arrays
                grads[at], grads[other] = grads[other], grads[at]
            ex.forward(is_train=True)
            ex.backward()
            if separately:
                mx.nd.waitall()
            update(0, one, ex.arg_dict["norm_gamma"])
        runs.append(ex.arg_dict["norm_gamma"].asnumpy())
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-5)


def test_interrupted_anywhere() -> None:
    """Ctrl-C at any line of a step leaves weights that can be read, and training goes on."""
    line = hit = 0
    while hit == line:
        line += 1 + line // 12
        ex = bound()
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9))
        names = [n for n in ex.arg_dict if n not in ("x", "softmax_label")]

        def step(ex: Any = ex, update: Any = update, names: Any = names) -> None:
            ex.forward(is_train=True)
            ex.backward()
            for i, n in enumerate(names):
                update(i, ex.grad_dict[n], ex.arg_dict[n])

        for _ in range(2):
            step()
        count = 0

        def interrupt(frame: Any, event: str, arg: Any, line: int = line) -> Any:
            nonlocal count, hit
            if "/symjax/" not in frame.f_code.co_filename:
                return None
            count += event == "line"
            if count == line:
                sys.settrace(None)
                hit = line
                raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)
        try:
            step()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        for n in names:
            assert np.isfinite(ex.arg_dict[n].asnumpy()).all()
        mx.nd.waitall()
        step()
        for n in names:
            assert np.isfinite(ex.arg_dict[n].asnumpy()).all()
    assert line > 300


def test_interrupted_while_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = bound()
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.1))
    weight = ex.arg_dict["one_weight"]
    before = weight.asnumpy()

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Step, "updating", lambda self, updates: interrupted)
        ex.forward(is_train=True)
        ex.backward()
        with pytest.raises(KeyboardInterrupt):
            for i, n in enumerate(ex.arg_dict):
                if ex.grad_dict[n] is not None:
                    update(i, ex.grad_dict[n], ex.arg_dict[n])
    ex._updating = None
    after = weight.asnumpy()  # the update that was asked for, a little later
    assert np.isfinite(after).all()
    assert np.abs(after - before).max() > 0


def test_waitall_tells_every_failure_and_goes_on() -> None:
    computed = []

    def fail(what: str) -> Any:
        raise mx.MXNetError(what)

    one, two = (mx.nd.NDArray._pending((1,), "float32", mx.cpu(), functools.partial(fail, w)) for w in ("one", "two"))
    good = mx.nd.NDArray._pending((1,), "float32", mx.cpu(), lambda: computed.append(1) or mx.nd.ones((1,))._data)
    for what in ("one", "two"):
        with pytest.raises(mx.MXNetError, match=what):
            mx.nd.waitall()
    mx.nd.waitall()
    assert computed == [1]
    assert good.asscalar() == 1
    for array in (one, two):
        with pytest.raises(mx.MXNetError, match=r"one|two"):
            array.asnumpy()


def test_threads_that_train_while_another_waits_for_all() -> None:
    def run(found: list[Any]) -> None:
        ex = bound()
        update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9))
        names = [n for n in ex.arg_dict if n not in ("x", "softmax_label")]
        for _ in range(40):
            ex.forward(is_train=True)
            ex.backward()
            for i, n in enumerate(names):
                update(i, ex.grad_dict[n], ex.arg_dict[n])
        found.append([ex.arg_dict[n].asnumpy() for n in names])

    alone: list[Any] = []
    run(alone)
    found: list[Any] = []
    threads = [threading.Thread(target=run, args=(found,)) for _ in range(3)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        mx.nd.waitall()
    assert len(found) == 3
    for weights in found:
        for a, b in zip(weights, alone[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_gradients_add_up_over_passes() -> None:
    ex, once = bound(grad_req="add"), bound()
    once.forward(is_train=True)
    once.backward()
    for _ in range(3):
        ex.forward(is_train=True)
        ex.backward()
    for name, grad in once.grad_dict.items():
        np.testing.assert_allclose(ex.grad_dict[name].asnumpy(), 3 * grad.asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_weight_of_another_place() -> None:
    """A kvstore's copy is updated by an executor's gradient."""
    ex = bound()
    weight = ex.arg_dict["one_weight"].copy()
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=1.0))
    ex.forward(is_train=True)
    ex.backward()
    update(0, ex.grad_dict["one_weight"], weight)
    change = ex.arg_dict["one_weight"].asnumpy() - weight.asnumpy()
    np.testing.assert_allclose(change, ex.grad_dict["one_weight"].asnumpy(), rtol=1e-4, atol=1e-6)


def test_errors_come_from_the_update() -> None:
    ex = bound()
    update = mx.optimizer.get_updater(mx.optimizer.create("sgd"))
    ex.forward(is_train=True)
    ex.backward()
    with pytest.raises(mx.MXNetError, match=r"shape"):
        update(0, ex.grad_dict["one_weight"], mx.nd.zeros((2, 3)))
    assert np.isfinite(ex.grad_dict["one_weight"].asnumpy()).all()


def test_gradient_arrays_that_are_windows() -> None:
    net = network()
    shapes, _, _ = net.infer_shape(x=(8, LARGE))
    args = {n: mx.nd.ones(s) for n, s in zip(net.list_arguments(), shapes, strict=True)}
    whole = mx.nd.zeros((3 * LARGE + LARGE,))
    grads = {"two_weight": whole[: 3 * LARGE].reshape((3, LARGE))}
    ex = net.bind(mx.cpu(), args, args_grad=grads,
                  aux_states={n: mx.nd.ones((LARGE,)) for n in net.list_auxiliary_states()})  # fmt: skip
    args["x"][:] = np.random.RandomState(0).rand(8, LARGE)
    ex.forward(is_train=True)
    ex.backward()
    mx.nd.waitall()
    np.testing.assert_array_equal(whole.asnumpy()[: 3 * LARGE], ex.grad_dict["two_weight"].asnumpy().ravel())
