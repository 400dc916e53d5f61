"""`mx.kv` against what MXNet's key-value store was recorded to do, and what it leaves undefined."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from tests.kvstore_cases import CASES, W, ids, rows, rows_of, sparse_zeros, store, told

GOLDEN = json.loads((Path(__file__).parent / "golden" / "kvstore.json").read_text())


def agree(got: Any, want: Any) -> bool:
    """Whether two results are equal: numbers to seven digits, an error where the class is one of those raised."""
    if isinstance(want, dict) and "raises" in want:
        return want["raises"][0] in got["raises"]
    if isinstance(want, dict):
        return got.keys() == want.keys() and all(agree(got[k], want[k]) for k in want)
    if isinstance(want, list):
        return len(got) == len(want) and all(agree(a, b) for a, b in zip(got, want, strict=True))
    if isinstance(want, float):
        return math.isclose(got, want, rel_tol=1e-6)
    return type(got) is type(want) and got == want


@pytest.mark.parametrize("case", CASES)
def test_as_mxnet(case: str) -> None:
    got, want = json.loads(json.dumps(told(CASES[case](mx)))), GOLDEN[case]
    assert agree(got, want), f"\ngot  {got}\nwant {want}"


def test_every_record_has_a_case() -> None:
    assert set(GOLDEN) == set(CASES)


def test_names() -> None:
    assert mx.kv is mx.kvstore is importlib.import_module("symjax.kvstore")
    assert {"KVStore", "KVStoreBase", "KVStoreServer", "create"} <= set(dir(mx.kv))
    assert isinstance(mx.kv.create(), mx.kv.KVStoreBase)


@pytest.mark.parametrize("name", ["horovod", "byteps"])
def test_plug_ins_are_refused_with_the_way_there_is(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"kvstore '{name}' is not supported.*dist_sync.*initialize"):
        mx.kv.create(name)


def test_an_unknown_store_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no kvstore 'devise'.*Did you mean 'device'"):
        mx.kv.create("devise")


def test_messages() -> None:
    kv = store(mx)
    with pytest.raises(mx.MXNetError, match=r"key ww doesn't exist\. Did you init\? Did you mean 'w'"):
        kv.pull("ww", out=mx.nd.zeros((5, 2)))
    with pytest.raises(mx.MXNetError, match="duplicate init of key w"):
        kv.init("w", mx.nd.ones(2))
    with pytest.raises(AssertionError, match=r"inconsistent types of keys.*Mixed key types"):
        kv.init(["x", 3], [mx.nd.ones(2)] * 2)
    with pytest.raises(TypeError, match=r"a csr value cannot be pushed.*tostype"):
        kv.push("w", mx.nd.ones((5, 2)).tostype("csr"))
    with pytest.raises(ValueError, match=r"key d: values of shapes \(5, 2\) and \(1,\) cannot be summed"):
        kv.push("d", [mx.nd.ones((5, 2)), mx.nd.ones(1)])
    with pytest.raises(ValueError, match=r"key d: operands shape mismatch.*\(5, 2\).*\(3, 3\)"):
        kv.pull("d", out=mx.nd.zeros((3, 3)))
    with pytest.raises(TypeError, match=r"out has storage type default, row_sparse is expected; use pull"):
        kv.row_sparse_pull("w", out=mx.nd.zeros((5, 2)), row_ids=ids(mx, 1))
    with pytest.raises(TypeError, match=r"expected an Optimizer, got str; mx\.optimizer\.create"):
        kv.set_optimizer("sgd")
    with pytest.raises(NotImplementedError, match="Gradient compression is not supported"):
        kv.set_gradient_compression({"type": "2bit"})


@pytest.mark.parametrize("bad", [5, -1])
def test_rows_out_of_range_are_refused(bad: int) -> None:
    """MXNet reads what lies beside the table."""
    with pytest.raises(mx.MXNetError, match=rf"row {bad} is not inside of 5 rows"):
        rows_of(mx, store(mx), "w", 1, bad)


def test_a_pushed_array_stays_the_callers() -> None:
    """In MXNet writing to an array after it was pushed changes the store."""
    kv, value, out = store(mx), mx.nd.ones((5, 2)), mx.nd.zeros((5, 2))
    kv.push("d", value)
    value[:] = 9
    kv.pull("d", out=out)
    np.testing.assert_array_equal(out.asnumpy(), np.ones((5, 2)))


def test_errors_of_an_updater_arrive() -> None:
    """MXNet prints them and goes on."""
    kv = store(mx)

    def broken(key: Any, pushed: Any, stored: Any) -> None:
        raise LookupError("no rate for this key")

    kv._set_updater(broken)
    with pytest.raises(LookupError, match="no rate"):
        kv.push("d", mx.nd.ones((5, 2)))


def test_nothing_is_recorded() -> None:
    kv, x = store(mx), mx.nd.ones((5, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
        kv.push("d", [y, y])
        assert mx.autograd.is_recording()
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), np.full((5, 2), 2.0))


def test_values_go_to_the_device_that_asks() -> None:
    kv, out = store(mx), mx.nd.zeros((5, 2), ctx=mx.cpu(0))
    kv.push("d", [mx.nd.ones((5, 2), ctx=mx.cpu(0)), mx.nd.ones((5, 2), ctx=mx.cpu(0))])
    kv.pull("d", out=out)
    assert out.context == mx.cpu(0) and out.asnumpy().sum() == 20


def test_a_loop_that_pulls_rows_and_pushes_row_gradients() -> None:
    """The loop of a linear model on sparse data: pull the rows of a batch, push the gradient of those."""
    kv, rng = mx.kv.create("device"), np.random.default_rng(0)
    n, truth = 400, rng.standard_normal((400, 1)).astype("float32")
    kv.init("weight", mx.nd.zeros((n, 1)).tostype("row_sparse"))
    weight = mx.nd.sparse.zeros("row_sparse", (n, 1))
    losses = []
    for _ in range(200):
        cols = np.sort(rng.choice(n, 40, replace=False))
        x = rng.standard_normal((64, 40)).astype("float32")
        kv.row_sparse_pull("weight", out=weight, row_ids=mx.nd.array(cols, dtype="int64"))
        assert weight.indices.asnumpy().tolist() == cols.tolist()
        w = weight.data.asnumpy()
        error = x @ (w - truth[cols])
        losses.append(float((error**2).mean()))
        new = mx.nd.sparse.row_sparse_array((w - 0.3 * x.T @ error / 64, cols), shape=(n, 1))
        old = mx.nd.sparse.zeros("row_sparse", (n, 1))
        kv.row_sparse_pull("weight", out=old, row_ids=mx.nd.array(np.arange(n), dtype="int64"))
        kv.push("weight", old + new - weight)
    assert np.mean(losses[-10:]) < 0.1 * np.mean(losses[:10])


def test_rows_of_a_partly_stored_value() -> None:
    kv, out = mx.kv.create(), sparse_zeros(mx)
    kv.init("p", rows(mx, [1, 3], 2.0))
    kv.row_sparse_pull("p", out=out, row_ids=ids(mx, 3, 0))
    assert told(out) == {"indices": [0, 3], "data": [[0.0, 0.0], [2.0, 2.0]]}
    assert np.array_equal(rows_of(mx, store(mx), "w", 0, 1, 2, 3, 4).asnumpy(), W)
