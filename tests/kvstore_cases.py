"""Programs on key-value stores, run by MXNet (`oracle/record_kvstore.py`) and by symjax (`test_kvstore.py`)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

W = np.arange(10.0).reshape(5, 2).astype("float32")


def told(value: Any) -> Any:
    """Arrays as lists; sparse ones as their parts, so that what is stored counts; anything else as it is."""
    if isinstance(value, (list, tuple)):
        return [told(v) for v in value]
    if getattr(value, "stype", "default") == "row_sparse":
        return {"indices": value.indices.asnumpy().tolist(), "data": value.data.asnumpy().tolist()}
    if hasattr(value, "asnumpy"):
        return [np.dtype(value.dtype).name, value.asnumpy().tolist()]
    return value


def fails(call: Callable[[], Any], mx: Any) -> dict[str, list[str]]:
    """What a call raises: its class and the classes above it, by name."""
    try:
        call()
        mx.nd.waitall()
    except Exception as e:
        return {"raises": [c.__name__ for c in type(e).__mro__]}
    return {"raises": ["nothing"]}


def rows(mx: Any, ids: list[int], value: float = 1.0) -> Any:
    return mx.nd.sparse.row_sparse_array((np.full((len(ids), 2), value, "float32"), np.array(ids)), shape=(5, 2))


def ids(mx: Any, *values: int, dtype: str = "int64") -> Any:
    return mx.nd.array(values, dtype=dtype)


def sparse_zeros(mx: Any) -> Any:
    return mx.nd.sparse.zeros("row_sparse", (5, 2))


def store(mx: Any, kind: str = "local") -> Any:
    kv = mx.kv.create(kind)
    kv.init("w", mx.nd.array(W).tostype("row_sparse"))
    kv.init("d", mx.nd.array(W))
    return kv


def pulled(mx: Any, kv: Any, key: Any, shape: tuple[int, ...] = (5, 2), dtype: str = "float32") -> Any:
    out = mx.nd.zeros(shape, dtype=dtype)
    kv.pull(key, out=out)
    return out


def rows_of(mx: Any, kv: Any, key: Any, *wanted: int) -> Any:
    out = sparse_zeros(mx)
    kv.row_sparse_pull(key, out=out, row_ids=ids(mx, *wanted))
    return out


# ---- making one


def case_types(mx: Any) -> Any:
    made = [mx.kv.create(n) for n in ("local", "device", "LOCAL", "local_update_cpu", "local_allreduce_cpu",
                                      "local_allreduce_device")]  # fmt: skip
    return [(kv.type, kv.rank, kv.num_workers, kv.is_capable("optimizer")) for kv in (*made, mx.kv.create())]


def case_create_needs_text(mx: Any) -> Any:
    return fails(lambda: mx.kv.create(3), mx), fails(lambda: mx.kv.create().is_capable("x"), mx)


def case_registered_class(mx: Any) -> Any:
    class OwnStore(mx.kvstore.KVStoreBase):
        pass

    assert mx.kvstore.KVStoreBase.register(OwnStore) is OwnStore
    made = mx.kv.create("ownstore")
    calls = [lambda: made.pushpull("a", 1), lambda: made.broadcast("a", 1, 2), lambda: made.set_optimizer(1),
             lambda: made.is_capable("x"), lambda: made.type, lambda: made.rank, lambda: made.num_workers]  # fmt: skip
    return type(made).__name__, [fails(c, mx) for c in calls], fails(lambda: OwnStore.register(3), mx)


# ---- dense values


def case_push_sums_and_replaces(mx: Any) -> Any:
    kv = mx.kv.create()
    kv.init(3, mx.nd.ones(2))
    kv.push(3, [mx.nd.ones(2) * 2, mx.nd.ones(2) * 3])
    first = pulled(mx, kv, 3, (2,))
    kv.push([3, 3], [mx.nd.ones(2), mx.nd.ones(2) * 7])
    second = pulled(mx, kv, 3, (2,))
    kv.push(3, [])
    outs = [mx.nd.zeros(2), mx.nd.zeros(2)]
    kv.pull(3, out=outs)
    return first, second, outs


def case_lists_of_keys(mx: Any) -> Any:
    kv = mx.kv.create()
    kv.init(["a", "b"], [mx.nd.ones(2), mx.nd.zeros(3)])
    kv.init(("c", "e"), (mx.nd.ones(2), [mx.nd.ones(1)]))
    kv.push(["a", "b"], [[mx.nd.ones(2), mx.nd.ones(2)], mx.nd.ones(3)])
    outs = [[mx.nd.zeros(2), mx.nd.zeros(2)], [mx.nd.zeros(3)]]
    kv.pull(["a", "b"], out=outs)
    return outs, pulled(mx, kv, "e", (1,))


def case_dtypes(mx: Any) -> Any:
    kv = mx.kv.create()
    kv.init("h", mx.nd.ones(2, dtype="float16"))
    kv.push("h", [mx.nd.ones(2, dtype="float16")] * 3)
    kv.init("i", mx.nd.ones(2, dtype="int32"))
    kv.push("i", [mx.nd.ones(2, dtype="int32")] * 3)
    kv.init("m", mx.nd.ones(2))
    kv.push("m", [mx.nd.ones(2), mx.nd.ones(2, dtype="float64") * 3])
    return [pulled(mx, kv, k, (2,), t) for k in "him" for t in ("float16", "float32", "int32")]


def case_values_are_copies(mx: Any) -> Any:
    kv, value, out = mx.kv.create(), mx.nd.ones(2) * 4, mx.nd.zeros(2)
    kv.init(4, value)
    value[:] = 9
    kv.pull(4, out=out)
    out[:] = 77
    return pulled(mx, kv, 4, (2,))


def case_pushpull_and_broadcast(mx: Any) -> Any:
    kv, out, values = mx.kv.create(), mx.nd.zeros(2), [mx.nd.ones(2), mx.nd.ones(2) * 3]
    kv.broadcast("s", mx.nd.ones(2) * 8, out=[out, values[1]])
    first = out.copy(), values[1].copy()
    kv.pushpull("s", values)
    kv.pushpull(["s"], [values[0]], out=[out])
    more = [mx.nd.zeros(2), mx.nd.zeros(2)]
    kv.broadcast(["c", "d"], [mx.nd.ones(2) * 9, mx.nd.ones(2) * 10], out=more)
    return first, values, out, more, fails(lambda: kv.broadcast("s", out, out=out), mx)


def case_errors(mx: Any) -> Any:
    kv, a = mx.kv.create(), mx.nd.zeros((2, 3))
    kv.init("a", a)
    calls = [
        lambda: kv.init("a", a), lambda: kv.init(3, a), lambda: kv.pull("zz", out=a), lambda: kv.push("zz", a),
        lambda: kv.pull("a"), lambda: kv.pull("a", out=mx.nd.zeros((3, 3))), lambda: kv.init(1.5, a),
        lambda: kv.init(["x", "y"], [a]), lambda: kv.init("q", np.ones(3)), lambda: kv.init("q", 3),
        lambda: kv.init(["x", 3], [a, a]), lambda: kv.init("l", [a, a]), lambda: kv.pushpull("new", a, out=a),
        lambda: kv.init(np.int64(3), a), lambda: kv.save_optimizer_states("x"), lambda: kv.load_optimizer_states("x"),
        lambda: kv.set_gradient_compression({"type": "2bit"}),
    ]  # fmt: skip
    return [fails(c, mx) for c in calls]


# ---- updates


def case_updater(mx: Any) -> Any:
    kv, seen = mx.kv.create(), []
    kv.init([4, 3, 9], [mx.nd.ones(2)] * 3)

    def update(key: Any, pushed: Any, stored: Any) -> None:
        seen.append((key, pushed.asnumpy().tolist(), stored.asnumpy().tolist()))
        stored += pushed * 2

    kv._set_updater(update)
    kv.push([9, 4, 3, 9], [mx.nd.ones(2), mx.nd.ones(2) * 2, mx.nd.ones(2) * 3, mx.nd.ones(2) * 4])
    return seen, [pulled(mx, kv, k, (2,)) for k in (3, 4, 9)]


def case_updater_of_strings(mx: Any) -> Any:
    kv, seen = store(mx), []
    kv.init(["z", "a"], [mx.nd.ones(2)] * 2)
    kv._set_updater(lambda k, pushed, stored: seen.append((str(k), pushed.stype, stored.stype)))
    kv.push(["a", "z"], [mx.nd.ones(2)] * 2)
    kv.push("w", [rows(mx, [1]), rows(mx, [2])])
    kv.push("d", rows(mx, [1]))
    return seen


def case_optimizer(mx: Any) -> Any:
    kv, made = mx.kv.create(), []
    kv.init("x", mx.nd.ones(2))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9, wd=0.1))
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            kv.push("x", [mx.nd.ones(2), mx.nd.ones(2)])
            kv.save_optimizer_states(str(Path(folder, "states")))
            kv.load_optimizer_states(str(Path(folder, "states")))
            made.append(pulled(mx, kv, "x", (2,)))
    kv.pushpull("x", mx.nd.ones(2), out=made[0])
    return made


def case_optimizers_on_row_gradients(mx: Any) -> Any:
    opt, made = mx.optimizer, []
    for new in (lambda: opt.SGD(learning_rate=0.1), lambda: opt.SGD(learning_rate=0.1, momentum=0.9, wd=0.1),
                lambda: opt.Adam(learning_rate=0.1), lambda: opt.AdaGrad(learning_rate=0.1), opt.Ftrl,
                lambda: opt.contrib.GroupAdaGrad(learning_rate=0.1)):  # fmt: skip
        kv = store(mx)
        kv.set_optimizer(new())
        kv.push("w", [rows(mx, [1]), rows(mx, [1, 3])])
        kv.push("w", rows(mx, [0]))
        made.append(rows_of(mx, kv, "w", 0, 1, 2, 3, 4))
        if not isinstance(new(), opt.Ftrl):
            kv.push("d", [rows(mx, [1]), rows(mx, [1, 3])])
            made.append(pulled(mx, kv, "d"))
    return made


# ---- rows


def case_row_sparse_pull(mx: Any) -> Any:
    kv = store(mx)
    made = [rows_of(mx, kv, "w", *w) for w in ((3, 1, 3), (0, 4), (4, 3, 2, 1, 0), (2,))]
    for given in (ids(mx, 3, 1, dtype="float32"), ids(mx, 3, 1, dtype="int32"),
                  mx.nd.array([[3, 1], [2, 2]], dtype="int64"), mx.nd.array(np.zeros(0), dtype="int64")):  # fmt: skip
        out = sparse_zeros(mx)
        kv.row_sparse_pull("w", out=out, row_ids=given)
        made.append(out)
    return made


def case_row_sparse_pull_to_lists(mx: Any) -> Any:
    kv, outs, made = store(mx), [sparse_zeros(mx), sparse_zeros(mx)], []
    kv.init("v", mx.nd.array(W * 10).tostype("row_sparse"))
    kv.row_sparse_pull("w", out=outs, row_ids=ids(mx, 2, 1))
    made.append(told(outs))
    kv.row_sparse_pull("w", out=outs, row_ids=[ids(mx, 2, 1), ids(mx, 4, 3)])
    made.append(told(outs))
    kv.row_sparse_pull(["w", "v"], out=outs, row_ids=[ids(mx, 2, 1), ids(mx, 4, 3)])
    made.append(told(outs))
    kv.row_sparse_pull(["w", "v"], out=[[outs[0]], [outs[1]]], row_ids=[[ids(mx, 0)], [ids(mx, 1)]])
    return [*made, told(outs)]


def case_row_sparse_pull_converts(mx: Any) -> Any:
    kv, out = store(mx), mx.nd.sparse.zeros("row_sparse", (5, 2), dtype="float64")
    kv.row_sparse_pull("w", out=out, row_ids=ids(mx, 1))
    return out, np.dtype(out.dtype).name


def case_row_sparse_pull_errors(mx: Any) -> Any:
    kv, out = store(mx), sparse_zeros(mx)
    calls = [
        lambda: kv.row_sparse_pull("d", out=out, row_ids=ids(mx, 1)),
        lambda: kv.row_sparse_pull("w", out=mx.nd.zeros((5, 2)), row_ids=ids(mx, 1)),
        lambda: kv.row_sparse_pull("w", out=out), lambda: kv.row_sparse_pull("w", row_ids=ids(mx, 1)),
        lambda: kv.row_sparse_pull("w", out=out, row_ids=np.array([1])),
        lambda: kv.row_sparse_pull("w", out=out, row_ids=(ids(mx, 1),)),
        lambda: kv.row_sparse_pull("w", out=[out, out, out], row_ids=[ids(mx, 1), ids(mx, 2)]),
        lambda: kv.row_sparse_pull(["w", "w"], out=[out, out], row_ids=ids(mx, 1)),
        lambda: kv.row_sparse_pull("zz", out=out, row_ids=ids(mx, 1)),
        lambda: kv.row_sparse_pull("w", out=mx.nd.sparse.zeros("row_sparse", (4, 2)), row_ids=ids(mx, 1)),
    ]  # fmt: skip
    return [fails(c, mx) for c in calls]


def case_push_rows(mx: Any) -> Any:
    kv, made = store(mx), []
    for value in (rows(mx, [0]), [rows(mx, [0, 2]), rows(mx, [2, 4], 3)], [rows(mx, [0]), mx.nd.ones((5, 2))]):
        kv.push("w", value)
        made.append(rows_of(mx, kv, "w", 0, 1, 2, 3, 4))
    kv.push("d", rows(mx, [1]))
    made.append(pulled(mx, kv, "d"))
    kv.push("d", [mx.nd.ones((5, 2)), rows(mx, [0])])
    made.append(pulled(mx, kv, "d"))
    kv.push("w", mx.nd.ones((5, 2)))
    return made, fails(lambda: rows_of(mx, kv, "w", 1), mx)


def case_pull_of_sparse_values(mx: Any) -> Any:
    kv, made = store(mx), [pulled(mx, store(mx), "w")]
    for key in "wd":
        for ignore in (True, False):
            out = sparse_zeros(mx)
            kv.pull(key, out=out, ignore_sparse=ignore)
            made.append(out)
    out = sparse_zeros(mx)
    kv.pushpull("w", rows(mx, [1]), out=out)
    kv.broadcast("b", rows(mx, [1]), out=out)
    return made, out, pulled(mx, kv, "b")


def case_csr_values(mx: Any) -> Any:
    kv, value = mx.kv.create(), mx.nd.array(W).tostype("csr")
    kv.init("c", value)
    out = mx.nd.sparse.zeros("csr", (5, 2))
    kv.pull("c", out=out)
    before = out.asnumpy().tolist()
    kv.pull("c", out=out, ignore_sparse=False)
    return before, out.asnumpy().tolist(), pulled(mx, kv, "c"), fails(lambda: kv.push("c", value), mx)


CASES = {name.removeprefix("case_"): f for name, f in list(globals().items()) if name.startswith("case_")}
