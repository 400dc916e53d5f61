"""Cases of the elementwise numpy operators: one array, two arrays, an array and a number, choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.parity.arrays import Array, fill, randint, signed, uniform, values
from tests.parity.case import Case, op_case

DTYPES = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8")
EDGES = values([0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, "nan", "inf", "-inf"])
TRUTHS = values([[1, 0, 1], [0, 0, 1]], dtype="bool")


def case(op: str, inputs: dict[str, Any], params: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case under numpy semantics."""
    return op_case(op, inputs, params, np_shape=True, **options)


def head(case_id: str, shape: tuple[int, ...]) -> np.ndarray:
    """The cotangent that the output of a float32 case gets."""
    return fill(case_id, "head0", uniform(shape, -1.5, 1.5), "float32")


# ---- one array

DOMAINS: dict[str, tuple[float, float]] = {
    "log": (0.2, 3), "log2": (0.2, 3), "log10": (0.2, 3), "log1p": (-0.5, 2), "sqrt": (0.2, 3), "cbrt": (0.2, 3),
    "reciprocal": (0.3, 2), "arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9), "arctanh": (-0.8, 0.8), "arccosh": (1.2, 4),
    "tan": (-1.2, 1.2),
}  # fmt: skip
MATHS = ("exp", "expm1", *DOMAINS, "sin", "cos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "degrees", "radians")
STEPS = ("absolute", "negative", "square", "sign", "floor", "ceil", "trunc", "fix", "rint")
TESTS = ("logical_not", "isnan", "isinf", "isposinf", "isneginf", "isfinite")


def unary() -> list[Case]:
    out: list[Case] = []
    for n in (*MATHS, *STEPS):
        x = uniform((2, 3), *DOMAINS.get(n, (-2.0, 2.0)))
        out += [case(f"_npi_{n}", {"x": x}, infer=[{"x": (-1, 3)}]), case(f"_npi_{n}", {"x": x}, dtype="float16")]
    for n in ("exp", "absolute", "floor"):
        out += [case(f"_npi_{n}", {"x": (0, 3)}, id="empty"), case(f"_npi_{n}", {"x": (2,)}, grad_req="add"),
                case(f"_npi_{n}", {"x": uniform(())}, id="scalar"), case(f"_npi_{n}", {"x": (3,)}, dtype="float64")]
    out += [case(f"_npi_{n}", {"x": randint((4,), 0, 9)}, dtype=d, grads=False)
            for n in ("exp", "absolute", "negative", "square", "rint", "arctan") for d in ("int32", "int64", "uint8")]
    out += [case(f"_npi_{n}", {"x": EDGES}, id="edges", grads=False) for n in (*STEPS, "exp", "log1p", "cbrt")]
    out += [case("_npi_abs", {"x": signed((3,))}), *(c for n in TESTS for c in tests(n))]
    return [*out, *bits(), *npx()]


def tests(name: str) -> list[Case]:
    op = f"_npi_{name}"
    return [case(op, {"x": EDGES}), case(op, {"x": EDGES}, dtype="float16"), case(op, {"x": (0, 2)}, id="empty"),
            case(op, {"x": TRUTHS}, id="bool", grads=False),
            case(op, {"x": randint((4,), 0, 2)}, dtype="int32", grads=False)]


def bits() -> list[Case]:
    return [case("_npi_bitwise_not", {"x": randint((4,), 0, 99)}, dtype=d, grads=False) for d in DTYPES[3:]] + [
        case("_npi_bitwise_not", {"x": TRUTHS}, id="bool", grads=False),
        case("_npi_bitwise_not", {"x": (3,)}, id="floats", grads=False)]


def npx() -> list[Case]:
    return [case(op, {n: a}, dtype=d, id=i, grads=d.startswith("float"))
            for op, n in (("_npx_relu", "data"), ("_npx_sigmoid", "data"), ("_np_copy", "a"))
            for d, a, i in (("float32", (2, 3), ""), ("float64", (2, 3), ""), ("float16", (2, 3), ""),
                            ("float32", (0, 3), "empty"), ("float32", (), "scalar"),
                            ("int32", randint((4,), -3, 4), ""))] + [
        case("_npx_relu", {"data": EDGES}, id="edges")]


def rounding() -> list[Case]:
    halves = values([0.5, 1.5, 2.5, -0.5, -1.5, 0.125, 2.675, 15.0, 25.0, -15.0])
    return [
        *(case("_npi_around", {"x": halves}, {"decimals": d}) for d in (0, 1, 2, -1)),
        case("_npi_around", {"x": (2, 3)}), case("_npi_around", {"x": EDGES}, id="edges"),
        case("_npi_around", {"x": halves}, {"decimals": 1}, dtype="float64"),
        case("_npi_around", {"x": (2, 0)}, {"decimals": 3}, id="empty"),
        case("_npi_around", {"x": randint((5,), -40, 40)}, {"decimals": 2}, dtype="int32", grads=False),
        case("_npi_around", {"x": values([15, 25, -15, 4, 36, -36])}, {"decimals": -1}, dtype="int32", grads=False,
             differs="MXNet divides integers truncating", expected=lambda x: {
                 k: np.around(x["x"], -1) for k in ("out0", "train0")}),
        case("_npi_around", {"x": values([0.5, 2.5])}, dtype="float16", better=True, grads=False,
             expected=lambda x: {"out0": np.around(x["x"]), "train0": np.around(x["x"])}),
    ]  # fmt: skip


def nan_to_num() -> list[Case]:
    bad = values(["nan", "inf", "-inf", 1.0, -2.0])
    return [
        *(case("_npi_nan_to_num", {"data": bad}, p, dtype=d)
          for d in ("float32", "float64", "float16") for p in ({}, {"nan": 2.5, "posinf": 3.0, "neginf": -4.0})),
        case("_npi_nan_to_num", {"data": bad}, {"copy": False, "nan": -1}, grad_req="add"),
        case("_npi_nan_to_num", {"data": (0,)}, id="empty"),
        case("_npi_nan_to_num", {"data": randint((3,), 0, 5)}, dtype="int32", grads=False),
    ]  # fmt: skip


# ---- two arrays

MIXED = ("add", "subtract", "multiply", "mod", "power", "true_divide")
ALIKE = ("copysign", "ldexp", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
FLOATS = ("arctan2", "hypot")
INTS = ("lcm", "bitwise_and", "bitwise_or", "bitwise_xor")
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (3,)), ((2, 1), (4, 1, 3)), ((), (2,)), ((0, 3), (1, 3)))  # fmt: skip


def operands(op: str, a: Any, b: Any) -> dict[str, Any]:
    names = ("x1", "x2") if op in FLOATS else ("lhs", "rhs")
    return dict(zip(names, (a, b), strict=True))


def operand(op: str, shape: tuple[int, ...], dtype: str | None = None, divisor: bool = False) -> Array:
    if dtype is not None and not dtype.startswith("float"):
        return randint(shape, 0 if dtype == "bool" else 1, 2 if dtype == "bool" else 5, dtype=dtype)
    if op == "power":
        return uniform(shape, 0.5, 2.0, dtype=dtype)
    return signed(shape, 0.4, 2.0, dtype=dtype) if divisor or op in FLOATS else uniform(shape, -2, 2, dtype=dtype)


def binary() -> list[Case]:
    out: list[Case] = []
    for n in (*MIXED, *ALIKE, *FLOATS):
        op = f"_npi_{n}"
        out += [case(op, operands(n, operand(n, a), operand(n, b, divisor=True)), id=f"{len(a)}d{len(b)}d")
                for a, b in SHAPES[:3 if n in ALIKE[3:] else 4]]
        x, y = operand(n, (2, 3)), operand(n, (3,), divisor=True)
        out.append(case(op, operands(n, x, y), dtype="float16", rtol=4e-3))
    for n in ("add", "mod", "hypot"):
        x, y = operand(n, (2, 3)), operand(n, (3,), divisor=True)
        out += [case(f"_npi_{n}", operands(n, (2, 3), (2, 4)), id="clash"),
                case(f"_npi_{n}", operands(n, x, y), grad_req="add"),
                case(f"_npi_{n}", operands(n, x, y), dtype="float64", rtol=1e-6),
                case(f"_npi_{n}", operands(n, (), ()), id="scalars"),
                case(f"_npi_{n}", operands(n, x, y), id="infer",
                     infer=[dict(zip(operands(n, 0, 0), ((-1, 3), (3,)), strict=True))])]
    for n in (*MIXED, *ALIKE, *INTS):
        out += [case(f"_npi_{n}", operands(n, randint((2, 3), 0, 6), randint((3,), 1, 4)), dtype=d, grads=False)
                for d in ("int32", "uint8")]
    out += [case(f"_npi_{n}", operands(n, values([["nan", 1.0, "inf"]]), values([["nan"], [1.0]])), id="nan")
            for n in ALIKE[2:]]
    out += [case(f"_npi_{n}", {"lhs": TRUTHS, "rhs": values([1, 1, 0], dtype="bool")}, id="bool", grads=False)
            for n in ("add", "multiply", *ALIKE[2:])]
    out += [case(f"_npi_{n}", {"lhs": TRUTHS, "rhs": TRUTHS}, id="bool", grads=False) for n in INTS[1:]]
    return [*out, *promotions(), *refused(), *corners()]


PAIRS = (("float16", "float32"), ("float64", "float32"), ("int32", "float32"), ("float32", "int64"),
         ("bool", "float64"), ("float16", "int8"), ("int32", "int64"), ("uint8", "int32"),
         ("int64", "bool"))  # fmt: skip


def promotions() -> list[Case]:
    """Types that meet in the wider one."""
    out = []
    for n in MIXED:
        for a, b in PAIRS:
            whole = "float" not in a and "float" not in b
            two = "float" in a and "float" in b
            if (n == "mod" and whole) or (n == "true_divide" and (whole or two)):
                continue  # MXNet refuses
            if n == "power" and "bool" in (a, b):
                continue  # MXNet's kernels disagree about 0 ** 0
            divisor = n in ("mod", "true_divide")
            x, y = operand(n, (2, 3), a), operand(n, (3,), b, divisor=divisor)
            if divisor and b == "bool":
                y = values([1, 1, 1], dtype="bool")
            out.append(case(f"_npi_{n}", {"lhs": x, "rhs": y}, id=f"{a}+{b}", infer_from=("lhs", "rhs"), rtol=(
                4e-3 if "float16" in (a, b) else None)))
    return out


def refused() -> list[Case]:
    """What MXNet refuses to mix: run here where numpy has a meaning for it."""
    a, b = randint((2, 3), 1, 5, dtype="int8"), randint((3,), 1, 5, dtype="int32")
    f, g = signed((3,), dtype="float32"), signed((3,), dtype="float64")

    def both(fn: Any, dtype: str) -> Any:
        return lambda x: {k: fn(x["lhs"], x["rhs"]).astype(dtype) for k in ("out0", "train0")}

    return [
        case("_npi_true_divide", {"lhs": a, "rhs": b}, id="int8/int32", better=True, infer_from=("lhs", "rhs"),
             expected=both(np.divide, "float32")),
        case("_npi_true_divide", {"lhs": f, "rhs": g}, id="float32/float64", better=True, grads=False, dtype="float64",
             expected=both(np.divide, "float64"), infer_from=("lhs", "rhs")),
        case("_npi_mod", {"lhs": randint((3,), 1, 5, dtype="int8"), "rhs": b}, id="int8/int32", better=True,
             dtype="int32", expected=both(np.mod, "int32"), infer_from=("lhs", "rhs")),
        *(case(f"_npi_{n}", {"lhs": TRUTHS, "rhs": values([1, 1, 0], dtype="bool")}, id="bools", better=True,
               dtype="bool", grads=False, expected=both(f, "bool"))
          for n, f in zip(INTS[1:], (np.logical_and, np.logical_or, np.logical_xor), strict=True)),
        *(case(f"_npi_{n}", operands(n, (3,), randint((3,), dtype="int32")), id="mixed", grads=False)
          for n in ("copysign", "ldexp", "arctan2", "less", "bitwise_and")),
        *(case(f"_npi_{n}", operands(n, randint((3,)), randint((3,))), id="ints", dtype="int32", grads=False)
          for n in FLOATS),
        *(case(f"_npi_{n}", {"lhs": (3,), "rhs": (3,)}, id="floats", grads=False) for n in INTS),
    ]  # fmt: skip


def corners() -> list[Case]:
    signs = {"lhs": values([1.0, -1.0, 0.0, -0.0, 2.0]), "rhs": values([-1.0, 1.0, -0.0, 0.0, 0.0])}
    return [
        case("_npi_copysign", signs, id="signs", grads=["rhs"]),
        case("_npi_copysign", {"lhs": values([1, -2, 3]), "rhs": values([-1, 4, 0])}, dtype="int32", id="signs",
             grads=False),
        case("_npi_lcm", {"lhs": values([4, -6, 0, 7]), "rhs": values([6, 4, 5, 0])}, dtype="int32", id="signs",
             grads=False),
        case("_npi_mod", {"lhs": values([5.0, -5.0, 5.0, -5.0, 1.0]), "rhs": values([3.0, 3.0, -3.0, -3.0, 0.0])},
             id="signs"),
        case("_npi_true_divide", {"lhs": values([1.0, -1.0, 0.0]), "rhs": values([0.0, 0.0, 0.0])}, id="zero",
             grads=False),
        case("_npi_ldexp", {"lhs": values([1.5, -2.0]), "rhs": values([2.5, -1.5])}, id="fractions"),
        case("_npi_arctan2", {"x1": values([0.0, 1.0, -1.0, 0.0]), "x2": values([-1.0, 0.0, 0.0, 1.0])}, id="axes"),
    ]  # fmt: skip


# ---- an array and a number

ARITHMETIC = ("add", "subtract", "rsubtract", "multiply", "mod", "rmod", "power", "rpower", "true_divide",
              "rtrue_divide", "copysign", "rcopysign", "arctan2", "rarctan2", "ldexp", "rldexp")  # fmt: skip


def numbers() -> list[Case]:
    out: list[Case] = []
    for n in (*ARITHMETIC, *ALIKE[2:]):
        op, x = f"_npi_{n}_scalar", uniform((2, 3), 0.5, 2) if "power" in n else signed((2, 3), 0.4, 2)
        grads = n not in ("copysign", "rcopysign", "rarctan2")
        out += [case(op, {"data": x}, {"scalar": 1.5, "is_int": False}, dtype=d, grads=grads) for d in DTYPES[:3:2]]
        out += [case(op, {"data": randint((2, 3), 1, 5)}, {"scalar": s, "is_int": i}, dtype="int32", grads=False)
                for s, i in ((2, True), (1.5, False))]
    for n in ("add", "mod", "less"):
        op = f"_npi_{n}_scalar"
        out += [case(op, {"data": signed((2, 3))}), case(op, {"data": (0, 3)}, {"scalar": 2.0}, id="empty"),
                case(op, {"data": values(1.5)}, {"scalar": 2.0}, id="scalar"),
                case(op, {"data": signed((3,))}, {"scalar": -2.5, "is_int": False}, dtype="float64"),
                *(case(op, {"data": randint((2, 3), 1, 5)}, {"scalar": s, "is_int": i}, dtype=d, grads=False)
                  for d in DTYPES[4:] for s, i in ((2, True), (1.5, False)))]
    out += [case(f"_npi_{n}_scalar", {"data": TRUTHS}, {"scalar": s, "is_int": i}, id=f"bool,{s}", grads=False)
            for n in ("add", "multiply", "power", "true_divide") for s, i in ((2, True), (1.5, False))]
    out += [case(f"_npi_{n}_scalar", {"data": TRUTHS}, {"scalar": 1}, id="bool", grads=False) for n in ALIKE[2:]]
    out.append(case("_npi_less_scalar", {"data": TRUTHS}, {"scalar": 2}, id="bool2", grads=False,
                    differs="MXNet compares with the truth of the number",
                    expected=lambda x: dict.fromkeys(("out0", "train0"), x["data"] < 2)))
    for n in INTS:
        out += [case(f"_npi_{n}_scalar", {"data": randint((5,), 0, 20)}, {"scalar": 6, "is_int": True}, dtype=d,
                     grads=False) for d in ("int32", "uint8")]
        out.append(case(f"_npi_{n}_scalar", {"data": (3,)}, {"scalar": 6}, id="floats", grads=False))
    out += [case(f"_npi_{n}_scalar", {"data": TRUTHS}, {"scalar": 1}, id="bool", grads=False) for n in INTS[1:]]
    return out + faulty_gradients()


def faulty_gradients() -> list[Case]:
    """Gradients that MXNet has wrong or not at all."""

    def arctan2(x: dict[str, np.ndarray]) -> dict[str, Any]:
        v = x["data"]
        return {"grad:data": -2.0 / (v * v + 4) * head("_npi_rarctan2_scalar-gradient", v.shape)}

    def copysign(x: dict[str, np.ndarray]) -> dict[str, Any]:
        return {"grad:data": -np.sign(x["data"]) * head("_npi_copysign_scalar-gradient", x["data"].shape)}

    return [
        case("_npi_rarctan2_scalar", {"data": signed((4,))}, {"scalar": 2.0}, id="gradient",
             differs="MXNet takes the gradient of arctan2 in its other argument", expected=arctan2),
        case("_npi_copysign_scalar", {"data": signed((4,))}, {"scalar": -2.0}, id="gradient", better=True,
             expected=copysign),
        case("_npi_rcopysign_scalar", {"data": signed((4,))}, {"scalar": -2.0}, id="gradient", better=True,
             expected=lambda x: {"grad:data": np.zeros(4)}),
    ]  # fmt: skip


# ---- choices


def choices() -> list[Case]:
    w, c = "_npi_where", randint((2, 3), 0, 2, dtype="bool")
    known = ("condition", "x", "y")
    return [
        case(w, {"condition": c, "x": (2, 3), "y": (2, 3)}, infer_from=known),
        case(w, {"condition": c, "x": (3,), "y": (4, 1, 1)}, id="stretch", infer_from=known),
        case(w, {"condition": randint((3,), 0, 2, dtype="bool"), "x": (2, 1), "y": ()}, id="scalar", infer_from=known),
        case(w, {"condition": (0, 3), "x": (3,), "y": (1,)}, id="empty", infer_from=known, grads=["x", "y"],
             better=True),
        case(w, {"condition": c, "x": (2, 3), "y": (2, 4)}, id="clash", infer_from=known),
        case(w, {"condition": c, "x": (3,), "y": randint((3,), dtype="int32")}, id="types", infer_from=known,
             grads=False),
        *(case(w, {"condition": randint((2, 3), 0, 2, dtype=cd), "x": randint((2, 3)), "y": randint((3,))}, dtype=d,
               id=f"{cd},{d}", infer_from=known, grads=d.startswith("float") and ["x", "y"])
          for cd, d in (("int32", "float16"), ("float32", "float64"), ("uint8", "int64"), ("int64", "uint8"))),
        case(w, {"condition": c, "x": (3,), "y": (2, 1)}, id="add", grad_req="add", infer_from=known),
        *(case(f"_npi_where_{side}scalar", {"condition": c, n: a}, {"scalar": s}, dtype=d, infer_from=("condition", n),
               id=f"{s}", grads=False)
          for side, n in (("l", "x"), ("r", "y"))
          for a, s, d in (((2, 3), 1.5, "float32"), ((3,), -2, "float16"), ((), 0, "float64"),
                          (randint((3,)), 2.5, "int32"))),
        *(case(f"_npi_where_{side}scalar", {"condition": c, n: (2, 3)}, {"scalar": 1.5}, id="gradient", grads=[n],
               infer_from=("condition", n), differs="MXNet's gradient goes to the elements that were not chosen",
               expected=lambda x, side=side, n=n: {f"grad:{n}": np.where(
                   x["condition"] == (side == "r"), head(f"_npi_where_{side}scalar-gradient", (2, 3)), 0)})
          for side, n in (("l", "x"), ("r", "y"))),
        case("_npi_where_scalar2", {"condition": c}, {"x": 1.5, "y": -2}, grads=False),
        case("_npi_where_scalar2", {"condition": values([0.0, 2.0, "nan"])}, {"x": 3}, grads=False),
    ]  # fmt: skip


CASES: list[Case] = [*unary(), *rounding(), *nan_to_num(), *binary(), *numbers(), *choices()]
