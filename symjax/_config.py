"""The few settings of symjax: `symjax.config`."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from symjax.lowering.errors import ParamError, did_you_mean


@dataclasses.dataclass(frozen=True)
class Settings:
    """All settings.

    Attributes:
      compilation_cache_dir: folder for compiled code kept across processes (`SYMJAX_COMPILATION_CACHE_DIR`); None:
        nothing is kept.
      storage_fallback: what to do where a sparse array is used densely: "warn", "error" or "allow".
      exact_mxnet: follow MXNet where it is at fault but models may depend on it, as `symjax ops` lists it by operator.
        Whatever is compiled meanwhile is kept apart: switching takes effect at the next call.
    """

    compilation_cache_dir: str | None = None
    storage_fallback: Literal["warn", "error", "allow"] = "warn"
    exact_mxnet: bool = False


def _from_environment() -> Settings:
    fallback: Any = os.environ.get("SYMJAX_STORAGE_FALLBACK", "warn")
    if os.environ.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE") == "0" and "SYMJAX_STORAGE_FALLBACK" not in os.environ:
        fallback = "allow"
    return Settings(os.environ.get("SYMJAX_COMPILATION_CACHE_DIR") or None, fallback)


class Config:
    """Reads settings as attributes, changes them by `update` or, for a block, by calling.

    symjax.config.update(compilation_cache_dir="~/.cache/symjax")
    with symjax.config(storage_fallback="error"):
        ...
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settings = Settings()
        self._apply(_from_environment())

    def __getattr__(self, name: str) -> Any:
        if name in Settings.__dataclass_fields__:
            return getattr(self._settings, name)
        raise AttributeError(
            f"symjax.config has no setting {name!r}.{did_you_mean(name, Settings.__dataclass_fields__)}"
        )

    def update(self, **changes: Any) -> None:
        """Changes settings. Raises ParamError for an unknown one or a bad value."""
        for k in changes:
            if k not in Settings.__dataclass_fields__:
                raise ParamError(f"unknown setting {k!r}.{did_you_mean(k, Settings.__dataclass_fields__)}")
        if changes.get("storage_fallback", "warn") not in ("warn", "error", "allow"):
            raise ParamError(f"storage_fallback must be warn, error or allow, got {changes['storage_fallback']!r}")
        if not isinstance(changes.get("exact_mxnet", False), bool):
            raise ParamError(f"exact_mxnet must be True or False, got {changes['exact_mxnet']!r}")
        with self._lock:
            self._apply(dataclasses.replace(self._settings, **changes))

    def _apply(self, new: Settings) -> None:
        if new.compilation_cache_dir and new.compilation_cache_dir != self._settings.compilation_cache_dir:
            from symjax.lowering.compile import compilation_cache

            compilation_cache(os.path.expanduser(new.compilation_cache_dir))
        if new.exact_mxnet != self._settings.exact_mxnet:
            from symjax.lowering.habits import set_exact

            set_exact(new.exact_mxnet)
        self._settings = new

    @contextmanager
    def __call__(self, **changes: Any) -> Iterator[Config]:
        before = self._settings
        self.update(**changes)
        try:
            yield self
        finally:
            with self._lock:
                self._apply(before)

    def __repr__(self) -> str:
        return f"symjax.config: {self._settings}"


config = Config()
