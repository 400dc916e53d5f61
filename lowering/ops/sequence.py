"""Padded batches of sequences: SequenceLast, SequenceMask, SequenceReverse. Axis 0 is time unless `axis` says so."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from symjax.lowering.errors import ParamError, ShapeError
from symjax.lowering.params import Params, param
from symjax.lowering.registry import ShapeLike, op


class SequenceParams(Params):
    use_sequence_length: bool = param(False, doc="Read the lengths from the second input; else all are full.")
    axis: int = param(0, doc="Time axis, 0 or 1; the other one is the batch.")


class SequenceMaskParams(SequenceParams):
    value: float = param(0.0, doc="What is written after the end of each sequence.")


def _inputs(p: SequenceParams) -> tuple[str, ...]:
    return ("data", "sequence_length") if p.use_sequence_length else ("data",)


def _lengths_shape(p: SequenceParams, ins: list[ShapeLike], outs: list[ShapeLike]) -> list[ShapeLike]:
    data = ins[0]
    if not p.use_sequence_length or data is None or len(data) < 2:
        return ins
    return [data, (data[1 - _time_axis(p)],)]


def _types(p: SequenceParams, ins: list[str | None], outs: list[str | None]) -> tuple[Sequence[str | None],
                                                                                    Sequence[str | None]]:
    """Lengths may have any type; that of the data where nothing says it."""
    known = ins[0] or outs[0]
    return [known, *(t or known for t in ins[1:])], [known]


def _time_axis(p: SequenceParams) -> int:
    if p.axis not in (0, 1):
        raise ParamError(f"axis={p.axis} must be 0 or 1")
    return p.axis


def _by_time(p: SequenceParams, data: Array, lengths: Array | None) -> tuple[Array, Array | None]:
    """Time first, and integer lengths limited to [0, T]."""
    if data.ndim < 2:
        raise ShapeError(f"argument 'data': expected at least 2 axes (time and batch), got {data.shape}")
    x = jnp.moveaxis(data, _time_axis(p), 0)
    if lengths is None:
        return x, None
    if lengths.shape != (x.shape[1],):
        raise ShapeError(f"argument 'sequence_length': expected ({x.shape[1]},), got {lengths.shape}")
    return x, jnp.clip(lengths.astype(jnp.int32), 0, x.shape[0])


def _against(lengths: Array, x: Array) -> Array:
    """Lengths (N,) shaped to broadcast against (T, N, …)."""
    return lengths.reshape(1, -1, *(1,) * (x.ndim - 2))


def _steps(x: Array) -> Array:
    return jnp.arange(x.shape[0], dtype=jnp.int32).reshape(-1, *(1,) * (x.ndim - 1))


@op("SequenceMask", aliases=("_npx_sequence_mask",), params=SequenceMaskParams, inputs=_inputs,
    infer_inputs=_lengths_shape, infer_types=_types)
def sequence_mask(p: SequenceMaskParams, data: Array, sequence_length: Array | None = None) -> Array:
    """Writes `value` to all steps at or after the length of each sequence: (T, N, …) and (N,) give (T, N, …)."""
    x, lengths = _by_time(p, data, sequence_length)
    if lengths is None:
        return data
    x = jnp.where(_steps(x) < _against(lengths, x), x, jnp.asarray(p.value).astype(x.dtype))
    return jnp.moveaxis(x, 0, p.axis)


@op("SequenceLast", params=SequenceParams, inputs=_inputs, infer_inputs=_lengths_shape, infer_types=_types)
def sequence_last(p: SequenceParams, data: Array, sequence_length: Array | None = None) -> Array:
    """Takes the last step of each sequence: (T, N, …) and (N,) give (N, …).

    A length of 0 gives the first step (MXNet reads outside the array).
    """
    x, lengths = _by_time(p, data, sequence_length)
    if lengths is None:
        return x[-1]
    at = jnp.maximum(_against(lengths, x) - 1, 0)
    return jnp.take_along_axis(x, at, axis=0)[0]


@op("SequenceReverse", params=SequenceParams, inputs=_inputs, infer_inputs=_lengths_shape,
    infer_types=_types)
def sequence_reverse(p: SequenceParams, data: Array, sequence_length: Array | None = None) -> Array:
    """Reverses the first `sequence_length` steps of each sequence and leaves the rest: (T, N, …) stays (T, N, …)."""
    if p.axis != 0:
        raise ParamError(f"axis={p.axis} must be 0: SequenceReverse is time-major")
    x, lengths = _by_time(p, data, sequence_length)
    if lengths is None:
        return x[::-1]
    step, length = _steps(x), _against(lengths, x)
    return jnp.take_along_axis(x, jnp.where(step < length, length - 1 - step, step), axis=0)
