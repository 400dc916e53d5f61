"""Checkpoints as one safetensors file: parameters by their names, the symbol JSON in the metadata.

Any program that reads safetensors reads the parameters; symjax reads the graph as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import safetensors
import safetensors.numpy

from symjax._files import atomic_write
from symjax.lowering.errors import ParamsFormatError

if TYPE_CHECKING:
    from symjax.ndarray import NDArray
    from symjax.symbol import Symbol

_SYMBOL, _AUX = "symjax.symbol", "symjax.aux"


def save(
    path: str | os.PathLike[str],
    symbol: Symbol | None,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any] | None = None,
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes a checkpoint to one file, atomically.

    Args:
      path: the file.
      symbol: the graph, or None for parameters alone.
      arg_params: parameters by name: NDArrays or arrays.
      aux_params: auxiliary states by name.
      metadata: further texts to store, by keys that do not begin with "symjax.".

    Raises:
      ValueError: a name stands for a parameter and an auxiliary state at once, or safetensors does not have the dtype.
      OSError: the file cannot be written; the old one stays.
    """
    aux_params = aux_params or {}
    both = sorted(set(arg_params) & set(aux_params))
    if both:
        raise ParamsFormatError(f"{both[0]!r} is a parameter and an auxiliary state; names in one file must differ")
    reserved = [k for k in metadata or {} if k.startswith("symjax.")]
    if reserved:
        raise ParamsFormatError(f"metadata key {reserved[0]!r}: keys that begin with 'symjax.' are symjax's own")
    texts = {**(metadata or {}), _AUX: json.dumps(sorted(aux_params))}
    if symbol is not None:
        texts[_SYMBOL] = symbol.tojson(remove_amp_cast=False)
    arrays = {k: _numpy(v) for k, v in {**arg_params, **aux_params}.items()}
    try:
        contents = safetensors.numpy.save(arrays, metadata=texts)
    except (safetensors.SafetensorError, KeyError, ValueError) as e:
        raise ParamsFormatError(f"{os.fspath(path)}: {e}") from e
    with atomic_write(path) as file:
        file.write(contents)


def load(path: str | os.PathLike[str]) -> tuple[Symbol | None, dict[str, NDArray], dict[str, NDArray]]:
    """Reads a file and returns (symbol, arg_params, aux_params), as `model.load_checkpoint` does.

    The symbol is None in a file of another program; names with `arg:` or `aux:` before them are split there.

    Raises:
      MXNetError: the file is broken or not a safetensors file.
      OSError: the file cannot be opened.
    """
    from symjax import symbol
    from symjax.model import split_params

    try:
        with safetensors.safe_open(os.fspath(path), framework="numpy") as file:
            texts = file.metadata() or {}
            arrays = {k: _ndarray(file.get_tensor(k)) for k in file.keys()}  # noqa: SIM118 (it is no dict)
        states = set(json.loads(texts[_AUX])) if _AUX in texts else None
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError) as e:
        raise ParamsFormatError(f"{os.fspath(path)}: not a safetensors file that symjax can read: {e}") from e
    net = symbol.load_json(texts[_SYMBOL]) if _SYMBOL in texts else None
    if states is None:
        return net, *split_params(arrays)
    return net, {k: v for k, v in arrays.items() if k not in states}, {k: v for k, v in arrays.items() if k in states}


def metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The texts that `save` was given as metadata (and those of other programs)."""
    try:
        with safetensors.safe_open(os.fspath(path), framework="numpy") as file:
            return {k: v for k, v in (file.metadata() or {}).items() if not k.startswith("symjax.")}
    except safetensors.SafetensorError as e:
        raise ParamsFormatError(f"{os.fspath(path)}: {e}") from e


def _numpy(value: Any) -> np.ndarray:
    return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value, order="C")


def _ndarray(value: np.ndarray) -> NDArray:
    from symjax.context import cpu
    from symjax.ndarray import NDArray

    with jax.enable_x64(True):
        return NDArray._from_jax(jax.device_put(value, cpu().jax_device), cpu())
