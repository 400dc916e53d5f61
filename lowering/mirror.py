"""Mirroring: results that the backward pass computes again instead of keeping them, by `jax.checkpoint`.

MXNet mirrors the nodes with the attribute `force_mirroring`, and under `MXNET_BACKWARD_DO_MIRROR=1` all that are cheap:
activations, elementwise operators, pooling. Results of the others are what a training pass keeps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name

from symjax.lowering.graph import Graph, Node

_KEPT = "symjax_kept"
_RANDOM = frozenset({"Dropout"})
_KEEPERS = frozenset({"Convolution", "FullyConnected", "Concat", "SoftmaxOutput", "BatchNorm", "CuDNNBatchNorm"})
"""What the environment variable leaves alone in MXNet."""
_HEAVY = frozenset({"Convolution", "FullyConnected", "Deconvolution", "RNN", "dot", "batch_dot", "_linalg_gemm",
                    "_linalg_gemm2", "_npi_matmul", "_npi_dot", "Custom", "Correlation", "DeformableConvolution",
                    "_contrib_DeformableConvolution"})  # fmt: skip
"""What is not cheap. MXNet mirrors some of them under the variable; here only the attribute does."""


def mirrored(graph: Graph) -> frozenset[Node]:
    """Returns the nodes whose results are computed again, by their attributes and the environment as it is now."""
    everywhere = os.environ.get("MXNET_BACKWARD_DO_MIRROR", "0").strip() not in ("", "0")
    found = frozenset(n for n in graph.nodes if n.op is not None and _is_mirrored(n, everywhere))
    if found and any(n.op is not None and (n.op.eager or n.op.host) for n in graph.nodes):
        return frozenset()  # what runs on the host or node by node is not computed twice
    return found


def _is_mirrored(n: Node, everywhere: bool) -> bool:
    assert n.op is not None
    if n.op.name in _RANDOM:
        return False
    forced = n.attrs.get("__force_mirroring__", n.attrs.get("force_mirroring", ""))
    if forced.strip().lower() in ("1", "true"):
        return True
    return everywhere and n.op.name not in _KEEPERS and n.op.name not in _HEAVY


def kept(outs: Sequence[Any]) -> tuple[Any, ...]:
    """Returns a node's results, named as those to keep."""
    return tuple([jax.tree.map(lambda x: checkpoint_name(x, _KEPT), o) for o in outs])


def checkpointed(f: Callable[..., Any], nodes: Collection[Node]) -> Callable[..., Any]:
    """Returns `f` such that its gradient keeps what `kept` has named, and products of matrices inside of operators.

    Products too are computed again if one of the mirrored `nodes` is an operator that makes them.
    """
    policies = jax.checkpoint_policies
    policy = policies.save_only_these_names(_KEPT)
    if not any(n.op is not None and n.op.name in _HEAVY for n in nodes):
        policy = policies.save_from_both_policies(policy, policies.dots_saveable)
    return jax.checkpoint(f, policy=policy)
