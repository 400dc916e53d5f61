"""Builds the function `mx.sym.<op>` of a registered op, and the modules that hold such functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from symjax import _op_functions as common
from symjax.lowering.registry import Op
from symjax.symbol._compose import attr_text, create_node
from symjax.symbol.symbol import Symbol


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Symbol)


def make_function(op: Op, name: str, module: str) -> Callable[..., Any]:
    """Returns the symbol function of an op, with MXNet's signature and a docstring from the registry."""
    bind = common.binder(op, tuple(common.SYM_TAIL), _is_tensor, "Symbol")
    input_names = common.inputs_of(op).names
    hint, numpy = name.lower(), common.is_numpy(module)
    is_list = numpy and f"_npi_{name}" in common.LISTS

    def function(*args: Any, **kwargs: Any) -> Any:
        inputs, rest, by_name = bind(args, kwargs)
        for s in (*inputs, *by_name.values()):
            if s is not None and s.is_numpy is not numpy:
                raise common.refusal(op, name, numpy)
        node_name, attr = rest.pop("name", None), rest.pop("attr", None)
        rest.pop("out", None)
        if numpy and "dtype" in rest and rest["dtype"] is None:  # None stands for the default
            del rest["dtype"]
        attrs = {k: attr_text(k, v) for k, v in rest.items()}
        if input_names:
            named = {n: s._entry for n, s in zip(input_names, inputs, strict=False) if s is not None}
            given = []
        else:
            named, given = {n: s._entry for n, s in by_name.items()}, [s._entry for s in inputs]
        entries = create_node(op, given, named, attrs, node_name, hint, attr).entries()
        if not numpy:
            return Symbol._of(entries)
        made = [_numpy_class()._of([e]) for e in entries]
        return made if is_list or len(made) > 1 else made[0]

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = common.docstring(op, "Symbol", name)
    function.__signature__ = common.signature(op, common.SYM_TAIL)  # type: ignore[attr-defined]
    return function


@functools.cache
def _numpy_class() -> type[Symbol]:
    from symjax.symbol.numpy._symbol import _Symbol

    return _Symbol


function_in = common.finder("symjax.symbol", make_function)


def fill(namespace: str, own: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a module that shows a namespace besides its `own` globals."""
    return common.fill(namespace, own, function_in)
