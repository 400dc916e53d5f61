"""NDArray beyond what MXNet records: sharing of memory, dispatch, devices, protocols, files."""

from __future__ import annotations

import pickle
import threading
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax import ndarray as nd
from symjax.lowering.errors import (
    DeviceError,
    DTypeError,
    MXNetError,
    ParamError,
    ShapeError,
    StorageError,
)
from symjax.lowering.registry import Op, op
from symjax.ndarray.dispatch import invoke
from tests.compiles import compiles


def numbers(a: nd.NDArray) -> list[float]:
    return a.asnumpy().reshape(-1).tolist()


# ---- views


def test_views_of_views_share_one_memory() -> None:
    a = nd.arange(24).reshape((2, 3, 4))
    row, cell, flat = a[1][2], a[1, 2, 1:3], a.reshape((-1,))[22:]
    row[:] = 0
    assert numbers(cell) == [0, 0] and numbers(flat) == [0, 0]
    flat[0] = 7
    assert numbers(row) == [0, 0, 7, 0] and a[1, 2, 2].asscalar() == 7
    a[:] = 1
    assert numbers(cell) == [1, 1]


def test_a_view_keeps_its_base_alive_and_reads_after_donation() -> None:
    view = nd.zeros((4, 3))[2]
    for i in range(3):
        view += i
    assert numbers(view) == [3, 3, 3]


def test_copies_do_not_share() -> None:
    a = nd.zeros((3, 2))
    a[0] = 1  # now `a` owns its buffer and may reuse it
    b, c, d = a.copy(), a.astype("float32"), a.as_in_context(mx.cpu(1))
    held = a._data
    a[1] = 2
    a[2] = 3
    assert numbers(b) == numbers(c) == numbers(d) == [1, 1, 0, 0, 0, 0]
    assert numbers(a) == [1, 1, 2, 2, 3, 3] and np.asarray(held).tolist() == [[1, 1], [0, 0], [0, 0]]


def test_row_writes_reuse_the_buffer() -> None:
    a = nd.zeros((64, 64))
    a[0] = 1
    before = a._data.unsafe_buffer_pointer()
    for i in range(1, 10):
        a[i] = i
    assert a._data.unsafe_buffer_pointer() == before
    assert numbers(a[:, 0])[:11] == [1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]


def test_loops_over_positions_compile_once() -> None:
    a, b = nd.zeros((6, 7)), nd.zeros((6, 7, 5))
    a[0], a[0:2], a[:, 0], b[0, :, 0] = 1, nd.ones((2, 7)), 2, 3
    assert numbers(a[0])[1:] == [1.0] * 6 and numbers(a[:, 0])[1] == 2 and b[:, 1:3].shape == (6, 2, 5)
    assert numbers(b[:, 1:3])[:2] == [3, 0]
    with compiles() as n:
        for i in range(1, 5):
            a[i], a[i:i + 2], a[:, i], b[i, :, i] = i, nd.ones((2, 7)), i, i
            assert numbers(a[i])[i] == numbers(a[:, i])[i] == i and len(numbers(b[:, i - 1:i + 1])) == 60
    assert n.n == 0


# ---- dispatch


def test_other_scalars_and_rates_do_not_compile() -> None:
    w, g, m = nd.ones((3, 5)), nd.ones((3, 5)), nd.zeros((3, 5))

    def step(lr: float) -> None:
        nd.sgd_mom_update(w, g, m, out=w, lr=lr, wd=lr / 10, momentum=0.9, rescale_grad=1 / (1 + lr))
        w[:] = (w + lr) * lr - lr
        w[1] = lr

    step(0.1)
    with compiles() as n:
        for i in range(20):
            step(0.01 * (i + 2))
    assert n.n == 0


def test_other_rates_of_several_weights_do_not_compile() -> None:
    w, g, v, h = (nd.array([[1.0, 2.0], [3.0, 4.0]]) for _ in range(4))
    mean, var = nd.zeros((2, 2)), nd.ones((2, 2))

    def step(lr: float, t: int) -> None:
        nd.multi_sgd_update(w, g, v, h, out=[w, v], lrs=(lr, 2 * lr), wds=[lr / 10, 0], num_weights=2)
        nd._internal._multi_lamb_update(w, g, mean, var, out=w, learning_rates=lr, wds="(0.1,)", step_count=(t,))

    step(0.1, 1)
    with compiles() as n:
        for i in range(2, 6):
            step(0.1 / i, i)
    assert n.n == 0
    w, g = nd.array([1.0]), nd.array([2.0])
    assert numbers(nd.multi_sgd_update(w, g, lrs=(0.5,), wds=(1,))) == [-0.5]
    assert numbers(nd.multi_sgd_update(w, g, lrs=(0.25,), wds=(0,))) == [0.5]
    with pytest.raises(ParamError, match="lrs has 2 values for 1 weights"):
        nd.multi_sgd_update(w, g, lrs=(0.5, 1), wds=(1,))
    with pytest.raises(ParamError, match="'a' is not a number"):
        nd.multi_sgd_update(w, g, lrs=("a",), wds=(1,))


def test_update_writes_the_state_in_place() -> None:
    w, g, m = nd.array([1.0]), nd.array([2.0]), nd.array([0.5])
    assert nd.sgd_mom_update(w, g, m, out=w, lr=0.5, momentum=0.5) is w
    assert numbers(m) == [-0.75] and numbers(w) == [0.25]


def test_negative_zero_is_another_scalar() -> None:
    a = nd.array([0.0])
    assert not np.signbit((a * 0.0).asnumpy()[0]) and np.signbit((a * -0.0).asnumpy()[0])


@pytest.mark.parametrize("bad", [{"lr": "fast"}, {"lr": 0.1, "speed": 1}, {}])
def test_bad_parameters_name_op_and_parameter(bad: dict[str, object]) -> None:
    with pytest.raises(ParamError, match="sgd_update"):
        nd.sgd_update(nd.ones(2), nd.ones(2), **bad)


def test_no_promotion() -> None:
    with pytest.raises(DTypeError, match=r"elemwise_add.*rhs.*float32.*float64"):
        nd.elemwise_add(nd.ones(2), nd.ones(2, dtype="float64"))


def test_unequal_shapes_are_not_broadcast() -> None:
    with pytest.raises(ShapeError, match=r"elemwise_add.*rhs.*\(2,\).*\(1,\)"):
        nd.elemwise_add(nd.ones(2), nd.ones(1))


def test_number_of_inputs() -> None:
    with pytest.raises(MXNetError, match=r"elemwise_add.*expected 2.*got 1"):
        nd.elemwise_add(nd.ones(2))


def test_out_is_checked() -> None:
    with pytest.raises(ShapeError, match=r"out=.*\(3,\).*\(2,\)"):
        nd.exp(nd.ones(2), out=nd.zeros(3))
    with pytest.raises(DTypeError, match=r"out=.*float64.*float32"):
        nd.exp(nd.ones(2), out=nd.zeros(2, dtype="float64"))
    outs = [nd.zeros((1, 2)), nd.zeros((1, 2))]
    assert nd.split(nd.array([[1, 2], [3, 4]]), num_outputs=2, axis=0, out=outs) is outs
    assert numbers(outs[1]) == [3, 4]
    with pytest.raises(MXNetError, match="2 outputs"):
        nd.split(nd.ones((2, 2)), num_outputs=2, out=outs[:1])


def test_out_may_be_a_view() -> None:
    a = nd.zeros((2, 3))
    nd.exp(nd.zeros(3), out=a[1])
    assert numbers(a) == [0, 0, 0, 1, 1, 1]


def test_64_bit_types_leave_the_users_setting_alone() -> None:
    before = jax.config.read("jax_enable_x64")
    a = nd.array([2**40 + 1], dtype="int64")
    assert (a * 2 + 1).asnumpy()[0] == 2**41 + 3 and a.sum().dtype == np.int64
    assert (nd.ones(2, dtype="float64") / 3).asnumpy()[0] == 1 / 3
    assert jax.config.read("jax_enable_x64") == before and jnp.ones(2).dtype == (jnp.float64 if before else jnp.float32)


def test_bfloat16() -> None:
    a = nd.ones((2,), dtype="bfloat16") * 3
    assert a.asnumpy().dtype == jnp.bfloat16 and numbers(a.astype("float32")) == [3, 3]


def test_an_op_registered_outside_is_a_function() -> None:
    @op("_contrib_test_double_it", aliases=("test_double_it",))
    def double_it(p: object, data: jax.Array) -> jax.Array:
        """Doubles."""
        return data + data

    assert isinstance(double_it, Op)
    assert numbers(invoke(double_it, [nd.ones(2)], {})) == [2, 2]
    assert numbers(nd.test_double_it(nd.ones(2))) == [2, 2]


def test_the_signature_and_the_text_of_a_function() -> None:
    import inspect

    assert str(inspect.signature(nd.Activation)) == "(data=None, act_type=_Null, out=None, name=None, **kwargs)"
    assert str(inspect.signature(nd.concat)) == "(*data, **kwargs)"
    assert "act_type" in (nd.Activation.__doc__ or "") and nd.Activation.__name__ == "Activation"
    assert "Activation" in dir(nd) and "gemm2" in dir(nd.linalg) and "_plus_scalar" in dir(nd._internal)


def test_an_unknown_function_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match="FullyConnected"):
        _ = nd.FullyConected


def test_keyword_and_positional_inputs_mix() -> None:
    a, b = nd.array([[1.0, 2.0]]), nd.array([[3.0], [4.0]])
    assert numbers(nd.dot(rhs=b, lhs=a)) == numbers(nd.dot(a, rhs=b)) == numbers(nd.dot(a, b)) == [11]
    with pytest.raises(TypeError, match="multiple values"):
        nd.dot(a, b, rhs=b)


def test_pending_contents_run_once_and_keep_shape_questions_cheap() -> None:
    runs: list[int] = []

    def thunk() -> jax.Array:
        runs.append(1)
        return jnp.ones((2, 3))

    a = nd.NDArray._pending((2, 3), np.float32, mx.cpu(), thunk)
    view = a[1]
    assert a.shape == (2, 3) and a.dtype == np.float32 and a.context == mx.cpu() and view.shape == (3,) and not runs
    assert numbers(view) == [1, 1, 1] and numbers(a) == [1] * 6 and len(runs) == 1


def test_waitall_surfaces_pending_errors() -> None:
    def thunk() -> jax.Array:
        raise MXNetError("boom")

    a = nd.NDArray._pending((1,), np.float32, mx.cpu(), thunk)
    with pytest.raises(MXNetError, match="boom"):
        nd.waitall()
    a[:] = 1  # a write settles it
    nd.waitall()
    assert numbers(a) == [1]


def test_large_updates_reuse_memory_and_harm_nobody() -> None:
    shape = (200, 300)
    w, g, m = nd.ones(shape), nd.ones(shape), nd.zeros(shape)

    def step() -> None:
        nd.sgd_mom_update(w, g, m, out=w, lr=0.5, momentum=0.5)

    step()  # from now on both own their buffers
    before = {w._data.unsafe_buffer_pointer(), m._data.unsafe_buffer_pointer()}
    step()
    assert {w._data.unsafe_buffer_pointer(), m._data.unsafe_buffer_pointer()} == before
    assert w[0, 0].asscalar() == 1 - 0.5 - 0.75 and m[0, 0].asscalar() == -0.75
    held, copied, seen = w._data, w.copy(), w.asnumpy()
    step()
    assert float(held[0, 0]) == copied[0, 0].asscalar() == seen[0, 0] == -0.25
    view = w[1]
    kept = view._data
    step()
    assert float(kept[0]) == -0.25 - 0.875 and view[0].asscalar() == w[0, 0].asscalar()
    with compiles() as n:
        step()
    assert n.n == 0


def test_a_refused_result_leaves_the_large_input_alone() -> None:
    w = nd.ones((200, 300)) * 2
    with pytest.raises(ShapeError, match="out="):
        nd.sum(w, axis=0, out=w)
    w *= 2
    nd.elemwise_add(w, w, out=w)
    assert w.asnumpy().min() == w.asnumpy().max() == 8


# ---- devices


def test_contexts() -> None:
    assert nd.zeros(1, ctx=mx.cpu(5)).context == mx.cpu(5)
    with mx.cpu(2) as inner:
        assert mx.current_context() is inner and nd.zeros(1).context == mx.cpu(2)
        with mx.cpu(3):
            assert nd.zeros(1).context == mx.cpu(3)
        assert nd.zeros(1).context == mx.cpu(2)
    assert mx.current_context() == mx.cpu(0)
    seen: list[object] = []
    with mx.cpu(2):
        thread = threading.Thread(target=lambda: seen.append(mx.current_context()))
        thread.start()
        thread.join()
    assert seen == [mx.cpu(0)]
    assert pickle.loads(pickle.dumps(mx.gpu(1))) == mx.gpu(1)


def test_a_missing_device_says_what_there_is() -> None:
    n = mx.num_gpus()
    with pytest.raises(DeviceError, match=rf"gpu\({n}\).*cpu\(0\)"):
        nd.zeros(1, ctx=mx.gpu(n))
    with pytest.raises(DeviceError, match="cpu, gpu"):
        mx.Context("gqu")


# ---- protocols


def test_numpy_reads_and_numpy_scalars_calculate() -> None:
    a = nd.array([[1, 2], [3, 4]])
    assert np.asarray(a).tolist() == [[1, 2], [3, 4]] and np.asarray(a, np.int8).dtype == np.int8
    assert numbers(np.float64(2) * a) == [2, 4, 6, 8]
    assert np.sqrt(a)[1, 1] == 2 and range(4)[nd.array([2], dtype="int32")] == 2


def test_dlpack_both_ways() -> None:
    a = nd.array([1, 2, 3], dtype="int64")
    assert np.from_dlpack(a).tolist() == [1, 2, 3]
    assert numbers(nd.from_dlpack(nd.to_dlpack_for_read(a))) == [1, 2, 3]
    assert nd.from_dlpack(np.arange(3)).dtype == np.int64
    w = nd.zeros(3)
    assert numbers(nd.from_dlpack(w.to_dlpack_for_write())) == [0, 0, 0]


def test_dlpack_writes_reach_the_array() -> None:
    import ctypes

    w, other = nd.zeros(4), nd.zeros(4)
    shared = w.copy()
    capsule = w.to_dlpack_for_write()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    data = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_void_p))[0]
    ctypes.cast(data, ctypes.POINTER(ctypes.c_float))[1] = 5.0
    assert numbers(w) == [0, 5, 0, 0] and numbers(shared) == numbers(other) == [0, 0, 0, 0]


def test_from_numpy_shares_or_copies() -> None:
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = nd.from_numpy(source, zero_copy=False)
    source[0, 0] = 9
    assert a[0, 0].asscalar() == 0
    b = nd.from_numpy(source)
    assert not source.flags.writeable and numbers(b)[0] == 9
    b[0] = 1
    assert source[0, 0] == 9
    with pytest.raises(ValueError, match="contiguous"):
        nd.from_numpy(source.T)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64",
                                   "bool"])
def test_pickle_and_files_keep_type_and_numbers(dtype: str, tmp_path: Path) -> None:
    a = nd.array([[0, 1], [1, 0]], dtype=dtype)
    b = pickle.loads(pickle.dumps(a))
    path = str(tmp_path / "x.params")
    nd.save(path, {"a": a, "b": a[1]})
    c = nd.load(path)
    assert b._dtype == a._dtype == c["a"]._dtype and numbers(b) == numbers(a) == numbers(c["a"])
    assert numbers(c["b"]) == numbers(a[1])
    assert nd.load_frombuffer(Path(path).read_bytes())["b"].shape == (2,)


def test_numpy_shapes_in_files(tmp_path: Path) -> None:
    scalar, path = nd.array(5), str(tmp_path / "x.params")
    assert scalar.shape == () and pickle.loads(pickle.dumps(scalar)).shape == ()
    with mx.util.np_shape():
        nd.save(path, [scalar])
    assert nd.load(path)[0].shape == ()
    with pytest.raises(MXNetError, match="np_shape"):
        nd.save(path, [scalar])


def test_numpy_switches() -> None:
    @mx.util.use_np
    def inside() -> tuple[bool, bool]:
        return mx.util.is_np_shape(), mx.util.is_np_array()

    assert inside() == (True, True) and (mx.util.is_np_shape(), mx.util.is_np_array()) == (False, False)
    mx.util.set_np()
    with pytest.raises(ValueError, match="reset_np"):
        mx.util.set_np_shape(False)
    mx.util.reset_np()
    assert not mx.util.is_np_shape()


def test_a_pickle_is_mxnets() -> None:
    # The state that MXNet 1.9.1 pickles for nd.array([1, 2], dtype="int32").
    raw = bytes.fromhex("c9fa93f90000000001000000020000000000000001000000000000000400000001000000" + "02000000")
    a = nd.NDArray(None)
    a.__setstate__({"handle": bytearray(raw)})
    assert a.dtype == np.int32 and numbers(a) == [1, 2]
    assert nd.array([1, 2], dtype="int32").__getstate__()["handle"] == raw


def test_an_empty_handle() -> None:
    a = nd.NDArray(None)
    assert a.handle is None and pickle.loads(pickle.dumps(a)).handle is None
    with pytest.raises(MXNetError, match="nothing"):
        a.asnumpy()
    nd.exp(nd.zeros(2), out=a)
    assert numbers(a) == [1, 1]


def test_readonly() -> None:
    a = nd.NDArray(nd.ones(2)._data, writable=False)
    for write in (lambda: a.__setitem__(0, 1), lambda: a.__iadd__(1), lambda: a[0:1].__setitem__(0, 2)):
        with pytest.raises(ValueError, match="readonly"):
            write()


def test_asnumpy_is_a_writable_copy() -> None:
    a = nd.ones(3)
    n = a.asnumpy()
    n[:] = 5
    assert numbers(a) == [1, 1, 1]


def test_copy_to_itself_warns() -> None:
    a = nd.ones(2)
    with pytest.warns(RuntimeWarning, match="itself"):
        assert a.copyto(a) is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a.copyto(nd.zeros(2))


def test_imdecode() -> None:
    cv2 = pytest.importorskip("cv2")
    image = np.zeros((4, 5, 3), np.uint8)
    image[1, 2] = (10, 20, 30)  # blue, green, red
    data = cv2.imencode(".png", image)[1].tobytes()
    a = nd.imdecode(data)
    assert a.shape == (1, 3, 4, 5) and numbers(a[0, :, 1, 2]) == [30, 20, 10]
    assert nd.imdecode(data, clip_rect=(1, 0, 4, 2)).shape == (1, 3, 2, 3)


def test_unknown_storage_type() -> None:
    a = nd.ones((2, 2))
    assert a.tostype("default") is a and numbers(nd.sparse.relu(a)) == [1] * 4
    with pytest.raises(StorageError, match="dense"):
        a.tostype("dense")



def test_threads_dispatch_at_once() -> None:
    results: dict[int, list[float]] = {}

    def work(i: int) -> None:
        a = nd.full((3,), i)
        for _ in range(50):
            a = a + 1
        results[i] = numbers(a)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {i: [i + 50] * 3 for i in range(4)}
