"""Deterministic recipes for input arrays; the same bytes in the oracle's Python and in ours.

A recipe is drawn in float64 from ``numpy.random.RandomState`` (a frozen stream) seeded by the case and the array's
name, so no input is stored and the order of drawing does not matter. This module needs numpy alone.
"""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Array:
    """A recipe: kind, shape, dtype (None = the case's dtype) and the kind's own arguments."""

    kind: str
    shape: Shape | None = None
    dtype: str | None = None
    args: dict[str, Any] = field(default_factory=dict)

    def spec(self) -> dict[str, Any]:
        """The recipe as JSON data."""
        return asdict(self)


def uniform(shape: Shape, lo: float = -1.0, hi: float = 1.0, dtype: str | None = None) -> Array:
    """Uniform in [lo, hi)."""
    return Array("uniform", tuple(shape), dtype, {"lo": lo, "hi": hi})


def normal(shape: Shape, std: float = 1.0, mean: float = 0.0, dtype: str | None = None) -> Array:
    """Normal with a mean and a standard deviation."""
    return Array("normal", tuple(shape), dtype, {"std": std, "mean": mean})


def randint(shape: Shape, lo: int = 0, hi: int = 10, dtype: str | None = None) -> Array:
    """Whole numbers in [lo, hi)."""
    return Array("randint", tuple(shape), dtype, {"lo": lo, "hi": hi})


def signed(shape: Shape, lo: float = 0.3, hi: float = 1.5, dtype: str | None = None) -> Array:
    """Magnitude uniform in [lo, hi), random sign: keeps away from 0 (divisors, kinks)."""
    return Array("signed", tuple(shape), dtype, {"lo": lo, "hi": hi})


def distinct(shape: Shape, lo: float = -1.0, hi: float = 1.0, dtype: str | None = None) -> Array:
    """A permutation of ``linspace(lo, hi)``: no ties (max, sort, topk, pooling)."""
    return Array("distinct", tuple(shape), dtype, {"lo": lo, "hi": hi})


def const(value: float, shape: Shape, dtype: str | None = None) -> Array:
    """One value everywhere."""
    return Array("const", tuple(shape), dtype, {"value": value})


def values(data: Any, dtype: str | None = None) -> Array:
    """Explicit numbers (nested lists; write nan and inf as the texts "nan", "inf", "-inf")."""
    flat = np.array(data, dtype=object)
    return Array("values", tuple(flat.shape), dtype, {"values": [v if isinstance(v, str) else float(v) if isinstance(
        v, float) else int(v) for v in flat.ravel().tolist()]})


def boxes(shape: Shape, lo: float = 0.0, hi: float = 1.0, dtype: str | None = None) -> Array:
    """Corner boxes (x1, y1, x2, y2) with x1 < x2, y1 < y2 in [lo, hi]; the shape's last axis is 4."""
    return Array("boxes", tuple(shape), dtype, {"lo": lo, "hi": hi})


def spd(shape: Shape, dtype: str | None = None) -> Array:
    """Symmetric positive definite matrices in the last two axes."""
    return Array("spd", tuple(shape), dtype)


def _seed(case_id: str, name: str) -> int:
    return zlib.crc32(f"{case_id}/{name}".encode())


def _draw(kind: str, shape: Shape, a: dict[str, Any], rng: np.random.RandomState) -> np.ndarray:
    if kind == "uniform":
        return rng.uniform(a["lo"], a["hi"], size=shape)
    if kind == "normal":
        return rng.standard_normal(size=shape) * a["std"] + a["mean"]
    if kind == "randint":
        return rng.randint(a["lo"], a["hi"], size=shape)
    if kind == "signed":
        return rng.uniform(a["lo"], a["hi"], size=shape) * np.where(rng.randint(0, 2, size=shape) == 0, -1.0, 1.0)
    if kind == "distinct":
        size = int(np.prod(shape, dtype=np.int64))
        return rng.permutation(np.linspace(a["lo"], a["hi"], size)).reshape(shape)
    if kind == "const":
        return np.full(shape, a["value"])
    if kind == "values":
        return _values(a["values"], shape)
    if kind == "boxes":
        low = rng.uniform(0.0, 0.6, size=(*shape[:-1], 2))
        wide = rng.uniform(0.1, 0.4, size=(*shape[:-1], 2))
        return a["lo"] + (a["hi"] - a["lo"]) * np.concatenate([low, low + wide], axis=-1)
    if kind == "spd":
        m = rng.uniform(-1.0, 1.0, size=shape)
        return np.matmul(m, np.swapaxes(m, -1, -2)) + shape[-1] * np.eye(shape[-1])
    raise ValueError(f"unknown array kind {kind!r}")


def _values(flat: list[Any], shape: Shape) -> np.ndarray:
    # Integers beyond 2**53 would lose digits on the way through float64.
    if all(isinstance(v, int) for v in flat):
        return np.array(flat, dtype=np.int64).reshape(shape)
    return np.array([float(v) for v in flat], dtype=np.float64).reshape(shape)


def fill(case_id: str, name: str, array: Array, dtype: str, shape: Shape | None = None) -> np.ndarray:
    """Draw an array.

    Args:
        case_id: the case's id, half of the seed.
        name: the argument's name, the other half.
        array: the recipe.
        dtype: the dtype where the recipe has none.
        shape: the shape where the recipe has none.
    """
    shape = array.shape if array.shape is not None else shape
    if shape is None:
        raise ValueError(f"array {name!r} has no shape")
    rng = np.random.RandomState(_seed(case_id, name))
    return np.ascontiguousarray(_draw(array.kind, tuple(shape), array.args, rng)).astype(array.dtype or dtype).reshape(
        shape)


def default_array(name: str) -> Array:
    """The recipe of an argument that a case names without one (its shape comes from inference)."""
    if name.endswith(("var", "gamma")):
        return Array("uniform", None, None, {"lo": 0.5, "hi": 1.5})
    return Array("uniform", None, None, {"lo": -1.0, "hi": 1.0})
