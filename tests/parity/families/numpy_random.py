"""Samplers under numpy semantics: names, shapes, types (tests/test_numpy_random.py has distributions and gradients)."""

from typing import Any

from tests.parity.arrays import Array, const, randint, uniform, values
from tests.parity.case import Case, op_case

NP: dict[str, Any] = {"np_shape": True, "random": True, "grads": False}

# operator: its parameters
TWO = {"uniform": ("low", "high"), "uniform_n": ("low", "high"), "normal": ("loc", "scale"),
       "normal_n": ("loc", "scale"), "gumbel": ("loc", "scale"), "logistic": ("loc", "scale")}  # fmt: skip
ONE = {"exponential": "scale", "rayleigh": "scale", "weibull": "a", "pareto": "a", "powerd": "a"}
TYPED = ("uniform", "uniform_n", "normal", "normal_n")


def sample(name: str, params: dict[str, Any], inputs: dict[str, Array] | None = None, **options: Any) -> Case:
    """A case of a sampler; its inputs' shapes are part of the id."""
    inputs = inputs or {}
    shapes = "".join(str(a.shape) for a in inputs.values())
    label = f"{shapes},{','.join(f'{k}={v}' for k, v in params.items())}".replace(" ", "")
    return op_case(f"_npi_{name}", inputs, params, id=label, infer_from=tuple(inputs), **{**NP, **options})


def arrays(*shapes: tuple[int, ...], **kw: Any) -> dict[str, Array]:
    """Inputs that suit every distribution."""
    return {f"input{i + 1}": uniform(s, 1, 2, **kw) for i, s in enumerate(shapes)}


SIZES = [{"size": (2,)}, {}, {"size": ()}, {"size": 3}, {"size": (0, 2)}]


def twos() -> list[Case]:
    """The samplers of two parameters."""
    cases = []
    for name, (a, b) in TWO.items():
        numbers = {a: 1, b: 2}
        cases += [sample(name, {**numbers, **s}) for s in SIZES]
        cases += [sample(name, {a: 1, b: "None", **s}, arrays((2,))) for s in ({}, {"size": (3, 2)})]
        cases += [sample(name, {a: "None", b: 3, **s}, arrays((2,))) for s in ({}, {"size": (3, 2)})]
        cases += [sample(name, {a: "None", b: "None", **s}, arrays((2,), (2, 1))) for s in ({}, {"size": (2, 2)})]
        cases += [sample(name, {a: "None", b: "None", "size": (2,)}, arrays((), ()), dtype=t)
                  for t in ("float32", "float64")]
        cases += [sample(name, numbers | {"size": (2,), "dtype": t}) for t in ("float16", "float64") if name in TYPED]
        cases += [sample(name, {a: "None", b: 9}, {"input1": randint((2,), 1, 3, "int32")})]
    # Gamma draws take seconds to compile.
    cases += [sample("gamma", {"shape": "None", "scale": "None", "size": (2, 2)}, arrays((2,), ())),
              sample("gamma", {"shape": 2, "scale": "None", "size": "None"}, arrays((2,)), dtype="float64"),
              sample("gamma", {"shape": 2, "scale": 1, "dtype": "float16"})]
    cases += [sample("normal", {"loc": 0, "scale": -1, "size": (2,)}), sample("uniform", {"low": 1}),
              sample("gamma", {"shape": -1, "scale": 1}), sample("gumbel", {"loc": 0, "scale": -1}),
              sample("logistic", {"loc": 0, "scale": -1})]
    cases += [sample("uniform", {"low": 0, "high": "None", "size": (3,)}, arrays((2,)))]
    return cases


def ones() -> list[Case]:
    """The samplers of one parameter."""
    cases = []
    for name, a in ONE.items():
        cases += [sample(name, {a: 2, **s}) for s in SIZES]
        cases += [sample(name, {a: "None", **s}, arrays((2,))) for s in ({}, {"size": (3, 2)})]
        cases += [sample(name, {a: "None"}, arrays((2,)), dtype="float64"), sample(name, {a: -1, "size": (2,)})]
    return cases


PROB: dict[str, Any] = {"logit": "None", "is_logit": False}
LOGIT: dict[str, Any] = {"prob": "None", "is_logit": True}
NONE: dict[str, Any] = {"prob": "None", "logit": "None"}
SURE = values([0.0, 1.0])
others = [
    *(sample("bernoulli", {"prob": 0.5, **PROB, **s}) for s in SIZES),
    *(sample("bernoulli", {"prob": 1, **PROB, "size": (3,), "dtype": t}, random=False) for t in (
        "bool", "float16", "float64", "int32", "uint8")),
    sample("bernoulli", {**NONE, "is_logit": False, "size": (3, 2)}, {"input1": SURE}, random=False),
    op_case("_npi_bernoulli", {"input1": SURE}, {**NONE, "is_logit": False}, np_shape=True, id="gradient"),
    sample("bernoulli", {**NONE, "is_logit": True}, {"input1": values([-99.0, 99.0])}, random=False),
    sample("bernoulli", {**LOGIT, "logit": 99, "size": (2,)}, random=False), sample("bernoulli", {"prob": 1.5, **PROB}),
    *(sample("multinomial", {"n": 5, "pvals": (0.2, 0.8), **s}) for s in ({}, {"size": (2, 3)})),
    *(sample("multinomial", {"n": 5, **s}, {"a": values([0.25, 0.75])}, dtype=t) for s in ({}, {"size": (2,)})
      for t in ("float32", "float64")),
    sample("multinomial", {"n": 7, "pvals": (0.0, 1.0, 0.0), "size": (2,)}, random=False),
    sample("multinomial", {"n": 0, "pvals": (0.2, 0.8)}, random=False),
    sample("multinomial", {"n": 5, "pvals": (0.8, 0.8, 0.1)}),
    sample("multinomial", {"n": 5}, {"a": const(0.5, (1, 2))}),
    *(sample("choice", {"a": 5, "size": s}) for s in ((3,), (), "None", 2)),
    sample("choice", {"a": 5, "size": (3,), "replace": False}),
    sample("choice", {"a": "None", "size": (3,)}, arrays((4,))),
    sample("choice", {"a": "None", "size": (2, 2)}, {"input1": uniform((2, 2))}),
    *(sample("choice", {"a": 4, "size": (2,), "weighted": True}, {"input1": values([0.0, 0.0, 1.0, 0.0])}, dtype=t,
             random=False) for t in ("float32", "float64")),
    sample("choice", {"a": "None", "size": (2,), "weighted": True}, {"input1": uniform((4,)), "input2": values(
        [0.0, 0.0, 1.0, 0.0])}, random=False),
    sample("choice", {"a": 4, "size": (2,), "weighted": True, "replace": False},
           {"input1": values([0.0, 0.5, 0.5, 0.0])}),
]  # fmt: skip

CASES: list[Case] = [*twos(), *ones(), *others]
