"""Samplers (shapes and types; tests/test_random_ops.py has the distributions) and densities."""

from typing import Any

from tests.parity.arrays import Array, randint, uniform, values
from tests.parity.case import Case, graph_case, graph_json, op_case

# name: parameters of _random_*, recipes of the parameter arrays
SAMPLERS: dict[str, tuple[dict[str, Any], dict[str, Array]]] = {
    "uniform": ({"low": -1, "high": 3}, {"low": uniform((2, 3), 0, 1), "high": uniform((2, 3), 2, 3)}),
    "normal": ({"loc": 1, "scale": 2}, {"mu": uniform((2, 3)), "sigma": uniform((2, 3), 1, 2)}),
    "exponential": ({"lam": 2}, {"lam": uniform((2, 3), 1, 2)}),
    "gamma": ({"alpha": 2, "beta": 3}, {"alpha": uniform((2, 3), 1, 2), "beta": uniform((2, 3), 1, 2)}),
    "poisson": ({"lam": 3}, {"lam": uniform((2, 3), 1, 2)}),
    "negative_binomial": ({"k": 3, "p": 0.4}, {"k": randint((2, 3), 1, 4), "p": uniform((2, 3), 0.3, 0.7)}),
    "generalized_negative_binomial": ({"mu": 2, "alpha": 0.3},
                                      {"mu": uniform((2, 3), 1, 2), "alpha": uniform((2, 3), 0.1, 0.5)}),
}


def samplers() -> list[Case]:
    cases = []
    for name, (numbers, arrays) in SAMPLERS.items():
        cases += [op_case(f"_random_{name}", {}, {**numbers, "shape": (2, 3), "dtype": t}, random=True, grads=False)
                  for t in ("None", "float16", "float64")[: 3 if name in ("uniform", "normal") else 2]]
        cases += [op_case(f"_random_{name}", {}, {"shape": (4,)}, random=True, grads=False)]
        cases += [op_case(f"_sample_{name}", arrays, kw, random=True, dtype=d, infer=[{next(iter(arrays)): (4,)}])
                  for kw, d in (({}, "float32"), ({"shape": (2, 1), "dtype": "float16"}, "float64"))
                  # Gamma and Poisson draws take seconds to compile.
                  if not kw or name in ("uniform", "normal", "exponential", "gamma")]
        cases += [op_case(f"_random_{name}_like", {"data": (2, 3)}, numbers, random=True, dtype=d, grads=False)
                  for d in ("float32", "float16")[: 2 if name in ("uniform", "normal") else 1]]
    text = graph_json([("x",), ("r", "_random_uniform", {"shape": (0, 3)}, []), ("y", "elemwise_add", {}, ["x", "r"])],
                      ["y"])  # fmt: skip
    return [
        *cases,
        graph_case("_random_uniform-filled", text, {"x": (2, 3)}, random=True),
        *(op_case("_random_randint", {}, {"low": -3, "high": 5, "shape": (3,), **kw}, random=True, grads=False)
          for kw in ({}, {"dtype": "int32"}, {"dtype": "int64"})),
        *(op_case("_sample_multinomial", {"data": d}, kw, random=True, grads=False,
          outputs=2 if "get_prob" in kw else 1)
          for d in (values([0.2, 0.3, 0.5]), values([[0.1, 0.9], [1.0, 0.0]]), values([[[0.5, 0.5]]]))
          for kw in ({}, {"shape": (4,)}, {"shape": (2, 3)}, {"get_prob": True}, {"shape": 2, "get_prob": True},
                     {"dtype": "float32"}, {"dtype": "uint8"})),
        # One class has all the probability, so the draws are known.
        op_case("_sample_multinomial", {"data": values([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])},
                {"shape": (3,), "get_prob": True}, outputs=2, id="certain"),
        op_case("_sample_unique_zipfian", {}, {"range_max": 20, "shape": (2, 5)}, outputs=2, random=True, grads=False),
        *(op_case("_shuffle", {"data": s}, random=True, grads=False) for s in ((5,), (3, 2))),
    ]  # fmt: skip


PDFS: dict[str, tuple[Array, dict[str, Array]]] = {
    "uniform": (uniform((2, 4), 0.1, 0.9), {"low": uniform((2,), -1, 0), "high": uniform((2,), 1, 2)}),
    "normal": (uniform((2, 4)), {"mu": uniform((2,)), "sigma": uniform((2,), 0.5, 1.5)}),
    "exponential": (uniform((2, 4), 0.1, 2), {"lam": uniform((2,), 0.5, 2)}),
    "gamma": (uniform((2, 4), 0.1, 2), {"alpha": uniform((2,), 0.5, 2), "beta": uniform((2,), 0.5, 2)}),
    "poisson": (randint((2, 4), 0, 6), {"lam": uniform((2,), 0.5, 2)}),
    "negative_binomial": (randint((2, 4), 0, 6), {"k": randint((2,), 1, 5), "p": uniform((2,), 0.3, 0.7)}),
    "generalized_negative_binomial": (randint((2, 4), 0, 6), {"mu": uniform((2,), 0.5, 2), "alpha": uniform((2,),
      0.2, 0.7)}),
    "dirichlet": (values([[[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]] * 2), {"alpha": uniform((2, 3), 0.5, 2)}),
}


def densities() -> list[Case]:
    return [
        *(op_case(f"_random_pdf_{n}", {"sample": s, **ps}, {"is_log": log}, dtype=d, infer_from=("sample", *ps),
                  rtol=1e-3 if d == "float32" else 1e-5, atol=1e-4)
          for n, (s, ps) in PDFS.items() for log in (False, True) for d in ("float32", "float64")),
        op_case("random_pdf_normal", {"sample": (2,), "mu": (2,), "sigma": uniform((2,), 1, 2)}, rtol=1e-3,
                infer_from=("sample", "mu", "sigma")),
        op_case("random_pdf_normal", {"sample": (2, 3, 2), "mu": (2, 3), "sigma": uniform((2, 3), 1, 2)}, rtol=1e-3,
                infer_from=("sample", "mu", "sigma")),
        op_case("random_pdf_normal", {"sample": (3, 2), "mu": (2,), "sigma": (2,)}, id="misfit", grads=False,
                infer_from=("sample", "mu", "sigma")),
        op_case("random_pdf_dirichlet", {"sample": values([0.2, 0.3, 0.5]), "alpha": uniform((3,), 0.5, 2)}, rtol=1e-3,
                infer_from=("sample", "alpha")),
    ]  # fmt: skip


CASES: list[Case] = [*samplers(), *densities()]
