"""Operators written in Python: `mx.operator`, `mx.sym.Custom`, `mx.nd.Custom`. Numbers are real MXNet 1.9.1's."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax.lowering.errors import GraphFormatError, MissingLoweringError, UnknownOpError

CALLS: list[str] = []


class Counting(mx.operator.CustomOp):
    """`out = k data w`, `mask = data > 0`; counts its forward passes in an auxiliary state."""

    def __init__(self, k: float) -> None:
        super().__init__()
        self.k = k

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        CALLS.append(f"forward {bool(is_train)} {req}")
        aux[0][:] = aux[0] + 1
        self.assign(out_data[0], req[0], in_data[0] * self.k * in_data[1])
        self.assign(out_data[1], req[1], in_data[0] > 0)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        CALLS.append(f"backward {req} {out_data[0].asnumpy().tolist()}")
        self.assign(in_grad[0], req[0], out_grad[0] * self.k * in_data[1])
        self.assign(in_grad[1], req[1], out_grad[0] * self.k * in_data[0])


@mx.operator.register("counting")
class CountingProp(mx.operator.CustomOpProp):
    def __init__(self, k: str = "1", axis: str | None = None) -> None:
        super().__init__(need_top_grad=True)
        assert isinstance(k, str) and (axis is None or isinstance(axis, str))
        self.k = float(k)

    def list_arguments(self) -> list[str]:
        return ["data", "w"]

    def list_outputs(self) -> list[str]:
        return ["out", "mask"]

    def list_auxiliary_states(self) -> list[str]:
        return ["cnt"]

    def infer_shape(self, in_shape: Any) -> Any:
        return [in_shape[0], in_shape[0]], [in_shape[0], in_shape[0]], [(1,)]

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> Any:
        return Counting(self.k)


def simple(name: str, forward: Any, backward: Any = None, top_grad: bool = True, **methods: Any) -> None:
    """Registers an operator of one input and one output from functions of arrays."""

    class Op(mx.operator.CustomOp):
        def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], forward(self, in_data[0]))

        def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
            self.assign(in_grad[0], req[0], backward(self, out_grad[0], in_data[0], out_data[0]))

    def init(self: Any) -> None:
        mx.operator.CustomOpProp.__init__(self, need_top_grad=top_grad)

    made = {"__init__": init, "create_operator": lambda self, ctx, s, d: Op(), **methods}
    mx.operator.register(name)(type(name, (mx.operator.CustomOpProp,), made))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    CALLS.clear()
    yield


def counting_graph() -> mx.Symbol:
    return mx.sym.Custom(mx.sym.var("x"), op_type="counting", k=2.0, axis=(1, 2), name="c")


def gradient(e: mx.Executor) -> np.ndarray:
    """The gradient of the first argument."""
    found = e.grad_arrays[0]
    assert found is not None
    return found.asnumpy()


# ---- graphs


def test_names_and_inference() -> None:
    s = counting_graph()
    assert s.list_arguments() == ["x", "c_w"] and s.list_auxiliary_states() == ["c_cnt"]
    assert s.list_outputs() == ["c_out", "c_mask"]
    assert s.infer_shape(x=(2, 3)) == ([(2, 3), (2, 3)], [(2, 3), (2, 3)], [(1,)])
    assert s.infer_shape_partial() == ([(), ()], [(), ()], [(1,)])
    assert s.infer_type(x="float64")[1] == [np.float64, np.float64]
    x = mx.sym.var("x")
    assert mx.sym.Custom(w=x, op_type="counting", name="c").list_arguments() == ["c_data", "x"]
    with pytest.raises(mx.MXNetError, match="has no input 'q'; its inputs are data, w, cnt"):
        mx.sym.Custom(q=x, op_type="counting")


def test_json() -> None:
    text = counting_graph().tojson()
    node = json.loads(text)["nodes"][-1]
    assert node["attrs"] == {"axis": "(1, 2)", "k": "2.0", "op_type": "counting"}
    assert node["op"] == "Custom" and node["inputs"] == [[0, 0, 0], [1, 0, 0], [2, 0, 1]]
    assert mx.sym.load_json(text).tojson() == text


def test_forward_and_backward() -> None:
    e = counting_graph().simple_bind(mx.cpu(), x=(2,), grad_req={"x": "add", "c_w": "write"})
    e.arg_dict["x"][:] = mx.nd.array([1, -2])
    e.arg_dict["c_w"][:] = 3
    out, mask = e.forward(is_train=True)
    assert out.asnumpy().tolist() == [6, -12] and mask.asnumpy().tolist() == [1, 0]
    e.backward([mx.nd.ones(2), mx.nd.ones(2)])
    assert CALLS == ["forward True ['write', 'write']", "backward ['write', 'write'] [6.0, -12.0]"]
    assert e.aux_dict["c_cnt"].asscalar() == 1
    e.backward([mx.nd.ones(2), mx.nd.ones(2)])
    assert [g.asnumpy().tolist() for g in e.grad_arrays if g is not None] == [[12, 12], [2, -4]]
    before = e.aux_dict["c_cnt"].asscalar()
    e.forward(is_train=False)
    assert e.aux_dict["c_cnt"].asscalar() == before + 1 and CALLS[-1].startswith("forward False")


def test_gradients_that_nobody_wants() -> None:
    e = counting_graph().simple_bind(mx.cpu(), x=(2,), grad_req={"x": "write", "c_w": "null"})
    e.forward(is_train=True)
    e.backward([mx.nd.ones(2), mx.nd.ones(2)])
    assert CALLS[-1].startswith("backward ['write', 'null']")


def test_two_nodes_have_operators_of_their_own_and_may_run_at_once() -> None:
    def forward(op: Any, x: Any) -> Any:
        op.scale = x.asnumpy().max()
        return x / float(op.scale)

    simple("by_max", forward, lambda op, g, x, y: g / float(op.scale))
    x = mx.sym.var("x")
    parts = [mx.sym.Custom(x * k, op_type="by_max") for k in (1.0, 4.0, 16.0)]
    e = mx.sym.add_n(*parts).simple_bind(mx.cpu(), x=(50, 50))
    e.arg_dict["x"][:] = np.arange(2500).reshape(50, 50)
    for _ in range(5):
        e.forward(is_train=True)
        e.backward(mx.nd.ones((50, 50)))
    np.testing.assert_allclose(gradient(e), 3 / 2499, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "int64", "float16", "int8", "bool"])
def test_dtypes_arrive_whole(dtype: str) -> None:
    seen: list[Any] = []

    def forward(op: Any, x: Any) -> Any:
        seen.append(x.asnumpy())
        return x

    simple("seen", forward)
    value = np.array([2**53 + 2 if dtype == "int64" else 1 / 3, 1]).astype(dtype)
    e = mx.sym.Custom(mx.sym.var("x"), op_type="seen").bind(mx.cpu(), [mx.nd.array(value, dtype=dtype)])
    np.testing.assert_array_equal(e.forward()[0].asnumpy(), value)
    assert seen[0].dtype == dtype and (seen[0] == value).all()


def test_a_loss_needs_no_head_gradient() -> None:
    simple("loss", lambda op, x: x, lambda op, g, x, y: y - 1 + g * 100, top_grad=False)
    e = mx.sym.Custom(mx.sym.var("x"), op_type="loss").simple_bind(mx.cpu(), x=(2,))
    e.arg_dict["x"][:] = 5
    e.forward(is_train=True)
    e.backward()
    assert gradient(e).tolist() == [4, 4]  # the head gradient, which it does not need, is zeros
    with pytest.raises(mx.MXNetError, match="is not a loss"):
        f = counting_graph().simple_bind(mx.cpu(), x=(2,))
        f.forward(is_train=True)
        f.backward()


def test_what_backward_does_not_need_is_not_kept() -> None:
    def declare(self: Any, out_grad: Any, in_data: Any, out_data: Any) -> Any:
        return [*out_grad, *out_data]

    simple("by_output", lambda op, x: x.exp(), lambda op, g, x, y: g * y + x, declare_backward_dependency=declare)
    e = mx.sym.Custom(mx.sym.var("x"), op_type="by_output").simple_bind(mx.cpu(), x=(2,))
    e.arg_dict["x"][:] = 1
    e.forward(is_train=True)
    e.backward(mx.nd.ones(2))
    np.testing.assert_allclose(gradient(e), [np.e, np.e], rtol=1e-6)


def test_exceptions_reach_the_user() -> None:
    def fail(op: Any, *arrays: Any) -> Any:
        raise ZeroDivisionError("no such number")

    simple("fails", fail)
    simple("fails_back", lambda op, x: x, fail)
    x = mx.sym.var("x")
    e = mx.sym.Custom(x, op_type="fails").simple_bind(mx.cpu(), x=(2,))
    with pytest.raises(mx.MXNetError, match=r"fails\.forward: ZeroDivisionError: no such number") as caught:
        e.forward()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    e = mx.sym.Custom(x, op_type="fails_back").simple_bind(mx.cpu(), x=(2,))
    e.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match=r"fails_back\.backward: ZeroDivisionError: no such number"):
        e.backward(mx.nd.ones(2))
    with pytest.raises(ZeroDivisionError, match="no such number"):
        mx.nd.Custom(mx.nd.ones(2), op_type="fails")


def test_wrong_answers_of_the_prop() -> None:
    simple("short", lambda op, x: x, infer_shape=lambda self, s: (s, [], []))
    simple("odd", lambda op, x: x, infer_shape=lambda self, s: (s, [s[0][5]], []))
    for name, text in (("short", "infer_shape returned 0 entries for the 1 outputs"), ("odd", "IndexError")):
        with pytest.raises(mx.MXNetError, match=text):
            mx.sym.Custom(mx.sym.var("x"), op_type=name).infer_shape(x=(2, 3))
    with pytest.raises(mx.MXNetError, match="unexpected keyword argument 'zap'"):
        mx.sym.Custom(mx.sym.var("x"), op_type="counting", zap=1)


def test_unregistered() -> None:
    x, remedy = mx.sym.var("x"), r"@mx\.operator\.register\('countin'\)"
    for call in (lambda: mx.sym.Custom(x, op_type="countin"), lambda: mx.nd.Custom(mx.nd.ones(2), op_type="countin")):
        with pytest.raises(UnknownOpError, match=rf"'countin' is not registered\. Did you mean 'counting'.*{remedy}"):
            call()
    with pytest.raises(mx.MXNetError, match="required parameter 'op_type' is missing"):
        mx.sym.Custom(x)
    text = counting_graph().tojson().replace("counting", "gone")
    found = r"Custom with op_type 'gone': 1 node\(s\), first 'c'(.|\n)*mx\.operator\.register"
    with pytest.raises(UnknownOpError, match=found):
        mx.sym.load_json(text)


def test_registering_again_replaces() -> None:
    for factor in (2, 3):
        simple("again", lambda op, x, f=factor: x * f)
        assert mx.nd.Custom(mx.nd.ones(1), op_type="again").asscalar() == factor
        e = mx.sym.Custom(mx.sym.var("x"), op_type="again").bind(mx.cpu(), [mx.nd.ones(1)])
        assert e.forward()[0].asscalar() == factor


def test_lower_grad_vmap() -> None:
    simple("cube", lambda op, x: x * x * x, lambda op, g, x, y: g * 3 * x * x)
    fn, params, aux = mx.lower(mx.sym.Custom(mx.sym.var("x"), op_type="cube"), x=(3,))
    x = jnp.arange(6.0, dtype=jnp.float32).reshape(2, 3)

    def total(row: jax.Array) -> jax.Array:
        return fn(params, aux, x=row)[0][0].sum()

    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(total)))(x), 3 * x * x)


# ---- arrays


def test_nd_custom_and_autograd() -> None:
    a, count = mx.nd.array([1.0, 2.0]), mx.nd.zeros(1)
    a.attach_grad()
    with mx.autograd.record():
        out, mask = mx.nd.Custom(a, a, count, op_type="counting", k=3)
    out.backward()
    assert a.grad.asnumpy().tolist() == [6, 12] and count.asscalar() == 1 and mask.asnumpy().tolist() == [1, 1]
    assert CALLS == ["forward True ['write', 'write']", "backward ['write', 'write'] [3.0, 12.0]"]
    named = mx.nd.Custom(w=mx.nd.ones(2), cnt=count, data=a, op_type="counting", k=2)
    assert named[0].asnumpy().tolist() == [2, 4]
    with pytest.raises(mx.MXNetError, match=r"expected 3 inputs \(data, w, cnt\), got 2"):
        mx.nd.Custom(a, a, op_type="counting")
    into = [mx.nd.zeros(2), mx.nd.zeros(2)]
    assert mx.nd.Custom(a, a, count, op_type="counting", out=into) is into and into[0].asnumpy().tolist() == [1, 4]


def test_each_call_has_an_operator_of_its_own() -> None:
    def forward(op: Any, x: Any) -> Any:
        op.kept = x.asnumpy().copy()
        return x * x

    simple("keeps", forward, lambda op, g, x, y: g * 2 * mx.nd.array(op.kept))
    x = mx.nd.array([3.0])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Custom(mx.nd.Custom(x, op_type="keeps"), op_type="keeps")
    y.backward()
    assert x.grad.asscalar() == 4 * 27
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="keeps")
        with pytest.raises(MissingLoweringError, match="create_jax_operator"):
            mx.autograd.grad([y], [x], create_graph=True)


def test_sparse_arrays() -> None:
    def stypes(self: Any, in_stype: Any) -> Any:
        return in_stype, ["csr"], []

    simple("twice_csr", lambda op, x: x * 2, infer_storage_type=stypes)
    simple("twice", lambda op, x: x * 2)
    x = mx.nd.sparse.csr_matrix(np.eye(3, dtype="float32"))
    assert mx.nd.Custom(x, op_type="twice_csr").stype == "csr"
    dense = mx.nd.Custom(x, op_type="twice")
    assert dense.stype == "default" and (dense.asnumpy() == 2 * np.eye(3)).all()


# ---- JAX code


@mx.operator.register("jax_swish")
class JaxSwish(mx.operator.CustomOpProp):
    def __init__(self, beta: str = "1") -> None:
        super().__init__()
        self.beta = float(beta)

    def list_auxiliary_states(self) -> list[str]:
        return ["seen"]

    def infer_shape(self, in_shape: Any) -> Any:
        return in_shape, [in_shape[0]], [(1,)]

    def create_jax_operator(self, in_shapes: Any, in_dtypes: Any, is_train: bool) -> Any:
        return lambda x, seen: (x * jax.nn.sigmoid(self.beta * x), seen + is_train)


def test_jax_operator_stays_on_the_device() -> None:
    s = mx.sym.Custom(mx.sym.var("x"), op_type="jax_swish", beta=2)
    fn, params, aux = mx.lower(s, x=(3,))
    x = jnp.asarray([0.5, -1.0, 2.0], jnp.float32)
    assert "callback" not in str(jax.make_jaxpr(lambda x: fn(params, aux, x=x, train=True))(x))
    second = jax.grad(lambda v: jax.grad(lambda u: fn(params, aux, x=u)[0][0].sum())(v).sum())(x)
    want = jax.grad(lambda v: jax.grad(lambda u: (u * jax.nn.sigmoid(2 * u)).sum())(v).sum())(x)
    np.testing.assert_allclose(second, want, rtol=1e-5)
    assert fn(params, aux, x=x, train=True)[1][next(iter(aux))] == 1
    a, seen = mx.nd.array([0.5, -1, 2]), mx.nd.zeros(1)
    a.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Custom(a, seen, op_type="jax_swish", beta=2)
    y.backward()
    np.testing.assert_allclose(a.grad.asnumpy(), jax.grad(lambda u: (u * jax.nn.sigmoid(2 * u)).sum())(x), rtol=1e-5)
    assert seen.asscalar() == 1


# ---- the older classes


def test_numpy_and_ndarray_operators() -> None:
    for base in (mx.operator.NumpyOp, mx.operator.NDArrayOp):

        class Double(base):  # type: ignore[misc,valid-type]
            def forward(self, in_data: Any, out_data: Any) -> None:
                out_data[0][:] = in_data[0] * 2

            def backward(self, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any) -> None:
                in_grad[0][:] = 2

        with pytest.warns(DeprecationWarning, match="write a CustomOp"):
            made = Double(False)
        s = made(data=mx.sym.var("x"), name="n")
        assert s.list_arguments() == ["x"] and s.list_outputs() == ["n_output"]
        assert json.loads(s.tojson())["nodes"][1]["op"] == ("_Native" if base is mx.operator.NumpyOp else "_NDArray")
        e = s.simple_bind(mx.cpu(), x=(2,))
        e.arg_dict["x"][:] = 4
        assert e.forward(is_train=True)[0].asnumpy().tolist() == [8, 8]
        e.backward()
        assert gradient(e).tolist() == [2, 2]
        with pytest.raises(mx.MXNetError, match="no operator of this process"):
            mx.sym.load_json(s.tojson().replace(f'"{made.info_}"', '"abcdef"'))


def test_what_is_registered() -> None:
    names = mx.operator.get_all_registered_operators()
    assert {"Custom", "Convolution", "_image_resize"} <= set(names)
    assert mx.operator.get_operator_arguments("Activation").names == ["data", "act_type"]
    assert mx.nd.Custom(mx.nd.ones(2), op_type="custom_op").shape == (2,)  # the base classes, as in MXNet


def test_placeholders_say_what_they_stand_for() -> None:
    for name, text in (("_CachedOp", "a block of another process"), ("_CustomFunction", "a Function of another")):
        with pytest.raises(UnknownOpError, match=rf"{name} with {text}"):
            mx.sym.load_json(mx.sym.relu(mx.sym.var("x")).tojson().replace('"relu"', f'"{name}"'))
    with pytest.raises(MissingLoweringError, match=r"HybridBlock\.export"):
        mx.sym._internal._CachedOp(mx.sym.var("x"))
    with pytest.raises(MissingLoweringError, match="as a CustomOp"):
        mx.nd._internal._CustomFunction()
    s = mx.sym._internal._NoGradient()
    assert mx.sym.load_json(s.tojson()).list_outputs() == s.list_outputs()
    with pytest.raises((MissingLoweringError, GraphFormatError)):
        mx.nd._internal._NoGradient()


def test_backward_that_changes_auxiliary_states_is_told_of() -> None:
    class Op(Counting):
        def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
            aux[0][:] += 10

    class Prop(CountingProp):
        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> Any:
            return Op(self.k)

    mx.operator.register("changes")(Prop)
    e = mx.sym.Custom(mx.sym.var("x"), op_type="changes").simple_bind(mx.cpu(), x=(2,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        e.forward(is_train=True)
        e.backward([mx.nd.ones(2), mx.nd.ones(2)])
    assert any("changes an auxiliary state" in str(w.message) for w in caught)


def test_what_cannot_be_exported_says_so() -> None:
    from symjax.interop import stablehlo

    simple("plain", lambda op, x: x)
    with pytest.raises(MissingLoweringError, match=r"node 'p' \(Custom\) runs Python on the host.*create_jax_operator"):
        stablehlo.export(mx.sym.Custom(mx.sym.var("x"), op_type="plain", name="p"), x=(2,))
