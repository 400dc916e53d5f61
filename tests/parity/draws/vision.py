"""Resizing, regions, boxes, SSD, sampling, attention; and the update ops of optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.parity.arrays import Array, const, distinct, randint, uniform, values
from tests.parity.case import Case
from tests.parity.draw import FLOATS, SINGLE, Draw, draws


def fixed_boxes(d: Draw, *shape: int, center: bool = False, scale: float = 1.0) -> np.ndarray:
    draw = np.random.RandomState(d.whole(0, 10**6))
    place, size = draw.uniform(0.2, 1, (*shape, 2)), draw.uniform(0.1, 0.6, (*shape, 2))
    return (scale * np.concatenate([place, size if center else place + size], -1)).round(3)


def fixed(x: np.ndarray) -> Array:
    return values(x.astype(float).tolist())


@draws("UpSampling", dtypes=SINGLE)
def upsampling(d: Draw) -> Case:
    scale, n = d.whole(1, 3), d.of((1, 1, 2))
    shape = d.shape(4, 4)
    others = [(shape[0], shape[1], shape[2] * k, shape[3] * k) for k in (1,) * (n - 1)]
    return d.case([d.x(s) for s in (shape, *others)], d.params(scale=scale, sample_type="nearest", num_args=n))


@draws("_contrib_BilinearResize2D", dtypes=SINGLE)
def resize(d: Draw) -> Case:
    shape = d.shape(4, 4, 6)
    mode = d.of(("size", "size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"))
    if mode == "like":
        return d.case([d.x(shape), d.x(d.shape(4, 4, 6))], d.params(mode=mode))
    more: dict[str, Any] = {}
    if mode == "size":
        more = {"height": d.whole(1, 8), "width": d.whole(1, 8)}
    elif mode == "odd_scale":
        more = {"scale_height": d.of((0.5, 1.5, 2.0, 3.0)), "scale_width": d.of((0.5, 1.5, 2.0, 3.0))}
    elif min(shape[2:]) < 2:
        return d.case([d.x((1, 1, 4, 5))], d.params(mode=mode))
    # MXNet: places are computed in single precision
    return d.case(
        [d.x(shape)], d.params(mode=mode, **more), **({"rtol": 1e-5, "atol": 1e-6} if d.dtype == "float64" else {})
    )


def rois(d: Draw, n: int, batch: int, scale: float) -> Array:
    boxes = fixed_boxes(d, n, scale=scale)
    return fixed(np.concatenate([np.arange(n)[:, None] % batch, boxes], -1))


@draws("ROIPooling", "_contrib_ROIAlign", "_contrib_PSROIPooling", dtypes=("float32",))
def regions(d: Draw) -> Case:
    size, batch = d.ints(2, 1, 4), d.size(2)
    params = (
        d.params(
            pooled_size=size,
            spatial_scale=d.of((1.0, 0.5, 0.7)),
            **({"sample_ratio": d.of((-1, 1, 2, 3)), "position_sensitive": False} if d.name.endswith("Align") else {}),
        )
        if not d.name.endswith("PSROIPooling")
        else {"pooled_size": size[0], "spatial_scale": 0.5, "output_dim": 2, "group_size": size[0]}
    )
    channels = 2 * size[0] ** 2 if d.name.endswith("PSROIPooling") else d.whole(1, 3)
    return d.case(
        [distinct((batch, channels, d.whole(3, 8), d.whole(3, 8)), -2, 2), rois(d, d.whole(1, 4), batch, 6)],
        params,
        grads=["data"],
    )


@draws("_contrib_box_iou", dtypes=SINGLE)
def iou(d: Draw) -> Case:
    center = d.maybe()
    return d.case(
        [fixed(fixed_boxes(d, *d.shape(1, 2), center=center)), fixed(fixed_boxes(d, *d.shape(1, 2), center=center))],
        {"format": "center" if center else "corner"},
    )


@draws("_contrib_box_nms", dtypes=SINGLE)
def nms(d: Draw) -> Case:
    batch, n, center = d.shape(1, 1, 3) if d.maybe() else (), d.whole(1, 8), d.maybe(0.3)
    draw = np.random.RandomState(d.whole(0, 10**6))
    ids, extra = draw.randint(0, 3, (*batch, n, 1)), d.whole(0, 2)
    count = int(np.prod((*batch, n)))
    scores = draw.permutation(np.linspace(0, 1, count)).reshape(*batch, n, 1).round(4)
    rows = np.concatenate(
        [ids, scores, fixed_boxes(d, *batch, n, center=center), draw.uniform(size=(*batch, n, extra))], -1
    )
    out = d.of(("corner", "center"))
    params = d.params(
        overlap_thresh=d.real(0.05, 0.9),
        valid_thresh=d.of((0.0, 0.3)),
        topk=d.of((-1, 1, 3)),
        id_index=d.of((-1, 0)),
        background_id=d.of((-1, 1)),
        in_format="center" if center else "corner",
        out_format=out,
    )
    # MXNet: the gradient leaves out the conversion between the formats
    return d.case([fixed(rows)], params, **({} if center == (out == "center") else {"grads": ()}))


@draws("_contrib_MultiBoxPrior", dtypes=("float32",))
def prior(d: Draw) -> Case:
    given = {
        "sizes": tuple(d.real(0.1, 0.9) for _ in range(d.whole(1, 3))),
        "ratios": tuple(d.real(0.5, 2) for _ in range(d.whole(1, 3))),
        "steps": d.of(((-1.0, -1.0), (0.2, 0.3))),
        "offsets": d.of(((0.5, 0.5), (0.3, 0.7))),
    }
    return d.case([d.x(d.shape(4, 4))], d.params(**given), grads=())


@draws("_contrib_MultiBoxTarget", dtypes=("float32",))
def target(d: Draw) -> Case:
    batch, n, objects, classes = d.size(3), d.whole(2, 12), d.whole(1, 3), d.whole(2, 4)
    draw = np.random.RandomState(d.whole(0, 10**6))
    labels = np.concatenate([draw.randint(0, classes - 1, (batch, objects, 1)), fixed_boxes(d, batch, objects)], -1)
    for row in labels:
        row[draw.randint(0, objects + 1) :] = -1
    params = d.params(
        overlap_threshold=d.real(0.2, 0.7),
        ignore_label=d.of((-1.0, -2.0)),
        negative_mining_ratio=d.of((-1.0, 1.0, 3.0)),
        negative_mining_thresh=d.real(0.2, 0.9),
        minimum_negative_samples=0,  # MXNet: has no effect
        variances=d.of(((0.1, 0.1, 0.2, 0.2), (1.0, 0.5, 1.0, 0.3))),
    )
    return d.case([fixed(fixed_boxes(d, 1, n)), fixed(labels), distinct((batch, classes, n), -2, 2)], params, grads=())


@draws("_contrib_MultiBoxDetection", dtypes=("float32",))
def detection(d: Draw) -> Case:
    batch, n, classes = d.size(3), d.whole(1, 10), d.whole(2, 4)
    params = d.params(
        threshold=d.real(0.05, 0.5),
        nms_threshold=d.real(0.1, 0.9),
        nms_topk=d.of((-1, 2, 5)),
        background_id=0,
        variances=d.of(((0.1, 0.1, 0.2, 0.2), (1.0, 0.5, 1.0, 0.3))),
    )
    return d.case(
        [distinct((batch, classes, n), 0.01, 0.99), uniform((batch, 4 * n)), fixed(fixed_boxes(d, 1, n))],
        params,
        grads=(),
    )


@draws("_contrib_box_decode", dtypes=SINGLE)
def decode(d: Draw) -> Case:
    batch, n, kind = d.size(3), d.size(), d.of(("corner", "center"))
    return d.case(
        [uniform((batch, n, 4)), fixed(fixed_boxes(d, 1, n, center=kind == "center"))],
        d.params(
            std0=d.real(0.1, 1),
            std1=d.real(0.1, 1),
            std2=d.real(0.1, 1),
            std3=d.real(0.1, 1),
            clip=d.of((-1.0, 0.5)),
            format=kind,
        ),
        grads=(),
    )


@draws("_contrib_bipartite_matching", dtypes=("float32",))
def matching(d: Draw) -> Case:
    ascend = d.maybe()
    # MXNet: topk lets one match more through
    return d.case([distinct(d.shape(2, 3, 4))], {"threshold": 0.6 if ascend else -0.4, "is_ascend": ascend}, grads=())


@draws("GridGenerator", dtypes=SINGLE)
def grid(d: Draw) -> Case:
    if d.maybe():
        return d.case([d.x((d.size(3), 6))], {"transform_type": "affine", "target_shape": d.ints(2, 2, 5)})
    shape = (d.size(3), 2, d.whole(2, 5), d.whole(2, 5))
    return d.case([d.x(shape)], {"transform_type": "warp"})


@draws("BilinearSampler", dtypes=SINGLE)
def sampler(d: Draw) -> Case:
    n = d.size(3)
    return d.case([d.x((n, d.size(3), d.whole(2, 5), d.whole(2, 5))), uniform((n, 2, d.size(), d.size()), -1.4, 1.4)])


@draws("SpatialTransformer", dtypes=SINGLE)
def transformer(d: Draw) -> Case:
    n = d.size(3)
    return d.case(
        [d.x((n, d.size(3), d.whole(2, 5), d.whole(2, 5))), uniform((n, 6))],
        {"target_shape": d.ints(2, 2, 5), "transform_type": "affine", "sampler_type": "bilinear"},
    )


@draws("Correlation", dtypes=("float32",))
def correlation(d: Draw) -> Case:
    kernel, far, pad = d.of((1, 3)), d.whole(1, 2), d.whole(0, 2)
    border = far + kernel // 2
    size = max(1, 2 * border + 1 - 2 * pad)
    shape = (d.size(2), d.size(3), size + d.whole(0, 3), size + d.whole(0, 3))
    return d.case(
        [d.x(shape), d.x(shape)],
        d.params(kernel_size=kernel, max_displacement=far, pad_size=pad, stride1=d.whole(1, 2), stride2=d.whole(1, 2)),
    )


@draws(
    "_contrib_interleaved_matmul_selfatt_qk",
    "_contrib_interleaved_matmul_selfatt_valatt",
    "_contrib_interleaved_matmul_encdec_qk",
    "_contrib_interleaved_matmul_encdec_valatt",
    dtypes=("float32",),
)
def attention(d: Draw) -> Case:
    heads, width, batch, time, keys = d.whole(1, 3), d.whole(1, 3), d.whole(1, 2), d.whole(1, 4), d.whole(1, 4)
    full = heads * width
    rows = keys if "encdec" in d.name else time
    mixed = d.x((rows, batch, full * (2 if "encdec" in d.name else 3)))
    weights = d.x((batch * heads, time, rows))
    if d.name.endswith("valatt"):
        return d.case([mixed, weights], {"heads": heads})
    return d.case([d.x((time, batch, full)), mixed] if "encdec" in d.name else [mixed], {"heads": heads})


# ---- updates

UPDATES = ("sgd_update", "sgd_mom_update", "nag_mom_update", "adam_update", "rmsprop_update", "rmspropalex_update",
           "ftrl_update", "signsgd_update", "signum_update", "ftml_update", "lamb_update_phase1")  # fmt: skip
POSITIVE = ("var", "n", "g", "d", "v")


def hyper(d: Draw) -> dict[str, Any]:
    """Every number of an update op in a range that makes sense."""
    table = {"lr": (0.01, 0.5), "wd": (0, 0.1), "rescale_grad": (0.1, 2), "momentum": (0, 0.95), "beta1": (0.5, 0.95),
             "beta2": (0.8, 0.999), "epsilon": (1e-3, 1e-1), "gamma1": (0.5, 0.95), "gamma2": (0.5, 0.95),
             "lamda1": (0, 0.5), "beta": (0.1, 2), "wd_lh": (0, 0.1)}  # fmt: skip
    given: dict[str, Any] = {}
    for name in d.op.params.__specs__:
        if name in table:
            given[name] = d.real(*table[name])
        elif name.startswith("clip_"):
            given[name] = d.of((-1.0, 0.3))
    if "t" in d.op.params.__specs__:
        given["t"] = d.whole(1, 9)
    return d.params(**given)


@draws(*UPDATES, dtypes=FLOATS)
def update(d: Draw) -> Case:
    params, shape = hyper(d), d.shape()
    names = d.op.input_names(d.parsed(params))
    arrays = [
        uniform(shape, 2, 3)
        if n == "n" and d.name == "rmspropalex_update"
        else uniform(shape, 0.01, 0.5)
        if n in POSITIVE
        else uniform(shape)
        for n in names
    ]
    # MXNet's hyperparameters are float32
    loose = {"float64": {"rtol": 1e-4, "atol": 1e-5}, "float16": {"rtol": 1e-2, "atol": 1e-2}}.get(d.dtype, {})
    return d.case(arrays, params, grads=(), **loose)


@draws(
    "multi_sgd_update",
    "multi_sgd_mom_update",
    "preloaded_multi_sgd_update",
    "preloaded_multi_sgd_mom_update",
    dtypes=("float32",),
)
def several(d: Draw) -> Case:
    n, loaded = d.whole(1, 3), d.name.startswith("preloaded")
    rates = (
        {}
        if loaded
        else {"lrs": tuple(d.real(0.01, 0.5) for _ in range(n)), "wds": tuple(d.real(0, 0.1) for _ in range(n))}
    )
    params = {**hyper(d), **rates, "num_weights": n}
    arrays: list[Array] = []
    for _ in range(n):
        shape = d.shape()
        arrays += [uniform(shape)] * (3 if "mom" in d.name else 2)
    if loaded:
        arrays += [uniform((n,), 0.01, 0.5), uniform((n,), 0, 0.1)]
    return d.case(arrays, params, grads=())


@draws("lamb_update_phase2", dtypes=("float32",))
def phase2(d: Draw) -> Case:
    shape = d.shape()
    return d.case(
        [uniform(shape), uniform(shape), const(d.of((0.0, 0.8)), (1,)), const(d.of((0.0, 2.5)), (1,))],
        d.params(lr=0.1, lower_bound=d.of((-1.0, 1.5)), upper_bound=d.of((-1.0, 2.0))),
        grads=(),
    )


@draws("multi_lars", dtypes=("float32",))
def lars(d: Draw) -> Case:
    n = (d.size(),)
    return d.case(
        [uniform(n, 0.1, 1), randint(n, 0, 3), randint(n, 0, 3), uniform(n, 0, 0.1)],
        {"eta": 0.3, "eps": 1e-3, "rescale_grad": d.real(0.1, 2)},
        grads=(),
    )
