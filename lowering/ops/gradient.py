"""The gradient of a graph as an operator, so that `Symbol.gradient` gives a graph that can be saved."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symjax.lowering.params import Params, Shape, param
from symjax.lowering.registry import op


class GradientParams(Params):
    num_args: int = param(ge=1, doc="How many inputs the differentiated graph has.")
    wrt: Shape = param(doc="Positions, among the inputs, of those to differentiate with respect to.")
    aux: Shape = param((), doc="Positions, among the inputs, of the auxiliary states.")


def _inputs(p: GradientParams) -> tuple[str, ...]:
    return tuple(f"aux{i}" if i in p.aux else f"arg{i}" for i in range(p.num_args))


def _aux(p: GradientParams) -> tuple[str, ...]:
    return tuple(f"aux{i}" for i in p.aux)


def _shapes(p: GradientParams, ins: list[Any], outs: list[Any], *, subgraphs: Any) -> list[Any]:
    known = [outs[p.wrt.index(i)] if s is None and i in p.wrt else s for i, s in enumerate(ins)]
    return subgraphs[0].infer_shapes(known)[0]


def _types(p: GradientParams, ins: list[Any], outs: list[Any], *, subgraphs: Any) -> tuple[list[Any], list[Any]]:
    known = subgraphs[0].infer_types(ins)[0]
    return known, [known[i] for i in p.wrt]


@op(
    "_symjax_gradient",
    params=GradientParams,
    inputs=_inputs,
    aux=_aux,
    outputs=lambda p: len(p.wrt),
    variadic="num_args",
    num_subgraphs=1,
    infer_inputs=_shapes,
    infer_types=_types,
    infer_outputs=lambda p, ins: [ins[i] for i in p.wrt],
)
def gradient(p: GradientParams, *inputs: Any, subgraphs: Any, train: bool, key: Any) -> tuple[Any, ...]:
    """The gradient of the sum of a graph's outputs with respect to some of its inputs.

    Loss heads keep their own gradients. Auxiliary states are updated as a training step would.
    """
    sub = subgraphs[0]

    def total(diff: list[Any]) -> tuple[list[Any], Any]:
        full = list(inputs)
        for i, v in zip(p.wrt, diff, strict=True):
            full[i] = v
        return sub(full, train=train, key=key)

    outs, pull, new_aux = jax.vjp(total, [inputs[i] for i in p.wrt], has_aux=True)
    heads = [
        jnp.ones(o.shape, o.dtype) if jnp.issubdtype(o.dtype, jnp.inexact) else np.zeros(o.shape, jax.dtypes.float0)
        for o in outs
    ]
    (grads,) = pull(heads)
    return (*grads, *(new_aux[sub.input_names[i]] for i in p.aux))
