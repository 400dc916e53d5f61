"""Optimizers: they update weights in place by their gradients (MXNet's `mx.optimizer`)."""

from symjax.optimizer import contrib as contrib
from symjax.optimizer import optimizer as optimizer
from symjax.optimizer.optimizer import *  # noqa: F403
