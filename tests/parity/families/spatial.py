"""Grid generators, samplers, correlation and proposals."""

from tests.parity.arrays import distinct, uniform, values
from tests.parity.case import Case, op_case

IMAGES = {"data1": (2, 2, 5, 6), "data2": (2, 2, 5, 6)}
INFO = values([[70, 90, 1.0], [64, 64, 1.5]])


def _proposal(op: str, batch: int, **params: object) -> Case:
    anchors = 2
    params = {"scales": "(2,)", "ratios": "(0.5, 2)", **params}
    return op_case(
        op, {"cls_prob": distinct((batch, 2 * anchors, 4, 5)),
             "bbox_pred": uniform((batch, 4 * anchors, 4, 5), -0.3, 0.3),
             "im_info": INFO if batch == 2 else values([[70, 90, 1.0]])},
        params, grads=False, outputs=2 if params.get("output_score") else 1,
    )  # fmt: skip


CASES: list[Case] = [
    op_case("GridGenerator", {"data": (2, 6)}, {"transform_type": "affine", "target_shape": "(3, 4)"},
            infer=[{"data": (0, 6)}]),
    op_case("GridGenerator", {"data": (2, 2, 3, 4)}, {"transform_type": "warp"}),
    op_case("GridGenerator", {"data": (2, 5)}, {"transform_type": "affine", "target_shape": "(3, 4)"}, id="bad"),
    op_case("BilinearSampler", {"data": (2, 2, 4, 5), "grid": uniform((2, 2, 3, 6), -1.3, 1.3)}),
    op_case("BilinearSampler", {"data": (2, 2, 4, 5), "grid": uniform((2, 2, 3, 6), -1.3, 1.3)}, dtype="float64"),
    op_case("SpatialTransformer", {"data": (2, 2, 4, 5), "loc": (2, 6)},
            {"target_shape": "(3, 6)", "transform_type": "affine", "sampler_type": "bilinear"},
            infer_from=("data", "loc")),
    *(op_case("Correlation", IMAGES, p, infer_from=("data1", "data2")) for p in (
        {}, {"max_displacement": 2, "pad_size": 2}, {"is_multiply": False, "pad_size": 1, "kernel_size": 3},
        {"kernel_size": 3, "max_displacement": 2, "pad_size": 3, "stride1": 2, "stride2": 2})),
    op_case("Correlation", IMAGES, {"pad_size": 1}, grad_req="add", infer_from=("data1", "data2")),
    _proposal("_contrib_Proposal", 1, rpn_post_nms_top_n=20),
    _proposal("_contrib_Proposal", 1, rpn_post_nms_top_n=9, rpn_pre_nms_top_n=15, threshold=0.3, output_score=True),
    _proposal("_contrib_MultiProposal", 2, rpn_post_nms_top_n=12, rpn_min_size=40),
    _proposal("_contrib_MultiProposal", 2, rpn_post_nms_top_n=7, iou_loss=True, output_score=True),
]  # fmt: skip
