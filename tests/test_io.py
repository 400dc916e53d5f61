"""`mx.io` against what MXNet gives, and the parts of it that MXNet does not have or does wrong."""

from __future__ import annotations

import doctest
import gc
import importlib
import json
import threading
import typing
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax.lowering.errors import DataFormatError, MXNetError, ParamError, ShapeError
from tests import io_cases

GOLDEN = json.loads((Path(__file__).parent / "golden" / "io.json").read_text())


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def same(have: Any, want: Any) -> None:
    """Equality, of numbers up to what MXNet's reading of decimals loses."""
    if isinstance(want, dict):
        assert have.keys() == want.keys()
        for key in want:
            if key == "data" and want[key] and isinstance(want[key][0], (int, float)):
                np.testing.assert_allclose(have[key], want[key], rtol=2e-7)
            else:
                same(have[key], want[key])
    elif isinstance(want, list):
        assert len(have) == len(want)
        for h, w in zip(have, want, strict=True):
            same(h, w)
    else:
        assert have == want


@pytest.mark.parametrize("name, prefetch", [(name, 4) for name in io_cases.FILES] + [
    (name, 0) for name in ("wraps", "wraps by one", "labels in a file", "csv", "part 1 of 3")])
def test_files_as_in_mxnet(name: str, prefetch: int) -> None:
    case = io_cases.FILES[name]
    io_cases.write(case)
    provided, epochs = GOLDEN["files"][name] if GOLDEN["files"][name] != "StopIteration" else (None, [[]])
    it = getattr(mx.io, case.cls)(**case.args, prefetch_buffer=prefetch)
    if provided is not None:  # MXNet cannot make an iterator over an empty part
        assert repr(it.provide_data + it.provide_label) == provided
    have = io_cases.walk(it, case.plan)
    if case.cls == "MNISTIter":  # MXNet's numbers are zeros
        have = [[{**b, "index": [0] * len(b["index"])} for b in epoch] for epoch in have]
    same(have, epochs)


@pytest.mark.parametrize("name", io_cases.ERRORS)
def test_errors_as_in_mxnet(name: str) -> None:
    assert GOLDEN["errors"][name] == "MXNetError"
    case = io_cases.ERRORS[name]
    io_cases.write(case)
    with pytest.raises(MXNetError) as e:
        for _ in getattr(mx.io, case.cls)(**case.args):
            pass
    assert len(str(e.value)) > 20


@pytest.mark.parametrize("name", io_cases.ARRAYS)
def test_arrays_as_in_mxnet(name: str) -> None:
    same(io_cases.run_arrays(mx, np, io_cases.ARRAYS[name]), GOLDEN["arrays"][name])


def test_rolling_over_less_than_a_batch() -> None:
    it = mx.io.NDArrayIter(np.arange(4), batch_size=9, last_batch_handle="roll_over")
    epochs = []
    for _ in range(4):
        epochs.append([(b.data[0].asnumpy().tolist(), b.pad) for b in it])
        it.reset()
    assert epochs == [[], [], [([0, 1, 2, 3] * 2 + [0], 8)], []]
    assert it.next().data[0].asnumpy().tolist() == [1, 2, 3, 0, 1, 2, 3, 0, 1]


def test_csr_stays_csr() -> None:
    dense = np.arange(15).reshape(5, 3) % 4
    source = mx.nd.array(dense).tostype("csr")
    it = mx.io.NDArrayIter(source, np.arange(5), batch_size=2, last_batch_handle="discard")
    got = [(b.data[0].stype, b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist()) for b in it]
    assert got == [("csr", dense[i : i + 2].tolist(), [i, i + 1]) for i in (0, 2)]
    it.reset()
    assert it.next().data[0].stype == "csr"


def test_csr_is_shuffled_with_its_labels() -> None:
    source = mx.nd.array(np.diag(np.arange(1.0, 7))).tostype("csr")
    np.random.seed(3)
    it = mx.io.NDArrayIter({"x": source}, np.arange(6), batch_size=3, shuffle=True, last_batch_handle="discard")
    order = [b.data[0].asnumpy().argmax(1).tolist() for b in it]
    it.reset()
    labels = [b.label[0].asnumpy().tolist() for b in it]
    np.random.seed(3)
    first = np.arange(6)
    np.random.shuffle(first)
    then = first.copy()
    np.random.shuffle(then)
    assert np.concatenate(order).tolist() == first.tolist()
    assert np.concatenate(labels).tolist() == first[then].tolist()


def test_csr_is_not_padded() -> None:
    source = mx.nd.array(np.eye(4)).tostype("csr")
    for handle in ("pad", "roll_over"):
        with pytest.raises(NotImplementedError, match="discard"):
            mx.io.NDArrayIter(source, batch_size=2, last_batch_handle=handle)


def test_scipy_and_row_sparse_sources() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    it = mx.io.NDArrayIter(sparse.csr_matrix(np.eye(4)), batch_size=2, last_batch_handle="discard")
    assert it.next().data[0].stype == "csr"
    rows = mx.nd.array(np.eye(4)).tostype("row_sparse")
    batch = mx.io.NDArrayIter(rows, batch_size=3).next()
    assert batch.data[0].stype == "default"
    assert np.array_equal(batch.data[0].asnumpy(), np.eye(4)[:3])


def test_batches_are_copies() -> None:
    source = mx.nd.array(np.arange(4.0))
    batch = mx.io.NDArrayIter(source, batch_size=2).next()
    batch.data[0][:] = 7
    assert source.asnumpy().tolist() == [0, 1, 2, 3]


def test_batch_axis_of_the_layout() -> None:
    x = np.arange(12).reshape(2, 3, 2)
    it = mx.io.NDArrayIter(x, batch_size=2, layout="TNC")
    assert it.provide_data[0].shape == (2, 2, 2)
    got = [(b.data[0].asnumpy().tolist(), b.pad) for b in it]
    assert got == [(x[:, :2].tolist(), 0), (x[:, [2, 0]].tolist(), 1)]


@pytest.mark.parametrize("make, error", [
    (lambda: mx.io.NDArrayIter(None), AssertionError),
    (lambda: mx.io.NDArrayIter([]), AssertionError),
    (lambda: mx.io.NDArrayIter(np.zeros(3), np.zeros(2)), ShapeError),
    (lambda: mx.io.NDArrayIter(np.zeros(3), last_batch_handle="no"), ParamError),
    (lambda: mx.io.NDArrayIter(object()), TypeError),
    (lambda: mx.io.NDArrayIter({"a": "text"}), TypeError),
    (lambda: mx.io.DataBatch(typing.cast(Any, np.zeros(3))), AssertionError),
    (lambda: mx.io.PrefetchingIter([]), AssertionError),
    (lambda: typing.cast(Any, mx.io.LibSVMIter)("a.t"), TypeError),
])  # fmt: skip
def test_wrong_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_descriptions() -> None:
    desc = mx.io.DataDesc("x", (2, 3), np.int32, "NC")
    assert desc == ("x", (2, 3)) and repr(desc) == "DataDesc[x,(2, 3),<class 'numpy.int32'>,NC]"
    assert [mx.io.DataDesc.get_batch_axis(x) for x in (None, "NCHW", "TNC", "HW")] == [0, 0, 1, -1]
    made = mx.io.DataDesc.get_list([("a", (1,))], [("a", np.int8)])
    assert (made[0].dtype, mx.io.DataDesc.get_list([("a", (1,))], None)[0].dtype) == (np.int8, np.float32)
    batch = mx.io.DataBatch([mx.nd.zeros((2, 3))], [mx.nd.zeros(2)])
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: [(2,)]"


def test_resize() -> None:
    it = mx.io.ResizeIter(mx.io.NDArrayIter(np.arange(4), batch_size=2), 3)
    epochs = []
    for _ in range(2):
        epochs.append([b.data[0].asnumpy().tolist() for b in it])
        it.reset()
    assert epochs == [[[0, 1], [2, 3], [0, 1]]] * 2
    it = mx.io.ResizeIter(mx.io.NDArrayIter(np.arange(4), batch_size=2), 1, reset_internal=False)
    assert it.next().data[0].asnumpy().tolist() == [0, 1]
    it.reset()
    assert it.next().data[0].asnumpy().tolist() == [2, 3]


def test_prefetching_joins_iterators() -> None:
    parts = [mx.io.NDArrayIter({"x": np.arange(5) + k}, {"y": np.arange(5)}, batch_size=2) for k in (0, 10)]
    it = mx.io.PrefetchingIter(parts, [{"x": "a"}, {"x": "b"}], [{"y": "c"}, {"y": "d"}])
    assert [d.name for d in it.provide_data + it.provide_label] == ["a", "b", "c", "d"]
    for _ in range(2):
        got = [([a.asnumpy().tolist() for a in b.data], len(b.label), b.pad) for b in it]
        assert got == [([[0, 1], [10, 11]], 2, 0), ([[2, 3], [12, 13]], 2, 0), ([[4, 0], [14, 10]], 2, 1)]
        assert not it.iter_next()
        it.reset()


class _Failing(mx.io.DataIter):
    provide_data = provide_label = (mx.io.DataDesc("x", (1,)),)

    def next(self) -> mx.io.DataBatch:
        raise OSError("the disk is gone")


def test_prefetching_passes_errors_on() -> None:
    it = mx.io.PrefetchingIter(_Failing(1))
    for _ in range(2):
        with pytest.raises(OSError, match="disk"):
            it.next()
        it.reset()


def test_prefetching_wants_equal_lengths() -> None:
    it = mx.io.PrefetchingIter([mx.io.NDArrayIter(np.zeros(n), batch_size=2) for n in (2, 4)])
    it.next()
    with pytest.raises(AssertionError, match="differ"):
        it.next()


def test_own_iterator_by_parts() -> None:
    class Own(mx.io.DataIter):
        at = 0

        def iter_next(self) -> bool:
            self.at += 1
            return self.at < 3

        def getdata(self) -> Any:
            return [mx.nd.zeros(self.at)]

        def getlabel(self) -> Any:
            return []

        def getpad(self) -> int:
            return 0

    assert [b.data[0].shape for b in Own(1)] == [(1,), (2,)]


def test_csv_errors_name_the_line() -> None:
    Path("a.csv").write_text("1,2\n\n3,4\n5,x\n")
    with pytest.raises(DataFormatError, match=r"a\.csv:4: 'x' is not a number"):
        list(mx.io.CSVIter(data_csv="a.csv", data_shape=(2,), batch_size=1))
    with pytest.raises(DataFormatError, match=r"a\.csv:1: 2 numbers .* wants 3"):
        list(mx.io.CSVIter(data_csv="a.csv", data_shape=(3,), batch_size=1))


def test_mnist_order_and_errors() -> None:
    case = io_cases.FILES["mnist"]
    io_cases.write(case)
    it = mx.io.MNISTIter(**{**case.args, "shuffle": True, "seed": 1, "batch_size": 5})
    first = it.next()
    order = first.label[0].asnumpy().astype(int)
    assert sorted(order) == list(range(5)) and first.index.tolist() == order.tolist()
    pixels = np.arange(30).reshape(5, 1, 2, 3) * 7 / 256
    assert np.array_equal(first.data[0].asnumpy(), pixels[order].astype(np.float32))
    it.reset()
    assert it.next().label[0].asnumpy().tolist() == order.tolist()
    with pytest.raises(DataFormatError, match="idx"):
        mx.io.MNISTIter(image="l", label="l")
    Path("i").write_bytes(Path("i").read_bytes()[:-1])
    with pytest.raises(DataFormatError, match="holds 29"):
        mx.io.MNISTIter(**case.args)


def test_unknown_arguments_warn() -> None:
    Path("a.t").write_text("1 0:1\n")
    with pytest.warns(UserWarning, match="nthreads"):
        mx.io.LibSVMIter(data_libsvm="a.t", data_shape=1, batch_size=1, nthreads=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.io.LibSVMIter(data_libsvm="a.t", data_shape="(1,)", batch_size="1", round_batch="False", ctx="gpu")


def test_threads_end_with_their_iterator() -> None:
    Path("a.t").write_text("1 0:1\n" * 100)
    before = set(threading.enumerate())
    iterators = [mx.io.LibSVMIter(data_libsvm="a.t", data_shape=1, batch_size=1) for _ in range(3)]
    it = None
    for it in iterators:
        it.next()
    started = set(threading.enumerate()) - before
    assert started
    del iterators, it
    gc.collect()
    for t in started:
        t.join(10)
    assert not any(t.is_alive() for t in started)


def test_skipping_the_reading() -> None:
    Path("a.t").write_text("1 0:1\n2 0:2\n")
    it = mx.io.LibSVMIter(data_libsvm="a.t", data_shape=1, batch_size=1)
    it.debug_skip_load()
    assert [it.next().label[0].asscalar() for _ in range(4)] == [1, 1, 1, 1]


@pytest.mark.parametrize("module", ["libsvm", "ndarray_iter"])
def test_examples(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"symjax.io.{module}"))
    assert result.attempted and not result.failed
