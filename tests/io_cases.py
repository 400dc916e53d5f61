"""Runs of data iterators that are recorded from MXNet and repeated here: files, arguments, what is called."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

ROWS = "1 0:0.5 2:1.2\n-2\n-3 0:0.6 1:2.4 2:1.2\n4 2:-1.2\n5 0:1\n"
LABELS = "1\n-2 0:.125\n-3 2:1.2\n4 1:1 2:-1.2\n5\n"
CSV = "1,2,3\n2,3,4\n3,4,5\n4,5,6\n"
MANY = "".join(f"{i}" + "".join(f" {j}:{i * j}" for j in range(i % 4)) + "\n" * (1 + i % 3 // 2) for i in range(30))


class Case(NamedTuple):
    """Files by name, the iterator, its arguments, and how many batches at most are taken in each epoch."""

    files: dict[str, str]
    cls: str
    args: dict[str, Any]
    plan: tuple[int, ...] = (99, 99, 99)


def _libsvm(text: str, **args: Any) -> Case:
    return Case({"a.t": text}, "LibSVMIter", {"data_libsvm": "a.t", "data_shape": (3,), "batch_size": 2, **args})


def _csv(text: str, **args: Any) -> Case:
    return Case({"a.csv": text, "l.csv": "1,1\n2,2\n3,3\n4,4\n"}, "CSVIter",
                {"data_csv": "a.csv", "data_shape": (3,), "batch_size": 3, **args})


def _parts(number: int, index: int) -> Case:
    files = {"f0.t": MANY[:150], "f1.t": MANY[150:310].replace("\n", "\r\n"), "f2.t": MANY[310:].rstrip()}
    args = {"data_libsvm": "f0.t;f1.t;f2.t", "data_shape": (4,), "batch_size": 1, "num_parts": number,
            "part_index": index}
    return Case(files, "LibSVMIter", args, (99,))


def _mnist(**args: Any) -> Case:
    images = struct.pack(">IIII", 2051, 5, 2, 3) + bytes(i * 7 for i in range(30))
    labels = struct.pack(">II", 2049, 5) + bytes(range(5))
    files = {"i": images.decode("latin-1"), "l": labels.decode("latin-1")}
    return Case(files, "MNISTIter", {"image": "i", "label": "l", "batch_size": 2, "shuffle": False, **args})


def _two(**args: Any) -> Case:
    return Case({"a.t": ROWS, "l.t": LABELS}, "LibSVMIter",
                {"data_libsvm": "a.t", "label_libsvm": "l.t", "data_shape": (3,), "label_shape": (3,), "batch_size": 2,
                 **args})


FILES: dict[str, Case] = {
    "wraps": _libsvm(ROWS),
    "wraps by one": _libsvm(ROWS, batch_size=3),
    "whole file": _libsvm(ROWS, batch_size=5),
    "shape as a number": _libsvm(ROWS, data_shape=3),
    "names": _libsvm(ROWS, data_name="x", label_name="y"),
    "label weights": _libsvm("1:0.5 0:1\n2:0.25 1:1\n"),
    "query ids": _libsvm("1 qid:3 0:1\n2 qid:3 1:1\n"),
    "order and repetition": _libsvm("1 1:1 1:2\n2 2:1 0:1\n"),
    "carriage returns": _libsvm("1 0:1\r\n2 1:1\r\n3\r\n"),
    "old line ends": _libsvm("1 0:1\r2 1:1\r3\r"),
    "blanks": _libsvm("1\t0:1\t\t1:2  \n  2 1:1\n\n\n3 1 :2 2: 3"),
    "comments": _libsvm("1 0:1 # x:1\n\n   \n2 1:1\n3 2:1#to\n"),
    "numbers": _libsvm("+1 0:1e-3 1:1E5 2:+2.5\n.5 2:-inf\n1e1 0:0.1234567890123456789 1:5.\n-.5 +0:2 01:100\n"),
    "columns from 1": Case({"a.t": ROWS.replace("2:", "3:").replace("0:", "1:")}, "LibSVMIter",
                           {"data_libsvm": "a.t?indexing_mode=1", "data_shape": (3,), "batch_size": 2}),
    "several files": Case({"a.t": "1 0:1\n2 1:1", "b.t": "3 2:1"}, "LibSVMIter",
                          {"data_libsvm": "b.t;a.t", "data_shape": (3,), "batch_size": 2}),
    "directory": Case({"d/b.t": "1 0:1\n2 1:1\n", "d/a.t": "3 2:1\n", "d/e/c.t": "4\n", "d/.h": "5\n", "d/o": ""},
                      "LibSVMIter", {"data_libsvm": "d", "data_shape": (3,), "batch_size": 2}),
    "pattern": Case({"d/b.t": "1 0:1\n2 1:1\n", "d/a.u": "3 2:1\n"}, "LibSVMIter",
                    {"data_libsvm": "d/.*t", "data_shape": (3,), "batch_size": 1}),
    "labels in a file": _two(),
    "labels in a file, wraps by one": _two(batch_size=3),
    "more labels than rows": Case({"a.t": ROWS, "l.t": LABELS + "6 0:1\n"}, "LibSVMIter", _two().args),
    "csv": _csv(CSV),
    "csv int32": _csv(CSV, dtype="int32"),
    "csv labels": _csv(CSV, label_csv="l.csv", label_shape=(2,), batch_size=2),
    "csv shape": _csv(CSV, data_shape=(3, 1), batch_size=2),
    "mnist": _mnist(),
    "mnist flat part": _mnist(flat=True, num_parts=2, part_index=1),
    **{f"part {i} of {n}": _parts(n, i) for n in (2, 3, 5) for i in range(n)},
}

ERRORS: dict[str, Case] = {
    "no such file": Case({}, "LibSVMIter", {"data_libsvm": "a.t", "data_shape": (3,), "batch_size": 2}),
    "empty file": _libsvm(""),
    "matrix shape": _libsvm(ROWS, data_shape=(3, 1)),
    "label_shape without a file": _libsvm(ROWS, label_shape=(2,)),
    "label_shape of one with a file": _two(label_shape=(1,)),
    "fewer labels than rows": Case({"a.t": ROWS, "l.t": "1\n2\n"}, "LibSVMIter", _two().args),
    "two labels": _libsvm("1,7 0:1\n2,8 1:1\n"),
    "no value after a colon": _libsvm("1 0: 1:2\n2 1:1\n"),
    "two values": _libsvm("1 1:2:3 2:1\n2 1:1\n"),
    "not a value": _libsvm("1 0:xyz 1:2\n2 1:1\n"),
    "negative column": _libsvm("1 -1:1 2:1\n2 1:1\n"),
    "batch of more than twice the file": _libsvm(ROWS, batch_size=12),
    "no batch_size": Case({"a.t": ROWS}, "LibSVMIter", {"data_libsvm": "a.t", "data_shape": (3,)}),
    "part of none": _libsvm(ROWS, num_parts=0),
    "part beyond": _libsvm(ROWS, num_parts=2, part_index=2),
    "csv columns": _csv(CSV + "1,2\n"),
    "csv text": _csv(CSV + "1,2,x\n"),
    "csv batch": _csv(CSV, batch_size=9),
}

ARRAYS: dict[str, dict[str, Any]] = {
    f"{n} by {b}, {handle}{', shuffled' if shuffle else ''}": {
        "count": n, "batch_size": b, "last_batch_handle": handle, "shuffle": shuffle}
    for handle in ("pad", "discard", "roll_over") for n, b, shuffle in
    ((6, 3, False), (7, 3, False), (8, 3, True), (4, 9, False), (3, 2, True), (5, 8, False))
    if handle != "roll_over" or b < 8  # MXNet fails
}
"""Arguments of `NDArrayIter` over `count` examples."""


def write(case: Case) -> None:
    """Writes the files of a case into the current directory."""
    for name, text in case.files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1" if case.cls == "MNISTIter" else "utf-8"))


def arrays_of(a: Any) -> dict[str, Any]:
    """An array of a batch, dense or csr, as JSON."""
    out = {"stype": a.stype, "shape": list(a.shape), "dtype": a.dtype.__name__}
    if a.stype == "csr":
        return {**out, "data": a.data.asnumpy().tolist(), "indices": a.indices.asnumpy().tolist(),
                "indptr": a.indptr.asnumpy().tolist()}
    return {**out, "data": a.asnumpy().ravel().tolist()}


def walk(iterator: Any, plan: tuple[int, ...]) -> list[Any]:
    """The batches of each epoch as JSON."""
    epochs = []
    for most in plan:
        batches = []
        while len(batches) < most:
            try:
                b = iterator.next()
            except StopIteration:
                break
            index = None if b.index is None else b.index.tolist()
            batches.append({"data": [arrays_of(a) for a in b.data], "label": [arrays_of(a) for a in b.label],
                            "pad": b.pad, "index": index})
        epochs.append(batches)
        iterator.reset()
    return epochs


def run_arrays(mx: Any, np: Any, args: dict[str, Any]) -> list[Any]:
    """Walks an `NDArrayIter` over two sources and a label, with numpy's generator seeded."""
    args = dict(args)
    n = args.pop("count")
    np.random.seed(n)
    data = {"b": np.arange(n * 2).reshape(n, 2), "a": np.arange(n) / 4}
    it = mx.io.NDArrayIter(data, np.arange(n) * 10.0, **args)
    return [[d.name for d in it.provide_data], walk(it, (99, 99, 99))]
