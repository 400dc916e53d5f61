"""Pooling of regions, and deformable convolution."""

from tests.parity.arrays import distinct, uniform, values
from tests.parity.case import Case, op_case

ROIS = values([[0, 0, 0, 6, 5], [1, 1.5, 2.5, 9.4, 6.6], [0, -3, -2, 20, 15], [0, 2, 1, 2.2, 1.3]])
ROTATED = values([[0, 3, 3, 4, 5, 30], [1, 5, 2, 7, 3, -75], [0, 0, 0, 20, 15, 10]])
BOTH = ("data", "rois")
DATA = distinct((2, 2, 6, 8))
KERNEL = {"kernel": "(3, 2)", "num_filter": 4}

CASES: list[Case] = [
    *(op_case("ROIPooling", {"data": DATA, "rois": ROIS}, {"pooled_size": s, "spatial_scale": k}, infer_from=BOTH)
      for s, k in (("(2, 3)", 1.0), ("(3, 2)", 0.5), ("(7, 7)", 0.7))),
    op_case("ROIPooling", {"data": DATA, "rois": ROIS}, {"pooled_size": "(2, 2)", "spatial_scale": 0.7},
            dtype="float64", infer_from=BOTH),
    op_case("ROIPooling", {"data": DATA, "rois": values([[0, 1, 1, 2]])},
            {"pooled_size": "(2, 2)", "spatial_scale": 1}, id="bad_rois", infer_from=BOTH),
    *(op_case("_contrib_ROIAlign", {"data": DATA, "rois": ROIS},
              {"pooled_size": s, "spatial_scale": k, "sample_ratio": r}, infer_from=BOTH)
      for s, k, r in (("(2, 3)", 1.0, -1), ("(3, 2)", 0.5, 2), ("(2, 2)", 0.7, 3))),
    op_case("_contrib_ROIAlign", {"data": DATA, "rois": ROIS}, {"pooled_size": "(2, 2)", "spatial_scale": 0.7,
                                                                 "aligned": True}, infer_from=BOTH),
    op_case("_contrib_ROIAlign", {"data": distinct((2, 8, 6, 8)), "rois": ROIS},
            {"pooled_size": "(2, 2)", "spatial_scale": 1.0, "position_sensitive": True}, infer_from=BOTH),
    *(op_case("_contrib_RROIAlign", {"data": DATA, "rois": ROTATED},
              {"pooled_size": "(2, 3)", "spatial_scale": 1.0, "sampling_ratio": r}, grads=False, infer_from=BOTH)
      for r in (-1, 2)),
    op_case("_contrib_DeformableConvolution", {"data": (1, 2, 4, 5), "offset": uniform((1, 12, 2, 4), -1.5, 1.5),
                                               "weight": None, "bias": None}, KERNEL, infer_from=("data", "offset")),
    op_case("_contrib_DeformableConvolution", {"data": (1, 4, 5, 6), "offset": uniform((1, 24, 2, 4), -1.5, 1.5),
                                               "weight": None},
            {**KERNEL, "stride": "(2, 1)", "dilate": "(1, 2)", "num_group": 2, "num_deformable_group": 2,
             "no_bias": True}, dtype="float64", infer_from=("data", "offset")),
]  # fmt: skip
