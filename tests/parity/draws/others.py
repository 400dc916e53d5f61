"""Detectors' and rarer ops: proposals, deformable convolution, densities, factorisations, mixed-precision updates."""

from __future__ import annotations

from typing import Any

from tests.parity.arrays import Array, distinct, normal, randint, signed, spd, uniform, values
from tests.parity.case import Case
from tests.parity.draw import FEW, FLOATS, SINGLE, Draw, draws
from tests.parity.draws.layers import reach, spatial, window
from tests.parity.draws.shapes import parts
from tests.parity.draws.vision import fixed, fixed_boxes, hyper


def windows_of(win: dict[str, Any], size: tuple[int, ...]) -> tuple[int, ...]:
    """How many windows fit along each axis."""
    rank = len(size)
    pad, stride = win["pad"] or (0,) * rank, win["stride"] or (1,) * rank
    return tuple((n + 2 * p - r) // s + 1 for n, p, r, s in zip(size, pad, reach(win), stride, strict=True))


@draws("col2im", dtypes=SINGLE)
def col2im(d: Draw) -> Case:
    win = {k: (1, *v[1:]) if k == "dilate" and v else v for k, v in window(d, 2).items()}
    if any(n > 1 for n in win["dilate"]):  # MXNet: a dilated kernel with strides is misplaced
        win["stride"] = ()
    size, channels = spatial(d, win, 3), d.size(2)
    blocks = windows_of(win, size)
    shape = (d.size(2), channels * win["kernel"][0] * win["kernel"][1], blocks[0] * blocks[1])
    return d.case([d.x(shape)], d.params(output_size=size, **win))


@draws("_contrib_DeformableConvolution", dtypes=SINGLE)
def deformable(d: Draw) -> Case:
    win, groups, deformable_groups = window(d, 2), d.of((1, 2)), d.of((1, 2))
    size, channels = spatial(d, win, 3), 2 * d.whole(1, 2)
    n, points = d.size(2), win["kernel"][0] * win["kernel"][1]
    offset = uniform((n, 2 * deformable_groups * points, *windows_of(win, size)), -1.4, 1.4)
    bias = [] if (no_bias := d.maybe()) else [None]
    return d.case([d.x((n, channels, *size)), offset, None, *bias], d.params(
        **win, num_filter=groups * d.whole(1, 2), num_group=groups, num_deformable_group=deformable_groups,
        no_bias=no_bias, layout=None), infer_from=("data", "offset"),
        atol=1e-4 if d.dtype == "float32" else None)  # fmt: skip


@draws("_contrib_Proposal", "_contrib_MultiProposal", dtypes=("float32",))
def proposal(d: Draw) -> Case:
    batch, h, w = 1 if d.name == "_contrib_Proposal" else d.whole(1, 2), d.whole(1, 4), d.whole(1, 4)
    scales, ratios = (
        tuple(d.real(1, 5) for _ in range(d.whole(1, 2))),
        tuple(d.real(0.4, 2) for _ in range(d.whole(1, 3))),
    )
    anchors = len(scales) * len(ratios)
    info = values([[16.0 * h, 16.0 * w, d.of((1.0, 1.5))]] * batch)
    params = d.params(
        scales=scales,
        ratios=ratios,
        rpn_post_nms_top_n=d.whole(1, 12),
        rpn_min_size=d.of((1, 16, 40)),
        rpn_pre_nms_top_n=d.of((6, 6000)),
        threshold=d.real(0.3, 0.9),
    )
    return d.case(
        [distinct((batch, 2 * anchors, h, w), 0, 1), uniform((batch, 4 * anchors, h, w), -0.3, 0.3), info],
        params,
        grads=(),
        atol=1e-4,
    )


@draws("_contrib_RROIAlign", dtypes=("float32",))
def rotated(d: Draw) -> Case:
    rois = [
        [i % 2, d.real(0, 6), d.real(0, 6), d.real(1, 6), d.real(1, 6), d.real(-90, 90)] for i in range(d.whole(1, 3))
    ]
    return d.case([d.x((2, d.size(3), 6, 7)), values(rois)], {"pooled_size": d.ints(2, 1, 3), "spatial_scale": d.of(
        (1.0, 0.5)), "sampling_ratio": d.of((-1, 1, 2))}, grads=())  # fmt: skip


@draws("_contrib_box_encode", dtypes=("float32",))
def encode(d: Draw) -> Case:
    batch, n, m = d.size(3), d.size(), d.size(3)
    return d.case(
        [
            randint((batch, n), -1, 2),
            randint((batch, n), 0, m),
            fixed(fixed_boxes(d, batch, n)),
            fixed(fixed_boxes(d, batch, m)),
            uniform((4,), -0.1, 0.1),
            uniform((4,), 0.1, 0.3),
        ],
        grads=(),
    )


@draws("_contrib_index_copy", dtypes=SINGLE)
def index_copy(d: Draw) -> Case:
    shape = d.shape(1, 3)
    rows = d.rng.sample(range(shape[0]), d.whole(1, shape[0]))
    return d.case(
        [d.x(shape), values(rows, d.of(("int32", "int64", "float32"))), d.x((len(rows), *shape[1:]))],
        grads=["old_tensor", "new_tensor"],
    )


@draws("_contrib_BatchNormWithReLU", dtypes=("float32",))
def norm_relu(d: Draw) -> Case:
    shape = d.shape(4, 4)
    return d.case(
        [normal((max(2, shape[0]), *shape[1:])), None, None, None, None],
        d.params(eps=d.of((1e-3, 0.1)), momentum=d.of((0.9, 0.3)), output_mean_var=False),
        backend="onednn",
        atol=1e-3,
    )


@draws("_np_cumsum", dtypes=(*FLOATS, "int32", "int64"))
def cumsum(d: Draw) -> Case:
    shape = d.shape()
    return d.case([d.x(shape)], {"axis": d.of((None, d.axis(len(shape))))})


@draws("_slice_assign", dtypes=FEW)
def slice_assign(d: Draw) -> Case:
    shape = d.shape(high=4)
    cut = parts(d, shape)
    steps = cut["step"] or (None,) * len(cut["begin"])
    kept = tuple(
        len(range(n)[slice(b, e, s)]) for n, b, e, s in zip(shape, cut["begin"], cut["end"], steps, strict=False)
    )
    return d.case([d.x(shape), d.x((*kept, *shape[len(kept) :]))], cut)


@draws("make_loss", "_contrib_round_ste", "_contrib_sign_ste", dtypes=FLOATS)
def straight(d: Draw) -> Case:
    return d.case([d.x(d.shape())])


@draws("amp_multicast", dtypes=("float32",))
def multicast(d: Draw) -> Case:
    n = d.whole(1, 4)
    return d.case(
        [uniform(d.shape(), dtype=d.of(("float16", "float32"))) for _ in range(n)], d.params(num_outputs=n), rtol=2e-3
    )


@draws("_linalg_gelqf", "_linalg_maketrian", "_linalg_potri", "_linalg_slogdet", "_linalg_syevd",
       dtypes=("float32", "float64"))  # fmt: skip
def factors(d: Draw) -> Case:
    batch, n = d.shape(1, 2, 2) if d.maybe() else (), d.whole(1, 4)
    loose: dict[str, Any] = {"rtol": 1e-2, "atol": 1e-3} if d.dtype == "float32" else {"rtol": 1e-6, "atol": 1e-6}
    if d.name == "_linalg_gelqf":
        return d.case([signed((*batch, n, n + d.whole(0, 2)), 0.5, 1.5)], **loose)
    if d.name == "_linalg_maketrian":
        return d.case([d.x((*batch, n * (n + 1) // 2))], d.params(offset=d.whole(-2, 2)))
    if d.name == "_linalg_potri":
        return d.case([signed((*batch, n, n), 0.8, 1.5)], grad_req="write", **loose)
    return d.case([spd((*batch, n, n))], **loose)


DENSITIES = {"uniform": 2, "normal": 2, "gamma": 2, "exponential": 1, "poisson": 1, "negative_binomial": 2,
             "generalized_negative_binomial": 2}  # fmt: skip


@draws(*(f"_random_pdf_{n}" for n in DENSITIES), dtypes=("float32", "float64"))
def density(d: Draw) -> Case:
    kind = d.name.removeprefix("_random_pdf_")
    batch = d.shape(1, 2, 3)
    whole = kind in ("poisson", "negative_binomial", "generalized_negative_binomial")
    shape = (*batch, *d.shape(1, 1, 4))
    sample = randint(shape, 0, 6) if whole else uniform(shape, 0.1, 2)
    ranges = {"uniform": [(-1, 0), (2, 3)], "negative_binomial": [(1, 4), (0.2, 0.8)]}.get(kind, [(0.5, 2), (0.5, 2)])
    given = [uniform(batch, lo, hi) for lo, hi in ranges[: DENSITIES[kind]]]
    # MXNet: the gradients of counts are those of a continuous argument; only the parameters' are compared
    return d.case([sample, *given], d.params(), **({"grads": ()} if whole else {}), atol=1e-3, rtol=1e-3)


MIXED = {"mp_sgd_update": 0, "mp_sgd_mom_update": 1}


@draws(*MIXED, dtypes=("float16", "float32"))
def mixed(d: Draw) -> Case:
    shape = d.shape()
    states = [uniform(shape, dtype="float32") for _ in range(MIXED[d.name] + 1)]
    return d.case([uniform(shape), uniform(shape), *states], hyper(d), grads=())


@draws("mp_lamb_update_phase1", dtypes=("float16",))
def mixed_lamb(d: Draw) -> Case:
    shape = d.shape()
    states = [uniform(shape, dtype="float32"), uniform(shape, 0.01, 0.5, "float32"), uniform(shape, dtype="float32")]
    return d.case([uniform(shape), uniform(shape), *states], hyper(d), grads=(), rtol=1e-3, atol=1e-4)


@draws("_adamw_update", "_multi_adamw_update", dtypes=("float32",))
def adamw(d: Draw) -> Case:
    n = d.whole(1, 3) if d.name == "_multi_adamw_update" else 1
    arrays: list[Array] = []
    for _ in range(n):
        shape = d.shape()
        arrays += [uniform(shape), uniform(shape), uniform(shape), uniform(shape, 0.01, 0.5)]
    more: dict[str, Any] = {"eta": d.real(0.1, 1)}
    if d.name == "_multi_adamw_update":
        more = {k: tuple(d.real(0.01, 0.5) for _ in range(n)) for k in ("lrs", "wds", "etas")} | {"num_weights": n}
    return d.case([*arrays, values([d.real(0.1, 2)])], {**hyper(d), **more} if n == 1 and "eta" in more else {
        **{k: v for k, v in hyper(d).items() if k not in more}, **more}, grads=())  # fmt: skip


@draws("_multi_lamb_update", dtypes=("float32",))
def multi_lamb(d: Draw) -> Case:
    n, arrays = d.whole(1, 3), []
    for _ in range(n):
        shape = d.shape()
        arrays += [uniform(shape), uniform(shape), uniform(shape), uniform(shape, 0.01, 0.5)]
    more = {k: tuple(d.real(0.01, 0.5) for _ in range(n)) for k in ("learning_rates", "wds")}
    return d.case(
        arrays,
        {
            **hyper(d),
            **more,
            "step_count": d.ints(n, 1, 9),
            "num_tensors": n,
            "lower_bound": d.of((-1.0, 0.5)),
            "upper_bound": d.of((-1.0, 2.0)),
        },
        grads=(),
        rtol=1e-3,
    )
