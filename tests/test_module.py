"""Modules: the steps of a training script, one compiled call a step, checkpoints, interrupts."""

from __future__ import annotations

import base64
import gc
import json
import logging
import re
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import symjax as mx
from symjax import _run
from symjax.lowering.errors import BindError, MXNetError, ShapeError
from tests.compiles import compiles
from tests.module_cases import BATCH, mlp, parameters
from tests.module_tools import SHAPES, WIDTH, N, X, Y, batch, data, ready, same, values

# MXNet: fit says so of a module that has parameters
pytestmark = pytest.mark.filterwarnings("ignore:Parameters already initialized", "ignore:Data provided by label_shapes")

@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many updates each joint call made."""
    found: list[int] = []
    real = _run.Run._with_updates
    monkeypatch.setattr(_run.Run, "_with_updates", lambda self: found.append(len(self.joined)) or real(self))
    return found


# ---- fit


def test_an_old_script(caplog: pytest.LogCaptureFixture, joined: list[int]) -> None:
    caplog.set_level(logging.INFO)
    train_iter = mx.io.NDArrayIter(np.tile(X, (20, 1)), np.tile(Y, 20), 30, shuffle=True)
    mod = mx.mod.Module(mlp(mx))
    mod.fit(train_iter, eval_data=data(), optimizer="sgd", optimizer_params={"learning_rate": 0.1}, eval_metric="acc",
            batch_end_callback=mx.callback.Speedometer(30, 50), num_epoch=2)
    assert joined == [4] * 120
    lines = [r.getMessage() for r in caplog.records]
    number = r"\d+\.\d+"
    for line, form in zip(lines, [
        rf"Epoch\[0\] Batch \[0-50\]\tSpeed: {number} samples/sec\taccuracy={number}",
        rf"Epoch\[0\] Train-accuracy={number}", rf"Epoch\[0\] Time cost={number}",
        rf"Epoch\[0\] Validation-accuracy={number}", rf"Epoch\[1\] Batch .*{number}",
        rf"Epoch\[1\] Train-accuracy={number}", rf"Epoch\[1\] Time cost={number}",
        rf"Epoch\[1\] Validation-accuracy={number}",
    ], strict=True):
        assert re.fullmatch(form, line), line


def test_fit_compiles_in_the_first_epoch_alone(joined: list[int]) -> None:
    """One call a step, whatever callbacks read after it; the parameters are handed out after each epoch."""
    counts, seen = [], []

    def end(epoch: int, symbol: Any, args: Any, auxs: Any) -> None:
        seen.append({n: a.asnumpy() for n, a in args.items()})
        counts.append(count.n)

    with compiles() as count:
        mx.mod.Module(mlp(mx)).fit(
            data(), eval_data=data(), num_epoch=4, epoch_end_callback=end, eval_metric=["acc", "ce"],
            optimizer="adam", batch_end_callback=lambda p: p.eval_metric.get())
    assert len(set(counts[1:])) == 1
    assert joined == [4] * 6 * 4
    assert all((seen[0][n] != seen[3][n]).any() for n in seen[0])


def test_a_smaller_last_batch_compiles_once() -> None:
    class Ragged(mx.io.DataIter):
        provide_data = (mx.io.DataDesc("data", SHAPES["data"]),)
        provide_label = (mx.io.DataDesc("softmax_label", SHAPES["softmax_label"]),)

        def __init__(self) -> None:
            super().__init__(BATCH)
            self.reset()

        def reset(self) -> None:
            self.at = 0

        def next(self) -> Any:
            part = slice(self.at, self.at + BATCH)
            self.at += BATCH
            if not len(X[part]):
                raise StopIteration
            return mx.io.DataBatch([mx.nd.array(X[part])], [mx.nd.array(Y[part])], pad=0)

    counts = []
    module = ready()
    with compiles() as count:
        module.fit(Ragged(), num_epoch=4, epoch_end_callback=lambda *_: counts.append(count.n))
    assert len(set(counts[1:])) == 1
    assert module.predict(Ragged()).shape == (N, 3)


def test_callbacks_see_the_local_variables() -> None:
    seen: list[Any] = []
    module = ready()
    module.fit(data(), num_epoch=1, batch_end_callback=[seen.append, seen.append])
    assert len(seen) == 12 and seen[-1].nbatch == 5
    assert type(seen[0]).__name__ == "BatchEndParams"
    assert seen[0].locals["self"] is module and {"data_batch", "train_data", "epoch"} <= set(seen[0].locals)


def test_a_monitor_sees_each_step() -> None:
    monitor = mx.mon.Monitor(1, pattern="fc1_output")
    lines: list[Any] = []
    real = monitor.toc
    monitor.toc = lambda: lines.append(real()) or lines[-1]  # type: ignore[method-assign]
    ready().fit(data(), num_epoch=1, monitor=monitor)
    assert len(lines) == 6 and all(name == "fc1_output" for _, name, _ in lines[0])


def test_fit_says_what_is_missing() -> None:
    with pytest.raises(AssertionError, match="number of epochs"):
        ready().fit(data())
    it = data()
    list(it)
    with pytest.raises(AssertionError, match="no batch in epoch 0"):
        ready().fit(it, num_epoch=1)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler, which a shell takes away from what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_end_of_the_step(monkeypatch: pytest.MonkeyPatch,
                                                    caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    module = ready()
    steps = []
    real = module.update

    def update() -> None:
        if len(steps) == 3:
            signal.raise_signal(signal.SIGINT)
        real()
        steps.append(values(module))

    monkeypatch.setattr(module, "update", update)
    with pytest.raises(KeyboardInterrupt):
        module.fit(data(), num_epoch=5)
    assert len(steps) == 4
    assert "Epoch[0] Batch [3] interrupted; the module keeps the parameters of the last step" in caplog.text
    same(values(module), steps[-1])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    module.fit(data(), num_epoch=1)
    assert module.predict(data()).shape == (N, 3)


@pytest.mark.usefixtures("interruptible")
def test_a_second_interrupt_is_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ready()

    def update() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("not interrupted")

    monkeypatch.setattr(module, "update", update)
    with pytest.raises(KeyboardInterrupt):
        module.fit(data(), num_epoch=1)


def test_memory_does_not_grow() -> None:
    module, metric = ready("adam"), mx.metric.create("acc")
    one = batch()

    def steps(n: int) -> None:
        for _ in range(n):
            module.forward_backward(one)
            module.update()
            module.update_metric(metric, one.label)
        metric.get()
        gc.collect()

    steps(20)
    arrays, objects = len(jax.live_arrays()), len(gc.get_objects())
    steps(2000)
    assert len(jax.live_arrays()) <= arrays + 2
    assert len(gc.get_objects()) <= objects + 200


# ---- score and predict


def test_predict_of_smaller_and_larger_batches_without_labels() -> None:
    module = ready()
    want = module.predict(data()).asnumpy()
    assert want.shape == (N, 3)
    for size in (3, BATCH, 45, N):
        got = module.predict(mx.io.NDArrayIter(X, None, size)).asnumpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    module.fit(data(), num_epoch=1)  # and back to the shapes of training


def test_predict_without_labels_bound() -> None:
    want = ready().predict(data()).asnumpy()
    module = mx.mod.Module(mlp(mx), label_names=["softmax_label"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        module.bind([("data", SHAPES["data"])], for_training=False)
        module.init_params(None, *parameters(mx, mlp(mx), **SHAPES))
        for size in (BATCH, 7):
            np.testing.assert_allclose(module.predict(mx.io.NDArrayIter(X, None, size)).asnumpy(), want, rtol=1e-5)


def test_predict_where_nobody_names_the_labels() -> None:
    """They count as parameters then, whose shape goes with the batch; MXNet cannot change it."""
    args, _ = parameters(mx, mlp(mx), **SHAPES)
    module = mx.mod.Module(mlp(mx), label_names=None)
    module.bind([("data", (1, WIDTH))], for_training=False)
    module.set_params(args, {}, allow_missing=True)
    for size in (1, 7, N):
        got = module.predict(mx.io.NDArrayIter(X, None, size)).asnumpy()
        np.testing.assert_allclose(got, ready().predict(data()).asnumpy(), rtol=1e-5)


def test_forms_of_predict() -> None:
    module = ready()
    whole = module.predict(data()).asnumpy()
    parts = module.predict(data(), merge_batches=False)
    assert [len(p) for p in parts] == [1] * 6 and parts[-1][0].shape == (N - 5 * BATCH, 3)
    np.testing.assert_array_equal(np.concatenate([p[0].asnumpy() for p in parts]), whole)
    assert isinstance(module.predict(data(), always_output_list=True), list)
    assert module.predict(data(), num_batch=2).shape == (2 * BATCH, 3)
    np.testing.assert_allclose(module.predict(X[:5]).asnumpy(), whole[:5], rtol=1e-5)
    for outputs, i, b in module.iter_predict(data()):
        np.testing.assert_array_equal(outputs[0].asnumpy(), whole[i * BATCH:(i + 1) * BATCH])
        assert b.data[0].shape == SHAPES["data"]
    with pytest.raises(ValueError, match="DataIter"):
        module.predict([1])


def test_score_does_not_count_what_fills_the_last_batch() -> None:
    module = ready()
    p = module.predict(data()).asnumpy()
    right = (p.argmax(1) == Y).mean()
    assert module.score(data(), "acc") == [("accuracy", pytest.approx(right))]
    seen: list[int] = []
    metrics = module.score(
        data(), ["acc", mx.metric.CrossEntropy()], batch_end_callback=lambda b: seen.append(b.nbatch),
        score_end_callback=lambda b: seen.append(b.nbatch), num_batch=2)
    assert seen == [0, 1, 2]
    np.testing.assert_allclose(dict(metrics)["cross-entropy"], -np.log(p[np.arange(32), Y[:32].astype(int)]).mean(),
                               rtol=1e-5)


def test_a_batch_without_pad_counts_whole() -> None:
    class It(mx.io.DataIter):
        def next(self) -> Any:
            self.n = getattr(self, "n", 0) + 1
            if self.n > 2:
                raise StopIteration
            return mx.io.DataBatch([mx.nd.array(X[:BATCH])], [mx.nd.array(Y[:BATCH])])

    assert ready().predict(It()).shape == (2 * BATCH, 3)


# ---- parameters


def test_order_of_calls() -> None:
    module = mx.mod.Module(mlp(mx))
    for call in (module.init_params, module.get_params, module.update, lambda: module.forward(batch()),
                 lambda: module.data_shapes, module.init_optimizer):
        with pytest.raises(AssertionError, match=r"bind|init_params"):
            call()
    module = ready(None)
    with pytest.raises(AssertionError, match="init_optimizer"):
        module.update()
    with pytest.warns(UserWarning, match="already initialized and force_init=False"):
        module.init_params()


def test_values_given_and_missing() -> None:
    args, _ = parameters(mx, mlp(mx), **SHAPES)
    module = mx.mod.Module(mlp(mx))
    module.bind([("data", SHAPES["data"])], [("softmax_label", (BATCH,))])
    lost = {n: a for n, a in args.items() if n != "fc2_weight"}
    with pytest.raises(RuntimeError, match="fc2_weight is not presented"):
        module.init_params(arg_params=lost, aux_params={})
    with pytest.raises(ShapeError, match=r"'fc1_bias'.*\(12,\).*\(5,\)"):
        module.init_params(arg_params={**args, "fc1_bias": mx.nd.zeros(5)}, aux_params={})
    module.init_params(mx.init.Constant(3), arg_params={**lost, "other": mx.nd.ones(1)}, aux_params={},
                       allow_missing=True)
    assert (values(module)["fc2_weight"] == 3).all()
    np.testing.assert_array_equal(values(module)["fc1_weight"], args["fc1_weight"].asnumpy())
    with pytest.raises(ValueError, match='"other"'):
        module.set_params({"other": mx.nd.ones(1)}, {}, allow_missing=True)
    module.set_params({"other": mx.nd.ones(1), "fc1_bias": mx.nd.ones(12)}, {}, allow_missing=True, allow_extra=True)
    assert (values(module)["fc1_bias"] == 1).all() and (values(module)["fc2_weight"] == 3).all()


def test_get_params_gives_arrays_that_may_be_changed_and_set() -> None:
    module = ready()
    args, auxs = module.get_params()
    before = values(module)
    module.forward_backward(batch())
    module.update()
    np.testing.assert_array_equal(args["fc1_weight"].asnumpy(), before["fc1_weight"])
    again, _ = module.get_params()
    assert again["fc1_weight"] is args["fc1_weight"]
    assert (args["fc1_weight"].asnumpy() != before["fc1_weight"]).any()
    args["fc1_weight"][:] = 0.5
    module.set_params(args, auxs)
    args["fc1_weight"][:] = 0.25
    module.forward(batch())
    assert (module._exec_group.execs[0].arg_dict["fc1_weight"].asnumpy() == 0.5).all()


def test_params_files(tmp_path: Path) -> None:
    module, other = ready(), ready()
    module.fit(data(), num_epoch=1)
    module.save_params(str(tmp_path / "a.params"))
    other.load_params(str(tmp_path / "a.params"))
    same(values(other), values(module))
    mx.nd.save(str(tmp_path / "b.params"), {"fc1_weight": mx.nd.zeros(1)})
    with pytest.raises(ValueError, match="Invalid param file"):
        other.load_params(str(tmp_path / "b.params"))


def test_names_of_inputs() -> None:
    with pytest.raises(ValueError, match=r"data_names=\['x'\].*'x' is not found(.|\n)*\tdata"):
        mx.mod.Module(mlp(mx), data_names=["x"])
    with pytest.raises(ValueError, match="fixed_param_names"):
        mx.mod.Module(mlp(mx), fixed_param_names=["fc9_weight"])
    with pytest.warns(UserWarning, match="label_names"):
        mx.mod.Module(mlp(mx), label_names=["y"])
    module = mx.mod.Module(mlp(mx))
    with pytest.raises(ValueError, match="data_shapes don't match names"):
        module.bind([("x", (1, 2))])
    assert (module.data_names, module.label_names, module.output_names) == (
        ["data"], ["softmax_label"], ["softmax_output"])


def test_shapes_of_inputs() -> None:
    module = ready()
    assert module.output_shapes == [("softmax_output", (BATCH, 3))]
    assert module.data_shapes[0].shape == SHAPES["data"] and module.label_shapes[0].name == "softmax_label"
    with pytest.raises(MXNetError, match="0 arrays for the input"):
        module.forward(mx.io.DataBatch([], []))
    with pytest.raises(ShapeError, match="softmax_label"):
        module.forward(mx.io.DataBatch([mx.nd.zeros(SHAPES["data"])], [mx.nd.zeros(3)]))
    with pytest.raises(MXNetError, match="fc1_weight"):
        module.forward(mx.io.DataBatch([mx.nd.zeros((BATCH, 3))], [mx.nd.zeros(BATCH)]))
    module = mx.mod.Module(mlp(mx))
    with pytest.raises(AssertionError, match="same batch size"):
        module.bind([("data", (4, 2))], [("softmax_label", (5,))])


def test_fixed_parameters_have_no_gradient() -> None:
    module = ready(fixed_param_names=["fc1_weight"])
    before = values(module)
    module.fit(data(), num_epoch=1)
    after = values(module)
    np.testing.assert_array_equal(after["fc1_weight"], before["fc1_weight"])
    assert (after["fc1_bias"] != before["fc1_bias"]).any()
    assert module._exec_group.grad_arrays[module._exec_group.param_names.index("fc1_weight")] == [None]


def test_gradients_of_inputs_and_given_head_gradients() -> None:
    net = mx.sym.square(mx.sym.Variable("data") * mx.sym.Variable("w"))
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (2, 3))], inputs_need_grad=True)
    module.init_params(mx.init.Mixed([".*"], [mx.init.One()]), arg_params={"w": mx.nd.ones((2, 3)) * 2}, aux_params={})
    module.forward(mx.io.DataBatch([mx.nd.ones((2, 3)) * 3]), is_train=True)
    module.backward([mx.nd.ones((2, 3)) * 10])
    np.testing.assert_allclose(module.get_input_grads()[0].asnumpy(), np.full((2, 3), 10 * 2 * 6 * 2.0))
    assert len(module.get_input_grads(merge_multi_context=False)[0]) == 1
    with pytest.raises(AssertionError, match="inputs_need_grad"):
        ready().get_input_grads()
    with pytest.raises(AssertionError, match="for_training"):
        m = ready(None, bind={"for_training": False})
        m.forward(batch())
        m.backward()


def test_an_optimizer_of_ones_own() -> None:
    module = ready(None)
    with pytest.warns(UserWarning, match="rescale_grad is not normalized"):
        module.init_optimizer(optimizer=mx.optimizer.SGD(learning_rate=0.1))
    assert module._optimizer.idx2name[0] == "fc1_weight"
    with pytest.raises(AssertionError, match="optimizer must be"):
        module.init_optimizer(optimizer=3, force_init=True)
    module.init_optimizer(optimizer="adam", force_init=True)
    assert module._optimizer.rescale_grad == 1 / BATCH and isinstance(module._optimizer, mx.optimizer.Adam)


def test_binding_again_keeps_what_was_trained() -> None:
    module = ready()
    module.forward_backward(batch())
    module.update()
    trained = {n: a[0].asnumpy() for n, a in zip(module._exec_group.param_names, module._exec_group.param_arrays,
                                                 strict=True)}
    module.bind([("data", (5, WIDTH))], [("softmax_label", (5,))], force_rebind=True)
    for n, a in trained.items():
        np.testing.assert_array_equal(values(module)[n], a)


def test_binding_twice_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    module = ready()
    module.bind([("data", (5, WIDTH))])
    module.init_optimizer()
    assert [r.getMessage() for r in caplog.records] == [
        "Already bound, ignoring bind()", "optimizer already initialized, ignoring..."]


def test_shapes_bound_before_are_used_again() -> None:
    module = ready()
    first = module._exec_group.execs
    for n in (4, BATCH, 4, 9, BATCH):
        module.forward_backward(batch(n=n))
        module.update()
    assert module._exec_group.execs is first
    one = module._exec_group.param_arrays[0][0]
    module.reshape([("data", (4, WIDTH))], [("softmax_label", (4,))])
    assert module._exec_group.param_arrays[0][0] is one
    with compiles() as count:
        module.forward_backward(batch(n=4))
        module.update()
    assert count.n == 0


def test_a_shared_module_trains_the_same_parameters() -> None:
    module = ready()
    other = mx.mod.Module(mlp(mx))
    other.bind([("data", (5, WIDTH))], [("softmax_label", (5,))], shared_module=module)
    assert other.optimizer_initialized and other._updater is module._updater
    other.forward_backward(batch(n=5))
    other.update()
    for a, b in zip(module._exec_group.param_arrays, other._exec_group.param_arrays, strict=True):
        assert a[0] is b[0]
    x = mx.sym.Variable("data")
    wide = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="fc1"), name="softmax")
    with pytest.raises(ShapeError, match="'fc1_weight' cannot be shared"):
        mx.mod.Module(wide).bind([("data", (5, WIDTH))], [("softmax_label", (5,))], shared_module=module)
    new = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="new"), name="softmax")
    with pytest.raises(BindError, match="'new_weight' is not in the graph"):
        mx.mod.Module(new).bind([("data", (5, WIDTH))], [("softmax_label", (5,))], shared_module=module)


# ---- checkpoints


@pytest.mark.parametrize("kvstore", ["local", mx.kv.create("local")], ids=["none", "a store"])
def test_training_resumes_from_a_checkpoint(tmp_path: Path, kvstore: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    prefix = str(tmp_path / "net")
    options: dict[str, Any] = {"optimizer": "adam", "optimizer_params": {"learning_rate": 0.01}, "eval_metric": "ce"}

    def store() -> Any:
        return kvstore if isinstance(kvstore, str) else mx.kv.create("local")

    whole, first = ready(None), ready(None)
    whole.fit(data(), num_epoch=4, kvstore=store(), **options)
    first.fit(data(), num_epoch=2, kvstore=store(), **options)
    first.save_checkpoint(prefix, 2, save_optimizer_states=True)
    assert f'Saved checkpoint to "{prefix}-0002.params"' in caplog.text
    assert f'Saved optimizer state to "{prefix}-0002.states"' in caplog.text
    second = mx.mod.Module.load(prefix, 2, load_optimizer_states=True)
    kwargs = {**options["optimizer_params"], "begin_num_update": 12}
    second.fit(data(), num_epoch=4, begin_epoch=2, kvstore=store(), **{**options, "optimizer_params": kwargs})
    same(values(second), values(whole), 1e-6)
    symbol, args, auxs = mx.model.load_checkpoint(prefix, 2)
    assert symbol.list_arguments() == mlp(mx).list_arguments() and set(args) == set(values(first)) and not auxs


def test_do_checkpoint_and_states_that_mxnet_wrote(tmp_path: Path) -> None:
    prefix = str(tmp_path / "net")
    ready().fit(data(), num_epoch=2, epoch_end_callback=mx.callback.do_checkpoint(prefix))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net-0001.params", "net-0002.params", "net-symbol.json"]
    golden = json.loads((Path(__file__).parent / "golden" / "optimizer_states.json").read_text())
    (tmp_path / "net-0002.states").write_bytes(base64.b64decode(golden["momentum"]["bytes"]))
    module = mx.mod.Module.load(prefix, 2, load_optimizer_states=True)
    module.bind([("data", SHAPES["data"])], [("softmax_label", (BATCH,))])
    module.init_optimizer(optimizer="sgd", optimizer_params={"momentum": 0.9})
    assert module._updater.states[0].asnumpy().tolist() == golden["momentum"]["states"][0][1]["value"]
