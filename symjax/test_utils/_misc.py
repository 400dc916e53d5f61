"""Environment variables, statistics of random generators, retries and other helpers of tests."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from symjax import ndarray as nd
from symjax.context import num_gpus
from symjax.io import DataIter
from symjax.runtime import Features


def list_gpus() -> range:
    """The numbers of the GPUs."""
    return range(num_gpus())


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a function that raises AssertionError is tried again, `n` times in all."""
    assert n > 0, f"retry needs at least one attempt, got {n}"

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                try:
                    return f(*args, **kwargs)
                except AssertionError:
                    nd.waitall()
            return f(*args, **kwargs)

        return wrapper

    return decorate


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """Sets environment variables for a block.

    Args:
      args: a name and its value, or a dict of them; None removes a variable.
    """
    if len(args) == 1 and isinstance(args[0], dict):
        wanted = args[0]
    else:
        assert len(args) == 2, "Expecting one dict arg or two args: env var name and value"
        wanted = {args[0]: args[1]}
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        nd.waitall()
        _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """Sends what the process writes to its error stream to nowhere, for a block."""
    try:
        number = sys.stderr.fileno()
    except (AttributeError, OSError):  # a stream without a file
        yield
        return
    kept = os.dup(number)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), number)
            try:
                yield
            finally:
                os.dup2(kept, number)
    finally:
        os.close(kept)


class DummyIter(DataIter):
    """A data iterator that gives the first batch of another again and again, to time everything else.

    Args:
      real_iter: the other.
    """

    def __init__(self, real_iter: Any) -> None:
        super().__init__()
        self.real_iter = real_iter
        self.provide_data = real_iter.provide_data
        self.provide_label = real_iter.provide_label
        self.batch_size = real_iter.batch_size
        self.the_batch = next(real_iter)

    def __iter__(self) -> DummyIter:
        return self

    def next(self) -> Any:
        """Returns the batch."""
        return self.the_batch


# ---- random generators


def gen_buckets_probs_with_ppf(ppf: Callable[[float], Any], nbuckets: int) -> tuple[list[Any], list[float]]:
    """Returns intervals of equal probability, by a distribution's quantile function, and their probabilities."""
    assert nbuckets > 0, f"needs at least one bucket, got {nbuckets}"
    edges = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(itertools.pairwise(edges)), [1.0 / nbuckets] * nbuckets


def mean_check(generator: Callable[[int], Any], mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of samples is within three standard errors of `mu`."""
    return bool(abs(np.array(generator(nsamples)).mean() - mu) < 3 * sigma / np.sqrt(nsamples))


def var_check(generator: Callable[[int], Any], sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of samples is within three standard errors of `sigma`²."""
    error = np.sqrt(2 * sigma**4 / (nsamples - 1))
    return bool(abs(np.array(generator(nsamples)).var(ddof=1) - sigma**2) < 3 * error)


def chi_square_check(generator: Callable[[int], Any], buckets: list[Any], probs: list[float],
                     nsamples: int = 1000000) -> tuple[float, np.ndarray, np.ndarray]:
    """Compares how often samples fall into buckets with how often they should.

    Args:
      generator: `(n) -> n samples`.
      buckets: intervals `(low, high)` in ascending order, or values.
      probs: their probabilities.
      nsamples: how many samples are drawn.

    Returns:
      `p value, frequencies, expected frequencies`.

    Raises:
      ImportError: SciPy is not installed.
    """
    from scipy import stats

    assert isinstance(buckets, list) and len(probs) == len(buckets), "needs a list of buckets, a probability for each"
    samples = np.asarray(generator(nsamples)).reshape(-1)
    if isinstance(buckets[0], (list, tuple)):
        edges = np.array(buckets, np.float32).reshape(-1)
        assert np.all(np.diff(edges) >= 0), "buckets must be in ascending order"
        at = np.searchsorted(edges, samples, side="right") // 2
        seen = np.array([(at == i).sum() for i in range(len(buckets))])
    else:
        seen = np.array([(samples == b).sum() for b in buckets])
    expected = (nsamples * np.array(probs, np.float32)).astype(np.int32)
    z = (seen - expected) / np.sqrt(np.maximum(expected, 1e-300))
    return float(stats.chi2.sf((z**2).sum(), len(buckets) - 1)), seen, expected


def verify_generator(generator: Callable[[int], Any], buckets: list[Any], probs: list[float],
                     nsamples: int = 1000000, nrepeat: int = 5, success_rate: float = 0.2,
                     alpha: float = 0.05) -> list[float]:
    """Raises AssertionError unless enough of several `chi_square_check`s have p above `alpha`; returns the values."""
    found = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    p = [f[0] for f in found]
    if sum(x > alpha for x in p) < nrepeat * success_rate:
        raise AssertionError(f"Generator test fails, Chi-square p={p}, obs_freq={[f[1] for f in found]}, "
                             f"expected_freq={[f[2] for f in found]}.\nbuckets={buckets}, probs={probs}")
    return p


# ---- where tests run


def is_cd_run() -> bool:
    """Whether CD_JOB is 1: MXNet's nightly builds."""
    return os.environ.get("CD_JOB", "0") == "1"


def is_aarch64_run() -> bool:
    """Whether this is an ARM machine."""
    return platform.machine() == "aarch64"


def has_tvm_ops() -> bool:
    """Whether there are operators compiled by TVM: never."""
    return Features().is_enabled("TVM_OP")


def is_op_runnable() -> bool:
    """Whether the current device can run MXNet's TVM operators' replacements: always."""
    return True


def get_im2rec_path(home_env: str = "MXNET_HOME") -> str:
    """Returns the path of MXNet's tool im2rec.py below the folder that an environment variable names.

    Raises:
      OSError: it is not there.
    """
    path = os.path.join(os.environ.get(home_env, ""), "tools", "im2rec.py")
    if home_env in os.environ and os.path.isfile(path):
        return path
    raise OSError(f"Could not find path to tools/im2rec.py: set {home_env} to MXNet's folder, or use `symjax im2rec`")
