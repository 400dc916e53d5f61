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

from symjax._absent import ABSENT, ALIASES
from symjax.libinfo import __version__ as mxnet_version

_TARGET = "symjax"


class _Loader(importlib.abc.Loader):
    """Gives the symjax module of the same path for a module name under the alias."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.spec: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.real)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module, which ran under its own name, the spec back that the import system took from it."""
        module.__spec__ = self.spec


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, alias: str) -> None:
        self.alias = alias

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if not fullname.startswith(self.alias + "."):
            return None
        first, dot, rest = fullname[len(self.alias) + 1 :].partition(".")
        real = f"{_TARGET}.{ALIASES.get(first, first)}{dot}{rest}"
        if importlib.util.find_spec(real) is None:  # raises, with the reason, for a module of MXNet that symjax lacks
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(real), is_package=True)


class _Alias(ModuleType):
    """symjax under another name; only `__version__` differs, which old programs compare with MXNet's releases.

    What is set on it is set on symjax, so that both stay the same.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, sys.modules[_TARGET].__doc__)
        self.__version__ = mxnet_version
        self.__path__ = list(sys.modules[_TARGET].__path__)
        self.__file__ = sys.modules[_TARGET].__file__
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)

    def __getattr__(self, key: str) -> Any:
        try:
            return getattr(sys.modules[_TARGET], key)
        except AttributeError as e:
            if ABSENT.get(ALIASES.get(key, key)) or key.startswith("__"):
                raise
            raise AttributeError(f"{e} ({self.__name__} is symjax here; its names are those of MXNet {mxnet_version}, "
                                 f"and docs/from-mxnet.md tells what differs)") from None

    def __setattr__(self, key: str, value: Any) -> None:
        if key.startswith("__") and key.endswith("__"):
            super().__setattr__(key, value)
        else:
            setattr(sys.modules[_TARGET], key, value)

    def __delattr__(self, key: str) -> None:
        delattr(sys.modules[_TARGET], key)

    def __dir__(self) -> list[str]:
        return dir(sys.modules[_TARGET])


def install_as_mxnet(alias: str = "mxnet") -> None:
    """Makes `import mxnet` (and its submodules) give symjax in this process.

    `mxnet.__version__` is then the release whose behaviour symjax has; every other name is symjax's own object.
    A second call does nothing.

    Raises:
      ImportError: the real MXNet is imported already.
    """
    present = sys.modules.get(alias)
    if isinstance(present, _Alias):
        return
    if present is not None:
        raise ImportError(
            f"{alias} is imported already (from {getattr(present, '__file__', '?')}); call install_as_mxnet first"
        )
    importlib.import_module(_TARGET)
    sys.meta_path.insert(0, _Finder(alias))
    sys.modules[alias] = _Alias(alias)
