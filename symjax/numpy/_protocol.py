"""numpy's functions on `mx.np.ndarray`: carried out by `mx.np` where it has them, otherwise on the host."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as onp

from symjax._numpy.elementwise import BINARY, COMPARISONS, UNARY
from symjax._numpy.front import ARRAYS
from symjax.ndarray.storage import NDArrayBase
from symjax.ndarray.tape import STATE

_OTHER_NAMES = {"conjugate": None, "divmod": None}
_NOT_OURS = frozenset(("array_equal", "histogram", "shape"))
"""Functions of `mx.np` whose arguments or results are too unlike numpy's."""


@functools.cache
def _functions() -> Mapping[Any, Any]:
    """numpy's functions and the functions of `mx.np` that carry them out."""
    found = {}
    for group, module in (("numpy", onp), ("numpy.linalg", onp.linalg)):
        for name in ARRAYS.names(group):
            theirs = getattr(module, name, None)
            if hasattr(theirs, "_implementation") and name not in _NOT_OURS:
                found[theirs] = ARRAYS.get(name, group)
    return found


def call_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Carries out a function of numpy that was called on an `mx.np.ndarray`.

    Raises:
      ValueError: it has to run on the host while autograd records, or the arrays lie on different devices.
    """
    ours = _functions().get(func)
    if ours is not None:
        if not all(issubclass(t, NDArrayBase) for t in types):
            return NotImplemented
        return ours(*args, **kwargs)
    return _on_host(func, getattr(func, "__name__", str(func)), args, kwargs)


def call_ufunc(ufunc: Any, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """Carries out a universal function of numpy; see `call_function`."""
    if method != "__call__":
        return NotImplemented
    out = kwargs.pop("out", None)
    if out is not None:
        if len(out) != 1:
            raise ValueError("The `out` parameter must have exactly one ndarray")
        kwargs["out"] = out[0]
    name = ufunc.__name__
    if name in UNARY or name in BINARY or name in COMPARISONS or name == "matmul":
        return ARRAYS.get(name)(*inputs, **kwargs)
    return _on_host(ufunc, name, inputs, kwargs)


def _on_host(func: Any, name: str, args: Any, kwargs: Mapping[str, Any]) -> Any:
    if STATE.recording:
        raise ValueError(f"numpy's function {name} runs on the host, where autograd cannot record it; move it out of "
                         f"autograd.record()")
    found: list[Any] = []
    plain = _to_host([args, dict(kwargs)], found)
    contexts = {str(c): c for c in found}
    if len(contexts) > 1:
        raise ValueError(f"the arrays given to {name} lie on different devices: {', '.join(sorted(contexts))}")
    return _from_host(func(*plain[0], **plain[1]), next(iter(contexts.values()), None))


def _to_host(x: Any, contexts: list[Any]) -> Any:
    if isinstance(x, NDArrayBase):
        contexts.append(x.context)
        return onp.asarray(x)
    if isinstance(x, dict):
        return {k: _to_host(v, contexts) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)(_to_host(v, contexts) for v in x)
    return x


def _from_host(x: Any, ctx: Any) -> Any:
    """Makes `mx.np.ndarray`s of the arrays in a result; numbers and everything else stay."""
    from symjax.numpy.multiarray import array

    if isinstance(x, onp.ndarray):
        return array(_known_type(x), ctx=ctx)
    if type(x) in (list, tuple):
        return type(x)(_from_host(v, ctx) for v in x)
    if isinstance(x, tuple):  # a named tuple
        return tuple(_from_host(v, ctx) for v in x)
    return x.item() if isinstance(x, onp.bool_) else x


def _known_type(x: onp.ndarray) -> onp.ndarray:
    """The array in a type that MXNet has: the widest of its kind where it has not this one."""
    if x.dtype.kind == "u" and x.dtype != onp.uint8:
        return x.astype(onp.int64)
    return x.astype(onp.int32) if x.dtype == onp.int16 else x
