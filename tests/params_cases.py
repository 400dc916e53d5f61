"""What the golden `.params` files hold.

Read by `tests/oracle/record_params.py`, which has real MXNet write the files, and by `test_serialization.py`, which
reads and rewrites them. numpy alone: MXNet's environment has neither symjax nor ml_dtypes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

V1_MAGIC, V2_MAGIC, V3_MAGIC = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
FLAGS = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "uint8": 3,
    "int32": 4,
    "int8": 5,
    "int64": 6,
    "bool": 7,
    "bfloat16": 12,
}


@dataclass(frozen=True, eq=False)
class Item:
    """One array: its dense values, and the dtype and storage type it is saved with."""

    values: np.ndarray
    dtype: str = "float32"
    storage: str = "default"


Content = Mapping[str, Item] | Sequence[Item]


def _ramp(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 7 - 2).reshape(shape)


def _sparse(*shape: int) -> np.ndarray:
    values = _ramp(*shape).astype(np.float32)
    values[1] = 0
    values[..., 0] *= 0
    return values


# written by MXNet in its default mode, version 2
CASES: dict[str, Content] = {
    "dtypes": {
        dtype: Item(np.abs(_ramp(2, 3)) if dtype in ("uint8", "bool") else _ramp(2, 3), dtype) for dtype in FLAGS
    },
    "single": [Item(np.array([2.5]))],
    "list": [Item(_ramp(3)), Item(_ramp(1, 1, 4), "float64"), Item(np.array([7]), "int32")],
    "checkpoint": {
        "arg:fc_weight": Item(_ramp(4, 3)),
        "arg:fc_bias": Item(_ramp(4)),
        "aux:bn_moving_mean": Item(_ramp(4)),
    },
    "names": {"": Item(_ramp(1)), "größe/π.weight": Item(_ramp(2)), "a b": Item(_ramp(3), "int8")},
    "empty": [],
    "csr": {"w": Item(_sparse(4, 5), storage="csr"), "i": Item(_sparse(3, 2), "int32", "csr"), "d": Item(_ramp(2))},
    "row_sparse": {
        "w": Item(_sparse(4, 2, 3), storage="row_sparse"),
        "h": Item(_sparse(3, 2), "float16", "row_sparse"),
    },
    "zero_sparse": [Item(np.zeros((3, 4)), storage="csr"), Item(np.zeros((3, 4)), storage="row_sparse")],
}

# written by MXNet under numpy's shape semantics, version 3
NP_SHAPE_CASES: dict[str, Content] = {
    "np_shape": {
        "scalar": Item(np.array(1.5)),
        "none": Item(np.zeros((0, 3)), "int64"),
        "w": Item(_ramp(2, 2), "int8"),
    },
}


def _pack(items: Sequence[bytes], names: Sequence[str]) -> bytes:
    parts = [struct.pack("<3Q", 0x112, 0, len(items)), *items, struct.pack("<Q", len(names))]
    for name in names:
        parts += [struct.pack("<Q", len(name.encode())), name.encode()]
    return b"".join(parts)


def dense_record(version: int, values: np.ndarray, device: tuple[int, int] = (1, 0)) -> bytes:
    """One dense array as MXNet's version 0, 1, 2 or 3 wrote it."""
    shape = values.shape
    if version == 0:
        head = struct.pack(f"<I{len(shape)}I", len(shape), *shape)
    else:
        head = struct.pack("<I", (V1_MAGIC, V2_MAGIC, V3_MAGIC)[version - 1])
        head += struct.pack("<i", 0) if version > 1 else b""
        head += struct.pack(f"<i{len(shape)}q", len(shape), *shape)
    return head + struct.pack("<3i", *device, FLAGS[str(values.dtype)]) + values.tobytes()


def _csr_saved_too_early() -> bytes:
    """A csr array whose block of values is declared as (0,): MXNet writes it when it saves a pending result."""
    head = struct.pack("<Iiiqi2q", V2_MAGIC, 2, 1, 0, 2, 2, 3) + struct.pack("<3i", 1, 0, 0)
    head += struct.pack("<iiqiiq", 6, 1, 3, 6, 1, 2)
    return head + np.array([5, 6], "<f4").tobytes() + np.array([0, 1, 2, 2, 0], "<i8").tobytes()


W, I8 = _ramp(2, 3).astype(np.float32), _ramp(4).astype(np.int8)

# made by hand, since MXNet 1.9.1 no longer writes them; the recorder has it load each one: (bytes, what they hold)
CRAFTED: dict[str, tuple[bytes, Content]] = {
    "v0": (
        _pack([dense_record(0, W, (2, 3)), dense_record(0, I8)], ["arg:w", "i"]),
        {"arg:w": Item(W), "i": Item(I8, "int8")},
    ),
    "v1": (_pack([dense_record(1, W), dense_record(1, I8, (2, 1))], []), [Item(W), Item(I8, "int8")]),
    "mixed": (_pack([dense_record(v, W) for v in (0, 1, 2)], []), [Item(W)] * 3),
    "csr_early": (_pack([_csr_saved_too_early()], ["c"]), {"c": Item(np.array([[0, 0, 5], [6, 0, 0]]), storage="csr")}),
}
