"""What optimizers, schedulers and initializers do, as functions of `mx`: real MXNet, or symjax.

`tests/oracle/record_training.py` records what MXNet gives; `test_optimizer.py` and `test_initializer.py` compare.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

NAMES = {0: "fc_weight", 1: "fc_bias", 2: "bn_gamma", 3: "w"}
SHAPES = {0: (3, 2), 1: (3,), 2: (3,), 3: (3, 2)}
STEPS = 4
ALL = {"learning_rate": 0.1, "wd": 0.05, "rescale_grad": 0.5, "clip_gradient": 0.6}

# optimizer: further keyword arguments to try; each also with ALL
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "sgd": [{}, {"momentum": 0.9}, {"momentum": 0.9, "lazy_update": False}],
    "ccsgd": [{"momentum": 0.5}],
    "nag": [{}],
    "signum": [{}, {"momentum": 0.0}, {"momentum": 0.5, "wd_lh": 0.02}],
    "dcasgd": [{}, {"lamda": 0.5}],
    "lars": [{}, {"momentum": 0.9}, {"momentum": 0.9, "eta": 0.5, "eps": 0.01, "momentum_correction": False}],
    "lbsgd": [{}, {"momentum": 0.9, "batch_scale": 2, "updates_per_epoch": 2, "warmup_epochs": 3},
              {"batch_scale": 2, "warmup_strategy": "power2", "updates_per_epoch": 3, "warmup_epochs": 1},
              {"batch_scale": 3, "warmup_strategy": "sqrt", "updates_per_epoch": 8, "begin_epoch": 1},
              {"momentum": 0.9, "warmup_strategy": "lars"}],
    "adam": [{}, {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3, "lazy_update": False}],
    "adamax": [{}, {"beta1": 0.8, "beta2": 0.9}],
    "nadam": [{}, {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3, "schedule_decay": 0.1}],
    "adagrad": [{}, {"eps": 0.1}],
    "adadelta": [{}, {"rho": 0.7, "epsilon": 1e-2}],
    "rmsprop": [{}, {"gamma1": 0.8, "epsilon": 1e-3, "clip_weights": 0.5}, {"centered": True},
                {"centered": True, "gamma1": 0.8, "gamma2": 0.7, "epsilon": 1e-3}],
    "ftrl": [{}, {"lamda1": 0.2, "beta": 0.5}],
    "ftml": [{}, {"beta1": 0.7, "beta2": 0.9, "epsilon": 1e-3}],
    "lamb": [{}, {"lower_bound": 0.5, "upper_bound": 0.8}, {"bias_correction": False, "beta1": 0.8, "beta2": 0.9,
                                                           "epsilon": 1e-3}],
    "test": [{}],
}
NO_ALL = ("test",)

Case = dict[str, Any]


def _cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, variants in VARIANTS.items():
        for i, more in enumerate(variants):
            found[f"{name}{i}"] = {"name": name, "kwargs": more}
            if name not in NO_ALL:
                found[f"{name}{i}_all"] = {"name": name, "kwargs": {**ALL, **more}}
        last = variants[-1]
        found[f"{name}_lists"] = {"name": name, "kwargs": last, "lists": True}
        if name not in NO_ALL:
            found[f"{name}_scheduled"] = {"name": name, "kwargs": last, "scheduler": True}
            found[f"{name}_mixed"] = {"name": name, "kwargs": {**ALL, **last, "multi_precision": True},
                                      "dtype": "float16"}
    # MXNet's NAG decays the momentum by the weight that it has just updated, so without wd here.
    found["nag_mom"] = {"name": "nag", "kwargs": {**ALL, "momentum": 0.9, "wd": 0.0}}
    found["nag_mom_mixed"] = {"name": "nag", "kwargs": {"momentum": 0.9, "multi_precision": True}, "dtype": "float16"}
    found["sgd_half"] = {"name": "sgd", "kwargs": {"momentum": 0.9}, "dtype": "float16"}
    found["adam_half"] = {"name": "adam", "kwargs": {"epsilon": 1e-3}, "dtype": "float16"}
    found["sgd_double"] = {"name": "sgd", "kwargs": {**ALL, "momentum": 0.9}, "dtype": "float64"}
    found["adam_double"] = {"name": "adam", "kwargs": ALL, "dtype": "float64"}
    base = {"name": "sgd", "kwargs": ALL}
    found["no_names"] = {**base, "unnamed": True}
    found["begin"] = {"name": "adam", "kwargs": {**ALL, "begin_num_update": 7}}
    found["by_name"] = {**base, "lr_mult": {"fc_weight": 0.5, "fc_bias": 2.0}, "wd_mult": {"fc_bias": 3.0, "w": 0.5}}
    found["by_index"] = {**base, "lr_mult": {0: 0.5, 3: 0.0}, "wd_mult": {1: 2.0, 3: 4.0}}
    found["by_symbol"] = {**base, "symbol": True}
    found["by_symbol_and_name"] = {**base, "symbol": True, "lr_mult": {"fc_weight": 10.0}, "wd_mult": {"w": 0.1}}
    found["by_parameter"] = {**base, "param_dict": True}
    found["lars_symbol"] = {"name": "lars", "kwargs": {**ALL, "eta": 0.5}, "symbol": True}
    return found


CASES = _cases()


class _Parameter:
    lr_mult, wd_mult = 0.3, 2.0


def optimizer_of(mx: Any, case: Case) -> Any:
    """Makes the optimizer of a case."""
    kwargs = dict(case["kwargs"])
    if not case.get("unnamed"):
        kwargs["param_idx2name"] = dict(NAMES)
    if case.get("scheduler"):
        rate = kwargs.pop("learning_rate", None)
        kwargs["lr_scheduler"] = mx.lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=rate or 0.2)
    if case.get("symbol"):
        marked = mx.sym.var("fc_weight", lr_mult=0.25, wd_mult=0.5) + mx.sym.var("w", wd_mult=2.0)
        kwargs["sym"] = marked + mx.sym.var("fc_bias", lr_mult=3)
    if case.get("param_dict"):
        kwargs["param_dict"] = {1: _Parameter(), 2: _Parameter()}
    opt = mx.optimizer.create(case["name"], **kwargs)
    for kind in ("lr_mult", "wd_mult"):
        if kind in case:
            getattr(opt, f"set_{kind}")(case[kind])
    return opt


def _flat(state: Any) -> list[Any]:
    if isinstance(state, (tuple, list)):
        return [x for s in state for x in _flat(s)]
    return [] if state is None else [state]


def numbers(a: Any) -> list[float]:
    """The numbers of an array with the digits that its type has."""
    host = a if isinstance(a, np.ndarray) else a.asnumpy()
    digits = {2: 5, 4: 9, 8: 17}.get(host.dtype.itemsize, 9)
    return [float(f"{x:.{digits}g}") for x in host.astype(np.float64).reshape(-1)]


def run_case(mx: Any, case: Case) -> dict[str, Any]:
    """Returns the weights after the first and the last step, and the states at the end."""
    dtype = case.get("dtype", "float32")
    draw = np.random.RandomState(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        updater = mx.optimizer.get_updater(optimizer_of(mx, case))
        weights = {i: mx.nd.array(draw.uniform(-1, 1, s), dtype=dtype) for i, s in SHAPES.items()}
        seen = []
        for _ in range(STEPS):
            grads = {i: mx.nd.array(draw.uniform(-2, 2, s), dtype=dtype) for i, s in SHAPES.items()}
            if case.get("lists"):
                updater(list(weights), list(grads.values()), list(weights.values()))
            else:
                for i, w in weights.items():
                    updater(i, grads[i], w)
            seen.append([numbers(w) for w in weights.values()])
    states = [numbers(s) for i in weights for s in _flat(updater.states[i])]
    return {"first": seen[0], "last": seen[-1], "states": states}


# ---- schedulers

SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "factor": ("FactorScheduler", {"step": 2, "factor": 0.5, "base_lr": 1.0}),
    "factor_stop": ("FactorScheduler", {"step": 1, "factor": 0.1, "stop_factor_lr": 0.02, "base_lr": 1.0}),
    "factor_warm": ("FactorScheduler", {"step": 3, "factor": 0.5, "base_lr": 1.0, "warmup_steps": 4,
                                        "warmup_begin_lr": 0.2}),
    "factor_flat": ("FactorScheduler", {"step": 3, "factor": 0.5, "base_lr": 1.0, "warmup_steps": 4,
                                        "warmup_begin_lr": 0.2, "warmup_mode": "constant"}),
    "multi": ("MultiFactorScheduler", {"step": [2, 5, 6], "factor": 0.1}),
    "multi_warm": ("MultiFactorScheduler", {"step": [2, 5], "factor": 0.5, "base_lr": 2, "warmup_steps": 3}),
    "poly": ("PolyScheduler", {"max_update": 8}),
    "poly_warm": ("PolyScheduler", {"max_update": 8, "base_lr": 1.0, "pwr": 3, "final_lr": 0.1, "warmup_steps": 2,
                                    "warmup_begin_lr": 0.5}),
    "cosine": ("CosineScheduler", {"max_update": 8}),
    "cosine_warm": ("CosineScheduler", {"max_update": 8, "base_lr": 1.0, "final_lr": 0.1, "warmup_steps": 2,
                                        "warmup_mode": "constant"}),
    "bad_base": ("FactorScheduler", {"step": 1, "base_lr": 0.1, "warmup_begin_lr": 0.5}),
    "bad_steps": ("CosineScheduler", {"max_update": 3, "warmup_steps": -1}),
    "bad_type": ("CosineScheduler", {"max_update": 3, "warmup_steps": 1.5}),
    "bad_mode": ("PolyScheduler", {"max_update": 3, "warmup_mode": "cubic"}),
    "bad_step": ("FactorScheduler", {"step": 0}),
    "bad_factor": ("MultiFactorScheduler", {"step": [1], "factor": 2}),
    "bad_order": ("MultiFactorScheduler", {"step": [3, 2]}),
    "bad_list": ("MultiFactorScheduler", {"step": 3}),
    "bad_max": ("PolyScheduler", {"max_update": 0}),
    "bad_max_type": ("CosineScheduler", {"max_update": 2.0}),
}


def outcome(f: Callable[[], Any]) -> Any:
    """What a call returns, or the classes of what it raises."""
    try:
        return f()
    except Exception as e:
        return {"raises": [c.__name__ for c in type(e).__mro__]}


def run_schedule(mx: Any, name: str) -> Any:
    """The rates of updates 0 to 11, with a jump in between; or the error."""
    cls, kwargs = SCHEDULES[name]

    def rates() -> list[float]:
        s = getattr(mx.lr_scheduler, cls)(**kwargs)
        return [s(n) for n in (0, 1, 2, 3, 4, 5, 6, 9, 9, 10, 11)]

    return outcome(rates)


# ---- initializers

MADE: dict[str, Callable[[Any], Any]] = {
    "Zero()": lambda mx: mx.init.Zero(),
    "One()": lambda mx: mx.init.One(),
    "Constant(3)": lambda mx: mx.init.Constant(3),
    "Constant(2.5)": lambda mx: mx.init.Constant(2.5),
    "Constant(array)": lambda mx: mx.init.Constant(mx.nd.array([[1, 2], [3, 4.5]])),
    "Constant(numpy)": lambda mx: mx.init.Constant(np.array([[1, 2], [3, 4.5]])),
    "Uniform()": lambda mx: mx.init.Uniform(),
    "Uniform(0.5)": lambda mx: mx.init.Uniform(0.5),
    "Normal()": lambda mx: mx.init.Normal(),
    "Normal(2)": lambda mx: mx.init.Normal(2),
    "Orthogonal()": lambda mx: mx.init.Orthogonal(),
    "Orthogonal(1, normal)": lambda mx: mx.init.Orthogonal(scale=1, rand_type="normal"),
    "Xavier()": lambda mx: mx.init.Xavier(),
    "Xavier(gaussian, in, 2.34)": lambda mx: mx.init.Xavier("gaussian", factor_type="in", magnitude=2.34),
    "MSRAPrelu()": lambda mx: mx.init.MSRAPrelu(),
    "MSRAPrelu(out, 0)": lambda mx: mx.init.MSRAPrelu("out", 0),
    "Bilinear()": lambda mx: mx.init.Bilinear(),
    "LSTMBias()": lambda mx: mx.init.LSTMBias(),
    "LSTMBias(2)": lambda mx: mx.init.LSTMBias(forget_bias=2),
    "FusedRNN(lstm)": lambda mx: mx.init.FusedRNN(mx.init.One(), 2, 2, "lstm", forget_bias=5.0),
    "FusedRNN(gru)": lambda mx: mx.init.FusedRNN(mx.init.One(), 2, 2, "gru", bidirectional=True),
    "FusedRNN(tanh)": lambda mx: mx.init.FusedRNN(None, 2, 1, "rnn_tanh", True),
}
TEXTS = ("zeros", "ones", "ZERO", "xavier", '["normal", {"sigma": 0.5}]', '{"initializer": "uniform", "scale": 0.2}',
         "msraprelu", "nothing", '["zero"')
EXACT = {"Zero()": (2, 3), "One()": (4,), "Constant(3)": (2,), "Constant(2.5)": (2, 1), "Constant(array)": (2, 2),
         "Constant(numpy)": (2, 2), "Bilinear()": (2, 1, 4, 3), "LSTMBias()": (8,), "LSTMBias(2)": (4,),
         "FusedRNN(lstm)": (112,), "FusedRNN(gru)": (180,), "FusedRNN(tanh)": (28,)}
ENDINGS = ("fc_weight", "weight", "fc_bias", "bn_gamma", "bn_beta", "q_min", "q_max", "bias_quantize", "bn_moving_mean",
           "bn_moving_var", "bn_moving_inv_var", "x_moving_avg", "state", "stn_loc_weight", "fc_weight_quantize_not")


def _filled(mx: Any, shape: tuple[int, ...], fill: Callable[[Any], Any]) -> Any:
    a = mx.nd.full(shape, 7)
    return outcome(lambda: (fill(a), numbers(a))[1])


def run_initializers(mx: Any) -> dict[str, Any]:
    """Everything about initializers that is not random."""
    desc = mx.init.InitDesc
    facts: dict[str, Any] = {"dumps": {k: make(mx).dumps() for k, make in MADE.items()}}
    facts["attr"] = {k: mx.sym.var("x", init=make(mx)).attr("__init__") for k, make in MADE.items()}
    facts["create"] = {t: outcome(lambda t=t: mx.init.create(t).dumps()) for t in TEXTS}
    facts["exact"] = {k: _filled(mx, s, lambda a, k=k: MADE[k](mx)(desc("x_weight", global_init=mx.init.One()), a))
                      for k, s in EXACT.items()}
    facts["endings"] = {n: _filled(mx, (2, 2), lambda a, n=n: mx.init.Constant(3)(desc(n), a)) for n in ENDINGS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts["legacy"] = {n: _filled(mx, (2, 2), lambda a, n=n: mx.init.Constant(3)(n, a)) for n in ENDINGS}
        facts["legacy_bilinear"] = _filled(mx, (1, 1, 4, 4), lambda a: mx.init.Zero()("upsampling_weight", a))
        facts["legacy_loc"] = _filled(mx, (6,), lambda a: mx.init.Zero()("stn_loc_bias", a))
        facts["legacy_name"] = _filled(mx, (6,), lambda a: mx.init.Zero()(3, a))
    facts["own"] = _filled(mx, (2,), lambda a: mx.init.Zero()(desc("any", {"__init__": '["one", {}]'}), a))
    facts["abstract"] = _filled(mx, (2,), lambda a: mx.init.Initializer()(desc("a_weight"), a))
    facts["vector"] = _filled(mx, (2,), lambda a: mx.init.Xavier()(desc("a_weight"), a))
    facts["factor"] = _filled(mx, (2, 2), lambda a: mx.init.Xavier(factor_type="x")(desc("a_weight"), a))
    facts["random"] = _filled(mx, (2, 2), lambda a: mx.init.Xavier(rnd_type="x")(desc("a_weight"), a))
    facts["equal"] = [mx.init.Normal(1) == mx.init.Normal(1), mx.init.Normal(1) == mx.init.Normal(2),
                      mx.init.Zero() == mx.init.One(), mx.init.Zero() == 0]
    given = {"arg:a": mx.nd.array([1, 2]), "aux:b": mx.nd.array([3, 4]), "c": mx.nd.array([5, 6])}
    for name, default in (("load", None), ("load_default", mx.init.One())):
        load = mx.init.Load(given, default)
        facts[name] = {n: _filled(mx, (2,), lambda a, n=n, load=load: load(desc(n), a))
                       for n in ("a", "b", "c", "d_weight")}
    facts["load_shape"] = _filled(mx, (3,), lambda a: mx.init.Load(given)("a", a))
    facts["load_type"] = outcome(lambda: mx.init.Load([1]))
    mixed = mx.init.Mixed(["fc", ".*weight"], [mx.init.Constant(4), mx.init.One()])
    facts["mixed"] = {n: _filled(mx, (2,), lambda a, n=n: mixed(desc(n), a))
                      for n in ("fc_weight", "fc_bias", "conv_weight", "conv_bias")}
    facts["mixed_lengths"] = outcome(lambda: mx.init.Mixed(["a"], []))
    return facts
