"""Updates by row_sparse gradients: numbers, what they touch, memory and compilations."""

from __future__ import annotations

import gc
import json
import pathlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import symjax as mx
from tests.compiles import compiles
from tests.parity.storage import golden
from tests.parity.storage.case import StorageCase
from tests.parity.storage.check import check_stage
from tests.parity.storage.families import update as family
from tests.parity.storage.runner import function
from tests.sparse_optimizer_cases import case_id, cases, gradients, start, trained

OPS: dict[str, tuple[int, dict[str, float]]] = {
    "sgd_update": (0, {"wd": 0.1}),
    "sgd_mom_update": (1, {"wd": 0.1, "momentum": 0.9}),
    "adam_update": (2, {"wd": 0.1, "beta1": 0.8, "beta2": 0.9}),
    "_sparse_adagrad_update": (1, {"epsilon": 1e-5}),
    "_contrib_group_adagrad_update": (1, {"epsilon": 1e-5}),
    "ftrl_update": (2, {"wd": 0.1, "lamda1": 0.02}),
}
"""op -> (number of states, parameters)"""
LAZILY = tuple(OPS)[:3]
SHAPE = (9, 3)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with mx.config(storage_fallback="allow"):
        yield


def rows(ids: Sequence[int], dtype: str = "float32", shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Any:
    data = np.random.RandomState(seed).uniform(-1, 1, (len(ids), *shape[1:])).astype(dtype)
    return mx.nd.sparse.row_sparse_array((data, np.array(ids, "int64")), shape=shape, dtype=dtype)


def states_for(name: str, weight: Any, stype: str) -> list[Any]:
    shape = (weight.shape[0], 1) if "group" in name else weight.shape
    return [mx.nd.zeros(shape, dtype=weight.dtype, stype=stype) for _ in range(OPS[name][0])]


# ---- numbers

def own_rule(case: StorageCase) -> bool:
    """Whether the weight is dense or has all rows, and the states are stored as it."""
    weight, grad, *states = case.inputs.values()
    return grad.stype == "row_sparse" and all(s.stype == weight.stype for s in states) and weight.some != "some"


# the whole table is in tests/parity/storage
PARITY = [c for c in family.CASES
          if c.nodes[0][1] in OPS and ("first step" in c.id or "gradient" in c.id) and own_rule(c)]  # fmt: skip
VARIANTS = [(name, stype, lazy) for name in OPS for stype in ("default", "row_sparse") for lazy in (True, False)
            if (lazy or name in LAZILY) and (name, stype) != ("ftrl_update", "default")]  # fmt: skip
"""(op, storage type of the weight, whether lazily)"""


@pytest.mark.parametrize("case", PARITY, ids=lambda c: c.id)
def test_as_recorded(case: StorageCase) -> None:
    problems = check_stage(case, "update", golden.load("update")[case.id]["stages"]["update"])
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("name", "stype", "lazy", "dtype"), [
    (*v, dtype) for v in VARIANTS for dtype in ("float32", "float64", "float16") if dtype == "float32" or v[2]
])  # fmt: skip
def test_several_steps(name: str, stype: str, lazy: bool, dtype: str) -> None:
    """The dense op on the rows alone is what a lazy update is, and on all rows what another is."""
    fn, (_, params) = function(mx, name), OPS[name]
    params = {**params, "lr": 0.1, "rescale_grad": 0.5, "clip_gradient": 0.3}
    first = np.random.RandomState(1).uniform(0.5, 1.5, SHAPE).astype(dtype)
    weight = mx.nd.array(first, dtype=dtype).tostype(stype)
    states = states_for(name, weight, stype)
    want = [mx.nd.array(first, dtype=dtype), *states_for(name, weight, "default")]
    for step, ids in enumerate(([0, 4], [4, 8], [], [1, 4], list(range(9)), [2, 4])):
        grad = rows(ids, dtype, seed=step)
        more = {"lazy_update": lazy} if name in LAZILY else {}
        fn(weight, grad, *states, out=weight, **params, **more)
        if not lazy:
            fn(want[0], grad.tostype("default"), *want[1:], out=want[0], **params)
        elif ids:
            part = [mx.nd.array(x.asnumpy()[ids], dtype=dtype) for x in want]
            fn(part[0], mx.nd.array(grad.asnumpy()[ids], dtype=dtype), *part[1:], out=part[0], **params)
            for x, p in zip(want, part, strict=True):
                full = x.asnumpy()
                full[ids] = p.asnumpy()
                x[:] = mx.nd.array(full, dtype=dtype)
    assert weight.stype == stype and all(s.stype == stype for s in states)
    tolerance = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    for have, w in zip([weight, *states], want, strict=True):
        assert have.dtype == w.dtype
        np.testing.assert_allclose(have.asnumpy(), w.asnumpy(), rtol=tolerance, atol=tolerance)


GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "sparse_optimizers.json").read_text())


@pytest.mark.parametrize("case", cases(), ids=case_id)
def test_optimizers(case: tuple[str, dict[str, Any], str]) -> None:
    np.testing.assert_allclose(trained(mx, case), GOLDEN[case_id(case)], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_states_are_of_the_weights_storage_type_if_lazy(name: str) -> None:
    weight = mx.nd.array(start()).tostype("row_sparse")
    for lazy, stype in ((True, "row_sparse"), (False, "default")):
        args = {"momentum": 0.9} if name == "sgd" else {}
        state = mx.optimizer.create(name, lazy_update=lazy, **args).create_state(0, weight)
        for s in state if isinstance(state, tuple) else (state,):
            assert s.stype == stype and s.shape == weight.shape


@pytest.mark.parametrize("name", ["adam", "ftrl", "adagrad"])
def test_states_in_files(name: str) -> None:
    """Training goes on as if it had not been interrupted, also before the first step of a weight."""
    def run(interrupted: bool) -> np.ndarray:
        updater = mx.optimizer.get_updater(mx.optimizer.create(name))
        weight, never = mx.nd.array(start()).tostype("row_sparse"), mx.nd.array(start()).tostype("row_sparse")
        for i, g in enumerate(gradients(mx)):
            updater(0, g, weight)
            if interrupted and i == 1:
                updater.states[1] = updater.optimizer.create_state(1, never)
                data = updater.get_states(dump_optimizer=True)
                updater = mx.optimizer.get_updater(mx.optimizer.create(name))
                updater.set_states(data)
                updater(1, g, never)
                state = updater.states[1]
                assert (state[0] if isinstance(state, tuple) else state).stype == "row_sparse"
        return weight.asnumpy()

    np.testing.assert_array_equal(run(True), run(False))


@pytest.mark.parametrize("name", ["sgd", "adam"])
@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_mixed_precision(name: str, stype: str) -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, multi_precision=True, learning_rate=0.1))
    plain = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1))
    weight = mx.nd.array(start(), dtype="float16").tostype(stype)
    copy = weight.astype("float32")
    for g in gradients(mx):
        half = g.astype("float16")
        updater(0, half, weight)
        plain(0, half.astype("float32"), copy)
    assert weight.dtype == np.float16 and weight.stype == stype
    np.testing.assert_allclose(weight.asnumpy(), copy.asnumpy(), rtol=1e-3)


def test_several_weights_at_once() -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
    weights = [mx.nd.array(start()), mx.nd.array(start()).tostype("row_sparse"), mx.nd.array(start())]
    grads = [rows([1], shape=(6, 2)), rows([1], shape=(6, 2)), rows([1], shape=(6, 2)).tostype("default")]
    for _ in range(3):
        updater([0, 1, 2], grads, weights)
    for w in weights[1:]:
        np.testing.assert_allclose(w.asnumpy(), weights[0].asnumpy(), rtol=1e-6)


# ---- which rows are stored


@pytest.mark.parametrize(("name", "lazy"), [(n, z) for n, stype, z in VARIANTS if stype == "row_sparse"])
def test_a_weight_of_which_some_rows_are_stored(name: str, lazy: bool) -> None:
    """Rows of the gradient are added; the numbers are those of the weight with all rows stored."""
    fn, (_, params) = function(mx, name), OPS[name]
    params = {**params, "lr": 0.1, **({"lazy_update": lazy} if name in LAZILY else {})}
    few = rows([2, 3, 7])
    full = mx.nd.sparse.row_sparse_array((few.asnumpy(), np.arange(9)), shape=SHAPE)
    have, want = [[w, *states_for(name, w, "row_sparse")] for w in (few, full)]
    seen = {2, 3, 7}
    for step, ids in enumerate(([3, 7], [0, 3], [], [0, 5, 8])):
        for weight, *states in (have, want):
            fn(weight, rows(ids, seed=step), *states, out=weight, **params)
        seen |= set(ids)
        assert set(few.indices.asnumpy()) == seen
    for a, b in zip(have, want, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6, atol=1e-7)


def test_a_huge_weight_of_few_rows() -> None:
    """10^8 rows, of which those that were touched are stored, and of the states too."""
    shape = (10**8, 16)
    weight, mom = mx.nd.sparse.zeros("row_sparse", shape), mx.nd.sparse.zeros("row_sparse", shape)
    for step in range(3):
        ids = [5, 10**6 + step, 99_999_999]
        grad = mx.nd.sparse.row_sparse_array((np.ones((3, 16), "float32"), ids), shape=shape)
        mx.nd.sparse.sgd_mom_update(weight, grad, mom, out=weight, lr=0.1, momentum=0.5)
    assert weight.indices.asnumpy().tolist() == [5, 10**6, 10**6 + 1, 10**6 + 2, 99_999_999]
    np.testing.assert_allclose(weight.data.asnumpy()[:, 0], [-0.425, -0.1, -0.1, -0.1, -0.425], rtol=1e-6)


def test_no_rows_store_nothing_new() -> None:
    weight = rows([1, 2])
    mx.nd.sgd_update(weight, mx.nd.sparse.zeros("row_sparse", SHAPE), out=weight, lr=1, wd=1)
    assert weight.indices.asnumpy().tolist() == [1, 2]


def test_adagrad_has_no_decay() -> None:
    for stype in ("default", "row_sparse"):
        weight = mx.nd.ones(SHAPE).tostype(stype)
        history = mx.nd.zeros(SHAPE, stype=stype)
        with pytest.raises(mx.base.MXNetError, match=r"wd=0\.1"):
            mx.nd.sparse.adagrad_update(weight, rows([1]), history, out=weight, lr=0.1, wd=0.1)
    updater = mx.optimizer.get_updater(mx.optimizer.AdaGrad(wd=0.1))
    with pytest.raises(mx.base.MXNetError, match="tostype"):
        updater(0, rows([1]), mx.nd.ones(SHAPE))


def test_in_a_graph() -> None:
    weight, grad = mx.sym.Variable("weight", stype="row_sparse"), mx.sym.Variable("grad", stype="row_sparse")
    net = mx.sym.sgd_update(weight, grad, lr=0.5)
    assert net.infer_storage_type()[1] == ["row_sparse"]
    ex = net.bind(mx.cpu(), {"weight": rows([1, 4]), "grad": rows([2, 4], seed=1)}, grad_req="null")
    out = ex.forward()[0]
    assert out.stype == "row_sparse" and out.indices.asnumpy().tolist() == [1, 2, 4]
    np.testing.assert_allclose(out.asnumpy(), rows([1, 4]).asnumpy() - 0.5 * rows([2, 4], seed=1).asnumpy(), rtol=1e-6)


def test_other_optimizers_say_that_they_fall_back() -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.create("adadelta"))
    with mx.config(storage_fallback="error"), pytest.raises(mx.base.MXNetError, match="adadelta"):
        updater(0, rows([1]), mx.nd.ones(SHAPE))
    with warnings.catch_warnings(), mx.config(storage_fallback="warn"):
        warnings.simplefilter("error")
        mx.optimizer.get_updater(mx.optimizer.create("adam"))(0, rows([1]), mx.nd.ones(SHAPE))


# ---- memory and compilations

BIG = (1 << 13, 16)


def pointer(x: Any) -> int:
    """The address of the stored values."""
    data = x._value
    return (data.data if hasattr(data, "stype") else data).unsafe_buffer_pointer()


@pytest.mark.parametrize(("name", "stype", "lazy"), VARIANTS)
def test_in_place_and_compiled_once(name: str, stype: str, lazy: bool) -> None:
    fn, (_, params) = function(mx, name), OPS[name]
    params = {**params, **({"lazy_update": lazy} if name in LAZILY else {})}
    weight = mx.nd.ones(BIG).tostype(stype)
    states = states_for(name, weight, stype)

    def step(i: int) -> None:
        ids = np.arange(i, i + 70 + i)  # 70 … 79 rows: one capacity
        grad = mx.nd.sparse.row_sparse_array((np.ones((len(ids), 16), "float32"), ids), shape=BIG)
        fn(weight, grad, *states, out=weight, lr=0.1 / (i + 1), **params)

    for i in range(3):
        step(i)
    large = [weight, *(s for s in states if s.shape == BIG)]
    before = [pointer(x) for x in large]
    with compiles() as counted:
        for i in range(3, 9):
            step(i)
    assert [pointer(x) for x in large] == before
    assert counted.n == 0


def test_a_weight_that_others_hold_is_not_overwritten() -> None:
    weight = mx.nd.ones(BIG).tostype("row_sparse")
    for _ in range(2):
        mx.nd.sgd_update(weight, rows([1], shape=BIG), out=weight, lr=0.1)
    held, value = weight._data, weight.asnumpy().copy()
    mx.nd.sgd_update(weight, rows([1], shape=BIG), out=weight, lr=0.1)
    np.testing.assert_array_equal(np.asarray(held.data), value)
    assert (weight.asnumpy()[1] != value[1]).any()


@pytest.mark.parametrize("lazy", [True, False])
def test_stored_rows_of_a_part_are_updated_in_place(lazy: bool) -> None:
    """A weight of which half of the rows are stored, all of the gradient's among them."""
    shape = (1 << 14, 16)
    weight = mx.nd.sparse.row_sparse_array((np.ones((1 << 13, 16), "float32"), np.arange(0, 1 << 14, 2)), shape=shape)
    mom = mx.nd.sparse.zeros("row_sparse", shape)

    def step(i: int) -> None:
        grad = mx.nd.sparse.row_sparse_array((np.ones((60, 16), "float32"), np.arange(i, i + 60) * 2), shape=shape)
        mx.nd.sgd_mom_update(weight, grad, mom, out=weight, lr=0.1 * i, momentum=0.9, lazy_update=lazy)

    for i in range(3):
        step(i)
    before = pointer(weight)
    with compiles() as counted:
        step(0)
        step(1)
    assert pointer(weight) == before
    assert counted.n == 0 or not lazy  # rows of the momentum are added at times


def test_no_second_table() -> None:
    """What a step leaves and what it needs meanwhile is small against the table."""
    updater = mx.optimizer.get_updater(mx.optimizer.Adam())
    weight = mx.nd.ones(BIG).tostype("row_sparse")
    for i in range(3):
        updater(0, rows([i, i + 1], shape=BIG), weight)
    gc.collect()
    before = sum(x.nbytes for x in jax.live_arrays())
    for i in range(3):
        updater(0, rows([i, i + 1], shape=BIG), weight)
    gc.collect()
    assert abs(sum(x.nbytes for x in jax.live_arrays()) - before) < 10_000


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("name", LAZILY)
def test_temporary_memory(name: str, everywhere: bool) -> None:
    from symjax.lowering import registry
    from symjax.sparse import RowSparse
    from symjax.sparse.rules import apply

    found = registry.get(name)
    params = found.params.parse({"lr": "0.1", "lazy_update": str(not everywhere)}, name)
    table = jax.ShapeDtypeStruct(BIG, "float32")
    grad = RowSparse(jax.ShapeDtypeStruct((64, BIG[1]), "float32"), jax.ShapeDtypeStruct((64,), "int32"), BIG)

    def step(tables: list[Any], grad: RowSparse) -> Any:
        return apply(found, params, (tables[0], grad, *tables[1:]), None, {})

    compiled = jax.jit(step, donate_argnums=0).lower([table] * (OPS[name][0] + 1), grad).compile()
    memory: Any = compiled.memory_analysis()
    # an update of all rows makes the gradient dense
    assert memory.temp_size_in_bytes < BIG[0] * BIG[1] * 4 * (1.1 if everywhere else 0.1)
    assert memory.alias_size_in_bytes >= BIG[0] * BIG[1] * 4 * (OPS[name][0] + 1)
