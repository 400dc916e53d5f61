"""Optimizer states that MXNet pickled (`.states` files): an unpickler that makes arrays and plain containers only."""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from symjax import serialization
from symjax._params_format import LIST_MAGIC
from symjax.context import cpu
from symjax.lowering.errors import ParamsFormatError
from symjax.ndarray import NDArray
from symjax.ndarray.storage import NDArrayBase, class_of, to_device

_ARRAYS = (
    ("mxnet.ndarray.ndarray", "NDArray"), ("mxnet.ndarray.sparse", "RowSparseNDArray"),
    ("mxnet.ndarray.sparse", "CSRNDArray"), ("mxnet.numpy.multiarray", "ndarray"),
)  # fmt: skip
_DEPTH = 8


def loads(data: bytes) -> dict[Any, Any]:
    """Reads states that MXNet pickled; arrays lie on the CPU. No code of the pickle runs.

    Raises:
      ParamsFormatError: the pickle is broken, or holds something else than arrays, numbers, text and containers.
    """
    try:
        states = _Plain().of(_Unpickler(data).load(), 0)
    except ParamsFormatError:
        raise
    except Exception as e:  # broken bytes raise anything
        raise ParamsFormatError(f"broken optimizer states (a Python pickle): {type(e).__name__}: {e}") from None
    if not isinstance(states, dict):
        raise ParamsFormatError(f"these pickled optimizer states are a {type(states).__name__}; expected a dict by "
                                f"index")
    return states


class _Unpickler(pickle.Unpickler):
    """Resolves the classes of arrays and what protocol 2 needs to write bytes, and nothing else."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        # New ones each time: a pickle can set attributes of what it names.
        self._known = _stand_ins()

    def find_class(self, module: str, name: str) -> Any:
        found = self._known.get((module, name))
        return found if found is not None else _refuse(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        _refuse("a persistent object")


def _refuse(what: str) -> NoReturn:
    hint = "; save the states without the optimizer (dump_optimizer=False)" if "optimizer" in what else ""
    raise ParamsFormatError(f"these optimizer states are a Python pickle that names {what}. A pickle can run any code, "
                            f"so symjax reads arrays, numbers, text and containers of them, and nothing else{hint}")


class _Holder:
    """Where the array of a pickle comes to lie."""

    value: Any = None


def _stand_ins() -> dict[tuple[str, str], Callable[..., Any]]:
    class Array(_Holder):
        def __init__(self, handle: Any = None) -> None:
            pass

        def __setstate__(self, state: Any) -> None:
            handle = state.get("handle") if isinstance(state, dict) else None
            if isinstance(handle, (bytes, bytearray)):
                self.value = _array(bytes(handle))

    def make_bytearray(value: Any = b"", encoding: Any = None) -> bytearray:
        if isinstance(value, str) and encoding == "latin-1":
            return bytearray(value, "latin-1")
        # bytearray itself would set memory aside for a bare number
        if encoding is not None or not isinstance(value, (bytes, bytearray)):
            raise ParamsFormatError("broken optimizer states: a bytearray of something else than bytes")
        return bytearray(value)

    def encode(text: str, encoding: str) -> bytes:
        if encoding not in ("latin1", "latin-1"):
            raise ParamsFormatError("broken optimizer states: bytes in an unknown form")
        return text.encode("latin-1")

    known: dict[tuple[str, str], Any] = dict.fromkeys(_ARRAYS, Array)
    known["builtins", "bytearray"] = known["__builtin__", "bytearray"] = make_bytearray
    known["_codecs", "encode"] = encode
    return known


def _array(data: bytes) -> Any:
    """An array from one record of a `.params` file, as which MXNet pickles it."""
    whole = struct.pack("<QQQ", LIST_MAGIC, 0, 1) + data + struct.pack("<Q", 0)
    (record,), _ = serialization.read_params(whole)
    if record is None:
        return None
    if isinstance(record, np.ndarray):
        return NDArray._from_jax(to_device(np.array(record), cpu()), cpu())
    return class_of("csr" if isinstance(record, serialization.CSRRecord) else "row_sparse")._from_record(record)


class _Plain:
    """Replaces holders by their arrays, and refuses everything that is neither plain nor a container."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}  # what is named twice is converted once

    def of(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if id(value) not in self._done:
            if depth > _DEPTH:
                raise ParamsFormatError("broken optimizer states: nested too deeply")
            self._done[id(value)] = self._made(value, depth + 1)
        return self._done[id(value)]

    def _made(self, value: Any, depth: int) -> Any:
        if isinstance(value, _Holder):
            if not isinstance(value.value, NDArrayBase):
                raise ParamsFormatError("an array in these optimizer states holds nothing")
            return value.value
        if type(value) in (list, tuple):
            return type(value)(self.of(v, depth) for v in value)
        if type(value) is dict:
            # updaters of a kvstore have bytes as keys
            return {k.decode() if isinstance(k, bytes) else self.of(k, depth): self.of(v, depth)
                    for k, v in value.items()}
        raise ParamsFormatError(f"these pickled optimizer states hold a {type(value).__name__}")
