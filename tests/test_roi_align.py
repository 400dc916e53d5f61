"""ROIAlign on the CPU reads pixels where the operator's own rule multiplies matrices: same values, same gradients."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from symjax.lowering.registry import get

OP = get("_contrib_ROIAlign")


def _inputs() -> tuple[jax.Array, jax.Array]:
    """Two images, and regions of them within, across and beyond the borders, turned over, and of no image."""
    rng = np.random.RandomState(0)
    low = rng.uniform(-8, 36, (40, 2))
    corners = np.concatenate([low, low + rng.uniform(-3, 20, (40, 2))], 1)
    rois = np.concatenate([rng.randint(-1, 2, (40, 1)), corners], 1)
    rois[:3] = [[0, 0, 0, 27, 21], [1, 0, 0, 0, 0], [1, 300, 5, 310, 9]]
    return jnp.asarray(rng.uniform(-1, 1, (2, 3, 11, 14)), jnp.float32), jnp.asarray(rois, jnp.float32)


@pytest.mark.parametrize("ratio", [1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_reads(ratio: int, aligned: bool) -> None:
    attrs = {"pooled_size": "(3, 2)", "spatial_scale": "0.5", "sample_ratio": str(ratio), "aligned": str(aligned)}
    p = OP.params.parse(attrs)
    data, rois = _inputs()
    fast: Any = functools.partial(OP.rule_for(p, [data, rois], "cpu"), p)
    own: Any = functools.partial(OP.rule, p)
    assert fast.func is not OP.rule
    (got, back), (want, own_back) = (jax.vjp(f, data, rois) for f in (fast, own))
    assert np.abs(want).max() > 0.1
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert not np.asarray(got)[np.asarray(rois)[:, 0] < 0].any()
    head = jnp.asarray(np.random.RandomState(1).uniform(-1, 1, got.shape), jnp.float32)
    for a, b in zip(back(head), own_back(head), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    half = fast(data.astype(jnp.float16), rois)
    assert half.dtype == jnp.float16
    np.testing.assert_allclose(half, want, rtol=2e-3, atol=2e-3)
    assert fast(data, rois[:0]).shape == (0, 3, 3, 2)


def test_kept_as_products() -> None:
    """Samples that follow the region's size, and bins with channels of their own."""
    avals = _inputs()
    for more in ({}, {"sample_ratio": "3"}, {"sample_ratio": "2", "position_sensitive": "True"}):
        p = OP.params.parse({"pooled_size": "(2, 2)", "spatial_scale": "1", **more})
        assert OP.rule_for(p, avals, "cpu") is OP.rule
