"""Modules on several devices, for buckets, in a row, in Python; FeedForward."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax import _run
from symjax.lowering.errors import ArgumentError
from tests.compiles import compiles
from tests.module_cases import BATCH, bucketing_module, mlp, sentences, unrolled
from tests.module_tools import SHAPES, N, X, Y, batch, data, ready, same, values

# MXNet: fit says so of a module that has parameters
pytestmark = pytest.mark.filterwarnings("ignore:Parameters already initialized", "ignore:Data provided by label_shapes")


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many updates each joint call made."""
    found: list[int] = []
    real = _run.Run._with_updates
    monkeypatch.setattr(_run.Run, "_with_updates", lambda self: found.append(len(self.joined)) or real(self))
    return found


# ---- several devices


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("on_kvstore", ["1", "0"])
def test_several_contexts_give_the_numbers_of_one(n: int, on_kvstore: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", on_kvstore)
    one, many = ready("adam"), ready("adam", context=[mx.cpu(i) for i in range(n)])
    assert bool(many._update_on_kvstore) == (on_kvstore == "1")
    for module in (one, many):
        module.fit(data(), num_epoch=2)
    same(values(many), values(one), 1e-5)
    np.testing.assert_allclose(many.predict(data()).asnumpy(), one.predict(data()).asnumpy(), rtol=1e-4)
    assert many.score(data(), "acc") == one.score(data(), "acc")
    assert many.output_shapes == one.output_shapes
    parts = many.get_outputs(merge_multi_context=False)[0]
    assert len(parts) == n and sum(p.shape[0] for p in parts) == BATCH


def test_a_batch_in_parts() -> None:
    one, many = ready(), ready(context=[mx.cpu(0), mx.cpu(1)])
    halves = [batch(i, BATCH // 2) for i in range(2)]
    one.forward_backward(batch())
    many.forward_backward(halves)
    for module in (one, many):
        module.update()
    same(values(many), values(one), 1e-5)
    metric = mx.metric.create("acc")
    many.update_metric(metric, [b.label for b in halves], pre_sliced=True)
    assert metric.num_inst == BATCH


def test_work_loads_and_groups() -> None:
    module = ready(context=[mx.cpu(0), mx.cpu(1)], work_load_list=[1, 3], group2ctxs={"a": [mx.cpu(0), mx.cpu(1)]})
    assert [s.stop - s.start for s in module._exec_group.slices] == [4, 12]
    with pytest.raises(AssertionError, match="group2ctxs"):
        ready(context=[mx.cpu(0), mx.cpu(1)], group2ctxs={"a": [mx.cpu()] * 3})
    with pytest.raises(ValueError, match="Too many slices"):
        mx.executor_manager._split_input_slice(2, [1, 1, 1])


def test_rows_of_a_store() -> None:
    """A row_sparse weight that a store updates: `prepare` gets the rows that the batch needs."""
    w = mx.sym.Variable("w", stype="row_sparse", shape=(6, 2))
    net = mx.sym.LinearRegressionOutput(mx.sym.sparse.dot(mx.sym.Variable("data", stype="csr"), w), name="out")
    module = mx.mod.Module(net, label_names=["out_label"])
    module.bind([("data", (2, 6))], [("out_label", (2, 2))])
    module.init_params(mx.init.One(), arg_params={"w": mx.nd.ones((6, 2))}, aux_params={})
    module.init_optimizer(mx.kv.create("local"), "sgd", {"learning_rate": 1.0})
    x = np.zeros((2, 6), "f")
    x[0, 1] = x[1, 4] = 1
    one = mx.io.DataBatch([mx.nd.array(x).tostype("csr")], [mx.nd.zeros((2, 2))], pad=0)
    for _ in range(2):
        module.prepare(one, sparse_row_id_fn=lambda b: {"w": b.data[0].indices})
        held: Any = module._exec_group.param_arrays[0][0]
        assert held.indices.asnumpy().tolist() == [1, 4]
        module.forward_backward(one)
        module.update()
    got = values(module)["w"]
    assert (got[[0, 2, 3, 5]] == 1).all() and (got[[1, 4]] < 1).all()
    with pytest.warns(UserWarning, match="No need to call sparse_row_id_fn"):
        ready().prepare(batch(), sparse_row_id_fn=lambda b: {})


# ---- buckets


def test_a_bucket_compiles_once(joined: list[int]) -> None:
    module = bucketing_module(mx)
    metric = mx.metric.Perplexity(None)
    steps = list(sentences(mx, 30))

    def epoch() -> Iterator[int]:
        for b in steps:
            with compiles() as count:
                module.forward_backward(b)
                module.update()
                module.update_metric(metric, [b.label[0].reshape(-1)])
            yield count.n

    first, second = list(epoch()), list(epoch())
    assert sum(n > 0 for n in first) <= 3 + 3 and not any(second)  # the first update makes the states
    assert len(joined) == 60
    arrays = [b._exec_group.execs[0].arg_dict["out_weight"] for b in module._buckets.values()]
    assert len(arrays) == 3 and len({id(a) for a in arrays}) == 1


def test_bucketing_fit_and_checkpoints(tmp_path: Path) -> None:
    class It(mx.io.DataIter):
        provide_data = (mx.io.DataDesc("data", (BATCH, 5)),)
        provide_label = (mx.io.DataDesc("softmax_label", (BATCH, 5)),)
        default_bucket_key = 5

        def reset(self) -> None:
            self.left = list(sentences(mx, 8))

        def next(self) -> Any:
            if not self.left:
                raise StopIteration
            return self.left.pop()

    def generated(n: int) -> Any:
        return unrolled(mx, n), ("data",), ("softmax_label",)

    it = It(BATCH)
    it.reset()
    module = mx.mod.BucketingModule(generated, default_bucket_key=5)
    module.fit(it, num_epoch=2, eval_metric=mx.metric.Perplexity(None), optimizer="adam", initializer=mx.init.Xavier())
    prefix = str(tmp_path / "lm")
    module.save_checkpoint(prefix, 2)
    back = mx.mod.BucketingModule.load(prefix, 2, generated, 5)
    back.bind(it.provide_data, it.provide_label)
    same(values(back), values(module))
    args, auxs = module.get_params()
    dicts = mx.mod.BucketingModule.load_dict({5: generated(5)[0]}, generated, 5, args, auxs)
    dicts.bind(it.provide_data, it.provide_label, for_training=False)
    b = next(b for b in sentences(mx) if b.bucket_key == 3)
    for m in (module, back, dicts):
        m.forward(b, is_train=False)
    for m in (back, dicts):
        np.testing.assert_array_equal(m.get_outputs()[0].asnumpy(), module.get_outputs()[0].asnumpy())
    with pytest.raises(AssertionError, match="sym_gen is required"):
        mx.mod.BucketingModule.load(prefix, 2)


def test_states_of_the_optimizer_go_by_the_names_of_the_parameters() -> None:
    """MXNet tells parameters of a bucket apart by their position."""

    def generated(order: int) -> Any:
        x = mx.sym.Variable("data")
        parts = [mx.sym.FullyConnected(x, num_hidden=3, name=n) for n in ("p", "q")]
        return mx.sym.SoftmaxOutput(parts[order] + 2 * parts[1 - order], name="softmax"), ["data"], ["softmax_label"]

    module = mx.mod.BucketingModule(generated, default_bucket_key=0)
    module.bind([("data", SHAPES["data"])], [("softmax_label", (BATCH,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer="sgd", optimizer_params={"momentum": 0.9})
    for key in (0, 1):
        b = batch()
        b.bucket_key = key
        b.provide_data, b.provide_label = [("data", SHAPES["data"])], [("softmax_label", (BATCH,))]
        module.forward_backward(b)
        before = {n: a.copy() for n, a in module.get_params()[0].items()}
        module.update()
    updater, names = module._curr_module._updater, module._buckets[0]._param_names
    for n, a in module.get_params()[0].items():  # the last step is the momentum
        np.testing.assert_allclose((a - before[n]).asnumpy(), updater.states[names.index(n)].asnumpy(), atol=1e-6)


# ---- modules of other kinds


def test_sequential_module_says_what_is_wrong() -> None:
    module = mx.mod.SequentialModule()
    assert module.data_names == [] and module.output_names == []
    with pytest.raises(AssertionError, match="empty SequentialModule"):
        module.bind([("data", (1, 2))])
    with pytest.raises(AssertionError, match='Unknown meta "labels"'):
        module.add(mx.mod.Module(mlp(mx)), labels=True)
    twice = mx.mod.SequentialModule()
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    for _ in range(2):
        twice.add(mx.mod.Module(net, label_names=None), auto_wiring=True)
    twice.bind([("data", (2, 4))])
    with pytest.raises(AssertionError, match='Duplicated parameter names: name "fc_'):
        twice.init_params()


def test_sequential_module_fits_and_scores() -> None:
    first = mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1"), label_names=None)
    second = mx.mod.Module(mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc2"), name="softmax"))
    module = mx.mod.SequentialModule().add(first).add(second, take_labels=True, auto_wiring=True)
    module.fit(data(), num_epoch=6, initializer=mx.init.Xavier(), optimizer_params={"learning_rate": 0.5})
    p = module.predict(data()).asnumpy()
    assert p.shape == (N, 3)
    assert module.score(data(), "acc")[0][1] == pytest.approx((p.argmax(1) == Y).mean())
    assert set(module.get_params()[0]) == {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}
    assert module.symbol is None and module.output_shapes == [("softmax_output", (BATCH, 3))]


def test_python_modules() -> None:
    loss = mx.mod.PythonLossModule()
    with pytest.raises(AssertionError, match="expected"):
        loss.bind([("x", (2, 3))])
    loss.bind([("data", (2, 3))], [("softmax_label", (2,))])
    assert loss.output_shapes == [("pyloss_output", (2, 3))] and loss.get_params() == ({}, {})
    with pytest.raises(NotImplementedError, match="grad_func"):
        loss.forward(mx.io.DataBatch([mx.nd.zeros((2, 3))], [mx.nd.zeros(2)]))
        loss.backward()
    with pytest.raises(AssertionError, match="out_grads"):
        loss.backward([1])
    base = mx.mod.BaseModule()
    for call in (lambda: base.data_names, base.update, lambda: base.forward(None), base.get_params):
        with pytest.raises(NotImplementedError):
            call()


# ---- FeedForward


def test_feed_forward(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    prefix = str(tmp_path / "net")
    np.random.seed(0)
    with pytest.warns(DeprecationWarning, match="FeedForward has been deprecated"):
        model = mx.model.FeedForward.create(mlp(mx), X, Y, num_epoch=8, learning_rate=0.5, numpy_batch_size=BATCH,
                                            initializer=mx.init.Xavier(), eval_data=data())
    assert "Start training with [cpu(0)]" in caplog.text
    assert "Epoch[7] Resetting Data Iterator" in caplog.text and "Validation-accuracy" in caplog.text
    p = model.predict(data())
    assert p.shape == (N, 3) and (p.argmax(1) == Y).mean() > 0.8
    assert model.score(data()) == pytest.approx((p.argmax(1) == Y).mean())
    outputs, x, y = model.predict(data(), return_data=True)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)
    model.save(prefix)
    with pytest.warns(DeprecationWarning):
        back = mx.model.FeedForward.load(prefix, 8)
    assert back.begin_epoch == 8
    np.testing.assert_allclose(back.predict(X), outputs, rtol=1e-5)
    with pytest.raises(ValueError, match="y must be specified"):
        back.fit(X)
    with pytest.raises(TypeError, match="X must be"):
        back.fit([1])


def test_names_of_arguments_twice() -> None:
    net = mx.sym.Variable("x") + mx.sym.Variable("x")
    with pytest.raises(ValueError, match='Find duplicated argument name "x"'):
        mx.executor_manager._check_arguments(net)
    with pytest.raises(ArgumentError, match="work_load_list"):
        mx.mod.Module(mlp(mx), work_load_list=[1, 2])
