"""Optimizers and schedulers against MXNet's recorded results; states, errors, compilations, what the updater calls."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax.lowering.errors import MXNetError, ParamsFormatError
from symjax.ndarray.dispatch import invoke
from tests.compiles import compiles
from tests.training_cases import CASES, SCHEDULES, numbers, optimizer_of, run_case, run_schedule

GOLDEN = json.loads((Path(__file__).parent / "golden" / "training.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_as_mxnet(case: str) -> None:
    got, want = run_case(mx, CASES[case]), GOLDEN["optimizers"][case]
    dtype = CASES[case].get("dtype", "float32")
    plain_half = dtype == "float16" and not CASES[case]["kwargs"].get("multi_precision")
    # In MXNet hyper-parameters are float32 for float64 weights too, and some float16 updates round at every step.
    rtol = 2e-2 if plain_half else 2e-3 if dtype == "float16" else 1e-5 if dtype == "float64" else 3e-6
    for part in ("first", "last", "states"):
        assert len(got[part]) == len(want[part])
        for a, b in zip(got[part], want[part], strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 3, err_msg=f"{case} {part}")


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    got, want = run_schedule(mx, name), GOLDEN["schedules"][name]
    if isinstance(want, dict):
        assert want["raises"][0] in got["raises"]
    else:
        assert got == pytest.approx(want, rel=1e-14)


# ---- by their formulas, where MXNet fails or is random


def updated(opt: Any, weight: Any, grads: Any, dtype: str = "float32") -> np.ndarray:
    updater, w = mx.optimizer.get_updater(opt), mx.nd.array(weight, dtype=dtype)
    for g in grads:
        updater(0, mx.nd.array(g, dtype=dtype), w)
    return w.asnumpy()


def test_dcasgd_with_momentum() -> None:
    opt = mx.optimizer.DCASGD(momentum=0.9, lamda=0.5, learning_rate=0.1, wd=0.2)
    got = updated(opt, [1.0, 2], [[3.0, 1], [1, -1]])
    w = previous = np.array([1.0, 2])
    m = np.zeros(2)
    for g in ([3.0, 1], [1, -1]):
        g = np.array(g)
        m = 0.9 * m - 0.1 * (g + 0.2 * w + 0.5 * g * g * (w - previous))
        previous, w = w, w + m
    np.testing.assert_allclose(got, w, rtol=1e-5)


def test_nag_decays_the_momentum_by_the_old_weight() -> None:
    got = updated(mx.optimizer.NAG(momentum=0.5, learning_rate=0.1, wd=0.2), [1.0], [[3.0], [1.0]])
    w, m = 1.0, 0.0
    for g in (3.0, 1.0):
        step = 0.1 * (g + 0.2 * w)
        m = 0.5 * m - step
        w = w + 0.5 * m - step
    np.testing.assert_allclose(got, [w], rtol=1e-6)


def test_sgld_is_half_a_step_and_noise_of_variance_lr() -> None:
    mx.random.seed(3)
    n = 20000
    opt = mx.optimizer.SGLD(learning_rate=0.04, wd=0.5, rescale_grad=2.0, clip_gradient=3.0)
    moved = updated(opt, np.full(n, 2.0), [np.full(n, 5.0)]) - 2.0
    assert moved.mean() == pytest.approx(-0.02 * (3 + 1), abs=0.01) and moved.std() == pytest.approx(0.2, rel=0.03)


def test_group_adagrad() -> None:
    opt = mx.optimizer.create("groupadagrad", learning_rate=0.1, rescale_grad=0.5)
    g, w = np.array([[2.0, 4], [6, 8]]), np.ones((2, 2))
    h = np.mean((g / 2) ** 2, axis=1, keepdims=True)
    np.testing.assert_allclose(updated(opt, w, [g]), w - 0.1 * g / 2 / np.sqrt(h + 1e-5), rtol=1e-5)
    with pytest.raises(MXNetError, match="Weight decay"):
        updated(mx.optimizer.contrib.GroupAdaGrad(wd=0.1), w, [g])
    with pytest.raises(MXNetError, match="2-d"):
        updated(mx.optimizer.contrib.GroupAdaGrad(), [1.0], [[1.0]])


def test_signum_without_momentum_takes_wd_lh() -> None:
    got = updated(mx.optimizer.Signum(momentum=0.0, wd_lh=0.5, learning_rate=0.1), [2.0], [[3.0]])
    np.testing.assert_allclose(got, [0.95 * 2 - 0.1], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Accumulating")
@pytest.mark.parametrize("name", sorted(set(mx.optimizer.Optimizer.opt_registry) - {"sgld"}))
def test_every_float_type(name: str) -> None:
    """Also where MXNet fails because it keeps float32 states."""
    grads = [[[0.5, -1.5]], [[0.25, 1.0]]]
    got = {d: updated(mx.optimizer.create(name), [[1.0, 2]], grads, d) for d in ("float64", "float32", "float16")}
    assert all(a.dtype.name == d for d, a in got.items())
    np.testing.assert_allclose(got["float64"], got["float32"], rtol=1e-5)
    np.testing.assert_allclose(got["float16"], got["float32"], rtol=1e-2)


@pytest.mark.parametrize("name", ["sgd", "adam", "lamb", "lars", "nag"])
def test_bfloat16_has_a_float32_copy(name: str) -> None:
    opt = mx.optimizer.create(name, learning_rate=0.01, multi_precision=True)
    updater, w = mx.optimizer.get_updater(opt), mx.nd.array([1.0, 2], dtype="bfloat16")
    for _ in range(3):
        updater(0, mx.nd.array([1e-3, 1e-3], dtype="bfloat16"), w)
    state = updater.states[0]
    copy = next(s for s in state if isinstance(s, mx.nd.NDArray) and (s.asnumpy() > 0.5).all())
    assert w.dtype.__name__ == "bfloat16" and copy.dtype == np.float32 and (copy.asnumpy() != [1, 2]).all()
    np.testing.assert_allclose(w.asnumpy().astype("float32"), copy.asnumpy(), rtol=4e-3)


# ---- names, rates, registration


def test_create_and_register() -> None:
    assert type(mx.optimizer.create("SgD")) is mx.optimizer.SGD
    assert type(mx.optimizer.Optimizer.create_optimizer("adam")) is mx.optimizer.optimizer.Adam
    with pytest.raises(ValueError, match=r"Cannot find optimizer adan.*adam"):
        mx.optimizer.create("adan")

    class Halve(mx.optimizer.Optimizer):
        def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
            self._update_count(index)
            weight[:] = weight - self._get_lr(index) * grad

    mx.optimizer.register(Halve)
    try:
        with pytest.warns(UserWarning, match="overriding existing optimizer"):
            mx.optimizer.register(Halve)
        assert updated(mx.optimizer.create("halve", learning_rate=0.5), [1.0], [[1.0], [1.0]]) == 0
    finally:
        del mx.optimizer.Optimizer.opt_registry["halve"]
    with pytest.raises(AssertionError, match="class"):
        mx.optimizer.register(3)  # type: ignore[type-var]


def test_learning_rate() -> None:
    opt = mx.optimizer.SGD()
    assert opt.learning_rate == 0.01
    opt.set_learning_rate(0.3)
    assert opt.learning_rate == 0.3
    opt = mx.optimizer.SGD(lr_scheduler=mx.lr_scheduler.PolyScheduler(10, base_lr=0.2))
    assert opt.learning_rate == 0.2
    with pytest.raises(UserWarning, match="LRScheduler"):
        opt.set_learning_rate(0.1)
    with pytest.raises(DeprecationWarning):
        opt.set_lr_scale({})
    with pytest.warns(UserWarning, match="overwritten"):
        assert mx.optimizer.Adam(lr_scheduler=mx.lr_scheduler.FactorScheduler(10)).learning_rate == 0.001
    with pytest.raises(AssertionError, match="param_idx2name"):
        mx.optimizer.SGD(param_idx2name=["a"])
    with pytest.raises(NotImplementedError):
        mx.optimizer.Optimizer().update(0, None, None, None)  # type: ignore[arg-type]


def test_float16_without_a_copy_warns() -> None:
    with pytest.warns(UserWarning, match=r"multi_precision=True option of Adam"):
        mx.optimizer.Adam().create_state_multi_precision(0, mx.nd.zeros(2, dtype="float16"))


def test_updates_are_counted_for_each_device() -> None:
    opt = mx.optimizer.Adam()
    for device in (0, 1, 0):
        opt._set_current_context(device)
        opt._update_count(["a", "b"])
    assert opt._all_index_update_counts == {0: {"a": 2, "b": 2}, 1: {"a": 1, "b": 1}} and opt.num_update == 2


# ---- what is refused


@pytest.mark.parametrize("name", sorted(mx.optimizer.Optimizer.opt_registry))
def test_refusals_name_optimizer_argument_and_remedy(name: str) -> None:
    opt = mx.optimizer.create(name)
    weight: Any = mx.nd.ones((2, 2))
    state = opt.create_state("w", weight)
    with pytest.raises(AssertionError, match=rf"{type(opt).__name__}: grad of index 'w'.*ndarray"):
        opt.update("w", weight, np.ones((2, 2)), state)
    with pytest.raises(MXNetError, match="shape"):
        opt.update("w", weight, mx.nd.ones(3), state)
    assert weight.asnumpy().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("name", sorted(mx.optimizer.Optimizer.opt_registry))
def test_a_row_sparse_gradient_is_at_first_as_a_dense_one(name: str) -> None:
    """Where states are zero and there is no decay, lazy updates differ from others in nothing."""
    found = []
    grad = mx.nd.array([[0, 0], [1, -2], [0, 0]])
    for stype in ("default", "row_sparse"):
        mx.random.seed(7)
        weight, opt = mx.nd.ones((3, 2)), mx.optimizer.create(name)
        with mx.config(storage_fallback="allow"):
            opt.update("w", weight, grad.tostype(stype), opt.create_state("w", weight))
        found.append(weight.asnumpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    assert (found[0][1] != 1).all()


# ---- the updater and its states


def trained(case: dict[str, Any], updater: Any, weights: list[Any], steps: int, seed: int) -> list[Any]:
    draw = np.random.RandomState(seed)
    for _ in range(steps):
        for i, w in enumerate(weights):
            updater(i, mx.nd.array(draw.uniform(-1, 1, w.shape), dtype=case.get("dtype", "float32")), w)
    return [numbers(w) for w in weights]


STATEFUL = ["sgd1_all", "sgd_mixed", "nag_mom_mixed", "lars_scheduled", "lbsgd3_all", "adam1_all", "nadam1_all",
            "dcasgd1_all", "ftml_scheduled", "lamb_mixed", "rmsprop3_all", "by_symbol", "lars_symbol", "sgd0"]


@pytest.mark.filterwarnings("ignore:learning rate")
@pytest.mark.parametrize("name", STATEFUL)
def test_training_goes_on_from_states(name: str) -> None:
    case = CASES[name]
    dtype = case.get("dtype", "float32")

    def fresh() -> tuple[Any, list[Any]]:
        return mx.optimizer.get_updater(optimizer_of(mx, case)), [mx.nd.ones(s, dtype=dtype) for s in ((2, 2), 3)]

    first, weights = fresh()
    trained(case, first, weights, 3, 0)
    saved, copies = first.get_states(dump_optimizer=True), [w.copy() for w in weights]
    want = trained(case, first, weights, 3, 1)
    second, _ = fresh()
    second.set_states(saved)
    assert second.optimizer is not first.optimizer and type(second.optimizer) is type(first.optimizer)
    assert second.optimizer.param_dict == {}
    assert trained(case, second, copies, 3, 1) == want


def test_states_without_the_optimizer_and_odd_indices() -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.Adam())
    weights = {"a": mx.nd.ones(2), 3: mx.nd.ones((1, 2))}
    for i, w in weights.items():
        updater(i, w, w)
    updater(b"a", weights["a"], weights["a"])
    updater.states["more"] = [None, (1, 2.5, True, "x", math.inf), np.array([1, 2]), np.float32(2), mx.nd.array(
        [1], dtype="float16")]
    other = mx.optimizer.get_updater(mx.optimizer.SGD())
    other.set_states(updater.get_states())
    assert type(other.optimizer) is mx.optimizer.SGD and list(other.states) == ["a", 3, "more"]
    assert [x.asnumpy().tolist() for x in other.states["a"]] == [x.asnumpy().tolist() for x in updater.states["a"]]
    more = other.states["more"]
    assert more[:2] == [None, (1, 2.5, True, "x", math.inf)] and more[3] == 2 and more[4].dtype == np.float16
    assert isinstance(more[2], np.ndarray) and more[2].tolist() == [1, 2]


def test_states_are_a_params_file() -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.5))
    updater(0, mx.nd.ones(2), mx.nd.zeros(2))
    arrays = mx.nd.load_frombuffer(updater.get_states())
    assert json.loads(arrays["symjax:optimizer_states"].asnumpy().tobytes())["version"] == 1
    np.testing.assert_allclose(arrays["array:0"].asnumpy(), [-0.01, -0.01])


PICKLED = json.loads((Path(__file__).parent / "golden" / "optimizer_states.json").read_text())


def _same(state: Any, want: Any) -> None:
    if isinstance(want, list):
        assert len(state) == len(want)
        for s, w in zip(state, want, strict=True):
            _same(s, w)
    elif isinstance(want, dict):
        assert (state.stype, state._dtype.name) == (want["stype"], want["dtype"])
        assert state.asnumpy().tolist() == want["value"]
    else:
        assert state == want


@pytest.mark.parametrize("case", [k for k in PICKLED if k != "with the optimizer"])
def test_states_that_mxnet_pickled(case: str) -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    updater.set_states(base64.b64decode(PICKLED[case]["bytes"]))
    want = PICKLED[case]["states"]
    assert list(updater.states) == [k for k, _ in want]
    for key, state in want:
        _same(updater.states[key], state)


def test_training_goes_on_from_mxnets_states() -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.5, learning_rate=1.0))
    updater.set_states(base64.b64decode(PICKLED["momentum"]["bytes"]))
    weight = mx.nd.zeros((3, 2))
    updater(0, mx.nd.zeros((3, 2)), weight)
    np.testing.assert_allclose(weight.asnumpy(), 0.5 * np.array(PICKLED["momentum"]["states"][0][1]["value"], "f"))


class _Calls:
    def __reduce__(self) -> Any:
        return print, ("a pickle ran",)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("states", [
    {0: _Calls()}, {0: np.zeros(2)}, {0: b"bytes"}, {0: {1, 2}}, {0: 1j}, [1], {0: [[[[[[[[[[[1]]]]]]]]]]]},
], ids=["call", "numpy", "bytes", "set", "complex", "list", "deep"])
def test_other_pickles_are_refused(states: Any, protocol: int, capsys: pytest.CaptureFixture[str]) -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    with pytest.raises(ParamsFormatError):
        updater.set_states(pickle.dumps(states, protocol))
    assert not capsys.readouterr().out


def test_pickles_with_an_optimizer_are_refused() -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    with pytest.raises(ParamsFormatError, match="dump_optimizer=False"):
        updater.set_states(base64.b64decode(PICKLED["with the optimizer"]["bytes"]))


def test_broken_pickles_are_refused() -> None:
    data = base64.b64decode(PICKLED["adam"]["bytes"])
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    rng = np.random.RandomState(0)
    for n in rng.randint(1, len(data) - 1, 60):
        with pytest.raises(ParamsFormatError):
            updater.set_states(data[:n])
    for _ in range(300):
        broken = bytearray(data)
        broken[rng.randint(1, len(data))] ^= 1 << rng.randint(8)
        with contextlib.suppress(ParamsFormatError):
            updater.set_states(bytes(broken))
    # a bytearray of a number sets memory aside, an attribute of a stand-in stays with its own pickle
    for data in (b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
                 b"\x80\x02cmxnet.ndarray.ndarray\nNDArray\n}X\x05\x00\x00\x00valueK\x01sb."):
        with pytest.raises(ParamsFormatError):
            updater.set_states(data)
    updater.set_states(base64.b64decode(PICKLED["adam"]["bytes"]))


def test_states_are_bytes() -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    with pytest.raises(ParamsFormatError):
        updater.set_states(pickle.dumps({0: None}, 0))
    with pytest.raises(TypeError, match="bytes"):
        updater.set_states("text")  # type: ignore[arg-type]


def manifest(value: Any) -> bytes:
    from symjax import serialization

    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return serialization.dumps([np.frombuffer(text, np.uint8)], ["symjax:optimizer_states"])


@pytest.mark.parametrize("value", [
    b"{", [], {}, {"version": 2, "states": {"dict": []}}, {"version": 1}, {"version": 1, "states": 3},
    {"version": 1, "states": {}}, {"version": 1, "states": {"array": 0}}, {"version": 1, "states": {"dict": [[1]]}},
    {"version": 1, "states": {"dict": [[{"dict": []}, 1]]}}, {"version": 1, "states": {"call": "os:system"}},
    {"version": 1, "states": {"dict": []}, "optimizer": {"optimizer": "os:system", "fields": {"dict": []}}},
    {"version": 1, "states": {"dict": []}, "optimizer": {"optimizer": "symjax.optimizer._sgd:SGD"}},
    {"version": 1, "states": {"dict": []}, "optimizer": {"optimizer": "symjax.optimizer._sgd:SGD",
                                                        "fields": {"dict": []}}},
    {"version": 1, "states": {"dict": []}, "optimizer": 4},
    b'{"version": 1, "states": ' + b"[" * 100000 + b"]" * 100000 + b"}",
], ids=lambda v: str(v)[:40])
def test_broken_states(value: Any) -> None:
    with pytest.raises(ParamsFormatError):
        mx.optimizer.get_updater(mx.optimizer.SGD()).set_states(manifest(value))


def test_what_cannot_be_saved_is_named() -> None:
    opt = mx.optimizer.SGD()
    opt.note = {"f": len}  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"optimizer\['note'\]\['f'\] is a builtin"):
        mx.optimizer.get_updater(opt).get_states(dump_optimizer=True)


def test_an_optimizer_can_be_pickled() -> None:
    opt = mx.optimizer.SGD(momentum=0.9, param_dict={0: object()})
    opt._update_count([0, 1])
    back = pickle.loads(pickle.dumps(opt))
    assert back.param_dict == {} and back._index_update_count == {0: 1, 1: 1}
    assert back._index_update_count is back._all_index_update_counts[0]


# ---- cost


@pytest.mark.filterwarnings("ignore:learning rate")
@pytest.mark.parametrize("name", sorted(set(mx.optimizer.Optimizer.opt_registry) - {"groupadagrad", "test"}))
def test_another_rate_does_not_compile_again(name: str) -> None:
    schedule = mx.lr_scheduler.PolyScheduler(50, base_lr=0.1)
    opt = mx.optimizer.create(name, lr_scheduler=schedule, wd=0.1, clip_gradient=1.0)
    updater, w, g = mx.optimizer.get_updater(opt), mx.nd.ones((3, 7)), mx.nd.ones((3, 7))
    for _ in range(3):
        updater(0, g, w)
    with compiles() as counted:
        for _ in range(3):
            updater(0, g, w)
    assert counted.n == 0


def test_the_updater_calls_one_op_and_makes_no_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update through the updater is one call of a compiled op: what it costs more is Python."""
    opt = mx.optimizer.SGD(momentum=0.9, wd=0.1, param_idx2name={0: "a_weight"}, rescale_grad=1 / 64)
    updater, w, g = mx.optimizer.get_updater(opt), mx.nd.ones(10), mx.nd.ones(10)
    updater(0, g, w)
    called = []

    def counting(op: Any, *args: Any) -> Any:
        called.append(op.name)
        return invoke(op, *args)

    monkeypatch.setattr("symjax.optimizer._base.invoke", counting)
    with compiles() as counted:
        updater(0, g, w)
    assert called == ["sgd_mom_update"]
    assert counted.n == 0
