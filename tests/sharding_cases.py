"""Cases of sharded tables, for eight devices: run by `test_sparse_sharding` in a process that has as many.

`python -m tests.sharding_cases` runs all and prints {case: traceback or ""} as JSON, last.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import symjax as mx
from symjax.optimizer._base import run
from symjax.sparse import RowSparse, row_sparse_from_numpy, sharding, value_and_grad
from tests.compiles import compiles
from tests.eight_devices import cases_in, run_cases

V, D, BATCH, FIELDS = 1003, 6, 16, 3
WEIGHT = np.random.default_rng(0).standard_normal((V, D)).astype("float32")


def layouts() -> Iterator[tuple[Mesh, Any, Any]]:
    """(mesh, axes of the rows, axes of the batch): one axis, two axes, and the batch over the same or other devices."""
    line = Mesh(np.array(jax.devices()), ("rows",))
    grid = jax.make_mesh((2, 4), ("data", "rows"), axis_types=(AxisType.Auto,) * 2)
    yield line, None, None
    yield line, "rows", "rows"
    yield grid, "rows", None
    yield grid, "rows", "data"
    yield grid, ("data", "rows"), "data"
    yield grid, None, ("rows", "data")
    yield jax.make_mesh((8,), ("rows",), axis_types=(AxisType.Explicit,)), "rows", "rows"


def draw(seed: int, *shape: int, n: int = V) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n, shape)


def on(mesh: Mesh, batch: Any, *arrays: Any) -> list[Any]:
    spec = PartitionSpec(batch) if batch else PartitionSpec()
    return [jax.device_put(a, NamedSharding(mesh, spec)) for a in arrays]


# ---- lookups


def case_lookup_reads_the_rows() -> None:
    ids = draw(1, BATCH, FIELDS)
    for mesh, axes, batch in layouts():
        table = sharding.shard_table(WEIGHT, mesh, axes, batch=batch)
        assert table.shape == (V, D)
        assert all(s.data.nbytes * table.num_blocks < WEIGHT.nbytes * 1.02 for s in table.data.addressable_shards)
        np.testing.assert_array_equal(table.todense(), WEIGHT)
        for given in (ids, ids.astype("float32"), *on(mesh, batch, ids)):
            np.testing.assert_array_equal(sharding.lookup(table, given), WEIGHT[ids])
            np.testing.assert_array_equal(jax.jit(sharding.lookup)(table, given), WEIGHT[ids])


def case_other_ranks_and_sizes() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    for shape in ((8,), (5,), (1, 4), (17, 2, 3)):
        rows = np.random.default_rng(2).standard_normal(shape).astype("float16")
        table = sharding.shard_table(rows, mesh)
        for ids in (np.int64(0), draw(3, 4, n=shape[0]), np.zeros((0, 2), "int32")):
            np.testing.assert_array_equal(sharding.lookup(table, ids), rows[ids])


def case_ids_outside_read_zeros() -> None:
    for mesh, axes, batch in layouts():
        table = sharding.shard_table(WEIGHT, mesh, axes, batch=batch)
        ids = np.array([0, V - 1, V, V + 1, V + 500, -1, -V, 3] * 2)
        want = np.where(((ids >= 0) & (ids < V))[:, None], WEIGHT[ids % V], 0)
        np.testing.assert_array_equal(sharding.lookup(table, ids), want)


def case_table_from_a_function() -> None:
    mesh, asked = Mesh(np.array(jax.devices()), ("rows",)), []

    def rows(start: int, stop: int) -> np.ndarray:
        asked.append((start, stop))
        return WEIGHT[start:stop]

    table = sharding.shard_table(rows, mesh, shape=(V, D))
    assert sorted(asked)[:2] == [(0, 126), (126, 252)] and max(b - a for a, b in asked) == 126
    np.testing.assert_array_equal(table.todense(), WEIGHT)
    np.testing.assert_array_equal(sharding.shard_table(row_sparse_from_numpy(WEIGHT), mesh).todense(), WEIGHT)
    np.testing.assert_array_equal(sharding.shard_table(mx.nd.array(WEIGHT), mesh).todense(), WEIGHT)


def case_pull_gives_distinct_rows_in_order() -> None:
    every = list(layouts())
    for mesh, axes, batch in (every[i] for i in (0, 3, 6)):
        table = sharding.shard_table(WEIGHT, mesh, axes, batch=batch)
        ids = [[7, 3, 7], [1002, 3, V]]
        pulled = sharding.pull(table, ids)
        assert pulled.host().indices.tolist() == [3, 7, 1002] and pulled.capacity == 8
        np.testing.assert_array_equal(pulled.host().data, WEIGHT[[3, 7, 1002]])
        traced = jax.jit(sharding.pull)(table, jnp.array(ids))
        assert traced.host().indices.tolist() == [3, 7, 1002] and traced.capacity == 6
        np.testing.assert_array_equal(traced.host().data, WEIGHT[[3, 7, 1002]])


# ---- gradients


def case_gradients_of_several_lookups_are_merged() -> None:
    ids, more = draw(4, BATCH, FIELDS), draw(5, BATCH)
    more[:2] = ids[0, 0]
    scale = np.random.default_rng(6).standard_normal(D).astype("float32")

    def dense(w: Any, scale: Any) -> Any:
        return jnp.sum(jnp.sin(w[ids] * scale)) + jnp.sum(w[more] ** 2)

    value, want = jax.value_and_grad(dense, argnums=(0, 1))(jnp.asarray(WEIGHT), scale)
    every = list(layouts())
    for mesh, axes, batch in (every[i] for i in (0, 3, 6)):
        table = sharding.shard_table(WEIGHT, mesh, axes, batch=batch)

        def f(params: Any, ids: Any, more: Any) -> Any:
            rows = sharding.lookup(params["table"], ids)
            twice = sharding.lookup(params["table"], more)
            return jnp.sum(jnp.sin(rows * params["scale"])) + jnp.sum(twice**2), rows

        given = {"table": table, "scale": jnp.asarray(scale)}
        both = on(mesh, batch, ids, more)
        (got, aux), grads = jax.jit(sharding.value_and_grad(f, has_aux=True))(given, *both)
        np.testing.assert_allclose(got, value, rtol=1e-5)
        np.testing.assert_array_equal(aux, WEIGHT[ids])
        np.testing.assert_allclose(grads["scale"], want[1], rtol=1e-4, atol=1e-5)
        assert isinstance(grads["table"], RowSparse)
        assert grads["table"].host().indices.tolist() == np.unique([*ids.ravel(), *more]).tolist()
        np.testing.assert_allclose(grads["table"].todense(), want[0], rtol=1e-5, atol=1e-6)


def case_ids_outside_have_no_gradient() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    table = sharding.shard_table(WEIGHT, mesh)
    grad = sharding.value_and_grad(lambda t, i: sharding.lookup(t, i).sum())(table, np.array([5, V, -3, 5]))[1]
    assert grad.host().indices.tolist() == [5]
    np.testing.assert_array_equal(grad.data, [[2.0] * D, [0] * D, [0] * D, [0] * D])
    none = sharding.value_and_grad(lambda p: p["x"] * 2)({"t": table, "x": 3.0})[1]
    assert none["t"].host().indices.tolist() == [] and none["t"].shape == (V, D)


def case_functions_of_pulled_rows() -> None:
    """A factorisation machine's squares: a function of rows that only pulled rows have."""
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    x, v = mx.sym.Variable("x", stype="csr"), mx.sym.Variable("v", stype="row_sparse")
    net = mx.sym.sum(mx.sym.square(mx.sym.dot(x, v))) - mx.sym.sum(mx.sym.dot(mx.sym.square(x), mx.sym.square(v)))
    dense = np.where(np.random.default_rng(7).random((BATCH, V)) < 0.01, 1.5, 0).astype("float32")
    (data,) = on(mesh, None, mx.nd.array(dense).tostype("csr")._data)
    fn = mx.lower(net, {"v": WEIGHT}, inputs=["x"]).fn
    table = sharding.shard_table(WEIGHT, mesh)
    rows = sharding.pull(table, data.indices)
    value, grad = jax.value_and_grad(lambda d: fn({"v": rows.with_data(d)}, {}, x=data)[0][0].sum())(rows.data)

    def plain(w: Any) -> Any:
        return jnp.sum((dense @ w) ** 2) - jnp.sum((dense**2) @ (w**2))

    want = jax.value_and_grad(plain)(jnp.asarray(WEIGHT))
    np.testing.assert_allclose(value, want[0], rtol=1e-4)
    np.testing.assert_allclose(rows.with_data(grad).todense(), want[1], rtol=1e-4, atol=1e-4)
    by_name = value_and_grad(lambda p, x: fn(p, {}, x=x)[0][0].sum(), tables=["v"])
    value, grads = jax.jit(by_name)({"v": table}, data)
    np.testing.assert_allclose(value, want[0], rtol=1e-4)
    np.testing.assert_allclose(grads["v"].todense(), want[1], rtol=1e-4, atol=1e-4)


# ---- training


@functools.cache
def network(v: int = V, d: int = D) -> Callable[..., Any]:
    rows = mx.sym.Embedding(mx.sym.Variable("ids"), mx.sym.Variable("embed_weight", stype="row_sparse"), input_dim=v,
                            output_dim=d, sparse_grad=True)  # fmt: skip
    score = mx.sym.FullyConnected(mx.sym.Activation(rows, act_type="tanh"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(score, mx.sym.Variable("label"))
    params = {"embed_weight": mx.nd.zeros((v, d)), "fc_weight": mx.nd.zeros((1, d * FIELDS)), "fc_bias": mx.nd.zeros(1)}
    return mx.lower(net, params, inputs=["ids", "label"]).fn


def loss_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    def loss(params: Any, ids: Any, label: Any) -> Any:
        (out,), _ = fn(params, {}, ids=ids)
        return jnp.mean((out - label) ** 2)

    return loss


def sharded_step(fn: Callable[..., Any], rule: sharding.Rule) -> Any:
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, states: Any, ids: Any, label: Any, t: Any) -> Any:
        value, grads = sharding.value_and_grad(loss_of(fn))(params, ids, label)
        table, states = sharding.update(params["embed_weight"], states, grads["embed_weight"], rule, t=t)
        rest = {k: params[k] - 0.1 * grads[k] for k in params if k != "embed_weight"}
        return {"embed_weight": table, **rest}, states, value

    return step


def dense_part() -> dict[str, Any]:
    rng = np.random.default_rng(8)
    return {"fc_weight": jnp.asarray(rng.standard_normal((1, D * FIELDS)), jnp.float32), "fc_bias": jnp.zeros(1)}


def batches(steps: int = 4) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(draw(10 + i, BATCH, FIELDS, n=60).astype("float32"), np.sin(np.arange(BATCH) + i)[:, None].astype("f"))
            for i in range(steps)]  # fmt: skip


RULES: dict[str, tuple[sharding.Rule, str, dict[str, Any], tuple[tuple[int, ...], ...]]] = {
    "sgd": (sharding.sgd(0.3, wd=0.01, clip_gradient=0.2), "sgd_update",
            {"lr": 0.3, "wd": 0.01, "clip_gradient": 0.2}, ()),
    "momentum": (sharding.sgd(0.3, momentum=0.9, rescale_grad=2.0), "sgd_mom_update",
                 {"lr": 0.3, "momentum": 0.9, "rescale_grad": 2.0}, ((V, D),)),
    "adam": (sharding.adam(0.05, beta1=0.8, wd=0.01), "adam_update", {"lr": 0.05, "beta1": 0.8, "wd": 0.01},
             ((V, D), (V, D))),
    "adagrad": (sharding.adagrad(0.1), "_sparse_adagrad_update", {"lr": 0.1, "epsilon": 1e-7}, ((V, D),)),
    "ftrl": (sharding.ftrl(0.2, lamda1=0.02, wd=0.01), "ftrl_update", {"lr": 0.2, "lamda1": 0.02, "wd": 0.01},
             ((V, D), (V, D))),
    "group_adagrad": (sharding.group_adagrad(0.1), "_contrib_group_adagrad_update", {"lr": 0.1, "epsilon": 1e-5},
                      ((V, 1),)),
}  # fmt: skip


@functools.cache
def dense_gradients() -> Callable[..., Any]:
    return jax.jit(jax.value_and_grad(loss_of(network())))


def one_device(rule: str) -> tuple[list[float], np.ndarray, list[np.ndarray], dict[str, Any]]:
    """The same training with a dense table on one device: a dense gradient, rows updated by the op on dense arrays."""
    _, op, hyper, shapes = RULES[rule]
    weight, rest = WEIGHT.copy(), dense_part()
    states, losses = [np.zeros(s, "float32") for s in shapes], []
    grad_of = dense_gradients()
    for t, (ids, label) in enumerate(batches(), 1):
        value, grads = grad_of({"embed_weight": jnp.asarray(weight), **rest}, ids, label)
        rows = np.unique(ids.astype(int))
        used = dict(hyper)
        if rule == "adam":
            used["lr"] *= np.sqrt(1 - 0.999**t) / (1 - 0.8**t)
        arrays = [mx.nd.array(x[rows]) for x in (weight, np.asarray(grads["embed_weight"]), *states)]
        run(op, arrays, used)
        for array, new in zip([weight, *states], [arrays[0], *arrays[2:]], strict=True):
            array[rows] = new.asnumpy()
        rest = {k: v - 0.1 * grads[k] for k, v in rest.items()}
        losses.append(float(value))
    return losses, weight, states, rest


def train(rule: str, layout: tuple[Mesh, Any, Any]) -> tuple[list[float], Any, Any]:
    mesh, axes, batch = layout
    table = sharding.shard_table(WEIGHT, mesh, axes, batch=batch)
    states, params, losses = sharding.init_states(table, RULES[rule][0]), {"embed_weight": table, **dense_part()}, []
    step = sharded_step(network(), RULES[rule][0])
    for t, (ids, label) in enumerate(batches(), 1):
        params, states, value = step(params, states, *on(mesh, batch, ids, label), t)
        losses.append(float(value))
    return losses, params, states


def _same_as_one_device(rule: str, chosen: Sequence[int]) -> None:
    losses, weight, states, rest = one_device(rule)
    every = list(layouts())
    for layout in (every[i] for i in chosen):
        got, params, kept = train(rule, layout)
        np.testing.assert_allclose(got, losses, rtol=1e-5)
        np.testing.assert_allclose(params["embed_weight"].todense(), weight, rtol=1e-4, atol=1e-6)
        untouched = np.setdiff1d(np.arange(V), np.concatenate([b[0].ravel() for b in batches()]).astype(int))
        np.testing.assert_array_equal(np.asarray(params["embed_weight"].todense())[untouched], WEIGHT[untouched])
        for mine, want in zip(kept, states, strict=True):
            assert mine.shape == want.shape
            np.testing.assert_allclose(mine.todense(), want, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(params["fc_weight"], rest["fc_weight"], rtol=1e-4, atol=1e-6)


def case_sgd_trains_as_on_one_device() -> None:
    _same_as_one_device("sgd", (3,))


def case_momentum_trains_as_on_one_device() -> None:
    _same_as_one_device("momentum", (0,))


def case_adam_trains_as_on_one_device() -> None:
    _same_as_one_device("adam", (1,))


def case_adagrad_trains_as_on_one_device() -> None:
    _same_as_one_device("adagrad", (0,))


def case_ftrl_trains_as_on_one_device() -> None:
    _same_as_one_device("ftrl", (1,))


def case_group_adagrad_trains_as_on_one_device() -> None:
    _same_as_one_device("group_adagrad", (4,))


def case_lower_takes_a_table() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    table = sharding.shard_table(WEIGHT, mesh)
    found = mx.sym.Embedding(mx.sym.Variable("ids"), mx.sym.Variable("w", stype="row_sparse"), input_dim=V,
                             output_dim=D, sparse_grad=True)  # fmt: skip
    low = mx.lower(mx.sym.FullyConnected(found, num_hidden=2, name="fc"), {"w": table}, inputs=["ids"], ids=(4, 2))
    assert low.params["w"] is table
    assert {k: v.shape for k, v in low.params.items()} == {"w": (V, D), "fc_weight": (2, 2 * D), "fc_bias": (2,)}
    assert low.fn(low.params, low.aux, ids=draw(1, 4, 2))[0][0].shape == (4, 2)


def case_csr_products_train_too() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    net = mx.sym.dot(mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w", stype="row_sparse"))
    dense = np.where(np.random.default_rng(9).random((BATCH, V)) < 0.01, 1.5, 0).astype("float32")
    (data,) = on(mesh, None, mx.nd.array(dense).tostype("csr")._data)
    fn = mx.lower(net, {"w": WEIGHT}, inputs=["x"]).fn
    table = sharding.shard_table(WEIGHT, mesh)
    run = jax.jit(sharding.value_and_grad(lambda w, x: jnp.sum(jnp.sin(fn({"w": w}, {}, x=x)[0][0]))))
    value, grad = run(table, data)
    want = jax.value_and_grad(lambda w: jnp.sum(jnp.sin(dense @ w)))(jnp.asarray(WEIGHT))
    np.testing.assert_allclose(value, want[0], rtol=1e-4)
    assert grad.host().indices.tolist() == np.unique(dense.nonzero()[1]).tolist()
    np.testing.assert_allclose(grad.todense(), want[1], rtol=1e-4, atol=1e-5)


# ---- cost


_COLLECTIVE = re.compile(r"= (.*?) (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")
_SHAPE = re.compile(r"\b(?:pred|[sufb]\w*?)\[([\d,]*)\]")


def sizes(text: str) -> list[int]:
    """The numbers of elements of all arrays that a text of HLO names."""
    return [int(np.prod([int(d) for d in dims.split(",") if d], initial=1)) for dims in _SHAPE.findall(text)]


def case_nothing_of_the_tables_size_is_made_or_moved() -> None:
    v, d = 100_003, 16
    every = list(layouts())
    for mesh, axes, batch in (every[i] for i in (0, 1, 4)):
        table = sharding.shard_table(np.zeros((v, d), "float32"), mesh, axes, batch=batch)
        rule = sharding.adam(0.05)
        states = sharding.init_states(table, rule)
        params = {"embed_weight": table, "fc_weight": jnp.zeros((1, d * FIELDS)), "fc_bias": jnp.zeros(1)}
        ids, label = on(mesh, batch, draw(11, BATCH, FIELDS, n=v).astype("float32"), np.zeros((BATCH, 1), "float32"))
        step = sharded_step(network(v, d), rule)
        compiled = step.lower(params, states, ids, label, 1).compile()
        text, batch_size = compiled.as_text(), BATCH * FIELDS * d
        shard = table.data.size // table.num_blocks
        assert max(sizes(text)) == shard, "the largest array is a device's own block"
        moved = [max(sizes(m)) for m in _COLLECTIVE.findall(text)]
        assert moved and max(moved) <= batch_size, moved
        memory = compiled.memory_analysis()
        assert memory.temp_size_in_bytes < 16 * batch_size * 4 < shard * 4 / 8, "no copy of a block"
        assert memory.alias_size_in_bytes >= 3 * shard * 4, "table and states are updated in place"


def case_the_trace_holds_no_gradient_of_the_tables_size() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    table = sharding.shard_table(WEIGHT, mesh)
    loss = loss_of(network())
    params, ids, label = {"embed_weight": table, **dense_part()}, *batches(1)[0]
    trace = jax.make_jaxpr(sharding.value_and_grad(loss))(params, ids, label).jaxpr
    made = list(shapes_made(trace))
    assert (BATCH, FIELDS, D) in made
    assert max(s[0] for s in made if s) <= BATCH * FIELDS < V


def shapes_made(jaxpr: Any) -> Iterator[tuple[int, ...]]:
    """The shapes of all results in a trace and in those inside of it."""
    for eqn in jaxpr.eqns:
        yield from (v.aval.shape for v in eqn.outvars)
        for inner in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from shapes_made(inner)


def case_other_rates_do_not_compile_again() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    table, rule = sharding.shard_table(WEIGHT, mesh), sharding.adam()
    states = sharding.init_states(table, rule)
    grad = sharding.pull(table, [3, 9])
    sharding.update(table, states, grad, rule, lr=0.1, t=1)
    with compiles() as n:
        sharding.update(table, states, grad, rule, lr=0.2, t=2)
        sharding.update(table, states, sharding.pull(table, [4, 9, 1000]), rule, lr=0.3, t=3)
    assert n.n == 0


def case_export_for_every_platform() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    table, rule = sharding.shard_table(WEIGHT, mesh, batch="rows"), sharding.adam()
    states = sharding.init_states(table, rule)

    def step(data: Any, states: Any, ids: Any) -> Any:
        full = table.with_data(data)
        grad = sharding.value_and_grad(lambda t: jnp.sum(sharding.lookup(t, ids) ** 2))(full)[1]
        new, kept = sharding.update(full, [full.with_data(s) for s in states], grad, rule, t=3)
        return new.data, [s.data for s in kept]

    args = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
                        (table.data, [s.data for s in states], on(mesh, "rows", draw(1, BATCH))[0]))  # fmt: skip
    exported = jax.export.export(jax.jit(step), platforms=("cpu", "cuda", "rocm", "tpu"))(*args)
    assert exported.nr_devices == 8


# ---- errors


def case_errors() -> None:
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    table = sharding.shard_table(WEIGHT, mesh, batch="rows")
    rule = sharding.adagrad()
    states = sharding.init_states(table, rule)
    grad = sharding.pull(table, [1])
    few = mx.nd.sparse.row_sparse_array((WEIGHT[:2], [1, 5]), shape=(V, D))
    with pytest.raises(TypeError, match=r"stores some rows only.*todense"):
        sharding.shard_table(few, mesh)
    with pytest.raises(TypeError, match="'cols' is no axis of the mesh; its axes are rows"):
        sharding.shard_table(WEIGHT, mesh, "cols")
    with pytest.raises(ValueError, match="at least one axis"):
        sharding.shard_table(np.float32(1), mesh)
    with pytest.raises(ValueError, match=r"rows 0 to 126 .*expected \(126, 6\), got \(126, 5\)"):
        sharding.shard_table(lambda a, b: WEIGHT[a:b, :5], mesh, shape=(V, D))
    with pytest.raises(ValueError, match=r"ids of shape \(6,\) cannot be divided over 8 devices.*with_batch"):
        sharding.lookup(table, np.arange(6))
    with pytest.raises(TypeError, match="row_sparse gradient"):
        sharding.update(table, states, jnp.asarray(WEIGHT), rule)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="1 states expected, got 0"):
        sharding.update(table, (), grad, rule)
    with pytest.raises(ValueError, match=r"gradient has shape \(1003, 5\), the table \(1003, 6\)"):
        sharding.update(table, states, grad.with_data(grad.data[:, :5]), rule)
    _errors_of_gradients(table)


def _errors_of_gradients(table: sharding.ShardedTable) -> None:
    with pytest.raises(TypeError, match=r"other functions of it are not supported.*sharding\.pull"):
        sharding.value_and_grad(lambda t: t.todense().sum())(table)
    with pytest.raises(TypeError, match=r"otherwise than by looking rows up.*sharding\.pull"):
        jax.jit(lambda t: t.todense())(table)

    def scanned(t: Any, ids: Any) -> Any:
        return jax.lax.scan(lambda s, i: (s + sharding.lookup(t, i).sum(), None), 0.0, ids)[0]

    with pytest.raises(TypeError, match=r"inside of a scan, cond, jit or grad.*sharding\.pull"):
        jax.jit(sharding.value_and_grad(scanned))(table, jnp.asarray(draw(1, 2, 8)))


CASES = cases_in(globals())

if __name__ == "__main__":
    run_cases(CASES)
