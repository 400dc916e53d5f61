"""Broken, foreign and hostile `.params` files: one `ParamsFormatError` that says where, and no memory for a claim."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symjax.serialization import CSRRecord, ParamsFormatError, RowSparseRecord, dumps, read_params
from tests.params_cases import V1_MAGIC, V2_MAGIC, V3_MAGIC, dense_record

GOLDEN = [path.read_bytes() for path in sorted((Path(__file__).parent / "golden" / "params").glob("*.params"))]
HUGE = 10**18


def head(count: int) -> bytes:
    return struct.pack("<3Q", 0x112, 0, count)


def names(*names: bytes) -> bytes:
    return struct.pack("<Q", len(names)) + b"".join(struct.pack("<Q", len(name)) + name for name in names)


def shape(*dims: int) -> bytes:
    return struct.pack(f"<i{len(dims)}q", len(dims), *dims)


def dense(*dims: int, flag: int = 0, data: bytes = b"") -> bytes:
    return struct.pack("<Ii", V2_MAGIC, 0) + shape(*dims) + struct.pack("<3i", 1, 0, flag) + data


def sparse(storage: int, stored: bytes, whole: bytes, blocks: list[tuple[int, bytes]], data: bytes = b"") -> bytes:
    record = struct.pack("<Ii", V2_MAGIC, storage) + stored + whole + struct.pack("<3i", 1, 0, 0)
    return record + b"".join(struct.pack("<i", flag) + block for flag, block in blocks) + data


ONE = dense(1, data=b"\0\0\0\0")

BROKEN: dict[str, tuple[bytes, str]] = {
    "only a magic": (struct.pack("<Q", 0x112), "magic and reserved field: 16 bytes expected"),
    "count lies": (head(HUGE) + ONE + names(), f"promises {HUGE} arrays, but only 44 bytes follow"),
    "count one too many": (
        head(2) + ONE + names(),
        "list of names, byte 64: number of names: 8 bytes expected, 4 left",
    ),
    "no names part": (head(1) + ONE, "list of names, byte 60: number of names: 8 bytes expected, 0 left"),
    "10^18 elements": (
        head(1) + dense(10**9, 10**9) + names(),
        "record 0 of 1, byte 64: data of shape .* bytes expected",
    ),
    "product overflows": (head(1) + dense(2**62, 4) + names(), "more elements than any memory"),
    "product overflows to 0": (head(1) + dense(2**32, 2**32) + names(), "more elements than any memory"),
    "overflow hidden by 0": (head(1) + dense(2**62, 2**62, 0) + names(), "more elements than any memory"),
    "one element short": (head(1) + dense(4, data=bytes(7)), "data of shape .4,., float32: 16 bytes expected, 7 left"),
    "negative dimension": (head(1) + dense(2, -3) + names(), r"byte 32: shape \(2, -3\) has a negative dimension"),
    "unknown dimension": (head(1) + struct.pack("<Ii", V3_MAGIC, 0) + shape(-1) + names(), "negative dimension"),
    "negative ndim": (head(1) + struct.pack("<Iii", V2_MAGIC, 0, -1) + names(), "-1 dimensions; expected 0 to 32"),
    "huge ndim": (head(1) + struct.pack("<Ii", V1_MAGIC, 2**31 - 1) + names(), "2147483647 dimensions"),
    "dims missing": (head(1) + struct.pack("<II", 30, 1), "dimensions: 120 bytes expected, 4 left"),
    "bad record magic": (head(1) + struct.pack("<I", 0xDEADBEEF) + ONE, "an array starts with 0xdeadbeef; expected"),
    "storage type": (head(1) + struct.pack("<Ii", V2_MAGIC, 7) + ONE, "storage type 7; expected one of 0 dense"),
    "not allocated": (head(1) + struct.pack("<Ii", V2_MAGIC, -1) + ONE, "not allocated when MXNet"),
    "dtype flag": (head(1) + dense(1, flag=9) + ONE, "dtype flag 9; expected one of 0 float32"),
    "more names": (head(1) + ONE + names(b"a", b"b"), "2 names for 1 arrays"),
    "many names": (head(1) + ONE + struct.pack("<Q", HUGE), f"{HUGE} names for 1 arrays"),
    "long name": (head(1) + ONE + struct.pack("<QQ", 1, HUGE) + b"a", "name 0 of 1, byte 76: the name: .* 1 left"),
    "name not UTF-8": (head(1) + ONE + names(b"ab\xff"), r"name 0 of 1, byte 78: the name b'ab\\xff' is not UTF-8"),
    "trailing bytes": (head(1) + ONE + names(b"a") + b"xyz", "end, byte 77: 3 bytes follow the last name"),
    "csr of 3 dimensions": (
        head(1) + sparse(2, shape(0), shape(1, 2, 3), [(6, shape(2)), (6, shape(0))], bytes(16)) + names(),
        "csr arrays have two dimensions",
    ),
    "csr with another nnz": (
        head(1) + sparse(2, shape(2), shape(1, 3), [(6, shape(2)), (6, shape(1))], bytes(32)) + names(),
        "must be .nnz,.",
    ),
    "csr with too few rows": (
        head(1) + sparse(2, shape(0), shape(HUGE, 3), [(6, shape(2)), (6, shape(0))], bytes(16)) + names(),
        rf"csr indptr of shape \(2,\) for {HUGE} rows",
    ),
    "csr indices of two dimensions": (
        head(1) + sparse(2, shape(1), shape(1, 3), [(6, shape(2)), (6, shape(1, 1))], bytes(28)) + names(),
        "must be .nnz,.",
    ),
    "csr float indices": (head(1) + sparse(2, shape(0), shape(1, 3), [(0, shape(2))]), "dtype flag 0 for indices"),
    "csr indptr": (
        head(1)
        + sparse(2, shape(0), shape(1, 3), [(6, shape(2)), (6, shape(0))], struct.pack("<2q", 0, 5))
        + names(b"w"),
        r"record 0 of 1 \('w'\): csr indptr runs from 0 to 5; expected from 0 to nnz = 0",
    ),
    "row_sparse of other rows": (
        head(1) + sparse(1, shape(1, 3), shape(5, 2), [(6, shape(1))], bytes(20)) + names(),
        "row_sparse rows of shape",
    ),
    "row_sparse of other length": (
        head(1) + sparse(1, shape(1, 2), shape(5, 2), [(6, shape(2))], bytes(24)) + names(),
        r"row_sparse indices of shape \(2,\) for 1 stored rows",
    ),
    "row_sparse without dimensions": (head(1) + sparse(1, shape(0), shape(), [(6, shape(0))]) + names(), r"shape \(\)"),
    "row_sparse index": (
        head(1) + sparse(1, shape(1, 1), shape(5, 1), [(6, shape(1))], bytes(4) + struct.pack("<q", 5)) + names(),
        "row index 5; expected 0 to 4",
    ),
    "row_sparse overflow": (
        head(1) + sparse(1, shape(0, 2**40), shape(2**40, 2**40), [(6, shape(0))]) + names(),
        "more elements than any memory",
    ),
    "row_sparse nnz lies": (
        head(1) + sparse(1, shape(0), shape(HUGE, 4), [(6, shape(2**60))]) + names(),
        "row_sparse data",
    ),
}


def peak_of_reading(data: bytes) -> tuple[int, ParamsFormatError | None]:
    tracemalloc.start()
    try:
        read_params(data)
    except ParamsFormatError as caught:
        return tracemalloc.get_traced_memory()[1], caught
    else:
        return tracemalloc.get_traced_memory()[1], None
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_says_where(name: str) -> None:
    data, message = BROKEN[name]
    with pytest.raises(ParamsFormatError, match=rf"<buffer of {len(data)} bytes>: .*{message}"):
        read_params(data)
    peak, _ = peak_of_reading(data)
    assert peak < 2**18


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


class Bomb:
    """Fails the test when unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a file was unpickled",))


SAFETENSORS = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 51\n"

FOREIGN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", r"the file is empty \(0 bytes\)"),
    "git-LFS": (LFS, "git-LFS pointer.*git lfs pull"),
    "npz": (npz(a=np.ones(2)), "a zip archive.*allow_pickle=False"),
    "npy": (npy(np.ones(2)), "a numpy .npy array"),
    "npy with a pickle": (npy(np.array([Bomb()], object)), "a numpy .npy array"),
    "pickle": (pickle.dumps(Bomb()), "a Python pickle.*never unpickles"),
    "gzip": (gzip.compress(dumps([np.ones(2)])), "gzip-compressed"),
    "safetensors": (struct.pack("<Q", len(SAFETENSORS)) + SAFETENSORS + bytes(4), "a safetensors file"),
    "symbol JSON": (json.dumps({"nodes": [], "heads": []}, indent=2).encode(), "JSON text.*symbol.load"),
    "web page": (b"\n<!DOCTYPE html><html>Not found</html>", "a web page"),
    "text": (b"404: Not Found\n", "plain text"),
    "bare array": (dense_record(2, np.ones(3)), "one bare array"),
    "big endian": (struct.pack(">3Q", 0x112, 0, 0), "big-endian"),
    "noise": (b"\x99\x01\x02", "starts with 99 01 02; expected the magic 0x112"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_file_is_recognised(name: str, tmp_path: Path) -> None:
    data, message = FOREIGN[name]
    path = tmp_path / "net-0000.params"
    path.write_bytes(data)
    with pytest.raises(ParamsFormatError, match=rf"net-0000.params: header, byte 0: .*{message}"):
        read_params(path)


@pytest.mark.parametrize("data", GOLDEN)
def test_every_truncation_is_an_error(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(ParamsFormatError):
            read_params(data[:length])


def test_indices_are_checked_on_request_only() -> None:
    data, _ = BROKEN["row_sparse index"]
    (record,), _ = read_params(data, check_indices=False)
    assert isinstance(record, RowSparseRecord)
    assert record.index_problem()


def test_memory_follows_the_file_not_the_number_of_arrays() -> None:
    """The densest file that is valid: 50,000 entries without an array."""
    data = head(50_000) + bytes(4 * 50_000) + names()
    peak, error = peak_of_reading(data)
    assert error is None
    assert peak < 4 * len(data)


INTERESTING = [0, 1, 2, 3, 7, 12, 33, 127, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**60, 2**63 - 1, 2**63]
INTERESTING += [2**64 - 1, V1_MAGIC, V2_MAGIC, V3_MAGIC, HUGE]

edits = st.one_of(
    st.tuples(st.just("set"), st.integers(0, 800), st.binary(min_size=1, max_size=4)),
    st.tuples(st.just("u64"), st.integers(0, 200), st.sampled_from(INTERESTING)),
    st.tuples(st.just("u32"), st.integers(0, 200), st.sampled_from(INTERESTING)),
    st.tuples(st.just("insert"), st.integers(0, 800), st.binary(min_size=1, max_size=40)),
    st.tuples(st.just("delete"), st.integers(0, 800), st.integers(1, 64)),
    st.tuples(st.just("repeat"), st.integers(0, 800), st.integers(1, 64)),
)


def edited(data: bytes, edit: tuple[str, int, int | bytes]) -> bytes:
    kind, at, value = edit
    at = at * 4 if kind in ("u64", "u32") else at
    at %= len(data) + 1
    if isinstance(value, bytes):
        return data[:at] + value + data[at + len(value) * (kind == "set") :]
    if kind in ("u64", "u32"):
        raw = struct.pack("<Q", value)[: 8 if kind == "u64" else 4]
        return data[:at] + raw + data[at + len(raw) :]
    return data[:at] + (data[at : at + value] * 2 if kind == "repeat" else b"") + data[at + value :]


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(GOLDEN), st.lists(edits, min_size=1, max_size=4))
@example(GOLDEN[0], [("u64", 4, HUGE)])
def test_mutated_files_raise_nothing_else(data: bytes, changes: list[tuple[str, int, int | bytes]]) -> None:
    for change in changes:
        data = edited(data, change)
    peak, error = peak_of_reading(data)
    assert peak < 2**18 + 64 * len(data)
    if error is None:
        records, _ = read_params(data)
        for record in records:
            parts = [record] if isinstance(record, np.ndarray) else []
            if isinstance(record, CSRRecord | RowSparseRecord):
                parts = [record.data, record.indices]
            assert all(part.nbytes <= len(data) for part in parts)


@given(st.binary(max_size=300))
def test_noise_raises_nothing_else(data: bytes) -> None:
    for start in (b"", head(1), head(3), head(1) + struct.pack("<Ii", V2_MAGIC, 2)):
        with pytest.raises(ParamsFormatError):
            read_params(start + data + b"\xff")
