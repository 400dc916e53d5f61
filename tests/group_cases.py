"""Graphs in groups on devices of their own (`ctx_group`), of the eight that `mesh_cases` runs with."""

from __future__ import annotations

from typing import Any

import symjax as mx
from tests.compiles import compiles
from tests.eight_devices import cases_in
from tests.module_cases import parameters
from tests.module_tools import X, Y, batch, ready, same, step, values

TOL = 2e-5


def grouped(norm: bool = False) -> Any:
    with mx.AttrScope(ctx_group="one"):
        x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=12, name="fc1")
        x = mx.sym.BatchNorm(x, name="norm") if norm else x
        x = mx.sym.Dropout(mx.sym.Activation(x, act_type="relu"), p=0.3)
    with mx.AttrScope(ctx_group="two"):
        y = mx.sym.FullyConnected(x, num_hidden=12, name="fc2")
    x = mx.sym.Activation(x + y, act_type="tanh")  # of no group
    with mx.AttrScope(ctx_group="two"):
        x = mx.sym.FullyConnected(x, num_hidden=3, name="fc3")
    return mx.sym.SoftmaxOutput(x, name="softmax")


GROUPS = {"one": mx.cpu(2), "two": mx.cpu(5)}


def case_groups_run_on_their_devices() -> None:
    for norm in (False, True):
        net, shapes, found = grouped(norm), {"data": (16, 10), "softmax_label": (16,)}, []
        for groups in (None, GROUPS):
            ex = net.simple_bind(mx.cpu(0), group2ctx=groups, **shapes)
            ex.copy_params_from(*parameters(mx, net, **shapes))
            mx.random.seed(1)
            counts, grads = [], {}
            for _ in range(3):
                with compiles() as count:
                    ex.forward(is_train=True, data=X[:16], softmax_label=Y[:16])
                    ex.backward()
                    grads = {n: g.asnumpy() for n, g in ex.grad_dict.items() if g is not None}
                counts.append(count.n)
            assert counts[2] == 0
            auxs = {n: a.asnumpy() for n, a in ex.aux_dict.items()}
            ex.forward(data=X[:16])
            found.append({"out": ex.outputs[0].asnumpy(), **grads, **auxs})
            if groups:
                place = {n: next(iter(a._data.devices())).id for n, a in ex.arg_dict.items()}
                assert place == {n: int(str(a.context)[4]) for n, a in ex.arg_dict.items()}
                assert place["data"] == place["fc1_weight"] == 2 and place["fc3_bias"] == 5
                assert place["softmax_label"] == 0
                assert {n: next(iter(g._data.devices())).id for n, g in ex.grad_dict.items()} == place
                assert [a.context for a in ex.aux_arrays] == [mx.cpu(2)] * len(ex.aux_arrays)
        same(found[1], found[0], 1e-5)


def case_outputs_are_on_the_device_of_their_group() -> None:
    net = mx.sym.Group([grouped().get_internals()[f"{n}_output"] for n in ("fc1", "fc3")])
    ex = net.simple_bind(mx.cpu(0), group2ctx=GROUPS, data=(16, 10))
    assert [o.context for o in ex.outputs] == [mx.cpu(2), mx.cpu(5)]
    for out in ex.forward():
        assert next(iter(out._data.devices())).id == out.context.device_id


def case_groups_of_bound_arrays_and_monitors() -> None:
    net, shapes = grouped(), {"data": (16, 10), "softmax_label": (16,)}
    args, _ = parameters(mx, net, **shapes)
    args = {**args, "data": mx.nd.array(X[:16]), "softmax_label": mx.nd.array(Y[:16])}
    found = []
    for groups in (None, GROUPS):
        mine = {n: a.copy() for n, a in args.items()}
        ex = net.bind(mx.cpu(0), mine, {n: mx.nd.zeros(a.shape) for n, a in args.items()}, group2ctx=groups)
        seen: dict[str, Any] = {}
        ex.set_monitor_callback(lambda name, a, seen=seen: seen.update({name: a.asnumpy()}))
        mx.random.seed(1)
        ex.forward(is_train=True)
        ex.backward()
        found.append({**seen, **{f"grad of {n}": g.asnumpy() for n, g in ex.grad_dict.items()}})
    assert len(found[0]) > 10
    same(found[1], found[0], 1e-5)


def case_groups_in_a_module() -> None:
    for contexts, groups in ((mx.cpu(0), GROUPS), ([mx.cpu(0), mx.cpu(1)], [GROUPS, {"one": mx.cpu(3)}]),
                             ([mx.cpu(0), mx.cpu(1)], {"one": [mx.cpu(2), mx.cpu(3)], "two": mx.cpu(7)})):
        one, many = ready("adam", mlp_in_groups()), ready("adam", mlp_in_groups(), context=contexts, group2ctxs=groups)
        for i in range(4):
            step(one, batch(i))
            with compiles() as count:
                step(many, batch(i))
            assert i < 2 or not count.n, (contexts, i, count.n)
        same(values(many), values(one), TOL)
        state = many._exec_group.execs[0].arg_dict["fc1_weight"]
        assert state.context == mx.cpu(2)


def mlp_in_groups() -> Any:
    with mx.AttrScope(ctx_group="one"):
        x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=12, name="fc1")
    with mx.AttrScope(ctx_group="two"):
        x = mx.sym.FullyConnected(mx.sym.Activation(x, act_type="relu"), num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(x, name="softmax")


CASES = cases_in(globals())
