"""What a bug report needs to know about the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from typing import Any

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "ml-dtypes", "safetensors", "scipy",
             "click", "tqdm", "matplotlib", "opencv-python-headless", "opencv-python", "Pillow", "mxnet")  # fmt: skip
_PREFIXES = ("JAX_", "XLA_", "MXNET_", "SYMJAX_", "CUDA_VISIBLE_DEVICES", "ROCR_", "TPU_", "OMP_NUM_THREADS")
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL")


def environment_info() -> dict[str, Any]:
    """Returns versions, devices and settings; a problem is reported in place of what it prevents.

    Only environment variables of JAX, XLA, MXNet and symjax are read. Home folders are written as ~.
    """
    import symjax

    return {
        "symjax": {"version": symjax.__version__, "path": _short(os.path.dirname(symjax.__file__)), **_operators()},
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation(),
                   "executable": _short(sys.executable)},
        "system": {"platform": platform.platform(), "machine": platform.machine(), "processors": os.cpu_count()},
        "packages": {name: _version(name) for name in _PACKAGES},
        "jax": _jax(),
        "variables": {k: _short(v) for k, v in sorted(os.environ.items())
                      if k.startswith(_PREFIXES) and not any(s in k for s in _SECRET)},
    }  # fmt: skip


def print_environment_info() -> None:
    """Prints `environment_info` as text, for a bug report."""
    print(format_info(environment_info()))


def format_info(info: dict[str, Any]) -> str:
    """Lays the information out, one fact a line."""
    lines = []
    for section, facts in info.items():
        lines.append(f"{section}:")
        lines += [f"  {name}: {_fact(value)}" for name, value in facts.items()]
    return "\n".join(lines)


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return "-" if value is None else str(value)


def _operators() -> dict[str, Any]:
    try:
        from symjax.lowering import registry

        names = registry.all_names()
        return {"operators": len({id(op) for op in names.values()}), "operator names": len(names)}
    except Exception as e:
        return {"problem": f"{type(e).__name__}: {e}"}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _jax() -> dict[str, Any]:
    try:
        import jax
        import jax.numpy as jnp

        start = time.perf_counter()
        total = float(jax.jit(lambda x: (x + 1).sum())(jnp.zeros(3)))
        seconds = time.perf_counter() - start
        facts = {
            "default backend": jax.default_backend(),
            "devices": [f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices()],
            "jax_enable_x64": bool(jax.config.read("jax_enable_x64")),
            "compiles and runs": f"yes, {seconds:.2f} s" if total == 3 else f"no: got {total} instead of 3",
        }
        return facts if total == 3 else {**facts, "problem": "a compiled function gives a wrong result"}
    except Exception as e:
        return {"problem": f"{type(e).__name__}: {e}"}


def _short(text: str) -> str:
    home = os.path.expanduser("~")
    return text.replace(home, "~") if len(home) > 1 else text
