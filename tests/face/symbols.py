"""Small programs in MXNet's API; each returns facts (text, lists, error classes) that must be the same in symjax.

They run under the real MXNet too (`python -m tests.face.record`), so they import nothing but the standard library.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

FACTS: dict[str, Callable[[Any], Any]] = {}


def fact(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    FACTS[fn.__name__] = fn
    return fn


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives: a printable value, or the error classes that an `except` clause could name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(call())
        except Exception as e:
            return {"error": [c.__name__ for c in type(e).__mro__ if c.__name__ not in ("object", "BaseException")]}


def plain(value: Any) -> Any:
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def describe(s: Any) -> dict[str, Any]:
    return {
        "json": s.tojson(),
        "repr": repr(s),
        "name": s.name,
        "args": s.list_arguments(),
        "outs": s.list_outputs(),
        "aux": s.list_auxiliary_states(),
        "inputs": s.list_inputs(),
        "attrs": s.attr_dict(),
        "debug": s.debug_str(),
        "internals": s.get_internals().list_outputs(),
    }


def mlp(mx: Any) -> Any:
    data = mx.sym.Variable("data")
    fc1 = mx.sym.FullyConnected(data, num_hidden=16, name="fc1")
    act = mx.sym.Activation(fc1, act_type="relu", name="relu1")
    fc2 = mx.sym.FullyConnected(act, num_hidden=4, name="fc2")
    return mx.sym.SoftmaxOutput(fc2, name="softmax")


@fact
def multilayer(mx: Any) -> Any:
    return describe(mlp(mx))


@fact
def automatic_names(mx: Any) -> Any:
    with mx.name.NameManager():
        d = mx.sym.Variable("data")
        made = [
            mx.sym.FullyConnected(d, num_hidden=3),
            mx.sym.FullyConnected(d, num_hidden=3),
            mx.sym.Reshape(d, shape=(-1,)),
            mx.sym.reshape(d, shape=(-1,)),
            mx.sym.Concat(d, d),
            mx.sym.concat(d, d, dim=0),
            d + d,
            d + 1,
            1 - d,
            d * 2,
            -d,
            d**2,
            2**d,
            d / 2,
            d % 2,
            d > d,
            d == 1,
            abs(d),
            mx.sym.maximum(d, d),
            mx.sym.maximum(d, 1),
            mx.sym.zeros((2, 3)),
            mx.sym.arange(3),
            mx.sym.linalg.gemm2(d, d),
            mx.sym.random.uniform(shape=(2,)),
            mx.sym.contrib.MultiBoxPrior(d),
            mx.sym.dot(d, d),
            mx.sym.BatchNorm(d),
            mx.sym.softmax(d),
            2 / d,
            5 % d,
            mx.sym.broadcast_add(d, d),
            mx.sym.hypot(d, 3),
            mx.sym.power(d, d),
            mx.sym.power(3, d),
            mx.sym.sum(d),
            mx.sym.SliceChannel(d, num_outputs=2),
            mx.sym.eye(3),
            mx.sym.ones((1,)),
            mx.sym.full((2,), 3),
            mx.sym.random.normal(shape=(1,)),
            mx.sym.random.randint(0, 3, shape=(2,)),
            d.sum(axis=1),
            d.reshape((1, -1)),
            d.flatten(),
            d.transpose(),
            d.slice_axis(axis=0, begin=0, end=1),
            d.astype("float16"),
            d.clip(0, 1),
            d != d,
            d >= 2,
            d < d,
            d <= 1,
        ]
        return [m.name for m in made]


@fact
def attributes_as_written(mx: Any) -> Any:
    with mx.name.NameManager():
        d = mx.sym.Variable(
            "data", shape=(0, 3), lr_mult=2.0, wd_mult=1, dtype="float32", attr={"__k__": "v"}, stype="csr"
        )
        c = mx.sym.Convolution(d, kernel=(3, 3), stride=[2, 2], num_filter=8, no_bias=True, layout=None)
        p = mx.sym.Pooling(c, kernel=(2, 2), pool_type="avg", global_pool=False)
        e = mx.sym.Embedding(p, input_dim=10, output_dim=4, dtype="float16")
        k = mx.sym.Cast(e, dtype="int64")
        z = mx.sym.zeros((2, 0, 3), dtype="int32")
        t = mx.sym.topk(k, k=2, ret_typ="both", is_ascend=1)
        return [describe(s) for s in (d, c, p, k, z, t)]


@fact
def scopes(mx: Any) -> Any:
    with mx.name.NameManager(), mx.AttrScope(ctx_group="dev1", __own__="x"):
        a = mx.sym.Variable("a")
        with mx.AttrScope(lr_mult="3", ctx_group="dev2"):
            b = mx.sym.FullyConnected(a, num_hidden=2, attr={"__lr_mult__": "2"})
        c = b + a
    with mx.name.Prefix("p_"):
        z = mx.sym.FullyConnected(mx.sym.Variable("v"), num_hidden=1, name="z")
        y = mx.sym.FullyConnected(z, num_hidden=1)
    return [
        describe(c),
        describe(y),
        b.list_attr(),
        b.attr("ctx_group"),
        b.attr("__ctx_group__"),
        b.attr("num_hidden"),
        b.attr("none"),
        outcome(lambda: mx.AttrScope(a=1)),
        outcome(lambda: b.list_attr(recursive=True)),
    ]


@fact
def batch_norm_outputs(mx: Any) -> Any:
    with mx.name.NameManager():
        d = mx.sym.Variable("data")
        one, three = mx.sym.BatchNorm(d, name="bn"), mx.sym.BatchNorm(d, output_mean_var=True, fix_gamma=False)
        split = mx.sym.SliceChannel(d, num_outputs=3, name="s")
        net = mx.sym.Concat(one, three[0], three[2], split[1], split[0])
        return [
            describe(net),
            len(three),
            len(one),
            [s.name for s in three],
            three.list_outputs(),
            split[1].list_outputs(),
            repr(split),
            repr(split[1]),
            split.list_outputs(),
            describe(three),
        ]


@fact
def groups_and_indexing(mx: Any) -> Any:
    with mx.name.NameManager():
        net = mlp(mx)
        inner = net.get_internals()
        g = mx.sym.Group([net, inner["fc1_output"], mx.sym.Group([net, inner["relu1_output"]])])
        d = mx.sym.Variable("x")
        return [
            describe(g),
            g.name,
            len(g),
            repr(g[1]),
            repr(inner["fc2_output"]),
            inner["fc1_weight"].list_outputs(),
            repr(net.get_children()),
            net.get_children().list_outputs(),
            repr(d.get_children()),
            outcome(lambda: net["nope"]),
            outcome(lambda: g["softmax_output"]),
            outcome(lambda: net[5]),
            outcome(lambda: mx.sym.Group([])),
            [repr(s) for s in g],
            outcome(lambda: mx.sym.Group([3])),
        ]


@fact
def composition(mx: Any) -> Any:
    with mx.name.NameManager():
        net = mlp(mx)
        low = mx.sym.FullyConnected(mx.sym.Variable("raw"), num_hidden=8, name="low")
        high = net(data=low, name="top")
        again = net(data=low)
        return [
            describe(high),
            net.list_arguments(),
            again.name,
            outcome(lambda: net(foo=low)),
            outcome(lambda: net(low, data=low)),
            outcome(lambda: net(data=3)),
            outcome(lambda: net(low)),
        ]


@fact
def copies(mx: Any) -> Any:
    net = mlp(mx)
    c, d, p = copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    return [
        c.tojson() == net.tojson(),
        d.tojson() == net.tojson(),
        p.tojson() == net.tojson(),
        type(p).__name__,
        mx.sym.load_json(net.tojson()).tojson() == net.tojson(),
    ]


@fact
def shape_inference(mx: Any) -> Any:
    with mx.name.NameManager():
        net, d = mlp(mx), mx.sym.Variable("data")
        conv = mx.sym.Convolution(d, kernel=(3, 3), num_filter=8, name="c")
        bn = mx.sym.BatchNorm(mx.sym.Pooling(conv, kernel=(2, 2), stride=(2, 2)), name="b")
        both = mx.sym.Variable("a") + mx.sym.Variable("b")
        declared = mx.sym.Variable("w", shape=(4, 0)) * mx.sym.Variable("v")
        rnn = mx.sym.RNN(d, state_size=5, num_layers=2, mode="lstm", name="r", state_outputs=True)
        fc = mx.sym.FullyConnected(d, num_hidden=3, flatten=False, name="f")
        return [
            outcome(lambda: net.infer_shape(data=(8, 10))),
            outcome(lambda: net.infer_shape_partial(data=(0, 10))),
            outcome(lambda: net.infer_shape(data=(0, 10))),
            outcome(lambda: net.infer_shape()),
            outcome(lambda: net.infer_shape_partial()),
            outcome(lambda: bn.infer_shape(data=(2, 3, 10, 10))),
            outcome(lambda: bn.infer_shape_partial(data=(0, 3, 10, 10))),
            outcome(lambda: both.infer_shape_partial(a=(0, 3), b=(2, 0))),
            outcome(lambda: both.infer_shape(a=(2, 3))),
            outcome(lambda: both.infer_shape(a=(2, 3), b=(3, 2))),
            outcome(lambda: declared.infer_shape(v=(4, 7))),
            outcome(lambda: declared.infer_shape(v=(5, 7))),
            outcome(lambda: rnn.infer_shape(data=(7, 2, 3))),
            outcome(lambda: fc.infer_shape(data=(2, 3, 4))),
            outcome(lambda: net.infer_shape(foo=(1,))),
            outcome(lambda: net.infer_shape(data=[2, 3])),
            outcome(lambda: net.infer_shape(data=None)),
            outcome(lambda: net.infer_shape(data=(2, 3), fc1_weight=(16, 4))),
            outcome(lambda: mx.sym.Concat(d, mx.sym.Variable("e"), dim=1).infer_shape(data=(2, 3), e=(3, 3))),
            outcome(lambda: mx.sym.dot(d, mx.sym.Variable("e")).infer_shape(data=(2, 3), e=(3, 5))),
        ]


@fact
def type_inference(mx: Any) -> Any:
    with mx.name.NameManager():
        net, d = mlp(mx), mx.sym.Variable("data")
        bn = mx.sym.BatchNorm(d, name="b")
        emb = mx.sym.Embedding(d, input_dim=3, output_dim=2, name="e")
        mixed = mx.sym.Cast(d, dtype="float64") + mx.sym.Variable("b")
        declared = mx.sym.Variable("i", dtype="int32") + mx.sym.Variable("j")
        return [
            outcome(lambda: net.infer_type(data="float64")),
            outcome(lambda: net.infer_type()),
            outcome(lambda: net.infer_type_partial()),
            outcome(lambda: bn.infer_type(data="float16")),
            outcome(lambda: emb.infer_type(data="int32")),
            outcome(lambda: mixed.infer_type(data="float32")),
            outcome(lambda: mixed.infer_type(b="float32", data="int8")),
            outcome(lambda: declared.infer_type()),
            outcome(lambda: (d == 1).infer_type(data="int32")),
            outcome(lambda: net.infer_type(foo="float32")),
            outcome(lambda: mx.sym.argsort(d).infer_type(data="float64")),
            outcome(lambda: mx.sym.topk(d, dtype="int32").infer_type(data="float64")),
            outcome(lambda: mx.sym.shape_array(d).infer_type(data="float16")),
            outcome(lambda: mx.sym.one_hot(d, depth=3).infer_type(data="int64")),
        ]


@fact
def errors(mx: Any) -> Any:
    d = mx.sym.Variable("data")
    calls = [
        lambda: mx.sym.FullyConnected(d, num_hiden=3),
        lambda: mx.sym.FullyConnected(d),
        lambda: mx.sym.FullyConnected(d, num_hidden="a"),
        lambda: mx.sym.Activation(d, act_type="foo"),
        lambda: bool(d),
        lambda: d + "a",
        lambda: mx.sym.Variable(3),
        lambda: mx.sym.Variable("x", foo=3),
        lambda: mx.sym.FullyConnected(d, attr={"foo": "x"}, num_hidden=2),
        lambda: mx.sym.load("/does/not/exist"),
        lambda: mx.sym.FullyConnected(data=3, num_hidden=3),
        lambda: mx.sym.pow(d, "x"),
        lambda: d.asnumpy(),
        lambda: d.wait_to_read(),
        lambda: d.copy(),
        lambda: d.backward(),
        lambda: d.nope,
        lambda: mx.sym.FullyConnected(d, num_hidden=2, weight_lr_mult=1),
        lambda: d.__iadd__(1),
        lambda: mx.sym.histogram(d, bins=3),
        lambda: mx.sym.split_v2(d, 2.5),
        lambda: mx.sym.load(3),
        lambda: mx.sym.Pooling(d, kernel="x"),
        lambda: mx.sym.Dropout(d, p=2),
        lambda: (d + True).tojson(),
        lambda: mx.sym.load_json(5),
        lambda: mx.sym.nope(d),
        lambda: d[1.5],
        lambda: mx.sym.Reshape(d, shape="abc"),
    ]
    return [outcome(c) for c in calls]


@fact
def scalar_functions(mx: Any) -> Any:
    with mx.name.NameManager():
        d, e = mx.sym.Variable("d"), mx.sym.Variable("e")
        made = [mx.sym.pow(2, 3), mx.sym.maximum(2, 3), mx.sym.minimum(2, 3), mx.sym.hypot(3, 4)]
        nodes = [
            mx.sym.pow(d, 2),
            mx.sym.pow(2, d),
            mx.sym.pow(d, e),
            mx.sym.minimum(d, 2.5),
            mx.sym.minimum(2, d),
            mx.sym.hypot(d, 2),
            mx.sym.hypot(d, e),
            d + 0.1,
            d * 2.0,
            1e-5 * d,
            d - 3,
            3 - d,
            mx.sym.full((2, 3), 7),
            mx.sym.arange(1, 5, 0.5, repeat=2),
            mx.sym.linspace(0, 1, 5),
            mx.sym.eye(3, 4, 1, dtype="float64"),
            mx.sym.split_v2(d, 3),
            mx.sym.split_v2(d, (1, 3), axis=1, squeeze_axis=False),
            mx.sym.random.normal(1, 2, (3,)),
            mx.sym.random.uniform(d, e, 2),
            mx.sym.random.multinomial(d),
            mx.sym.random.exponential(2.0, (2,)),
            mx.sym.histogram(d, bins=5, range=(0, 1)),
            mx.sym.random.randn(2, 3),
            mx.sym.random.poisson(4, shape=(1,)),
        ]
        return [made, [n.tojson() for n in nodes]]
