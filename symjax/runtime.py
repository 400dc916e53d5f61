"""What this installation can do (MXNet's `mx.runtime`): `Features()["OPENCV"].enabled`."""

from __future__ import annotations

import functools
import importlib.util
import platform
from pathlib import Path
from typing import Any, ClassVar

__all__ = ["Feature", "Features", "feature_list"]

_NAMES = ("CUDA", "CUDNN", "NCCL", "CUDA_RTC", "TENSORRT", "CPU_SSE", "CPU_SSE2", "CPU_SSE3", "CPU_SSE4_1",
          "CPU_SSE4_2", "CPU_SSE4A", "CPU_AVX", "CPU_AVX2", "OPENMP", "SSE", "F16C", "JEMALLOC", "BLAS_OPEN",
          "BLAS_ATLAS", "BLAS_MKL", "BLAS_APPLE", "LAPACK", "MKLDNN", "OPENCV", "CAFFE", "PROFILER",
          "DIST_KVSTORE", "CXX14", "INT64_TENSOR_SIZE", "SIGNAL_HANDLER", "DEBUG", "TVM_OP", "TPU")  # fmt: skip
"""MXNet's names, and TPU."""

_ALWAYS = ("LAPACK", "PROFILER", "DIST_KVSTORE", "INT64_TENSOR_SIZE")
_FLAGS = {"CPU_SSE3": "pni", "F16C": "f16c"}  # others are called as in /proc/cpuinfo


class Feature:
    """A feature and whether it is there.

    Attributes:
      name (str): MXNet's name.
      enabled (bool): whether symjax, JAX and this machine have it.
    """

    def __init__(self, name: str, enabled: bool) -> None:
        self._name, self._enabled = name, enabled

    @property
    def name(self) -> str:
        return self._name

    @property
    def enabled(self) -> bool:
        return self._enabled

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


@functools.cache
def _cpu_flags() -> frozenset[str]:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return frozenset()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux; every x86-64 has these
        return frozenset({"sse", "sse2"})
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def _enabled(name: str, platforms: set[str]) -> bool:
    if name in ("CUDA", "CUDNN", "NCCL"):
        return "cuda" in platforms
    if name == "TPU":
        return "tpu" in platforms
    if name == "OPENCV":
        return importlib.util.find_spec("cv2") is not None
    if name.startswith("CPU_") or name in ("SSE", "F16C"):
        return _FLAGS.get(name, name.removeprefix("CPU_").lower()) in _cpu_flags()
    return name in _ALWAYS


def _platforms() -> set[str]:
    import jax

    found = set()
    for kind in ("cuda", "tpu"):
        try:
            jax.devices(kind)
        except RuntimeError:
            continue
        found.add(kind)
    return found


def feature_list() -> list[Feature]:
    """Returns all features that MXNet can be asked for, and TPU."""
    platforms = _platforms()
    return [Feature(name, _enabled(name, platforms)) for name in _NAMES]


class Features(dict[str, Feature]):
    """The features by name; there is one object of this class."""

    instance: ClassVar[Any] = None

    def __new__(cls) -> Features:
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            dict.__init__(cls.instance, {f.name: f for f in feature_list()})
        return cls.instance

    def __init__(self) -> None:  # made in `__new__`, once
        pass

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is there; the name in capitals or not.

        Raises:
          RuntimeError: there is no such feature.
        """
        feature_name = feature_name.upper()
        if feature_name not in self:
            raise RuntimeError(f"Feature '{feature_name}' is unknown, known features are: {list(self)}")
        return self[feature_name].enabled
