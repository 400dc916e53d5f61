"""Elementwise functions of an array and a number.

The number is converted to the array's dtype first: with integers 1.5 counts as 1, and results keep the type.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from symjax.lowering.ops import binary
from symjax.lowering.ops._elementwise import scalar_as
from symjax.lowering.params import Params, param
from symjax.lowering.registry import SAME, InferTypes, op


class ScalarParams(Params):
    scalar: float = param(1.0, doc="The number.", traced=True)
    is_int: bool = param(True, doc="Whether an integer array stays one; False computes it in float64.")


def result_type(dtype: str, is_int: bool) -> str:
    # MXNet: bool arrays, and integer ones where the scalar is declared a float, are computed in 64 bits.
    if dtype == "bool":
        return "int64" if is_int else "float64"
    return dtype if is_int or "float" in dtype else "float64"


Computes = Callable[[str, bool], str]


def _types(computes: Computes, result: str | None) -> InferTypes:
    def infer(p: ScalarParams, ins: list[str | None], outs: list[str | None]) -> tuple[list[str | None],
                                                                                      list[str | None]]:
        known = ins[0]
        if known is not None:
            dtype = computes(known, p.is_int)
            return ins, [result or dtype]
        if result is None and outs and outs[0] and "float" in outs[0] and p.is_int:
            return [outs[0]], outs
        return ins, [result] if result else outs

    return infer


def flip(fn: binary.Binary) -> binary.Binary:
    return lambda x, s: fn(s, x)


def rmod(x: Array, s: Array) -> Array:
    return binary.mod(jnp.broadcast_to(s, x.shape), x)


_X = "each element x of `data` and the number s = `scalar`"

# name: (function of data and scalar, aliases, formula)
_ROWS: dict[str, tuple[Callable[[Array, Array], Array], tuple[str, ...], str]] = {
    "_plus_scalar": (jnp.add, ("_PlusScalar",), "x + s"),
    "_minus_scalar": (jnp.subtract, ("_MinusScalar",), "x - s"),
    "_rminus_scalar": (flip(jnp.subtract), ("_RMinusScalar",), "s - x"),
    "_mul_scalar": (jnp.multiply, ("_MulScalar",), "x * s"),
    "_div_scalar": (binary.divide, ("_DivScalar",), "x / s; integers truncate towards zero"),
    "_rdiv_scalar": (flip(binary.divide), ("_RDivScalar",), "s / x; integers truncate towards zero"),
    "_mod_scalar": (binary.mod, ("_ModScalar",), "the remainder of x / s with the sign of s, 0 where s is 0"),
    "_rmod_scalar": (rmod, ("_RModScalar",), "the remainder of s / x with the sign of x, 0 where x is 0"),
    "_power_scalar": (binary.power, ("_PowerScalar",), "x^s"),
    "_rpower_scalar": (flip(binary.power), ("_RPowerScalar",), "s^x"),
    "_maximum_scalar": (binary.maximum, ("_MaximumScalar", "_npi_maximum_scalar"),
                        "the larger of x and s; at a tie the gradient is 1"),
    "_minimum_scalar": (binary.minimum, ("_MinimumScalar", "_npi_minimum_scalar"),
                        "the smaller of x and s; at a tie the gradient is 1"),
    "_hypot_scalar": (binary.hypot, ("_HypotScalar", "_npi_hypot_scalar"), "sqrt(x^2 + s^2)"),
    "_equal_scalar": (binary.equal, ("_EqualScalar",), "1 where x = s, else 0"),
    "_not_equal_scalar": (binary.not_equal, ("_NotEqualScalar",), "1 where x differs from s, else 0"),
    "_greater_scalar": (binary.greater, ("_GreaterScalar",), "1 where x > s, else 0"),
    "_greater_equal_scalar": (binary.greater_equal, ("_GreaterEqualScalar",), "1 where x >= s, else 0"),
    "_lesser_scalar": (binary.lesser, ("_LesserScalar",), "1 where x < s, else 0"),
    "_lesser_equal_scalar": (binary.lesser_equal, ("_LesserEqualScalar",), "1 where x <= s, else 0"),
    "_logical_and_scalar": (binary.logical_and, ("_LogicalAndScalar",), "1 where x and s are non-zero, else 0"),
    "_logical_or_scalar": (binary.logical_or, ("_LogicalOrScalar",), "1 where x or s is non-zero, else 0"),
    "_logical_xor_scalar": (binary.logical_xor, ("_LogicalXorScalar",),
                            "1 where exactly one of x and s is non-zero, else 0"),
    "_scatter_plus_scalar": (jnp.add, (), "x + s (of a row_sparse array, its stored rows alone)"),
    "_scatter_minus_scalar": (jnp.subtract, (), "x - s (of a row_sparse array, its stored rows alone)"),
}


def register(name: str, fn: Callable[[Array, Array], Array], aliases: tuple[str, ...], formula: str, *, source: str,
             computes: Computes = result_type, result: str | None = None) -> None:
    """Registers the operator of an array and a number.

    Args:
      name: its name.
      fn: the function of two arrays of one dtype, the second of shape ().
      aliases: further names.
      formula: what it returns, in terms of x and s.
      source: the file of the row.
      computes: (dtype of the array, is_int) -> the dtype that both operands take.
      result: the dtype of the result, if it is not that one.
    """

    def rule(p: ScalarParams, data: Array) -> Array:
        x = data.astype(computes(data.dtype.name, p.is_int))
        return fn(x, scalar_as(p.scalar, x.dtype))

    rule.__doc__ = (f"Returns {formula}, for {_X}.\n\nThe number takes the type of `data` first (1.5 counts as 1 for "
                    f"integers); the result {f'is {result}' if result else 'has that type'}.")
    op(name, aliases=aliases, params=ScalarParams, shape=SAME, infer_types=_types(computes, result),
       source=f"{source}:{name}")(rule)


for _name, (_fn, _aliases, _formula) in _ROWS.items():
    register(_name, _fn, _aliases, _formula, source=__file__)
