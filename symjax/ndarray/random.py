"""Random samplers of NDArrays: `mx.nd.random.*`, also `mx.random.*`.

Each takes its distribution's parameters as numbers, giving an array of `shape`, or as NDArrays, giving `shape` draws
for every element: parameters of shape (x, y) and `shape` (m, n) give (x, y, m, n).
"""

from __future__ import annotations

from typing import Any

from symjax.base import _Null, numeric_types
from symjax.context import Context, current_context
from symjax.ndarray import _functions
from symjax.ndarray.ndarray import NDArray as NDArray
from symjax.ndarray.storage import NDArrayBase

__all__ = ["exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial", "normal",
           "poisson", "randint", "randn", "shuffle", "uniform"]


def _draw(name: str, params: dict[str, Any], shape: Any, dtype: Any, ctx: Context | None, out: Any,
          kwargs: dict[str, Any], sampler: str | None = None) -> Any:
    """Calls `_random_<name>` for numbers, `_sample_<sampler or name>` for NDArrays."""
    arrays = [isinstance(v, NDArrayBase) for v in params.values()]
    common = {"shape": shape, "dtype": dtype, "out": out, **kwargs}
    if all(arrays):
        return _functions.function_in("_internal", f"_sample_{sampler or name}")(*params.values(), **common)
    for v in params.values():
        if isinstance(v, NDArrayBase):
            raise ValueError("Distribution parameters must all have the same type, either NDArray or number")
        if not isinstance(v, numeric_types):
            raise ValueError(f"Distribution parameters must be either NDArray or numbers, but got {type(v)}.")
    if out is None:
        common["ctx"] = current_context() if ctx is None else ctx
        if shape is _Null:
            common["shape"] = (1,)
    return _functions.function_in("_internal", f"_random_{name}")(**params, **common)


def uniform(low: Any = 0, high: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Context | None = None,
            out: Any = None, **kwargs: Any) -> Any:
    """Draws from the uniform distribution on [low, high).

    Args:
      low, high: the bounds; numbers, or NDArrays of one shape.
      shape: int or tuple; (1,) by default, one draw per element for NDArrays.
      dtype: float16, float32 or float64; float32 by default.
      ctx: where, for number parameters; the current context by default.
      out: an array to fill.
    """
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def normal(loc: Any = 0, scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Context | None = None,
           out: Any = None, **kwargs: Any) -> Any:
    """Draws from the normal distribution of mean `loc` and standard deviation `scale`; see `uniform`."""
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out, kwargs)


def randn(*shape: int, **kwargs: Any) -> Any:
    """Draws an array of `shape` from the normal distribution; keywords `loc`, `scale`, `dtype`, `ctx`, `out`."""
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(loc, scale, shape if shape else _Null, kwargs.pop("dtype", _Null), kwargs.pop("ctx", None),
                  kwargs.pop("out", None), **kwargs)


def poisson(lam: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Context | None = None, out: Any = None,
            **kwargs: Any) -> Any:
    """Draws from the Poisson distribution of mean `lam`, as floats; see `uniform`."""
    return _draw("poisson", {"lam": lam}, shape, dtype, ctx, out, kwargs)


def exponential(scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Context | None = None, out: Any = None,
                **kwargs: Any) -> Any:
    """Draws from the exponential distribution of mean `scale`; see `uniform`."""
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out, kwargs)


def gamma(alpha: Any = 1, beta: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Context | None = None,
          out: Any = None, **kwargs: Any) -> Any:
    """Draws from the gamma distribution of shape `alpha` and scale `beta` (mean alpha * beta); see `uniform`."""
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out, kwargs)


def negative_binomial(k: Any = 1, p: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Context | None = None,
                      out: Any = None, **kwargs: Any) -> Any:
    """Draws failures before `k` successes of probability `p`, as floats; see `uniform`."""
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out, kwargs)


def generalized_negative_binomial(mu: Any = 1, alpha: Any = 1, shape: Any = _Null, dtype: Any = _Null,
                                  ctx: Context | None = None, out: Any = None, **kwargs: Any) -> Any:
    """Draws from the negative binomial distribution of mean `mu` and dispersion `alpha`; see `uniform`."""
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, ctx, out, kwargs)


def multinomial(data: Any, shape: Any = _Null, get_prob: bool = False, out: Any = None, dtype: Any = "int32",
                **kwargs: Any) -> Any:
    """Draws category numbers.

    Args:
      data: NDArray of probabilities, (k,) or (batch, k), each row summing to 1.
      shape: draws per row; one by default.
      get_prob: also return the log-likelihoods of the draws.
      out: array(s) to fill.
      dtype: type of the numbers.
    """
    return _functions.function_in("_internal", "_sample_multinomial")(data, shape, get_prob, out=out, dtype=dtype,
                                                                      **kwargs)


def shuffle(data: Any, **kwargs: Any) -> Any:
    """Returns the array with its rows (entries along the first axis) in random order; keyword `out`."""
    return _functions.function_in("_internal", "_shuffle")(data, **kwargs)


def randint(low: int, high: int, shape: Any = _Null, dtype: Any = _Null, ctx: Context | None = None, out: Any = None,
            **kwargs: Any) -> Any:
    """Draws integers from [low, high); dtype int32 (default) or int64; see `uniform`."""
    return _draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


__getattr__, __dir__ = _functions.fill("random", globals())
