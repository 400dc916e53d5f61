"""UpSampling, BilinearResize2D, AdaptiveAvgPooling2D."""

from __future__ import annotations

from tests.parity.case import Case, graph_case, graph_json, op_case

NEAREST = {"sample_type": "nearest"}
BILINEAR = {"sample_type": "bilinear", "num_filter": 3}
IMAGE = {"data": (2, 3, 4, 5)}
RESIZE, ADAPTIVE = "_contrib_BilinearResize2D", "_contrib_AdaptiveAvgPooling2D"
THREE = {"arg0": (2, 3, 4, 2), "arg1": (2, 1, 2, 1), "arg2": (2, 2, 8, 4)}

CASES: list[Case] = [
    *(op_case("UpSampling", IMAGE, {**NEAREST, "scale": s, "num_args": 1}) for s in (1, 2, 3)),
    op_case("UpSampling", THREE, {**NEAREST, "scale": 2, "num_args": 3}, infer_from=("arg0", "arg1", "arg2")),
    op_case("UpSampling", {"arg0": (2, 3, 4, 2), "arg1": (2, 3, 2, 1)},
            {**NEAREST, "scale": 2, "num_args": 2, "multi_input_mode": "sum"}, infer_from=("arg0", "arg1")),
    op_case("UpSampling", {"arg0": (2, 3, 4, 2), "arg1": (2, 1, 3, 1)}, {**NEAREST, "scale": 2, "num_args": 2},
            id="sizes_do_not_divide", infer_from=("arg0", "arg1")),
    op_case("UpSampling", {"data": (2, 3, 4)}, {**NEAREST, "scale": 2, "num_args": 1}, id="rank"),
    op_case("UpSampling", IMAGE, {**NEAREST, "scale": 2, "num_args": 1}, dtype="float64"),
    op_case("UpSampling", IMAGE, {**NEAREST, "scale": 2, "num_args": 1}, dtype="float16"),
    op_case("UpSampling", IMAGE, {**NEAREST, "scale": 2, "num_args": 1}, grad_req="add",
            infer=[{"data": (0, 3, 4, 5)}]),
    *(op_case("UpSampling", {**IMAGE, "weight": None}, {**BILINEAR, "scale": s, "num_args": 2}) for s in (1, 2, 3, 4)),
    op_case("UpSampling", {**IMAGE, "weight": None}, {**BILINEAR, "scale": 2, "num_args": 1, "workspace": 256}),
    op_case("UpSampling", {**IMAGE, "weight": None}, {**BILINEAR, "num_filter": 2, "scale": 2, "num_args": 2},
            id="filters_are_not_channels"),
    *(op_case(RESIZE, IMAGE, {"height": h, "width": w, "align_corners": a})
      for h, w in ((8, 10), (7, 3), (4, 5), (1, 1), (3, 9)) for a in (True, False)),
    op_case(RESIZE, IMAGE, {"height": 6, "width": 7}),
    op_case(RESIZE, {"data": (1, 2, 1, 1)}, {"height": 3, "width": 2}, id="pixel"),
    *(op_case(RESIZE, IMAGE, {"scale_height": h, "scale_width": w, "mode": m})
      for h, w in ((2.0, 1.5), (0.6, 2.3)) for m in ("size", "odd_scale")),
    *(op_case(RESIZE, {"data": s}, {"mode": m, "align_corners": a}, id=f"{m}_{a}_{s[2]}")
      for s in ((1, 2, 4, 5), (1, 2, 5, 6)) for a in (True, False)
      for m in ("to_even_down", "to_even_up", "to_odd_down", "to_odd_up")),
    *(op_case(RESIZE, {**IMAGE, "like": (1, 2, 7, 3)}, {"mode": "like", "align_corners": a}, grads=False,
              infer_from=("data", "like")) for a in (True, False)),
    op_case(RESIZE, IMAGE, {"height": 6, "width": 7}, dtype="float64", rtol=3e-5, atol=1e-6),  # MXNet's weights
    # are float32
    op_case(RESIZE, IMAGE, {"height": 6, "width": 7}, dtype="float16"),
    op_case(RESIZE, IMAGE, {"height": 6, "width": 7}, grad_req="add"),
    op_case(RESIZE, {"data": (2, 3, 4)}, {"height": 6, "width": 7}, id="rank"),
    op_case(RESIZE, IMAGE, {"height": 0, "width": 7}, id="height_0"),
    *(op_case(ADAPTIVE, {"data": (2, 3, 5, 7)}, {"output_size": s})
      for s in ("()", "(1,)", "(3,)", "2", "(2, 3)", "(5, 7)", "(7, 9)", "(4, 1)")),
    op_case(ADAPTIVE, {"data": (2, 3, 6, 8)}, {"output_size": (3, 4)}),
    op_case(ADAPTIVE, IMAGE, {"output_size": (3, 2)}, dtype="float64"),
    op_case(ADAPTIVE, IMAGE, {"output_size": (3, 2)}, dtype="float16"),
    op_case(ADAPTIVE, IMAGE, {"output_size": (3, 2)}, grad_req="add"),
    op_case(ADAPTIVE, {"data": (2, 3, 4)}, {"output_size": (2, 2)}, id="rank"),
    graph_case("adaptive_of_resize", graph_json(
        [("data",), ("r", RESIZE, {"height": 7, "width": 6}, ["data"]), ("a", ADAPTIVE, {"output_size": 3}, ["r"])],
        ["a"]), {"data": (1, 2, 3, 4)}),
]
