"""Crop, Pad, im2col, col2im."""

from tests.parity.case import Case, op_case

I = {"arg0": (1, 2, 5, 6)}  # noqa: E741
TWO = {"arg0": (1, 2, 5, 6), "arg1": (1, 3, 3, 4)}
PADS = [(0, 0, 0, 0, 1, 0, 2, 1), (0,) * 8, (0, 0, 0, 0, 0, 2, 1, 0)]

CASES: list[Case] = [
    *(op_case("Crop", I, {"num_args": 1, "h_w": (2, 3), **p}) for p in ({}, {"offset": (1, 2)}, {"center_crop": True})),
    *(op_case("Crop", TWO, {"num_args": 2, **p}, infer_from=("arg0", "arg1"))
      for p in ({}, {"offset": (2, 1)}, {"center_crop": True})),
    op_case("Crop", TWO, {"num_args": 2, "h_w": (1, 1)}, infer_from=("arg0", "arg1")),
    op_case("Crop", I, {"num_args": 1, "h_w": (2, 3), "offset": (4, 2)}, id="outside"),
    op_case("Crop", I, {"num_args": 1}, id="no_size"),
    op_case("Crop", I, {"num_args": 1, "h_w": (7, 3)}, id="too_large"),
    op_case("Crop", I, {"num_args": 1, "h_w": (3, 3), "center_crop": True}, dtype="float64",
            better=True),
    *(op_case("Pad", {"data": (1, 2, 3, 4)}, {"mode": m, "pad_width": w}) for m in ("constant", "edge", "reflect")
      for w in PADS),
    *(op_case("Pad", {"data": (1, 1, 2, 3, 3)}, {"mode": m, "pad_width": (0, 0, 0, 0, 1, 0, 1, 2, 2, 0)})
      for m in ("constant", "edge", "reflect")),
    op_case("Pad", {"data": (1, 1, 2, 2)}, {"mode": "constant", "pad_width": PADS[0], "constant_value": 2.5}),
    op_case("Pad", {"data": (1, 1, 3, 4)}, {"mode": "reflect", "pad_width": PADS[0]}, dtype="float64"),
    op_case("Pad", {"data": (1, 1, 3, 4)}, {"mode": "edge", "pad_width": PADS[0]}, dtype="float16"),
    op_case("Pad", {"data": (1, 1, 3, 4)}, {"mode": "edge", "pad_width": PADS[0]}, grad_req="add",
            infer=[{"data": (0, 1, 3, 4)}]),
    op_case("Pad", {"data": (1, 2, 3)}, {"mode": "edge", "pad_width": (0, 0, 0, 0, 1, 1)}, id="rank3"),
    op_case("Pad", {"data": (1, 1, 2, 3)}, {"mode": "reflect", "pad_width": (0, 0, 0, 0, 3, 0, 1, 1)}, id="too_wide"),
    op_case("Pad", {"data": (1, 1, 2, 3)}, {"mode": "edge", "pad_width": (0, 0, 1, 0, 0, 0, 0, 0)}, id="channel"),
    op_case("im2col", {"data": (2, 2, 3, 3)}, {"kernel": (2, 2)}),
    op_case("im2col", {"data": (1, 2, 4, 5)}, {"kernel": (2, 2), "stride": (2, 1), "dilate": (1, 2), "pad": (1, 0)}),
    op_case("im2col", {"data": (1, 1, 3, 3)}, {"kernel": (3, 1), "pad": (1, 1)}, dtype="float64", grad_req="add"),
    op_case("im2col", {"data": (1, 2, 5)}, {"kernel": (3,), "pad": (1,)}, better=True),
    op_case("im2col", {"data": (1, 1, 2, 2)}, {"kernel": (3, 3)}, id="too_large"),
    op_case("col2im", {"data": (2, 8, 4)}, {"output_size": (3, 3), "kernel": (2, 2)}),
    op_case("col2im", {"data": (1, 8, 12)}, {"output_size": (4, 5), "kernel": (2, 2), "stride": (2, 1),
                                             "dilate": (1, 2), "pad": (1, 0)}, id="all"),
    op_case("col2im", {"data": (1, 4, 4)}, {"output_size": (3, 3), "kernel": (2, 2)}, grad_req="add"),
    op_case("col2im", {"data": (1, 4, 5)}, {"output_size": (3, 3), "kernel": (2, 2)}, id="bad"),
]  # fmt: skip
