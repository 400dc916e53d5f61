"""Methods of Symbol that are the operator of the same name with the symbol as its first input."""

from __future__ import annotations

from typing import Any

from symjax._op_functions import fluent


def _function_in(namespace: str, name: str) -> Any:
    # The functions return symbols, so their module comes after the class.
    from symjax.symbol import _functions

    return _functions.function_in(namespace, name)


_methods = fluent("Symbol", "mx.sym", _function_in)


class Fluent:
    """The operators as methods."""

    __slots__ = ()

    abs, sign, round, rint, fix, floor, ceil, trunc, clip = _methods("abs sign round rint fix floor ceil trunc clip")
    sin, cos, tan, arcsin, arccos, arctan, degrees, radians = _methods(
        "sin cos tan arcsin arccos arctan degrees radians"
    )
    sinh, cosh, tanh, arcsinh, arccosh, arctanh = _methods("sinh cosh tanh arcsinh arccosh arctanh")
    exp, expm1, log, log10, log2, log1p = _methods("exp expm1 log log10 log2 log1p")
    sqrt, rsqrt, cbrt, rcbrt, square, reciprocal = _methods("sqrt rsqrt cbrt rcbrt square reciprocal")
    relu, sigmoid, softmax, log_softmax, softmin = _methods("relu sigmoid softmax log_softmax softmin")
    sum, nansum, prod, nanprod, mean, max, min, norm = _methods("sum nansum prod nanprod mean max min norm")
    argmax, argmin, argmax_channel, argsort, sort, topk = _methods("argmax argmin argmax_channel argsort sort topk")
    take, one_hot, pick, repeat, tile, flip, pad = _methods("take one_hot pick repeat tile flip pad")
    slice, slice_axis, slice_like, split = _methods("slice slice_axis slice_like split")
    transpose, swapaxes, reshape, reshape_like = _methods("transpose swapaxes reshape reshape_like")
    broadcast_axes, broadcast_like, broadcast_to = _methods("broadcast_axes broadcast_like broadcast_to")
    depth_to_space, space_to_depth, shape_array, size_array = _methods(
        "depth_to_space space_to_depth shape_array size_array"
    )
    zeros_like, ones_like = _methods("zeros_like ones_like")

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        """Returns `mx.sym.cast` of this Symbol."""
        return _function_in("op", "cast")(self, *args, **kwargs)

    def diag(self, k: int = 0, **kwargs: Any) -> Any:
        """Returns `mx.sym.diag` of this Symbol."""
        return _function_in("op", "diag")(self, k=k, **kwargs)

    def expand_dims(self, axis: int, inplace: bool = False, **kwargs: Any) -> Any:
        """Returns `mx.sym.expand_dims` of this Symbol; `inplace` does not matter to a graph."""
        return _function_in("op", "expand_dims")(self, axis=axis, **kwargs)

    def flatten(self, inplace: bool = False, **kwargs: Any) -> Any:
        """Returns `mx.sym.flatten` of this Symbol; `inplace` does not matter to a graph."""
        return _function_in("op", "flatten")(self, **kwargs)

    def squeeze(self, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Any:
        """Returns `mx.sym.squeeze` of this Symbol; `inplace` does not matter to a graph."""
        return _function_in("op", "squeeze")(self, axis=axis, **kwargs)

    def split_v2(self, *args: Any, **kwargs: Any) -> Any:
        """Returns `mx.sym.split_v2` of this Symbol."""
        from symjax.symbol.functions import split_v2

        return split_v2(self, *args, **kwargs)  # type: ignore[arg-type]
