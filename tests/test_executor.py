"""Executors: what is compiled, when it runs, and what stays the user's."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import symjax as mx
from symjax.lowering.errors import BindError, MXNetError
from tests.compiles import compiles


def network() -> mx.Symbol:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=7, name="fc1")
    net = mx.sym.Dropout(mx.sym.Activation(net, act_type="tanh"), p=0.5)
    net = mx.sym.FullyConnected(mx.sym.BatchNorm(net, name="bn"), num_hidden=3, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def filled(ex: mx.Executor) -> mx.Executor:
    rng = np.random.RandomState(0)
    for a in ex.arg_arrays:
        a[:] = rng.uniform(-1, 1, a.shape)
    return ex


def step(ex: mx.Executor) -> np.ndarray:
    ex.forward(is_train=True)
    ex.backward()
    return ex.outputs[0].asnumpy()


def test_two_executors_of_one_graph_compile_once() -> None:
    first = filled(network().simple_bind(mx.cpu(), data=(5, 11)))
    step(first)
    second = filled(network().simple_bind(mx.cpu(), data=(5, 11)))
    with compiles() as c:
        step(second)
        step(first)
    assert c.n == 0


def test_other_names_compile_nothing_new() -> None:
    step(filled(network().simple_bind(mx.cpu(), data=(5, 11))))
    renamed = mx.sym.load_json(network().tojson().replace('"fc1', '"other').replace('"data"', '"pixels"'))
    ex = filled(renamed.simple_bind(mx.cpu(), pixels=(5, 11)))
    with compiles() as c:
        step(ex)
    assert c.n == 0


def test_reshape_back_compiles_nothing() -> None:
    ex = filled(network().simple_bind(mx.cpu(), data=(6, 11)))
    step(ex)
    small = ex.reshape(partial_shaping=True, data=(2, 11))
    step(small)
    with compiles() as c:
        back = small.reshape(partial_shaping=True, allow_up_sizing=True, data=(6, 11))
        step(back)
        step(ex)
    assert c.n <= 2  # the array operations of making `back`, never the step itself
    assert back.arg_dict["fc1_weight"] is ex.arg_dict["fc1_weight"]


def test_training_step_is_one_call_and_reading_between_recomputes_nothing() -> None:
    ex = filled(network().simple_bind(mx.cpu(), data=(4, 11)))
    mx.random.seed(3)
    ex.forward(is_train=True)
    assert ex.outputs[0]._value is None, "forward in training waits for what comes next"
    ex.backward()
    fused = [ex.outputs[0].asnumpy(), *(g.asnumpy() for g in ex.grad_arrays if g is not None)]
    moved = [a.asnumpy() for a in ex.aux_arrays]
    for a in ex.aux_arrays:
        a[:] = 0
    mx.random.seed(3)
    ex.forward(is_train=True)
    read = ex.outputs[0].asnumpy()
    assert ex._run is not None and ex._run.pull is not None, "the residuals are kept"
    ex.backward()
    for a, b in zip([read, *(g.asnumpy() for g in ex.grad_arrays if g is not None)], fused, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    for a, b in zip(ex.aux_arrays, moved, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-6)


def test_outputs_are_the_same_objects_after_every_forward() -> None:
    ex = filled(network().simple_bind(mx.cpu(), data=(4, 11)))
    out = ex.outputs[0]
    before = ex.forward()[0].asnumpy()
    ex.arg_dict["data"][:] = 0
    ex.forward()
    assert ex.outputs[0] is out
    assert not np.allclose(before, out.asnumpy())


def test_arrays_read_later_are_those_of_forward() -> None:
    ex = filled(network().simple_bind(mx.cpu(), data=(4, 11)))
    expected = step(ex)
    mx.random.seed(1)
    ex.forward(is_train=True)
    ex.arg_dict["data"][:] = 100
    mx.random.seed(1)
    late = ex.outputs[0].asnumpy()
    assert np.isfinite(late).all() and late.shape == expected.shape
    assert not np.allclose(late, ex.forward()[0].asnumpy())


def test_second_backward_moves_the_states_once_more() -> None:
    net = mx.sym.make_loss(mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn", momentum=0.5))
    ex = filled(net.simple_bind(mx.cpu(), data=(4, 3)))
    mean = ex.arg_dict["data"].asnumpy().mean(0)
    ex.forward(is_train=True)
    ex.backward()
    np.testing.assert_allclose(ex.aux_dict["bn_moving_mean"].asnumpy(), mean / 2, rtol=1e-5)
    ex.backward()
    np.testing.assert_allclose(ex.aux_dict["bn_moving_mean"].asnumpy(), mean * 3 / 4, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8"])
def test_dtypes_are_exact_and_the_users_setting_stays(dtype: str) -> None:
    net = mx.sym.Variable("a") + mx.sym.Variable("b")
    ex = net.simple_bind(mx.cpu(), a=(3,), type_dict={"a": dtype}, grad_req="null")
    ex.arg_dict["a"][:] = 2
    ex.arg_dict["b"][:] = 3
    out = ex.forward()[0]
    assert out._dtype.name == dtype and [float(x) for x in out.asnumpy()] == [5, 5, 5]
    assert jax.numpy.zeros(1).dtype == np.float32


def test_int64_arithmetic_is_exact() -> None:
    net = mx.sym.Variable("a") * 3 + 1
    ex = net.simple_bind(mx.cpu(), a=(1,), type_dict={"a": "int64"}, grad_req="null")
    ex.arg_dict["a"][:] = 2**52 + 1
    assert int(ex.forward()[0].asnumpy()[0]) == (2**52 + 1) * 3 + 1


def test_empty_and_scalar_arrays_bind() -> None:
    a = mx.sym.Variable("a")
    ex = mx.sym.sum(a * 2, axis=1).bind(mx.cpu(), {"a": mx.nd.NDArray._from_jax(jax.numpy.zeros((0, 3)), mx.cpu())})
    assert ex.forward()[0].shape == (0,)
    scalar = (a * 2).bind(mx.cpu(), {"a": mx.nd.NDArray._from_jax(jax.numpy.float32(3), mx.cpu())})
    assert float(scalar.forward()[0].asnumpy()) == 6


def test_two_variables_of_one_name_bind_by_position_only() -> None:
    net = mx.sym.Variable("x") + mx.sym.Variable("x")
    one, two = mx.nd.ones((2,)), mx.nd.ones((2,)) * 2
    with pytest.raises(BindError, match="'x'"):
        net.bind(mx.cpu(), {"x": one})
    assert net.bind(mx.cpu(), [one, two]).forward()[0].asnumpy().tolist() == [3, 3]


def test_messages_name_node_argument_and_producers() -> None:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    bad = net + mx.sym.Variable("q")
    with pytest.raises(MXNetError, match=r"_plus\d+ \(elemwise_add\)") as e:
        bad.simple_bind(mx.cpu(), data=(2, 3), q=(5, 5))
    assert "fc (FullyConnected) <- data (variable)" in str(e.value)
    with pytest.raises(MXNetError, match="make_loss"):
        ex = net.simple_bind(mx.cpu(), data=(2, 3))
        ex.forward(is_train=True)
        ex.backward()


def test_all_problems_at_once() -> None:
    a, b, c = (mx.sym.Variable(n) for n in "abc")
    net = mx.sym.Group([mx.sym.elemwise_add(a, b, name="one"), mx.sym.elemwise_mul(a, c, name="two")])
    with pytest.raises(MXNetError) as e:
        net.infer_shape(a=(1, 2), b=(3, 4), c=(5, 6))
    assert "one" in str(e.value) and "two" in str(e.value)


def test_missing_device_says_what_exists() -> None:
    if mx.num_gpus():
        pytest.skip("this machine has a GPU, so mx.gpu() is not a missing device here")
    with pytest.raises(MXNetError, match="cpu"):
        network().simple_bind(mx.gpu(), data=(2, 11)).forward()


def test_shared_buffer() -> None:
    pool: dict[str, mx.NDArray] = {}
    one = network().simple_bind(mx.cpu(), data=(2, 11), shared_buffer=pool)
    two = network().simple_bind(mx.cpu(), data=(2, 11), shared_buffer=pool)
    assert one.arg_dict["fc1_weight"] is two.arg_dict["fc1_weight"]
