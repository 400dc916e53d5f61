"""Ops that MXNet's CPU build does not have, or not as symbols: checked against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np

import symjax as mx


def nd(shape: tuple[int, ...], seed: int = 0, low: float = -1.0, high: float = 1.0) -> Any:
    return mx.nd.array(np.random.RandomState(seed).uniform(low, high, shape))


def test_psroi_pooling_is_the_mean_of_each_bin() -> None:
    """_contrib_PSROIPooling by loops over bins and cells."""
    dim, k, scale = 2, 3, 0.5
    data, rois = nd((2, dim * k * k, 7, 9)), np.array([[0, 2, 1, 13, 11], [1, 0, 0, 17, 13]], "float32")
    got = mx.nd.contrib.PSROIPooling(
        data, mx.nd.array(rois), spatial_scale=scale, output_dim=dim, pooled_size=k, group_size=k
    ).asnumpy()
    x = data.asnumpy()
    for r, (image, x1, y1, x2, y2) in enumerate(rois):
        left, top = round(x1) * scale, round(y1) * scale
        width = max((round(x2) + 1) * scale - left, 0.1) / k
        height = max((round(y2) + 1) * scale - top, 0.1) / k
        for d in range(dim):
            for i in range(k):
                for j in range(k):
                    rows = [int(np.clip(f(top + v * height), 0, 7)) for f, v in ((np.floor, i), (np.ceil, i + 1))]
                    cols = [int(np.clip(f(left + v * width), 0, 9)) for f, v in ((np.floor, j), (np.ceil, j + 1))]
                    bin_ = x[int(image), (d * k + i) * k + j, slice(*rows), slice(*cols)]
                    want = bin_.mean() if bin_.size else 0.0
                    np.testing.assert_allclose(got[r, d, i, j], want, rtol=1e-4, atol=1e-5)


def test_deformable_psroi_pooling_without_shifts() -> None:
    """_contrib_DeformablePSROIPooling of a constant image is that constant; no_trans is a shift of zero."""
    rois = mx.nd.array([[0, 1, 1, 8, 8]])
    kw = {"spatial_scale": 0.5, "output_dim": 2, "group_size": 2, "pooled_size": 2, "part_size": 2}
    kw["sample_per_part"] = 3
    flat = mx.nd.contrib.DeformablePSROIPooling(mx.nd.ones((1, 8, 6, 6)) * 3, rois, no_trans=True, **kw)
    np.testing.assert_allclose(flat.asnumpy(), 3.0, rtol=1e-6)
    data = nd((1, 8, 6, 6))
    still = mx.nd.contrib.DeformablePSROIPooling(data, rois, mx.nd.zeros((1, 2, 2, 2)), trans_std=0.5, **kw)
    none = mx.nd.contrib.DeformablePSROIPooling(data, rois, no_trans=True, **kw)
    np.testing.assert_allclose(still.asnumpy(), none.asnumpy(), rtol=1e-5)


def test_modulated_deformable_convolution_with_nothing_to_deform() -> None:
    """_contrib_ModulatedDeformableConvolution: no offsets and a mask of m give m times the convolution."""
    data, weight, bias = nd((2, 3, 6, 7)), nd((4, 3, 3, 3), 1), nd((4,), 2)
    kw = {"kernel": (3, 3), "num_filter": 4, "pad": (1, 1)}
    offset, mask = mx.nd.zeros((2, 18, 6, 7)), mx.nd.ones((2, 9, 6, 7)) * 0.5
    plain = mx.nd.Convolution(data, weight, no_bias=True, **kw).asnumpy()
    got = mx.nd.contrib.ModulatedDeformableConvolution(data, offset, mask, weight, bias, **kw).asnumpy()
    np.testing.assert_allclose(got, plain * 0.5 + bias.asnumpy()[:, None, None], rtol=1e-4, atol=1e-5)


def test_modulated_deformable_convolution_moves_by_whole_cells() -> None:
    """_contrib_ModulatedDeformableConvolution: an offset of one row reads the image one row lower."""
    data, weight = nd((1, 2, 6, 6)), nd((3, 2, 1, 1), 1)
    kw = {"kernel": (1, 1), "num_filter": 3, "no_bias": True}
    offset = mx.nd.zeros((1, 2, 6, 6))
    offset[:, 0] = 1
    got = mx.nd.contrib.ModulatedDeformableConvolution(data, offset, mx.nd.ones((1, 1, 6, 6)), weight, **kw).asnumpy()
    plain = mx.nd.Convolution(data, weight, **kw).asnumpy()
    np.testing.assert_allclose(got[:, :, :-1], plain[:, :, 1:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[:, :, -1], 0, atol=1e-6)


def test_copies_and_set_value() -> None:
    """_copyto, _CrossDeviceCopy, _set_value."""
    x = nd((2, 3))
    for name in ("_copyto", "_CrossDeviceCopy"):
        np.testing.assert_array_equal(getattr(mx.nd._internal, name)(x).asnumpy(), x.asnumpy())
    out = mx.nd.zeros((2, 3))
    mx.nd._internal._set_value(src=2.5, out=out)
    np.testing.assert_array_equal(out.asnumpy(), np.full((2, 3), 2.5, "float32"))
