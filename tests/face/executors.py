"""Executor programs whose facts must be the same in symjax; see `symbols`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.face.symbols import mlp, outcome

FACTS: dict[str, Callable[[Any], Any]] = {}


def fact(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    FACTS[fn.__name__] = fn
    return fn


def rounded(a: Any) -> Any:
    return np.round(np.asarray(a.asnumpy(), "float64"), 4).tolist()


def filled(mx: Any, shape: tuple[int, ...], seed: int = 0, dtype: str = "float32") -> Any:
    rng = np.random.RandomState(seed)
    return mx.nd.array(rng.uniform(-1, 1, shape), dtype=dtype)


def bound(mx: Any, **kwargs: Any) -> Any:
    net = mlp(mx)
    shapes = net.infer_shape(data=(4, 6))[0]
    args = {n: filled(mx, s, i) for i, (n, s) in enumerate(zip(net.list_arguments(), shapes, strict=True))}
    args["softmax_label"] = mx.nd.array([0, 1, 2, 3])
    return net, args, net.bind(mx.cpu(), args, **kwargs)


@fact
def forward_and_backward(mx: Any) -> Any:
    grads = {
        n: mx.nd.zeros(s) for n, s in zip(mlp(mx).list_arguments(), mlp(mx).infer_shape(data=(4, 6))[0], strict=True)
    }
    _, args, ex = bound(mx, args_grad=grads)
    first = ex.outputs[0]
    out = ex.forward(is_train=True)[0]
    ex.backward()
    seen = [
        rounded(out),
        {k: rounded(v) for k, v in ex.grad_dict.items()},
        rounded(first),
        ex.grad_dict.keys() == args.keys(),
    ]
    args["data"][:] = 1
    seen.append(rounded(ex.forward()[0]))
    ex.forward(data=mx.nd.ones((4, 6)) * 2)
    seen += [rounded(ex.outputs[0]), rounded(args["data"]), list(ex.output_dict), list(ex.arg_dict), list(ex.aux_dict)]
    return seen


@fact
def gradient_requests(mx: Any) -> Any:
    net = mlp(mx)
    seen: list[Any] = []
    for req in (
        "write",
        "add",
        "null",
        {"fc1_weight": "add", "data": "write"},
        ["write", "null", "add", "null", "write", "null"],
    ):
        ex = net.simple_bind(mx.cpu(), grad_req=req, data=(4, 6))
        for i, a in enumerate(ex.arg_dict.values()):
            a[:] = filled(mx, a.shape, i)
        ex.arg_dict["softmax_label"][:] = mx.nd.array([0, 1, 2, 3])
        for _ in range(2):
            ex.forward(is_train=True)
            ex.backward()
        seen.append({k: None if v is None else rounded(v) for k, v in ex.grad_dict.items()})
    return seen


@fact
def binding_errors(mx: Any) -> Any:
    net = mlp(mx)
    _, args, ex = bound(mx)
    plain = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="f") + mx.sym.Variable("q")
    pargs = {n: mx.nd.zeros(s) for n, s in zip(plain.list_arguments(), plain.infer_shape(data=(2, 3))[0], strict=True)}
    pex = plain.bind(mx.cpu(), pargs, args_grad={k: mx.nd.zeros(v.shape) for k, v in pargs.items()})
    pex.forward(is_train=True)
    calls = [
        lambda: net.bind(mx.cpu(), {"data": args["data"]}),
        lambda: net.bind(mx.cpu(), [args["data"]]),
        lambda: net.bind("cpu", args),
        lambda: net.bind(mx.cpu(), dict(args, data=np.zeros((4, 6)))),
        lambda: net.bind(mx.cpu(), dict(args, fc1_bias=mx.nd.zeros((3,)))),
        lambda: net.bind(mx.cpu(), args, grad_req="foo"),
        lambda: net.bind(mx.cpu(), args, args_grad=[args["data"]]),
        lambda: net.simple_bind(mx.cpu()),
        lambda: net.simple_bind(mx.cpu(), data=args["data"]),
        lambda: net.simple_bind(mx.cpu(), data=(2, 3), grad_req=["write"]),
        lambda: ex.forward(foo=1),
        lambda: ex.forward(data=mx.nd.zeros((3, 3))),
        lambda: ex.forward(data=3),
        lambda: ex.copy_params_from({"zz": args["data"]}),
        lambda: ex.reshape(data=(8, 6)),
        lambda: ex.reshape(data=(2, 6)),
        lambda: ex.reshape(data=(2, 5)),
        lambda: pex.backward(),
        lambda: pex.backward(mx.nd.ones((3, 3))),
        lambda: pex.backward("a"),
        lambda: plain.eval(data=pargs["data"]),
        lambda: net.simple_bind(mx.cpu(), data=(2, 3), nope=(1,)).arg_dict["data"].shape,
        lambda: plain.bind(mx.cpu(), dict(pargs, q=mx.nd.zeros((2, 2), dtype="float64"))),
    ]
    return [outcome(c) for c in calls]


@fact
def reshaping(mx: Any) -> Any:
    _, args, ex = bound(mx, args_grad=None, grad_req="null")
    small = ex.reshape(partial_shaping=True, data=(2, 6))
    big = ex.reshape(partial_shaping=True, allow_up_sizing=True, data=(8, 6))
    args["fc1_bias"][:] = 3
    small.arg_dict["data"][:] = 1
    big.arg_dict["data"][:] = 1
    return [
        [o.shape for o in (*small.forward(), *big.forward())],
        rounded(small.outputs[0])[0],
        rounded(big.outputs[0])[0],
        small.arg_dict["fc1_bias"].asnumpy().tolist() == args["fc1_bias"].asnumpy().tolist(),
    ]


@fact
def batch_norm_states(mx: Any) -> Any:
    net = mx.sym.make_loss(mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn", fix_gamma=False, momentum=0.5))
    ex = net.simple_bind(mx.cpu(), data=(4, 3))
    ex.arg_dict["data"][:] = filled(mx, (4, 3))
    ex.arg_dict["bn_gamma"][:] = 2
    ex.aux_dict["bn_moving_var"][:] = 1
    seen = []
    for train, back in ((False, False), (True, False), (True, True), (True, True), (False, False)):
        ex.forward(is_train=train)
        if back:
            ex.backward()
            ex.grad_arrays[0].wait_to_read()
        mx.nd.waitall()
        seen.append([rounded(ex.outputs[0]), {k: rounded(v) for k, v in ex.aux_dict.items()}])
    return seen


@fact
def several_heads(mx: Any) -> Any:
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    net = mx.sym.Group([a * b, a + b, mx.sym.BlockGrad(a)])
    ex = net.simple_bind(mx.cpu(), a=(2, 2), b=(2, 2))
    ex.arg_dict["a"][:] = filled(mx, (2, 2), 1)
    ex.arg_dict["b"][:] = filled(mx, (2, 2), 2)
    ex.forward(is_train=True)
    ex.backward([filled(mx, (2, 2), 3), filled(mx, (2, 2), 4), filled(mx, (2, 2), 5)])
    return [[rounded(o) for o in ex.outputs], {k: rounded(v) for k, v in ex.grad_dict.items()}]


@fact
def types_bound(mx: Any) -> Any:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="f")
    ex = net.simple_bind(mx.cpu(), data=(2, 3), type_dict={"data": "float64"})
    i = mx.sym.Variable("i") + mx.sym.Variable("j")
    exi = i.simple_bind(mx.cpu(), i=(2,), type_dict={"i": "int64"}, grad_req="null")
    exi.arg_dict["i"][:] = 2**40
    exi.arg_dict["j"][:] = 1
    return [
        [a.dtype.__name__ for a in ex.arg_arrays],
        ex.forward()[0].dtype.__name__,
        [int(v) for v in exi.forward()[0].asnumpy()],
        exi.outputs[0].dtype.__name__,
    ]


@fact
def monitored(mx: Any) -> Any:
    _, _, ex = bound(mx)
    names: list[str] = []
    ex.set_monitor_callback(lambda name, array: names.append(name.decode()))
    ex.forward()
    return names
