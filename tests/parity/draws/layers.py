"""Layers: convolutions, pooling, normalisation, dense layers, recurrent layers, losses."""

from __future__ import annotations

from typing import Any

from tests.parity.arrays import distinct, normal, randint, signed, uniform
from tests.parity.case import Case
from tests.parity.draw import FLOATS, SINGLE, Draw, Shape, draws


def window(d: Draw, rank: int, dilated: bool = True) -> dict[str, Shape]:
    """Kernel, stride, dilation and padding; any of the last three may be left empty."""
    kernel = d.ints(rank, 1, 3)
    pad = tuple(d.whole(0, k - 1) if k > 1 else 0 for k in kernel)
    out = {"kernel": kernel, "stride": d.ints(rank, 1, 4), "pad": pad}
    if dilated:
        out["dilate"] = d.ints(rank, 1, 2)
    return {k: () if k != "kernel" and d.maybe(0.25) else v for k, v in out.items()}


def reach(win: dict[str, Shape]) -> list[int]:
    """The extent of the dilated kernel along each axis."""
    dilate = win.get("dilate") or (1,) * len(win["kernel"])
    return [(k - 1) * s + 1 for k, s in zip(win["kernel"], dilate, strict=True)]


def spatial(d: Draw, win: dict[str, Shape], more: int = 4) -> Shape:
    pad = win["pad"] or (0,) * len(win["kernel"])
    return tuple(max(1, r - 2 * p) + d.whole(0, more) for r, p in zip(reach(win), pad, strict=True))


LAYOUT = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


@draws("Convolution", "Convolution_v1", dtypes=FLOATS)
def convolution(d: Draw) -> Case:
    rank = d.of((1, 2, 2, 3)) if d.name == "Convolution" else 2
    win, groups = window(d, rank), d.of((1, 1, 2, 3))
    if d.name == "Convolution_v1" and any(n > 1 for n in win["dilate"]):
        win["stride"] = ()  # MXNet: its gradient mixes up the places of a dilated kernel with strides
    data = (d.size(3), groups * d.whole(1, 2), *spatial(d, win, 4 if rank < 3 else 2))
    bias = [] if (no_bias := d.maybe()) else [None]
    return d.case(
        [d.x(data), None, *bias],
        d.params(
            **win,
            num_filter=groups * d.whole(1, 2),
            num_group=groups,
            no_bias=no_bias,
            layout=d.of((None, LAYOUT[rank])),
        ),
    )


@draws("Deconvolution", dtypes=SINGLE)
def deconvolution(d: Draw) -> Case:
    rank = d.of((1, 2, 2, 3))
    win, groups = window(d, rank), d.of((1, 1, 2))
    size = d.ints(rank, 1, 3)
    # MXNet: its own kernel mixes up the places of a dilated kernel with strides, oneDNN's does not
    mixed = any(n > 1 for n in win["dilate"]) and any(n > 1 for n in win["stride"])
    options: dict[str, Any] = {"backend": "onednn"} if mixed else {}
    d.dtype = "float32" if mixed else d.dtype
    stride, pad = win["stride"] or (1,) * rank, win["pad"] or (0,) * rank
    if any((n - 1) * s + r - 2 * p < 1 for n, s, r, p in zip(size, stride, reach(win), pad, strict=True)):
        win["pad"] = ()
        pad = (0,) * rank
    more: dict[str, Any] = {}
    if d.maybe(0.4):
        more["adj"] = tuple(d.whole(0, s - 1) for s in stride)
    elif d.maybe(0.3):
        more["target_shape"] = tuple(
            (n - 1) * s + r - d.whole(0, min(2, r - 1)) for n, s, r in zip(size, stride, reach(win), strict=True)
        )
    bias = [] if (no_bias := d.maybe()) else [None]
    return d.case(
        [d.x((d.size(3), groups * d.whole(1, 2), *size)), None, *bias],
        d.params(
            **win,
            **more,
            num_filter=groups * d.whole(1, 2),
            num_group=groups,
            no_bias=no_bias,
            layout=d.of((None, LAYOUT[rank])),
        ),
        **options,
    )


@draws("Pooling", dtypes=SINGLE)
def pooling(d: Draw) -> Case:
    rank = d.of((1, 2, 2, 3))
    win = window(d, rank, dilated=False)
    kind = d.of(("max", "avg", "sum", "lp"))
    more: dict[str, Any] = {"p_value": d.whole(1, 3)} if kind == "lp" else {}
    convention = d.of(("valid", "full", "same"))
    if convention == "same" and rank > 1:  # MXNet: for one spatial axis only
        convention = "full"
    size = (d.size(3), d.size(3), *spatial(d, win, 5 if rank < 3 else 2))
    return d.case(
        [distinct(size, 0.1, 2) if kind == "lp" else distinct(size, -2, 2)],
        d.params(**win, **more, pool_type=kind, pooling_convention=convention, global_pool=d.maybe(0.2), layout=None),
    )


@draws("Pooling_v1", dtypes=SINGLE)
def pooling_v1(d: Draw) -> Case:
    win = window(d, 2, dilated=False)
    return d.case(
        [distinct((d.size(3), d.size(3), *spatial(d, win, 5)), -2, 2)], d.params(**win, global_pool=d.maybe(0.2))
    )


@draws("_contrib_AdaptiveAvgPooling2D", dtypes=SINGLE)
def adaptive(d: Draw) -> Case:
    size = d.of(((), d.whole(1, 7), d.ints(2, 1, 7)))
    return d.case([d.x(d.shape(4, 4, 6))], {"output_size": size} if size != () else {})


@draws("im2col", dtypes=SINGLE)
def patches(d: Draw) -> Case:
    win = window(d, d.of((1, 2, 3)))
    return d.case([d.x((d.size(2), d.size(3), *spatial(d, win, 2)))], d.params(**win))


@draws("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", dtypes=("float32",))
def batch_norm(d: Draw) -> Case:
    shape = d.shape(4, 4) if d.name == "BatchNorm_v1" else d.shape(2, 5)
    shape = (max(2, shape[0]), *shape[1:])
    params = d.params(eps=d.of((1e-3, 0.1)), momentum=d.of((0.9, 0.3)))
    if d.name == "BatchNorm":
        params["axis"] = d.axis(len(shape)) if d.maybe(0.4) else 1
    if d.name == "_contrib_SyncBatchNorm":
        # MXNet: mean and variance are uninitialised memory in predict mode
        params = {**params, "key": d.label, "output_mean_var": False}
    return d.case([normal(shape), None, None, None, None], params, atol=1e-4)


@draws("LayerNorm", dtypes=FLOATS)
def layer_norm(d: Draw) -> Case:
    shape = d.shape(1, 4, 6)
    return d.case(
        [normal(shape), None, None],
        d.params(axis=d.axis(len(shape)), eps=d.of((1e-5, 0.1))),
        atol=1e-3 if d.dtype != "float16" else 1e-2,
    )


@draws("GroupNorm", dtypes=SINGLE)
def group_norm(d: Draw) -> Case:
    groups = d.whole(1, 3)
    shape = d.shape(3, 5)
    shape = (shape[0], groups * d.whole(1, 2), *shape[2:])
    return d.case([normal(shape), None, None], d.params(num_groups=groups, eps=d.of((1e-5, 0.1))), atol=1e-3)


@draws("InstanceNorm", dtypes=("float32",))
def instance_norm(d: Draw) -> Case:
    return d.case([normal(d.shape(3, 5)), None, None], d.params(eps=d.of((1e-3, 0.1))), atol=1e-3)


@draws("L2Normalization", dtypes=SINGLE)
def l2(d: Draw) -> Case:
    return d.case(
        [d.x(d.shape(3, 5))], d.params(eps=d.of((1e-10, 0.3))), **({"atol": 1e-4} if d.dtype == "float32" else {})
    )


@draws("LRN", dtypes=("float32",))
def lrn(d: Draw) -> Case:
    shape = d.shape(4, 4, 6)
    size = d.of([n for n in (1, 3, 5) if n <= shape[1]])  # MXNet: a wider window reads outside
    return d.case([d.x(shape)], d.params(nsize=size, alpha=d.real(0.1, 1), beta=d.real(0.3, 0.9), knorm=d.real(1, 3)))


@draws("LeakyReLU", dtypes=FLOATS)
def leaky(d: Draw) -> Case:
    kind = d.of(("elu", "gelu", "leaky", "prelu", "selu", "rrelu"))
    shape = d.shape(2 if kind == "prelu" else 1, 4)
    params = d.params(act_type=kind, slope=d.real(0.1, 0.6))
    if kind == "rrelu":
        return d.case([d.x(shape)], params, random=True)
    if kind == "gelu" and d.dtype == "float64":  # MXNet: a constant in single precision
        return d.case([signed(shape, 0.05)], params, rtol=1e-6)
    if kind == "selu":  # MXNet: the gradient of the negative part has its factor in the wrong place
        return d.case([signed(shape, 0.05)], params, grads=())
    if kind != "prelu":
        return d.case([signed(shape, 0.05)], params)
    # MXNet: gamma's gradient is wrong where data's shares its memory, so data's is not asked for
    return d.case([signed(shape, 0.05), None], params, grads=["gamma"] if d.maybe() else ["data"])


@draws("softmax", "log_softmax", "softmin", dtypes=FLOATS)
def softmax(d: Draw) -> Case:
    shape = d.shape(1, 4)
    params = d.params(axis=d.axis(len(shape)), temperature=d.of((None, 0.5, 3.0)), dtype=None, use_length=False)
    if d.name == "softmax" and len(shape) > 1 and d.maybe(0.4):
        axis = params.get("axis", -1) % len(shape)
        length = tuple(n for i, n in enumerate(shape) if i != axis)
        return d.case(
            [d.x(shape), randint(length, 1, shape[axis] + 1, d.of(("int32", "int64")))],
            {**params, "use_length": True},
            grads=["data"],
        )
    return d.case([d.x(shape)], params, **({"rtol": 1e-2, "atol": 1e-2} if d.dtype == "float16" else {}))


@draws("SoftmaxActivation", dtypes=FLOATS)
def softmax_activation(d: Draw) -> Case:
    params, shape = d.params(), d.shape(2, 4)
    # MXNet: over the last of several axes, the gradient is another function's
    wrong = len(shape) > 2 and d.parsed(params).mode == "instance"
    return d.case([d.x(shape)], params, **({"grads": ()} if wrong else {}))


@draws("SoftmaxOutput", dtypes=FLOATS)
def softmax_output(d: Draw) -> Case:
    multi, keep = d.maybe(0.4), d.maybe(0.3)
    shape = d.shape(3, 4) if multi or keep else d.shape(2, 3)
    classes = shape[-1] if keep and not multi else shape[1]
    label = (shape[0], *shape[2:]) if multi else shape[:-1] if keep else shape[:1]
    if not multi and not keep and len(shape) > 2:
        shape = shape[:2]
    # MXNet: multi_output leaves smooth_alpha out, out_grad multiplies by the output
    params = d.params(
        multi_output=multi,
        preserve_shape=keep,
        grad_scale=d.of((1.0, 2.5)),
        out_grad=False,
        smooth_alpha=d.of((0.0, 0.2)) if not multi and classes > 1 else 0.0,
        ignore_label=d.of((-1.0, 0.0)),
    )
    return d.case([d.x(shape), randint(label, -1 if params.get("use_ignore") else 0, classes)], params, grads=["data"])


@draws("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", dtypes=FLOATS)
def regression(d: Draw) -> Case:
    shape = d.shape(1, 4)
    return d.case([d.x(shape), d.x(shape)], d.params(grad_scale=d.of((1.0, 2.5))), grads=["data"])


@draws("SVMOutput", dtypes=SINGLE)
def svm(d: Draw) -> Case:
    shape = d.shape(2, 2)
    return d.case(
        [normal(shape), randint(shape[:1], 0, shape[1])],
        d.params(margin=d.real(0.2, 2), regularization_coefficient=d.real(0.2, 2)),
        grads=["data"],
        rtol=1e-5,
    )


@draws("MakeLoss", dtypes=FLOATS)
def make_loss(d: Draw) -> Case:
    return d.case([d.x(d.shape())], d.params(grad_scale=d.of((1.0, 2.5)), valid_thresh=d.real(-1, 1)))


@draws("softmax_cross_entropy", dtypes=SINGLE)
def cross_entropy(d: Draw) -> Case:
    shape = d.shape(2, 2)
    return d.case([d.x(shape), randint(shape[:1], 0, shape[1])], grads=["data"])


@draws("Dropout", dtypes=FLOATS)
def dropout(d: Draw) -> Case:
    shape = d.shape()
    return d.case([d.x(shape)], d.params(p=d.of((0.0, 0.3)), axes=d.of(((), (0,)))), random=True)


@draws("FullyConnected", dtypes=FLOATS)
def dense(d: Draw) -> Case:
    bias = [] if (no_bias := d.maybe()) else [None]
    return d.case([d.x(d.shape(2, 4)), None, *bias], d.params(num_hidden=d.whole(1, 4), no_bias=no_bias))


@draws("Embedding", dtypes=FLOATS)
def embedding(d: Draw) -> Case:
    rows = d.whole(1, 6)
    return d.case(
        [d.index(d.shape(1, 3), rows, outside=True), None],
        d.params(input_dim=rows, output_dim=d.whole(1, 4), dtype=d.dtype, sparse_grad=False),
        grads=["weight"],
    )


@draws("RNN", dtypes=("float32", "float64"))
def rnn(d: Draw) -> Case:
    mode, layers, both = d.of(("rnn_relu", "rnn_tanh", "gru", "lstm")), d.whole(1, 3), d.maybe()
    time, batch, width, state = d.whole(1, 4), d.whole(1, 3), d.whole(1, 4), d.whole(1, 4)
    begin = uniform((layers * (1 + both), batch, state))
    # MXNet: sequence lengths and clipping are of cuDNN only
    params = d.params(
        mode=mode,
        num_layers=layers,
        bidirectional=both,
        state_size=state,
        use_sequence_length=False,
        lstm_state_clip_nan=False,
    )
    # MXNet: in float64 the gradients of several plain layers are not those of their outputs
    if mode.startswith("rnn_") and d.dtype == "float64":
        params["num_layers"], layers = 1, 1
        begin = uniform((1 + both, batch, state))
    # MXNet: without the gradient of the data, those of several layers' parameters are wrong in float64, of which parts
    # are computed in float32
    states = ["state", "state_cell"][: 1 + (mode == "lstm")]
    return d.case(
        [signed((time, batch, width), 0.1), None, *[begin] * len(states)],
        params,
        backend="onednn",
        grads=["data", "parameters", *states],
        rtol=1e-4,
        atol=1e-5,
    )


@draws("CTCLoss", dtypes=("float32",))
def ctc(d: Draw) -> Case:
    time, batch, classes, most = d.whole(4, 8), d.whole(1, 3), d.whole(3, 5), d.whole(1, 2)
    last = d.maybe()
    params = d.params(blank_label="last" if last else "first", use_data_lengths=d.maybe(), use_label_lengths=d.maybe())
    p = d.parsed(params)
    low, high = (0, classes - 1) if last else (1, classes)
    more = [randint((batch,), most * 2 + 1, time + 1)] if p.use_data_lengths and time > 2 * most else []
    if p.use_data_lengths and not more:
        more = [randint((batch,), time, time + 1)]
    if p.use_label_lengths:
        more.append(randint((batch,), 1, most + 1))
    return d.case([normal((time, batch, classes)), randint((batch, most), low, high), *more], params, grads=["data"])
