"""symjax: Apache MXNet's Symbol API on JAX.

`import symjax as mx` gives an MXNet user the names they know (`mx.sym`, `mx.nd`, `mx.cpu`, …); `symjax.lower` gives a
JAX user a symbol as one pure function. Submodules are imported when first used.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from symjax import _absent

__version__ = "0.1.0"

_absent.install()

_MODULES = ("attribute", "autograd", "base", "callback", "context", "contrib", "dlpack", "engine", "executor",
            "executor_manager", "image", "initializer", "interop", "io", "kvstore", "kvstore_server", "libinfo", "log",
            "lowering", "lr_scheduler", "metric", "model", "module", "monitor", "name", "ndarray", "numpy",
            "numpy_extension", "operator", "optimizer", "profiler", "random", "recordio", "registry", "rnn", "runtime",
            "sparse", "symbol", "test_utils", "util", "visualization")
_NAMES = {
    "AttrScope": "attribute", "MXNetError": "base", "Context": "context", "cpu": "context", "cpu_pinned": "context",
    "current_context": "context", "gpu": "context", "gpu_memory_info": "context", "num_gpus": "context",
    "num_tpus": "context", "tpu": "context", "NDArray": "ndarray", "Executor": "executor", "Symbol": "symbol",
    "var": "symbol", "Group": "symbol", "load": "symbol", "load_json": "symbol",
    "lower": "functional", "Lowered": "functional", "config": "_config", "install_as_mxnet": "_alias",
    "print_environment_info": "_environment",
}

if TYPE_CHECKING:
    from symjax import (
        attribute,
        base,
        context,
        executor,
        executor_manager,
        initializer,
        io,
        kvstore,
        lowering,
        lr_scheduler,
        metric,
        model,
        module,
        name,
        ndarray,
        numpy,
        numpy_extension,
        operator,
        optimizer,
        random,
        recordio,
        registry,
        rnn,
        symbol,
    )
    from symjax import initializer as init
    from symjax import kvstore as kv
    from symjax import module as mod
    from symjax import ndarray as nd
    from symjax import numpy as np
    from symjax import numpy_extension as npx
    from symjax import symbol as sym
    from symjax.attribute import AttrScope
    from symjax.base import MXNetError
    from symjax.context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus, tpu
    from symjax.executor import Executor
    from symjax.functional import Lowered, lower
    from symjax.ndarray import NDArray
    from symjax.symbol import Group, Symbol, load, load_json, var


def _import(name: str) -> Any:
    """Imports a submodule, and thereby perhaps JAX, which draws from numpy's global generator while it is imported.

    A program that called `np.random.seed` before must not notice: its numbers would depend on what it used first.
    Nor does JAX write into the log of a program that did not import it: MXNet's examples log at the level DEBUG, where
    JAX has many lines for each compilation. A level that the program sets for the logger `jax`, or
    `JAX_LOGGING_LEVEL`, counts.
    """
    if "jax" in sys.modules:
        return importlib.import_module(f"{__name__}.{name}")
    import logging

    import numpy as np

    if "JAX_LOGGING_LEVEL" not in os.environ and "JAX_DEBUG_LOG_MODULES" not in os.environ:
        log = logging.getLogger("jax")
        log.setLevel(log.level or logging.WARNING)
    state = np.random.get_state(legacy=False)
    try:
        return importlib.import_module(f"{__name__}.{name}")
    finally:
        np.random.set_state(state)


def __getattr__(key: str) -> Any:
    name = _absent.ALIASES.get(key, key)
    if name in _MODULES:
        module = globals()[key] = _import(name)
        return module
    if key in _NAMES:
        value = globals()[key] = getattr(_import(_NAMES[key]), key)
        return value
    raise AttributeError(_absent.explain(key) or f"module {__name__!r} has no attribute {key!r}")


def __dir__() -> list[str]:
    short = {k for k, v in _absent.ALIASES.items() if v in _MODULES}
    helpers = {"Any", "TYPE_CHECKING", "annotations", "importlib", "os", "sys"}
    return sorted({*(k for k in globals() if k not in helpers), *_MODULES, *short, *_NAMES})


if "DMLC_ROLE" in os.environ:  # a process of MXNet's launchers: a worker joins the others, other roles end here
    _import("_launch").start()
