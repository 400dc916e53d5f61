"""Operators at sizes that real models use, each a small graph that symjax and real MXNet run alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Step = Callable[[], Any]
Fill = Callable[[np.random.RandomState, tuple[int, ...]], np.ndarray]
_RNG = np.random.RandomState


def uniform(rng: _RNG, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(-1, 1, shape)


def positive(rng: _RNG, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape)


def below(high: int) -> Fill:
    """Whole numbers from 0 on."""
    return lambda rng, shape: rng.randint(0, high, shape)


def boxes(size: float, scores: bool = False) -> Fill:
    """(…, 4) corners within a square of `size`; with a class and a score before, or a batch index."""

    def fill(rng: _RNG, shape: tuple[int, ...]) -> np.ndarray:
        place, side = rng.uniform(0, 0.7, (*shape[:-1], 2)), rng.uniform(0.05, 0.3, (*shape[:-1], 2))
        corners = np.concatenate([place, place + side], -1) * size
        if shape[-1] == 4:
            return corners
        if not scores:
            return np.concatenate([np.zeros((*shape[:-1], 1)), corners], -1)
        first = rng.randint(0, 20, (*shape[:-1], 1)), rng.uniform(0, 1, (*shape[:-1], 1))
        return np.concatenate([*first[: shape[-1] - 4], corners], -1)

    return fill


def definite(rng: _RNG, shape: tuple[int, ...]) -> np.ndarray:
    """Symmetric positive definite matrices."""
    x = rng.uniform(-1, 1, shape)
    return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])


@dataclasses.dataclass(frozen=True)
class Row:
    """A graph to time.

    Attributes:
      build: (mx.sym) -> symbol.
      shapes: of the inputs; those that are not given are inferred.
      fills: how to fill inputs that are not uniform in (-1, 1).
      types: dtypes of inputs that are not float32.
      grads: the inputs to differentiate: None all that have no fill or type of their own, () no backward pass.
      loss: whether `backward` takes no head gradients.
      forward: whether the prediction is worth timing.
    """

    build: Callable[[Any], Any]
    shapes: Mapping[str, tuple[int, ...]]
    fills: Mapping[str, Fill] = dataclasses.field(default_factory=dict)
    types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    grads: tuple[str, ...] | None = None
    loss: bool = False
    forward: bool = True

    @property
    def modes(self) -> list[str]:
        return ["forward"] * self.forward + ["backward"] * (self.grads != ())


def step_of(mx: Any, row: Row, mode: str) -> Step:
    """The executor's pass of a mode: "forward" in prediction, or "backward", forward and backward in training."""
    net = row.build(mx.sym)
    names = net.list_arguments()
    wanted = row.grads if row.grads is not None else [n for n in names if n not in row.fills and n not in row.types]
    req = {n: "write" if mode == "backward" and n in wanted else "null" for n in names}
    types = {n: row.types.get(n, "float32") for n in row.shapes} if row.types else None
    ex = net.simple_bind(mx.cpu(), grad_req=req, type_dict=types, **row.shapes)
    rng = np.random.RandomState(0)
    for n, a in {**ex.arg_dict, **ex.aux_dict}.items():
        default = positive if n.endswith(("var", "gamma")) else uniform
        scale = 0.05 if n.endswith(("weight", "parameters")) and n not in row.types else 1
        a[:] = mx.nd.array(row.fills.get(n, default)(rng, a.shape) * scale, dtype=a.dtype)
    heads = None if row.loss else [mx.nd.array(rng.uniform(-1, 1, o.shape)) for o in ex.forward(is_train=True)]

    def forward() -> None:
        for o in ex.forward(is_train=False):
            o.wait_to_read()

    def backward() -> None:
        ex.forward(is_train=True)
        ex.backward(heads)
        for g in ex.grad_dict.values():
            if g is not None:
                g.wait_to_read()

    return forward if mode == "forward" else backward


def update(name: str, arrays: int, shape: tuple[int, ...] = (4_000_000,), **params: Any) -> Callable[[Any], Step]:
    """An optimizer's update of one weight in place, with `arrays` states."""

    def make(mx: Any) -> Step:
        rng = np.random.RandomState(0)
        ins = [mx.nd.array(positive(rng, shape)) for _ in range(2 + arrays)]

        def step() -> None:
            getattr(mx.nd, name)(*ins, out=ins[0], **params)
            ins[0].wait_to_read()

        return step

    return make


def many_updates(mx: Any) -> Step:
    """multi_sgd_mom_update of 40 weights."""
    rng = np.random.RandomState(0)
    groups = [[mx.nd.array(positive(rng, (256, 256))) for _ in range(3)] for _ in range(40)]
    flat, outs = [a for g in groups for a in g], [g[0] for g in groups]

    def step() -> None:
        mx.nd.multi_sgd_mom_update(*flat, out=outs, lrs=[0.1] * 40, wds=[1e-4] * 40, momentum=0.9, num_weights=40)
        for o in outs:
            o.wait_to_read()

    return step


X = (8, 64, 56, 56)
WORDS = (64, 10000)


def _conv(shape: tuple[int, ...], filters: int, kernel: tuple[int, ...], **params: Any) -> Row:
    pad = params.pop("pad", tuple(k // 2 for k in kernel))
    more = {"num_filter": filters, "kernel": kernel, "pad": pad, "no_bias": True, **params}
    return Row(lambda s: s.Convolution(s.var("data"), **more), {"data": shape})


def _deconv(shape: tuple[int, ...], filters: int, **params: Any) -> Row:
    return Row(lambda s: s.Deconvolution(s.var("data"), num_filter=filters, kernel=(4, 4), stride=(2, 2), pad=(1, 1),
                                         **params), {"data": shape})  # fmt: skip


def _one(name: str, shape: tuple[int, ...], grads: tuple[str, ...] | None = None, forward: bool = True,
         **params: Any) -> Row:  # fmt: skip
    """An operator of one array."""
    return Row(lambda s: _get(s, name)(s.var("data"), **params), {"data": shape}, grads=grads, forward=forward)


def _two(name: str, a: tuple[int, ...], b: tuple[int, ...], **params: Any) -> Row:
    return Row(lambda s: _get(s, name)(s.var("a"), s.var("b"), **params), {"a": a, "b": b})


def _get(s: Any, name: str) -> Any:
    for part in name.split("."):
        s = getattr(s, part)
    return s


def _rnn(mode: str, hidden: int = 200, **params: Any) -> Row:
    def build(s: Any) -> Any:
        more = {"state_cell": s.var("cell")} if mode == "lstm" else {}
        return s.RNN(s.var("data"), s.var("parameters"), s.var("state"), **more, mode=mode, state_size=hidden,
                     num_layers=1, **params)  # fmt: skip

    return Row(build, {"data": (35, 32, hidden)}, grads=("data", "parameters"))


def _chain(s: Any) -> Any:
    x = s.var("data")
    for _ in range(5):
        x = s.sqrt(s.square(s.tanh(x * 1.1 + 0.1)) + 1)
    return x


def _sequence(name: str, forward: bool = True) -> Row:
    return Row(lambda s: _get(s, name)(s.var("data"), s.var("length"), use_sequence_length=True),
               {"data": (80, 64, 512), "length": (64,)}, {"length": lambda r, n: r.randint(1, 80, n)}, forward=forward)


def _roi(name: str, **params: Any) -> Row:
    more = {"pooled_size": (7, 7), "spatial_scale": 1 / 16, **params}
    return Row(lambda s: _get(s, name)(s.var("data"), s.var("rois"), **more),
               {"data": (1, 256, 38, 50), "rois": (128, 5)}, {"rois": boxes(600)})


def _anchors(s: Any) -> Any:
    return s.contrib.MultiBoxTarget(s.var("anchor"), s.var("label"), s.var("scores"), negative_mining_ratio=3,
                                    negative_mining_thresh=0.5)[2]  # fmt: skip


def _proposal(s: Any) -> Any:
    return s.contrib.Proposal(s.var("scores"), s.var("deltas"), s.var("info"), rpn_pre_nms_top_n=2000,
                              rpn_post_nms_top_n=300, feature_stride=16, scales=(8, 16, 32), ratios=(0.5, 1, 2))


def _quantized_conv(s: Any) -> Any:
    inputs = {n: s.var(n) for n in ("data", "weight", *_ENDS)}
    return s.contrib.quantized_conv(**inputs, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True)[0]


def _quantized_fc(s: Any) -> Any:
    inputs = {n: s.var(n) for n in ("data", "weight", *_ENDS)}
    return s.contrib.quantized_fully_connected(**inputs, num_hidden=1000, no_bias=True)[0]


_BYTES = {"data": below(127), "weight": lambda r, n: r.randint(-127, 127, n), "min_data": lambda r, n: np.zeros(n),
          "max_data": positive, "min_weight": lambda r, n: -np.ones(n), "max_weight": positive}  # fmt: skip
_ENDS = dict.fromkeys(("min_data", "max_data", "min_weight", "max_weight"), (1,))

OPS: dict[str, Row | Callable[[Any], Step]] = {
    # convolutions
    "conv7x7/2": _conv((8, 3, 224, 224), 64, (7, 7), stride=(2, 2)),
    "conv3x3_56": _conv(X, 64, (3, 3)),
    "conv3x3_14": _conv((8, 256, 14, 14), 256, (3, 3)),
    "conv3x3/2": _conv((8, 128, 56, 56), 128, (3, 3), stride=(2, 2)),
    "conv1x1_56": _conv((8, 256, 56, 56), 64, (1, 1)),
    "conv1x1_14": _conv((8, 1024, 14, 14), 256, (1, 1)),
    "conv1x1/2": _conv((8, 256, 56, 56), 512, (1, 1), stride=(2, 2)),
    "conv_depthwise": _conv((8, 144, 56, 56), 144, (3, 3), num_group=144),
    "conv_depthwise/2": _conv((8, 96, 112, 112), 96, (3, 3), stride=(2, 2), num_group=96),
    "conv_grouped": _conv((8, 256, 14, 14), 256, (3, 3), num_group=32),
    "conv_dilated": _conv((4, 128, 28, 28), 128, (3, 3), dilate=(2, 2), pad=(2, 2)),
    "conv_1d": _conv((16, 128, 512), 128, (3,)),
    "conv_3d": _conv((2, 16, 8, 28, 28), 32, (3, 3, 3)),
    "deconv4x4/2": _deconv((8, 128, 16, 16), 64),
    "deconv_depthwise": _deconv((4, 21, 32, 32), 21, num_group=21),
    "deformable_conv": Row(lambda s: s.contrib.DeformableConvolution(
        s.var("data"), s.var("offset"), kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True),
        {"data": (1, 64, 38, 50), "offset": (1, 18, 38, 50)}),
    "im2col": _one("im2col", (4, 64, 28, 28), kernel=(3, 3), pad=(1, 1)),
    "correlation": Row(lambda s: s.Correlation(s.var("a"), s.var("b"), max_displacement=4, pad_size=4),
                       {"a": (1, 64, 48, 64), "b": (1, 64, 48, 64)}),
    # pooling, resizing
    "maxpool3x3/2": _one("Pooling", (8, 64, 112, 112), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max"),
    "maxpool2x2/2": _one("Pooling", (8, 128, 56, 56), kernel=(2, 2), stride=(2, 2), pool_type="max"),
    "avgpool3x3": _one("Pooling", (8, 192, 28, 28), kernel=(3, 3), pad=(1, 1), pool_type="avg"),
    "globalpool": _one("Pooling", (32, 2048, 7, 7), kernel=(1, 1), global_pool=True, pool_type="avg"),
    "adaptive_avg": _one("contrib.AdaptiveAvgPooling2D", (4, 512, 32, 32), output_size=(6, 6)),
    "upsample_nearest": _one("UpSampling", (4, 128, 32, 32), scale=2, sample_type="nearest"),
    "resize_bilinear": _one("contrib.BilinearResize2D", (4, 64, 32, 32), height=64, width=64),
    "bilinear_sampler": Row(lambda s: s.BilinearSampler(s.var("data"), s.var("grid")),
                            {"data": (4, 32, 64, 64), "grid": (4, 2, 64, 64)}),
    # normalisation
    "batchnorm": Row(lambda s: s.BatchNorm(s.var("data"), fix_gamma=False), {"data": X}, grads=None),
    "layernorm": _one("LayerNorm", (8, 128, 768)),
    "groupnorm": _one("GroupNorm", (8, 64, 28, 28), num_groups=32),
    "instancenorm": _one("InstanceNorm", (4, 64, 64, 64)),
    "l2norm": _one("L2Normalization", (128, 512)),
    "lrn": _one("LRN", (8, 96, 27, 27), nsize=5),
    # products
    "fc": _one("FullyConnected", (64, 1024), num_hidden=1000),
    "fc_large": _one("FullyConnected", (64, 9216), num_hidden=2048),
    "dot": _two("dot", (512, 512), (512, 512)),
    "dot_transpose_b": _two("dot", (64, 1024), (1000, 1024), transpose_b=True),
    "batch_dot": _two("batch_dot", (96, 128, 64), (96, 64, 128)),
    "selfatt_qk": _one("contrib.interleaved_matmul_selfatt_qk", (128, 8, 3 * 768), heads=12),
    "linalg_gemm2": _two("linalg.gemm2", (16, 128, 128), (16, 128, 128)),
    "linalg_potrf": Row(lambda s: s.linalg.potrf(s.var("data")), {"data": (16, 64, 64)}, {"data": definite},
                        grads=("data",)),
    "linalg_trsm": Row(lambda s: s.linalg.trsm(s.var("a"), s.var("b")), {"a": (16, 64, 64), "b": (16, 64, 64)},
                       {"a": definite}, grads=("b",)),
    "lstm": _rnn("lstm"), "gru": _rnn("gru"), "rnn_tanh": _rnn("rnn_tanh"),
    "lstm_both_ways": _rnn("lstm", bidirectional=True),
    # softmax, losses
    "softmax_words": _one("softmax", WORDS), "log_softmax_words": _one("log_softmax", WORDS),
    "softmax_attention": _one("softmax", (96, 128, 128)),
    "softmax_channels": _one("SoftmaxActivation", (4, 21, 64, 64), mode="channel"),
    "softmax_output": Row(lambda s: s.SoftmaxOutput(s.var("data"), s.var("label")), {"data": WORDS},
                          {"label": below(10000)}, loss=True),
    "softmax_cells": Row(lambda s: s.SoftmaxOutput(s.var("data"), s.var("label"), multi_output=True, use_ignore=True,
                                                   normalization="valid"),
                         {"data": (4, 21, 64, 64), "label": (4, 64, 64)}, {"label": below(21)}, loss=True),
    "ctc": Row(lambda s: s.ctc_loss(s.var("data"), s.var("label")), {"data": (80, 32, 60), "label": (32, 12)},
               {"label": lambda r, n: r.randint(1, 60, n)}),
    "smooth_l1": _one("smooth_l1", (64, 8732), scalar=1.0),
    # elementwise
    "relu": _one("Activation", (8, 64, 112, 112), act_type="relu"), "tanh": _one("tanh", (8, 64, 56, 56)),
    "gelu": _one("LeakyReLU", (8, 128, 3072), act_type="gelu"), "prelu": _one("LeakyReLU", X, act_type="prelu"),
    "add": _two("elemwise_add", X, X), "broadcast_add": _two("broadcast_add", X, (1, 64, 1, 1)),
    "broadcast_mul": _two("broadcast_mul", (1024, 768), (1, 768)),
    "chain": Row(_chain, {"data": (1024, 1024)}), "dropout": _one("Dropout", (1024, 1024), forward=False),
    "where": Row(lambda s: s.where(s.var("c"), s.var("a"), s.var("b")), dict.fromkeys("cab", (1024, 1024)),
                 {"c": below(2)}),
    # reductions
    "sum_rows": _one("sum", (1024, 1024), axis=1), "sum_columns": _one("sum", (1024, 1024), axis=0),
    "sum_all": _one("sum", (1024, 1024)), "mean_space": _one("mean", X, axis=(2, 3)),
    "max_channels": _one("max", X, axis=1), "norm": _one("norm", (1024, 1024), axis=1),
    "argmax_words": _one("argmax", WORDS, (), axis=1),
    # order
    "topk5_words": _one("topk", WORDS, (), k=5), "topk100_both": _one("topk", (8, 12000), (), k=100, ret_typ="both"),
    "argsort_words": _one("argsort", WORDS, ()), "sort_words": _one("sort", WORDS, axis=-1),
    # indexing
    "take": Row(lambda s: s.take(s.var("a"), s.var("i")), {"a": (10000, 512), "i": (35, 32)}, {"i": below(10000)}),
    "embedding": Row(lambda s: s.Embedding(s.var("i"), s.var("weight"), input_dim=10000, output_dim=512),
                     {"i": (35, 32)}, {"i": below(10000)}),
    "gather_nd": Row(lambda s: s.gather_nd(s.var("a"), s.var("i")), {"a": (64, 128, 256), "i": (2, 4096)},
                     {"i": below(64)}),
    "scatter_nd": Row(lambda s: s.scatter_nd(s.var("a"), s.var("i"), shape=(64, 128, 256)),
                      {"a": (4096, 256), "i": (2, 4096)}, {"i": below(64)}),
    "one_hot": Row(lambda s: s.one_hot(s.var("i"), depth=10000), {"i": (256,)}, {"i": below(10000)}, grads=()),
    "pick": Row(lambda s: s.pick(s.var("a"), s.var("i")), {"a": (1024, 1000), "i": (1024,)}, {"i": below(1000)}),
    "sequence_mask": _sequence("SequenceMask"), "sequence_last": _sequence("SequenceLast"),
    "sequence_reverse": _sequence("SequenceReverse"),
    # moving data
    "transpose_image": _one("transpose", X, axes=(0, 2, 3, 1)),
    "transpose_heads": _one("transpose", (8, 128, 12, 64), axes=(0, 2, 1, 3)),
    "transpose_matrix": _one("transpose", (1024, 1024)),
    "concat": Row(lambda s: s.concat(*(s.var(n) for n in "abcd"), dim=1), dict.fromkeys("abcd", (8, 64, 28, 28))),
    "split": Row(lambda s: s.Group(list(s.split(s.var("data"), num_outputs=4))), {"data": (8, 256, 28, 28)}),
    "slice": _one("slice", X, begin=(0, 0, 4, 4), end=(8, 64, 52, 52)),
    "slice_axis": _one("slice_axis", (1024, 4096), axis=1, begin=1024, end=2048),
    "pad": _one("Pad", X, mode="reflect", pad_width=(0, 0, 0, 0, 1, 1, 1, 1)),
    "tile": _one("tile", (64, 1024), reps=(8, 1)), "repeat": _one("repeat", (64, 1024), repeats=8, axis=0),
    "reverse": _one("reverse", (64, 128, 256), axis=1),
    # detection
    "roi_pooling": _roi("ROIPooling"), "roi_align": _roi("contrib.ROIAlign", sample_ratio=2),
    "box_nms": Row(lambda s: s.contrib.box_nms(s.var("data"), overlap_thresh=0.5, topk=400, id_index=0, score_index=1,
                                               coord_start=2),
                   {"data": (4, 2000, 6)}, {"data": boxes(1, scores=True)}, grads=()),
    "multibox_prior": _one("contrib.MultiBoxPrior", (1, 64, 38, 38), (), sizes=(0.1, 0.14), ratios=(1, 2, 0.5)),
    "multibox_target": Row(_anchors, {"anchor": (1, 5776, 4), "label": (8, 20, 5), "scores": (8, 21, 5776)},
                           {"anchor": boxes(1), "label": boxes(1, scores=True)}, grads=()),
    "multibox_detection": Row(lambda s: s.contrib.MultiBoxDetection(s.var("p"), s.var("l"), s.var("a"), nms_topk=400),
                              {"p": (1, 21, 5776), "l": (1, 23104), "a": (1, 5776, 4)},
                              {"p": lambda r, n: r.dirichlet(np.ones(n[1]), (n[0], n[2])).transpose(0, 2, 1),
                               "a": boxes(1)}, grads=()),
    "proposal": Row(_proposal, {"scores": (1, 18, 38, 50), "deltas": (1, 36, 38, 50), "info": (1, 3)},
                    {"scores": positive, "info": lambda r, n: np.array([[600, 800, 1.0]])}, grads=()),
    # updates, int8
    "sgd_mom_update": update("sgd_mom_update", 1, lr=0.1, momentum=0.9, wd=1e-4),
    "adam_update": update("adam_update", 2, lr=0.1, wd=1e-4), "sgd_update": update("sgd_update", 0, lr=0.1),
    "multi_sgd_mom": many_updates,
    "quantized_conv": Row(_quantized_conv, {"data": (8, 64, 56, 56), "weight": (64, 64, 3, 3), **_ENDS}, _BYTES,
                          {"data": "uint8", "weight": "int8"}, grads=()),
    "quantized_fc": Row(_quantized_fc, {"data": (64, 1024), "weight": (1000, 1024), **_ENDS}, _BYTES,
                        {"data": "uint8", "weight": "int8"}, grads=()),
    "quantize_v2": _one("contrib.quantize_v2", X, (), min_calib_range=-1.0, max_calib_range=1.0),
}  # fmt: skip


def names() -> list[str]:
    """Every workload, "op forward", "op backward" or "op call"."""
    return [f"{n} {m}" for n, row in OPS.items() for m in (row.modes if isinstance(row, Row) else ["call"])]


def make(mx: Any, name: str) -> Step:
    """The step of a workload."""
    op, _, mode = name.partition(" ")
    row = OPS[op]
    return step_of(mx, row, mode) if isinstance(row, Row) else row(mx)
