"""Elementwise functions of two arrays, and of an array and a number."""

from typing import Any

from tests.parity.arrays import Array, randint, signed, uniform, values
from tests.parity.case import Case, op_case

S = (2, 3)
A, B = signed(S, 0.3, 2.5), signed(S, 0.3, 1.5)
POSITIVE = uniform(S, 0.3, 2.5)
ARITHMETIC = {"elemwise_add": "broadcast_add", "elemwise_sub": "broadcast_sub", "elemwise_mul": "broadcast_mul",
              "elemwise_div": "broadcast_div", "_mod": "broadcast_mod", "_power": "broadcast_power",
              "_maximum": "broadcast_maximum", "_minimum": "broadcast_minimum",
                "_hypot": "broadcast_hypot"}  # fmt: skip
TESTS = ("equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal", "logical_and", "logical_or",
         "logical_xor")  # fmt: skip
LEGACY = ("_Plus", "_plus", "_add", "_Minus", "_minus", "_sub", "_Mul", "_mul", "_Div", "_div", "_Power", "_Maximum",
          "_Minimum", "_Equal", "_Greater_Equal", "_Logical_Xor", "_Hypot", "_Mod", "_sparse_elemwise_add")  # fmt: skip
SCALAR_ARITHMETIC = ("_plus", "_minus", "_rminus", "_mul", "_div", "_rdiv", "_mod", "_rmod", "_power", "_rpower",
                     "_maximum", "_minimum", "_hypot")  # fmt: skip
LEGACY_SCALAR = ("_PlusScalar", "_MinusScalar", "_RMinusScalar", "_MulScalar", "_DivScalar", "_RDivScalar",
  "_ModScalar",
                 "_RModScalar", "_PowerScalar", "_RPowerScalar", "_MaximumScalar", "_MinimumScalar", "_HypotScalar",
                 "_EqualScalar", "_NotEqualScalar", "_GreaterScalar", "_GreaterEqualScalar", "_LesserScalar",
                 "_LesserEqualScalar", "_LogicalAndScalar", "_LogicalOrScalar", "_LogicalXorScalar")  # fmt: skip
INTS = ("int32", "int64", "int8", "uint8")
TIES = {"lhs": values([[1.0, -2.0, 0.0], [3.0, 2.0, -1.0]]), "rhs": values([[1.0, 2.0, 0.0], [-3.0, 2.0, 0.5]])}
ODD = {"lhs": values([1.0, "nan", "inf", "-inf", "nan"]), "rhs": values(["nan", 1.0, "inf", 2.0, "nan"])}


def pair(op: str, lhs: Array | tuple[int, ...] = A, rhs: Array | tuple[int, ...] = B, **options: Any) -> Case:
    return op_case(op, {"lhs": lhs, "rhs": rhs}, **options)


def domain(op: str) -> Array:
    return POSITIVE if "power" in op.lower() else A


def signs(dtype: str) -> tuple[Array, Array]:
    if dtype == "uint8":
        return values([7, 7, 0, 1, 2, 5]), values([3, 2, 5, 1, 1, 2])
    return values([7, -7, 7, -7, 0, 5]), values([3, 3, -3, -3, 5, 2])


def same_shape() -> list[Case]:
    tests = [f"_{t}" for t in TESTS]
    return [
        *(pair(n, domain(n), dtype=d, rtol=2e-5 if d == "float64" else None)
          for n in (*ARITHMETIC, *tests) for d in ("float32", "float64", "float16")),
        *(pair(n, *signs(d), dtype=d, grads=False) for n in (*ARITHMETIC, *tests) for d in INTS),
        *(op_case(n, TIES, id="ties") for n in ("_maximum", "_minimum", "_mod", *tests)),
        *(op_case(n, ODD, id="odd", grads=False) for n in (*ARITHMETIC, *tests)),
        *(pair(n, POSITIVE) for n in LEGACY),
        *(pair(n, grad_req="add") for n in ("elemwise_sub", "elemwise_mul", "_maximum")),
        pair("elemwise_add", infer=[{"lhs": (0, 3), "rhs": (2, 0)}, {"rhs": (4, 5)}, {"lhs": (0, 0)}], id="infer"),
        pair("elemwise_add", (2, 3), (2, 1), id="unequal"),
        pair("elemwise_add", (2, 3), (3,), id="unequal_rank"),
        pair("elemwise_mul", A, uniform(S, dtype="float64"), id="mixed_types", grads=False),
        pair("_grad_add", grads=False), pair("_scatter_elemwise_div", grads=False),
        pair("elemwise_div", values([1.0, -1.0, 0.0]), values([0.0, 0.0, 0.0]), id="by_zero", grads=False),
        *(op_case("add_n", {f"arg{i}": S for i in range(n)}, {"num_args": n}, dtype=d)
          for n in (1, 2, 4) for d in ("float32", "float64", "float16")),
        op_case("ElementWiseSum", {f"arg{i}": S for i in range(3)}, {"num_args": 3}, grad_req="add"),
        op_case("add_n", {"arg0": randint(S), "arg1": randint(S)}, {"num_args": 2}, dtype="int32", grads=False),
        op_case("add_n", {"arg0": S, "arg1": (3, 2)}, {"num_args": 2}, id="unequal"),
    ]  # fmt: skip


SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (2, 1)), ((1, 3), (2, 1)), ((2, 1, 4), (1, 3, 1)), ((3,), (2, 3)), ((2, 3, 4), (1,)), ((2, 3), (2, 3)),
    ((2, 1, 3, 1, 2), (1, 2, 3, 2, 1)))  # fmt: skip


def broadcasting() -> list[Case]:
    tests = [f"broadcast_{t}" for t in TESTS]
    return [
        *(pair(n, uniform((2, 1, 3), 0.3, 2.5), signed((1, 2, 3), 0.3, 1.5), dtype=d,
          rtol=2e-5 if d == "float64" else None)
          for n in (*ARITHMETIC.values(), *tests) for d in ("float32", "float64", "float16")),
        *(pair(n, values([[7, 3, 0]]), values([[3], [2]]), dtype=d, grads=False)
          for n in (*ARITHMETIC.values(), *tests) for d in INTS),
        *(pair("broadcast_mul", a, b, id=f"{a}_{b}".replace(" ", "")) for a, b in SHAPES),
        *(op_case(n, TIES, id="ties") for n in ("broadcast_maximum", "broadcast_minimum")),
        *(pair(n, (2, 1), (1, 3)) for n in ("broadcast_plus", "broadcast_minus", "_sparse_broadcast_mul")),
        pair("broadcast_add", (2, 3), (2, 4), id="misfit"),
        pair("broadcast_add", (2, 1), (1, 3), id="infer", grad_req="add", infer_from=("lhs", "rhs"),
             infer=[{"lhs": (2, 3)}]),
    ]  # fmt: skip


def one(op: str, scalar: Any, data: Array = A, **options: Any) -> Case:
    return op_case(op, {"data": data}, {"scalar": scalar}, **options)


def scalars() -> list[Case]:
    arithmetic = [f"{n}_scalar" for n in SCALAR_ARITHMETIC]
    tests = [f"_{t}_scalar" for t in TESTS]
    ties = values([2.0, -1.0, 0.0, 3.5])
    return [
        *(one(n, s, domain(n), dtype=d, rtol=2e-5 if d == "float64" else None)
          for n in arithmetic for s in (1.5, 0.7) for d in ("float32", "float64", "float16")),
        *(one(n, -1.5) for n in arithmetic if "power" not in n),
        *(one(n, s, ties) for n in tests for s in (2, 0)),
        *(one(n, 2.5, values([1, 2, 3, 5, 7]), dtype=d, grads=False) for n in (*arithmetic, *tests) for d in INTS),
        *(one(n, 2, ties, id="ties") for n in ("_maximum_scalar", "_minimum_scalar")),
        *(one(n, 0, values([1.0, -2.0, 3.0])) for n in ("_mod_scalar", "_plus_scalar", "_maximum_scalar")),
        *(one(n, 2, values([1.0, -2.0, 3.0])) for n in ("_power_scalar", "_mod_scalar")),
        *(one(n, 1.5, POSITIVE) for n in LEGACY_SCALAR),
        *(one(n, 1.5) for n in ("_scatter_plus_scalar", "_scatter_minus_scalar")),
        op_case("_plus_scalar", {"data": A}, id="default"),
        *(one("_plus_scalar", text) for text in ("True", "abc", "", "None", "inf", "1e-3", "nan", " 2")),
        *(op_case(n, {"data": values([1, 2, 5])}, {"scalar": 1.5, "is_int": False}, dtype="int32", grads=False)
          for n in ("_plus_scalar", "_div_scalar", "_lesser_scalar", "_power_scalar")),
        op_case("_plus_scalar", {"data": A}, {"scalar": 1.5, "is_int": False}),
        *(one(n, 2, values([0, 1, 1]), dtype="bool", grads=False)
          for n in ("_plus_scalar", "_mul_scalar", "_equal_scalar")),
        one("_plus_scalar", 2**53 - 1, values([1]), dtype="int64", grads=False),
        one("_plus_scalar", -2, values([5, 1]), dtype="uint8", grads=False),
        one("_mul_scalar", 3, grad_req="add"),
        op_case("_mul_scalar", {"data": (2, 3)}, {"scalar": 2}, infer=[{"data": (0, 3)}], id="infer"),
    ]  # fmt: skip


CASES: list[Case] = [*same_shape(), *broadcasting(), *scalars()]
