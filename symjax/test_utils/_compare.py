"""Comparing arrays, with tolerances by type and messages that say where they differ most."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.testing as npt

from symjax.ndarray import NDArray
from symjax.util import get_cuda_compute_capability

_EXACT = (np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
_FLOAT64 = np.dtype(np.float64)
Tolerance = float | Mapping[Any, float] | None


def default_dtype() -> type:
    """The type of random arrays: float32."""
    return np.float32


def _table(bfloat16: float, float16: float, float32: float, float64: float) -> dict[np.dtype, float]:
    inexact = {ml_dtypes.bfloat16: bfloat16, np.float16: float16, np.float32: float32, np.float64: float64}
    return {np.dtype(k): v for k, v in {**inexact, **dict.fromkeys(_EXACT, 0)}.items()}


def default_rtols() -> dict[np.dtype, float]:
    """Relative tolerances by type: 1e-2 for float16, 1e-4 for float32, 1e-5 for float64, 0 for what is exact."""
    return _table(2e-2, 1e-2, 1e-4, 1e-5)


def default_atols() -> dict[np.dtype, float]:
    """Absolute tolerances by type: 1e-1 for float16, 1e-3 for float32, 1e-20 for float64, 0 for what is exact."""
    return _table(1e-1, 1e-1, 1e-3, 1e-20)


def default_numeric_eps() -> dict[np.dtype, float]:
    """Steps of finite differences by type."""
    steps = {ml_dtypes.bfloat16: 2.0**-4, np.float16: 2.0**-6, np.float32: 2.0**-9, np.float64: 2.0**-14}
    return {np.dtype(k): v for k, v in steps.items()}


def effective_dtype(dat: Any) -> np.dtype:
    """The type whose precision the numbers have: float16 for float32 of devices that multiply in TF32 or bfloat16."""
    dtype = np.dtype(dat.dtype)
    ctx = getattr(dat, "ctx", None)
    if dtype != np.float32 or ctx is None:
        return dtype
    if ctx.device_type == "tpu":
        return np.dtype(np.float16)
    if ctx.device_type == "gpu" and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0":
        try:
            return np.dtype(np.float16 if get_cuda_compute_capability(ctx) >= 80 else np.float32)
        except Exception:  # not a CUDA device
            return dtype
    return dtype


def get_tolerance(dat: Any, tol: Tolerance, default_tol: Mapping[Any, float]) -> float:
    """The tolerance for an array: a number as it is, otherwise what a table by type says, or else the default's."""
    if isinstance(tol, numbers.Number):
        return tol  # type: ignore[return-value]
    dtype = effective_dtype(dat)
    assert tol is None or isinstance(tol, Mapping)
    return (tol or {}).get(dtype, default_tol[dtype])


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """The tolerances for comparing two arrays: the larger of what each needs."""
    x, y = (a if hasattr(a, "dtype") else np.asarray(a) for a in (x, y))
    return (max(get_tolerance(a, rtol, default_rtols()) for a in (x, y)),
            max(get_tolerance(a, atol, default_atols()) for a in (x, y)))  # fmt: skip


def get_atol(atol: float | None = None, dtype: Any = _FLOAT64) -> float:
    """`atol`, or the default of a type."""
    return default_atols()[dtype] if atol is None else atol


def get_rtol(rtol: float | None = None, dtype: Any = _FLOAT64) -> float:
    """`rtol`, or the default of a type."""
    return default_rtols()[dtype] if rtol is None else rtol


def get_etol(etol: float | None = None) -> float:
    """`etol`, or 0: the part of the elements that may differ."""
    return 0 if etol is None else etol


def _array(x: Any) -> Any:
    """As numpy can compare it."""
    if isinstance(x, NDArray):
        x = x.asnumpy()
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x


def same(a: Any, b: Any) -> bool:
    """Whether two arrays are equal, element by element."""
    return np.array_equal(a, b)


def checkShapes(a: Any, b: Any) -> None:
    """Raises AssertionError if shapes differ."""
    if a.shape != b.shape:
        raise AssertionError(npt.build_err_msg(
            [_array(a), _array(b)], err_msg=f"a.shape = {a.shape} and b.shape = {b.shape} are not equal"))


def almost_equal(a: Any, b: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
                 use_broadcast: bool = True) -> bool:
    """Whether |a - b| <= atol + rtol |b| everywhere; the defaults are those of float64."""
    if not use_broadcast:
        checkShapes(a, b)
    return np.allclose(_array(a), _array(b), rtol=get_rtol(rtol), atol=get_atol(atol), equal_nan=equal_nan)


def locationError(a: Any, b: Any, index: Any, names: tuple[str, str], maxError: bool = False) -> str:
    """The line that tells two elements that differ."""
    return (f"Location of {'maximum ' if maxError else ''}error: {tuple(map(int, index))}, "
            f"{names[0]}={a[index]:.8f}, {names[1]}={b[index]:.8f}")


def _worst(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> tuple[tuple[Any, ...], float]:
    """Where two arrays differ most in terms of the tolerance, and how many times it."""
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(np.equal(a, b), 0, np.abs(a - b))
        violation = difference / (atol + rtol * np.abs(b) + 1e-20)
    return np.unravel_index(np.argmax(violation), violation.shape), float(np.max(violation))


def _fail(a: Any, b: Any, rtol: float, atol: float, names: tuple[str, str], equal_nan: bool,
          mismatches: tuple[int, int]) -> None:
    """Prints the worst differences and raises."""
    shown = [a, b]
    a, b = (np.asarray(x) for x in shown)
    a, b = (x.copy() for x in np.broadcast_arrays(*(x.astype(np.int8) if x.dtype == bool else x for x in (a, b))))
    index, worst = _worst(a, b, rtol, atol)
    message = f"Error {worst:f} exceeds tolerance rtol={rtol:e}, atol={atol:e}"
    if index == ():
        message += ".\n"
    else:
        first = locationError(a, b, index, names, maxError=True)
        n, more = _print_worst(a, b, rtol, atol, names, equal_nan, mismatches)
        message += f" (mismatch {'at least ' if more else ''}{100 * n / a.size:f}%).\n{first}"
    with np.printoptions(threshold=4, suppress=True):
        raise AssertionError(npt.build_err_msg(shown, err_msg=message))


def _print_worst(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, names: tuple[str, str], equal_nan: bool,
                 mismatches: tuple[int, int]) -> tuple[int, bool]:
    """Prints differences from the worst on, and sets them to 0; returns how many there are, or at least are."""
    to_print, to_count = mismatches
    print(f"\n*** Maximum errors for vector of size {a.size}:  rtol={rtol}, atol={atol}\n")
    n = 1
    while n <= a.size:
        index, worst = _worst(a, b, rtol, atol)
        if n <= to_print:
            print(f"{n:3d}: Error {worst:f}  {locationError(a, b, index, names)}")
        a[index] = b[index] = 0
        if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan):
            return n, False
        n += 1
        if n > to_count > 0:
            return n, True
    return n, False


def assert_almost_equal(a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None,
                        names: tuple[str, str] = ("a", "b"), equal_nan: bool = False, use_broadcast: bool = True,
                        mismatches: tuple[int, int] = (10, 10)) -> None:
    """Raises AssertionError unless |a - b| <= atol + rtol |b| everywhere.

    Args:
      a: NDArray, numpy array or number.
      b: the same.
      rtol: relative tolerance, a number or by type; what suits the less precise type if None.
      atol: absolute tolerance, likewise.
      names: what the message calls the two.
      equal_nan: whether NaN equals NaN.
      use_broadcast: whether shapes may differ and stretch.
      mismatches: how many differences are printed, and how many counted (0: all).
    """
    if not use_broadcast:
        checkShapes(a, b)
    rtol, atol = get_tols(a, b, rtol, atol)
    x, y = _array(a), _array(b)
    if x.dtype == y.dtype == np.bool_:
        npt.assert_equal(x, y)
    elif not np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan):
        _fail(_shown(a, x), _shown(b, y), rtol, atol, names, equal_nan, mismatches)


def _shown(given: Any, array: np.ndarray) -> Any:
    """What a message shows: a number as it was given."""
    return given if isinstance(given, numbers.Number) else array


def assert_allclose(a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """`assert_almost_equal` with numpy's tolerances."""
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None,
                                 etol: float | None = None, names: tuple[str, str] = ("a", "b"),
                                 equal_nan: bool = False, mismatches: tuple[int, int] = (10, 10)) -> None:
    """`assert_almost_equal`, but a part `etol` of the elements may differ."""
    if not get_etol(etol):
        assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
        return
    rtol, atol = get_tols(a, b, rtol, atol)
    x, y = _array(a), _array(b)
    equal = np.isclose(x, y, rtol=rtol, atol=atol)
    if 1 - np.count_nonzero(equal) / equal.size > get_etol(etol):
        _fail(x, y, rtol, atol, names, equal_nan, mismatches)


def assert_almost_equal_ignore_nan(a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None,
                                   names: tuple[str, str] = ("a", "b")) -> None:
    """`assert_almost_equal` of what is a number in both."""
    a, b = np.copy(a), np.copy(b)
    nan = np.isnan(a) | np.isnan(b)
    a[nan] = b[nan] = 0
    assert_almost_equal(a, b, rtol, atol, names)


def assert_exception(f: Callable[..., Any], exception_type: Any, *args: Any, **kwargs: Any) -> None:
    """Raises AssertionError unless `f(*args, **kwargs)` raises an exception of a type."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)} did not raise {exception_type}")


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """Compares arrays in (nested) tuples; None equals anything."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple):
        for a, b in zip(t1, t2, strict=False):
            compare_ndarray_tuple(a, b, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def same_array(array1: Any, array2: Any) -> bool:
    """Whether two NDArrays share their memory: a write to the first shows in the second."""
    array1[:] += 1
    shared = same(array1.asnumpy(), array2.asnumpy())
    array1[:] -= 1
    return shared and same(array1.asnumpy(), array2.asnumpy())


def same_symbol_structure(sym1: Any, sym2: Any) -> bool:
    """Whether two symbols have the same operators in the same order."""
    kinds = [[None if n.op is None else n.op.name for n in s._graph.nodes] for s in (sym1, sym2)]
    return kinds[0] == kinds[1]
