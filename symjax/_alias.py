"""`install_as_mxnet`: lets `import mxnet` in other people's modules mean symjax."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_TARGET = "symjax"


class _Loader(importlib.abc.Loader):
    """Gives the symjax module of the same path for a module name under the alias."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return importlib.import_module(self.real)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to do: the module ran under its own name."""


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, alias: str) -> None:
        self.alias = alias

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if fullname != self.alias and not fullname.startswith(self.alias + "."):
            return None
        rest = fullname[len(self.alias) :]
        parent, dot, leaf = rest.rpartition(".")
        short = {"sym": "symbol", "nd": "ndarray"}.get(leaf, leaf) if dot and not parent else leaf
        real = _TARGET + (f"{parent}.{short}" if dot else rest)
        if importlib.util.find_spec(real) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(real), is_package=True)


def install_as_mxnet(alias: str = "mxnet") -> None:
    """Makes `import mxnet` (and its submodules) give symjax in this process.

    Raises:
      ImportError: the real MXNet is imported already.
    """
    present = sys.modules.get(alias)
    if present is not None and present.__name__ != _TARGET:
        raise ImportError(
            f"{alias} is imported already (from {getattr(present, '__file__', '?')}); call install_as_mxnet first"
        )
    if not any(isinstance(f, _Finder) and f.alias == alias for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder(alias))
    sys.modules[alias] = importlib.import_module(_TARGET)
