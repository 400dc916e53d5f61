"""MXNet's `mx.util`: the switches for numpy semantics, and environment helpers.

`np_shape` decides whether a shape () is a scalar and 0 an empty axis (numpy) or both mean "unknown" (classic, the
default); `np_array` whether numpy-like arrays are wanted. Both are per thread.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from symjax.base import c_str as c_str
from symjax.base import py_str as py_str
from symjax.context import Context, gpu_memory_info, num_gpus
from symjax.lowering.errors import DeviceError

T = TypeVar("T")


class _Flags(threading.local):
    shape = False
    array = False


_flags = _Flags()


class _Scope:
    """Sets one flag for a `with` block."""

    def __init__(self, flag: str, active: bool) -> None:
        self._flag, self._active = flag, active
        self._old: list[bool] = []

    def __enter__(self) -> _Scope:
        self._old.append(getattr(_flags, self._flag))
        setattr(_flags, self._flag, self._active)
        return self

    def __exit__(self, *exc: object) -> None:
        setattr(_flags, self._flag, self._old.pop())


def is_np_shape() -> bool:
    """Returns whether numpy's shape semantics are on in this thread."""
    return _flags.shape


def is_np_array() -> bool:
    """Returns whether numpy-like arrays are wanted in this thread."""
    return _flags.array


def set_np_shape(active: bool) -> bool:
    """Switches numpy's shape semantics and returns what they were.

    Raises:
      ValueError: they would be switched off while numpy arrays are on.
    """
    if not active and _flags.array:
        raise ValueError("NumPy shape semantics cannot be deactivated while NumPy array semantics is active; "
                         "call reset_np() to deactivate both")
    old, _flags.shape = _flags.shape, bool(active)
    return old


def set_np(shape: bool = True, array: bool = True) -> None:
    """Switches both semantics.

    Raises:
      ValueError: arrays without shapes.
    """
    if array and not shape:
        raise ValueError("NumPy Shape semantics is required in using NumPy array semantics.")
    _flags.array = bool(array)
    set_np_shape(shape)


def reset_np() -> None:
    """Switches both semantics off."""
    set_np(shape=False, array=False)


def np_shape(active: bool = True) -> _Scope:
    """Returns a scope with numpy's shape semantics on or off."""
    return _Scope("shape", active)


def np_array(active: bool = True) -> _Scope:
    """Returns a scope in which numpy-like arrays are wanted or not."""
    return _Scope("array", active)


def _decorate(func: Any, scope: Callable[[], _Scope], name: str) -> Any:
    if inspect.isclass(func):
        for attr, member in list(vars(func).items()):
            if inspect.isfunction(member):
                setattr(func, attr, _decorate(member, scope, name))
            elif isinstance(member, property) and member.fget is not None:
                setattr(func, attr, property(_decorate(member.fget, scope, name), member.fset, member.fdel,
                                             member.__doc__))
        return func
    if not callable(func):
        raise TypeError(f"{name} can only decorate classes and callable objects, while received a {type(func)}")

    @functools.wraps(func)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        with scope():
            return func(*args, **kwargs)

    return scoped


def use_np_shape(func: T) -> T:
    """Decorates a function, or every method of a class, to run with numpy's shape semantics."""
    return _decorate(func, np_shape, "use_np_shape")


def use_np_array(func: T) -> T:
    """Decorates a function, or every method of a class, to run with numpy-like arrays wanted."""
    return _decorate(func, np_array, "use_np_array")


def use_np(func: T) -> T:
    """Decorates a function or a class to run with both of numpy's semantics."""
    return use_np_shape(use_np_array(func))


def set_module(module: str | None) -> Callable[[T], T]:
    """Returns a decorator that sets `__module__`."""

    def decorate(func: T) -> T:
        if module is not None:
            func.__module__ = module
        return func

    return decorate


def getenv(name: str) -> str | None:
    """Returns an environment variable, None if it is not set."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Sets an environment variable, or removes it for None."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def get_gpu_count() -> int:
    """Returns how many GPUs JAX sees."""
    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Returns (free, total) bytes of a GPU; see `symjax.context.gpu_memory_info`."""
    return gpu_memory_info(gpu_dev_id)


def get_cuda_compute_capability(ctx: Context) -> int:
    """Returns the compute capability of a CUDA GPU, e.g. 90 for 9.0.

    Raises:
      ValueError: the context is not a GPU.
      DeviceError: the GPU is not there, or not a CUDA one.
    """
    if ctx.device_type != "gpu":
        raise ValueError(f"Expecting a gpu context to get cuda compute capability, while received ctx {ctx}")
    value = getattr(ctx.jax_device, "compute_capability", None)
    if value is None:
        raise DeviceError(f"{ctx} has no CUDA compute capability")
    major, _, minor = str(value).partition(".")
    return int(major) * 10 + int(minor or 0)
