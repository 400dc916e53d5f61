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


def own() -> list[Case]:
    """Updates that MXNet has in Python only; `test_optimizer.py` compares them with it as optimizers."""
    cases = []
    more = {"wd": 0.05, "rescale_grad": 0.5, "clip_gradient": 0.4}
    rates = {"lr": 0.1, **more}
    scales = {"grad_scale": 0.7, "mean_scale": 1.5, "var_scale": 3.0}
    previous = {"previous": uniform(S)}
    for name, states, params, formula in (
        ("adadelta", {"acc_g": POS, "acc_delta": POS}, {**more, "rho": 0.8, "epsilon": 1e-3}, adadelta),
        ("adamax", {"mean": uniform(S), "peak": POS}, {**rates, "beta1": 0.8, "beta2": 0.95}, adamax),
        ("nadam", {"mean": uniform(S), "var": POS}, {**rates, **M, **scales}, nadam),
        ("dcasgd", previous, {**rates, "lamda": 0.5}, dcasgd),
        ("dcasgd_mom", {"mom": uniform(S), **previous}, {**rates, "lamda": 0.5, "momentum": 0.9}, dcasgd_mom),
        ("sgld", {}, {**more, "lr": 0.0}, lambda x: {"out0": x["weight"]}),  # without a rate there is no noise
    ):
        cases.append(single(f"_symjax_{name}_update", states, params, better=True, expected=formula))
    return cases


def _clipped(x: dict[str, np.ndarray], decay: bool) -> np.ndarray:
    return np.clip(0.5 * x["grad"] + (0.05 * x["weight"] if decay else 0), -0.4, 0.4)


def adadelta(x: dict[str, np.ndarray]) -> dict[str, Any]:
    g = _clipped(x, False)
    acc_g = 0.8 * x["acc_g"] + 0.2 * g**2
    delta = np.sqrt(x["acc_delta"] + 1e-3) / np.sqrt(acc_g + 1e-3) * g
    return {"out0": 0.95 * x["weight"] - delta, "aux:acc_g": acc_g,
            "aux:acc_delta": 0.8 * x["acc_delta"] + 0.2 * delta**2}


def adamax(x: dict[str, np.ndarray]) -> dict[str, Any]:
    d = _clipped(x, True)
    mean, peak = 0.8 * x["mean"] + 0.2 * d, np.maximum(0.95 * x["peak"], np.abs(d))
    return {"out0": x["weight"] - 0.1 * mean / peak, "aux:mean": mean, "aux:peak": peak}


def nadam(x: dict[str, np.ndarray]) -> dict[str, Any]:
    d = _clipped(x, True)
    mean, var = 0.8 * x["mean"] + 0.2 * d, 0.95 * x["var"] + 0.05 * d**2
    step = (0.7 * d + 1.5 * mean) / (np.sqrt(3 * var) + 1e-3)
    return {"out0": x["weight"] - 0.1 * step, "aux:mean": mean, "aux:var": var}


def _compensated(x: dict[str, np.ndarray]) -> np.ndarray:
    g = _clipped(x, False)
    return 0.1 * (g + 0.05 * x["weight"] + 0.5 * g**2 * (x["weight"] - x["previous"]))


def dcasgd(x: dict[str, np.ndarray]) -> dict[str, Any]:
    return {"out0": x["weight"] - _compensated(x), "aux:previous": x["weight"]}


def dcasgd_mom(x: dict[str, np.ndarray]) -> dict[str, Any]:
    mom = 0.9 * x["mom"] - _compensated(x)
    return {"out0": x["weight"] + mom, "aux:mom": mom, "aux:previous": x["weight"]}


CASES: list[Case] = [*singles(), *others(), *own()]
