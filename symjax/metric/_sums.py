"""What metrics add up, on the device: one compiled call per update, and no number fetched.

The state of a metric is a float64 vector. A step is a function `(state, labels, preds, option) -> state` of tuples of
arrays; most steps add sums over the batch to the state.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

Arrays = tuple[Any, ...]
Step = Callable[[Any, Arrays, Arrays, Any], Any]
Sums = Callable[[Arrays, Arrays, Any], Sequence[Any]]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled(step: Step, option: Any, state: Any, labels: Arrays, preds: Arrays) -> Any:
    return step(state, labels, preds, option)


def run(step: Step, option: Any, state: Any, size: int, labels: Sequence[Any], preds: Sequence[Any]) -> Any:
    """Returns the state after one step, without waiting for it.

    Args:
      step: what to do.
      option: hashable; what else it depends on.
      state: the state before; None for zeros.
      size: how many numbers the state has.
      labels: JAX or numpy arrays, moved to the devices of the predictions if they are elsewhere.
      preds: JAX or numpy arrays.
    """
    with jax.enable_x64(True):
        home = _home(preds)
        labels, preds = _together(labels, home), _together(preds, home)
        if state is None:
            state = np.zeros(size) if home is None else _zeros(size, _replicated(home))
        else:
            (state,) = _together((state,), home)
        return _compiled(step, option, state, labels, preds)


def _home(preds: Sequence[Any]) -> Any:
    """Where the first prediction is; None for numpy arrays."""
    return next((p.sharding for p in preds if hasattr(p, "sharding")), None)


def _together(arrays: Sequence[Any], home: Any) -> Arrays:
    """Arrays on the devices of a sharding, copied there, whole, if they are elsewhere; numpy arrays as they are."""
    if home is None:
        return tuple(arrays)
    devices = home.device_set
    return tuple([x if not hasattr(x, "sharding") or x.sharding.device_set == devices
                  else jax.device_put(x, _replicated(home)) for x in arrays])


@functools.lru_cache(maxsize=256)
def _replicated(sharding: Any) -> Any:
    """A sharding of anything, whole, on each device of another sharding."""
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, PartitionSpec())
    return sharding


@functools.lru_cache(maxsize=256)
def _zeros(size: int, sharding: Any) -> Any:
    return jax.device_put(np.zeros(size), sharding)


def fetch(arrays: Any) -> Any:
    """Returns arrays as numpy arrays, waiting for them: the only way from a metric's device arrays to the host."""
    return jax.device_get(arrays)


def summing(sums: Sums) -> Step:
    """Makes a step that adds what `sums(labels, preds, option)` gives to the state."""

    @functools.wraps(sums)
    def step(state: Any, labels: Arrays, preds: Arrays, option: Any) -> Any:
        return state + jnp.stack([jnp.asarray(x, jnp.float64) for x in sums(labels, preds, option)])

    return step


def _each(term: Callable[..., Sequence[Any]]) -> Step:
    """Makes a step that adds up `term(label, pred, option)` over the pairs of an update."""

    @functools.wraps(term)
    def sums(labels: Arrays, preds: Arrays, option: Any) -> Sequence[Any]:
        terms = [term(label, pred, option) for label, pred in zip(labels, preds, strict=True)]
        return [sum(column) for column in zip(*terms, strict=True)]

    return summing(sums)


def _total(x: Any) -> Any:
    return jnp.sum(x, dtype=jnp.float64)


def _wide(x: Any) -> Any:
    """Half precision as float32."""
    return x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x


# ---- classes


def _indices(label: Any, pred: Any, axis: int) -> tuple[Any, Any]:
    """The classes of labels and predictions as int32; scores have an axis of classes."""
    if pred.shape != label.shape:
        pred = lax.argmax(pred, axis % pred.ndim, jnp.int32)
    return label.astype(jnp.int32), pred.astype(jnp.int32)


@_each
def correct(label: Any, pred: Any, axis: int) -> Sequence[Any]:
    """How many classes agree, in the order of storage."""
    label, pred = _indices(label, pred, axis)
    return [_total(label.reshape(-1) == pred.reshape(-1))]


@_each
def correct_in_top(label: Any, pred: Any, k: int) -> Sequence[Any]:
    """How many labels are among the `k` best scores of their row."""
    _, best = lax.top_k(pred.astype(jnp.float32), k)
    return [_total(best == label.astype(jnp.int32).reshape(-1, 1))]


def indices(label: Any, pred: Any, axis: int) -> tuple[Any, Any]:
    """The classes of labels and predictions as int32, flat."""
    with jax.enable_x64(True):
        return _flat_indices(*_together((label, pred), _home([pred])), axis)


@functools.partial(jax.jit, static_argnums=2)
def _flat_indices(label: Any, pred: Any, axis: int) -> tuple[Any, Any]:
    label, pred = _indices(label, pred, axis)
    return label.reshape(-1), pred.reshape(-1)


def _confusion(label: Any, pred: Any, option: Any) -> Sequence[Any]:
    """True and false positives, false and true negatives; whether there is a third class."""
    label = label.astype(jnp.int32)
    found, true = lax.argmax(pred, 1, jnp.int32) == 1, label == 1
    third = jnp.any((label != label.min()) & (label != label.max())) if label.size else 0
    cells = [_total(found & true), _total(found & ~true), _total(~found & true), _total(~found & ~true)]
    return [*cells, jnp.asarray(third, jnp.float64)]


confusion = _each(_confusion)


def confusion_score(labels: Arrays, preds: Arrays, score: Callable[..., Any]) -> Sequence[Any]:
    """The score of the confusion matrix of one update; whether there is a third class."""
    terms = [_confusion(label, pred, None) for label, pred in zip(labels, preds, strict=True)]
    *cells, third = [sum(column, jnp.float64(0)) for column in zip(*terms, strict=True)] or [jnp.float64(0)] * 5
    return [score(jnp, *cells), third]


scores = summing(confusion_score)


def f_score(xp: Any, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    """F1 = 2 p r / (p + r) of precision p and recall r; 0 where it is not defined."""

    def ratio(a: Any, b: Any) -> Any:
        return xp.where(b > 0, a / xp.where(b > 0, b, 1.0), 0.0)

    p, r = ratio(tp, tp + fp), ratio(tp, tp + fn)
    return ratio(2 * p * r, p + r)


def matthews(xp: Any, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    """Matthews' correlation (tp tn - fp fn) / sqrt(product of the margins); margins of 0 are left out."""
    product = 1.0
    for margin in (tp + fp, tp + fn, tn + fp, tn + fn):
        product = product * xp.where(margin == 0, 1.0, margin)
    return (tp * tn - fp * fn) / xp.sqrt(product)


# ---- likelihoods


@_each
def log_loss(label: Any, pred: Any, eps: float) -> Sequence[Any]:
    """-Σ log(p[label] + eps); how many labels are not classes of the predictions."""
    label, n = label.reshape(-1).astype(jnp.int64), pred.shape[1]
    outside = (label < -n) | (label >= n)
    p = _wide(pred[jnp.arange(label.size, dtype=jnp.int64), jnp.where(outside, 0, label)])
    return [_total(-jnp.log(p + eps)), _total(outside)]


@_each
def perplexity(label: Any, pred: Any, option: tuple[Any, int]) -> Sequence[Any]:
    """-Σ log max(1e-10, p[label]) of the labels that count; how many do not."""
    ignored, axis = option
    label, axis = label.reshape(-1), axis % pred.ndim
    at = jnp.clip(label.astype(jnp.int32), 0, pred.shape[axis] - 1)
    p = _wide(jnp.take_along_axis(pred, jnp.expand_dims(at, axis), axis)).reshape(-1)
    skip = jnp.zeros(label.shape, bool) if ignored is None else label.astype(jnp.float64) == float(ignored)
    return [_total(-jnp.log(jnp.maximum(1e-10, jnp.where(skip, 1, p)))), _total(skip)]


# ---- differences


def _difference(label: Any, pred: Any) -> Any:
    label, pred = (x[:, None] if x.ndim == 1 else x for x in (label, pred))
    return _wide(label) - _wide(pred)


def _mean(x: Any) -> Any:
    return jnp.mean(x, dtype=jnp.float64)


@_each
def mean_absolute(label: Any, pred: Any, option: Any) -> Sequence[Any]:
    """Mean of |label - pred|."""
    return [_mean(jnp.abs(_difference(label, pred)))]


@_each
def mean_square(label: Any, pred: Any, option: Any) -> Sequence[Any]:
    """Mean of (label - pred)²."""
    return [_mean(_difference(label, pred) ** 2.0)]


@_each
def root_mean_square(label: Any, pred: Any, option: Any) -> Sequence[Any]:
    """Root of the mean of (label - pred)²."""
    return [jnp.sqrt(_mean(_difference(label, pred) ** 2.0))]


@_each
def correlation(label: Any, pred: Any, option: Any) -> Sequence[Any]:
    """Pearson's correlation of one pair."""
    x, y = (a.reshape(-1).astype(jnp.float64) for a in (label, pred))
    x, y = x - x.mean(), y - y.mean()
    return [jnp.clip((x @ y) / jnp.sqrt(x @ x) / jnp.sqrt(y @ y), -1.0, 1.0)]


def variance(new: Any, count: Any, mean: Any, m2: Any) -> tuple[Any, Any, Any]:
    """Welford's count, mean and sum of squares after `new` values have come."""
    count = count + len(new)
    delta = new - mean
    mean = mean + (delta / count).sum()
    return count, mean, m2 + (delta * (new - mean)).sum()


def running_correlation(state: Any, labels: Arrays, preds: Arrays, option: Any) -> Any:
    """Counts, means and sums of squares of labels and predictions, and the sum of their products, over all batches."""
    n_l, mean_l, sse_l, n_p, mean_p, sse_p, product = state
    for label, pred in zip(labels, preds, strict=True):
        x, y = (a.reshape(-1).astype(jnp.float64) for a in (label, pred))
        n_l, mean_l, sse_l = variance(x, n_l, mean_l, sse_l)
        product = product + ((x - mean_l) * (y - mean_p)).sum()
        n_p, mean_p, sse_p = variance(y, n_p, mean_p, sse_p)
    return jnp.stack([n_l, mean_l, sse_l, n_p, mean_p, sse_p, product])


@summing
def total(labels: Arrays, preds: Arrays, option: Any) -> Sequence[Any]:
    """The sum of all predictions."""
    return [sum((_total(p) for p in preds), jnp.float64(0))]
