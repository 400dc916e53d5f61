"""Elementwise functions of two arrays: arithmetic, comparison, logic; with equal shapes and broadcasting.

Each row of `_FUNCTIONS` makes up to two operators: one that wants equal shapes (`elemwise_add`, `_maximum`) and one
that broadcasts (`broadcast_add`). Both arrays have one dtype and so has the result; comparisons give 0 and 1 in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from symjax.lowering.errors import ShapeError
from symjax.lowering.ops._elementwise import cast, is_float, wide_dtype, widened
from symjax.lowering.ops._wide_rows import stretch, stretches
from symjax.lowering.params import Params, param
from symjax.lowering.registry import BROADCAST, SAME, op

Binary = Callable[[Array, Array], Array]


def divide(a: Array, b: Array) -> Array:
    """a / b; integers truncate towards zero, as in C."""
    if is_float(a):
        return a / b
    return lax.div(*jnp.broadcast_arrays(a, b)) if a.dtype != jnp.bool_ else a & b


@jax.custom_jvp
def mod(a: Array, b: Array) -> Array:
    """a - floor(a / b) b, with the sign of b."""
    # MXNet: the remainder of a division by zero is 0.
    return jnp.where(b == 0, jnp.zeros((), a.dtype), jnp.mod(a, b))


@mod.defjvp
def _mod_jvp(primals: tuple[Array, Array], tangents: tuple[Any, Any]) -> tuple[Array, Any]:
    (a, b), (da, db) = primals, tangents
    return mod(a, b), da - jnp.floor(a / b) * db


def power(a: Array, b: Array) -> Array:
    """a^b; integer powers are exact, and truncate where b is negative."""
    if is_float(a):
        return widened(jnp.power)(a, b)
    return _integer_power(*jnp.broadcast_arrays(a, b))


def _integer_power(a: Array, b: Array) -> Array:
    if a.dtype == jnp.bool_:
        return a | ~b
    if jnp.issubdtype(a.dtype, jnp.unsignedinteger):
        return jnp.power(a, b)
    positive = jnp.power(a, jnp.maximum(b, 0))
    odd_sign = jnp.where(b % 2 == 0, jnp.ones((), a.dtype), a)
    return jnp.where(b >= 0, positive, jnp.where(jnp.abs(a) == 1, odd_sign, jnp.zeros((), a.dtype)))


def maximum(a: Array, b: Array) -> Array:
    """The larger; NaN spreads, and at a tie the whole gradient goes to `a`."""
    return jnp.where((a >= b) | (a != a), a, b)


def minimum(a: Array, b: Array) -> Array:
    """The smaller; NaN spreads, and at a tie the whole gradient goes to `a`."""
    return jnp.where((a <= b) | (a != a), a, b)


@jax.custom_jvp
def _hypot(a: Array, b: Array) -> Array:
    return jnp.hypot(a, b)


@_hypot.defjvp
def _hypot_jvp(primals: tuple[Array, Array], tangents: tuple[Any, Any]) -> tuple[Array, Any]:
    (a, b), (da, db) = primals, tangents
    h = _hypot(a, b)
    return h, a / h * da + b / h * db


hypot: Binary = widened(_hypot)


def _as_number(test: Binary) -> Binary:
    """Gives a comparison the type of its operands."""
    return lambda a, b: test(a, b).astype(a.dtype)


def _truth(test: Callable[[Array, Array], Array]) -> Binary:
    return _as_number(lambda a, b: test(a != 0, b != 0))


equal, not_equal = _as_number(jnp.equal), _as_number(jnp.not_equal)
greater, greater_equal = _as_number(jnp.greater), _as_number(jnp.greater_equal)
lesser, lesser_equal = _as_number(jnp.less), _as_number(jnp.less_equal)
logical_and, logical_or = _truth(jnp.logical_and), _truth(jnp.logical_or)
logical_xor = _truth(jnp.logical_xor)

# function, formula, (name, aliases) for equal shapes, (name, aliases) for broadcasting
_FUNCTIONS: list[tuple[Binary, str, tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]]] = [
    (jnp.add, "lhs + rhs", ("elemwise_add", ("_add", "_plus", "_Plus", "_sparse_elemwise_add")),
     ("broadcast_add", ("broadcast_plus", "_sparse_broadcast_add", "_sparse_broadcast_plus"))),
    (jnp.subtract, "lhs - rhs", ("elemwise_sub", ("_sub", "_minus", "_Minus", "_sparse_elemwise_sub")),
     ("broadcast_sub", ("broadcast_minus", "_sparse_broadcast_sub", "_sparse_broadcast_minus"))),
    (jnp.multiply, "lhs * rhs", ("elemwise_mul", ("_mul", "_Mul", "_sparse_elemwise_mul")),
     ("broadcast_mul", ("_sparse_broadcast_mul",))),
    (divide, "lhs / rhs; integers truncate towards zero", ("elemwise_div", ("_div", "_Div", "_sparse_elemwise_div")),
     ("broadcast_div", ("_sparse_broadcast_div",))),
    (mod, "the remainder of lhs / rhs with the sign of rhs, 0 where rhs is 0", ("_mod", ("_Mod",)),
     ("broadcast_mod", ())),
    (power, "lhs to the power of rhs", ("_power", ("_Power",)), ("broadcast_power", ())),
    (maximum, "the larger of lhs and rhs (NaN if one is NaN); at a tie the gradient is lhs's",
     ("_maximum", ("_Maximum",)), ("broadcast_maximum", ("_npi_maximum",))),
    (minimum, "the smaller of lhs and rhs (NaN if one is NaN); at a tie the gradient is lhs's",
     ("_minimum", ("_Minimum",)), ("broadcast_minimum", ("_npi_minimum",))),
    (hypot, "sqrt(lhs^2 + rhs^2) without overflow in between", ("_hypot", ("_Hypot",)), ("broadcast_hypot", ())),
    (equal, "1 where lhs = rhs, else 0", ("_equal", ("_Equal",)), ("broadcast_equal", ())),
    (not_equal, "1 where lhs differs from rhs, else 0", ("_not_equal", ("_Not_Equal",)), ("broadcast_not_equal", ())),
    (greater, "1 where lhs > rhs, else 0", ("_greater", ("_Greater",)), ("broadcast_greater", ())),
    (greater_equal, "1 where lhs >= rhs, else 0", ("_greater_equal", ("_Greater_Equal",)),
     ("broadcast_greater_equal", ())),
    (lesser, "1 where lhs < rhs, else 0", ("_lesser", ("_Lesser",)), ("broadcast_lesser", ())),
    (lesser_equal, "1 where lhs <= rhs, else 0", ("_lesser_equal", ("_Lesser_Equal",)), ("broadcast_lesser_equal", ())),
    (logical_and, "1 where both are non-zero, else 0", ("_logical_and", ("_Logical_And",)),
     ("broadcast_logical_and", ())),
    (logical_or, "1 where one is non-zero, else 0", ("_logical_or", ("_Logical_Or",)), ("broadcast_logical_or", ())),
    (logical_xor, "1 where exactly one is non-zero, else 0", ("_logical_xor", ("_Logical_Xor",)),
     ("broadcast_logical_xor", ())),
]


def _equal_shapes(fn: Binary) -> Binary:
    def checked(lhs: Array, rhs: Array) -> Array:
        if lhs.shape != rhs.shape:
            raise ShapeError(f"lhs has shape {lhs.shape}, rhs {rhs.shape}; they must be equal, broadcast_* stretch")
        return fn(lhs, rhs)

    return checked


def _register(name: str, aliases: tuple[str, ...], fn: Binary, formula: str, broadcast: bool) -> None:
    def rule(p: Any, lhs: Array, rhs: Array) -> Array:
        return fn(lhs, rhs)

    shapes = ("Dimensions are aligned from the right; those of size 1 stretch." if broadcast else
              "Both have one shape.")
    rule.__doc__ = f"Returns {formula}, element by element. {shapes}"
    made = op(name, aliases=aliases, shape=BROADCAST if broadcast else SAME, source=f"{__file__}:{name}")(rule)
    if broadcast:
        made.variant(platform="cpu", when=stretches)(lambda p, lhs, rhs: fn(*stretch(lhs, rhs)))


for _fn, _formula, _same, _stretch in _FUNCTIONS:
    _register(*_same, _equal_shapes(_fn), _formula, False)
    _register(*_stretch, _fn, _formula, True)
_register("_grad_add", (), _equal_shapes(jnp.add), "lhs + rhs (sums of gradients in old graphs)", False)
_register("_scatter_elemwise_div", (), _equal_shapes(divide),
          "lhs / rhs (of a row_sparse lhs, its stored rows alone)", False)


class AddNParams(Params):
    num_args: int = param(ge=1, doc="Number of arrays.")


@op("add_n", aliases=("ElementWiseSum", "_sparse_add_n", "_sparse_ElementWiseSum"), params=AddNParams,
    variadic="num_args", inputs=lambda p: tuple(f"arg{i}" for i in range(p.num_args)), shape=SAME)
def add_n(p: AddNParams, *args: Array) -> Array:
    """Returns the sum of all arrays, which have one shape and dtype; half precision is summed in float32."""
    first = args[0]
    if not is_float(first):
        return functools.reduce(jnp.add, args)
    wide = wide_dtype(first.dtype)
    return cast(functools.reduce(jnp.add, (a.astype(wide) for a in args)), first.dtype)
