"""`mx.npx`: what `mx.np` arrays need beyond numpy: operators of neural networks, contexts, files, switches."""

from __future__ import annotations

import importlib
from typing import Any

from symjax._numpy.front import EXTENSION_SIGNATURES, with_signature
from symjax.context import Context as Context
from symjax.context import cpu as cpu
from symjax.context import cpu_pinned as cpu_pinned
from symjax.context import current_context as current_context
from symjax.context import gpu as gpu
from symjax.context import gpu_memory_info as gpu_memory_info
from symjax.context import num_gpus as num_gpus
from symjax.ndarray import waitall as waitall
from symjax.ndarray.numpy_extension import _op
from symjax.numpy_extension.utils import load as load
from symjax.numpy_extension.utils import save as save
from symjax.util import get_cuda_compute_capability as get_cuda_compute_capability
from symjax.util import is_np_array as is_np_array
from symjax.util import is_np_shape as is_np_shape
from symjax.util import reset_np as reset_np
from symjax.util import set_np as set_np

_MODULES = ("image", "random", "utils")
_OWN = ("Context", "cpu", "cpu_pinned", "current_context", "get_cuda_compute_capability", "gpu", "gpu_memory_info",
        "is_np_array", "is_np_shape", "load", "num_gpus", "reset_np", "save", "set_np", "waitall")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    try:
        made = getattr(_op, name)
    except AttributeError as e:
        raise AttributeError(str(e).replace("symjax.ndarray.numpy_extension._op", __name__)) from None
    if name in EXTENSION_SIGNATURES:
        made = with_signature(made, EXTENSION_SIGNATURES[name], __name__)
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted({*dir(_op), *_MODULES, *_OWN})
