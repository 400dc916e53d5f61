"""Modules and executors on eight virtual devices against one: run by `test_many_devices`, in a process that has them.

`python -m tests.mesh_cases [name …]` prints, as JSON, the traceback of each case that fails.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import symjax as mx
from symjax import _run
from tests import group_cases
from tests.compiles import compiles
from tests.eight_devices import COUNT as DEVICES
from tests.eight_devices import cases_in, run_cases
from tests.module_cases import bucketing_module, mlp, parameters, sentences
from tests.module_tools import X, Y, batch, data, ready, same, step, values

EIGHT = [mx.cpu(i) for i in range(DEVICES)]
TOL = 2e-5


@contextmanager
def joint_calls() -> Iterator[list[int]]:
    """How many updates each joint call made."""
    found: list[int] = []
    real = _run.Run._with_updates
    _run.Run._with_updates = lambda self: found.append(len(self.joined)) or real(self)
    try:
        yield found
    finally:
        _run.Run._with_updates = real


def conv_net(norm: bool = False, dropout: float = 0) -> Any:
    x = mx.sym.Variable("data")
    x = mx.sym.Convolution(x, num_filter=4, kernel=(3, 3), pad=(1, 1), name="conv")
    x = mx.sym.BatchNorm(x, fix_gamma=False, name="norm") if norm else x
    x = mx.sym.Pooling(mx.sym.Activation(x, act_type="relu"), kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = mx.sym.Dropout(x, p=dropout) if dropout else x
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=3, name="out")
    return mx.sym.SoftmaxOutput(x, name="softmax")


IMAGES = np.random.RandomState(3).normal(size=(96, 2, 6, 6)).astype("f")
CLASSES = np.random.RandomState(4).randint(0, 3, 96).astype("f")


def image_module(net: Any, size: int = 16, **options: Any) -> Any:
    module = mx.mod.Module(net, **options)
    shapes = {"data": (size, 2, 6, 6), "softmax_label": (size,)}
    module.bind([("data", shapes["data"])], [("softmax_label", shapes["softmax_label"])])
    module.init_params(None, *parameters(mx, net, **shapes))
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    return module


def images(i: int, size: int = 16) -> Any:
    part = slice(i * size, (i + 1) * size)
    return mx.io.DataBatch([mx.nd.array(IMAGES[part])], [mx.nd.array(CLASSES[part])], pad=0)


# ---- a batch divided over a mesh


def case_fit_gives_the_numbers_of_one_device() -> None:
    for name, options in (("adam", {}), ("sgd", {"momentum": 0.9, "wd": 1e-3})):
        modules = [ready(None), ready(None, context=EIGHT)]
        for module in modules:
            module.fit(data(), optimizer=name, optimizer_params={"learning_rate": 0.05, **options}, num_epoch=2)
        one, many = modules
        same(values(many), values(one), TOL)
        assert many.score(data(), "acc") == one.score(data(), "acc")
        np.testing.assert_allclose(many.predict(data()).asnumpy(), one.predict(data()).asnumpy(), rtol=1e-4, atol=1e-6)
        assert many.output_shapes == one.output_shapes and len(many._exec_group.execs) == 1


def case_one_call_a_step_and_one_compilation_a_shape() -> None:
    module, metric = ready("adam", context=EIGHT), mx.metric.create(["acc", "ce"])
    counts = []
    with joint_calls() as joined:
        for i in (0, 1, 2, 3, 0, 1):
            with compiles() as count:
                step(module, batch(i))
                module.update_metric(metric, batch(i).label)
            counts.append(count.n)
        for i in (0, 1, 2, 0):
            with compiles() as count:
                step(module, batch(i, 24))
                module.update_metric(metric, batch(i, 24).label)
            counts.append(count.n)
    assert joined == [4] * 10
    assert counts[1:6] == [0] * 5 and counts[7:] == [0] * 3, counts
    weight = module._exec_group.param_arrays[0][0]._data
    assert weight.sharding.is_fully_replicated and len(weight.sharding.device_set) == DEVICES
    fed = module._exec_group.data_arrays[0][0][1]._data
    assert fed.sharding.shard_shape(fed.shape) == (3, fed.shape[1])


def case_a_batch_that_cannot_be_divided() -> None:
    one, many = ready(), ready(context=EIGHT)
    for i, size in enumerate((16, 12, 5, 16, 12)):
        step(one, batch(i, size))
        with compiles() as count:
            step(many, batch(i, size))
        assert (count.n == 0) == (i >= 3)
        np.testing.assert_allclose(many.get_outputs()[0].asnumpy(), one.get_outputs()[0].asnumpy(), rtol=1e-4)
        if size >= DEVICES:
            assert sum(p.shape[0] for p in many.get_outputs(False)[0]) == size
    same(values(many), values(one), TOL)


def case_convolution_and_dropout() -> None:
    one, many = image_module(conv_net(dropout=0.5)), image_module(conv_net(dropout=0.5), context=EIGHT)
    for module in (one, many):
        mx.random.seed(5)
        for i in range(6):
            step(module, images(i))
    same(values(many), values(one), 1e-4)


def case_statistics_are_those_of_the_batch() -> None:
    one, many = image_module(conv_net(norm=True)), image_module(conv_net(norm=True), context=EIGHT)
    for module in (one, many):
        for i in range(6):
            step(module, images(i))
    same(values(many), values(one), 1e-4)


def case_exact_mxnet_has_an_executor_for_each_device() -> None:
    with mx.config(exact_mxnet=True):
        each = image_module(conv_net(norm=True), context=EIGHT[:2])
    mine = [image_module(conv_net(norm=True), 8) for _ in range(2)]
    step(each, images(0))
    for i, module in enumerate(mine):
        module.forward_backward(images(i, 8))
        module.get_outputs()
    assert len(each._exec_group.execs) == 2
    means = [m._exec_group.execs[0].aux_dict["norm_moving_mean"].asnumpy() for m in mine]
    np.testing.assert_allclose(values(each)["norm_moving_mean"], np.mean(means, 0), rtol=1e-4, atol=1e-6)


def case_what_is_seen_of_outputs_and_gradients() -> None:
    bind = {"inputs_need_grad": True}
    one, many = ready(bind=bind), ready(bind=bind, context=EIGHT)
    for module in (one, many):
        module.forward_backward(batch())
    assert many.get_outputs()[0].context == mx.cpu(0)
    for whole, parts in ((one.get_outputs()[0], many.get_outputs(False)[0]),
                         (one.get_input_grads()[0], many.get_input_grads(False)[0])):
        assert [p.context for p in parts] == EIGHT
        assert [next(iter(p._data.devices())) for p in parts] == jax.devices()
        np.testing.assert_allclose(np.concatenate([p.asnumpy() for p in parts]), whole.asnumpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(many.get_input_grads()[0].asnumpy(), one.get_input_grads()[0].asnumpy(), rtol=1e-4,
                               atol=1e-6)
    error = many.get_outputs()[0] - mx.nd.one_hot(batch().label[0], 3)
    assert error.context == mx.cpu(0)
    ex = many._exec_group.execs[0]
    assert set(ex.arg_dict) == {*values(one), "data", "softmax_label"}
    for name, grad in ex.grad_dict.items():
        if grad is not None:
            want = one._exec_group.execs[0].grad_dict[name]
            np.testing.assert_allclose(grad.asnumpy(), want.asnumpy(), rtol=1e-4, atol=1e-5)


def case_arrays_on_a_mesh_are_arrays() -> None:
    module = ready(context=EIGHT)
    step(module, batch())
    weight = module._exec_group.param_arrays[0][0]
    host = weight.asnumpy()
    np.testing.assert_allclose((weight * 2 + 1).asnumpy(), host * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(mx.nd.dot(weight, weight.T).asnumpy(), host @ host.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(weight.as_in_context(mx.cpu(3)).asnumpy(), host)
    weight[:] = mx.nd.array(host + 1)
    weight[0] = 7
    host = host + 1
    host[0] = 7
    np.testing.assert_array_equal(weight.asnumpy(), host)
    step(module, batch(1))
    assert "cpu(data=8)" in repr(weight) and np.isfinite(weight.asnumpy()).all()


def case_a_batch_in_parts() -> None:
    one, many = ready(), ready(context=EIGHT)
    parts = [batch(i, 2) for i in range(DEVICES)]
    step(one, batch())
    step(many, parts)
    same(values(many), values(one), TOL)
    metric = mx.metric.create("acc")
    many.update_metric(metric, [b.label for b in parts], pre_sliced=True)
    assert metric.num_inst == 16


def case_stores() -> None:
    one = ready("adam")
    for i in range(4):
        step(one, batch(i))
    for kind in ("local", "device"):
        for on_kvstore in ("1", "0"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("MXNET_UPDATE_ON_KVSTORE", on_kvstore)
                for store in (kind, mx.kv.create(kind)):
                    many = ready(None, context=EIGHT)
                    many.init_optimizer(store, "adam", {"learning_rate": 0.1})
                    counts = []
                    for i in range(4):
                        with compiles() as count:
                            step(many, batch(i))
                        counts.append(count.n)
                    same(values(many), values(one), TOL)
                    assert not any(counts[2:]), (kind, on_kvstore, counts)


def case_monitors() -> None:
    found = []
    for context in (mx.cpu(), EIGHT):
        module, monitor = ready(context=context), mx.mon.Monitor(1, pattern=".*")
        module.install_monitor(monitor)
        monitor.tic()
        module.forward_backward(batch())
        seen = [(name.replace("activation", "").lstrip("0123456789"), float(x)) for _, name, x in monitor.toc()]
        found.append(dict(seen))
    assert found[0].keys() == found[1].keys() and len(found[0]) >= 4, found
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-4, err_msg=name)


def case_gradients_are_added() -> None:
    one, many = ready(bind={"grad_req": "add"}), ready(bind={"grad_req": "add"}, context=EIGHT)
    for module in (one, many):
        for i in range(3):
            module.forward_backward(batch(i))
        module.update()
    same(values(many), values(one), TOL)


def case_head_gradients() -> None:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    heads = mx.nd.array(np.random.RandomState(1).normal(size=(16, 3)))
    found = []
    for context in (mx.cpu(), EIGHT):
        module = mx.mod.Module(net, label_names=None, context=context)
        module.bind([("data", (16, 10))])
        module.init_params(None, *parameters(mx, net, data=(16, 10)))
        module.forward(mx.io.DataBatch([mx.nd.array(X[:16])]), is_train=True)
        module.backward(heads)
        grad: Any = module._exec_group.execs[0].grad_dict["fc_weight"]
        found.append(grad.asnumpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


def case_half_precision_and_fixed_parameters() -> None:
    found = []
    for context in (mx.cpu(), EIGHT):
        module = mx.mod.Module(mlp(mx), context=context, fixed_param_names=["fc1_bias"])
        module.bind([mx.io.DataDesc("data", (16, 10), "float16")], [mx.io.DataDesc("softmax_label", (16,), "float16")])
        module.init_params(None, *parameters(mx, mlp(mx), data=(16, 10), softmax_label=(16,)))
        module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1, "multi_precision": True,
                                                                 "momentum": 0.9})
        for i in range(4):
            step(module, batch(i))
        found.append(values(module))
    assert found[1]["fc1_weight"].dtype == np.float16
    same(found[1], found[0], 3e-3)


def case_buckets() -> None:
    one, many = bucketing_module(mx), bucketing_module(mx, context=EIGHT)
    for i, b in enumerate(sentences(mx, 9)):
        with compiles() as count:
            step(many, b)
        assert i < 8 or not count.n
        step(one, b)
    same(values(many), values(one), 1e-4)
    arrays = [b._exec_group.execs[0].arg_dict["out_weight"] for b in many._buckets.values()]
    assert len({id(a) for a in arrays}) == 1


def case_batch_axis_of_a_layout() -> None:
    """Time first: the batch is axis 1."""
    net = mx.sym.RNN(mx.sym.Variable("data"), state_size=4, num_layers=1, mode="lstm", name="rnn")
    net = mx.sym.FullyConnected(mx.sym.Reshape(net, shape=(-1, 4)), num_hidden=3, name="fc")
    net = mx.sym.Reshape(net, shape=(5, -1, 3))
    net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("label"), name="out")
    net._set_attr(__layout__="TNC")
    x = np.random.RandomState(0).normal(size=(5, 16, 6)).astype("f")
    y = np.random.RandomState(1).normal(size=(5, 16, 3)).astype("f")
    names = ["rnn_state", "rnn_state_cell"]
    shapes = {"data": x.shape, "label": y.shape, "rnn_state": (1, 16, 4), "rnn_state_cell": (1, 16, 4)}
    found = []
    for context in (mx.cpu(), EIGHT):
        module = mx.mod.Module(net, data_names=["data", *names], label_names=["label"], context=context)
        descs = [mx.io.DataDesc(n, shapes[n], layout="TNC") for n in ("data", *names)]
        module.bind(descs, [mx.io.DataDesc("label", y.shape, layout="TNC")])
        rng = np.random.RandomState(2)
        module.init_params(None, {n: mx.nd.array(rng.normal(0, 0.3, s)) for n, s in zip(
            net.list_arguments(), net.infer_shape(**shapes)[0], strict=True) if n not in shapes}, {})
        module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1})
        zeros = [mx.nd.zeros((1, 16, 4))] * 2
        for _ in range(3):
            step(module, mx.io.DataBatch([mx.nd.array(x), *zeros], [mx.nd.array(y)]))
        found.append((values(module), module.get_outputs()[0].asnumpy(), module.output_shapes))
        if context is EIGHT:
            assert [p.shape for p in module.get_outputs(False)[0]] == [(5, 2, 3)] * DEVICES
            fed = module._exec_group.data_arrays[0][0][1]._data
            assert fed.sharding.shard_shape(fed.shape) == (5, 2, 6)
    same(found[1][0], found[0][0], 1e-4)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-3, atol=1e-5)
    assert found[1][2] == found[0][2]


def case_states() -> None:
    state = mx.sym.Variable("state")
    new = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc") + state
    net = mx.sym.Group([mx.sym.MakeLoss(mx.sym.sum(new, axis=1)), mx.sym.BlockGrad(new)])
    module = mx.mod.Module(net, label_names=None, state_names=["state"], context=EIGHT)
    module.bind([("data", (16, 10))])
    module.init_params(mx.init.One())
    module.set_states(value=2)
    assert [s.shape for s in module.get_states(False)[0]] == [(2, 4)] * DEVICES
    first = mx.io.DataBatch([mx.nd.array(X[:16])])
    module.forward(first, is_train=True)
    np.testing.assert_allclose(module.get_outputs()[1].asnumpy(), X[:16].sum(1)[:, None] * np.ones(4) + 2, rtol=1e-4)
    module.set_states(states=module.get_outputs(False)[1:])
    module.forward(first, is_train=True)
    twice = 2 * X[:16].sum(1)[:, None] * np.ones(4) + 2
    np.testing.assert_allclose(module.get_outputs()[1].asnumpy(), twice, rtol=1e-4)


def case_checkpoints_go_from_eight_devices_to_one() -> None:
    one, many = ready("adam"), ready("adam", context=EIGHT)
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(Path(folder) / "m")
        for module in (one, many):
            for i in range(3):
                step(module, batch(i))
        many.save_checkpoint(prefix, 1, save_optimizer_states=True)
        for context in (mx.cpu(), EIGHT):
            again = mx.mod.Module.load(prefix, 1, load_optimizer_states=True, context=context)
            again.bind([("data", (16, 10))], [("softmax_label", (16,))])
            again.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.1})
            reference = mx.mod.Module.load(prefix, 1, load_optimizer_states=True)
            reference.bind([("data", (16, 10))], [("softmax_label", (16,))])
            reference.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.1})
            for module in (again, reference):
                step(module, batch(3))
            same(values(again), values(reference), TOL)


class Twice(mx.operator.CustomOpProp):
    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> Any:
        raise AssertionError("it does not run")


def case_what_does_not_fit_a_mesh_has_an_executor_each() -> None:
    sparse = mx.sym.sparse.dot(mx.sym.Variable("data", stype="csr"), mx.sym.Variable("w", shape=(10, 3)))
    sparse = mx.sym.SoftmaxOutput(sparse, name="softmax")
    dynamic = mx.sym.contrib.boolean_mask(mx.sym.Variable("data"), mx.sym.Variable("index"))
    for context, net, options in (
        (EIGHT[:2], mlp(mx), {"work_load_list": [1, 3]}),
        (EIGHT[:2], mlp(mx), {"group2ctxs": {"a": mx.cpu(3)}}),
        ([mx.cpu(0), mx.cpu(8)], mlp(mx), {}),  # there are eight: cpu(8) is cpu(0)
    ):
        module = mx.mod.Module(net, context=context, **options)
        module.bind([("data", (16, 10))], [("softmax_label", (16,))])
        assert len(module._exec_group.execs) == 2
        module.init_params(None, *parameters(mx, net, data=(16, 10), softmax_label=(16,)))
        module.init_optimizer(optimizer_params={"learning_rate": 0.1})
        step(module, batch())
        alone = ready()
        step(alone, batch())
        same(values(module), values(alone), TOL)
    from symjax.module._divided import choose_mesh

    mx.operator.register("mesh_twice")(Twice)
    custom = mx.sym.Custom(mx.sym.Variable("data"), op_type="mesh_twice")
    for net in (sparse, dynamic, custom):
        assert choose_mesh(net._graph, EIGHT, [1] * 8, [None] * 8, None) is None
    assert choose_mesh(mlp(mx)._graph, EIGHT, [1] * 8, [None] * 8, None) is not None


# ---- attributes of variables


def grid() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))


def tensor_parallel() -> Any:
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), mx.sym.Variable("fc1_weight", __sharding__="model,None"),
                              mx.sym.Variable("fc1_bias", __sharding__="model"), num_hidden=12, name="fc1")
    x = mx.sym.Activation(x, act_type="relu")
    x = mx.sym.FullyConnected(x, mx.sym.Variable("fc2_weight", attr={"__sharding__": "(None, 'model')"}),
                              num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def case_parameters_divided_by_attribute() -> None:
    one = ready("adam", tensor_parallel())
    many = ready("adam", mx.sym.load_json(tensor_parallel().tojson()), context=grid())
    with joint_calls() as joined:
        for i in range(5):
            step(one, batch(i))
            with compiles() as count:
                step(many, batch(i))
            assert i == 0 or not count.n
    same(values(many), values(one), TOL)
    ex = many._exec_group.execs[0]
    shards = {n: a._data.sharding.shard_shape(a.shape) for n, a in ex.arg_dict.items()}
    assert shards == {"data": (8, 10), "softmax_label": (8,), "fc1_weight": (3, 10), "fc1_bias": (3,),
                      "fc2_weight": (3, 3), "fc2_bias": (3,)}  # fmt: skip
    for name, grad in ex.grad_dict.items():
        if grad is not None:
            assert grad._data.sharding.shard_shape(grad.shape) == shards[name]
    mean, variance = many._updater.states[0]
    assert mean._data.sharding.shard_shape(mean.shape) == variance._data.sharding.shard_shape(mean.shape) == (3, 10)
    assert joined == [4] * 10
    assert [p.context for p in many.get_outputs(False)[0]] == EIGHT
    many.fit(data(), num_epoch=1)
    one.fit(data(), num_epoch=1)
    same(values(many), values(one), 1e-4)


def case_parameters_divided_over_the_data_axis() -> None:
    w = mx.sym.Variable("fc1_weight", __sharding__="(None, 'data')", shape=(12, 16))
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), w, num_hidden=12, no_bias=True, name="fc1")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    x = np.random.RandomState(0).normal(size=(16, 16)).astype("f")
    for optimizer in ("sgd", "groupadagrad"):  # the state of the latter has a number for each row
        found = []
        for context in (mx.cpu(), EIGHT):
            module = mx.mod.Module(net, context=context)
            module.bind([("data", (16, 16))], [("softmax_label", (16,))])
            module.init_params(None, *parameters(mx, net, data=(16, 16), softmax_label=(16,)))
            module.init_optimizer(optimizer=optimizer, optimizer_params={"learning_rate": 0.5, "wd": 0.0})
            for _ in range(3):
                step(module, mx.io.DataBatch([mx.nd.array(x)], [mx.nd.array(CLASSES[:16])]))
            found.append(values(module))
        same(found[1], found[0], TOL)


def case_executors_on_a_mesh() -> None:
    net, shapes = tensor_parallel(), {"data": (16, 10), "softmax_label": (16,)}
    args, _ = parameters(mx, net, **shapes)
    found = []
    for ctx in (mx.cpu(), grid()):
        ex = net.simple_bind(ctx, **shapes)
        ex.copy_params_from(args)
        ex.forward(is_train=True, data=X[:16], softmax_label=Y[:16])
        ex.backward()
        again = ex.reshape(data=(8, 10), softmax_label=(8,))
        again.forward(data=X[:8])
        bound = net.bind(ctx, {n: a.copy() for n, a in ex.arg_dict.items()},
                         {n: mx.nd.zeros(a.shape) for n, a in args.items()})
        bound.forward(is_train=True)
        bound.backward()
        grads = {n: g.asnumpy() for n, g in ex.grad_dict.items() if n in args}
        same({n: g.asnumpy() for n, g in bound.grad_dict.items() if n in args}, grads, 1e-5)
        found.append((ex.outputs[0].asnumpy(), again.outputs[0].asnumpy(), grads))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-4)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-4)
    same(found[1][2], found[0][2], 1e-4)


def case_lowered_functions_on_a_mesh() -> None:
    net, mesh = tensor_parallel(), grid()
    args, _ = parameters(mx, net, data=(16, 10), softmax_label=(16,))
    fn, params, aux = mx.lower(net, args, mesh=mesh)
    assert params["fc1_weight"].sharding == NamedSharding(mesh, PartitionSpec("model", None))
    assert params["fc2_bias"].sharding.is_fully_replicated
    want = mx.lower(net, args)

    def loss(fn: Any, params: Any) -> Any:
        (out,), _ = fn(params, aux, data=X[:16])
        return (out[:, 0] ** 2).sum()

    grads = jax.jit(jax.grad(lambda p: loss(fn, p)))(params)
    for name, g in jax.grad(lambda p: loss(want.fn, p))(want.params).items():
        np.testing.assert_allclose(grads[name], g, rtol=1e-4, atol=1e-5)
    assert grads["fc1_weight"].sharding.shard_shape((12, 10)) == (3, 10)


def case_messages_of_attributes() -> None:
    def bound(text: str, ctx: Any = None, shape: tuple[int, ...] = (12, 10)) -> Any:
        w = mx.sym.Variable("w", __sharding__=text, shape=shape)
        return mx.sym.dot(mx.sym.Variable("data"), w).simple_bind(ctx or grid(), data=(4, shape[0]))

    with pytest.raises(ValueError, match=r"variable 'w'.*'modle'.*'data', 'model'.*Did you mean 'model'"):
        bound("modle,None")
    with pytest.raises(ValueError, match=r"variable 'w': dimension 1 of the shape \(12, 10\).*4 devices"):
        bound("None,model")
    with pytest.raises(ValueError, match=r"variable 'w'.*has 3 parts for the shape \(12, 10\)"):
        bound("model,None,None")
    with pytest.raises(ValueError, match=r"variable 'w'.*cannot be read"):
        bound("model:0")
    with pytest.raises(ValueError, match="names the mesh axis 'data' twice"):
        bound("data,data")
    with pytest.raises(ValueError, match=r"'model'.*the mesh has 'data'.*jax.sharding.Mesh"):
        ready(net=tensor_parallel(), context=EIGHT)
    with pytest.raises(TypeError, match="group2ctx"):
        mlp(mx).simple_bind(grid(), group2ctx={"a": mx.cpu(0)}, data=(16, 10))
    with pytest.raises(ValueError, match="dimension 0"):
        mx.lower(tensor_parallel(), mesh=Mesh(np.array(jax.devices()).reshape(1, 8), ("data", "model")), data=(16, 10))
    sparse = mx.sym.sparse.dot(mx.sym.Variable("data", stype="csr"), mx.sym.Variable("w"))
    with pytest.raises(TypeError, match="cannot run on a mesh because of sparse storage"):
        mx.mod.Module(sparse, label_names=None, context=grid()).bind([("data", (16, 10))])
    assert bound("model,None", mx.cpu()).arg_dict["w"].shape == (12, 10)  # on one device the attribute does nothing


CASES = {**cases_in(globals()), **group_cases.CASES}

if __name__ == "__main__":
    run_cases(CASES)
