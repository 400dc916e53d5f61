"""Reading libsvm text: equal to a line by line parse, exact, bounded in memory, and safe against bad files."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symjax as mx
from symjax.io import _files
from symjax.io._files import Block, find_files, partition, read_blocks
from symjax.io._libsvm_text import LibSVMFormat, compiled_reader
from symjax.io._numbers import MARGIN, decimals, exact, unsigned
from symjax.io._rows import CsrRows
from symjax.lowering.errors import DataFormatError, FileError, MXNetError, ParamError

COLUMNS = 50
FLOAT32 = np.dtype(np.float32)


HAS_COMPILED = compiled_reader() is not None


def compiled(form: LibSVMFormat) -> LibSVMFormat:
    return dataclasses.replace(form, compiled=True)


def naive(text: str, dtype: Any = np.float32) -> tuple[list[Any], list[list[tuple[int, Any]]]]:
    """Labels and rows of entries, line by line."""
    labels, rows = [], []
    for line in text.replace("\r", "\n").split("\n"):
        words = line.partition("#")[0].split()
        if words:
            labels.append(dtype(words[0].partition(":")[0]))
            entries = [w.partition(":") for w in words[1:] if not w.startswith("qid:")]
            rows.append([(int(c), dtype(v or 1)) for c, _, v in entries])
    return labels, rows


def entries_of(rows: CsrRows) -> list[list[tuple[int, Any]]]:
    """Rows of entries."""
    pairs = list(zip(rows.indices.tolist(), rows.values, strict=True))
    return [pairs[a:b] for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]


def parse(text: str | bytes, columns: int = COLUMNS, dtype: Any = FLOAT32) -> CsrRows:
    data = text.encode() if isinstance(text, str) else text
    Path("parsed.t").write_bytes(data)
    block, form = Block("parsed.t", 0, data), LibSVMFormat(columns, np.dtype(dtype))
    try:
        rows = form.parse(block)
    except DataFormatError as e:
        if HAS_COMPILED:
            with pytest.raises(DataFormatError, match=re.escape(str(e))):
                compiled(form).parse(block)
        raise
    if HAS_COMPILED:
        same_rows(compiled(form).parse(block), rows)
    return rows


def same_rows(one: CsrRows, other: CsrRows) -> None:
    for field in dataclasses.fields(CsrRows):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert a.dtype == b.dtype, field.name
        np.testing.assert_array_equal(a, b, err_msg=field.name)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


plain = st.one_of(
    st.integers(0, 10**9).map(str), st.floats(0, 1, width=32).map(lambda x: f"{x:.8f}"),
    st.decimals(0, 100, places=3).map(str), st.sampled_from(["0", "1", "1.0", ".5", "2.", "00012", "0.125"]))
odd = st.one_of(
    st.floats(allow_nan=False).map(repr), st.floats(allow_nan=False, width=32).map(repr),
    st.sampled_from(["-1", "+2.5", "1e-3", "inf", "-inf", "1E5", "12345678901234567890", "0.123456789012345678901"]))
column = st.integers(0, COLUMNS - 1).map(str)
blank = st.sampled_from([" ", " ", " ", "  ", "\t"])


@st.composite
def line(draw: Any, numbers: Any, messy: bool) -> str:
    """A line of libsvm text, perhaps with what only `messy` files have."""
    words = [draw(numbers)]
    if messy:
        words[0] += draw(st.sampled_from(["", "", ":0.5", " qid:12"]))
    for _ in range(draw(st.integers(0, 6))):
        value = ":" + draw(numbers)
        words.append(draw(column) + (draw(st.sampled_from([value, value, ""])) if messy else value))
    if not messy:
        return " ".join(words)
    ends = draw(st.sampled_from(["", " ", "# x:1 9:9", "\n", "\n# only\n \n"]))
    return draw(st.sampled_from(["", " "])) + "".join(w + draw(blank) for w in words) + ends


def files(messy: bool) -> Any:
    numbers = st.one_of(plain, odd) if messy else plain
    ends = ["\n", "\r\n"] if messy else ["\n"]
    return st.lists(st.tuples(line(numbers, messy), st.sampled_from(ends)), max_size=12).map(
        lambda lines: "".join(a + b for a, b in lines))


quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_numba_is_used_where_it_is_there() -> None:
    assert (importlib.util.find_spec("numba") is not None) == HAS_COMPILED


@pytest.mark.skipif(not HAS_COMPILED, reason="needs numba")
def test_usual_text_is_read_by_the_compiled_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("read by arrays")

    monkeypatch.setattr(LibSVMFormat, "_plain", refuse)
    text = b"1 0:0.5 3:-2e-3 7  # no\n\n-1.5\r\n+2 49:1e10\t4:.5\n0 1:16777217.00000001"
    rows = compiled(LibSVMFormat(COLUMNS, FLOAT32)).parse(Block("x", 0, text))
    assert rows.labels.tolist() == [1.0, -1.5, 2.0, 0.0]
    assert entries_of(rows) == [[(0, 0.5), (3, np.float32(-2e-3)), (7, 1.0)], [], [(49, 1e10), (4, 0.5)],
                                [(1, 16777218.0)]]  # fmt: skip


@pytest.mark.skipif(not HAS_COMPILED, reason="needs numba")
def test_large_files_are_read_by_the_compiled_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symjax.io.libsvm._WORTH_COMPILING", 1000)
    Path("small.t").write_text("1 0:1\n" * 10)
    Path("large.t").write_text("".join(f"{i % 7} {i % COLUMNS}:{i / 8}\n" for i in range(500)))
    used: list[bool] = []
    real = LibSVMFormat.parse
    monkeypatch.setattr(LibSVMFormat, "parse", lambda self, block: used.append(self.compiled) or real(self, block))
    for path in ("small.t", "large.t"):
        next(mx.io.LibSVMIter(data_libsvm=path, data_shape=(COLUMNS,), batch_size=10, prefetch_buffer=0))
    assert used == [False, True]
    batches = list(mx.io.LibSVMIter(data_libsvm="large.t", data_shape=(COLUMNS,), batch_size=100))
    dense = np.concatenate([b.data[0].asnumpy() for b in batches])
    assert dense[np.arange(500), np.arange(500) % COLUMNS].tolist() == [i / 8 for i in range(500)]
    assert np.count_nonzero(dense) == 499


@quick
@given(st.one_of(files(False), files(True)), st.booleans())
def test_equals_a_parse_by_lines(text: str, cut: bool) -> None:
    text = text.rstrip("\r\n") if cut else text
    with np.errstate(over="ignore"):
        labels, rows = naive(text)
    have = parse(text)
    assert have.labels.tolist() == labels
    assert entries_of(have) == rows


@quick
@given(files(True), st.integers(1, 40), st.integers(1, 4), st.integers(1, 5))
def test_blocks_and_parts_lose_no_line(text: str, size: int, count: int, parts: int) -> None:
    names = []
    for i in range(count):
        names.append(f"f{i}.t")
        Path(names[-1]).write_text(text[i * len(text) // count : (i + 1) * len(text) // count], newline="")
    cut = [Path(n).read_bytes() for n in names]
    if not any(cut):
        return
    found, _ = find_files(";".join(names), "data_libsvm")
    blocks = [b for i in range(parts) for b in read_blocks(partition(found, parts, i), size)]
    for name, data in zip(names, cut, strict=True):
        mine = sorted((b for b in blocks if b.path == name), key=lambda b: b.offset)
        assert b"".join(b.data for b in mine) == data
        assert all(b.data.endswith((b"\n", b"\r")) for b in mine[:-1])


@quick
@given(st.one_of(plain, odd), st.sampled_from([np.float32, np.float64]))
def test_numbers_are_rounded_once(token: str, dtype: Any) -> None:
    value = parse(f"0 1:{token}\n", dtype=dtype).values[0]
    assert value.dtype == dtype
    true = Fraction(token) if "inf" not in token else None
    if true is None or not np.isfinite(value):
        assert value == dtype(token) if true is None else abs(true) > np.finfo(dtype).max
        return
    here = abs(Fraction(float(value)) - true)
    with np.errstate(over="ignore"):
        neighbours = np.nextafter(value, dtype(np.inf)), np.nextafter(value, dtype(-np.inf))
    for other in neighbours:
        if np.isfinite(other):
            assert here <= abs(Fraction(float(other)) - true)


def test_numbers_next_to_the_middle_of_two() -> None:
    middle = Fraction(float(np.float32(1.1))) + Fraction(1, 2**24)
    digits = str(int(middle * 10**24))  # exact: the middle has 24 binary places
    for tail, want in (("", None), ("000001", np.nextafter(np.float32(1.1), np.float32(2)))):
        value = parse(f"0 1:1.{digits[1:]}{tail}\n").values[0]
        assert value == (want if want is not None else np.float32(float(middle)))
    below = f"1.{int(digits[1:]) - 1}9999999"
    assert parse(f"0 1:{below}\n").values[0] == np.float32(1.1)
    assert exact([below.encode()], FLOAT32)[0] == np.float32(1.1)


def test_integers_and_decimals_of_every_length() -> None:
    tokens = [str(10**n // 7) for n in range(1, 25)]
    text = np.frombuffer(b"\n" * MARGIN + " ".join(tokens).encode(), np.uint8)
    ends = MARGIN + np.cumsum([len(t) + 1 for t in tokens]) - 1
    starts = ends - [len(t) for t in tokens]
    value, bad = unsigned(text, starts, ends)
    fits = [len(t) <= 19 for t in tokens]
    assert (bad == 0).tolist() == fits
    assert [int(v) for v, f in zip(value, fits, strict=True) if f] == [int(t) for t in tokens if len(t) <= 19]
    for t in ("0.1", "123.456", "1234567890.123456", ".5", "7."):
        raw = np.frombuffer(b"\n" * MARGIN + t.encode(), np.uint8)
        end = np.array([len(raw)])
        got, odd = decimals(raw, np.array([MARGIN]), np.array([MARGIN + t.index(".")]), end, np.dtype(np.float64))
        assert not odd.size and got[0] == float(t)


@pytest.mark.parametrize("text, message", [
    (b"1 0:1\n\n2 50:1\n", r":3: column 50 is beyond .*\(50,\): columns are 0 … 49"),
    (b"1 0:1\n2 99999999999999999999999:1\n", r":2: column 99999999999999999999999 is beyond"),
    (b"1 a:b\n", ":1: 'a:b' is not an entry"),
    (b"# c\r\n1 0:1\r\n2 1.5:1\r\n", ":3: '1.5:1' is not an entry"),
    (b"1 0:1\rx\r", ":2: 'x' is not a number"),
    (b"1 0:1_0\n", "'1_0' is not a number"),
    (b"1 0:0x10\n", "'0x10' is not a number"),
    (b"1 0:--1\n", "'--1' is not a number"),
    (b"1 0:1\x002\n", "is not a number"),
    (b"1 0:1 qid:3\n", "'qid:3' is not an entry"),
    ("1 0:٣\n".encode(), "is not a number"),
    (b"1 0:" + b"1" * 5000 + b"\n", "'1{40}'… is not a number"),
    (b"1 \xff\xfe\n", "is not an entry"),
    (b"1 :2\n", "'1:2'|is not an entry|not a number"),
])  # fmt: skip
def test_errors_name_file_and_line(text: bytes, message: str) -> None:
    if text == b"1 :2\n":  # a label and its weight
        assert parse(text).labels.tolist() == [1]
        return
    with pytest.raises(DataFormatError, match=message) as e:
        parse(text)
    assert str(e.value).startswith("parsed.t:")


def test_byte_order_mark() -> None:
    assert entries_of(parse("\ufeff1 1:2 2:1\n2 01:3\n")) == [[(1, 2), (2, 1)], [(1, 3)]]
    assert parse("\ufeff1:2 0\n").labels.tolist() == [1]


def test_line_numbers_in_later_blocks_and_parts() -> None:
    Path("a.t").write_text("".join(f"{i} 0:1\n" for i in range(1000)) + "oops\n1 0:2\n")
    for args in ({}, {"num_parts": 3, "part_index": 2}):
        with pytest.raises(DataFormatError, match=r"a\.t:1001: 'oops'"):
            list(mx.io.LibSVMIter(data_libsvm="a.t", data_shape=1, batch_size=1, **args))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.text(alphabet="01 :.-+e#qid\n\r\t,_", max_size=120).map(str.encode)))
def test_any_bytes_parse_or_raise(data: bytes) -> None:
    try:
        rows = parse(data)
    except DataFormatError:
        return
    assert rows.indptr[-1] == len(rows.indices) == len(rows.values)
    assert not len(rows.indices) or (rows.indices.min() >= 0 and rows.indices.max() < COLUMNS)


def test_a_file_without_line_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "MAX_LINE", 10_000)
    Path("a.t").write_bytes(b"0" * 200_000)
    with pytest.raises(FileError, match="more than 10000 bytes"):
        list(read_blocks(partition(find_files("a.t", "x")[0], 1, 0), 1000))


def test_a_file_that_shrinks_is_told() -> None:
    Path("a.t").write_text("1 0:1\n" * 10)
    segments = partition(find_files("a.t", "x")[0], 1, 0)
    Path("a.t").write_text("1 0:1\n" * 9)
    with pytest.raises(FileError, match="6 bytes early"):
        list(read_blocks(segments))


def test_long_lines_over_many_blocks() -> None:
    text = "".join(f"{i} " + " ".join(f"{c}:{c}.5" for c in range(40)) + "\n" for i in range(5))
    Path("a.t").write_text(text)
    blocks = list(read_blocks(partition(find_files("a.t", "x")[0], 1, 0), 17))
    assert len(blocks) == 5
    joined = CsrRows.join([LibSVMFormat(COLUMNS, FLOAT32).parse(b) for b in blocks])
    assert entries_of(joined) == naive(text)[1]


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("by", ["arrays", "numba"] if HAS_COMPILED else ["arrays"])
def test_memory_follows_the_batch(prefetch: int, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symjax.io.libsvm._WORTH_COMPILING", 1 << 40 if by == "arrays" else 0)
    if by == "numba":
        compiled(LibSVMFormat(COLUMNS, FLOAT32)).parse(Block("x", 0, b"1 0:1\n"))  # what numba itself needs
    row = " ".join(f"{c * 7}:0.{c}5" for c in range(30))
    peaks = []
    for rows in (2_000, 20_000) if by == "arrays" else (30_000, 90_000):  # more than what is read ahead
        with open("a.t", "w") as f:
            f.writelines(f"{i % 2} {row}\n" for i in range(rows))
        tracemalloc.start()
        it = mx.io.LibSVMIter(data_libsvm="a.t", data_shape=300, batch_size=64, prefetch_buffer=prefetch)
        assert sum(b.data[0].shape[0] - b.pad for b in it) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        del it
    assert Path("a.t").stat().st_size > 4_000_000
    assert peaks[1] < 1.5 * peaks[0] + 1_000_000


def test_batches_of_a_bucket_share_their_shapes() -> None:
    rng = np.random.RandomState(0)
    Path("a.t").write_text("".join(
        "1 " + " ".join(f"{c}:1" for c in range(rng.randint(20, 30))) + "\n" for _ in range(200)))
    it = mx.io.LibSVMIter(data_libsvm="a.t", data_shape=COLUMNS, batch_size=8)
    shapes = {b.data[0]._data.data.shape for b in it}
    assert len(shapes) <= 2


def test_labels_of_a_part_belong_to_its_rows() -> None:
    rows = range(1, 40)
    Path("a.t").write_text("# head\n\n" + "".join(f"0 1:{i}" + " 2:1" * (i % 5) + "\n" for i in rows))
    Path("l.t").write_text("".join(f"0 0:{i}\n" for i in rows))
    seen: list[Any] = []
    got: list[Any] = []
    for part in range(3):
        it = mx.io.LibSVMIter(data_libsvm="a.t", label_libsvm="l.t", data_shape=3, label_shape=2, batch_size=1,
                              num_parts=3, part_index=part)
        for _ in range(2):
            got = [(b.data[0].asnumpy()[0, 1], b.label[0].asnumpy()[0, 0]) for b in it]
            assert all(a == b for a, b in got)
            it.reset()
        seen += [a for a, _ in got]
    assert seen == list(rows)


def test_an_epoch_left_early_begins_again() -> None:
    Path("a.t").write_text("".join(f"{i} 0:1\n" for i in range(5)))
    it = mx.io.LibSVMIter(data_libsvm="a.t", data_shape=1, batch_size=2)
    for taken in (1, 0, 3, 2):
        for _ in range(taken):
            it.next()
        it.reset()
        first = it.next().label[0].asnumpy().tolist()
        assert first == [0, 1]
        it.reset()


def test_last_batch_without_rounding_is_filled_with_empty_rows() -> None:
    Path("a.t").write_text("1 0:1\n2 1:2\n3 0:3\n")
    it = mx.io.LibSVMIter(data_libsvm="a.t", data_shape=2, batch_size=2, round_batch=False)
    for _ in range(2):
        last = list(it)[-1]
        assert (last.pad, last.label[0].asnumpy().tolist(), last.index.tolist()) == (1, [3, 0], [2, 0])
        assert last.data[0].asnumpy().tolist() == [[3, 0], [0, 0]]
        it.reset()


def test_batch_of_more_than_the_rows() -> None:
    Path("a.t").write_text("1 0:1\n2\n3\n")
    it = mx.io.LibSVMIter(data_libsvm="a.t", data_shape=1, batch_size=5)
    assert [(b.label[0].asnumpy().tolist(), b.pad) for b in it] == [([1, 2, 3, 1, 2], 2)]
    with pytest.raises(MXNetError, match="batch_size=7 is more"):
        mx.io.LibSVMIter(data_libsvm="a.t", data_shape=1, batch_size=7).next()
    with pytest.raises(StopIteration):
        Path("e.t").write_text("# nothing\n\n")
        mx.io.LibSVMIter(data_libsvm="e.t", data_shape=1, batch_size=7).next()


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "uint8"])
def test_types(dtype: str) -> None:
    Path("a.t").write_text("7 0:3 1:0.1\n")
    it = mx.io.LibSVMIter(data_libsvm="a.t", data_shape=2, batch_size=1, dtype=dtype)
    batch = it.next()
    assert batch.data[0].dtype == batch.label[0].dtype == it.provide_data[0].dtype == np.dtype(dtype)
    assert np.array_equal(batch.data[0].asnumpy()[0], np.array([3, 0.1]).astype(dtype))


def test_options_of_a_path() -> None:
    Path("a.t").write_text("1 1:1 3:3\n")
    it = mx.io.LibSVMIter(data_libsvm="a.t?format=libsvm&indexing_mode=1", data_shape=3, batch_size=1)
    assert it.next().data[0].asnumpy().tolist() == [[1, 0, 3]]
    with pytest.raises(ParamError, match="indexing_mode"):
        mx.io.LibSVMIter(data_libsvm="a.t?indexing_mode=-1", data_shape=3, batch_size=1)
    Path("b.t").write_text("1 0:1\n")
    with pytest.raises(DataFormatError, match=r"columns are 1 … 3|columns from 1"):
        mx.io.LibSVMIter(data_libsvm="b.t?indexing_mode=1", data_shape=3, batch_size=1).next()
