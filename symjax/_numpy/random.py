"""Functions of `mx.np.random` and `mx.npx.random`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symjax._numpy.front import define
from symjax.context import current_context

_define = define("numpy.random")


def _draw(F: Any, op: str, params: dict[str, Any], size: Any, ctx: Any, out: Any, **extra: Any) -> Any:
    """Calls a sampler: parameters that are arrays become inputs, and None as attributes."""
    arrays = [v for v in params.values() if isinstance(v, F.tensor)]
    numbers = {k: None if isinstance(v, F.tensor) else v for k, v in params.items()}
    return getattr(F.npi, op)(*arrays, **numbers, size=None if isinstance(size, tuple) and not size else size,
                              ctx=ctx or current_context(), **extra, out=out)


_SAMPLER = """{what}

    Args:
      {args}: {those}numbers or arrays, which broadcast.
      size: the shape; by default that of the parameters, () for numbers.
      {dtype}ctx: where; the current context by default.
      out: array to fill instead.
    """


def _text(what: str, args: Sequence[str], dtype: bool) -> str:
    return _SAMPLER.format(what=what, args=", ".join(args), those="the parameters, " if len(args) > 1 else "",
                           dtype="dtype: the element type, float32 by default.\n      " if dtype else "")


@_define
def uniform(F: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None,
            out: Any = None) -> Any:
    return _draw(F, "uniform", {"low": low, "high": high}, size, ctx, out, dtype=dtype or "float32")


@_define
def normal(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None,
           out: Any = None) -> Any:
    return _draw(F, "normal", {"loc": loc, "scale": scale}, size, ctx, out, dtype=dtype or "float32")


@_define
def logistic(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    return _draw(F, "logistic", {"loc": loc, "scale": scale}, size, ctx, out)


@_define
def gumbel(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    return _draw(F, "gumbel", {"loc": loc, "scale": scale}, size, ctx, out)


@_define
def rayleigh(F: Any, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    return _draw(F, "rayleigh", {"scale": scale}, size, ctx, out)


@_define
def exponential(F: Any, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    return _draw(F, "exponential", {"scale": scale}, size, ctx, out)


@_define
def weibull(F: Any, a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    return _draw(F, "weibull", {"a": a}, size, ctx, out)


@_define
def pareto(F: Any, a: Any, size: Any = None, ctx: Any = None, out: Any = None) -> Any:
    return _draw(F, "pareto", {"a": a}, size, ctx, out)


@_define
def gamma(F: Any, shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None,
          out: Any = None) -> Any:
    if out is not None and not F.symbolic:
        size = out.shape
    return _draw(F, "gamma", {"shape": shape, "scale": scale}, size, ctx, out, dtype=dtype or "float32")


for _function, _what, _args, _dtype in (
    (uniform, "Draws from the uniform distribution on [low, high).", ("low", "high"), True),
    (normal, "Draws from the normal distribution of mean `loc` and deviation `scale`.", ("loc", "scale"), True),
    (logistic, "Draws from the logistic distribution of mean `loc` and scale `scale`.", ("loc", "scale"), False),
    (gumbel, "Draws from the Gumbel distribution of mode `loc` and scale `scale`.", ("loc", "scale"), False),
    (rayleigh, "Draws from the Rayleigh distribution of mode `scale`.", ("scale",), False),
    (exponential, "Draws from the exponential distribution of mean `scale`.", ("scale",), False),
    (weibull, "Draws from the Weibull distribution of shape `a` and scale 1.", ("a",), False),
    (pareto, "Draws from the Pareto distribution of shape `a`, less 1.", ("a",), False),
    (gamma, "Draws from the gamma distribution of `shape` and `scale` (mean shape * scale).", ("shape", "scale"), True),
):
    _function.__doc__ = _text(_what, _args, _dtype)


@_define
def power(F: Any, a: Any, size: Any = None) -> Any:
    """Draws from the distribution of density a x^(a - 1) on [0, 1]; `size` as for `uniform`."""
    arrays, number = ([a], None) if isinstance(a, F.tensor) else ([], a)
    return F.npi.powerd(*arrays, a=number, size=None if size == () else size)


@_define
def lognormal(F: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None,
              out: Any = None) -> Any:
    """Draws exp(x) for x normal with `mean` and standard deviation `sigma`; see `normal`."""
    # MXNet: `out` receives x and another array is returned.
    return F.get("exp")(F.get("normal", "numpy.random")(mean, sigma, size, dtype, ctx), out=out)


@_define
def beta(F: Any, a: Any, b: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Draws from the beta distribution of `a` and `b`: X / (X + Y) for two gamma draws; see `gamma`."""
    draw = F.get("gamma", "numpy.random")
    x, y = (draw(v, 1, size=size, dtype="float64", ctx=ctx) for v in (a, b))
    return (x / (x + y)).astype(dtype or "float32")


@_define
def chisquare(F: Any, df: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Draws from the chi-square distribution of `df` degrees of freedom."""
    # MXNet: the scale of the gamma draws is 1/2, which makes this a quarter of a chi-square variable.
    return F.get("gamma", "numpy.random")(df / 2, 2, size=size, dtype=dtype, ctx=ctx)


@_define
def randint(F: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None,
            out: Any = None) -> Any:
    """Draws integers from [low, high), or [0, low) without `high`.

    Args:
      low, high: the bounds.
      size: the shape, () by default.
      dtype: int32 or int64 (the default).
      ctx: where; the current context by default.
      out: array to fill instead.
    """
    if high is None:
        low, high = 0, low
    return F.npi.random_randint(low, high, shape=() if size is None else size, dtype="int" if dtype is None else dtype,
                                ctx=ctx or current_context(), out=out)


@_define
def rand(F: Any, *size: int, **kwargs: Any) -> Any:
    """Draws an array of shape `size` from the uniform distribution on [0, 1); keywords as for `uniform`."""
    return F.get("uniform", "numpy.random")(0, 1, size=size, **kwargs)


@define("numpy.random", symbolic=False)
def randn(F: Any, *size: int, **kwargs: Any) -> Any:
    """Draws an array of shape `size` from the standard normal distribution; keywords as for `normal`."""
    return F.get("normal", "numpy.random")(0, 1, size=size, **kwargs)


@_define
def choice(F: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, ctx: Any = None,
           out: Any = None) -> Any:
    """Draws elements of a vector, or integers from [0, a).

    Args:
      a: a vector, or a number.
      size: the shape, () by default.
      replace: whether an element can be drawn twice.
      p: an array of the probabilities; all alike by default.
      ctx: where, for a number.
      out: array to fill, for a number.
    """
    is_array = isinstance(a, F.tensor)
    common = {"a": None if is_array else a, "size": None if size == () else size, "replace": replace,
              "ctx": None if is_array else ctx or current_context(), "weighted": p is not None}
    inputs = ([a] if is_array else []) + ([] if p is None else [p])
    if is_array:
        return F.npi.take(a, F.npi.choice(*inputs, **common))
    return F.npi.choice(*inputs, **common, out=out)


@_define
def shuffle(F: Any, x: Any) -> None:
    """Puts the rows of an array (entries along the first axis) in random order, in place."""
    F.npi.shuffle(x, out=x)


@define("numpy.random", symbolic=False)
def multinomial(F: Any, n: int, pvals: Any, size: Any = None, **kwargs: Any) -> Any:
    """Draws how often each outcome occurs in `n` trials of the probabilities `pvals` (an array or a flat list)."""
    if kwargs:
        raise TypeError(f"multinomial: unknown keywords {', '.join(sorted(kwargs))}")
    if isinstance(pvals, F.base):
        return F.npi.multinomial(pvals, pvals=None, n=n, size=size)
    if not isinstance(pvals, (list, tuple)) or any(isinstance(i, (list, tuple)) for i in pvals):
        raise ValueError(f"multinomial: pvals must be an mx.np array or a flat list, got {pvals!r:.80}")
    return F.npi.multinomial(n=n, pvals=pvals, size=size)


@_define
def multivariate_normal(F: Any, mean: Any, cov: Any, size: Any = None, check_valid: Any = None, tol: Any = None) -> Any:
    """Draws vectors from the normal distribution of a mean and a covariance.

    Args:
      mean: (..., n).
      cov: (..., n, n), symmetric positive definite.
      size: the shape in front of the one that `mean` and `cov` broadcast to.
      check_valid, tol: not supported.
    """
    if check_valid is not None or tol is not None:
        raise NotImplementedError("multivariate_normal: check_valid and tol are not supported")
    if not F.symbolic:
        from symjax._numpy.fallback_ops import MultivariateNormal, draw

        return draw(mean, cov, MultivariateNormal(str(size)).infer_shape([mean.shape, cov.shape])[1][0])
    return F.npi.Custom(mean, cov, op_type="mvn_fallback", size=size)


# ---- mx.npx.random


@define("numpy_extension.random")
def bernoulli(F: Any, prob: Any = None, logit: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None,
              out: Any = None) -> Any:
    """Draws 0 and 1.

    Args:
      prob: the probability of 1, a number or an array.
      logit: its log-odds; one of the two must be given.
      size, dtype, ctx, out: as for `mx.np.random.uniform`.

    Raises:
      ValueError: both are given, or none.
    """
    if (prob is None) == (logit is None):
        raise ValueError("Either `prob` or `logit` must be specified, but not both. "
                         f"Received prob={prob}, logit={logit}")
    return _draw(F, "bernoulli", {"prob": prob, "logit": logit}, size, ctx, out, is_logit=logit is not None,
                 dtype=dtype or "float32")


@define("numpy_extension.random")
def uniform_n(F: Any, low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: Any = None,
              ctx: Any = None) -> Any:
    """Draws from the uniform distribution, `batch_shape` times for each element of the parameters' common shape."""
    return _draw(F, "uniform_n", {"low": low, "high": high}, batch_shape, ctx, None, dtype=dtype or "float32")


@define("numpy_extension.random")
def normal_n(F: Any, loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: Any = None,
             ctx: Any = None) -> Any:
    """Draws from the normal distribution, `batch_shape` times for each element of the parameters' common shape."""
    return _draw(F, "normal_n", {"loc": loc, "scale": scale}, batch_shape, ctx, None, dtype=dtype or "float32")
