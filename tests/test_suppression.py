"""Greedy suppression in blocks removes what a plain loop removes; the orders that it needs are a stable sort's."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symjax.lowering.ops._suppression import _BLOCK, _CHUNK, Boxes, common_area, greedy_nms, sides
from symjax.lowering.ops.bounding_box import marked_first
from symjax.lowering.ops.ordering import greatest, packed_order, stable_order
from symjax.lowering.registry import get

RNG = np.random.RandomState
SIZES = [0, 1, 2, _BLOCK - 1, _BLOCK, _BLOCK + 1, 2 * _BLOCK, 2 * _BLOCK + 37, 700]


def _over(threshold: Any, a: Boxes, b: Boxes) -> jax.Array:
    # Sides are whole, so a quotient is exact where it equals the threshold of 1/2.
    common = common_area(a, b)
    return common / (a[4] + b[4] - common) > threshold


def _parts(boxes: Any) -> Boxes:
    x1, y1, x2, y2 = sides(jnp.asarray(boxes))
    return x1, y1, x2, y2, (x2 - x1) * (y2 - y1)


@functools.partial(jax.jit, static_argnums=3)
def _fast(alive: Any, boxes: Any, threshold: Any, limit: int | None) -> jax.Array:
    return greedy_nms(alive, _parts(boxes), functools.partial(_over, threshold), limit)


def _plain(alive: np.ndarray, boxes: np.ndarray, threshold: float) -> np.ndarray:
    alive = alive.copy()
    for row, b in zip(alive, boxes, strict=True):
        area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        for i in range(len(row)):
            if row[i]:
                size = np.maximum(np.minimum(b[i, 2:], b[:, 2:]) - np.maximum(b[i, :2], b[:, :2]), 0)
                common = size[:, 0] * size[:, 1]
                over = common / (area[i] + area - common) > threshold
                row[i + 1 :] &= ~over[i + 1 :]
    return alive


def _boxes(rng: np.random.RandomState, batch: int, n: int, spread: int) -> np.ndarray:
    """Boxes of whole corners; the smaller the spread the more of them overlap."""
    low = rng.randint(0, spread, (batch, n, 2))
    return np.concatenate([low, low + rng.randint(1, 25, (batch, n, 2))], -1).astype(np.float32)


@pytest.mark.parametrize("n", SIZES)
def test_as_a_loop(n: int) -> None:
    rng = RNG(n)
    for spread in (3, 30, 400):
        boxes, alive = _boxes(rng, 2, n, spread), rng.uniform(size=(2, n)) < 0.9
        for threshold in (0.0, 0.5, 0.9):
            want = _plain(alive, boxes, threshold)
            np.testing.assert_array_equal(_fast(alive, boxes, np.float32(threshold), None), want)


@pytest.mark.parametrize("limit", [1, _CHUNK - 1, _CHUNK, _CHUNK + 1, _BLOCK + 5, 10**6])
def test_limit(limit: int) -> None:
    """The survivors up to the limit are all there, also where the rows of a batch reach it at different places."""
    boxes = np.concatenate([_boxes(RNG(7), 1, 3 * _BLOCK + 9, s) for s in (20, 100, 1000)])
    alive = np.ones(boxes.shape[:2], bool)
    alive[1, : _BLOCK + 3] = False
    want = _plain(alive, boxes, 0.5)
    got = np.asarray(_fast(alive, boxes, 0.5, limit))
    for row, expected in zip(got, want, strict=True):
        found = np.flatnonzero(expected)
        np.testing.assert_array_equal(np.flatnonzero(row)[:limit], found[:limit])


def test_extremes() -> None:
    n = 2 * _BLOCK + 5
    same = np.tile(np.array([2, 3, 9, 8], np.float32), (1, n, 1))
    apart = (np.arange(n, dtype=np.float32)[None, :, None] * 20) + same
    alive = np.ones((1, n), bool)
    assert np.flatnonzero(_fast(alive, same, 0.5, None)).tolist() == [0]
    assert np.asarray(_fast(alive, apart, 0.5, None)).all()
    assert not np.asarray(_fast(~alive, apart, 0.5, None)).any()
    alive[0, : _BLOCK + 1] = False
    assert np.flatnonzero(_fast(alive, same, 0.5, None)).tolist() == [_BLOCK + 1]


def test_chain() -> None:
    """Each box overlaps the next alone, so every other one survives: a block needs as many rounds as it has boxes."""
    n = _BLOCK + 40
    x = np.arange(n, dtype=np.float32) * 4
    boxes = np.stack([x, 0 * x, x + 6, 0 * x + 6], -1)[None]
    got = np.flatnonzero(_fast(np.ones((1, n), bool), boxes, 0.1, None))
    np.testing.assert_array_equal(got, np.arange(0, n, 2))


def test_mapped() -> None:
    boxes = _boxes(RNG(3), 4, 300, 60)
    alive = np.ones((4, 300), bool)
    one = functools.partial(_fast, threshold=0.3, limit=None)
    got = jax.vmap(lambda a, b: one(a[None], b[None])[0])(alive, boxes)
    np.testing.assert_array_equal(got, _plain(alive, boxes, 0.3))


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
@pytest.mark.parametrize("x64", [False, True])
def test_other_platforms(platform: str, x64: bool) -> None:
    """It lowers there, which a program for one of them shows without the device."""
    op = get("_contrib_Proposal")
    p = op.params.parse({"scales": "(8,)", "ratios": "(1,)", "rpn_post_nms_top_n": "30"})
    arrays = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((1, 2, 20, 20), (1, 4, 20, 20), (1, 3))]
    with jax.enable_x64(x64):
        traced = jax.jit(functools.partial(op.rule_for(p, arrays, platform), p)).trace(*arrays)
        assert "while" in traced.lower(lowering_platforms=(platform,)).as_text()


def test_marked_first() -> None:
    mark = RNG(0).uniform(size=(3, 50)) < 0.4
    np.testing.assert_array_equal(marked_first(jnp.asarray(mark)), np.argsort(~mark, axis=1, kind="stable"))
    assert marked_first(jnp.zeros((2, 0), bool)).shape == (2, 0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32"])
@pytest.mark.parametrize("k", [3, 30, 40])
def test_greatest(dtype: str, k: int) -> None:
    with jax.enable_x64(True):
        x = jnp.asarray(RNG(0).randint(-5, 5, (4, 40)), dtype)
        want = np.argsort(-np.asarray(x), axis=1, kind="stable")[:, :k]
        for order in (stable_order, packed_order):
            np.testing.assert_array_equal(greatest(x, 1, k, order), want)
