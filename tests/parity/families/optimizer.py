"""The update ops of optimizers: new weights as outputs, states as auxiliary arrays."""

from typing import Any

import numpy as np

from tests.parity.arrays import Array, const, uniform, values
from tests.parity.case import Case, op_case

S = (3, 4)
W, G = uniform(S), uniform(S, -2, 2)
POS = uniform(S, 0.01, 0.5)
COMMON = {"lr": 0.1, "wd": 0.05, "rescale_grad": 0.5, "clip_gradient": 0.4}
M = {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3}

# op: states (name: recipe), further parameters
SINGLE: dict[str, tuple[dict[str, Array], dict[str, Any]]] = {
    "sgd_update": ({}, {}),
    "sgd_mom_update": ({"mom": uniform(S)}, {"momentum": 0.9}),
    "nag_mom_update": ({"mom": uniform(S)}, {"momentum": 0.9}),
    "adam_update": ({"mean": uniform(S), "var": POS}, M),
    "rmsprop_update": ({"n": POS}, {"gamma1": 0.9, "epsilon": 1e-3, "clip_weights": 0.7}),
    "rmspropalex_update": ({"n": uniform(S, 2, 3), "g": POS, "delta": uniform(S)},
                           {"gamma1": 0.9, "gamma2": 0.8, "epsilon": 1e-3, "clip_weights": 0.7}),
    "ftrl_update": ({"z": uniform(S), "n": POS}, {"lamda1": 0.3, "beta": 0.7}),
    "signsgd_update": ({}, {}),
    "signum_update": ({"mom": uniform(S)}, {"momentum": 0.9, "wd_lh": 0.03}),
}


def single(op: str, states: dict[str, Array], params: dict[str, Any], **options: Any) -> Case:
    return op_case(op, {"weight": W, "grad": G}, params, aux=states, grads=False, **options)


def half(states: dict[str, Array], master: bool = True) -> dict[str, Array]:
    """States of a mixed-precision op: all float32."""
    more = {"weight32": uniform(S)} if master else {}
    return {k: Array(a.kind, a.shape, "float32", a.args) for k, a in {**states, **more}.items()}


def singles() -> list[Case]:
    cases = []
    for name, (states, extra) in SINGLE.items():
        cases += [
            single(name, states, {"lr": 0.1}, id="defaults"),
            single(name, states, {**COMMON, **extra}, id="all"),
            single(name, states, {**COMMON, **extra}, id="all", dtype="float64", rtol=1e-5),
            single(name, states, {**COMMON, **extra, "clip_gradient": 0}, id="clip0"),
        ]
    for name in ("sgd_update", "sgd_mom_update", "nag_mom_update"):
        states, extra = SINGLE[name]
        params = {**COMMON, **extra}
        fault: dict[str, Any] = {}
        if name == "nag_mom_update":
            fault = {"differs": "MXNet decays the momentum by the weight it has just updated", "expected": nag_momentum}
        cases += [
            single(f"mp_{name}", half(states), params, id="mixed", dtype="float16", **fault),
            single(f"mp_{name}", half(states), params, id="mixed32", **fault),
            single(name, states, params, id="half", dtype="float16"),
        ]
    cases += [single("sgd_update", {}, {"lr": 0.1, "lazy_update": False}),
              single("adam_update", SINGLE["adam_update"][0], {"lr": 0.1, "lazy_update": False})]
    return cases


def nag_momentum(x: dict[str, np.ndarray]) -> dict[str, Any]:
    grad = np.clip(0.5 * x["grad"].astype("float32"), -0.4, 0.4) + 0.05 * x["weight32"]
    mom = 0.9 * x["mom"] - 0.1 * grad
    return {"aux:mom": mom.astype("float32"), "aux_predict:mom": mom.astype("float32")}


FTML = {"d": POS, "v": uniform(S, 0.01, 0.5), "z": uniform(S)}
LAMB = {"mean": uniform(S), "var": POS}
NORMS = {"r1": const(0.8, (1,)), "r2": const(2.5, (1,))}


def others() -> list[Case]:
    full = {"t": 3, "wd": 0.05, "rescale_grad": 0.5, "clip_gradient": 0.4, **M}
    scale = values([0.5], "float32")
    adamw = {"lr": 0.1, "eta": 0.7, "wd": 0.05, "clip_gradient": 0.4, **M}
    states = {"mean": uniform(S), "var": POS}
    return [
        single("ftml_update", FTML, {"lr": 0.1, "t": 1}),
        single("ftml_update", FTML, {"lr": 0.1, "t": 4, "wd": 0.05, "rescale_grad": 0.5, "clip_grad": 0.4, **M}),
        single("lamb_update_phase1", LAMB, {"t": 1, "wd": 0}),
        single("lamb_update_phase1", LAMB, full),
        single("lamb_update_phase1", LAMB, {**full, "bias_correction": False}),
        op_case("mp_lamb_update_phase1", {"weight": uniform(S), "grad": G}, full, grads=False, dtype="float16",
                aux={**half(LAMB), "weight32": uniform(S, dtype="float32")}),
        *(op_case("lamb_update_phase2", {"weight": W, "g": G, **NORMS}, {"lr": 0.1, **b}, grads=False,
                  infer_from=("weight", "g", "r1", "r2"))
          for b in ({}, {"lower_bound": 1.5}, {"upper_bound": 0.3}, {"lower_bound": 0.1, "upper_bound": 10})),
        op_case("lamb_update_phase2", {"weight": W, "g": G, "r1": const(0, (1,)), "r2": const(1, (1,))}, {"lr": 0.1},
                grads=False, id="zero_norm", infer_from=("weight", "g", "r1", "r2")),
        op_case("_adamw_update", {"weight": W, "grad": G, "mean": uniform(S), "var": POS, "rescale_grad": scale}, adamw,
                grads=False),
        *(op_case("_adamw_update", {"weight": W, "grad": G, "mean": uniform(S), "var": POS,
                                    "rescale_grad": values([bad], "float32")}, adamw, grads=False, id=f"scale_{bad}",
                    differs="MXNet writes no output then",
                    expected=lambda x: {"out0": x["weight"], "train0": x["weight"]})
          for bad in (0.0, "nan", "inf")),
        op_case("_mp_adamw_update", {"weight": W, "grad": G, **half(states), "rescale_grad": scale}, adamw, grads=False,
                dtype="float16", infer_from=("rescale_grad",)),
        op_case("_sparse_adagrad_update", {"weight": W, "grad": G}, {"lr": 0.1, "epsilon": 1e-3},
                aux={"history": POS}, grads=False, better=True, expected=adagrad),
        op_case("multi_lars", {"lrs": uniform((4,), 0.1, 1), "weights_sum_sq": values([1.0, 4.0, 0.0, 2.0]),
                               "grads_sum_sq": values([2.0, 0.0, 1.0, 3.0]), "wds": uniform((4,), 0, 0.1)},
                {"eta": 0.3, "eps": 1e-3, "rescale_grad": 0.5}, grads=False),
    ]


def adagrad(x: dict[str, np.ndarray]) -> dict[str, Any]:
    """The dense meaning of an op that MXNet has for row_sparse gradients alone."""
    history = x["history"] + x["grad"] ** 2
    weight = x["weight"] - 0.1 * x["grad"] / np.sqrt(history + 1e-3)
    return {"out0": weight, "aux:history": history}


CASES: list[Case] = [*singles(), *others()]
