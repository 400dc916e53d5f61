"""Box operators and the SSD detector's operators."""

from typing import Any

import numpy as np

from tests.parity.arrays import Array, distinct, uniform, values
from tests.parity.case import Case, op_case

_RNG = np.random.RandomState(3)


def _boxes(*shape: int, low: float = 0.0, center: bool = False) -> np.ndarray:
    place, size = _RNG.uniform(0, 1, (*shape, 2)) + low, _RNG.uniform(0.1, 0.6, (*shape, 2))
    return np.concatenate([place, size if center else place + size], -1).round(3)


def _fixed(x: np.ndarray) -> Array:
    return values(x.tolist())


def _nms(**params: Any) -> Case:
    center = params.get("in_format") == "center"
    ids, scores = _RNG.randint(0, 3, (2, 8, 1)), _RNG.randint(0, 8, (2, 8, 1)) / 8
    data = np.concatenate([ids, scores, _boxes(2, 8, low=1.0 * center, center=center)], -1)
    formats = center != (params.get("out_format", "corner") == "center")
    # MXNet's gradient leaves out the conversion between the formats.
    return op_case("_contrib_box_nms", {"data": _fixed(data)}, params, grads=not formats)


def _row_match(inputs: dict[str, np.ndarray], limit: int) -> dict[str, Any]:
    scores = inputs["data"]
    rows, cols = (np.full(n, -1.0) for n in scores.shape)
    for flat in np.argsort(-scores, axis=None, kind="stable"):
        r, c = divmod(int(flat), scores.shape[1])
        if rows[r] < 0 and cols[c] < 0 and limit:
            rows[r], cols[c], limit = c, r, limit - 1
    return {f"{k}{i}": x.astype("float32") for k in ("out", "train") for i, x in enumerate((rows, cols))}


OUTSIDE = [[0, 0.9, 0.25, 0.25, 0.75, 1.0], [1, 0.8, -0.5, 2.0, 0.5, 3.0], [0, 0.7, 4.0, -1.0, 5.0, 0.0],
           [1, 0.6, -3.0, -3.0, -2.0, -2.5]]  # fmt: skip
"""Boxes apart from each other; some begin outside of the image."""


def _centers(inputs: dict[str, np.ndarray]) -> dict[str, Any]:
    x = inputs["data"].copy()
    x[:, 2:4], x[:, 4:] = (x[:, 2:4] + x[:, 4:]) / 2, x[:, 4:] - x[:, 2:4]
    return {"out0": x, "train0": x}


APART = [[[i / 8, 0.0, (i + 0.5) / 8, 0.25] for i in range(6)]]
"""Anchors that do not meet: the label is the first of them, and each is harder than the next."""
HARD = {"anchor": values(APART), "label": values([[[2, *APART[0][0]]]]),
        "cls_pred": values([[[0.0, 1, 2, 3, 4, 5], [1.0] * 6, [1.0] * 6, [1.0] * 6]])}
LEAST = {"negative_mining_ratio": 1, "negative_mining_thresh": 0.5, "minimum_negative_samples": 3}

ANCHORS = _fixed(_boxes(1, 12).clip(0, 1))
LABELS = np.concatenate([_RNG.randint(0, 4, (3, 3, 1)), _boxes(3, 3).clip(0, 1)], -1)
LABELS[1, 2:] = -1
LABELS[2] = -1
TARGET = {"anchor": ANCHORS, "label": _fixed(LABELS), "cls_pred": distinct((3, 4, 12))}
DETECTION = {"cls_prob": uniform((2, 4, 12), 0, 1), "loc_pred": uniform((2, 48)), "anchor": ANCHORS}

CASES: list[Case] = [
    *(op_case("_contrib_box_iou", {"lhs": _fixed(_boxes(2, 3, center=c)), "rhs": _fixed(_boxes(4, center=c))},
              {"format": "center" if c else "corner"}, infer_from=("lhs", "rhs")) for c in (False, True)),
    *(_nms(**p) for p in (
        {}, {"overlap_thresh": 0.2}, {"valid_thresh": 0.4}, {"topk": 3}, {"topk": 0}, {"id_index": 0},
        {"id_index": 0, "background_id": 1}, {"id_index": 0, "force_suppress": True}, {"valid_thresh": 2.0},
        {"in_format": "center"}, {"out_format": "center"}, {"in_format": "center", "out_format": "center"})),
    op_case("_contrib_box_nms", {"data": (3, 5)}, id="too_few_columns"),
    *(op_case("_contrib_bipartite_matching", {"data": distinct((2, 3, 4))}, p, outputs=2)
      for p in ({"threshold": 0.1}, {"threshold": 0.7, "is_ascend": True})),
    op_case("_contrib_bipartite_matching", {"data": distinct((4, 3))}, {"threshold": -100, "topk": 2}, outputs=2,
            grads=False, differs="one match more than topk", expected=lambda x: _row_match(x, 2)),
    op_case("_contrib_box_encode", {"samples": values([[1, 0, -1], [1, 1, 0]]),
                                    "matches": values([[0, 1, 0], [1, 0, 1]]),
                                    "anchors": _fixed(_boxes(2, 3)), "refs": _fixed(_boxes(2, 2)),
                                    "means": values([0.0, 0.1, 0.2, 0.0]), "stds": values([0.1, 0.1, 0.2, 0.2])},
            outputs=2, grads=False,
            infer_from=("samples", "matches", "anchors", "refs", "means", "stds")),
    *(op_case("_contrib_box_decode", {"data": (2, 3, 4), "anchors": _fixed(_boxes(1, 3))}, p,
              infer_from=("data", "anchors")) for p in ({}, {"format": "corner"}, {"std0": 0.1, "clip": 0.1})),
    *(op_case("_contrib_MultiBoxPrior", {"data": (1, 2, 3, 4)}, p) for p in (
        {}, {"sizes": "(0.5, 0.25)", "ratios": "(1, 2, 0.5)"}, {"sizes": "(0.9,)", "ratios": "(2,)", "clip": True},
        {"steps": "(0.1, 0.2)", "offsets": "(0.3, 0.6)"})),
    *(op_case("_contrib_MultiBoxTarget", TARGET, p, outputs=3, grads=["cls_pred"], infer_from=tuple(TARGET)) for p in (
        {}, {"overlap_threshold": 0.3}, {"negative_mining_ratio": 1, "negative_mining_thresh": 0.9, "ignore_label": -2},
        {"variances": "(1, 1, 1, 1)"})),
    op_case("_contrib_MultiBoxTarget", HARD, LEAST, id="least", outputs=3, grads=False, infer_from=tuple(HARD),
            differs="MXNet does not heed minimum_negative_samples",
            expected=lambda x: dict.fromkeys(("out2", "train2"), np.array([[3, 0, 0, 0, -1, -1]], "float32"))),
    op_case("_contrib_box_nms", {"data": values(OUTSIDE)}, {"out_format": "center"}, id="outside", grads=False,
            differs="MXNet leaves boxes that begin outside in the format of the input", expected=_centers),
    *(op_case("_contrib_MultiBoxDetection", DETECTION, p, infer_from=tuple(DETECTION)) for p in (
        {}, {"clip": False}, {"threshold": 0.8}, {"nms_threshold": 0.2, "force_suppress": True}, {"nms_topk": 3},
        {"nms_threshold": -1}, {"variances": "(0.2, 0.2, 0.1, 0.1)"})),
]  # fmt: skip
