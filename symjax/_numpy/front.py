"""One definition for each function of `mx.np` that is more than an operator, for arrays and for symbols.

A definition is a function whose first parameter is the front end, a `Front`: it gives the operators (`F.npi.add`,
`F.op.sum`), as functions of NDArrays or of symbols. `fill` makes the functions that a module shows from them.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from symjax import _op_functions as common
from symjax.base import numeric_types
from symjax.lowering.errors import did_you_mean

Definition = Callable[..., Any]

TABLE: dict[str, dict[str, Definition]] = {}
"""Group ("numpy", "numpy.random", …) -> name -> definition."""
_ONLY: dict[tuple[str, str], bool] = {}


def define(group: str = "numpy", name: str | None = None, symbolic: bool | None = None) -> Callable[[Any], Any]:
    """Decorator: enters a definition.

    Args:
      group: the module below `mx` that shows it.
      name: its name there, if not the function's own.
      symbolic: whether symbols alone (True) or arrays alone (False) have it.
    """

    def enter(definition: Definition) -> Definition:
        key = name or definition.__name__.rstrip("_")
        TABLE.setdefault(group, {})[key] = definition
        if symbolic is not None:
            _ONLY[group, key] = symbolic
        return definition

    return enter


class Front:
    """A front end: the operators and classes of `symjax.ndarray` or `symjax.symbol`."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.symbolic = package == "symjax.symbol"
        self._bound: dict[tuple[str, str], Callable[..., Any]] = {}

    @functools.cached_property
    def npi(self) -> Any:
        """The operators `_npi_*`."""
        return importlib.import_module(f"{self.package}.numpy._internal")

    @functools.cached_property
    def op(self) -> Any:
        """The operators `_np_*`."""
        return importlib.import_module(f"{self.package}.numpy._op")

    @functools.cached_property
    def tensor(self) -> type[Any]:
        """`mx.np.ndarray` or `mx.sym.np._Symbol`."""
        if self.symbolic:
            return importlib.import_module("symjax.symbol.numpy._symbol")._Symbol
        return importlib.import_module("symjax.numpy.multiarray").ndarray

    @functools.cached_property
    def base(self) -> type[Any]:
        """`NDArray` or `Symbol`."""
        if self.symbolic:
            return importlib.import_module("symjax.symbol.symbol").Symbol
        return importlib.import_module("symjax.ndarray.ndarray").NDArray

    def get(self, name: str, group: str = "numpy") -> Callable[..., Any]:
        """Returns the function of a definition, or of an operator `_np_*`, made once.

        Raises:
          KeyError: there is none of the name.
        """
        made = self._bound.get((group, name))
        if made is None:
            made = self._bound[group, name] = self._make(name, group)
        return made

    def _make(self, name: str, group: str) -> Callable[..., Any]:
        only = _ONLY.get((group, name))
        if only is not None and only is not self.symbolic:
            raise KeyError(name)
        definition = TABLE.get(group, {}).get(name)
        module = f"{self.package}.{group}"
        if definition is not None:
            return _bind(self, definition, name, module)
        if group != "numpy" or name.startswith("_") or name not in common.names_in("numpy._op"):
            raise KeyError(name)
        generated = getattr(self.op, name)
        shown = SIGNATURES.get(name)
        return generated if self.symbolic or shown is None else with_signature(generated, shown, module)

    def names(self, group: str) -> list[str]:
        """Returns the names of the functions of a group."""
        found = {n for n in TABLE.get(group, {}) if _ONLY.get((group, n), self.symbolic) is self.symbolic}
        return sorted(found | (set(common.names_in("numpy._op")) if group == "numpy" else set()))


ARRAYS, SYMBOLS = Front("symjax.ndarray"), Front("symjax.symbol")


def _bind(F: Front, definition: Definition, name: str, module: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return definition(F, *args, **kwargs)

    signature = inspect.signature(definition)
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=list(signature.parameters.values())[1:], return_annotation=signature.empty)
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = inspect.cleandoc(definition.__doc__ or "")
    return function


SIGNATURES = {
    **dict.fromkeys(("all", "any", "sometrue"), "a, axis=None, keepdims=False, out=None"),
    **dict.fromkeys(("max", "min", "amax", "amin"), "a, axis=None, keepdims=False, out=None"),
    **dict.fromkeys(("prod", "product"), "a, axis=None, dtype=None, keepdims=False, initial=None, out=None"),
    "sum": "a, axis=None, dtype=None, keepdims=False, initial=None, out=None",
    "cumsum": "a, axis=None, dtype=None, out=None", "copy": "a, out=None",
    "diag": "array, k=0", "diagflat": "array, k=0", "diagonal": "a, offset=0, axis1=0, axis2=1",
    "dot": "a, b, out=None", "moveaxis": "a, source, destination", "repeat": "a, repeats, axis=None",
    "reshape": "a, newshape, order='C', out=None", "roll": "a, shift, axis=None", "squeeze": "a, axis=None, out=None",
    "trace": "a, offset=0, axis1=0, axis2=1, out=None", "transpose": "a, axes=None",
}
"""numpy's signatures of the operators that stand in `mx.np` themselves."""


EXTENSION_SIGNATURES = {"constraint_check": "x, msg", "nonzero": "a",
                        "reshape": "a, newshape, reverse=False, order='C'"}
"""The same for `mx.npx`."""


def with_signature(generated: Callable[..., Any], text: str, module: str) -> Callable[..., Any]:
    """Gives an operator's function numpy's signature; its first input may be called by either name."""
    shown, real = text.split(",")[0], next(iter(inspect.signature(generated).parameters))

    @functools.wraps(generated)
    def function(*args: Any, **kwargs: Any) -> Any:
        if shown in kwargs and shown != real:
            kwargs[real] = kwargs.pop(shown)
        return generated(*args, **kwargs)

    function.__module__ = module
    function.__signature__ = inspect.signature(eval(f"lambda {text}: 0"))  # type: ignore[attr-defined]
    return function


def fill(front: Front, group: str, own: dict[str, Any], modules: Sequence[str] = ()
         ) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a module that shows a group besides its `own` globals and submodules."""
    hidden = {"annotations", "front", "fill", "Any", "importlib", "__getattr__", "__dir__"}

    def names() -> list[str]:
        return sorted({*front.names(group), *modules, *(n for n in own if n not in hidden)})

    def get(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{own['__name__']}.{name}")
        if name == "__all__":
            return [n for n in names() if not n.startswith("_")]
        try:
            made = own[name] = front.get(name, group)
        except KeyError:
            near = "" if name.startswith("__") else did_you_mean(name, names())
            raise AttributeError(f"module {own['__name__']!r} has no attribute {name!r}.{near}") from None
        return made

    return get, names


def is_number(x: Any) -> bool:
    """Whether `x` is a Python or numpy number, which operators take as an attribute."""
    return isinstance(x, numeric_types)


def not_supported(x: Any, what: str) -> TypeError:
    """Returns the error for an argument that is neither a number nor an array or symbol of `mx.np`."""
    return TypeError(f"{what}: type {type(x)} not supported; make it an array with mx.np.array")
