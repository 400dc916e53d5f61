"""Functions that make symbols: variables, constants and the operators with scalar forms."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np

from symjax.attribute import AttrScope
from symjax.base import as_shape, integer_types
from symjax.lowering.graph import Entry, Node
from symjax.lowering.infer import TYPE_FLAGS
from symjax.name import current
from symjax.symbol._compose import attr_text, hide
from symjax.symbol._infer import dtype_name
from symjax.symbol.symbol import Symbol, call

STORAGE_TYPES = {"default": 0, "row_sparse": 1, "csr": 2}


def var(
    name: str,
    attr: Mapping[str, str] | None = None,
    shape: Any = None,
    lr_mult: Any = None,
    wd_mult: Any = None,
    dtype: Any = None,
    init: Any = None,
    stype: str | None = None,
    profiler_scope: str | None = None,
    **kwargs: str,
) -> Symbol:
    """Makes a variable.

    Args:
      name: its name.
      attr: attributes as text.
      shape: a shape that takes part in inference; 0 or -1 is an unknown dimension.
      lr_mult, wd_mult: multipliers that optimisers read.
      dtype: its data type; one given at bind wins over it.
      init: an initializer, or its JSON text, that `init_params` uses for this variable.
      stype: storage type "default", "row_sparse" or "csr".
      profiler_scope: accepted and stored.
      **kwargs: further hidden attributes `__key__`.

    Raises:
      TypeError: the name is not a string.
      ValueError: a keyword is unknown.
    """
    if not isinstance(name, str):
        raise TypeError("Expect a string for variable `name`")
    attrs = current(AttrScope).get(attr)
    known = {
        "shape": None if shape is None else str(as_shape(shape)),
        "lr_mult": _text(lr_mult),
        "wd_mult": _text(wd_mult),
        "dtype": None if dtype is None else str(_type_flag(dtype)),
        "init": None if init is None else (init if isinstance(init, str) else init.dumps()),
        "storage_type": None if stype is None else str(_storage_flag(stype)),
        "profiler_scope": profiler_scope,
    }
    out = {hide(k): v for k, v in attrs.items()}
    out.update({f"__{k}__": v for k, v in known.items() if v is not None})
    for k, v in kwargs.items():
        if not (k.startswith("__") and k.endswith("__")):
            raise ValueError(
                f"Attribute name={k} is not supported. Additional attributes must start and end with double "
                f"underscores, e.g, __yourattr__"
            )
        out[k] = v
    for k, v in out.items():
        if not isinstance(v, str):
            raise ValueError(f"attribute {k} of variable {name!r} must be a string, got {type(v).__name__}")
    return Symbol._of((Entry(Node(None, name, out), 0),))


Variable = var


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _type_flag(dtype: Any) -> int:
    name = dtype_name(dtype)
    return next(flag for flag, n in TYPE_FLAGS.items() if n == name)


def _storage_flag(stype: str) -> int:
    if stype not in STORAGE_TYPES:
        raise ValueError(f"stype {stype!r} is not one of {', '.join(STORAGE_TYPES)}")
    return STORAGE_TYPES[stype]


def _init_op(op: str, name: str | None, dtype: Any, kwargs: Mapping[str, Any], **params: Any) -> Symbol:
    params = {**params, **kwargs, "dtype": np.float32 if dtype is None else dtype}
    attr = params.pop("attr", None)
    name = params.pop("name", name)
    attrs = {k: attr_text(k, v) for k, v in params.items()}
    return call(op, (), attrs, name=name, attr=attr)


def zeros(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A constant of zeros; float32 unless `dtype`. A 0 in `shape` is filled by inference."""
    return _init_op("_zeros", None, dtype, kwargs, shape=shape)


def ones(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A constant of ones; float32 unless `dtype`."""
    return _init_op("_ones", None, dtype, kwargs, shape=shape)


def full(shape: Any, val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A constant of `val`; float32 unless `dtype`."""
    return _init_op("_full", None, dtype, kwargs, shape=shape, value=float(val))


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A matrix of `N` rows and `M` (0: N) columns with ones on diagonal `k`."""
    return _init_op("_eye", None, dtype, kwargs, N=N, M=M, k=k)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Evenly spaced values in [start, stop), or [0, start) without `stop`; each `repeat` times."""
    return _init_op(
        "_arange", name, dtype, {}, start=start, stop=stop, step=step, repeat=repeat, infer_range=infer_range
    )


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: Any = None
) -> Symbol:
    """`num` evenly spaced values from `start` to `stop`."""
    return _init_op("_linspace", name, dtype, {}, start=start, stop=stop, num=num, endpoint=endpoint)


def histogram(a: Symbol, bins: Any = 10, range: Any = None, **kwargs: Any) -> Symbol:
    """Counts of the flattened input in equal bins (`bins` an int, with `range`) or between given edges (a Symbol).

    Raises:
      ValueError: `bins` is an int and `range` is missing, or `bins` is something else.
    """
    attrs = {k: attr_text(k, v) for k, v in kwargs.items()}
    if isinstance(bins, Symbol):
        return call("_histogram", (), attrs, named={"data": a, "bins": bins})
    if isinstance(bins, integer_types):
        if range is None:
            raise ValueError("null range is not supported in symbol mode")
        return call("_histogram", (), {**attrs, "bin_cnt": str(bins), "range": str(range)}, named={"data": a})
    raise ValueError("bins argument should be either an integer or an NDArray")


def split_v2(
    ary: Symbol, indices_or_sections: int | tuple[int, ...], axis: int = 0, squeeze_axis: bool = False
) -> Symbol:
    """Splits along `axis` into equal sections (an int) or at indices (a tuple).

    Raises:
      ValueError: `indices_or_sections` is neither.
    """
    if isinstance(indices_or_sections, int):
        indices, sections = [], indices_or_sections
    elif isinstance(indices_or_sections, tuple):
        indices, sections = [0, *indices_or_sections], 0
    else:
        raise ValueError("indices_or_sections must either int or tuple of ints")
    return call(
        "_split_v2",
        (ary,),
        {"indices": str(indices), "axis": str(axis), "squeeze_axis": str(squeeze_axis), "sections": str(sections)},
    )


def _either(left: Any, right: Any, op: str, scalar_op: str, reverse_op: str, plain: Any) -> Any:
    if isinstance(left, Symbol) and isinstance(right, Symbol):
        return call(op, (left, right), {})
    if isinstance(left, Symbol) and isinstance(right, Number):
        return call(scalar_op, (left,), {"scalar": str(right)})
    if isinstance(left, Number) and isinstance(right, Symbol):
        return call(reverse_op, (right,), {"scalar": str(left)})
    if isinstance(left, Number) and isinstance(right, Number):
        return plain(left, right)
    raise TypeError(f"types ({type(left)}, {type(right)}) not supported")


def pow(base: Any, exp: Any) -> Any:
    """base ** exp, elementwise; symbols or numbers."""
    return _either(base, exp, "_Power", "_PowerScalar", "_RPowerScalar", lambda a, b: a**b)


power = pow


def maximum(left: Any, right: Any) -> Any:
    """Elementwise maximum of symbols or numbers."""
    return _either(left, right, "_Maximum", "_MaximumScalar", "_MaximumScalar", lambda a, b: a if a > b else b)


def minimum(left: Any, right: Any) -> Any:
    """Elementwise minimum of symbols or numbers."""
    return _either(left, right, "_Minimum", "_MinimumScalar", "_MinimumScalar", lambda a, b: a if a < b else b)


def hypot(left: Any, right: Any) -> Any:
    """sqrt(left^2 + right^2), elementwise; symbols or numbers."""
    return _either(left, right, "_Hypot", "_HypotScalar", "_HypotScalar", lambda a, b: float(np.hypot(a, b)))
