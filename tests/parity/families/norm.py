"""BatchNorm and kin, LayerNorm, InstanceNorm, GroupNorm, L2Normalization, LRN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.parity.arrays import const
from tests.parity.case import Case, op_case

STATS = {"moving_mean": None, "moving_var": None}


def _bn(params: Mapping[str, Any] | None = None, shape: tuple[int, ...] = (3, 2, 4), op: str = "BatchNorm",
        **options: Any) -> Case:
    if op == "BatchNorm_v1" and shape == (3, 2, 4):  # 4-D only
        shape = (3, 2, 2, 2)
    shown = (params or {}).get("output_mean_var")
    return op_case(op, {"data": shape, "gamma": None, "beta": None}, params, aux=STATS, outputs=3 if shown else 1,
                   **options)  # fmt: skip


def _family(op: str, **params: Any) -> list[Case]:
    return [
        _bn({**params}, op=op),
        *(_bn({**params, "fix_gamma": f, "use_global_stats": g, "momentum": 0.7}, op=op)
          for f in (True, False) for g in (True, False)),
        _bn({**params, "fix_gamma": False, "output_mean_var": True}, op=op),
        _bn({**params, "fix_gamma": False, "output_mean_var": True, "use_global_stats": True}, op=op),
        _bn({**params, "fix_gamma": False, "eps": 0.1}, (3, 2, 2, 3), op=op),
        _bn({**params, "fix_gamma": False}, (5, 2), op=op, id="matrix"),
        _bn({**params, "fix_gamma": False}, op=op, grad_req="add"),
    ]  # fmt: skip


NORM = {"data": (2, 4, 3), "gamma": None, "beta": None}

CASES: list[Case] = [
    *_family("BatchNorm"),
    *_family("BatchNorm_v1"),
    *_family("_contrib_SyncBatchNorm", key="a"),
    _bn({"fix_gamma": False}, (2, 2, 2, 2, 3), id="volume"),
    # MXNet's momentum is a float32.
    *(_bn({"fix_gamma": False}, s, op=o, dtype="float64", rtol=1e-6, better=o == "BatchNorm_v1")
      for o, s in (("BatchNorm", (3, 2, 4)), ("BatchNorm_v1", (3, 2, 2, 2)))),
    _bn({"fix_gamma": False, "key": "b"}, op="_contrib_SyncBatchNorm", dtype="float64", better=True),
    *(_bn({"fix_gamma": False}, s, op=o, id="partial", infer=[
        {"data": (0, *s[1:])}, {"data": (s[0], 0, *s[2:])}, {"gamma": (2,)}])
      for o, s in (("BatchNorm", (3, 2, 4)), ("BatchNorm_v1", (3, 2, 2, 2)))),
    *(_bn({"fix_gamma": False, "axis": a}, (2, 3, 4, 2)) for a in (0, 2, 3, -1, -3)),
    _bn({"fix_gamma": False, "axis": 4}, id="bad_axis"),
    _bn({"fix_gamma": False}, dtype="float16", infer=[], id="half"),
    op_case("BatchNorm", {"data": (3, 2, 4), "gamma": const(1.5, (2,), "float32"), "beta": const(0.5, (2,), "float32")},
            {"fix_gamma": False}, aux={"moving_mean": const(0.1, (2,), "float32"),
                                       "moving_var": const(2.0, (2,), "float32")},
            dtype="float16", id="half_data", rtol=5e-3),
    op_case("BatchNorm", {"data": (3, 2, 4), "gamma": const(1.5, (2,), "float32"), "beta": const(0.5, (2,), "float32")},
            {"fix_gamma": False, "use_global_stats": True}, aux={"moving_mean": const(0.1, (2,), "float32"),
                                                                 "moving_var": const(2.0, (2,), "float32")},
            dtype="float16", id="half_data_global", rtol=5e-3),
    _bn({"fix_gamma": False, "eps": 0}, id="eps_0"),
    _bn({"fix_gamma": False, "cudnn_off": True, "min_calib_range": -1.0, "max_calib_range": 1.0}),
    _bn({"fix_gamma": False}, op="_npx_batch_norm"),
    _bn({"fix_gamma": False}, (2, 3, 4, 4), op="_contrib_BatchNormWithReLU", backend="onednn"),
    _bn({}, (2, 3, 4, 4), op="_contrib_BatchNormWithReLU", backend="onednn"),
    _bn({"use_global_stats": True, "fix_gamma": False}, (2, 3, 4, 4), op="_contrib_BatchNormWithReLU",
        backend="onednn"),
    op_case("LayerNorm", NORM),
    *(op_case("LayerNorm", NORM, {"axis": a, "eps": 0.1}) for a in (0, 1, 2, -2)),
    *(op_case("LayerNorm", NORM, {"axis": a, "output_mean_var": True}, outputs=3) for a in (-1, 1)),
    op_case("LayerNorm", {"data": (4, 5), "gamma": None, "beta": None}, infer=[
        {"data": (0, 5)}, {"data": (4, 0)}, {"gamma": (5,)}]),
    op_case("LayerNorm", NORM, dtype="float64"),
    op_case("LayerNorm", NORM, dtype="float16"),
    op_case("LayerNorm", NORM, grad_req="add"),
    op_case("LayerNorm", NORM, {"axis": 3}, id="bad_axis"),
    op_case("_npx_layer_norm", NORM),
    op_case("InstanceNorm", NORM),
    op_case("InstanceNorm", {"data": (2, 3, 4, 2), "gamma": None, "beta": None}, {"eps": 0.1}, infer=[
        {"data": (0, 3, 4, 2)}, {"data": (2, 0, 4, 2)}]),
    op_case("InstanceNorm", {"data": (2, 3, 2, 2, 2), "gamma": None, "beta": None}),
    op_case("InstanceNorm", {"data": (2, 3), "gamma": None, "beta": None}, id="rank"),
    op_case("InstanceNorm", NORM, dtype="float64", better=True),
    op_case("InstanceNorm", NORM, dtype="float16", better=True),
    op_case("InstanceNorm", NORM, grad_req="add"),
    *(op_case("GroupNorm", NORM, {"num_groups": g, "eps": 0.1}) for g in (1, 2, 4)),
    op_case("GroupNorm", NORM, {"num_groups": 2, "output_mean_var": True}, outputs=3),
    op_case("GroupNorm", {"data": (2, 4, 3, 2), "gamma": None, "beta": None}, {"num_groups": 2}, infer=[
        {"data": (0, 4, 3, 2)}]),
    op_case("GroupNorm", NORM, {"num_groups": 3}, id="groups_do_not_divide"),
    op_case("GroupNorm", NORM, {"num_groups": 2}, dtype="float64"),
    op_case("GroupNorm", NORM, {"num_groups": 2}, dtype="float16"),
    op_case("GroupNorm", NORM, {"num_groups": 2}, grad_req="add"),
    *(op_case("L2Normalization", {"data": (2, 3, 4, 2)}, {"mode": m, "eps": e})
      for m in ("instance", "channel", "spatial") for e in (1e-10, 0.5)),
    *(op_case("L2Normalization", {"data": (2, 3, 4)}, {"mode": m}) for m in ("instance", "channel", "spatial")),
    *(op_case("L2Normalization", {"data": (2, 3)}, {"mode": m}, id=f"matrix_{m}")
      for m in ("instance", "channel", "spatial")),
    op_case("L2Normalization", {"data": (2, 3, 2)}, dtype="float64"),
    op_case("L2Normalization", {"data": (2, 3, 2)}, dtype="float16"),
    op_case("L2Normalization", {"data": const(0.0, (2, 3))}, id="zeros"),
    op_case("L2Normalization", {"data": (2, 3, 2)}, grad_req="add"),
    *(op_case("LRN", {"data": (2, 5, 2, 3)}, {"nsize": n, "alpha": 0.7, "beta": 0.6, "knorm": 1.5})
      for n in (1, 3, 5)),
    op_case("LRN", {"data": (2, 5, 2, 3)}, {"nsize": 7, "alpha": 0.7}, backend="onednn"),
    op_case("LRN", {"data": (2, 5, 2, 3)}, {"nsize": 3}),
    op_case("LRN", {"data": (2, 5, 2, 3)}, {"nsize": 4}, id="even"),
    op_case("LRN", {"data": (2, 5, 3)}, {"nsize": 3}, id="rank"),
    op_case("LRN", {"data": (2, 5, 2, 3)}, {"nsize": 3}, dtype="float64", better=True),
    op_case("LRN", {"data": (2, 5, 2, 3)}, {"nsize": 3}, dtype="float16", better=True),
]
