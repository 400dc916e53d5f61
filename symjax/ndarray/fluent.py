"""Methods of NDArray that are the operator of the same name with the array as its first input."""

from __future__ import annotations

from symjax._op_functions import fluent
from symjax.ndarray._functions import function_in
from symjax.ndarray.storage import NDArrayBase

_methods = fluent("NDArray", "mx.nd", function_in)


class Fluent(NDArrayBase):
    """The operators as methods."""

    __slots__ = ()

    abs, sign, round, rint, fix, floor, ceil, trunc, clip = _methods("abs sign round rint fix floor ceil trunc clip")
    sin, cos, tan, arcsin, arccos, arctan, degrees, radians = _methods(
        "sin cos tan arcsin arccos arctan degrees radians")
    sinh, cosh, tanh, arcsinh, arccosh, arctanh = _methods("sinh cosh tanh arcsinh arccosh arctanh")
    exp, expm1, log, log10, log2, log1p = _methods("exp expm1 log log10 log2 log1p")
    sqrt, rsqrt, cbrt, rcbrt, square, reciprocal = _methods("sqrt rsqrt cbrt rcbrt square reciprocal")
    relu, sigmoid, softmax, log_softmax, softmin = _methods("relu sigmoid softmax log_softmax softmin")
    sum, nansum, prod, nanprod, mean, max, min, norm = _methods("sum nansum prod nanprod mean max min norm")
    argmax, argmin, argmax_channel, argsort, sort, topk = _methods("argmax argmin argmax_channel argsort sort topk")
    take, one_hot, pick, repeat, tile, flip, pad = _methods("take one_hot pick repeat tile flip pad")
    slice, slice_axis, slice_like, split = _methods("slice slice_axis slice_like split")
    transpose, swapaxes, reshape_like, broadcast_axes = _methods("transpose swapaxes reshape_like broadcast_axes")
    depth_to_space, space_to_depth, shape_array, size_array = _methods(
        "depth_to_space space_to_depth shape_array size_array")
    zeros_like, ones_like = _methods("zeros_like ones_like")
