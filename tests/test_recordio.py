"""Record files, byte for byte as real MXNet writes them; broken ones; other processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symjax as mx
from symjax._record_format import MAGIC, RecordFile, encode
from tests.parity.oracle import oracle_python
from tests.recordio_cases import HEADERS, RECORDS

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "recordio.json").read_text())
recordio = mx.recordio


def write(folder: Path, records: list[bytes] = RECORDS) -> tuple[str, str]:
    idx, rec = str(folder / "a.idx"), str(folder / "a.rec")
    writer = recordio.MXIndexedRecordIO(idx, rec, "w")
    for i, record in enumerate(records):
        assert writer.tell() == (os.path.getsize(rec) if i == 0 else writer.tell())
        writer.write_idx(3 * i, record)
    writer.close()
    return idx, rec


def read_all(path: str) -> list[bytes]:
    reader, found = recordio.MXRecordIO(path, "r"), []
    while (record := reader.read()) is not None:
        found.append(record)
    assert reader.read() is None
    reader.close()
    return found


def test_files_are_mxnets_byte_for_byte(tmp_path: Path) -> None:
    idx, rec = write(tmp_path)
    assert Path(rec).read_bytes().hex() == GOLDEN["rec"]
    assert Path(idx).read_text() == GOLDEN["idx"]


def test_reads_what_mxnet_wrote(tmp_path: Path) -> None:
    (tmp_path / "a.rec").write_bytes(bytes.fromhex(GOLDEN["rec"]))
    (tmp_path / "a.idx").write_text(GOLDEN["idx"])
    assert read_all(str(tmp_path / "a.rec")) == RECORDS
    reader = recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "r")
    assert reader.keys == [3 * i for i in range(len(RECORDS))]
    for i in reversed(range(len(RECORDS))):
        assert reader.read_idx(3 * i) == RECORDS[i]
    with pytest.raises(KeyError):
        reader.read_idx(1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from([MAGIC, b"x", b"yz", b"1234", MAGIC[:2]])).map(b"".join), max_size=4))
def test_any_bytes_come_back(tmp_path_factory: pytest.TempPathFactory, records: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("r") / "a.rec"
    path.write_bytes(b"".join(bytes(p) for r in records for p in encode(r)))
    assert read_all(str(path)) == records
    file = RecordFile(str(path))
    starts = list(file.offsets())
    assert [file.read_at(o)[0] for o in starts] == records
    for count in (1, 2, 3, 7):  # parts hold every record exactly once
        parts = [list(file.offsets(*file.partition(i, count))) for i in range(count)]
        assert [o for part in parts for o in part] == starts
    file.close()


def test_headers_are_mxnets() -> None:
    for header, want in zip(HEADERS, GOLDEN["packed"], strict=True):
        packed = recordio.pack(recordio.IRHeader(*header), b"data")
        assert packed.hex() == want
        found, data = recordio.unpack(packed)
        assert data == b"data" and found[2:] == header[2:]
        np.testing.assert_allclose(found.label, np.float32(header[1]).ravel() if found.flag else header[1], rtol=1e-7)
    assert repr(recordio.IRHeader(0, 1, 2, 3)) == "HEADER(flag=0, label=1, id=2, id2=3)"


@pytest.mark.parametrize("fmt", [".jpg", ".png"])
@pytest.mark.parametrize("pillow", [False, True])
def test_images(fmt: str, pillow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if pillow:
        monkeypatch.setitem(sys.modules, "cv2", None)
    y, x = np.mgrid[:16, :24]
    image = np.stack([x * 8, y * 12, 255 - x * 8], -1).astype(np.uint8)
    for picture, colour in ((image, 1), (image, -1), (image[:, :, 0], 0), (image[:, :, 0], -1)):
        record = recordio.pack_img((0, [1.0, 2.0], 7, 0), picture, quality=9 if fmt == ".png" else 95, img_fmt=fmt)
        header, back = recordio.unpack_img(record, colour)
        assert back is not None and back.shape == picture.shape and header.label.tolist() == [1, 2]
        assert abs(back.astype(int) - picture).max() <= (0 if fmt == ".png" else 12)
    assert recordio.unpack_img(recordio.pack((0, 1, 2, 3), b"no image"))[1] is None


WHOLE = b"".join(bytes(p) for r in (b"first record", b"abcd" + MAGIC + b"efgh", b"last") for p in encode(r))


@pytest.mark.parametrize(("change", "at", "text"), [
    (lambda b: b[:-1], 44, "3"), (lambda b: b[:22], 20, "header"), (lambda b: b"garbage!" * 3, 0, "0a23d7ce"),
    (lambda b: b[:4] + b"\xff\xff\xff\x1f" + b[8:], 0, "536870911"),
    (lambda b: b[20:24] + b"\x04\0\0\x60" + b[28:], 0, "kind 3"),
    (lambda b: b[:32] + encode_part(0, b"efgh"), 32, "kind 0"), (lambda b: b[:32], 32, "header"),
])  # fmt: skip
def test_broken_files(tmp_path: Path, change: Any, at: int, text: str) -> None:
    path = tmp_path / "broken.rec"
    path.write_bytes(change(WHOLE))
    with pytest.raises(mx.MXNetError) as e:
        read_all(str(path))
    assert f"{path}: not a valid record file: at byte {at}: " in str(e.value) and text in str(e.value)


def encode_part(kind: int, data: bytes) -> bytes:
    return MAGIC + (kind << 29 | len(data)).to_bytes(4, "little") + data


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), st.integers(0, len(WHOLE)))
def test_any_damage_is_an_error_or_records(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, n: int
) -> None:
    data = bytearray(WHOLE)
    data[at] = byte
    path = tmp_path_factory.mktemp("r") / "a.rec"
    path.write_bytes(data[:n])
    try:
        assert sum(map(len, read_all(str(path)))) <= n
    except mx.MXNetError as e:
        assert str(path) in str(e)


def test_wrong_use(tmp_path: Path) -> None:
    idx, rec = write(tmp_path)
    reader = recordio.MXRecordIO(rec, "r")
    with pytest.raises(AssertionError):
        reader.write(b"x")
    with pytest.raises(AssertionError):
        recordio.MXRecordIO(str(tmp_path / "b.rec"), "w").read()
    with pytest.raises(ValueError, match="Invalid flag a"):
        recordio.MXRecordIO(rec, "a")
    with pytest.raises(mx.MXNetError, match=r"nope\.rec"):
        recordio.MXRecordIO(str(tmp_path / "nope.rec"), "r")
    with pytest.raises(mx.MXNetError, match="local files only"):
        recordio.MXRecordIO("s3://bucket/a.rec", "r")
    reader.close()
    reader.close()
    with pytest.raises(RuntimeError, match="closed"):
        reader.read()
    Path(idx).write_text("0\t0\nbad line\n")
    with pytest.raises(mx.MXNetError, match="line 2"):
        recordio.MXIndexedRecordIO(idx, rec, "r")
    Path(idx).write_text("0\t99999\n")
    with pytest.raises(mx.MXNetError, match="99999"):
        recordio.MXIndexedRecordIO(idx, rec, "r").read_idx(0)
    for bad in (b"abc", recordio.pack((0, [1, 2], 0, 0), b"")[:-1]):
        with pytest.raises(mx.MXNetError, match="record"):
            recordio.unpack(bad)
    with pytest.raises(mx.MXNetError, match="64 bits"):
        recordio.pack((0, 1, -1, 0), b"")


def test_reset_seek_and_pickle(tmp_path: Path) -> None:
    idx, rec = write(tmp_path)
    reader = recordio.MXIndexedRecordIO(idx, rec, "r")
    assert [reader.read(), reader.read()] == RECORDS[:2]
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.read() == RECORDS[0] and copy.keys == reader.keys
    assert reader.read() == RECORDS[2]
    while reader.read() is not None:
        pass
    reader.seek(12)
    assert reader.read() == RECORDS[4]
    reader.reset()
    assert reader.read() == RECORDS[0]
    writer = recordio.MXRecordIO(str(tmp_path / "w.rec"), "w")
    writer.write(b"gone")
    with pytest.raises(mx.MXNetError, match="pickled"):
        pickle.dumps(writer)
    writer.reset()
    writer.write(b"kept")
    writer.close()
    assert read_all(str(tmp_path / "w.rec")) == [b"kept"]


def _in_child(reader: Any, queue: Any) -> None:
    try:
        reader.read()
    except RuntimeError as e:
        queue.put(str(e))
    queue.put(reader.read_idx(9))


def test_a_forked_process(tmp_path: Path) -> None:
    reader = recordio.MXIndexedRecordIO(*write(tmp_path), "r")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(reader, queue))
    child.start()
    assert "Forbidden operation in multiple processes" in queue.get(timeout=30)
    assert queue.get(timeout=30) == RECORDS[3]
    child.join(30)


@pytest.mark.oracle
def test_mxnet_reads_what_symjax_wrote(tmp_path: Path) -> None:
    python = oracle_python()
    if python is None:
        pytest.skip("real MXNet is not installed: run `make oracle` or set SYMJAX_ORACLE_PYTHON")
    _, rec = write(tmp_path)
    script = Path(__file__).parent / "oracle" / "record_recordio.py"
    made = subprocess.run([str(python), str(script), rec], capture_output=True, text=True, timeout=120, check=True)
    assert [bytes.fromhex(r) for r in json.loads(made.stdout)] == RECORDS
