"""`mx.libinfo`: the MXNet release whose behaviour symjax has."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["__version__", "find_conf_path", "find_include_path", "find_lib_path"]

__version__ = "1.9.1"


def _none(what: str) -> NoReturn:
    raise RuntimeError(f"Cannot find the MXNet {what}: symjax is Python on JAX and has none. Operators in other "
                       f"languages can be registered with symjax.lowering.registry.op and jax.ffi.")


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """There is no shared library.

    Raises:
      RuntimeError: always.
    """
    _none(f"library {prefix}")


def find_include_path() -> str:
    """There are no header files.

    Raises:
      RuntimeError: always.
    """
    _none("C/C++ headers")


def find_conf_path(prefix: str = "tvmop") -> list[str]:
    """There are no TVM configurations.

    Raises:
      RuntimeError: always.
    """
    _none(f"configuration {prefix}")
