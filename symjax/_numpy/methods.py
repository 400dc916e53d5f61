"""Python's operators and the methods that arrays and symbols of `mx.np` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from symjax._numpy.front import Front


def _operator(name: str, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        function = self._front.get(name)
        return function(other, self) if swapped else function(self, other)

    return method


def _unary(name: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        return self._front.get(name)(self)

    return method


GONE = ["abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "argmax_channel", "broadcast_axes",
        "broadcast_like", "cbrt", "ceil", "cos", "cosh", "degrees", "depth_to_space", "diag", "exp", "expand_dims",
        "expm1", "fix", "flip", "floor", "log", "log10", "log1p", "log2", "log_softmax", "nanprod", "nansum", "norm",
        "one_hot", "ones_like", "pad", "pick", "radians", "rcbrt", "reciprocal", "relu", "reshape_like", "rint",
        "rsqrt", "shape_array", "sigmoid", "sign", "sin", "sinh", "size_array", "slice", "slice_axis", "slice_like",
        "softmax", "softmin", "space_to_depth", "split", "split_v2", "sqrt", "square", "tan", "tanh", "tile", "topk",
        "trunc", "zeros_like"]
"""Methods of classic arrays that those of `mx.np` do not have; MXNet keeps them to say so."""


def without(names: list[str]) -> Callable[[type[Any]], type[Any]]:
    """Class decorator: calling one of the methods raises AttributeError with a hint."""

    def gone(name: str, owner: str) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            raise AttributeError(f"{owner} object has no attribute {name}; use a function of mx.np or mx.npx")

        method.__name__ = name
        method.__doc__ = "Not a method of numpy arrays: always raises AttributeError."
        return method

    def decorate(cls: type[Any]) -> type[Any]:
        for name in names:
            setattr(cls, name, gone(name, cls.__name__))
        return cls

    return decorate


class Methods:
    """Operators and methods, each a function of the class's front end."""

    __slots__ = ()
    _front: ClassVar[Front]

    __add__, __sub__, __mul__, __truediv__ = map(_operator, ("add", "subtract", "multiply", "divide"))
    __mod__, __pow__ = map(_operator, ("mod", "power"))
    __radd__, __rmul__ = _operator("add"), _operator("multiply", True)
    __rsub__, __rtruediv__ = _operator("subtract", True), _operator("divide", True)
    __rmod__, __rpow__ = _operator("mod", True), _operator("power", True)
    __div__, __rdiv__ = __truediv__, __rtruediv__
    __eq__, __ne__ = map(_operator, ("equal", "not_equal"))  # pyright: ignore[reportAssignmentType] - arrays
    __gt__, __ge__ = map(_operator, ("greater", "greater_equal"))
    __lt__, __le__ = map(_operator, ("less", "less_equal"))
    __hash__: Any = None

    __abs__ = _unary("absolute")  # MXNet: not for symbols

    def __neg__(self) -> Any:
        return self._front.get("multiply")(self, -1.0)

    @property
    def T(self) -> Any:
        """The array with its axes in reverse order."""
        return self.transpose()

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:
        """Returns the array in another type.

        Args:
          dtype: the type.
          order, casting, subok: "K" or "C", "unsafe" and True.
          copy: whether an array that has the type already is copied.
        """
        if order not in (None, "K", "C"):
            raise ValueError("order must be either 'K' or 'C'")
        if casting != "unsafe":
            raise ValueError("casting must be equal to 'unsafe'")
        if not subok:
            raise ValueError("subok must be equal to True")
        return self._cast(dtype, copy)

    def _cast(self, dtype: Any, copy: bool) -> Any:
        return self._front.npi.cast(self, dtype=dtype)

    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the array in another shape: ints or one tuple, of which one may be -1. Keyword `order="C"`."""
        order = kwargs.pop("order", "C")
        if kwargs:
            raise TypeError(f"{next(iter(kwargs))!r} is an invalid keyword argument for this function")
        if order != "C":
            raise NotImplementedError(f"only supports C-order, while received {order}")
        if not args:
            raise TypeError("reshape() takes exactly 1 argument (0 given)")
        shape = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        return self._front.op.reshape(self, newshape=shape, order=order)

    def flatten(self, order: str = "C") -> Any:
        """Returns the elements along one axis."""
        return self.reshape(-1, order=order)

    def transpose(self, *axes: Any) -> Any:
        """Returns the array with its axes in another order; reversed by default."""
        order: Any = axes or None
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            order = axes[0]
        return self._front.op.transpose(self, axes=order)

    def squeeze(self, axis: Any = None) -> Any:
        """Returns the array without axes of length 1 (all, or those named)."""
        return self._front.op.squeeze(self, axis=axis)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Returns the array with two axes exchanged."""
        return self._front.get("swapaxes")(self, axis1, axis2)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """Returns the array with each element repeated, along an axis or flattened."""
        return self._front.op.repeat(self, repeats=repeats, axis=axis)

    def take(self, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
        """Returns the elements at `indices`; see `mx.np.take`."""
        return self._front.get("take")(self, indices, axis, mode=mode)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """Returns each element held between two numbers."""
        return self._front.get("clip")(self, min, max, out=out)

    def round(self, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
        """Returns each element rounded to `decimals` places."""
        return self._front.get("round")(self, decimals=decimals, out=out, **kwargs)

    def dot(self, b: Any, out: Any = None) -> Any:
        """Returns the dot product; see `mx.np.dot`."""
        return self._front.op.dot(self, b, out=out)

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
        """Returns the array sorted along an axis."""
        # MXNet: always fails, with an attempt to raise the sorted array.
        return self._front.get("sort")(self, axis=axis, kind=kind, order=order)

    def argsort(self, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
        """Returns the indices that would sort the array along an axis."""
        return self._front.get("argsort")(self, axis=axis, kind=kind, order=order)

    def argmax(self, axis: Any = None, out: Any = None) -> Any:
        """Returns the index of the largest element along an axis, or of all."""
        return self._front.get("argmax")(self, axis, out)

    def argmin(self, axis: Any = None, out: Any = None) -> Any:
        """Returns the index of the least element along an axis, or of all."""
        return self._front.get("argmin")(self, axis, out)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Returns the sums of the elements up to each, along an axis or flattened."""
        return self._front.op.cumsum(self, axis=axis, dtype=dtype, out=out)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Returns the sum over an axis, several, or all."""
        return self._front.op.sum(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Returns the product over an axis, several, or all."""
        return self._front.op.prod(self, axis=axis, dtype=dtype, keepdims=keepdims, out=out)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Returns the mean over an axis, several, or all."""
        return self._front.get("mean")(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Returns the standard deviation over an axis, several, or all."""
        return self._front.get("std")(self, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, out=out)

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """Returns the variance over an axis, several, or all."""
        return self._front.get("var")(self, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Returns the largest element over an axis, several, or all."""
        return self._front.op.max(self, axis=axis, keepdims=keepdims, out=out)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Returns the least element over an axis, several, or all."""
        return self._front.op.min(self, axis=axis, keepdims=keepdims, out=out)

    def as_np_ndarray(self) -> Any:
        """Returns this object, which is numpy's kind already."""
        return self
