"""What MXNet has and symjax does not (yet): a clear answer instead of "no module named".

`mx.gluon` raises AttributeError, so that `hasattr` is False; `import symjax.gluon` and `from symjax import gluon` raise
ModuleNotFoundError. Both carry the same sentence. A module that exists is never reported: its file wins.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from typing import Any

_PACKAGE = __name__.rpartition(".")[0]
_LATER = "not supported yet"
_PORT = "not supported: export the network there (`net.export`) and load the symbol here, or use symjax.interop.flax"

ABSENT: dict[str, str] = {
    **dict.fromkeys(("gluon", "numpy_dispatch_protocol"), _PORT),
    "library": "not supported: register a JAX function as an operator with symjax.lowering.registry.op",
    "notebook": "not supported: a symbol shows itself in Jupyter",
    "rtc": "not supported: register a JAX (or Pallas) function with symjax.lowering.registry.op",
    "subgraph": "not needed: XLA fuses and compiles the whole graph",
    "torch": "not supported: exchange arrays by DLPack (from_dlpack, to_dlpack_for_read)",
    "tvmop": "not needed: XLA compiles every operator",
    "contrib.amp": f"{_LATER}; give simple_bind a type_dict of float16 or bfloat16",
    "contrib.autograd": "not supported: use mx.autograd",
    "contrib.onnx": f"{_LATER}",
    "contrib.svrg_optimization": "not supported",
    "contrib.tensorrt": "not needed: XLA compiles the whole graph",
}
"""Module path under MXNet -> what to do."""

ALIASES: dict[str, str] = {
    "init": "initializer",
    "img": "image",
    "kv": "kvstore",
    "mod": "module",
    "mon": "monitor",
    "nd": "ndarray",
    "np": "numpy",
    "npx": "numpy_extension",
    "opt": "optimizer",
    "rnd": "random",
    "sym": "symbol",
    "th": "torch",
    "viz": "visualization",
}
"""MXNet's short names of modules."""


def explain(name: str) -> str | None:
    """Returns the sentence about a module path below the package, None if it exists or was never MXNet's."""
    name = ".".join(ALIASES.get(part, part) for part in name.split("."))
    reason = ABSENT.get(name)
    return f"MXNet's mx.{name} is {reason}." if reason and not _exists(name) else None


def _exists(name: str) -> bool:
    parent, _, leaf = name.rpartition(".")
    package = sys.modules.get(f"{_PACKAGE}.{parent}" if parent else _PACKAGE)
    found = PathFinder.find_spec(f"{_PACKAGE}.{leaf}", getattr(package, "__path__", None))
    return found is not None


class Finder:
    """The last finder of `sys.meta_path`: answers for the absent modules of this package, and for nothing else."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        package, _, name = fullname.partition(".")
        text = explain(name) if package == _PACKAGE else None
        if text:
            # without name=: `from symjax import gluon` would swallow an error that names the module itself
            raise ModuleNotFoundError(text)


def install() -> None:
    """Appends the finder, once."""
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)  # type: ignore[arg-type]  # a class with a static find_spec is a finder
