"""Changes of colour (`_image_random_*`, `_image_adjust_lighting`) of one image (H, W, C) of 1 or 3 channels, RGB.

Results of uint8 images are cut to 0 … 255, fractions dropped; in other integer types they wrap around, as in MXNet. Its
gradient of all of these is the head gradient itself; here it is the derivative. Some of its results of one channel are
never written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.lowering.errors import ParamError
from symjax.lowering.habits import habit
from symjax.lowering.ops.image import check_image, same_shape
from symjax.lowering.params import Floats, Params, param
from symjax.lowering.registry import op

Array = jax.Array
_GRAY = (0.299, 0.587, 0.114)
_LIGHT = np.array([[55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009],
                   [55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140],
                   [55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203]], np.float32)  # fmt: skip
"""Principal components of ImageNet's colours, times their standard deviations."""


def _floats(data: Array) -> Array:
    return data.astype(jnp.promote_types(data.dtype, jnp.float32) if jnp.issubdtype(data.dtype, jnp.floating)
                       else jnp.float32)


def _like(value: Array, data: Array) -> Array:
    if data.dtype == jnp.uint8:
        return jnp.clip(value, 0, 255).astype(jnp.uint8)
    if jnp.issubdtype(data.dtype, jnp.floating):
        return value.astype(data.dtype)
    return value.astype(jnp.int64).astype(data.dtype)


def _gray(x: Array) -> Array:
    return x[..., :1] * _GRAY[0] + x[..., 1:2] * _GRAY[1] + x[..., 2:] * _GRAY[2]


def brightness(data: Array, alpha: Array) -> Array:
    """`data * alpha`."""
    return _like(_floats(data) * alpha, data)


def contrast(data: Array, alpha: Array) -> Array:
    """`data * alpha + (1 - alpha) * mean of the grey image`."""
    x = _floats(data)
    mean = (_gray(x) if data.shape[-1] == 3 else x).mean()
    return _like(x * alpha + (1 - alpha) * mean, data)


_BLUE = habit(("_image_random_saturation", "_image_random_color_jitter"),
              "The grey that saturation mixes in is 0.114 times blue alone.", "It is 0.299 R + 0.587 G + 0.114 B.")


def saturation(data: Array, alpha: Array) -> Array:
    """`data * alpha + (1 - alpha) * grey image`; images of one channel stay as they are."""
    if data.shape[-1] == 1:
        return data
    x = _floats(data)
    gray = x[..., 2:] * _GRAY[2] if _BLUE() else _gray(x)
    return _like(x * alpha + (1 - alpha) * gray, data)


def hue(data: Array, alpha: Array) -> Array:
    """Turns the hue by `alpha` of a full turn, in HLS; images of one channel stay as they are."""
    if data.shape[-1] == 1:
        return data
    h, lightness, s = _to_hls(_floats(data) * np.float32(1 / 255))
    return _like(_to_rgb(h + alpha * 360, lightness, s) * 255, data)


def _to_hls(rgb: Array) -> tuple[Array, Array, Array]:
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    high, low = rgb.max(-1), rgb.min(-1)
    spread, lightness = high - low, (high + low) * 0.5
    gray = spread <= jnp.finfo(jnp.float32).eps
    below = jnp.where(lightness < 0.5, high + low, 2 - high - low)
    s = jnp.where(gray, 0, spread / jnp.where(gray | (below == 0), 1, below))
    step = 60 / jnp.where(gray, 1, spread)
    turn = jnp.where(high == r, (g - b) * step, jnp.where(high == g, (b - r) * step + 120, (r - g) * step + 240))
    return jnp.where(gray, 0, jnp.where(turn < 0, turn + 360, turn)), lightness, s


def _to_rgb(h: Array, lightness: Array, s: Array) -> Array:
    top = jnp.where(lightness <= 0.5, lightness * (1 + s), lightness + s - lightness * s)
    bottom = 2 * lightness - top
    sixths = h * np.float32(6 / 360)
    sixths = sixths - 6 * jnp.floor(sixths / 6)
    sector = jnp.clip(jnp.floor(sixths), 0, 5)
    part = sixths - sector
    falls, rises = bottom + (top - bottom) * (1 - part), bottom + (top - bottom) * part
    # per sixth of the turn, what red, green and blue are
    table = ((top, rises, bottom), (falls, top, bottom), (bottom, top, rises), (bottom, falls, top),
             (rises, bottom, top), (top, bottom, falls))
    channels = [functools.reduce(lambda x, i, c=c: jnp.where(sector == i, table[i][c], x), range(5), table[5][c])
                for c in range(3)]  # fmt: skip
    return jnp.where(s[..., None] == 0, lightness[..., None], jnp.stack(channels, -1))


def lighting(data: Array, alpha: Array) -> Array:
    """Adds the three principal components of natural colours, `alpha` times; one channel stays as it is."""
    if data.shape[-1] == 1:
        return data
    x = _floats(data)
    return _like(x + (jnp.asarray(_LIGHT) * alpha).sum(1).astype(x.dtype), data)


Change = Callable[[Array, Array], Array]


class FactorParams(Params):
    min_factor: float = param(ge=0, traced=True, doc="Smallest factor.")
    max_factor: float = param(ge=0, traced=True, doc="Largest factor.")


def _random(name: str, change: Change, doc: str) -> None:
    @op(f"_image_random_{name}", aliases=(f"_npx__image_random_{name}",), params=FactorParams, infer_inputs=same_shape)
    def rule(p: FactorParams, data: Array, *, key: Any) -> Array:
        check_image(data, channels=(1, 3))
        return change(data, _uniform(key, p.min_factor, p.max_factor))

    rule.rule.__doc__ = doc
    rule.rule.__name__ = f"random_{name}"


def _uniform(key: Any, low: Any, high: Any) -> Array:
    low, high = (jnp.asarray(v, jnp.float32) for v in (low, high))
    return low + jax.random.uniform(key, (), jnp.float32) * (high - low)


_random("brightness", brightness, "Multiplies an image by a factor drawn from [min_factor, max_factor].")
_random("contrast", contrast, "Moves an image away from its mean grey by a factor drawn from [min_factor, max_factor].")
_random("saturation", saturation, "Moves colours away from grey by a factor drawn from [min_factor, max_factor].")
_random("hue", hue, "Turns the hue by a part of the full turn drawn from [min_factor, max_factor].")


class ColorJitterParams(Params):
    brightness: float = param(ge=0, doc="The factor of brightness is drawn from 1 ± this; 0 leaves it out.")
    contrast: float = param(ge=0, doc="The same for contrast.")
    saturation: float = param(ge=0, doc="The same for saturation.")
    hue: float = param(ge=0, doc="The hue is turned by a part of the full turn drawn from ± this; 0 leaves it out.")


@op("_image_random_color_jitter", aliases=("_npx__image_random_color_jitter",), params=ColorJitterParams,
    infer_inputs=same_shape)  # fmt: skip
def random_color_jitter(p: ColorJitterParams, data: Array, *, key: Any) -> Array:
    """Changes brightness, contrast, saturation and hue at random, in random order.

    MXNet leaves the result unwritten where all four are 0; here it is the image.
    """
    check_image(data, channels=(1, 3))
    chosen: list[Callable[[Array, Any], Array]] = [
        _jitter(change, centre, width)
        for change, centre, width in ((brightness, 1.0, p.brightness), (contrast, 1.0, p.contrast),
                                      (saturation, 1.0, p.saturation), (hue, 0.0, p.hue)) if width > 0]
    if not chosen:
        return data
    order_key, *keys = jax.random.split(key, len(chosen) + 1)
    order = jax.random.permutation(order_key, jnp.arange(len(chosen), dtype=jnp.int32))
    for i, k in enumerate(keys):
        data = jax.lax.switch(order[i], chosen, data, k)
    return data


def _jitter(change: Change, centre: float, width: float) -> Callable[[Array, Any], Array]:
    return lambda data, key: change(data, _uniform(key, centre - width, centre + width))


class LightingParams(Params):
    alpha: Floats = param(doc="Three factors, of the principal components of natural colours.")


@op("_image_adjust_lighting", aliases=("_npx__image_adjust_lighting",), params=LightingParams, infer_inputs=same_shape)
def adjust_lighting(p: LightingParams, data: Array) -> Array:
    """Adds `alpha` times the principal components of natural colours, as AlexNet's training did."""
    check_image(data, channels=(1, 3))
    if len(p.alpha) != 3:
        raise ParamError(f"alpha={p.alpha}: expected three values")
    return lighting(data, jnp.asarray(p.alpha, jnp.float32))


class RandomLightingParams(Params):
    alpha_std: float = param(0.05, traced=True, doc="Standard deviation of the three factors.")


@op("_image_random_lighting", aliases=("_npx__image_random_lighting",), params=RandomLightingParams,
    infer_inputs=same_shape)  # fmt: skip
def random_lighting(p: RandomLightingParams, data: Array, *, key: Any) -> Array:
    """`adjust_lighting` with three normal factors of standard deviation `alpha_std`."""
    check_image(data, channels=(1, 3))
    return lighting(data, jax.random.normal(key, (3,), jnp.float32) * p.alpha_std)
