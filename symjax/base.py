"""Names that MXNet keeps in `mx.base`: error classes, type tuples, the placeholder `_Null` and small text helpers.

What MXNet has there for talking to its C library (`check_call`, handles, `ctypes` buffers) has no counterpart here.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symjax.lowering.errors import MXNetError, ShapeError

__all__ = ["MXNetError", "NotImplementedForSymbol", "NotSupportedForSparseNDArray", "build_param_doc", "c_str",
           "classproperty", "data_dir", "data_dir_default", "integer_types", "mx_real_t", "numeric_types", "py_str",
           "register_error", "string_types", "with_metaclass"]

string_types: tuple[type, ...] = (str,)
integer_types: tuple[type, ...] = (int, np.int32, np.int64)
numeric_types: tuple[type, ...] = (float, int, np.generic)
mx_real_t = np.float32


class _NullType:
    """The type of `_Null`, the default of every optional operator parameter: "not given", other than None."""

    _instance: _NullType | None = None

    def __new__(cls) -> _NullType:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "_Null"

    def __reduce__(self) -> tuple[Any, ...]:
        return _NullType, ()


_Null = _NullType()


class _Unsupported(MXNetError):
    """A function that one kind of argument does not have."""

    what = ""

    def __init__(self, function: Callable[..., Any] | str, alias: str | None = None, *args: Any) -> None:
        self.function = function if isinstance(function, str) else function.__name__
        self.alias = alias
        given = f" with arguments ({', '.join(str(type(a)) for a in args)})" if args else ""
        also = f' (namely operator "{alias}")' if alias else ""
        super().__init__(f"Function {self.function}{also}{given} {self.what}")


class NotImplementedForSymbol(_Unsupported):
    """An NDArray method that a Symbol cannot have, because it needs values."""

    what = "is not implemented for Symbol and only available in NDArray."


class NotSupportedForSparseNDArray(_Unsupported):
    """An NDArray method that sparse arrays do not have."""

    what = "is not supported for SparseNDArray and only available in NDArray."


_error_types: dict[str, type[Exception]] = {"MXNetError": MXNetError}


def register_error(func_name: Any = None, cls: Any = None) -> Any:
    """Registers an error class by name; usable as `@register_error` or `@register_error("name")`."""
    if callable(func_name):
        cls, func_name = func_name, func_name.__name__

    def register(error: Any) -> Any:
        _error_types[func_name if isinstance(func_name, str) else error.__name__] = error
        return error

    return register if cls is None else register(cls)


def py_str(x: bytes | str) -> str:
    """Returns the text of UTF-8 bytes."""
    return x.decode("utf-8") if isinstance(x, bytes) else x


def c_str(string: str) -> bytes:
    """Returns the UTF-8 bytes of a text."""
    return string.encode("utf-8")


def data_dir_default() -> str:
    """Returns the folder for downloaded data when `MXNET_HOME` is not set."""
    if platform.system() == "Windows":
        return os.path.join(os.environ.get("APPDATA", os.path.expanduser("~")), "mxnet")
    return os.path.join(os.path.expanduser("~"), ".mxnet")


def data_dir() -> str:
    """Returns the folder for downloaded data: `$MXNET_HOME`, or `data_dir_default()`."""
    return os.environ.get("MXNET_HOME") or data_dir_default()


def build_param_doc(arg_names: Sequence[str], arg_types: Sequence[str], arg_descs: Sequence[str],
                    remove_dup: bool = True) -> str:
    """Returns a numpydoc "Parameters" section from names, types and descriptions of equal length."""
    seen: set[str] = set()
    lines = []
    for name, kind, text in zip(arg_names, arg_types, arg_descs, strict=True):
        if (remove_dup and name in seen) or name == "num_args":
            continue
        seen.add(name)
        lines.append(f"{name} : {kind}" + (f"\n    {text}" if text else ""))
    return "Parameters\n----------\n" + "\n".join(lines) + "\n"


class classproperty:  # MXNet's spelling
    """A property of the class itself, readable on class and instance."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        return self.func(owner if owner is not None else type(obj))


def with_metaclass(meta: type, *bases: type) -> type:
    """Returns a base class with a metaclass (a remnant of Python 2 code)."""
    return meta("temporary_class", bases or (object,), {})


def add_fileline_to_docstring(module: Any, incursive: bool = True) -> None:
    """Does nothing: MXNet appends "From:file:line" to docstrings for its web pages."""
    warnings.warn("add_fileline_to_docstring has no effect in symjax", stacklevel=2)


def dtype_name(dtype: Any) -> str:
    """Returns the name of a dtype given as text, numpy type or dtype object ("float32", "bfloat16", …)."""
    if isinstance(dtype, str):
        try:
            return np.dtype(dtype).name  # "float" and "f4" too
        except TypeError:
            return dtype
    if isinstance(dtype, np.dtype):
        # MXNet: bfloat16 is spelt as a structured uint16.
        return "bfloat16" if dtype.names == ("bfloat16",) else dtype.name
    return np.dtype(dtype).name


def as_shape(shape: Any) -> tuple[int, ...]:
    """Returns a shape given as an int or a sequence of ints.

    Raises:
      ShapeError: it is something else.
    """
    try:
        if isinstance(shape, str):
            raise TypeError
        return tuple(int(d) for d in shape) if isinstance(shape, Iterable) else (int(shape),)
    except (TypeError, ValueError):
        raise ShapeError(f"a shape must be an int or a tuple of ints, got {shape!r}") from None


def names_of(items: Iterable[Any]) -> str:
    """Joins items for a message."""
    return ", ".join(str(i) for i in items)
