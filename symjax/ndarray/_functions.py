"""Builds the function `mx.nd.<op>` of a registered op, and the modules that hold such functions."""

from __future__ import annotations

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
    function = _python_function(op.name) if op.name in _PYTHON else _invoking(op)
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = common.docstring(op, "NDArray", name)
    function.__signature__ = common.signature(op, common.ND_TAIL)  # type: ignore[attr-defined]
    return function


def _python_function(op_name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return importlib.import_module(_PYTHON[op_name]).call(*args, **kwargs)

    return function


def _invoking(op: Op) -> Callable[..., Any]:
    bind = common.binder(op, tuple(common.ND_TAIL), _is_tensor, "NDArray")

    def function(*args: Any, **kwargs: Any) -> Any:
        inputs, attrs, named = bind(args, kwargs)
        attrs.pop("name", None)
        out = attrs.pop("out", None)
        return invoke(op, [x for x in (*inputs, *named.values()) if x is not None], attrs, out)

    return function


function_in = common.finder("symjax.ndarray", make_function)


def fill(namespace: str, own: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a module that shows a namespace besides its `own` globals."""
    return common.fill(namespace, own, function_in)
