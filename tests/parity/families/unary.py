"""Elementwise functions of one array."""

from tests.parity.arrays import Array, randint, signed, uniform, values
from tests.parity.case import Case, graph_case, graph_json, op_case

S = (2, 3)
EVERY = signed(S, 0.2, 2.0)
INSIDE = uniform(S, -0.9, 0.9)
POSITIVE = uniform(S, 0.2, 3.0)
ABOVE_ONE = uniform(S, 1.2, 3.0)

# op: recipe of its domain
DOMAIN: dict[str, Array] = {
    **dict.fromkeys(("exp", "expm1", "cbrt", "rcbrt", "reciprocal", "sin", "cos", "tan", "arctan", "sinh", "cosh",
      "tanh",
                     "arcsinh", "degrees", "radians", "sigmoid", "softsign", "erf", "abs", "negative", "square", "sign",
                     "relu", "logical_not", "floor", "ceil", "trunc", "fix", "round", "rint", "_copy", "zeros_like",
                     "ones_like", "BlockGrad", "shape_array", "size_array", "_contrib_round_ste", "_contrib_sign_ste",
                     "_contrib_div_sqrt_dim"), EVERY),
    **dict.fromkeys(("log", "log10", "log2", "log1p", "sqrt", "rsqrt", "gamma", "gammaln"), POSITIVE),
    **dict.fromkeys(("arcsin", "arccos", "arctanh", "erfinv"), INSIDE),
    "arccosh": ABOVE_ONE,
}
ROUNDING = ("floor", "ceil", "trunc", "fix", "round", "rint", "sign", "_contrib_round_ste")
ALIASES = ("identity", "stop_gradient", "_sparse_relu", "_sparse_abs", "_npx_erf", "_sparse_stop_gradient")
HALVES = values([[-2.5, -1.5, -0.5], [-0.0, 0.0, 0.5], [1.5, 2.5, 0.49999997], [1e20, -3.2, 7.9]])
ODD = values([["nan", "inf", "-inf", 0.0, -0.0, 1.0, -1.0]])
OUTSIDE = ("arcsin", "arccos", "arctanh", "erfinv", "erf")  # NaN or a rounded 1 as an integer is the platform's
NO_GRAD = ("shape_array", "size_array")
WIDE = ("float64", "float16")


def maths() -> list[Case]:
    cases = []
    for name, domain in DOMAIN.items():
        grads = name not in NO_GRAD
        cases += [op_case(name, {"data": domain}, grads=grads),
                  *(op_case(name, {"data": domain}, grads=grads, dtype=d, rtol=1e-5 if d == "float64" else 4e-3)
                    for d in WIDE)]
        if name not in OUTSIDE:
            cases.append(op_case(name, {"data": values([1, 2, 3, 5])}, grads=False, dtype="int32", id="ints"))
    for name in ("exp", "relu", "abs", "square", "negative", "sign", "_copy", "round", "cbrt", "logical_not"):
        for dtype in ("int64", "uint8", "int8"):
            cases.append(op_case(name, {"data": randint((5,), 0, 5)}, grads=False, dtype=dtype))
    return cases


def edges() -> list[Case]:
    names = ("abs", "sign", "square", "exp", "log", "sqrt", "rsqrt", "cbrt", "sigmoid", "erf", "erfinv", "log1p",
             "expm1", "relu", "tanh", "arctan", "floor",
             "reciprocal", "degrees", "logical_not", "_contrib_round_ste", "make_loss")
    return [
        *(op_case(n, {"data": HALVES}, id="halves") for n in ROUNDING),
        *(op_case(n, {"data": ODD}, id="odd") for n in names),
        *(op_case(n, {"data": ODD}, id="odd_forward", grads=False)
          for n in ("softsign", "gamma", "arccosh", "arcsin")),
        op_case("gammaln", {"data": ODD}, id="odd_forward", grads=False, atol=1e-3),
        *(op_case(n, {"data": signed(S)}) for n in ALIASES),
        op_case("relu", {"data": values([0.0, -1.0, 1.0])}, id="at_zero"),
        *(op_case(n, {"data": EVERY}, grad_req="add") for n in ("exp", "relu", "BlockGrad", "_copy", "zeros_like")),
        op_case("exp", {"data": (2, 3)}, infer=[{"data": (0, 3)}, {"data": (0, 0, 5)}], id="infer"),
        op_case("round", {"data": values([2**24 + 1, -(2**24) - 1])}, dtype="int32", grads=False, id="exact_ints"),
    ]


def heads() -> list[Case]:
    two = graph_json([("x",), ("y", "square", {}, ["x"]), ("l", "make_loss", {}, ["y"])], ["l"])
    blocked = graph_json([("x",), ("y", "square", {}, ["x"]), ("b", "BlockGrad", {}, ["y"]),
                          ("l", "make_loss", {}, ["y"])], ["l", "b"])
    return [
        op_case("make_loss", {"data": EVERY}),
        op_case("make_loss", {"data": EVERY}, head="none", id="no_head"),
        op_case("make_loss", {"data": EVERY}, head="none", id="no_head", grad_req="add"),
        graph_case("make_loss-of_square", two, {"x": EVERY}, head="none"),
        graph_case("make_loss-and_blocked", blocked, {"x": EVERY}, head="none"),
        op_case("_identity_with_attr_like_rhs", {"lhs": EVERY, "rhs": (2, 3)}, infer=[{"rhs": (2, 3)}]),
    ]


def casts() -> list[Case]:
    x = values([-1.7, 300.5, 1.5, 0.0, 2.0, -0.5, 127.9])
    types = ("float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool")
    return [
        *(op_case("Cast", {"data": x}, {"dtype": t}, grads=t.startswith("float")) for t in types),
        *(op_case("Cast", {"data": values([0, 1, 2, 127])}, {"dtype": t}, dtype=d, grads=False)
          for d in ("uint8", "int8", "int32", "int64") for t in ("float16", "float32", "uint8", "int64", "bool")),
        op_case("Cast", {"data": values([0, 1])}, {"dtype": "float32"}, dtype="bool", grads=False),
        op_case("Cast", {"data": values([300, -1, 2**31])}, {"dtype": "uint8"}, dtype="int64", grads=False, id="wrap"),
        op_case("Cast", {"data": uniform(S)}, {"dtype": "float64"}, dtype="float16"),
        op_case("Cast", {"data": (2, 3)}, {"dtype": "complex"}, grads=False, id="unknown_type"),
        op_case("Cast", {"data": (2, 3)}, id="no_type", grads=False),
        *(op_case("amp_cast", {"data": uniform(S, -3, 3)}, {"dtype": t}, dtype=d, grads=d == "float32" and "f" in t)
          for d in ("float32", "float16", "float64", "int32") for t in ("float16", "float32", "float64", "int32")),
        *(op_case("amp_multicast", {f"data_{i}": uniform(S, dtype=d) for i, d in enumerate(ds)},
                  {"num_outputs": len(ds), "cast_narrow": narrow}, outputs=len(ds), grads=grads,
                  id=f"{'_'.join(ds)}_{narrow}", infer_from=tuple(f"data_{i}" for i in range(len(ds))))
          for narrow in (False, True) for ds, grads in (
              (("float32", "float16"), True), (("float16", "float32", "float64"), True), (("float32", "float32"), True),
              (("float16", "float16"), True))),
    ]  # fmt: skip


def parametrised() -> list[Case]:
    x = values([[-2.0, -1.0, -0.25, 0.0], [0.25, 0.7, 1.0, 3.0]])
    return [
        *(op_case("clip", {"data": x}, {"a_min": a, "a_max": b}, dtype=d)
          for a, b in ((-1, 1), (0.3, 0.9), (-5, 5)) for d in ("float32", "float64", "float16")),
        op_case("clip", {"data": values([1.0, "nan", "inf", "-inf"])}, {"a_min": -1, "a_max": 2}, id="odd"),
        *(op_case("clip", {"data": values([0, 3, 7, 100])}, {"a_min": 1.5, "a_max": 6.5}, dtype=d, grads=False)
          for d in ("int32", "int64", "uint8", "int8")),
        op_case("clip", {"data": values([0, 3, 200])}, {"a_min": -1, "a_max": 100}, dtype="uint8", grads=False),
        op_case("clip", {"data": x}, {"a_min": 2, "a_max": 1}, id="crossed", grads=False),
        op_case("clip", {"data": x}, {"a_min": 0}, id="missing"),
        *(op_case("smooth_l1", {"data": x}, {"scalar": s}, dtype=d) for s in (1, 2, 0.5)
          for d in ("float32", "float64")),
        op_case("smooth_l1", {"data": x}, id="default"),
        op_case("smooth_l1", {"data": values([1.0, "inf", "-inf", 0.0])}, {"scalar": 1}, id="far"),
        op_case("hard_sigmoid", {"data": x}, id="default"),
        op_case("hard_sigmoid", {"data": values([-0.9, -0.5, 0.1, 0.7])}, {"alpha": 0.7, "beta": 0.3}),
        op_case("hard_sigmoid", {"data": x}, {"alpha": 0.7, "beta": 0.3}, dtype="float16"),
        *(op_case("_contrib_gradientmultiplier", {"data": x}, {"scalar": s}) for s in (2, -0.5, 0)),
        op_case("_contrib_quadratic", {"data": x}, {"a": 0.5, "b": -2, "c": 3}),
        op_case("_contrib_quadratic", {"data": x}, id="default"),
        op_case("_contrib_div_sqrt_dim", {"data": (2, 3, 5)}),
    ]


CASES: list[Case] = [*maths(), *edges(), *heads(), *casts(), *parametrised()]
