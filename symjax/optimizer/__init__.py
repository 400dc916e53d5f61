"""Optimizers: they update weights in place by their gradients (MXNet's `mx.optimizer`)."""

from symjax.optimizer import contrib as contrib
from symjax.optimizer import optimizer as optimizer
from symjax.optimizer.optimizer import *  # noqa: F403
from symjax.optimizer.optimizer import __all__ as _names

__all__ = [*_names, "contrib"]  # noqa: PLE0604
