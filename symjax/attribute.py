"""Attributes given to all symbols made in a scope (MXNet's `mx.attribute`)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import ClassVar

from symjax.name import _CurrentProperty, current


class AttrScope(metaclass=_CurrentProperty):
    """`with AttrScope(ctx_group="dev1"):` puts the attribute on every variable and operator made inside.

    Raises:
      ValueError: a value is not a string.
    """

    _current: ClassVar[threading.local] = threading.local()

    def __init__(self, **kwargs: str) -> None:
        for k, v in kwargs.items():
            if not isinstance(v, str):
                raise ValueError(f"Attributes need to be string, but {k} is {type(v).__name__}")
        self._attr = kwargs
        self._old: list[AttrScope] = []
        self._own: list[dict[str, str]] = []

    def get(self, attr: Mapping[str, str] | None) -> dict[str, str]:
        """Returns the scope's attributes updated by `attr`."""
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> AttrScope:
        outer = current(AttrScope)
        self._old.append(outer)
        self._own.append(self._attr)
        self._attr = {**outer._attr, **self._attr}
        AttrScope._current.value = self
        return self

    def __exit__(self, *exc: object) -> None:
        self._attr = self._own.pop()
        AttrScope._current.value = self._old.pop()
