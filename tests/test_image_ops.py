"""Image operators where real MXNet has no symbol, is at fault or draws numbers of its own."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import symjax as mx
from symjax.lowering.errors import DataFormatError, MissingLoweringError
from symjax.lowering.ops import image_color
from symjax.lowering.ops._image_sampling import resize

cv2 = pytest.importorskip("cv2")
RNG = np.random.RandomState(0)
PIXELS = np.random.RandomState(0).randint(0, 256, (3, 4, 3)).astype("uint8")
I = mx.nd._internal  # noqa: E741


def png() -> bytes:
    return cv2.imencode(".png", PIXELS[:, :, ::-1])[1].tobytes()


# ---- sizes


SIZES = [((4, 5), (6, 7)), ((8, 8), (4, 4)), ((3, 4), (7, 2)), ((20, 30), (13, 17)), ((1, 1), (3, 4))]


@pytest.mark.parametrize("interp", range(6))
@pytest.mark.parametrize("sizes", SIZES)
def test_resize_is_opencvs(sizes: Any, interp: int) -> None:
    (h, w), (height, width) = sizes
    for dtype in ("uint8", "float32"):
        x = RNG.randint(0, 256, (h, w, 3)).astype(dtype)
        got = np.asarray(jax.jit(resize, static_argnums=(1, 2, 3))(jnp.asarray(x), height, width, interp)).astype(float)
        want = cv2.resize(x, (width, height), interpolation=interp).astype(float)
        np.testing.assert_allclose(got, want, atol=1 if dtype == "uint8" else 1e-3)
        assert (got != want).mean() < 0.05 or dtype == "float32"


def gradient(op: str, image: Any, params: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """(the gradient of sum(out * head), that of finite differences in float64)."""
    a = mx.nd.array(image, dtype="float64")
    a.attach_grad()
    function = getattr(mx.nd.image, op)
    with mx.autograd.record():
        out = function(a, **params)
    head = mx.nd.array(RNG.randn(*out.shape), dtype=out.dtype)
    out.backward(head)
    want, eps = np.zeros_like(image), 1e-3
    for i in np.ndindex(*image.shape):
        sides = []
        for sign in (1, -1):
            moved = image.copy()
            moved[i] += sign * eps
            sides.append((function(mx.nd.array(moved, dtype="float64"), **params) * head).asnumpy().astype(float).sum())
        want[i] = (sides[0] - sides[1]) / (2 * eps)
    return a.grad.asnumpy(), want


FACTOR = {"min_factor": 0.7, "max_factor": 0.7}


@pytest.mark.parametrize(("op", "params"), [
    ("flip_left_right", {}), ("flip_top_bottom", {}), ("random_brightness", FACTOR), ("random_contrast", FACTOR),
    ("random_saturation", FACTOR), ("random_hue", {"min_factor": 0.2, "max_factor": 0.2}),
    ("adjust_lighting", {"alpha": (0.1, 0.2, 0.3)}), ("resize", {"size": (4, 2)}),
    ("resize", {"size": (2, 5), "interp": 2}),
    ("to_tensor", {}), ("crop", {"x": 1, "y": 0, "width": 2, "height": 2})])  # fmt: skip
def test_gradients(op: str, params: dict[str, Any]) -> None:
    got, want = gradient(op, np.random.RandomState(3).uniform(40, 200, (2, 3, 3)), params)
    # to_tensor gives float32, whose differences are coarse
    np.testing.assert_allclose(got, want, atol=3e-3 if op in ("to_tensor", "random_hue") else 1e-6)


# ---- colours


def test_hue_is_colorsyss() -> None:
    import colorsys

    x = np.random.RandomState(1).randint(0, 256, (5, 7, 3)).astype("uint8")
    for turn in (0.0, 0.25, 0.6, 1.5):
        got = mx.nd.image.random_hue(mx.nd.array(x, dtype="uint8"), turn, turn).asnumpy().astype(int)
        want = np.zeros(x.shape)
        for i in np.ndindex(5, 7):
            h, lightness, s = colorsys.rgb_to_hls(*(x[i] / 255))
            want[i] = np.array(colorsys.hls_to_rgb((h + turn) % 1, lightness, s)) * 255
        assert abs(got - np.floor(want)).max() <= 1  # a fraction just below 1 may be dropped
        real = mx.nd.image.random_hue(mx.nd.array(x, dtype="float32"), turn, turn).asnumpy()
        np.testing.assert_allclose(real, want, atol=2e-3)


def test_grey_is_of_all_channels() -> None:
    x = mx.nd.array(PIXELS, dtype="float32")
    grey = (PIXELS @ np.array([0.299, 0.587, 0.114]))[..., None]
    got = mx.nd.image.random_saturation(x, 0, 0).asnumpy()
    np.testing.assert_allclose(got, np.broadcast_to(grey, got.shape), rtol=1e-5)
    np.testing.assert_allclose(mx.nd.image.random_contrast(x, 0, 0).asnumpy(), grey.mean(), rtol=1e-5)


def test_factors_are_uniform() -> None:
    mx.random.seed(5)
    x = mx.nd.ones((1, 1, 1))
    drawn = np.array([mx.nd.image.random_brightness(x, 0.5, 2.0).asscalar() for _ in range(400)])
    assert drawn.min() >= 0.5 and drawn.max() <= 2 and abs(drawn.mean() - 1.25) < 0.08
    assert abs(np.quantile(drawn, [0.25, 0.75]) - [0.875, 1.625]).max() < 0.12


def test_flips_come_half_of_the_time() -> None:
    mx.random.seed(7)
    x = mx.nd.array(PIXELS, dtype="uint8")
    for op, axis in (("random_flip_left_right", 1), ("random_flip_top_bottom", 0)):
        made = [getattr(mx.nd.image, op)(x).asnumpy() for _ in range(200)]
        flipped = sum((m == np.flip(PIXELS, axis)).all() for m in made)
        assert 70 < flipped < 130 and flipped + sum((m == PIXELS).all() for m in made) == 200


def test_lighting_is_normal() -> None:
    mx.random.seed(3)
    x = mx.nd.zeros((1, 1, 3))
    made = np.array([mx.nd.image.random_lighting(x, alpha_std=0.1).asnumpy().ravel() for _ in range(500)])
    want = 0.01 * image_color._LIGHT @ image_color._LIGHT.T
    np.testing.assert_allclose(np.cov(made.T), want, rtol=0.25)


def test_jitter() -> None:
    x = mx.nd.array(PIXELS, dtype="float32")
    none = {"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0}
    np.testing.assert_array_equal(mx.nd.image.random_color_jitter(x, **none).asnumpy(), PIXELS)
    mx.random.seed(1)
    scale = mx.nd.image.random_color_jitter(x, **{**none, "brightness": 0.5}).asnumpy() / PIXELS.clip(1)
    assert 0.5 <= scale.max() <= 1.5 and np.ptp(scale[PIXELS > 0]) < 1e-5
    every = {"brightness": 0.3, "contrast": 0.3, "saturation": 0.3, "hue": 0.1}
    first, second = (mx.nd.image.random_color_jitter(x, **every).asnumpy() for _ in range(2))
    assert np.isfinite(first).all() and (first != second).any()


# ---- OpenCV's functions: the numbers are real MXNet's


def test_borders() -> None:
    x = mx.nd.array(np.arange(18).reshape(2, 3, 3) + 1, dtype="uint8")
    rows = {
        0: [[0, 0, 0, 0, 0, 0], [0, 1, 4, 7, 0, 0], [0, 10, 13, 16, 0, 0], [0] * 6, [0] * 6],
        1: [[1, 1, 4, 7, 7, 7], [1, 1, 4, 7, 7, 7], [10, 10, 13, 16, 16, 16], [10, 10, 13, 16, 16, 16]],
        2: [[1, 1, 4, 7, 7, 4], [1, 1, 4, 7, 7, 4], [10, 10, 13, 16, 16, 13], [10, 10, 13, 16, 16, 13]],
        3: [[16, 10, 13, 16, 10, 13], [7, 1, 4, 7, 1, 4], [16, 10, 13, 16, 10, 13], [7, 1, 4, 7, 1, 4]],
        4: [[13, 10, 13, 16, 13, 10], [4, 1, 4, 7, 4, 1], [13, 10, 13, 16, 13, 10], [4, 1, 4, 7, 4, 1]],
    }  # fmt: skip
    for kind, want in rows.items():
        for flag in (kind, kind | 16):
            got = I._cvcopyMakeBorder(x, 1, 2, 1, 2, flag)[:, :, 0].asnumpy()
            assert got.shape == (5, 6) and got[:len(want)].tolist() == want, kind
    for values, want in (({"value": 7}, [7, 7, 7]), ({"values": (7, 8, 9)}, [7, 8, 9]), ({"value": 300.7}, [255] * 3),
                         ({"values": (7.5,)}, [8, 0, 0])):  # fmt: skip
        assert I._cvcopyMakeBorder(x, 1, 0, 0, 0, **values).asnumpy()[0, 0].tolist() == want
    assert I._cvcopyMakeBorder(x.astype("float32"), 1, 0, 0, 0, value=7.5).asnumpy()[0, 0, 0] == 7.5
    with pytest.raises(mx.MXNetError, match="type=5"):
        I._cvcopyMakeBorder(x, 1, 1, 1, 1, 5)
    with pytest.raises(mx.MXNetError, match="top"):
        I._cvcopyMakeBorder(x, -1, 1, 1, 1)
    for kind in range(5):
        got = I._cvcopyMakeBorder(x, 5, 4, 7, 8, kind, 9).asnumpy()
        want = cv2.copyMakeBorder(x.asnumpy(), 5, 4, 7, 8, kind, value=(9, 9, 9))
        np.testing.assert_array_equal(got, want)


def test_imresize_and_borders_work_in_graphs_too() -> None:
    x = mx.sym.var("x")
    s = mx.sym._internal._cvcopyMakeBorder(mx.sym._internal._cvimresize(x, w=3, h=5), 1, 1, 0, 0)
    assert s.infer_shape(x=(2, 4, 3))[1] == [(7, 3, 3)]
    pixels = mx.nd.array(np.arange(24).reshape(2, 4, 3) * 10, dtype="uint8")
    got = s.bind(mx.cpu(), [pixels]).forward()[0].asnumpy()
    assert got[1].ravel().tolist() == [5, 15, 25, 45, 55, 65, 85, 95, 105]
    assert I._cvimresize(pixels, 3, 5, 3)[0].asnumpy().ravel().tolist() == [8, 18, 28, 45, 55, 65, 83, 93, 103]
    with pytest.raises(mx.MXNetError, match="expected an image"):
        I._cvimresize(pixels[:, :, 0], 3, 5)


GREY = [120, 102, 125, 80]


@pytest.mark.parametrize("without", [None, "cv2"])
def test_decoding(without: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = png()
    if without:
        monkeypatch.setitem(sys.modules, without, None)
    buf = mx.nd.array(np.frombuffer(data, "uint8"), dtype="uint8")
    np.testing.assert_array_equal(I._cvimdecode(buf).asnumpy(), PIXELS)
    np.testing.assert_array_equal(I._cvimdecode(buf.reshape((1, -1)), to_rgb=False).asnumpy(), PIXELS[:, :, ::-1])
    grey = I._cvimdecode(buf, flag=0).asnumpy()
    assert grey.shape == (3, 4, 1) and abs(grey[..., 0] - PIXELS @ np.array([0.299, 0.587, 0.114])).max() < 1.01
    path = tmp_path / "a.png"
    path.write_bytes(data)
    np.testing.assert_array_equal(I._cvimread(str(path)).asnumpy(), PIXELS)
    with pytest.raises(DataFormatError, match="not an image"):
        I._cvimdecode(mx.nd.array([1, 2, 3], dtype="uint8"))
    with pytest.raises(FileNotFoundError, match="no image file"):
        I._cvimread(str(tmp_path / "b.png"))
    with pytest.raises(mx.MXNetError, match="no bytes"):
        I._cvimdecode(buf[:0])
    with pytest.raises(mx.MXNetError, match="expected dtype uint8"):
        I._cvimdecode(buf.astype("float32"))


def test_decoding_without_any_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    buf = mx.nd.array(np.frombuffer(png(), "uint8"), dtype="uint8")
    for name in ("cv2", "PIL"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLoweringError, match=r"symjax-mxnet\[image\]"):
        I._cvimdecode(buf)


def test_decoding_in_a_graph_runs_by_itself_and_cannot_be_compiled() -> None:
    buf = mx.nd.array(np.frombuffer(png(), "uint8"), dtype="uint8")
    s = mx.sym.image.to_tensor(mx.sym._internal._cvimdecode(mx.sym.var("x")))
    out = s.bind(mx.cpu(), [buf]).forward()[0].asnumpy()
    np.testing.assert_allclose(out, PIXELS.transpose(2, 0, 1) / 255, rtol=1e-6)
    fn, params, aux = mx.lower(s, inputs=["x"])
    with pytest.raises(MissingLoweringError, match="decode first"):
        jax.jit(lambda x: fn(params, aux, x=x))(jnp.zeros(10, jnp.uint8))
    with pytest.raises(MissingLoweringError, match=r"call mx\.nd\.imdecode"):
        I._imdecode(mx.nd.ones(1))


def test_pillow_and_opencv_agree() -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(PIXELS).save(file, "BMP")
    buf = mx.nd.array(np.frombuffer(file.getvalue(), "uint8"), dtype="uint8")
    np.testing.assert_array_equal(I._cvimdecode(buf).asnumpy(), PIXELS)


# ---- count_sketch and hawkesll


def test_count_sketch() -> None:
    """`_contrib_count_sketch` by a loop; real MXNet has it on GPUs alone."""
    data, h, s = RNG.randn(2, 3, 1, 5), np.array([[0, 3, 3, 1, 9]]), np.array([[1, -1, 1, 1, -1]])
    want = np.zeros((2, 3, 1, 4))
    for i in range(4):  # a place beyond the end is left out
        want[..., h[0, i]] += s[0, i] * data[..., i]
    arrays = [mx.nd.array(v, dtype="float64") for v in (data, h, s)]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        out = mx.nd.contrib.count_sketch(*arrays, out_dim=4)
    head = RNG.randn(*want.shape)
    out.backward(mx.nd.array(head, dtype="float64"))
    np.testing.assert_allclose(out.asnumpy(), want)
    places = np.concatenate([head, np.zeros((2, 3, 1, 6))], -1)[..., h[0]]
    np.testing.assert_allclose(arrays[0].grad.asnumpy(), places * s[0])
    np.testing.assert_allclose(arrays[2].grad.asnumpy()[0], (places * data).sum((0, 1, 2)))
    assert not arrays[1].grad.asnumpy().any()
    sym = mx.sym.contrib.count_sketch(mx.sym.var("d"), out_dim=4, name="k")
    assert sym.infer_shape(d=(2, 5)) == ([(2, 5), (1, 5), (1, 5)], [(2, 4)], [])


def test_hawkesll_gradients() -> None:
    """Those of every input, and of the state that is an output; real MXNet has three of the first output alone."""
    rng = np.random.RandomState(0)
    values = {"lda": rng.rand(2, 3) + 0.2, "alpha": rng.rand(3), "beta": rng.rand(3) + 0.5, "state": rng.rand(2, 3),
              "lags": rng.rand(2, 4) + 0.1, "valid_length": np.array([3.0, 4.0]),
              "max_time": np.array([8.0, 9.0])}  # fmt: skip
    marks = mx.nd.array(rng.randint(0, 3, (2, 4)), dtype="int32")
    heads = [rng.randn(2), rng.randn(2, 3)]

    def run(given: dict[str, Any]) -> Any:
        return mx.nd.contrib.hawkesll(marks=marks, **given)

    def total(given: dict[str, np.ndarray]) -> float:
        outs = run({k: mx.nd.array(v, dtype="float64") for k, v in given.items()})
        return sum((o.asnumpy() * h).sum() for o, h in zip(outs, heads, strict=True))

    arrays = {k: mx.nd.array(v, dtype="float64") for k, v in values.items()}
    for a in arrays.values():
        a.attach_grad()
    with mx.autograd.record():
        outs = run(arrays)
    mx.autograd.backward(outs, [mx.nd.array(h, dtype="float64") for h in heads])
    for name in set(values) - {"valid_length"}:
        for i in np.ndindex(*values[name].shape):
            sides = []
            for d in (1e-5, -1e-5):
                moved = values[name].copy()
                moved[i] += d
                sides.append(total({**values, name: moved}))
            want = (sides[0] - sides[1]) / 2e-5
            np.testing.assert_allclose(arrays[name].grad.asnumpy()[i], want, rtol=1e-4, atol=1e-6)
