"""Custom operators that MXNet writes in Python over numpy: here JAX code, but for the sampler."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as onp
from jax import lax

from symjax._numpy.front import ARRAYS
from symjax._python_operators import PropType
from symjax.lowering.errors import ShapeError
from symjax.operator import CustomOp, CustomOpProp


def _tuple(text: str) -> tuple[int, ...]:
    value = ast.literal_eval(text)
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class EmptyLike(CustomOpProp):
    """`empty_like_fallback`: zeros of the shape and, unless `dtype` is given, the type of the input."""

    def __init__(self, dtype: str = "None", order: str = "C", subok: str = "False", shape: str = "None") -> None:
        super().__init__()
        self.dtype = None if dtype == "None" else onp.dtype({"bool_": "bool"}.get(dtype, dtype)).type

    def list_arguments(self) -> list[str]:
        return ["prototype"]

    def infer_type(self, in_type: list[Any]) -> Any:
        return in_type, [self.dtype or in_type[0]], []

    def create_jax_operator(self, in_shapes: Any, in_dtypes: Any, is_train: bool) -> Callable[..., Any]:
        return lambda x: jnp.zeros(x.shape, self.dtype or x.dtype)


class Resize(CustomOpProp):
    """`resize_fallback`: the elements in order, repeated as often as `new_shape` needs."""

    def __init__(self, new_shape: str) -> None:
        super().__init__()
        self.new_shape = _tuple(new_shape)

    def list_arguments(self) -> list[str]:
        return ["a"]

    def infer_shape(self, in_shape: list[Any]) -> Any:
        return in_shape, [self.new_shape], []

    def create_jax_operator(self, in_shapes: Any, in_dtypes: Any, is_train: bool) -> Callable[..., Any]:
        size = math.prod(self.new_shape)

        def resize(x: Any) -> Any:
            if not x.size:
                return jnp.zeros(self.new_shape, x.dtype)
            return jnp.tile(x.reshape(-1), -(-size // x.size))[:size].reshape(self.new_shape)

        return resize


class UnravelIndex(CustomOpProp):
    """`unravel_index_fallback`: coordinates of flat indices, along a new first axis."""

    def __init__(self, shape: str) -> None:
        super().__init__()
        self.shape = _tuple(shape)

    def list_arguments(self) -> list[str]:
        return ["indices"]

    def infer_shape(self, in_shape: list[Any]) -> Any:
        return in_shape, [(len(self.shape), *in_shape[0])], []

    def create_jax_operator(self, in_shapes: Any, in_dtypes: Any, is_train: bool) -> Callable[..., Any]:
        def unravel(x: Any) -> Any:
            parts, rest = [], lax.convert_element_type(x, jnp.int64)
            for n in reversed(self.shape):
                parts.append(rest % n)
                rest = rest // n
            return jnp.stack(parts[::-1]).astype(x.dtype)

        return unravel


class MultivariateNormal(CustomOpProp):
    """`mvn_fallback`: draws from the normal distribution of a mean and a covariance."""

    def __init__(self, size: str = "None") -> None:
        super().__init__()
        self.size = () if size == "None" else _tuple(size)

    def list_arguments(self) -> list[str]:
        return ["mean", "cov"]

    def infer_shape(self, in_shape: list[Any]) -> Any:
        mean, cov = map(tuple, in_shape)
        if len(mean) < 1 or len(cov) < 2 or cov[-1] != cov[-2] or cov[-1] != mean[-1]:
            raise ShapeError(f"multivariate_normal: mean (..., n) and cov (..., n, n) expected, got {mean} and {cov}")
        return in_shape, [(*self.size, *onp.broadcast_shapes(mean, cov[:-1]))], []

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        return _Draw()


class _Draw(CustomOp):
    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        mean, cov = (x.as_np_ndarray() for x in in_data)
        self.assign(out_data[0], req[0], draw(mean, cov, out_data[0].shape).as_nd_ndarray())

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        raise NotImplementedError("random.multivariate_normal has no gradient in a graph; on arrays it has")


def draw(mean: Any, cov: Any, shape: tuple[int, ...]) -> Any:
    """Returns `mean + L z` for `cov` = L L^T and standard normal z: an array of `shape`."""
    half = cov.dtype == onp.float16
    factor = ARRAYS.get("cholesky", "numpy.linalg")(cov.astype("float32") if half else cov).astype(cov.dtype)
    z = ARRAYS.get("normal", "numpy.random")(size=shape, dtype=mean.dtype.name, ctx=mean.ctx)
    # MXNet: multiplies z with L from the other side, which gives the covariance L^T L.
    return mean + ARRAYS.get("einsum")("...jk,...k->...j", factor, z)


_PROPS: dict[str, Callable[..., CustomOpProp]] = {
    "empty_like_fallback": EmptyLike, "resize_fallback": Resize, "unravel_index_fallback": UnravelIndex,
    "mvn_fallback": MultivariateNormal}


def make(name: str, kwargs: dict[str, str]) -> PropType:
    """Returns the operator `Custom(op_type=name)` with these parameters."""
    return PropType(_PROPS[name](**kwargs), name)
