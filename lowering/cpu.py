"""What XLA's CPU compiler is asked for beyond its defaults."""

from __future__ import annotations

import functools

import jax

from symjax.lowering.graph import Graph

_EIGEN_CONVOLUTIONS = {
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
}
"""YNNPACK for products and reductions alone: its convolutions run on about one core, Eigen's on all (1.1 to 2.5 times
faster, gradients most)."""


def compiler_options(graph: Graph, platform: str | None) -> dict[str, str] | None:
    """Returns `compiler_options` of `jax.jit` for a graph's programs; None for the defaults.

    Args:
      graph: the graph.
      platform: "cpu", "cuda", "rocm", "tpu", or None.
    """
    if platform != "cpu" or not any(n.op is not None and "conv" in n.op.name.lower() for n in graph.nodes):
        return None
    return _EIGEN_CONVOLUTIONS if _accepted() else None


@functools.cache
def _accepted() -> bool:
    """Whether this jaxlib knows the options, which are experimental."""
    try:
        jax.jit(lambda x: x, compiler_options=_EIGEN_CONVOLUTIONS).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
