"""Optimizer states as bytes: a `.params` file of the arrays, and a JSON text that says how they are nested.

Nothing is unpickled (but for MXNet's own files, by `_pickled`): reading makes numbers, text, arrays, and instances of
optimizer and scheduler classes that the program has defined, of which it sets the attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from symjax import serialization
from symjax.context import cpu
from symjax.lowering.errors import ParamsFormatError
from symjax.lr_scheduler import LRScheduler
from symjax.ndarray import NDArray
from symjax.ndarray._sparse_array import BaseSparseNDArray
from symjax.ndarray.storage import NDArrayBase, class_of, to_device
from symjax.optimizer import _pickled
from symjax.optimizer._base import Optimizer

_MANIFEST = "symjax:optimizer_states"
_VERSION = 1
_KINDS: dict[str, type] = {"optimizer": Optimizer, "scheduler": LRScheduler}


def dumps(states: dict[Any, Any], optimizer: Optimizer | None = None) -> bytes:
    """Returns states, and an optimizer if given, as bytes.

    Raises:
      TypeError: an attribute of the optimizer is neither a number, text, an array, a scheduler nor a container of such.
    """
    writer = _Writer()
    manifest: dict[str, Any] = {"version": _VERSION, "states": writer.encode(states, "states")}
    if optimizer is not None:
        manifest["optimizer"] = writer.encode(optimizer, "optimizer")
    text = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    names = [_MANIFEST, *(f"array:{i}" for i in range(len(writer.arrays)))]
    has_scalars = any(isinstance(a, np.ndarray) and a.ndim == 0 for a in writer.arrays)
    return serialization.dumps([text, *writer.arrays], names, np_shape=has_scalars)


def loads(data: bytes) -> tuple[dict[Any, Any], Optimizer | None]:
    """Reads what `dumps` or MXNet wrote and returns (states, optimizer or None); arrays lie on the CPU.

    Raises:
      ValueError: the bytes are something else: a broken file, a class that is not defined, a pickle with more than
        arrays.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"optimizer states are bytes, got {type(data).__name__}")
    if bytes(data[:1]) == b"\x80":
        return _pickled.loads(bytes(data)), None
    records, names = serialization.read_params(bytes(data))
    arrays = dict(zip(names, records, strict=bool(names)))
    text = arrays.get(_MANIFEST)
    if not isinstance(text, np.ndarray):
        raise ParamsFormatError("these are not optimizer states that symjax wrote (get_states)")
    try:
        manifest = json.loads(bytes(text))
        if manifest["version"] != _VERSION:
            raise ParamsFormatError(f"optimizer states of version {manifest['version']}; this symjax reads {_VERSION}")
        states = _decode(manifest["states"], arrays)
        optimizer = _decode(manifest["optimizer"], arrays) if "optimizer" in manifest else None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as e:
        if isinstance(e, ParamsFormatError):
            raise
        raise ParamsFormatError(f"broken optimizer states: {type(e).__name__}: {e}") from None
    if not isinstance(states, dict) or not (optimizer is None or isinstance(optimizer, Optimizer)):
        raise ParamsFormatError("broken optimizer states: expected a dict of states and an optimizer")
    return states, optimizer


class _Writer:
    """Turns Python values into JSON ones and collects their arrays."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []

    def record(self, value: Any) -> Any:
        """Returns what is kept of an array."""
        return _record(value)

    def encode(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (NDArrayBase, np.ndarray)):
            kind = "array" if isinstance(value, NDArrayBase) else "numpy"
            self.arrays.append(self.record(value))
            return {kind: len(self.arrays) - 1}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, (list, tuple)):
            items = [self.encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, dict):
            return {"dict": [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        for kind, base in _KINDS.items():
            if isinstance(value, base):
                fields = value.__getstate__() if kind == "optimizer" else vars(value)
                return {kind: _path(type(value)), "fields": self.encode(dict(fields), where)}
        raise TypeError(f"{where} is a {type(value).__name__}, which optimizer states cannot hold; save them without "
                        f"the optimizer (dump_optimizer=False)")


def _record(value: Any) -> serialization.ParamsRecord:
    if isinstance(value, BaseSparseNDArray):
        return value._to_record()
    return np.asarray(value.asnumpy() if isinstance(value, NDArray) else value)


def _path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _subclasses(base: type) -> Iterator[type]:
    yield base
    for c in base.__subclasses__():
        yield from _subclasses(c)


def _decode(value: Any, arrays: dict[str, Any]) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    if isinstance(value, list):
        return [_decode(v, arrays) for v in value]
    (kind, content), *rest = value.items()
    if kind in ("array", "numpy"):
        record = arrays[f"array:{content}"]
        if isinstance(record, NDArrayBase):
            return record
        if not isinstance(record, np.ndarray):
            stype = "csr" if isinstance(record, serialization.CSRRecord) else "row_sparse"
            return class_of(stype)._from_record(record)
        record = np.array(record)
        return record if kind == "numpy" else NDArray._from_jax(to_device(record, cpu()), cpu())
    if kind == "tuple":
        return tuple(_decode(v, arrays) for v in content)
    if kind == "dict":
        return {_decode(k, arrays): _decode(v, arrays) for k, v in content}
    made = _new(kind, content)
    fields = _decode(dict(rest)["fields"], arrays)
    if kind == "optimizer":
        made.__setstate__(fields)
    else:
        vars(made).update(fields)
    return made


def _new(kind: str, path: str) -> Any:
    """Makes an empty instance of an optimizer or scheduler class that is defined already."""
    for cls in _subclasses(_KINDS[kind]):
        if _path(cls) == path:
            return object.__new__(cls)
    raise ParamsFormatError(f"optimizer states hold the {kind} {path}, which is not defined; import its module first")
