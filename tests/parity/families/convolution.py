"""Convolution, Convolution_v1, Deconvolution; channels-last layouts against NumPy transposes of the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.parity.case import Case, graph_case, graph_json, op_case

DATA: dict[int, tuple[int, ...]] = {1: (2, 4, 7), 2: (2, 4, 6, 7), 3: (1, 4, 4, 5, 4)}


def _conv(op: str, rank: int, params: Mapping[str, Any], **options: Any) -> Case:
    no_bias = str(params.get("no_bias", op == "Deconvolution")) in ("True", "1")
    inputs = {"data": options.pop("data", DATA[rank]), "weight": None, **({} if no_bias else {"bias": None})}
    if op == "Deconvolution" and rank == 3:  # the plain kernels have none
        options = {"backend": "onednn", "better": "dilate" in params, **options}
    return op_case(op, inputs, {"kernel": (2, 3, 2)[:rank] if rank > 1 else (3,), "num_filter": 2, **params}, **options)


def _family(op: str) -> list[Case]:
    cases = []
    for rank in (1, 2, 3):
        ones = (1,) * rank
        cases += [
            _conv(op, rank, {}),
            _conv(op, rank, {"no_bias": True, "stride": (2, 3, 2)[:rank]}),
            _conv(op, rank, {"no_bias": False, "pad": ones}),
            _conv(op, rank, {"no_bias": False, "dilate": (2, 1, 2)[:rank]}),
            _conv(op, rank, {"num_group": 2, "no_bias": False}),
            _conv(op, rank, {"num_group": 4, "num_filter": 4, "stride": (2, 1, 1)[:rank], "pad": ones}),
            _conv(op, rank, {"layout": ("NCW", "NCHW", "NCDHW")[rank - 1]}),
        ]
    cases += [
        # MXNet's plain Deconvolution mixes stride and dilate up.
        _conv(op, 2, {"num_filter": 6, "num_group": 2, "kernel": (3, 3), "stride": (2, 2), "pad": (1, 0),
                      "dilate": (1, 2), "no_bias": False}, backend="onednn"),
        _conv(op, 2, {"kernel": (1, 1)}),
        _conv(op, 2, {"kernel": (1, 1), "stride": (2, 2)}),
        _conv(op, 2, {"cudnn_tune": "off", "cudnn_off": True, "workspace": 256}),
        _conv(op, 2, {}, dtype="float64"),
        _conv(op, 2, {"no_bias": False}, dtype="float16", better=True),
        _conv(op, 2, {"no_bias": False}, grad_req="add"),
        _conv(op, 2, {}, id="partial", infer=[
            {"data": (0, 4, 6, 7)}, {"data": (2, 4, 0, 0)}, {"data": (0, 0, 6, 7)}, {"weight": (2, 4, 2, 3)}]),
        _conv(op, 2, {"num_group": 3}, id="groups_do_not_divide"),
        _conv(op, 2, {}, data=(2, 4, 6), id="rank"),
        _conv(op, 2, {"stride": (1,)}, id="stride_rank"),
        _conv(op, 2, {"stride": (0, 1)}, id="stride_0"),
        _conv(op, 2, {"num_filter": 0}, id="filters_0"),
        _conv(op, 2, {"layout": "NCW"}, id="layout_rank"),
        op_case(op, {"data": DATA[2], "weight": None}, {"num_filter": 2, "no_bias": True}, id="no_kernel"),
    ]
    return cases


def _partial(op: str, params: Mapping[str, Any]) -> str:
    return graph_json([("data",), ("w",), ("like",), ("conv", op, {"no_bias": True, "num_filter": 3, **params},
                                                      ["data", "w"]),
                       ("sum", "elemwise_add", {}, ["conv", "like"])], ["sum"])  # fmt: skip


BACKWARD = [{"data": (0, 4, 0, 0), "like": (2, 3, 5, 6)}, {"like": (2, 3, 5, 6)}, {"data": (0, 4, 6, 7),
            "like": (2, 3, 0, 0)}]  # fmt: skip

CASES: list[Case] = [
    *_family("Convolution"),
    *_family("Deconvolution"),
    _conv("Convolution", 2, {"kernel": (7, 3)}, id="kernel_too_big"),
    _conv("Convolution", 2, {"kernel": (7, 3), "pad": (1, 0)}, id="kernel_fits_padded"),
    _conv("Convolution", 2, {}, data=(0, 4, 6, 7), id="empty", np_shape=True),
    _conv("Convolution", 2, {"layout": "NHWC"}, data=(2, 6, 7, 4), id="nhwc", better=True),
    _conv("_npx_convolution", 2, {}),
    *(_conv("Convolution_v1", r, {"pad": (1,) * r, "stride": (2,) * r}, better=r == 3) for r in (2, 3)),
    _conv("Convolution_v1", 2, {"dilate": (2, 2), "num_group": 2}),
    _conv("Convolution_v1", 2, {"no_bias": True}, infer=[{"data": (0, 4, 6, 7)}]),
    _conv("Deconvolution", 1, {"stride": (3,), "adj": (2,)}),
    _conv("Deconvolution", 2, {"stride": (2, 3), "adj": (1, 2), "pad": (1, 1)}),
    _conv("Deconvolution", 3, {"stride": (2, 2, 2), "adj": (1, 0, 1)}),
    _conv("Deconvolution", 2, {"adj": (1, 1)}, id="adj_not_below_stride"),
    _conv("Deconvolution", 1, {"stride": (2,), "target_shape": (14,)}),
    _conv("Deconvolution", 2, {"stride": (2, 2), "kernel": (4, 4), "target_shape": (12, 14)}),
    _conv("Deconvolution", 2, {"stride": (2, 2), "kernel": (3, 3), "target_shape": (12, 14), "pad": (2, 2),
                               "adj": (1, 1)}),
    _conv("Deconvolution", 2, {"stride": (2, 2), "kernel": (3, 3), "target_shape": (13, 12), "no_bias": False}),
    _conv("Deconvolution", 2, {"stride": (2, 2), "kernel": (3, 3), "target_shape": (0, 0)}),
    _conv("Deconvolution", 3, {"stride": (2, 2, 2), "kernel": (3, 3, 3), "target_shape": (8, 10, 8)}, better=True),
    _conv("Deconvolution", 2, {"stride": (2, 2), "kernel": (3, 3), "target_shape": (40, 40)}, id="target_too_big"),
    _conv("Deconvolution", 2, {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1), "num_group": 4, "num_filter": 4}),
    _conv("Deconvolution", 2, {"kernel": (3, 3), "stride": (2, 1), "pad": (0, 2), "num_group": 2, "num_filter": 6,
                               "dilate": (1, 2), "no_bias": False}, backend="onednn"),
    _conv("_npx_deconvolution", 2, {"no_bias": True}),
    graph_case("conv_from_output", _partial("Convolution", {"kernel": (2, 2)}),
               {"data": (2, 4, 6, 7), "w": None, "like": (2, 3, 5, 6)}, infer=BACKWARD),
    graph_case("conv_from_output_pad", _partial("Convolution", {"kernel": (2, 2), "pad": (1, 1), "dilate": (2, 3)}),
               {"data": (2, 4, 6, 7), "w": None, "like": (2, 3, 6, 6)},
               infer=[{"data": (0, 4, 0, 0), "like": (2, 3, 6, 6)}]),
    graph_case("conv_from_output_stride", _partial("Convolution", {"kernel": (2, 2), "stride": (2, 1)}),
               {"data": (2, 4, 6, 7), "w": None, "like": (2, 3, 3, 6)},
               infer=[{"data": (0, 4, 0, 0), "like": (2, 3, 3, 6)}]),
    graph_case("deconv_from_output", _partial("Deconvolution", {"kernel": (2, 2)}),
               {"data": (2, 4, 4, 5), "w": None, "like": (2, 3, 5, 6)}, infer=BACKWARD),
]
