"""Automatic names of symbols (MXNet's `mx.name`)."""

from __future__ import annotations

import threading
from typing import Any, ClassVar


class _CurrentProperty(type):
    """Gives scope classes MXNet's settable class property `current`."""

    _current: Any

    @property
    def current(cls) -> Any:
        return current(cls)

    @current.setter
    def current(cls, value: Any) -> None:
        cls._current.value = value


def current(cls: Any) -> Any:
    """The innermost open scope of this thread, made on first use."""
    value = getattr(cls._current, "value", None)
    if value is None:
        value = cls._current.value = cls()
    return value


class NameManager(metaclass=_CurrentProperty):
    """Names nodes `<hint><count>`; subclasses change the rule by overriding `get`.

    `with NameManager():` starts the counters afresh inside the block.
    """

    _current: ClassVar[threading.local] = threading.local()

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._old: list[NameManager] = []

    def get(self, name: str | None, hint: str) -> str:
        """Returns `name`, or the next automatic name for `hint` where it is empty."""
        if name:
            return name
        n = self._counter.get(hint, 0)
        self._counter[hint] = n + 1
        return f"{hint}{n}"

    def __enter__(self) -> NameManager:
        self._old.append(current(NameManager))
        NameManager._current.value = self
        return self

    def __exit__(self, *exc: object) -> None:
        NameManager._current.value = self._old.pop()


class Prefix(NameManager):
    """Puts a prefix before every name, automatic or given."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)
