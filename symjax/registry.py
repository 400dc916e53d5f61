"""Registries of classes that text can name: `["xavier", {"magnitude": 2}]` (MXNet's `mx.registry`)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

from symjax.lowering.errors import ArgumentError, MXNetError, did_you_mean


class SpecError(MXNetError, ValueError):
    """A text does not describe an instance of a registered class."""


_REGISTRY: dict[type, dict[str, type]] = {}


def get_registry(base_class: type) -> dict[str, type]:
    """Returns a copy of the classes registered under a base class, by lower-case name."""
    return _REGISTRY.setdefault(base_class, {}).copy()


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Returns `register(klass, name=None)`, usable as a class decorator.

    Args:
      base_class: what may be registered: its subclasses.
      nickname: what messages call them.
    """
    classes = _REGISTRY.setdefault(base_class, {})

    def register(klass: type, name: str | None = None) -> type:
        if not (isinstance(klass, type) and issubclass(klass, base_class)):
            raise ArgumentError(f"Can only register subclass of {base_class.__name__}, got {klass!r}")
        key = (klass.__name__ if name is None else name).lower()
        old = classes.get(key)
        if old is not None:
            warnings.warn(f"New {nickname} {klass.__module__}.{klass.__name__} registered with name {key} is "
                          f"overriding existing {nickname} {old.__module__}.{old.__name__}", UserWarning, stacklevel=2)
        classes[key] = klass
        return klass

    register.__doc__ = f"Registers a class as {nickname} under its name in lower case, and returns it."
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Returns `alias(*names)`, a class decorator that registers a class under further names."""
    register = get_register_func(base_class, nickname)

    def alias(*aliases: str) -> Callable[[type], type]:
        def reg(klass: type) -> type:
            for name in aliases:
                register(klass, name)
            return klass

        return reg

    alias.__doc__ = f"Class decorator: registers a {nickname} under further names."
    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """Returns `create(spec, *args, **kwargs)`, which makes an instance of a registered class.

    `spec` is an instance (returned as it is), a registered name, JSON text `["name", {arguments}]` or
    `{"<nickname>": "name", argument: value}`, or such a dict.
    """
    classes = _REGISTRY.setdefault(base_class, {})

    def from_json(text: str) -> Any:
        try:
            spec = json.loads(text)
        except ValueError as e:
            raise SpecError(f"{nickname} {text!r:.100} is not JSON: {e}") from None
        if isinstance(spec, dict):
            return create(**spec)
        if not (isinstance(spec, list) and len(spec) == 2 and isinstance(spec[0], str) and isinstance(spec[1], dict)):
            raise SpecError(f'{nickname} {text!r:.100} is not of the form ["name", {{arguments}}]')
        return create(spec[0], **spec[1])

    def create(*args: Any, **kwargs: Any) -> Any:
        name, *rest = args if args else (kwargs.pop(nickname),)
        if isinstance(name, base_class):
            if rest or kwargs:
                raise ArgumentError(f"{nickname} is already an instance. Additional arguments are invalid")
            return name
        if isinstance(name, dict):
            return create(**name)
        if not isinstance(name, str):
            raise ArgumentError(f"{nickname} must be of string type, got {type(name).__name__}")
        if name.startswith(("[", "{")):
            if rest or kwargs:
                raise ArgumentError(f"{nickname} is given as JSON. Additional arguments are invalid")
            return from_json(name)
        if name.lower() not in classes:
            raise ArgumentError(f"{name.lower()} is not registered. Please register with {nickname}.register first."
                                f"{did_you_mean(name.lower(), classes)}")
        return classes[name.lower()](*rest, **kwargs)

    create.__doc__ = (f"Returns the {nickname} that a name, JSON text or dict describes, made with the given "
                      f"arguments; an instance is returned as it is.")
    return create
