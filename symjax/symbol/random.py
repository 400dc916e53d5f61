"""Random samplers as symbols: `mx.sym.random`. Scalars draw one distribution, symbols one per element."""

from __future__ import annotations

from typing import Any

from symjax.base import _Null, numeric_types
from symjax.symbol import _functions
from symjax.symbol._compose import attr_text
from symjax.symbol.symbol import Symbol, call


def _sample(name: str, params: dict[str, Any], shape: Any, dtype: Any, kwargs: dict[str, Any]) -> Symbol:
    """Calls `_sample_<name>` on symbols, or `_random_<name>` on numbers."""
    first = next(iter(params.values()))
    symbols = [isinstance(v, Symbol) for v in params.values()]
    node_name, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    extra = {k: v for k, v in {"shape": shape, "dtype": dtype, **kwargs}.items() if v is not _Null and v is not None}
    attrs = {k: attr_text(k, v) for k, v in extra.items()}
    if isinstance(first, Symbol):
        if not all(symbols):
            raise ValueError("Distribution parameters must all have the same type: all symbols, or all numbers")
        op = f"_sample_{name}"
        return call(op, list(params.values()), attrs, name=node_name, attr=attr)
    if not all(isinstance(v, numeric_types) for v in params.values()):
        raise ValueError(f"Distribution parameters must be either Symbol or numbers, but got {type(first)}")
    op = f"_random_{name}"
    return call(op, (), {**{k: str(v) for k, v in params.items()}, **attrs}, name=node_name, attr=attr)


def uniform(low: Any = 0, high: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Uniform on [low, high)."""
    return _sample("uniform", {"low": low, "high": high}, shape, dtype, kwargs)


def normal(loc: Any = 0, scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Normal with mean `loc` and standard deviation `scale`."""
    if isinstance(loc, Symbol):
        return _sample("normal", {"mu": loc, "sigma": scale}, shape, dtype, kwargs)
    return _sample("normal", {"loc": loc, "scale": scale}, shape, dtype, kwargs)


def randn(*shape: int, **kwargs: Any) -> Symbol:
    """Normal with mean `loc` (0) and standard deviation `scale` (1), of the given dimensions."""
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    return normal(loc, scale, shape, kwargs.pop("dtype", _Null), **kwargs)


def poisson(lam: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Poisson with rate `lam`."""
    return _sample("poisson", {"lam": lam}, shape, dtype, kwargs)


def exponential(scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Exponential with mean `scale`."""
    return _sample("exponential", {"lam": 1.0 / scale}, shape, dtype, kwargs)


def gamma(alpha: Any = 1, beta: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Gamma with shape `alpha` and scale `beta`."""
    return _sample("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, kwargs)


def negative_binomial(k: Any = 1, p: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Number of failures before `k` successes of probability `p`."""
    return _sample("negative_binomial", {"k": k, "p": p}, shape, dtype, kwargs)


def generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any
) -> Symbol:
    """Negative binomial with mean `mu` and dispersion `alpha`."""
    return _sample("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, kwargs)


def multinomial(data: Symbol, shape: Any = _Null, get_prob: bool = True, dtype: Any = "int32", **kwargs: Any) -> Symbol:
    """Categories drawn with the probabilities `data`; with `get_prob` their log likelihood as a second output."""
    attrs = {"get_prob": str(get_prob), "dtype": attr_text("dtype", dtype)}
    if shape is not _Null:
        attrs["shape"] = str(shape)
    return call("_sample_multinomial", (data,), attrs, **kwargs)


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """A random permutation along the first axis."""
    return call("_shuffle", (data,), {}, **kwargs)


def randint(low: int, high: int, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Integers uniform on [low, high)."""
    return _sample("randint", {"low": low, "high": high}, shape, dtype, kwargs)


_get, _names = _functions.fill("random", globals())


def __getattr__(name: str) -> Any:
    return _get(name)


def __dir__() -> list[str]:
    return _names()
