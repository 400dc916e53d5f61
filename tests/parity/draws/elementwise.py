"""Unary, binary, scalar, broadcast and reducing ops, and what chooses among elements."""

from __future__ import annotations

from typing import Any

from tests.parity.arrays import Array, distinct, randint, signed, uniform
from tests.parity.case import Case
from tests.parity.draw import ALL, FLOATS, INTS, SINGLE, Draw, Shape, draws

RANGES = {
    "arccos": (-0.95, 0.95), "arcsin": (-0.95, 0.95), "arctanh": (-0.95, 0.95), "erfinv": (-0.95, 0.95),
    "arccosh": (1.05, 3), "log": (0.1, 3), "log10": (0.1, 3), "log2": (0.1, 3), "sqrt": (0.1, 3), "rsqrt": (0.1, 3),
    "log1p": (-0.9, 3), "gamma": (0.2, 4), "gammaln": (0.2, 4), "tan": (-1.3, 1.3), "reciprocal": (0.3, 3),
    "cbrt": (0.3, 3), "rcbrt": (0.3, 3),
}  # fmt: skip
SMOOTH = ("arctan", "arcsinh", "cos", "cosh", "degrees", "erf", "exp", "expm1", "radians", "sigmoid", "sin", "sinh",
          "softsign", "tanh", "_contrib_div_sqrt_dim")  # fmt: skip
ANY = ("abs", "ceil", "fix", "floor", "negative", "relu", "rint", "round", "sign", "square", "trunc", "_copy",
       "logical_not", "ones_like", "zeros_like", "BlockGrad", "shape_array", "size_array", "Flatten")  # fmt: skip
STEPS = {"fix", "floor", "ceil", "rint", "round", "trunc", "sign", "shape_array", "size_array"}


@draws(*RANGES, *SMOOTH, dtypes=FLOATS)
def unary(d: Draw) -> Case:
    if d.name in ("gamma", "gammaln"):  # MXNet: the digamma function has single precision, and infinities at its poles
        return d.case([d.x(d.shape(), 0.2, 4)], rtol=1e-2 if d.dtype == "float16" else 1e-4, atol=1e-3)
    if d.name == "erf" and d.dtype == "float64":  # MXNet: a constant in single precision
        return d.case([d.x(d.shape())], rtol=1e-6)
    if d.maybe(0.2) and d.dtype != "float16":
        return d.case([d.edges()])
    return d.case([d.x(d.shape(), *RANGES.get(d.name, (-2.0, 2.0)))], np_shape=d.maybe(0.1))


@draws(*ANY, dtypes=ALL)
def any_type(d: Draw) -> Case:
    grads: dict[str, Any] = {"grads": ()} if d.name in ("shape_array", "size_array") else {}
    if d.is_float and d.maybe(0.15):
        return d.case([d.edges()], **grads)
    return d.case([d.x(d.shape())], **grads)


@draws("Activation", dtypes=FLOATS)
def activation(d: Draw) -> Case:
    return d.case(
        [d.edges() if d.maybe(0.15) else d.x(d.shape())],
        {**d.params(), "act_type": d.of(("relu", "sigmoid", "softrelu", "softsign", "tanh"))},
    )


@draws("hard_sigmoid", "smooth_l1", "_contrib_quadratic", "clip", "_contrib_gradientmultiplier", dtypes=FLOATS)
def parametric(d: Draw) -> Case:
    floats = {n: d.real(-1.5, 2) for n, s in d.op.params.__specs__.items() if s.type is float}
    if d.name == "clip":
        floats["a_max"] = floats["a_min"] + d.real(0, 2)
    # MXNet: these parameters are float32
    return d.case(
        [d.x(d.shape())], d.params(**floats), **({"rtol": 1e-5, "atol": 1e-6} if d.dtype == "float64" else {})
    )


EQUAL = ("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "_power", "_maximum", "_minimum", "_hypot",
         "_mod", "_equal", "_not_equal", "_greater", "_greater_equal", "_lesser", "_lesser_equal", "_logical_and",
         "_logical_or", "_logical_xor", "_grad_add")  # fmt: skip
BROADCAST = tuple(f"broadcast_{n}" for n in (
    "add", "sub", "mul", "div", "power", "maximum", "minimum", "hypot", "mod", "equal", "not_equal", "greater",
    "greater_equal", "lesser", "lesser_equal", "logical_and", "logical_or", "logical_xor"))  # fmt: skip


def operand(d: Draw, shape: Shape, left: bool) -> Array:
    """Away from what the op cannot take: negative bases, divisors of 0, integers that divide by 0."""
    if d.name.endswith("power"):
        if not d.is_float:
            return randint(shape, 1, 4)
        return uniform(shape, 0.2, 2.5) if left else d.x(shape)
    if not left and d.name.endswith(("div", "mod")):
        return signed(shape) if d.is_float else randint(shape, 1, 5)
    return d.x(shape)


@draws(*EQUAL, dtypes=(*FLOATS, *FLOATS, *INTS))
def equal_shapes(d: Draw) -> Case:
    shape = d.shape()
    return d.case([operand(d, shape, True), operand(d, shape, False)])


@draws(*BROADCAST, dtypes=(*FLOATS, *FLOATS, *INTS))
def broadcast(d: Draw) -> Case:
    shape = d.shape(high=5)
    pair = [tuple(1 if d.maybe(0.3) else n for n in shape) for _ in "ab"]
    return d.case([operand(d, s, i == 0) for i, s in enumerate(pair)])


SCALAR = tuple(f"_{n}_scalar" for n in (
    "plus", "minus", "rminus", "mul", "div", "rdiv", "mod", "rmod", "power", "rpower", "maximum", "minimum", "hypot",
    "equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal", "logical_and", "logical_or",
    "logical_xor"))  # fmt: skip


@draws(*SCALAR, dtypes=(*FLOATS, *FLOATS, *INTS))
def scalar(d: Draw) -> Case:
    # is_int=False makes the result of whole numbers floating
    number = d.whole(-3, 5) if d.maybe() or not d.is_float else d.real(-2, 3)
    data = d.x(d.shape())
    if d.name in ("_div_scalar", "_mod_scalar"):
        number = number or 2
    if d.name in ("_rdiv_scalar", "_rmod_scalar"):
        data = operand(d, data.shape or (), False) if d.is_float else randint(data.shape or (), 1, 5)
        data = data if not d.is_float else signed(data.shape or ())
    if d.name == "_power_scalar":
        data = uniform(data.shape or (), 0.2, 2.5) if d.is_float else data
        number = number if d.is_float else abs(number)
    if d.name == "_rpower_scalar":
        number = abs(number) or 2
        data = data if d.is_float else randint(data.shape or (), 0, 4)
    if d.dtype == "uint8":
        number = abs(number) or 1
    return d.case([data], {**d.params(is_int=True), "scalar": number})


@draws("sum", "mean", "prod", "max", "min", "nansum", "nanprod", "_square_sum", dtypes=(*FLOATS, *FLOATS, *INTS))
def reduction(d: Draw) -> Case:
    shape = d.shape(high=5)
    axes = d.axes(len(shape))
    # MXNet: () means all axes, and so does exclude with every axis named
    given = d.params(axis=d.of((axes, None, d.axis(len(shape)))))
    data = distinct(shape, -2, 2) if d.name in ("max", "min") and d.is_float and d.maybe() else d.x(shape)
    if d.name in ("sum", "mean") and not d.is_float:
        data = randint(shape, 0, 5)
    if d.name.endswith("prod") and d.is_float:
        data = signed(shape)  # MXNet: the gradient divides by 0
    # MXNet: half precision adds up in half precision
    return d.case([data], given, **({"rtol": 1e-2, "atol": 1e-2} if d.dtype == "float16" else {}))


@draws("norm", dtypes=SINGLE)
def norm(d: Draw) -> Case:
    shape = d.shape(high=4)
    axis = d.of((None, d.axis(len(shape)), tuple(d.rng.sample(range(len(shape)), 2)) if len(shape) > 1 else 0))
    return d.case([d.x(shape)], {**d.params(axis=axis, ord=d.whole(1, 2), out_dtype=None)})


@draws("moments", dtypes=SINGLE)
def moments(d: Draw) -> Case:
    shape = d.shape(high=4)
    return d.case([d.x(shape)], d.params(axes=d.of((None, d.axes(len(shape), 1)))))


@draws("argmax", "argmin", dtypes=SINGLE)
def arg(d: Draw) -> Case:
    shape = d.shape(high=4)
    return d.case([d.x(shape)], d.params(axis=d.of((None, d.axis(len(shape))))), grads=())


@draws("argmax_channel", dtypes=SINGLE)
def channel(d: Draw) -> Case:
    return d.case([d.x(d.shape(2, 2))], grads=())


@draws("sort", "argsort", "topk", dtypes=(*SINGLE, *SINGLE, "int32", "int64", "uint8", "float16"))
def ordering(d: Draw) -> Case:
    shape = d.shape(high=4)
    axis = d.of((None, d.axis(len(shape))))
    size = shape[axis] if axis is not None else None
    data = distinct(shape, -20, 20) if d.dtype not in ("uint8",) else randint(shape, 0, 9)
    given = {"k": d.whole(0, size if size else 3) if d.name == "topk" else None}
    if size is None and d.name == "topk":
        total = 1
        for n in shape:
            total *= n
        given["k"] = d.whole(1, total)
    params = d.params(axis=axis, **{k: v for k, v in given.items() if v is not None})
    differs = d.name == "sort" or params.get("ret_typ") in ("value",)
    return d.case([data], params, **({} if differs else {"grads": ()}))


@draws("add_n", dtypes=(*FLOATS, "int32"))
def many(d: Draw) -> Case:
    shape, n = d.shape(), d.whole(1, 5)
    return d.case([d.x(shape) for _ in range(n)], {"num_args": n})


@draws("where", dtypes=(*FLOATS, "int32", "int64"))
def where(d: Draw) -> Case:
    shape = d.shape(high=3)
    condition = randint(shape if d.maybe() else shape[:1], -1, 2, d.of(("float32", "int32", "float64", "int64")))
    made = d.case([condition, d.x(shape), d.x(shape)])
    return d.case([condition, d.x(shape), d.x(shape)], grads=[g for g in made.grads if g != "condition"])


@draws("Cast", "amp_cast", dtypes=(*FLOATS, "int32", "int64", "uint8", "int8"))
def cast(d: Draw) -> Case:
    # MXNet: a float outside of the integer's range is undefined
    low = 0 if d.is_float else -5
    to = d.of(("float16", "float32", "float64", "int32", "int64", "uint8", "int8"))
    data = uniform(d.shape(), low, 5) if d.is_float else randint(d.shape(), 0, 9)
    # MXNet: gradients pass through whole numbers; in JAX they do not
    return d.case([data], {"dtype": to}, **({} if "float" in to else {"grads": ()}))


@draws("all_finite", "multi_all_finite", dtypes=("float32",))
def finite(d: Draw) -> Case:
    n = d.whole(1, 3) if d.name.startswith("multi") else 1
    arrays = [d.edges() if d.maybe(0.3) else d.x(d.shape()) for _ in range(n)]
    return d.case(arrays, {"num_arrays": n} if d.name.startswith("multi") else {}, grads=())


@draws("multi_sum_sq", dtypes=SINGLE)
def squares(d: Draw) -> Case:
    n = d.whole(1, 4)
    return d.case([d.x(d.shape()) for _ in range(n)], {"num_arrays": n}, grads=())
