"""Images (`_image_*`) and OpenCV's resizing and borders.

MXNet passes the head gradient of flips and colour operators on as it is; theirs are tested in tests/test_image_ops.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.parity.arrays import Array, randint, uniform
from tests.parity.case import Case, op_case

TYPES = ("uint8", "int32", "float16", "float32", "float64")
EXACT = {"uint8": 1e-9, "int32": 1e-9}
UNWRITTEN = "MXNet leaves the middle row or column of an odd size unwritten"


def pixels(shape: tuple[int, ...], dtype: str = "uint8") -> Array:
    return randint(shape, 0, 256, dtype)


def _each(op: str, params: dict[str, Any], shape: tuple[int, ...] = (4, 6, 3), types: tuple[str, ...] = TYPES,
          **options: Any) -> list[Case]:  # fmt: skip
    return [op_case(op, {"data": pixels(shape, t)}, params, id=f"{t}-{'x'.join(map(str, shape))}"
                    f"{'-' + '-'.join(str(v) for v in params.values()) if params else ''}".replace(" ", ""),
                    grads=False, dtype=t, **options) for t in types]  # fmt: skip


def _same(factor: float) -> dict[str, float]:
    return {"min_factor": factor, "max_factor": factor}


def _flipped(axis: int) -> Any:
    return lambda x: dict.fromkeys(("out0", "train0"), np.flip(x["data"], axis))


BLUE = "MXNet's grey is that of the blue channel alone: the sum over the channels is overwritten"


def _saturated(factor: float) -> Any:
    def expected(x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        data = x["data"].astype("float64")
        made = data * factor + (1 - factor) * (data @ [0.299, 0.587, 0.114])[..., None]
        if x["data"].dtype == np.uint8:
            made = np.clip(made, 0, 255)
        return dict.fromkeys(("out0", "train0"), made.astype(x["data"].dtype))

    return expected


ONE_CHANNEL: dict[str, Any] = {"differs": "MXNet leaves images of one channel unwritten",
                               "expected": lambda x: dict.fromkeys(("out0", "train0"), x["data"])}
CROPPED: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((4, 5, 3), {}), ((2, 4, 5, 3), {"grad_req": "add"}), ((4, 4, 1), {"dtype": "float64"})]  # fmt: skip
CHW, NCHW = uniform((3, 4, 5), 0, 1), uniform((2, 3, 2, 3), 0, 1)
SIZES = ((7, 6), (3, 2), (2, 5), (6, 2))

CASES: list[Case] = [
    *_each("_image_to_tensor", {}, rtol=1e-3), *_each("_image_to_tensor", {}, (2, 3, 4, 3), ("uint8", "float32")),
    *_each("_image_to_tensor", {}, (3, 4, 2), ("uint8",)), *_each("_image_to_tensor", {}, (3, 4), ("uint8",)),
    op_case("_image_normalize", {"data": CHW}, {"mean": "(0.5, 0.4, 0.3)", "std": "(0.2, 0.3, 0.4)"}),
    op_case("_image_normalize", {"data": CHW}, {"mean": "(0.5, 0.4, 0.3)", "std": "(0.2, 0.3, 0.4)"}, dtype="float64"),
    op_case("_image_normalize", {"data": CHW}, {"mean": "(0.5, 0.4, 0.3)", "std": "(0.2, 0.3, 0.4)"}, dtype="float16"),
    op_case("_image_normalize", {"data": NCHW}, {"mean": "(0.5,)", "std": "(0.2, 0.3, 0.4)"}, grad_req="add"),
    op_case("_image_normalize", {"data": NCHW}, {"mean": "0.5", "std": "2"}),
    op_case("_image_normalize", {"data": uniform((1, 2, 3))}, {"mean": "(0.5,)", "std": "(0.2,)"}),
    op_case("_image_normalize", {"data": CHW}, {}, id="defaults", better=True),
    op_case("_image_normalize", {"data": CHW}, {"mean": "(1, 2)"}), op_case("_image_normalize", {"data": (4, 2, 2)}),
    *_each("_image_normalize", {"mean": "(1,)", "std": "(2,)"}, (3, 2, 2), ("uint8",)),
    *(op_case("_image_crop", {"data": uniform(s)}, {"x": 1, "y": 2, "width": 3, "height": 2}, id=f"{len(s)}d", **o)
      for s, o in CROPPED),
    *_each("_image_crop", {"x": 0, "y": 0, "width": 2, "height": 4}, types=("uint8", "int32", "float16")),
    *(op_case("_image_crop", {"data": (3, 4, 3)}, {"x": x, "y": 0, "width": w, "height": 2}, id=f"bad-{x}-{w}",
) for x, w in ((2, 3), (0, 0), (5, 1))),
    *(c for i in range(6) for c in _each("_image_resize", {"size": "(7, 6)", "interp": i}, (4, 5, 3),
                                         ("uint8", "float32", "float64"), rtol=1e-4)),
    *(c for i in range(6) for s in SIZES[1:] for c in _each("_image_resize", {"size": s, "interp": i}, (4, 6, 3),
                                                           ("uint8", "float32")[s == (6, 2) and i == 2:])),
    *_each("_image_resize", {"size": "(3, 2)", "interp": 1}, (4, 6, 1), ("uint8", "float32")),
    *_each("_image_resize", {"size": "4"}, (2, 3, 6, 2), ("uint8",)),
    *(c for s in ((4, 7, 3), (7, 4, 3))
      for c in _each("_image_resize", {"size": "3", "keep_ratio": True}, s, ("uint8",))),
    *_each("_image_resize", {"size": "(3, 2)", "keep_ratio": True}, types=("uint8",)),
    *(c for s in ("0", "()", "(0, 3)", "-1", "(1, 2, 3)")
      for c in _each("_image_resize", {"size": s}, types=("uint8",))),
    *_each("_image_resize", {"size": "3", "interp": 9}, types=("uint8",)),
    *(c for n in ("left_right", "top_bottom") for c in _each(f"_image_flip_{n}", {})),
    *(c for n in ("left_right", "top_bottom") for s in ((2, 4, 2), (2, 4), (1, 2, 4, 3))
      for c in _each(f"_image_flip_{n}", {}, s, ("uint8",))),
    *(op_case(f"_image_flip_{n}", {"data": pixels((3, 5, 1))}, id="odd", grads=False, dtype="uint8", differs=UNWRITTEN,
              expected=_flipped(a)) for n, a in (("left_right", 1), ("top_bottom", 0))),
    *(c for n in ("left_right", "top_bottom") for c in _each(f"_image_random_flip_{n}", {}, types=("uint8", "float32"),
                                                           random=True)),
    *(c for n in ("brightness", "contrast") for f in (0.0, 0.3, 1.5)
      for c in _each(f"_image_random_{n}", _same(f), rtol=2e-3 if n == "contrast" else None)),
    *(c for f in (0.0, 0.3, 1.5) for c in _each("_image_random_hue", _same(f), types=TYPES[2:], rtol=2e-3)),
    *(c for f in (0.0, 0.3, 1.5) for c in _each("_image_random_saturation", _same(f), types=TYPES[:1] + TYPES[2:],
                                                differs=BLUE, expected=_saturated(f), rtol=2e-3)),
    *(c for n in ("brightness", "contrast", "saturation", "hue") for s in ((4, 3, 1), (2, 3, 2), (2, 2, 2, 3))
      if n != "hue" or s[-1] > 1 for c in _each(f"_image_random_{n}", _same(1.25), s, ("uint8", "float32"))),
    *(c for n in ("brightness", "hue") for c in _each(f"_image_random_{n}", {"min_factor": 0.5, "max_factor": 2.0},
                                                     types=("uint8",), random=True)),
    *_each("_image_random_brightness", {"min_factor": -1.0, "max_factor": 2.0}, types=("uint8",)),
    *_each("_image_random_color_jitter", {"brightness": 0.5, "contrast": 0.5, "saturation": 0.5, "hue": 0.1},
           random=True),
    *_each("_image_adjust_lighting", {"alpha": "(0.5, 0.3, -0.2)"}),
    *_each("_image_adjust_lighting", {"alpha": "(0.5, 0.3, -0.2)"}, (3, 2, 1), ("uint8",), **ONE_CHANNEL),
    *_each("_image_random_hue", _same(1.25), (4, 3, 1), ("uint8", "float32"), **ONE_CHANNEL),
    *_each("_image_random_lighting", {"alpha_std": 0.0}), *_each("_image_random_lighting", {}, random=True),
]  # fmt: skip
