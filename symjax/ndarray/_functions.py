"""Builds the function `mx.nd.<op>` of a registered op, and the modules that hold such functions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from symjax import _op_functions as common
from symjax.lowering.registry import Op
from symjax.ndarray.dispatch import invoke
from symjax.ndarray.storage import NDArrayBase

_PYTHON = {"Custom": "symjax._custom_call"}
"""Ops whose function is `call` of a module: on NDArrays, they run without being compiled."""


def _is_tensor(x: Any) -> bool:
    return isinstance(x, NDArrayBase)


def make_function(op: Op, name: str, module: str) -> Callable[..., Any]:
    """Returns the NDArray function of an op, with MXNet's signature and a docstring from the registry."""
    numpy = common.is_numpy(module)
    function = _python_function(op.name, numpy) if op.name in _PYTHON else _invoking(op, name, numpy)
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = common.docstring(op, "NDArray", name)
    function.__signature__ = common.signature(op, common.ND_TAIL)  # type: ignore[attr-defined]
    return function


def _python_function(op_name: str, numpy: bool) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        made = importlib.import_module(_PYTHON[op_name]).call(*args, **kwargs)
        return as_numpy(made) if numpy and kwargs.get("out") is None else made

    return function


def _invoking(op: Op, name: str, numpy: bool) -> Callable[..., Any]:
    bind = common.binder(op, tuple(common.ND_TAIL), _is_tensor, "NDArray")
    is_list = numpy and f"_npi_{name}" in common.LISTS

    def function(*args: Any, **kwargs: Any) -> Any:
        inputs, attrs, named = bind(args, kwargs)
        attrs.pop("name", None)
        out = attrs.pop("out", None)
        given = [x for x in (*inputs, *named.values()) if x is not None]
        for x in given:
            if x.is_numpy is not numpy:
                raise common.refusal(op, name, numpy)
        if not numpy:
            return invoke(op, given, attrs, out)
        if "dtype" in attrs and attrs["dtype"] is None:  # None stands for the default
            del attrs["dtype"]
        if out is not None:
            return invoke(op, given, attrs, out)
        made = as_numpy(invoke(op, given, attrs))
        return [made] if is_list and not isinstance(made, list) else made

    return function


def as_numpy(made: Any) -> Any:
    """Makes new arrays that nothing else holds `mx.np.ndarray`s, in place: the two classes lie alike in memory."""
    cls = _numpy_class()
    for a in made if isinstance(made, (list, tuple)) else (made,):
        a.__class__ = cls
    return made


@functools.cache
def _numpy_class() -> type[Any]:
    from symjax.numpy.multiarray import ndarray

    return ndarray


function_in = common.finder("symjax.ndarray", make_function)


def fill(namespace: str, own: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a module that shows a namespace besides its `own` globals."""
    return common.fill(namespace, own, function_in)
