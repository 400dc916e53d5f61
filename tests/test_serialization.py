"""`.params` files: MXNet's files read, symjax writes the same bytes, files are mapped and replaced whole."""

from __future__ import annotations

import ast
import os
import signal
import stat
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from symjax import _files, _params_format, serialization
from symjax.lowering.errors import MXNetError
from symjax.serialization import (
    CSRRecord,
    ParamsFormatError,
    ParamsRecord,
    RowSparseRecord,
    dumps,
    read_params,
    write_params,
)
from tests.params_cases import CASES, CRAFTED, FLAGS, NP_SHAPE_CASES, Content, Item, dense_record

GOLDEN = Path(__file__).parent / "golden" / "params"
ZOO = Path(__file__).resolve().parents[2] / "shared" / "zoo"
WRITTEN_BY_MXNET = {**CASES, **NP_SHAPE_CASES}
CONTENTS: dict[str, Content] = {**WRITTEN_BY_MXNET, **{name: content for name, (_, content) in CRAFTED.items()}}


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def record_of(item: Item) -> ParamsRecord:
    values = item.values.astype(dtype_of(item.dtype))
    if item.storage == "csr":
        rows, columns = np.nonzero(values)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=values.shape[0]))])
        return CSRRecord(values[rows, columns], indptr, columns, values.shape)
    if item.storage == "row_sparse":
        rows = np.flatnonzero(values.any(axis=tuple(range(1, values.ndim))))
        return RowSparseRecord(values[rows], rows, values.shape)
    return values


def densify(record: ParamsRecord) -> np.ndarray:
    if isinstance(record, CSRRecord):
        dense = np.zeros(record.shape, record.data.dtype)
        rows = np.repeat(np.arange(record.shape[0]), np.diff(record.indptr))
        dense[rows, record.indices] = record.data
        return dense
    if isinstance(record, RowSparseRecord):
        dense = np.zeros(record.shape, record.data.dtype)
        dense[record.indices] = record.data
        return dense
    assert record is not None
    return record


def split(content: Content) -> tuple[list[Item], list[str]]:
    if isinstance(content, dict):
        return list(content.values()), list(content)
    return list(content), []  # type: ignore[arg-type]


def same(a: ParamsRecord, b: ParamsRecord) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
            return False
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    fields = ("data", "indices") + (("indptr",) if isinstance(a, CSRRecord) else ())
    return type(a) is type(b) and a.shape == b.shape and all(same(getattr(a, f), getattr(b, f)) for f in fields)


# --- reading and writing what MXNet does


@pytest.mark.parametrize("name", CONTENTS)
def test_golden_file_reads(name: str) -> None:
    items, names = split(CONTENTS[name])
    records, read_names = read_params(GOLDEN / f"{name}.params")
    assert read_names == names
    assert len(records) == len(items)
    for record, item in zip(records, items, strict=True):
        kind = {"csr": CSRRecord, "row_sparse": RowSparseRecord, "default": np.ndarray}[item.storage]
        assert type(record) is kind
        dense = densify(record)
        assert dense.dtype == dtype_of(item.dtype)
        np.testing.assert_array_equal(dense, item.values.astype(dense.dtype), strict=True)


@pytest.mark.parametrize("name", WRITTEN_BY_MXNET)
def test_written_as_mxnet_writes(name: str, tmp_path: Path) -> None:
    items, names = split(WRITTEN_BY_MXNET[name])
    path = tmp_path / "x.params"
    write_params(path, [record_of(item) for item in items], names, np_shape=name in NP_SHAPE_CASES)
    assert path.read_bytes() == (GOLDEN / f"{name}.params").read_bytes()


def test_rewriting_keeps_every_byte() -> None:
    for name in CASES:
        data = (GOLDEN / f"{name}.params").read_bytes()
        assert dumps(*read_params(data)) == data, name


@pytest.mark.skipif(not ZOO.is_dir(), reason=f"the collection of real files is not at {ZOO}")
def test_every_file_of_the_zoo_reads() -> None:
    files = sorted(ZOO.glob("*/*.params"))
    assert len(files) >= 25
    identical = 0
    for file in files:
        records, names = read_params(file)
        assert len(names) == len(records) > 0, file
        assert all(isinstance(record, np.ndarray) and record.size for record in records), file
        data = file.read_bytes()
        if data[24:28] == dense_record(2, np.zeros(1, np.float32))[:4]:
            assert dumps(records, names) == data, file
            identical += 1
    assert identical >= 14


def test_version_three_tells_none_from_a_scalar() -> None:
    none, scalar = read_params(dumps([None, np.array(3, np.int32)], np_shape=True))[0]
    assert none is None
    assert isinstance(scalar, np.ndarray)
    assert scalar.shape == () and scalar == 3


def test_none_in_version_two() -> None:
    assert read_params(dumps([None, np.ones(2)], ["a", "b"]))[0][0] is None


def test_the_device_is_ignored() -> None:
    values = np.arange(3, dtype=np.float32)
    other = dense_record(2, values, (2, 5))
    data = dumps([values]).replace(dense_record(2, values), other)
    assert other in data
    assert same(read_params(data)[0][0], values)


def test_csr_never_filled_keeps_its_empty_indptr() -> None:
    record = CSRRecord(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64), (3, 4))
    back = read_params(dumps([record]))[0][0]
    assert same(back, record)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.arange(24).astype(ml_dtypes.bfloat16).reshape(2, 3, 4).transpose(2, 0, 1),
        np.broadcast_to(np.float16(3), (4, 5)),
        np.arange(300_000, dtype=np.int64)[::-2],
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    ],
    ids=["big-endian", "transposed", "broadcast", "reversed", "fortran"],
)
def test_any_memory_layout_is_written(array: np.ndarray) -> None:
    back = read_params(dumps([array]))[0][0]
    assert same(back, np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")))


@st.composite
def dense_arrays(draw: st.DrawFn, min_dims: int = 0) -> np.ndarray:
    dtype = dtype_of(draw(st.sampled_from(sorted(FLAGS))))
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=4, min_side=0, max_side=4))
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    raw = draw(st.binary(min_size=size, max_size=size))
    if dtype == np.bool_:
        raw = bytes(byte & 1 for byte in raw)
    return np.frombuffer(raw, dtype).reshape(shape)


@st.composite
def sparse_records(draw: st.DrawFn) -> CSRRecord | RowSparseRecord:
    data = draw(dense_arrays(min_dims=1))
    height = draw(st.integers(1, 2**40))
    rows = np.array(draw(st.lists(st.integers(0, height - 1), min_size=len(data), max_size=len(data))), np.int64)
    if draw(st.booleans()):
        return RowSparseRecord(data, rows, (height, *data.shape[1:]))
    data = data.reshape(-1)
    cuts = sorted(draw(st.lists(st.integers(0, data.size), max_size=4)))
    columns = np.array(draw(st.lists(st.integers(0, 8), min_size=data.size, max_size=data.size)), np.int64)
    return CSRRecord(data, np.array([0, *cuts, data.size], np.int64), columns, (len(cuts) + 1, 9))


names_like = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(st.one_of(dense_arrays(min_dims=1), sparse_records(), st.none()), max_size=4), st.data())
def test_round_trip(records: list[ParamsRecord], data: st.DataObject) -> None:
    names = data.draw(st.just([]) | st.lists(names_like, min_size=len(records), max_size=len(records)))
    written = dumps(records, names)
    back, back_names = read_params(written)
    assert back_names == names
    assert all(same(a, b) for a, b in zip(back, records, strict=True))
    assert dumps(back, back_names) == written


@given(st.lists(dense_arrays() | st.none(), max_size=4))
def test_round_trip_np_shape(records: list[np.ndarray | None]) -> None:
    back, _ = read_params(dumps(records, np_shape=True))
    assert all(same(a, b) for a, b in zip(back, records, strict=True))


# --- refusing to write what cannot be read back


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (np.zeros(2, np.uint32), "dtype uint32 cannot be stored"),
        (np.array([{}], object), "dtype object cannot be stored"),
        (np.array("text"), "cannot be stored"),
        (np.float32(1), r"shape \(\) would read back as no array"),
        ([1, 2], "list cannot be stored"),
        (CSRRecord(np.ones(2), np.array([0, 2]), np.array([0]), (1, 3)), "must be"),
        (CSRRecord(np.ones(1), np.array([0, 1]), np.array([0]), (2, 3)), r"expected \(3,\)"),
        (CSRRecord(np.ones(1), np.array([0, 1]), np.array([3]), (1, 3)), "column index 3; expected 0 to 2"),
        (CSRRecord(np.ones(1), np.array([0, 1]), np.array([0.0]), (1, 3)), "indices of dtype float64"),
        (CSRRecord(np.ones(1), np.array([0, 1, 0, 1]), np.array([0]), (3, 3)), "indptr decreases"),
        (RowSparseRecord(np.ones((1, 2)), np.array([-1]), (4, 2)), "row index -1"),
        (RowSparseRecord(np.ones((1, 2)), np.array([0]), (4, 3)), "row_sparse rows of shape"),
    ],
)
def test_unwritable_record_is_named(record: ParamsRecord, message: str) -> None:
    with pytest.raises(ParamsFormatError, match=rf"record 1 of 2 \('bad'\): .*{message}"):
        dumps([np.ones(1), record], ["good", "bad"])


def test_names_must_match() -> None:
    with pytest.raises(ParamsFormatError, match="1 names for 2 arrays"):
        dumps([np.ones(1), np.ones(1)], ["a"])
    with pytest.raises(ParamsFormatError, match="no UTF-8 form"):
        dumps([np.ones(1)], ["\ud800"])


# --- files


def test_views_on_the_map_are_read_only(tmp_path: Path) -> None:
    path = tmp_path / "x.params"
    write_params(path, [np.ones(2), np.zeros((0, 3))])
    records, _ = read_params(path)
    assert isinstance(records[0], np.ndarray)
    assert not records[0].flags.writeable and not records[0].flags.owndata
    path.unlink()
    np.testing.assert_array_equal(records[0], [1, 1])


def test_reading_a_large_file_takes_no_memory(tmp_path: Path) -> None:
    """300 MB, most of it a hole in the file, read in a fresh process that reports its growth."""
    path = tmp_path / "large.params"
    columns = 300 * 2**20 // 4 // 1000
    start = dumps([np.zeros((1000, 1), np.float32)], ["w"])
    shape = np.array([1000, 1], "<i8").tobytes()
    head = start[: start.index(shape)] + np.array([1000, columns], "<i8").tobytes()
    head += np.array([1, 0, 0], "<i4").tobytes()
    with path.open("wb") as file:
        file.write(head)
        file.seek(len(head) + 4000 * columns)
        file.write(start[-17:])
    script = """
        import sys, tracemalloc
        import numpy as np
        from symjax.serialization import read_params
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096
        before = resident() if sys.platform == "linux" else 0
        tracemalloc.start()
        (w,), names = read_params(sys.argv[1])
        peak = tracemalloc.get_traced_memory()[1]
        grown = resident() - before if sys.platform == "linux" else 0
        assert names == ["w"] and w.nbytes > 299 * 2**20, (names, w.nbytes)
        assert float(w[::1000, ::100_000].sum()) == 0
        print(peak, grown)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    peak, grown = map(int, done.stdout.split())
    assert peak < 2**20
    assert grown < 50 * 2**20


def test_writing_makes_no_second_copy(tmp_path: Path) -> None:
    array = np.zeros((1000, 8000), np.float32)
    for layout in (array, array.T):
        tracemalloc.start()
        write_params(tmp_path / "x.params", [layout])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 * 2**20


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.params"
    write_params(path, [np.arange(3.0)], ["old"])
    old = path.read_bytes()
    with pytest.raises(ParamsFormatError, match="complex128"):
        write_params(path, [np.zeros(10**5), np.zeros(2, complex)])
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["x.params"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_writer_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.params"
    write_params(path, [np.arange(3.0)], ["old"])
    old = path.read_bytes()
    script = """
        import os, signal, sys
        import numpy as np
        from symjax.serialization import write_params
        class Killer:
            def __array__(self, dtype=None, copy=None):
                os.kill(os.getpid(), signal.SIGKILL)
        write_params(sys.argv[1], [np.ones(10**6), Killer()], ["a", "b"])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == old


def test_a_mapped_file_can_be_written_over(tmp_path: Path) -> None:
    path = tmp_path / "x.params"
    write_params(path, [np.arange(5.0)], ["w"])
    (before,), _ = read_params(path)
    write_params(path, [np.zeros(2)], ["w"])
    np.testing.assert_array_equal(before, np.arange(5.0))  # type: ignore[arg-type]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links are POSIX's")
def test_permissions_and_links_survive(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        path, link = tmp_path / "x.params", tmp_path / "link.params"
        write_params(path, [])
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        link.symlink_to(path)
        write_params(link, [np.ones(1)])
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert link.is_symlink()
    assert len(read_params(path)[0]) == 1


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_params(tmp_path / "none.params")
    with pytest.raises(FileNotFoundError):
        write_params(tmp_path / "no" / "x.params", [])


def test_the_error_is_both_kinds() -> None:
    assert issubclass(ParamsFormatError, MXNetError) and issubclass(ParamsFormatError, ValueError)


@pytest.mark.parametrize("module", [serialization, _params_format, _files])
def test_files_and_numpy_only(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not [name for name in imported if name.startswith("jax") or "ndarray" in name or name == "pickle"]
