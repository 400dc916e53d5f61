"""Typed operator parameters and their text form.

An op declares its parameters as a subclass of `Params`, a frozen dataclass:

    class PoolingParams(Params):
        kernel: Shape = param((), doc="Window, one int per spatial axis.")
        pool_type: Literal["max", "avg"] = param("max", doc="How a window is reduced.")

Symbol files and MXNet's Python front end carry every parameter as text. `Params.parse` reads that text the way
dmlc-core does, and also the spellings found in real files: `(3, 3)`, `[3,3]`, `(3L, 3L)`, `3` for a tuple,
`True`/`true`/`1`, `None`, `1e-05`. Instances are hashable, so they are static arguments of jit.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, dataclass_transform

from symjax.lowering.errors import ParamError, did_you_mean

Shape = tuple[int, ...]
"""A tuple of ints, read from "(1, 2)", "[1,2]", "(3L,)" or a bare "3"."""

OptShape = tuple[int | None, ...]
"""A tuple whose entries may be None, as `slice` begin/end/step."""

Shapes = tuple[tuple[int, ...], ...]
"""A tuple of tuples of ints, read from "((1, 2), (3, 4))"."""

Floats = tuple[float, ...]
"""A tuple of floats."""

NAMED_DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool")
DType = Literal["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]

_META = "symjax"
_TRUE, _FALSE = frozenset({"True", "true", "1"}), frozenset({"False", "false", "0"})
_LONG = re.compile(r"^[+-]?\d+L?$")
_OPENERS = {"(": ")", "[": "]"}


@dataclasses.dataclass(frozen=True)
class Field:
    """What is known about one parameter beside its name, type and default."""

    doc: str = ""
    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    traced: bool = False
    aliases: Mapping[str, Any] | None = None


def param(
    default: Any = dataclasses.MISSING,
    *,
    doc: str = "",
    ge: float | None = None,
    le: float | None = None,
    gt: float | None = None,
    traced: bool = False,
    aliases: Mapping[str, Any] | None = None,
) -> Any:
    """Declares one parameter of an op.

    Args:
      default: value when the text is absent; a parameter without it is required.
      doc: one line for the user.
      ge, le, gt: bounds of a number (checked on every entry of a tuple).
      traced: a number, or a tuple of numbers, that varies from call to call (learning rate, scalar operand): imperative
        calls pass it to the compiled function as an operand, so another value does not compile again. Rules must not
        branch on it; they may take the length of a tuple and index it.
      aliases: other spellings of enum values, e.g. {"NONE": None}.
    """
    meta = {_META: Field(doc, ge, le, gt, traced, aliases)}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=meta)
    return dataclasses.field(default=default, metadata=meta)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(param, dataclasses.field))
class Params:
    """Base of all operator parameter sets; subclasses become frozen keyword-only dataclasses."""

    __specs__: ClassVar[dict[str, Spec]]
    __traced__: ClassVar[dict[str, bool]]  # name -> whether it is a tuple

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, kw_only=True, eq=True, repr=True)(cls)
        hints = typing.get_type_hints(cls)
        cls.__specs__ = {
            f.name: Spec(f.name, hints[f.name], f.default, f.metadata.get(_META, Field()))
            for f in dataclasses.fields(typing.cast(Any, cls))
        }
        cls.__traced__ = {n: typing.get_origin(s.type) is tuple for n, s in cls.__specs__.items() if s.field.traced}

    @classmethod
    def parse(cls, attrs: Mapping[str, str], op: str = "") -> typing.Self:
        """Reads the parameters from attribute text.

        Raises:
          ParamError: a key is unknown or required and missing, or a text cannot be read; all of them are listed.
        """
        return typing.cast(typing.Self, _parse(cls, tuple(attrs.items()), op))

    def to_attrs(self) -> dict[str, str]:
        """Returns the parameters that differ from their defaults as MXNet text."""
        out = {}
        for name, spec in self.__specs__.items():
            value = getattr(self, name)
            if spec.required or value != spec.default:
                out[name] = to_text(value)
        return out


@dataclasses.dataclass(frozen=True)
class Spec:
    """One parameter of an op: name, Python type, default and metadata."""

    name: str
    type: Any
    default: Any
    field: Field

    @property
    def required(self) -> bool:
        return self.default is dataclasses.MISSING

    @functools.cached_property
    def reader(self) -> Callable[[str], Any]:
        return _reader(self.type)

    def read(self, text: str) -> Any:
        if self.field.aliases and text in self.field.aliases:
            return self.field.aliases[text]
        value = self.reader(text)
        for v in value if isinstance(value, tuple) else (value,):
            self._check_bounds(v)
        return value

    def _check_bounds(self, v: Any) -> None:
        f = self.field
        if v is None or isinstance(v, (str, bool)):
            return
        if (f.ge is not None and v < f.ge) or (f.le is not None and v > f.le) or (f.gt is not None and v <= f.gt):
            bounds = [f"{sign} {b:g}" for sign, b in ((">=", f.ge), (">", f.gt), ("<=", f.le)) if b is not None]
            raise ValueError(f"must be {' and '.join(bounds)}")

    def describe(self) -> str:
        """The type as MXNet's documentation words it, e.g. "Shape(tuple), optional, default=()"."""
        tail = "required" if self.required else f"optional, default={to_text(self.default)!r}"
        return f"{type_name(self.type)}, {tail}"


class NoParams(Params):
    """The parameters of an op that has none."""


@functools.lru_cache(maxsize=65536)
def _parse(cls: type[Params], items: tuple[tuple[str, str], ...], op: str) -> Params:
    specs, values, problems = cls.__specs__, {}, []
    for key, text in items:
        spec = specs.get(key)
        if spec is None:
            problems.append(f"unknown parameter {key!r}.{did_you_mean(key, specs)}")
            continue
        try:
            values[key] = spec.read(str(text))
        except (ValueError, OverflowError) as e:
            problems.append(f"parameter {key}={text!r}: {e}")
    problems += [
        f"required parameter {n!r} is missing" for n, s in specs.items() if s.required and n not in dict(items)
    ]
    if problems:
        known = ", ".join(f"{n} ({s.describe()})" for n, s in specs.items()) or "none"
        what = f"operator {op}: " if op else ""
        raise ParamError(f"{what}{'; '.join(problems)}\nParameters of {op or cls.__name__}: {known}")
    return cls(**values)


def read_bool(text: str) -> bool:
    """Reads a dmlc boolean."""
    t = text.strip()
    if t in _TRUE:
        return True
    if t in _FALSE:
        return False
    raise ValueError("expected True, False, 1 or 0")


def read_int(text: str) -> int:
    """Reads an integer; Python 2 longs ("3L") and integral floats ("3.0") occur in old files."""
    t = text.strip()
    if _LONG.match(t):
        return int(t.rstrip("L"))
    if t in ("True", "False"):
        return int(t == "True")
    value = _number(t, "an integer")
    if not value.is_integer():
        raise ValueError("expected an integer")
    return int(value)


def read_float(text: str) -> float:
    """Reads a float ("1e-05", "inf", "nan", "2")."""
    t = text.strip()
    if "_" in t:
        raise ValueError("expected a number")
    return _number(t[:-1] if t.endswith(("L", "f")) and len(t) > 1 and t[-2].isdigit() else t, "a number")


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"expected {what}") from None


def read_tuple(text: str, item: Callable[[str], Any]) -> tuple[Any, ...]:
    """Reads "(1, 2)", "[1,2]", "(3,)", "()", "((1, 2), (3, 4))" or a bare item."""
    t = text.strip()
    if t[:1] in _OPENERS:
        if t[-1:] != _OPENERS[t[0]]:
            raise ValueError("unbalanced brackets")
        t = t[1:-1]
    parts = [p.strip() for p in _at_commas(t)]
    if parts and parts[-1] == "":
        parts.pop()
    return tuple(item(p) for p in parts)


def _at_commas(text: str) -> list[str]:
    """Splits at the commas that stand in no inner bracket."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in _OPENERS) - (c in _OPENERS.values())
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def _enum_reader(choices: tuple[Any, ...]) -> Callable[[str], Any]:
    table = {to_text(c): c for c in choices}

    def read(text: str) -> Any:
        if text in table:
            return table[text]
        raise ValueError(f"expected one of {', '.join(table)}.{did_you_mean(text, table)}".removesuffix("."))

    return read


def _reader(tp: Any) -> Callable[[str], Any]:
    origin = typing.get_origin(tp)
    if origin in (types.UnionType, typing.Union):
        options = [a for a in typing.get_args(tp) if a is not type(None)]
        readers = [_reader(o) for o in options]
        optional = type(None) in typing.get_args(tp)

        def read(text: str) -> Any:
            if optional and text.strip() == "None":
                return None
            error: Exception | None = None
            for r in readers:
                try:
                    return r(text)
                except ValueError as e:
                    error = error or e
            raise error or ValueError("unreadable")

        return read
    if origin is Literal:
        return _enum_reader(typing.get_args(tp))
    if origin is tuple:
        item = _reader(typing.get_args(tp)[0])
        return lambda text: read_tuple(text, item)
    return {bool: read_bool, int: read_int, float: read_float, str: str}[tp]


def to_text(value: Any) -> str:
    """Prints a parameter value the way MXNet's Python front end does (`str`)."""
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(value)


def type_name(tp: Any) -> str:
    """Names a parameter type for messages and docstrings."""
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin in (types.UnionType, typing.Union):
        names = [type_name(a) for a in args if a is not type(None)]
        return " or ".join(names + (["None"] if type(None) in args else []))
    if origin is Literal:
        return "{" + ", ".join(repr(to_text(a)) for a in args) + "}"
    if origin is tuple:
        return "Shape(tuple)" if args[0] is int else f"tuple of <{type_name(args[0])}>"
    return {bool: "boolean", int: "int", float: "float", str: "string"}.get(tp, str(tp))
